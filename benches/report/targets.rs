//! What the table is meant to reach, and whether it does.

use fdtable::FdTable;

use super::growth::Pages;
use super::results::Results;
use crate::peers::{ParkingLotMutex, Table};

pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// At most this; `None` for a figure that is only shown.
    pub(crate) limit: Option<f64>,
    /// `None` if this run has not measured it.
    pub(crate) measured: Option<f64>,
    pub(crate) unit: &'static str,
}

const OURS: &str = FdTable::<u64>::NAME;

/// All of them; ratios are to the clone and drop of an `Arc` in the same run, unless the name says otherwise.
pub(crate) fn all(results: &Results) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut add = |name, limit, unit, measured| {
        targets.push(Target { name, limit: Some(limit), measured, unit });
    };
    let reference = |group, candidate| results.over_reference(group, candidate);
    let one = "lookup, one fd";
    let random = "lookup, random of 64";
    add("get + drop, one fd", 1.05, "x", reference(one, OURS));
    add("get + drop, random of 64", 1.05, "x", reference(random, OURS));
    add("get_owned + drop, one fd", 1.10, "x", reference(one, "fdtable: get_owned"));
    add("get_owned + drop, random of 64", 1.10, "x", reference(random, "fdtable: get_owned"));
    add("lookup through `&mut`", 0.15, "x", reference(one, "fdtable: borrow"));
    let fresh = "insert + close, fresh file";
    add("insert + close, fresh file, plain malloc", 2.1, "x", reference(fresh, OURS));
    let recycled = reference(fresh, "fdtable, recycled blocks");
    add("insert + close, fresh file, recycled blocks", 1.65, "x", recycled);
    let mutex = results.ratio(fresh, OURS, ParkingLotMutex::NAME);
    add("… over parking_lot Mutex<Vec<Option<Arc>>>", 0.5, "x", mutex);
    let in_one = results.ratio("reserve + install + close", OURS, "fdtable: insert + close");
    add("reserve + install + close over insert + close", 1.4, "x", in_one);
    add("dup + close", 2.0, "x", reference("dup + close", OURS));
    let empty = "fdtable, nearly empty";
    let million = "insert + close, 1 000 000 open";
    let top = results.ratio(million, "fdtable, top", empty);
    add("insert + close at the top of 1 000 000 over nearly empty", 1.3, "x", top);
    let hole = results.ratio(million, "fdtable, lowest hole", empty);
    add("insert + close in the lowest hole of 1 000 000 over nearly empty", 1.1, "x", hole);
    let holes = results.ratio("insert + close, 100 000 open", "fdtable, random holes", empty);
    add("insert + close in random holes of 100 000 over nearly empty", 1.9, "x", holes);
    let many = reference("insert + close, 512 live reader threads", OURS);
    let few = reference("insert + close, 1 live reader thread", OURS);
    let readers = many.zip(few).map(|(many, few)| many / few);
    add("insert + close with 512 live reader threads over 1", 1.1, "x", readers);
    add("fork of 64 + drop, per fd", 1.05, "x", reference("fork of 64 + drop, per fd", OURS));
    let thousand = reference("fork of 1 000 + drop, per fd", OURS);
    add("fork of 1 000 + drop, per fd", 1.05, "x", thousand);
    let hundred_thousand = reference("fork of 100 000 + drop, per fd", OURS);
    add("fork of 100 000 + drop, per fd", 1.05, "x", hundred_thousand);
    let neighbours = reference("two threads, neighbouring fds", OURS);
    add("two threads, neighbouring fds, over two Arcs", 1.15, "x", neighbours);
    add("two threads, far fds, over two Arcs", 1.15, "x", reference("two threads, far fds", OURS));
    add("two threads, same fd, over one Arc", 1.5, "x", reference("two threads, same fd", OURS));
    let nothing = "close_range of nothing, per call";
    let nothing = results.nanoseconds(nothing, "fdtable, 1 000 open, up to 2^30");
    add("close_range of nothing up to 2^30", 5.0, "µs", nothing.map(|time| time / 1e3));
    add("get", 1.0, "RMW", results.rmws("get"));
    add("drop of a handle", 1.0, "RMW", results.rmws("drop of a handle"));
    add("insert", 1.0, "RMW", results.rmws("insert"));
    add("close", 2.0, "RMW", results.rmws("close"));

    let slowest = |pages| {
        let growth = results.growth.iter().find(|one| one.table == OURS && one.pages == pages);
        growth.map(|growth| f64::from(growth.slowest_at_best) / 1e3)
    };
    add("slowest insert up to 1 000 000, a reader running", 50.0, "µs", slowest(Pages::Touched));
    let name = "… with page faults";
    targets.push(Target { name, limit: None, measured: slowest(Pages::Fresh), unit: "µs" });
    targets
}
