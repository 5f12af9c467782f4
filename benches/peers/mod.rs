//! What a user would write instead, behind one small trait.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use fdtable::{FdFlags, FdTable};

/// A table of `Arc<T>`-like files, as far as the benchmarks need it.
pub(crate) trait Table: Sync {
    /// Opens a file at the lowest free number.
    fn insert(&self, file: u64) -> usize;
    /// Reads the file.
    fn read(&self, fd: usize) -> u64;
    /// Closes it.
    fn close(&self, fd: usize);
}

/// Numbers are the lowest free, files are found, closed ones are gone: what is timed must be right.
pub(crate) fn check(table: &impl Table) {
    let fds: Vec<_> = (0..100).map(|file| table.insert(file)).collect();
    assert_eq!(fds, (0..100).collect::<Vec<_>>());
    assert!(fds.iter().all(|&fd| table.read(fd) == fd as u64));
    table.close(70);
    table.close(7);
    assert_eq!(table.insert(1), 7);
    assert_eq!(table.insert(2), 70);
    fds.iter().for_each(|&fd| table.close(fd));
    assert_eq!(table.insert(3), 0);
    table.close(0);
}

impl Table for FdTable<u64> {
    fn insert(&self, file: u64) -> usize {
        FdTable::insert(self, file, FdFlags::empty()).expect("not full").get() as usize
    }

    fn read(&self, fd: usize) -> u64 {
        *self.get(fd).expect("open")
    }

    fn close(&self, fd: usize) {
        FdTable::close(self, fd).expect("open");
    }
}

type Slots = Vec<Option<Arc<u64>>>;

fn insert(slots: &mut Slots, file: Arc<u64>) -> usize {
    let fd = slots.iter().position(Option::is_none).unwrap_or(slots.len());
    if fd == slots.len() {
        slots.push(None);
    }
    slots[fd] = Some(file);
    fd
}

/// `RwLock<Vec<Option<Arc<T>>>>`, with a scan for the lowest number; drops outside of the lock.
#[derive(Default)]
pub(crate) struct RwLockVec(RwLock<Slots>);

impl Table for RwLockVec {
    fn insert(&self, file: u64) -> usize {
        let file = Arc::new(file);
        insert(&mut self.0.write().unwrap_or_else(PoisonError::into_inner), file)
    }

    fn read(&self, fd: usize) -> u64 {
        let file = self.0.read().unwrap_or_else(PoisonError::into_inner)[fd].clone();
        *file.expect("open")
    }

    fn close(&self, fd: usize) {
        let file = self.0.write().unwrap_or_else(PoisonError::into_inner)[fd].take();
        drop(file.expect("open"));
    }
}

/// `Mutex<Vec<Option<Arc<T>>>>`, likewise.
#[derive(Default)]
pub(crate) struct MutexVec(Mutex<Slots>);

impl Table for MutexVec {
    fn insert(&self, file: u64) -> usize {
        let file = Arc::new(file);
        insert(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), file)
    }

    fn read(&self, fd: usize) -> u64 {
        let file = self.0.lock().unwrap_or_else(PoisonError::into_inner)[fd].clone();
        *file.expect("open")
    }

    fn close(&self, fd: usize) {
        let file = self.0.lock().unwrap_or_else(PoisonError::into_inner)[fd].take();
        drop(file.expect("open"));
    }
}
