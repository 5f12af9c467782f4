//! Generated histories: threads that do three operations each, or two each if they are three, of all kinds
//! and every kind against every other. Each run that the model checker finds is judged by
//! `loom_tests::history`.
//!
//! Their choice is fixed. `FDTABLE_HISTORIES=n` makes n times as many, `FDTABLE_SEED` others.
//! The bound is two preemptions (LOOM_MAX_PREEMPTIONS for another): the models of single races, in the
//! other files, have three; what these have is breadth.
#![cfg(all(loom, feature = "loom"))]

mod programs;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fdtable::{FdTable, Options, OwnedRef};
use loom_tests::history::{History, Log, Record};
use loom_tests::session::{Files, Session};
use loom_tests::spec::{File, Op};
use loom_tests::{File as Checked, Ledger};
use programs::{Dice, KINDS, Pairs, Program};

const PREEMPTIONS: usize = 2;

/// So many runs of a program in one order at most: a few programs have a hundred times as many as the
/// others. Those cut short are marked in the list; with FDTABLE_HISTORIES none is.
const RUNS: usize = 6_000;

/// The numbers: two of the first word, one beyond it.
const LIMIT: u32 = 3;

const NAMES: [&str; 26] = [
    "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "O", "P", "Q", "R", "S",
    "T", "U", "V", "W", "X", "Y", "Z",
];

/// Files that are allocated before the race, as the model checker needs it.
struct Pool(Mutex<BTreeMap<File, OwnedRef<Checked>>>);

impl Pool {
    fn new(ledger: &Ledger, n: u32) -> Self {
        let file = |n: u32| (File(n), ledger.file(NAMES[n as usize]));
        Pool(Mutex::new((0..n).map(file).collect()))
    }
}

impl Files<Checked> for Pool {
    fn make(&self, file: File) -> OwnedRef<Checked> {
        let file = self.0.lock().unwrap().remove(&file).expect("made once");
        file.prepare();
        file
    }

    fn name(&self, file: &Checked) -> File {
        File(u32::from(file.name().as_bytes()[0] - b'A'))
    }
}

/// What the threads share.
struct Scene {
    table: FdTable<Checked>,
    files: Pool,
}

type Played = (Log<'static>, Vec<FdTable<Checked>>);

impl Scene {
    fn play(&self, ops: &[Op]) -> Played {
        let mut session = Session::new(&self.table, &self.files, 0);
        let mut log = Log::default();
        ops.iter().for_each(|op| log.call(&mut session, op));
        while session.has_reservations() {
            log.call(&mut session, &Op::Abandon);
        }
        (log, session.into_children())
    }

    fn records(&self, (log, children): Played) -> Vec<Record> {
        log.into_records(children.iter().map(|child| Session::open(&self.files, child, 0)))
    }
}

/// One run of the program; the main thread plays the last of `order`.
fn run(program: &Arc<Program>, order: &[usize]) -> History {
    let ledger = Ledger::default();
    let table = Options::new().limit(LIMIT.into()).build();
    // The growth has models of its own.
    table.reserve_capacity(LIMIT as usize).expect("memory");
    let scene = Arc::new(Scene { table, files: Pool::new(&ledger, program.files) });
    let setup = scene.records(scene.play(&program.setup));
    let (&last, others) = order.split_last().expect("there are threads");
    let spawn = |&thread: &usize| {
        let (program, scene) = (Arc::clone(program), Arc::clone(&scene));
        (thread, loom::thread::spawn(move || scene.play(&program.threads[thread])))
    };
    let others: Vec<_> = others.iter().map(spawn).collect();
    let mut threads = BTreeMap::from([(last, scene.play(&program.threads[last]))]);
    for (thread, other) in others {
        threads.insert(thread, other.join().expect("no thread panics"));
    }
    let history = History {
        bounds: (scene.table.max(), LIMIT.into()),
        setup,
        threads: threads.into_values().map(|played| scene.records(played)).collect(),
        open: Session::open(&scene.files, &scene.table, 0),
        reserved: Session::<_, Pool>::reserved(&scene.table, 0, LIMIT),
    };
    drop(Arc::into_inner(scene).expect("the threads are gone"));
    ledger.close();
    history
}

/// What the runs of a program were.
#[derive(Default)]
struct Judged {
    runs: usize,
    histories: usize,
    /// Not all runs were made.
    is_cut: bool,
}

/// Judges every run of the program, in as many orders as there are threads (see `Race`).
fn judge(program: Program) -> Judged {
    let longest = number("FDTABLE_HISTORIES").is_none().then_some(RUNS);
    let program = Arc::new(program);
    let histories = Arc::new(Mutex::new(HashSet::new()));
    let mut judged = Judged::default();
    let n = program.threads.len();
    for first in 0..n {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS));
        builder.max_branches = 10_000;
        builder.max_permutations = longest;
        // Where loom looks at that bound.
        builder.checkpoint_interval = longest.unwrap_or(builder.checkpoint_interval);
        let order: Vec<_> = (first..first + n).map(|thread| thread % n).collect();
        let runs = Arc::new(AtomicUsize::new(0));
        let (program, counted) = (Arc::clone(&program), Arc::clone(&runs));
        let histories = Arc::clone(&histories);
        builder.check(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            let history = run(&program, &order);
            if histories.lock().unwrap().contains(&history) {
                return;
            }
            if let Err(inexplicable) = history.explain() {
                panic!("order {order:?}: {inexplicable:?}");
            }
            histories.lock().unwrap().insert(history);
        });
        let runs = runs.load(Ordering::Relaxed);
        judged.runs += runs;
        // loom stops before the last.
        judged.is_cut |= longest.is_some_and(|longest| runs + 1 >= longest);
    }
    judged.histories = histories.lock().unwrap().len();
    judged
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|number| number.parse().ok())
}

