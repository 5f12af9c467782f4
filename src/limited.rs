//! The operations that hand out numbers, with the caller's own observed limit.

use core::fmt;
use core::ops::Range;

use crate::block::OwnedRef;
use crate::error::{DupError, Rejected, ReplaceError, ReserveError};
use crate::fd::{Fd, FdFlags, FdLike};
use crate::reservation::Reservation;
use crate::table::FdTable;

/// A table as a process with a limit of its own sees it.
///
/// Two processes may share one table and have different limits, so a call that hands out a number
/// takes the limit of its caller, a soft `RLIMIT_NOFILE`, which is observed once: a number at or above
/// it is never handed out, not even for a moment, whatever the table has room for. File descriptors
/// that are open above the limit stay usable.
///
/// The methods of the same names on [`FdTable`] observe the table's own limit.
///
/// ```
/// use fdtable::{FdFlags, FdTable, ReserveError};
///
/// let table = FdTable::new();
/// let small = table.limited(1);
/// assert_eq!(small.insert("a", FdFlags::empty()).unwrap(), 0);
/// let full = small.insert("b", FdFlags::empty()).unwrap_err();
/// assert_eq!(full.error, ReserveError::LimitReached); // EMFILE
/// assert_eq!(*full.file, "b"); // and the file comes back
/// assert_eq!(table.insert("b", FdFlags::empty()).unwrap(), 1);
/// ```
pub struct Limited<'t, T> {
    table: &'t FdTable<T>,
    limit: u64,
}

impl<T> Clone for Limited<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Limited<'_, T> {}

impl<'t, T> Limited<'t, T> {
    #[inline(always)]
    pub(crate) fn new(table: &'t FdTable<T>, limit: u64) -> Self {
        Limited { table, limit }
    }

    /// The limit.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The table.
    pub fn table(&self) -> &'t FdTable<T> {
        self.table
    }

    /// The numbers from `min` on that this caller may be given, `max` being observed here.
    #[inline(always)]
    fn numbers_from(&self, min: u32) -> Range<u32> {
        min..self.limit.min(self.table.max().into()) as u32
    }

    /// See [`FdTable::insert`].
    #[inline(always)]
    pub fn insert(
        &self,
        file: impl Into<OwnedRef<T>>,
        flags: FdFlags,
    ) -> Result<Fd, Rejected<T, ReserveError>> {
        self.open(self.numbers_from(0), file.into(), flags)
    }

    /// See [`FdTable::insert_from`].
    pub fn insert_from(
        &self,
        min: impl FdLike,
        file: impl Into<OwnedRef<T>>,
        flags: FdFlags,
    ) -> Result<Fd, Rejected<T, ReserveError>> {
        match min.to_fd() {
            Ok(min) => self.open(self.numbers_from(min.get()), file.into(), flags),
            Err(_) => Err(Rejected { file: file.into(), error: ReserveError::LimitReached }),
        }
    }

    #[inline(always)]
    fn open(
        &self,
        range: Range<u32>,
        file: OwnedRef<T>,
        flags: FdFlags,
    ) -> Result<Fd, Rejected<T, ReserveError>> {
        match self.table.open_lowest(range, file.into(), flags) {
            Ok(fd) => Ok(Fd::from_table(fd)),
            Err((file, error)) => Err(Rejected { file: file.into_owned(), error }),
        }
    }

    /// See [`FdTable::reserve`].
    #[inline]
    pub fn reserve(&self) -> Result<Reservation<'t, T>, ReserveError> {
        self.reserve_in(0..u32::MAX)
    }

    /// See [`FdTable::reserve_in`].
    #[inline]
    pub fn reserve_in(&self, numbers: Range<u32>) -> Result<Reservation<'t, T>, ReserveError> {
        let range = self.numbers_from(numbers.start);
        let fd = self.table.reserve_lowest(range.start..range.end.min(numbers.end))?;
        Ok(Reservation::new(self.table, fd))
    }

    /// See [`FdTable::reserve_many`].
    pub fn reserve_many<const N: usize>(&self) -> Result<[Reservation<'t, T>; N], ReserveError> {
        let fds = self.table.reserve_many_lowest::<N>(self.numbers_from(0))?;
        Ok(fds.map(|fd| Reservation::new(self.table, fd)))
    }

    /// See [`FdTable::dup`].
    pub fn dup(&self, fd: impl FdLike) -> Result<Fd, DupError> {
        let file = self.table.get_owned(fd)?;
        Ok(self.insert(file, FdFlags::empty()).map_err(Rejected::into_error)?)
    }

    /// See [`FdTable::dup_from`].
    pub fn dup_from(
        &self,
        fd: impl FdLike,
        min: impl FdLike,
        flags: FdFlags,
    ) -> Result<Fd, DupError> {
        let file = self.table.get_owned(fd)?;
        let min = min.to_fd().map_err(|_| DupError::MinimumTooLarge)?;
        if u64::from(min.get()) >= self.limit {
            return Err(DupError::MinimumTooLarge);
        }
        Ok(self.insert_from(min, file, flags).map_err(Rejected::into_error)?)
    }

    /// See [`FdTable::dup2`].
    pub fn dup2(&self, old: impl FdLike, new: impl FdLike) -> Result<Fd, ReplaceError> {
        if old.to_i64() == new.to_i64() {
            let fd = old.to_fd()?;
            return if self.table.contains(fd) { Ok(fd) } else { Err(ReplaceError::BadFd) };
        }
        self.duplicate_onto(old, new, FdFlags::empty())
    }

    /// See [`FdTable::dup3`].
    pub fn dup3(
        &self,
        old: impl FdLike,
        new: impl FdLike,
        flags: FdFlags,
    ) -> Result<Fd, ReplaceError> {
        if !FdFlags::all().contains(flags) || old.to_i64() == new.to_i64() {
            return Err(ReplaceError::InvalidArgument);
        }
        self.duplicate_onto(old, new, flags)
    }

    fn duplicate_onto(
        &self,
        old: impl FdLike,
        new: impl FdLike,
        flags: FdFlags,
    ) -> Result<Fd, ReplaceError> {
        let new = self.below_limit(new)?;
        let file = self.table.get_owned(old)?;
        let victim = self.table.put(new.get(), file.into(), flags).map_err(|(_, error)| error)?;
        if let Some(victim) = victim {
            // Its error is ignored, as Linux does.
            let _ = self.table.config.flush(&victim);
        }
        Ok(new)
    }

    /// See [`FdTable::replace`].
    pub fn replace(
        &self,
        fd: impl FdLike,
        file: impl Into<OwnedRef<T>>,
        flags: FdFlags,
    ) -> Result<Option<OwnedRef<T>>, Rejected<T, ReplaceError>> {
        let file = file.into();
        let fd = match self.below_limit(fd) {
            Ok(fd) => fd,
            Err(error) => return Err(Rejected { file, error }),
        };
        match self.table.put(fd.get(), file.into(), flags) {
            Ok(old) => Ok(old.map(|file| file.into_owned())),
            Err((file, error)) => Err(Rejected { file: file.into_owned(), error }),
        }
    }

    fn below_limit(&self, fd: impl FdLike) -> Result<Fd, ReplaceError> {
        let fd = fd.to_fd()?;
        if self.numbers_from(0).contains(&fd.get()) { Ok(fd) } else { Err(ReplaceError::BadFd) }
    }
}

impl<T> fmt::Debug for Limited<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limited").field("limit", &self.limit).finish_non_exhaustive()
    }
}
