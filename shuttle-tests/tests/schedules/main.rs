//! Eight threads with twenty operations each, in ten thousand random schedules and in as many of a
//! scheduler that switches seldom but anywhere (PCT). A failure prints the schedule; to repeat it, give
//! that to `shuttle::replay`, or set SHUTTLE_RANDOM_SEED to the seed that is printed too.
//!
//! What this can't see: reorderings. All atomics are sequentially consistent here; those of the
//! hardware are the business of loom, Miri and ThreadSanitizer.
#![cfg(all(shuttle, feature = "shuttle"))]

#[path = "../../../tests/common/mod.rs"]
mod common;

mod lowest;
mod owned;
mod quiet;
mod shared;
mod tasks;

use shuttle::rand::Rng as _;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};

const THREADS: usize = 8;
const OPERATIONS: usize = 20;
/// How many schedules, unless FDTABLE_SCHEDULES says otherwise.
const SCHEDULES: usize = 10_000;
/// How often PCT may preempt a thread, plus one. Most races need two.
const DEPTH: usize = 4;

fn schedules() -> usize {
    std::env::var("FDTABLE_SCHEDULES").ok().and_then(|n| n.parse().ok()).unwrap_or(SCHEDULES)
}

fn random(scenario: fn()) {
    run(RandomScheduler::new(schedules()), scenario);
}

fn pct(scenario: fn()) {
    run(PctScheduler::new(DEPTH, schedules()), scenario);
}

fn run(scheduler: impl Scheduler + 'static, scenario: fn()) {
    let mut config = shuttle::Config::new();
    config.silence_warnings = true;
    config.stack_size = 1 << 17;
    let schedules = shuttle::Runner::new(scheduler, config).run(scenario);
    assert!(schedules > 1, "explored a single schedule");
}

/// Runs `thread` on all threads at once.
fn together(thread: impl Fn(usize) + Sync) {
    shuttle::thread::scope(|scope| {
        for number in 0..THREADS {
            let thread = &thread;
            scope.spawn(move || thread(number));
        }
    });
}

/// A random number below `end`, part of the schedule.
fn below(end: u32) -> u32 {
    shuttle::rand::thread_rng().gen_range(0..end)
}
