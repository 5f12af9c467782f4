//! The concurrency contract, C1 to C10, one or more tests for each clause.
//!
//! Races are repeated for a number of rounds between threads that meet at a barrier; what each thread
//! sees is checked against an invariant that holds at every instant, or against what had begun and
//! what was done before and after the call. All orders within a few operations are the model
//! checker's; these tests are for real sizes, real memory and long runs.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/stress.rs"]
mod stress;

mod c1;
mod c10;
mod c2;
mod c3;
mod c4;
mod c5;
mod c6;
mod c7;
mod c8;
mod c9;

use std::cell::Cell;
use std::fmt;
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, ThreadId};

use common::{File, Ledger, NONE, flush};
use fdtable::*;
use stress::{alongside, rounds, together};

const CLOEXEC: FdFlags = FdFlags::CLOEXEC;
const CLOFORK: FdFlags = FdFlags::CLOFORK;
const CLOSE: CloseRange = CloseRange::empty();

/// 0 .. `end` open, all of them on file 0.
fn filled(ledger: &Arc<Ledger>, end: u32) -> FdTable<File> {
    let file = OwnedRef::new(ledger.file(0));
    let items = (0..end).map(|fd| (fd, file.clone(), NONE));
    Options::new().on_close(flush).restore(items).unwrap()
}

fn fds<T>(table: &FdTable<T>) -> Vec<u32> {
    table.iter().map(|entry| entry.fd.get()).collect()
}

fn name(table: &FdTable<File>, fd: u32) -> u32 {
    table.get(fd).unwrap().name()
}

fn fd_of(number: u32) -> Fd {
    Fd::try_from(number).unwrap()
}

/// Beyond the first numbers. To look at empty slots takes Miri long.
const HIGH: u32 = if cfg!(miri) { 72 } else { 300 };

/// Every operation, with numbers of its own, on a table that has 0 open.
fn everything<T>(table: &FdTable<T>, plain: &dyn Fn() -> T) {
    assert!(table.get(0).is_ok() && table.get_owned(0).is_ok() && table.contains(0));
    assert!(table.get(1_000_000).is_err() && table.flags(0).is_ok());
    let low = table.insert(plain(), NONE).unwrap();
    let high = table.insert_from(HIGH, plain(), NONE).unwrap();
    for fd in [low, high] {
        table.set_flags(fd, CLOEXEC).unwrap();
        let duplicate = table.dup(fd).unwrap();
        let above = table.dup_from(fd, HIGH + 10, NONE).unwrap();
        assert_eq!(table.dup2(fd, above).unwrap(), above);
        assert_eq!(table.dup3(duplicate, above, CLOEXEC).unwrap(), above);
        table.renumber(duplicate, above).unwrap();
        drop(table.replace(above, plain(), NONE).unwrap());
        drop(table.remove(above).unwrap());
    }
    drop(table.reserve().unwrap());
    drop(table.reserve_in(HIGH + 20..HIGH + 90).unwrap());
    let [a, b] = table.reserve_many().unwrap();
    let a = a.install(plain(), NONE);
    drop(b);
    table.close(a).unwrap();
    assert!(table.limited(0).insert(plain(), NONE).is_err());
    assert!(table.dup2(low, i32::MAX).is_err() && table.close(-1).is_err());
    table.close_range(high.get(), high.get(), CloseRange::CLOEXEC).unwrap();
    table.close_range(high.get(), high.get(), CLOSE).unwrap();
    table.close(low).unwrap();
    assert!(table.iter().count() > 0);
    assert_eq!(table.is_empty(), table.highest_open().is_none());
    assert!(table.high_water().is_some() && table.bytes() > 0 && table.capacity() > 0);
    assert!(format!("{table:?}").starts_with('{'));
    table.reserve_capacity(3 * HIGH as usize).unwrap();
    table.set_limit(table.limit());
    table.set_max(table.max().into());
    let child = table.fork().unwrap();
    assert!(child.contains(0));
}

thread_local! {
    /// This thread is inside of a lookup.
    static LOOKING: Cell<bool> = const { Cell::new(false) };
}

/// Where files ended.
#[derive(Default)]
struct Ends {
    count: AtomicUsize,
    last: Mutex<Option<ThreadId>>,
    in_lookup: AtomicUsize,
}

impl Ends {
    fn file(self: &Arc<Self>) -> Traced {
        Traced(Arc::clone(self))
    }

    fn take_last(&self) -> Option<ThreadId> {
        self.last.lock().unwrap().take()
    }
}

struct Traced(Arc<Ends>);

impl Drop for Traced {
    fn drop(&mut self) {
        self.0.count.fetch_add(1, SeqCst);
        self.0.in_lookup.fetch_add(usize::from(LOOKING.get()), SeqCst);
        *self.0.last.lock().unwrap() = Some(thread::current().id());
    }
}

/// The files at an fd in the order of their names: the last that is surely there, the last that may be.
struct Generations {
    done: AtomicU32,
    begun: AtomicU32,
}

impl Generations {
    fn new() -> Self {
        Generations { done: AtomicU32::new(0), begun: AtomicU32::new(0) }
    }

    fn write(&self, generation: u32, change: impl FnOnce()) {
        self.begun.store(generation, SeqCst);
        change();
        self.done.store(generation, SeqCst);
    }

    fn read(&self, look: impl FnOnce() -> u32) -> u32 {
        let done = self.done.load(SeqCst);
        let found = look();
        let begun = self.begun.load(SeqCst);
        assert!(done <= found && found <= begun, "{found} not in {done} ..= {begun}");
        found
    }
}
