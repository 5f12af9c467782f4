//! Iteration.

use super::*;

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
