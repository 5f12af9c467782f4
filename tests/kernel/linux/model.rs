//! What the crate says: all tasks of a sequence, as `Files` with a limit each.

use std::collections::BTreeSet;

use fdtable::{CloseRange, Errno, Fd, FdFlags, Files, Limited, Options};

use super::ops::{Number, Op};
use super::sys::{File, Kind, Outcome};

/// So many tasks are alive at most.
const TASKS: usize = 4;

struct Task {
    files: Files<File>,
    /// Its soft limit. The table's own is not used: tasks that share one have different limits.
    limit: u64,
}

impl Task {
    fn limited(&self) -> Limited<'_, File> {
        self.files.limited(self.limit)
    }
}

/// The state of all tasks of a sequence. Every process of it has all of it, and always the same.
pub(super) struct Model {
    /// By the order in which they were made; `None` has exited.
    tasks: Vec<Option<Task>>,
    hard_limit: u64,
    /// All numbers that were passed to or returned by a call.
    touched: BTreeSet<i32>,
    /// The tag of the last file.
    tag: u32,
    after_exec: Vec<State>,
}

/// A number and what is open there.
pub(super) type State = (i32, Option<(FdFlags, File)>);
/// Finds what is open at a number.
type Inspect = fn(i32) -> Option<(FdFlags, File)>;

impl Model {
    pub(super) fn new(
        open: &[(i32, FdFlags, File)],
        max: u64,
        hard_limit: u64,
        limit: u64,
    ) -> Self {
        let table = Options::new()
            .max(max)
            .restore(open.iter().map(|&(fd, flags, file)| (fd, file, flags)));
        let files = table.expect("the numbers differ and are small").into();
        let limit = limit.min(hard_limit);
        Model {
            tasks: vec![Some(Task { files, limit })],
            hard_limit,
            touched: open.iter().map(|&(fd, ..)| fd).collect(),
            tag: open.len() as u32,
            after_exec: Vec::new(),
        }
    }

    fn task(&self, task: usize) -> &Task {
        self.tasks[task].as_ref().expect("only tasks that are alive act")
    }

    fn task_mut(&mut self, task: usize) -> &mut Task {
        self.tasks[task].as_mut().expect("only tasks that are alive act")
    }

    fn alive(&self) -> impl Iterator<Item = usize> {
        (0..self.tasks.len()).filter(|&task| self.tasks[task].is_some())
    }

    /// How many tasks are alive.
    pub(super) fn count(&self) -> usize {
        self.alive().count()
    }

    /// The task that a step means.
    pub(super) fn pick(&self, drawn: u8) -> usize {
        let nth = usize::from(drawn) % self.count();
        self.alive().nth(nth).expect("it is less than the count")
    }

    /// The task made last.
    pub(super) fn newest(&self) -> usize {
        self.tasks.len() - 1
    }

    /// The tag of the file that the next call makes, if it does.
    pub(super) fn next_tag(&self) -> u32 {
        self.tag + 1
    }

    /// The call that a step means, if it can be made: there are not too many tasks, or too few.
    pub(super) fn resolve(&self, task: usize, op: &Op<Number>) -> Option<Op<i32>> {
        match op {
            Op::Fork | Op::Share if self.count() == TASKS => return None,
            Op::Exit if self.count() == 1 => return None,
            Op::SetLimit(limit) => return Some(Op::SetLimit(*limit.min(&self.hard_limit))),
            _ => {}
        }
        let task = self.task(task);
        let open: Vec<i32> =
            self.touched.iter().copied().filter(|&fd| task.files.contains(fd)).collect();
        Some(op.map(|drawn| match drawn {
            Number::At(number) => number,
            Number::Limit(distance) => task.limit as i32 + distance,
            Number::Open(nth) if open.is_empty() => nth.into(),
            Number::Open(nth) => open[usize::from(nth) % open.len()],
        }))
    }

    /// Makes a call.
    pub(super) fn perform(&mut self, task: usize, op: &Op<i32>) -> Outcome {
        op.map(|number| self.touched.insert(number));
        let outcome = self.call(task, op);
        self.touched.extend(outcome.iter().flatten());
        outcome
    }

