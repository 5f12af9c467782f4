//! The faults that broke other descriptor tables, each reduced to a few operations with the right
//! result, and named by its number in the list of cases: `n` numbers, `b` borders and errors, `d` dup2
//! and renumber, `l` lookup, close and growth, `f` dropping and flushing, `s` sharing.
//!
//! Those with threads repeat their race a fixed number of times; what remains is counted at the end.

mod common;
#[path = "common/stress.rs"]
mod stress;

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

// Numbers, bitmaps, hints

#[test]
fn n1_unshare_without_a_whole_word_then_dup() {
    let ledger = Ledger::new();
    let mut files = Files::from(opened(&ledger, 128));
    let thread = files.share();
    files.close_range(64, u32::MAX, CloseRange::UNSHARE).unwrap();
    for fd in 64..300 {
        assert_eq!(files.dup(0).unwrap(), fd);
    }
    assert_eq!(fds(&thread), (0..128).collect::<Vec<_>>());
    assert!((0..128).all(|fd| name(&thread, fd) == fd));
    assert_eq!(ledger.live(), 128);
}

#[test]
fn n2_unshare_then_dup2_onto_the_last_number_with_storage() {
    let ledger = Ledger::new();
    let mut files = Files::from(opened(&ledger, 71));
    let _thread = files.share();
    files.close_range(3, u32::MAX, CloseRange::UNSHARE).unwrap();
    let last = files.capacity() - 1;
    assert_eq!(files.capacity() % 64, 0);
    assert_eq!(files.dup2(0, last).unwrap(), last);
    assert_eq!(fds(&files), [0, 1, 2, last]);
    assert_eq!(files.dup2(0, last + 1).unwrap(), last + 1);
    assert_eq!(files.capacity() % 64, 0);
}

#[test]
fn n3_restore_with_a_hole_then_insert() {
    let ledger = Ledger::new();
    let items = [0, 1, 2, 5].map(|fd| (fd, ledger.file(fd), NONE));
    let table = Options::new().restore(items).unwrap();
    for expected in [3, 4, 6, 7] {
        assert_eq!(table.insert(ledger.file(9), NONE).unwrap(), expected);
    }
    // And with the hole in a word of its own.
    let items = (0..200).filter(|&fd| fd != 130).map(|fd| (fd, ledger.file(fd), NONE));
    let table = Options::new().restore(items).unwrap();
    assert_eq!(table.insert(ledger.file(9), NONE).unwrap(), 130);
    assert_eq!(table.insert(ledger.file(9), NONE).unwrap(), 200);
}

#[test]
fn n4_clofork_leaves_a_hole_in_the_child() {
    for hole in [3, 70] {
        let ledger = Ledger::new();
        let parent = opened(&ledger, 100);
        parent.set_flags(hole, FdFlags::CLOFORK).unwrap();
        let child = parent.fork().unwrap();
        assert_eq!(child.insert(ledger.file(0), NONE).unwrap(), hole);
        assert_eq!(child.insert(ledger.file(0), NONE).unwrap(), 100);
        assert_eq!(name(&parent, hole), hole);
    }
}

#[test]
fn n5_one_hole_in_a_million() {
    let (end, turns) = if cfg!(miri) { (10_000, 10) } else { (1_000_000, 20_000) };
    let table = FdTable::new();
    table.insert('0', NONE).unwrap();
    for fd in 1..end {
        assert_eq!(table.dup(0).unwrap(), fd);
    }
    // That this costs the same at every size is for the benchmarks; at a word per step of a search
    // it would not finish in time here either.
    for _ in 0..turns {
        table.close(999).unwrap();
        assert_eq!(table.insert('1', NONE).unwrap(), 999);
    }
    assert_eq!(table.len(), end as usize);
    assert_eq!(table.insert('2', NONE).unwrap(), end);
}

#[test]
fn n6_pairs_until_70_000() {
    let end = if cfg!(miri) { 5000 } else { 70_000 };
    let ledger = Ledger::new();
    let table = FdTable::new();
    for fd in (0..end).step_by(2) {
        let [read, write] = table.reserve_many().unwrap();
        assert_eq!(read.install(ledger.file(fd), NONE), fd);
        assert_eq!(write.install(ledger.file(fd + 1), NONE), fd + 1);
    }
    assert_eq!(fds(&table), (0..end).collect::<Vec<_>>());
    assert!(table.iter().all(|entry| entry.fd == entry.file.name()));
}

#[test]
fn n7_close_then_insert_whatever_was_opened_above() {
    for low in [3, 64, 100] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 101);
        let reserved = table.reserve().unwrap();
        table.close(low).unwrap();
        table.insert_from(102, ledger.file(0), NONE).unwrap();
        table.dup2(0, 700).unwrap();
        table.dup_from(0, 4096, NONE).unwrap();
        table.close(102).unwrap();
        drop(reserved);
        assert_eq!(table.insert(ledger.file(0), NONE).unwrap(), low);
        assert_eq!(table.insert(ledger.file(0), NONE).unwrap(), 101);
    }
}

#[test]
fn n8_the_limit_bounds_the_number_not_the_count() {
    let ledger = Ledger::new();
    let items = [0, 1, 2].into_iter().chain(100..=110).map(|fd| (fd, ledger.file(fd), NONE));
    let table = Options::new().limit(5).restore(items).unwrap();
    assert_eq!(table.insert(ledger.file(0), NONE).unwrap(), 3);
    assert_eq!(table.insert(ledger.file(0), NONE).unwrap(), 4);
    assert_eq!(table.insert(ledger.file(0), NONE).unwrap_err().errno(), Errno::EMFILE);
}

#[test]
fn n9_dup_from_skips_what_is_free_below_the_minimum() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 3);
    assert_eq!(table.dup_from(0, 10, NONE).unwrap(), 10);
    assert_eq!(table.dup_from(0, 10, CLOEXEC).unwrap(), 11);
    assert_eq!(table.dup_from(0, 100, NONE).unwrap(), 100);
    assert_eq!(table.insert(ledger.file(3), NONE).unwrap(), 3);
}

