//! Who allocates, and how much.

use super::*;

#[test]
fn c10_bytes_are_what_was_allocated() {
    let own = size_of::<FdTable<u32>>() as isize;
    let file = OwnedRef::new(0);
    let before = BYTES.get();
    let held = |table: &FdTable<u32>| {
        let held = table.bytes() as isize - own;
        assert_eq!(held, BYTES.get() - before, "with {} open", table.len());
        held
    };
    let table = FdTable::new();
    assert_eq!(held(&table), 0);
    for open in 1..=20_000 {
        table.insert(file.clone(), NONE).unwrap();
        if open % 64 < 2 {
            held(&table);
        }
    }
    table.set_max(u64::MAX);
    // The last one gets its storage with others that have their bits in two pieces of the tree.
    for fd in [100_000, 1_048_575, 500_000, (1 << 25) + (510 << 12)] {
        table.insert_from(fd, file.clone(), NONE).unwrap();
        held(&table);
    }
    table.reserve_capacity(40_000).unwrap();
    let bytes = held(&table);
    table.clear();
    assert_eq!(held(&table), bytes);
    // A copy is a table of its own.
    table.insert(file.clone(), NONE).unwrap();
    table.insert_from(700, file.clone(), NONE).unwrap();
    let child = table.fork().unwrap();
    let both = child.bytes() as isize - own + bytes;
    assert_eq!(both, BYTES.get() - before);
    drop(child);
    assert_eq!(held(&table), bytes);
    drop(table);
    assert_eq!(BYTES.get(), before);
}

#[test]
fn c10_a_million_costs_less_than_ten_bytes_each() {
    let end = 1_000_000;
    let table = FdTable::new();
    table.insert((), NONE).unwrap();
    let before = BYTES.get();
    for _ in 1..end {
        table.dup(0).unwrap();
    }
    let bytes = BYTES.get() - before;
    assert!(bytes <= 10 * end, "{bytes} bytes");
}

#[test]
fn c10_the_highest_number_alone_is_cheap() {
    let table = FdTable::new();
    table.insert((), NONE).unwrap();
    let before = BYTES.get();
    table.dup2(0, table.max() - 1).unwrap();
    let bytes = BYTES.get() - before;
    assert!(bytes <= 64 << 10, "{bytes} bytes");
}

#[test]
fn c10_nothing_allocates_but_growth() {
    ALLOCATIONS.set(0);
    let table = FdTable::<u32>::new();
    assert_eq!(ALLOCATIONS.get(), 0);
    let files = [(); 8].map(|()| OwnedRef::new(0));
    for _ in 0..200 {
        table.insert(files[0].clone(), NONE).unwrap();
    }
    for fd in [5, 70, 150] {
        table.close(fd).unwrap();
    }
    let mut files = files.into_iter();
    ALLOCATIONS.set(0);
    for fd in [3, 100] {
        let handle = table.get(fd).unwrap();
        let owned =
            [table.get_owned(fd).unwrap(), handle.to_owned(), table.get(fd).unwrap().into_owned()];
        drop((handle, owned));
        assert!(table.contains(fd) && table.flags(fd).is_ok() && table.get(1_000_000).is_err());
        table.set_flags(fd, CLOEXEC).unwrap();
        assert!(table.iter().count() > 100);
    }
    // Into what is there already.
    assert_eq!(table.insert(files.next().unwrap(), NONE).unwrap(), 5);
    assert_eq!(table.insert(files.next().unwrap(), NONE).unwrap(), 70);
    assert_eq!(table.dup(0).unwrap(), 150);
    drop(table.reserve_in(200..u32::MAX).unwrap());
    drop(table.reserve_many::<20>().unwrap());
    table.dup2(0, 90).unwrap();
    table.dup2(0, 220).unwrap();
    table.renumber(220, 90).unwrap();
    drop(table.replace(91, files.next().unwrap(), NONE).unwrap());
    assert!(table.limited(0).insert(files.next().unwrap(), NONE).is_err());
    assert!(!table.is_empty() && table.highest_open().is_some() && table.high_water().is_some());
    drop(table.remove(70).unwrap());
    for fd in [5, 90, 91] {
        table.close(fd).unwrap();
    }
    table.close_on_exec();
    table.close_range(180, u32::MAX, CloseRange::CLOEXEC).unwrap();
    table.close_range(100, u32::MAX, CloseRange::empty()).unwrap();
    table.clear();
    assert_eq!(ALLOCATIONS.get(), 0);
}

#[test]
fn c10_sizes_of_handles() {
    let word = size_of::<usize>();
    assert!(size_of::<Ref<'_, u8>>() <= 3 * word);
    assert_eq!(size_of::<OwnedRef<u8>>(), word);
    assert_eq!(size_of::<Option<OwnedRef<u8>>>(), word);
    assert_eq!(size_of::<OwnedRef<[u64; 8]>>(), word);
    assert!(size_of::<Reservation<'_, u8>>() <= 2 * word);
    assert_eq!(size_of::<Fd>(), 4);
    assert!(size_of::<FdTable<u8>>() <= 1536);
}

/// Tasks, observers, reservations; also with files that observe the table they sit in, and after a
/// drop that panics.
#[test]
fn c10_nothing_leaks() {
    struct Proc {
        observer: Observer<Proc>,
        panics: bool,
    }

    impl Drop for Proc {
        fn drop(&mut self) {
            if self.panics && !self.observer.is_alive() {
                resume_unwind(Box::new(()));
            }
        }
    }

    let live = |panics: bool| {
        let mut files = Files::new();
        for fd in 0..100 {
            let proc = Proc { observer: files.observe(), panics: panics && fd == 3 };
            files.insert(proc, CLOEXEC).unwrap();
        }
        let thread = files.share();
        let waiting = files.reserve_owned(u64::MAX).unwrap();
        files.close_range(10, 80, CloseRange::UNSHARE).unwrap();
        let child = thread.fork().unwrap();
        drop((waiting, child, thread));
        let _ = files.observe().list();
        drop(files);
    };
    // What the standard library and others set up once per thread is not counted.
    for panics in [false, true] {
        let run = || {
            let result = catch_unwind(|| live(panics));
            assert_eq!(result.is_err(), panics);
        };
        run();
        let before = BYTES.get();
        run();
        assert_eq!(BYTES.get(), before, "panics: {panics}");
    }
}
