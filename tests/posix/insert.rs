//! Reserve, install, insert.

use super::*;

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
