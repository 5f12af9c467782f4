//! Address-stable, grow-only storage: element `i` of a sparse array that never moves.
//!
//! Elements lie in bins that double in size. A small bin is one allocation; a large one is a
//! directory of pieces of about the square root of its length, so that a lone high index costs a
//! directory and one piece. Whatever is missing is allocated by whoever needs it first and
//! published by one compare-and-swap; a racing loser frees its own. Nothing is freed or moved
//! before the whole is dropped, so a reader needs no protection at all.

use core::marker::PhantomData;
use core::mem::size_of;
use core::ops::Range;
use core::ptr::{NonNull, null_mut, slice_from_raw_parts_mut};

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::error::OutOfMemory;
use crate::geometry::DIRECT_LOG;
use crate::sync::{AtomicPtr, ForUpdate as _, Ordering};

/// `SIZE` is log2 of the words that an element takes, about: it decides how much is allocated at once.
pub(crate) struct Segments<E, const BINS: usize, const SIZE: u32> {
    /// Null, or a bin's first element (at most `DIRECT` words), or its directory's first entry.
    bins: [AtomicPtr<()>; BINS],
    owns: PhantomData<Box<[E]>>,
}

/// One entry of a large bin's directory: null, or a piece's first element.
type Entry<E> = AtomicPtr<E>;

/// Where an element lies: the bin of `1 << log` elements, and the place in it.
///
/// With one added, an index's highest bit names the bin and the bits below it the place.
#[derive(Clone, Copy)]
struct Place<const SIZE: u32> {
    bin: Bin<SIZE>,
    offset: usize,
}

impl<const SIZE: u32> Place<SIZE> {
    #[inline(always)]
    const fn of(index: usize) -> Self {
        let shifted = index + 1;
        let log = shifted.ilog2();
        Place { bin: Bin { log }, offset: shifted ^ (1 << log) }
    }
}

#[derive(Clone, Copy)]
struct Bin<const SIZE: u32> {
    /// log2 of the length, and the bin's number.
    log: u32,
}

impl<const SIZE: u32> Bin<SIZE> {
    #[inline(always)]
    const fn number(self) -> usize {
        self.log as usize
    }

    const fn start(self) -> usize {
        self.len() - 1
    }

    #[inline(always)]
    const fn len(self) -> usize {
        1 << self.log
    }

    #[inline(always)]
    const fn is_direct(self) -> bool {
        self.log + SIZE <= DIRECT_LOG
    }

    /// log2 of the length of one piece: as many bytes in a piece as in the directory, about, but not too
    /// few.
    #[inline(always)]
    const fn piece_log(self) -> u32 {
        let half = self.log.saturating_sub(SIZE).div_ceil(2);
        let least = DIRECT_LOG - SIZE;
        if self.is_direct() {
            self.log
        } else if half > least {
            half
        } else {
            least
        }
    }

    const fn pieces(self) -> usize {
        1 << (self.log - self.piece_log())
    }
}

impl<E, const BINS: usize, const SIZE: u32> Segments<E, BINS, SIZE> {
    pub(crate) fn new() -> Self {
        Segments { bins: core::array::from_fn(|_| AtomicPtr::default()), owns: PhantomData }
    }

    /// `piece_log` of each bin, to be looked up where it is in the way of every lookup.
    const PIECE_LOGS: [u8; BINS] = {
        let mut logs = [0; BINS];
        let mut log = 0;
        while log < BINS {
            logs[log] = Bin::<SIZE> { log: log as u32 }.piece_log() as u8;
            log += 1;
        }
        logs
    };

    /// The largest index that can ever have storage.
    pub(crate) const LAST_INDEX: usize = Bin::<SIZE> { log: BINS as u32 }.start() - 1;

    /// The element, if it has storage. Wait-free: two loads at most.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&E> {
        // SAFETY: `find` points to an initialized element, never freed while `self` lives.
        self.find(index).map(|element| unsafe { element.as_ref() })
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut E> {
        // SAFETY: as in `get`; elements are reached only through `self`, borrowed exclusively.
        self.find(index).map(|mut element| unsafe { element.as_mut() })
    }

