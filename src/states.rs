//! The states of a number, *free*, *reserved* and *open*, and the moves between them. This is where
//! numbers and slots meet: a number is claimed before its slot is filled and freed after its slot is
//! empty, never the other way round.
//!
//! The first word's numbers move lock-free; every move of the others is one section under the lock.
//! Nothing here runs user code, and nothing is allocated under the lock.

use core::ops::Range;

use crate::block::SlotRef;
use crate::error::{BadFd, OutOfMemory, ReplaceError, ReserveError};
use crate::fd::FdFlags;
use crate::geometry::WORD;
use crate::groups::{Group, Groups, Upper};
use crate::numbers::FirstWord;
use crate::slot::{Obstacle, Slot};
use crate::slots::Slots;
use crate::sync::{Backoff, Guard};
use crate::table::FdTable;

/// One past the numbers of the first word.
pub(crate) const FIRST_END: u32 = WORD as u32;

/// A number that `claim_slow` has claimed.
enum Claimed<'t, T> {
    First(u32),
    /// With its slot, and with the lock still held: the slot is to be set in the same section.
    Upper(u32, &'t Slot<T>, Guard<'t, Upper>),
}

impl<T> FdTable<T> {
    // free → …

    /// free → open, for the lowest free number in `range`.
    // Inlined with what calls it, as is `take`: around locked instructions a call costs as much as one of them.
    #[inline(always)]
    pub(crate) fn open_lowest(
        &self,
        range: Range<u32>,
        file: SlotRef<T>,
        flags: FdFlags,
    ) -> Result<u32, (SlotRef<T>, ReserveError)> {
        if let Some(fd) = self.next_fd.claim(FirstWord::mask(&range)) {
            self.fill_first(fd, file, flags);
            return Ok(fd);
        }
        match self.claim_slow(range) {
            Ok(Claimed::First(fd)) => {
                self.fill_first(fd, file, flags);
                Ok(fd)
            }
            Ok(Claimed::Upper(fd, slot, mut upper)) => {
                slot.fill(file, flags);
                upper.open += 1;
                Ok(fd)
            }
            Err(error) => Err((file, error)),
        }
    }

    /// free → reserved, for the lowest free number in `range`.
    #[inline]
    pub(crate) fn reserve_lowest(&self, range: Range<u32>) -> Result<u32, ReserveError> {
        match self.next_fd.claim(FirstWord::mask(&range)) {
            Some(fd) => {
                self.vacate_first(fd);
                Ok(fd)
            }
            None => self.reserve_lowest_slow(range),
        }
    }

    #[inline(never)]
    fn reserve_lowest_slow(&self, range: Range<u32>) -> Result<u32, ReserveError> {
        match self.claim_slow(range)? {
            Claimed::First(fd) => {
                self.vacate_first(fd);
                Ok(fd)
            }
            Claimed::Upper(fd, slot, _lock) => {
                slot.vacate();
                Ok(fd)
            }
        }
    }

    /// free → reserved, for the `N` lowest free numbers in `range`, or for none.
    pub(crate) fn reserve_many_lowest<const N: usize>(
        &self,
        range: Range<u32>,
    ) -> Result<[u32; N], ReserveError> {
        let mask = FirstWord::mask(&range);
        if N <= WORD
            && let Some(bits) = self.next_fd.claim_many(mask, N as u32)
        {
            let mut fds = Bits(bits).chain(core::iter::repeat(0));
            let fds = core::array::from_fn(|_| fds.next().unwrap_or(0));
            fds.iter().for_each(|&fd| self.vacate_first(fd));
            return Ok(fds);
        }
        let mut fds = [0; N];
        loop {
            let mut upper = self.lock.lock();
            // The upper numbers stand still under the lock. So first see which of them it would
            // take, then claim the lower ones in one step, which is the instant of the whole.
            let claimed = self.next_fd.claimed();
            let low = Bits(!claimed & mask).take(N).fold(0_u64, |bits, fd| bits | 1 << fd);
            let mut missing = None;
            let mut from = range.start.max(FIRST_END);
            for fd in fds.iter_mut().skip(low.count_ones() as usize) {
                let range = from..range.end.min(self.max());
                let found = self.slots.upper.find(&mut upper, range);
                let (free, group) = found.ok_or(ReserveError::LimitReached)?;
                *fd = free;
                from = free + 1;
                if group.is_none() {
                    missing = missing.or(Some(free));
                }
            }
            if let Some(fd) = missing {
                drop(upper);
                self.grow(fd)?;
                continue;
            }
            if low != 0 && !self.next_fd.try_claim(claimed, low) {
                continue;
            }
            for (fd, number) in fds.iter_mut().zip(Bits(low)) {
                *fd = number;
            }
            for &fd in fds.iter().filter(|&&fd| fd >= FIRST_END) {
                let group = self.group(fd).expect("has storage, see above");
                self.claim_upper(&mut upper, fd, group);
                group.slot(fd).vacate();
            }
            drop(upper);
            Bits(low).for_each(|fd| self.vacate_first(fd));
            return Ok(fds);
        }
    }

