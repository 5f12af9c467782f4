//! What a reserved number is to each operation.

use super::*;

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
