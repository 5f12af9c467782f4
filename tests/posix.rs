//! Every operation by itself: its results, and its errors in the order in which they are checked; what
//! each does to a reserved number; statistics, `Debug`, error numbers, numbers and flags that are none.
//!
//! All of it on one thread, and at several places of the table: among the first numbers, which have
//! an allocator of their own, across their end, and across the ends of words and of words of words.

mod common;

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

// Lookup

#[test]
fn lookup_finds_the_file_and_keeps_it_alive() {
    at_each_base(|ledger, table, base| {
        let fd = table.insert(ledger.file(7), NONE).unwrap();
        assert_eq!(fd, base);
        let (handle, owned) = (table.get(fd).unwrap(), table.get_owned(fd).unwrap());
        let (again, moved) = (handle.to_owned(), table.get(fd).unwrap().into_owned());
        table.close(fd).unwrap();
        assert_eq!(table.get(fd).err(), Some(BadFd));
        let live = ledger.live();
        for file in [&owned, &again, &moved] {
            assert!(file.name() == 7 && OwnedRef::ptr_eq(file, &owned));
        }
        drop((owned, again, moved));
        assert_eq!((handle.name(), ledger.live()), (7, live));
        drop(handle);
        assert_eq!(ledger.live(), live - 1);
    });
}

#[test]
fn lookup_through_an_exclusive_borrow() {
    at_each_base(|ledger, mut table, base| {
        table.insert(ledger.file(7), NONE).unwrap();
        assert_eq!(table.borrow(base).unwrap().name(), 7);
        // A lent handle turned into an owned one is a reference of its own.
        let owned = table.borrow(base).unwrap().into_owned();
        let cloned = table.borrow(base).unwrap().to_owned();
        table.close(base).unwrap();
        assert_eq!(table.borrow(base).err(), Some(BadFd));
        assert_eq!((owned.name(), cloned.name()), (7, 7));
    });
}

#[test]
fn lookup_of_a_closed_number_is_ebadf_and_grows_nothing() {
    at_each_base(|_, mut table, base| {
        let before = (table.capacity(), table.bytes(), table.high_water());
        for fd in [base, base + 1, table.capacity(), table.max() - 1, table.max()] {
            assert_eq!(table.get(fd).err(), Some(BadFd));
            assert_eq!(table.get_owned(fd).err(), Some(BadFd));
            assert_eq!(table.borrow(fd).err(), Some(BadFd));
            assert_eq!(table.flags(fd), Err(BadFd));
            assert!(!table.contains(fd));
        }
        assert_eq!((table.capacity(), table.bytes(), table.high_water()), before);
    });
}

// Reserve, install, insert

#[test]
fn reserve_takes_the_lowest_free_number() {
    at_each_base(|ledger, table, base| {
        let first = table.reserve().unwrap();
        let second = table.reserve().unwrap();
        assert!(first.fd() == base && second.fd() == base + 1);
        drop(first);
        assert_eq!(table.reserve().unwrap().fd(), base);
        assert_eq!(table.insert(ledger.file(1), NONE).unwrap(), base);
        assert_eq!(table.insert(ledger.file(2), NONE).unwrap(), base + 2);
        assert_eq!(second.install(ledger.file(3), CLOEXEC), base + 1);
        let open = [(base, 1, NONE), (base + 1, 3, CLOEXEC), (base + 2, 2, NONE)];
        assert_eq!(listing(&table, base), open);
    });
}

#[test]
fn reserve_in_a_range() {
    at_each_base(|ledger, table, base| {
        let refused = |numbers| {
            assert_eq!(table.reserve_in(numbers).err(), Some(ReserveError::LimitReached));
        };
        assert_eq!(table.reserve_in(base + 2..base + 4).unwrap().fd(), base + 2);
        let third = table.reserve_in(base + 2..base + 3).unwrap();
        refused(base + 2..base + 3);
        table.insert_from(base + 3, ledger.file(1), NONE).unwrap();
        refused(base + 2..base + 4);
        assert_eq!(table.reserve_in(0..base + 2).unwrap().fd(), base);
        assert_eq!(table.reserve_in(base + 2..u32::MAX).unwrap().fd(), base + 4);
        // Empty, upside down, above everything.
        refused(base..base);
        refused(0..0);
        #[expect(clippy::reversed_empty_ranges, reason = "a caller can pass it")]
        refused(9..3);
        refused(u32::MAX..u32::MAX);
        refused(table.max()..u32::MAX);
        assert_eq!(
            table.limited((base + 5).into()).reserve_in(base + 5..base + 9).err(),
            Some(ReserveError::LimitReached)
        );
        assert_eq!(
            table.limited((base + 5).into()).reserve_in(base + 4..base + 9).unwrap().fd(),
            base + 4
        );
        assert_eq!(third.fd(), base + 2);
        drop(third);
        assert_eq!(listing(&table, base), [(base + 3, 1, NONE)]);
    });
}

/// Holes by a fixed pattern, so that batches have to skip.
fn with_holes(ledger: &Arc<Ledger>, pattern: impl Fn(u32) -> bool, end: u32) -> FdTable<File> {
    let items = (0..end).filter(|&fd| pattern(fd)).map(|fd| (fd, ledger.file(fd), NONE));
    Options::new().restore(items).unwrap()
}

#[test]
fn reserve_many_gives_the_numbers_of_single_calls() {
    fn check<const N: usize>(table: &FdTable<File>) {
        let single: Vec<_> = (0..N).map(|_| table.reserve().unwrap()).collect();
        let expected: Vec<_> = single.iter().map(Reservation::fd).collect();
        drop(single);
        let many = table.reserve_many::<N>().unwrap().map(|reservation| reservation.fd());
        assert_eq!(many.to_vec(), expected);
        // They were given back by the drop, each of them.
        assert_eq!(table.reserve_many::<N>().unwrap().map(|r| r.fd()), many);
    }

    let patterns: [fn(u32) -> bool; 7] = [
        |_| false,
        |_| true,
        |fd| fd % 2 == 0,
        |fd| fd % 5 == 3,
        |fd| fd != 63 && fd != 64,
        |fd| fd / 64 % 2 == 0 || fd % 64 == 13,
        |fd| fd < 60 || fd > 70 && fd != 127,
    ];
    for pattern in patterns {
        for end in [0, 63, 64, 65, 130, 4096, 4200] {
            let ledger = Ledger::new();
            let table = with_holes(&ledger, pattern, end);
            check::<0>(&table);
            check::<1>(&table);
            check::<2>(&table);
            check::<3>(&table);
            check::<7>(&table);
            check::<64>(&table);
            check::<65>(&table);
            check::<200>(&table);
        }
    }
}

#[test]
fn reserve_many_takes_all_or_none() {
    at_each_base(|ledger, table, base| {
        // Room for two.
        table.insert_from(base + 1, ledger.file(1), NONE).unwrap();
        let small = table.limited((base + 3).into());
        assert_eq!(small.reserve_many::<3>().err(), Some(ReserveError::LimitReached));
        assert_eq!(small.reserve_many::<100>().err(), Some(ReserveError::LimitReached));
        assert_eq!(listing(&table, base), [(base + 1, 1, NONE)]);
        let [first, second] = small.reserve_many().unwrap();
        assert!(first.fd() == base && second.fd() == base + 2);
        assert_eq!(small.reserve_many::<1>().err(), Some(ReserveError::LimitReached));
        assert!(small.reserve_many::<0>().is_ok());
        drop(first);
        assert_eq!(small.reserve_many::<2>().err(), Some(ReserveError::LimitReached));
        assert_eq!(small.reserve_many::<1>().unwrap()[0].fd(), base);
        drop(second);
    });
}

#[test]
fn install_cannot_fail_once_the_number_is_reserved() {
    at_each_base(|ledger, table, base| {
        let [first, second, third] = table.reserve_many().unwrap();
        table.set_limit(0);
        table.set_max(0);
        assert_eq!(first.install(ledger.file(1), NONE), base);
        assert_eq!(second.install(ledger.file(2), CLOEXEC | CLOFORK), base + 1);
        drop(third);
        let open = [(base, 1, NONE), (base + 1, 2, CLOEXEC | CLOFORK)];
        assert_eq!(listing(&table, base), open);
    });
}

#[test]
fn insert_into_a_full_table_is_emfile_and_the_file_comes_back() {
    at_each_base(|ledger, table, base| {
        let small = table.limited((base + 1).into());
        assert_eq!(small.insert(ledger.file(1), CLOFORK).unwrap(), base);
        let file = OwnedRef::new(ledger.file(2));
        let rejected = small.insert(file.clone(), NONE).unwrap_err();
        assert_eq!(rejected.error, ReserveError::LimitReached);
        assert_eq!(rejected.errno(), Errno::EMFILE);
        assert!(OwnedRef::ptr_eq(&rejected.file, &file));
        drop(rejected);
        let rejected = small.insert_from(base + 1, file, NONE).unwrap_err();
        assert_eq!(rejected.error, ReserveError::LimitReached);
        // Nobody else has a reference.
        assert_eq!(rejected.file.try_into_inner().unwrap().name(), 2);
        assert_eq!(listing(&table, base), [(base, 1, CLOFORK)]);
    });
}

#[test]
fn insert_from_takes_the_lowest_number_from_the_minimum_on() {
    at_each_base(|ledger, table, base| {
        assert_eq!(table.insert_from(0, ledger.file(1), NONE).unwrap(), base);
        assert_eq!(table.insert_from(base + 70, ledger.file(2), NONE).unwrap(), base + 70);
        assert_eq!(table.insert_from(base + 69, ledger.file(3), NONE).unwrap(), base + 69);
        assert_eq!(table.insert_from(base + 69, ledger.file(4), CLOEXEC).unwrap(), base + 71);
        assert_eq!(table.insert(ledger.file(5), NONE).unwrap(), base + 1);
        let last = table.max() - 1;
        assert_eq!(table.insert_from(last, ledger.file(6), NONE).unwrap(), last);
        let rejected = table.insert_from(last, ledger.file(7), NONE).unwrap_err();
        assert_eq!((rejected.errno(), rejected.file.name()), (Errno::EMFILE, 7));
        assert_eq!(name(&table, base + 71), 4);
        assert_eq!(name(&table, last), 6);
    });
}

#[test]
fn insert_is_bounded_by_max_too() {
    let ledger = Ledger::new();
    let table = Options::new().max(128).build();
    for fd in 0..128 {
        assert_eq!(table.insert(ledger.file(fd), NONE).unwrap(), fd as i32);
    }
    let rejected = table.insert(ledger.file(128), NONE).unwrap_err();
    assert_eq!((rejected.error, rejected.file.name()), (ReserveError::LimitReached, 128));
    assert_eq!(table.capacity(), 128);
}

