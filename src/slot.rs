//! One slot: an atomic word, its states and its legal transitions.
//!
//! ```text
//!  63        48 47                      3   2    1       0
//! +------------+-------------------------+----+-------+-------+
//! |   count    |   address of the block  |MARK|CLOFORK|CLOEXEC|
//! +------------+-------------------------+----+-------+-------+
//! ```
//!
//! *address*: the file, or 0: the fd is not open. *count*: handles given out through this slot and
//! not yet returned or moved to the file; on an empty slot it is what late lookups left, and means
//! nothing. *MARK*: a fork has seen the slot; whoever wants to change a marked slot waits, except for
//! lookups and the return of handles, which ignore the mark. Flags on an empty slot are those that
//! `close_range` put on a reserved number.
//!
//! Who may call what follows from the number's state (invariant I4): `fill` and `vacate` belong to the
//! thread that has claimed the number; the others are compare-and-swaps that look at what is there.
//! Every change of a slot beyond the first word is made under the table's lock; the same functions
//! serve there and never meet a mark.

use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use crate::block::{Block, OwnedRef, SlotRef, canonical};
use crate::fd::FdFlags;
use crate::geometry::{ADDRESS_BITS, GIVE_BACK_TRIES, TRANSFER_AT};
use crate::sync::{AtomicPtr, ForUpdate as _, Ordering, Overwrite as _};

const FLAGS: usize = FdFlags::all().bits() as usize;
const MARK: usize = 4;
const LOW_BITS: usize = 7;
const COUNT_ONE: usize = 1 << ADDRESS_BITS;

static_assertions::const_assert_eq!(FLAGS & (MARK | !LOW_BITS), 0);
static_assertions::const_assert!(align_of::<Block<u8>>() > LOW_BITS);

/// The flags' bits in a word; bits that are no flag's would reach into the address.
#[inline(always)]
fn bits(flags: FdFlags) -> usize {
    flags.bits() as usize & FLAGS
}

/// The flags in a word, which is given as its address.
#[inline(always)]
fn flags_in(word: usize) -> FdFlags {
    FdFlags::from_bits_truncate((word & LOW_BITS) as u8)
}

/// A value of a slot's word. A pointer, so that the address keeps its provenance.
struct Word<T>(*mut Block<T>);

impl<T> Clone for Word<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Word<T> {}

impl<T> Word<T> {
    const EMPTY: Self = Word(core::ptr::null_mut());

    #[inline(always)]
    fn new(file: NonNull<Block<T>>, flags: FdFlags) -> Self {
        Word(file.as_ptr().map_addr(|address| address & (COUNT_ONE - 1) | bits(flags)))
    }

    #[inline(always)]
    fn block(self) -> Option<NonNull<Block<T>>> {
        NonNull::new(self.0.map_addr(|word| canonical(word) & !LOW_BITS))
    }

    #[inline(always)]
    fn count(self) -> usize {
        self.0.addr() >> ADDRESS_BITS
    }

    #[inline(always)]
    fn is_marked(self) -> bool {
        self.0.addr() & MARK != 0
    }

    #[inline(always)]
    fn flags(self) -> FdFlags {
        flags_in(self.0.addr())
    }

    #[inline(always)]
    fn with_flags(self, flags: FdFlags) -> Self {
        Word(self.0.map_addr(|word| word & !FLAGS | bits(flags)))
    }
}

/// A slot's word as a lookup has left it. When the handle is dropped the slot mostly still has it.
#[derive(Clone, Copy)]
pub(crate) struct Left(usize);

impl Left {
    #[inline(always)]
    pub(crate) fn flags(self) -> FdFlags {
        flags_in(self.0)
    }

    /// The word, of a slot that had `file`.
    #[inline(always)]
    fn word<T>(self, file: &OwnedRef<T>) -> Word<T> {
        Word(file.block().as_ptr().with_addr(self.0))
    }
}

/// Whose marks a change may meet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marks {
    /// Those of a fork: wait for it.
    Respect,
    /// The caller's own.
    Ours,
}

/// Why a change did not take place. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Obstacle {
    /// No file in the slot, or not one of those asked for.
    Empty,
    /// A fork is copying the slot: wait for it, then try again.
    Marked,
}

/// The marker gives the slot the auto traits of what it owns; an `AtomicPtr` has them all.
pub(crate) struct Slot<T>(AtomicPtr<Block<T>>, PhantomData<OwnedRef<T>>);

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Slot(AtomicPtr::new(Word::EMPTY.0), PhantomData)
    }
}

