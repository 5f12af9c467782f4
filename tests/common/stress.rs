//! Threads that meet and then run for a number of rounds; no clocks.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
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

/// Where threads wait for each other. They spin: those of a `Barrier` wake one after the other, and the
/// first is done before the last begins.
struct Start {
    missing: AtomicUsize,
}

impl Start {
    fn of(threads: usize) -> Start {
        Start { missing: AtomicUsize::new(threads) }
    }

    fn wait(&self) {
        self.missing.fetch_sub(1, SeqCst);
        let mut spins = 0;
        while self.missing.load(SeqCst) > 0 {
            spins += 1;
            // There may be more threads than processors.
            if spins % 200 == 0 { thread::yield_now() } else { spin_loop() }
        }
    }
}

/// Runs all of them at once, each on a thread of its own, and waits for them.
pub(crate) fn together(threads: &[&(dyn Fn() + Sync)]) {
    let start = Start::of(threads.len());
    thread::scope(|scope| {
        for thread in threads {
            scope.spawn(|| {
                start.wait();
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

    let (start, stop) = (Start::of(background.len() + 1), AtomicBool::new(false));
    thread::scope(|scope| {
        for thread in background {
            scope.spawn(|| {
                start.wait();
                loop {
                    thread();
                    if stop.load(Relaxed) {
                        break;
                    }
                }
            });
        }
        let _stop = Stop(&stop);
        start.wait();
        work();
    });
}
