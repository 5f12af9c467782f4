//! The primitives of the randomized scheduler, which switches threads at each of them. It knows no
//! weak orderings: whatever is asked for, it is sequentially consistent.

use core::sync::atomic::Ordering;

pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};

pub(crate) trait ForUpdate<V> {
    fn load_for_update(&self, order: Ordering) -> V;
}

impl ForUpdate<u64> for AtomicU64 {
    fn load_for_update(&self, order: Ordering) -> u64 {
        self.load(order)
    }
}

impl<T> ForUpdate<*mut T> for AtomicPtr<T> {
    fn load_for_update(&self, order: Ordering) -> *mut T {
        self.load(order)
    }
}

pub(crate) trait Overwrite<V> {
    fn overwrite(&self, value: V, order: Ordering);
}

impl<T> Overwrite<*mut T> for AtomicPtr<T> {
    fn overwrite(&self, value: *mut T, order: Ordering) {
        self.store(value, order);
    }
}

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

/// Spins must yield, and end soon.
pub(crate) struct Backoff(core::cell::Cell<u32>);

impl Backoff {
    pub(crate) fn new() -> Self {
        Self(core::cell::Cell::new(0))
    }

    pub(crate) fn snooze(&self) {
        self.0.set(self.0.get() + 1);
        shuttle::thread::yield_now();
    }

    pub(crate) fn is_completed(&self) -> bool {
        self.0.get() >= 1
    }
}

pub(crate) type Guard<'a, T> = shuttle::sync::MutexGuard<'a, T>;

pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.0.lock().expect("nothing panics under the lock")
    }
}
