//! Random histories of real threads, judged by `loom_tests::history`: two or three threads, all kinds of
//! operations, on the first numbers and on those where the first word ends.
//!
//! Half of them have a clock, and with it the order of calls and returns; the other half run without
//! its barriers, see [`Clock`]. `FDTABLE_SEED` repeats the choice, not the timing; `FDTABLE_HISTORIES`
//! is their number.
#![cfg(not(all(loom, feature = "loom")))]

mod programs;

use std::hint::spin_loop;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use fdtable::{FdTable, Options};
use loom_tests::history::{Clock, History, Log, Record};
use loom_tests::session::{Calls as _, NONE, Names, Session};
use loom_tests::spec::{File, Op, Table};
use programs::{Dice, KINDS, Program};

const THREADS: usize = 3;

/// Where the numbers begin: at 0, and three before the end of the first word.
const BASES: [u32; 2] = [0, 61];

/// One history in the making.
struct Round {
    program: Program,
    base: u32,
    table: FdTable<File>,
    clock: Option<Clock>,
    /// Threads that are not there yet. They spin: those that are woken come one after the other.
    missing: AtomicUsize,
    setup: Vec<Record>,
    done: [Mutex<Vec<Record>>; THREADS],
}

impl Round {
    fn new(dice: &mut Dice) -> Self {
        let base = BASES[dice.random.usize(..BASES.len())];
        let limit = dice.random.u32(3..6);
        let operations = dice.random.usize(8..=12);
        let threads = dice.random.usize(2..=THREADS);
        let mut kinds = vec![Vec::new(); threads];
        for i in 0..operations {
            let kind = loop {
                let kind = dice.random.usize(..KINDS.len());
                // What lies below must stay.
                if base == 0 || KINDS[kind].0 != "close_range EXCEPT" {
                    break kind;
                }
            };
            kinds[i % threads].push(kind);
        }
        let program = dice.program(limit, &kinds);
        let table = Options::new().limit((base + limit).into()).build();
        for _ in 0..base {
            table.insert(File(u32::MAX), NONE).expect("below the limit");
        }
        let setup = {
            let (mut session, mut log) = (Session::new(&table, &Names, base), Log::default());
            program.setup.iter().for_each(|op| log.call(&mut session, op));
            log.into_records([])
        };
        Round {
            base,
            table,
            clock: dice.random.bool().then(Clock::default),
            missing: AtomicUsize::new(threads),
            setup,
            done: Default::default(),
            program,
        }
    }

    fn play(&self, thread: usize) {
        let Some(ops) = self.program.threads.get(thread) else { return };
        let mut session = Session::new(&self.table, &Names, self.base);
        let mut log = Log::new(self.clock.as_ref());
        self.missing.fetch_sub(1, SeqCst);
        let mut spins = 0;
        while self.missing.load(SeqCst) > 0 {
            spins += 1;
            // There may be more threads than processors.
            if spins % 200 == 0 { std::thread::yield_now() } else { spin_loop() }
        }
        ops.iter().for_each(|op| log.call(&mut session, op));
        while session.has_reservations() {
            log.call(&mut session, &Op::Abandon);
        }
        let children = session.into_children();
        let children = children.iter().map(|child| Session::open(&Names, child, self.base));
        *self.done[thread].lock().unwrap() = log.into_records(children);
    }

    fn history(self) -> History {
        let n = self.program.threads.len();
        let limit = self.program.limit;
        History {
            bounds: (self.table.max() - self.base, limit.into()),
            setup: self.setup,
            threads: self.done.into_iter().take(n).map(|it| it.into_inner().unwrap()).collect(),
            open: Session::open(&Names, &self.table, self.base),
            reserved: Session::<_, Names>::reserved(&self.table, self.base, limit),
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|number| number.parse().ok())
}

fn seed() -> u64 {
    let seed = number("FDTABLE_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("FDTABLE_SEED={seed}");
    seed
}

#[test]
fn random_histories_are_explained() {
    let count = number("FDTABLE_HISTORIES").unwrap_or(4_000);
    let mut dice = Dice::new(seed());
    let rounds: Vec<_> = (0..count).map(|_| Round::new(&mut dice)).collect();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let rounds = &rounds;
            scope.spawn(move || rounds.iter().for_each(|round| round.play(thread)));
        }
    });
    let (mut situations, mut most) = (0, 0);
    for (at, round) in rounds.into_iter().enumerate() {
        let history = round.history();
        match history.explain() {
            Ok(met) => {
                situations += met;
                most = most.max(met);
            }
            Err(inexplicable) => panic!("history {at}: {inexplicable:?}"),
        }
    }
    println!("{count} histories, {situations} situations, at most {most} for one");
}

/// One thread, and every outcome compared: what the judge takes for the table is the table.
#[test]
fn alone_the_spec_and_the_table_agree() {
    let mut dice = Dice::new(seed());
    for _ in 0..1_000 {
        let limit = dice.random.u32(3..6);
        let kinds: Vec<_> = (0..30).map(|_| dice.random.usize(..KINDS.len())).collect();
        let program = dice.program(limit, &[kinds]);
        let mut spec = Table::new(1 << 20, limit.into());
        let table = Options::new().limit(limit.into()).build();
        let mut session = Session::new(&table, &Names, 0);
        for op in program.setup.iter().chain(&program.threads[0]) {
            // A fork's outcome is read off the child, later.
            let right = spec.apply(op);
            match op {
                Op::Fork => {
                    let child = Session::open(&Names, &table.fork().expect("memory"), 0);
                    assert_eq!(loom_tests::spec::Outcome::Open(child), right, "{program:?}");
                }
                _ => assert_eq!(session.call(op), right, "{op:?} in {program:?}"),
            }
            assert_eq!(Session::open(&Names, &table, 0), spec.open(), "{op:?} in {program:?}");
            let reserved = Session::<_, Names>::reserved(&table, 0, limit);
            assert_eq!(reserved, spec.reserved(), "{op:?} in {program:?}");
        }
    }
}
