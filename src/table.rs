//! `FdTable<T>`: the public operations, reading like the manual pages. No unsafe code, no memory
//! ordering: those are in `slot.rs`, `numbers.rs` and below.

use core::fmt;
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;

use crossbeam_utils::CachePadded;

use crate::block::OwnedRef;
use crate::error::*;
use crate::fd::{CloseRange, Fd, FdFlags, FdLike};
use crate::groups::Upper;
use crate::handle::Ref;
use crate::iter::Iter;
use crate::limited::Limited;
use crate::numbers::FirstWord;
use crate::options::{Config, Options, TableId, clamp_max};
use crate::reservation::Reservation;
use crate::slots::Slots;
use crate::states::Bits;
use crate::sweep::Selection;
use crate::sync::Mutex;

/// A table of file descriptors: small numbers that refer to files of any type `T`, shared by
/// reference between threads.
///
/// Numbers, states, errors and their order are those of Linux; the [design page](crate::design) says
/// what is guaranteed under concurrency, and why it holds. In short: lookups are wait-free and never
/// wait for anything; an allocation returns the lowest free number; whoever closes the last fd of a
/// file that nobody holds runs its destructor; no user code runs under a lock.
///
/// "Lock-free below fd 64" means that the operation takes a lock only for numbers from 64 on, or when
/// no lower one is free; while a [`fork`](Self::fork) copies the first 64 slots, about a microsecond, a
/// change of one of them waits.
///
/// The layout in memory: the lock with what only its holder touches, the first word of the bitmap,
/// and the slots lie on lines of their own; the slots of consecutive numbers as well.
pub struct FdTable<T> {
    /// The lock, and the state of the upper numbers that only its holder touches.
    pub(crate) lock: CachePadded<Mutex<Upper>>,
    /// What an insert among the first numbers looks at.
    pub(crate) next_fd: CachePadded<FirstWord>,
    /// The slots, written by lookups; behind them pointers to the upper numbers, read-mostly, as is the rest.
    pub(crate) slots: CachePadded<Slots<T>>,
    pub(crate) config: Config<T>,
}

impl<T> FdTable<T> {
    /// An empty table with `max` = 1 048 576 and no limit below that; for more see [`Options`].
    /// Allocates nothing.
    pub fn new() -> Self {
        Options::new().build()
    }

    pub(crate) fn with_config(config: Config<T>) -> Self {
        FdTable {
            lock: CachePadded::new(Mutex::new(Upper::new())),
            next_fd: CachePadded::new(FirstWord::new()),
            slots: CachePadded::new(Slots::new()),
            config,
        }
    }

    // Lookup

