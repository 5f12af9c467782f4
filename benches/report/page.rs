//! The report as Markdown.

use std::fmt::Write as _;

use super::memory::OPEN;
use super::results::Results;
use super::targets;

/// Writing to a string can't fail.
macro_rules! line {
    ($text:ident, $($arguments:tt)*) => { { let _ = writeln!($text, $($arguments)*); } };
}

pub(crate) fn write(results: &Results, machine: &str) -> String {
    let mut text = String::new();
    line!(text, "{machine}\n");
    write_targets(&mut text, results);
    for group in &results.groups {
        line!(text, "\n| {} | ns | ratio |", group.name);
        line!(text, "|---|---:|---:|");
        for measured in &group.measured {
            let ratio = measured.over(&group.measured[0]);
            line!(text, "| {} | {:.1} | {ratio:.2} |", measured.name, measured.nanoseconds());
        }
    }
    write_growth(&mut text, results);
    line!(text, "\n| bytes, without the files | empty | per fd, {} | {} |", OPEN[0], OPEN[1]);
    line!(text, "|---|---:|---:|---:|");
    for memory in &results.memory {
        let [few, many] = memory.per_fd;
        line!(text, "| {} | {} | {few:.1} | {many:.1} |", memory.table, memory.empty);
    }
    match &results.counted {
        Ok(counted) => {
            line!(text, "\n| executed | RMWs | instructions |");
            line!(text, "|---|---:|---:|");
            for (name, counts) in counted {
                line!(text, "| {name} | {} | {} |", counts.rmws, counts.instructions);
            }
        }
        Err(reason) => line!(text, "\nInstructions were not counted: {reason}."),
    }
    text
}

fn write_targets(text: &mut String, results: &Results) {
    line!(text, "| target | at most | measured | met |");
    line!(text, "|---|---:|---:|---|");
    for target in targets::all(results) {
        let Some(measured) = target.measured else {
            line!(text, "| {} | | not measured | |", target.name);
            continue;
        };
        let limit = target.limit.map_or(String::new(), |limit| format!("{limit} {}", target.unit));
        let met = match target.limit {
            // As it is shown.
            Some(limit) if (measured * 100.0).round() <= limit * 100.0 => "yes",
            Some(_) => "**no**",
            None => "",
        };
        line!(text, "| {} | {limit} | {measured:.2} {} | {met} |", target.name, target.unit);
    }
}

fn write_growth(text: &mut String, results: &Results) {
    line!(
        text,
        "\n| an insert up to 1 000 000, ns | pages | median | 99.9 % | slowest | at its best |"
    );
    line!(text, "|---|---|---:|---:|---:|---:|");
    for growth in &results.growth {
        line!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            growth.table,
            format!("{:?}", growth.pages).to_lowercase(),
            growth.quantile(0.5),
            growth.quantile(0.999),
            growth.quantile(1.0),
            growth.slowest_at_best
        );
    }
}
