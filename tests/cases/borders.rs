//! Borders and errors.

use super::*;

#[test]
fn b1_numbers_beyond_the_table() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 3);
    let before = (table.capacity(), table.bytes(), table.high_water());
    let numbers = [
        -1,
        table.capacity().into(),
        1 << 20,
        1 << 30,
        i32::MAX.into(),
        u32::MAX.into(),
        // As the i32 that a program passes.
        i64::from(u32::MAX as i32),
    ];
    for number in numbers {
        assert_eq!(table.get(number).err(), Some(BadFd));
        assert_eq!(table.close(number), Err(CloseError::BadFd));
        assert_eq!(table.dup(number), Err(DupError::BadFd));
        assert_eq!(table.flags(number), Err(BadFd));
        assert_eq!(table.set_flags(number, CLOEXEC), Err(BadFd));
    }
    assert_eq!((table.capacity(), table.bytes(), table.high_water()), before);
    assert_eq!(fds(&table), [0, 1, 2]);
}

#[test]
fn b2_dup2_onto_the_largest_numbers() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 1);
    let bad = Err(ReplaceError::BadFd);
    assert_eq!(table.dup2(0, i32::MAX - 1), bad);
    assert_eq!(table.dup2(0, (1_u32 << 31) - 1), bad);
    assert_eq!(table.dup2(0, table.max()), bad);
    assert_eq!(table.len(), 1);
    assert_eq!(table.dup2(0, table.max() - 1).unwrap(), table.max() - 1);
    assert!(table.bytes() < 64 << 10, "{}", table.bytes());
    assert_eq!(fds(&table), [0, table.max() - 1]);

    // The largest table there is.
    let table = Options::new().max(u64::MAX).build();
    table.insert(ledger.file(0), NONE).unwrap();
    assert_eq!(table.dup2(0, table.max()), bad);
    assert_eq!(table.dup2(0, i32::MAX), bad);
    let last = table.max() - 1;
    assert_eq!(table.dup2(0, last).unwrap(), last);
    assert_eq!(fds(&table), [0, last]);
    assert_eq!(table.insert_from(last, ledger.file(1), NONE).unwrap_err().errno(), Errno::EMFILE);
    table.close(last).unwrap();
    assert_eq!(table.insert_from(last, ledger.file(1), NONE).unwrap(), last);
    assert_eq!(table.fork().unwrap().highest_open(), Some(Fd::try_from(last).unwrap()));
}

#[test]
fn b3_dup2_at_the_limit() {
    for limit in [10_u32, 64, 65, 1000] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 1);
        table.set_limit(limit.into());
        assert_eq!(table.dup2(0, limit), Err(ReplaceError::BadFd));
        assert_eq!(table.dup2(0, limit - 1).unwrap(), limit - 1);
    }
}

#[test]
fn b4_limit_0() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 3);
    table.set_limit(0);
    let rejected = table.insert(ledger.file(9), NONE).unwrap_err();
    assert_eq!((rejected.errno(), rejected.file.name()), (Errno::EMFILE, 9));
    assert_eq!(table.dup2(0, 0).unwrap(), 0);
    for new in 1..=5 {
        assert_eq!(table.dup2(0, new), Err(ReplaceError::BadFd));
    }
    for fd in 0..3 {
        assert_eq!(name(&table, fd), fd);
        table.set_flags(fd, CLOEXEC).unwrap();
        assert_eq!(table.dup(fd), Err(DupError::LimitReached));
        assert_eq!(table.dup_from(fd, 0, NONE), Err(DupError::MinimumTooLarge));
        table.close(fd).unwrap();
    }
}

#[test]
fn b5_a_limit_below_what_is_open() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 21);
    table.set_limit(10);
    table.close(5).unwrap();
    assert_eq!(table.insert(ledger.file(5), NONE).unwrap(), 5);
    assert_eq!(table.insert(ledger.file(9), NONE).unwrap_err().errno(), Errno::EMFILE);
    assert_eq!(name(&table, 20), 20);
    assert_eq!(table.dup(20), Err(DupError::LimitReached));
    table.close(20).unwrap();
    assert_eq!(table.dup(19), Err(DupError::LimitReached));
    table.close(0).unwrap();
    assert_eq!(table.dup(19).unwrap(), 0);
}