    /// The file that is open at `fd`, as a handle that keeps it alive and borrows the table.
    ///
    /// Wait-free: one read-modify-write for the lookup, one for the drop of the handle; none on a
    /// miss. Never grows the table. Linearizes at the load of the slot's word, or at the addition.
    ///
    /// # Errors
    /// `EBADF` if `fd` is not open, reserved, negative or anything else.
    ///
    /// ```
    /// use fdtable::{BadFd, FdFlags, FdTable};
    ///
    /// let table = FdTable::new();
    /// let fd = table.insert("file", FdFlags::empty()).unwrap();
    /// assert_eq!(*table.get(fd)?, "file");
    /// assert_eq!(table.get(-1).err(), Some(BadFd));
    /// # Ok::<(), BadFd>(())
    /// ```
    #[doc(alias = "fget")]
    #[inline]
    pub fn get(&self, fd: impl FdLike) -> Result<Ref<'_, T>, BadFd> {
        let slot = self.slots.get(fd.to_fd()?.get()).ok_or(BadFd)?;
        let (file, left) = slot.acquire().ok_or(BadFd)?;
        Ok(Ref::counted(file, slot, left))
    }

    /// As [`get`](Self::get), as a reference that does not borrow the table.
    ///
    /// # Errors
    /// `EBADF` if `fd` is not open.
    #[inline]
    pub fn get_owned(&self, fd: impl FdLike) -> Result<OwnedRef<T>, BadFd> {
        let slot = self.slots.get(fd.to_fd()?.get()).ok_or(BadFd)?;
        let (file, _) = slot.acquire().ok_or(BadFd)?;
        Ok(file)
    }

    /// As [`get`](Self::get), at the price of a load: the exclusive borrow keeps the fd open.
    ///
    /// # Errors
    /// `EBADF` if `fd` is not open.
    #[doc(alias = "fdget")]
    #[inline]
    pub fn borrow(&mut self, fd: impl FdLike) -> Result<Ref<'_, T>, BadFd> {
        self.slots.get_mut(fd.to_fd()?.get()).and_then(Ref::lent_exclusively).ok_or(BadFd)
    }

    /// Whether `fd` is open. Wait-free, writes nothing.
    pub fn contains(&self, fd: impl FdLike) -> bool {
        self.flags(fd).is_ok()
    }

    /// The flags of `fd`. Wait-free, writes nothing.
    ///
    /// # Errors
    /// `EBADF` if `fd` is not open.
    #[doc(alias = "F_GETFD")]
    pub fn flags(&self, fd: impl FdLike) -> Result<FdFlags, BadFd> {
        let slot = self.slots.get(fd.to_fd()?.get()).ok_or(BadFd)?;
        slot.flags().ok_or(BadFd)
    }

    /// Sets the flags of `fd`; of its duplicates none. Lock-free below fd 64.
    ///
    /// # Errors
    /// `EBADF` if `fd` is not open.
    #[doc(alias = "F_SETFD")]
    pub fn set_flags(&self, fd: impl FdLike, flags: FdFlags) -> Result<(), BadFd> {
        self.change_flags(fd.to_fd()?.get(), flags)
    }

    /// The open file descriptors, in ascending order.
    ///
    /// Each was open at some moment during the iteration, none is shown twice, those open
    /// throughout are all shown; it is not a snapshot, for that see [`fork`](Self::fork). Reserved
    /// numbers are not shown. Lock-free; cost by allocated slots.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter::new(self)
    }

    // Numbers and files

    /// This table, seen with another limit than its own.
    #[inline(always)]
    pub fn limited(&self, limit: u64) -> Limited<'_, T> {
        Limited::new(self, limit)
    }

    #[inline(always)]
    fn own(&self) -> Limited<'_, T> {
        self.limited(self.limit())
    }

    /// Opens `file` at the lowest free number.
    ///
    /// Lock-free below fd 64: one read-modify-write. Two steps (C3): the number is claimed, then it
    /// resolves. Cost at higher numbers: O(1), mostly.
    ///
    /// # Errors
    /// `EMFILE` if no number below the limit and `max` is free, `ENOMEM` if the table can't grow. The
    /// file comes back inside the error.
    ///
    /// ```
    /// use fdtable::{Errno, FdFlags, FdTable, Options};
    ///
    /// let table: FdTable<String> = Options::new().limit(1).build();
    /// table.insert("a".to_string(), FdFlags::empty()).unwrap();
    /// let rejected = table.insert("b".to_string(), FdFlags::empty()).unwrap_err();
    /// assert_eq!(rejected.errno(), Errno::EMFILE);
    /// assert_eq!(*rejected.file, "b");
    /// ```
    #[doc(alias = "open")]
    #[inline(always)]
    pub fn insert(
        &self,
        file: impl Into<OwnedRef<T>>,
        flags: FdFlags,
    ) -> Result<Fd, Rejected<T, ReserveError>> {
        self.own().insert(file, flags)
    }

    /// As [`insert`](Self::insert), at the lowest free number from `min` on.
    ///
    /// # Errors
    /// As [`insert`](Self::insert); a `min` at or above the limit is `EMFILE`.
    pub fn insert_from(
        &self,
        min: impl FdLike,
        file: impl Into<OwnedRef<T>>,
        flags: FdFlags,
    ) -> Result<Fd, Rejected<T, ReserveError>> {
        self.own().insert_from(min, file, flags)
    }

    /// Takes the lowest free number, to be filled later: the first half of an open. Cost and progress
    /// as [`insert`](Self::insert).
    ///
    /// # Errors
    /// `EMFILE` or `ENOMEM`.
    #[doc(alias = "get_unused_fd_flags")]
    #[inline]
    pub fn reserve(&self) -> Result<Reservation<'_, T>, ReserveError> {
        self.own().reserve()
    }

    /// As [`reserve`](Self::reserve), for the lowest free number in a range.
    ///
    /// # Errors
    /// `EMFILE` if none in the range is free, also if it is empty or lies above the limit; or
    /// `ENOMEM`.
    pub fn reserve_in(&self, numbers: Range<u32>) -> Result<Reservation<'_, T>, ReserveError> {
        self.own().reserve_in(numbers)
    }

    /// Takes the `N` lowest free numbers at one instant, or none: what a pipe needs.
    ///
    /// Lock-free if all are below 64, else under the lock.
    ///
    /// # Errors
    /// `EMFILE` if there are not `N`, with nothing claimed, not even for a moment; or `ENOMEM`.
    ///
    /// ```
    /// use fdtable::{FdFlags, FdTable};
    ///
    /// let table = FdTable::new();
    /// let [read, write] = table.reserve_many()?;
    /// let read = read.install("read end", FdFlags::empty());
    /// let write = write.install("write end", FdFlags::empty());
    /// assert!(read == 0 && write == 1);
    /// # Ok::<(), fdtable::ReserveError>(())
    /// ```
    #[doc(alias = "pipe")]
    #[doc(alias = "socketpair")]
    pub fn reserve_many<const N: usize>(&self) -> Result<[Reservation<'_, T>; N], ReserveError> {
        self.own().reserve_many()
    }

    /// Opens the file of `fd` at the lowest free number as well, without flags.
    ///
    /// # Errors
    /// `EBADF`, `EMFILE` or `ENOMEM`, in this order.
    pub fn dup(&self, fd: impl FdLike) -> Result<Fd, DupError> {
        self.own().dup(fd)
    }

    /// Opens the file of `fd` at the lowest free number from `min` on as well, with `flags`.
    ///
    /// # Errors
    /// `EBADF`; `EINVAL` if `min` is not below the limit; `EMFILE` or `ENOMEM`; in this order.
    #[doc(alias = "F_DUPFD")]
    #[doc(alias = "F_DUPFD_CLOEXEC")]
    pub fn dup_from(
        &self,
        fd: impl FdLike,
        min: impl FdLike,
        flags: FdFlags,
    ) -> Result<Fd, DupError> {
        self.own().dup_from(fd, min, flags)
    }

    /// Makes `new` refer to the file of `old`, without flags; what was at `new` is closed after that,
    /// its flush error ignored. There is no instant at which an open `new` is seen closed.
    ///
    /// With `old == new` nothing changes, not even the flags.
    ///
    /// Below fd 64 lock-free but for a bounded wait, some microseconds, while `new` is taken and has no
    /// file: reserved, or in mid-open or mid-close by another thread. If it stays so, that is `EBUSY`,
    /// as in Linux for a racing open.
    ///
    /// # Errors
    /// `EBADF` if `new` is not below the limit and `max`, or `old` is not open; `EBUSY` if `new` is
    /// reserved; `ENOMEM`. In all these cases `new` is untouched.
    ///
    /// ```
    /// use fdtable::{FdFlags, FdTable};
    ///
    /// let table = FdTable::new();
    /// let log = table.insert("log", FdFlags::CLOEXEC).unwrap();
    /// table.dup2(log, 2)?; // 2>log
    /// assert_eq!(*table.get(2).unwrap(), "log");
    /// assert_eq!(table.flags(2), Ok(FdFlags::empty()));
    /// # Ok::<(), fdtable::ReplaceError>(())
    /// ```
    pub fn dup2(&self, old: impl FdLike, new: impl FdLike) -> Result<Fd, ReplaceError> {
        self.own().dup2(old, new)
    }

    /// As [`dup2`](Self::dup2), with `flags`.
    ///
    /// # Errors
    /// `EINVAL` for an unknown flag or `old == new`; then as [`dup2`](Self::dup2).
    pub fn dup3(
        &self,
        old: impl FdLike,
        new: impl FdLike,
        flags: FdFlags,
    ) -> Result<Fd, ReplaceError> {
        self.own().dup3(old, new, flags)
    }

    /// Makes `fd` refer to `file`; returns the file that was there, if any, which is neither flushed
    /// nor dropped.
    ///
    /// # Errors
    /// `EBADF` if `fd` is not below the limit and `max`, `EBUSY` if it is reserved, `ENOMEM`. The file
    /// comes back inside the error.
    pub fn replace(
        &self,
        fd: impl FdLike,
        file: impl Into<OwnedRef<T>>,
        flags: FdFlags,
    ) -> Result<Option<OwnedRef<T>>, Rejected<T, ReplaceError>> {
        self.own().replace(fd, file, flags)
    }

    /// WASI's `fd_renumber`: `to`, which must be open, refers to the file of `from` afterwards, without
    /// flags, and `from` is free. The file that was at `to` is flushed and dropped; that of `from` has only
    /// moved. With `from == to` nothing changes.
    ///
    /// One step to other changes and to forks, under the lock; a lookup may find `from` closed just before
    /// it finds its file at `to`.
    ///
    /// # Errors
    /// `EBADF` if either is not open; nothing has changed then.
    #[doc(alias = "fd_renumber")]
    pub fn renumber(&self, from: impl FdLike, to: impl FdLike) -> Result<(), BadFd> {
        let (from, to) = (from.to_fd()?, to.to_fd()?);
        if from == to {
            return self.flags(from).map(drop);
        }
        let victim = self.move_open(from.get(), to.get())?;
        let _ = self.config.flush(&victim);
        Ok(())
    }

    /// Takes the file out of the table: `fd` is free, and the file is the caller's. Not flushed.
    ///
    /// Lock-free below fd 64. Two steps (C3): `fd` stops resolving, then its number is free.
    ///
    /// # Errors
    /// `EBADF` if `fd` is not open.
    #[inline(always)]
    #[must_use = "dropping the file may run its destructor; to close an fd use `close`"]
    pub fn remove(&self, fd: impl FdLike) -> Result<OwnedRef<T>, BadFd> {
        Ok(self.take(fd.to_fd()?.get())?.into_owned())
    }

    /// Closes `fd`: frees it, calls the flush hook, then drops the reference on the caller's stack. If
    /// it was the last one the destructor runs before this returns.
    ///
    /// Lock-free below fd 64: two read-modify-writes, and one more if others hold the file.
    ///
    /// # Errors
    /// `EBADF` if `fd` is not open. The hook's error, in which case `fd` is closed all the same.
    #[inline(always)]
    pub fn close(&self, fd: impl FdLike) -> Result<(), CloseError> {
        let fd = fd.to_fd().map_err(|_| CloseError::BadFd)?;
        let file = self.take(fd.get()).map_err(|_| CloseError::BadFd)?;
        self.config.flush(&file).map_err(CloseError::Flush)
    }

    /// Closes every open fd in `first ..= last`, in ascending order, or what else `how` says. Reserved
    /// numbers are left alone, but get CLOEXEC where that is asked for.
    ///
    /// Cost by open fds and allocated words, not by the range. Takes the lock once per open fd from 64 on,
    /// or once per word of 64 to set CLOEXEC; files are flushed and dropped outside of it.
    ///
    /// # Errors
    /// `EINVAL` if `first > last`, for an unknown flag, and for UNSHARE, which is a task's:
    /// [`Files::close_range`](crate::Files::close_range).
    ///
    /// ```
    /// use fdtable::{CloseRange, FdFlags, FdTable};
    ///
    /// let table = FdTable::new();
    /// for name in ["in", "out", "err", "a", "b"] {
    ///     table.insert(name, FdFlags::empty()).unwrap();
    /// }
    /// table.close_range(3, u32::MAX, CloseRange::empty())?;
    /// assert_eq!(table.len(), 3);
    /// # Ok::<(), fdtable::CloseRangeError>(())
    /// ```
    pub fn close_range(
        &self,
        first: u32,
        last: u32,
        how: CloseRange,
    ) -> Result<(), CloseRangeError> {
        if how.contains(CloseRange::UNSHARE) {
            return Err(CloseRangeError::InvalidArgument);
        }
        for selection in Selection::parse(first, last, how)?.into_iter().flatten() {
            if how.contains(CloseRange::CLOEXEC) {
                self.flag_selected(selection);
            } else {
                self.close_selected(selection);
            }
        }
        Ok(())
    }

    /// Closes every fd that has CLOEXEC, in ascending order: what an exec does to a table that is not
    /// shared. See [`Files::exec`](crate::Files::exec).
    pub fn close_on_exec(&self) {
        self.close_selected(Selection::all(FdFlags::CLOEXEC));
    }

    /// Closes everything, from the highest fd down, as the drop of the table does.
    pub fn clear(&self) {
        self.close_all_down();
    }

    // The table as a whole

    /// A copy: the same numbers, files and flags at one instant, also while other threads open and
    /// close. Left out: file descriptors with CLOFORK; numbers that are only reserved are free in it.
    /// It has the same settings, and storage by what is open.
    ///
    /// Blocks while another fork runs. Lookups never wait for it; changes from fd 64 on wait for all
    /// of it, those below for its last microsecond. Cost by open fds and allocated words.
    ///
    /// # Errors
    /// `ENOMEM`.
    ///
    /// ```
    /// use fdtable::{FdFlags, FdTable};
    ///
    /// let parent = FdTable::new();
    /// parent.insert("terminal", FdFlags::empty()).unwrap();
    /// let child = parent.fork()?;
    /// child.close(0).unwrap();
    /// assert!(parent.contains(0));
    /// # Ok::<(), fdtable::OutOfMemory>(())
    /// ```
    pub fn fork(&self) -> Result<FdTable<T>, OutOfMemory> {
        self.snapshot(&[Selection::all(FdFlags::CLOFORK)])
    }

    /// Gives the numbers below `numbers` storage now, so that opening them later can't fail for lack
    /// of memory. Above `max` it stops.
    ///
    /// # Errors
    /// `ENOMEM`; what could be had is kept.
    pub fn reserve_capacity(&self, numbers: usize) -> Result<(), OutOfMemory> {
        let end = numbers.min(self.max() as usize) as u32;
        let mut fd = 0;
        while fd < end {
            if self.slots.get(fd).is_none() {
                self.grow(fd)?;
            }
            fd = Slots::<T>::piece_end(fd);
        }
        Ok(())
    }

    /// The soft limit that is observed by calls without one of their own.
    #[inline(always)]
    pub fn limit(&self) -> u64 {
        // Relaxed, also below: one word, observed once per call.
        self.config.limit.load(Relaxed)
    }

    /// Sets [`limit`](Self::limit). File descriptors above it stay open and usable.
    pub fn set_limit(&self, limit: u64) {
        self.config.limit.store(limit, Relaxed);
    }

    /// The ceiling: no number reaches it.
    #[inline(always)]
    pub fn max(&self) -> u32 {
        self.config.max.load(Relaxed)
    }

    /// Sets [`max`](Self::max), rounded as by [`Options::max`]. File descriptors above it stay open
    /// and usable.
    pub fn set_max(&self, max: u64) {
        self.config.max.store(clamp_max(max), Relaxed);
    }

    /// How many file descriptors are open. O(1); takes the lock for a moment.
    pub fn len(&self) -> usize {
        let upper = self.lock.lock().open;
        let is_open = |&fd: &u32| self.slots.first(fd).flags().is_some();
        upper + Bits(self.next_fd.claimed()).filter(is_open).count()
    }

    /// Whether no file descriptor is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One past the highest number that has storage, at most `max`: a multiple of 64.
    pub fn capacity(&self) -> u32 {
        self.config.storage_end().min(self.max())
    }

    /// The highest open number. Cost by allocated words, under the lock.
    pub fn highest_open(&self) -> Option<Fd> {
        self.find_highest_open().map(Fd::from_table)
    }

    /// The highest number that has ever been open or reserved.
    pub fn high_water(&self) -> Option<Fd> {
        self.next_fd.high_water().checked_sub(1).map(Fd::from_table)
    }

    /// The bytes that the table holds: its own, and its storage; without the files.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.config.bytes()
    }

    /// The identity of the table, as its flush hook is told.
    pub fn id(&self) -> TableId {
        self.config.id
    }

    // For the layers above

    /// The open numbers with their flags, without a handle on the files.
    pub(crate) fn open_fds(&self) -> impl Iterator<Item = (Fd, FdFlags)> {
        self.slots.iter_from(0).filter_map(|(fd, slot)| Some((Fd::from_table(fd), slot.flags()?)))
    }

    pub(crate) fn slots(&self) -> &Slots<T> {
        &self.slots
    }

    /// Opens this very number, whatever the limit: for a table that nobody else knows yet.
    pub(crate) fn place(
        &self,
        fd: impl FdLike,
        file: OwnedRef<T>,
        flags: FdFlags,
    ) -> Result<(), RestoreError> {
        let fd = fd.to_fd().map_err(|_| RestoreError::BadFd)?;
        if fd.get() >= self.max() {
            return Err(RestoreError::BadFd);
        }
        if self.contains(fd) {
            return Err(RestoreError::Duplicate);
        }
        match self.put(fd.get(), file.into(), flags) {
            Ok(_) => Ok(()),
            Err((_, ReplaceError::OutOfMemory)) => Err(RestoreError::OutOfMemory),
            Err(_) => Err(RestoreError::BadFd),
        }
    }
}