// Dup

#[test]
fn dup_opens_the_lowest_free_number_without_flags() {
    at_each_base(|ledger, table, base| {
        table.insert_from(base + 1, ledger.file(1), CLOEXEC | CLOFORK).unwrap();
        assert_eq!(table.dup(base + 1).unwrap(), base);
        assert_eq!(table.dup(base + 1).unwrap(), base + 2);
        let open = [(base, 1, NONE), (base + 1, 1, CLOEXEC | CLOFORK), (base + 2, 1, NONE)];
        assert_eq!(listing(&table, base), open);
        let [a, b] = [base, base + 2].map(|fd| table.get_owned(fd).unwrap());
        assert!(OwnedRef::ptr_eq(&a, &b));
    });
}

#[test]
fn dup_errors_in_order() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), NONE).unwrap();
        let full = table.limited((base + 1).into());
        assert_eq!(full.dup(base + 1), Err(DupError::BadFd));
        assert_eq!(full.dup(base), Err(DupError::LimitReached));
        assert_eq!(table.limited(0).dup(base), Err(DupError::LimitReached));
        // The references that were taken on the way are given back.
        table.close(base).unwrap();
        assert_eq!(ledger.live(), usize::from(base > 0));
    });
}

#[test]
fn dup_from_with_minimum_and_flags() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), CLOFORK).unwrap();
        assert_eq!(table.dup_from(base, base + 5, CLOEXEC).unwrap(), base + 5);
        assert_eq!(table.dup_from(base, base + 5, NONE).unwrap(), base + 6);
        assert_eq!(table.dup_from(base, 0, CLOEXEC | CLOFORK).unwrap(), base + 1);
        let open = [
            (base, 1, CLOFORK),
            (base + 1, 1, CLOEXEC | CLOFORK),
            (base + 5, 1, CLOEXEC),
            (base + 6, 1, NONE),
        ];
        assert_eq!(listing(&table, base), open);
    });
}

#[test]
fn dup_from_errors_in_order() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), NONE).unwrap();
        let limit = base + 1;
        let full = table.limited(limit.into());
        // The source comes before the minimum, the minimum before the search.
        assert_eq!(full.dup_from(limit, limit, NONE), Err(DupError::BadFd));
        assert_eq!(full.dup_from(limit, -1, NONE), Err(DupError::BadFd));
        assert_eq!(full.dup_from(base, limit, NONE), Err(DupError::MinimumTooLarge));
        assert_eq!(full.dup_from(base, -1, NONE), Err(DupError::MinimumTooLarge));
        assert_eq!(full.dup_from(base, base, NONE), Err(DupError::LimitReached));
        assert_eq!(full.dup_from(base, 0, NONE), Err(DupError::LimitReached));
        // Below the limit, but not below `max`: the search finds nothing.
        assert_eq!(table.dup_from(base, table.max(), NONE), Err(DupError::LimitReached));
        table.close(base).unwrap();
        assert_eq!(ledger.live(), usize::from(base > 0));
    });
}

// Dup2, dup3, replace

#[test]
fn dup2_onto_a_free_number_and_onto_an_open_one() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), CLOEXEC).unwrap();
        table.insert(ledger.file(2), CLOEXEC | CLOFORK).unwrap();
        let live = ledger.live();
        assert_eq!(table.dup2(base, base + 9).unwrap(), base + 9);
        assert_eq!((ledger.live(), ledger.flushed()), (live, 0));
        assert_eq!(table.dup2(base, base + 1).unwrap(), base + 1);
        assert_eq!((ledger.live(), ledger.flushed()), (live - 1, 1));
        let open = [(base, 1, CLOEXEC), (base + 1, 1, NONE), (base + 9, 1, NONE)];
        assert_eq!(listing(&table, base), open);
        // What was claimed by a dup2 is not given to anyone else.
        assert_eq!(table.insert_from(base + 9, ledger.file(3), NONE).unwrap(), base + 10);
    });
}

#[test]
fn dup2_of_a_number_to_itself_changes_nothing() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), CLOEXEC | CLOFORK).unwrap();
        assert_eq!(table.dup2(base, base).unwrap(), base);
        // The same number from another type, and whatever the limit.
        assert_eq!(table.dup2(u64::from(base), base as i32).unwrap(), base);
        assert_eq!(table.limited(0).dup2(base, base).unwrap(), base);
        assert_eq!(listing(&table, base), [(base, 1, CLOEXEC | CLOFORK)]);
        assert_eq!(table.dup2(base + 1, base + 1), Err(ReplaceError::BadFd));
        assert_eq!(table.dup2(-1, -1), Err(ReplaceError::BadFd));
        assert_eq!(table.dup2(table.max(), table.max()), Err(ReplaceError::BadFd));
        let reserved = table.reserve().unwrap();
        assert_eq!(table.dup2(reserved.fd(), reserved.fd()), Err(ReplaceError::BadFd));
        assert_eq!(ledger.flushed(), 0);
    });
}

#[test]
fn dup2_errors_in_order() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), NONE).unwrap();
        table.insert(ledger.file(2), CLOEXEC).unwrap();
        let reserved = table.reserve().unwrap();
        let closed = base + 3;
        let before = (listing(&table, base), table.capacity(), table.high_water());
        let small = table.limited((base + 2).into());
        let (bad, busy) = (Err(ReplaceError::BadFd), Err(ReplaceError::Busy));
        // Not below the limit or `max`; the limit hides that the number is reserved.
        for new in [i64::from(reserved.fd()), closed.into(), table.max().into(), -1] {
            assert_eq!(small.dup2(base, new), bad);
        }
        assert_eq!(table.dup2(base, table.max()), bad);
        assert_eq!(table.dup2(base, i32::MAX), bad);
        assert_eq!(table.dup2(base, -1), bad);
        // The source comes before the state of the target.
        assert_eq!(table.dup2(closed, base + 1), bad);
        assert_eq!(table.dup2(closed, reserved.fd()), bad);
        assert_eq!(table.dup2(reserved.fd(), base + 1), bad);
        assert_eq!(table.dup2(-1, base + 1), bad);
        assert_eq!(table.dup2(base, reserved.fd()), busy);
        assert_eq!((listing(&table, base), table.capacity(), table.high_water()), before);
        assert_eq!(ledger.flushed(), 0);
        // An open number above the limit can't be the target, but the source.
        assert_eq!(table.limited((base + 1).into()).dup2(base, base + 1), bad);
        assert_eq!(table.limited((base + 1).into()).dup2(base + 1, base).unwrap(), base);
        reserved.install(ledger.file(3), NONE);
    });
}

#[test]
fn dup3_sets_the_flags_given() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), NONE).unwrap();
        table.insert(ledger.file(2), CLOFORK).unwrap();
        assert_eq!(table.dup3(base, base + 1, CLOEXEC).unwrap(), base + 1);
        assert_eq!(table.dup3(base, base + 2, CLOEXEC | CLOFORK).unwrap(), base + 2);
        assert_eq!(table.dup3(base, base + 3, NONE).unwrap(), base + 3);
        let open = [
            (base, 1, NONE),
            (base + 1, 1, CLOEXEC),
            (base + 2, 1, CLOEXEC | CLOFORK),
            (base + 3, 1, NONE),
        ];
        assert_eq!(listing(&table, base), open);
        assert_eq!(ledger.flushed(), 1);
    });
}

#[test]
fn dup3_errors_in_order() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), NONE).unwrap();
        let reserved = table.reserve().unwrap();
        let invalid = Err(ReplaceError::InvalidArgument);
        for bits in [4, 0x80, 0xff, 5] {
            let unknown = FdFlags::from_bits_retain(bits);
            assert_eq!(table.dup3(base, base + 2, unknown), invalid);
            assert_eq!(table.dup3(base + 2, -1, unknown), invalid);
            assert_eq!(table.dup3(base, base, unknown), invalid);
        }
        // Itself is an error before anything is looked at.
        assert_eq!(table.dup3(base, base, CLOEXEC), invalid);
        assert_eq!(table.dup3(base + 2, base + 2, NONE), invalid);
        assert_eq!(table.dup3(-1, -1, NONE), invalid);
        assert_eq!(table.limited(0).dup3(base, base, NONE), invalid);
        // Then as dup2.
        let small = table.limited((base + 1).into());
        assert_eq!(small.dup3(base, base + 1, NONE), Err(ReplaceError::BadFd));
        assert_eq!(table.dup3(base + 2, reserved.fd(), NONE), Err(ReplaceError::BadFd));
        assert_eq!(table.dup3(base, reserved.fd(), NONE), Err(ReplaceError::Busy));
        drop(reserved);
        assert_eq!(listing(&table, base), [(base, 1, NONE)]);
    });
}

#[test]
fn replace_returns_what_was_there_neither_flushed_nor_dropped() {
    at_each_base(|ledger, table, base| {
        let live = ledger.live();
        assert!(table.replace(base, ledger.file(1), CLOEXEC).unwrap().is_none());
        let old = table.replace(base, ledger.file(2), CLOFORK).unwrap().unwrap();
        assert_eq!(listing(&table, base), [(base, 2, CLOFORK)]);
        assert_eq!((ledger.live(), ledger.flushed()), (live + 2, 0));
        // It is in no fd any more.
        assert_eq!(old.try_into_inner().unwrap().name(), 1);
        assert_eq!(table.insert(ledger.file(3), NONE).unwrap(), base + 1);
        // With the file that is there already.
        let same = table.get_owned(base).unwrap();
        let old = table.replace(base, same.clone(), NONE).unwrap().unwrap();
        assert!(OwnedRef::ptr_eq(&old, &same));
        drop((old, same));
        assert_eq!(listing(&table, base), [(base, 2, NONE), (base + 1, 3, NONE)]);
    });
}

#[test]
fn replace_errors_in_order_and_the_file_comes_back() {
    at_each_base(|ledger, table, base| {
        let reserved = table.reserve().unwrap();
        let file = OwnedRef::new(ledger.file(1));
        let small = table.limited(base.into());
        let rejected = small.replace(reserved.fd(), file, NONE).unwrap_err();
        assert_eq!((rejected.error, rejected.errno()), (ReplaceError::BadFd, Errno::EBADF));
        let rejected = table.replace(reserved.fd(), rejected.file, NONE).unwrap_err();
        assert_eq!((rejected.error, rejected.errno()), (ReplaceError::Busy, Errno::EBUSY));
        let rejected = table.replace(table.max(), rejected.file, NONE).unwrap_err();
        assert_eq!(rejected.error, ReplaceError::BadFd);
        assert_eq!(rejected.file.try_into_inner().unwrap().name(), 1);
        drop(reserved);
        assert_eq!(listing(&table, base), []);
        assert_eq!(table.insert(ledger.file(2), NONE).unwrap(), base);
    });
}