#[test]
fn b6_dup_from_at_the_limit() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 8);
    table.set_limit(8);
    assert_eq!(table.dup_from(3, 8, NONE).unwrap_err().errno(), Errno::EINVAL);
    assert_eq!(table.dup_from(3, 0, NONE).unwrap_err().errno(), Errno::EMFILE);
    assert_eq!(table.dup_from(3, 7, NONE).unwrap_err().errno(), Errno::EMFILE);
    assert_eq!(table.dup_from(9, 8, NONE).unwrap_err().errno(), Errno::EBADF);
}

#[test]
fn b7_dup2_to_itself() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 9);
    assert_eq!(table.dup2(9, 9), Err(ReplaceError::BadFd));
    table.insert(ledger.file(9), CLOEXEC).unwrap();
    assert_eq!(table.dup2(9, 9).unwrap(), 9);
    assert_eq!((table.flags(9), ledger.flushed()), (Ok(CLOEXEC), 0));
}

#[test]
fn b8_dup3_errors() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 4);
    assert_eq!(table.dup3(3, 3, NONE), Err(ReplaceError::InvalidArgument));
    assert_eq!(table.dup3(3, 3, CLOEXEC), Err(ReplaceError::InvalidArgument));
    let unknown = FdFlags::from_bits_retain(0x40);
    assert_eq!(table.dup3(3, 4, unknown), Err(ReplaceError::InvalidArgument));
    assert_eq!(fds(&table), [0, 1, 2, 3]);
}

#[test]
fn b9_close_range_errors() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 10);
    let invalid = Err(CloseRangeError::InvalidArgument);
    assert_eq!(table.close_range(7, 3, CLOSE), invalid);
    assert_eq!(table.close_range(3, 7, CloseRange::from_bits_retain(8)), invalid);
    assert_eq!(table.len(), 10);
    table.close_range(3, u32::MAX, CLOSE).unwrap();
    assert_eq!(fds(&table), [0, 1, 2]);
}

#[test]
fn b10_duplicates_have_no_cloexec() {
    for target in [2, 100] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 1);
        table.insert(ledger.file(1), CLOEXEC).unwrap();
        table.replace(target, ledger.file(2), CLOEXEC).unwrap();
        let duplicate = table.dup(1).unwrap();
        assert_eq!(table.flags(duplicate), Ok(NONE));
        table.dup2(1, target).unwrap();
        assert_eq!((table.flags(target), table.flags(1)), (Ok(NONE), Ok(CLOEXEC)));
    }
}

#[test]
fn b11_max_is_lowered_meanwhile() {
    for _ in 0..rounds(60) {
        let ledger = Ledger::new();
        let table = opened(&ledger, 1);
        table.set_max(8192);
        let open = || {
            for turn in 0..rounds(2000) as u32 {
                // It only falls: what a call observes is at most this.
                let max = table.max();
                let near = max - 1 - turn % 60;
                let done = match turn % 5 {
                    0 => table.replace(near, ledger.file(0), NONE).is_ok().then_some(near),
                    1 => table.dup2(0, near).ok().map(Fd::get),
                    2 => table.dup_from(0, near, NONE).ok().map(Fd::get),
                    3 => table.insert_from(near, ledger.file(0), NONE).ok().map(Fd::get),
                    _ => table.dup_from(0, 1, NONE).ok().map(Fd::get),
                };
                if let Some(fd) = done {
                    assert!(fd < max, "{fd} with max {max}");
                    table.close(fd).unwrap();
                }
            }
        };
        let lower = || {
            for max in (1..=128).rev() {
                table.set_max(max * 64);
                assert!(table.capacity() <= table.max());
                assert_eq!(table.capacity() % 64, 0);
            }
        };
        together(&[&lower, &open]);
        assert_eq!((table.max(), table.capacity(), table.len()), (64, 64, 1));
    }
}
