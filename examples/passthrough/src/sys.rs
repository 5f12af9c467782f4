//! The host's side: what is not one call of rustix.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, SystemTime};

use fdtable::Errno;
use fuser::{FileAttr, INodeNo, TimeOrNow};
use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RawDirEntry, Stat, Timespec, Timestamps};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit};

/// A host's error, as the file layer passes it on.
pub(crate) trait OrErrno<T> {
    fn or_errno(self) -> Result<T, Errno>;
}

impl<T> OrErrno<T> for rustix::io::Result<T> {
    fn or_errno(self) -> Result<T, Errno> {
        self.map_err(|error| Errno::new(error.raw_os_error()))
    }
}

/// Before anything is opened: the mode of a new file is the caller's affair, and each node that the
/// kernel knows needs a descriptor of the host's.
pub(crate) fn prepare_process() {
    rustix::process::umask(Mode::empty());
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    // If it is refused the old limit stays.
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
}

/// A descriptor that only stands for the place, as each node has one.
pub(crate) fn find(directory: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::openat(directory, name, flags, Mode::empty()).or_errno()
}

/// Opens again what `fd` refers to.
pub(crate) fn reopen(fd: impl AsFd, flags: OFlags) -> Result<OwnedFd, Errno> {
    fs::open(proc_path(fd), flags | OFlags::CLOEXEC, Mode::empty()).or_errno()
}

/// A path to what `fd` refers to, for calls that take no descriptor of a mere place.
pub(crate) fn proc_path(fd: impl AsFd) -> String {
    format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())
}

/// What the host reports when a descriptor of this file is closed, such as a network file system's lack
/// of space.
pub(crate) fn flush(fd: impl AsFd) -> Result<(), Errno> {
    let duplicate = fcntl_dupfd_cloexec(fd, 0).or_errno()?;
    nix::unistd::close(duplicate).map_err(|error| Errno::new(error as i32))
}

pub(crate) fn read_at(fd: impl AsFd, offset: u64, size: usize) -> Result<Vec<u8>, Errno> {
    let mut data = Vec::with_capacity(size.max(1));
    rustix::io::pread(fd, rustix::buffer::spare_capacity(&mut data), offset).or_errno()?;
    data.truncate(size);
    Ok(data)
}

/// An attribute's value, or a list of names. No larger one exists in Linux.
pub(crate) fn read_attribute(
    read: impl FnOnce(&mut [MaybeUninit<u8>]) -> rustix::io::Result<Vec<u8>>,
) -> Result<Vec<u8>, Errno> {
    let mut space = vec![MaybeUninit::uninit(); 1 << 16];
    read(&mut space).or_errno()
}

/// Who has called.
#[derive(Clone, Copy)]
pub(crate) struct Who {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// Makes something that is to belong to the caller. The ids are this thread's only. A server that is not
/// root serves only its own user, and keeps its ids.
pub(crate) fn make_as<T>(who: Who, make: impl FnOnce() -> T) -> T {
    let group = setfsgid(Gid::from_raw(who.gid));
    let user = setfsuid(Uid::from_raw(who.uid));
    let made = make();
    setfsuid(user);
    setfsgid(group);
    made
}

pub(crate) fn times(accessed: Option<TimeOrNow>, modified: Option<TimeOrNow>) -> Timestamps {
    Timestamps { last_access: timespec(accessed), last_modification: timespec(modified) }
}

fn timespec(time: Option<TimeOrNow>) -> Timespec {
    let time = match time {
        None => return Timespec { tv_sec: 0, tv_nsec: fs::UTIME_OMIT },
        Some(TimeOrNow::Now) => return Timespec { tv_sec: 0, tv_nsec: fs::UTIME_NOW },
        Some(TimeOrNow::SpecificTime(time)) => time,
    };
    let nanoseconds = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => after.as_nanos() as i128,
        Err(before) => -(before.duration().as_nanos() as i128),
    };
    Timespec {
        tv_sec: nanoseconds.div_euclid(1_000_000_000) as i64,
        tv_nsec: nanoseconds.rem_euclid(1_000_000_000) as _,
    }
}

fn system_time(seconds: i64, nanoseconds: u64) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let time = if seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(whole)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(whole)
    };
    time.map_or(SystemTime::UNIX_EPOCH, |time| time + Duration::from_nanos(nanoseconds))
}

pub(crate) fn name_of<'e>(entry: &'e RawDirEntry<'_>) -> &'e OsStr {
    OsStr::from_bytes(entry.file_name().to_bytes())
}

/// Of some file systems the entries themselves do not say.
pub(crate) fn kind_of(directory: impl AsFd, entry: &RawDirEntry<'_>) -> Option<fuser::FileType> {
    kind(entry.file_type()).or_else(|| {
        let stat = fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        kind(FileType::from_raw_mode(stat.st_mode))
    })
}

fn kind(kind: FileType) -> Option<fuser::FileType> {
    Some(match kind {
        FileType::RegularFile => fuser::FileType::RegularFile,
        FileType::Directory => fuser::FileType::Directory,
        FileType::Symlink => fuser::FileType::Symlink,
        FileType::Fifo => fuser::FileType::NamedPipe,
        FileType::Socket => fuser::FileType::Socket,
        FileType::CharacterDevice => fuser::FileType::CharDevice,
        FileType::BlockDevice => fuser::FileType::BlockDevice,
        FileType::Unknown => return None,
    })
}

/// What the kernel is told of a node with this number.
pub(crate) fn attributes(number: u64, stat: &Stat) -> Result<FileAttr, Errno> {
    let changed = system_time(stat.st_ctime, stat.st_ctime_nsec);
    Ok(FileAttr {
        ino: INodeNo(number),
        size: stat.st_size as u64,
        blocks: stat.st_blocks as u64,
        atime: system_time(stat.st_atime, stat.st_atime_nsec),
        mtime: system_time(stat.st_mtime, stat.st_mtime_nsec),
        ctime: changed,
        crtime: changed,
        kind: kind(FileType::from_raw_mode(stat.st_mode)).ok_or(Errno::EIO)?,
        perm: (stat.st_mode & 0o7777) as u16,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: stat.st_rdev as u32,
        blksize: stat.st_blksize as u32,
        flags: 0,
    })
}
