//! The operations: each on a table that has been used before, so that nothing happens for the first time.

use std::hint::black_box;
use std::sync::Arc;

use fdtable::file::{AccessMode, DeferredQueue, File, OpenOptions};
use fdtable::{FdFlags, FdTable, Files, OwnedRef};

use super::{Counts, step};

pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Does the operation once, between the marks.
    pub(crate) run: fn(),
}

macro_rules! cases {
    ($($name:literal: $run:expr;)*) => {
        /// The first two check the counting itself.
        pub(crate) const ALL: &[Case] = &[$(Case { name: $name, run: || { $run; } }),*];
    };
}

cases! {
    "Arc: clone": of(&Arc::new(7_u64), Arc::clone);
    "Arc: drop of a clone": { let arc = Arc::new(7_u64); of(arc.clone(), drop) };
    "get": on_table(|table| step::marked(|| table.get(black_box(4))).is_ok());
    "get, fd 100": on_table(|table| step::marked(|| table.get(black_box(100))).is_ok());
    "get, a miss": on_table(|table| step::marked(|| table.get(black_box(5))).is_err());
    "drop of a handle": on_table(|table| of(table.get(4).unwrap(), drop));
    "get_owned": on_table(|table| step::marked(|| table.get_owned(black_box(4))).is_ok());
    "drop of an owned handle": on_table(|table| of(table.get_owned(4).unwrap(), drop));
    "borrow": {
        let mut table = table();
        step::marked(|| table.borrow(black_box(4)).map(|file| *file)).unwrap()
    };
    "Files::borrow": {
        let mut files = Files::from(table());
        step::marked(|| files.borrow(black_box(4)).map(|file| *file)).unwrap()
    };
    "insert": on_table(|table| {
        table.close(3).unwrap();
        of(OwnedRef::new(7), |file| table.insert(file, NONE)).unwrap();
    });
    "insert, a fresh file": on_table(|table| {
        table.close(3).unwrap();
        of(7, |value| table.insert(value, NONE)).unwrap();
    });
    "insert, fd 100": on_table(|table| {
        table.insert(5, NONE).unwrap();
        table.close(100).unwrap();
        of(OwnedRef::new(7), |file| table.insert(file, NONE)).unwrap();
    });
    "close": on_table(|table| of(4, |fd| table.close(fd)).unwrap());
    "close, fd 100": on_table(|table| of(100, |fd| table.close(fd)).unwrap());
    "close, others hold the file": on_table(|table| {
        let file = table.get(4).unwrap();
        of(4, |fd| table.close(fd)).unwrap();
        drop(file);
    });
    "remove": on_table(|table| of(4, |fd| table.remove(fd)).unwrap());
    "reserve": on_table(|table| drop(step::marked(|| table.reserve()).unwrap()));
    "reserve two": on_table(|table| {
        table.close(6).unwrap();
        drop(step::marked(|| table.reserve_many::<2>()).unwrap());
    });
    "install": on_table(|table| {
        let reservation = table.reserve().unwrap();
        of(OwnedRef::new(7), |file| reservation.install(file, NONE));
    });
    "drop of a reservation": on_table(|table| of(table.reserve().unwrap(), drop));
    "dup": on_table(|table| of(4, |fd| table.dup(fd)).unwrap());
    "dup2 over an open fd": on_table(|table| of((4, 6), |(old, new)| table.dup2(old, new)).unwrap());
    "flags": on_table(|table| of(4, |fd| table.flags(fd)).unwrap());
    "set_flags": on_table(|table| of(4, |fd| table.set_flags(fd, FdFlags::CLOEXEC)).unwrap());
    "a shared path: open + close, consuming": opened(|table, path, options| {
        let fd = table.open_file(path.clone(), options, NONE, |_| Ok(())).unwrap();
        table.close(fd).unwrap();
    });
    "a shared path: open + close, borrowed": opened(|table, path, options| {
        let path = path.clone();
        let number = table.reserve().unwrap();
        let file = File::open_borrowed(&path, options, |_| Ok(())).unwrap();
        let fd = number.install(file, NONE);
        drop(path);
        table.close(fd).unwrap();
    });
    "a shared path: open + close + drop by a queue": {
        let queue = DeferredQueue::new();
        opened(|table, path, options| {
            let fd = table.open_file(path.clone(), options, NONE, |_| Ok(())).unwrap();
            table.close_deferred(fd, &queue).unwrap();
            queue.drain(1);
        })
    };
}

const NONE: FdFlags = FdFlags::empty();

/// 0 to 127 are open except 5.
fn table() -> FdTable<u64> {
    let table = FdTable::new();
    for value in 0..128 {
        let fd = table.insert(value, NONE).unwrap();
        assert_eq!(table.get(fd).map(|file| *file), Ok(value));
    }
    table.close(5).unwrap();
    table
}

fn on_table<R>(run: impl FnOnce(&FdTable<u64>) -> R) {
    run(&table());
}

/// Counts what `operation` does with something that the compiler can't see through.
#[inline(always)]
fn of<A, R>(argument: A, operation: impl FnOnce(A) -> R) -> R {
    let argument = black_box(argument);
    step::marked(|| operation(argument))
}

/// All cases, in their order.
pub(crate) fn count_all() -> Result<Vec<(&'static str, Counts)>, String> {
    ALL.iter().map(|case| Ok((case.name, step::count(case.name)?))).collect()
}

/// As a kernel's: a counted pair.
type Path = (Arc<u64>, Arc<u64>);

type FileTable = FdTable<File<Path>>;

/// An open and a close, the second time.
fn opened(operation: impl Fn(&FileTable, &Path, &OpenOptions)) {
    let table: FileTable = File::table_options().build();
    let path = Path::default();
    let options = OpenOptions::new(AccessMode::Write);
    operation(&table, &path, &options);
    step::marked(|| operation(&table, &path, &options));
}