impl<T> Slot<T> {
    #[inline(always)]
    fn compare_exchange(
        &self,
        current: Word<T>,
        new: Word<T>,
        success: Ordering,
        failure: Ordering,
    ) -> Result<(), Word<T>> {
        self.0.compare_exchange_weak(current.0, new.0, success, failure).map(drop).map_err(Word)
    }

    // Lookups

    /// The file, and what `give_back` wants to know. Wait-free: one read-modify-write, none on a miss.
    #[inline(always)]
    pub(crate) fn acquire(&self) -> Option<(OwnedRef<T>, Left)> {
        // Relaxed: only spares a miss the write; the addition below decides. Empty: a miss at the
        // instant of this load. Filled since: a hit or a miss, as that addition finds it.
        Word(self.0.load(Ordering::Relaxed)).block()?;
        // Acquire pairs with the Release of `fill`, `try_install` and `try_swap`: the file is
        // initialized. One step takes the address and counts the handle in this very word, so
        // whoever empties the slot carries the count away with the address (I1). Empty by now: the
        // count means nothing.
        let word = Word(self.0.fetch_byte_add(COUNT_ONE, Ordering::Acquire));
        let block = word.block()?;
        // SAFETY: the addition counted one handle on `block` in a slot that held it.
        let file = unsafe { OwnedRef::from_block(block) };
        if word.count() >= TRANSFER_AT {
            self.transfer(&file);
        }
        Some((file, Left(word.0.addr().wrapping_add(COUNT_ONE))))
    }

    /// Moves the slot's count to the file, so that it does not overflow. `file` is the caller's own
    /// handle: the bound is `COUNT_MAX - TRANSFER_AT` threads inside `acquire` of one fd at once.
    #[cold]
    fn transfer(&self, file: &OwnedRef<T>) {
        let word = Word(self.0.load_for_update(Ordering::Relaxed));
        let k = word.count();
        if word.block() != Some(file.block()) || k == 0 {
            return;
        }
        // The file is credited first: in between it only looks more referenced than it is.
        file.credit(k);
        let mut current = word;
        // Still this file with a count of at least k (not the same file put back with fewer).
        while current.block() == Some(file.block()) && current.count() >= k {
            let fewer = Word(current.0.map_addr(|word| word.wrapping_sub(k * COUNT_ONE)));
            // Release pairs with the Acquire of who empties the slot: it sees the credit before it
            // trusts the smaller count. Failed: look again.
            match self.compare_exchange(current, fewer, Ordering::Release, Ordering::Relaxed) {
                Ok(()) => return,
                Err(seen) => current = seen,
            }
        }
        file.undo_credit(k);
    }

    /// Drops a handle that this slot gave out: takes it back into the slot's count, if the slot (still,
    /// or again) holds its file; else the file's own counter has it.
    #[inline(always)]
    pub(crate) fn give_back(&self, file: OwnedRef<T>, left: Left) {
        // No load first: on a line that others write to it would fetch it twice.
        let word = left.word(&file);
        if let Err((file, word)) = self.try_give_back(file, word) {
            self.give_back_contended(file, word);
        }
    }

    /// Takes a handle back if the slot has this word, which holds its file and counts at least one.
    #[inline(always)]
    fn try_give_back(
        &self,
        file: OwnedRef<T>,
        word: Word<T>,
    ) -> Result<(), (OwnedRef<T>, Word<T>)> {
        let fewer = Word(word.0.map_addr(|word| word.wrapping_sub(COUNT_ONE)));
        // Release pairs with the Acquire of who empties the slot: our uses of the file lie before its
        // destructor. Failed: Relaxed, another exchange decides.
        match self.compare_exchange(word, fewer, Ordering::Release, Ordering::Relaxed) {
            Ok(()) => {
                // The handle is counted no more (I1).
                file.into_block();
                Ok(())
            }
            Err(seen) => Err((file, seen)),
        }
    }

    /// Each failure means that another thread got its way here. After a few of them the file's own
    /// counter, on another line, is the better place.
    #[cold]
    fn give_back_contended(&self, mut file: OwnedRef<T>, mut word: Word<T>) {
        for _ in 0..GIVE_BACK_TRIES {
            // None counted: this handle has been moved to the file, and the slot must not go below none.
            if word.block() != Some(file.block()) || word.count() == 0 {
                break;
            }
            match self.try_give_back(file, word) {
                Ok(()) => return,
                Err(back) => (file, word) = back,
            }
        }
        drop(file);
    }

