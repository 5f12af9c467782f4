//! A tree of the groups that are full: by it a search skips them, `WORD` or a power of it at each step.

use crate::error::OutOfMemory;
use crate::geometry::{FULL, LEVEL_BINS, LEVELS, TOP, WORD, WORD_LOG, below};
use crate::segments::Segments;
use crate::sync::Guarded;

/// Which groups are noted as full: a bit of level 1 is a group, a bit of a higher level says that a word of
/// the level below has all its bits. All under the lock.
pub(crate) struct Tree {
    level1: Segments<Guarded, { LEVEL_BINS[0] }, 0>,
    level2: Segments<Guarded, { LEVEL_BINS[1] }, 0>,
    level3: Segments<Guarded, { LEVEL_BINS[2] }, 0>,
    top: [Guarded; TOP],
}

impl Tree {
    pub(crate) fn new() -> Self {
        Tree {
            level1: Segments::new(),
            level2: Segments::new(),
            level3: Segments::new(),
            top: Default::default(),
        }
    }

    #[inline]
    fn word(&self, level: u32, index: usize) -> Option<&Guarded> {
        match level {
            1 => self.level1.get(index),
            2 => self.level2.get(index),
            3 => self.level3.get(index),
            _ => self.top.get(index),
        }
    }

    /// The bits of a word that are not set.
    #[inline]
    fn unset(&self, level: u32, index: usize) -> u64 {
        !self.word(level, index).map_or(0, Guarded::get) & FULL
    }

    /// The words of a group on every level; returns the bytes added.
    pub(crate) fn ensure(&self, group: usize) -> Result<usize, OutOfMemory> {
        let at = |level: u32| group >> (WORD_LOG * level);
        Ok(self.level1.ensure(at(1))? + self.level2.ensure(at(2))? + self.level3.ensure(at(3))?)
    }

    /// The first group from `group` on that is not full.
    pub(crate) fn next_unset(&self, group: usize) -> Option<usize> {
        // Climb: at each level look at the rest of the word, then step to the next word, which is
        // a bit of the level above.
        let mut position = group;
        for level in 1..LEVELS {
            let index = position >> WORD_LOG;
            let unset = self.unset(level, index) & !below((position % WORD) as u64);
            if unset != 0 {
                // Descend: the first child that is not full, down to the group.
                position = index << WORD_LOG | unset.trailing_zeros() as usize;
                for level in (1..level).rev() {
                    let unset = self.unset(level, position);
                    position = position << WORD_LOG | unset.trailing_zeros() as usize;
                }
                return Some(position);
            }
            position = index + 1;
        }
        // No level is above the top: on from the first group of its next word, if it has one.
        if position < TOP { self.next_unset(position << (WORD_LOG * (LEVELS - 1))) } else { None }
    }

    /// Takes note that a group is full.
    #[inline(never)]
    pub(crate) fn set(&self, group: usize) {
        self.update(group, |word, bit| word | bit);
    }

    /// Takes note that a group is full no more.
    #[inline(never)]
    pub(crate) fn clear(&self, group: usize) {
        self.update(group, |word, bit| word & !bit);
    }

    /// Changes a group's bit, and those above it as far as words become full, or are full no more.
    #[inline(always)]
    fn update(&self, group: usize, change: impl Fn(u64, u64) -> u64) {
        let mut position = group;
        for level in 1..LEVELS {
            let Some(word) = self.word(level, position >> WORD_LOG) else {
                debug_assert!(false, "a group that has storage has its words");
                return;
            };
            let was = word.get();
            let now = change(was, 1 << (position % WORD));
            word.set(now);
            if (was == FULL) == (now == FULL) {
                return;
            }
            position >>= WORD_LOG;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// So many groups that words of every level become full, and not the first ones of their levels.
    #[test]
    #[cfg_attr(miri, ignore = "too many")]
    fn every_level_of_the_tree_counts() {
        let tree = Tree::new();
        let groups = 5 << 18..6 << 18;
        for group in groups.clone() {
            tree.ensure(group).unwrap();
            tree.set(group);
        }
        assert_eq!(tree.next_unset(groups.start), Some(groups.end));
        let freed = groups.start + 100_000;
        tree.clear(freed);
        assert_eq!(tree.next_unset(groups.start), Some(freed));
        assert_eq!(tree.next_unset(freed + 1), Some(groups.end));
        tree.set(freed);
        assert_eq!(tree.next_unset(groups.start), Some(groups.end));
    }

    /// A word of the top is no bit of a level above, by which a search would get to the next one.
    #[test]
    fn a_search_goes_on_in_the_next_word_of_the_top() {
        let tree = Tree::new();
        tree.ensure(0).unwrap();
        for level in 1..LEVELS {
            tree.word(level, 0).unwrap().set(FULL);
        }
        assert_eq!(tree.next_unset(0), Some(1 << 24));
    }
}
