//! Fork, exec, unshare.

use super::*;

#[test]
fn fork_copies_numbers_files_and_flags() {
    at_each_base(|ledger, table, base| {
        table.set_limit(70_000);
        table.set_max(80_000);
        table.insert(ledger.file(1), CLOEXEC).unwrap();
        table.insert_from(base + 3, ledger.file(2), NONE).unwrap();
        table.insert_from(base + 90, ledger.file(3), CLOFORK).unwrap();
        table.insert_from(base + 91, ledger.file(4), CLOFORK | CLOEXEC).unwrap();
        let child = table.fork().unwrap();
        assert_eq!(listing(&child, base), [(base, 1, CLOEXEC), (base + 3, 2, NONE)]);
        assert_eq!((child.len(), child.highest_open()), (base as usize + 2, fd(base + 3)));
        for fd in 0..base + 1 {
            let files = [&table, &child].map(|table| table.get_owned(fd).unwrap());
            assert!(OwnedRef::ptr_eq(&files[0], &files[1]));
        }
        assert_eq!((child.limit(), child.max()), (table.limit(), table.max()));
        assert_ne!(child.id(), table.id());
        // What the child opens is what a table with these numbers opens.
        assert_eq!(child.insert(ledger.file(5), NONE).unwrap(), base + 1);
        assert_eq!(child.insert_from(base + 90, ledger.file(5), NONE).unwrap(), base + 90);
        // Each goes its own way, and both flush.
        table.close(base).unwrap();
        assert_eq!((name(&child, base), ledger.flushed()), (1, 1));
        child.close(base).unwrap();
        assert_eq!(ledger.flushed(), 2);
        drop(table);
        assert_eq!(name(&child, base + 3), 2);
    });
}

#[test]
fn fork_is_sized_by_what_is_open() {
    let ledger = Ledger::new();
    let table = filled(&ledger, 20_000);
    assert!(table.capacity() >= 20_000);
    table.close_range(3, u32::MAX, CLOSE).unwrap();
    let child = table.fork().unwrap();
    assert_eq!((child.len(), child.capacity()), (3, FdTable::<File>::new().capacity()));
    assert_eq!(child.bytes(), FdTable::<File>::new().bytes());
    assert_eq!(child.high_water(), fd(2));
}

/// A reserved number is free in the copy, which therefore needs no room for it.
#[test]
fn fork_is_not_sized_by_what_is_reserved() {
    let ledger = Ledger::new();
    let table = filled(&ledger, 3);
    let _reserved = table.reserve_in(15_000..16_000).unwrap();
    let child = table.fork().unwrap();
    assert_eq!((child.capacity(), child.high_water()), (64, fd(2)));
    assert_eq!(child.bytes(), FdTable::<File>::new().bytes());
}

#[test]
fn exec_closes_what_is_cloexec_and_unshares_first() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), NONE).unwrap();
        table.insert(ledger.file(2), CLOEXEC).unwrap();
        table.insert(ledger.file(3), NONE).unwrap();
        table.insert_from(base + 70, ledger.file(4), CLOFORK | CLOEXEC).unwrap();
        let mut files = Files::from(table);
        let thread = files.share();
        let (id, live) = (files.id(), ledger.live());
        let kept = [(base, 1, NONE), (base + 2, 3, NONE)];
        files.exec().unwrap();
        assert_ne!(files.id(), id);
        assert!(!files.is_shared() && !thread.is_shared());
        assert_eq!(listing(&files, base), kept);
        // The others see nothing of it.
        assert_eq!((thread.id(), thread.len(), ledger.live()), (id, base as usize + 4, live));
        drop(thread);
        // Not shared: the same table.
        let id = files.id();
        files.set_flags(base, CLOEXEC).unwrap();
        files.exec().unwrap();
        assert_eq!(files.id(), id);
        assert_eq!(listing(&files, base), kept[1..]);
    });
}

#[test]
fn exec_closes_in_ascending_order_and_flushes_each_fd() {
    at_each_base(|ledger, table, base| {
        let file = OwnedRef::new(ledger.file(1));
        for fd in [base, base + 1, base + 65] {
            table.replace(fd, file.clone(), CLOEXEC).unwrap();
        }
        drop(file);
        let live = ledger.live();
        table.close_on_exec();
        assert_eq!((ledger.flushed(), ledger.live()), (3, live - 1));
        assert_eq!(listing(&table, base), []);
    });
}

#[test]
fn unshare_copies_only_a_shared_table() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), CLOEXEC).unwrap();
        let mut files = Files::from(table);
        let id = files.id();
        files.unshare().unwrap();
        assert_eq!(files.id(), id);
        let thread = files.share();
        files.unshare().unwrap();
        assert!(files.id() != id && thread.id() == id);
        assert_eq!(listing(&files, base), [(base, 1, CLOEXEC)]);
        files.close(base).unwrap();
        assert_eq!(name(&thread, base), 1);
    });
}

/// A task that changes to a table of its own is no new process: a flag that keeps an fd from
/// children must not cost the task its fd. Nor must it depend on others who happen to share.
#[test]
fn unshare_keeps_what_is_clofork() {
    let ways: [fn(&mut Files<File>, u32); 3] = [
        |files, _| files.unshare().unwrap(),
        |files, _| files.exec().unwrap(),
        |files, end| files.close_range(end, u32::MAX, CloseRange::UNSHARE).unwrap(),
    ];
    for is_shared in [false, true] {
        for way in ways {
            at_each_base(|ledger, table, base| {
                table.insert(ledger.file(1), CLOFORK).unwrap();
                let mut files = Files::from(table);
                let _thread = is_shared.then(|| files.share());
                way(&mut files, base + 1);
                assert_eq!(listing(&files, base), [(base, 1, CLOFORK)], "shared: {is_shared}");
            });
        }
    }
}

