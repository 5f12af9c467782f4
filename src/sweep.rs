//! Operations on many file descriptors: close a range, those with a flag, or all.
//!
//! One after the other, as Linux does: while a file is flushed and dropped, outside of the lock, the next
//! fd is still open. A panic of the user's code does not keep the rest from being closed.

use crate::block::SlotRef;
use crate::error::CloseRangeError;
use crate::fd::{CloseRange, FdFlags};
use crate::geometry::{FULL, WORD, WORD_LOG, below};
use crate::groups::{Group, Upper};
use crate::options::Config;
use crate::slot::{Obstacle, Slot};
use crate::states::{Bits, FIRST_END};
use crate::table::FdTable;

/// Numbers `first ..= last`, and the flags that an fd must have to be meant.
#[derive(Clone, Copy)]
pub(crate) struct Selection {
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) only: FdFlags,
}

impl Selection {
    /// Nothing.
    pub(crate) const NONE: Selection = Selection { first: 1, last: 0, only: FdFlags::empty() };

    pub(crate) fn all(only: FdFlags) -> Self {
        Selection { first: 0, last: u32::MAX, only }
    }

    /// What a `close_range` call means: one range, or the two sides of one.
    pub(crate) fn parse(
        first: u32,
        last: u32,
        how: CloseRange,
    ) -> Result<[Option<Selection>; 2], CloseRangeError> {
        if first > last || !CloseRange::all().contains(how) {
            return Err(CloseRangeError::InvalidArgument);
        }
        let only = if how.contains(CloseRange::CLOEXEC_ONLY) {
            FdFlags::CLOEXEC
        } else {
            FdFlags::empty()
        };
        if !how.contains(CloseRange::EXCEPT) {
            return Ok([Some(Selection { first, last, only }), None]);
        }
        let below = first.checked_sub(1).map(|last| Selection { first: 0, last, only });
        let above = last.checked_add(1).map(|first| Selection { first, last: u32::MAX, only });
        Ok([below, above])
    }

    #[inline]
    pub(crate) fn contains(&self, fd: u32, flags: FdFlags) -> bool {
        (self.first..=self.last).contains(&fd) && flags.contains(self.only)
    }

    /// The selected numbers of a word.
    pub(crate) fn mask(&self, index: usize) -> u64 {
        let start = (index << WORD_LOG) as u64;
        let up_to = |fd: u64| below(fd.saturating_sub(start));
        up_to(u64::from(self.last) + 1) & !up_to(self.first.into())
    }

    /// The words that the selection reaches into, beyond the first.
    fn first_upper_word(&self) -> usize {
        (self.first as usize >> WORD_LOG).max(1)
    }

    fn last_word(&self) -> usize {
        self.last as usize >> WORD_LOG
    }
}

impl<T> FdTable<T> {
    /// Closes what is selected, in ascending order.
    pub(crate) fn close_selected(&self, selection: Selection) {
        let mut panics = Panics::default();
        for fd in self.first_ascending(selection) {
            if let Some(file) = self.take_first(self.slots.first(fd), selection.only) {
                self.next_fd.release(1 << fd);
                finish(&self.config, file, &mut panics);
            }
        }
        let mut next = selection.first.max(FIRST_END);
        while let Some((fd, file)) = self.take_next(next, selection) {
            if let Some(file) = file {
                finish(&self.config, file, &mut panics);
            }
            next = fd + 1;
        }
        panics.resume();
    }

    /// The selected numbers of the first word that are claimed, each looked for when it is its turn: what is
    /// opened ahead of a sweep is swept.
    fn first_ascending(&self, selection: Selection) -> impl Iterator<Item = u32> {
        let mut rest = selection.mask(0);
        core::iter::from_fn(move || {
            let fd = Bits(self.next_fd.claimed() & rest).next()?;
            rest &= !below(u64::from(fd) + 1);
            Some(fd)
        })
    }

    /// Closes everything, from the highest down.
    pub(crate) fn close_all_down(&self) {
        let mut panics = Panics::default();
        // Always further down: what user code opens above stays open, and can't keep us here.
        let mut end = usize::MAX;
        while let Some((name, group)) = self.slots.upper.previous(end.div_ceil(WORD)) {
            let start = name << WORD_LOG;
            let mut upper = self.lock.lock();
            let rest = Bits(group.claimed(&upper) & below((end - start) as u64)).rev();
            let taken = self.take_one(&mut upper, name, group, rest, FdFlags::empty());
            drop(upper);
            end = match taken {
                Some((fd, file)) => {
                    finish(&self.config, file, &mut panics);
                    fd as usize
                }
                None => start,
            };
        }
        let mut rest = FULL;
        while let Some(fd) = Bits(self.next_fd.claimed() & rest).next_back() {
            rest = below(fd.into());
            if let Some(file) = self.take_first(self.slots.first(fd), FdFlags::empty()) {
                self.next_fd.release(1 << fd);
                finish(&self.config, file, &mut panics);
            }
        }
        panics.resume();
    }

