//! The numbers from `WORD` on, in groups: which of them are claimed, under the table's lock, and what lies
//! at each number (`S`, a slot).

use core::array;
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::AtomicPtr;

use crate::error::OutOfMemory;
use crate::geometry::{FULL, GROUP_BINS, WORD, WORD_LOG, below, spread};
use crate::segments::Segments;
use crate::sync::Guarded;
use crate::tree::Tree;

/// What only the holder of the lock touches: the lock's own content. A `&mut Upper` is the proof
/// that the caller holds the lock.
pub(crate) struct Upper {
    /// No number from `WORD` up to here is free.
    next_fd: u32,
    /// The name of the group that was asked for last; mostly it is the next one, too. 0: none yet.
    recent_name: usize,
    /// That group. Atomic to be `Send`, not to be shared.
    recent: AtomicPtr<()>,
    /// Open file descriptors from `WORD` on.
    pub(crate) open: usize,
}

impl Upper {
    pub(crate) fn new() -> Self {
        Upper { next_fd: WORD as u32, recent_name: 0, recent: AtomicPtr::default(), open: 0 }
    }
}

/// `WORD` consecutive numbers, with what lies at them: an allocation or a close finds both in one step.
/// Lookups write to the slots, allocations to the bits, hence on a line of its own.
#[repr(C, align(64))]
pub(crate) struct Group<S> {
    slots: [S; WORD],
    /// Bit set: the number is claimed.
    claimed: Guarded,
    /// 1: the tree has noted that the group is full; else 0.
    noted: Guarded,
}

impl<S: Default> Default for Group<S> {
    fn default() -> Self {
        Group {
            slots: array::from_fn(|_| S::default()),
            claimed: Guarded::default(),
            noted: Guarded::default(),
        }
    }
}

impl<S> Group<S> {
    /// What lies at a number of this group; of `fd` only the place in the group counts.
    #[inline(always)]
    pub(crate) fn slot(&self, fd: u32) -> &S {
        &self.slots[spread(fd as usize)]
    }

    #[inline(always)]
    pub(crate) fn slot_mut(&mut self, fd: u32) -> &mut S {
        &mut self.slots[spread(fd as usize)]
    }

    /// The claimed numbers.
    #[inline(always)]
    pub(crate) fn claimed(&self, _: &Upper) -> u64 {
        self.claimed.get()
    }

    #[inline(always)]
    pub(crate) fn is_claimed(&self, upper: &Upper, fd: u32) -> bool {
        self.claimed(upper) & bit(fd) != 0
    }
}

/// The bit of a number in its group's word.
#[inline(always)]
fn bit(fd: u32) -> u64 {
    1 << (fd as usize % WORD)
}

/// A group is named by its numbers' common high bits: 1 is the first one here.
pub(crate) struct Groups<S> {
    groups: Segments<Group<S>, GROUP_BINS, WORD_LOG>,
    full: Tree,
}

impl<S> Groups<S> {
    pub(crate) fn new() -> Self {
        Groups { groups: Segments::new(), full: Tree::new() }
    }

    #[inline(always)]
    pub(crate) fn name(fd: u32) -> usize {
        fd as usize >> WORD_LOG
    }

    /// The group, if it has storage. Wait-free.
    #[inline(always)]
    pub(crate) fn get(&self, name: usize) -> Option<&Group<S>> {
        self.groups.get(name.checked_sub(1)?)
    }

    /// As `get`, without the walk if the last call asked for the same group.
    ///
    /// `upper` is the content of the lock of this very table.
    #[inline(always)]
    #[expect(unsafe_code, reason = "the walk costs as much as the rest of an allocation")]
    pub(crate) fn recent(&self, upper: &mut Upper, name: usize) -> Option<&Group<S>> {
        if upper.recent_name != name {
            let group = self.find_storage(name)?;
            upper.recent_name = name;
            *upper.recent.get_mut() = group.as_ptr().cast();
        }
        let group = NonNull::new(*upper.recent.get_mut())?.cast();
        // SAFETY: only set above, to a group of this table, which stays where it is as long as `self` lives
        // (I9). Not made from a reference, so no `get_mut` since then has ended its validity.
        Some(unsafe { group.as_ref() })
    }

    #[inline(never)]
    fn find_storage(&self, name: usize) -> Option<NonNull<Group<S>>> {
        self.groups.find(name.checked_sub(1)?)
    }

    /// What lies at the number, if it has storage. Wait-free.
    #[inline(always)]
    pub(crate) fn slot(&self, fd: u32) -> Option<&S> {
        self.get(Self::name(fd)).map(|group| group.slot(fd))
    }

    #[inline]
    pub(crate) fn slot_mut(&mut self, fd: u32) -> Option<&mut S> {
        let group = self.groups.get_mut(Self::name(fd).checked_sub(1)?)?;
        Some(group.slot_mut(fd))
    }

