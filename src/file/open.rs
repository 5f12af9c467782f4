//! `File`: opened from a path reference that it consumes, flushed, released.

use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};

use alloc::sync::Arc;

use crate::error::{BadFd, Errno};
use crate::fd::{Fd, FdFlags, FdLike};
use crate::files::Files;
use crate::handle::Ref;
use crate::limited::Limited;
use crate::options::{Options, TableId};
use crate::table::FdTable;

use super::budget::{Budget, Ticket};
use super::ops::FileOps;
use super::position::{Position, PositionGuard};
use super::privileges::{Caller, Inode, Modify, modified, remove_privileges};

/// What an open file allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum AccessMode {
    /// `O_RDONLY`
    Read,
    /// `O_WRONLY`
    Write,
    /// `O_RDWR`
    ReadWrite,
    /// `O_PATH`: stands for a place in the file system. Only a raw lookup finds it.
    Path,
}

impl AccessMode {
    /// Whether reading is allowed.
    pub const fn can_read(self) -> bool {
        matches!(self, AccessMode::Read | AccessMode::ReadWrite)
    }

    /// The mode that a guest's open flags ask for. Linux' fourth access mode, 3, is [`Path`](Self::Path)
    /// here: it allows neither.
    pub const fn from_linux(flags: u32) -> AccessMode {
        const O_PATH: u32 = 0o10_000_000;
        match flags & 3 {
            _ if flags & O_PATH != 0 => AccessMode::Path,
            0 => AccessMode::Read,
            1 => AccessMode::Write,
            2 => AccessMode::ReadWrite,
            _ => AccessMode::Path,
        }
    }

    /// Whether writing is allowed.
    pub const fn can_write(self) -> bool {
        matches!(self, AccessMode::Write | AccessMode::ReadWrite)
    }
}

bitflags::bitflags! {
    /// The status flags of an open file, shared by all its duplicates (`F_GETFL`), with Linux' values.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
    pub struct StatusFlags: u32 {
        /// `O_APPEND`
        const APPEND = 0o2000;
        /// `O_NONBLOCK`
        const NONBLOCK = 0o4000;
        /// `O_DIRECT`
        const DIRECT = 0o40000;
        /// `O_NOATIME`
        const NOATIME = 0o1000000;
        /// The file does not update its inode's times when it is written (`FMODE_NOCMTIME`).
        const NOCMTIME = 1 << 31;
    }
}

impl StatusFlags {
    /// The status flags among a guest's flags, of open or `F_SETFL`; others are left out, as Linux does.
    pub const fn from_linux(flags: u32) -> StatusFlags {
        StatusFlags::from_bits_truncate(flags).difference(StatusFlags::NOCMTIME)
    }
}

/// How to open a file.
#[derive(Clone, Debug)]
#[must_use]
pub struct OpenOptions {
    mode: AccessMode,
    status: StatusFlags,
    budget: Option<Budget>,
}

impl OpenOptions {
    /// With this access mode, no status flags, no budget.
    pub const fn new(mode: AccessMode) -> Self {
        OpenOptions { mode, status: StatusFlags::empty(), budget: None }
    }

    /// With these status flags.
    pub fn status(mut self, status: StatusFlags) -> Self {
        self.status = status;
        self
    }

    /// The file counts in this budget; `ENFILE` when it is used up.
    pub fn budget(mut self, budget: &Budget) -> Self {
        self.budget = Some(budget.clone());
        self
    }
}

/// An open file: a path reference of the runtime's, its operations, and what all duplicates of an fd
/// share: access mode, status flags, position.
///
/// When the last reference goes, [`FileOps::release`] runs once, then the path reference is dropped, then
/// the budget gets its share back. [`FileOps::flush`] runs once for every fd that is closed, if the table
/// was made by [`File::table_options`].
pub struct File<P, O: FileOps<P> = ()> {
    mode: AccessMode,
    status: AtomicU32,
    position: Position,
    /// `None` for O_PATH: it has no operations. This, the path, the ticket: dropped in this order.
    ops: Option<O>,
    path: P,
    _ticket: Option<Ticket>,
}

impl<P, O: FileOps<P>> File<P, O> {
    /// Opens a file. **Consumes the path reference**: on success the file owns it, on failure it is
    /// dropped here, once; no counter of it is touched on the way.
    ///
    /// `hook` is the runtime's open: it makes the operations. For [`AccessMode::Path`] it is not called.
    ///
    /// # Errors
    /// `ENFILE` when the budget is used up, before the hook is called; the hook's error.
    pub fn open(
        path: P,
        options: &OpenOptions,
        hook: impl FnOnce(&P) -> Result<O, Errno>,
    ) -> Result<Self, Errno> {
        let ticket = options.budget.as_ref().map(Budget::take).transpose()?;
        let ops = match options.mode {
            AccessMode::Path => None,
            _ => Some(hook(&path)?),
        };
        Ok(Self::assemble(path, options, ops, ticket))
    }

