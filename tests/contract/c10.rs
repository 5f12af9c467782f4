//! C10: slots never move; memory follows what is used.

use super::*;

#[test]
fn c10_growth_moves_nothing() {
    let end = if cfg!(miri) { 200 } else { 100_000 };
    let ledger = Ledger::new();
    let table = filled(&ledger, 3);
    let (low, high) = (table.insert(ledger.file(3), NONE).unwrap(), 70);
    table.replace(high, ledger.file(70), NONE).unwrap();
    let handles = [low, fd_of(high)].map(|fd| table.get(fd).unwrap());
    let addresses = handles.each_ref().map(|handle| &raw const **handle);
    let reserved = table.reserve().unwrap();
    let mut iter = table.iter();
    assert_eq!(iter.by_ref().take(4).count(), 4);
    for _ in table.len() as u32 + 1..end {
        table.dup(0).unwrap();
    }
    assert!(table.capacity() >= end);
    for (fd, address) in [low, fd_of(high)].into_iter().zip(addresses) {
        assert_eq!(&raw const *table.get(fd).unwrap(), address);
    }
    assert_eq!(handles.each_ref().map(|handle| handle.name()), [3, 70]);
    // Whatever has begun before the growth goes on after it.
    assert_eq!(iter.next().unwrap().fd, 5);
    let fd = reserved.install(ledger.file(4), NONE);
    assert!(fd == 4 && name(&table, fd.get()) == 4);
    table.clear();
    assert_eq!(ledger.live(), 2);
    drop(handles);
    assert_eq!(ledger.live(), 0);
}

#[test]
fn c10_growth_while_others_look_up_and_open() {
    let end = if cfg!(miri) { 150 } else { 20_000 };
    let ledger = Ledger::new();
    let table = filled(&ledger, 1);
    let address = (&raw const *table.get(0).unwrap()).addr();
    let look = || {
        for fd in 0..table.high_water().unwrap().get() {
            let file = table.get(fd);
            assert!(file.is_err() || (&raw const *file.unwrap()).addr() == address);
        }
    };
    // Both run into the same ends of storage.
    let grow = || {
        for _ in 0..end / 2 {
            table.dup(0).unwrap();
        }
    };
    alongside(&[&look], || together(&[&grow, &grow]));
    assert_eq!(table.len(), end as usize + 1);
    assert_eq!(fds(&table).last(), Some(&end));
}

#[test]
fn c10_memory_follows_what_is_used() {
    let table = FdTable::new();
    let empty = table.bytes();
    assert!(empty >= size_of::<FdTable<u8>>() && empty <= 1536, "{empty} bytes");
    table.insert(0, NONE).unwrap();
    assert_eq!(table.bytes(), empty);

    // One high number costs its own surroundings.
    let last = if cfg!(miri) { 4000 } else { table.max() - 1 };
    table.dup2(0, last).unwrap();
    assert!(table.bytes() <= 64 << 10, "{} bytes", table.bytes());
    let copy = table.fork().unwrap();
    assert!(copy.contains(last) && copy.bytes() <= 64 << 10, "{} bytes", copy.bytes());
    // It is there for good: to open it again costs nothing.
    let bytes = table.bytes();
    table.close(last).unwrap();
    table.dup2(0, last).unwrap();
    assert_eq!(table.bytes(), bytes);
}

#[test]
fn c10_memory_of_a_million() {
    let end = if cfg!(miri) { 300 } else { 1_000_000 };
    let table = FdTable::new();
    table.insert((), NONE).unwrap();
    let mut steps = 0;
    let mut bytes = table.bytes();
    for fd in 1..end {
        assert_eq!(table.dup(0).unwrap(), fd);
        steps += usize::from(table.bytes() != bytes);
        bytes = table.bytes();
        // Never far ahead of what is open either.
        assert!(bytes <= 4096 + 16 * (fd as usize + 512), "{bytes} bytes for {fd}");
    }
    // Steps are a part of what there is, unless that is little.
    let least = if cfg!(miri) { 4096 } else { 0 };
    assert!(bytes - size_of_val(&table) <= 10 * end as usize + least, "{bytes} bytes");
    assert!(steps > 1);
    let copy = table.fork().unwrap();
    assert!(copy.bytes() <= bytes);
    assert_eq!(copy.len(), end as usize);
}

#[test]
fn c10_a_growth_that_fails_changes_nothing() {
    let ledger = Ledger::new();
    let table = filled(&ledger, 64);
    table.set_max(64);
    let before = (fds(&table), table.capacity(), table.bytes(), table.high_water());
    assert!(table.insert(ledger.file(1), NONE).is_err());
    assert!(table.reserve().is_err() && table.reserve_many::<2>().is_err());
    assert!(table.dup2(0, 64).is_err() && table.dup2(0, 1000).is_err());
    assert!(table.replace(100, ledger.file(1), NONE).is_err());
    assert!(table.dup(0).is_err() && table.dup_from(0, 64, NONE).is_err());
    assert_eq!((fds(&table), table.capacity(), table.bytes(), table.high_water()), before);
    assert_eq!(ledger.live(), 1);
}
