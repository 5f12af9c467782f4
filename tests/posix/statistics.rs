//! Statistics, Debug.

use super::*;

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
