//! The committed figures.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::process::Command;

use super::{Counts, Verdict};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/counting/expected.txt");

type Counted = (&'static str, Counts);

/// The compiler, which decides on the instructions.
fn compiler() -> String {
    let version = Command::new("rustc").arg("--version").output().map(|output| output.stdout);
    String::from_utf8_lossy(&version.unwrap_or_default()).trim().to_string()
}

/// Makes today's figures the expected ones.
pub(crate) fn write(counted: &[Counted]) {
    let mut text =
        format!("{}\n{:<30}{:>6}{:>14}\n", compiler(), "operation", "RMWs", "instructions");
    for (name, counts) in counted {
        let _ = writeln!(text, "{name:<30}{:>6}{:>14}", counts.rmws, counts.instructions);
    }
    std::fs::write(PATH, &text).expect("the sources can be written");
    print!("{text}");
}

/// Prints each operation with what was expected.
pub(crate) fn compare(counted: &[Counted]) -> Verdict {
    let text = std::fs::read_to_string(PATH).unwrap_or_default();
    let (expected_compiler, table) = text.split_once('\n').unwrap_or_default();
    let expected: HashMap<_, _> = table.lines().skip(1).filter_map(parse).collect();
    let same_compiler = expected_compiler == compiler();
    if !same_compiler {
        println!(
            "skipped: instructions: expected those of {expected_compiler}, this is {}; read-modify-writes \
             are compared",
            compiler()
        );
    }
    let mut verdict = Verdict::Kept;
    for (name, counts) in counted {
        let Some(expected) = expected.get(name) else {
            println!("{name}: not in {PATH}: run with -- --write");
            verdict = Verdict::Worse;
            continue;
        };
        let worse = counts.rmws > expected.rmws
            || same_compiler && counts.instructions * 10 > expected.instructions * 11;
        println!(
            "{}{name}: {} RMWs (expected {}), {} instructions ({})",
            if worse { "WORSE: " } else { "" },
            counts.rmws,
            expected.rmws,
            counts.instructions,
            expected.instructions
        );
        if worse {
            verdict = Verdict::Worse;
        }
    }
    verdict
}

/// A line: the operation's name, which may have spaces, and two numbers.
fn parse(line: &str) -> Option<(&str, Counts)> {
    let (rest, instructions) = line.rsplit_once(' ')?;
    let (name, rmws) = rest.trim_end().rsplit_once(' ')?;
    let counts = Counts { rmws: rmws.parse().ok()?, instructions: instructions.parse().ok()? };
    Some((name.trim_end(), counts))
}
