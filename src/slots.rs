//! Where the slot of a number lies: inline for the first word's numbers, in groups for the rest.

use core::array;

use crate::geometry::{WORD, WORD_LOG, spread};
use crate::groups::Groups;
use crate::slot::Slot;

pub(crate) struct Slots<T> {
    first: [Slot<T>; WORD],
    /// The numbers from `WORD` on.
    pub(crate) upper: Groups<Slot<T>>,
}

impl<T> Slots<T> {
    pub(crate) fn new() -> Self {
        Slots { first: array::from_fn(|_| Slot::default()), upper: Groups::new() }
    }

    /// The slot of a number of the first word.
    #[inline(always)]
    pub(crate) fn first(&self, fd: u32) -> &Slot<T> {
        &self.first[spread(fd as usize)]
    }

    #[inline(always)]
    pub(crate) fn first_mut(&mut self, fd: u32) -> &mut Slot<T> {
        &mut self.first[spread(fd as usize)]
    }

    /// The slot, if the number has storage. Wait-free.
    #[inline(always)]
    pub(crate) fn get(&self, fd: u32) -> Option<&Slot<T>> {
        if (fd as usize) < WORD { Some(self.first(fd)) } else { self.upper.slot(fd) }
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, fd: u32) -> Option<&mut Slot<T>> {
        if (fd as usize) < WORD { Some(self.first_mut(fd)) } else { self.upper.slot_mut(fd) }
    }

    /// The end of the numbers that get their storage together with `fd`.
    pub(crate) fn piece_end(fd: u32) -> u32 {
        if (fd as usize) < WORD {
            return WORD as u32;
        }
        (Groups::<Slot<T>>::piece(Groups::<Slot<T>>::name(fd)).end << WORD_LOG) as u32
    }

    /// The slots from `fd` on that have storage, in ascending order of their numbers.
    pub(crate) fn iter_from(&self, fd: u32) -> impl Iterator<Item = (u32, &Slot<T>)> {
        let mut next = fd as usize;
        core::iter::from_fn(move || {
            let fd = next;
            let (fd, slot) = if fd < WORD {
                (fd, self.first(fd as u32))
            } else {
                let (name, group) = self.upper.next(fd >> WORD_LOG)?;
                let fd = fd.max(name << WORD_LOG);
                (fd, group.slot(fd as u32))
            };
            next = fd + 1;
            Some((fd as u32, slot))
        })
    }
}
