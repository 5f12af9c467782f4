//! Lookup.

use super::*;

#[test]
fn lookup_finds_the_file_and_keeps_it_alive() {
    at_each_base(|ledger, table, base| {
        let fd = table.insert(ledger.file(7), NONE).unwrap();
        assert_eq!(fd, base);
        let (handle, owned) = (table.get(fd).unwrap(), table.get_owned(fd).unwrap());
        let (again, moved) = (handle.to_owned(), table.get(fd).unwrap().into_owned());
        table.close(fd).unwrap();
        assert_eq!(table.get(fd).err(), Some(BadFd));
        let live = ledger.live();
        for file in [&owned, &again, &moved] {
            assert!(file.name() == 7 && OwnedRef::ptr_eq(file, &owned));
        }
        drop((owned, again, moved));
        assert_eq!((handle.name(), ledger.live()), (7, live));
        drop(handle);
        assert_eq!(ledger.live(), live - 1);
    });
}

#[test]
fn lookup_through_an_exclusive_borrow() {
    at_each_base(|ledger, mut table, base| {
        table.insert(ledger.file(7), NONE).unwrap();
        assert_eq!(table.borrow(base).unwrap().name(), 7);
        // A lent handle turned into an owned one is a reference of its own.
        let owned = table.borrow(base).unwrap().into_owned();
        let cloned = table.borrow(base).unwrap().to_owned();
        table.close(base).unwrap();
        assert_eq!(table.borrow(base).err(), Some(BadFd));
        assert_eq!((owned.name(), cloned.name()), (7, 7));
    });
}

#[test]
fn lookup_of_a_closed_number_is_ebadf_and_grows_nothing() {
    at_each_base(|_, mut table, base| {
        let before = (table.capacity(), table.bytes(), table.high_water());
        for fd in [base, base + 1, table.capacity(), table.max() - 1, table.max()] {
            assert_eq!(table.get(fd).err(), Some(BadFd));
            assert_eq!(table.get_owned(fd).err(), Some(BadFd));
            assert_eq!(table.borrow(fd).err(), Some(BadFd));
            assert_eq!(table.flags(fd), Err(BadFd));
            assert!(!table.contains(fd));
        }
        assert_eq!((table.capacity(), table.bytes(), table.high_water()), before);
    });
}
