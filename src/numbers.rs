//! Which numbers are claimed: the first word, lock-free, and a tree of full words above it, under
//! the table's lock. Says nothing about files.

use core::ops::Range;
use core::sync::atomic::AtomicU32;

use crate::error::OutOfMemory;
use crate::geometry::{FULL, LEVEL_BINS, LEVELS, TOP, WORD, WORD_LOG, below};
use crate::segments::Segments;
use crate::sync::{AtomicBool, AtomicU64, ForUpdate as _, Guarded, Ordering};

/// The numbers `0 .. WORD`, and what an insert among them looks at.
pub(crate) struct FirstWord {
    /// Bit set: claimed.
    bits: AtomicU64,
    /// A fork is copying the first word's slots: whoever has claimed a number waits before it
    /// touches the slot. Only bounds the fork's passes, see snapshot.rs.
    forking: AtomicBool,
    /// One past the highest number that was ever claimed, in the whole table. A statistic that
    /// decides nothing, so not one of the model checker's atomics.
    high_water: AtomicU32,
}

impl FirstWord {
    pub(crate) fn new() -> Self {
        FirstWord {
            bits: AtomicU64::new(0),
            forking: AtomicBool::new(false),
            high_water: AtomicU32::new(0),
        }
    }

    /// The bits of the word's numbers in `range`.
    #[inline(always)]
    pub(crate) fn mask(range: &Range<u32>) -> u64 {
        below(range.end.into()) & !below(range.start.into())
    }

    /// Claims the lowest free number among `allowed`. Lock-free; one read-modify-write.
    #[inline(always)]
    pub(crate) fn claim(&self, allowed: u64) -> Option<u32> {
        self.claim_many(allowed, 1).map(u64::trailing_zeros)
    }

    /// Claims the `n` lowest free numbers among `allowed`, all at one instant, or none.
    #[inline(always)]
    pub(crate) fn claim_many(&self, allowed: u64, n: u32) -> Option<u64> {
        // Relaxed: the exchange decides. None free: true at this load.
        let mut bits = self.bits.load_for_update(Ordering::Relaxed);
        loop {
            let wanted = lowest(!bits & allowed, n)?;
            match self.exchange(bits, bits | wanted) {
                Ok(_) => return Some(wanted),
                Err(seen) => bits = seen,
            }
        }
    }

    /// Claims the bits in `wanted` if the word still is `bits`.
    pub(crate) fn try_claim(&self, bits: u64, wanted: u64) -> bool {
        self.exchange(bits, bits | wanted).is_ok()
    }

    #[inline(always)]
    fn exchange(&self, bits: u64, new: u64) -> Result<u64, u64> {
        // Acquire pairs with the Release of `release`: the last owner is done with the slot; and
        // with `announce_fork`: its flag is seen. Relaxed on failure: another claim or release came
        // first, nothing is done yet.
        self.bits.compare_exchange_weak(bits, new, Ordering::Acquire, Ordering::Relaxed)
    }

    /// Makes the numbers in `bits` free. Their slots are empty.
    #[inline(always)]
    pub(crate) fn release(&self, bits: u64) {
        // Release pairs with the Acquire of the next claim: it finds the slots as we left them.
        self.bits.fetch_and(!bits, Ordering::Release);
    }

    /// The claimed numbers, at one instant.
    pub(crate) fn claimed(&self) -> u64 {
        // Relaxed: where it matters what lies behind a bit, the slot's word says so.
        self.bits.load(Ordering::Relaxed)
    }

    /// Claims free numbers of a table that nobody else knows yet.
    pub(crate) fn set(&self, bits: u64) {
        // Relaxed: whoever gets to know the table does so by an acquiring step.
        self.bits.fetch_or(bits, Ordering::Relaxed);
    }

    /// Takes note of a claimed number, for [`high_water`](Self::high_water).
    #[inline(always)]
    pub(crate) fn note(&self, fd: u32) {
        // Relaxed: a statistic. Written only while the table reaches new heights.
        if fd >= self.high_water.load(Ordering::Relaxed) {
            self.high_water.fetch_max(fd + 1, Ordering::Relaxed);
        }
    }

    pub(crate) fn high_water(&self) -> u32 {
        self.high_water.load(Ordering::Relaxed)
    }

    /// A fork begins or ends. The caller holds the lock.
    pub(crate) fn announce_fork(&self, forking: bool) {
        // Relaxed: the read-modify-write on `bits` publishes it.
        self.forking.store(forking, Ordering::Relaxed);
        if forking {
            // Release pairs with the Acquire of claims: those after this see the flag. So only those
            // before it, at most one per number, can disturb the fork.
            self.bits.fetch_or(0, Ordering::Release);
        }
    }

