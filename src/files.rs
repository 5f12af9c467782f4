//! A task's handle on a table: share, fork, unshare, exec.

use core::fmt;
use core::ops::Deref;

use crate::block::OwnedRef;
use crate::error::{BadFd, CloseRangeError, OutOfMemory, ReserveError};
use crate::fd::{CloseRange, FdLike};
use crate::handle::Ref;
use crate::reservation::OwnedReservation;
use crate::sweep::Selection;
use crate::sync::{AtomicUsize, Ordering};
use crate::table::FdTable;

#[cfg(feature = "std")]
pub use observer::Observer;

/// A task's handle on a table of file descriptors: Linux' `files_struct` as seen from a task.
///
/// Tasks [`share`](Self::share) a table (`CLONE_FILES`) or get a copy ([`fork`](Self::fork)). When the
/// last sharer goes, its drop closes everything, on its own stack. Everything that a table can do is
/// there by deref.
///
/// ```
/// use fdtable::{FdFlags, Files};
///
/// let mut shell = Files::new();
/// let fd = shell.insert("terminal", FdFlags::CLOEXEC).unwrap();
/// let thread = shell.share();
/// let mut child = shell.fork()?;
/// child.exec()?; // closes what is CLOEXEC, in the child's copy
/// assert!(!child.contains(fd) && thread.contains(fd) && shell.is_shared());
/// drop(thread);
/// assert_eq!(*shell.borrow(fd).unwrap(), "terminal"); // not shared: no read-modify-write
/// # Ok::<(), fdtable::OutOfMemory>(())
/// ```
pub struct Files<T> {
    shared: SharedRef<T>,
    /// Where this task's observers look, once there is one.
    #[cfg(feature = "std")]
    beacon: std::sync::OnceLock<observer::Beacon<T>>,
}

struct Shared<T> {
    table: FdTable<T>,
    /// How many `Files` refer to the table. Others that hold a `SharedRef` are observers.
    sharers: AtomicUsize,
}

/// Not an `Arc`: its memory can be refused.
struct SharedRef<T>(OwnedRef<Shared<T>>);

impl<T> SharedRef<T> {
    fn new(table: FdTable<T>) -> Self {
        SharedRef(OwnedRef::new(Shared { table, sharers: AtomicUsize::new(1) }))
    }

    /// For a copy that nobody has seen: if there is no memory it goes without a flush.
    fn try_new(table: FdTable<T>) -> Result<Self, OutOfMemory> {
        let shared = Shared { table, sharers: AtomicUsize::new(1) };
        match OwnedRef::try_new(shared) {
            Ok(shared) => Ok(SharedRef(shared)),
            Err(mut shared) => {
                shared.table.config.on_close = None;
                Err(OutOfMemory)
            }
        }
    }
}

impl<T> Clone for SharedRef<T> {
    fn clone(&self) -> Self {
        SharedRef(self.0.clone())
    }
}

impl<T> Deref for SharedRef<T> {
    type Target = Shared<T>;

    #[inline(always)]
    fn deref(&self) -> &Shared<T> {
        &self.0
    }
}

impl<T> Files<T> {
    /// A task's handle on a new, empty table.
    pub fn new() -> Self {
        FdTable::new().into()
    }

    fn from_shared(shared: SharedRef<T>) -> Self {
        Files {
            shared,
            #[cfg(feature = "std")]
            beacon: std::sync::OnceLock::new(),
        }
    }

    /// Another task's handle on the same table (`CLONE_FILES`).
    #[doc(alias = "CLONE_FILES")]
    #[must_use]
    pub fn share(&self) -> Files<T> {
        // Relaxed: as a clone.
        self.shared.sharers.fetch_add(1, Ordering::Relaxed);
        Self::from_shared(self.shared.clone())
    }

    /// A new task's handle on a copy of the table, see [`FdTable::fork`].
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn fork(&self) -> Result<Files<T>, OutOfMemory> {
        SharedRef::try_new(self.shared.table.fork()?).map(Self::from_shared)
    }

    /// Whether other tasks share the table. Observers do not count.
    pub fn is_shared(&self) -> bool {
        // Acquire pairs with the Release in `leave`: if the others are gone, what they did to the
        // table lies before. If not, they may go at any moment: `true` may be old.
        self.shared.sharers.load(Ordering::Acquire) != 1
    }

    /// From now on this task has a table of its own: if others share it, a copy.
    ///
    /// # Errors
    /// `ENOMEM`; the table is still shared then.
    pub fn unshare(&mut self) -> Result<(), OutOfMemory> {
        self.unshare_without(&[])
    }

    fn unshare_without(&mut self, left_out: &[Selection]) -> Result<(), OutOfMemory> {
        if self.is_shared() {
            let copy = self.shared.table.snapshot(left_out)?;
            self.move_to(SharedRef::try_new(copy)?);
        }
        Ok(())
    }

