//! Keeps threads busy with everything that a table can do, for as long as is asked for, and counts: at
//! the end nothing may be lost. `cargo run --release --example soak -- --help` says how.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::ops::AddAssign;
use std::panic::{self, AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use fdtable::{CloseRange, Errno, FdFlags, Files, Options, OwnedRef, ReplaceError, TableId};
use lexopt::prelude::*;

const HELP: &str = "\
Keeps threads busy with a table of file descriptors: churn, forks, growth,
limits, drops that panic, handles that are held for long. Says each second how
it goes, and at the end whether anything was lost.

usage: soak [--minutes N] [--threads N]

  -m, --minutes N  how long, 1 if not given; may be a fraction
  -t, --threads N  how many, 4 if not given
  -h, --help       show this text

exit status: 0 all is accounted for, 1 files or descriptors were lost, a thread
has failed, or memory has grown, 2 the command line is wrong";

/// So much more resident memory at the end than after a tenth of the time is a leak. The large table
/// that comes and goes takes about half of it.
const GROWTH: u64 = 32 << 20;
/// The numbers that are mostly used: the first word, and some beyond.
const NEAR: u32 = 200;
/// One past those that make a table grow.
const FAR: u32 = 1 << 20;
/// Operations between two looks at the clock.
const TURN: u32 = 4096;
/// Handles that a thread keeps: for some thousand operations, and for as many seconds.
const KEPT: usize = 256;

struct Arguments {
    time: Duration,
    threads: usize,
}

impl Arguments {
    /// `None`: help is asked for.
    fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<Self>, lexopt::Error> {
        let (mut minutes, mut threads) = (1.0, 4);
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Short('h') | Long("help") => return Ok(None),
                Short('m') | Long("minutes") => minutes = parser.value()?.parse()?,
                Short('t') | Long("threads") => threads = parser.value()?.parse()?,
                _ => return Err(argument.unexpected()),
            }
        }
        let time = Duration::try_from_secs_f64(minutes * 60.0).map_err(|e| e.to_string())?;
        if threads == 0 {
            return Err("at least one thread is needed".into());
        }
        Ok(Some(Arguments { time, threads }))
    }
}

/// Files that exist, and fds that were closed. Relaxed: they are read when the threads are joined.
static MADE: CachePadded<AtomicU64> = CachePadded::new(AtomicU64::new(0));
static DROPPED: CachePadded<AtomicU64> = CachePadded::new(AtomicU64::new(0));
static FLUSHED: CachePadded<AtomicU64> = CachePadded::new(AtomicU64::new(0));

/// A file that notices if it is used when it is gone, and whose drop may panic.
struct File {
    mark: AtomicU32,
    panics: bool,
}

/// What a drop panics with.
struct Deliberate;

const ALIVE: u32 = 0xa11_0e11;
const GONE: u32 = 0xdead_f11e;

impl File {
    fn new(random: &mut fastrand::Rng) -> File {
        MADE.fetch_add(1, Relaxed);
        File { mark: AtomicU32::new(ALIVE), panics: random.u8(..) == 0 }
    }

    fn look(&self) {
        assert_eq!(self.mark.load(Relaxed), ALIVE, "a file was used after its drop");
    }

    fn flush(&self, _: TableId) -> Result<(), Errno> {
        self.look();
        FLUSHED.fetch_add(1, Relaxed);
        Ok(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        assert_eq!(self.mark.swap(GONE, Relaxed), ALIVE, "a file was dropped twice");
        DROPPED.fetch_add(1, Relaxed);
        if self.panics {
            panic::panic_any(Deliberate);
        }
    }
}

/// What a thread has done.
#[derive(Clone, Copy, Default)]
struct Done {
    operations: u64,
    /// Fds that were opened, in any way.
    opened: u64,
    /// Fds whose file was taken out of a table: no flush.
    taken: u64,
    panics: u64,
}

impl AddAssign for Done {
    fn add_assign(&mut self, other: Done) {
        self.operations += other.operations;
        self.opened += other.opened;
        self.taken += other.taken;
        self.panics += other.panics;
    }
}

/// What the threads share.
struct Scene {
    /// The table that most of them use; every second a new one.
    current: Mutex<Files<File>>,
    stop: AtomicBool,
    done: Mutex<Done>,
}

impl Scene {
    fn table() -> Files<File> {
        Options::new().on_close(File::flush).build().into()
    }