// Renumber

#[test]
fn renumber_moves_a_file_onto_an_open_number() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), CLOEXEC | CLOFORK).unwrap();
        table.insert(ledger.file(2), CLOEXEC).unwrap();
        let live = ledger.live();
        table.renumber(base, base + 1).unwrap();
        // As by dup2: without flags. One victim, flushed and dropped; the other has only moved.
        assert_eq!(listing(&table, base), [(base + 1, 1, NONE)]);
        assert_eq!((ledger.live(), ledger.flushed()), (live - 1, 1));
        assert_eq!(table.insert(ledger.file(3), NONE).unwrap(), base);
        // The same file at both.
        table.dup2(base, base + 1).unwrap();
        table.renumber(base + 1, base).unwrap();
        assert_eq!(listing(&table, base), [(base, 3, NONE)]);
    });
}

#[test]
fn renumber_to_itself_is_a_no_op() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), CLOEXEC).unwrap();
        table.renumber(base, base).unwrap();
        assert_eq!(listing(&table, base), [(base, 1, CLOEXEC)]);
        assert_eq!(ledger.flushed(), 0);
        assert_eq!(table.renumber(base + 1, base + 1), Err(BadFd));
        assert_eq!(table.renumber(-1, -1), Err(BadFd));
    });
}

#[test]
fn renumber_of_or_to_what_is_not_open_is_ebadf_and_changes_nothing() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), CLOFORK).unwrap();
        let reserved = table.reserve().unwrap();
        let closed = [i64::from(reserved.fd()), (base + 2).into(), table.max().into(), -1];
        for closed in closed {
            assert_eq!(table.renumber(base, closed), Err(BadFd));
            assert_eq!(table.renumber(closed, base), Err(BadFd));
        }
        assert_eq!(listing(&table, base), [(base, 1, CLOFORK)]);
        assert_eq!(ledger.flushed(), 0);
        // Neither was the free number taken, nor the reserved one.
        assert_eq!(table.insert(ledger.file(2), NONE).unwrap(), base + 2);
        assert_eq!(reserved.install(ledger.file(3), NONE), base + 1);
    });
}

// Remove, close

#[test]
fn remove_hands_the_file_over_neither_flushed_nor_dropped() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), CLOEXEC).unwrap();
        let live = ledger.live();
        let file = table.remove(base).unwrap();
        assert!(!table.contains(base));
        assert_eq!((ledger.live(), ledger.flushed()), (live, 0));
        assert_eq!(file.try_into_inner().unwrap().name(), 1);
        assert_eq!(table.remove(base).err(), Some(BadFd));
        assert_eq!(table.insert(ledger.file(2), NONE).unwrap(), base);
    });
}

#[test]
fn remove_then_try_into_inner_or_get_mut_counts_every_kind_of_reference() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), NONE).unwrap();
        table.dup(base).unwrap();
        let mut file = table.remove(base).unwrap();
        // Another fd refers to it.
        assert!(file.get_mut().is_none());
        let mut file = file.try_into_inner().unwrap_err();
        let handle = table.get(base + 1).unwrap();
        table.close(base + 1).unwrap();
        // A handle does.
        assert!(file.get_mut().is_none());
        let mut file = file.try_into_inner().unwrap_err();
        drop(handle);
        let other = file.clone();
        assert!(file.get_mut().is_none());
        let mut file = file.try_into_inner().unwrap_err();
        drop(other);
        assert_eq!(file.get_mut().unwrap().name(), 1);
        assert_eq!(file.try_into_inner().unwrap().name(), 1);
    });
}

/// What a flush hook and a drop find in the table at that moment.
#[derive(Debug, PartialEq)]
struct Seen {
    what: &'static str,
    of: u32,
    /// The file at the number in question.
    found: Option<u32>,
    /// The lowest free number.
    lowest: Fd,
}

struct Witness {
    name: u32,
    at: u32,
    table: Arc<OnceLock<Weak<FdTable<Witness>>>>,
    log: Arc<Mutex<Vec<Seen>>>,
}

impl Witness {
    fn see(&self, what: &'static str) {
        let Some(table) = self.table.get().and_then(Weak::upgrade) else { return };
        let found = table.get(self.at).ok().map(|file| file.name);
        let lowest = table.reserve().unwrap().fd();
        self.log.lock().unwrap().push(Seen { what, of: self.name, found, lowest });
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.see("drop");
    }
}

fn see_flush(file: &Witness, _: TableId) -> Result<(), Errno> {
    file.see("flush");
    Err(Errno::new(100 + file.name as i32))
}

/// A table with witnesses 1 and 2 at `base` and `base + 1`, that look at `base + 1`.
fn witnessed(base: u32) -> (Arc<FdTable<Witness>>, Arc<Mutex<Vec<Seen>>>) {
    let (own, log) = (Arc::<OnceLock<_>>::default(), Arc::<Mutex<_>>::default());
    let witness = |name| {
        let (table, log) = (Arc::clone(&own), Arc::clone(&log));
        OwnedRef::new(Witness { name, at: base + 1, table, log })
    };
    let filler = witness(0);
    let items = (0..base).map(|fd| (fd, filler.clone(), NONE));
    let table = Options::new().on_close(see_flush).restore(items).unwrap();
    table.insert(witness(1), NONE).unwrap();
    table.insert(witness(2), NONE).unwrap();
    let table = Arc::new(table);
    own.set(Arc::downgrade(&table)).unwrap();
    drop(filler);
    log.lock().unwrap().clear();
    (table, log)
}

#[test]
fn close_frees_the_number_then_flushes_then_drops() {
    for base in BASES {
        let (table, log) = witnessed(base);
        // The hook's error is reported, and the fd is closed all the same.
        assert_eq!(table.close(base + 1), Err(CloseError::Flush(Errno::new(102))));
        let lowest = Fd::try_from(base + 1).unwrap();
        let seen = ["flush", "drop"].map(|what| Seen { what, of: 2, found: None, lowest });
        assert_eq!(*log.lock().unwrap(), seen);
        // Nothing is flushed that was not open.
        assert_eq!(table.close(base + 1), Err(CloseError::BadFd));
        assert_eq!(log.lock().unwrap().len(), 2);
    }
}

#[test]
fn dup2_and_renumber_flush_and_drop_the_victim_after_the_swap() {
    for base in BASES {
        let (table, log) = witnessed(base);
        let duplicated =
            Seen { what: "flush", of: 2, found: Some(1), lowest: Fd::try_from(base + 2).unwrap() };
        // The hook's error is ignored.
        assert_eq!(table.dup2(base, base + 1).unwrap(), base + 1);
        let dropped = Seen { what: "drop", ..duplicated };
        assert_eq!(*log.lock().unwrap(), [duplicated, dropped]);

        let (table, log) = witnessed(base);
        table.renumber(base, base + 1).unwrap();
        let lowest = Fd::try_from(base).unwrap();
        let seen = ["flush", "drop"].map(|what| Seen { what, of: 2, found: Some(1), lowest });
        assert_eq!(*log.lock().unwrap(), seen);
    }
}

#[test]
fn close_flushes_once_per_fd_and_drops_once_per_file() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), NONE).unwrap();
        table.dup(base).unwrap();
        let handle = table.get(base).unwrap();
        let live = ledger.live();
        table.close(base).unwrap();
        assert_eq!((ledger.flushed(), ledger.live()), (1, live));
        table.close(base + 1).unwrap();
        assert_eq!((ledger.flushed(), ledger.live()), (2, live));
        drop(handle);
        assert_eq!((ledger.flushed(), ledger.live()), (2, live - 1));
        assert_eq!(table.close(base), Err(CloseError::BadFd));
        assert_eq!(table.close(base).unwrap_err().errno(), Errno::EBADF);
        assert_eq!(ledger.flushed(), 2);
    });
}

#[test]
fn the_hook_is_told_the_identity_of_the_table() {
    fn note(ids: &Mutex<Vec<TableId>>, id: TableId) -> Result<(), Errno> {
        ids.lock().unwrap().push(id);
        Ok(())
    }

    let parent = Options::<Mutex<Vec<TableId>>>::new().on_close(note).build();
    let file = OwnedRef::new(Mutex::default());
    parent.insert(file.clone(), NONE).unwrap();
    let child = parent.fork().unwrap();
    let (parent_id, child_id) = (parent.id(), child.id());
    assert_ne!(parent_id, child_id);
    assert_ne!(parent_id.get(), child_id.get());
    parent.close(0).unwrap();
    drop(child);
    assert_eq!(*file.lock().unwrap(), [parent_id, child_id]);
}

// Flags

#[test]
fn flags_belong_to_the_number() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), CLOEXEC).unwrap();
        table.dup(base).unwrap();
        for flags in [NONE, CLOFORK, CLOEXEC | CLOFORK, CLOEXEC, NONE] {
            table.set_flags(base, flags).unwrap();
            assert_eq!((table.flags(base), table.flags(base + 1)), (Ok(flags), Ok(NONE)));
        }
        table.set_flags(base + 1, CLOFORK).unwrap();
        let open = [(base, 1, NONE), (base + 1, 1, CLOFORK)];
        assert_eq!(listing(&table, base), open);
        // They go with the fd.
        table.close(base + 1).unwrap();
        assert_eq!(table.insert(ledger.file(2), NONE).unwrap(), base + 1);
        assert_eq!(table.flags(base + 1), Ok(NONE));
    });
}

#[test]
fn flags_of_what_is_not_open_are_ebadf() {
    at_each_base(|ledger, table, base| {
        let reserved = table.reserve().unwrap();
        for fd in [i64::from(reserved.fd()), (base + 1).into(), table.max().into(), -1] {
            assert_eq!(table.flags(fd), Err(BadFd));
            assert_eq!(table.set_flags(fd, CLOEXEC), Err(BadFd));
        }
        // Nor does it show later.
        let fd = reserved.install(ledger.file(1), NONE);
        assert_eq!(table.flags(fd), Ok(NONE));
        assert_eq!(table.insert(ledger.file(1), NONE).unwrap(), base + 1);
        assert_eq!(table.flags(base + 1), Ok(NONE));
    });
}

// Close_range

