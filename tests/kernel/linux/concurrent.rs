//! The kernel as an oracle under concurrency: threads do the same random operations on a table of the
//! kernel, that of this process, and on one of ours. Which number a thread is given is up to the
//! timing; what must hold all the same is asked of both: no number is handed out twice, the lowest one is
//! next when all is quiet, and the counts are exact at the end.

use std::collections::BTreeSet;
use std::env;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use fastrand::Rng;
use fdtable::{Errno, FdFlags, FdTable, Options, OwnedRef};

use super::sys;

const THREADS: usize = 4;
/// Operations of all threads together, unless the environment says otherwise.
const OPERATIONS: usize = 600_000;
const OPERATIONS_VARIABLE: &str = "FDTABLE_KERNEL_OPERATIONS";
/// Operations of a thread between two moments at which all is quiet.
const ROUND: usize = 500;
/// A thread has at most so many numbers, in turns: within the first word, and beyond.
const OWN: [usize; 2] = [8, 40];
/// The limit, above all that is used but for the round that reaches it.
const LIMIT: i32 = 400;

const NONE: FdFlags = FdFlags::empty();

/// A table that both have: the operations that they share, all on one file.
trait Descriptors: Sync {
    const NAME: &'static str;

    fn dup(&self, fd: i32) -> Result<i32, Errno>;
    fn dup_from(&self, fd: i32, min: i32) -> Result<i32, Errno>;
    fn dup2(&self, old: i32, new: i32) -> Result<i32, Errno>;
    fn close(&self, fd: i32) -> Result<(), Errno>;
    fn is_open(&self, fd: i32) -> bool;
    fn set_limit(&self, limit: i32);
    /// The file has no more holders than its first number, and with that gone none.
    fn end(self, first: i32);
}

/// This process's, without what it has open otherwise: below `first`, of which nothing is said.
struct Kernel {
    /// The read end of the pipe whose write end is the file.
    reader: i32,
}

impl Descriptors for Kernel {
    const NAME: &'static str = "kernel";

    fn dup(&self, fd: i32) -> Result<i32, Errno> {
        sys::check(sys::dup(fd))
    }

    fn dup_from(&self, fd: i32, min: i32) -> Result<i32, Errno> {
        sys::check(sys::fcntl(fd, libc::F_DUPFD, min))
    }

    fn dup2(&self, old: i32, new: i32) -> Result<i32, Errno> {
        sys::check(sys::dup2(old, new))
    }

    fn close(&self, fd: i32) -> Result<(), Errno> {
        sys::check(sys::close(fd)).map(drop)
    }

    fn is_open(&self, fd: i32) -> bool {
        sys::fcntl(fd, libc::F_GETFD, 0) >= 0
    }

    fn set_limit(&self, limit: i32) {
        assert_eq!(sys::set_limit(limit as u64, sys::limits().rlim_max), 0);
    }

    fn end(self, first: i32) {
        assert!(!sys::is_at_end(self.reader), "a file that is open has been lost");
        self.close(first).unwrap();
        assert!(sys::is_at_end(self.reader), "a file outlives its last number");
    }
}

struct Table {
    table: FdTable<()>,
    /// The file, once more.
    file: OwnedRef<()>,
}

impl Descriptors for Table {
    const NAME: &'static str = "table";

    fn dup(&self, fd: i32) -> Result<i32, Errno> {
        Ok(self.table.dup(fd)?.into())
    }

    fn dup_from(&self, fd: i32, min: i32) -> Result<i32, Errno> {
        Ok(self.table.dup_from(fd, min, NONE)?.into())
    }

    fn dup2(&self, old: i32, new: i32) -> Result<i32, Errno> {
        Ok(self.table.dup2(old, new)?.into())
    }

    fn close(&self, fd: i32) -> Result<(), Errno> {
        Ok(self.table.close(fd)?)
    }

    fn is_open(&self, fd: i32) -> bool {
        self.table.get(fd).is_ok()
    }

    fn set_limit(&self, limit: i32) {
        self.table.set_limit(limit as u64);
    }

    fn end(self, first: i32) {
        self.close(first).unwrap();
        assert!(self.file.try_into_inner().is_ok(), "a file outlives its last number");
    }
}

/// Threads at work on one of the tables.
struct Race<D> {
    descriptors: D,
    /// The number from which the others are made; those below it are not looked at.
    first: i32,
    /// For each number who has it: a thread, from 1 on, or nobody.
    owners: Vec<AtomicUsize>,
    barrier: Barrier,
}

impl<D: Descriptors> Race<D> {
    fn new(descriptors: D, first: i32) -> Self {
        descriptors.set_limit(LIMIT);
        let owners = (0..LIMIT).map(|_| AtomicUsize::new(0)).collect();
        Race { descriptors, first, owners, barrier: Barrier::new(THREADS) }
    }

    fn run(self, seed: u64, rounds: usize) {
        thread::scope(|scope| {
            for number in 1..=THREADS {
                let random = Rng::with_seed(seed ^ (number as u64) << 32);
                let worker = Worker { race: &self, number, random, own: Vec::new() };
                scope.spawn(move || {
                    if panic::catch_unwind(AssertUnwindSafe(|| worker.run(rounds))).is_err() {
                        // It has been reported. The others would wait for this thread for ever.
                        sys::exit(1);
                    }
                });
            }
        });
        self.check_quiet();
        self.descriptors.end(self.first);
    }

    fn owned(&self) -> BTreeSet<i32> {
        let is_owned = |fd: &i32| self.owners[*fd as usize].load(SeqCst) != 0;
        (self.first + 1..LIMIT).filter(is_owned).collect()
    }

