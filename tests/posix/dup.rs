//! Dup.

use super::*;

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