/// Every second number from `base` on, up to `base + 200`; every third of these with CLOEXEC. The
/// file's name is the number.
fn for_ranges(ledger: &Arc<Ledger>, table: &FdTable<File>, base: u32) {
    for fd in (base..base + 200).step_by(2) {
        let flags = if fd % 3 == 0 { CLOEXEC } else { CLOFORK };
        assert!(table.replace(fd, ledger.file(fd), flags).unwrap().is_none());
    }
}

#[test]
fn close_range_does_what_a_filter_does() {
    let all = CloseRange::CLOEXEC | CloseRange::EXCEPT | CloseRange::CLOEXEC_ONLY;
    let hows = (0..).map_while(|i| all.iter().nth(i)).collect::<Vec<_>>();
    for base in [0, 61, 1000] {
        let ends = [0, 1, base, base + 1, base + 63, base + 64, base + 150, base + 199, base + 300];
        let mut ranges = Vec::new();
        for (i, &first) in ends.iter().enumerate() {
            ranges.extend(ends[i..].iter().map(|&last| (first.min(last), first.max(last))));
            ranges.push((first, u32::MAX));
        }
        ranges.push((u32::MAX, u32::MAX));
        for (first, last) in ranges {
            for subset in 0..1 << hows.len() {
                let chosen = hows.iter().enumerate().filter(|(i, _)| subset >> i & 1 == 1);
                let how: CloseRange = chosen.map(|(_, how)| *how).collect();
                let ledger = Ledger::new();
                let table = filled(&ledger, base);
                for_ranges(&ledger, &table, base);

                let before = listing(&table, 0);
                let mut expected = Vec::new();
                for &(fd, name, flags) in &before {
                    let inside = (first..=last).contains(&fd) != how.contains(CloseRange::EXCEPT);
                    let only = !how.contains(CloseRange::CLOEXEC_ONLY) || flags.contains(CLOEXEC);
                    if !(inside && only) {
                        expected.push((fd, name, flags));
                    } else if how.contains(CloseRange::CLOEXEC) {
                        expected.push((fd, name, flags | CLOEXEC));
                    }
                }
                table.close_range(first, last, how).unwrap();
                let after = listing(&table, 0);
                assert_eq!(after, expected, "{first} ..= {last}, {how:?}");
                assert_eq!(ledger.flushed(), before.len() - after.len());
                assert_eq!(table.len(), after.len());
            }
        }
    }
}

#[test]
fn close_range_closes_in_ascending_order() {
    fn note(file: &(u32, Arc<Mutex<Vec<u32>>>), _: TableId) -> Result<(), Errno> {
        file.1.lock().unwrap().push(file.0);
        // Its error is nobody's.
        Err(Errno::EIO)
    }

    let log = Arc::<Mutex<Vec<u32>>>::default();
    let table = Options::new().on_close(note).build();
    for fd in (0..300).chain([5000]) {
        table.replace(fd, (fd, Arc::clone(&log)), NONE).unwrap();
    }
    table.close_range(3, u32::MAX, CloseRange::EXCEPT).unwrap();
    table.close_range(10, 4000, CLOSE).unwrap();
    table.close_range(0, u32::MAX, CLOSE).unwrap();
    let order: Vec<u32> = (0..3).chain(10..300).chain(3..10).chain([5000]).collect();
    assert_eq!(*log.lock().unwrap(), order);
}

#[test]
fn close_range_errors_change_nothing() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), NONE).unwrap();
        let invalid = Err(CloseRangeError::InvalidArgument);
        for how in [CLOSE, CloseRange::CLOEXEC, CloseRange::EXCEPT, CloseRange::CLOEXEC_ONLY] {
            assert_eq!(table.close_range(base + 1, base, how), invalid);
            assert_eq!(table.close_range(u32::MAX, 0, how), invalid);
        }
        for bits in [1, 8, 1 << 15, 1 << 18, 1 << 31, u32::MAX, 4 | 1] {
            let unknown = CloseRange::from_bits_retain(bits);
            assert_eq!(table.close_range(0, u32::MAX, unknown), invalid);
            assert_eq!(table.close_range(1, 0, unknown), invalid);
        }
        // A bare table has no other to leave it to.
        for how in [CloseRange::UNSHARE, CloseRange::UNSHARE | CloseRange::CLOEXEC] {
            assert_eq!(table.close_range(0, u32::MAX, how), invalid);
        }
        assert_eq!(listing(&table, base), [(base, 1, NONE)]);

        let mut files = Files::from(table);
        let sharer = files.share();
        for bits in [1, 3, 2 | 1 << 18] {
            let unknown = CloseRange::from_bits_retain(bits);
            assert_eq!(files.close_range(0, u32::MAX, unknown), invalid);
        }
        assert_eq!(files.close_range(base + 1, base, CloseRange::UNSHARE), invalid);
        assert!(files.is_shared() && files.id() == sharer.id());
        assert_eq!(listing(&files, base), [(base, 1, NONE)]);
    });
}

#[test]
fn close_range_cloexec_sticks_to_a_reserved_number() {
    at_each_base(|ledger, table, base| {
        let [a, b, c, d] = table.reserve_many().unwrap();
        table.close_range(base, base + 1, CloseRange::CLOEXEC).unwrap();
        table.close_range(base + 2, base + 2, CLOSE).unwrap();
        // Its file has it as well as those it was given.
        assert_eq!(table.flags(a.install(ledger.file(1), CLOFORK)), Ok(CLOEXEC | CLOFORK));
        // It goes with the reservation.
        drop(b);
        let b = table.reserve().unwrap();
        assert_eq!(b.fd(), base + 1);
        assert_eq!(table.flags(b.install(ledger.file(2), NONE)), Ok(NONE));
        assert_eq!(table.flags(c.install(ledger.file(3), NONE)), Ok(NONE));
        // Twice is once, with EXCEPT too; and it can be taken away once the fd is open.
        table.close_range(0, base + 2, CloseRange::CLOEXEC | CloseRange::EXCEPT).unwrap();
        table.close_range(base + 3, base + 3, CloseRange::CLOEXEC).unwrap();
        let d = d.install(ledger.file(4), NONE);
        assert_eq!(table.flags(d), Ok(CLOEXEC));
        table.set_flags(d, NONE).unwrap();
        assert_eq!(table.flags(d), Ok(NONE));
        // Nor does a free number keep it.
        table.close_range(0, u32::MAX, CloseRange::CLOEXEC).unwrap();
        assert_eq!(table.insert(ledger.file(5), NONE).unwrap(), base + 4);
        assert_eq!(table.flags(base + 4), Ok(NONE));
    });
}

#[test]
fn close_range_cloexec_only_leaves_a_reserved_number_as_it_is() {
    at_each_base(|ledger, table, base| {
        let reserved = table.reserve().unwrap();
        let how = CloseRange::CLOEXEC | CloseRange::CLOEXEC_ONLY;
        table.close_range(0, u32::MAX, how).unwrap();
        let fd = reserved.install(ledger.file(1), NONE);
        assert!(fd == base && table.flags(fd) == Ok(NONE));
    });
}

// What a reserved number is to each operation

#[test]
fn reserved_is_not_open_to_any_operation_on_it() {
    at_each_base(|ledger, mut table, base| {
        let fd = {
            let reservation = table.reserve().unwrap();
            let fd = reservation.fd();
            std::mem::forget(reservation);
            fd
        };
        assert_eq!(table.insert(ledger.file(1), NONE).unwrap(), base + 1);
        assert_eq!(table.get(fd).err(), Some(BadFd));
        assert_eq!(table.get_owned(fd).err(), Some(BadFd));
        assert_eq!(table.borrow(fd).err(), Some(BadFd));
        assert!(!table.contains(fd));
        assert_eq!(table.flags(fd), Err(BadFd));
        assert_eq!(table.set_flags(fd, CLOEXEC), Err(BadFd));
        assert_eq!(table.remove(fd).err(), Some(BadFd));
        assert_eq!(table.close(fd), Err(CloseError::BadFd));
        assert_eq!(table.dup(fd), Err(DupError::BadFd));
        assert_eq!(table.dup_from(fd, 0, NONE), Err(DupError::BadFd));
        assert_eq!(table.dup2(fd, base + 1), Err(ReplaceError::BadFd));
        assert_eq!(table.dup3(fd, base + 1, CLOEXEC), Err(ReplaceError::BadFd));
        assert_eq!(table.renumber(fd, base + 1), Err(BadFd));
        assert_eq!(table.dup2(base + 1, fd), Err(ReplaceError::Busy));
        assert_eq!(table.dup3(base + 1, fd, CLOEXEC), Err(ReplaceError::Busy));
        let rejected = table.replace(fd, ledger.file(2), NONE).unwrap_err();
        assert_eq!((rejected.error, rejected.file.name()), (ReplaceError::Busy, 2));
        drop(rejected);
        assert_eq!(table.renumber(base + 1, fd), Err(BadFd));
        assert_eq!(table.reserve_in(base..base + 1).err(), Some(ReserveError::LimitReached));
        assert_eq!(listing(&table, base), [(base + 1, 1, NONE)]);
        assert_eq!((table.len(), table.highest_open()), (base as usize + 1, Some(succ(fd))));
        assert_eq!(ledger.flushed(), 0);
    });
}

fn succ(fd: Fd) -> Fd {
    Fd::try_from(fd.get() + 1).unwrap()
}

#[test]
fn reserved_stays_reserved_through_everything_that_closes() {
    at_each_base(|ledger, table, base| {
        let reserved = table.reserve().unwrap();
        assert_eq!(table.insert(ledger.file(1), CLOEXEC).unwrap(), base + 1);
        table.close_range(0, u32::MAX, CloseRange::CLOEXEC).unwrap();
        table.close_on_exec();
        table.close_range(0, u32::MAX, CLOSE).unwrap();
        table.close_range(7, 7, CloseRange::EXCEPT).unwrap();
        table.clear();
        assert!(table.is_empty());
        assert_eq!((table.highest_open(), table.iter().count()), (None, 0));
        // With nobody else in the table it is still not handed out, and its owner gets it.
        let numbers = base..base + 2;
        let other = table.reserve_in(numbers).unwrap();
        assert_eq!(other.fd(), base + 1);
        assert_eq!(reserved.install(ledger.file(2), NONE), base);
        assert_eq!(listing(&table, 0), [(base, 2, CLOEXEC)]);
    });
}

