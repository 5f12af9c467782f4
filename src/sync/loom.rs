//! The primitives of the model checker.
#![expect(unsafe_code, reason = "loom's cell hands out raw pointers")]

use core::marker::PhantomData;
use core::sync::atomic::Ordering;

use super::{ForUpdate, Overwrite};

pub(super) use loom as checker;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

impl ForUpdate<u64> for AtomicU64 {
    fn load_for_update(&self, order: Ordering) -> u64 {
        self.fetch_or(0, order)
    }
}

/// loom's own `AtomicPtr` has no `fetch_byte_add`, `fetch_or` or `fetch_and`.
pub(crate) struct AtomicPtr<T>(AtomicUsize, PhantomData<*mut T>);

// SAFETY: an atomic address; as `core`'s `AtomicPtr`, what it points to is the user's matter.
unsafe impl<T> Send for AtomicPtr<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for AtomicPtr<T> {}

impl<T> Default for AtomicPtr<T> {
    fn default() -> Self {
        Self::new(core::ptr::null_mut())
    }
}

fn address<T>(pointer: *mut T) -> usize {
    pointer.expose_provenance()
}

fn pointer<T>(address: usize) -> *mut T {
    core::ptr::with_exposed_provenance_mut(address)
}

impl<T> AtomicPtr<T> {
    pub(crate) fn new(value: *mut T) -> Self {
        Self(AtomicUsize::new(address(value)), PhantomData)
    }

    pub(crate) fn load(&self, order: Ordering) -> *mut T {
        pointer(self.0.load(order))
    }

    pub(crate) fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        self.0
            .compare_exchange(address(current), address(new), success, failure)
            .map(pointer)
            .map_err(pointer)
    }

    pub(crate) fn compare_exchange_weak(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        self.compare_exchange(current, new, success, failure)
    }

    pub(crate) fn fetch_byte_add(&self, value: usize, order: Ordering) -> *mut T {
        pointer(self.0.fetch_add(value, order))
    }

    pub(crate) fn fetch_or(&self, value: usize, order: Ordering) -> *mut T {
        pointer(self.0.fetch_or(value, order))
    }

    pub(crate) fn fetch_and(&self, value: usize, order: Ordering) -> *mut T {
        pointer(self.0.fetch_and(value, order))
    }
}

impl<T> ForUpdate<*mut T> for AtomicPtr<T> {
    fn load_for_update(&self, order: Ordering) -> *mut T {
        pointer(self.0.fetch_or(0, order))
    }
}

impl<T> Overwrite<*mut T> for AtomicPtr<T> {
    fn overwrite(&self, value: *mut T, order: Ordering) {
        self.0.swap(address(value), order);
    }
}

pub(crate) struct Guarded(loom::cell::UnsafeCell<u64>);

// SAFETY: loom's cell checks on every access that none is concurrent.
unsafe impl Sync for Guarded {}

impl Default for Guarded {
    fn default() -> Self {
        Self(loom::cell::UnsafeCell::new(0))
    }
}

impl Guarded {
    pub(crate) fn get(&self) -> u64 {
        // SAFETY: loom has checked that no write is concurrent.
        self.0.with(|word| unsafe { *word })
    }

    pub(crate) fn set(&self, value: u64) {
        // SAFETY: loom has checked that no access is concurrent.
        self.0.with_mut(|word| unsafe { *word = value });
    }
}
