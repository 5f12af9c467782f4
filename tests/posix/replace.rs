//! Dup2, dup3, replace.

use super::*;

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
        let other = table.get_owned(base + 1).unwrap();
        assert!(OwnedRef::ptr_eq(&old, &same) && !OwnedRef::ptr_eq(&old, &other));
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