#[test]
fn reserved_is_free_in_a_fork_and_independent_of_it() {
    at_each_base(|ledger, table, base| {
        let reserved = table.reserve().unwrap();
        let other = table.reserve().unwrap();
        table.insert(ledger.file(1), NONE).unwrap();
        table.close_range(base, base, CloseRange::CLOEXEC).unwrap();
        let child = table.fork().unwrap();
        assert_eq!(listing(&child, base), [(base + 2, 1, NONE)]);
        assert_eq!(child.insert(ledger.file(2), NONE).unwrap(), base);
        assert_eq!(child.flags(base), Ok(NONE));
        assert_eq!(child.dup2(base, base + 1).unwrap(), base + 1);
        reserved.install(ledger.file(3), NONE);
        drop(other);
        let open = [(base, 2, NONE), (base + 1, 2, NONE), (base + 2, 1, NONE)];
        assert_eq!(listing(&child, base), open);
        assert_eq!(listing(&table, base), [(base, 3, CLOEXEC), (base + 2, 1, NONE)]);
        drop(table);
        assert_eq!(listing(&child, base), open);
    });
}

#[test]
fn reserved_by_an_owned_reservation_shares_the_table() {
    let ledger = Ledger::new();
    let files = Files::from(Options::new().on_close(flush).build());
    files.insert(ledger.file(0), NONE).unwrap();
    let id = files.id();
    let [a, b, c] = [(); 3].map(|()| files.reserve_owned(u64::MAX).unwrap());
    assert!(a.fd() == 1 && b.fd() == 2 && c.fd() == 3);
    assert!(files.is_shared());
    let full = files.reserve_owned(4).map(|reservation| reservation.fd());
    assert_eq!(full, Err(ReserveError::LimitReached));
    assert_eq!(a.install(ledger.file(1), CLOEXEC), 1);
    drop(b);
    assert_eq!(files.insert(ledger.file(2), NONE).unwrap(), 2);
    // The wait goes on while the task is gone, and ends like it.
    drop(files);
    assert_eq!((ledger.live(), ledger.flushed()), (3, 0));
    assert_eq!(c.install(ledger.file(3), NONE), 3);
    assert_eq!((ledger.live(), ledger.flushed()), (0, 4));

    // Without others the table is not shared any more; exec then keeps it.
    let mut files = Files::new();
    drop(files.reserve_owned(1).unwrap());
    assert!(!files.is_shared());
    files.insert(ledger.file(4), NONE).unwrap();
    assert_ne!(files.id(), id);
    let id = files.id();
    files.exec().unwrap();
    assert_eq!(files.id(), id);
}

// Fork, exec, unshare

#[test]
fn fork_copies_numbers_files_and_flags() {
    at_each_base(|ledger, table, base| {
        table.set_limit(70_000);
        table.set_max(80_000);
        table.insert(ledger.file(1), CLOEXEC).unwrap();
        table.insert_from(base + 3, ledger.file(2), NONE).unwrap();
        table.insert_from(base + 90, ledger.file(3), CLOFORK).unwrap();
        table.insert_from(base + 91, ledger.file(4), CLOFORK | CLOEXEC).unwrap();
        let child = table.fork().unwrap();
        assert_eq!(listing(&child, base), [(base, 1, CLOEXEC), (base + 3, 2, NONE)]);
        assert_eq!((child.len(), child.highest_open()), (base as usize + 2, fd(base + 3)));
        for fd in 0..base + 1 {
            let files = [&table, &child].map(|table| table.get_owned(fd).unwrap());
            assert!(OwnedRef::ptr_eq(&files[0], &files[1]));
        }
        assert_eq!((child.limit(), child.max()), (table.limit(), table.max()));
        assert_ne!(child.id(), table.id());
        // What the child opens is what a table with these numbers opens.
        assert_eq!(child.insert(ledger.file(5), NONE).unwrap(), base + 1);
        assert_eq!(child.insert_from(base + 90, ledger.file(5), NONE).unwrap(), base + 90);
        // Each goes its own way, and both flush.
        table.close(base).unwrap();
        assert_eq!((name(&child, base), ledger.flushed()), (1, 1));
        child.close(base).unwrap();
        assert_eq!(ledger.flushed(), 2);
        drop(table);
        assert_eq!(name(&child, base + 3), 2);
    });
}

fn fd(number: u32) -> Option<Fd> {
    Some(Fd::try_from(number).unwrap())
}

#[test]
fn fork_is_sized_by_what_is_open() {
    let ledger = Ledger::new();
    let table = filled(&ledger, 20_000);
    assert!(table.capacity() >= 20_000);
    table.close_range(3, u32::MAX, CLOSE).unwrap();
    let child = table.fork().unwrap();
    assert_eq!((child.len(), child.capacity()), (3, FdTable::<File>::new().capacity()));
    assert_eq!(child.bytes(), FdTable::<File>::new().bytes());
    assert_eq!(child.high_water(), fd(2));
}

/// A reserved number is free in the copy, which therefore needs no room for it.
#[test]
fn fork_is_not_sized_by_what_is_reserved() {
    let ledger = Ledger::new();
    let table = filled(&ledger, 3);
    let _reserved = table.reserve_in(15_000..16_000).unwrap();
    let child = table.fork().unwrap();
    assert_eq!((child.capacity(), child.high_water()), (64, fd(2)));
    assert_eq!(child.bytes(), FdTable::<File>::new().bytes());
}

#[test]
fn exec_closes_what_is_cloexec_and_unshares_first() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), NONE).unwrap();
        table.insert(ledger.file(2), CLOEXEC).unwrap();
        table.insert(ledger.file(3), NONE).unwrap();
        table.insert_from(base + 70, ledger.file(4), CLOFORK | CLOEXEC).unwrap();
        let mut files = Files::from(table);
        let thread = files.share();
        let (id, live) = (files.id(), ledger.live());
        let kept = [(base, 1, NONE), (base + 2, 3, NONE)];
        files.exec().unwrap();
        assert_ne!(files.id(), id);
        assert!(!files.is_shared() && !thread.is_shared());
        assert_eq!(listing(&files, base), kept);
        // The others see nothing of it.
        assert_eq!((thread.id(), thread.len(), ledger.live()), (id, base as usize + 4, live));
        drop(thread);
        // Not shared: the same table.
        let id = files.id();
        files.set_flags(base, CLOEXEC).unwrap();
        files.exec().unwrap();
        assert_eq!(files.id(), id);
        assert_eq!(listing(&files, base), kept[1..]);
    });
}

#[test]
fn exec_closes_in_ascending_order_and_flushes_each_fd() {
    at_each_base(|ledger, table, base| {
        let file = OwnedRef::new(ledger.file(1));
        for fd in [base, base + 1, base + 65] {
            table.replace(fd, file.clone(), CLOEXEC).unwrap();
        }
        drop(file);
        let live = ledger.live();
        table.close_on_exec();
        assert_eq!((ledger.flushed(), ledger.live()), (3, live - 1));
        assert_eq!(listing(&table, base), []);
    });
}

#[test]
fn unshare_copies_only_a_shared_table() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), CLOEXEC).unwrap();
        let mut files = Files::from(table);
        let id = files.id();
        files.unshare().unwrap();
        assert_eq!(files.id(), id);
        let thread = files.share();
        files.unshare().unwrap();
        assert!(files.id() != id && thread.id() == id);
        assert_eq!(listing(&files, base), [(base, 1, CLOEXEC)]);
        files.close(base).unwrap();
        assert_eq!(name(&thread, base), 1);
    });
}

/// A task that changes to a table of its own is no new process: a flag that keeps an fd from
/// children must not cost the task its fd. Nor must it depend on others who happen to share.
#[test]
fn unshare_keeps_what_is_clofork() {
    let ways: [fn(&mut Files<File>, u32); 3] = [
        |files, _| files.unshare().unwrap(),
        |files, _| files.exec().unwrap(),
        |files, end| files.close_range(end, u32::MAX, CloseRange::UNSHARE).unwrap(),
    ];
    for is_shared in [false, true] {
        for way in ways {
            at_each_base(|ledger, table, base| {
                table.insert(ledger.file(1), CLOFORK).unwrap();
                let mut files = Files::from(table);
                let _thread = is_shared.then(|| files.share());
                way(&mut files, base + 1);
                assert_eq!(listing(&files, base), [(base, 1, CLOFORK)], "shared: {is_shared}");
            });
        }
    }
}

#[test]
fn close_range_unshare_leaves_the_old_table_alone() {
    at_each_base(|ledger, table, base| {
        let expected = |how: CloseRange, (fd, name, flags): (u32, u32, FdFlags)| {
            let inside = (base + 10..=base + 120).contains(&fd) != how.contains(CloseRange::EXCEPT);
            let only = !how.contains(CloseRange::CLOEXEC_ONLY) || flags.contains(CLOEXEC);
            match inside && only {
                false => Some((fd, name, flags)),
                true if how.contains(CloseRange::CLOEXEC) => Some((fd, name, flags | CLOEXEC)),
                true => None,
            }
        };
        for fd in (base..base + 200).step_by(2) {
            let flags = if fd % 3 == 0 { CLOEXEC } else { NONE };
            table.replace(fd, ledger.file(fd), flags).unwrap();
        }
        let mut files = Files::from(table);
        let before = listing(&files, 0);
        let hows = [CLOSE, CloseRange::CLOEXEC, CloseRange::EXCEPT, CloseRange::CLOEXEC_ONLY];
        for how in hows.into_iter().chain([CloseRange::EXCEPT | CloseRange::CLOEXEC_ONLY]) {
            let (thread, flushed) = (files.share(), ledger.flushed());
            files.close_range(base + 10, base + 120, how | CloseRange::UNSHARE).unwrap();
            assert_ne!(files.id(), thread.id());
            assert_eq!(listing(&thread, 0), before);
            let own: Vec<_> = before.iter().filter_map(|&entry| expected(how, entry)).collect();
            assert_eq!(listing(&files, 0), own, "{how:?}");
            assert_eq!(files.len(), own.len());
            // Nothing was closed, only not copied. The first hole is the next number.
            assert_eq!(ledger.flushed(), flushed);
            let hole = (0..).find(|fd| own.iter().all(|(open, ..)| open != fd)).unwrap();
            assert_eq!(files.reserve().unwrap().fd(), hole as i32);
            // The copy has no reference to what it left out, so the old table is the last holder.
            let own_files = before.iter().filter(|(fd, ..)| *fd >= base);
            let left_out = own_files.copied().find(|&entry| expected(how, entry).is_none());
            if let Some((fd, name, flags)) = left_out {
                let file = thread.remove(fd).unwrap().try_into_inner().unwrap();
                assert_eq!(file.name(), name);
                thread.replace(fd, file, flags).unwrap();
            }
            files = thread;
            // That was the end of the copy, which has flushed what it had.
            assert_eq!(ledger.flushed(), flushed + own.len());
        }
    });
}

