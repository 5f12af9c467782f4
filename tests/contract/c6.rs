//! C6: no code of the user's runs under a lock or in a half-done claim.

use super::*;

/// A file that uses its table, with every operation, from each of its callbacks.
#[derive(Default)]
struct Reentrant {
    table: Option<Weak<FdTable<Reentrant>>>,
    calls: Arc<AtomicUsize>,
}

thread_local! {
    static CALLING: Cell<bool> = const { Cell::new(false) };
}

impl Reentrant {
    fn call(&self) {
        // One level will do: with a fork among the operations there would be no end to it.
        if CALLING.get() {
            return;
        }
        if let Some(table) = self.table.as_ref().and_then(Weak::upgrade) {
            CALLING.set(true);
            everything(&table, &Reentrant::default);
            CALLING.set(false);
            self.calls.fetch_add(1, SeqCst);
        }
    }
}

impl Drop for Reentrant {
    fn drop(&mut self) {
        self.call();
    }
}

impl fmt::Debug for Reentrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call();
        f.write_str("file")
    }
}

fn reentrant_flush(file: &Reentrant, _: TableId) -> Result<(), Errno> {
    file.call();
    Ok(())
}

/// Becomes a file, and uses the table while it does.
struct Becoming<'a>(&'a Arc<FdTable<Reentrant>>, &'a Arc<AtomicUsize>);

impl From<Becoming<'_>> for OwnedRef<Reentrant> {
    fn from(Becoming(table, calls): Becoming<'_>) -> Self {
        everything(table, &Reentrant::default);
        calls.fetch_add(1, SeqCst);
        OwnedRef::new(Reentrant::default())
    }
}

#[test]
fn c6_flush_and_drop_may_use_the_table() {
    type Way = fn(&Arc<FdTable<Reentrant>>, u32);
    let ways: [Way; 13] = [
        |table, fd| table.close(fd).unwrap(),
        |table, fd| assert!(table.dup2(0, fd).is_ok()),
        |table, fd| assert!(table.dup3(0, fd, CLOEXEC).is_ok()),
        |table, fd| table.renumber(table.dup(0).unwrap(), fd).unwrap(),
        |table, fd| table.close_range(fd, fd, CLOSE).unwrap(),
        |table, _| table.close_range(1, u32::MAX, CLOSE).unwrap(),
        |table, _| table.close_range(0, 0, CloseRange::EXCEPT).unwrap(),
        |table, _| table.close_range(0, u32::MAX, CloseRange::CLOEXEC_ONLY).unwrap(),
        |table, _| table.close_on_exec(),
        |table, _| table.clear(),
        |table, fd| drop((table.fork().unwrap(), table.close(fd)).0),
        |table, fd| {
            let handle = table.get(fd).unwrap();
            table.close(fd).unwrap();
            drop(handle);
        },
        |table, _| {
            let mut files = Files::from(table.fork().unwrap());
            table.clear();
            table.insert(Reentrant::default(), NONE).unwrap();
            let _thread = files.share();
            files.exec().unwrap();
        },
    ];
    for fds in
        [[5, 70], [3, 5], [70, 75], [63, 64]].into_iter().take(if cfg!(miri) { 1 } else { 4 })
    {
        for way in ways {
            let table = Arc::new(Options::new().on_close(reentrant_flush).build());
            table.insert(Reentrant::default(), NONE).unwrap();
            let calls = Arc::<AtomicUsize>::default();
            for fd in fds {
                let file =
                    Reentrant { table: Some(Arc::downgrade(&table)), calls: Arc::clone(&calls) };
                table.replace(fd, file, CLOEXEC).unwrap();
            }
            way(&table, fds[0]);
            assert!(calls.load(SeqCst) >= 2, "flush and drop");
            // It is as good as ever.
            drop(table.replace(0, Reentrant::default(), NONE).unwrap());
            everything(&table, &Reentrant::default);
        }
    }
}

/// A drop that does to the table what is being done to it already.
#[test]
fn c6_sweeps_may_be_nested() {
    struct Sweeping(Weak<FdTable<Sweeping>>, Arc<AtomicUsize>);

    impl Drop for Sweeping {
        fn drop(&mut self) {
            self.1.fetch_add(1, SeqCst);
            if let Some(table) = self.0.upgrade() {
                table.clear();
                table.close_on_exec();
                table.close_range(0, u32::MAX, CLOSE).unwrap();
                let _ = (table.close(3), table.remove(70), table.dup2(3, 70));
            }
        }
    }

    let ways: [fn(&FdTable<Sweeping>); 4] = [
        |table| table.clear(),
        |table| table.close_on_exec(),
        |table| table.close_range(0, u32::MAX, CLOSE).unwrap(),
        |table| table.close(50).unwrap(),
    ];
    for way in ways {
        let drops = Arc::<AtomicUsize>::default();
        let table = Arc::new(FdTable::new());
        for _ in 0..if cfg!(miri) { 70 } else { 200 } {
            let file = Sweeping(Arc::downgrade(&table), Arc::clone(&drops));
            table.insert(file, CLOEXEC).unwrap();
        }
        let open = table.len();
        way(&table);
        assert_eq!((table.len(), drops.load(SeqCst)), (0, open));
    }
}

#[test]
fn c6_conversions_into_a_file_may_use_the_table() {
    let table = Arc::new(FdTable::new());
    table.insert(Reentrant::default(), NONE).unwrap();
    let calls = Arc::<AtomicUsize>::default();
    let becoming = || Becoming(&table, &calls);
    table.insert(becoming(), NONE).unwrap();
    table.insert_from(70, becoming(), NONE).unwrap();
    assert!(table.insert_from(-1, becoming(), NONE).is_err());
    table.limited(200).insert(becoming(), NONE).unwrap();
    drop(table.replace(0, becoming(), NONE).unwrap());
    drop(table.replace(71, becoming(), NONE).unwrap());
    assert!(table.replace(-1, becoming(), NONE).is_err());
    for numbers in [5..u32::MAX, 80..u32::MAX] {
        table.reserve_in(numbers).unwrap().install(becoming(), NONE);
    }
    let items = [(0, becoming(), NONE), (70, becoming(), CLOEXEC)];
    assert_eq!(Options::<Reentrant>::new().restore(items).unwrap().len(), 2);
    assert_eq!(calls.load(SeqCst), 11);
    assert_eq!(fds(&table), [0, 1, 2, 5, 70, 71, 80]);
}

#[test]
fn c6_debug_of_a_file_may_use_the_table() {
    let table = Arc::new(FdTable::new());
    table.insert(Reentrant::default(), NONE).unwrap();
    let calls = Arc::<AtomicUsize>::default();
    for fd in [1, 70] {
        let file = Reentrant { table: Some(Arc::downgrade(&table)), calls: Arc::clone(&calls) };
        table.replace(fd, file, NONE).unwrap();
    }
    let shown = table.iter().map(|entry| format!("{entry:?}")).collect::<Vec<_>>();
    assert!(shown.iter().all(|entry| entry.contains("file: file")));
    for fd in [1, 70] {
        let _ = format!("{:?} {:?}", table.get(fd).unwrap(), table.get_owned(fd).unwrap());
    }
    assert_eq!(calls.load(SeqCst), 6);
}
