//! C7: a panic in code of the user's leaves the table sound: the fd closed, the counts right, no poison.

use super::*;

/// A file that panics when it ends; quietly, as a panic hook would write a line for each.
struct Explosive {
    in_flush: bool,
    in_drop: bool,
    ledger: Arc<Ends>,
}

impl Drop for Explosive {
    fn drop(&mut self) {
        self.ledger.count.fetch_add(1, SeqCst);
        if self.in_drop {
            resume_unwind(Box::new("drop"));
        }
    }
}

thread_local! {
    static FLUSHES: Cell<usize> = const { Cell::new(0) };
}

fn explosive_flush(file: &Explosive, _: TableId) -> Result<(), Errno> {
    FLUSHES.set(FLUSHES.get() + 1);
    if file.in_flush {
        resume_unwind(Box::new("flush"));
    }
    Ok(())
}

/// Runs what must panic; says how many fds it flushed and how many files it dropped.
fn explode(ends: &Ends, operation: impl FnOnce()) -> (usize, usize) {
    let (flushes, drops) = (FLUSHES.get(), ends.count.load(SeqCst));
    assert!(catch_unwind(AssertUnwindSafe(operation)).is_err(), "nothing has panicked");
    (FLUSHES.get() - flushes, ends.count.load(SeqCst) - drops)
}

/// Plain files at 0, 1, 2 and next to the explosive ones.
fn with_explosives(ends: &Arc<Ends>, fds: &[u32], in_flush: bool) -> FdTable<Explosive> {
    let plain = || Explosive { in_flush: false, in_drop: false, ledger: Arc::clone(ends) };
    let table = Options::new().on_close(explosive_flush).build();
    for _ in 0..3 {
        table.insert(plain(), NONE).unwrap();
    }
    for &fd in fds {
        let file = Explosive { in_flush, in_drop: !in_flush, ledger: Arc::clone(ends) };
        table.replace(fd, file, CLOEXEC).unwrap();
        for next in [fd - 1, fd + 1] {
            table.replace(next, plain(), CLOEXEC).unwrap();
        }
    }
    table
}

/// Where they are, in sweeps.
const EXPLOSIVE: [&[u32]; 4] =
    [&[4], &[70], &[4, 70], &[4, 8, 70, 75, if cfg!(miri) { 130 } else { 5000 }]];

/// Whether everything still works, on both sides of the border of the first word.
fn assert_usable(table: &FdTable<Explosive>, ends: &Arc<Ends>) {
    let plain = || Explosive { in_flush: false, in_drop: false, ledger: Arc::clone(ends) };
    assert_eq!((table.iter().count(), table.len()), (table.len(), fds(table).len()));
    let lowest = (0..).find(|&fd| !table.contains(fd)).unwrap();
    assert_eq!(table.insert(plain(), NONE).unwrap(), lowest);
    table.close(lowest).unwrap();
    let keep_0 = table.replace(0, plain(), NONE).unwrap();
    everything(table, &plain);
    assert!(keep_0.is_none_or(|file| !file.in_drop));
}

#[test]
fn c7_panics_of_one_fd() {
    type Way = fn(&FdTable<Explosive>, u32);
    let ways: [(Way, bool); 7] = [
        (|table, fd| table.close(fd).unwrap(), false),
        (|table, fd| table.close_range(fd, fd, CLOSE).unwrap(), false),
        (|table, fd| assert!(table.dup2(0, fd).is_ok()), true),
        (|table, fd| assert!(table.dup3(0, fd, CLOEXEC).is_ok()), true),
        (|table, fd| table.renumber(0, fd).unwrap(), true),
        (|table, fd| assert!(table.limited(1000).dup2(1, fd).is_ok()), true),
        (
            |table, fd| {
                // The copy lets go of it first.
                drop(catch_unwind(AssertUnwindSafe(|| table.fork().unwrap().clear())));
                table.close(fd).unwrap();
            },
            false,
        ),
    ];
    for fd in [4, 64, 70] {
        for in_flush in [false, true] {
            for (way, stays_open) in ways {
                let ends = Arc::<Ends>::default();
                let table = with_explosives(&ends, &[fd], in_flush);
                let (_, drops) = explode(&ends, || way(&table, fd));
                assert_eq!((drops, table.contains(fd)), (1, stays_open));
                assert!(table.contains(fd - 1) && table.contains(fd + 1));
                assert_usable(&table, &ends);
                drop(table);
            }
        }
    }
}

#[test]
fn c7_panics_in_a_sweep_release_the_others() {
    type Way = fn(&mut Files<Explosive>);
    // Ends with 0, 1 and 2 open, or with nothing.
    let ways: [(Way, bool); 7] = [
        (|files| files.close_range(3, u32::MAX, CloseRange::empty()).unwrap(), true),
        (|files| files.close_range(0, 2, CloseRange::EXCEPT).unwrap(), true),
        (|files| files.close_range(3, u32::MAX, CloseRange::UNSHARE).unwrap(), true),
        (|files| files.close_range(0, u32::MAX, CloseRange::CLOEXEC_ONLY).unwrap(), true),
        (|files| files.close_on_exec(), true),
        (|files| files.exec().unwrap(), true),
        (|files| files.clear(), false),
    ];
    for explosive in EXPLOSIVE {
        for in_flush in [false, true] {
            for (way, leaves_three) in ways {
                let ends = Arc::<Ends>::default();
                let mut files = Files::from(with_explosives(&ends, explosive, in_flush));
                let (open, rest) = (files.len(), if leaves_three { 3 } else { 0 });
                let (flushes, drops) = explode(&ends, || way(&mut files));
                assert_eq!((flushes, drops, files.len()), (open - rest, open - rest, rest));
                assert_usable(&files, &ends);
            }
        }
    }
}