    /// Claims the lowest free number in `range` when the first word seems to have none.
    #[inline(always)]
    fn claim_slow(&self, range: Range<u32>) -> Result<Claimed<'_, T>, ReserveError> {
        let mask = FirstWord::mask(&range);
        let mut range = range.start.max(FIRST_END)..range.end;
        loop {
            let mut upper = self.lock.lock();
            // The instant of this call, also of its failure: the first word had none free, and the
            // upper numbers, which stand still under the lock, are as we find them. Without this
            // second look a number freed since the first would be passed over for a higher one.
            if let Some(fd) = self.next_fd.claim(mask) {
                return Ok(Claimed::First(fd));
            }
            let found = self.slots.upper.find(&mut upper, range.clone());
            let (fd, group) = found.ok_or(ReserveError::LimitReached)?;
            if let Some(group) = group {
                self.claim_upper(&mut upper, fd, group);
                return Ok(Claimed::Upper(fd, group.slot(fd), upper));
            }
            drop(upper);
            self.grow(fd)?;
            // It may have been lowered meanwhile.
            range.end = range.end.min(self.max());
        }
    }

    /// The group of an upper number, if it has storage; `None` for a number of the first word.
    #[inline(always)]
    fn group(&self, fd: u32) -> Option<&Group<Slot<T>>> {
        self.slots.upper.get(Groups::<Slot<T>>::name(fd))
    }

    #[inline(always)]
    fn claim_upper(&self, upper: &mut Upper, fd: u32, group: &Group<Slot<T>>) {
        self.slots.upper.claim(upper, fd, group);
        self.next_fd.note(fd);
    }

    /// Fills the slot of a number of the first word that the caller has just claimed.
    #[inline(always)]
    fn fill_first(&self, fd: u32, file: SlotRef<T>, flags: FdFlags) {
        if self.next_fd.is_forking() {
            self.wait_for_fork();
        }
        self.next_fd.note(fd);
        self.slots.first(fd).fill(file, flags);
    }

    #[inline(always)]
    fn vacate_first(&self, fd: u32) {
        if self.next_fd.is_forking() {
            self.wait_for_fork();
        }
        self.next_fd.note(fd);
        self.slots.first(fd).vacate();
    }

    // reserved → …

    /// reserved → open.
    #[inline]
    pub(crate) fn install(&self, fd: u32, mut file: SlotRef<T>, flags: FdFlags) {
        let slot = self.slots.get(fd).expect("a reserved number has storage");
        if fd >= FIRST_END {
            let mut upper = self.lock.lock();
            let installed = slot.try_install(file, flags);
            debug_assert!(installed.is_ok(), "upper slots are never marked");
            upper.open += 1;
            return;
        }
        while let Err(back) = slot.try_install(file, flags) {
            file = back;
            self.wait_for_fork();
        }
    }

    /// reserved → free.
    pub(crate) fn abandon(&self, fd: u32) {
        let slot = self.slots.get(fd).expect("a reserved number has storage");
        assert!(slot.flags().is_none(), "bug in fdtable: fd {fd} is both reserved and open");
        match self.group(fd) {
            None => self.next_fd.release(1 << fd),
            Some(group) => self.slots.upper.release(&mut self.lock.lock(), fd, group),
        }
    }

    // open → …

    /// open → free.
    #[inline(always)]
    pub(crate) fn take(&self, fd: u32) -> Result<SlotRef<T>, BadFd> {
        if fd >= FIRST_END {
            return self.take_upper(fd);
        }
        let file = self.take_first(self.slots.first(fd), FdFlags::empty()).ok_or(BadFd)?;
        self.next_fd.release(1 << fd);
        Ok(file)
    }

    #[inline(always)]
    fn take_upper(&self, fd: u32) -> Result<SlotRef<T>, BadFd> {
        let mut upper = self.lock.lock();
        let group =
            self.slots.upper.recent(&mut upper, Groups::<Slot<T>>::name(fd)).ok_or(BadFd)?;
        let file = group.slot(fd).try_take(FdFlags::empty()).map_err(|_| BadFd)?;
        upper.open -= 1;
        self.slots.upper.release(&mut upper, fd, group);
        Ok(file)
    }

    /// Empties a slot of the first word, if its fd has the flags in `only`; the number stays claimed.
    #[inline]
    pub(crate) fn take_first(&self, slot: &Slot<T>, only: FdFlags) -> Option<SlotRef<T>> {
        loop {
            match slot.try_take(only) {
                Ok(file) => return Some(file),
                Err(Obstacle::Empty) => return None,
                Err(Obstacle::Marked) => self.wait_for_fork(),
            }
        }
    }

    /// open → open with another file, which is the result; or free → open.
    ///
    /// `fd` is below the limit and `max`.
    pub(crate) fn put(
        &self,
        fd: u32,
        file: SlotRef<T>,
        flags: FdFlags,
    ) -> Result<Option<SlotRef<T>>, (SlotRef<T>, ReplaceError)> {
        if fd < FIRST_END {
            self.put_first(fd, file, flags)
        } else {
            self.put_upper(fd, file, flags)
        }
    }

    fn put_first(
        &self,
        fd: u32,
        mut file: SlotRef<T>,
        flags: FdFlags,
    ) -> Result<Option<SlotRef<T>>, (SlotRef<T>, ReplaceError)> {
        let slot = self.slots.first(fd);
        let backoff = Backoff::new();
        loop {
            let obstacle = match slot.try_swap(file, flags) {
                Ok(old) => return Ok(Some(old)),
                Err((back, obstacle)) => {
                    file = back;
                    obstacle
                }
            };
            if obstacle == Obstacle::Marked {
                self.wait_for_fork();
            } else if self.next_fd.claim(1 << fd).is_some() {
                self.fill_first(fd, file, flags);
                return Ok(None);
            } else if backoff.is_completed() {
                // Empty, then claimed: it was both at one instant in between. Either reserved, or
                // an insert or a close is half-way, which lasts some nanoseconds: hence the spins.
                return Err((file, ReplaceError::Busy));
            } else {
                backoff.snooze();
            }
        }
    }

    fn put_upper(
        &self,
        fd: u32,
        file: SlotRef<T>,
        flags: FdFlags,
    ) -> Result<Option<SlotRef<T>>, (SlotRef<T>, ReplaceError)> {
        loop {
            let mut upper = self.lock.lock();
            if fd >= self.max() {
                return Err((file, ReplaceError::BadFd));
            }
            if let Some(group) = self.group(fd) {
                let slot = group.slot(fd);
                if group.is_claimed(&upper, fd) {
                    let swapped = slot.try_swap(file, flags);
                    return swapped.map(Some).map_err(|(file, _)| (file, ReplaceError::Busy));
                }
                self.claim_upper(&mut upper, fd, group);
                upper.open += 1;
                slot.fill(file, flags);
                return Ok(None);
            }
            drop(upper);
            if self.grow(fd).is_err() {
                return Err((file, ReplaceError::OutOfMemory));
            }
        }
    }

    /// `to`: open → open with the file of `from`; `from`: open → free. The file that was at `to` is the
    /// result. If `to` is not open nothing changes.
    ///
    /// One section under the lock, with the marks that a fork uses: so no fork sees half of it, and whoever
    /// wants to change either waits until both are done. Lookups do not wait: they can find `from` closed
    /// just before they find its file at `to`.
    pub(crate) fn move_open(&self, from: u32, to: u32) -> Result<SlotRef<T>, BadFd> {
        let source = self.slots.get(from).ok_or(BadFd)?;
        let target = self.slots.get(to).ok_or(BadFd)?;
        let mut upper = self.lock.lock();
        // Upper slots would stand still without it.
        let both_open = source.mark().is_some() & target.mark().is_some();
        let victim = both_open.then(|| target.move_from(source));
        source.clear_mark();
        target.clear_mark();
        let victim = victim.ok_or(BadFd)?;
        match self.group(from) {
            None => self.next_fd.release(1 << from),
            Some(group) => {
                upper.open -= 1;
                self.slots.upper.release(&mut upper, from, group);
            }
        }
        Ok(victim)
    }

    /// open → open, with other flags.
    pub(crate) fn change_flags(&self, fd: u32, flags: FdFlags) -> Result<(), BadFd> {
        let slot = self.slots.get(fd).ok_or(BadFd)?;
        let _lock = (fd >= FIRST_END).then(|| self.lock.lock());
        loop {
            match slot.try_set_flags(flags) {
                Ok(()) => return Ok(()),
                Err(Obstacle::Empty) => return Err(BadFd),
                Err(Obstacle::Marked) => self.wait_for_fork(),
            }
        }
    }

    // Growth and waiting

    /// Gives an upper number storage.
    #[cold]
    #[inline(never)]
    pub(crate) fn grow(&self, fd: u32) -> Result<(), OutOfMemory> {
        let bytes = self.slots.upper.ensure(Groups::<Slot<T>>::name(fd))?;
        self.config.grew(bytes, Slots::<T>::piece_end(fd));
        Ok(())
    }

    /// Waits until the fork that holds the lock is done with the first word.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait_for_fork(&self) {
        drop(self.lock.lock());
    }
}

/// The bits that are set, in ascending order.
pub(crate) struct Bits(pub(crate) u64);

impl Iterator for Bits {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

impl DoubleEndedIterator for Bits {
    fn next_back(&mut self) -> Option<u32> {
        let bit = self.0.checked_ilog2()?;
        self.0 &= !(1 << bit);
        Some(bit)
    }
}
