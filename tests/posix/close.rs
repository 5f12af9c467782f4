//! Remove, close.

use super::*;

#[test]
fn remove_hands_the_file_over_neither_flushed_nor_dropped() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), CLOEXEC).unwrap();
        let live = ledger.live();
        let file = table.remove(base).unwrap();
        assert!(!table.contains(base));
        assert_eq!((ledger.live(), ledger.flushed()), (live, 0));
        assert_eq!(file.try_into_inner().unwrap().name(), 1);
        assert_eq!(table.remove(base).err(), Some(BadFd));
        assert_eq!(table.insert(ledger.file(2), NONE).unwrap(), base);
    });
}

#[test]
fn remove_then_try_into_inner_or_get_mut_counts_every_kind_of_reference() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), NONE).unwrap();
        table.dup(base).unwrap();
        let mut file = table.remove(base).unwrap();
        // Another fd refers to it.
        assert!(file.get_mut().is_none());
        let mut file = file.try_into_inner().unwrap_err();
        let handle = table.get(base + 1).unwrap();
        table.close(base + 1).unwrap();
        // A handle does.
        assert!(file.get_mut().is_none());
        let mut file = file.try_into_inner().unwrap_err();
        drop(handle);
        let other = file.clone();
        assert!(file.get_mut().is_none());
        let mut file = file.try_into_inner().unwrap_err();
        drop(other);
        assert_eq!(file.get_mut().unwrap().name(), 1);
        assert_eq!(file.try_into_inner().unwrap().name(), 1);
    });
}

/// What a flush hook and a drop find in the table at that moment.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    what: &'static str,
    of: u32,
    /// The file at the number in question.
    found: Option<u32>,
    /// The lowest free number.
    lowest: Fd,
}

struct Witness {
    name: u32,
    at: u32,
    table: Arc<OnceLock<Weak<FdTable<Witness>>>>,
    log: Arc<Mutex<Vec<Seen>>>,
}

impl Witness {
    fn see(&self, what: &'static str) {
        let Some(table) = self.table.get().and_then(Weak::upgrade) else { return };
        let found = table.get(self.at).ok().map(|file| file.name);
        let lowest = table.reserve().unwrap().fd();
        self.log.lock().unwrap().push(Seen { what, of: self.name, found, lowest });
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.see("drop");
    }
}

fn see_flush(file: &Witness, _: TableId) -> Result<(), Errno> {
    file.see("flush");
    Err(Errno::new(100 + file.name as i32))
}

/// A table with witnesses 1 and 2 at `base` and `base + 1`, that look at `base + 1`.
fn witnessed(base: u32) -> (Arc<FdTable<Witness>>, Arc<Mutex<Vec<Seen>>>) {
    let (own, log) = (Arc::<OnceLock<_>>::default(), Arc::<Mutex<_>>::default());
    let witness = |name| {
        let (table, log) = (Arc::clone(&own), Arc::clone(&log));
        OwnedRef::new(Witness { name, at: base + 1, table, log })
    };
    let filler = witness(0);
    let items = (0..base).map(|fd| (fd, filler.clone(), NONE));
    let table = Options::new().on_close(see_flush).restore(items).unwrap();
    table.insert(witness(1), NONE).unwrap();
    table.insert(witness(2), NONE).unwrap();
    let table = Arc::new(table);
    own.set(Arc::downgrade(&table)).unwrap();
    drop(filler);
    log.lock().unwrap().clear();
    (table, log)
}

#[test]
fn close_frees_the_number_then_flushes_then_drops() {
    for base in BASES {
        let (table, log) = witnessed(base);
        // The hook's error is reported, and the fd is closed all the same.
        assert_eq!(table.close(base + 1), Err(CloseError::Flush(Errno::new(102))));
        let lowest = Fd::try_from(base + 1).unwrap();
        let seen = ["flush", "drop"].map(|what| Seen { what, of: 2, found: None, lowest });
        assert_eq!(*log.lock().unwrap(), seen);
        // Nothing is flushed that was not open.
        assert_eq!(table.close(base + 1), Err(CloseError::BadFd));
        assert_eq!(log.lock().unwrap().len(), 2);
    }
}

#[test]
fn dup2_and_renumber_flush_and_drop_the_victim_after_the_swap() {
    for base in BASES {
        let (table, log) = witnessed(base);
        let duplicated =
            Seen { what: "flush", of: 2, found: Some(1), lowest: Fd::try_from(base + 2).unwrap() };
        // The hook's error is ignored.
        assert_eq!(table.dup2(base, base + 1).unwrap(), base + 1);
        let dropped = Seen { what: "drop", ..duplicated };
        assert_eq!(*log.lock().unwrap(), [duplicated, dropped]);

        let (table, log) = witnessed(base);
        table.renumber(base, base + 1).unwrap();
        let lowest = Fd::try_from(base).unwrap();
        let seen = ["flush", "drop"].map(|what| Seen { what, of: 2, found: Some(1), lowest });
        assert_eq!(*log.lock().unwrap(), seen);
    }
}

