//! Carries out what the tasks of a trace do, through the public API of `fdtable`: a task is a
//! [`Files`], a process is its limits. Only the inputs of an event are looked at, never what was
//! recorded.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use fdtable::{
    BadFd, CloseError, CloseRange, CloseRangeError, DupError, Errno, FdFlags, Files, Limited,
    Options, OutOfMemory, OwnedReservation, ReplaceError, ReserveError, RestoreError, TableId,
};

use crate::reader::Header;
use crate::trace::*;

// Of the error numbers that no table gives, those that its surroundings do.
const EPERM: Errno = Errno::new(1);
const ESRCH: Errno = Errno::new(3);

/// An open file description, of which a table needs nothing and a trace little.
struct OpenFile {
    mode: Mode,
    /// What the next flush reports.
    flush_error: Cell<Option<Errno>>,
}

impl OpenFile {
    fn new(mode: Mode) -> Self {
        OpenFile { mode, flush_error: Cell::new(None) }
    }

    fn flush(&self, _: TableId) -> Result<(), Errno> {
        self.flush_error.take().map_or(Ok(()), Err)
    }
}

/// All tasks, and the system they run on.
pub(crate) struct Machine {
    nr_open: u64,
    tasks: HashMap<TaskId, Task>,
    bytes: usize,
}

struct Task {
    /// Before `files`: it ends first.
    reservation: Option<Reserved>,
    files: Files<OpenFile>,
    /// Those of its process.
    limits: Rc<Cell<Limits>>,
}

/// A number taken by an open that is still under way.
struct Reserved {
    number: OwnedReservation<OpenFile>,
    flags: FdFlags,
}

impl Machine {
    /// A machine on which only the first task runs.
    pub(crate) fn new(header: &Header) -> Result<Self, RestoreError> {
        let fds = header.fds.iter();
        let table = Options::new()
            // A table rounds its `max` down. What lies between is above every limit.
            .max(header.nr_open.next_multiple_of(64))
            .on_close(OpenFile::flush)
            .restore(fds.map(|(&fd, &(mode, flags))| (fd, OpenFile::new(mode), flags)))?;
        let bytes = table.bytes();
        let limits = Rc::new(Cell::new(header.limits));
        let first = Task { reservation: None, files: table.into(), limits };
        Ok(Machine { nr_open: header.nr_open, tasks: HashMap::from([(1, first)]), bytes })
    }

    /// Does what `task` did, and returns what it is told.
    pub(crate) fn carry_out(&mut self, task: TaskId, op: &Op) -> Answer {
        let answer = match op {
            Op::Call(call) => self.call(task, call),
            Op::Start(start) => self.start(task, start),
            Op::Exit => self.exit(task),
            Op::SetLimits { target, limits, fail } => self.set_limits(*target, *limits, *fail),
            Op::GetLimits { target } => {
                self.limits(*target).map(|limits| vec![limits.get().soft, limits.get().hard])
            }
        };
        answer.map_or_else(Answer::Error, Answer::Numbers)
    }

    /// What the tables have allocated.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn call(&mut self, task: TaskId, call: &Call) -> Result<Vec<u64>, Errno> {
        let task = self.tasks.get_mut(&task).ok_or(ESRCH)?;
        let (table, bytes) = (task.files.id(), task.files.bytes());
        let answer = task.carry_out(call);
        // A table that it has left is one that others still have.
        let counted = if task.files.id() == table { bytes } else { 0 };
        self.bytes += task.files.bytes() - counted;
        answer
    }

    fn start(&mut self, parent: TaskId, start: &Start) -> Result<Vec<u64>, Errno> {
        let parent = self.tasks.get(&parent).ok_or(ESRCH)?;
        let files = match start.table {
            Inherited::Shared => parent.files.share(),
            Inherited::Copied => parent.files.fork().map_err(OutOfMemory::errno)?,
        };
        let limits = match start.process {
            Inherited::Shared => Rc::clone(&parent.limits),
            Inherited::Copied => Rc::new(Cell::new(parent.limits.get())),
        };
        // Only now, so that the child does not have it. Without a number there is no child.
        let mut answer = done();
        if start.pidfd {
            let bytes = parent.files.bytes();
            answer = parent.insert(Mode::ReadWrite, FdFlags::CLOEXEC);
            self.bytes += parent.files.bytes() - bytes;
        }
        if let (Ok(_), Some(child)) = (&answer, start.child) {
            if let Inherited::Copied = start.table {
                self.bytes += files.bytes();
            }
            self.tasks.insert(child, Task { reservation: None, files, limits });
        }
        answer
    }

    fn exit(&mut self, task: TaskId) -> Result<Vec<u64>, Errno> {
        let Task { reservation, files, .. } = self.tasks.remove(&task).ok_or(ESRCH)?;
        drop(reservation);
        if !files.is_shared() {
            self.bytes -= files.bytes();
        }
        done()
    }

    fn set_limits(
        &mut self,
        target: TaskId,
        limits: Limits,
        fail: Option<Errno>,
    ) -> Result<Vec<u64>, Errno> {
        let of_process = self.limits(target)?;
        if limits.soft > limits.hard {
            return Err(Errno::EINVAL);
        }
        if limits.hard > self.nr_open {
            return Err(EPERM);
        }
        outside(fail)?;
        of_process.set(limits);
        done()
    }

    fn limits(&self, task: TaskId) -> Result<&Cell<Limits>, Errno> {
        self.tasks.get(&task).map(|task| &*task.limits).ok_or(ESRCH)
    }
}

