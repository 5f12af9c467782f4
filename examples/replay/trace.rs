//! The events of a `.fdt` trace as types, and the parser of a line. The format is described in
//! `traces/FORMAT.md`; what a whole file must look like is in `reader.rs`.
//!
//! Any text is safe: what is not understood is an error that says what was expected.

use std::fmt;
use std::str::FromStr;

use fdtable::{Errno, FdFlags};

use crate::errno;
use crate::words::*;

/// The number by which a trace calls a task.
pub(crate) type TaskId = u64;

/// A descriptor as the program passed it; need not be one.
pub(crate) type RawFd = i32;

/// The most descriptors that one message can carry, `SCM_MAX_FD`.
const MESSAGE_FDS: u32 = 253;

/// A line: a call, and what the kernel answered.
pub(crate) struct Event {
    pub(crate) task: TaskId,
    pub(crate) op: Op,
    /// `None`: was not observed, anything will do.
    pub(crate) recorded: Option<Answer>,
}

/// What a call returns.
#[derive(PartialEq, Eq)]
pub(crate) enum Answer {
    /// 0, descriptors, flags or limits; none is `-`.
    Numbers(Vec<u64>),
    Error(Errno),
}

/// What an open file allows.
#[derive(Clone, Copy)]
pub(crate) enum Mode {
    Read,
    Write,
    ReadWrite,
    Neither,
    Path,
    /// Came from elsewhere; takes any use.
    Unknown,
}

/// What a call needs from a file.
#[derive(Clone, Copy)]
pub(crate) enum Need {
    AnyFile,
    /// Not only a path.
    NotPath,
    Readable,
    Writable,
}

/// A process' soft and hard `RLIMIT_NOFILE`.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) soft: u64,
    pub(crate) hard: u64,
}

/// What a task does. `fail` is the error that the world outside of the table has in store.
pub(crate) enum Op {
    Call(Call),
    Start(Start),
    Exit,
    SetLimits { target: TaskId, limits: Limits, fail: Option<Errno> },
    GetLimits { target: TaskId },
}

/// A call that concerns the task's own table only.
pub(crate) enum Call {
    Open { mode: Mode, flags: FdFlags, at: Option<RawFd>, fail: Option<Errno> },
    Accept { listener: RawFd, flags: FdFlags, fail: Option<Errno> },
    Create { mode: Mode, flags: FdFlags, fail: Option<Errno> },
    Pipe { flags: FdFlags, fail: Option<Errno> },
    SocketPair { flags: FdFlags, fail: Option<Errno> },
    ReceiveFds { socket: RawFd, flags: FdFlags, offered: u32, mode: Mode },
    Dup { old: RawFd },
    DupFrom { old: RawFd, min: i64, flags: FdFlags },
    Dup2 { old: RawFd, new: RawFd },
    Dup3 { old: RawFd, new: RawFd, flags: FdFlags },
    Close { fd: RawFd, fail: Option<Errno> },
    CloseRange { first: u32, last: u32, flags: u32 },
    GetFlags { fd: RawFd },
    SetFlags { fd: RawFd, flags: FdFlags },
    IoctlSetFlags { fd: RawFd, flags: FdFlags },
    Use(Vec<(Need, RawFd)>),
    Exec { fail: Option<Errno> },
    Unshare,
    Reserve { flags: FdFlags },
    Install { mode: Mode },
    Cancel,
}

/// A clone.
pub(crate) struct Start {
    pub(crate) table: Inherited,
    pub(crate) process: Inherited,
    /// `None`: the call failed, there is no child.
    pub(crate) child: Option<TaskId>,
    /// Whether the caller is given a descriptor of the child.
    pub(crate) pidfd: bool,
}

/// How a child gets what its parent has.
#[derive(Clone, Copy)]
pub(crate) enum Inherited {
    Shared,
    Copied,
}

impl Mode {
    pub(crate) fn satisfies(self, need: Need) -> bool {
        match need {
            Need::AnyFile => true,
            Need::NotPath => !matches!(self, Mode::Path),
            Need::Readable => matches!(self, Mode::Read | Mode::ReadWrite | Mode::Unknown),
            Need::Writable => matches!(self, Mode::Write | Mode::ReadWrite | Mode::Unknown),
        }
    }

