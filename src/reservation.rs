//! A number claimed and not yet filled.

use core::fmt;
use core::mem::ManuallyDrop;

use crate::block::OwnedRef;
use crate::fd::{Fd, FdFlags};
use crate::files::Files;
use crate::table::FdTable;

/// A number that is taken and has no file yet: the first half of an open.
///
/// Nobody else is given the number, and nobody finds a file there: lookups and close see `EBADF`, a
/// dup2 onto it `EBUSY`, a fork's copy has it free. [`install`](Self::install) opens it and cannot
/// fail; dropping the reservation gives the number back.
///
/// ```
/// use fdtable::{BadFd, FdFlags, FdTable};
///
/// let table = FdTable::new();
/// let reservation = table.reserve()?; // a full table fails here, before any work is done
/// assert_eq!(table.get(reservation.fd()).err(), Some(BadFd));
/// let fd = reservation.install("file", FdFlags::CLOEXEC);
/// assert_eq!(*table.get(fd).unwrap(), "file");
/// # Ok::<(), fdtable::ReserveError>(())
/// ```
///
/// Install and drop are lock-free below fd 64 and take the lock above. Leaking a reservation
/// ([`core::mem::forget`]) keeps the number taken for as long as the table lives.
#[must_use = "dropping a reservation frees its number"]
pub struct Reservation<'t, T> {
    table: &'t FdTable<T>,
    /// Invariant I5: this number is claimed, its slot has no file, and only we may change that.
    fd: Fd,
}

impl<'t, T> Reservation<'t, T> {
    pub(crate) fn new(table: &'t FdTable<T>, fd: u32) -> Self {
        Reservation { table, fd: Fd::from_table(fd) }
    }

    /// The number.
    pub fn fd(&self) -> Fd {
        self.fd
    }

    /// Opens the number: from now on lookups find `file`.
    ///
    /// If a `close_range` has set CLOEXEC on the reserved number, the file has it as well.
    #[inline]
    pub fn install(self, file: impl Into<OwnedRef<T>>, flags: FdFlags) -> Fd {
        // Converted first: should it panic, `self` frees the number.
        let file = file.into();
        let this = ManuallyDrop::new(self);
        this.table.install(this.fd.get(), file.into(), flags);
        this.fd
    }
}

impl<T> Drop for Reservation<'_, T> {
    fn drop(&mut self) {
        self.table.abandon(self.fd.get());
    }
}

impl<T> fmt::Debug for Reservation<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reservation").field(&self.fd).finish()
    }
}

/// A [`Reservation`] that holds a task's share of the table instead of borrowing it: `'static`, for an
/// open that waits in a future or on another thread.
///
/// It counts as a sharer of the table, as the task that waits in a blocking open does.
#[must_use = "dropping a reservation frees its number"]
pub struct OwnedReservation<T> {
    files: Files<T>,
    /// As in [`Reservation`]; `None` once installed.
    fd: Option<Fd>,
}

impl<T> OwnedReservation<T> {
    pub(crate) fn new(files: Files<T>, reservation: Reservation<'_, T>) -> Self {
        let fd = ManuallyDrop::new(reservation).fd;
        OwnedReservation { files, fd: Some(fd) }
    }

    /// The number.
    pub fn fd(&self) -> Fd {
        self.fd.expect("taken only by `install`, which consumes the reservation")
    }

    /// Opens the number, see [`Reservation::install`].
    pub fn install(mut self, file: impl Into<OwnedRef<T>>, flags: FdFlags) -> Fd {
        let file = file.into();
        let fd = self.fd();
        self.fd = None;
        self.files.install(fd.get(), file.into(), flags);
        fd
    }
}

impl<T> Drop for OwnedReservation<T> {
    fn drop(&mut self) {
        if let Some(fd) = self.fd {
            self.files.abandon(fd.get());
        }
    }
}

impl<T> fmt::Debug for OwnedReservation<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedReservation").field(&self.fd).finish()
    }
}
