//! Fork's atomic copy.
//!
//! The upper numbers and their slots stand still under the lock, and are copied first. Then every
//! slot of the first word gets a mark, empty ones too, and one with a file is copied: a marked slot
//! keeps its file, since whoever wants to change it waits for the lock. An empty slot can still be
//! filled, by a plain store that wipes the mark. So the fork looks at all slots again until it
//! finds all marks in place; a slot without its mark was filled, or filled and emptied again, is
//! marked anew, and copied if it is filled. The end of the first pass without such a slot is the
//! instant of the snapshot: at that moment the parent held exactly what the copy holds.
//!
//! Each part is needed; the design page has the failing history of each shortcut.

use crate::error::OutOfMemory;
use crate::fd::FdFlags;
use crate::geometry::WORD_LOG;
use crate::groups::Upper;
use crate::states::{Bits, FIRST_END};
use crate::sweep::Selection;
use crate::table::FdTable;

impl<T> FdTable<T> {
    /// A copy of the table at one instant, without what is in `left_out`.
    pub(crate) fn snapshot(&self, left_out: &[Selection]) -> Result<FdTable<T>, OutOfMemory> {
        let child = FdTable::with_config(self.config.copy());
        let mut index = 1;
        // The child's storage is made without the lock: words are asked for one by one, then all are
        // checked in the hold of the lock that copies them. A parent that grows meanwhile sends us
        // back; it can grow only as often as there are pieces.
        let mut upper = loop {
            let upper = self.lock.lock();
            match self.first_without_storage(&upper, &child, index, left_out) {
                Some(missing) => {
                    drop(upper);
                    child.grow((missing << WORD_LOG) as u32)?;
                    index = missing;
                }
                None if index == 1 => break upper,
                None => index = 1,
            }
        };
        self.copy_upper(&mut upper, &child, left_out);
        self.copy_first(&mut upper, &child, left_out);
        Ok(child)
    }

    /// The first upper word from `index` on that has something to copy and no place in the child.
    fn first_without_storage(
        &self,
        upper: &Upper,
        child: &FdTable<T>,
        mut index: usize,
        left_out: &[Selection],
    ) -> Option<usize> {
        loop {
            let (at, group, bits) = self.slots.upper.next_claimed(upper, index)?;
            let is_copied = |bit| {
                let flags = group.slot(bit).flags();
                flags.is_some_and(|flags| is_copied(number(at, bit), flags, left_out))
            };
            if child.slots.upper.get(at).is_none()
                && Bits(wanted(at, bits, left_out)).any(is_copied)
            {
                return Some(at);
            }
            index = at + 1;
        }
    }

    #[expect(unsafe_code, reason = "duplicates what the slots hold")]
    fn copy_upper(&self, upper: &mut Upper, child: &FdTable<T>, left_out: &[Selection]) {
        let mut child_upper = child.lock.lock();
        let mut index = 1;
        while let Some((at, group, bits)) = self.slots.upper.next_claimed(upper, index) {
            index = at + 1;
            // No storage: all of the group is left out, as was seen in this hold of the lock.
            let Some(child_group) = child.slots.upper.get(at) else { continue };
            let mut copied = 0;
            for bit in Bits(wanted(at, bits, left_out)) {
                let slot = group.slot(bit);
                if !slot.flags().is_some_and(|flags| is_copied(number(at, bit), flags, left_out)) {
                    continue;
                }
                // SAFETY: an upper slot changes only under the lock, which we hold (I6).
                if let Some((file, flags)) = unsafe { slot.duplicate() } {
                    child_group.slot(bit).fill(file, flags);
                    copied |= 1 << bit;
                }
            }
            if copied != 0 {
                child.slots.upper.claim_bits(&mut child_upper, at, child_group, copied);
                child_upper.open += copied.count_ones() as usize;
                child.next_fd.note(number(at, copied.ilog2()));
            }
        }
    }

    #[expect(unsafe_code, reason = "duplicates what the slots hold")]
    fn copy_first(&self, _: &mut Upper, child: &FdTable<T>, left_out: &[Selection]) {
        self.next_fd.announce_fork(true);
        let mut copied = 0;
        loop {
            let mut changed = false;
            for fd in 0..FIRST_END {
                let slot = self.slots.first(fd);
                if slot.is_marked() {
                    continue;
                }
                changed = true;
                let Some(flags) = slot.mark() else { continue };
                if !is_copied(fd, flags, left_out) {
                    continue;
                }
                // SAFETY: the slot is marked: it keeps its file and its flags until we clear the
                // mark (I6).
                if let Some((file, flags)) = unsafe { slot.duplicate() } {
                    child.slots.first(fd).fill(file, flags);
                    copied |= 1 << fd;
                }
            }
            // Every slot that changes here is one of an insert that had claimed its number before
            // `announce_fork`; so there are at most as many passes as numbers.
            if !changed {
                break;
            }
        }
        for fd in 0..FIRST_END {
            self.slots.first(fd).clear_mark();
        }
        self.next_fd.announce_fork(false);
        child.next_fd.set(copied);
        if copied != 0 {
            child.next_fd.note(copied.ilog2());
        }
    }
}

/// The number at a bit of a group.
fn number(group: usize, bit: u32) -> u32 {
    (group << WORD_LOG) as u32 | bit
}

/// The numbers of a word that may have to be copied.
fn wanted(index: usize, bits: u64, left_out: &[Selection]) -> u64 {
    let whole = left_out.iter().filter(|selection| selection.only.is_empty());
    whole.fold(bits, |bits, selection| bits & !selection.mask(index))
}

#[inline]
fn is_copied(fd: u32, flags: FdFlags, left_out: &[Selection]) -> bool {
    !left_out.iter().any(|selection| selection.contains(fd, flags))
}
