//! Which of the first numbers are claimed: one word, lock-free. Says nothing about files.

use core::ops::Range;
use core::sync::atomic::AtomicU32;

use crate::geometry::below;
use crate::sync::{AtomicBool, AtomicU64, ForUpdate as _, Ordering};

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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

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
