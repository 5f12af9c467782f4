//! The table's slow-path lock: a spin lock with backoff, whose waiters sleep when it is held long.
//!
//! Most sections take nanoseconds; unlocking by a plain store saves them a read-modify-write that
//! a parking lock needs. A fork of a large table holds it for milliseconds: waiters then yield and,
//! with `std`, sleep. No user code runs and nothing is allocated while it is held.
#![expect(unsafe_code, reason = "`lock_api::RawMutex` is an unsafe trait")]

use super::{AtomicBool, Backoff, Ordering};

pub(crate) type Mutex<T> = lock_api::Mutex<RawLock, T>;
pub(crate) type Guard<'a, T> = lock_api::MutexGuard<'a, RawLock, T>;

pub(crate) struct RawLock {
    locked: AtomicBool,
}

// SAFETY: `locked` goes from false to true in one compare-and-swap, and back only by the
// holder: at most one thread is between `lock` and `unlock`.
unsafe impl lock_api::RawMutex for RawLock {
    const INIT: Self = RawLock { locked: AtomicBool::new(false) };

    type GuardMarker = lock_api::GuardNoSend;

    #[inline]
    fn lock(&self) {
        if !self.try_lock() {
            self.lock_contended();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // Acquire pairs with the Release of `unlock`: the last holder's writes are seen.
        self.locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    unsafe fn unlock(&self) {
        // Release pairs with the Acquire of `try_lock`.
        self.locked.store(false, Ordering::Release);
    }
}

impl RawLock {
    #[cold]
    fn lock_contended(&self) {
        use lock_api::RawMutex as _;
        let backoff = Backoff::new();
        loop {
            // Relaxed: only a hint, `try_lock` decides.
            if !self.locked.load(Ordering::Relaxed) && self.try_lock() {
                return;
            }
            if backoff.is_completed() {
                rest();
            } else {
                backoff.snooze();
            }
        }
    }
}

#[cfg(feature = "std")]
fn rest() {
    std::thread::sleep(core::time::Duration::from_micros(50));
}

#[cfg(not(feature = "std"))]
fn rest() {
    core::hint::spin_loop();
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::thread;

    use super::Mutex;

    #[test]
    fn the_lock_is_taken_until_it_is_given_back() {
        let lock = Mutex::new(());
        let guard = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(guard);
        assert!(lock.try_lock().is_some());
    }

    #[test]
    fn who_waits_has_the_lock_after_the_holder_and_alone() {
        let lock = Mutex::new(());
        let (waits, given_back) = (AtomicBool::new(false), AtomicBool::new(false));
        let guard = lock.lock();
        thread::scope(|scope| {
            scope.spawn(|| {
                waits.store(true, Relaxed);
                let _guard = lock.lock();
                // The lock orders it.
                assert!(given_back.load(Relaxed));
                assert!(lock.try_lock().is_none());
            });
            // Some time for the other thread: it looks, spins, and sleeps.
            while !waits.load(Relaxed) {
                thread::yield_now();
            }
            (0..1000).for_each(|_| thread::yield_now());
            given_back.store(true, Relaxed);
            drop(guard);
        });
    }
}