    /// The groups that get their storage together with this one.
    pub(crate) fn piece(name: usize) -> Range<usize> {
        let piece = Segments::<Group<S>, GROUP_BINS, WORD_LOG>::piece(name - 1);
        piece.start + 1..piece.end + 1
    }

    /// The first group from `name` on that has storage.
    pub(crate) fn next(&self, name: usize) -> Option<(usize, &Group<S>)> {
        let index = self.groups.next_present(name.saturating_sub(1))?;
        Some((index + 1, self.groups.get(index)?))
    }

    /// The first group from `name` on that has claimed numbers, and these. Cost by groups with storage.
    pub(crate) fn next_claimed(
        &self,
        upper: &Upper,
        mut name: usize,
    ) -> Option<(usize, &Group<S>, u64)> {
        loop {
            let (at, group) = self.next(name)?;
            let bits = group.claimed(upper);
            if bits != 0 {
                return Some((at, group, bits));
            }
            name = at + 1;
        }
    }

    /// The last group before `name` that has storage.
    pub(crate) fn previous(&self, name: usize) -> Option<(usize, &Group<S>)> {
        let index = self.previous_index(name)?;
        Some((index + 1, self.groups.get(index)?))
    }

    pub(crate) fn previous_mut(&mut self, name: usize) -> Option<(usize, &mut Group<S>)> {
        let index = self.previous_index(name)?;
        Some((index + 1, self.groups.get_mut(index)?))
    }

    fn previous_index(&self, name: usize) -> Option<usize> {
        let last = name.checked_sub(2)?.min(Segments::<Group<S>, GROUP_BINS, WORD_LOG>::LAST_INDEX);
        self.groups.previous_present(last)
    }

    /// The lowest free number in `range`, whose start is at least `WORD`, and its group, if that has
    /// storage: one without has all its numbers free. O(1) mostly; else O(levels), and as much once for each
    /// group that became full unseen.
    #[inline(always)]
    pub(crate) fn find(
        &self,
        upper: &mut Upper,
        range: Range<u32>,
    ) -> Option<(u32, Option<&Group<S>>)> {
        let from = range.start.max(upper.next_fd);
        let group = self.recent(upper, Self::name(from));
        let free = Self::free(group) & !below(u64::from(from) % WORD as u64);
        let (fd, group) = if free != 0 {
            (from & !(WORD as u32 - 1) | free.trailing_zeros(), group)
        } else {
            self.find_beyond(upper, Self::name(from))?
        };
        if range.start <= upper.next_fd {
            upper.next_fd = fd;
        }
        range.contains(&fd).then_some((fd, group))
    }

    /// The lowest free number beyond a group.
    #[inline(never)]
    fn find_beyond(&self, upper: &mut Upper, mut name: usize) -> Option<(u32, Option<&Group<S>>)> {
        loop {
            // Where a search passes, the tree learns that a group is full: an fd that is closed and opened again in
            // a full group leaves it alone.
            if let Some(group) = self.recent(upper, name) {
                self.note_if_full(upper, name, group);
            }
            name = self.full.next_unset(name + 1)?;
            let group = self.recent(upper, name);
            let free = Self::free(group);
            if free != 0 {
                let start = u32::try_from(name << WORD_LOG).ok()?;
                return Some((start | free.trailing_zeros(), group));
            }
        }
    }

    fn note_if_full(&self, _: &mut Upper, name: usize, group: &Group<S>) {
        if group.claimed.get() == FULL && group.noted.get() == 0 {
            group.noted.set(1);
            self.full.set(name);
        }
    }

    #[inline(always)]
    fn free(group: Option<&Group<S>>) -> u64 {
        !group.map_or(0, |group| group.claimed.get()) & FULL
    }

    /// Claims a free number.
    #[inline(always)]
    pub(crate) fn claim(&self, upper: &mut Upper, fd: u32, group: &Group<S>) {
        if upper.next_fd == fd {
            upper.next_fd += 1;
        }
        group.claimed.set(group.claimed.get() | bit(fd));
    }

    /// Claims free numbers of a group.
    pub(crate) fn claim_bits(&self, upper: &mut Upper, name: usize, group: &Group<S>, bits: u64) {
        group.claimed.set(group.claimed.get() | bits);
        self.note_if_full(upper, name, group);
    }

    /// Makes a claimed number free.
    #[inline(always)]
    pub(crate) fn release(&self, upper: &mut Upper, fd: u32, group: &Group<S>) {
        upper.next_fd = upper.next_fd.min(fd);
        group.claimed.set(group.claimed.get() & !bit(fd));
        if group.noted.get() != 0 {
            group.noted.set(0);
            self.full.clear(Self::name(fd));
        }
    }
}

