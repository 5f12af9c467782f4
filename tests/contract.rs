//! The concurrency contract, C1 to C10, one or more tests for each clause.
//!
//! Races are repeated for a number of rounds between threads that meet at a barrier; what each thread
//! sees is checked against an invariant that holds at every instant, or against what had begun and
//! what was done before and after the call. All orders within a few operations are the model
//! checker's; these tests are for real sizes, real memory and long runs.

mod common;
#[path = "common/stress.rs"]
mod stress;

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

// C1: the number returned was the lowest free one at one instant inside the call

/// With nobody closing, each instant has one lowest free number: no gap, no number twice.
#[test]
fn c1_inserts_alone_leave_no_gap() {
    let each = |turns: usize, size: u32| {
        for _ in 0..turns {
            let ledger = Ledger::new();
            let table = FdTable::new();
            let insert = || {
                let mut last = None;
                for _ in 0..size {
                    let fd = table.insert(ledger.file(0), NONE).unwrap();
                    assert!(last < Some(fd), "a lower number became free by itself");
                    last = Some(fd);
                }
            };
            together(&[&insert, &insert, &insert]);
            assert_eq!(fds(&table), (0..3 * size).collect::<Vec<_>>());
            assert_eq!(table.high_water().unwrap(), 3 * size - 1);
        }
    };
    each(rounds(300), 50);
    each(1, rounds(5000) as u32);
}

#[test]
fn c1_batches_alone_are_adjacent() {
    for _ in 0..rounds(200) {
        let table = FdTable::new();
        let insert = || {
            for _ in 0..30 {
                let batch = table.reserve_many::<3>().unwrap();
                let fds = batch.map(|reservation| reservation.install((), NONE).get());
                assert!(fds[0].is_multiple_of(3), "{fds:?}");
                assert_eq!(fds, [0, 1, 2].map(|offset| fds[0] + offset));
            }
        };
        together(&[&insert, &insert]);
        assert_eq!(table.len(), 180);
    }
}

/// Only this thread takes the hole: it is free at every instant of each of its calls, so nothing
/// above it can be the answer, whatever others do there.
#[test]
fn c1_a_hole_that_stays_is_found() {
    for hole in [5, 63, 64, 70, 4095, 4096, 4100] {
        if cfg!(miri) && hole > 100 {
            continue;
        }
        let ledger = Ledger::new();
        let table = filled(&ledger, hole);
        // One above opens and closes single numbers, the other fills words and empties them.
        let single = || {
            let fd = table.insert_from(hole + 1, ledger.file(1), NONE).unwrap();
            // The other one may have closed it, and opened it again.
            let _ = table.close(fd);
        };
        let words = || {
            for _ in 0..70 {
                table.insert_from(hole + 1, ledger.file(1), NONE).unwrap();
            }
            table.close_range(hole + 1, u32::MAX, CLOSE).unwrap();
        };
        alongside(&[&single, &words], || {
            for _ in 0..rounds(2000) {
                let fd = table.insert(ledger.file(2), NONE).unwrap();
                assert_eq!(fd, hole);
                table.close(fd).unwrap();
                let fd = table.dup_from(0, hole.saturating_sub(1), NONE).unwrap();
                assert_eq!(fd, hole);
                assert_eq!(table.remove(fd).unwrap().name(), 0);
                let reserved = table.reserve_in(0..u32::MAX).unwrap();
                assert_eq!(reserved.fd(), hole);
            }
        });
    }
}

