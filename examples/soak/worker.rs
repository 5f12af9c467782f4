//! The threads, what they share, and what is counted.

use std::collections::VecDeque;
use std::ops::AddAssign;
use std::panic::{self, AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use crossbeam_utils::CachePadded;
use fdtable::{CloseRange, Errno, FdFlags, Files, Options, OwnedRef, ReplaceError, TableId};

/// The numbers that are mostly used: the first word, and some beyond.
pub(crate) const NEAR: u32 = 200;
/// One past those that make a table grow.
const FAR: u32 = 1 << 20;
/// Operations between two moves to the current table.
const TURN: u32 = 4096;
/// Handles that a thread keeps for some thousand operations, and as many that it keeps for a million.
const KEPT: usize = 256;

/// Files that exist, and fds that were closed. Relaxed: they are read when the threads are joined.
pub(crate) static MADE: CachePadded<AtomicU64> = CachePadded::new(AtomicU64::new(0));
pub(crate) static DROPPED: CachePadded<AtomicU64> = CachePadded::new(AtomicU64::new(0));
pub(crate) static FLUSHED: CachePadded<AtomicU64> = CachePadded::new(AtomicU64::new(0));

/// A file that notices if it is used when it is gone, and whose drop may panic.
pub(crate) struct File {
    mark: AtomicU32,
    panics: bool,
}

/// What a drop panics with.
pub(crate) struct Deliberate;

const ALIVE: u32 = 0xa11_0e11;
const GONE: u32 = 0xdead_f11e;

impl File {
    pub(crate) fn new(panics: bool) -> File {
        MADE.fetch_add(1, Relaxed);
        File { mark: AtomicU32::new(ALIVE), panics }
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
pub(crate) struct Done {
    pub(crate) operations: u64,
    /// Fds that were opened, in any way.
    pub(crate) opened: u64,
    /// Fds whose file was taken out of a table: no flush.
    pub(crate) taken: u64,
    pub(crate) panics: u64,
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
pub(crate) struct Scene {
    /// The table that most of them use; every second a new one.
    pub(crate) current: Mutex<Files<File>>,
    pub(crate) stop: AtomicBool,
    pub(crate) done: Mutex<Done>,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        let (stop, done) = (AtomicBool::new(false), Mutex::default());
        Scene { current: Mutex::new(Scene::table()), stop, done }
    }

    fn table() -> Files<File> {
        Options::new().on_close(File::flush).build().into()
    }

    fn share(&self) -> Files<File> {
        self.current.lock().expect("no file is dropped under this lock").share()
    }

    /// Others go on with the old table until they come by.
    pub(crate) fn renew(&self) -> Files<File> {
        let mut current = self.current.lock().expect("as in `share`");
        std::mem::replace(&mut current, Scene::table())
    }
}

pub(crate) struct Worker<'s> {
    scene: &'s Scene,
    files: Files<File>,
    random: fastrand::Rng,
    kept: VecDeque<OwnedRef<File>>,
    /// Those that are held for long.
    old: VecDeque<OwnedRef<File>>,
    done: Done,
}

impl<'s> Worker<'s> {
    pub(crate) fn new(scene: &'s Scene, seed: u64) -> Self {
        let (kept, old) = (VecDeque::new(), VecDeque::new());
        let (random, done) = (fastrand::Rng::with_seed(seed), Done::default());
        Worker { scene, files: scene.share(), random, kept, old, done }
    }

    pub(crate) fn run(mut self) {
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

    fn file(&mut self) -> File {
        File::new(self.random.u8(..) == 0)
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
        let file = self.file();
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
        let file = self.file();
        let old = self.files.replace(fd, file, flags);
        if let Ok(old) = &old {
            self.done.opened += 1;
            self.done.taken += u64::from(old.is_some());
        }
    }

    fn reserve(&mut self, min: u32, flags: FdFlags) {
        let file = self.random.bool().then(|| self.file());
        let reservation = self.files.reserve_in(min..u32::MAX).expect("room");
        assert!(reservation.fd() >= fd(min));
        if let Some(file) = file {
            reservation.install(file, flags);
            self.done.opened += 1;
        }
    }

    fn reserve_pair(&mut self, flags: FdFlags) {
        let file = self.file();
        let [read, write] = self.files.reserve_many().expect("room");
        assert!(read.fd() < write.fd());
        read.install(file, flags);
        self.done.opened += 1;
        drop(write);
    }

    fn with_limit(&mut self, flags: FdFlags) {
        // The table's own is far above what is mostly used.
        self.files.set_limit(self.random.u64(10 * u64::from(NEAR)..FAR.into()));
        let limit = self.random.u32(0..NEAR);
        let file = self.file();
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

pub(crate) fn fd(number: u32) -> fdtable::Fd {
    number.try_into().expect("small")
}