impl<S: Default> Groups<S> {
    /// Gives the group storage, with all of its piece: first the tree's words, so that a group that
    /// is there has them. Returns the bytes added. Without the lock.
    #[cold]
    pub(crate) fn ensure(&self, name: usize) -> Result<usize, OutOfMemory> {
        let piece = Self::piece(name);
        Ok(self.full.ensure(piece.start)?
            + self.full.ensure(piece.end - 1)?
            + self.groups.ensure(name - 1)?)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    type Numbers = Groups<()>;

    fn claim(numbers: &Numbers, upper: &mut Upper, fd: u32) {
        numbers.ensure(Numbers::name(fd)).unwrap();
        numbers.claim(upper, fd, numbers.get(Numbers::name(fd)).unwrap());
    }

    fn find(numbers: &Numbers, upper: &mut Upper, range: Range<u32>) -> Option<u32> {
        numbers.find(upper, range).map(|(fd, _)| fd)
    }

    /// The tree against a set, at numbers where words, pieces and levels end.
    #[test]
    fn the_groups_answer_as_a_set_does() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let spans: &[u32] = if cfg!(miri) { &[70, 200] } else { &[70, 130, 4_200, 5_000, 300_000] };
        for &span in spans {
            let (numbers, mut upper) = (Numbers::new(), Upper::new());
            let (mut claimed, mut free) = (BTreeSet::new(), BTreeSet::new());
            // Full from the start on, so that the levels above count.
            for fd in 64..span {
                claim(&numbers, &mut upper, fd);
                claimed.insert(fd);
            }
            free.extend(span..span + if cfg!(miri) { 300 } else { 10_000 });
            for _ in 0..if cfg!(miri) { 50 } else { 5_000 } {
                let start = if random.bool() { 64 } else { random.u32(64..span + 10) };
                let end = if random.bool() { u32::MAX } else { random.u32(start..span + 20) };
                let expected = free.range(start..end).next().copied();
                let found = find(&numbers, &mut upper, start..end);
                assert_eq!(found, expected, "from {start} to {end}");
                if let Some(fd) = expected.filter(|_| random.bool()) {
                    claim(&numbers, &mut upper, fd);
                    free.remove(&fd);
                    claimed.insert(fd);
                } else if let Some(&fd) = claimed.range(start..).next() {
                    let group = numbers.get(Numbers::name(fd)).unwrap();
                    numbers.release(&mut upper, fd, group);
                    claimed.remove(&fd);
                    free.insert(fd);
                }
            }
            let mut name = 1;
            let mut bits = BTreeSet::new();
            while let Some((at, group)) = numbers.next(name) {
                let claimed = group.claimed(&upper);
                bits.extend(
                    (0..64).filter(|b| claimed >> b & 1 != 0).map(|b| (at * 64 + b) as u32),
                );
                name = at + 1;
            }
            assert_eq!(bits, claimed);
        }
    }

    #[test]
    fn a_piece_is_what_gets_its_storage_together() {
        for name in [1, 2, 3, 4, 7, 8, 15, 16, 24, 100, 255, 256, 5000] {
            let numbers = Numbers::new();
            numbers.ensure(name).unwrap();
            let piece = Numbers::piece(name);
            assert!(piece.contains(&name), "{name}");
            for near in piece.start.saturating_sub(3)..piece.end + 3 {
                assert_eq!(numbers.get(near).is_some(), piece.contains(&near), "{name}, {near}");
            }
        }
    }

    /// Miri's matter: an exclusive borrow ends what was made from references before.
    #[test]
    fn the_remembered_group_outlives_an_exclusive_borrow() {
        let (mut groups, mut upper) = (Groups::<u8>::new(), Upper::new());
        groups.ensure(1).unwrap();
        assert!(groups.recent(&mut upper, 1).is_some());
        *groups.slot_mut(70).unwrap() = 7;
        assert_eq!(groups.recent(&mut upper, 1).map(|group| *group.slot(70)), Some(7));
        assert!(groups.recent(&mut upper, 2).is_none());
    }

    /// Or each search would pass all of them again.
    #[test]
    fn the_tree_learns_of_the_full_groups_that_a_search_passes() {
        let (numbers, mut upper) = (Numbers::new(), Upper::new());
        (64..192).for_each(|fd| claim(&numbers, &mut upper, fd));
        numbers.release(&mut upper, 64, numbers.get(1).unwrap());
        claim(&numbers, &mut upper, 64);
        assert_eq!(find(&numbers, &mut upper, 65..u32::MAX), Some(192));
        assert_eq!(numbers.full.next_unset(1), Some(3));
        numbers.release(&mut upper, 100, numbers.get(1).unwrap());
        assert_eq!(numbers.full.next_unset(1), Some(1));
    }

    #[test]
    fn the_largest_number_is_found() {
        let (numbers, mut upper) = (Numbers::new(), Upper::new());
        let last = crate::geometry::MAX_CEILING - 1;
        assert_eq!(find(&numbers, &mut upper, last..u32::MAX), Some(last));
        claim(&numbers, &mut upper, last);
        assert_eq!(find(&numbers, &mut upper, last..last + 1), None);
    }
}
