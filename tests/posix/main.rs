//! Every operation by itself: its results, and its errors in the order in which they are checked; what
//! each does to a reserved number; statistics, `Debug`, error numbers, numbers and flags that are none.
//!
//! All of it on one thread, and at several places of the table: among the first numbers, which have
//! an allocator of their own, across their end, and across the ends of words and of words of words.

#[path = "../common/mod.rs"]
mod common;

mod close;
mod close_range;
mod dup;
mod end;
mod errors;
mod flags;
mod fork;
mod insert;
mod iteration;
mod limits;
mod lookup;
mod renumber;
mod replace;
mod reserved;
mod restore;
mod statistics;
mod wild_flags;
mod wild_numbers;

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use common::{File, Ledger, NONE, flush};
use fdtable::*;

const CLOEXEC: FdFlags = FdFlags::CLOEXEC;
const CLOFORK: FdFlags = FdFlags::CLOFORK;
const CLOSE: CloseRange = CloseRange::empty();

/// Where each test runs: all numbers below are taken.
const BASES: [u32; 5] = [0, 61, 64, 1000, 4093];

/// A table whose numbers below `base` all refer to file 0, with the counting hook.
fn filled(ledger: &Arc<Ledger>, base: u32) -> FdTable<File> {
    let file = OwnedRef::new(ledger.file(0));
    let items = (0..base).map(|fd| (fd, file.clone(), NONE));
    Options::new().on_close(flush).restore(items).unwrap()
}

/// Runs a test at each of the `BASES`; all files must be gone at the end.
fn at_each_base(test: impl Fn(&Arc<Ledger>, FdTable<File>, u32)) {
    for base in BASES {
        let ledger = Ledger::new();
        test(&ledger, filled(&ledger, base), base);
        assert_eq!(ledger.live(), 0, "base {base}");
    }
}

/// What is open from `base` on: number, name of the file, flags.
fn listing(table: &FdTable<File>, base: u32) -> Vec<(u32, u32, FdFlags)> {
    let entries = table.iter().filter(|entry| entry.fd.get() >= base);
    entries.map(|entry| (entry.fd.get(), entry.file.name(), entry.flags)).collect()
}

fn name(table: &FdTable<File>, fd: u32) -> u32 {
    table.get(fd).unwrap().name()
}

fn fd(number: u32) -> Option<Fd> {
    Some(Fd::try_from(number).unwrap())
}

fn fd_of(number: u32) -> Fd {
    Fd::try_from(number).unwrap()
}
