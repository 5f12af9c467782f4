//! A file's block, the reference count in it, and the two kinds of reference that own a share.
//!
//! Every handle on a file is counted once: either in the file's own counter `rc` or in the word of
//! a slot that the file sits in. A slot is worth [`BIAS`] in `rc`. At every moment
//!
//! > handles = rc − BIAS · slots + Σ counts of these slots          (invariant I1)
//!
//! where a [`SlotRef`] taken out of a slot still stands for that slot, with its count.

use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr::NonNull;

use alloc::boxed::Box;

use crate::geometry::{ADDRESS_BITS, BIAS};
use crate::sync::{AtomicUsize, Ordering};

/// The bits of an address that a slot has no room for.
const SPARE: u32 = usize::BITS - ADDRESS_BITS;

/// A file as it lies in memory. At least 8-aligned: the three low bits of its address are free for
/// a slot's flags. Not more: malloc serves over-aligned blocks at a third of the speed.
#[repr(C, align(8))]
pub(crate) struct Block<T> {
    rc: AtomicUsize,
    value: T,
}

/// The address of a block with the bits beyond [`ADDRESS_BITS`] restored.
#[inline(always)]
pub(crate) fn canonical(address: usize) -> usize {
    if cfg!(target_os = "none") { kernel_address(address) } else { address << SPARE >> SPARE }
}

/// A kernel lives in the upper half: sign-extends.
#[inline(always)]
fn kernel_address(address: usize) -> usize {
    ((address << SPARE) as isize >> SPARE) as usize
}

/// An owned reference to a file: `'static`, one word, like an `Arc`.
///
/// It is what a table stores and what [`remove`](crate::FdTable::remove) gives back. It keeps the
/// file alive when the fd is closed; whoever drops the last reference runs the destructor, there
/// and then. Operations that take a file accept a plain `T` as well.
///
/// Clone: one relaxed read-modify-write. Drop: one, or none for the last reference. Wait-free.
pub struct OwnedRef<T> {
    /// Invariant I2: a handle counted as I1 says; so the block is alive.
    block: NonNull<Block<T>>,
}

// SAFETY: as `Arc`: references on several threads give `&T` to each (T: Sync), and the last one
// drops the value where it is (T: Send).
unsafe impl<T: Send + Sync> Send for OwnedRef<T> {}
// SAFETY: as above; `&OwnedRef` can be cloned.
unsafe impl<T: Send + Sync> Sync for OwnedRef<T> {}

impl<T> OwnedRef<T> {
    /// Moves `value` to the heap.
    ///
    /// # Panics
    /// If the allocator hands out an address that does not fit 48 bits, which no allocator of a
    /// 64-bit system does unasked; [`try_new`](Self::try_new) returns the value instead.
    ///
    /// When memory is exhausted this aborts, as `Box::new` does.
    pub fn new(value: T) -> Self {
        match Self::adopt(Box::new(Block { rc: AtomicUsize::new(1), value })) {
            Ok(file) => file,
            Err(_) => panic!("a file's address must fit {ADDRESS_BITS} bits"),
        }
    }

    /// As [`new`](Self::new), without an abort or a panic.
    ///
    /// # Errors
    /// The value itself comes back when there is no memory for it.
    pub fn try_new(value: T) -> Result<Self, T> {
        let layout = core::alloc::Layout::new::<Block<T>>();
        // SAFETY: the layout's size is not zero, a block holds a counter.
        let memory = unsafe { alloc::alloc::alloc(layout) }.cast::<Block<T>>();
        if memory.is_null() {
            return Err(value);
        }
        // SAFETY: `memory` was just allocated with the layout of a block.
        unsafe { memory.write(Block { rc: AtomicUsize::new(1), value }) };
        // SAFETY: `memory` holds a block, was allocated as a box would be, and is owned by nobody.
        Self::adopt(unsafe { Box::from_raw(memory) })
    }

    fn adopt(block: Box<Block<T>>) -> Result<Self, T> {
        let block = NonNull::from(Box::leak(block));
        if canonical(block.addr().get()) != block.addr().get() {
            // SAFETY: leaked above, and not shared yet.
            return Err(unsafe { Box::from_raw(block.as_ptr()) }.value);
        }
        Ok(OwnedRef { block })
    }