    fn share(&self) -> Files<File> {
        self.current.lock().expect("no file is dropped under this lock").share()
    }

    /// Others go on with the old table until they come by.
    fn renew(&self) -> Files<File> {
        let mut current = self.current.lock().expect("as in `share`");
        std::mem::replace(&mut current, Scene::table())
    }
}

struct Worker<'s> {
    scene: &'s Scene,
    files: Files<File>,
    random: fastrand::Rng,
    kept: VecDeque<OwnedRef<File>>,
    /// Those that are held for long.
    old: VecDeque<OwnedRef<File>>,
    done: Done,
}

impl Worker<'_> {
    fn run(mut self) {
        while !self.scene.stop.load(Relaxed) {
            for _ in 0..TURN {
                self.step();
            }
            *self.scene.done.lock().expect("nothing panics") += std::mem::take(&mut self.done);
            // To the current table, from one that may be old or this thread's own.
            let left = std::mem::replace(&mut self.files, self.scene.share());
            self.survive(|_| drop(left));
            if let Some(file) = self.kept.pop_front() {
                self.old.push_back(file);
            }
            if self.old.len() > KEPT {
                let file = self.old.pop_front();
                self.survive(|_| drop(file));
            }
        }
        // One by one: of two panics in one unwinding the second would be the end.
        while let Some(file) = self.kept.pop_front().or_else(|| self.old.pop_front()) {
            self.survive(|_| drop(file));
        }
        let left = std::mem::replace(&mut self.files, self.scene.share());
        self.survive(|_| drop(left));
        *self.scene.done.lock().expect("nothing panics") += self.done;
    }

    /// Runs what may drop a file; `None` if that has panicked.
    fn survive<R>(&mut self, run: impl FnOnce(&mut Self) -> R) -> Option<R> {
        match catch_unwind(AssertUnwindSafe(|| run(self))) {
            Ok(result) => Some(result),
            Err(panic) if panic.is::<Deliberate>() => {
                self.done.panics += 1;
                None
            }
            Err(panic) => resume_unwind(panic),
        }
    }

    fn step(&mut self) {
        self.done.operations += 1;
        self.survive(Self::operation);
    }

    fn number(&mut self) -> u32 {
        self.random.u32(0..NEAR)
    }

    fn keep(&mut self, file: OwnedRef<File>) {
        self.kept.push_back(file);
        if self.kept.len() > KEPT {
            drop(self.kept.pop_front());
        }
    }

    /// One random operation. What it opens is counted before anything can panic.
    fn operation(&mut self) {
        let (fd, other) = (self.number(), self.number());
        let flags = FdFlags::from_bits_truncate(self.random.u8(..));
        match self.random.u32(0..1000) {
            0..300 => {
                if let Ok(file) = self.files.get(fd) {
                    file.look();
                }
            }
            300..350 => {
                if let Ok(file) = self.files.get_owned(fd) {
                    file.look();
                    self.keep(file);
                }
            }
            350..550 => self.insert(0, flags),
            550..800 => _ = self.files.close(fd),
            800..830 => self.dup2(fd, other),
            830..860 => self.done.opened += u64::from(self.files.dup(fd).is_ok()),
            860..890 => self.replace(fd, flags),
            890..910 => {
                if let Ok(file) = self.files.remove(fd) {
                    self.done.taken += 1;
                    self.keep(file);
                }
            }
            910..930 => _ = self.files.set_flags(fd, flags),
            930..950 => self.reserve(fd, flags),
            950..960 => self.reserve_pair(flags),
            960..970 => _ = self.files.renumber(fd, other),
            970..974 => {
                let how = CloseRange::from_bits_truncate(self.random.u32(..));
                let how = how - CloseRange::UNSHARE;
                self.files.close_range(fd, fd + 20, how).expect("a range");
            }
            974..980 => self.with_limit(flags),
            980..986 => {
                let far = self.random.u32(NEAR..FAR);
                self.insert(far, flags);
            }
            986..988 => {
                self.files.close_range(NEAR, u32::MAX, CloseRange::empty()).expect("a range");
            }
            988..990 => self.files.iter().for_each(|entry| entry.file.look()),
            990..998 => self.fork(),
            998 => self.unshare(),
            _ => self.files.close_on_exec(),
        }
    }

    fn insert(&mut self, min: u32, flags: FdFlags) {
        let file = File::new(&mut self.random);
        if self.files.insert_from(min, file, flags).is_ok() {
            self.done.opened += 1;
        }
    }

    fn dup2(&mut self, old: u32, new: u32) {
        // If it panics that is the drop of the victim, when `new` is open already.
        let result = self.survive(|worker| worker.files.dup2(old, new)).unwrap_or(Ok(fd(new)));
        match result {
            Ok(_) if old != new => self.done.opened += 1,
            Ok(_) | Err(ReplaceError::BadFd | ReplaceError::Busy) => {}
            Err(error) => panic!("dup2: {error}"),
        }
    }

    fn replace(&mut self, fd: u32, flags: FdFlags) {
        let file = File::new(&mut self.random);
        let old = self.files.replace(fd, file, flags);
        if let Ok(old) = &old {
            self.done.opened += 1;
            self.done.taken += u64::from(old.is_some());
        }
    }

    fn reserve(&mut self, min: u32, flags: FdFlags) {
        let reservation = self.files.reserve_in(min..u32::MAX).expect("room");
        assert!(reservation.fd() >= fd(min));
        if self.random.bool() {
            reservation.install(File::new(&mut self.random), flags);
            self.done.opened += 1;
        }
    }

    fn reserve_pair(&mut self, flags: FdFlags) {
        let [read, write] = self.files.reserve_many().expect("room");
        assert!(read.fd() < write.fd());
        read.install(File::new(&mut self.random), flags);
        self.done.opened += 1;
        drop(write);
    }

    fn with_limit(&mut self, flags: FdFlags) {
        let limit = self.random.u32(0..NEAR);
        let file = File::new(&mut self.random);
        if let Ok(fd) = self.files.limited(limit.into()).insert(file, flags) {
            self.done.opened += 1;
            assert!(fd.get() < limit, "fd {fd}, with a limit of {limit}");
        }
    }

    /// A child that lives for a moment. Nobody else sees it, so all about it is exact.
    fn fork(&mut self) {
        let child = self.files.fork().expect("memory");
        let open = child.len();
        self.done.opened += open as u64;
        assert_eq!(child.iter().inspect(|entry| entry.file.look()).count(), open);
        let flushed = child.highest_open().map(|fd| child.close(fd));
        // Closed, whether its drop has panicked or not: so this is reached only if it has not.
        assert_eq!(child.len(), open - usize::from(flushed.is_some()));
    }

    /// To a table of this thread's own, until the end of its turn.
    fn unshare(&mut self) {
        let table = self.files.id();
        self.survive(|worker| worker.files.unshare().expect("memory"));
        if self.files.id() != table {
            self.done.opened += self.files.len() as u64;
        }
    }
}

