//! Dropping, flushing, order.

use super::*;

/// A file whose end, in its flush or in its drop, waits until it is let go.
struct Slow {
    gate: Option<(Sender<()>, Mutex<Receiver<()>>)>,
    in_flush: bool,
}

impl Slow {
    const PLAIN: Slow = Slow { gate: None, in_flush: false };

    fn wait(&self) {
        if let Some((entered, leave)) = &self.gate {
            entered.send(()).unwrap();
            leave.lock().unwrap().recv().unwrap();
        }
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        if !self.in_flush {
            self.wait();
        }
    }
}

fn slow_flush(file: &Slow, _: TableId) -> Result<(), Errno> {
    if file.in_flush {
        file.wait();
    }
    Ok(())
}

#[test]
fn f1_a_drop_that_blocks_delays_nobody() {
    type Way = fn(&FdTable<Slow>, u32);
    let ways: [Way; 8] = [
        |table, fd| table.close(fd).unwrap(),
        |table, fd| assert!(table.dup2(1, fd).is_ok()),
        |table, fd| assert!(table.dup3(1, fd, CLOEXEC).is_ok()),
        |table, fd| table.renumber(1, fd).unwrap(),
        |table, fd| table.close_range(fd, fd, CLOSE).unwrap(),
        |table, _| table.close_range(2, u32::MAX, CLOSE).unwrap(),
        |table, _| table.close_on_exec(),
        |table, _| table.clear(),
    ];
    for fd in [3, 70] {
        for way in ways {
            for in_flush in [false, true] {
                let table = Options::new().on_close(slow_flush).build();
                let (entered, is_entered) = channel();
                let (leave, is_left) = channel();
                let slow = Slow { gate: Some((entered, Mutex::new(is_left))), in_flush };
                for fd in [0, 1, 2, 69] {
                    table.replace(fd, Slow::PLAIN, NONE).unwrap();
                }
                table.replace(fd, slow, CLOEXEC).unwrap();
                thread::scope(|scope| {
                    scope.spawn(|| way(&table, fd));
                    is_entered.recv().unwrap();
                    // Another thread is in the middle of it, and stays there until the end of this.
                    use_everything(&table);
                    leave.send(()).unwrap();
                });
                assert!(table.insert(Slow::PLAIN, NONE).is_ok());
            }
        }
    }
}

/// All that may not wait for a file's end.
fn use_everything(table: &FdTable<Slow>) {
    assert!(table.get(0).is_ok() && table.contains(0) && table.flags(0).is_ok());
    let low = table.insert(Slow::PLAIN, NONE).unwrap();
    let high = table.insert_from(65, Slow::PLAIN, NONE).unwrap();
    table.set_flags(low, CLOEXEC).unwrap();
    table.set_flags(high, CLOEXEC).unwrap();
    drop(table.reserve_many::<2>().unwrap());
    table.dup2(low, high).unwrap();
    table.dup2(0, 7).unwrap();
    table.close(7).unwrap();
    assert!(table.iter().count() >= 3);
    assert!(table.len() >= 3 && table.highest_open().is_some());
    drop(table.fork().unwrap());
    table.close_range(high.get(), high.get(), CLOSE).unwrap();
    table.close_range(low.get(), low.get(), CloseRange::CLOEXEC).unwrap();
    table.close(low).unwrap();
    table.reserve_capacity(2000).unwrap();
    table.close(0).unwrap();
}

/// A file that uses its table from each of its callbacks.
struct Busy {
    table: OnceLock<Weak<FdTable<Busy>>>,
}

impl Busy {
    fn plain() -> Busy {
        Busy { table: OnceLock::new() }
    }

    fn use_table(&self) {
        let Some(table) = self.table.get().and_then(Weak::upgrade) else { return };
        assert!(table.get(0).is_ok());
        let low = table.insert(Busy::plain(), NONE).unwrap();
        let high = table.insert_from(70, Busy::plain(), NONE).unwrap();
        table.close(low).unwrap();
        table.close(high).unwrap();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.use_table();
    }
}