#[test]
fn close_range_unshare_leaves_the_old_table_alone() {
    at_each_base(|ledger, table, base| {
        let expected = |how: CloseRange, (fd, name, flags): (u32, u32, FdFlags)| {
            let inside = (base + 10..=base + 120).contains(&fd) != how.contains(CloseRange::EXCEPT);
            let only = !how.contains(CloseRange::CLOEXEC_ONLY) || flags.contains(CLOEXEC);
            match inside && only {
                false => Some((fd, name, flags)),
                true if how.contains(CloseRange::CLOEXEC) => Some((fd, name, flags | CLOEXEC)),
                true => None,
            }
        };
        for fd in (base..base + 200).step_by(2) {
            let flags = if fd % 3 == 0 { CLOEXEC } else { NONE };
            table.replace(fd, ledger.file(fd), flags).unwrap();
        }
        let mut files = Files::from(table);
        let before = listing(&files, 0);
        let hows = [CLOSE, CloseRange::CLOEXEC, CloseRange::EXCEPT, CloseRange::CLOEXEC_ONLY];
        for how in hows.into_iter().chain([CloseRange::EXCEPT | CloseRange::CLOEXEC_ONLY]) {
            let (thread, flushed) = (files.share(), ledger.flushed());
            files.close_range(base + 10, base + 120, how | CloseRange::UNSHARE).unwrap();
            assert_ne!(files.id(), thread.id());
            assert_eq!(listing(&thread, 0), before);
            let own: Vec<_> = before.iter().filter_map(|&entry| expected(how, entry)).collect();
            assert_eq!(listing(&files, 0), own, "{how:?}");
            assert_eq!(files.len(), own.len());
            // Nothing was closed, only not copied. The first hole is the next number.
            assert_eq!(ledger.flushed(), flushed);
            let hole = (0..).find(|fd| own.iter().all(|(open, ..)| open != fd)).unwrap();
            assert_eq!(files.reserve().unwrap().fd(), hole as i32);
            // The copy has no reference to what it left out, so the old table is the last holder.
            let own_files = before.iter().filter(|(fd, ..)| *fd >= base);
            let left_out = own_files.copied().find(|&entry| expected(how, entry).is_none());
            if let Some((fd, name, flags)) = left_out {
                let file = thread.remove(fd).unwrap().try_into_inner().unwrap();
                assert_eq!(file.name(), name);
                thread.replace(fd, file, flags).unwrap();
            }
            files = thread;
            // That was the end of the copy, which has flushed what it had.
            assert_eq!(ledger.flushed(), flushed + own.len());
        }
    });
}

#[test]
fn close_range_unshare_of_an_unshared_table_closes() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), NONE).unwrap();
        table.insert(ledger.file(2), NONE).unwrap();
        let mut files = Files::from(table);
        let (id, live) = (files.id(), ledger.live());
        files.close_range(base + 1, u32::MAX, CloseRange::UNSHARE).unwrap();
        assert_eq!((files.id(), ledger.flushed(), ledger.live()), (id, 1, live - 1));
        assert_eq!(listing(&files, base), [(base, 1, NONE)]);
    });
}

#[test]
fn sharers_see_one_table_and_the_last_one_closes_it() {
    let ledger = Ledger::new();
    let mut files = Files::from(filled(&ledger, 3));
    assert!(!files.is_shared());
    let thread = files.share();
    assert!(files.is_shared() && thread.is_shared());
    let fd = thread.insert(ledger.file(1), NONE).unwrap();
    assert_eq!(files.borrow(fd).unwrap().name(), 1);
    drop(thread);
    assert!(!files.is_shared());
    assert_eq!(files.borrow(fd).unwrap().name(), 1);
    assert_eq!(files.borrow(fd).unwrap().into_owned().name(), 1);
    assert_eq!(files.borrow(9).err(), Some(BadFd));
    assert_eq!(ledger.flushed(), 0);
    let child = files.fork().unwrap();
    assert!(!files.is_shared() && !child.is_shared());
    drop(files);
    assert_eq!((ledger.flushed(), ledger.live()), (4, 2));
    drop(child);
    assert_eq!((ledger.flushed(), ledger.live()), (8, 0));
}

#[test]
fn observers_follow_the_task() {
    let ledger = Ledger::new();
    let mut files = Files::from(filled(&ledger, 1));
    let thread = files.share();
    let proc = files.observe();
    let other = proc.clone();
    assert!(proc.is_alive());
    files.insert(ledger.file(1), CLOEXEC).unwrap();
    assert_eq!(proc.list(), [(Fd::STDIN, NONE), (Fd::STDOUT, CLOEXEC)]);
    assert_eq!(proc.flags(1), Ok(CLOEXEC));
    assert_eq!((proc.flags(2), proc.get(-1).err()), (Err(BadFd), Some(BadFd)));
    files.exec().unwrap();
    assert_eq!(proc.list(), [(Fd::STDIN, NONE)]);
    thread.insert(ledger.file(2), NONE).unwrap();
    assert_eq!(proc.get(2).err(), Some(BadFd));
    let handle = other.get(0).unwrap();
    drop((files, thread));
    assert!(!proc.is_alive() && !other.is_alive());
    assert_eq!((proc.get(0).err(), proc.flags(0)), (Some(BadFd), Err(BadFd)));
    assert_eq!(proc.list(), []);
    // The handle kept its file alive, the observers none.
    assert_eq!(ledger.live(), 1);
    assert_eq!(handle.name(), 0);
}
