//! Flags.

use super::*;

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
