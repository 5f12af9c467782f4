//! Threads that do random operations, all kinds of them, on one table and its forks. What must hold while
//! they run: a file is never used after its drop nor dropped twice. What must hold at the end, when all
//! is quiet: numbers are the lowest, the drop of the table flushes each open fd, every file is gone.
//!
//! Small enough for Miri, which then sees data races and broken provenance too.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Barrier};

use common::{File, Ledger, NONE, flush};
use fdtable::{BadFd, CloseRange, FdFlags, FdTable, Files, Options, OwnedRef, Ref};

const THREADS: usize = if cfg!(miri) { 3 } else { 4 };
const OPERATIONS: usize = if cfg!(miri) { 60 } else { 30_000 };

/// What the threads share besides the table.
struct Scene {
    table: FdTable<File>,
    ledger: Arc<Ledger>,
    /// How many files have been made.
    names: AtomicUsize,
}

impl Scene {
    fn new() -> Self {
        let table = Options::new().on_close(flush).build();
        Scene { table, ledger: Ledger::new(), names: AtomicUsize::new(0) }
    }

    fn file(&self) -> File {
        self.ledger.file(self.names.fetch_add(1, Relaxed) as u32)
    }

    /// One random operation. Handles that it wants to keep go into `kept`.
    fn step(&self, random: &mut fastrand::Rng, kept: &mut Vec<OwnedRef<File>>) {
        let table = &self.table;
        // Mostly few numbers, so that threads meet; at the border of the first word, and beyond it.
        let fd = [random.u32(0..4), random.u32(62..67), random.u32(126..130)][random.usize(..3)];
        let flags = FdFlags::from_bits_truncate(random.u8(0..4));
        match random.u32(0..20) {
            0..4 => look(table.get(fd)),
            4 => kept.extend(table.get_owned(fd)),
            5 => kept.extend(table.get(fd).map(|file| file.to_owned())),
            6 => drop(kept.pop()),
            7 => drop(table.insert(self.file(), flags)),
            8 => drop(table.insert_from(fd, self.file(), flags)),
            9 => {
                if let Some(file) = kept.pop() {
                    drop(table.insert_from(fd, file, flags));
                }
            }
            10 => {
                if let Ok(reservation) = table.reserve_in(fd..u32::MAX)
                    && random.bool()
                {
                    reservation.install(self.file(), flags);
                }
            }
            11 => {
                if let Ok([one, two]) = table.reserve_many() {
                    one.install(self.file(), flags);
                    drop(two);
                }
            }
            12 => drop(table.dup_from(fd, random.u32(0..130), flags)),
            13 => drop(table.dup2(fd, random.u32(0..130))),
            14 => drop(table.replace(fd, self.file(), flags)),
            15 => drop(table.remove(fd)),
            16 => drop(table.close(fd)),
            17 => drop(table.set_flags(fd, flags)),
            18 => match random.u32(0..6) {
                0 => table.close_on_exec(),
                1 => {
                    let how = CloseRange::from_bits_truncate(random.u32(..) & !2);
                    let _ = table.close_range(fd, fd + random.u32(0..70), how);
                }
                2 => table.iter().for_each(|entry| look(Ok(entry.file))),
                3 => assert!(table.len() <= table.capacity() as usize),
                4 => drop(format!("{table:?} {:?}", table.highest_open())),
                _ => drop(table.renumber(fd, random.u32(0..130))),
            },
            _ => {
                let child = table.fork().expect("memory");
                child.iter().for_each(|entry| look(Ok(entry.file)));
                drop(child.insert(self.file(), flags));
            }
        }
    }

    /// Nobody else is at work any more.
    fn check(self) {
        let open: Vec<_> = self.table.iter().map(|entry| entry.fd.get()).collect();
        assert_eq!(self.table.len(), open.len());
        assert_eq!(self.table.highest_open().map(u32::from), open.last().copied());
        // No number is lost: the free ones below are handed out in order.
        let free = (0..).filter(|fd| !open.contains(fd)).take(if cfg!(miri) { 10 } else { 200 });
        for expected in free {
            assert_eq!(self.table.insert(self.file(), NONE).unwrap(), expected);
        }
        let flushed = self.ledger.flushed();
        let left = self.table.len();
        drop(self.table);
        assert_eq!(self.ledger.flushed() - flushed, left);
        assert_eq!(self.ledger.live(), 0);
    }
}

/// Uses the file, if there is one; it notices if it is gone.
fn look(file: Result<Ref<'_, File>, BadFd>) {
    let _ = file.map(|file| file.name());
}

/// Prints the seed, with which the threads' choices can be repeated, if not their timing.
fn seed() -> u64 {
    let seed = std::env::var("FDTABLE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("FDTABLE_SEED={seed}");
    seed
}

/// Runs `thread` on all threads at once, each with its random numbers.
fn together(thread: impl Fn(fastrand::Rng) + Sync) {
    let (seed, barrier) = (seed(), Barrier::new(THREADS));
    std::thread::scope(|scope| {
        for number in 0..THREADS as u64 {
            let (thread, barrier) = (&thread, &barrier);
            scope.spawn(move || {
                barrier.wait();
                thread(fastrand::Rng::with_seed(seed ^ number << 32));
            });
        }
    });
}

#[test]
fn random_operations_on_one_table() {
    random_operations(OPERATIONS);
}

/// So short that Miri can repeat it with many schedules.
#[test]
fn few_random_operations_on_one_table() {
    random_operations(6);
}

fn random_operations(n: usize) {
    let scene = Scene::new();
    together(|mut random| {
        let mut kept = Vec::new();
        for _ in 0..n {
            scene.step(&mut random, &mut kept);
        }
    });
    scene.check();
}

/// The same lookups and closes of few files by all threads: the counts move between slots and files.
#[test]
fn lookups_and_closes_of_one_file() {
    let scene = Scene::new();
    together(|mut random| {
        let mut kept = Vec::new();
        for _ in 0..OPERATIONS {
            match random.u32(0..8) {
                0 => drop(scene.table.close(0)),
                1 => drop(scene.table.replace(0, scene.file(), NONE)),
                2 => drop(scene.table.dup2(0, 1)),
                3 => drop(scene.table.dup2(1, 0)),
                4 => kept.extend(scene.table.get_owned(random.u32(0..2))),
                5 => drop(kept.pop()),
                _ => look(scene.table.get(random.u32(0..2))),
            }
        }
    });
    scene.check();
}

/// Tasks that share, fork, unshare, exec and exit: the last sharer of each table closes it.
#[test]
fn tasks_come_and_go() {
    let ledger = Ledger::new();
    let first = Files::from(Options::new().on_close(flush).build());
    together(|mut random| {
        let mut task = first.share();
        for _ in 0..OPERATIONS / 10 {
            match random.u32(0..8) {
                0 => task = task.fork().expect("memory"),
                1 => task = first.share(),
                2 => task.unshare().expect("memory"),
                3 => task.exec().expect("memory"),
                4 => {
                    let how = CloseRange::UNSHARE;
                    task.close_range(random.u32(0..8), u32::MAX, how).expect("valid");
                }
                5 => look(task.borrow(random.u32(0..4))),
                6 => drop(task.close(random.u32(0..4))),
                _ => drop(task.insert(ledger.file(0), FdFlags::CLOEXEC)),
            }
        }
    });
    assert!(!first.is_shared());
    drop(first);
    assert_eq!(ledger.live(), 0);
}