    /// What a successful exec does: unshares, then closes every fd with CLOEXEC, in ascending order.
    ///
    /// # Errors
    /// `ENOMEM` if the table is shared and there is none for the copy; nothing has changed then.
    #[doc(alias = "execve")]
    pub fn exec(&mut self) -> Result<(), OutOfMemory> {
        self.unshare()?;
        self.close_on_exec();
        Ok(())
    }

    /// As [`FdTable::close_range`], and with UNSHARE: a task that shares its table gets its own copy
    /// without what is to be closed. The old table and its other sharers see nothing of it, and the
    /// copy never refers to the files that are left out.
    ///
    /// # Errors
    /// `EINVAL` if `first > last` or for an unknown flag, `ENOMEM` for the copy.
    pub fn close_range(
        &mut self,
        first: u32,
        last: u32,
        how: CloseRange,
    ) -> Result<(), CloseRangeError> {
        let selections = Selection::parse(first, last, how)?;
        if how.contains(CloseRange::UNSHARE) {
            let mut left_out = [Selection::NONE; 2];
            if !how.contains(CloseRange::CLOEXEC) {
                left_out = selections.map(|selection| selection.unwrap_or(Selection::NONE));
            }
            self.unshare_without(&left_out)?;
        }
        self.shared.table.close_range(first, last, how - CloseRange::UNSHARE)
    }

    /// The file that is open at `fd`. While the table is not shared this costs two loads and no
    /// read-modify-write: the exclusive borrow of the only sharer's handle keeps the fd open. If it is
    /// shared, as [`FdTable::get`]. Wait-free.
    ///
    /// # Errors
    /// `EBADF` if `fd` is not open.
    #[doc(alias = "fdget")]
    #[inline]
    #[expect(unsafe_code, reason = "the only sharer, exclusively borrowed, lends without a count")]
    pub fn borrow(&mut self, fd: impl FdLike) -> Result<Ref<'_, T>, BadFd> {
        if self.is_shared() {
            return self.shared.table.get(fd);
        }
        let slot = self.shared.table.slots().get(fd.to_fd()?.get()).ok_or(BadFd)?;
        // SAFETY: tables change only through a `Files` (observers only look). This is the only one,
        // and neither it nor a handle that borrows it can be used while the result exists; nor can
        // a second one be made, which takes this one (I7).
        unsafe { Ref::lent(slot) }.ok_or(BadFd)
    }

    /// [`borrow`](Self::borrow), and whether nobody else can reach the file: the table is this task's alone,
    /// and the file has no other fd and no handle.
    #[expect(unsafe_code, reason = "as `borrow`")]
    pub(crate) fn borrow_exclusive(
        &mut self,
        fd: impl FdLike,
    ) -> Result<(Ref<'_, T>, bool), BadFd> {
        if self.is_shared() {
            return Ok((self.shared.table.get(fd)?, false));
        }
        let slot = self.shared.table.slots().get(fd.to_fd()?.get()).ok_or(BadFd)?;
        // SAFETY: as in `borrow`.
        let file = unsafe { Ref::lent(slot) }.ok_or(BadFd)?;
        // The slot first: a transfer credits the file before it takes from the slot.
        let exclusive = file.has_no_other_holder(slot.count());
        Ok((file, exclusive))
    }

    /// As [`FdTable::reserve`], as a reservation that does not borrow: it shares the table. `limit` is
    /// the caller's, usually `files.limit()`.
    ///
    /// # Errors
    /// `EMFILE` or `ENOMEM`.
    pub fn reserve_owned(&self, limit: u64) -> Result<OwnedReservation<T>, ReserveError> {
        let reservation = self.shared.table.limited(limit).reserve()?;
        Ok(OwnedReservation::new(self.share(), reservation))
    }

    /// A view of this task's table for others, such as the reader of `/proc/PID/fd`. It follows the
    /// task when it unshares or execs.
    #[cfg(feature = "std")]
    pub fn observe(&self) -> Observer<T> {
        Observer::new(self)
    }

    /// Gives this task another table, and leaves the one it had.
    fn move_to(&mut self, shared: SharedRef<T>) {
        #[cfg(feature = "std")]
        if let Some(beacon) = self.beacon.get() {
            beacon.store(Some(shared.clone()));
        }
        let old = core::mem::replace(&mut self.shared, shared);
        old.leave();
    }
}

impl<T> SharedRef<T> {
    /// One sharer goes, and is about to drop its reference; with the last one everything is closed: here, if
    /// an observer keeps the storage, else by that drop.
    fn leave(&self) {
        // AcqRel: Release, what this sharer did to the table lies before the end; Acquire, if this
        // is the end, what the others did.
        if self.sharers.fetch_sub(1, Ordering::AcqRel) == 1 && !self.0.seems_last() {
            self.table.clear();
        }
    }
}