#[test]
fn c7_panics_at_the_end_of_a_table_release_the_others() {
    type Way = fn(FdTable<Explosive>);
    let ways: [Way; 4] = [
        drop,
        |table| drop(Files::from(table)),
        |table| {
            // The last sharer to go.
            let files = Files::from(table);
            drop((files.share(), files.observe()));
            drop(files);
        },
        |table| {
            // A task that leaves for a table of its own while the only other one ends there.
            let mut files = Files::from(table);
            let thread = files.share();
            files.close_range(0, u32::MAX, CloseRange::UNSHARE).unwrap();
            assert!(files.is_empty());
            drop(thread);
        },
    ];
    for explosive in EXPLOSIVE {
        for in_flush in [false, true] {
            for way in ways {
                let ends = Arc::<Ends>::default();
                let table = with_explosives(&ends, explosive, in_flush);
                let open = table.len();
                assert_eq!(explode(&ends, || way(table)), (open, open));
            }
        }
    }
}

#[test]
fn c7_panics_of_a_copy_leave_the_parent() {
    for fd in [4, 70] {
        let ends = Arc::<Ends>::default();
        let table = with_explosives(&ends, &[fd], true);
        let child = table.fork().unwrap();
        let open = table.len();
        assert_eq!(explode(&ends, || drop(child)), (open, 0));
        assert_eq!(table.len(), open);
        let child = table.fork().unwrap();
        assert_eq!(explode(&ends, || table.clear()), (open, 0));
        assert_eq!((table.len(), child.len()), (0, open));
        assert_usable(&table, &ends);
        assert_eq!(explode(&ends, || drop(child)), (open, open));
    }
}

#[test]
fn c7_panics_of_the_last_handle() {
    for fd in [4, 70] {
        let ends = Arc::<Ends>::default();
        let table = with_explosives(&ends, &[fd], false);
        let (handle, owned) = (table.get(fd).unwrap(), table.get_owned(fd).unwrap());
        table.close(fd).unwrap();
        drop(handle);
        assert_eq!(explode(&ends, || drop(owned)), (0, 1));
        let table = with_explosives(&ends, &[fd], false);
        let handle = table.get(fd).unwrap();
        table.close(fd).unwrap();
        assert_eq!(explode(&ends, || drop(handle)), (0, 1));
        assert_usable(&table, &ends);

        // What an operation hands out is a handle too.
        let table = with_explosives(&ends, &[fd], false);
        let old = table.replace(fd, table.get_owned(0).unwrap(), NONE).unwrap();
        assert_eq!(explode(&ends, || drop(old)), (0, 1));
        let table = with_explosives(&ends, &[fd], false);
        let old = table.remove(fd).unwrap();
        assert_eq!(explode(&ends, || drop(old)), (0, 1));
        assert_usable(&table, &ends);
    }
}

struct Unconvertible;

impl From<Unconvertible> for OwnedRef<File> {
    fn from(_: Unconvertible) -> Self {
        resume_unwind(Box::new("into"));
    }
}

#[test]
fn c7_panics_of_a_conversion_change_nothing() {
    let panics = |operation: &dyn Fn()| {
        assert!(catch_unwind(AssertUnwindSafe(operation)).is_err());
    };
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = filled(&ledger, fd);
        panics(&|| drop(table.insert(Unconvertible, NONE)));
        panics(&|| drop(table.insert_from(fd + 5, Unconvertible, NONE)));
        panics(&|| drop(table.replace(0, Unconvertible, NONE)));
        panics(&|| drop(table.replace(fd + 1, Unconvertible, NONE)));
        panics(&|| assert_eq!(table.reserve().unwrap().install(Unconvertible, NONE), 0));
        assert_eq!((table.len(), table.reserve().unwrap().fd()), (fd as usize, fd_of(fd)));
        let files = Files::from(table);
        panics(&|| {
            files.reserve_owned(1000).unwrap().install(Unconvertible, NONE);
        });
        assert!(!files.is_shared());
        assert_eq!((files.len(), files.reserve().unwrap().fd()), (fd as usize, fd_of(fd)));

        // In the middle of a restore.
        let items = (0..fd + 1).map(|number| {
            if number == fd {
                resume_unwind(Box::new("next"));
            }
            (number, ledger.file(1), NONE)
        });
        let items = Mutex::new(Some(items));
        panics(&|| {
            let items = items.lock().unwrap().take().unwrap();
            drop(Options::new().on_close(flush).restore(items));
        });
        assert_eq!((ledger.live(), ledger.flushed()), (1, 0));
    }
}

/// Duplicates and copies of an fd are references to the same file: nothing of it is copied.
#[test]
fn c7_a_clone_that_panics_is_never_called() {
    struct Unclonable;

    impl Clone for Unclonable {
        fn clone(&self) -> Self {
            panic!("a table has no business here");
        }
    }

    let table = FdTable::new();
    table.insert(Unclonable, NONE).unwrap();
    table.dup(0).unwrap();
    table.dup2(0, 70).unwrap();
    let child = table.fork().unwrap();
    let copies = [child.get(70).unwrap().to_owned(), child.get_owned(0).unwrap().clone()];
    assert!(OwnedRef::ptr_eq(&copies[0], &copies[1]));
}