    /// The value, if this is the only reference and no fd refers to the file.
    ///
    /// # Errors
    /// The reference itself comes back if there are others.
    pub fn try_into_inner(self) -> Result<T, Self> {
        if !self.is_last() {
            return Err(self);
        }
        let this = ManuallyDrop::new(self);
        // SAFETY: this was the last reference: no one else can reach the block, and `ManuallyDrop` keeps
        // our own drop from it.
        Ok(unsafe { Box::from_raw(this.block.as_ptr()) }.value)
    }

    /// The value, to be changed, if this is the only reference and no fd refers to the file.
    ///
    /// So a file that [`remove`](crate::FdTable::remove) gave back can be used again, without an
    /// allocation:
    ///
    /// ```
    /// use fdtable::{FdFlags, FdTable};
    ///
    /// let table = FdTable::new();
    /// let fd = table.insert(String::from("first"), FdFlags::empty()).unwrap();
    /// let mut file = table.remove(fd).unwrap();
    /// assert!(table.get(fd).is_err());
    /// *file.get_mut().unwrap() = String::from("second");
    /// table.insert(file, FdFlags::empty()).unwrap();
    /// ```
    pub fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: this is the last reference, and the exclusive borrow keeps it from being cloned or placed
        // in a slot while the result lives.
        self.is_last().then(|| unsafe { &mut (*self.block.as_ptr()).value })
    }

    /// Whether this is the only handle and no slot holds the file (I1, I3): then nobody else can reach it, and
    /// all others are done with it.
    fn is_last(&self) -> bool {
        // Acquire pairs with the Release of every debit and credit: all other holders' uses of the
        // value lie before. Anything but 1: others hold it.
        self.rc().load(Ordering::Acquire) == 1
    }

    /// As `is_last`, for who does no more than take a shorter way then: the drop looks again.
    pub(crate) fn seems_last(&self) -> bool {
        // Relaxed: 1 means that nobody else has a reference; their uses are the drop's matter.
        self.rc().load(Ordering::Relaxed) == 1
    }

    /// Whether both are references to one file.
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        this.block == other.block
    }

    /// The block, whose count passes to the caller.
    #[inline(always)]
    pub(crate) fn into_block(self) -> NonNull<Block<T>> {
        ManuallyDrop::new(self).block
    }

    /// # Safety
    /// The caller passes on one counted handle (I2).
    #[inline(always)]
    pub(crate) unsafe fn from_block(block: NonNull<Block<T>>) -> Self {
        OwnedRef { block }
    }

    #[inline(always)]
    pub(crate) fn block(&self) -> NonNull<Block<T>> {
        self.block
    }

    #[inline(always)]
    fn rc(&self) -> &AtomicUsize {
        // SAFETY: the block is alive by I2.
        unsafe { &(*self.block.as_ptr()).rc }
    }

    /// Whether no handle is left on a file that sits in one slot, with this count (I1).
    pub(crate) fn is_only_in_one_slot(&self, count: usize) -> bool {
        // Acquire pairs with the debits: who held the file is done with it.
        self.rc().load(Ordering::Acquire) + count == BIAS
    }

    /// Moves `k` handles from a slot's count to the file: half of a transfer, see `Slot::acquire`.
    pub(crate) fn credit(&self, k: usize) {
        // Relaxed: the slot's compare-and-swap that follows is what publishes it.
        self.rc().fetch_add(k, Ordering::Relaxed);
    }

    /// Takes back what `credit` added. The caller's own handle keeps the count from reaching 0.
    pub(crate) fn undo_credit(&self, k: usize) {
        // Relaxed: nothing is handed over, the sum is what it was before.
        self.rc().fetch_sub(k, Ordering::Relaxed);
    }
}

impl<T> OwnedRef<T> {
    /// Gives the handle up: it must not be used again. Whether it was the last one, and no slot holds
    /// the file: then the block is the caller's alone.
    #[inline(always)]
    fn release(&self) -> bool {
        // The last reference needs no read-modify-write: by I1 and I3, 1 means that no slot holds
        // the file and no one else a handle, so no one can change it. Acquire pairs with the Release
        // of the others' debits and credits: their uses lie before the destructor. A stale value
        // other than 1 only leads to the subtraction.
        //
        // AcqRel on that: Release, our uses lie before the destructor whoever runs it; Acquire, if it
        // is we, the others' do.
        self.rc().load(Ordering::Acquire) == 1 || self.rc().fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Drops the reference. If it was the last one the file is the result's, which destroys it when it is
    /// dropped.
    pub(crate) fn into_unreferenced(self) -> Option<Unreferenced<T>> {
        let this = ManuallyDrop::new(self);
        this.release().then(|| Unreferenced { block: this.block })
    }
}

/// A file that no handle and no slot refers to any more, and that is not destroyed yet.
pub(crate) struct Unreferenced<T> {
    block: NonNull<Block<T>>,
}

// SAFETY: it owns the value, as a box does; `&Unreferenced` gives no access.
unsafe impl<T: Send> Send for Unreferenced<T> {}

impl<T> Drop for Unreferenced<T> {
    fn drop(&mut self) {
        // SAFETY: made only when the last handle went and no slot held the file.
        unsafe { destroy(self.block) };
    }
}

impl<T> Deref for OwnedRef<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the block is alive by I2, and only shared references to its value exist.
        unsafe { &(*self.block.as_ptr()).value }
    }
}

