//! The system calls, one function and one unsafe operation each.

use std::ffi::CStr;
use std::fmt;
use std::io;
use std::ptr;
use std::sync::atomic::AtomicU32;

use fdtable::{Errno, FdFlags};
use libc::{c_int, c_long};

use super::ops::Op;

/// What a call returns: file descriptors or flags, or an error.
pub(super) type Outcome = Result<Vec<i32>, Errno>;

/// A file, by what can be asked of any of its descriptors: each one that a sequence makes has another
/// tag. This is what the model's table holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct File {
    pub(super) kind: Kind,
    /// The offset, or how many bytes the pipe holds.
    pub(super) tag: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Regular,
    PipeRead,
    PipeWrite,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.kind, self.tag)
    }
}

const EXISTS: &CStr = c"/proc/self/exe";
const MISSING: &CStr = c"/proc/self/missing";

pub(super) fn check(returned: c_int) -> Result<c_int, Errno> {
    let errno = || io::Error::last_os_error().raw_os_error().unwrap_or(0);
    if returned >= 0 { Ok(returned) } else { Err(Errno::new(errno())) }
}

/// Makes a call that concerns only the caller and its table. A file that it opens gets `tag`.
pub(super) fn perform(op: &Op<i32>, tag: u32) -> Outcome {
    let no_number = |_| Vec::new();
    let number = |number| vec![number];
    match *op {
        Op::Dup(fd) => check(dup(fd)).map(number),
        Op::Dup2(old, new) => check(dup2(old, new)).map(number),
        Op::Dup3(old, new, flags) => check(dup3(old, new, flags)).map(number),
        Op::DupFd(fd, min) => check(fcntl(fd, libc::F_DUPFD, min)).map(number),
        Op::DupFdCloexec(fd, min) => check(fcntl(fd, libc::F_DUPFD_CLOEXEC, min)).map(number),
        Op::Close(fd) => check(close(fd)).map(no_number),
        Op::CloseRange(first, last, how) => {
            check(close_range(first as u32, last as u32, how)).map(no_number)
        }
        Op::GetFd(fd) => check(fcntl(fd, libc::F_GETFD, 0)).map(number),
        Op::SetFd(fd, flags) => check(fcntl(fd, libc::F_SETFD, flags)).map(no_number),
        Op::Pipe(flags) => tagged_pipe(flags, tag),
        Op::Open(flags) => tagged_open(flags, tag).map(number),
        Op::OpenMissing => check(open(MISSING, 0)).map(number),
        Op::SetLimit(limit) => check(set_limit(limit, limits().rlim_max)).map(no_number),
        Op::Unshare => check(unshare()).map(no_number),
        Op::Fork | Op::Share | Op::Exit | Op::ForkExec | Op::ShareExec => {
            unreachable!("these make or end tasks")
        }
    }
}

pub(super) fn dup(fd: c_int) -> c_int {
    // SAFETY: any argument is allowed. Here and below: what a file descriptor of this process refers to
    // matters to no code but the sequence's.
    unsafe { libc::dup(fd) }
}

pub(super) fn dup2(old: c_int, new: c_int) -> c_int {
    // SAFETY: as `dup`.
    unsafe { libc::dup2(old, new) }
}

pub(super) fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    // SAFETY: as `dup`.
    unsafe { libc::dup3(old, new, flags) }
}

/// For the commands that take a number.
pub(super) fn fcntl(fd: c_int, command: c_int, argument: c_int) -> c_int {
    // SAFETY: as `dup`; the commands read no memory.
    unsafe { libc::fcntl(fd, command, argument) }
}

pub(super) fn close(fd: c_int) -> c_int {
    // SAFETY: as `dup`.
    unsafe { libc::close(fd) }
}

pub(super) fn close_range(first: u32, last: u32, how: u32) -> c_int {
    // By number: not every C library has a function for it.
    let (first, last, how) = (c_long::from(first), c_long::from(last), c_long::from(how));
    // SAFETY: as `dup`.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, how) as c_int }
}

fn open(path: &CStr, flags: c_int) -> c_int {
    // SAFETY: the path is a C string.
    unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | flags) }
}

/// Opens a regular file and sets its offset to `tag`.
pub(super) fn tagged_open(flags: c_int, tag: u32) -> Result<c_int, Errno> {
    let fd = check(open(EXISTS, flags))?;
    // SAFETY: as `dup`.
    let offset = unsafe { libc::lseek(fd, tag.into(), libc::SEEK_SET) };
    assert_eq!(offset, libc::off_t::from(tag));
    Ok(fd)
}

/// Its read end and its write end.
fn pipe(flags: c_int) -> Result<[c_int; 2], Errno> {
    let mut fds = [-1; 2];
    // SAFETY: there is place for two numbers.
    check(unsafe { libc::pipe2(fds.as_mut_ptr(), flags) })?;
    Ok(fds)
}

/// A pipe whose ends do not block.
pub(super) fn nonblocking_pipe() -> [c_int; 2] {
    pipe(libc::O_NONBLOCK).expect("there are two numbers below the limit")
}