    /// Closes everything, from the highest down, of a table that nobody else can reach: without the lock
    /// and without a compare-and-swap for each fd.
    pub(crate) fn close_all_alone(&mut self) {
        let mut panics = Panics::default();
        let FdTable { slots, next_fd, config, .. } = self;
        let mut close = |slot: &mut Slot<T>| {
            if let Some(file) = slot.take_alone() {
                finish(config, file, &mut panics);
            }
        };
        let mut end = (config.storage_end() >> WORD_LOG) as usize;
        while let Some((name, group)) = slots.upper.previous_mut(end) {
            (0..WORD as u32).rev().for_each(|fd| close(group.slot_mut(fd)));
            end = name;
        }
        Bits(next_fd.claimed()).rev().for_each(|fd| close(slots.first_mut(fd)));
        panics.resume();
    }

    /// Takes the first selected file from `fd` on, or comes to the end of a group without one: then the
    /// number is the group's last.
    fn take_next(&self, fd: u32, selection: Selection) -> Option<(u32, Option<SlotRef<T>>)> {
        let mut upper = self.lock.lock();
        let (name, group, bits) =
            self.slots.upper.next_claimed(&upper, (fd >> WORD_LOG) as usize)?;
        if name > selection.last_word() {
            return None;
        }
        let wanted = Selection { first: selection.first.max(fd), ..selection }.mask(name);
        let taken = self.take_one(&mut upper, name, group, Bits(bits & wanted), selection.only);
        Some(match taken {
            Some((fd, file)) => (fd, Some(file)),
            None => ((name << WORD_LOG) as u32 | (WORD as u32 - 1), None),
        })
    }

    /// open → free, for the first of these numbers of a group that is open and has the flags in `only`.
    fn take_one(
        &self,
        upper: &mut Upper,
        name: usize,
        group: &Group<Slot<T>>,
        mut bits: impl Iterator<Item = u32>,
        only: FdFlags,
    ) -> Option<(u32, SlotRef<T>)> {
        let (bit, file) = bits.find_map(|bit| Some((bit, group.slot(bit).try_take(only).ok()?)))?;
        let fd = (name << WORD_LOG) as u32 | bit;
        upper.open -= 1;
        self.slots.upper.release(upper, fd, group);
        Some((fd, file))
    }

    /// Sets CLOEXEC on what is selected, reserved numbers included.
    pub(crate) fn flag_selected(&self, selection: Selection) {
        for fd in self.first_ascending(selection) {
            let slot = self.slots.first(fd);
            while slot.try_set_cloexec(selection.only) == Err(Obstacle::Marked) {
                self.wait_for_fork();
            }
        }
        let mut index = selection.first_upper_word();
        loop {
            let upper = self.lock.lock();
            let Some((at, group, bits)) = self.slots.upper.next_claimed(&upper, index) else {
                return;
            };
            if at > selection.last_word() {
                return;
            }
            for bit in Bits(bits & selection.mask(at)) {
                // Empty: not one of those selected. Never marked, beyond the first word.
                let _ = group.slot(bit).try_set_cloexec(selection.only);
            }
            index = at + 1;
        }
    }

    /// The highest open number, under one hold of the lock for the upper ones.
    pub(crate) fn find_highest_open(&self) -> Option<u32> {
        let upper = self.lock.lock();
        let (mut index, mut highest) = (1, None);
        while let Some((at, group, bits)) = self.slots.upper.next_claimed(&upper, index) {
            let is_open = |&bit: &u32| group.slot(bit).flags().is_some();
            if let Some(bit) = Bits(bits).rev().find(is_open) {
                highest = Some((at << WORD_LOG) as u32 | bit);
            }
            index = at + 1;
        }
        let is_open = |&fd: &u32| self.slots.first(fd).flags().is_some();
        highest.or_else(|| Bits(FULL).rev().find(is_open))
    }
}

/// Flushes and drops the file of an fd that has been closed.
#[inline]
fn finish<T>(config: &Config<T>, file: SlotRef<T>, panics: &mut Panics) {
    if config.has_flush_hook() {
        panics.catch(|| {
            // Its error is ignored: there is nobody to report it to.
            let _ = config.flush(&file);
        });
    }
    panics.catch(|| drop(file));
}

/// The first panic of the user's code, kept until the sweep is done.
#[derive(Default)]
pub(crate) struct Panics {
    #[cfg(feature = "std")]
    first: Option<alloc::boxed::Box<dyn core::any::Any + Send>>,
}

impl Panics {
    /// Without `std` a panic can't be caught: it ends the sweep, if it unwinds at all.
    #[inline]
    fn catch(&mut self, run: impl FnOnce()) {
        // The table is consistent at every call of user code, so nothing broken can be observed.
        #[cfg(feature = "std")]
        if let Err(panic) = std::panic::catch_unwind(core::panic::AssertUnwindSafe(run)) {
            self.first.get_or_insert(panic);
        }
        #[cfg(not(feature = "std"))]
        run();
    }

    /// Lets the panic go on, unless another one is going on already.
    fn resume(self) {
        #[cfg(feature = "std")]
        if let Some(panic) = self.first
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}