#[test]
fn close_range_unshare_of_an_unshared_table_closes() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), NONE).unwrap();
        table.insert(ledger.file(2), NONE).unwrap();
        let mut files = Files::from(table);
        let (id, live) = (files.id(), ledger.live());
        files.close_range(base + 1, u32::MAX, CloseRange::UNSHARE).unwrap();
        assert_eq!((files.id(), ledger.flushed(), ledger.live()), (id, 1, live - 1));
        assert_eq!(listing(&files, base), [(base, 1, NONE)]);
    });
}

#[test]
fn sharers_see_one_table_and_the_last_one_closes_it() {
    let ledger = Ledger::new();
    let mut files = Files::from(filled(&ledger, 3));
    assert!(!files.is_shared());
    let thread = files.share();
    assert!(files.is_shared() && thread.is_shared());
    let fd = thread.insert(ledger.file(1), NONE).unwrap();
    assert_eq!(files.borrow(fd).unwrap().name(), 1);
    drop(thread);
    assert!(!files.is_shared());
    assert_eq!(files.borrow(fd).unwrap().name(), 1);
    assert_eq!(files.borrow(fd).unwrap().into_owned().name(), 1);
    assert_eq!(files.borrow(9).err(), Some(BadFd));
    assert_eq!(ledger.flushed(), 0);
    let child = files.fork().unwrap();
    assert!(!files.is_shared() && !child.is_shared());
    drop(files);
    assert_eq!((ledger.flushed(), ledger.live()), (4, 2));
    drop(child);
    assert_eq!((ledger.flushed(), ledger.live()), (8, 0));
}

#[test]
fn observers_follow_the_task() {
    let ledger = Ledger::new();
    let mut files = Files::from(filled(&ledger, 1));
    let thread = files.share();
    let proc = files.observe();
    let other = proc.clone();
    assert!(proc.is_alive());
    files.insert(ledger.file(1), CLOEXEC).unwrap();
    assert_eq!(proc.list(), [(Fd::STDIN, NONE), (Fd::STDOUT, CLOEXEC)]);
    assert_eq!(proc.flags(1), Ok(CLOEXEC));
    assert_eq!((proc.flags(2), proc.get(-1).err()), (Err(BadFd), Some(BadFd)));
    files.exec().unwrap();
    assert_eq!(proc.list(), [(Fd::STDIN, NONE)]);
    thread.insert(ledger.file(2), NONE).unwrap();
    assert_eq!(proc.get(2).err(), Some(BadFd));
    let handle = other.get(0).unwrap();
    drop((files, thread));
    assert!(!proc.is_alive() && !other.is_alive());
    assert_eq!((proc.get(0).err(), proc.flags(0)), (Some(BadFd), Err(BadFd)));
    assert_eq!(proc.list(), []);
    // The handle kept its file alive, the observers none.
    assert_eq!(ledger.live(), 1);
    assert_eq!(handle.name(), 0);
}

// Iteration

#[test]
fn iteration_shows_each_open_fd_once_in_ascending_order() {
    at_each_base(|ledger, table, base| {
        for fd in [base + 130, base, base + 64, base + 2] {
            table.replace(fd, ledger.file(fd), CLOFORK).unwrap();
        }
        let reserved = table.reserve().unwrap();
        let shown: Vec<_> = table.iter().map(|entry| entry.fd.get()).collect();
        let expected: Vec<_> = (0..base).chain([base, base + 2, base + 64, base + 130]).collect();
        assert_eq!(shown, expected);
        let mut iter = (&table).into_iter();
        assert_eq!(iter.by_ref().count(), expected.len());
        assert!(iter.next().is_none() && iter.next().is_none());
        // An entry keeps its file alive.
        let last = table.iter().last().unwrap();
        table.clear();
        assert_eq!(
            (last.fd, last.file.name(), last.flags),
            (fd_of(base + 130), base + 130, CLOFORK)
        );
        drop(reserved);
    });
}

fn fd_of(number: u32) -> Fd {
    Fd::try_from(number).unwrap()
}

#[test]
fn iteration_goes_on_over_what_changes_meanwhile() {
    at_each_base(|ledger, table, base| {
        for fd in base..base + 4 {
            table.insert(ledger.file(fd), NONE).unwrap();
        }
        let mut iter = table.iter().skip(base as usize);
        assert_eq!(iter.next().unwrap().fd, fd_of(base));
        table.close(base + 1).unwrap();
        table.dup2(base, base + 2).unwrap();
        table.insert_from(base + 500, ledger.file(9), NONE).unwrap();
        let rest: Vec<_> = iter.map(|entry| (entry.fd.get(), entry.file.name())).collect();
        assert_eq!(rest, [(base + 2, base), (base + 3, base + 3), (base + 500, 9)]);
    });
}

// Restore

#[test]
fn restore_gives_the_answers_of_a_table_that_got_there() {
    for base in BASES {
        let ledger = Ledger::new();
        let items = [(base + 70, 1, CLOEXEC), (base + 2, 2, NONE), (base, 3, CLOFORK)];
        let lowest = OwnedRef::new(ledger.file(0));
        let all = (0..base)
            .map(|fd| (fd, lowest.clone(), NONE))
            .chain(items.map(|(fd, name, flags)| (fd, ledger.file(name).into(), flags)));
        let restored = Options::new().limit(5).on_close(flush).restore(all).unwrap();
        drop(lowest);
        restored.set_limit(u64::MAX);

        let operated = filled(&ledger, base);
        for (fd, name, flags) in items {
            operated.replace(fd, ledger.file(name), flags).unwrap();
        }
        for table in [&restored, &operated] {
            let open = [(base, 3, CLOFORK), (base + 2, 2, NONE), (base + 70, 1, CLOEXEC)];
            assert_eq!(listing(table, base), open);
            assert_eq!(table.len(), base as usize + 3);
            assert_eq!((table.highest_open(), table.high_water()), (fd(base + 70), fd(base + 70)));
            for expected in (base + 1..base + 72).filter(|fd| ![base + 2, base + 70].contains(fd)) {
                assert_eq!(table.insert(ledger.file(9), NONE).unwrap(), expected);
            }
        }
        assert_eq!(restored.capacity(), operated.capacity());
        assert_eq!(restored.bytes(), operated.bytes());
        assert_eq!(ledger.flushed(), 0);
        drop((restored, operated));
        assert_eq!((ledger.live(), ledger.flushed()), (0, 2 * (base as usize + 72)));
    }
}

#[test]
fn restore_errors_drop_all_files_and_flush_none() {
    for base in BASES {
        let restore = |fds: &[i64]| {
            let ledger = Ledger::new();
            let items = fds.iter().map(|&fd| (fd, ledger.file(0), NONE));
            let result = Options::new().max(8192).on_close(flush).restore(items).map(drop);
            assert_eq!(ledger.live(), 0);
            assert_eq!(ledger.flushed(), if result.is_ok() { fds.len() } else { 0 });
            result
        };
        let base = i64::from(base);
        assert_eq!(restore(&[base, base + 1, base]), Err(RestoreError::Duplicate));
        assert_eq!(restore(&[base + 66, base + 66]), Err(RestoreError::Duplicate));
        assert_eq!(restore(&[base, 8192]), Err(RestoreError::BadFd));
        assert_eq!(restore(&[base, -1]), Err(RestoreError::BadFd));
        assert_eq!(restore(&[base, i64::MAX]), Err(RestoreError::BadFd));
        assert_eq!(restore(&[base, base + (1 << 32)]), Err(RestoreError::BadFd));
        assert_eq!(restore(&[base + 2, 8191]), Ok(()));
        assert_eq!(restore(&[]), Ok(()));
    }
}

// The end of a table

#[test]
fn drop_and_clear_close_from_the_highest_down() {
    struct Noted(u32, Arc<Mutex<Vec<(char, u32)>>>);

    impl Drop for Noted {
        fn drop(&mut self) {
            self.1.lock().unwrap().push(('d', self.0));
        }
    }

    fn note(file: &Noted, _: TableId) -> Result<(), Errno> {
        file.1.lock().unwrap().push(('f', file.0));
        Err(Errno::ENOSPC)
    }

    for clear in [false, true] {
        let log = Arc::<Mutex<Vec<_>>>::default();
        let table = Options::new().on_close(note).build();
        let fds = [0, 1, 5, 63, 64, 65, 127, 128, 500, 4095, 4096, 70_000];
        for fd in fds {
            table.replace(fd, Noted(fd, Arc::clone(&log)), NONE).unwrap();
        }
        // Its file is at 0 as well: flushed twice, dropped at the last.
        table.dup2(0, 3000).unwrap();
        if clear {
            table.clear();
        } else {
            drop(table);
        }
        let mut expected = Vec::new();
        for fd in fds.into_iter().rev() {
            if fd == 500 {
                expected.push(('f', 0));
            }
            expected.extend([('f', fd), ('d', fd)]);
        }
        // 3000 lies between 4095 and 500.
        assert_eq!(*log.lock().unwrap(), expected);
    }
}

#[test]
fn clear_leaves_a_table_in_use() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), CLOEXEC).unwrap();
        table.clear();
        assert_eq!((table.len(), ledger.live()), (0, 0));
        assert_eq!(ledger.flushed(), base as usize + 1);
        for fd in 0..base + 2 {
            assert_eq!(table.insert(ledger.file(2), NONE).unwrap(), fd);
        }
        assert_eq!(table.flags(base), Ok(NONE));
    });
}

// Limits

#[test]
fn limits_bound_what_is_handed_out_not_what_is_open() {
    at_each_base(|ledger, table, base| {
        let limit = u64::from(base) + 1;
        table.insert(ledger.file(1), NONE).unwrap();
        table.insert(ledger.file(2), NONE).unwrap();
        table.set_limit(limit);
        assert_eq!((table.limit(), table.limited(7).limit()), (limit, 7));
        assert_eq!(table.insert(ledger.file(3), NONE).unwrap_err().errno(), Errno::EMFILE);
        assert_eq!(table.reserve().err(), Some(ReserveError::LimitReached));
        assert_eq!(table.dup(base + 1), Err(DupError::LimitReached));
        assert_eq!(table.dup2(base, base + 1), Err(ReplaceError::BadFd));
        assert_eq!(table.dup2(base + 1, base).unwrap(), base);
        table.set_flags(base + 1, CLOEXEC).unwrap();
        assert_eq!(name(&table, base + 1), 2);
        // Another caller has another limit.
        let other = table.limited(limit + 2);
        assert_eq!(other.insert(ledger.file(4), NONE).unwrap(), base + 2);
        assert!(std::ptr::eq(other.table(), &table));
        table.close(base + 2).unwrap();
        table.close(base + 1).unwrap();
        assert_eq!(table.reserve().err(), Some(ReserveError::LimitReached));
        table.set_limit(u64::MAX);
        assert_eq!(table.insert(ledger.file(5), NONE).unwrap(), base + 1);
    });
}

