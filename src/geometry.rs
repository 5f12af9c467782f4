//! Every size the table is built from; tiny under loom and small under shuttle, so that growth, full
//! words and the tree's upper levels are reached within a few operations.

pub(crate) use sizes::*;

#[cfg(not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle"))))]
mod sizes {
    /// Numbers in one bitmap word, and slots in the inline first region.
    pub(crate) const WORD: usize = 64;
    /// Bins of more words than this are made of pieces, found through a directory.
    pub(crate) const DIRECT: usize = 512;
    /// Bins for the groups of numbers: fds up to `MAX_CEILING`.
    pub(crate) const GROUP_BINS: usize = 25;
    /// Bins for levels 1 to 3 of the tree of full groups.
    pub(crate) const LEVEL_BINS: [usize; 3] = [20, 14, 8];
    /// Words in level 4, the top of the tree.
    pub(crate) const TOP: usize = 2;
    /// A lookup that finds this count in a slot moves the count to the file.
    /// Under Miri so few that tests get there.
    pub(crate) const TRANSFER_AT: usize = if cfg!(miri) { 1 << 6 } else { 1 << 14 };
    /// How often a dropped handle tries to return to its slot once that is contended.
    pub(crate) const GIVE_BACK_TRIES: usize = 3;
    /// Largest `max` a table can have: the largest multiple of `WORD` in an `i32`.
    pub(crate) const MAX_CEILING: u32 = i32::MAX as u32 & !(WORD as u32 - 1);
    /// Linux' default for `/proc/sys/fs/nr_open`.
    pub(crate) const MAX_DEFAULT: u32 = 1 << 20;

    /// Where a number's slot lies inside its group of 64.
    ///
    /// A group is eight 64-byte lines of eight slots, and threads that work on different fds should write to
    /// different ones. Multiplying by an odd number moves them around; with this one, numbers next to each other
    /// do not even lie in one pair of lines (the unit that the hardware prefetches), nor do those that are 8 or 16
    /// apart. Some that are 5, 7, 12 or 14 apart share a line.
    #[inline(always)]
    pub(crate) const fn spread(number: usize) -> usize {
        number * 37 % WORD
    }
}

#[cfg(all(loom, feature = "loom"))]
mod sizes {
    pub(crate) const WORD: usize = 2;
    pub(crate) const DIRECT: usize = 2;
    pub(crate) const GROUP_BINS: usize = 2;
    pub(crate) const LEVEL_BINS: [usize; 3] = [2, 1, 1];
    pub(crate) const TOP: usize = 1;
    pub(crate) const TRANSFER_AT: usize = 2;
    pub(crate) const GIVE_BACK_TRIES: usize = 1;
    pub(crate) const MAX_CEILING: u32 = 8;
    pub(crate) const MAX_DEFAULT: u32 = 8;

    pub(crate) const fn spread(number: usize) -> usize {
        number % WORD
    }
}

/// Several words, each with several numbers: for many threads with many operations.
#[cfg(all(shuttle, feature = "shuttle"))]
mod sizes {
    pub(crate) const WORD: usize = 4;
    pub(crate) const DIRECT: usize = 4;
    pub(crate) const GROUP_BINS: usize = 3;
    pub(crate) const LEVEL_BINS: [usize; 3] = [2, 1, 1];
    pub(crate) const TOP: usize = 1;
    pub(crate) const TRANSFER_AT: usize = 2;
    pub(crate) const GIVE_BACK_TRIES: usize = 1;
    pub(crate) const MAX_CEILING: u32 = 32;
    pub(crate) const MAX_DEFAULT: u32 = 32;

    pub(crate) const fn spread(number: usize) -> usize {
        number % WORD
    }
}

/// log2 of `WORD`.
pub(crate) const WORD_LOG: u32 = WORD.ilog2();
/// log2 of `DIRECT`.
pub(crate) const DIRECT_LOG: u32 = DIRECT.ilog2();
/// Levels of the tree, the bits of the groups and the top included.
pub(crate) const LEVELS: u32 = LEVEL_BINS.len() as u32 + 2;
/// A word with every number taken.
pub(crate) const FULL: u64 = below(WORD as u64);

/// Bits of a slot word that hold the file's address; the rest, above, is the count.
pub(crate) const ADDRESS_BITS: u32 = 48;
/// Largest count a slot word can hold.
pub(crate) const COUNT_MAX: usize = usize::MAX >> ADDRESS_BITS;
/// What a file's own counter holds for each slot the file sits in.
pub(crate) const BIAS: usize = 1 << 20;

/// The `n` lowest bits set; all of a word's for `n >= WORD`.
#[inline(always)]
pub(crate) const fn below(n: u64) -> u64 {
    if n >= WORD as u64 { u64::MAX >> (64 - WORD) } else { (1 << n) - 1 }
}

static_assertions::const_assert!(WORD.is_power_of_two() && WORD <= 64);
static_assertions::const_assert!(DIRECT.is_power_of_two() && DIRECT >= WORD);
// The bins have room for the last group, and the tree's for the words of all groups that get storage. Bin
// `n` has the elements named `1 << n` and up; a word of the tree is named by its index and one.
const _: () = {
    let last = (1 << GROUP_BINS) - 1;
    assert!((MAX_CEILING as usize - 1) >> WORD_LOG <= last);
    let mut level = 0;
    while level < LEVEL_BINS.len() {
        assert!((last >> (WORD_LOG * (level as u32 + 1))) + 1 < 1 << LEVEL_BINS[level]);
        level += 1;
    }
    assert!(last >> (WORD_LOG * (LEVELS - 1)) < TOP);
};
static_assertions::const_assert!(
    MAX_DEFAULT <= MAX_CEILING && (MAX_CEILING as usize).is_multiple_of(WORD)
);
// A file still in a slot must never look unreferenced: see invariant I3 of the design page.
static_assertions::const_assert!(BIAS > 2 * COUNT_MAX);
static_assertions::const_assert!(TRANSFER_AT < COUNT_MAX / 2);

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn neighbours_lie_far_from_each_other() {
        let line = |number: usize| spread(number) / 8;
        for number in 0..WORD {
            for near in [1, 8, 16] {
                assert_ne!(line(number) / 2, line(number + near) / 2, "{number}, {near} apart");
            }
            for distance in (8..WORD - number).step_by(8) {
                assert_ne!(line(number), line(number + distance), "{number}, {distance} apart");
            }
        }
        let mut places: alloc::vec::Vec<_> = (0..WORD).map(spread).collect();
        places.sort_unstable();
        assert!(places.into_iter().eq(0..WORD));
    }
}
