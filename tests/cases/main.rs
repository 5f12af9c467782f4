//! The faults that broke other descriptor tables, each reduced to a few operations with the right
//! result, and named by its number in the list of cases: `n` numbers, `b` borders and errors, `d` dup2
//! and renumber, `l` lookup, close and growth, `f` dropping and flushing, `s` sharing.
//!
//! Those with threads repeat their race a fixed number of times; what remains is counted at the end.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/stress.rs"]
mod stress;

mod borders;
mod dropping;
mod lookup;
mod numbers;
mod replace;
mod sharing;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex, OnceLock, Weak};
use std::thread;

use common::{File, Ledger, NONE, flush};
use fdtable::*;
use stress::{alongside, rounds, together};

const CLOEXEC: FdFlags = FdFlags::CLOEXEC;
const CLOSE: CloseRange = CloseRange::empty();

/// 0 .. `end` open, each with a file of its own that has the number as its name.
fn opened(ledger: &Arc<Ledger>, end: u32) -> FdTable<File> {
    let table = Options::new().on_close(flush).build();
    for fd in 0..end {
        assert_eq!(table.insert(ledger.file(fd), NONE).unwrap(), fd);
    }
    table
}

fn fds(table: &FdTable<File>) -> Vec<u32> {
    table.iter().map(|entry| entry.fd.get()).collect()
}

fn name(table: &FdTable<File>, fd: u32) -> u32 {
    table.get(fd).unwrap().name()
}
