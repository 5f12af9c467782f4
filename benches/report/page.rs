//! The report as Markdown.

use std::fmt::Write as _;

use fdtable::FdTable;

use super::memory::OPEN;
use super::results::Results;
use super::targets;
use crate::peers::{ArcSwaps, MutexSlab, ParkingLotMutex, ShardedSlab, StdRwLock, Table};

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

/// What the README above shows: nanoseconds of what an fd table is asked most.
pub(crate) fn summary(results: &Results, machine: &str) -> String {
    const TABLES: [(&str, &str); 6] = [
        ("`fdtable`", FdTable::<u64>::NAME),
        ("`Mutex<Vec>`", ParkingLotMutex::NAME),
        ("`RwLock<Vec>`", StdRwLock::NAME),
        ("`Mutex<Slab>`", MutexSlab::NAME),
        ("arc-swap", ArcSwaps::NAME),
        ("sharded-slab", ShardedSlab::NAME),
    ];
    const ROWS: [(&str, &str, &str); 11] = [
        ("lookup, drop of the handle", "lookup, one fd", ""),
        ("… by two threads, same fd", "two threads, same fd", ""),
        ("… by two threads, far fds", "two threads, far fds", ""),
        ("open + close", "insert + close, fresh file", ""),
        ("… by two threads", "two threads, insert + close", ""),
        ("… by two threads, 1 000 open", "two threads, insert + close, 1 000 open", ""),
        ("a file moves in and out", "insert + close, ready file", ""),
        ("… 1 000 000 open, lowest hole", "insert + close, 1 000 000 open", ", lowest hole"),
        ("… 1 000 000 open, random holes", "insert + close, 1 000 000 open", ", random holes"),
        ("… 512 threads alive", "insert + close, 512 live reader threads", ""),
        ("fork of 1 000, per fd", "fork of 1 000 + drop, per fd", ""),
    ];
    let mut text = format!("{machine}\n\n| nanoseconds |");
    TABLES.iter().for_each(|(title, _)| text += &format!(" {title} |"));
    line!(text, "\n|---|{}", "---:|".repeat(TABLES.len()));
    for (title, group, place) in ROWS {
        let time = |(_, table): &(&str, &str)| {
            let time = results.nanoseconds(group, &format!("{table}{place}"));
            time.map_or("–".to_string(), |time| format!("{time:.1}"))
        };
        line!(text, "| {title} | {} |", TABLES.iter().map(time).collect::<Vec<_>>().join(" | "));
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
