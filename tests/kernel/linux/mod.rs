//! Each test runs itself once more in a process of its own, since the harness is multi-threaded and
//! has file descriptors open. That process makes a new one for each sequence, see [`lockstep`].

#[path = "../../common/alone.rs"]
mod alone;
mod concurrent;
mod exec;
mod lockstep;
mod model;
mod named;
mod ops;
mod sys;

use std::env;
use std::time::{Duration, Instant};

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use alone::alone;
use lockstep::Runner;
use ops::Sequence;

/// How many steps the random test makes.
const STEPS: u64 = 100_000;
/// Shrinking ends after this time, twice. It matters if processes get stuck.
const SHRINK: Duration = Duration::from_secs(30);
/// Reproduces a run of the random test.
const SEED: &str = "FDTABLE_SEED";

#[test]
fn random_sequences() {
    alone("linux::random_sequences", || {
        let seed = seed();
        let mut sequences = 0_u64;
        let steps = check_random(seed, &mut sequences);
        eprintln!("kernel: {steps} steps in {sequences} sequences, seed {seed}");
        assert!(steps >= STEPS);
    });
}

fn seed() -> u64 {
    match env::var(SEED) {
        Ok(seed) => seed.parse().expect("the seed is a number"),
        Err(_) => fastrand::u64(..),
    }
}

fn check_random(seed: u64, sequences: &mut u64) -> u64 {
    let runner = Runner::new();
    // The faster of the two by far. Its own seed must not be zero.
    let seeds = [seed, !seed].map(u64::to_le_bytes);
    let rng = TestRng::from_seed(RngAlgorithm::XorShift, seeds.as_flattened());
    let max_shrink_time = SHRINK.as_millis() as u32;
    let config = Config { failure_persistence: None, max_shrink_time, ..Config::default() };
    let mut cases = TestRunner::new_with_rng(config, rng);
    let strategy = ops::sequence();
    let mut steps = 0;
    while steps < STEPS {
        let case = strategy.new_tree(&mut cases).expect("the strategy rejects nothing");
        *sequences += 1;
        let run = |sequence| runner.run(&sequence).map_err(TestCaseError::fail);
        match cases.run_one(case, run) {
            Ok(_) => steps += runner.steps(),
            Err(TestError::Fail(_, sequence)) => {
                let (reason, sequence) = without_idle_steps(&runner, sequence);
                panic!("{reason}\n\nsmallest: {sequence:?}\n\nsequence {sequences}, {SEED}={seed}")
            }
            Err(TestError::Abort(reason)) => panic!("{reason}, {SEED}={seed}"),
        }
    }
    steps
}

/// Shrinks further: `proptest` tries to remove a step once, while those behind it are as drawn.
fn without_idle_steps(runner: &Runner, mut sequence: Sequence) -> (String, Sequence) {
    let start = Instant::now();
    for at in (0..sequence.steps.len()).rev().take_while(|_| start.elapsed() < SHRINK) {
        let step = sequence.steps.remove(at);
        if runner.run(&sequence).is_ok() {
            sequence.steps.insert(at, step);
        }
    }
    let reason = runner.run(&sequence).err();
    (reason.unwrap_or_else(|| "fails only sometimes".to_string()), sequence)
}

#[test]
fn named_sequences() {
    alone("linux::named_sequences", || {
        let runner = Runner::new();
        for (name, sequence) in named::sequences() {
            if let Err(reason) = runner.run(&sequence) {
                panic!("{name}: {reason}");
            }
            assert_eq!(runner.steps(), sequence.steps.len() as u64, "{name}: steps left out");
        }
    });
}

#[test]
fn threads_on_either_table() {
    alone("linux::threads_on_either_table", || {
        let seed = seed();
        eprintln!("kernel: threads, {SEED}={seed} repeats their choices, not their timing");
        let operations = concurrent::check(seed);
        eprintln!("kernel: {operations} operations of threads on each of both tables");
    });
}