fn fd(number: u32) -> fdtable::Fd {
    number.try_into().expect("small")
}

/// Resident memory in bytes; 0 where that can't be found out.
fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0) * 4096
}

/// Drops a table; its files may panic.
fn end(files: Files<File>) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(files)))
        && !panic.is::<Deliberate>()
    {
        resume_unwind(panic);
    }
}

/// Until the time is over or a thread has failed: says how it goes, and gives them a new table each
/// second. Returns the resident memory after a tenth of the time.
fn watch(scene: &Scene, time: Duration, has_failed: impl Fn() -> bool) -> u64 {
    let (start, mut before, mut warm) = (Instant::now(), 0, None);
    while start.elapsed() < time && !has_failed() {
        thread::sleep(Duration::from_secs(1).min(time - start.elapsed().min(time)));
        let (passed, memory) = (start.elapsed(), resident());
        let Done { operations, taken, panics, .. } = *scene.done.lock().expect("no panic");
        let live = MADE.load(Relaxed) - DROPPED.load(Relaxed).min(MADE.load(Relaxed));
        println!(
            "{:>5} s {:>8.2} Mop/s {live:>7} files {:>10} fds closed {panics:>8} panics {:>5} MiB",
            passed.as_secs(),
            (operations - before) as f64 / 1e6,
            FLUSHED.load(Relaxed) + taken,
            memory >> 20,
        );
        before = operations;
        if passed * 10 >= time {
            warm.get_or_insert(memory);
        }
        // The last one is for the end to look at, well used.
        if start.elapsed() < time {
            end(scene.renew());
        }
    }
    warm.unwrap_or(0)
}