    /// As `get`; a pointer that stays valid, also across exclusive borrows of the element, while `self` lives.
    #[inline(always)]
    pub(crate) fn find(&self, index: usize) -> Option<NonNull<E>> {
        let Place { bin, offset } = Place::<SIZE>::of(index);
        // Acquire, also on the entry: pairs with the Release of `publish`, the elements are
        // initialized. Null: not allocated yet, or not seen yet, which is as good.
        let base = NonNull::new(self.bins.get(bin.number())?.load(Ordering::Acquire))?;
        if bin.is_direct() {
            // SAFETY: a direct bin points to `len` elements, and `offset < len`.
            return Some(unsafe { base.cast::<E>().add(offset) });
        }
        let piece_log = Self::PIECE_LOGS[bin.number()];
        // SAFETY: a large bin points to `pieces` entries, and `offset < len`.
        let entry = unsafe { base.cast::<Entry<E>>().add(offset >> piece_log) };
        // SAFETY: the entry is initialized, and never freed while `self` lives.
        let piece = NonNull::new(unsafe { entry.as_ref() }.load(Ordering::Acquire))?;
        // SAFETY: an entry points to one piece, of this length.
        Some(unsafe { piece.add(offset & ((1 << piece_log) - 1)) })
    }

    /// The indices that get their storage together with `index`.
    pub(crate) fn piece(index: usize) -> Range<usize> {
        let Place { bin, offset } = Place::<SIZE>::of(index);
        let start = bin.start() + (offset >> bin.piece_log() << bin.piece_log());
        start..start + (1 << bin.piece_log())
    }

    /// The indices around `index` that lack storage together with it: its piece, or the whole bin
    /// if not even a directory is there. Sweeps skip by it.
    fn gap(&self, index: usize) -> Range<usize> {
        let Place { bin, .. } = Place::<SIZE>::of(index);
        // Relaxed: only null or not matters, nothing is reached through it.
        match self.bins.get(bin.number()) {
            Some(base) if !base.load(Ordering::Relaxed).is_null() => Self::piece(index),
            _ => bin.start()..bin.start() + bin.len(),
        }
    }

    /// The index of the first element at or after `index` that has storage.
    pub(crate) fn next_present(&self, mut index: usize) -> Option<usize> {
        while index <= Self::LAST_INDEX {
            if self.get(index).is_some() {
                return Some(index);
            }
            index = self.gap(index).end;
        }
        None
    }

    /// The index of the last element at or before `index` that has storage.
    pub(crate) fn previous_present(&self, mut index: usize) -> Option<usize> {
        loop {
            if self.get(index).is_some() {
                return Some(index);
            }
            index = self.gap(index).start.checked_sub(1)?;
        }
    }
}

impl<E: Default, const BINS: usize, const SIZE: u32> Segments<E, BINS, SIZE> {
    /// Gives the element storage. Returns the bytes that were added, 0 if it had some.
    ///
    /// Lock-free; allocates, so never called under the lock. On failure nothing has changed.
    #[cold]
    pub(crate) fn ensure(&self, index: usize) -> Result<usize, OutOfMemory> {
        let Place { bin, offset } = Place::<SIZE>::of(index);
        let Some(base) = self.bins.get(bin.number()) else { return Err(OutOfMemory) };
        if bin.is_direct() {
            return Ok(publish::<E, ()>(base, bin.len())?.1);
        }
        let (directory, directory_bytes) = publish::<Entry<E>, ()>(base, bin.pieces())?;
        // SAFETY: the directory has `pieces` entries, and `offset < len`.
        let entry = unsafe { directory.add(offset >> bin.piece_log()) };
        // SAFETY: the entry is initialized, and never freed while `self` lives.
        let entry = unsafe { entry.as_ref() };
        let (_, piece_bytes) = publish::<E, E>(entry, 1 << bin.piece_log())?;
        Ok(directory_bytes + piece_bytes)
    }
}

/// Makes `cell` point to `len` fresh elements unless it points to some already.
fn publish<E: Default, P>(
    cell: &AtomicPtr<P>,
    len: usize,
) -> Result<(NonNull<E>, usize), OutOfMemory> {
    // Acquire, also on failure below: pairs with the Release of another thread's publication.
    if let Some(present) = NonNull::new(cell.load_for_update(Ordering::Acquire)) {
        return Ok((present.cast(), 0));
    }
    let mut fresh = Vec::new();
    fresh.try_reserve_exact(len).map_err(|_| OutOfMemory)?;
    fresh.extend((0..len).map(|_| E::default()));
    let fresh = Box::leak(fresh.into_boxed_slice());
    let first = NonNull::from(&mut *fresh).cast::<E>();
    // Release: the elements are initialized before anyone can follow the pointer.
    match cell.compare_exchange(
        null_mut(),
        first.cast::<P>().as_ptr(),
        Ordering::Release,
        Ordering::Acquire,
    ) {
        Ok(_) => Ok((first, len * size_of::<E>())),
        Err(winner) => {
            // SAFETY: leaked above, never published.
            unsafe { free(first, len) };
            // SAFETY: the exchange failed because the cell was not null, and cells never go back.
            Ok((unsafe { NonNull::new_unchecked(winner) }.cast(), 0))
        }
    }
}