#[test]
fn sweeps_close_one_fd_after_the_other() {
    for base in BASES {
        let (table, log) = witnessed(base);
        table.close_range(base, base + 1, CLOSE).unwrap();
        // While the first is flushed and dropped the second is still open.
        let lowest = Fd::try_from(base).unwrap();
        let see = |of, found| ["flush", "drop"].map(|what| Seen { what, of, found, lowest });
        assert_eq!(*log.lock().unwrap(), [see(1, Some(2)), see(2, None)].concat());

        let (table, log) = witnessed(base);
        table.set_flags(base, CLOEXEC).unwrap();
        table.set_flags(base + 1, CLOEXEC).unwrap();
        table.close_on_exec();
        assert_eq!(*log.lock().unwrap(), [see(1, Some(2)), see(2, None)].concat());

        let (table, log) = witnessed(base);
        table.clear();
        let of: Vec<_> =
            log.lock().unwrap()[..4].iter().map(|seen| (seen.of, seen.lowest)).collect();
        let lowest = |of: u32| (of, Fd::try_from(base + of - 1).unwrap());
        assert_eq!(of, [lowest(2), lowest(2), lowest(1), lowest(1)]);
    }
}

/// When it is flushed, opens a number so far above the one it was at.
struct Sower {
    fd: u32,
    step: i32,
    table: Arc<OnceLock<Weak<FdTable<Sower>>>>,
}

fn sow(file: &Sower, _: TableId) -> Result<(), Errno> {
    if let Some(table) = file.table.get().and_then(Weak::upgrade) {
        let fd = file.fd.checked_add_signed(file.step).unwrap();
        let next = Sower { fd, step: file.step, table: Arc::clone(&file.table) };
        assert!(table.replace(fd, next, NONE).is_ok());
    }
    Ok(())
}

/// Opens a sower, lets the table be swept, and says what is open then.
fn sown(fd: u32, step: i32, sweep: impl Fn(&FdTable<Sower>)) -> Vec<u32> {
    let own = Arc::<OnceLock<_>>::default();
    let table = Arc::new(Options::new().on_close(sow).build());
    let first = Sower { fd, step, table: Arc::clone(&own) };
    assert!(table.replace(fd, first, NONE).is_ok());
    own.set(Arc::downgrade(&table)).unwrap_or_else(|_| unreachable!());
    sweep(&table);
    table.iter().map(|entry| entry.fd.get()).collect()
}

/// Linux looks for the next fd when it has closed one.
#[test]
fn sweeps_close_what_is_opened_ahead_of_them() {
    for base in BASES {
        let range = |table: &FdTable<_>| table.close_range(base, base + 10, CLOSE).unwrap();
        assert_eq!(sown(base, 3, range), [base + 12]);
    }
}

/// Or they would never end.
#[test]
fn sweeps_leave_what_is_opened_behind_them() {
    for base in BASES {
        let range = |table: &FdTable<_>| table.close_range(base, base + 10, CLOSE).unwrap();
        assert_eq!(sown(base + 8, -3, range), [base + 5]);
        assert_eq!(sown(base, 3, FdTable::clear), [base + 3]);
    }
}

#[test]
fn close_flushes_once_per_fd_and_drops_once_per_file() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), NONE).unwrap();
        table.dup(base).unwrap();
        let handle = table.get(base).unwrap();
        let live = ledger.live();
        table.close(base).unwrap();
        assert_eq!((ledger.flushed(), ledger.live()), (1, live));
        table.close(base + 1).unwrap();
        assert_eq!((ledger.flushed(), ledger.live()), (2, live));
        drop(handle);
        assert_eq!((ledger.flushed(), ledger.live()), (2, live - 1));
        assert_eq!(table.close(base), Err(CloseError::BadFd));
        assert_eq!(table.close(base).unwrap_err().errno(), Errno::EBADF);
        assert_eq!(ledger.flushed(), 2);
    });
}

#[test]
fn the_hook_is_told_the_identity_of_the_table() {
    fn note(ids: &Mutex<Vec<TableId>>, id: TableId) -> Result<(), Errno> {
        ids.lock().unwrap().push(id);
        Ok(())
    }

    let parent = Options::<Mutex<Vec<TableId>>>::new().on_close(note).build();
    let file = OwnedRef::new(Mutex::default());
    parent.insert(file.clone(), NONE).unwrap();
    let child = parent.fork().unwrap();
    let (parent_id, child_id) = (parent.id(), child.id());
    assert_ne!(parent_id, child_id);
    assert_ne!(parent_id.get(), child_id.get());
    parent.close(0).unwrap();
    drop(child);
    assert_eq!(*file.lock().unwrap(), [parent_id, child_id]);
}