    fn from_word(word: &str) -> Option<Mode> {
        Some(match word {
            "r" => Mode::Read,
            "w" => Mode::Write,
            "rw" => Mode::ReadWrite,
            "n" => Mode::Neither,
            "p" => Mode::Path,
            "?" => Mode::Unknown,
            _ => return None,
        })
    }
}

impl FromStr for Event {
    type Err = Problem;

    fn from_str(line: &str) -> Result<Event, Problem> {
        let Some((call, result)) = line.split_once(" -> ") else {
            return Err(format!("expected TASK OP ARG* -> RESULT, found {}", Quoted(line)));
        };
        let mut words = Words::new(call);
        let task = words.task("TASK")?;
        let op = words.op()?;
        words.end()?;
        Ok(Event { task, op, recorded: recorded(result)? })
    }
}

/// What stands to the right of the arrow.
fn recorded(result: &str) -> Result<Option<Answer>, Problem> {
    const EXPECTED: &str = "a result: numbers, `-`, `-E` by name, or `?`";
    let mut words = Words::new(result);
    let answer = match words.peek() {
        Some("?") => None,
        Some("-") => Some(Answer::Numbers(Vec::new())),
        Some(word) if word.starts_with('-') => {
            let errno = errno::from_name(&word[1..]);
            Some(Answer::Error(errno.ok_or_else(|| unexpected(EXPECTED, word))?))
        }
        _ => return Ok(Some(Answer::Numbers(words.one_or_more(EXPECTED, integer)?))),
    };
    words.next(EXPECTED)?;
    words.end()?;
    Ok(answer)
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Error(errno) => write!(f, "-{}", errno::name(*errno)),
            Answer::Numbers(numbers) => match &numbers[..] {
                [] => f.write_str("-"),
                [first, rest @ ..] => {
                    write!(f, "{first}")?;
                    rest.iter().try_for_each(|number| write!(f, " {number}"))
                }
            },
        }
    }
}

