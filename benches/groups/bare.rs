//! The read-modify-writes of an operation by themselves, on words of their own: how near a table is to what the
//! machine can do.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;

use crate::rounds::Candidate;

/// One handle, in the count above the address.
const ONE: usize = 1 << 48;
const ADDRESS: usize = ONE - 8;

#[derive(Default)]
struct Words {
    numbers: CachePadded<AtomicUsize>,
    slots: CachePadded<[AtomicUsize; 8]>,
    counter: CachePadded<AtomicUsize>,
}

impl Words {
    /// A claim, a store: an insert.
    #[inline(always)]
    fn fill(&self, value: usize) -> usize {
        let mut bits = self.numbers.load(Ordering::Relaxed);
        let number = loop {
            let free = (!bits).trailing_zeros() as usize;
            let claimed = bits | 1 << free;
            match exchange(&self.numbers, bits, claimed) {
                Ok(_) => break free,
                Err(seen) => bits = seen,
            }
        };
        self.slots[number % 8].store(value, Ordering::Release);
        number
    }

    /// An exchange, a release: a close.
    #[inline(always)]
    fn take(&self, number: usize) -> usize {
        let slot = &self.slots[number % 8];
        let mut word = slot.load(Ordering::Acquire);
        while let Err(seen) = exchange(slot, word, 0) {
            word = seen;
        }
        self.numbers.fetch_and(!(1 << number), Ordering::Release);
        word & ADDRESS
    }
}

#[inline(always)]
fn exchange(word: &AtomicUsize, old: usize, new: usize) -> Result<usize, usize> {
    word.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Acquire)
}

/// An addition and an exchange on one word: a lookup and the drop of its handle.
pub(crate) fn lookup() -> Candidate {
    let word = CachePadded::new(AtomicUsize::new(8));
    Candidate::new("bare: addition, exchange", move || {
        let found = word.fetch_add(ONE, Ordering::Acquire);
        black_box(found & ADDRESS);
        word.compare_exchange(found + ONE, found, Ordering::Release, Ordering::Relaxed)
    })
}

pub(crate) fn cycle() -> Candidate {
    let words = Words::default();
    Candidate::new("bare: claim, exchange, release", move || {
        words.take(black_box(words.fill(black_box(64))))
    })
}

pub(crate) fn fresh_cycle() -> Candidate {
    let words = Words::default();
    Candidate::new("bare: the same around a Box", move || {
        let file = Box::new([1, black_box(7)]);
        // The pointer goes along as what it is; the words only cost what they cost.
        words.take(black_box(words.fill(file.as_ptr().addr() & ADDRESS)));
        black_box(file)
    })
}

pub(crate) fn dup() -> Candidate {
    let words = Words::default();
    Candidate::new("bare: addition, addition, claim, exchange, release, addition", move || {
        words.counter.fetch_add(ONE, Ordering::Acquire);
        words.counter.fetch_add(1, Ordering::Relaxed);
        let word = words.take(black_box(words.fill(black_box(64))));
        words.counter.fetch_sub(1, Ordering::AcqRel);
        word
    })
}