    /// Whether a fork is copying the first word's slots.
    #[inline(always)]
    pub(crate) fn is_forking(&self) -> bool {
        // Relaxed: the claim that precedes it has acquired. Stale: an insert that waits needlessly
        // or disturbs the fork once more; both are harmless.
        self.forking.load(Ordering::Relaxed)
    }
}

/// The `n` lowest bits that are set, if there are so many.
#[inline(always)]
fn lowest(bits: u64, n: u32) -> Option<u64> {
    let mut rest = bits;
    for _ in 0..n {
        // Without the lowest bit that is set.
        rest &= rest.checked_sub(1)?;
    }
    Some(bits & !rest)
}

/// What only the holder of the lock touches: the lock's own content. A `&mut Upper` is the proof
/// that the caller holds the lock.
#[derive(Default)]
pub(crate) struct Upper {
    /// No number from `WORD` up to here is free.
    next_fd: u32,
    /// Open file descriptors from `WORD` on.
    pub(crate) open: usize,
}

/// The numbers from `WORD` on. A bit of level 0 is a number, a bit of a higher level says that a
/// word of the level below is full. A word without storage has all its numbers free.
pub(crate) struct Tree {
    level0: Segments<Guarded, { LEVEL_BINS[0] }>,
    level1: Segments<Guarded, { LEVEL_BINS[1] }>,
    level2: Segments<Guarded, { LEVEL_BINS[2] }>,
    level3: Segments<Guarded, { LEVEL_BINS[3] }>,
    top: [Guarded; TOP],
}

impl Tree {
    pub(crate) fn new() -> Self {
        Tree {
            level0: Segments::new(),
            level1: Segments::new(),
            level2: Segments::new(),
            level3: Segments::new(),
            top: Default::default(),
        }
    }

    #[inline]
    fn word(&self, level: usize, index: usize) -> Option<&Guarded> {
        match level {
            0 => self.level0.get(index),
            1 => self.level1.get(index),
            2 => self.level2.get(index),
            3 => self.level3.get(index),
            _ => self.top.get(index),
        }
    }

    #[inline]
    fn bits(&self, level: usize, index: usize) -> u64 {
        self.word(level, index).map_or(0, Guarded::get)
    }

    /// Gives the number storage on every level; returns the bytes added. Without the lock.
    #[cold]
    pub(crate) fn ensure(&self, fd: u32) -> Result<usize, OutOfMemory> {
        let at = |level: u32| fd as usize >> (WORD_LOG * (level + 1));
        Ok(self.level0.ensure(at(0))?
            + self.level1.ensure(at(1))?
            + self.level2.ensure(at(2))?
            + self.level3.ensure(at(3))?)
    }

    /// The lowest free number in `range`, whose start is at least `WORD`. O(levels), O(1) mostly.
    pub(crate) fn find(&self, upper: &mut Upper, range: Range<u32>) -> Option<u32> {
        let from = range.start.max(upper.next_fd);
        let fd = self.lowest_from(from)?;
        if range.start <= upper.next_fd.max(WORD as u32) {
            upper.next_fd = fd;
        }
        range.contains(&fd).then_some(fd)
    }

    /// The lowest free number from `fd` on, whatever the table's `max`.
    fn lowest_from(&self, fd: u32) -> Option<u32> {
        // Climb: at each level look at the rest of the word, then step to the next word, which is
        // a bit of the level above.
        let mut position = fd as usize;
        for level in 0..LEVELS {
            let index = position >> WORD_LOG;
            let free = !self.bits(level, index) & FULL & !below((position % WORD) as u64);
            if free != 0 {
                // Descend: the first child that is not full, down to the number.
                position = index << WORD_LOG | free.trailing_zeros() as usize;
                for level in (0..level).rev() {
                    let free = !self.bits(level, position);
                    position = position << WORD_LOG | free.trailing_zeros() as usize;
                }
                return u32::try_from(position).ok();
            }
            position = index + 1;
        }
        None
    }

    pub(crate) fn is_claimed(&self, _: &Upper, fd: u32) -> bool {
        self.bits(0, fd as usize >> WORD_LOG) >> (fd as usize % WORD) & 1 != 0
    }

    /// Claims a free number that has storage.
    pub(crate) fn claim(&self, upper: &mut Upper, fd: u32) {
        if upper.next_fd == fd {
            upper.next_fd += 1;
        }
        self.set(upper, fd as usize >> WORD_LOG, 1 << (fd as usize % WORD));
    }