impl<T> Drop for Files<T> {
    fn drop(&mut self) {
        #[cfg(feature = "std")]
        if let Some(beacon) = self.beacon.get() {
            beacon.store(None);
        }
        self.shared.leave();
    }
}

impl<T> From<FdTable<T>> for Files<T> {
    fn from(table: FdTable<T>) -> Self {
        Self::from_shared(SharedRef::new(table))
    }
}

impl<T> Default for Files<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for Files<T> {
    type Target = FdTable<T>;

    #[inline(always)]
    fn deref(&self) -> &FdTable<T> {
        &self.shared.table
    }
}

impl<T> fmt::Debug for Files<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files")
            .field("table", &self.shared.table)
            .field("is_shared", &self.is_shared())
            .finish()
    }
}

#[cfg(feature = "std")]
mod observer {
    use core::fmt;
    use core::ptr::NonNull;

    use alloc::sync::Arc;
    use alloc::vec::Vec;

    use arc_swap::{ArcSwapAny, RefCnt};

    use super::{Files, Shared, SharedRef};
    use crate::block::{Block, OwnedRef};
    use crate::error::BadFd;
    use crate::fd::{Fd, FdFlags, FdLike};

    /// The table a task uses now, or nothing once the task is gone. Read often and written rarely,
    /// as `ArcSwap` is made for.
    pub(super) type Beacon<T> = Arc<ArcSwapAny<Option<SharedRef<T>>>>;

    // SAFETY: a counted pointer to a block: the same one for every clone, back and forth without a
    // change of the count, and `OwnedRef` counts as `Arc` does.
    #[expect(unsafe_code, reason = "`RefCnt` is an unsafe trait")]
    unsafe impl<T> RefCnt for SharedRef<T> {
        type Base = Block<Shared<T>>;

        fn into_ptr(me: Self) -> *mut Self::Base {
            me.0.into_block().as_ptr()
        }

        fn as_ptr(me: &Self) -> *mut Self::Base {
            me.0.block().as_ptr()
        }

        unsafe fn from_ptr(pointer: *const Self::Base) -> Self {
            // SAFETY: by the caller it comes from `into_ptr`: not null.
            let block = unsafe { NonNull::new_unchecked(pointer.cast_mut()) };
            // SAFETY: and its count passes to us.
            SharedRef(unsafe { OwnedRef::from_block(block) })
        }
    }

    /// Looks at a task's table from outside: for `/proc`, a debugger, a monitor.
    ///
    /// It follows the task when that unshares or execs. It never keeps a file open, and does not make
    /// the table look shared: when the task is gone, lookups miss. A file may own an observer of the
    /// table it sits in.
    ///
    /// ```
    /// use fdtable::{BadFd, FdFlags, Files};
    ///
    /// let task = Files::new();
    /// let proc = task.observe();
    /// let fd = task.insert("file", FdFlags::CLOEXEC).unwrap();
    /// assert_eq!(*proc.get(fd).unwrap(), "file");
    /// assert_eq!(proc.list(), [(fd, FdFlags::CLOEXEC)]);
    /// drop(task);
    /// assert_eq!(proc.get(fd).err(), Some(BadFd));
    /// ```
    pub struct Observer<T> {
        beacon: Beacon<T>,
    }

    impl<T> Observer<T> {
        pub(super) fn new(files: &Files<T>) -> Self {
            let beacon =
                files.beacon.get_or_init(|| Arc::new(ArcSwapAny::new(Some(files.shared.clone()))));
            Observer { beacon: Arc::clone(beacon) }
        }

        /// Whether the task still has a table.
        pub fn is_alive(&self) -> bool {
            self.beacon.load().is_some()
        }

        /// The file that is open at `fd`. Like any handle this one keeps it alive.
        ///
        /// # Errors
        /// `EBADF` if `fd` is not open, or the task is gone.
        pub fn get(&self, fd: impl FdLike) -> Result<OwnedRef<T>, BadFd> {
            self.beacon.load().as_ref().ok_or(BadFd)?.table.get_owned(fd)
        }

        /// The flags of `fd`.
        ///
        /// # Errors
        /// `EBADF` if `fd` is not open, or the task is gone.
        pub fn flags(&self, fd: impl FdLike) -> Result<FdFlags, BadFd> {
            self.beacon.load().as_ref().ok_or(BadFd)?.table.flags(fd)
        }

        /// The open file descriptors and their flags, in ascending order, as
        /// [`FdTable::iter`](crate::FdTable::iter) shows them; none if the task is gone.
        pub fn list(&self) -> Vec<(Fd, FdFlags)> {
            match &*self.beacon.load() {
                Some(shared) => shared.table.open_fds().collect(),
                None => Vec::new(),
            }
        }
    }

    impl<T> Clone for Observer<T> {
        fn clone(&self) -> Self {
            Observer { beacon: Arc::clone(&self.beacon) }
        }
    }

    impl<T> fmt::Debug for Observer<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Observer").field("open", &self.list()).finish()
        }
    }
}