/// Whether an empty pipe has no write end any more.
pub(super) fn is_at_end(reader: c_int) -> bool {
    let mut byte = 0_u8;
    // SAFETY: there is place for one byte.
    let read = unsafe { libc::read(reader, (&raw mut byte).cast(), 1) };
    check(read as c_int) == Ok(0)
}

/// Opens a pipe and writes as many bytes to it as `tag` says.
fn tagged_pipe(flags: c_int, tag: u32) -> Outcome {
    let fds = pipe(flags)?;
    let bytes = vec![0_u8; tag as usize];
    // SAFETY: so many bytes can be read.
    let written = unsafe { libc::write(fds[1], bytes.as_ptr().cast(), bytes.len()) };
    assert_eq!(written, bytes.len() as isize);
    Ok(fds.to_vec())
}

pub(super) fn limits() -> libc::rlimit {
    let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it is written to a struct of the type that is expected.
    let returned = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limits) };
    assert_eq!(returned, 0);
    limits
}

pub(super) fn set_limit(soft: u64, hard: u64) -> c_int {
    let limits = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: it is read from a struct of the type that is expected.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limits) }
}

fn unshare() -> c_int {
    // SAFETY: as `dup`.
    unsafe { libc::unshare(libc::CLONE_FILES) }
}

/// What is open at `fd`. Allocates nothing.
pub(super) fn inspect(fd: c_int) -> Option<(FdFlags, File)> {
    let flags = check(fcntl(fd, libc::F_GETFD, 0)).ok()?;
    Some((FdFlags::from_bits_retain(flags as u8), identify(fd)))
}

fn identify(fd: c_int) -> File {
    // SAFETY: as `dup`.
    let offset = unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) };
    if let Ok(tag) = u32::try_from(offset) {
        return File { kind: Kind::Regular, tag };
    }
    let mut bytes: c_int = -1;
    // SAFETY: it is written to an int, as is expected.
    unsafe { libc::ioctl(fd, libc::FIONREAD, &mut bytes) };
    let writes = fcntl(fd, libc::F_GETFL, 0) & libc::O_ACCMODE == libc::O_WRONLY;
    let kind = if writes { Kind::PipeWrite } else { Kind::PipeRead };
    File { kind, tag: bytes as u32 }
}

/// Makes a child process, which may share the table of this one: `CLONE_FILES` or 0. Its number, or
/// `None` in the child.
pub(super) fn spawn(flags: c_int) -> Option<libc::pid_t> {
    let flags = c_long::from(flags | libc::SIGCHLD);
    let none: c_long = 0;
    // SAFETY: without CLONE_VM and a stack this is a fork. The child may go on as it likes: the only
    // other thread, the harness's, waits for this one and holds no lock.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) };
    let pid = check(pid as c_int).expect("a process can be made");
    (pid != 0).then_some(pid)
}

/// Waits for a child, or any if it is -1; its status, or `None` if there is none.
pub(super) fn wait(pid: libc::pid_t) -> Option<c_int> {
    let mut status = 0;
    // SAFETY: it is written to an int, as is expected.
    let pid = unsafe { libc::waitpid(pid, &mut status, 0) };
    (pid > 0).then_some(status)
}

/// Orphans among the descendants become children of this process, so that it can wait for all.
pub(super) fn adopt_orphans() {
    let yes: libc::c_ulong = 1;
    // SAFETY: it takes a number.
    let returned = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, yes) };
    assert_eq!(returned, 0);
}

/// Kills this process if it is still there after so many seconds.
pub(super) fn alarm(seconds: u32) {
    // SAFETY: it takes a number.
    unsafe { libc::alarm(seconds) };
}

/// Ends this process at once: what the harness would do at the end is not for a copy of it.
pub(super) fn exit(status: c_int) -> ! {
    // SAFETY: it is always allowed.
    unsafe { libc::_exit(status) }
}

/// Runs this program anew; returns if it can't.
pub(super) fn exec(arguments: [&CStr; 1], environment: [&CStr; 1]) {
    let arguments = [arguments[0].as_ptr(), ptr::null()];
    let environment = [environment[0].as_ptr(), ptr::null()];
    // SAFETY: the path is a C string, the lists are lists of them that end with null.
    unsafe { libc::execve(EXISTS.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
}

/// The value of an environment variable; before `main`, too.
pub(super) fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name is a C string, and the environment is not being changed.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: it is null or a C string in the environment, which the new program leaves as it is.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// Memory that this process and its children share, all zero.
pub(super) fn shared_memory(size: usize) -> *mut libc::c_void {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, at a place that the kernel chooses.
    let memory = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
    assert_ne!(memory, libc::MAP_FAILED);
    memory
}

/// Waits while `word` has this value, until it is woken. May return early.
pub(super) fn futex_wait(word: &AtomicU32, value: u32) {
    let no_timeout = ptr::null::<libc::timespec>();
    // SAFETY: the address is that of an aligned word.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, no_timeout) };
}

pub(super) fn futex_wake_all(word: &AtomicU32) {
    // SAFETY: as `futex_wait`.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, c_int::MAX) };
}