// Borders and errors

#[test]
fn b1_numbers_beyond_the_table() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 3);
    let before = (table.capacity(), table.bytes(), table.high_water());
    let numbers = [
        -1,
        table.capacity().into(),
        1 << 20,
        1 << 30,
        i32::MAX.into(),
        u32::MAX.into(),
        // As the i32 that a program passes.
        i64::from(u32::MAX as i32),
    ];
    for number in numbers {
        assert_eq!(table.get(number).err(), Some(BadFd));
        assert_eq!(table.close(number), Err(CloseError::BadFd));
        assert_eq!(table.dup(number), Err(DupError::BadFd));
        assert_eq!(table.flags(number), Err(BadFd));
        assert_eq!(table.set_flags(number, CLOEXEC), Err(BadFd));
    }
    assert_eq!((table.capacity(), table.bytes(), table.high_water()), before);
    assert_eq!(fds(&table), [0, 1, 2]);
}

#[test]
fn b2_dup2_onto_the_largest_numbers() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 1);
    let bad = Err(ReplaceError::BadFd);
    assert_eq!(table.dup2(0, i32::MAX - 1), bad);
    assert_eq!(table.dup2(0, (1_u32 << 31) - 1), bad);
    assert_eq!(table.dup2(0, table.max()), bad);
    assert_eq!(table.len(), 1);
    assert_eq!(table.dup2(0, table.max() - 1).unwrap(), table.max() - 1);
    assert!(table.bytes() < 64 << 10, "{}", table.bytes());
    assert_eq!(fds(&table), [0, table.max() - 1]);

    // The largest table there is.
    let table = Options::new().max(u64::MAX).build();
    table.insert(ledger.file(0), NONE).unwrap();
    assert_eq!(table.dup2(0, table.max()), bad);
    assert_eq!(table.dup2(0, i32::MAX), bad);
    let last = table.max() - 1;
    assert_eq!(table.dup2(0, last).unwrap(), last);
    assert_eq!(fds(&table), [0, last]);
    assert_eq!(table.insert_from(last, ledger.file(1), NONE).unwrap_err().errno(), Errno::EMFILE);
    table.close(last).unwrap();
    assert_eq!(table.insert_from(last, ledger.file(1), NONE).unwrap(), last);
    assert_eq!(table.fork().unwrap().highest_open(), Some(Fd::try_from(last).unwrap()));
}

#[test]
fn b3_dup2_at_the_limit() {
    for limit in [10_u32, 64, 65, 1000] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 1);
        table.set_limit(limit.into());
        assert_eq!(table.dup2(0, limit), Err(ReplaceError::BadFd));
        assert_eq!(table.dup2(0, limit - 1).unwrap(), limit - 1);
    }
}

#[test]
fn b4_limit_0() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 3);
    table.set_limit(0);
    let rejected = table.insert(ledger.file(9), NONE).unwrap_err();
    assert_eq!((rejected.errno(), rejected.file.name()), (Errno::EMFILE, 9));
    assert_eq!(table.dup2(0, 0).unwrap(), 0);
    for new in 1..=5 {
        assert_eq!(table.dup2(0, new), Err(ReplaceError::BadFd));
    }
    for fd in 0..3 {
        assert_eq!(name(&table, fd), fd);
        table.set_flags(fd, CLOEXEC).unwrap();
        assert_eq!(table.dup(fd), Err(DupError::LimitReached));
        assert_eq!(table.dup_from(fd, 0, NONE), Err(DupError::MinimumTooLarge));
        table.close(fd).unwrap();
    }
}

#[test]
fn b5_a_limit_below_what_is_open() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 21);
    table.set_limit(10);
    table.close(5).unwrap();
    assert_eq!(table.insert(ledger.file(5), NONE).unwrap(), 5);
    assert_eq!(table.insert(ledger.file(9), NONE).unwrap_err().errno(), Errno::EMFILE);
    assert_eq!(name(&table, 20), 20);
    assert_eq!(table.dup(20), Err(DupError::LimitReached));
    table.close(20).unwrap();
    assert_eq!(table.dup(19), Err(DupError::LimitReached));
    table.close(0).unwrap();
    assert_eq!(table.dup(19).unwrap(), 0);
}

#[test]
fn b6_dup_from_at_the_limit() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 8);
    table.set_limit(8);
    assert_eq!(table.dup_from(3, 8, NONE).unwrap_err().errno(), Errno::EINVAL);
    assert_eq!(table.dup_from(3, 0, NONE).unwrap_err().errno(), Errno::EMFILE);
    assert_eq!(table.dup_from(3, 7, NONE).unwrap_err().errno(), Errno::EMFILE);
    assert_eq!(table.dup_from(9, 8, NONE).unwrap_err().errno(), Errno::EBADF);
}

#[test]
fn b7_dup2_to_itself() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 9);
    assert_eq!(table.dup2(9, 9), Err(ReplaceError::BadFd));
    table.insert(ledger.file(9), CLOEXEC).unwrap();
    assert_eq!(table.dup2(9, 9).unwrap(), 9);
    assert_eq!((table.flags(9), ledger.flushed()), (Ok(CLOEXEC), 0));
}

#[test]
fn b8_dup3_errors() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 4);
    assert_eq!(table.dup3(3, 3, NONE), Err(ReplaceError::InvalidArgument));
    assert_eq!(table.dup3(3, 3, CLOEXEC), Err(ReplaceError::InvalidArgument));
    let unknown = FdFlags::from_bits_retain(0x40);
    assert_eq!(table.dup3(3, 4, unknown), Err(ReplaceError::InvalidArgument));
    assert_eq!(fds(&table), [0, 1, 2, 3]);
}

#[test]
fn b9_close_range_errors() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 10);
    let invalid = Err(CloseRangeError::InvalidArgument);
    assert_eq!(table.close_range(7, 3, CLOSE), invalid);
    assert_eq!(table.close_range(3, 7, CloseRange::from_bits_retain(8)), invalid);
    assert_eq!(table.len(), 10);
    table.close_range(3, u32::MAX, CLOSE).unwrap();
    assert_eq!(fds(&table), [0, 1, 2]);
}