impl fmt::Debug for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.use_table();
        f.write_str("Busy")
    }
}

#[test]
fn f2_callbacks_may_use_the_table() {
    fn busy_flush(file: &Busy, _: TableId) -> Result<(), Errno> {
        file.use_table();
        Ok(())
    }

    for fd in [3, 70] {
        let table = Arc::new(Options::new().on_close(busy_flush).build());
        table.insert(Busy::plain(), NONE).unwrap();
        let busy = || Busy { table: OnceLock::from(Arc::downgrade(&table)) };
        table.replace(fd, busy(), NONE).unwrap();
        let entry = format!("{:?}", table.iter().last().unwrap());
        assert!(entry.contains("Busy"));
        let _ = format!("{table:?}");
        table.close(fd).unwrap();
        table.replace(fd, busy(), CLOEXEC).unwrap();
        table.dup2(0, fd).unwrap();
        table.replace(fd, busy(), CLOEXEC).unwrap();
        table.close_on_exec();
        table.replace(fd, busy(), CLOEXEC).unwrap();
        table.clear();
        assert_eq!(table.len(), 0);
    }
}

#[test]
fn f3_the_victim_of_a_dup2_is_flushed_once() {
    for victim in [4, 70] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 100);
        table.dup2(3, victim).unwrap();
        assert_eq!((ledger.flushed(), ledger.live()), (1, 99));
        // The same file once more: another fd is closed, so another flush, but no release.
        table.dup2(3, victim).unwrap();
        assert_eq!((ledger.flushed(), ledger.live()), (2, 99));
    }
}

#[test]
fn f4_flush_per_fd_and_release_per_file() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 4);
    assert_eq!(table.dup(3).unwrap(), 4);
    table.close(3).unwrap();
    assert_eq!((ledger.flushed(), ledger.live()), (1, 4));
    table.close(4).unwrap();
    assert_eq!((ledger.flushed(), ledger.live()), (2, 3));
}

#[test]
fn f5_a_lower_file_may_wait_for_a_higher_one() {
    struct Chained {
        waits: bool,
        is_released: Arc<AtomicBool>,
    }

    impl Drop for Chained {
        fn drop(&mut self) {
            if self.waits {
                // Instead of waiting for ever.
                assert!(self.is_released.load(SeqCst), "4 was to be closed first");
            } else {
                self.is_released.store(true, SeqCst);
            }
        }
    }

    for (low, high) in [(3, 4), (3, 64), (64, 65), (100, 5000)] {
        for is_task in [false, true] {
            let table = FdTable::new();
            let is_released = Arc::new(AtomicBool::new(false));
            for (fd, waits) in [(low, true), (high, false)] {
                let is_released = Arc::clone(&is_released);
                table.replace(fd, Chained { waits, is_released }, NONE).unwrap();
            }
            if is_task {
                drop(Files::from(table));
            } else {
                drop(table);
            }
            assert!(is_released.load(SeqCst));
        }
    }
}

#[test]
fn f6_unshare_flushes_nothing_that_it_leaves_out() {
    fn note(file: &Mutex<Vec<TableId>>, id: TableId) -> Result<(), Errno> {
        file.lock().unwrap().push(id);
        Ok(())
    }

    let table = Options::<Mutex<Vec<TableId>>>::new().on_close(note).build();
    let file = OwnedRef::new(Mutex::default());
    for _ in 0..3 {
        table.insert(file.clone(), NONE).unwrap();
    }
    let mut files = Files::from(table);
    let thread = files.share();
    let old = files.id();
    files.close_range(0, 1, CloseRange::UNSHARE).unwrap();
    assert!(file.lock().unwrap().is_empty());
    // The copy flushes what it has, the old table everything.
    let new = files.id();
    drop(files);
    assert_eq!(*file.lock().unwrap(), [new]);
    drop(thread);
    assert_eq!(*file.lock().unwrap(), [new, old, old, old]);
}

