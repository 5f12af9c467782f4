//! What the checkers' environments have in common: a spin that lets others run, and a lock.

#[cfg(all(loom, feature = "loom"))]
use super::loom::checker;
#[cfg(all(shuttle, feature = "shuttle"))]
use super::shuttle::checker;

/// Spins must yield, and end soon.
pub(crate) struct Backoff(core::cell::Cell<u32>);

impl Backoff {
    pub(crate) fn new() -> Self {
        Self(core::cell::Cell::new(0))
    }

    pub(crate) fn snooze(&self) {
        self.0.set(self.0.get() + 1);
        checker::thread::yield_now();
    }

    pub(crate) fn is_completed(&self) -> bool {
        self.0.get() >= 1
    }
}

pub(crate) type Guard<'a, T> = checker::sync::MutexGuard<'a, T>;

pub(crate) struct Mutex<T>(checker::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(checker::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.0.lock().expect("nothing panics under the lock")
    }
}