    /// The file, without a count of the handle. Wait-free, no read-modify-write.
    ///
    /// # Safety
    /// While the result is used the slot must keep its file.
    #[inline(always)]
    pub(crate) unsafe fn lend(&self) -> Option<ManuallyDrop<OwnedRef<T>>> {
        // Relaxed: that nobody else changes the slot, which the caller knows, orders all changes before.
        let block = Word(self.0.load(Ordering::Relaxed)).block()?;
        // SAFETY: the slot's share keeps the file alive, by the caller; never dropped, so never
        // counted down.
        Some(ManuallyDrop::new(unsafe { OwnedRef::from_block(block) }))
    }

    /// The fd's flags, `None` if it is not open. Wait-free.
    #[inline(always)]
    pub(crate) fn flags(&self) -> Option<FdFlags> {
        // Relaxed: one location, and nothing is reached through it.
        let word = Word(self.0.load(Ordering::Relaxed));
        word.block().map(|_| word.flags())
    }

    /// How many handles are counted here, of a slot that is not empty.
    pub(crate) fn count(&self) -> usize {
        // Acquire pairs with `give_back` and `transfer`: who gave a handle back is done with the file.
        Word(self.0.load(Ordering::Acquire)).count()
    }

    // Transitions of a claimed number, by its owner

    /// Makes the slot of a number that the caller has just claimed hold `file`. A plain store: it
    /// wipes a mark, which a fork notices; counts of late lookups, which mean nothing; and flags that
    /// `close_range` put there: it came first.
    #[inline(always)]
    pub(crate) fn fill(&self, file: SlotRef<T>, flags: FdFlags) {
        // Release pairs with the Acquire of `acquire`, of mutators and of `mark`.
        self.0.overwrite(Word::new(file.into_block(), flags).0, Ordering::Release);
    }

    /// Clears what is left in the slot of a number that the caller has just reserved, above all a
    /// flag that a late `close_range` put there.
    #[inline(always)]
    pub(crate) fn vacate(&self) {
        // Relaxed: it shows nothing to anyone; the claim orders it after the last owner.
        self.0.overwrite(Word::EMPTY.0, Ordering::Relaxed);
    }

    /// Installs a file on a reserved number; flags that `close_range` put there meanwhile stay.
    pub(crate) fn try_install(&self, file: SlotRef<T>, flags: FdFlags) -> Result<(), SlotRef<T>> {
        // Relaxed, also on failure: the exchange decides.
        let mut word = Word(self.0.load_for_update(Ordering::Relaxed));
        let block = file.into_block();
        loop {
            if word.is_marked() {
                // SAFETY: taken out of a slot reference above, and not placed.
                return Err(unsafe { SlotRef::from_raw(block, 0) });
            }
            debug_assert!(word.block().is_none(), "the slot of a reserved number is empty");
            let filled = Word::new(block, flags | word.flags());
            // Release as `fill`; Acquire as a change, see there. Failed: a late lookup, a flag or a mark.
            match self.compare_exchange(word, filled, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(()) => return Ok(()),
                Err(seen) => word = seen,
            }
        }
    }

    // Transitions of an open number, by anyone

    /// Empties the slot, if the fd has all of the flags in `only`.
    #[inline(always)]
    pub(crate) fn try_take(&self, only: FdFlags) -> Result<SlotRef<T>, Obstacle> {
        let (block, count) =
            self.change(Marks::Respect, |word| word.flags().contains(only).then_some(Word::EMPTY))?;
        // SAFETY: the exchange took the slot's share of the file away, with its count.
        Ok(unsafe { SlotRef::from_raw(block, count) })
    }

    /// Empties a slot that nobody else can reach: two plain moves.
    pub(crate) fn take_alone(&mut self) -> Option<SlotRef<T>> {
        // Relaxed, also below: the exclusive borrow comes after everything that others did.
        let word = Word(self.0.load(Ordering::Relaxed));
        let block = word.block()?;
        self.0.overwrite(Word::EMPTY.0, Ordering::Relaxed);
        // SAFETY: the slot's share of the file, with its count: the slot no longer has it.
        Some(unsafe { SlotRef::from_raw(block, word.count()) })
    }

    /// Puts `file` in the place of the one that is there, which comes back.
    pub(crate) fn try_swap(
        &self,
        file: SlotRef<T>,
        flags: FdFlags,
    ) -> Result<SlotRef<T>, (SlotRef<T>, Obstacle)> {
        let block = file.into_block();
        match self.change(Marks::Respect, |_| Some(Word::new(block, flags))) {
            // SAFETY: the exchange took the slot's share of the old file away, with its count.
            Ok((block, count)) => Ok(unsafe { SlotRef::from_raw(block, count) }),
            // SAFETY: taken out of a slot reference above, and not placed.
            Err(obstacle) => Err((unsafe { SlotRef::from_raw(block, 0) }, obstacle)),
        }
    }

