//! Iteration over the open file descriptors.

use core::fmt;
use core::iter::FusedIterator;

use crate::fd::{Fd, FdFlags};
use crate::handle::Ref;
use crate::table::FdTable;

/// An open file descriptor, as [`FdTable::iter`] shows it.
#[non_exhaustive]
pub struct Entry<'t, T> {
    /// The number.
    pub fd: Fd,
    /// Its flags, at the instant of the file.
    pub flags: FdFlags,
    /// The file.
    pub file: Ref<'t, T>,
}

impl<T: fmt::Debug> fmt::Debug for Entry<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("fd", &self.fd)
            .field("flags", &self.flags)
            .field("file", &self.file)
            .finish()
    }
}

/// The open file descriptors in ascending order, see [`FdTable::iter`].
pub struct Iter<'t, T> {
    table: &'t FdTable<T>,
    /// The next number to look at.
    next: u32,
}

impl<'t, T> Iter<'t, T> {
    pub(crate) fn new(table: &'t FdTable<T>) -> Self {
        Iter { table, next: 0 }
    }
}

impl<'t, T> Iterator for Iter<'t, T> {
    type Item = Entry<'t, T>;

    fn next(&mut self) -> Option<Entry<'t, T>> {
        for (fd, slot) in self.table.slots().iter_from(self.next) {
            self.next = fd + 1;
            if let Some((file, left)) = slot.acquire() {
                let (fd, flags) = (Fd::from_table(fd), left.flags());
                let file = Ref::counted(file, slot, left);
                return Some(Entry { fd, flags, file });
            }
        }
        None
    }
}

impl<T> FusedIterator for Iter<'_, T> {}

impl<T> fmt::Debug for Iter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("next", &self.next).finish_non_exhaustive()
    }
}