impl<T> Clone for OwnedRef<T> {
    #[inline]
    fn clone(&self) -> Self {
        // Relaxed: the new handle comes from one that keeps the file alive; as `Arc`.
        self.rc().fetch_add(1, Ordering::Relaxed);
        OwnedRef { block: self.block }
    }
}

impl<T> Drop for OwnedRef<T> {
    #[inline]
    fn drop(&mut self) {
        if self.release() {
            // SAFETY: the last handle, and no slot (I1): the block is ours alone.
            unsafe { destroy(self.block) };
        }
    }
}

impl<T> From<T> for OwnedRef<T> {
    fn from(value: T) -> Self {
        OwnedRef::new(value)
    }
}

impl<T: fmt::Debug> fmt::Debug for OwnedRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> AsRef<T> for OwnedRef<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

/// The reference that a slot owns: `BIAS` in the file's counter, and the count of handles that
/// were given out through the slot and not counted in the file yet.
///
/// On its way into a slot the count is 0; a slot that is emptied gives it back with the count it
/// had. Until it is dropped or converted it stands for the slot in I1, so the file stays alive: the
/// flush hook runs through it.
pub(crate) struct SlotRef<T> {
    block: NonNull<Block<T>>,
    count: usize,
}

// SAFETY: as `OwnedRef`.
unsafe impl<T: Send + Sync> Send for SlotRef<T> {}

impl<T> SlotRef<T> {
    /// # Safety
    /// The caller passes on `BIAS` of `block`'s counter, and `count` handles not counted there.
    #[inline(always)]
    pub(crate) unsafe fn from_raw(block: NonNull<Block<T>>, count: usize) -> Self {
        SlotRef { block, count }
    }

    /// The block, for a slot that takes over its `BIAS`.
    #[inline(always)]
    pub(crate) fn into_block(self) -> NonNull<Block<T>> {
        debug_assert_eq!(self.count, 0);
        ManuallyDrop::new(self).block
    }

    /// Moves the count to the file, so that the reference can enter a slot again.
    pub(crate) fn settled(mut self) -> Self {
        if self.count > 0 {
            // Relaxed: the slot that it enters publishes it, as in a transfer. Until then the file only
            // looks less referenced than it is, but by less than our BIAS.
            self.rc().fetch_add(self.count, Ordering::Relaxed);
            self.count = 0;
        }
        self
    }

    /// One more slot reference to the same file.
    ///
    /// # Safety
    /// A slot that holds the file must keep it until this returns.
    pub(crate) unsafe fn duplicate(block: NonNull<Block<T>>) -> Self {
        // SAFETY: the block is alive, a slot holds it.
        let rc = unsafe { &(*block.as_ptr()).rc };
        // Relaxed: as a clone.
        rc.fetch_add(BIAS, Ordering::Relaxed);
        SlotRef { block, count: 0 }
    }

    #[inline(always)]
    fn rc(&self) -> &AtomicUsize {
        // SAFETY: the block is alive, it holds our BIAS.
        unsafe { &(*self.block.as_ptr()).rc }
    }

    /// What the counter gains when the slot's BIAS goes and its count comes; negative, wrapping.
    #[inline(always)]
    fn balance(&self) -> usize {
        self.count.wrapping_sub(BIAS)
    }

    /// Whether nobody else holds the file. By I1 and I3 this can't be so while another slot has it.
    #[inline(always)]
    fn is_unique(&self) -> bool {
        // Acquire pairs with the Release of debits, credits and give-backs: their uses lie before
        // what we do to the file. A stale value only costs the read-modify-write.
        self.rc().load(Ordering::Acquire).wrapping_add(self.balance()) == 0
    }

