//! The primitives of `core`; with `--cfg traced` the same ones, observed.

use core::sync::atomic::Ordering;

#[cfg(traced)]
pub(crate) use super::traced::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
#[cfg(not(traced))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
pub(crate) use crossbeam_utils::Backoff;

/// A word that only the holder of the table's lock touches. Relaxed atomics, which compile
/// to plain moves; under loom a cell that reports any access outside of the lock.
#[derive(Default)]
pub(crate) struct Guarded(AtomicU64);

impl Guarded {
    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        // Relaxed, also below: the lock orders the accesses.
        self.0.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}