    fn call(&mut self, task: usize, op: &Op<i32>) -> Outcome {
        let tag = self.next_tag();
        let caller = self.task_mut(task);
        let done = Vec::new();
        match *op {
            Op::Dup(fd) => caller.limited().dup(fd).map(one).map_err(|e| e.errno()),
            Op::Dup2(old, new) => caller.limited().dup2(old, new).map(one).map_err(|e| e.errno()),
            Op::Dup3(old, new, flags) => {
                let result = caller.limited().dup3(old, new, open_flags(flags));
                result.map(one).map_err(|e| e.errno())
            }
            Op::DupFd(fd, min) => {
                let result = caller.limited().dup_from(fd, min, FdFlags::empty());
                result.map(one).map_err(|e| e.errno())
            }
            Op::DupFdCloexec(fd, min) => {
                let result = caller.limited().dup_from(fd, min, FdFlags::CLOEXEC);
                result.map(one).map_err(|e| e.errno())
            }
            Op::Close(fd) => caller.files.close(fd).map(|()| done).map_err(|e| e.errno()),
            Op::CloseRange(first, last, how) => {
                let result = caller.files.close_range(first as u32, last as u32, range_flags(how));
                result.map(|()| done).map_err(|e| e.errno())
            }
            Op::GetFd(fd) => {
                let flags = caller.files.flags(fd).map_err(|e| e.errno())?;
                Ok(vec![flags.bits().into()])
            }
            Op::SetFd(fd, flags) => {
                // `F_SETFD` ignores bits that it does not know.
                let cloexec = flags & libc::FD_CLOEXEC != 0;
                let flags = if cloexec { FdFlags::CLOEXEC } else { FdFlags::empty() };
                caller.files.set_flags(fd, flags).map(|()| done).map_err(|e| e.errno())
            }
            Op::Pipe(flags) => {
                let [read, write] = caller.limited().reserve_many().map_err(|e| e.errno())?;
                let flags = open_flags(flags);
                let read = read.install(File { kind: Kind::PipeRead, tag }, flags);
                let write = write.install(File { kind: Kind::PipeWrite, tag }, flags);
                self.tag = tag;
                Ok(vec![number(read), number(write)])
            }
            Op::Open(flags) => {
                // In two steps, as the kernel does.
                let reservation = caller.limited().reserve().map_err(|e| e.errno())?;
                let file = File { kind: Kind::Regular, tag };
                let fd = reservation.install(file, open_flags(flags));
                self.tag = tag;
                Ok(one(fd))
            }
            Op::OpenMissing => {
                let reservation = caller.limited().reserve().map_err(|e| e.errno())?;
                drop(reservation);
                Err(Errno::new(libc::ENOENT))
            }
            Op::SetLimit(limit) => {
                caller.limit = limit;
                Ok(done)
            }
            Op::Unshare => caller.files.unshare().map(|()| done).map_err(|e| e.errno()),
            Op::Fork => {
                let files = caller.files.fork().map_err(|e| e.errno())?;
                let limit = caller.limit;
                self.tasks.push(Some(Task { files, limit }));
                Ok(done)
            }
            Op::Share => {
                let (files, limit) = (caller.files.share(), caller.limit);
                self.tasks.push(Some(Task { files, limit }));
                Ok(done)
            }
            Op::Exit => {
                self.tasks[task] = None;
                Ok(done)
            }
            Op::ForkExec => {
                let child = caller.files.fork().map_err(|e| e.errno())?;
                self.exec(child)
            }
            Op::ShareExec => {
                let child = caller.files.share();
                self.exec(child)
            }
        }
    }

    /// What the last child that made an exec finds open, for all touched numbers.
    pub(super) fn after_exec(&self) -> &[State] {
        &self.after_exec
    }

    fn exec(&mut self, mut child: Files<File>) -> Outcome {
        child.exec().map_err(|e| e.errno())?;
        self.after_exec = self.touched.iter().map(|&fd| (fd, state(&child, fd))).collect();
        Ok(Vec::new())
    }

    /// Compares a task's table with what `inspect` finds, at all touched numbers.
    pub(super) fn compare(&self, task: usize, inspect: Inspect) -> Result<(), String> {
        let files = &self.task(task).files;
        let differs = |fd: &i32| {
            let (kernel, model) = (inspect(*fd), state(files, *fd));
            (kernel != model).then(|| format!("fd {fd}: kernel {kernel:?}, model {model:?}"))
        };
        self.touched.iter().find_map(differs).map_or(Ok(()), Err)
    }

    /// As [`compare`](Self::compare), for the views of a whole table. Costs much more.
    pub(super) fn compare_whole(&self, task: usize, inspect: Inspect) -> Result<(), String> {
        let files = &self.task(task).files;
        let open = |&fd: &i32| inspect(fd).map(|(flags, file)| (fd, flags, file));
        let kernel: Vec<_> = self.touched.iter().filter_map(open).collect();
        let model = files.iter().map(|entry| (number(entry.fd), entry.flags, *entry.file));
        let model: Vec<_> = model.collect();
        if kernel != model {
            return Err(format!("kernel {kernel:?}, model's iteration {model:?}"));
        }
        let kernel = (kernel.len(), kernel.last().map(|&(fd, ..)| fd));
        let model = (files.len(), files.highest_open().map(number));
        if kernel != model {
            return Err(format!("length and highest: kernel {kernel:?}, model {model:?}"));
        }
        Ok(())
    }
}

fn state(files: &Files<File>, fd: i32) -> Option<(FdFlags, File)> {
    Some((files.flags(fd).ok()?, *files.get(fd).ok()?))
}

fn number(fd: Fd) -> i32 {
    fd.get() as i32
}

fn one(fd: Fd) -> Vec<i32> {
    vec![number(fd)]
}

/// The flags of `dup3`, `pipe2` and `open` that concern the file descriptor. Others are unknown.
fn open_flags(flags: i32) -> FdFlags {
    let unknown = if flags & !libc::O_CLOEXEC != 0 { !FdFlags::all().bits() } else { 0 };
    let cloexec = if flags & libc::O_CLOEXEC != 0 { FdFlags::CLOEXEC } else { FdFlags::empty() };
    cloexec | FdFlags::from_bits_retain(unknown)
}

/// The flags of `close_range`. Bits that only the crate knows are unknown as well.
fn range_flags(how: u32) -> CloseRange {
    let linux = CloseRange::UNSHARE | CloseRange::CLOEXEC;
    let unknown = if how & !linux.bits() != 0 { !CloseRange::all().bits() } else { 0 };
    CloseRange::from_bits_retain(how & linux.bits() | unknown)
}
