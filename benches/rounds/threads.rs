//! Several threads at once, each on a processor of its own; and threads that only exist.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::{JoinHandle, scope, yield_now};
use std::time::Instant;

use core_affinity::CoreId;
use crossbeam_utils::{Backoff, CachePadded};

use super::Candidate;

/// Binds the thread to one of the processors that the program had at its start.
pub(crate) fn pin(thread: usize) {
    static CORES: OnceLock<Vec<CoreId>> = OnceLock::new();
    let cores = CORES.get_or_init(|| core_affinity::get_core_ids().unwrap_or_default());
    if !cores.is_empty() {
        core_affinity::set_for_current(cores[thread % cores.len()]);
    }
}

/// Where threads wait for each other; they spin, since a sleeper wakes tens of microseconds late.
#[derive(Default)]
struct Gate(CachePadded<AtomicUsize>);

impl Gate {
    fn wait(&self, threads: usize) {
        self.0.fetch_add(1, Ordering::AcqRel);
        let backoff = Backoff::new();
        while self.0.load(Ordering::Acquire) < threads {
            backoff.snooze();
        }
    }
}

impl Candidate {
    /// `operation` on so many threads, whose number it is told: from the common start to the common end.
    pub(crate) fn on<R>(
        threads: usize,
        name: impl Into<String>,
        operation: impl Fn(usize) -> R + Sync + 'static,
    ) -> Self {
        Self::timed(name, move |operations| {
            let (start, end) = (Gate::default(), Gate::default());
            let run = |thread| {
                pin(thread);
                start.wait(threads);
                let began = Instant::now();
                for _ in 0..operations {
                    black_box(operation(thread));
                }
                end.wait(threads);
                began.elapsed()
            };
            scope(|scope| {
                let run = &run;
                for thread in 1..threads {
                    scope.spawn(move || run(thread));
                }
                run(0)
            })
        })
    }

    /// `operation` on one thread while another one is at `companion`, over and over.
    pub(crate) fn beside<R, S>(
        name: impl Into<String>,
        operation: impl Fn() -> R + Sync + 'static,
        companion: impl Fn() -> S + Sync + 'static,
    ) -> Self {
        Self::timed(name, move |operations| {
            let (start, stop) = (Gate::default(), CachePadded::new(AtomicBool::new(false)));
            scope(|scope| {
                scope.spawn(|| {
                    pin(1);
                    start.wait(2);
                    while !stop.load(Ordering::Relaxed) {
                        for _ in 0..64 {
                            black_box(companion());
                        }
                    }
                });
                pin(0);
                start.wait(2);
                let began = Instant::now();
                for _ in 0..operations {
                    black_box(operation());
                }
                let time = began.elapsed();
                stop.store(true, Ordering::Relaxed);
                time
            })
        })
    }
}

/// Threads that have done something once and stay alive.
pub(crate) struct Living {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Living {
    /// `threads` of them, after each has run `once`.
    pub(crate) fn after(threads: usize, once: impl Fn() + Send + Sync + 'static) -> Self {
        let (once, stop) = (Arc::new(once), Arc::new(AtomicBool::new(false)));
        let ready = Arc::new(Barrier::new(threads + 1));
        let spawn = |_| {
            let (once, stop, ready) = (once.clone(), stop.clone(), ready.clone());
            std::thread::spawn(move || {
                once();
                ready.wait();
                while !stop.load(Ordering::Acquire) {
                    std::thread::park();
                }
            })
        };
        let threads = (0..threads).map(spawn).collect();
        ready.wait();
        yield_now();
        Living { stop, threads }
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