#[test]
fn b10_duplicates_have_no_cloexec() {
    for target in [2, 100] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 1);
        table.insert(ledger.file(1), CLOEXEC).unwrap();
        table.replace(target, ledger.file(2), CLOEXEC).unwrap();
        let duplicate = table.dup(1).unwrap();
        assert_eq!(table.flags(duplicate), Ok(NONE));
        table.dup2(1, target).unwrap();
        assert_eq!((table.flags(target), table.flags(1)), (Ok(NONE), Ok(CLOEXEC)));
    }
}

#[test]
fn b11_max_is_lowered_meanwhile() {
    for _ in 0..rounds(60) {
        let ledger = Ledger::new();
        let table = opened(&ledger, 1);
        table.set_max(8192);
        let open = || {
            for turn in 0..rounds(2000) as u32 {
                // It only falls: what a call observes is at most this.
                let max = table.max();
                let near = max - 1 - turn % 60;
                let done = match turn % 5 {
                    0 => table.replace(near, ledger.file(0), NONE).is_ok().then_some(near),
                    1 => table.dup2(0, near).ok().map(Fd::get),
                    2 => table.dup_from(0, near, NONE).ok().map(Fd::get),
                    3 => table.insert_from(near, ledger.file(0), NONE).ok().map(Fd::get),
                    _ => table.dup_from(0, 1, NONE).ok().map(Fd::get),
                };
                if let Some(fd) = done {
                    assert!(fd < max, "{fd} with max {max}");
                    table.close(fd).unwrap();
                }
            }
        };
        let lower = || {
            for max in (1..=128).rev() {
                table.set_max(max * 64);
                assert!(table.capacity() <= table.max());
                assert_eq!(table.capacity() % 64, 0);
            }
        };
        together(&[&lower, &open]);
        assert_eq!((table.max(), table.capacity(), table.len()), (64, 64, 1));
    }
}

// Dup2, renumber, replace

#[test]
fn d1_dup2_of_a_closed_number_leaves_the_target() {
    for target in [5, 70] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 100);
        table.close(4).unwrap();
        let file = table.get_owned(target).unwrap();
        assert_eq!(table.dup2(4, target), Err(ReplaceError::BadFd));
        assert!(OwnedRef::ptr_eq(&table.get_owned(target).unwrap(), &file));
        assert_eq!(ledger.flushed(), 1);
    }
}

#[test]
fn d2_renumber_to_itself_then_insert() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 1);
    table.renumber(0, 0).unwrap();
    assert_eq!(table.insert(ledger.file(1), NONE).unwrap(), 1);
    assert_eq!((name(&table, 0), ledger.flushed()), (0, 0));
}

#[test]
fn d3_renumber_in_a_loop_leaks_nothing() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 63);
    for turn in 0..rounds(2000) {
        // One of them among the first numbers, one not.
        let from = table.insert(ledger.file(1), NONE).unwrap();
        let to = table.insert(ledger.file(2), NONE).unwrap();
        let (from, to) = if turn % 2 == 0 { (from, to) } else { (to, from) };
        table.renumber(from, to).unwrap();
        assert_eq!((ledger.live(), table.len()), (64, 64));
        assert_eq!(table.get(to).unwrap().name(), 1 + turn as u32 % 2);
        table.close(to).unwrap();
        assert_eq!((ledger.live(), ledger.flushed()), (63, 2 * (turn + 1)));
    }
}

/// What a renumber and a `close` and `insert` at its source, at the same time, have left: the files at
/// the two numbers, how many fds were flushed, and whether the renumber and the close succeeded.
type Reopened = (Option<u32>, Option<u32>, usize, bool, bool);

fn renumber_while_its_source_is_reopened(check: impl Fn(Reopened)) {
    for (from, to) in [(5, 6), (5, 70), (70, 5), (70, 71)] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 4);
        for _ in 0..rounds(5000) {
            table.replace(from, ledger.file(1), NONE).unwrap();
            table.replace(to, ledger.file(2), NONE).unwrap();
            let flushed = ledger.flushed();
            let (renumbered, closed) = (AtomicBool::new(false), AtomicBool::new(false));
            let renumber = || renumbered.store(table.renumber(from, to).is_ok(), SeqCst);
            let reopen = || {
                if table.close(from).is_ok() {
                    closed.store(true, SeqCst);
                    table.insert_from(from, ledger.file(3), NONE).unwrap();
                }
            };
            together(&[&renumber, &reopen]);
            let at = |fd: u32| table.get(fd).ok().map(|file| file.name());
            let flushes = ledger.flushed() - flushed;
            check((at(from), at(to), flushes, renumbered.into_inner(), closed.into_inner()));
            table.close_range(4, u32::MAX, CLOSE).unwrap();
            assert_eq!(ledger.live(), 4);
        }
    }
}

/// Whatever a renumber does, it is not to take away what someone else has just opened.
#[test]
fn d3_renumber_while_its_source_is_reopened_loses_nothing() {
    renumber_while_its_source_is_reopened(|left| match left {
        // Before the close, after the insert, in between.
        (None, Some(1), 1, true, false) => {}
        (None, Some(3), 2, true, true) => {}
        (Some(3), Some(2), 1, false, true) => {}
        // In two steps, with the close between them.
        (Some(3), Some(1), 2, true, true) => {}
        _ => panic!("{left:?}"),
    });
}

/// It is one step: what it has moved can't be closed at its old number.
#[test]
fn d3_renumber_while_its_source_is_reopened_is_one_step() {
    renumber_while_its_source_is_reopened(|left| match left {
        (None, Some(1), 1, true, false) => {}
        (None, Some(3), 2, true, true) => {}
        (Some(3), Some(2), 1, false, true) => {}
        _ => panic!("{left:?}"),
    });
}

#[test]
fn d4_dup2_onto_a_free_number() {
    for target in [9, 90, 9000] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 2);
        assert_eq!(table.dup2(1, target).unwrap(), target);
        assert_eq!((name(&table, target), ledger.flushed()), (1, 0));
    }
}

