//! What a runtime brings to a file: its operations.

use alloc::boxed::Box;

use crate::error::Errno;
use crate::options::TableId;

/// The operations of an open file, as the runtime implements them. All have defaults: implement
/// what there is to do.
///
/// `P` is the runtime's path reference, which the file owns: a counted pair such as mount and
/// directory entry. Data transfer is not here: the layer never calls it, so a runtime adds its own
/// `read` and `write` to its type, or to its trait objects.
pub trait FileOps<P> {
    /// Called once for every fd of the file that is closed, also while others refer to it, with the
    /// identity of the table it was in. The error is what close returns; the fd is closed all the same.
    #[doc(alias = "fops_flush")]
    fn flush(&self, path: &P, table: TableId) -> Result<(), Errno> {
        let (_, _) = (path, table);
        Ok(())
    }

    /// Called once, when the last reference is gone; the path reference is dropped after it.
    #[doc(alias = "fops_release")]
    fn release(&mut self, path: &P) {
        let _ = path;
    }
}

/// A file without operations of its own.
impl<P> FileOps<P> for () {}

/// The type-erased form, for a runtime with many kinds of files: `File<P, Box<dyn FileOps<P>>>`, or a
/// trait of the runtime's own that has `FileOps` as its supertrait.
impl<P, O: FileOps<P> + ?Sized> FileOps<P> for Box<O> {
    fn flush(&self, path: &P, table: TableId) -> Result<(), Errno> {
        (**self).flush(path, table)
    }

    fn release(&mut self, path: &P) {
        (**self).release(path);
    }
}
