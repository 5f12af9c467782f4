//! Candidates, timed in turns within one run: what a noisy machine does to one it does to the others.
//!
//! A candidate runs a batch of operations per call, in a loop that is compiled for it. In each round every
//! candidate has one batch; a ratio is the median over the rounds of the ratios within a round.

pub(crate) mod allocator;
pub(crate) mod threads;

use std::hint::black_box;
use std::time::Duration;

use allocator::Mode;
use rustix::time::{ClockId, clock_gettime};

/// Something to be timed. The first of a group is the reference.
pub(crate) struct Candidate {
    pub(crate) name: String,
    /// Does so many operations; how long they took.
    batch: Box<dyn FnMut(u64) -> Duration>,
    /// What one operation counts as: it may open or copy many fds.
    elements: u64,
}

impl Candidate {
    /// `operation` over and over, on one thread.
    pub(crate) fn new<R>(
        name: impl Into<String>,
        mut operation: impl FnMut() -> R + 'static,
    ) -> Self {
        Self::timed(name, move |operations| {
            let began = own_time();
            for _ in 0..operations {
                black_box(operation());
            }
            own_time() - began
        })
    }

    /// `operation` on what `prepare` makes; only the former is timed. For operations that take
    /// microseconds: the clock is asked twice for each.
    pub(crate) fn prepared<S, R>(
        name: impl Into<String>,
        mut prepare: impl FnMut() -> S + 'static,
        mut operation: impl FnMut(S) -> R + 'static,
    ) -> Self {
        Self::timed(name, move |operations| {
            let mut time = Duration::ZERO;
            for _ in 0..operations {
                let prepared = prepare();
                let began = own_time();
                let result = black_box(operation(prepared));
                time += own_time() - began;
                drop(result);
            }
            time
        })
    }

    /// `batch` does so many operations and says how long they took.
    pub(crate) fn timed(
        name: impl Into<String>,
        batch: impl FnMut(u64) -> Duration + 'static,
    ) -> Self {
        Candidate { name: name.into(), batch: Box::new(batch), elements: 1 }
    }

    /// One operation counts as so many.
    pub(crate) fn per(mut self, elements: u64) -> Self {
        self.elements = elements;
        self
    }

    /// With an allocator that hands out again what the thread has freed last.
    pub(crate) fn recycling(mut self) -> Self {
        let mut batch = self.batch;
        self.batch = Box::new(move |operations| {
            let _mode = Mode::Recycle.enter();
            batch(operations)
        });
        self
    }

    /// Drops `kept` with the candidate.
    pub(crate) fn keeping(mut self, kept: impl Sized + 'static) -> Self {
        let mut batch = self.batch;
        self.batch = Box::new(move |operations| {
            let _ = &kept;
            batch(operations)
        });
        self
    }

    /// What one operation counts as.
    pub(crate) fn elements(&self) -> u64 {
        self.elements
    }

    /// Does so many operations; how long they took.
    pub(crate) fn run(&mut self, operations: u64) -> Duration {
        (self.batch)(operations)
    }
}

/// What this thread has used of its processor: time that others were given does not count.
fn own_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How long a run is to take.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    /// The least that one batch takes.
    pub(crate) batch: Duration,
}

/// One candidate's times.
pub(crate) struct Measured {
    pub(crate) name: String,
    /// Nanoseconds per element, one for each round.
    rounds: Vec<f64>,
}

impl Measured {
    /// The median of the rounds.
    pub(crate) fn nanoseconds(&self) -> f64 {
        median(self.rounds.iter().copied())
    }

    /// How many times the other's time this takes: the median of the ratios of each round.
    pub(crate) fn over(&self, other: &Measured) -> f64 {
        median(self.rounds.iter().zip(&other.rounds).map(|(own, other)| own / other))
    }
}

/// Times all candidates in turns.
pub(crate) fn measure(mut candidates: Vec<Candidate>, plan: Plan) -> Vec<Measured> {
    let operations: Vec<u64> =
        candidates.iter_mut().map(|candidate| calibrate(candidate, plan.batch)).collect();
    let mut measured: Vec<Measured> = candidates
        .iter()
        .map(|candidate| Measured { name: candidate.name.clone(), rounds: Vec::new() })
        .collect();
    let count = candidates.len();
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..plan.rounds {
        // What malloc hands out next is another block in each round: how fast a fresh file is depends on where
        // it lies.
        let _held: Vec<_> = (0..random.usize(..64)).map(|at| Box::new([at; 3])).collect();
        // Another one begins each time: none always follows the same neighbour's caches first.
        for at in (0..count).map(|turn| (turn + round) % count) {
            let time = candidates[at].run(operations[at]);
            let elements = operations[at] * candidates[at].elements;
            measured[at].rounds.push(time.as_secs_f64() * 1e9 / elements as f64);
        }
    }
    measured
}

/// How many operations a batch needs, which warms the candidate up as well.
fn calibrate(candidate: &mut Candidate, batch: Duration) -> u64 {
    let mut operations = 1;
    loop {
        let time = (candidate.batch)(operations);
        if time >= batch / 2 {
            let enough = batch.as_secs_f64() / time.as_secs_f64() * operations as f64;
            return (enough.ceil() as u64).max(1);
        }
        operations *= 2;
    }
}

/// The middle one of the values.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
