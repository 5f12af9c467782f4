//! Two candidates, timed in turns within one run: what a noisy machine does to one it does to the other.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

const ROUNDS: usize = 31;
const OPERATIONS: u32 = 20_000;

/// Prints the ratio of the medians, `slow` over `fast`, on one thread and on two. A candidate is told the
/// number of the thread that runs it.
pub(crate) fn compare(name: &str, slow: impl Fn(usize) + Sync, fast: impl Fn(usize) + Sync) {
    for threads in [1, 2] {
        let (mut slow_times, mut fast_times) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            slow_times.push(time(threads, &slow));
            fast_times.push(time(threads, &fast));
        }
        let (slow, fast) = (median(slow_times), median(fast_times));
        println!(
            "{name}, {threads} thread(s): {slow:.1} ns over {fast:.1} ns = {:.2}x",
            slow / fast
        );
    }
}

/// Nanoseconds per operation, from the common start to the last thread's end.
fn time(threads: usize, candidate: &(impl Fn(usize) + Sync)) -> f64 {
    let start = Barrier::new(threads);
    let run = |thread| {
        start.wait();
        let began = Instant::now();
        for _ in 0..OPERATIONS {
            candidate(black_box(thread));
        }
        began.elapsed()
    };
    let time = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map(|thread| {
                let run = &run;
                scope.spawn(move || run(thread))
            })
            .collect();
        let own = run(0);
        others.into_iter().map(|other| other.join().expect("no panic")).fold(own, Duration::max)
    });
    time.as_nanos() as f64 / f64::from(OPERATIONS)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
