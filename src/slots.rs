//! Where the slot of a number lies: inline for the first word's numbers, in segments for the rest.

use core::ops::Range;

use crate::error::OutOfMemory;
use crate::geometry::{FIRST_BIN, SLOT_BINS, WORD, spread};
use crate::segments::Segments;
use crate::slot::Slot;

type Rest<T> = Segments<Slot<T>, SLOT_BINS>;

pub(crate) struct Slots<T> {
    first: [Slot<T>; WORD],
    /// The slots of the numbers from `WORD` on.
    rest: Rest<T>,
}

// Groups of `WORD` slots must not straddle a piece.
static_assertions::const_assert!(FIRST_BIN.is_multiple_of(WORD));

impl<T> Slots<T> {
    pub(crate) fn new() -> Self {
        Slots { first: core::array::from_fn(|_| Slot::default()), rest: Segments::new() }
    }

    /// The slot of a number of the first word.
    #[inline(always)]
    pub(crate) fn first(&self, fd: u32) -> &Slot<T> {
        &self.first[spread(fd as usize % WORD)]
    }

    /// The slot, if the number has storage. Wait-free.
    #[inline(always)]
    pub(crate) fn get(&self, fd: u32) -> Option<&Slot<T>> {
        let fd = fd as usize;
        let place = fd & !(WORD - 1) | spread(fd % WORD);
        if place < WORD { Some(&self.first[place]) } else { self.get_upper(place) }
    }

    /// Out of line: it keeps `get` small enough to be inlined in the users' code.
    #[inline(never)]
    fn get_upper(&self, place: usize) -> Option<&Slot<T>> {
        self.rest.get(place - WORD)
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, fd: u32) -> Option<&mut Slot<T>> {
        let fd = fd as usize;
        let place = fd & !(WORD - 1) | spread(fd % WORD);
        if place < WORD { Some(&mut self.first[place]) } else { self.rest.get_mut(place - WORD) }
    }

    /// Gives the number storage; returns the bytes added.
    pub(crate) fn ensure(&self, fd: u32) -> Result<usize, OutOfMemory> {
        (fd as usize).checked_sub(WORD).map_or(Ok(0), |place| self.rest.ensure(place))
    }

    /// The numbers that get their storage together with `fd`.
    pub(crate) fn piece(fd: u32) -> Range<u32> {
        let Some(place) = (fd as usize).checked_sub(WORD) else { return 0..WORD as u32 };
        let piece = Rest::<T>::piece(place);
        (piece.start + WORD) as u32..(piece.end + WORD) as u32
    }

    /// The first number at or after `fd`, within the same or at the start of another word, that has
    /// storage.
    pub(crate) fn next_present(&self, fd: u32) -> Option<u32> {
        let Some(place) = (fd as usize).checked_sub(WORD) else { return Some(fd) };
        self.rest.next_present(place).map(|place| (place + WORD) as u32)
    }

    /// The slots from `fd` on that have storage, in ascending order of their numbers.
    pub(crate) fn iter_from(&self, fd: u32) -> impl Iterator<Item = (u32, &Slot<T>)> {
        let mut next = fd;
        core::iter::from_fn(move || {
            let fd = self.next_present(next)?;
            next = fd + 1;
            Some((fd, self.get(fd)?))
        })
    }

    /// The words of the table that have storage, from the highest down, each as its numbers.
    pub(crate) fn words_down(&self) -> impl Iterator<Item = Range<u32>> {
        let mut next = Rest::<T>::LAST_INDEX + WORD;
        core::iter::from_fn(move || {
            // `next` is one past the last number to look at, 0 at the end.
            let last = next.checked_sub(1)?;
            let last = match last.checked_sub(WORD) {
                Some(place) => self.rest.previous_present(place).map_or(WORD - 1, |p| p + WORD),
                None => last,
            };
            next = last & !(WORD - 1);
            Some(next as u32..(next + WORD) as u32)
        })
    }
}
