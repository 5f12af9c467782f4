//! Numbers that are none.

use super::*;

#[test]
fn numbers_of_all_types_convert_or_are_refused() {
    assert_eq!(Fd::try_from(i32::MAX), Ok(Fd::MAX));
    assert_eq!(Fd::try_from(i32::MAX as u32 + 1), Err(BadFd));
    assert_eq!(Fd::try_from(u32::MAX), Err(BadFd));
    assert_eq!(Fd::try_from(-1_i32), Err(BadFd));
    assert_eq!(Fd::try_from(-1_i64), Err(BadFd));
    assert_eq!(Fd::try_from(1_i64 << 32), Err(BadFd));
    assert_eq!(Fd::try_from(1_u64 << 32), Err(BadFd));
    assert_eq!(Fd::try_from(u64::MAX), Err(BadFd));
    assert_eq!(Fd::try_from(isize::MIN), Err(BadFd));
    assert_eq!(Fd::try_from(usize::MAX), Err(BadFd));
    assert_eq!((Fd::from(7_u8).get(), Fd::from(7_u16).get()), (7, 7));
    let fd = Fd::STDERR;
    assert_eq!((i32::from(fd), u32::from(fd), i64::from(fd)), (2, 2, 2));
    assert_eq!((u64::from(fd), usize::from(fd)), (2, 2));
    assert_eq!((format!("{fd:?}"), format!("{fd:>3}")), ("2".to_string(), "  2".to_string()));
    assert!(fd == 2_u32 && fd != 3_u32 && fd == 2_i32 && Fd::MAX != -1 && Fd::STDIN < Fd::STDOUT);
}

/// Every operation, with a number that is not open and not below the limit.
fn refused_everywhere<N: FdLike>(table: &mut FdTable<File>, ledger: &Arc<Ledger>, wild: N) {
    assert_eq!(table.get(wild).err(), Some(BadFd));
    assert_eq!(table.get_owned(wild).err(), Some(BadFd));
    assert_eq!(table.borrow(wild).err(), Some(BadFd));
    assert!(!table.contains(wild));
    assert_eq!(table.flags(wild), Err(BadFd));
    assert_eq!(table.set_flags(wild, CLOEXEC), Err(BadFd));
    assert_eq!(table.remove(wild).err(), Some(BadFd));
    assert_eq!(table.close(wild), Err(CloseError::BadFd));
    assert_eq!(table.dup(wild), Err(DupError::BadFd));
    assert_eq!(table.dup_from(wild, 0, NONE), Err(DupError::BadFd));
    assert_eq!(table.dup_from(wild, wild, NONE), Err(DupError::BadFd));
    assert_eq!(table.dup_from(0, wild, NONE), Err(DupError::MinimumTooLarge));
    assert_eq!(table.dup2(wild, 0), Err(ReplaceError::BadFd));
    assert_eq!(table.dup2(0, wild), Err(ReplaceError::BadFd));
    assert_eq!(table.dup2(wild, wild), Err(ReplaceError::BadFd));
    assert_eq!(table.dup3(wild, 0, CLOEXEC), Err(ReplaceError::BadFd));
    assert_eq!(table.dup3(0, wild, CLOEXEC), Err(ReplaceError::BadFd));
    assert_eq!(table.dup3(wild, wild, CLOEXEC), Err(ReplaceError::InvalidArgument));
    assert_eq!(table.renumber(wild, 0), Err(BadFd));
    assert_eq!(table.renumber(0, wild), Err(BadFd));
    assert_eq!(table.renumber(wild, wild), Err(BadFd));
    let rejected = table.replace(wild, ledger.file(1), NONE).unwrap_err();
    assert_eq!((rejected.error, rejected.file.name()), (ReplaceError::BadFd, 1));
    let rejected = table.insert_from(wild, ledger.file(2), NONE).unwrap_err();
    assert_eq!((rejected.error, rejected.file.name()), (ReserveError::LimitReached, 2));
}

#[test]
fn numbers_that_are_none_are_refused_by_every_operation() {
    let ledger = Ledger::new();
    let mut table = filled(&ledger, 3);
    table.set_limit(200);
    let before = (listing(&table, 0), table.capacity(), table.bytes());

    macro_rules! refuse {
        ($($number:expr),* $(,)?) => {
            $(refused_everywhere(&mut table, &ledger, $number);)*
        };
    }

    refuse!(-1_i32, i32::MIN, i32::MAX, 200_i32, 1 << 20, 1 << 30);
    refuse!(u32::MAX, 1_u32 << 31, (1_u32 << 31) + 1, 200_u32, 1_u32 << 20);
    // What a cast would turn into an open number.
    refuse!(1_i64 << 32, (1_i64 << 32) + 1, -(1_i64 << 32), i64::MIN, i64::MAX, -1_i64);
    refuse!(1_u64 << 32, (1_u64 << 32) + 1, 1_u64 << 63, (1_u64 << 63) + 1, u64::MAX);
    refuse!(-1_isize, isize::MIN, isize::MAX, 1_isize << 32);
    refuse!(1_usize << 32, usize::MAX, 1_usize << 63);
    refuse!(u8::MAX, u16::MAX, Fd::MAX);

    assert_eq!((listing(&table, 0), table.capacity(), table.bytes()), before);
    assert_eq!((ledger.live(), ledger.flushed()), (1, 0));
}

#[test]
fn numbers_of_all_types_find_the_same_fd() {
    let ledger = Ledger::new();
    let table = filled(&ledger, 101);
    table.replace(100, ledger.file(7), NONE).unwrap();

    macro_rules! finds {
        ($($type:ty)*) => {
            $(assert_eq!(table.get(100 as $type).unwrap().name(), 7);)*
        };
    }

    finds!(u8 u16 i32 u32 i64 u64 isize usize);
    assert_eq!(table.get(fd_of(100)).unwrap().name(), 7);
}