    /// As [`open`](Self::open), for a caller that keeps its reference: clones it, once.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_borrowed(
        path: &P,
        options: &OpenOptions,
        hook: impl FnOnce(&P) -> Result<O, Errno>,
    ) -> Result<Self, Errno>
    where
        P: Clone,
    {
        Self::open(path.clone(), options, hook)
    }

    /// Opens a file whose path reference comes into being by the open, as with `O_CREAT`: the hook makes
    /// both. The budget is asked before, so that nothing is created in vain.
    ///
    /// # Errors
    /// `ENFILE`; the hook's error.
    pub fn create(
        options: &OpenOptions,
        hook: impl FnOnce() -> Result<(P, O), Errno>,
    ) -> Result<Self, Errno> {
        let ticket = options.budget.as_ref().map(Budget::take).transpose()?;
        let (path, ops) = hook()?;
        Ok(Self::assemble(path, options, Some(ops), ticket))
    }

    fn assemble(path: P, options: &OpenOptions, ops: Option<O>, ticket: Option<Ticket>) -> Self {
        File {
            mode: options.mode,
            // Relaxed, here and below: flags, nothing is reached through them. Not the model checker's
            // atomics: one word, any value it ever had is right.
            status: AtomicU32::new(options.status.bits()),
            position: Position::new(),
            ops,
            path,
            _ticket: ticket,
        }
    }

    /// Options for a table of such files, which [flushes](Self::flush) them when their fds are closed.
    ///
    /// Not for a table whose numbers are handles for files that somebody else's fds refer to, as in a FUSE
    /// server: there a flush is a request of its own.
    pub const fn table_options() -> Options<Self> {
        Options::new().on_close(Self::flush)
    }

    /// What is done for each fd that is closed: calls [`FileOps::flush`]. Nothing for O_PATH.
    ///
    /// # Errors
    /// Those of the operations.
    pub fn flush(&self, table: TableId) -> Result<(), Errno> {
        self.ops.as_ref().map_or(Ok(()), |ops| ops.flush(&self.path, table))
    }

    /// The path reference.
    pub fn path(&self) -> &P {
        &self.path
    }

    /// The operations.
    ///
    /// # Errors
    /// `EBADF` for O_PATH, which has none.
    pub fn ops(&self) -> Result<&O, BadFd> {
        self.ops.as_ref().ok_or(BadFd)
    }

    /// The access mode.
    pub fn mode(&self) -> AccessMode {
        self.mode
    }

    /// The status flags (`F_GETFL`).
    pub fn status(&self) -> StatusFlags {
        StatusFlags::from_bits_retain(self.status.load(Ordering::Relaxed))
    }

    /// Sets the status flags (`F_SETFL`).
    pub fn set_status(&self, status: StatusFlags) {
        self.status.store(status.bits(), Ordering::Relaxed);
    }

    /// Where the next read or write begins, without waiting for one that goes on.
    pub fn position(&self) -> u64 {
        self.position.get()
    }

    /// The position, for a call that reads and moves it; others wait. For a caller that holds its task's
    /// [`Files`] exclusively [`Files::lock_position`] saves the lock where it can.
    #[doc(alias = "fdget_pos")]
    pub fn lock_position(&self) -> PositionGuard<'_> {
        self.position.lock()
    }
}

impl<P: HasInode, O: FileOps<P>> File<P, O> {
    /// What a write does to the inode: strips privileges, then updates times, see [`modified`].
    ///
    /// # Errors
    /// The inode's; `EAGAIN` with NOWAIT.
    pub fn modified(&self, caller: Caller, how: Modify) -> Result<(), Errno> {
        modified(self.path.inode(), caller, self.with_status(how))
    }

    /// Strips privileges only, see [`remove_privileges`].
    ///
    /// # Errors
    /// The inode's; `EAGAIN` with NOWAIT.
    pub fn remove_privileges(&self, caller: Caller, how: Modify) -> Result<(), Errno> {
        remove_privileges(self.path.inode(), caller, how)
    }

    fn with_status(&self, how: Modify) -> Modify {
        if self.status().contains(StatusFlags::NOCMTIME) { how | Modify::NOCMTIME } else { how }
    }
}

/// A path reference that leads to an inode, for [`File::modified`].
pub trait HasInode {
    /// The inode.
    type Inode: Inode;

    /// The inode the path refers to.
    fn inode(&self) -> &Self::Inode;
}

impl<I: Inode> HasInode for Arc<I> {
    type Inode = I;

    fn inode(&self) -> &I {
        self
    }
}

impl<I: Inode> HasInode for &I {
    type Inode = I;

    fn inode(&self) -> &I {
        self
    }
}

impl<P, O: FileOps<P>> Drop for File<P, O> {
    fn drop(&mut self) {
        if let Some(ops) = &mut self.ops {
            ops.release(&self.path);
        }
    }
}

impl<P: fmt::Debug, O: FileOps<P>> fmt::Debug for File<P, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File")
            .field("path", &self.path)
            .field("mode", &self.mode)
            .field("status", &self.status())
            .field("position", &self.position())
            .finish_non_exhaustive()
    }
}

