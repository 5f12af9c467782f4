//! One model, with one fault or none.

use std::io::{Read as _, Seek as _};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;
use wait_timeout::ChildExt as _;

use crate::scratch::Model;

/// How often a thread may be preempted, and how long the search may take. First few: what fails then does so
/// in a moment. `None` is the model's own bound.
pub(crate) const SEARCHES: [Search; 3] = [
    Search { bound: Some(1), limit: Duration::from_secs(30) },
    Search { bound: Some(2), limit: Duration::from_secs(60) },
    Search { bound: None, limit: Duration::from_secs(120) },
];

#[derive(Clone, Copy)]
pub(crate) struct Search {
    pub(crate) bound: Option<usize>,
    pub(crate) limit: Duration,
}

pub(crate) enum Verdict {
    Passed,
    /// With what the model says.
    Failed(String),
    OutOfTime,
}

pub(crate) struct Run {
    pub(crate) verdict: Verdict,
    pub(crate) time: Duration,
}

/// Runs the model with the fault planted.
pub(crate) fn run(model: &Model, fault: Option<&str>, search: Search) -> Result<Run> {
    let mut command = Command::new(&model.executable);
    command.args(["--exact", model.function(), "--test-threads=1", "--nocapture"]);
    command
        .env("RUST_BACKTRACE", "0")
        .env_remove("LOOM_MAX_PREEMPTIONS")
        .env_remove("FDTABLE_FAULT");
    if let Some(fault) = fault {
        command.env("FDTABLE_FAULT", fault);
    }
    if let Some(bound) = search.bound {
        command.env("LOOM_MAX_PREEMPTIONS", bound.to_string());
    }
    let mut output = tempfile::tempfile()?;
    command.stdout(output.try_clone()?).stderr(output.try_clone()?);
    let start = Instant::now();
    let mut child = command.spawn()?;
    let status = child.wait_timeout(search.limit)?;
    if status.is_none() {
        child.kill()?;
        child.wait()?;
    }
    let time = start.elapsed();
    let verdict = match status {
        None => Verdict::OutOfTime,
        Some(status) if status.success() => Verdict::Passed,
        Some(status) => {
            let mut text = Vec::new();
            output.rewind()?;
            output.read_to_end(&mut text)?;
            let said = complaint(&String::from_utf8_lossy(&text)).unwrap_or(status.to_string());
            // With few preemptions not every outcome is reached, also without a fault.
            if search.bound.is_some() && said.contains("no schedule leads to") {
                Verdict::Passed
            } else {
                Verdict::Failed(said)
            }
        }
    };
    Ok(Run { verdict, time })
}

/// The first panic's message, in one line.
fn complaint(output: &str) -> Option<String> {
    let mut lines = output.lines().skip_while(|line| !line.contains(" panicked at ")).skip(1);
    let first = lines.next()?.trim();
    let rest = if first.ends_with('[') { lines.next().unwrap_or("").trim() } else { "" };
    Some(format!("{first}{rest}"))
}
