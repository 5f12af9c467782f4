//! One small type per kind of failure, each with the `errno` that Linux gives.

use core::error::Error;
use core::fmt;

use crate::block::OwnedRef;

/// An error number, with Linux' values.
///
/// ```
/// use fdtable::{BadFd, Errno};
///
/// assert_eq!(BadFd.errno(), Errno::EBADF);
/// assert_eq!(Errno::EBADF.get(), 9);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

macro_rules! errnos {
    ($($name:ident $number:literal $text:literal)*) => {
        impl Errno {
            $(#[doc = $text] pub const $name: Errno = Errno($number);)*

            fn describe(self) -> Option<(&'static str, &'static str)> {
                match self.0 {
                    $($number => Some((stringify!($name), $text)),)*
                    _ => None,
                }
            }
        }
    };
}

errnos! {
    EPERM 1 "operation not permitted"
    ENOENT 2 "no such file or directory"
    ESRCH 3 "no such process"
    EINTR 4 "interrupted system call"
    EIO 5 "input/output error"
    EBADF 9 "bad file descriptor"
    EAGAIN 11 "resource temporarily unavailable"
    ENOMEM 12 "cannot allocate memory"
    EACCES 13 "permission denied"
    EBUSY 16 "device or resource busy"
    EEXIST 17 "file exists"
    EXDEV 18 "invalid cross-device link"
    ENOTDIR 20 "not a directory"
    EISDIR 21 "is a directory"
    EINVAL 22 "invalid argument"
    ENFILE 23 "too many open files in system"
    EMFILE 24 "too many open files"
    ENOTTY 25 "inappropriate ioctl for device"
    ENOSPC 28 "no space left on device"
    ESPIPE 29 "illegal seek"
    EROFS 30 "read-only file system"
    EPIPE 32 "broken pipe"
    ERANGE 34 "numerical result out of range"
    ENAMETOOLONG 36 "file name too long"
    ENOSYS 38 "function not implemented"
    ENOTEMPTY 39 "directory not empty"
    ELOOP 40 "too many levels of symbolic links"
    ENODATA 61 "no data available"
    EOPNOTSUPP 95 "operation not supported"
    ESTALE 116 "stale file handle"
}

impl Errno {
    /// Any other number, for what a flush hook reports.
    pub const fn new(number: i32) -> Errno {
        Errno(number)
    }

    /// The number, positive.
    pub const fn get(self) -> i32 {
        self.0
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.describe() {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "Errno({})", self.0),
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.describe() {
            Some((_, text)) => f.write_str(text),
            None => write!(f, "error {}", self.0),
        }
    }
}

impl Error for Errno {}

macro_rules! into_errno {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for Errno {
            fn from(error: $error) -> Errno {
                error.errno()
            }
        }
    )*};
}

into_errno!(
    BadFd,
    OutOfMemory,
    ReserveError,
    DupError,
    ReplaceError,
    CloseError,
    CloseRangeError,
    RestoreError,
);

impl<T, E: Into<Errno>> From<Rejected<T, E>> for Errno {
    /// Drops the file.
    fn from(rejected: Rejected<T, E>) -> Errno {
        rejected.error.into()
    }
}