impl Words<'_> {
    fn task(&mut self, expected: &str) -> Result<TaskId, Problem> {
        self.read(&format!("{expected}, a positive integer"), task_id)
    }

    fn fd(&mut self, expected: &str) -> Result<RawFd, Problem> {
        self.read(&format!("{expected}, a signed 32-bit integer"), integer)
    }

    pub(crate) fn mode(&mut self) -> Result<Mode, Problem> {
        self.read("MODE, one of r w rw n p ?", Mode::from_word)
    }

    pub(crate) fn flags(&mut self) -> Result<FdFlags, Problem> {
        self.read("CE, 0 or 1", close_on_exec)
    }

    pub(crate) fn limits(&mut self) -> Result<Limits, Problem> {
        let soft = self.read("SOFT, an integer", integer)?;
        let hard = self.read("HARD, an integer", integer)?;
        Ok(Limits { soft, hard })
    }

    fn fail(&mut self) -> Result<Option<Errno>, Problem> {
        self.option("fail=", "fail=E, an errno by name", errno::from_name)
    }

    fn op(&mut self) -> Result<Op, Problem> {
        use Inherited::{Copied, Shared};
        Ok(match self.next("OP")? {
            "fork" => Op::Start(self.start(Copied, Copied)?),
            "thread" => Op::Start(self.start(Shared, Shared)?),
            "fork_shared" => Op::Start(self.start(Shared, Copied)?),
            "thread_copy" => Op::Start(self.start(Copied, Shared)?),
            "exit" => Op::Exit,
            "rlimit_nofile" => {
                let (target, limits) = (self.task("TARGET")?, self.limits()?);
                Op::SetLimits { target, limits, fail: self.fail()? }
            }
            "rlimit_get" => Op::GetLimits { target: self.task("TARGET")? },
            name => Op::Call(self.call(name)?),
        })
    }

    fn start(&mut self, table: Inherited, process: Inherited) -> Result<Start, Problem> {
        let child = if self.peek() == Some("-") {
            self.next("CHILD")?;
            None
        } else {
            Some(self.task("CHILD")?)
        };
        // Only for want of a number for the pidfd does a recorded clone have no child.
        let pidfd = child.is_none() || self.peek().is_some();
        if pidfd {
            self.read("pidfd", |word| (word == "pidfd").then_some(()))?;
        }
        Ok(Start { table, process, child, pidfd })
    }

    fn call(&mut self, name: &str) -> Result<Call, Problem> {
        Ok(match name {
            "open" => Call::Open {
                mode: self.mode()?,
                flags: self.flags()?,
                at: self.option("at=", "at=FD, a signed 32-bit integer", integer)?,
                fail: self.fail()?,
            },
            "accept" => {
                Call::Accept { listener: self.fd("LFD")?, flags: self.flags()?, fail: self.fail()? }
            }
            "create" => {
                // Only for the reader of the trace.
                self.read("KIND, a name", |kind| kind.bytes().all(is_name).then_some(()))?;
                Call::Create { mode: self.mode()?, flags: self.flags()?, fail: self.fail()? }
            }
            "pipe" => Call::Pipe { flags: self.flags()?, fail: self.fail()? },
            "socketpair" => Call::SocketPair { flags: self.flags()?, fail: self.fail()? },
            "recvfds" => Call::ReceiveFds {
                socket: self.fd("SOCK")?,
                flags: self.flags()?,
                offered: self.read(&format!("N, at most {MESSAGE_FDS}"), |word| {
                    integer(word).filter(|&offered| offered <= MESSAGE_FDS)
                })?,
                mode: if self.peek().is_some() { self.mode()? } else { Mode::Unknown },
            },
            "dup" => Call::Dup { old: self.fd("OLD")? },
            "dupfd" => Call::DupFrom {
                old: self.fd("OLD")?,
                min: self.read("MIN, a signed integer", integer)?,
                flags: self.flags()?,
            },
            "dup2" => Call::Dup2 { old: self.fd("OLD")?, new: self.fd("NEW")? },
            "dup3" => Call::Dup3 {
                old: self.fd("OLD")?,
                new: self.fd("NEW")?,
                flags: self.read("CE, 0, 1 or bad", |word| match word {
                    "bad" => Some(FdFlags::from_bits_retain(1 << 7)),
                    _ => close_on_exec(word),
                })?,
            },
            "close" => Call::Close { fd: self.fd("FD")?, fail: self.fail()? },
            "close_range" => Call::CloseRange {
                first: self.read("FIRST, an unsigned 32-bit integer", integer)?,
                last: self.read("LAST, an unsigned 32-bit integer", integer)?,
                flags: self.read("FLAGS, an unsigned 32-bit integer", integer)?,
            },
            "getfd" => Call::GetFlags { fd: self.fd("FD")? },
            "setfd" => Call::SetFlags { fd: self.fd("FD")?, flags: self.flags()? },
            "fioclex" => Call::IoctlSetFlags { fd: self.fd("FD")?, flags: self.flags()? },
            "use" => Call::Use(self.one_or_more("SPEC: FD, rFD, wFD or pFD", use_of)?),
            "exec" => Call::Exec { fail: self.fail()? },
            "unshare_files" => Call::Unshare,
            "reserve" => Call::Reserve { flags: self.flags()? },
            "install" => Call::Install { mode: self.mode()? },
            "cancel" => Call::Cancel,
            _ => return Err(unexpected("the name of an operation", name)),
        })
    }
}

fn task_id(word: &str) -> Option<TaskId> {
    integer(word).filter(|&task| task > 0)
}

fn close_on_exec(word: &str) -> Option<FdFlags> {
    match word {
        "0" => Some(FdFlags::empty()),
        "1" => Some(FdFlags::CLOEXEC),
        _ => None,
    }
}

fn use_of(word: &str) -> Option<(Need, RawFd)> {
    let (need, fd) = match word.as_bytes().first()? {
        b'r' => (Need::Readable, &word[1..]),
        b'w' => (Need::Writable, &word[1..]),
        b'p' => (Need::AnyFile, &word[1..]),
        _ => (Need::NotPath, word),
    };
    Some((need, integer(fd)?))
}

/// Printable, and no space.
pub(crate) fn is_name(byte: u8) -> bool {
    byte.is_ascii_graphic()
}
