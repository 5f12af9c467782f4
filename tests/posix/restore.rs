//! Restore.

use super::*;

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
