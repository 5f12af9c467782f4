//! Threads that meet at a barrier and run for a number of rounds; no clocks.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// How often to repeat: `n` times, or a few times under Miri, which is slow but looks closely.
pub(crate) const fn rounds(n: usize) -> usize {
    if !cfg!(miri) {
        n
    } else if n > 40_000 {
        20
    } else {
        n / 2000 + 3
    }
}

/// Runs all of them at once, each on a thread of its own, and waits for them.
pub(crate) fn together(threads: &[&(dyn Fn() + Sync)]) {
    let barrier = Barrier::new(threads.len());
    thread::scope(|scope| {
        for thread in threads {
            scope.spawn(|| {
                barrier.wait();
                thread();
            });
        }
    });
}

/// Runs `work` on this thread; until it is done, each of `background` again and again on a thread of
/// its own, at least once.
pub(crate) fn alongside(background: &[&(dyn Fn() + Sync)], work: impl FnOnce()) {
    /// Also when `work` panics: the others would run for ever.
    struct Stop<'a>(&'a AtomicBool);

    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }

    let (barrier, stop) = (Barrier::new(background.len() + 1), AtomicBool::new(false));
    thread::scope(|scope| {
        for thread in background {
            scope.spawn(|| {
                barrier.wait();
                loop {
                    thread();
                    if stop.load(Relaxed) {
                        break;
                    }
                }
            });
        }
        let _stop = Stop(&stop);
        barrier.wait();
        work();
    });
}
