//! What a lookup returns: a handle that keeps the file alive, tied to the table's borrow.

use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::Deref;

use crate::block::OwnedRef;
use crate::slot::{Left, Slot};

/// A handle on an open file, from a lookup: keeps the file alive while it exists, also after its fd
/// has been closed.
///
/// It derefs to the file and borrows the table. Dropping it gives its count back to the slot it came
/// from: one read-modify-write, on the line that the lookup has just used. If the fd was closed
/// meanwhile and this is the last reference, the file's destructor runs here. Lock-free.
///
/// For a handle that outlives the borrow see [`into_owned`](Ref::into_owned) and
/// [`FdTable::get_owned`](crate::FdTable::get_owned).
///
/// ```compile_fail,E0505
/// use fdtable::{FdFlags, FdTable};
///
/// let table = FdTable::new();
/// let fd = table.insert("file", FdFlags::empty()).unwrap();
/// let file = table.get(fd).unwrap();
/// drop(table); // `file` borrows the table: use `get_owned`, or drop `file` first
/// assert_eq!(*file, "file");
/// ```
pub struct Ref<'t, T> {
    /// With an origin, a handle of our own. Without, the table's `&mut` borrow keeps the slot as it
    /// is, and this one is not counted and never dropped.
    file: ManuallyDrop<OwnedRef<T>>,
    /// The slot that gave the handle out, and the word that this left there.
    origin: Option<(&'t Slot<T>, Left)>,
}

impl<'t, T> Ref<'t, T> {
    #[inline(always)]
    pub(crate) fn counted(file: OwnedRef<T>, origin: &'t Slot<T>, left: Left) -> Self {
        Ref { file: ManuallyDrop::new(file), origin: Some((origin, left)) }
    }

    /// A handle that costs no read-modify-write.
    ///
    /// # Safety
    /// While it exists nobody may change the slot.
    #[inline(always)]
    pub(crate) unsafe fn lent(slot: &'t Slot<T>) -> Option<Self> {
        // SAFETY: by the caller, for as long as the handle exists.
        unsafe { slot.lend() }.map(|file| Ref { file, origin: None })
    }

    #[inline(always)]
    pub(crate) fn lent_exclusively(slot: &'t mut Slot<T>) -> Option<Self> {
        // SAFETY: the exclusive borrow lasts as long as the handle.
        unsafe { Self::lent(slot) }
    }

    /// For a lent handle: whether nobody else holds the file, and no other slot, if `count` handles are
    /// counted in the slot that lent it.
    pub(crate) fn has_no_other_holder(&self, count: usize) -> bool {
        self.origin.is_none() && self.file.is_only_in_one_slot(count)
    }

    /// A reference that does not borrow the table. One read-modify-write.
    #[inline]
    pub fn to_owned(&self) -> OwnedRef<T> {
        OwnedRef::clone(&self.file)
    }

    /// Turns the handle into one that does not borrow the table, at no cost.
    #[inline]
    pub fn into_owned(self) -> OwnedRef<T> {
        if self.origin.is_none() {
            return self.to_owned();
        }
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is not used again.
        unsafe { ManuallyDrop::take(&mut this.file) }
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.file
    }
}

impl<T> Drop for Ref<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        let Some((origin, left)) = self.origin else { return };
        // SAFETY: we are being dropped, `file` is not used again.
        origin.give_back(unsafe { ManuallyDrop::take(&mut self.file) }, left);
    }
}

impl<T> From<Ref<'_, T>> for OwnedRef<T> {
    #[inline]
    fn from(handle: Ref<'_, T>) -> Self {
        handle.into_owned()
    }
}

impl<T> AsRef<T> for Ref<'_, T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