#[test]
fn d5_dup2_onto_a_reserved_number() {
    for base in [1, 63, 64, 100] {
        let ledger = Ledger::new();
        let table = opened(&ledger, base);
        let reserved = table.reserve().unwrap();
        let fd = reserved.fd();
        assert_eq!(table.dup2(0, fd), Err(ReplaceError::Busy));
        assert_eq!(reserved.install(ledger.file(7), NONE), fd);
        assert_eq!(table.get(fd).unwrap().name(), 7);
        assert_eq!(table.dup2(0, fd).unwrap(), fd);
    }
}

#[test]
fn d6_two_dup2_onto_one_number() {
    for target in [7, 700] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 2);
        table.dup2(0, target).unwrap();
        let turns = rounds(5000);
        let replace = || {
            for turn in 0..turns {
                let fd = table.insert(ledger.file(turn as u32), NONE).unwrap();
                table.dup2(fd, target).unwrap();
                table.close(fd).unwrap();
            }
        };
        together(&[&replace, &replace]);
        // Each turn closed its own fd and one victim; the last one's file is still there.
        assert_eq!((ledger.flushed(), ledger.live()), (4 * turns, 3));
        assert_eq!(fds(&table), [0, 1, target]);
    }
}

#[test]
fn d7_a_reader_never_sees_the_target_closed() {
    for target in [7, 700] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 3);
        table.dup2(0, target).unwrap();
        let look = || {
            let found = table.get(target).expect("7 is open all the time").name();
            assert!(found < 3, "{found}");
            assert!(table.contains(target));
            assert!(table.iter().any(|entry| entry.fd == target && entry.file.name() < 3));
        };
        alongside(&[&look], || {
            for turn in 0..rounds(20_000) as u32 {
                match turn % 3 {
                    0 => drop(table.replace(target, ledger.file(0), NONE).unwrap()),
                    1 => drop(table.dup2(1, target).unwrap()),
                    _ => {
                        let from = table.insert(ledger.file(2), NONE).unwrap();
                        table.renumber(from, target).unwrap();
                    }
                }
            }
        });
        assert_eq!(fds(&table), [0, 1, 2, target]);
        table.close(target).unwrap();
        assert_eq!(ledger.live(), 3);
    }
}

#[test]
fn d8_crossed_dup2() {
    for (a, b) in [(3, 4), (3, 400), (300, 400)] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 3);
        table.replace(a, ledger.file(a), NONE).unwrap();
        table.replace(b, ledger.file(b), NONE).unwrap();
        let turns = rounds(10_000);
        let cross = |old: u32, new: u32| {
            for _ in 0..turns {
                assert_eq!(table.dup2(old, new).unwrap(), new);
            }
        };
        together(&[&|| cross(a, b), &|| cross(b, a)]);
        assert_eq!(ledger.flushed(), 2 * turns);
        // One file has won, or they have changed places; none was lost that is in the table.
        let names = [name(&table, a), name(&table, b)];
        assert!(names.iter().all(|name| [a, b].contains(name)));
        assert_eq!(ledger.live(), if names[0] == names[1] { 4 } else { 5 });
    }
}

// Lookup, close, growth

#[test]
fn l1_lookup_while_closed_and_reopened() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = opened(&ledger, fd);
        table.insert(ledger.file(1000), NONE).unwrap();
        // The first file that may still be open, and the last that may be already.
        let (first, last) = (AtomicU32::new(1000), AtomicU32::new(1000));
        let look = || {
            let first = first.load(SeqCst);
            let found = table.get(fd).ok().map(|file| file.name());
            let last = last.load(SeqCst);
            assert!(found.is_none_or(|file| (first..=last).contains(&file)), "{found:?}");
        };
        alongside(&[&look], || {
            for turn in 1000..1000 + rounds(20_000) as u32 {
                table.close(fd).unwrap();
                first.store(turn + 1, SeqCst);
                last.store(turn + 1, SeqCst);
                assert_eq!(table.insert(ledger.file(turn + 1), NONE).unwrap(), fd);
            }
        });
        assert_eq!(ledger.live(), fd as usize + 1);
    }
}

#[test]
fn l2_install_while_iterating() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 2);
    for turn in 0..rounds(1000) as u32 {
        let numbers = if turn % 2 == 0 { 2..u32::MAX } else { 500..u32::MAX };
        let (fd, installed) = (numbers.start, AtomicBool::new(false));
        let reserved = Mutex::new(Some(table.reserve_in(numbers).unwrap()));
        let install = || {
            let reserved = reserved.lock().unwrap().take().unwrap();
            reserved.install(ledger.file(turn), CLOEXEC);
            installed.store(true, SeqCst);
        };
        let look = || {
            for _ in 0..4 {
                let must = installed.load(SeqCst);
                let shown: Vec<_> = table
                    .iter()
                    .map(|entry| (entry.fd.get(), entry.file.name(), entry.flags))
                    .collect();
                let open = [(0, 0, NONE), (1, 1, NONE), (fd, turn, CLOEXEC)];
                assert!(shown == open || !must && shown == open[..2], "{shown:?}");
            }
        };
        together(&[&install, &look]);
        table.close(fd).unwrap();
    }
    assert_eq!(ledger.live(), 2);
}

#[test]
fn l3_listed_while_it_grows() {
    let end = if cfg!(miri) { 200 } else { 10_000 };
    let ledger = Ledger::new();
    let table = opened(&ledger, 1);
    let (begun, done) = (AtomicU32::new(1), AtomicU32::new(1));
    let list = || {
        let done = done.load(SeqCst);
        let shown: Vec<_> = table.iter().map(|entry| (entry.fd.get(), entry.file.name())).collect();
        let begun = begun.load(SeqCst);
        assert!(shown.iter().all(|&(fd, name)| fd == name && fd < begun));
        // In order and once; whatever was open before is there.
        assert!(shown.is_sorted_by(|a, b| a < b));
        assert_eq!(shown.iter().filter(|(fd, _)| *fd < done).count(), done as usize);
    };
    alongside(&[&list], || {
        for fd in 1..end {
            begun.store(fd + 1, SeqCst);
            table.insert(ledger.file(fd), NONE).unwrap();
            done.store(fd + 1, SeqCst);
        }
    });
    assert_eq!(ledger.live(), end as usize);
}

