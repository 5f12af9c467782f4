//! How a table is set up, and the few words of it that are read often and written rarely.

use core::fmt;
use core::num::NonZeroU64;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::block::{OwnedRef, SlotRef};
use crate::error::{Errno, RestoreError};
use crate::fd::{FdFlags, FdLike};
use crate::geometry::{MAX_CEILING, MAX_DEFAULT, WORD};
use crate::table::FdTable;

/// The identity of a table, unique in the process: what a flush hook is told, as POSIX locks need.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TableId(NonZeroU64);

impl TableId {
    fn next() -> TableId {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: only uniqueness matters. It can't wrap: that takes 2^64 tables.
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        TableId(NonZeroU64::new(id).unwrap_or(NonZeroU64::MAX))
    }

    /// The identity as a number.
    pub fn get(self) -> NonZeroU64 {
        self.0
    }
}

/// What is called once for every fd that is closed, before the file's reference is dropped: flush.
pub type CloseHook<T> = fn(file: &T, table: TableId) -> Result<(), Errno>;

/// How to set up a table.
///
/// ```
/// use fdtable::{FdTable, Options};
///
/// let table: FdTable<String> = Options::new().limit(1024).build();
/// assert_eq!(table.limit(), 1024);
/// ```
#[must_use]
pub struct Options<T> {
    max: u32,
    limit: u64,
    on_close: Option<CloseHook<T>>,
}

impl<T> Options<T> {
    /// A `max` of 1 048 576, no limit below that, no hook.
    pub const fn new() -> Self {
        Options { max: MAX_DEFAULT, limit: u64::MAX, on_close: None }
    }

    /// The table's ceiling: no number reaches it (Linux' `nr_open`). Rounded down to a multiple of
    /// 64 and brought into `64 ..= 2_147_483_584`.
    pub const fn max(mut self, max: u64) -> Self {
        self.max = clamp_max(max);
        self
    }

    /// The soft limit that calls without a limit of their own observe (`RLIMIT_NOFILE`).
    pub const fn limit(mut self, limit: u64) -> Self {
        self.limit = limit;
        self
    }

    /// The flush hook: called once for each fd that is closed, by close, as the victim of a dup2,
    /// in a range, by exec or with the table; not for files that the caller takes out by
    /// [`remove`](FdTable::remove) or [`replace`](FdTable::replace). No lock is held; it may use the
    /// table.
    pub const fn on_close(mut self, hook: CloseHook<T>) -> Self {
        self.on_close = Some(hook);
        self
    }

    /// An empty table. Allocates nothing.
    pub fn build(self) -> FdTable<T> {
        FdTable::with_config(Config::new(self.max, self.limit, self.on_close))
    }

    /// A table with these files in it, as a checkpoint has recorded them. The limit does not count:
    /// file descriptors above it stay usable. It then answers as one that got there by operations.
    ///
    /// # Errors
    /// [`RestoreError`] for a number that occurs twice or is not below `max`, and when there is no
    /// memory. All files are dropped then, and not flushed: they were never open here.
    ///
    /// ```
    /// use fdtable::{FdFlags, Options, RestoreError};
    ///
    /// let none = FdFlags::empty();
    /// let table = Options::new().restore([(0, "a", none), (2, "b", none)])?;
    /// assert_eq!(table.insert("c", none).unwrap(), 1);
    ///
    /// let twice = Options::new().restore([(5, "a", none), (5, "b", none)]);
    /// assert_eq!(twice.err(), Some(RestoreError::Duplicate));
    /// # Ok::<(), RestoreError>(())
    /// ```
    pub fn restore<N: FdLike, F: Into<OwnedRef<T>>>(
        self,
        items: impl IntoIterator<Item = (N, F, FdFlags)>,
    ) -> Result<FdTable<T>, RestoreError> {
        let on_close = self.on_close;
        let mut table = Options { on_close: None, ..self }.build();
        for (fd, file, flags) in items {
            table.place(fd, file.into(), flags)?;
        }
        table.config.on_close = on_close;
        Ok(table)
    }
}

impl<T> Default for Options<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for Options<T> {
    fn clone(&self) -> Self {
        Options { max: self.max, limit: self.limit, on_close: self.on_close }
    }
}

impl<T> fmt::Debug for Options<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("max", &self.max)
            .field("limit", &self.limit)
            .field("on_close", &self.on_close.is_some())
            .finish()
    }
}

pub(crate) const fn clamp_max(max: u64) -> u32 {
    if max >= MAX_CEILING as u64 {
        MAX_CEILING
    } else if max < WORD as u64 {
        WORD as u32
    } else {
        max as u32 & !(WORD as u32 - 1)
    }
}

/// A table's settings, and the extent of its storage. Not the model checker's atomics: each call
/// reads one of them once, and any value that it ever had is right.
pub(crate) struct Config<T> {
    pub(crate) limit: AtomicU64,
    pub(crate) max: AtomicU32,
    /// One past the highest number with storage.
    storage_end: AtomicU32,
    /// Bytes of storage outside of the table itself.
    bytes: AtomicUsize,
    pub(crate) on_close: Option<CloseHook<T>>,
    pub(crate) id: TableId,
}

impl<T> Config<T> {
    fn new(max: u32, limit: u64, on_close: Option<CloseHook<T>>) -> Self {
        Config {
            limit: AtomicU64::new(limit),
            max: AtomicU32::new(max),
            storage_end: AtomicU32::new(WORD as u32),
            bytes: AtomicUsize::new(0),
            on_close,
            id: TableId::next(),
        }
    }

    #[inline]
    pub(crate) fn has_flush_hook(&self) -> bool {
        self.on_close.is_some()
    }

    /// Calls the flush hook for an fd that has been closed.
    #[inline]
    pub(crate) fn flush(&self, file: &SlotRef<T>) -> Result<(), Errno> {
        match self.on_close {
            Some(hook) => hook(file, self.id),
            None => Ok(()),
        }
    }

    /// The same settings for a new table. Relaxed, here and below: see the type.
    pub(crate) fn copy(&self) -> Self {
        let max = self.max.load(Ordering::Relaxed);
        Config::new(max, self.limit.load(Ordering::Relaxed), self.on_close)
    }

    pub(crate) fn grew(&self, bytes: usize, storage_end: u32) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.storage_end.fetch_max(storage_end, Ordering::Relaxed);
    }

    pub(crate) fn storage_end(&self) -> u32 {
        self.storage_end.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}
