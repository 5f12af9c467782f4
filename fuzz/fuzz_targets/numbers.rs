//! The first word, the groups above it and their tree against plain words in a map: one thread, arbitrary
//! calls.
//!
//! `cargo +nightly fuzz run numbers`
#![no_main]

extern crate alloc;

// Not public: the sources themselves. Not all of what is in them is for here.
#[path = "../../src/geometry.rs"]
#[allow(dead_code)]
mod geometry;
#[path = "../../src/groups.rs"]
#[allow(dead_code)]
mod groups;
#[path = "../../src/numbers.rs"]
#[allow(dead_code)]
mod numbers;
#[path = "../../src/segments.rs"]
#[allow(dead_code)]
mod segments;
#[path = "../../src/sync/mod.rs"]
#[allow(dead_code, unused_imports)]
mod sync;
#[path = "../../src/tree.rs"]
mod tree;

mod error {
    pub(crate) use fdtable::OutOfMemory;
}

use std::collections::BTreeMap;
use std::ops::Range;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

use geometry::{FULL, MAX_CEILING, WORD, WORD_LOG};
use groups::{Group, Groups, Upper};
use numbers::FirstWord;

type Numbers = Groups<()>;

/// A number from `WORD` on; mostly near one where a word or a level ends.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Number {
    First(u8),
    Near { log: u8, offset: i8 },
    Any(u32),
}

impl Number {
    fn get(self) -> u32 {
        let number = match self {
            // Two words and a bit.
            Number::First(offset) => WORD as i64 + i64::from(offset) / 2,
            Number::Near { log, offset } => (1 << (log % 32)) + i64::from(offset),
            Number::Any(number) => number.into(),
        };
        number.clamp(WORD as i64, i64::from(MAX_CEILING) - 1) as u32
    }
}

#[derive(Arbitrary, Debug)]
enum Op {
    // The first word
    ClaimFirst { allowed: u64, count: u8 },
    TryClaimFirst { wanted: u64, is_stale: bool },
    ReleaseFirst(u64),
    Mask(u8, u8),
    // The groups
    Find { start: Option<Number>, end: Option<Number>, is_claimed: bool },
    ClaimAt(Number),
    Release(Number),
    IsClaimed(Number),
    SetWord { at: Number, bits: u64 },
    FillWords { at: Number, count: u8 },
    ClearWord { at: Number, bits: u64 },
    NextWord(Number),
    PreviousWord(Number),
}

/// The claimed numbers, 64 to a word; those that are not there are empty.
#[derive(Default)]
struct Words(BTreeMap<usize, u64>);

impl Words {
    fn get(&self, index: usize) -> u64 {
        self.0.get(&index).copied().unwrap_or(0)
    }

    fn update(&mut self, index: usize, bits: u64) {
        match bits {
            0 => _ = self.0.remove(&index),
            _ => _ = self.0.insert(index, bits),
        }
    }

    fn is_claimed(&self, fd: u32) -> bool {
        self.get(word_of(fd)) & bit_of(fd) != 0
    }

    fn lowest(&self, range: Range<u32>) -> Option<u32> {
        let mut numbers = range;
        loop {
            let fd = numbers.next()?;
            if self.get(word_of(fd)) == FULL {
                numbers.start = (fd | (WORD as u32 - 1)) + 1;
            } else if !self.is_claimed(fd) {
                return Some(fd);
            }
        }
    }
}

fn word_of(fd: u32) -> usize {
    fd as usize >> WORD_LOG
}

fn bit_of(fd: u32) -> u64 {
    1 << (fd as usize % WORD)
}

/// The `count` lowest bits of a word, if there are so many.
fn lowest_bits(bits: u64, count: u8) -> Option<u64> {
    let all = (0..u64::BITS).map(|bit| 1 << bit).filter(|bit| bits & bit != 0);
    let lowest: Vec<u64> = all.take(count.into()).collect();
    (lowest.len() == usize::from(count)).then(|| lowest.iter().sum())
}

fn ensure(numbers: &Numbers, name: usize) -> &Group<()> {
    numbers.ensure(name).expect("memory");
    assert_eq!(numbers.ensure(name), Ok(0), "what is there is not made again");
    numbers.get(name).expect("has storage now")
}

/// As a fork does: those of the bits that are free.
fn claim_bits(numbers: &Numbers, upper: &mut Upper, words: &mut Words, index: usize, bits: u64) {
    let bits = bits & !words.get(index);
    if bits != 0 {
        numbers.claim_bits(upper, index, ensure(numbers, index), bits);
        words.update(index, words.get(index) | bits);
    }
}

fn next_claimed(numbers: &Numbers, upper: &Upper, from: usize) -> Option<(usize, u64)> {
    numbers.next_claimed(upper, from).map(|(name, _, bits)| (name, bits))
}

fn previous_claimed(numbers: &Numbers, upper: &Upper, mut before: usize) -> Option<(usize, u64)> {
    loop {
        let (name, group) = numbers.previous(before)?;
        match group.claimed(upper) {
            0 => before = name,
            bits => return Some((name, bits)),
        }
    }
}

