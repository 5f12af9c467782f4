//! The primitives of the randomized scheduler, which switches threads at each of them. It knows no
//! weak orderings: whatever is asked for, it is sequentially consistent.

use core::sync::atomic::Ordering;

pub(super) use shuttle as checker;
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};

/// A word that only the holder of the lock touches: a point to switch threads at would show nothing.
#[derive(Default)]
pub(crate) struct Guarded(core::sync::atomic::AtomicU64);

impl Guarded {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}
