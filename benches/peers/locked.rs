//! A lock around a vector: what most programs have.

use std::ops::Range;
use std::sync::{Arc, PoisonError};

use slab::Slab;

use super::{Dup, Table};

/// The vector, and the number below which none is free: without that a scan from 0 would be all one measures.
#[derive(Default)]
pub(crate) struct Slots {
    pub(crate) files: Vec<Option<Arc<u64>>>,
    lowest: usize,
}

impl Slots {
    fn insert(&mut self, file: Arc<u64>) -> usize {
        let free = self.files[self.lowest..].iter().position(Option::is_none);
        let fd = free.map_or(self.files.len(), |free| self.lowest + free);
        if fd == self.files.len() {
            self.files.push(None);
        }
        self.files[fd] = Some(file);
        self.lowest = fd + 1;
        fd
    }

    fn get(&self, fd: usize) -> Option<Arc<u64>> {
        self.files.get(fd)?.clone()
    }

    fn remove(&mut self, fd: usize) -> Option<Arc<u64>> {
        let file = self.files.get_mut(fd)?.take()?;
        self.lowest = self.lowest.min(fd);
        Some(file)
    }

    /// For the caller to drop when it has let go of the lock.
    pub(crate) fn take_range(&mut self, fds: Range<usize>) -> Vec<Option<Arc<u64>>> {
        self.lowest = self.lowest.min(fds.start);
        self.files[fds].iter_mut().map(Option::take).collect()
    }

    fn dup(&mut self, fd: usize) -> usize {
        let file = self.get(fd).expect("open");
        self.insert(file)
    }

    fn dup2(&mut self, old: usize, new: usize) -> Option<Arc<u64>> {
        let file = self.get(old);
        std::mem::replace(&mut self.files[new], file)
    }
}

macro_rules! locked_vec {
    ($type:ident, $name:literal, $lock:ty, $read:path, $write:path) => {
        #[derive(Default)]
        pub(crate) struct $type(pub(crate) $lock);

        impl Table for $type {
            const NAME: &'static str = $name;
            type File = Arc<u64>;

            fn new(_: usize) -> Self {
                Self::default()
            }

            #[inline(always)]
            fn insert(&self, file: Arc<u64>) -> usize {
                $write(&self.0).insert(file)
            }

            #[inline(always)]
            fn read(&self, fd: usize) -> Option<u64> {
                let file = $read(&self.0).get(fd);
                file.map(|file| *file)
            }

            #[inline(always)]
            fn remove(&self, fd: usize) -> Option<Arc<u64>> {
                $write(&self.0).remove(fd)
            }
        }

        impl Dup for $type {
            fn dup(&self, fd: usize) -> usize {
                $write(&self.0).dup(fd)
            }

            fn dup2(&self, old: usize, new: usize) {
                let victim = $write(&self.0).dup2(old, new);
                drop(victim);
            }
        }
    };
}

fn std_read(lock: &std::sync::RwLock<Slots>) -> std::sync::RwLockReadGuard<'_, Slots> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn std_write(lock: &std::sync::RwLock<Slots>) -> std::sync::RwLockWriteGuard<'_, Slots> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

fn std_lock(lock: &std::sync::Mutex<Slots>) -> std::sync::MutexGuard<'_, Slots> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

locked_vec!(
    StdRwLock,
    "std RwLock<Vec<Option<Arc>>>",
    std::sync::RwLock<Slots>,
    std_read,
    std_write
);
locked_vec!(StdMutex, "std Mutex<Vec<Option<Arc>>>", std::sync::Mutex<Slots>, std_lock, std_lock);
locked_vec!(
    ParkingLotRwLock,
    "parking_lot RwLock<Vec<Option<Arc>>>",
    parking_lot::RwLock<Slots>,
    parking_lot::RwLock::read,
    parking_lot::RwLock::write
);
locked_vec!(
    ParkingLotMutex,
    "parking_lot Mutex<Vec<Option<Arc>>>",
    parking_lot::Mutex<Slots>,
    parking_lot::Mutex::lock,
    parking_lot::Mutex::lock
);

/// The number freed last is handed out first.
#[derive(Default)]
pub(crate) struct MutexSlab(parking_lot::Mutex<Slab<Arc<u64>>>);

impl Table for MutexSlab {
    const NAME: &'static str = "parking_lot Mutex<Slab<Arc>>";
    const LOWEST: bool = false;
    type File = Arc<u64>;

    fn new(_: usize) -> Self {
        Self::default()
    }

    #[inline(always)]
    fn insert(&self, file: Arc<u64>) -> usize {
        self.0.lock().insert(file)
    }

    #[inline(always)]
    fn read(&self, fd: usize) -> Option<u64> {
        let file = self.0.lock().get(fd).cloned();
        file.map(|file| *file)
    }

    #[inline(always)]
    fn remove(&self, fd: usize) -> Option<Arc<u64>> {
        self.0.lock().try_remove(fd)
    }
}