// With each call, whether to ask for the lowest number of all after it: that moves the tree's hint.
fuzz_target!(|calls: Vec<(Op, bool)>| {
    let (first, mut first_model) = (FirstWord::new(), 0_u64);
    let (numbers, mut upper, mut words) = (Numbers::new(), Upper::new(), Words::default());
    for (op, asks) in calls {
        match op {
            Op::ClaimFirst { allowed, count } => {
                let expected = lowest_bits(!first_model & allowed, count % 67);
                assert_eq!(first.claim_many(allowed, u32::from(count % 67)), expected);
                first_model |= expected.unwrap_or(0);
            }
            Op::TryClaimFirst { wanted, is_stale } => {
                let wanted = wanted & !first_model;
                let seen = if is_stale { !first_model } else { first_model };
                // Weak: it may fail for no reason; not on what has changed.
                if first.try_claim(seen, wanted & !seen) {
                    assert!(!is_stale);
                    first_model |= wanted;
                }
            }
            Op::ReleaseFirst(bits) => {
                first.release(bits);
                first_model &= !bits;
            }
            Op::Mask(start, end) => {
                let numbers = (0..u64::BITS).filter(|bit| (start.into()..end.into()).contains(bit));
                let expected = numbers.map(|bit| 1_u64 << bit).sum();
                assert_eq!(FirstWord::mask(&(start.into()..end.into())), expected);
            }
            Op::Find { start, end, is_claimed } => {
                let range =
                    start.map_or(WORD as u32, Number::get)..end.map_or(MAX_CEILING, Number::get);
                let found = numbers.find(&mut upper, range.clone()).map(|(fd, _)| fd);
                assert_eq!(found, words.lowest(range));
                if let Some(fd) = found.filter(|_| is_claimed) {
                    numbers.claim(&mut upper, fd, ensure(&numbers, word_of(fd)));
                    words.update(word_of(fd), words.get(word_of(fd)) | bit_of(fd));
                }
            }
            Op::ClaimAt(fd) => {
                let fd = fd.get();
                if !words.is_claimed(fd) {
                    numbers.claim(&mut upper, fd, ensure(&numbers, word_of(fd)));
                    words.update(word_of(fd), words.get(word_of(fd)) | bit_of(fd));
                }
            }
            Op::Release(fd) => {
                let fd = fd.get();
                if words.is_claimed(fd) {
                    let group = numbers.get(word_of(fd)).expect("claimed numbers have storage");
                    numbers.release(&mut upper, fd, group);
                    words.update(word_of(fd), words.get(word_of(fd)) & !bit_of(fd));
                }
            }
            Op::IsClaimed(fd) => {
                let fd = fd.get();
                let group = numbers.get(word_of(fd));
                assert_eq!(group.is_some_and(|g| g.is_claimed(&upper, fd)), words.is_claimed(fd));
                assert_eq!(group.map_or(0, |g| g.claimed(&upper)), words.get(word_of(fd)));
            }
            Op::SetWord { at, bits } => {
                claim_bits(&numbers, &mut upper, &mut words, word_of(at.get()), bits);
            }
            Op::FillWords { at, count } => {
                // Now and then enough to fill a word of level 2.
                let count = if count == u8::MAX { 4200 } else { count.into() };
                let from = word_of(at.get());
                for index in from..(from + count).min(word_of(MAX_CEILING)) {
                    claim_bits(&numbers, &mut upper, &mut words, index, FULL);
                }
            }
            // A sweep: all claimed before.
            Op::ClearWord { at, bits } => {
                let index = word_of(at.get());
                let bits = bits & words.get(index);
                if bits != 0 {
                    let group = numbers.get(index).expect("claimed numbers have storage");
                    for bit in (0..WORD).filter(|bit| bits >> bit & 1 != 0) {
                        numbers.release(&mut upper, (index << WORD_LOG | bit) as u32, group);
                    }
                    words.update(index, words.get(index) & !bits);
                }
            }
            Op::NextWord(fd) => {
                let index = word_of(fd.get());
                let expected = words.0.range(index..).next().map(|(&index, &bits)| (index, bits));
                assert_eq!(next_claimed(&numbers, &upper, index), expected);
            }
            Op::PreviousWord(fd) => {
                let index = word_of(fd.get());
                let before = words.0.range(..index).next_back();
                let expected = before.map(|(&index, &bits)| (index, bits));
                assert_eq!(previous_claimed(&numbers, &upper, index), expected);
            }
        }
        assert_eq!(first.claimed(), first_model);
        if asks {
            let all = WORD as u32..MAX_CEILING;
            let found = numbers.find(&mut upper, all.clone()).map(|(fd, _)| fd);
            assert_eq!(found, words.lowest(all));
        }
    }
    let next = |&(index, _): &_| next_claimed(&numbers, &upper, index + 1);
    let claimed = std::iter::successors(next_claimed(&numbers, &upper, 1), next);
    assert!(claimed.eq(words.0), "the claimed numbers, word by word");
});
