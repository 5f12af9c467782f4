//! Runs sequences: one process per task, in step.
//!
//! Every process of a sequence holds the model of all its tasks and goes through all of its steps. It
//! makes the system calls of its own task only, and compares its table in the kernel with the model
//! after each of them; after some steps all do. Nothing of this needs a file descriptor: the
//! processes meet in shared memory, so 0, 1 and 2 are the sequence's like all others.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::panic;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

use fdtable::FdFlags;

use super::exec;
use super::model::Model;
use super::ops::{Op, Sequence};
use super::sys::{self, File, Kind, Outcome};

/// A process of a sequence that takes longer is stuck.
const SECONDS: u32 = 20;
/// After every so many steps all tasks compare, not only the one that made the call.
const ALL_COMPARE: u32 = 4;
/// No limit above this is tried, so that the kernel's tables stay small.
const LIMIT: u64 = 1 << 20;

pub(super) struct Runner {
    board: &'static Board,
    /// The table's ceiling.
    nr_open: u64,
    hard_limit: u64,
}

impl Runner {
    pub(super) fn new() -> Self {
        let nr_open = fs::read_to_string("/proc/sys/fs/nr_open").expect("/proc is mounted");
        let nr_open: u64 = nr_open.trim().parse().expect("it is a number");
        if nr_open < LIMIT && !nr_open.is_multiple_of(64) {
            eprintln!(
                "kernel: nr_open = {nr_open} is rounded down to a multiple of 64, as in a table"
            );
        }
        let most = LIMIT.min(nr_open & !63);
        // Succeeds for the privileged. For others the limit stays as it is.
        let hard = sys::limits().rlim_max;
        if hard < most {
            sys::set_limit(sys::limits().rlim_cur, most);
        }
        let hard_limit = most.min(sys::limits().rlim_max);
        assert!(hard_limit >= 1024, "a hard limit of {hard_limit} files is too low for this test");
        sys::adopt_orphans();
        Runner { board: Board::new(), nr_open, hard_limit }
    }

    /// How many steps the last run made.
    pub(super) fn steps(&self) -> u64 {
        self.board.steps.load(SeqCst)
    }

    /// Runs a sequence in processes of its own. The error says how kernel and model differ.
    pub(super) fn run(&self, sequence: &Sequence) -> Result<(), String> {
        self.board.reset();
        if sys::spawn(0).is_none() {
            self.play(sequence);
            sys::exit(0);
        }
        let mut died = Ok(());
        while let Some(status) = sys::wait(-1) {
            if status != 0 {
                let steps = self.steps();
                died = Err(format!("ended by signal {status}, 14 if stuck, after {steps} steps"));
            }
        }
        self.board.report().and(died)
    }

    /// In a new process: the sequence, its first task and those that it makes.
    fn play(&self, sequence: &Sequence) {
        static PANIC: OnceLock<String> = OnceLock::new();
        // Also what the crate asserts is a difference; standard error is not ours to write to.
        panic::set_hook(Box::new(|info| _ = PANIC.set(info.to_string())));
        sys::alarm(SECONDS);
        let mut process = None;
        let result = panic::catch_unwind(panic::AssertUnwindSafe(|| {
            process.insert(Process::new(self, sequence)).play(sequence)
        }));
        let result = result.unwrap_or_else(|_| Err(PANIC.get().cloned().unwrap_or_default()));
        if let Err(reason) = result {
            let history = process.map_or(String::new(), |process| process.describe());
            self.board.fail(&format!("{reason}\n{history}"));
        }
    }
}

/// One task's process.
struct Process {
    board: &'static Board,
    model: Model,
    /// Which task this is.
    task: usize,
    /// How many comparisons all processes together have made once the last step is over.
    compared: u32,
    /// All steps so far, with what the model says; nothing if it panics.
    history: Vec<(usize, Op<i32>, Option<Outcome>)>,
}

impl Process {
    /// Puts this process into the state that the sequence starts from, and the model into the same.
    fn new(runner: &Runner, sequence: &Sequence) -> Self {
        sys::close_range(0, u32::MAX, 0);
        let Runner { board, nr_open, hard_limit } = *runner;
        sys::set_limit(hard_limit, sys::limits().rlim_max);
        let mut fds: BTreeMap<i32, bool> = (0..sequence.full).map(|fd| (fd, false)).collect();
        fds.extend(&sequence.open);
        let mut open: Vec<(i32, FdFlags, File)> = Vec::new();
        for (fd, cloexec) in fds {
            if u64::try_from(fd).is_ok_and(|fd| fd < hard_limit) {
                let tag = open.len() as u32 + 1;
                let flags = if cloexec { FdFlags::CLOEXEC } else { FdFlags::empty() };
                place(fd, if cloexec { libc::O_CLOEXEC } else { 0 }, tag);
                open.push((fd, flags, File { kind: Kind::Regular, tag }));
            }
        }
        let limit = sequence.limit.min(hard_limit);
        sys::set_limit(limit, sys::limits().rlim_max);
        let model = Model::new(&open, nr_open, hard_limit, limit);
        Process { board, model, task: 0, compared: 0, history: Vec::new() }
    }

