//! The number at the edge, and the flags of a file descriptor.

use core::fmt;

/// A file-descriptor number: `0 ..= i32::MAX`.
///
/// Operations accept any integer type, see [`FdLike`]: a value outside of that range
/// is simply not open ([`BadFd`](crate::BadFd), `EBADF`), it never panics.
///
/// ```
/// use fdtable::Fd;
///
/// assert_eq!(Fd::try_from(-1), Err(fdtable::BadFd));
/// assert_eq!(u32::from(Fd::try_from(7_i32)?), 7);
/// # Ok::<(), fdtable::BadFd>(())
/// ```
///
/// There is no conversion *to* `RawFd` of the host: the numbers of a table are the guest's, and
/// passing one to a system call of the host is the mistake that this type is there to prevent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fd(u32);

impl Fd {
    /// The largest number, `i32::MAX`.
    pub const MAX: Fd = Fd(i32::MAX as u32);
    /// 0
    pub const STDIN: Fd = Fd(0);
    /// 1
    pub const STDOUT: Fd = Fd(1);
    /// 2
    pub const STDERR: Fd = Fd(2);

    /// For numbers that a table has handed out.
    #[inline(always)]
    pub(crate) fn from_table(number: u32) -> Fd {
        debug_assert!(number <= Self::MAX.0);
        Fd(number)
    }

    /// The number.
    #[inline(always)]
    pub const fn get(self) -> u32 {
        self.0
    }
}

macro_rules! convert {
    ($($from:ty),*) => {$(
        impl TryFrom<$from> for Fd {
            type Error = crate::BadFd;

            #[inline(always)]
            fn try_from(number: $from) -> Result<Fd, crate::BadFd> {
                match u32::try_from(number) {
                    Ok(number) if number <= Fd::MAX.0 => Ok(Fd(number)),
                    _ => Err(crate::BadFd),
                }
            }
        }
    )*};
}

convert!(i32, u32, i64, u64, isize, usize);

impl From<u8> for Fd {
    fn from(number: u8) -> Fd {
        Fd(number.into())
    }
}

impl From<u16> for Fd {
    fn from(number: u16) -> Fd {
        Fd(number.into())
    }
}

macro_rules! convert_back {
    ($($to:ty),*) => {$(
        impl From<Fd> for $to {
            #[inline(always)]
            fn from(fd: Fd) -> $to {
                fd.0 as $to
            }
        }
    )*};
}

convert_back!(i32, u32, i64, u64, usize);

impl PartialEq<u32> for Fd {
    fn eq(&self, other: &u32) -> bool {
        self.0 == *other
    }
}

impl PartialEq<i32> for Fd {
    fn eq(&self, other: &i32) -> bool {
        i64::from(self.0) == i64::from(*other)
    }
}

impl fmt::Debug for Fd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Fd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// What may stand for a file descriptor in a call: any integer, as a program passed it, or an [`Fd`].
///
/// A value outside of `0 ..= i32::MAX` is not open, as any other number that is not.
pub trait FdLike: Copy + sealed::Sealed {
    /// The value, saturated to an `i64`.
    fn to_i64(self) -> i64;

    /// The number, if it is one that a descriptor can have.
    #[inline(always)]
    fn to_fd(self) -> Result<Fd, crate::BadFd> {
        Fd::try_from(self.to_i64())
    }
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! fd_like {
    ($($type:ty),*) => {$(
        impl sealed::Sealed for $type {}

        impl FdLike for $type {
            #[inline(always)]
            fn to_i64(self) -> i64 {
                i64::try_from(self).unwrap_or(i64::MAX)
            }
        }
    )*};
}

fd_like!(Fd, u8, u16, i32, u32, i64, u64, isize, usize);

bitflags::bitflags! {
    /// The flags of a file descriptor. They belong to the number, not to the file: duplicates have
    /// their own.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
    pub struct FdFlags: u8 {
        /// Closed by an exec (`FD_CLOEXEC`, `O_CLOEXEC`).
        const CLOEXEC = 1;
        /// Left out of the copy that a fork makes (`FD_CLOFORK`, POSIX.1-2024; Linux has none).
        const CLOFORK = 2;
    }
}

bitflags::bitflags! {
    /// How [`close_range`](crate::Files::close_range) closes.
    ///
    /// The first two have Linux' values. Bits that are not named here are an error (`EINVAL`).
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
    pub struct CloseRange: u32 {
        /// Give a task that shares its table a copy of its own first, without what is to be closed
        /// (`CLOSE_RANGE_UNSHARE`). Only a task can: [`Files::close_range`](crate::Files::close_range).
        const UNSHARE = 2;
        /// Set CLOEXEC instead of closing (`CLOSE_RANGE_CLOEXEC`).
        const CLOEXEC = 4;
        /// Everything outside of the range, instead of what is inside. This crate's own, as is the
        /// next: see [`from_linux`](CloseRange::from_linux).
        const EXCEPT = 1 << 16;
        /// Only file descriptors that have CLOEXEC.
        const CLOEXEC_ONLY = 1 << 17;
    }
}

impl CloseRange {
    /// The flags of a guest's system call: only Linux' own two are accepted.
    ///
    /// # Errors
    /// `EINVAL` for any other bit.
    pub fn from_linux(flags: u32) -> Result<CloseRange, crate::CloseRangeError> {
        let known = CloseRange::UNSHARE | CloseRange::CLOEXEC;
        CloseRange::from_bits(flags)
            .filter(|&flags| known.contains(flags))
            .ok_or(crate::CloseRangeError::InvalidArgument)
    }
}