fn seeds() -> std::ops::Range<u64> {
    let first = number("FDTABLE_SEED").unwrap_or(0);
    first..first + number("FDTABLE_HISTORIES").unwrap_or(1)
}

/// Programs of this shape until every kind has met every other, and itself, on another thread.
fn all_pairs(threads: usize, each: usize) {
    // Not by `println!`, which the test harness swallows when all is well.
    let mut err = std::io::stderr();
    for seed in seeds() {
        let mut dice = Dice::new(seed);
        let mut pairs = Pairs::all();
        let mut met: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        let (mut programs, mut cut, mut all) = (0, 0, Judged::default());
        while !pairs.is_empty() {
            let kinds = pairs.next(&mut dice.random, threads, each);
            let judged = judge(dice.program(LIMIT, &kinds));
            let names: Vec<Vec<_>> =
                kinds.iter().map(|own| own.iter().map(|&kind| KINDS[kind].0).collect()).collect();
            for (thread, own) in names.iter().enumerate() {
                let others = || names.iter().enumerate().filter(|(other, _)| *other != thread);
                for &name in own {
                    met.entry(name).or_default().extend(others().flat_map(|(_, names)| names));
                }
            }
            let shown = names.iter().map(|own| own.join("; ")).collect::<Vec<_>>().join(" ‖ ");
            let Judged { runs, histories, is_cut } = judged;
            let mark = if is_cut { ", cut short" } else { "" };
            let _ = writeln!(err, "{shown}: {runs} runs, {histories} histories{mark}");
            (programs, cut) = (programs + 1, cut + usize::from(is_cut));
            (all.runs, all.histories) = (all.runs + runs, all.histories + histories);
        }
        for (name, others) in &met {
            let _ = writeln!(err, "{name} has met {others:?}");
        }
        let kinds: BTreeSet<_> = KINDS.iter().map(|kind| kind.0).collect();
        assert_eq!(met.len(), kinds.len());
        for (name, others) in met {
            assert_eq!(others, kinds, "{name} has not met all");
        }
        let Judged { runs, histories, .. } = all;
        let _ = writeln!(
            err,
            "{threads} threads, seed {seed}: {programs} programs, {cut} cut short, {runs} runs, {histories} histories"
        );
    }
}

#[test]
fn two_threads_with_three_operations() {
    all_pairs(2, 3);
}

#[test]
fn three_threads_with_two_operations() {
    all_pairs(3, 2);
}

/// A fork, which is one instant, against two changes of each kind, which are in one order. All in the first
/// word, where it does not hold the changes off.
#[test]
fn a_fork_and_any_two_changes() {
    const CHANGES: [&str; 11] = [
        "set_flags",
        "insert",
        "insert_from",
        "install",
        "remove",
        "replace",
        "dup_from",
        "dup2",
        "renumber",
        "close_range",
        "close_range CLOEXEC",
    ];
    let kind = |name: &str| KINDS.iter().position(|kind| kind.0 == name).expect("a kind");
    let (mut programs, mut all) = (0, Judged::default());
    for (seed, round) in seeds().flat_map(|seed| (0..3).map(move |round| (seed, round))) {
        let mut dice = Dice::new(seed << 32 | round);
        for one in CHANGES.map(kind) {
            for two in CHANGES.map(kind) {
                let judged = judge(dice.program(2, &[vec![kind("fork")], vec![one, two]]));
                programs += 1;
                (all.runs, all.histories) =
                    (all.runs + judged.runs, all.histories + judged.histories);
                assert!(!judged.is_cut);
            }
        }
    }
    let Judged { runs, histories, .. } = all;
    let _ = writeln!(
        std::io::stderr(),
        "fork: {programs} programs, {runs} runs, {histories} histories"
    );
}