/// As above, with a lower number that comes and goes.
#[test]
fn c1_nothing_above_a_hole_is_handed_out() {
    for (low, hole) in [(3, 9), (3, 70), (65, 70), (3, 4100)] {
        if cfg!(miri) && hole > 100 {
            continue;
        }
        let ledger = Ledger::new();
        let table = filled(&ledger, hole);
        let flap = || {
            // Either may close what the other has put there.
            let _ = table.close(low);
            drop(table.replace(low, ledger.file(1), NONE));
        };
        alongside(&[&flap], || {
            for _ in 0..rounds(10_000) {
                let fd = table.insert(ledger.file(2), NONE).unwrap();
                assert!(fd == low || fd == hole, "{fd}");
                let _ = table.close(fd);
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

/// The higher number is free only while the lower one is as well, or this thread has that itself: it is
/// never the lowest, though a search that looks at one after the other may find the lower one taken
/// and the higher one free.
#[test]
fn c1_a_number_that_is_never_the_lowest_is_no_answer() {
    let end = if cfg!(miri) { 80 } else { 1000 };
    for (low, high, flaps) in [(3, 9, 500), (3, 70, 4000), (65, 70, 500)] {
        let ledger = Ledger::new();
        let table = filled(&ledger, end);
        let (inserts, flapped) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let flap = || {
            // The other thread may have the lower one, or take it now: then it closes it.
            let _ = table.close(low);
            table.close(high).unwrap();
            table.replace(high, ledger.file(1), NONE).unwrap();
            drop(table.replace(low, ledger.file(1), NONE));
            flapped.fetch_add(1, SeqCst);
            // For a while both are taken: that is when a search goes on to the higher ones.
            let seen = inserts.load(SeqCst);
            (0..1000).take_while(|_| inserts.load(SeqCst) < seen + 2).for_each(|_| spin_loop());
            (0..fastrand::u32(..100)).for_each(|_| spin_loop());
        };
        // So that a search may have to wait on its way.
        let hold_up = || assert!(table.fork().is_ok());
        alongside(&[&flap, &hold_up], || {
            while flapped.load(SeqCst) < rounds(flaps) {
                inserts.fetch_add(1, SeqCst);
                let fd = table.insert(ledger.file(2), NONE).unwrap();
                assert!(fd == low || fd == end, "{fd}");
                let _ = table.close(fd);
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

/// As many free numbers as threads that want one: at every instant one is free for each.
#[test]
fn c1_emfile_only_when_full() {
    for free in [[5, 9, 11], [5, 63, 64], [5, 70, 130], [64, 127, 128]] {
        let ledger = Ledger::new();
        let table = filled(&ledger, 140);
        for fd in free {
            table.close(fd).unwrap();
        }
        table.set_limit(140);
        let reopen = || {
            for turn in 0..rounds(10_000) {
                let fd = if turn % 2 == 0 {
                    table.insert(ledger.file(1), NONE).unwrap()
                } else {
                    table.dup(0).unwrap()
                };
                assert!(free.iter().any(|&free| fd == free), "{fd}");
                table.close(fd).unwrap();
            }
        };
        together(&[&reopen, &reopen, &reopen]);
        assert_eq!((table.len(), ledger.live()), (137, 1));
    }
}

// C2: for one fd, install, lookup, replace, remove and flags are a register

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

#[test]
fn c2_a_lookup_finds_what_was_there_during_the_call() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = filled(&ledger, fd + 1);
        let generations = Generations::new();
        let look = || {
            let a = generations.read(|| name(&table, fd));
            let b = generations.read(|| table.get_owned(fd).unwrap().name());
            let at = || table.iter().find(|entry| entry.fd == fd).unwrap().file.name();
            let c = generations.read(at);
            // One reader never sees them go back.
            assert!(a <= b && b <= c);
        };
        alongside(&[&look, &look], || {
            for turn in 1..=rounds(10_000) as u32 {
                generations.write(turn, || {
                    let new = ledger.file(turn);
                    match turn % 3 {
                        0 => drop(table.replace(fd, new, NONE).unwrap()),
                        1 => {
                            let other = table.insert(new, NONE).unwrap();
                            table.dup2(other, fd).unwrap();
                            table.close(other).unwrap();
                        }
                        _ => {
                            let other = table.insert(new, NONE).unwrap();
                            table.renumber(other, fd).unwrap();
                        }
                    }
                });
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

#[test]
fn c2_entries_pair_the_file_with_its_own_flags() {
    // Next to each other, for a reader to meet with a change now and then.
    for fds in [0..8, 64..72] {
        let ledger = Ledger::new();
        let table = FdTable::new();
        let flags_of = |name: u32| [NONE, CLOEXEC][name as usize % 2];
        let put = |fd: u32, name: u32| {
            drop(table.replace(fd, ledger.file(name), flags_of(name)).unwrap());
        };
        fds.clone().for_each(|fd| put(fd, 0));
        let pairs = |table: &FdTable<File>| {
            for entry in table.iter() {
                assert_eq!(entry.flags, flags_of(entry.file.name()), "{}", entry.file.name());
            }
            assert_eq!(table.iter().count(), 8);
        };
        let change = || {
            for turn in 1..=rounds(20_000) as u32 {
                fds.clone().for_each(|fd| put(fd, turn));
            }
        };
        alongside(&[&|| pairs(&table)], change);
        alongside(&[&|| pairs(&table.fork().unwrap())], change);
    }
}

/// Flags and the count of handles may well live in one word.
#[test]
fn c2_flags_hold_while_others_look_up() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = filled(&ledger, fd + 1);
        let look = || {
            let handles = [(); 5].map(|()| table.get(fd).unwrap());
            drop(handles.map(Ref::into_owned));
            let _ = table.get(fd).unwrap().to_owned();
            assert_eq!(table.iter().last().unwrap().fd, fd);
        };
        alongside(&[&look, &look], || {
            let all = [NONE, CLOEXEC, CLOFORK, CLOEXEC | CLOFORK];
            for turn in 0..rounds(20_000) {
                let flags = all[turn * 7 / 3 % 4];
                table.set_flags(fd, flags).unwrap();
                assert_eq!(table.flags(fd), Ok(flags));
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

#[test]
fn c2_a_change_of_flags_brings_no_file_back() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = filled(&ledger, fd + 1);
        let flag = || {
            table.set_flags(fd, CLOEXEC).unwrap();
            table.close_range(fd, fd, CloseRange::CLOEXEC).unwrap();
            table.set_flags(fd, NONE).unwrap();
        };
        alongside(&[&flag], || {
            for turn in 1..=rounds(10_000) as u32 {
                let old = table.replace(fd, ledger.file(turn), NONE).unwrap().unwrap();
                assert_eq!((old.name(), name(&table, fd)), (turn - 1, turn));
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

/// Not atomic: were there no order between install and lookup this would be a data race.
#[test]
fn c2_what_was_written_before_an_install_is_seen_after_a_lookup() {
    for fd in [3, 70] {
        let table = FdTable::new();
        for _ in 0..fd {
            table.insert(vec![0; 8], NONE).unwrap();
        }
        let look = || {
            if let Ok(file) = table.get(fd) {
                let first = file[0];
                assert!(file.iter().all(|&word| word == first) && file.len() == 8);
            }
        };
        alongside(&[&look], || {
            for turn in 0..rounds(10_000) {
                assert_eq!(table.insert(vec![turn; 8], NONE).unwrap(), fd);
                drop(table.replace(fd, vec![turn + 1; 8], NONE).unwrap());
                table.close(fd).unwrap();
            }
        });
    }
}

#[test]
fn c2_one_of_two_gets_the_file() {
    for base in [0, 64] {
        let fds = base..base + 50;
        for turn in 0..rounds(500) {
            let ledger = Ledger::new();
            let table = filled(&ledger, base);
            for fd in fds.clone() {
                assert_eq!(table.insert(ledger.file(1), NONE).unwrap(), fd);
            }
            let (taken, closed) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let take = |way: usize| {
                for fd in fds.clone() {
                    match (turn + way) % 4 {
                        0 | 1 => {
                            let file = table.remove(fd).map(|file| assert_eq!(file.name(), 1));
                            taken.fetch_add(usize::from(file.is_ok()), SeqCst);
                        }
                        2 => {
                            closed.fetch_add(usize::from(table.close(fd).is_ok()), SeqCst);
                        }
                        // This one does not tell.
                        _ => table.close_range(fd, fd, CLOSE).unwrap(),
                    }
                }
            };
            together(&[&|| take(0), &|| take(1)]);
            // Each was taken or closed, and who closes flushes.
            let (taken, closed) = (taken.into_inner(), closed.into_inner());
            assert_eq!(taken + ledger.flushed(), 50, "turn {turn}");
            assert!(closed <= ledger.flushed());
            assert_eq!((table.len(), ledger.live()), (base as usize, base.min(1) as usize));
        }
    }
}

#[test]
fn c2_exactly_one_close_succeeds() {
    for base in [0, 64] {
        let fds = base..base + 50;
        for _ in 0..rounds(500) {
            let ledger = Ledger::new();
            let table = filled(&ledger, base + 50);
            let closed = AtomicUsize::new(0);
            let close = || {
                for fd in fds.clone() {
                    closed.fetch_add(usize::from(table.close(fd).is_ok()), SeqCst);
                }
            };
            together(&[&close, &close]);
            assert_eq!((closed.into_inner(), ledger.flushed()), (50, 50));
        }
    }
}

// C3: close = the fd stops resolving, then its number is free; insert = claimed, then it resolves

thread_local! {
    /// What a callback is to find; set by the thread that closes.
    static FOUND: Cell<Option<(bool, Fd)>> = const { Cell::new(None) };
}

/// Says whether its number still resolves, and which number is the next, when it is flushed.
struct Asking {
    table: Weak<FdTable<Asking>>,
    fd: u32,
}

fn ask(file: &Asking, _: TableId) -> Result<(), Errno> {
    if let Some(table) = file.table.upgrade() {
        FOUND.set(Some((table.contains(file.fd), table.reserve().unwrap().fd())));
    }
    Ok(())
}

#[test]
fn c3_when_flush_and_drop_run_the_number_is_free() {
    for fd in [3, 63, 64, 70] {
        let table = Arc::new(Options::new().on_close(ask).build());
        let asking = || Asking { table: Arc::downgrade(&table), fd };
        for _ in 0..fd + 1 {
            table.insert(asking(), CLOEXEC).unwrap();
        }
        let ways: [fn(&FdTable<Asking>, u32); 3] = [
            |table, fd| table.close(fd).unwrap(),
            |table, fd| table.close_range(fd, fd, CLOSE).unwrap(),
            |table, fd| table.close_range(0, fd - 1, CloseRange::EXCEPT).unwrap(),
        ];
        for close in ways {
            close(&table, fd);
            assert_eq!(FOUND.take(), Some((false, Fd::try_from(fd).unwrap())));
            assert_eq!(table.insert(asking(), NONE).unwrap(), fd);
        }
    }
}

#[test]
fn c3_who_is_given_a_number_finds_nothing_of_its_last_owner() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = filled(&ledger, fd);
        let own = |me: u32| {
            for _ in 0..rounds(10_000) {
                let Ok(reserved) = table.reserve_in(fd..fd + 1) else { continue };
                assert_eq!(table.get(fd).err(), Some(BadFd));
                assert!(!table.contains(fd) && table.flags(fd).is_err());
                reserved.install(ledger.file(me), CLOFORK);
                assert_eq!((name(&table, fd), table.flags(fd)), (me, Ok(CLOFORK)));
                table.close(fd).unwrap();
            }
        };
        together(&[&|| own(1), &|| own(2), &|| own(3)]);
        assert_eq!((ledger.live(), table.len()), (1, fd as usize));
        // Before close returns the number is free.
        assert_eq!(table.reserve().unwrap().fd(), fd);
    }
}

// C4: nothing waits for readers, nor for opens that are under way

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

#[test]
fn c4_nothing_waits_for_handles_iterators_and_reservations() {
    let ledger = Ledger::new();
    let table = filled(&ledger, 100);
    let handles = [3, 70].map(|fd| table.get(fd).unwrap());
    let mut iter = table.iter();
    let entry = iter.nth(40).unwrap();
    let reserved = [table.reserve_in(100..200).unwrap(), {
        table.close(20).unwrap();
        table.reserve().unwrap()
    }];
    everything(&table, &|| ledger.file(1));
    // All that the handles are on is closed under them, and the storage grows.
    table.close_on_exec();
    let high = if cfg!(miri) { 2000 } else { 100_000 };
    table.insert_from(high, ledger.file(2), NONE).unwrap();
    table.clear();
    table.insert(ledger.file(3), NONE).unwrap();
    everything(&table, &|| ledger.file(1));
    assert_eq!(iter.next().map(|entry| entry.fd.get()), None);
    assert!(handles.iter().all(|handle| handle.name() == 0) && entry.file.name() == 0);
    assert_eq!(ledger.live(), 2);
    drop((handles, entry));
    assert_eq!((ledger.live(), reserved[1].fd()), (1, Fd::try_from(20).unwrap()));
}

#[test]
fn c4_opens_go_on_while_tables_are_forked() {
    let ledger = Ledger::new();
    // The last numbers are those of a word beyond the first.
    let end = if cfg!(miri) { 72 } else { 200 };
    let table = filled(&ledger, end);
    let churn = |fd: u32| {
        for _ in 0..rounds(3000) {
            let opened = table.insert_from(fd, ledger.file(1), NONE).unwrap();
            table.dup2(0, fd - 1).unwrap();
            table.close(opened).unwrap();
        }
    };
    table.close(10).unwrap();
    let fork = || {
        let child = table.fork().unwrap();
        assert!(child.len() + 1 >= end as usize);
    };
    // Two forks one after the other without a pause; neither keeps the others from finishing.
    alongside(&[&fork, &fork], || together(&[&|| churn(10), &|| churn(end)]));
    assert_eq!((table.len(), ledger.live()), (end as usize - 1, 1));
}

// C5: the destructor runs on the thread that gave up the last reference, before that returns

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

/// Looks up `fd` in each way there is; drops the handles outside of the lookups.
fn look_up(table: &FdTable<Traced>, proc: &Observer<Traced>, fd: u32) {
    fn inside<R>(lookup: impl FnOnce() -> R) -> R {
        LOOKING.set(true);
        let found = lookup();
        LOOKING.set(false);
        found
    }

    drop(inside(|| table.get(fd)));
    drop(inside(|| table.get_owned(fd)));
    drop(inside(|| proc.get(fd)));
    let _ = inside(|| (table.contains(fd), table.flags(fd), proc.flags(fd)));
    let mut iter = table.iter();
    while let Some(entry) = inside(|| iter.next()) {
        drop(entry);
    }
}

#[test]
fn c5_the_closer_drops() {
    type Way = fn(&FdTable<Traced>, u32);
    let ways: [Way; 11] = [
        |table, fd| table.close(fd).unwrap(),
        |table, fd| drop(table.remove(fd).unwrap()),
        |table, fd| assert!(table.dup2(0, fd).is_ok()),
        |table, fd| assert!(table.dup3(0, fd, CLOEXEC).is_ok()),
        |table, fd| table.renumber(table.dup(0).unwrap(), fd).unwrap(),
        |table, fd| drop(table.replace(fd, table.get_owned(0).unwrap(), NONE).unwrap()),
        |table, fd| table.close_range(fd, fd, CLOSE).unwrap(),
        |table, fd| table.close_range(fd, u32::MAX, CLOSE).unwrap(),
        |table, _| table.close_on_exec(),
        |table, fd| drop(table.remove(fd).unwrap().try_into_inner()),
        |table, fd| {
            // A copy holds it until it ends.
            let child = table.fork().unwrap();
            table.close(fd).unwrap();
            drop(child);
        },
    ];
    // Next to what others look up: in the same word, and in the same lines.
    for fd in [4, 70] {
        let ends = Arc::new(Ends::default());
        let table = Files::new();
        let proc = table.observe();
        for _ in 0..fd {
            table.insert(ends.file(), NONE).unwrap();
        }
        let look = || {
            for other in [0, 3, fd - 1, fd + 1] {
                drop(table.get(other));
                drop(table.get_owned(other));
                drop(proc.get(other));
            }
        };
        alongside(&[&look, &look], || {
            for _ in 0..rounds(500) {
                for way in ways {
                    drop(table.replace(fd, ends.file(), CLOEXEC).unwrap());
                    let (before, _) = (ends.count.load(SeqCst), ends.take_last());
                    way(&table, fd);
                    assert_eq!(ends.count.load(SeqCst), before + 1);
                    assert_eq!(ends.take_last(), Some(thread::current().id()));
                    let _ = table.close(fd);
                }
            }
        });
    }
}

#[test]
fn c5_the_last_sharer_drops() {
    for files in 1..4 {
        let ends = Arc::new(Ends::default());
        let table = Files::new();
        for _ in 0..100 {
            table.insert(ends.file(), NONE).unwrap();
        }
        let mut sharers: Vec<_> = (1..files).map(|_| table.share()).collect();
        sharers.push(table);
        let last = sharers.pop().unwrap();
        thread::scope(|scope| drop(scope.spawn(|| drop(sharers))));
        assert_eq!(ends.count.load(SeqCst), 0);
        drop(last);
        assert_eq!(ends.count.load(SeqCst), 100);
        assert_eq!(ends.take_last(), Some(thread::current().id()));
    }
}

#[test]
fn c5_never_inside_of_a_lookup() {
    for fd in [3, 70] {
        let ends = Arc::new(Ends::default());
        let table = Files::new();
        let proc = table.observe();
        for _ in 0..fd {
            table.insert(ends.file(), NONE).unwrap();
        }
        let turns = rounds(5000);
        alongside(&[&|| look_up(&table, &proc, fd), &|| look_up(&table, &proc, fd)], || {
            for turn in 0..turns {
                assert_eq!(table.insert(ends.file(), NONE).unwrap(), fd);
                if turn % 2 == 0 {
                    drop(table.replace(fd, ends.file(), NONE).unwrap());
                }
                table.close(fd).unwrap();
            }
        });
        assert_eq!(ends.in_lookup.load(SeqCst), 0);
        assert_eq!(ends.count.load(SeqCst), turns + turns.div_ceil(2));
    }
}

#[test]
fn c5_the_last_handle_drops_whatever_kind_it_is() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = filled(&ledger, fd);
        type Way = for<'t> fn(&'t FdTable<File>, u32) -> Box<dyn std::any::Any>;
        // Handles that own, as anything: to be dropped last.
        let ways: [Way; 8] = [
            |table, fd| Box::new(table.get_owned(fd).unwrap()),
            |table, fd| Box::new(table.get(fd).unwrap().to_owned()),
            |table, fd| Box::new(table.get(fd).unwrap().into_owned()),
            |table, fd| Box::new(table.get_owned(fd).unwrap().clone()),
            |table, fd| Box::new(table.fork().unwrap().remove(fd).unwrap()),
            |table, fd| {
                Box::new(table.iter().find(|entry| entry.fd == fd).unwrap().file.into_owned())
            },
            |table, fd| {
                let file = table.get_owned(fd).unwrap();
                Box::new(table.limited(0).insert(file, NONE).unwrap_err())
            },
            |table, _| Box::new(table.fork().unwrap()),
        ];
        for way in ways {
            assert_eq!(table.insert(ledger.file(1), NONE).unwrap(), fd);
            let handle = way(&table, fd);
            let borrowed = table.get(fd).unwrap();
            table.close(fd).unwrap();
            assert_eq!((ledger.live(), borrowed.name()), (2, 1));
            drop(borrowed);
            assert_eq!(ledger.live(), 2);
            drop(handle);
            assert_eq!(ledger.live(), 1);
        }
    }
}

#[test]
fn c5_the_last_handle_drops_on_its_own_thread() {
    for fd in [3, 70] {
        let ends = Arc::new(Ends::default());
        let table = FdTable::new();
        for _ in 0..fd + 1 {
            table.insert(ends.file(), NONE).unwrap();
        }
        thread::scope(|scope| {
            let (handle, owned) = (table.get(fd).unwrap(), table.get_owned(fd).unwrap());
            table.close(fd).unwrap();
            let other = scope.spawn(move || {
                drop(handle);
                drop(owned);
            });
            let id = other.thread().id();
            other.join().unwrap();
            assert_eq!((ends.count.load(SeqCst), ends.take_last()), (1, Some(id)));
        });
    }
}

/// More handles than any field of a word has room for, and in every order.
#[test]
fn c5_counts_of_many_handles() {
    // Past 2^16 for those of one fd, past 2^20 for those of one file.
    let (handles, clones) = if cfg!(miri) { (300, 300) } else { (200_000, 2_200_000) };
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = filled(&ledger, fd);
        for close_at in [0, handles / 2, handles] {
            assert_eq!(table.insert(ledger.file(1), NONE).unwrap(), fd);
            let mut held = Vec::new();
            for turn in 0..handles {
                if turn == close_at {
                    table.dup(fd).unwrap();
                    table.close(fd + 1).unwrap();
                }
                held.push(table.get(fd).unwrap());
                if turn % 3 == 0 {
                    drop(held.swap_remove(turn % held.len()));
                }
            }
            // A part before the close, a part after.
            held.truncate(held.len() - close_at / 3);
            table.close(fd).unwrap();
            assert_eq!(ledger.live(), 2);
            let last = held.swap_remove(held.len() / 2);
            drop(held);
            assert_eq!((ledger.live(), last.name()), (2, 1));
            drop(last);
            assert_eq!(ledger.live(), 1);
        }

        // Handles that are never given back to the fd.
        assert_eq!(table.insert(ledger.file(1), NONE).unwrap(), fd);
        let owned: Vec<_> = (0..handles).map(|_| table.get(fd).unwrap().into_owned()).collect();
        drop(owned);
        let file = table.remove(fd).unwrap();
        let copies = vec![file; clones];
        assert_eq!(ledger.live(), 2);
        let mut copies = copies.into_iter();
        let last = copies.next().unwrap();
        drop(copies);
        assert_eq!((ledger.live(), last.name()), (2, 1));
        assert!(last.try_into_inner().is_ok());
        assert_eq!(ledger.live(), 1);
    }
}

/// A handle remembers the fd it came from: the file may be there again, or another one.
#[test]
fn c5_counts_of_handles_whose_fd_has_changed_hands() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = filled(&ledger, fd);
        for handles in 1..4 {
            for again in 0..4 {
                assert_eq!(table.insert(ledger.file(1), NONE).unwrap(), fd);
                let mut held: Vec<_> = (0..handles).map(|_| table.get(fd).unwrap()).collect();
                let file = table.remove(fd).unwrap();
                match again {
                    0 => assert_eq!(table.insert(file, NONE).unwrap(), fd),
                    1 => {
                        assert_eq!(table.insert(ledger.file(2), NONE).unwrap(), fd);
                        drop(file);
                    }
                    2 => {
                        assert_eq!(table.insert_from(fd + 1, file, NONE).unwrap(), fd + 1);
                        assert_eq!(table.dup(fd + 1).unwrap(), fd);
                    }
                    _ => drop(file),
                }
                held.extend(table.get(fd).ok());
                let newer: Vec<_> = held.iter().map(Ref::to_owned).collect();
                while let Some(handle) = held.pop() {
                    assert!(handle.name() > 0);
                }
                drop(newer);
                let open = table.len() - fd as usize;
                assert_eq!(ledger.live(), 1 + open.min(1));
                table.close_range(fd, u32::MAX, CLOSE).unwrap();
                assert_eq!(ledger.live(), 1);
            }
        }
    }
}

/// What is open, and how many references each file has: at fds of all tables, and as handles.
#[derive(Default)]
struct Model {
    ended: Vec<Arc<AtomicBool>>,
    references: Vec<usize>,
    tables: Vec<Vec<Option<usize>>>,
}

struct Numbered {
    number: usize,
    ended: Arc<AtomicBool>,
}

impl Drop for Numbered {
    fn drop(&mut self) {
        assert!(!self.ended.swap(true, SeqCst), "dropped twice");
    }
}

impl Model {
    fn file(&mut self) -> Numbered {
        let ended = Arc::<AtomicBool>::default();
        self.ended.push(Arc::clone(&ended));
        self.references.push(0);
        Numbered { number: self.ended.len() - 1, ended }
    }

    fn set(&mut self, table: usize, at: usize, file: Option<usize>) {
        if let Some(new) = file {
            self.references[new] += 1;
        }
        if let Some(old) = std::mem::replace(&mut self.tables[table][at], file) {
            self.references[old] -= 1;
        }
    }

    fn check(&self) {
        for (ended, &references) in self.ended.iter().zip(&self.references) {
            assert_eq!(ended.load(SeqCst), references == 0);
        }
    }
}

#[test]
fn c5_counts_are_exact_after_any_operations() {
    const FDS: usize = 4;

    for (seed, base) in [(1, 0), (2, 62), (3, 64), (4, 4094)] {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut model = Model { tables: vec![vec![None; FDS]; 2], ..Model::default() };
        // Handles may borrow the first two tables; the others are copies that come and go.
        let fixed = [FdTable::new(), FdTable::new()];
        let mut copies: Vec<FdTable<Numbered>> = Vec::new();
        let mut borrowed: Vec<(usize, Ref<'_, Numbered>)> = Vec::new();
        let mut owned: Vec<(usize, OwnedRef<Numbered>)> = Vec::new();
        for _ in 0..rounds(6000) {
            let (at, to) = (random.usize(..FDS), random.usize(..FDS));
            let (fd, new) = (base + at, base + to);
            let which = random.usize(..model.tables.len());
            let table = fixed.get(which).unwrap_or_else(|| &copies[which - fixed.len()]);
            let there = model.tables[which][at];
            match random.u32(..13) {
                0 => {
                    let file = model.file();
                    model.references[file.number] += 1;
                    owned.push((file.number, OwnedRef::new(file)));
                }
                1 | 2 if !owned.is_empty() => {
                    let (file, handle) = owned.swap_remove(random.usize(..owned.len()));
                    let old = table.replace(fd, handle, CLOEXEC).ok().unwrap();
                    assert_eq!(old.map(|old| old.number), there);
                    model.set(which, at, Some(file));
                    model.references[file] -= 1;
                }
                3 => {
                    assert_eq!(table.close(fd).is_ok(), there.is_some());
                    model.set(which, at, None);
                }
                4 => {
                    let file = table.remove(fd).ok();
                    assert_eq!(file.as_ref().map(|file| file.number), there);
                    model.set(which, at, None);
                    if let Some(file) = file {
                        model.references[file.number] += 1;
                        owned.push((file.number, file));
                    }
                }
                5 | 6 => {
                    if let (Some(fixed), Some(file)) = (fixed.get(which), there) {
                        borrowed.push((file, fixed.get(fd).unwrap()));
                        model.references[file] += 1;
                    }
                }
                7 => {
                    if let Some(file) = there {
                        owned.push((file, table.get_owned(fd).unwrap()));
                        model.references[file] += 1;
                    }
                }
                8 if !borrowed.is_empty() => {
                    let (file, handle) = borrowed.swap_remove(random.usize(..borrowed.len()));
                    if random.bool() {
                        owned.push((file, handle.into_owned()));
                    } else {
                        drop(handle);
                        model.references[file] -= 1;
                    }
                }
                9 if !owned.is_empty() => {
                    let (file, handle) = owned.swap_remove(random.usize(..owned.len()));
                    model.references[file] -= 1;
                    if random.bool() {
                        drop(handle);
                    } else {
                        let is_last = model.references[file] == 0;
                        assert_eq!(handle.try_into_inner().is_ok(), is_last);
                    }
                }
                10 if at != to => {
                    assert_eq!(table.dup2(fd, new).is_ok(), there.is_some());
                    if there.is_some() {
                        model.set(which, to, there);
                    }
                }
                11 if at != to => {
                    let both = there.is_some() && model.tables[which][to].is_some();
                    assert_eq!(table.renumber(fd, new).is_ok(), both);
                    if both {
                        model.set(which, to, there);
                        model.set(which, at, None);
                    }
                }
                12 if copies.len() < 3 => {
                    let copy = table.fork().unwrap();
                    copies.push(copy);
                    let copied = model.tables[which].clone();
                    for &file in copied.iter().flatten() {
                        model.references[file] += 1;
                    }
                    model.tables.push(copied);
                }
                12 => {
                    drop(copies.remove(0));
                    for file in model.tables.remove(fixed.len()).into_iter().flatten() {
                        model.references[file] -= 1;
                    }
                }
                _ => {}
            }
            model.check();
        }
        drop((borrowed, owned, copies));
        drop(fixed);
        assert!(model.ended.iter().all(|ended| ended.load(SeqCst)));
    }
}

// C6: no code of the user's runs under a lock or in a half-done claim

/// A file that uses its table, with every operation, from each of its callbacks.
#[derive(Default)]
struct Reentrant {
    table: Option<Weak<FdTable<Reentrant>>>,
    calls: Arc<AtomicUsize>,
}

thread_local! {
    static CALLING: Cell<bool> = const { Cell::new(false) };
}

impl Reentrant {
    fn call(&self) {
        // One level will do: with a fork among the operations there would be no end to it.
        if CALLING.get() {
            return;
        }
        if let Some(table) = self.table.as_ref().and_then(Weak::upgrade) {
            CALLING.set(true);
            everything(&table, &Reentrant::default);
            CALLING.set(false);
            self.calls.fetch_add(1, SeqCst);
        }
    }
}

impl Drop for Reentrant {
    fn drop(&mut self) {
        self.call();
    }
}

impl fmt::Debug for Reentrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call();
        f.write_str("file")
    }
}

fn reentrant_flush(file: &Reentrant, _: TableId) -> Result<(), Errno> {
    file.call();
    Ok(())
}

/// Becomes a file, and uses the table while it does.
struct Becoming<'a>(&'a Arc<FdTable<Reentrant>>, &'a Arc<AtomicUsize>);

impl From<Becoming<'_>> for OwnedRef<Reentrant> {
    fn from(Becoming(table, calls): Becoming<'_>) -> Self {
        everything(table, &Reentrant::default);
        calls.fetch_add(1, SeqCst);
        OwnedRef::new(Reentrant::default())
    }
}

#[test]
fn c6_flush_and_drop_may_use_the_table() {
    type Way = fn(&Arc<FdTable<Reentrant>>, u32);
    let ways: [Way; 13] = [
        |table, fd| table.close(fd).unwrap(),
        |table, fd| assert!(table.dup2(0, fd).is_ok()),
        |table, fd| assert!(table.dup3(0, fd, CLOEXEC).is_ok()),
        |table, fd| table.renumber(table.dup(0).unwrap(), fd).unwrap(),
        |table, fd| table.close_range(fd, fd, CLOSE).unwrap(),
        |table, _| table.close_range(1, u32::MAX, CLOSE).unwrap(),
        |table, _| table.close_range(0, 0, CloseRange::EXCEPT).unwrap(),
        |table, _| table.close_range(0, u32::MAX, CloseRange::CLOEXEC_ONLY).unwrap(),
        |table, _| table.close_on_exec(),
        |table, _| table.clear(),
        |table, fd| drop((table.fork().unwrap(), table.close(fd)).0),
        |table, fd| {
            let handle = table.get(fd).unwrap();
            table.close(fd).unwrap();
            drop(handle);
        },
        |table, _| {
            let mut files = Files::from(table.fork().unwrap());
            table.clear();
            table.insert(Reentrant::default(), NONE).unwrap();
            let _thread = files.share();
            files.exec().unwrap();
        },
    ];
    for fds in
        [[5, 70], [3, 5], [70, 75], [63, 64]].into_iter().take(if cfg!(miri) { 1 } else { 4 })
    {
        for way in ways {
            let table = Arc::new(Options::new().on_close(reentrant_flush).build());
            table.insert(Reentrant::default(), NONE).unwrap();
            let calls = Arc::<AtomicUsize>::default();
            for fd in fds {
                let file =
                    Reentrant { table: Some(Arc::downgrade(&table)), calls: Arc::clone(&calls) };
                table.replace(fd, file, CLOEXEC).unwrap();
            }
            way(&table, fds[0]);
            assert!(calls.load(SeqCst) >= 2, "flush and drop");
            // It is as good as ever.
            drop(table.replace(0, Reentrant::default(), NONE).unwrap());
            everything(&table, &Reentrant::default);
        }
    }
}

/// A drop that does to the table what is being done to it already.
#[test]
fn c6_sweeps_may_be_nested() {
    struct Sweeping(Weak<FdTable<Sweeping>>, Arc<AtomicUsize>);

    impl Drop for Sweeping {
        fn drop(&mut self) {
            self.1.fetch_add(1, SeqCst);
            if let Some(table) = self.0.upgrade() {
                table.clear();
                table.close_on_exec();
                table.close_range(0, u32::MAX, CLOSE).unwrap();
                let _ = (table.close(3), table.remove(70), table.dup2(3, 70));
            }
        }
    }

    let ways: [fn(&FdTable<Sweeping>); 4] = [
        |table| table.clear(),
        |table| table.close_on_exec(),
        |table| table.close_range(0, u32::MAX, CLOSE).unwrap(),
        |table| table.close(50).unwrap(),
    ];
    for way in ways {
        let drops = Arc::<AtomicUsize>::default();
        let table = Arc::new(FdTable::new());
        for _ in 0..if cfg!(miri) { 70 } else { 200 } {
            let file = Sweeping(Arc::downgrade(&table), Arc::clone(&drops));
            table.insert(file, CLOEXEC).unwrap();
        }
        let open = table.len();
        way(&table);
        assert_eq!((table.len(), drops.load(SeqCst)), (0, open));
    }
}

#[test]
fn c6_conversions_into_a_file_may_use_the_table() {
    let table = Arc::new(FdTable::new());
    table.insert(Reentrant::default(), NONE).unwrap();
    let calls = Arc::<AtomicUsize>::default();
    let becoming = || Becoming(&table, &calls);
    table.insert(becoming(), NONE).unwrap();
    table.insert_from(70, becoming(), NONE).unwrap();
    assert!(table.insert_from(-1, becoming(), NONE).is_err());
    table.limited(200).insert(becoming(), NONE).unwrap();
    drop(table.replace(0, becoming(), NONE).unwrap());
    drop(table.replace(71, becoming(), NONE).unwrap());
    assert!(table.replace(-1, becoming(), NONE).is_err());
    for numbers in [5..u32::MAX, 80..u32::MAX] {
        table.reserve_in(numbers).unwrap().install(becoming(), NONE);
    }
    let items = [(0, becoming(), NONE), (70, becoming(), CLOEXEC)];
    assert_eq!(Options::<Reentrant>::new().restore(items).unwrap().len(), 2);
    assert_eq!(calls.load(SeqCst), 11);
    assert_eq!(fds(&table), [0, 1, 2, 5, 70, 71, 80]);
}

#[test]
fn c6_debug_of_a_file_may_use_the_table() {
    let table = Arc::new(FdTable::new());
    table.insert(Reentrant::default(), NONE).unwrap();
    let calls = Arc::<AtomicUsize>::default();
    for fd in [1, 70] {
        let file = Reentrant { table: Some(Arc::downgrade(&table)), calls: Arc::clone(&calls) };
        table.replace(fd, file, NONE).unwrap();
    }
    let shown = table.iter().map(|entry| format!("{entry:?}")).collect::<Vec<_>>();
    assert!(shown.iter().all(|entry| entry.contains("file: file")));
    for fd in [1, 70] {
        let _ = format!("{:?} {:?}", table.get(fd).unwrap(), table.get_owned(fd).unwrap());
    }
    assert_eq!(calls.load(SeqCst), 6);
}

// C7: a panic in code of the user's leaves the table sound: the fd closed, the counts right, no poison

/// A file that panics when it ends; quietly, as a panic hook would write a line for each.
struct Explosive {
    in_flush: bool,
    in_drop: bool,
    ledger: Arc<Ends>,
}

impl Drop for Explosive {
    fn drop(&mut self) {
        self.ledger.count.fetch_add(1, SeqCst);
        if self.in_drop {
            resume_unwind(Box::new("drop"));
        }
    }
}

thread_local! {
    static FLUSHES: Cell<usize> = const { Cell::new(0) };
}

fn explosive_flush(file: &Explosive, _: TableId) -> Result<(), Errno> {
    FLUSHES.set(FLUSHES.get() + 1);
    if file.in_flush {
        resume_unwind(Box::new("flush"));
    }
    Ok(())
}

/// Runs what must panic; says how many fds it flushed and how many files it dropped.
fn explode(ends: &Ends, operation: impl FnOnce()) -> (usize, usize) {
    let (flushes, drops) = (FLUSHES.get(), ends.count.load(SeqCst));
    assert!(catch_unwind(AssertUnwindSafe(operation)).is_err(), "nothing has panicked");
    (FLUSHES.get() - flushes, ends.count.load(SeqCst) - drops)
}

/// Plain files at 0, 1, 2 and next to the explosive ones.
fn with_explosives(ends: &Arc<Ends>, fds: &[u32], in_flush: bool) -> FdTable<Explosive> {
    let plain = || Explosive { in_flush: false, in_drop: false, ledger: Arc::clone(ends) };
    let table = Options::new().on_close(explosive_flush).build();
    for _ in 0..3 {
        table.insert(plain(), NONE).unwrap();
    }
    for &fd in fds {
        let file = Explosive { in_flush, in_drop: !in_flush, ledger: Arc::clone(ends) };
        table.replace(fd, file, CLOEXEC).unwrap();
        for next in [fd - 1, fd + 1] {
            table.replace(next, plain(), CLOEXEC).unwrap();
        }
    }
    table
}

/// Where they are, in sweeps.
const EXPLOSIVE: [&[u32]; 4] =
    [&[4], &[70], &[4, 70], &[4, 8, 70, 75, if cfg!(miri) { 130 } else { 5000 }]];

/// Whether everything still works, on both sides of the border of the first word.
fn assert_usable(table: &FdTable<Explosive>, ends: &Arc<Ends>) {
    let plain = || Explosive { in_flush: false, in_drop: false, ledger: Arc::clone(ends) };
    assert_eq!((table.iter().count(), table.len()), (table.len(), fds(table).len()));
    let lowest = (0..).find(|&fd| !table.contains(fd)).unwrap();
    assert_eq!(table.insert(plain(), NONE).unwrap(), lowest);
    table.close(lowest).unwrap();
    let keep_0 = table.replace(0, plain(), NONE).unwrap();
    everything(table, &plain);
    assert!(keep_0.is_none_or(|file| !file.in_drop));
}

#[test]
fn c7_panics_of_one_fd() {
    type Way = fn(&FdTable<Explosive>, u32);
    let ways: [(Way, bool); 7] = [
        (|table, fd| table.close(fd).unwrap(), false),
        (|table, fd| table.close_range(fd, fd, CLOSE).unwrap(), false),
        (|table, fd| assert!(table.dup2(0, fd).is_ok()), true),
        (|table, fd| assert!(table.dup3(0, fd, CLOEXEC).is_ok()), true),
        (|table, fd| table.renumber(0, fd).unwrap(), true),
        (|table, fd| assert!(table.limited(1000).dup2(1, fd).is_ok()), true),
        (
            |table, fd| {
                // The copy lets go of it first.
                drop(catch_unwind(AssertUnwindSafe(|| table.fork().unwrap().clear())));
                table.close(fd).unwrap();
            },
            false,
        ),
    ];
    for fd in [4, 64, 70] {
        for in_flush in [false, true] {
            for (way, stays_open) in ways {
                let ends = Arc::<Ends>::default();
                let table = with_explosives(&ends, &[fd], in_flush);
                let (_, drops) = explode(&ends, || way(&table, fd));
                assert_eq!((drops, table.contains(fd)), (1, stays_open));
                assert!(table.contains(fd - 1) && table.contains(fd + 1));
                assert_usable(&table, &ends);
                drop(table);
            }
        }
    }
}

#[test]
fn c7_panics_in_a_sweep_release_the_others() {
    type Way = fn(&mut Files<Explosive>);
    // Ends with 0, 1 and 2 open, or with nothing.
    let ways: [(Way, bool); 7] = [
        (|files| files.close_range(3, u32::MAX, CloseRange::empty()).unwrap(), true),
        (|files| files.close_range(0, 2, CloseRange::EXCEPT).unwrap(), true),
        (|files| files.close_range(3, u32::MAX, CloseRange::UNSHARE).unwrap(), true),
        (|files| files.close_range(0, u32::MAX, CloseRange::CLOEXEC_ONLY).unwrap(), true),
        (|files| files.close_on_exec(), true),
        (|files| files.exec().unwrap(), true),
        (|files| files.clear(), false),
    ];
    for explosive in EXPLOSIVE {
        for in_flush in [false, true] {
            for (way, leaves_three) in ways {
                let ends = Arc::<Ends>::default();
                let mut files = Files::from(with_explosives(&ends, explosive, in_flush));
                let (open, rest) = (files.len(), if leaves_three { 3 } else { 0 });
                let (flushes, drops) = explode(&ends, || way(&mut files));
                assert_eq!((flushes, drops, files.len()), (open - rest, open - rest, rest));
                assert_usable(&files, &ends);
            }
        }
    }
}

#[test]
fn c7_panics_at_the_end_of_a_table_release_the_others() {
    type Way = fn(FdTable<Explosive>);
    let ways: [Way; 4] = [
        drop,
        |table| drop(Files::from(table)),
        |table| {
            // The last sharer to go.
            let files = Files::from(table);
            drop((files.share(), files.observe()));
            drop(files);
        },
        |table| {
            // A task that leaves for a table of its own while the only other one ends there.
            let mut files = Files::from(table);
            let thread = files.share();
            files.close_range(0, u32::MAX, CloseRange::UNSHARE).unwrap();
            assert!(files.is_empty());
            drop(thread);
        },
    ];
    for explosive in EXPLOSIVE {
        for in_flush in [false, true] {
            for way in ways {
                let ends = Arc::<Ends>::default();
                let table = with_explosives(&ends, explosive, in_flush);
                let open = table.len();
                assert_eq!(explode(&ends, || way(table)), (open, open));
            }
        }
    }
}

#[test]
fn c7_panics_of_a_copy_leave_the_parent() {
    for fd in [4, 70] {
        let ends = Arc::<Ends>::default();
        let table = with_explosives(&ends, &[fd], true);
        let child = table.fork().unwrap();
        let open = table.len();
        assert_eq!(explode(&ends, || drop(child)), (open, 0));
        assert_eq!(table.len(), open);
        let child = table.fork().unwrap();
        assert_eq!(explode(&ends, || table.clear()), (open, 0));
        assert_eq!((table.len(), child.len()), (0, open));
        assert_usable(&table, &ends);
        assert_eq!(explode(&ends, || drop(child)), (open, open));
    }
}

#[test]
fn c7_panics_of_the_last_handle() {
    for fd in [4, 70] {
        let ends = Arc::<Ends>::default();
        let table = with_explosives(&ends, &[fd], false);
        let (handle, owned) = (table.get(fd).unwrap(), table.get_owned(fd).unwrap());
        table.close(fd).unwrap();
        drop(handle);
        assert_eq!(explode(&ends, || drop(owned)), (0, 1));
        let table = with_explosives(&ends, &[fd], false);
        let handle = table.get(fd).unwrap();
        table.close(fd).unwrap();
        assert_eq!(explode(&ends, || drop(handle)), (0, 1));
        assert_usable(&table, &ends);

        // What an operation hands out is a handle too.
        let table = with_explosives(&ends, &[fd], false);
        let old = table.replace(fd, table.get_owned(0).unwrap(), NONE).unwrap();
        assert_eq!(explode(&ends, || drop(old)), (0, 1));
        let table = with_explosives(&ends, &[fd], false);
        let old = table.remove(fd).unwrap();
        assert_eq!(explode(&ends, || drop(old)), (0, 1));
        assert_usable(&table, &ends);
    }
}

struct Unconvertible;

impl From<Unconvertible> for OwnedRef<File> {
    fn from(_: Unconvertible) -> Self {
        resume_unwind(Box::new("into"));
    }
}

#[test]
fn c7_panics_of_a_conversion_change_nothing() {
    let panics = |operation: &dyn Fn()| {
        assert!(catch_unwind(AssertUnwindSafe(operation)).is_err());
    };
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = filled(&ledger, fd);
        panics(&|| drop(table.insert(Unconvertible, NONE)));
        panics(&|| drop(table.insert_from(fd + 5, Unconvertible, NONE)));
        panics(&|| drop(table.replace(0, Unconvertible, NONE)));
        panics(&|| drop(table.replace(fd + 1, Unconvertible, NONE)));
        panics(&|| assert_eq!(table.reserve().unwrap().install(Unconvertible, NONE), 0));
        assert_eq!((table.len(), table.reserve().unwrap().fd()), (fd as usize, fd_of(fd)));
        let files = Files::from(table);
        panics(&|| {
            files.reserve_owned(1000).unwrap().install(Unconvertible, NONE);
        });
        assert!(!files.is_shared());
        assert_eq!((files.len(), files.reserve().unwrap().fd()), (fd as usize, fd_of(fd)));

        // In the middle of a restore.
        let items = (0..fd + 1).map(|number| {
            if number == fd {
                resume_unwind(Box::new("next"));
            }
            (number, ledger.file(1), NONE)
        });
        let items = Mutex::new(Some(items));
        panics(&|| {
            let items = items.lock().unwrap().take().unwrap();
            drop(Options::new().on_close(flush).restore(items));
        });
        assert_eq!((ledger.live(), ledger.flushed()), (1, 0));
    }
}

fn fd_of(number: u32) -> Fd {
    Fd::try_from(number).unwrap()
}

/// Duplicates and copies of an fd are references to the same file: nothing of it is copied.
#[test]
fn c7_a_clone_that_panics_is_never_called() {
    struct Unclonable;

    impl Clone for Unclonable {
        fn clone(&self) -> Self {
            panic!("a table has no business here");
        }
    }

    let table = FdTable::new();
    table.insert(Unclonable, NONE).unwrap();
    table.dup(0).unwrap();
    table.dup2(0, 70).unwrap();
    let child = table.fork().unwrap();
    let copies = [child.get(70).unwrap().to_owned(), child.get_owned(0).unwrap().clone()];
    assert!(OwnedRef::ptr_eq(&copies[0], &copies[1]));
}

// C8: a fork's copy is what the table was at one instant inside the call

/// Where the fds in question lie: among the first, above, and on both sides; in both directions.
const PLACES: [&[u32]; 10] = [
    &[0, 63],
    &[3, 40],
    &[40, 3],
    &[70, 5000],
    &[5000, 70],
    &[3, 70],
    &[70, 3],
    &[63, 64],
    &[70, 3, 5000, 40, 75, 9],
    &[9, 75, 40, 130, 3, 70, 20],
];

fn places() -> impl Iterator<Item = &'static [u32]> {
    PLACES.into_iter().filter(|place| !cfg!(miri) || place.iter().all(|&fd| fd < 100))
}

/// One fd after the other gets the next file. At every instant the names, in this order, are those of
/// one generation and then those of the one before.
#[test]
fn c8_a_copy_is_no_mixture_of_generations() {
    for place in places() {
        let ledger = Ledger::new();
        let table = filled(&ledger, 3);
        for &fd in place {
            drop(table.replace(fd, ledger.file(0), NONE).unwrap());
        }
        let generations = Generations::new();
        let fork = || {
            let mut copy = None;
            generations.read(|| {
                let copy = copy.insert(table.fork().unwrap());
                name(copy, *place.last().unwrap())
            });
            let copy = copy.unwrap();
            let names: Vec<_> = place.iter().map(|&fd| name(&copy, fd)).collect();
            assert!(names.is_sorted_by(|a, b| a >= b), "{place:?}: {names:?}");
            assert!(names[0] - names[names.len() - 1] <= 1, "{place:?}: {names:?}");
            assert_eq!(copy.len(), 3 + place.iter().filter(|&&fd| fd > 2).count());
        };
        alongside(&[&fork, &fork], || {
            for generation in 1..=rounds(10_000) as u32 {
                generations.write(generation, || {
                    for (turn, &fd) in place.iter().enumerate() {
                        let new = ledger.file(generation);
                        if (turn + generation as usize).is_multiple_of(2) {
                            drop(table.replace(fd, new, NONE).unwrap());
                        } else {
                            let other = table.replace(2, new, NONE).unwrap();
                            table.dup2(2, fd).unwrap();
                            drop(other);
                        }
                    }
                });
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

/// The next is opened before the last is closed: at every instant one or two in a row are open.
#[test]
fn c8_a_copy_never_lacks_what_is_always_there() {
    for place in places() {
        let ledger = Ledger::new();
        let table = Options::new().on_close(flush).build();
        table.replace(place[0], ledger.file(0), NONE).unwrap();
        let fork = || {
            let copy = table.fork().unwrap();
            let open: Vec<_> = fds(&copy);
            let mut turn = place.iter().zip(place.iter().cycle().skip(1));
            match *open {
                [one] => assert!(place.contains(&one)),
                [a, b] => assert!(
                    turn.any(|(&x, &y)| [a, b] == [x, y] || [a, b] == [y, x]),
                    "{place:?}: {open:?}"
                ),
                _ => panic!("{place:?}: {open:?}"),
            }
            // What the copy says of itself agrees with what is in it.
            assert_eq!(copy.len(), open.len());
            let lowest = (0..).find(|fd| !open.contains(fd)).unwrap();
            assert_eq!(copy.insert(ledger.file(9), NONE).unwrap(), lowest);
            assert_eq!(copy.highest_open(), open.last().max(Some(&lowest)).map(|&fd| fd_of(fd)));
        };
        alongside(&[&fork], || {
            // The fds that lie furthest apart give a change the best chance to slip through between them.
            let turns = rounds(if *place == [0, 63] { 800_000 } else { 30_000 });
            let mut open = place[0];
            for (turn, &next) in place.iter().cycle().skip(1).take(turns).enumerate() {
                match turn % 3 {
                    0 => drop(table.replace(next, ledger.file(1), NONE).unwrap()),
                    1 => {
                        let reserved = table.reserve_in(next..next + 1).unwrap();
                        reserved.install(ledger.file(1), CLOEXEC);
                    }
                    _ => assert_eq!(table.dup_from(open, next, NONE).unwrap(), next),
                }
                match turn % 2 {
                    0 => table.close(open).unwrap(),
                    _ => drop(table.remove(open).unwrap()),
                }
                open = next;
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

#[test]
fn c8_a_copy_has_the_flags_of_one_instant() {
    for place in places() {
        let ledger = Ledger::new();
        let table = filled(&ledger, 1);
        for &fd in place {
            table.replace(fd, ledger.file(0), NONE).unwrap();
        }
        let fork = || {
            let copy = table.fork().unwrap();
            let set: Vec<_> =
                place.iter().map(|&fd| copy.flags(fd).unwrap().contains(CLOEXEC)).collect();
            // On from the front, or off from the front: one change along the way at most.
            let changes = set.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert!(changes <= 1, "{place:?}: {set:?}");
        };
        alongside(&[&fork], || {
            for turn in 0..rounds(5000) {
                for &fd in place {
                    table.set_flags(fd, [CLOEXEC, NONE][turn % 2]).unwrap();
                }
            }
        });
    }
}

/// One of them is without CLOFORK at every instant: a copy has at least that one.
#[test]
fn c8_a_copy_leaves_out_what_is_clofork_at_that_instant() {
    for place in places() {
        let ledger = Ledger::new();
        let table = Options::new().on_close(flush).build();
        for &fd in place {
            let flags = if fd == place[0] { NONE } else { CLOFORK };
            table.replace(fd, ledger.file(fd), flags).unwrap();
        }
        let fork = || {
            let copy = table.fork().unwrap();
            assert!((1..=2).contains(&copy.len()), "{place:?}: {copy:?}");
            for entry in &copy {
                assert!(entry.fd == entry.file.name() && entry.flags == NONE);
            }
        };
        alongside(&[&fork], || {
            let mut last = place[0];
            for &next in place.iter().cycle().skip(1).take(rounds(10_000)) {
                table.set_flags(next, NONE).unwrap();
                table.set_flags(last, CLOFORK).unwrap();
                last = next;
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

/// What one thread does after it has seen what another did is not in a copy without that.
#[test]
fn c8_a_copy_has_the_cause_with_the_effect() {
    for (cause, effect) in [(3, 40), (3, 70), (70, 3), (70, 75), (5000, 70), (70, 5000)] {
        if cfg!(miri) && cause.max(effect) > 100 {
            continue;
        }
        let ledger = Ledger::new();
        let table = filled(&ledger, 1);
        for fd in [cause, effect] {
            table.replace(fd, ledger.file(0), NONE).unwrap();
        }
        let follow = || {
            let seen = table.get(cause).unwrap();
            drop(table.replace(effect, seen.to_owned(), NONE).unwrap());
        };
        let fork = || {
            let copy = table.fork().unwrap();
            assert!(name(&copy, effect) <= name(&copy, cause));
        };
        alongside(&[&follow, &fork], || {
            for turn in 1..=rounds(10_000) as u32 {
                drop(table.replace(cause, ledger.file(turn), NONE).unwrap());
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

/// A renumber moves a file in one step: it is at one of the two numbers in every copy.
#[test]
fn c8_a_copy_has_a_renumbered_file_once() {
    for (a, b) in [(3, 40), (3, 70), (70, 75), (70, 5000)] {
        if cfg!(miri) && b > 100 {
            continue;
        }
        let ledger = Ledger::new();
        let table = Options::new().on_close(flush).build();
        table.replace(a, ledger.file(1), NONE).unwrap();
        table.replace(b, ledger.file(2), NONE).unwrap();
        let fork = || {
            let copy = table.fork().unwrap();
            let names = [a, b].map(|fd| copy.get(fd).map_or(0, |file| file.name()));
            let moved = names.iter().filter(|&&name| name == 1).count();
            assert_eq!(moved, 1, "{a}, {b}: {names:?}");
        };
        alongside(&[&fork], || {
            for turn in 0..rounds(10_000) {
                let (from, to) = if turn % 2 == 0 { (a, b) } else { (b, a) };
                table.renumber(from, to).unwrap();
                table.replace(from, ledger.file(2), NONE).unwrap();
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

#[test]
fn c8_a_fork_holds_what_it_copies() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = filled(&ledger, fd);
        let reopen = || {
            for _ in 0..rounds(3000) {
                assert_eq!(table.insert(ledger.file(1), NONE).unwrap(), fd);
                table.close(fd).unwrap();
            }
        };
        let fork = || {
            let copy = table.fork().unwrap();
            if let Ok(file) = copy.get(fd) {
                assert_eq!(file.name(), 1);
            }
        };
        alongside(&[&fork, &fork], reopen);
        assert_eq!((ledger.live(), table.len()), (1, fd as usize));
    }
}

// C9: no number at or above the observed limit is visible, not even for a moment

#[test]
fn c9_nothing_shows_at_or_above_the_limit() {
    // The highest limit that any call can observe, and one below it.
    for (limit, lower) in [(20_u32, 10_u32), (64, 60), (66, 62), (150, 100)] {
        let ledger = Ledger::new();
        let table = filled(&ledger, lower - 5);
        // There is room for more.
        table.reserve_capacity(1000).unwrap();
        table.set_limit(limit.into());
        let watch = || {
            assert!((limit..limit + 70).all(|fd| !table.contains(fd)));
            assert!(table.iter().all(|entry| entry.fd.get() < limit));
            assert!(table.highest_open() < Some(fd_of(limit)));
        };
        let toggle = || {
            table.set_limit(lower.into());
            table.set_limit(limit.into());
        };
        // The table's own limit changes; a caller's does not.
        let open = |own: Option<u32>| {
            let bound = own.unwrap_or(limit);
            for turn in 0..rounds(4000) as u32 {
                let near = bound - 1 - turn % 3;
                let beyond = limit + turn % 64;

                macro_rules! try_to_open {
                    ($seen:expr) => {
                        match turn % 8 {
                            0 => $seen.insert(ledger.file(1), NONE).ok(),
                            1 => $seen.dup(0).ok(),
                            2 => $seen.dup_from(0, near, NONE).ok(),
                            3 => $seen.insert_from(near, ledger.file(1), NONE).ok(),
                            4 => {
                                $seen.reserve().ok().map(|seat| seat.install(ledger.file(1), NONE))
                            }
                            // These have to fail, and may not show on the way.
                            5 => $seen.dup2(0, beyond).ok(),
                            6 => {
                                assert!($seen.replace(beyond, ledger.file(1), NONE).is_err());
                                None
                            }
                            _ => {
                                assert!($seen.reserve_many::<160>().is_err());
                                assert!($seen.reserve_in(limit..limit + 64).is_err());
                                None
                            }
                        }
                    };
                }

                let opened = match own {
                    Some(own) => try_to_open!(table.limited(own.into())),
                    None => try_to_open!(table),
                };
                if let Some(fd) = opened {
                    assert!(fd.get() < bound, "{fd} with limit {bound}");
                    // Someone may have closed it, and opened it again: that is his to close.
                    let _ = table.close(fd);
                }
            }
        };
        alongside(&[&watch, &toggle], || {
            together(&[&|| open(None), &|| open(Some(limit)), &|| open(Some(lower))]);
        });
        // Not even reserved.
        assert!(table.high_water() < Some(fd_of(limit)));
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

/// Full for these callers: each call fails, and may not have had a number on the way.
#[test]
fn c9_calls_that_fail_show_nothing() {
    for limit in [10, 64, 65, 100] {
        let ledger = Ledger::new();
        let table = filled(&ledger, limit);
        table.reserve_capacity(1000).unwrap();
        table.set_limit(limit.into());
        let watch = || assert!((limit..limit + 70).all(|fd| !table.contains(fd)));
        let fail = |seen: Limited<'_, File>| {
            for turn in 0..rounds(1000) as u32 {
                assert!(seen.insert(ledger.file(1), NONE).is_err());
                assert!(seen.insert_from(limit - 1, ledger.file(1), NONE).is_err());
                assert!(seen.insert_from(limit + turn % 70, ledger.file(1), NONE).is_err());
                assert!(seen.dup(0).is_err());
                assert!(seen.dup_from(0, limit - 1, NONE).is_err());
                assert!(seen.dup_from(0, limit + turn % 70, NONE).is_err());
                assert!(seen.dup2(0, limit + turn % 70).is_err());
                assert!(seen.replace(limit + turn % 70, ledger.file(1), NONE).is_err());
                assert!(seen.reserve().is_err() && seen.reserve_many::<2>().is_err());
                assert!(seen.reserve_in(limit..limit + 70).is_err());
            }
        };
        alongside(&[&watch], || {
            let own = || fail(table.limited(table.limit()));
            together(&[&own, &|| fail(table.limited(limit.into()))]);
        });
        assert_eq!((table.high_water(), table.len()), (Some(fd_of(limit - 1)), limit as usize));
        assert_eq!(ledger.live(), 1);
    }
}

#[test]
fn c9_two_callers_with_their_own_limits() {
    for (small, large) in [(10, 20), (60, 70), (100, 200)] {
        let ledger = Ledger::new();
        let table = filled(&ledger, small - 1);
        let fill = |limit: u32| {
            for _ in 0..rounds(2000) {
                let opened = table.limited(limit.into()).insert(ledger.file(limit), NONE);
                if let Ok(fd) = opened {
                    assert!(fd.get() < limit);
                    table.close(fd).unwrap();
                }
            }
        };
        let watch = || {
            for entry in table.iter().filter(|entry| entry.file.name() == small) {
                assert!(entry.fd.get() < small);
            }
            assert!((large..large + 64).all(|fd| !table.contains(fd)));
        };
        alongside(&[&watch], || together(&[&|| fill(small), &|| fill(large)]));
        assert!(table.high_water() < Some(fd_of(large)));
        assert_eq!(ledger.live(), 1);
    }
}

// C10: slots never move; memory follows what is used

#[test]
fn c10_growth_moves_nothing() {
    let end = if cfg!(miri) { 200 } else { 100_000 };
    let ledger = Ledger::new();
    let table = filled(&ledger, 3);
    let (low, high) = (table.insert(ledger.file(3), NONE).unwrap(), 70);
    table.replace(high, ledger.file(70), NONE).unwrap();
    let handles = [low, fd_of(high)].map(|fd| table.get(fd).unwrap());
    let addresses = handles.each_ref().map(|handle| &raw const **handle);
    let reserved = table.reserve().unwrap();
    let mut iter = table.iter();
    assert_eq!(iter.by_ref().take(4).count(), 4);
    for _ in table.len() as u32 + 1..end {
        table.dup(0).unwrap();
    }
    assert!(table.capacity() >= end);
    for (fd, address) in [low, fd_of(high)].into_iter().zip(addresses) {
        assert_eq!(&raw const *table.get(fd).unwrap(), address);
    }
    assert_eq!(handles.each_ref().map(|handle| handle.name()), [3, 70]);
    // Whatever has begun before the growth goes on after it.
    assert_eq!(iter.next().unwrap().fd, 5);
    let fd = reserved.install(ledger.file(4), NONE);
    assert!(fd == 4 && name(&table, fd.get()) == 4);
    table.clear();
    assert_eq!(ledger.live(), 2);
    drop(handles);
    assert_eq!(ledger.live(), 0);
}

#[test]
fn c10_growth_while_others_look_up_and_open() {
    let end = if cfg!(miri) { 150 } else { 20_000 };
    let ledger = Ledger::new();
    let table = filled(&ledger, 1);
    let address = (&raw const *table.get(0).unwrap()).addr();
    let look = || {
        for fd in 0..table.high_water().unwrap().get() {
            let file = table.get(fd);
            assert!(file.is_err() || (&raw const *file.unwrap()).addr() == address);
        }
    };
    // Both run into the same ends of storage.
    let grow = || {
        for _ in 0..end / 2 {
            table.dup(0).unwrap();
        }
    };
    alongside(&[&look], || together(&[&grow, &grow]));
    assert_eq!(table.len(), end as usize + 1);
    assert_eq!(fds(&table).last(), Some(&end));
}

#[test]
fn c10_memory_follows_what_is_used() {
    let table = FdTable::new();
    let empty = table.bytes();
    assert!(empty >= size_of::<FdTable<u8>>() && empty <= 1536, "{empty} bytes");
    table.insert(0, NONE).unwrap();
    assert_eq!(table.bytes(), empty);

    // One high number costs its own surroundings.
    let last = if cfg!(miri) { 4000 } else { table.max() - 1 };
    table.dup2(0, last).unwrap();
    assert!(table.bytes() <= 64 << 10, "{} bytes", table.bytes());
    let copy = table.fork().unwrap();
    assert!(copy.contains(last) && copy.bytes() <= 64 << 10, "{} bytes", copy.bytes());
    // It is there for good: to open it again costs nothing.
    let bytes = table.bytes();
    table.close(last).unwrap();
    table.dup2(0, last).unwrap();
    assert_eq!(table.bytes(), bytes);
}

#[test]
fn c10_memory_of_a_million() {
    let end = if cfg!(miri) { 300 } else { 1_000_000 };
    let table = FdTable::new();
    table.insert((), NONE).unwrap();
    let mut steps = 0;
    let mut bytes = table.bytes();
    for fd in 1..end {
        assert_eq!(table.dup(0).unwrap(), fd);
        steps += usize::from(table.bytes() != bytes);
        bytes = table.bytes();
        // Never far ahead of what is open either.
        assert!(bytes <= 4096 + 16 * (fd as usize + 512), "{bytes} bytes for {fd}");
    }
    // Steps are a part of what there is, unless that is little.
    let least = if cfg!(miri) { 4096 } else { 0 };
    assert!(bytes - size_of_val(&table) <= 10 * end as usize + least, "{bytes} bytes");
    assert!(steps > 1);
    let copy = table.fork().unwrap();
    assert!(copy.bytes() <= bytes);
    assert_eq!(copy.len(), end as usize);
}

#[test]
fn c10_a_growth_that_fails_changes_nothing() {
    let ledger = Ledger::new();
    let table = filled(&ledger, 64);
    table.set_max(64);
    let before = (fds(&table), table.capacity(), table.bytes(), table.high_water());
    assert!(table.insert(ledger.file(1), NONE).is_err());
    assert!(table.reserve().is_err() && table.reserve_many::<2>().is_err());
    assert!(table.dup2(0, 64).is_err() && table.dup2(0, 1000).is_err());
    assert!(table.replace(100, ledger.file(1), NONE).is_err());
    assert!(table.dup(0).is_err() && table.dup_from(0, 64, NONE).is_err());
    assert_eq!((fds(&table), table.capacity(), table.bytes(), table.high_water()), before);
    assert_eq!(ledger.live(), 1);
}