#[test]
fn l4_dup_while_closed() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = opened(&ledger, fd);
        let duplicate = || {
            for _ in 0..rounds(10_000) {
                if let Ok(duplicate) = table.dup_from(fd, fd + 1, NONE) {
                    table.close(duplicate).unwrap();
                }
            }
        };
        let reopen = || {
            for turn in 0..rounds(10_000) as u32 {
                assert_eq!(table.insert(ledger.file(turn), NONE).unwrap(), fd);
                table.close(fd).unwrap();
            }
        };
        together(&[&duplicate, &duplicate, &reopen]);
        assert_eq!((ledger.live(), table.len()), (fd as usize, fd as usize));
    }
}

#[test]
fn l5_a_handle_outlives_the_close() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = opened(&ledger, fd + 1);
        let (held, closed) = (Barrier::new(2), Barrier::new(2));
        let hold = || {
            let (handle, owned) = (table.get(fd).unwrap(), table.get_owned(fd).unwrap());
            held.wait();
            closed.wait();
            // Its number belongs to someone else now.
            assert_eq!(table.insert(ledger.file(1000), NONE).unwrap(), fd);
            assert_eq!((handle.name(), owned.name()), (fd, fd));
            let live = ledger.live();
            drop(handle);
            assert_eq!((owned.name(), ledger.live()), (fd, live));
            drop(owned);
            assert_eq!(ledger.live(), live - 1);
        };
        let close = || {
            held.wait();
            table.close(fd).unwrap();
            assert_eq!((ledger.flushed(), ledger.live()), (1, fd as usize + 1));
            closed.wait();
        };
        together(&[&hold, &close]);
    }
}

#[test]
fn l6_the_first_number_of_new_storage_while_others_look_up() {
    for end in [64, 256] {
        for _ in 0..rounds(150) {
            let ledger = Ledger::new();
            let table = opened(&ledger, end);
            let addresses =
                [0, end / 2, end - 1].map(|fd| (fd, &raw const *table.get(fd).unwrap()));
            let addresses = addresses.map(|(fd, address)| (fd, address.addr()));
            let look = || {
                for (fd, address) in addresses {
                    let file = table.get(fd).unwrap();
                    assert_eq!((file.name(), (&raw const *file).addr()), (fd, address));
                }
                let new = table.get(end).ok().map(|file| file.name());
                assert!(new.is_none_or(|new| new == end));
            };
            alongside(&[&look], || {
                assert_eq!(table.insert(ledger.file(end), NONE).unwrap(), end);
            });
            assert_eq!(ledger.live(), end as usize + 1);
        }
    }
}

#[test]
fn l7_a_batch_without_room_claims_nothing() {
    // Room for one below the limit: in the first word, as its last number, in a later word.
    for free in [9, 63, 64, 130] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 140);
        table.close(free).unwrap();
        let limit = 140;
        let batch = || {
            let full = table.limited(limit).reserve_many::<2>();
            assert_eq!(full.err(), Some(ReserveError::LimitReached));
        };
        let elsewhere = || {
            let fd = table.insert_from(200, ledger.file(7), NONE).unwrap();
            assert_eq!(table.get(fd).unwrap().name(), 7);
            table.close(fd).unwrap();
        };
        alongside(&[&batch, &elsewhere], || {
            for turn in 0..rounds(5000) as u32 {
                // The free number is there at every moment for who asks for one.
                assert_eq!(table.limited(limit).insert(ledger.file(turn), NONE).unwrap(), free);
                assert_eq!(name(&table, free), turn);
                table.close(free).unwrap();
            }
        });
        assert_eq!((ledger.live(), table.len()), (139, 139));
        assert_eq!(table.reserve().unwrap().fd(), free);
    }
}

#[test]
fn l7_a_batch_sees_the_table_at_one_instant() {
    // 5 is free or not, `other` always: the batch gets both or none.
    for other in [9, 70] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 71);
        table.close(other).unwrap();
        let batch = || match table.limited(71).reserve_many::<2>() {
            Ok([a, b]) => assert!(a.fd() == 5 && b.fd() == other),
            Err(error) => assert_eq!(error, ReserveError::LimitReached),
        };
        alongside(&[&batch], || {
            for turn in 0..rounds(10_000) as u32 {
                table.close(5).unwrap();
                // The batch may have it at the moment; then it gives it back.
                while table.replace(5, ledger.file(turn), NONE).is_err() {
                    thread::yield_now();
                }
            }
        });
        assert_eq!((ledger.live(), table.len()), (70, 70));
    }
}

