//! Random programs for a few threads: which operations, on what, and on which table they begin.

#![allow(dead_code, reason = "shared by tests that use parts of it")]

use std::collections::BTreeSet;

use fastrand::Rng;
use fdtable::{CloseRange, FdFlags};
use loom_tests::spec::{File, Op};

/// What a program does: first alone, then on its threads.
#[derive(Debug)]
pub(crate) struct Program {
    /// How many numbers there are at first.
    pub(crate) limit: u32,
    pub(crate) setup: Vec<Op>,
    pub(crate) threads: Vec<Vec<Op>>,
    /// How many files it makes.
    pub(crate) files: u32,
}

type Make = fn(&mut Dice) -> Vec<Op>;

/// The kinds of operations.
pub(crate) const KINDS: &[(&str, Make)] = &[
    ("get", |dice| vec![Op::Get(dice.fd())]),
    ("flags", |dice| vec![Op::Flags(dice.fd())]),
    ("set_flags", |dice| vec![Op::SetFlags(dice.fd(), dice.flags())]),
    ("insert", |dice| vec![Op::Insert { min: 0, file: dice.file(), flags: dice.flags() }]),
    ("insert_from", |dice| {
        vec![Op::Insert { min: dice.fd(), file: dice.file(), flags: dice.flags() }]
    }),
    ("reserve", |dice| vec![dice.reserve()]),
    ("reserve_many", |dice| {
        dice.reservations += 2;
        vec![Op::ReservePair]
    }),
    ("install", |dice| {
        let install = Op::Install { file: dice.file(), flags: dice.flags() };
        dice.on_reservation(install)
    }),
    ("abandon", |dice| dice.on_reservation(Op::Abandon)),
    ("remove", |dice| vec![Op::Remove(dice.fd())]),
    ("close", |dice| vec![Op::Close(dice.fd())]),
    ("replace", |dice| vec![Op::Replace { fd: dice.fd(), file: dice.file(), flags: dice.flags() }]),
    ("dup", |dice| vec![Op::Dup(dice.fd())]),
    ("dup_from", |dice| vec![Op::DupFrom { fd: dice.fd(), min: dice.fd(), flags: dice.flags() }]),
    ("dup2", |dice| vec![Op::Dup2 { old: dice.fd(), new: dice.fd() }]),
    ("dup3", |dice| vec![Op::Dup3 { old: dice.fd(), new: dice.fd(), flags: dice.flags() }]),
    ("renumber", |dice| vec![Op::Renumber { from: dice.fd(), to: dice.fd() }]),
    ("close_range", |dice| vec![dice.close_range(CloseRange::empty())]),
    ("close_range CLOEXEC", |dice| vec![dice.close_range(CloseRange::CLOEXEC)]),
    ("close_range EXCEPT", |dice| vec![dice.close_range(CloseRange::EXCEPT)]),
    ("close_range CLOEXEC_ONLY", |dice| vec![dice.close_range(CloseRange::CLOEXEC_ONLY)]),
    ("close_on_exec", |_| vec![Op::CloseOnExec]),
    ("fork", |_| vec![Op::Fork]),
    ("iterate", |_| vec![Op::Iterate]),
    ("set_limit", |dice| vec![Op::SetLimit(dice.random.u64(1..=dice.limit.into()))]),
];

/// Where a program's numbers, flags and files come from.
pub(crate) struct Dice {
    pub(crate) random: Rng,
    limit: u32,
    files: u32,
    /// Those of the thread, if there was room for them.
    reservations: usize,
    /// The number that most operations are about, so that they meet.
    hot: u32,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Dice { random: Rng::with_seed(seed), limit: 0, files: 0, reservations: 0, hot: 0 }
    }

    fn fd(&mut self) -> i64 {
        let random = self.random.u32(0..self.limit);
        if self.random.u32(0..3) > 0 { self.hot.into() } else { random.into() }
    }

    fn file(&mut self) -> File {
        self.files += 1;
        File(self.files - 1)
    }

    fn flags(&mut self) -> FdFlags {
        match self.random.u32(0..8) {
            0..4 => FdFlags::empty(),
            4..7 => FdFlags::CLOEXEC,
            _ => FdFlags::CLOFORK,
        }
    }

    fn range(&mut self) -> std::ops::Range<u32> {
        let start = if self.random.bool() { 0 } else { self.fd() as u32 };
        let end =
            if self.random.bool() { u32::MAX } else { start + self.random.u32(1..=self.limit) };
        start..end
    }

    fn reserve(&mut self) -> Op {
        self.reservations += 1;
        Op::Reserve(self.range())
    }

    /// With a reservation that is there, or one that it makes first.
    fn on_reservation(&mut self, op: Op) -> Vec<Op> {
        let reserve = (self.reservations == 0 || self.random.bool()).then(|| self.reserve());
        self.reservations -= 1;
        reserve.into_iter().chain([op]).collect()
    }

    fn close_range(&mut self, how: CloseRange) -> Op {
        let first = self.random.u32(0..self.limit);
        let last =
            if self.random.bool() { u32::MAX } else { first + self.random.u32(0..self.limit) };
        Op::CloseRange { first, last, how }
    }

    /// A program of these kinds of operations, on `limit` numbers.
    pub(crate) fn program(&mut self, limit: u32, kinds: &[Vec<usize>]) -> Program {
        (self.limit, self.files) = (limit, 0);
        self.hot = self.random.u32(0..limit);
        let mut setup = Vec::new();
        for fd in 0..limit {
            if self.random.bool() {
                let fd = fd.into();
                setup.push(Op::Replace { fd, file: self.file(), flags: self.flags() });
            }
        }
        let mut thread = |kinds: &Vec<usize>| {
            self.reservations = 0;
            let ops: Vec<_> = kinds.iter().flat_map(|&kind| KINDS[kind].1(self)).collect();
            ops
        };
        let threads = kinds.iter().map(&mut thread).collect();
        Program { limit, setup, threads, files: self.files }
    }
}

/// Which pairs of kinds have not met yet, on different threads.
pub(crate) struct Pairs(BTreeSet<(usize, usize)>);

fn pair(a: usize, b: usize) -> (usize, usize) {
    (a.min(b), a.max(b))
}

impl Pairs {
    pub(crate) fn all() -> Self {
        let n = KINDS.len();
        Pairs((0..n).flat_map(|b| (0..=b).map(move |a| (a, b))).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Kinds for the next program, so that many pairs meet that have not yet.
    pub(crate) fn next(
        &mut self,
        random: &mut Rng,
        threads: usize,
        each: usize,
    ) -> Vec<Vec<usize>> {
        let mut kinds = vec![Vec::new(); threads];
        for thread in (0..each).flat_map(|_| 0..threads) {
            let others: BTreeSet<usize> = (0..threads)
                .filter(|&other| other != thread)
                .flat_map(|other| kinds[other].clone())
                .collect();
            let missing = |&kind: &usize| match others.is_empty() {
                true => self.0.iter().filter(|(a, b)| *a == kind || *b == kind).count(),
                false => others.iter().filter(|&&it| self.0.contains(&pair(kind, it))).count(),
            };
            let mut order: Vec<_> = (0..KINDS.len()).collect();
            random.shuffle(&mut order);
            let best = order.into_iter().max_by_key(missing).expect("there are kinds");
            self.0.retain(|&(a, b)| !others.iter().any(|&it| pair(best, it) == (a, b)));
            kinds[thread].push(best);
        }
        kinds
    }
}
