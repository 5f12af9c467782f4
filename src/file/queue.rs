//! Deferred drop: files whose last reference went in a place that must not run their release.

use core::fmt;

use alloc::collections::VecDeque;

use crate::block::{OwnedRef, Unreferenced};
use crate::error::CloseError;
use crate::fd::FdLike;
use crate::sync::Mutex;
use crate::table::FdTable;

/// Files that nobody refers to any more and that wait for their destructor, in the order in which their
/// last references went.
///
/// Dropping files where they are closed is faster, and is what this crate does by default; a queue is for
/// a caller that must not run destructors where it is: in an interrupt handler, under a lock of its own, on
/// a stack that is nearly used up. Only files whose *last* reference is put here are queued, so nothing
/// runs before readers have left. The owner drains the queue; what is left is drained by its drop.
///
/// ```
/// use fdtable::{FdFlags, FdTable};
/// use fdtable::file::DeferredQueue;
///
/// struct Slow;
/// impl Drop for Slow {
///     fn drop(&mut self) { /* writes back, waits for a device, … */ }
/// }
///
/// let table = FdTable::new();
/// let queue = DeferredQueue::new();
/// let fd = table.insert(Slow, FdFlags::empty()).unwrap();
/// // In the timer interrupt: the fd is closed, the release must wait.
/// table.close_deferred(fd, &queue)?;
/// assert_eq!(queue.len(), 1);
/// // In the worker:
/// assert_eq!(queue.drain(16), 1);
/// # Ok::<(), fdtable::CloseError>(())
/// ```
///
/// Putting a file takes the queue's own lock for some nanoseconds (nothing is dropped under it) and may
/// allocate.
pub struct DeferredQueue<T> {
    files: Mutex<VecDeque<Unreferenced<T>>>,
}

impl<T> DeferredQueue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        DeferredQueue { files: Mutex::new(VecDeque::new()) }
    }

    /// How many files wait.
    pub fn len(&self) -> usize {
        self.files.lock().len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Runs the destructors of up to `count` files, oldest first, here and now; returns how many. Files
    /// that are put meanwhile count too. A panic of a destructor comes through, and leaves the rest
    /// queued.
    pub fn drain(&self, count: usize) -> usize {
        let mut done = 0;
        while done < count {
            let Some(file) = self.files.lock().pop_front() else { break };
            done += 1;
            drop(file);
        }
        done
    }

    fn push(&self, file: Unreferenced<T>) {
        self.files.lock().push_back(file);
    }
}

impl<T> OwnedRef<T> {
    /// Drops the reference; if it is the last one the file is queued instead of destroyed.
    pub fn put_deferred(self, queue: &DeferredQueue<T>) {
        if let Some(file) = self.into_unreferenced() {
            queue.push(file);
        }
    }
}

impl<T> FdTable<T> {
    /// As [`close`](FdTable::close), but if the fd's reference is the last one the file is queued instead
    /// of destroyed. The flush hook runs here.
    ///
    /// # Errors
    /// As [`close`](FdTable::close).
    pub fn close_deferred(
        &self,
        fd: impl FdLike,
        queue: &DeferredQueue<T>,
    ) -> Result<(), CloseError> {
        let fd = fd.to_fd().map_err(|_| CloseError::BadFd)?;
        let file = self.take(fd.get()).map_err(|_| CloseError::BadFd)?;
        let flushed = self.config.flush(&file);
        file.into_owned().put_deferred(queue);
        flushed.map_err(CloseError::Flush)
    }
}

impl<T> Default for DeferredQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for DeferredQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeferredQueue").field("len", &self.len()).finish()
    }
}
