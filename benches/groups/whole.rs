//! The table as a whole: ranges, forks, exec, and new tables.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use fdtable::{CloseRange, FdFlags, FdTable, Options};

use super::{NONE, scale};
use crate::peers::{MutexSlab, ParkingLotMutex, StdRwLock, Table, filled};
use crate::rounds::Candidate;

/// 1 000 of 1 000 000 are closed; they are opened again in between.
pub(crate) fn close_range() -> Vec<Candidate> {
    const MIDDLE: Range<usize> = 500_000..501_000;
    let name = |table| format!("{table}, 1 000 of 1 000 000");
    let mut candidates = scale();
    let (table, _) = filled::<FdTable<u64>>(1_000_000);
    candidates.push(closing(name(FdTable::<u64>::NAME), table, |table| {
        close_all_in(table, MIDDLE.start as u32, MIDDLE.end as u32 - 1);
    }));
    let table: FdTable<u64> = Options::new().max(1 << 30).limit(1 << 30).build();
    candidates.push(closing("fdtable, 1 000 of 1 000, limit 2^30", table, |table| {
        close_all_in(table, 0, 1 << 30);
    }));
    let (table, _) = filled::<ParkingLotMutex>(1_000_000);
    candidates.push(closing(name(ParkingLotMutex::NAME), table, |table| {
        let files = table.0.lock().take_range(MIDDLE);
        drop(files);
    }));
    candidates
}

fn close_all_in(table: &FdTable<u64>, first: u32, last: u32) {
    table.close_range(first, last, CloseRange::empty()).expect("valid");
}

/// `close` closes 1 000 fds, which are the lowest free ones then.
fn closing<T: Table>(name: impl Into<String>, table: T, close: impl Fn(&T) + 'static) -> Candidate {
    close(&table);
    let table = Rc::new(table);
    let closed = table.clone();
    let open = move || {
        for value in 0..1_000 {
            closed.insert(T::File::from(value));
        }
    };
    Candidate::prepared(name, open, move |()| close(&table)).per(1_000)
}

/// A huge range without an open fd, of a table with 1 000.
pub(crate) fn close_nothing() -> Vec<Candidate> {
    let mut candidates = scale();
    let table: FdTable<u64> = Options::new().max(1 << 30).limit(1 << 30).build();
    (0..1_000).for_each(|value| drop(table.insert(value, NONE)));
    candidates.push(Candidate::new("fdtable, 1 000 open, up to 2^30", move || {
        table.close_range(1_000, 1 << 30, CloseRange::empty())
    }));
    candidates
}

/// A copy, and its end.
pub(crate) fn fork<const OPEN: usize>() -> Vec<Candidate> {
    let mut candidates = scale();
    let (table, _) = filled::<FdTable<u64>>(OPEN);
    candidates.push(Candidate::new(FdTable::<u64>::NAME, move || table.fork()).per(OPEN as u64));
    let arcs: Vec<_> = (0..OPEN as u64).map(Arc::new).collect();
    candidates.push(Candidate::new("Vec<Arc>: clone", move || arcs.clone()).per(OPEN as u64));
    let (table, _) = filled::<StdRwLock>(OPEN);
    let copy = move || table.0.read().map(|slots| slots.files.clone()).ok();
    candidates.push(Candidate::new(StdRwLock::NAME, copy).per(OPEN as u64));
    candidates
}

/// 1 000 fds, all of which are to be closed.
pub(crate) fn exec() -> Vec<Candidate> {
    let mut candidates = scale();
    let fill = || {
        let table = FdTable::new();
        (0..1_000_u64).for_each(|value| drop(table.insert(value, FdFlags::CLOEXEC)));
        table
    };
    let sweep = |table: FdTable<u64>| {
        table.close_on_exec();
        table
    };
    candidates.push(Candidate::prepared(FdTable::<u64>::NAME, fill, sweep).per(1_000));
    let fill = || filled::<ParkingLotMutex>(1_000).0;
    let sweep = |table: ParkingLotMutex| {
        let files = table.0.lock().take_range(0..1_000);
        drop(files);
        table
    };
    candidates.push(Candidate::prepared(ParkingLotMutex::NAME, fill, sweep).per(1_000));
    candidates
}

/// Nothing is opened in it.
pub(crate) fn create() -> Vec<Candidate> {
    fn new<T: Table>() -> Candidate {
        Candidate::new(T::NAME, || T::new(64))
    }
    let mut candidates = scale();
    candidates.push(new::<FdTable<u64>>());
    candidates.push(new::<ParkingLotMutex>());
    candidates.push(new::<MutexSlab>());
    candidates
}