    /// Turns the slot's share into a handle.
    #[inline]
    pub(crate) fn into_owned(self) -> OwnedRef<T> {
        if self.is_unique() {
            // Relaxed: nobody else can reach the counter.
            self.rc().store(1, Ordering::Relaxed);
        } else {
            // Relaxed: the handle that is left keeps the sum above 0, and its own drop releases and
            // acquires.
            self.rc().fetch_add(self.balance().wrapping_add(1), Ordering::Relaxed);
        }
        OwnedRef { block: ManuallyDrop::new(self).block }
    }
}

impl<T> From<OwnedRef<T>> for SlotRef<T> {
    #[inline]
    fn from(file: OwnedRef<T>) -> Self {
        // Acquire, not only to decide: the store ends the release sequence of earlier debits, so
        // their uses must come to lie before ours; the slot publishes both.
        if file.rc().load(Ordering::Acquire) == 1 {
            // Relaxed: the only handle, and no slot (I1, I3): nobody else can reach the counter.
            file.rc().store(BIAS, Ordering::Relaxed);
        } else {
            // Relaxed: as a clone.
            file.rc().fetch_add(BIAS - 1, Ordering::Relaxed);
        }
        SlotRef { block: file.into_block(), count: 0 }
    }
}

impl<T> Deref for SlotRef<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the block is alive, it holds our BIAS; only shared references exist.
        unsafe { &(*self.block.as_ptr()).value }
    }
}

impl<T> Drop for SlotRef<T> {
    #[inline]
    fn drop(&mut self) {
        let balance = self.balance();
        // AcqRel on the credit: Release, what was done through our slot lies before the destructor
        // whoever runs it; Acquire, if it is we, the others' uses do.
        if self.is_unique()
            || self.rc().fetch_add(balance, Ordering::AcqRel).wrapping_add(balance) == 0
        {
            // SAFETY: no handle and no slot is left (I1): the block is ours alone.
            unsafe { destroy(self.block) };
        }
    }
}

/// # Safety
/// No handle on the block and no slot with it is left.
unsafe fn destroy<T>(block: NonNull<Block<T>>) {
    // SAFETY: made by `OwnedRef::adopt` from a box; the caller is the last to know it.
    drop(unsafe { Box::from_raw(block.as_ptr()) });
}

#[cfg(all(test, not(loom)))]
mod tests {
    use alloc::sync::Arc;

    use super::*;

    fn rc<T>(file: &OwnedRef<T>) -> usize {
        file.rc().load(Ordering::Relaxed)
    }

    #[test]
    fn a_slot_reference_and_a_handle_turn_into_each_other() {
        let live = Arc::new(());
        let file = OwnedRef::new(Arc::clone(&live));
        let clone = file.clone();
        assert_eq!(rc(&file), 2);
        let placed = SlotRef::from(file);
        assert_eq!(rc(&clone), BIAS + 1);
        let file = placed.into_owned();
        assert_eq!(rc(&clone), 2);
        drop(clone);
        assert_eq!(rc(&file), 1);
        let placed = SlotRef::from(file);
        assert_eq!(rc(&placed.into_owned()), 1);
        assert_eq!(Arc::strong_count(&live), 1);
    }

    #[test]
    fn an_address_is_restored() {
        for address in [8, 0x7fff_ffff_fff8] {
            assert_eq!(canonical(address), address);
            assert_eq!(canonical(address | 0x5a5a << ADDRESS_BITS), address);
            assert_eq!(kernel_address(address | 0x5a5a << ADDRESS_BITS), address);
        }
        assert_eq!(kernel_address(0x5a5a_8000_0000_0008), 0xffff_8000_0000_0008);
    }

    #[test]
    fn the_value_comes_out_only_of_the_last_reference() {
        let file = OwnedRef::new(7);
        let clone = file.clone();
        let file = file.try_into_inner().unwrap_err();
        drop(clone);
        assert_eq!(file.try_into_inner().unwrap(), 7);
        assert_eq!(*OwnedRef::try_new(8).unwrap(), 8);
    }

    #[test]
    fn an_over_aligned_file_is_fine() {
        #[repr(align(256))]
        struct Page(u8);
        let file = OwnedRef::try_new(Page(1)).ok().unwrap();
        assert_eq!(file.0, 1);
        assert_eq!(core::ptr::from_ref(&*file).addr() % 256, 0);
    }
}