    pub(crate) fn try_set_flags(&self, flags: FdFlags) -> Result<(), Obstacle> {
        self.change(Marks::Respect, |word| Some(word.with_flags(flags))).map(drop)
    }

    /// Sets CLOEXEC on a claimed number, open or reserved, if it has all of the flags in `only`.
    pub(crate) fn try_set_cloexec(&self, only: FdFlags) -> Result<(), Obstacle> {
        // Relaxed, also on failure: the exchange decides.
        let mut word = Word(self.0.load_for_update(Ordering::Relaxed));
        loop {
            if word.is_marked() {
                return Err(Obstacle::Marked);
            }
            if !word.flags().contains(only) {
                return Err(Obstacle::Empty);
            }
            let flagged = word.with_flags(word.flags() | FdFlags::CLOEXEC);
            // Release pairs with `mark`: a fork that sees the flag sees what came before it; Acquire as
            // a change, see there.
            match self.compare_exchange(word, flagged, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(()) => return Ok(()),
                Err(seen) => word = seen,
            }
        }
    }

    /// Moves the file of `source` here, in the place of the one that is there, which comes back.
    ///
    /// The caller, who holds the lock, has marked both: they keep their files (I6). The marks are gone
    /// afterwards.
    pub(crate) fn move_from(&self, source: &Slot<T>) -> SlotRef<T> {
        const KEPT: &str = "a slot that is held keeps its file";
        let (block, count) = source.change(Marks::Ours, |_| Some(Word::EMPTY)).expect(KEPT);
        // SAFETY: the exchange took the slot's share of the file away, with its count.
        let file = unsafe { SlotRef::from_raw(block, count) }.settled().into_block();
        let moved = Word::new(file, FdFlags::empty());
        let (block, count) = self.change(Marks::Ours, |_| Some(moved)).expect(KEPT);
        // SAFETY: as above, of the old file.
        unsafe { SlotRef::from_raw(block, count) }
    }

    /// Replaces a word that holds a file and no mark by what `next` makes of it; returns the file
    /// and count it had.
    #[inline(always)]
    fn change(
        &self,
        marks: Marks,
        next: impl Fn(Word<T>) -> Option<Word<T>>,
    ) -> Result<(NonNull<Block<T>>, usize), Obstacle> {
        // Acquire, also on failure: a change that finds no file comes after the one that took it away,
        // and after what came before that. (A lookup's miss does not.)
        let mut word = Word(self.0.load_for_update(Ordering::Acquire));
        loop {
            let Some(block) = word.block() else { return Err(Obstacle::Empty) };
            if marks == Marks::Respect && word.is_marked() {
                return Err(Obstacle::Marked);
            }
            let Some(new) = next(word) else { return Err(Obstacle::Empty) };
            // Release pairs with `acquire` (a new file is initialized) and with `mark` (a fork that
            // sees this change sees what came before it). Acquire pairs with `give_back` and
            // `transfer` (their uses of the file, and the credit), with `fill`, and with
            // `clear_mark` (a change after a fork comes after all that the fork has seen). Failed: a lookup,
            // a returned handle, another change or a mark came first; look again.
            match self.compare_exchange(word, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(()) => return Ok((block, word.count())),
                Err(seen) => word = seen,
            }
        }
    }

    // Fork, see snapshot.rs

    /// Marks the slot. If there is a file in it, it and the flags, which are the result, stay from now
    /// until `clear_mark`. If not, it can still be filled, which wipes the mark.
    pub(crate) fn mark(&self) -> Option<FdFlags> {
        // Acquire pairs with the changes' Release: those before it are seen, with all that came before
        // them. Whoever meets the mark waits for the lock, which orders the rest.
        let word = Word(self.0.fetch_or(MARK, Ordering::Acquire));
        word.block().map(|_| word.flags())
    }

    pub(crate) fn is_marked(&self) -> bool {
        // Relaxed: a missing mark is followed by `mark`, which acquires.
        Word(self.0.load(Ordering::Relaxed)).is_marked()
    }

    pub(crate) fn clear_mark(&self) {
        // Release pairs with the Acquire of `change`: changes from now on come after the snapshot.
        self.0.fetch_and(!MARK, Ordering::Release);
    }