#[test]
fn l8_the_limit_falls_while_others_dup() {
    for _ in 0..rounds(20) {
        let ledger = Ledger::new();
        let table = opened(&ledger, 1);
        table.set_limit(2000);
        table.reserve_capacity(4096).unwrap();
        let lower = || {
            for limit in (20..2000).rev().step_by(if cfg!(miri) { 100 } else { 1 }) {
                table.set_limit(limit);
            }
        };
        let duplicate = || {
            for turn in 0..rounds(3000) as u64 {
                // It only falls: what a call observes is at most this.
                let limit = table.limit();
                let done = match turn % 3 {
                    0 => table.dup_from(0, limit.saturating_sub(2), NONE).ok(),
                    1 => table.dup2(0, limit - 1 - turn % 5).ok(),
                    _ => table.dup(0).ok(),
                };
                if let Some(fd) = done {
                    assert!(u64::from(fd) < limit, "{fd} with limit {limit}");
                    // The other one may have replaced it, or closed it already.
                    let _ = table.close(fd);
                }
            }
        };
        let watch = || {
            assert!(table.iter().all(|entry| entry.fd.get() < 2000));
        };
        alongside(&[&watch], || together(&[&lower, &duplicate, &duplicate]));
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

// Dropping, flushing, order

/// A file whose end, in its flush or in its drop, waits until it is let go.
struct Slow {
    gate: Option<(Sender<()>, Mutex<Receiver<()>>)>,
    in_flush: bool,
}

impl Slow {
    const PLAIN: Slow = Slow { gate: None, in_flush: false };

    fn wait(&self) {
        if let Some((entered, leave)) = &self.gate {
            entered.send(()).unwrap();
            leave.lock().unwrap().recv().unwrap();
        }
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        if !self.in_flush {
            self.wait();
        }
    }
}

fn slow_flush(file: &Slow, _: TableId) -> Result<(), Errno> {
    if file.in_flush {
        file.wait();
    }
    Ok(())
}

#[test]
fn f1_a_drop_that_blocks_delays_nobody() {
    type Way = fn(&FdTable<Slow>, u32);
    let ways: [Way; 8] = [
        |table, fd| table.close(fd).unwrap(),
        |table, fd| assert!(table.dup2(1, fd).is_ok()),
        |table, fd| assert!(table.dup3(1, fd, CLOEXEC).is_ok()),
        |table, fd| table.renumber(1, fd).unwrap(),
        |table, fd| table.close_range(fd, fd, CLOSE).unwrap(),
        |table, _| table.close_range(2, u32::MAX, CLOSE).unwrap(),
        |table, _| table.close_on_exec(),
        |table, _| table.clear(),
    ];
    for fd in [3, 70] {
        for way in ways {
            for in_flush in [false, true] {
                let table = Options::new().on_close(slow_flush).build();
                let (entered, is_entered) = channel();
                let (leave, is_left) = channel();
                let slow = Slow { gate: Some((entered, Mutex::new(is_left))), in_flush };
                for fd in [0, 1, 2, 69] {
                    table.replace(fd, Slow::PLAIN, NONE).unwrap();
                }
                table.replace(fd, slow, CLOEXEC).unwrap();
                thread::scope(|scope| {
                    scope.spawn(|| way(&table, fd));
                    is_entered.recv().unwrap();
                    // Another thread is in the middle of it, and stays there until the end of this.
                    use_everything(&table);
                    leave.send(()).unwrap();
                });
                assert!(table.insert(Slow::PLAIN, NONE).is_ok());
            }
        }
    }
}

/// All that may not wait for a file's end.
fn use_everything(table: &FdTable<Slow>) {
    assert!(table.get(0).is_ok() && table.contains(0) && table.flags(0).is_ok());
    let low = table.insert(Slow::PLAIN, NONE).unwrap();
    let high = table.insert_from(65, Slow::PLAIN, NONE).unwrap();
    table.set_flags(low, CLOEXEC).unwrap();
    table.set_flags(high, CLOEXEC).unwrap();
    drop(table.reserve_many::<2>().unwrap());
    table.dup2(low, high).unwrap();
    table.dup2(0, 7).unwrap();
    table.close(7).unwrap();
    assert!(table.iter().count() >= 3);
    assert!(table.len() >= 3 && table.highest_open().is_some());
    drop(table.fork().unwrap());
    table.close_range(high.get(), high.get(), CLOSE).unwrap();
    table.close_range(low.get(), low.get(), CloseRange::CLOEXEC).unwrap();
    table.close(low).unwrap();
    table.reserve_capacity(2000).unwrap();
    table.close(0).unwrap();
}

/// A file that uses its table from each of its callbacks.
struct Busy {
    table: OnceLock<Weak<FdTable<Busy>>>,
}

impl Busy {
    fn plain() -> Busy {
        Busy { table: OnceLock::new() }
    }

    fn use_table(&self) {
        let Some(table) = self.table.get().and_then(Weak::upgrade) else { return };
        assert!(table.get(0).is_ok());
        let low = table.insert(Busy::plain(), NONE).unwrap();
        let high = table.insert_from(70, Busy::plain(), NONE).unwrap();
        table.close(low).unwrap();
        table.close(high).unwrap();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.use_table();
    }
}

impl fmt::Debug for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.use_table();
        f.write_str("Busy")
    }
}

#[test]
fn f2_callbacks_may_use_the_table() {
    fn busy_flush(file: &Busy, _: TableId) -> Result<(), Errno> {
        file.use_table();
        Ok(())
    }

    for fd in [3, 70] {
        let table = Arc::new(Options::new().on_close(busy_flush).build());
        table.insert(Busy::plain(), NONE).unwrap();
        let busy = || Busy { table: OnceLock::from(Arc::downgrade(&table)) };
        table.replace(fd, busy(), NONE).unwrap();
        let entry = format!("{:?}", table.iter().last().unwrap());
        assert!(entry.contains("Busy"));
        let _ = format!("{table:?}");
        table.close(fd).unwrap();
        table.replace(fd, busy(), CLOEXEC).unwrap();
        table.dup2(0, fd).unwrap();
        table.replace(fd, busy(), CLOEXEC).unwrap();
        table.close_on_exec();
        table.replace(fd, busy(), CLOEXEC).unwrap();
        table.clear();
        assert_eq!(table.len(), 0);
    }
}

#[test]
fn f3_the_victim_of_a_dup2_is_flushed_once() {
    for victim in [4, 70] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 100);
        table.dup2(3, victim).unwrap();
        assert_eq!((ledger.flushed(), ledger.live()), (1, 99));
        // The same file once more: another fd is closed, so another flush, but no release.
        table.dup2(3, victim).unwrap();
        assert_eq!((ledger.flushed(), ledger.live()), (2, 99));
    }
}

#[test]
fn f4_flush_per_fd_and_release_per_file() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 4);
    assert_eq!(table.dup(3).unwrap(), 4);
    table.close(3).unwrap();
    assert_eq!((ledger.flushed(), ledger.live()), (1, 4));
    table.close(4).unwrap();
    assert_eq!((ledger.flushed(), ledger.live()), (2, 3));
}