macro_rules! unit_errors {
    ($($(#[$meta:meta])* $name:ident $errno:ident $text:literal)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        pub struct $name;

        impl $name {
            /// The error number.
            pub const fn errno(self) -> Errno {
                Errno::$errno
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($text)
            }
        }

        impl Error for $name {}
    )*};
}

unit_errors! {
    /// The number is not open: free, reserved, or outside of what a table can have.
    BadFd EBADF "file descriptor is not open"
    /// There is no memory for the table to grow, or for its copy. Nothing has changed.
    OutOfMemory ENOMEM "no memory for the file-descriptor table"
}

macro_rules! error_kinds {
    ($(
        $(#[$meta:meta])* $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident $errno:ident $text:literal,)*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)*
        }

        impl $name {
            /// The error number.
            pub const fn errno(self) -> Errno {
                match self {
                    $($name::$variant => Errno::$errno,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $($name::$variant => $text,)*
                })
            }
        }

        impl Error for $name {}
    )*};
}

error_kinds! {
    /// Why no number could be had. Nothing has changed.
    ReserveError {
        /// No number is free in the range that was asked for, below the observed limit and the
        /// table's `max`.
        LimitReached EMFILE "no free file descriptor below the limit",
        /// No memory to grow.
        OutOfMemory ENOMEM "no memory for the file-descriptor table",
    }

    /// Why a file descriptor was not duplicated. Nothing has changed.
    DupError {
        /// The source is not open.
        BadFd EBADF "file descriptor is not open",
        /// The minimum is not below the observed limit, or not a number a descriptor can have.
        MinimumTooLarge EINVAL "minimum is not below the limit",
        /// No number is free from the minimum on.
        LimitReached EMFILE "no free file descriptor below the limit",
        /// No memory to grow.
        OutOfMemory ENOMEM "no memory for the file-descriptor table",
    }

    /// Why a number was not made to refer to another file. Nothing has changed.
    ReplaceError {
        /// The number is not below the observed limit and the table's `max`; or the source of a
        /// dup2 is not open.
        BadFd EBADF "file descriptor is not open, or not below the limit",
        /// `dup3` of a descriptor to itself, or with an unknown flag.
        InvalidArgument EINVAL "source and target are the same, or a flag is unknown",
        /// The number is reserved: its file is about to be installed.
        Busy EBUSY "file descriptor is reserved",
        /// No memory to grow.
        OutOfMemory ENOMEM "no memory for the file-descriptor table",
    }

    /// Why nothing of a range was closed.
    CloseRangeError {
        /// `first > last`, an unknown flag, or UNSHARE without a task.
        InvalidArgument EINVAL "range or flags are not valid",
        /// No memory for the copy that UNSHARE asks for.
        OutOfMemory ENOMEM "no memory for the file-descriptor table",
    }

    /// Why a table could not be restored. Nothing is leaked: all files are dropped.
    RestoreError {
        /// The number is not below the table's `max`.
        BadFd EBADF "file descriptor is not below the maximum",
        /// A number occurs twice.
        Duplicate EINVAL "file descriptor occurs twice",
        /// No memory for the table.
        OutOfMemory ENOMEM "no memory for the file-descriptor table",
    }
}

impl From<OutOfMemory> for ReserveError {
    fn from(_: OutOfMemory) -> Self {
        ReserveError::OutOfMemory
    }
}

impl From<OutOfMemory> for CloseRangeError {
    fn from(_: OutOfMemory) -> Self {
        CloseRangeError::OutOfMemory
    }
}

impl From<BadFd> for DupError {
    fn from(_: BadFd) -> Self {
        DupError::BadFd
    }
}

impl From<ReserveError> for DupError {
    fn from(error: ReserveError) -> Self {
        match error {
            ReserveError::LimitReached => DupError::LimitReached,
            ReserveError::OutOfMemory => DupError::OutOfMemory,
        }
    }
}

impl From<BadFd> for ReplaceError {
    fn from(_: BadFd) -> Self {
        ReplaceError::BadFd
    }
}

/// What [`close`](crate::FdTable::close) reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum CloseError {
    /// Not open; nothing has changed.
    BadFd,
    /// The flush hook failed. **The descriptor is closed all the same**: never retry.
    Flush(Errno),
}

impl CloseError {
    /// The error number.
    pub const fn errno(self) -> Errno {
        match self {
            CloseError::BadFd => Errno::EBADF,
            CloseError::Flush(errno) => errno,
        }
    }
}

impl fmt::Display for CloseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CloseError::BadFd => BadFd.fmt(f),
            CloseError::Flush(errno) => write!(f, "closed, but the flush failed: {errno}"),
        }
    }
}

impl Error for CloseError {}

/// An operation that was given a file and failed: the file comes back with the reason.
pub struct Rejected<T, E> {
    /// The file, untouched.
    pub file: OwnedRef<T>,
    /// Why.
    pub error: E,
}

impl<T, E> Rejected<T, E> {
    /// Only the reason; drops the file, here.
    pub fn into_error(self) -> E {
        self.error
    }
}

impl<T, E: Copy + Into<Errno>> Rejected<T, E> {
    /// The error number.
    pub fn errno(&self) -> Errno {
        self.error.into()
    }
}

impl<T, E: fmt::Debug> fmt::Debug for Rejected<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejected").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<T, E: fmt::Display> fmt::Display for Rejected<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<T, E: Error + 'static> Error for Rejected<T, E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}