    fn play(&mut self, sequence: &Sequence) -> Result<(), String> {
        self.compare(0)?;
        let Board { made, compared, .. } = self.board;
        for step in &sequence.steps {
            let actor = self.model.pick(step.task);
            let Some(op) = self.model.resolve(actor, &step.op) else { continue };
            let tag = self.model.next_tag();
            self.history.push((actor, op.clone(), None));
            let expected = self.model.perform(actor, &op);
            self.history.last_mut().expect("just pushed").2 = Some(expected.clone());
            let steps = self.history.len() as u32;
            let all_compare = steps.is_multiple_of(ALL_COMPARE);
            if actor == self.task {
                compared.wait_for(self.compared, self.board);
                self.make(&op, tag, &expected)?;
            }
            // Here a task that the call has made is another than the one that made the call.
            let acts = actor == self.task;
            if acts {
                made.add();
            }
            if all_compare || matches!(op, Op::Exit) {
                made.wake();
            }
            match op {
                Op::Exit if acts => return Ok(()),
                Op::Exit if !all_compare => continue,
                _ if all_compare => self.compared += self.model.count() as u32,
                _ => self.compared += 1,
            }
            if acts || all_compare {
                made.wait_for(steps, self.board);
                self.compare(steps)?;
                if compared.add() == self.compared {
                    compared.wake();
                }
            }
        }
        made.wake();
        made.wait_for(self.history.len() as u32, self.board);
        self.compare(0)
    }

    /// Makes the call of a step in the kernel, where the model says `expected`. A call that makes a
    /// task comes back in that one as well.
    fn make(&mut self, op: &Op<i32>, tag: u32, expected: &Outcome) -> Result<(), String> {
        self.board.steps.fetch_add(1, SeqCst);
        match op {
            Op::Exit => {}
            Op::Fork => self.spawn(0),
            Op::Share => self.spawn(libc::CLONE_FILES),
            Op::ForkExec => exec::check(self.model.after_exec(), 0)?,
            Op::ShareExec => exec::check(self.model.after_exec(), libc::CLONE_FILES)?,
            _ => {
                let actual = sys::perform(op, tag);
                if actual != *expected {
                    return Err(format!("kernel {actual:?}, model {expected:?}"));
                }
            }
        }
        Ok(())
    }

    /// The model has the new task already.
    fn spawn(&mut self, flags: i32) {
        if sys::spawn(flags).is_none() {
            // An alarm is not inherited.
            sys::alarm(SECONDS);
            self.task = self.model.newest();
        }
    }

    /// After a step, or at the ends of the sequence, which are step 0.
    fn compare(&self, step: u32) -> Result<(), String> {
        let mut result = self.model.compare(self.task, sys::inspect);
        if step.is_multiple_of(8) {
            result = result.and_then(|()| self.model.compare_whole(self.task, sys::inspect));
        }
        result.map_err(|reason| format!("as task {} sees it: {reason}", self.task))
    }

    fn describe(&self) -> String {
        let mut text = format!("reported by task {}; all steps, as the model has them:", self.task);
        for (task, op, outcome) in &self.history {
            let outcome = outcome.as_ref().map_or("none".to_string(), |some| format!("{some:?}"));
            write!(text, "\n  task {task}: {op:?} = {outcome}")
                .expect("a string can be written to");
        }
        text
    }
}

/// Opens a file with this tag at `fd`, where nothing is open; everything below it that is free stays so.
fn place(fd: i32, flags: i32, tag: u32) {
    let lowest = sys::tagged_open(flags, tag).expect("there is a number below the limit");
    if lowest != fd {
        assert_eq!(sys::dup3(lowest, fd, flags), fd);
        assert_eq!(sys::close(lowest), 0);
    }
}

/// What the processes of a sequence share. All zero at first.
///
/// Sequentially consistent throughout: the system calls between two steps cost far more.
struct Board {
    steps: AtomicU64,
    /// The calls that have been made: all can compare after this one.
    made: Counter,
    /// The comparisons that have been made: once all are that are due, the next call can be made.
    compared: Counter,
    failed: AtomicBool,
    report: [AtomicU8; 1 << 16],
    length: AtomicUsize,
}

impl Board {
    fn new() -> &'static Board {
        let memory = sys::shared_memory(size_of::<Board>()).cast::<Board>();
        // SAFETY: zeros are a value of the type, the mapping is aligned to a page and never undone, and
        // what it holds are atomics.
        unsafe { &*memory }
    }

    /// Before a sequence, when there are no other processes.
    fn reset(&self) {
        self.steps.store(0, SeqCst);
        self.made.0.store(0, SeqCst);
        self.compared.0.store(0, SeqCst);
        self.failed.store(false, SeqCst);
    }

    /// Reports a difference; the first one counts. Whoever waits goes.
    fn fail(&self, reason: &str) {
        if self.failed.swap(true, SeqCst) {
            return;
        }
        for (place, byte) in self.report.iter().zip(reason.bytes()) {
            place.store(byte, SeqCst);
        }
        self.length.store(reason.len().min(self.report.len()), SeqCst);
        self.made.stop();
        self.compared.stop();
    }

    /// After a sequence.
    fn report(&self) -> Result<(), String> {
        if !self.failed.load(SeqCst) {
            return Ok(());
        }
        let report = &self.report[..self.length.load(SeqCst)];
        let bytes: Vec<u8> = report.iter().map(|byte| byte.load(SeqCst)).collect();
        Err(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Counts what happens in a sequence, and lets processes wait for it.
struct Counter(AtomicU32);

impl Counter {
    /// Counts one more, and returns how many those are.
    fn add(&self) -> u32 {
        self.0.fetch_add(1, SeqCst) + 1
    }

    fn wake(&self) {
        sys::futex_wake_all(&self.0);
    }

    /// Waits until it has counted so many. Ends the process if another one has failed.
    fn wait_for(&self, due: u32, board: &Board) {
        loop {
            let count = self.0.load(SeqCst);
            if board.failed.load(SeqCst) {
                sys::exit(0);
            }
            if count >= due {
                return;
            }
            sys::futex_wait(&self.0, count);
        }
    }

    /// Wakes all, after a failure. The count changes, for those who are just about to wait.
    fn stop(&self) {
        self.0.fetch_add(1 << 31, SeqCst);
        self.wake();
    }
}