impl<T> Default for FdTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Closes every open fd, from the highest down: flush hook, then drop. If one of them panics the
/// others are closed all the same, and the panic goes on at the end (with `std`).
impl<T> Drop for FdTable<T> {
    fn drop(&mut self) {
        self.close_all_alone();
    }
}

/// The open file descriptors with their flags. Never calls into `T`.
impl<T> fmt::Debug for FdTable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (fd, flags) in self.open_fds() {
            map.entry(&fd, &format_args!("{flags:?}"));
        }
        map.finish()
    }
}

impl<'t, T> IntoIterator for &'t FdTable<T> {
    type Item = crate::Entry<'t, T>;
    type IntoIter = Iter<'t, T>;

    fn into_iter(self) -> Iter<'t, T> {
        self.iter()
    }
}

#[cfg(not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle"))))]
mod layout {
    use core::mem::offset_of;

    use static_assertions::{assert_impl_all, assert_not_impl_any, const_assert, const_assert_eq};

    use super::FdTable;

    /// What must not be shared: a line, or a pair where the hardware fetches them in pairs.
    const LINES: usize = align_of::<crossbeam_utils::CachePadded<u8>>();

    const_assert_eq!(align_of::<FdTable<u8>>() % LINES, 0);
    const_assert_eq!(offset_of!(FdTable<u8>, lock) % LINES, 0);
    const_assert_eq!(offset_of!(FdTable<u8>, next_fd) % LINES, 0);
    const_assert_eq!(offset_of!(FdTable<u8>, slots) % LINES, 0);
    const_assert!(size_of::<FdTable<u8>>() <= 1536);

    assert_impl_all!(FdTable<u8>: Send, Sync);
    assert_not_impl_any!(FdTable<core::cell::Cell<u8>>: Send, Sync);
    assert_not_impl_any!(FdTable<alloc::rc::Rc<u8>>: Send, Sync);
}
