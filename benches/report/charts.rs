//! The report's charts.

use std::path::Path;

use super::growth::Pages;
use super::results::Results;
use crate::plots::{Line, Plot};

const TIMES: &str = "times Arc clone + drop";

/// Groups that differ in one number, and what of them becomes a line.
type Series<'s> = (&'s [(f64, &'s str)], &'s [&'s str]);

pub(crate) fn draw(results: &Results, folder: &Path) {
    let chart = |file: &str, title: &str, x, (groups, candidates): Series| {
        let line = |candidate: &&str| -> Option<Line> {
            let point =
                |&(x, group): &(f64, &str)| Some((x, results.over_reference(group, candidate)?));
            let points: Vec<_> = groups.iter().filter_map(point).collect();
            (!points.is_empty()).then(|| (candidate.to_string(), points))
        };
        let lines: Vec<_> = candidates.iter().filter_map(line).collect();
        let plot = Plot { title: title.to_string(), x, y: TIMES, logarithmic_y: true };
        plot.draw(&folder.join(file), &lines);
    };
    let many = [
        (1e3, "insert + close, 1 000 open"),
        (1e5, "insert + close, 100 000 open"),
        (1e6, "insert + close, 1 000 000 open"),
    ];
    let among = [
        "fdtable, top",
        "fdtable, lowest hole",
        "fdtable, random holes",
        "parking_lot Mutex<Vec<Option<Arc>>>, top",
        "parking_lot Mutex<Vec<Option<Arc>>>, lowest hole",
        "parking_lot Mutex<Vec<Option<Arc>>>, random holes",
        "parking_lot Mutex<Slab<Arc>>, random holes",
    ];
    chart("open-fds.svg", "insert + close, ready file", "open fds", (&many, &among));
    let lookups = [
        (1.0, "lookup, one fd"),
        (64.0, "lookup, random of 64"),
        (1e5, "lookup, random of 100 000"),
    ];
    let tables = [
        "fdtable",
        "fdtable: get_owned",
        "fdtable: borrow",
        "std RwLock<Vec<Option<Arc>>>",
        "parking_lot Mutex<Vec<Option<Arc>>>",
        "arc-swap per slot",
        "crossbeam-epoch slots",
        "sharded-slab",
        "papaya",
        "dashmap",
        "scc",
    ];
    chart("lookup.svg", "lookup + drop of the handle", "open fds", (&lookups, &tables));
    let same = [
        (1.0, "lookup, one fd"),
        (2.0, "two threads, same fd"),
        (4.0, "4 threads, same fd"),
        (8.0, "8 threads, same fd"),
        (16.0, "16 threads, same fd"),
        (32.0, "32 threads, same fd"),
        (64.0, "64 threads, same fd"),
    ];
    chart(
        "threads-same-fd.svg",
        "lookups of one fd, over one Arc on as many threads",
        "threads",
        (&same, &tables),
    );
    let far = [
        (1.0, "lookup, one fd"),
        (2.0, "two threads, far fds"),
        (4.0, "4 threads, far fds"),
        (8.0, "8 threads, far fds"),
        (16.0, "16 threads, far fds"),
        (32.0, "32 threads, far fds"),
        (64.0, "64 threads, far fds"),
    ];
    chart(
        "threads-far-fds.svg",
        "lookups of an fd each, over an Arc each",
        "threads",
        (&far, &tables),
    );
    let living = [
        (1.0, "insert + close, 1 live reader thread"),
        (8.0, "insert + close, 8 live reader threads"),
        (64.0, "insert + close, 64 live reader threads"),
        (512.0, "insert + close, 512 live reader threads"),
    ];
    chart(
        "live-threads.svg",
        "insert + close, fresh file",
        "live reader threads",
        (&living, &tables),
    );
    let forks = [
        (64.0, "fork of 64 + drop, per fd"),
        (1e3, "fork of 1 000 + drop, per fd"),
        (1e5, "fork of 100 000 + drop, per fd"),
    ];
    let copies = ["fdtable", "Vec<Arc>: clone", "std RwLock<Vec<Option<Arc>>>"];
    chart("fork.svg", "fork + drop of the copy, per fd", "open fds", (&forks, &copies));
    draw_growth(results, folder);
}

/// How slow the slowest one in so many inserts is.
fn draw_growth(results: &Results, folder: &Path) {
    let one_in = [2.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6];
    let line = |growth: &super::growth::Growth| -> Line {
        let point = |&one: &f64| (one, f64::from(growth.quantile(1.0 - 1.0 / one)));
        let pages = if growth.pages == Pages::Fresh { "" } else { ", pages touched before" };
        (format!("{}{pages}", growth.table), one_in.iter().map(point).collect())
    };
    let lines: Vec<_> = results.growth.iter().map(line).collect();
    let plot = Plot {
        title: "An insert on the way to 1 000 000, beside a reader".to_string(),
        x: "one insert in so many takes longer than",
        y: "ns",
        logarithmic_y: true,
    };
    plot.draw(&folder.join("growth.svg"), &lines);
}
