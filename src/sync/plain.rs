//! Outside of loom: a load is a load, and a store a store.

use super::{AtomicPtr, AtomicU64, ForUpdate, Ordering, Overwrite};

impl ForUpdate<u64> for AtomicU64 {
    #[inline(always)]
    fn load_for_update(&self, order: Ordering) -> u64 {
        self.load(order)
    }
}

impl<T> ForUpdate<*mut T> for AtomicPtr<T> {
    #[inline(always)]
    fn load_for_update(&self, order: Ordering) -> *mut T {
        self.load(order)
    }
}

impl<T> Overwrite<*mut T> for AtomicPtr<T> {
    #[inline(always)]
    fn overwrite(&self, value: *mut T, order: Ordering) {
        self.store(value, order);
    }
}