/// # Safety
/// `first` and `len` are those of a boxed slice that nobody else knows of.
unsafe fn free<E>(first: NonNull<E>, len: usize) {
    // SAFETY: by the caller.
    drop(unsafe { Box::from_raw(slice_from_raw_parts_mut(first.as_ptr(), len)) });
}

impl<E, const BINS: usize, const SIZE: u32> Drop for Segments<E, BINS, SIZE> {
    fn drop(&mut self) {
        for (number, base) in self.bins.iter().enumerate() {
            let bin = Bin::<SIZE> { log: number as u32 };
            // Relaxed, also below: `&mut self` comes after every publication.
            let Some(base) = NonNull::new(base.load(Ordering::Relaxed)) else { continue };
            if bin.is_direct() {
                // SAFETY: published by `ensure` as `len` elements; `&mut self`: no one else is here.
                unsafe { free(base.cast::<E>(), bin.len()) };
                continue;
            }
            let directory = base.cast::<Entry<E>>();
            for at in 0..bin.pieces() {
                // SAFETY: the directory has `pieces` entries.
                let entry = unsafe { directory.add(at) };
                // SAFETY: the entry is initialized.
                let entry = unsafe { entry.as_ref() };
                if let Some(piece) = NonNull::new(entry.load(Ordering::Relaxed)) {
                    // SAFETY: published by `ensure` as one piece; no one else is here.
                    unsafe { free(piece, 1 << bin.piece_log()) };
                }
            }
            // SAFETY: published by `ensure` as `pieces` entries; no one else is here.
            unsafe { free(directory, bin.pieces()) };
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sync::AtomicU64;

    fn tile<const SIZE: u32>() {
        let mut next = 0;
        for log in 0..20 {
            let bin = Bin::<SIZE> { log };
            assert_eq!(bin.start(), next);
            for (index, offset) in [(next, 0), (next + bin.len() - 1, bin.len() - 1)] {
                let place = Place::<SIZE>::of(index);
                assert_eq!((place.bin.number(), place.offset), (log as usize, offset));
            }
            assert_eq!(bin.pieces() << bin.piece_log(), bin.len());
            next += bin.len();
        }
        assert_eq!(Segments::<AtomicU64, 20, SIZE>::LAST_INDEX, next - 1);
    }

    #[test]
    fn bins_tile_the_indices() {
        tile::<0>();
        tile::<6>();
    }

    #[test]
    fn elements_do_not_move_and_only_what_is_asked_for_is_allocated() {
        let segments = Segments::<AtomicU64, 20, 0>::new();
        assert!(segments.get(0).is_none());
        assert_eq!(segments.next_present(0), None);
        let mut seen = Vec::new();
        for index in [0, 1, 62, 63, 64, 127, 128, 511, 512, 1022, 1023, 5000, (1 << 20) - 2] {
            segments.ensure(index).unwrap();
            assert_eq!(segments.ensure(index).unwrap(), 0);
            let element = segments.get(index).unwrap();
            element.store(index as u64, Ordering::Relaxed);
            seen.push((index, element));
        }
        for (index, element) in seen {
            assert!(core::ptr::eq(element, segments.get(index).unwrap()));
            assert_eq!(element.load(Ordering::Relaxed), index as u64);
        }
        // 2047 is the first index of a bin; 5000 lies in the piece of 4607 .. 5119.
        assert!(segments.get(2047).is_none());
        assert_eq!(segments.next_present(2047), Some(4607));
        assert_eq!(segments.previous_present(4606), Some(1534));
        assert!(segments.get(1 << 25).is_none());
        assert!(segments.ensure(1 << 30).is_err());
    }

    #[test]
    fn a_lone_high_element_is_cheap() {
        let words = Segments::<AtomicU64, 26, 0>::new();
        assert!(words.ensure((1 << 20) - 1).unwrap() <= 16 << 10);
        let groups = Segments::<[[u64; 32]; 2], 26, 6>::new();
        assert!(groups.ensure((1 << 14) - 1).unwrap() <= 16 << 10);
    }
}