    /// One more slot reference to the file, and the flags, for a fork's copy.
    ///
    /// # Safety
    /// The slot must keep its file until this returns: it is marked, or it lies beyond the first
    /// word and the caller holds the lock.
    pub(crate) unsafe fn duplicate(&self) -> Option<(SlotRef<T>, FdFlags)> {
        // Acquire pairs with `fill` and `try_install`: the file is initialized.
        let word = Word(self.0.load(Ordering::Acquire));
        let block = word.block()?;
        // SAFETY: by the caller, the slot keeps the file.
        Some((unsafe { SlotRef::duplicate(block) }, word.flags()))
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        // The table empties itself before its slots go. Relaxed: nobody else is here.
        debug_assert!(Word(self.0.load(Ordering::Relaxed)).block().is_none());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use alloc::sync::Arc;
    use alloc::vec::Vec;

    use super::*;

    fn slot_with(file: &Arc<()>) -> Slot<Arc<()>> {
        let slot = Slot::default();
        slot.fill(OwnedRef::new(Arc::clone(file)).into(), FdFlags::CLOEXEC);
        slot
    }

    /// And not in the file: that would be another line.
    #[test]
    fn a_handle_is_counted_in_the_slot() {
        let slot = slot_with(&Arc::new(()));
        // A weak exchange may fail without a reason, and Miri's mostly does; the file has the handle then.
        let comes_back = (0..100).any(|_| {
            let before = slot.count();
            let (handle, left) = slot.acquire().unwrap();
            assert_eq!(slot.count(), before + 1);
            slot.give_back(handle, left);
            slot.count() == before
        });
        assert!(comes_back);
        drop(slot.try_take(FdFlags::empty()).unwrap());
    }

    /// Many more handles than a count can hold: they move to the file.
    #[test]
    fn the_count_does_not_overflow() {
        let file = Arc::new(());
        let slot = slot_with(&file);
        let many = if cfg!(miri) { TRANSFER_AT + 10 } else { 300_000 };
        let handles: Vec<_> = (0..many).map(|_| slot.acquire().unwrap().0).collect();
        let count = Word(slot.0.load(Ordering::Relaxed)).count();
        assert!(count <= TRANSFER_AT, "{count}");
        assert_eq!(slot.flags(), Some(FdFlags::CLOEXEC));
        drop(slot.try_take(FdFlags::empty()).unwrap());
        assert_eq!(Arc::strong_count(&file), 2);
        drop(handles);
        assert_eq!(Arc::strong_count(&file), 1);
    }

    /// Handles that were moved to the file must not be given back to the slot.
    #[test]
    fn handles_come_back_after_their_count_was_moved() {
        let file = Arc::new(());
        let slot = slot_with(&file);
        let handles: Vec<_> = (0..=TRANSFER_AT).map(|_| slot.acquire().unwrap()).collect();
        for (handle, left) in handles {
            slot.give_back(handle, left);
        }
        assert_eq!(Word(slot.0.load(Ordering::Relaxed)).count(), 0);
        assert_eq!(Arc::strong_count(&file), 2);
        drop(slot.try_take(FdFlags::empty()).unwrap());
        assert_eq!(Arc::strong_count(&file), 1);
    }

    #[test]
    fn what_is_left_on_an_empty_slot_means_nothing() {
        let file = Arc::new(());
        let slot = slot_with(&file);
        let (handle, left) = slot.acquire().unwrap();
        drop(slot.try_take(FdFlags::empty()).unwrap());
        // A late lookup, between its load and its addition.
        slot.0.fetch_byte_add(COUNT_ONE, Ordering::Relaxed);
        assert!(slot.acquire().is_none());
        assert_eq!(slot.flags(), None);
        assert_eq!(slot.try_take(FdFlags::empty()).err(), Some(Obstacle::Empty));
        assert_eq!(Arc::strong_count(&file), 2);
        slot.give_back(handle, left);
        assert_eq!(Arc::strong_count(&file), 1);
    }

    #[test]
    fn bits_that_are_no_flags_do_not_reach_the_address() {
        let file = Arc::new(());
        let slot = slot_with(&file);
        slot.try_set_flags(FdFlags::from_bits_retain(0xff)).unwrap();
        assert_eq!(slot.flags(), Some(FdFlags::all()));
        assert!(!slot.is_marked());
        drop(slot.try_take(FdFlags::empty()).unwrap());
    }

    #[test]
    fn an_installed_file_keeps_the_flag_put_on_the_reserved_number() {
        for flags in [FdFlags::empty(), FdFlags::CLOEXEC] {
            let slot = Slot::default();
            slot.try_set_cloexec(FdFlags::empty()).unwrap();
            assert!(slot.try_install(OwnedRef::new(7).into(), flags).is_ok());
            assert_eq!(slot.flags(), Some(FdFlags::CLOEXEC));
            drop(slot.try_take(FdFlags::CLOEXEC).unwrap());
        }
    }
}