/// All is quiet. Whether everything is accounted for.
fn conclude(scene: Scene, failed: usize, warm: u64) -> ExitCode {
    let files = scene.current.into_inner().expect("no panic");
    let mut done = scene.done.into_inner().expect("no panic");
    let memory = resident();
    let mut problems = Vec::new();
    let mut check = |is_right: bool, problem: String| {
        if !is_right {
            problems.push(problem);
        }
    };
    check(failed == 0, format!("{failed} threads have failed"));

    let open: Vec<u32> = files.iter().map(|entry| entry.fd.get()).collect();
    let (len, highest) = (files.len(), files.highest_open());
    check(len == open.len(), format!("{len} fds counted, {} found", open.len()));
    check(highest.map(u32::from) == open.last().copied(), format!("highest open: {highest:?}"));
    for expected in (0..).filter(|fd| !open.contains(fd)).take(NEAR as usize) {
        let number = files.reserve().map(|reservation| {
            let file = File { mark: AtomicU32::new(ALIVE), panics: false };
            MADE.fetch_add(1, Relaxed);
            reservation.install(file, FdFlags::empty())
        });
        done.opened += u64::from(number.is_ok());
        if number != Ok(fd(expected)) {
            check(false, format!("fd {expected} is free and is not handed out: {number:?}"));
            break;
        }
    }
    end(files);

    let (made, dropped) = (MADE.load(Relaxed), DROPPED.load(Relaxed));
    check(made == dropped, format!("{made} files were made, {dropped} dropped"));
    let (opened, closed) = (done.opened, FLUSHED.load(Relaxed) + done.taken);
    check(opened == closed, format!("{opened} fds were opened, {closed} closed"));
    let is_flat = warm == 0 || memory <= warm + GROWTH;
    check(is_flat, format!("memory has grown from {} to {} MiB", warm >> 20, memory >> 20));

    println!("soak: {} operations, {made} files, {opened} fds opened", done.operations);
    problems.iter().for_each(|problem| eprintln!("soak: {problem}"));
    if problems.is_empty() {
        println!("soak: all is accounted for");
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn main() -> ExitCode {
    let Arguments { time, threads } = match Arguments::parse(std::env::args_os().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("soak: {error}; --help shows the usage");
            return ExitCode::from(2);
        }
    };
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !info.payload().is::<Deliberate>() {
            report(info);
        }
    }));
    let scene = Scene {
        current: Mutex::new(Scene::table()),
        stop: AtomicBool::new(false),
        done: Mutex::default(),
    };
    let seed = fastrand::u64(..);
    println!("soak: {threads} threads for {time:.0?}, seed {seed}");

    let (failed, warm) = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads as u64)
            .map(|number| {
                let random = fastrand::Rng::with_seed(seed ^ number << 32);
                let (kept, old) = (VecDeque::new(), VecDeque::new());
                let (scene, files) = (&scene, scene.share());
                let worker = Worker { scene, files, random, kept, old, done: Done::default() };
                scope.spawn(|| worker.run())
            })
            .collect();
        let warm = watch(&scene, time, || workers.iter().any(|worker| worker.is_finished()));
        scene.stop.store(true, Relaxed);
        (workers.into_iter().map(|worker| worker.join()).filter(Result::is_err).count(), warm)
    });
    conclude(scene, failed, warm)
}
