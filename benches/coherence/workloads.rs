//! What the cores do. A core's program is a loop of steps; which core makes the next step is random, the same each
//! time. A step happens at once.

use fastrand::Rng;

use super::model::Caches;
use super::subjects::{New, Subject};

/// Who does what.
#[derive(Clone, Copy)]
pub(crate) enum Program {
    /// Looks this fd up, then drops the handle.
    Reader(usize),
    /// Closes an fd, at first this one, then opens another file, which may get another number.
    Churner(usize),
}

pub(crate) struct Workload {
    pub(crate) name: &'static str,
    /// What counts as one operation.
    pub(crate) unit: &'static str,
    program: fn(core: usize) -> Program,
    /// Whose misses are counted.
    counted: fn(Program) -> bool,
}

const ANY: fn(Program) -> bool = |_| true;
const READERS: fn(Program) -> bool = |program| matches!(program, Program::Reader(_));
const CHURNERS: fn(Program) -> bool = |program| matches!(program, Program::Churner(_));

const LOOKUP: &str = "lookup + drop of the handle";
const CHURN: &str = "close + open";

fn one_churner_among_readers(core: usize) -> Program {
    if core == 0 { Program::Churner(0) } else { Program::Reader(core) }
}

pub(crate) const ALL: &[Workload] = &[
    Workload { name: "same fd", unit: LOOKUP, program: |_| Program::Reader(4), counted: ANY },
    Workload { name: "neighbouring fds", unit: LOOKUP, program: Program::Reader, counted: ANY },
    Workload {
        name: "far fds",
        unit: LOOKUP,
        program: |core| Program::Reader(core * 64),
        counted: ANY,
    },
    Workload {
        name: "readers beside one churner",
        unit: LOOKUP,
        program: one_churner_among_readers,
        counted: READERS,
    },
    Workload {
        name: "one churner beside readers",
        unit: CHURN,
        program: one_churner_among_readers,
        counted: CHURNERS,
    },
    Workload { name: "all churn", unit: CHURN, program: Program::Churner, counted: ANY },
];

/// Misses and invalidations per operation.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) misses: f64,
    pub(crate) invalidations: f64,
}

/// Where a core is in its loop.
#[derive(Clone, Copy, PartialEq)]
enum Next {
    First,
    Second,
}

impl Workload {
    pub(crate) fn run(&self, new: New, cores: usize) -> Cost {
        let mut subject = new(cores.max(64) * 64);
        let mut state: Vec<(Program, Next)> =
            (0..cores).map(|core| ((self.program)(core), Next::First)).collect();
        let mut caches = Caches::default();
        let mut random = Rng::with_seed(1);
        let (mut cost, mut steps) = (Cost { misses: 0.0, invalidations: 0.0 }, 0_u32);
        // The first quarter only warms the caches.
        let all = cores * 400;
        for turn in 0..all {
            let core = random.usize(..cores);
            let (program, next) = &mut state[core];
            let accesses = step(&mut *subject, core, program, next);
            let before = (caches.misses, caches.invalidations);
            accesses.into_iter().for_each(|access| caches.access(core, access));
            if turn >= all / 4 && (self.counted)(*program) {
                steps += 1;
                cost.misses += (caches.misses - before.0) as f64;
                cost.invalidations += (caches.invalidations - before.1) as f64;
            }
        }
        // Two steps make an operation.
        let operations = f64::from(steps.max(1)) / 2.0;
        Cost { misses: cost.misses / operations, invalidations: cost.invalidations / operations }
    }
}

fn step(
    subject: &mut dyn Subject,
    core: usize,
    program: &mut Program,
    next: &mut Next,
) -> Vec<super::subjects::Access> {
    let first = *next == Next::First;
    *next = if first { Next::Second } else { Next::First };
    match program {
        Program::Reader(fd) if first => subject.look_up(core, *fd),
        Program::Reader(_) => subject.drop_handle(core),
        Program::Churner(fd) if first => subject.close(core, *fd),
        Program::Churner(fd) => {
            let accesses;
            (*fd, accesses) = subject.open(core);
            accesses
        }
    }
}