impl Task {
    /// The table with the limit that this task observes.
    fn limited(&self) -> Limited<'_, OpenFile> {
        self.files.limited(self.limits.get().soft)
    }

    fn carry_out(&mut self, call: &Call) -> Result<Vec<u64>, Errno> {
        match *call {
            Call::Open { mode, flags, at, fail } => {
                // The number is taken first: a full table hides every other error.
                let number = self.limited().reserve().map_err(ReserveError::errno)?;
                if let Some(directory) = at {
                    self.files.get(directory).map_err(BadFd::errno)?;
                }
                outside(fail)?;
                numbers([number.install(OpenFile::new(mode), flags)])
            }
            Call::Accept { listener, flags, fail } => {
                self.look_up(listener, Need::NotPath)?;
                let number = self.limited().reserve().map_err(ReserveError::errno)?;
                outside(fail)?;
                numbers([number.install(OpenFile::new(Mode::ReadWrite), flags)])
            }
            Call::Create { mode, flags, fail } => {
                outside(fail)?;
                self.insert(mode, flags)
            }
            Call::Pipe { flags, fail } => {
                outside(fail)?;
                let [read, write] = self.limited().reserve_many().map_err(ReserveError::errno)?;
                numbers([
                    read.install(OpenFile::new(Mode::Read), flags),
                    write.install(OpenFile::new(Mode::Write), flags),
                ])
            }
            Call::SocketPair { flags, fail } => {
                let pair = self.limited().reserve_many::<2>().map_err(ReserveError::errno)?;
                outside(fail)?;
                numbers(pair.map(|end| end.install(OpenFile::new(Mode::ReadWrite), flags)))
            }
            Call::ReceiveFds { socket, flags, offered, mode } => {
                self.look_up(socket, Need::NotPath)?;
                // Those that find no number are lost, which is no error.
                let received = (0..offered).map_while(|_| {
                    self.limited().insert(OpenFile::new(mode), flags).ok().map(u64::from)
                });
                Ok(received.collect())
            }
            Call::Dup { old } => numbers([self.limited().dup(old).map_err(DupError::errno)?]),
            Call::DupFrom { old, min, flags } => {
                numbers([self.limited().dup_from(old, min, flags).map_err(DupError::errno)?])
            }
            Call::Dup2 { old, new } => {
                numbers([self.limited().dup2(old, new).map_err(ReplaceError::errno)?])
            }
            Call::Dup3 { old, new, flags } => {
                numbers([self.limited().dup3(old, new, flags).map_err(ReplaceError::errno)?])
            }
            Call::Close { fd, fail } => {
                if let (Ok(file), Some(_)) = (self.files.borrow(fd), fail) {
                    file.flush_error.set(fail);
                }
                self.files.close(fd).map_err(CloseError::errno)?;
                done()
            }
            Call::CloseRange { first, last, flags } => {
                // Other bits have a meaning to fdtable, but none to Linux.
                let how = CloseRange::from_bits(flags)
                    .filter(|&how| (CloseRange::UNSHARE | CloseRange::CLOEXEC).contains(how))
                    .ok_or(Errno::EINVAL)?;
                self.files.close_range(first, last, how).map_err(CloseRangeError::errno)?;
                done()
            }
            Call::GetFlags { fd } => {
                let flags = self.files.flags(fd).map_err(BadFd::errno)?;
                Ok(vec![flags.contains(FdFlags::CLOEXEC).into()])
            }
            Call::SetFlags { fd, flags } => {
                self.files.set_flags(fd, flags).map_err(BadFd::errno)?;
                done()
            }
            Call::IoctlSetFlags { fd, flags } => {
                self.look_up(fd, Need::NotPath)?;
                self.files.set_flags(fd, flags).map_err(BadFd::errno)?;
                done()
            }
            Call::Use(ref uses) => {
                uses.iter().try_for_each(|&(need, fd)| self.look_up(fd, need))?;
                done()
            }
            Call::Exec { fail } => {
                outside(fail)?;
                self.files.exec().map_err(OutOfMemory::errno)?;
                done()
            }
            Call::Unshare => {
                self.files.unshare().map_err(OutOfMemory::errno)?;
                done()
            }
            Call::Reserve { flags } => {
                let limit = self.limits.get().soft;
                let number = self.files.reserve_owned(limit).map_err(ReserveError::errno)?;
                let fd = number.fd();
                self.reservation = Some(Reserved { number, flags });
                numbers([fd])
            }
            Call::Install { mode } => {
                // None if the reserve failed, against what was recorded.
                let Reserved { number, flags } = self.reservation.take().ok_or(Errno::EBADF)?;
                numbers([number.install(OpenFile::new(mode), flags)])
            }
            Call::Cancel => {
                self.reservation = None;
                done()
            }
        }
    }

    fn look_up(&mut self, fd: RawFd, need: Need) -> Result<(), Errno> {
        let file = self.files.borrow(fd).map_err(BadFd::errno)?;
        if file.mode.satisfies(need) { Ok(()) } else { Err(Errno::EBADF) }
    }

    fn insert(&self, mode: Mode, flags: FdFlags) -> Result<Vec<u64>, Errno> {
        match self.limited().insert(OpenFile::new(mode), flags) {
            Ok(fd) => numbers([fd]),
            Err(rejected) => Err(rejected.errno()),
        }
    }
}

/// The world outside of the table has its turn.
fn outside(fail: Option<Errno>) -> Result<(), Errno> {
    fail.map_or(Ok(()), Err)
}

fn done() -> Result<Vec<u64>, Errno> {
    Ok(vec![0])
}

fn numbers<const N: usize>(fds: [fdtable::Fd; N]) -> Result<Vec<u64>, Errno> {
    Ok(fds.map(u64::from).into())
}