#[test]
fn f5_a_lower_file_may_wait_for_a_higher_one() {
    struct Chained {
        waits: bool,
        is_released: Arc<AtomicBool>,
    }

    impl Drop for Chained {
        fn drop(&mut self) {
            if self.waits {
                // Instead of waiting for ever.
                assert!(self.is_released.load(SeqCst), "4 was to be closed first");
            } else {
                self.is_released.store(true, SeqCst);
            }
        }
    }

    for (low, high) in [(3, 4), (3, 64), (64, 65), (100, 5000)] {
        for is_task in [false, true] {
            let table = FdTable::new();
            let is_released = Arc::new(AtomicBool::new(false));
            for (fd, waits) in [(low, true), (high, false)] {
                let is_released = Arc::clone(&is_released);
                table.replace(fd, Chained { waits, is_released }, NONE).unwrap();
            }
            if is_task {
                drop(Files::from(table));
            } else {
                drop(table);
            }
            assert!(is_released.load(SeqCst));
        }
    }
}

#[test]
fn f6_unshare_flushes_nothing_that_it_leaves_out() {
    fn note(file: &Mutex<Vec<TableId>>, id: TableId) -> Result<(), Errno> {
        file.lock().unwrap().push(id);
        Ok(())
    }

    let table = Options::<Mutex<Vec<TableId>>>::new().on_close(note).build();
    let file = OwnedRef::new(Mutex::default());
    for _ in 0..3 {
        table.insert(file.clone(), NONE).unwrap();
    }
    let mut files = Files::from(table);
    let thread = files.share();
    let old = files.id();
    files.close_range(0, 1, CloseRange::UNSHARE).unwrap();
    assert!(file.lock().unwrap().is_empty());
    // The copy flushes what it has, the old table everything.
    let new = files.id();
    drop(files);
    assert_eq!(*file.lock().unwrap(), [new]);
    drop(thread);
    assert_eq!(*file.lock().unwrap(), [new, old, old, old]);
}

/// A file whose callbacks panic, quietly: a panic hook would write a line for each.
struct Explosive {
    drops: Arc<AtomicUsize>,
    in_flush: bool,
    in_drop: bool,
}

impl Clone for Explosive {
    fn clone(&self) -> Self {
        resume_unwind(Box::new("clone"));
    }
}

impl Drop for Explosive {
    fn drop(&mut self) {
        self.drops.fetch_add(1, SeqCst);
        if self.in_drop {
            resume_unwind(Box::new("drop"));
        }
    }
}

#[test]
fn f7_panics_leave_the_table_sound() {
    fn explosive_flush(file: &Explosive, _: TableId) -> Result<(), Errno> {
        if file.in_flush {
            resume_unwind(Box::new("flush"));
        }
        Ok(())
    }

    for fd in [3, 70] {
        for (in_flush, in_drop) in [(true, false), (false, true)] {
            let drops = Arc::new(AtomicUsize::new(0));
            let plain = || Explosive { drops: Arc::clone(&drops), in_flush: false, in_drop: false };
            let explosive = || Explosive { drops: Arc::clone(&drops), in_flush, in_drop };
            let panics = |operation: &dyn Fn()| {
                let before = drops.load(SeqCst);
                assert!(catch_unwind(AssertUnwindSafe(operation)).is_err());
                drops.load(SeqCst) - before
            };
            let table = Options::new().on_close(explosive_flush).build();
            for _ in 0..3 {
                table.insert(plain(), NONE).unwrap();
            }
            table.replace(fd, explosive(), NONE).unwrap();
            assert_eq!(panics(&|| table.close(fd).unwrap()), 1);
            assert!(!table.contains(fd));

            table.replace(fd, explosive(), NONE).unwrap();
            assert_eq!(panics(&|| assert!(table.dup2(0, fd).is_ok())), 1);
            assert!(table.contains(fd));

            table.replace(fd, explosive(), CLOEXEC).unwrap();
            let child = table.fork().unwrap();
            assert_eq!(child.len(), 4);
            if in_flush {
                // Both flush it, the parent drops it.
                assert_eq!(panics(&|| child.close_on_exec()), 0);
                assert_eq!(panics(&|| table.close_on_exec()), 1);
            } else {
                child.close_on_exec();
                assert_eq!(panics(&|| table.close_on_exec()), 1);
            }
            assert_eq!((child.len(), table.len()), (3, 3));
            drop(child);

            table.replace(fd, explosive(), NONE).unwrap();
            table.replace(2, explosive(), NONE).unwrap();
            table.insert(plain(), NONE).unwrap();
            let table = Mutex::new(Some(table));
            let before = drops.load(SeqCst);
            assert!(
                catch_unwind(|| drop(table.lock().unwrap_or_else(|e| e.into_inner()).take()))
                    .is_err()
            );
            // All of them, also those closed after the panic.
            assert_eq!(drops.load(SeqCst) - before, 5);
        }
    }
}

#[test]
fn f8_a_full_table_gives_the_file_back() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 64);
    table.set_limit(64);
    let rejected = table.insert(ledger.file(7), NONE).unwrap_err();
    assert_eq!((rejected.errno(), rejected.file.name()), (Errno::EMFILE, 7));
    assert_eq!(rejected.file.try_into_inner().unwrap().name(), 7);
    assert_eq!(ledger.live(), 64);
    // Or drops it, if the caller wants only the reason.
    let error = table.insert(ledger.file(7), NONE).unwrap_err().into_error();
    assert_eq!((error, ledger.live(), ledger.flushed()), (ReserveError::LimitReached, 64, 0));
}

#[test]
fn f9_an_exec_flushes_and_releases_each() {
    let ledger = Ledger::new();
    let mut files = Files::from(opened(&ledger, 100));
    for fd in [2, 3, 80] {
        files.set_flags(fd, CLOEXEC).unwrap();
    }
    files.exec().unwrap();
    assert_eq!((ledger.flushed(), ledger.live(), files.len()), (3, 97, 97));
}

// Sharing

