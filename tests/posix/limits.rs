//! Limits.

use super::*;

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
fn cloned_options_make_the_same_table() {
    let ledger = Ledger::new();
    let options = Options::new().max(128).limit(100).on_close(flush);
    let table = options.clone().build();
    assert_eq!((table.max(), table.limit()), (128, 100));
    table.insert(ledger.file(1), NONE).unwrap();
    table.clear();
    assert_eq!(ledger.flushed(), 1);
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