    /// Sets bits of a word of level 0, and tells the levels above if it is full by this.
    pub(crate) fn set(&self, _: &mut Upper, index: usize, mut bits: u64) {
        let mut index = index;
        for level in 0..LEVELS {
            let Some(word) = self.word(level, index) else {
                debug_assert!(false, "claimed numbers have storage");
                return;
            };
            word.set(word.get() | bits);
            if word.get() != FULL {
                return;
            }
            bits = 1 << (index % WORD);
            index >>= WORD_LOG;
        }
    }

    /// Clears bits of a word of level 0, and tells the levels above if it was full.
    pub(crate) fn clear(&self, upper: &mut Upper, index: usize, bits: u64) {
        upper.next_fd = upper.next_fd.min((index << WORD_LOG) as u32 | bits.trailing_zeros());
        let (mut index, mut bits) = (index, bits);
        for level in 0..LEVELS {
            let Some(word) = self.word(level, index) else {
                debug_assert!(false, "claimed numbers have storage");
                return;
            };
            let was = word.get();
            word.set(was & !bits);
            if was != FULL {
                return;
            }
            bits = 1 << (index % WORD);
            index >>= WORD_LOG;
        }
    }

    /// Makes a claimed number free.
    pub(crate) fn release(&self, upper: &mut Upper, fd: u32) {
        self.clear(upper, fd as usize >> WORD_LOG, 1 << (fd as usize % WORD));
    }

    /// The claimed numbers of a word of level 0.
    pub(crate) fn claimed(&self, _: &Upper, index: usize) -> u64 {
        self.bits(0, index)
    }

    /// The first word of level 0 at or after `index` with a claimed number, and its bits. Cost by
    /// allocated words.
    pub(crate) fn next_word(&self, _: &Upper, mut index: usize) -> Option<(usize, u64)> {
        loop {
            index = self.level0.next_present(index)?;
            let bits = self.bits(0, index);
            if bits != 0 {
                return Some((index, bits));
            }
            index += 1;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    /// The tree against a set, at numbers where words, pieces and levels end.
    #[test]
    fn the_tree_answers_as_a_set_does() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..if cfg!(miri) { 2 } else { 30 } {
            let (tree, mut upper) = (Tree::new(), Upper::default());
            let (mut claimed, mut free) = (BTreeSet::new(), BTreeSet::new());
            let span: u32 =
                if cfg!(miri) { 200 } else { [70, 130, 4_200, 5_000, 300_000][random.usize(..5)] };
            // Full from the start on, so that the levels above count.
            for fd in 64..span {
                tree.ensure(fd).unwrap();
                tree.claim(&mut upper, fd);
                claimed.insert(fd);
            }
            free.extend(span..span + if cfg!(miri) { 300 } else { 10_000 });
            for _ in 0..if cfg!(miri) { 50 } else { 5_000 } {
                let start = if random.bool() { 64 } else { random.u32(64..span + 10) };
                let end = if random.bool() { u32::MAX } else { random.u32(start..span + 20) };
                let expected = free.range(start..end).next().copied();
                assert_eq!(tree.find(&mut upper, start..end), expected, "from {start} to {end}");
                if let Some(fd) = expected.filter(|_| random.bool()) {
                    tree.ensure(fd).unwrap();
                    tree.claim(&mut upper, fd);
                    free.remove(&fd);
                    claimed.insert(fd);
                } else if let Some(&fd) = claimed.range(start..).next() {
                    tree.release(&mut upper, fd);
                    claimed.remove(&fd);
                    free.insert(fd);
                }
            }
            let mut index = 1;
            let mut words = BTreeSet::new();
            while let Some((at, bits)) = tree.next_word(&upper, index) {
                words.extend(
                    (0..64).filter(|bit| bits >> bit & 1 != 0).map(|b| (at * 64 + b) as u32),
                );
                index = at + 1;
            }
            assert_eq!(words, claimed);
        }
    }

    #[test]
    fn the_largest_number_is_found() {
        let (tree, mut upper) = (Tree::new(), Upper::default());
        let last = crate::geometry::MAX_CEILING - 1;
        assert_eq!(tree.find(&mut upper, last..u32::MAX), Some(last));
        tree.ensure(last).unwrap();
        tree.claim(&mut upper, last);
        assert_eq!(tree.find(&mut upper, last..last + 1), None);
    }

    #[test]
    fn several_bits_at_once_or_none() {
        let word = FirstWord::new();
        assert_eq!(word.claim_many(0b1011, 2), Some(0b11));
        assert_eq!(word.claim_many(0b1011, 2), None);
        assert_eq!(word.claim_many(0b1011, 1), Some(0b1000));
        assert_eq!(word.claimed(), 0b1011);
        assert_eq!(word.claim_many(u64::MAX, 0), Some(0));
        word.release(0b10);
        assert_eq!(word.claim(u64::MAX), Some(1));
    }
}