#[test]
fn max_is_a_multiple_of_64_within_its_bounds() {
    for (asked, max) in [
        (0, 64),
        (1, 64),
        (64, 64),
        (127, 64),
        (128, 128),
        (1 << 20, 1 << 20),
        (i32::MAX as u64, i32::MAX as u32 & !63),
        (u64::MAX, i32::MAX as u32 & !63),
    ] {
        let table = Options::<u8>::new().max(asked).build();
        assert_eq!((table.max(), FdTable::<u8>::new().max()), (max, 1 << 20));
        assert!(table.capacity() <= max);
        let other = FdTable::<u8>::new();
        other.set_max(asked);
        assert_eq!(other.max(), max);
    }
}

#[test]
fn a_lowered_max_keeps_what_is_open_above_it() {
    let ledger = Ledger::new();
    let table = filled(&ledger, 200);
    table.set_max(130);
    assert_eq!(table.capacity(), 128);
    assert_eq!(name(&table, 199), 0);
    assert_eq!(table.dup2(0, 199), Err(ReplaceError::BadFd));
    assert_eq!(table.dup2(199, 127).unwrap(), 127);
    assert_eq!(table.insert(ledger.file(1), NONE).unwrap_err().errno(), Errno::EMFILE);
    table.close(199).unwrap();
    assert_eq!(table.insert(ledger.file(1), NONE).unwrap_err().errno(), Errno::EMFILE);
    assert_eq!(table.fork().unwrap().len(), 199);
    assert_eq!((table.len(), table.highest_open()), (199, fd(198)));
    table.set_max(1000);
    assert_eq!(table.insert(ledger.file(1), NONE).unwrap(), 199);
}

// Statistics, Debug

#[test]
fn statistics_count_what_is_open() {
    at_each_base(|ledger, table, base| {
        let len = |table: &FdTable<File>| {
            assert_eq!(table.iter().count(), table.len());
            assert_eq!(table.is_empty(), table.iter().next().is_none());
            let highest = table.iter().last().map(|entry| entry.fd);
            assert_eq!(table.highest_open(), highest);
            assert_eq!(table.capacity() % 64, 0);
            assert!(highest < fd(table.capacity()));
            table.len() - base as usize
        };
        assert_eq!(len(&table), 0);
        table.insert(ledger.file(1), NONE).unwrap();
        table.dup(base).unwrap();
        assert_eq!(len(&table), 2);
        let reserved = table.reserve().unwrap();
        assert_eq!(len(&table), 2);
        table.dup2(base, base + 70).unwrap();
        assert_eq!(len(&table), 3);
        table.dup2(base, base + 70).unwrap();
        assert_eq!(len(&table), 3);
        assert!(table.replace(base + 3, ledger.file(2), NONE).unwrap().is_none());
        assert!(table.replace(base + 3, ledger.file(2), NONE).unwrap().is_some());
        assert_eq!(len(&table), 4);
        table.renumber(base + 3, base + 70).unwrap();
        assert_eq!(len(&table), 3);
        let _ = table.remove(base + 1).unwrap();
        assert_eq!(len(&table), 2);
        reserved.install(ledger.file(3), CLOFORK);
        assert_eq!(len(&table), 3);
        assert_eq!(len(&table.fork().unwrap()), 2);
        table.close_range(base + 2, base + 2, CLOSE).unwrap();
        assert_eq!(len(&table), 2);
        table.set_flags(base + 70, CLOEXEC).unwrap();
        table.close_on_exec();
        assert_eq!(len(&table), 1);
        let rejected = table.limited(0).insert(ledger.file(4), NONE);
        assert!(rejected.is_err());
        drop(table.reserve_many::<3>());
        assert_eq!(len(&table), 1);
        table.close(base).unwrap();
        assert_eq!(len(&table), 0);
        // The mark stays where it was.
        assert_eq!(table.high_water(), fd(base + 70));
    });
}

#[test]
fn high_water_counts_what_was_reserved_and_nothing_that_failed() {
    at_each_base(|ledger, table, base| {
        let mark = base.checked_sub(1).map(fd_of);
        assert_eq!(table.high_water(), mark);
        let small = table.limited((base + 2).into());
        assert!(small.reserve_many::<3>().is_err());
        assert!(small.insert_from(base + 2, ledger.file(1), NONE).is_err());
        assert!(table.dup2(base, base + 5).is_err());
        assert!(table.get(base + 5).is_err());
        table.close_range(0, u32::MAX, CloseRange::CLOEXEC).unwrap();
        assert_eq!(table.high_water(), mark);
        drop(table.reserve_in(base + 3..u32::MAX));
        assert_eq!((table.high_water(), table.highest_open()), (fd(base + 3), mark));
        table.insert(ledger.file(1), NONE).unwrap();
        assert_eq!(table.high_water(), fd(base + 3));
        table.dup2(base, base + 100).unwrap();
        table.clear();
        assert_eq!((table.high_water(), table.highest_open()), (fd(base + 100), None));
    });
}

#[test]
fn reserve_capacity_gives_room_and_no_numbers() {
    let ledger = Ledger::new();
    let table = FdTable::new();
    let empty = table.bytes();
    table.reserve_capacity(0).unwrap();
    table.reserve_capacity(64).unwrap();
    assert_eq!((table.capacity(), table.bytes()), (64, empty));
    table.reserve_capacity(1000).unwrap();
    assert!(table.capacity() >= 1000 && table.capacity().is_multiple_of(64));
    assert_eq!((table.len(), table.high_water(), table.highest_open()), (0, None, None));
    let bytes = table.bytes();
    assert!(bytes > empty);
    table.insert_from(999, ledger.file(1), NONE).unwrap();
    assert_eq!(table.insert(ledger.file(1), NONE).unwrap(), 0);
    assert_eq!(table.bytes(), bytes);

    let small = Options::<File>::new().max(256).build();
    small.reserve_capacity(usize::MAX).unwrap();
    assert_eq!(small.capacity(), 256);
}

#[test]
fn debug_shows_numbers_and_flags_and_never_calls_into_the_file() {
    struct Silent;

    impl std::fmt::Debug for Silent {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("the table has no business here")
        }
    }

    let table = FdTable::new();
    table.insert(Silent, CLOEXEC).unwrap();
    let reserved = table.reserve().unwrap();
    table.insert_from(70, Silent, NONE).unwrap();
    let shown = format!("{table:?}");
    assert_eq!(shown, "{0: FdFlags(CLOEXEC), 70: FdFlags(0x0)}");
    assert_eq!(format!("{reserved:?}"), "Reservation(1)");
    let limited = format!("{:?}", table.limited(3));
    assert!(limited.contains('3'), "{limited}");
    let rejected = table.limited(0).insert(Silent, NONE).unwrap_err();
    assert!(format!("{rejected:?}").contains("LimitReached"));
    assert_eq!(rejected.to_string(), ReserveError::LimitReached.to_string());
    assert!(format!("{:?}", table.iter()).starts_with("Iter"));
    assert!(format!("{:?}", Options::<Silent>::new().limit(77)).contains("77"));
    drop(reserved);

    let files = Files::from(table);
    let proc = files.observe();
    assert!(format!("{files:?}").contains(&shown));
    assert!(format!("{proc:?}").contains("CLOEXEC"));
    let waiting = files.reserve_owned(u64::MAX).unwrap();
    assert!(format!("{waiting:?}").contains('1'));
}

#[test]
fn debug_of_a_handle_is_that_of_the_file() {
    let ledger = Ledger::new();
    let table = filled(&ledger, 1);
    assert_eq!(format!("{:?}", table.get(0).unwrap()), "file 0");
    assert_eq!(format!("{:?}", table.get_owned(0).unwrap()), "file 0");
    let entry = format!("{:?}", table.iter().next().unwrap());
    assert!(entry.contains("fd: 0") && entry.contains("file: file 0"), "{entry}");
    assert_eq!(table.get(0).unwrap().as_ref().name(), 0);
    let owned: OwnedRef<File> = table.get(0).unwrap().into();
    assert_eq!(owned.as_ref().name(), 0);
}

// Errors

#[test]
fn error_numbers_are_those_of_linux() {
    assert_eq!(BadFd.errno().get(), 9);
    assert_eq!(OutOfMemory.errno().get(), 12);
    assert_eq!(ReserveError::LimitReached.errno().get(), 24);
    assert_eq!(ReserveError::OutOfMemory.errno().get(), 12);
    assert_eq!(DupError::BadFd.errno().get(), 9);
    assert_eq!(DupError::MinimumTooLarge.errno().get(), 22);
    assert_eq!(DupError::LimitReached.errno().get(), 24);
    assert_eq!(DupError::OutOfMemory.errno().get(), 12);
    assert_eq!(ReplaceError::BadFd.errno().get(), 9);
    assert_eq!(ReplaceError::InvalidArgument.errno().get(), 22);
    assert_eq!(ReplaceError::Busy.errno().get(), 16);
    assert_eq!(ReplaceError::OutOfMemory.errno().get(), 12);
    assert_eq!(CloseRangeError::InvalidArgument.errno().get(), 22);
    assert_eq!(CloseRangeError::OutOfMemory.errno().get(), 12);
    assert_eq!(RestoreError::BadFd.errno().get(), 9);
    assert_eq!(RestoreError::Duplicate.errno().get(), 22);
    assert_eq!(RestoreError::OutOfMemory.errno().get(), 12);
    assert_eq!(CloseError::BadFd.errno().get(), 9);
    assert_eq!(CloseError::Flush(Errno::EIO).errno().get(), 5);
    assert_eq!((Errno::EAGAIN.get(), Errno::ENFILE.get(), Errno::ENOSPC.get()), (11, 23, 28));
    assert_eq!(Errno::new(9), Errno::EBADF);
}

#[test]
fn errors_convert_along_the_layers() {
    assert_eq!(ReserveError::from(OutOfMemory), ReserveError::OutOfMemory);
    assert_eq!(CloseRangeError::from(OutOfMemory), CloseRangeError::OutOfMemory);
    assert_eq!(DupError::from(BadFd), DupError::BadFd);
    assert_eq!(DupError::from(ReserveError::LimitReached), DupError::LimitReached);
    assert_eq!(DupError::from(ReserveError::OutOfMemory), DupError::OutOfMemory);
    assert_eq!(ReplaceError::from(BadFd), ReplaceError::BadFd);
}

