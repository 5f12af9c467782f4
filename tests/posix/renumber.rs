//! Renumber.

use super::*;

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

/// The handles on what is moved were counted where it was.
#[test]
fn renumber_moves_a_file_with_its_handles() {
    at_each_base(|ledger, table, base| {
        let live = ledger.live();
        table.insert(ledger.file(1), NONE).unwrap();
        table.insert(ledger.file(2), NONE).unwrap();
        let [moved, victim] = [base, base + 1].map(|fd| table.get(fd).unwrap());
        table.renumber(base, base + 1).unwrap();
        table.close(base + 1).unwrap();
        assert_eq!((moved.name(), victim.name(), ledger.live()), (1, 2, live + 2));
        drop((moved, victim));
        assert_eq!(ledger.live(), live);
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
        // Nor is the open one held.
        table.close(base).unwrap();
    });
}