/// A file whose callbacks panic, quietly: a panic hook would write a line for each.
struct Explosive {
    drops: Arc<AtomicUsize>,
    in_flush: bool,
    in_drop: bool,
}

impl Clone for Explosive {
    fn clone(&self) -> Self {
        resume_unwind(Box::new("clone"));
    }
}

impl Drop for Explosive {
    fn drop(&mut self) {
        self.drops.fetch_add(1, SeqCst);
        if self.in_drop {
            resume_unwind(Box::new("drop"));
        }
    }
}

#[test]
fn f7_panics_leave_the_table_sound() {
    fn explosive_flush(file: &Explosive, _: TableId) -> Result<(), Errno> {
        if file.in_flush {
            resume_unwind(Box::new("flush"));
        }
        Ok(())
    }

    for fd in [3, 70] {
        for (in_flush, in_drop) in [(true, false), (false, true)] {
            let drops = Arc::new(AtomicUsize::new(0));
            let plain = || Explosive { drops: Arc::clone(&drops), in_flush: false, in_drop: false };
            let explosive = || Explosive { drops: Arc::clone(&drops), in_flush, in_drop };
            let panics = |operation: &dyn Fn()| {
                let before = drops.load(SeqCst);
                assert!(catch_unwind(AssertUnwindSafe(operation)).is_err());
                drops.load(SeqCst) - before
            };
            let table = Options::new().on_close(explosive_flush).build();
            for _ in 0..3 {
                table.insert(plain(), NONE).unwrap();
            }
            table.replace(fd, explosive(), NONE).unwrap();
            assert_eq!(panics(&|| table.close(fd).unwrap()), 1);
            assert!(!table.contains(fd));

            table.replace(fd, explosive(), NONE).unwrap();
            assert_eq!(panics(&|| assert!(table.dup2(0, fd).is_ok())), 1);
            assert!(table.contains(fd));

            table.replace(fd, explosive(), CLOEXEC).unwrap();
            let child = table.fork().unwrap();
            assert_eq!(child.len(), 4);
            if in_flush {
                // Both flush it, the parent drops it.
                assert_eq!(panics(&|| child.close_on_exec()), 0);
                assert_eq!(panics(&|| table.close_on_exec()), 1);
            } else {
                child.close_on_exec();
                assert_eq!(panics(&|| table.close_on_exec()), 1);
            }
            assert_eq!((child.len(), table.len()), (3, 3));
            drop(child);

            table.replace(fd, explosive(), NONE).unwrap();
            table.replace(2, explosive(), NONE).unwrap();
            table.insert(plain(), NONE).unwrap();
            let table = Mutex::new(Some(table));
            let before = drops.load(SeqCst);
            assert!(
                catch_unwind(|| drop(table.lock().unwrap_or_else(|e| e.into_inner()).take()))
                    .is_err()
            );
            // All of them, also those closed after the panic.
            assert_eq!(drops.load(SeqCst) - before, 5);
        }
    }
}

#[test]
fn f8_a_full_table_gives_the_file_back() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 64);
    table.set_limit(64);
    let rejected = table.insert(ledger.file(7), NONE).unwrap_err();
    assert_eq!((rejected.errno(), rejected.file.name()), (Errno::EMFILE, 7));
    assert_eq!(rejected.file.try_into_inner().unwrap().name(), 7);
    assert_eq!(ledger.live(), 64);
    // Or drops it, if the caller wants only the reason.
    let error = table.insert(ledger.file(7), NONE).unwrap_err().into_error();
    assert_eq!((error, ledger.live(), ledger.flushed()), (ReserveError::LimitReached, 64, 0));
}

#[test]
fn f9_an_exec_flushes_and_releases_each() {
    let ledger = Ledger::new();
    let mut files = Files::from(opened(&ledger, 100));
    for fd in [2, 3, 80] {
        files.set_flags(fd, CLOEXEC).unwrap();
    }
    files.exec().unwrap();
    assert_eq!((ledger.flushed(), ledger.live(), files.len()), (3, 97, 97));
}