impl<P, O: FileOps<P>> Limited<'_, File<P, O>> {
    /// Opens a file into the table: takes the number first, so that a full table is `EMFILE` before the
    /// hook runs; then opens; then installs. If the open fails or panics the number is free again. Consumes
    /// the path reference in any case.
    ///
    /// # Errors
    /// `EMFILE`, `ENOMEM`; then as [`File::open`].
    pub fn open_file(
        &self,
        path: P,
        options: &OpenOptions,
        flags: FdFlags,
        hook: impl FnOnce(&P) -> Result<O, Errno>,
    ) -> Result<Fd, Errno> {
        let reservation = self.reserve()?;
        let file = File::open(path, options, hook)?;
        Ok(reservation.install(file, flags))
    }

    /// As [`open_file`](Self::open_file), for a file that the open creates, see [`File::create`].
    ///
    /// # Errors
    /// `EMFILE`, `ENOMEM`; then as [`File::create`].
    pub fn create_file(
        &self,
        options: &OpenOptions,
        flags: FdFlags,
        hook: impl FnOnce() -> Result<(P, O), Errno>,
    ) -> Result<Fd, Errno> {
        let reservation = self.reserve()?;
        let file = File::create(options, hook)?;
        Ok(reservation.install(file, flags))
    }
}

impl<P, O: FileOps<P>> FdTable<File<P, O>> {
    /// See [`Limited::open_file`].
    ///
    /// # Errors
    /// As there.
    pub fn open_file(
        &self,
        path: P,
        options: &OpenOptions,
        flags: FdFlags,
        hook: impl FnOnce(&P) -> Result<O, Errno>,
    ) -> Result<Fd, Errno> {
        self.limited(self.limit()).open_file(path, options, flags, hook)
    }

    /// See [`Limited::create_file`].
    ///
    /// # Errors
    /// As there.
    pub fn create_file(
        &self,
        options: &OpenOptions,
        flags: FdFlags,
        hook: impl FnOnce() -> Result<(P, O), Errno>,
    ) -> Result<Fd, Errno> {
        self.limited(self.limit()).create_file(options, flags, hook)
    }

    /// As [`get`](FdTable::get), which finds any file, but refuses O_PATH: for what works on the file and not
    /// on its place.
    ///
    /// # Errors
    /// `EBADF`.
    #[doc(alias = "fget")]
    pub fn get_file(&self, fd: impl FdLike) -> Result<Ref<'_, File<P, O>>, BadFd> {
        self.get_where(fd, |mode| mode != AccessMode::Path)
    }

    /// As [`get_file`](Self::get_file), for a file that may be read.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn get_readable(&self, fd: impl FdLike) -> Result<Ref<'_, File<P, O>>, BadFd> {
        self.get_where(fd, AccessMode::can_read)
    }

    /// As [`get_file`](Self::get_file), for a file that may be written.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn get_writable(&self, fd: impl FdLike) -> Result<Ref<'_, File<P, O>>, BadFd> {
        self.get_where(fd, AccessMode::can_write)
    }

    fn get_where(
        &self,
        fd: impl FdLike,
        allows: impl FnOnce(AccessMode) -> bool,
    ) -> Result<Ref<'_, File<P, O>>, BadFd> {
        let file = self.get(fd)?;
        if allows(file.mode) { Ok(file) } else { Err(BadFd) }
    }
}

impl<P, O: FileOps<P>> Files<File<P, O>> {
    /// The position of the file at `fd`, for a call that reads and moves it. The lock is taken only where
    /// somebody else can share the position: not if this task has the table for itself and the file has no
    /// other fd and no handle. (An observer that gets hold of the file afterwards is not kept waiting.)
    ///
    /// # Errors
    /// `EBADF` if `fd` is not open, or is O_PATH.
    #[doc(alias = "fdget_pos")]
    pub fn lock_position(&mut self, fd: impl FdLike) -> Result<Positioned<'_, P, O>, BadFd> {
        let (file, exclusive) = self.borrow_exclusive(fd)?;
        if file.mode == AccessMode::Path {
            return Err(BadFd);
        }
        Ok(Positioned { file, exclusive })
    }
}

/// A file whose position this task is about to use, see [`Files::lock_position`].
pub struct Positioned<'t, P, O: FileOps<P>> {
    file: Ref<'t, File<P, O>>,
    exclusive: bool,
}

impl<P, O: FileOps<P>> Positioned<'_, P, O> {
    /// The file.
    pub fn file(&self) -> &File<P, O> {
        &self.file
    }

    /// The position.
    pub fn position(&mut self) -> PositionGuard<'_> {
        if self.exclusive {
            self.file.position.assume_exclusive()
        } else {
            self.file.position.lock()
        }
    }
}

impl<P: fmt::Debug, O: FileOps<P>> fmt::Debug for Positioned<'_, P, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}
