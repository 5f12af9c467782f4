//! Slots whose files are protected by arc-swap, by epochs, or by a sharded slab.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use crossbeam_epoch::{Atomic, Owned, Shared, pin};
use std::sync::atomic::Ordering;

use super::Table;
use super::numbers::Numbers;

/// One `ArcSwapOption` per slot; a fixed number of them.
pub(crate) struct ArcSwaps {
    numbers: Numbers,
    slots: Box<[ArcSwapOption<u64>]>,
}

impl Table for ArcSwaps {
    const NAME: &'static str = "arc-swap per slot";
    type File = Arc<u64>;

    fn new(capacity: usize) -> Self {
        ArcSwaps {
            numbers: Numbers::default(),
            slots: (0..capacity).map(|_| ArcSwapOption::empty()).collect(),
        }
    }

    #[inline(always)]
    fn insert(&self, file: Arc<u64>) -> usize {
        let fd = self.numbers.claim();
        self.slots[fd].store(Some(file));
        fd
    }

    /// `load`, which is the cheap way: the handle can't be kept for long.
    #[inline(always)]
    fn read(&self, fd: usize) -> Option<u64> {
        self.slots[fd].load().as_deref().copied()
    }

    #[inline(always)]
    fn remove(&self, fd: usize) -> Option<Arc<u64>> {
        let file = self.slots[fd].swap(None)?;
        self.numbers.release(fd);
        Some(file)
    }
}

/// A pointer per slot, protected by epochs; a handle on the file is an `Arc`.
pub(crate) struct EpochSlots {
    numbers: Numbers,
    slots: Box<[Atomic<Arc<u64>>]>,
}

impl EpochSlots {
    /// Empties the slot; what was there is freed when all readers of today have left.
    #[inline(always)]
    fn take(&self, fd: usize) -> Option<Arc<u64>> {
        let guard = pin();
        let old = self.slots[fd].swap(Shared::null(), Ordering::AcqRel, &guard);
        // SAFETY: not null is what `insert` has stored; the guard keeps it from being freed.
        let file = unsafe { old.as_ref() }?.clone();
        // SAFETY: it was swapped out above, so later readers can't reach it, and nobody else frees it.
        unsafe { guard.defer_destroy(old) };
        Some(file)
    }
}

impl Table for EpochSlots {
    const NAME: &'static str = "crossbeam-epoch slots";
    type File = Arc<u64>;

    fn new(capacity: usize) -> Self {
        EpochSlots {
            numbers: Numbers::default(),
            slots: (0..capacity).map(|_| Atomic::null()).collect(),
        }
    }

    #[inline(always)]
    fn insert(&self, file: Arc<u64>) -> usize {
        let fd = self.numbers.claim();
        self.slots[fd].store(Owned::new(file), Ordering::Release);
        fd
    }

    #[inline(always)]
    fn read(&self, fd: usize) -> Option<u64> {
        let guard = pin();
        let file = self.slots[fd].load(Ordering::Acquire, &guard);
        // SAFETY: as in `take`.
        let file = unsafe { file.as_ref() }?.clone();
        drop(guard);
        Some(*file)
    }

    #[inline(always)]
    fn remove(&self, fd: usize) -> Option<Arc<u64>> {
        let file = self.take(fd)?;
        self.numbers.release(fd);
        Some(file)
    }
}

impl Drop for EpochSlots {
    fn drop(&mut self) {
        for fd in 0..self.slots.len() {
            self.take(fd);
        }
    }
}

/// Holds the files themselves; its keys are generational.
pub(crate) struct ShardedSlab(sharded_slab::Slab<u64>);

impl Table for ShardedSlab {
    const NAME: &'static str = "sharded-slab";
    const LOWEST: bool = false;
    type File = u64;

    fn new(_: usize) -> Self {
        ShardedSlab(sharded_slab::Slab::new())
    }

    #[inline(always)]
    fn insert(&self, file: u64) -> usize {
        self.0.insert(file).expect("not full")
    }

    #[inline(always)]
    fn read(&self, fd: usize) -> Option<u64> {
        self.0.get(fd).map(|file| *file)
    }

    #[inline(always)]
    fn remove(&self, fd: usize) -> Option<u64> {
        self.0.take(fd)
    }
}