#[test]
fn s1_an_observer_does_not_share() {
    let ledger = Ledger::new();
    let mut files = Files::from(opened(&ledger, 1));
    let proc = files.observe();
    let _other = (files.observe(), proc.clone());
    assert!(!files.is_shared());
    assert_eq!(files.borrow(0).unwrap().name(), 0);
    // So an exec needs no copy either.
    let id = files.id();
    files.exec().unwrap();
    assert_eq!((files.id(), proc.list().len()), (id, 1));
}

#[test]
fn s2_one_task_exits_while_another_clones() {
    for turn in 0..rounds(2000) {
        let ledger = Ledger::new();
        let exiting = Mutex::new(Some(Files::from(opened(&ledger, 2))));
        let staying = exiting.lock().unwrap().as_ref().unwrap().share();
        let exit = || drop(exiting.lock().unwrap().take());
        let clone = || {
            for _ in 0..3 {
                let clone = staying.share();
                assert_eq!(name(&clone, 1), 1);
                assert!(clone.is_shared());
            }
        };
        together(&[&exit, &clone]);
        assert!(!staying.is_shared());
        assert_eq!((ledger.live(), ledger.flushed()), (2, 0), "turn {turn}");
        drop(staying);
        assert_eq!((ledger.live(), ledger.flushed()), (0, 2));
    }
}

#[test]
fn s2_all_tasks_exit_at_once() {
    let tables = if cfg!(miri) { 5 } else { 200 };
    for _ in 0..rounds(200) {
        let ledger = Ledger::new();
        let files: Vec<_> = (0..tables).map(|_| Files::from(opened(&ledger, 2))).collect();
        let others: Vec<_> = files.iter().map(Files::share).collect();
        let tasks = [files, others].map(|files| Mutex::new(Some(files)));
        // One table after the other, both of them.
        let exit = |task: usize| drop(tasks[task].lock().unwrap().take());
        together(&[&|| exit(0), &|| exit(1)]);
        // Of each exactly one was the last.
        assert_eq!((ledger.live(), ledger.flushed()), (0, 2 * tables));
    }
}

#[test]
fn s3_unshare_while_another_task_opens_and_closes() {
    let ledger = Ledger::new();
    let thread = Files::from(opened(&ledger, 3));
    let churn = |base: u32| {
        let fd = thread.insert_from(base, ledger.file(base), NONE).unwrap();
        assert_eq!(thread.get(fd).unwrap().name(), base);
        thread.set_flags(fd, CLOEXEC).unwrap();
        thread.close(fd).unwrap();
    };
    alongside(&[&|| churn(3), &|| churn(70)], || {
        for _ in 0..rounds(2000) {
            let mut files = thread.share();
            files.close_range(3, u32::MAX, CloseRange::UNSHARE).unwrap();
            assert!(files.id() != thread.id() && !files.is_shared());
            assert_eq!(fds(&files), [0, 1, 2]);
            assert!((0..3).all(|fd| name(&files, fd) == fd));
            assert_eq!(files.insert(ledger.file(9), NONE).unwrap(), 3);
        }
    });
    assert_eq!((ledger.live(), fds(&thread)), (3, vec![0, 1, 2]));
}

#[test]
fn s4_a_file_may_own_an_observer_of_its_own_table() {
    struct Proc {
        drops: Arc<AtomicUsize>,
        observer: OnceLock<Observer<Proc>>,
    }

    impl Drop for Proc {
        fn drop(&mut self) {
            // The task is gone by now.
            let observer = self.observer.get().unwrap();
            assert!(!observer.is_alive() && observer.list().is_empty());
            self.drops.fetch_add(1, SeqCst);
        }
    }

    let drops = Arc::new(AtomicUsize::new(0));
    let files = Files::new();
    let own = |files: &Files<Proc>| Proc {
        drops: Arc::clone(&drops),
        observer: OnceLock::from(files.observe()),
    };
    files.insert(own(&files), NONE).unwrap();
    files.insert_from(70, own(&files), NONE).unwrap();
    let thread = files.share();
    drop(files);
    assert_eq!(drops.load(SeqCst), 0);
    drop(thread);
    assert_eq!(drops.load(SeqCst), 2);
}

#[test]
fn s5_fork_100_000() {
    let end = if cfg!(miri) { 500 } else { 100_000 };
    let ledger = Ledger::new();
    let parent = opened(&ledger, end);
    let child = parent.fork().unwrap();
    assert_eq!((child.len(), ledger.live()), (end as usize, end as usize));
    let same =
        |(a, b): (Entry<'_, File>, Entry<'_, File>)| a.fd == b.fd && a.file.name() == b.file.name();
    assert!(parent.iter().zip(&child).all(same));
    parent.clear();
    assert_eq!((ledger.live(), ledger.flushed()), (end as usize, end as usize));
    // The copy holds one reference each, no more.
    for fd in (0..end).step_by(997) {
        assert_eq!(child.remove(fd).unwrap().try_into_inner().unwrap().name(), fd);
    }
    drop(child);
    assert_eq!(ledger.live(), 0);
}

#[test]
fn s5_fork_while_others_open_and_close() {
    let end = if cfg!(miri) { 130 } else { 5000 };
    let ledger = Ledger::new();
    let parent = opened(&ledger, end);
    // Each has a stretch of its own, so that it can tell what it finds there.
    let churn = |first: u32, last: u32| {
        for fd in first..last {
            parent.close(fd).unwrap();
            assert!(!parent.contains(fd));
            assert!(parent.replace(fd, ledger.file(fd), CLOEXEC).unwrap().is_none());
            assert_eq!(name(&parent, fd), fd);
        }
    };
    alongside(&[&|| churn(1, 40), &|| churn(100, end)], || {
        for _ in 0..rounds(100) {
            let child = parent.fork().unwrap();
            assert!(child.iter().all(|entry| entry.fd == entry.file.name()));
            // At most one fd of each stretch was in mid-churn.
            assert!(child.len() >= end as usize - 2);
        }
    });
    assert_eq!((ledger.live(), parent.len()), (end as usize, end as usize));
    parent.clear();
    assert_eq!(ledger.live(), 0);
}