    /// Nobody else is at work: what is open is what threads have, and the lowest number is next.
    fn check_quiet(&self) {
        let open = (self.first + 1..LIMIT).filter(|&fd| self.descriptors.is_open(fd));
        assert_eq!(open.collect::<BTreeSet<_>>(), self.owned(), "{}: what is open", D::NAME);
        for min in [0, 64, 100] {
            let lowest = self.lowest(min);
            let given = self.descriptors.dup_from(self.first, min).unwrap();
            assert_eq!(given, lowest, "{}: the lowest number from {min} on", D::NAME);
            self.descriptors.close(given).unwrap();
        }
    }

    fn lowest(&self, min: i32) -> i32 {
        let is_free = |fd: &i32| self.owners[*fd as usize].load(SeqCst) == 0;
        (min.max(self.first + 1)..LIMIT).find(is_free).expect("there is room")
    }
}

struct Worker<'r, D> {
    race: &'r Race<D>,
    /// From 1 on.
    number: usize,
    random: Rng,
    own: Vec<i32>,
}

impl<D: Descriptors> Worker<'_, D> {
    fn run(mut self, rounds: usize) {
        for round in 0..rounds {
            let most = OWN[round % 2];
            for _ in 0..ROUND {
                self.step(most);
            }
            self.quiet();
            match round % 3 {
                0 => self.all_fill(),
                1 => self.all_close(),
                _ => {}
            }
        }
        while let Some(fd) = self.own.pop() {
            self.close(fd);
        }
    }

    /// All wait for all; meanwhile one looks.
    fn quiet(&self) {
        if self.race.barrier.wait().is_leader() {
            self.race.check_quiet();
        }
        self.race.barrier.wait();
    }

    /// The number has been given to this thread.
    fn take(&mut self, fd: i32) {
        let before = self.race.owners[fd as usize].swap(self.number, SeqCst);
        assert_eq!(before, 0, "{}: {fd} was handed out twice", D::NAME);
        self.own.push(fd);
    }

    fn close(&self, fd: i32) {
        // First: another thread may have the number before the call returns.
        self.race.owners[fd as usize].store(0, SeqCst);
        assert_eq!(self.race.descriptors.close(fd), Ok(()), "{}: close {fd}", D::NAME);
    }

    fn pick(&mut self) -> i32 {
        match self.own.len() {
            0 => self.race.first,
            len => self.own[self.random.usize(..len)],
        }
    }

    fn step(&mut self, most: usize) {
        let Race { descriptors, .. } = self.race;
        let (old, new) = (self.pick(), self.pick());
        match self.random.u32(0..8) {
            0..3 if self.own.len() < most => {
                let fd = descriptors.dup(old).expect("there is room");
                self.take(fd);
            }
            3 if self.own.len() < most => {
                let min = self.random.i32(0..150);
                let fd = descriptors.dup_from(old, min).expect("there is room");
                assert!(fd >= min, "{}: {fd} is below {min}", D::NAME);
                self.take(fd);
            }
            4 => {
                // Of this thread both, or the first.
                if new != self.race.first {
                    assert_eq!(descriptors.dup2(old, new), Ok(new), "{}", D::NAME);
                }
            }
            5 => assert!(descriptors.is_open(old), "{}: {old} has been lost", D::NAME),
            _ if self.own.is_empty() => {}
            _ => {
                let at = self.random.usize(..self.own.len());
                let fd = self.own.swap_remove(at);
                self.close(fd);
            }
        }
    }

    /// All take what is left below the limit: each number is given once, and none is left.
    fn all_fill(&mut self) {
        let (race, before) = (self.race, self.own.len());
        let error = loop {
            match race.descriptors.dup(race.first) {
                Ok(fd) => self.take(fd),
                Err(error) => break error,
            }
        };
        assert_eq!(error, Errno::EMFILE, "{}", D::NAME);
        race.barrier.wait();
        let all = race.owned().len();
        assert_eq!(all, (race.first + 1..LIMIT).len(), "{}: numbers that are taken", D::NAME);
        race.barrier.wait();
        for fd in self.own.split_off(before) {
            self.close(fd);
        }
        self.quiet();
    }

    /// All close what one has opened: of each number one of them.
    fn all_close(&mut self) {
        let Race { descriptors, barrier, owners, .. } = self.race;
        // One number that all see: the highest, so that nobody is given it by the way.
        let fd = LIMIT - 1;
        if barrier.wait().is_leader() {
            assert_eq!(descriptors.dup2(self.race.first, fd), Ok(fd), "{}", D::NAME);
            owners[fd as usize].store(0, SeqCst);
        }
        barrier.wait();
        if descriptors.close(fd).is_ok() {
            owners[fd as usize].fetch_add(1, SeqCst);
        }
        barrier.wait();
        assert_eq!(owners[fd as usize].load(SeqCst), 1, "{}: closed so often", D::NAME);
        if barrier.wait().is_leader() {
            owners[fd as usize].store(0, SeqCst);
        }
        self.quiet();
    }
}

/// In a process of its own.
pub(super) fn check(seed: u64) -> usize {
    let operations = env::var(OPERATIONS_VARIABLE).ok();
    let operations = operations.map_or(OPERATIONS, |it| it.parse().expect("a number"));
    let rounds = operations.div_ceil(THREADS * ROUND);

    // The lowest that are free. What may be open above them is not ours.
    let [reader, first] = sys::nonblocking_pipe();
    sys::close_range(first as u32 + 1, u32::MAX, 0);
    Race::new(Kernel { reader }, first).run(seed, rounds);

    // The same numbers as there.
    let file = OwnedRef::new(());
    let table = Options::new().build();
    for _ in 0..first {
        table.insert((), NONE).expect("memory");
    }
    table.insert(file.clone(), NONE).expect("memory");
    Race::new(Table { table, file }, first).run(seed, rounds);
    rounds * THREADS * ROUND
}