#[test]
fn errors_display_as_lowercase_phrases() {
    let errors: [&dyn Error; 12] = [
        &BadFd,
        &OutOfMemory,
        &ReserveError::LimitReached,
        &DupError::MinimumTooLarge,
        &ReplaceError::Busy,
        &ReplaceError::InvalidArgument,
        &CloseRangeError::InvalidArgument,
        &RestoreError::Duplicate,
        &CloseError::BadFd,
        &CloseError::Flush(Errno::EIO),
        &Errno::EBADF,
        &Errno::new(4095),
    ];
    let mut seen = HashMap::new();
    for error in errors {
        let text = error.to_string();
        assert!(text.starts_with(|first: char| first.is_ascii_lowercase()), "{text}");
        assert!(!text.ends_with('.'), "{text}");
        *seen.entry(text).or_insert(0) += 1;
    }
    assert!(CloseError::Flush(Errno::EIO).to_string().contains(&Errno::EIO.to_string()));
    assert_eq!(format!("{:?} {:?}", Errno::EMFILE, Errno::new(4095)), "EMFILE Errno(4095)");

    let rejected = FdTable::new().limited(0).insert('x', NONE).unwrap_err();
    let source = rejected.source().unwrap().downcast_ref();
    assert_eq!(source, Some(&ReserveError::LimitReached));
}

// Numbers that are none

#[test]
fn numbers_of_all_types_convert_or_are_refused() {
    assert_eq!(Fd::try_from(i32::MAX), Ok(Fd::MAX));
    assert_eq!(Fd::try_from(i32::MAX as u32 + 1), Err(BadFd));
    assert_eq!(Fd::try_from(u32::MAX), Err(BadFd));
    assert_eq!(Fd::try_from(-1_i32), Err(BadFd));
    assert_eq!(Fd::try_from(-1_i64), Err(BadFd));
    assert_eq!(Fd::try_from(1_i64 << 32), Err(BadFd));
    assert_eq!(Fd::try_from(1_u64 << 32), Err(BadFd));
    assert_eq!(Fd::try_from(u64::MAX), Err(BadFd));
    assert_eq!(Fd::try_from(isize::MIN), Err(BadFd));
    assert_eq!(Fd::try_from(usize::MAX), Err(BadFd));
    assert_eq!((Fd::from(7_u8).get(), Fd::from(7_u16).get()), (7, 7));
    let fd = Fd::STDERR;
    assert_eq!((i32::from(fd), u32::from(fd), i64::from(fd)), (2, 2, 2));
    assert_eq!((u64::from(fd), usize::from(fd)), (2, 2));
    assert_eq!((format!("{fd:?}"), format!("{fd:>3}")), ("2".to_string(), "  2".to_string()));
    assert!(fd == 2_u32 && fd == 2_i32 && Fd::MAX != -1 && Fd::STDIN < Fd::STDOUT);
}

/// Every operation, with a number that is not open and not below the limit.
fn refused_everywhere<N: FdLike>(table: &mut FdTable<File>, ledger: &Arc<Ledger>, wild: N) {
    assert_eq!(table.get(wild).err(), Some(BadFd));
    assert_eq!(table.get_owned(wild).err(), Some(BadFd));
    assert_eq!(table.borrow(wild).err(), Some(BadFd));
    assert!(!table.contains(wild));
    assert_eq!(table.flags(wild), Err(BadFd));
    assert_eq!(table.set_flags(wild, CLOEXEC), Err(BadFd));
    assert_eq!(table.remove(wild).err(), Some(BadFd));
    assert_eq!(table.close(wild), Err(CloseError::BadFd));
    assert_eq!(table.dup(wild), Err(DupError::BadFd));
    assert_eq!(table.dup_from(wild, 0, NONE), Err(DupError::BadFd));
    assert_eq!(table.dup_from(wild, wild, NONE), Err(DupError::BadFd));
    assert_eq!(table.dup_from(0, wild, NONE), Err(DupError::MinimumTooLarge));
    assert_eq!(table.dup2(wild, 0), Err(ReplaceError::BadFd));
    assert_eq!(table.dup2(0, wild), Err(ReplaceError::BadFd));
    assert_eq!(table.dup2(wild, wild), Err(ReplaceError::BadFd));
    assert_eq!(table.dup3(wild, 0, CLOEXEC), Err(ReplaceError::BadFd));
    assert_eq!(table.dup3(0, wild, CLOEXEC), Err(ReplaceError::BadFd));
    assert_eq!(table.dup3(wild, wild, CLOEXEC), Err(ReplaceError::InvalidArgument));
    assert_eq!(table.renumber(wild, 0), Err(BadFd));
    assert_eq!(table.renumber(0, wild), Err(BadFd));
    assert_eq!(table.renumber(wild, wild), Err(BadFd));
    let rejected = table.replace(wild, ledger.file(1), NONE).unwrap_err();
    assert_eq!((rejected.error, rejected.file.name()), (ReplaceError::BadFd, 1));
    let rejected = table.insert_from(wild, ledger.file(2), NONE).unwrap_err();
    assert_eq!((rejected.error, rejected.file.name()), (ReserveError::LimitReached, 2));
}

#[test]
fn numbers_that_are_none_are_refused_by_every_operation() {
    let ledger = Ledger::new();
    let mut table = filled(&ledger, 3);
    table.set_limit(200);
    let before = (listing(&table, 0), table.capacity(), table.bytes());

    macro_rules! refuse {
        ($($number:expr),* $(,)?) => {
            $(refused_everywhere(&mut table, &ledger, $number);)*
        };
    }

    refuse!(-1_i32, i32::MIN, i32::MAX, 200_i32, 1 << 20, 1 << 30);
    refuse!(u32::MAX, 1_u32 << 31, (1_u32 << 31) + 1, 200_u32, 1_u32 << 20);
    // What a cast would turn into an open number.
    refuse!(1_i64 << 32, (1_i64 << 32) + 1, -(1_i64 << 32), i64::MIN, i64::MAX, -1_i64);
    refuse!(1_u64 << 32, (1_u64 << 32) + 1, 1_u64 << 63, (1_u64 << 63) + 1, u64::MAX);
    refuse!(-1_isize, isize::MIN, isize::MAX, 1_isize << 32);
    refuse!(1_usize << 32, usize::MAX, 1_usize << 63);
    refuse!(u8::MAX, u16::MAX, Fd::MAX);

    assert_eq!((listing(&table, 0), table.capacity(), table.bytes()), before);
    assert_eq!((ledger.live(), ledger.flushed()), (1, 0));
}

#[test]
fn numbers_of_all_types_find_the_same_fd() {
    let ledger = Ledger::new();
    let table = filled(&ledger, 101);
    table.replace(100, ledger.file(7), NONE).unwrap();

    macro_rules! finds {
        ($($type:ty)*) => {
            $(assert_eq!(table.get(100 as $type).unwrap().name(), 7);)*
        };
    }

    finds!(u8 u16 i32 u32 i64 u64 isize usize);
    assert_eq!(table.get(fd_of(100)).unwrap().name(), 7);
}

// Flags that are none

#[test]
fn unknown_flags_corrupt_nothing() {
    at_each_base(|ledger, table, base| {
        let wild = FdFlags::from_bits_retain(0xff);
        let known = CLOEXEC | CLOFORK;
        let (a, b) = (base, base + 1);
        assert_eq!(table.insert(ledger.file(1), wild).unwrap(), a);
        assert_eq!(table.insert_from(b, ledger.file(2), wild).unwrap(), b);
        assert_eq!(table.reserve().unwrap().install(ledger.file(3), wild), base + 2);
        assert_eq!(table.dup_from(a, 0, wild).unwrap(), base + 3);
        assert!(table.replace(base + 4, ledger.file(4), wild).unwrap().is_none());
        assert!(table.replace(base + 4, ledger.file(5), wild).unwrap().is_some());
        assert_eq!(table.dup2(b, base + 5).unwrap(), base + 5);
        table.set_flags(base + 5, wild).unwrap();
        table.set_flags(base + 5, wild).unwrap();
        assert_eq!(table.dup3(a, b, wild), Err(ReplaceError::InvalidArgument));
        let limited = table.limited(u64::MAX);
        assert_eq!(limited.insert(ledger.file(6), wild).unwrap(), base + 6);
        assert_eq!(limited.insert_from(0, ledger.file(7), wild).unwrap(), base + 7);
        assert_eq!(limited.dup_from(a, 0, wild).unwrap(), base + 8);
        assert!(limited.replace(base + 9, ledger.file(8), wild).unwrap().is_none());
        let rejected = table.limited(0).insert(ledger.file(9), wild).unwrap_err();
        assert_eq!(rejected.file.name(), 9);
        drop(rejected);

        let names: Vec<_> = listing(&table, base).into_iter().map(|(_, name, _)| name).collect();
        assert_eq!(names, [1, 2, 3, 1, 5, 2, 6, 7, 1, 8]);
        for entry in table.iter().filter(|entry| entry.fd.get() >= base) {
            assert!(entry.flags.contains(known));
        }
        // CLOFORK was among them.
        let child = table.fork().unwrap();
        assert_eq!(listing(&child, base), []);
        // What is set can be cleared.
        table.set_flags(a, NONE).unwrap();
        assert_eq!((table.flags(a), name(&table, a)), (Ok(NONE), 1));
        let file = table.remove(base + 2).unwrap();
        assert_eq!(file.try_into_inner().unwrap().name(), 3);
        assert_eq!(table.insert(ledger.file(9), NONE).unwrap(), base + 2);
        assert_eq!(table.flags(base + 2), Ok(NONE));
        table.close_on_exec();
        assert_eq!(listing(&table, base), [(base, 1, NONE), (base + 2, 9, NONE)]);

        let files = Files::from(table);
        let fd = files.reserve_owned(u64::MAX).unwrap().install(ledger.file(10), wild);
        assert!(fd == b && name(&files, b) == 10);
        let items = [(base, ledger.file(11), wild), (base + 70, ledger.file(12), wild)];
        let restored = Options::new().restore(items).unwrap();
        let names: Vec<_> = restored.iter().map(|entry| entry.file.name()).collect();
        assert_eq!(names, [11, 12]);
    });
}

#[test]
fn flags_have_the_values_of_linux() {
    assert_eq!((CLOEXEC.bits(), CLOFORK.bits()), (1, 2));
    assert_eq!((CloseRange::UNSHARE.bits(), CloseRange::CLOEXEC.bits()), (2, 4));
}
