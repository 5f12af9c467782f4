//! What each operation does when nothing else goes on, with a sorted map in the place of everything.

use std::collections::BTreeMap;
use std::ops::Range;

use fdtable::{CloseRange, Errno, FdFlags, TableId};

pub type Name = u32;

/// What a file lives to see, in the order in which it happens.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Event {
    Flushed(Name, TableId),
    Released(Name),
}

/// What the flush hook returns for a file.
pub fn flush_result(name: Name) -> Result<(), Errno> {
    if name % 5 == 4 { Err(Errno::EIO) } else { Ok(()) }
}

/// All files, by how many fds and handles each has.
#[derive(Default)]
pub struct Holders {
    counts: Vec<usize>,
    pub events: Vec<Event>,
    /// Whether the tables have the flush hook.
    pub is_flushed: bool,
}

impl Holders {
    /// A new file, held once.
    pub fn make(&mut self) -> Name {
        self.counts.push(1);
        self.counts.len() as Name - 1
    }

    pub fn hold(&mut self, name: Name) {
        self.counts[name as usize] += 1;
    }

    /// Whether the caller's handle is the only holder.
    pub fn is_last(&self, name: Name) -> bool {
        self.counts[name as usize] == 1
    }

    pub fn release(&mut self, name: Name) {
        self.counts[name as usize] -= 1;
        if self.counts[name as usize] == 0 {
            self.events.push(Event::Released(name));
        }
    }

    fn close(&mut self, name: Name, table: TableId) -> Result<(), Errno> {
        if self.is_flushed {
            self.events.push(Event::Flushed(name, table));
        }
        self.release(name);
        if self.is_flushed { flush_result(name) } else { Ok(()) }
    }
}

/// A number that is not free.
#[derive(Clone, Copy)]
pub enum State {
    /// With the flags that the file will have besides its own.
    Reserved(FdFlags),
    Open(Name, FdFlags),
}

#[derive(Clone)]
pub struct Table {
    pub id: TableId,
    pub sharers: usize,
    pub numbers: BTreeMap<i64, State>,
    pub limit: u64,
    pub max: u32,
    pub high_water: Option<i64>,
}

impl Table {
    pub fn new(id: TableId, limit: u64, max: u32) -> Table {
        let (numbers, high_water) = (BTreeMap::new(), None);
        Table { id, sharers: 1, numbers, limit, max, high_water }
    }

    pub fn open_fds(&self) -> impl DoubleEndedIterator<Item = (i64, Name, FdFlags)> {
        self.numbers.iter().filter_map(|(&fd, &state)| match state {
            State::Open(name, flags) => Some((fd, name, flags)),
            State::Reserved(_) => None,
        })
    }

    /// One past the numbers that a caller may be given.
    pub fn bound(&self, limit: u64) -> i64 {
        limit.min(self.max.into()) as i64
    }

    pub fn get(&self, fd: i64) -> Result<Name, Errno> {
        match self.numbers.get(&fd) {
            Some(&State::Open(name, _)) => Ok(name),
            _ => Err(Errno::EBADF),
        }
    }

    /// The lowest that are free in the range, so many of them or none.
    pub fn lowest(&self, range: Range<i64>, count: usize) -> Result<Vec<i64>, Errno> {
        let free = range.filter(|fd| !self.numbers.contains_key(fd)).take(count);
        Some(free.collect()).filter(|free: &Vec<_>| free.len() == count).ok_or(Errno::EMFILE)
    }

    pub fn set(&mut self, fd: i64, state: State) {
        self.numbers.insert(fd, state);
        self.high_water = self.high_water.max(Some(fd));
    }

    /// Opens a file that the caller holds, once more, at the lowest number.
    pub fn insert(&mut self, range: Range<i64>, name: Name, flags: FdFlags) -> Result<i64, Errno> {
        let fd = self.lowest(range, 1)?[0];
        self.set(fd, State::Open(name, flags));
        Ok(fd)
    }

    pub fn replace(
        &mut self,
        fd: i64,
        limit: u64,
        name: Name,
        flags: FdFlags,
    ) -> Result<Option<Name>, Errno> {
        if !(0..self.bound(limit)).contains(&fd) {
            return Err(Errno::EBADF);
        }
        if let Some(State::Reserved(_)) = self.numbers.get(&fd) {
            return Err(Errno::EBUSY);
        }
        let old = self.get(fd).ok();
        self.set(fd, State::Open(name, flags));
        Ok(old)
    }

    pub fn dup2(
        &mut self,
        (old, new): (i64, i64),
        limit: u64,
        flags: FdFlags,
        files: &mut Holders,
    ) -> Result<i64, Errno> {
        if !(0..self.bound(limit)).contains(&new) {
            return Err(Errno::EBADF);
        }
        let name = self.get(old)?;
        let victim = self.replace(new, limit, name, flags)?;
        files.hold(name);
        if let Some(victim) = victim {
            // Nobody is told of the flush's error.
            let _ = files.close(victim, self.id);
        }
        Ok(new)
    }

    pub fn renumber(&mut self, from: i64, to: i64, files: &mut Holders) -> Result<(), Errno> {
        let (name, victim) = (self.get(from)?, self.get(to)?);
        if from != to {
            self.numbers.remove(&from);
            self.set(to, State::Open(name, FdFlags::empty()));
            let _ = files.close(victim, self.id);
        }
        Ok(())
    }

    /// The file is the caller's.
    pub fn remove(&mut self, fd: i64) -> Result<Name, Errno> {
        let name = self.get(fd)?;
        self.numbers.remove(&fd);
        Ok(name)
    }

    pub fn close(&mut self, fd: i64, files: &mut Holders) -> Result<(), Errno> {
        let name = self.remove(fd)?;
        files.close(name, self.id)
    }

    pub fn close_all(&mut self, fds: impl IntoIterator<Item = i64>, files: &mut Holders) {
        for fd in fds {
            let _ = self.close(fd, files);
        }
    }

    /// The open fds that a `close_range` means, in ascending order.
    fn selected(&self, range: &Range<i64>, how: CloseRange) -> Vec<i64> {
        let is_meant = |&(fd, _, flags): &(i64, Name, FdFlags)| {
            range.contains(&fd) != how.contains(CloseRange::EXCEPT)
                && (!how.contains(CloseRange::CLOEXEC_ONLY) || flags.contains(FdFlags::CLOEXEC))
        };
        self.open_fds().filter(is_meant).map(|(fd, ..)| fd).collect()
    }

    pub fn close_range(&mut self, range: Range<i64>, how: CloseRange, files: &mut Holders) {
        if !how.contains(CloseRange::CLOEXEC) {
            return self.close_all(self.selected(&range, how), files);
        }
        if how.contains(CloseRange::CLOEXEC_ONLY) {
            return;
        }
        for (fd, state) in &mut self.numbers {
            let (State::Reserved(flags) | State::Open(_, flags)) = state;
            if range.contains(fd) != how.contains(CloseRange::EXCEPT) {
                *flags |= FdFlags::CLOEXEC;
            }
        }
    }

    pub fn close_on_exec(&mut self, files: &mut Holders) {
        self.close_all(self.selected(&(0..i64::MAX), CloseRange::CLOEXEC_ONLY), files);
    }

    pub fn clear(&mut self, files: &mut Holders) {
        let down: Vec<_> = self.open_fds().map(|(fd, ..)| fd).rev().collect();
        self.close_all(down, files);
    }

    /// A copy for one task, without the reserved numbers and what is left out.
    pub fn copy(&self, left_out: impl Fn(i64, FdFlags) -> bool, files: &mut Holders) -> Table {
        let mut copy = Table::new(self.id, self.limit, self.max);
        for (fd, name, flags) in self.open_fds().filter(|&(fd, _, flags)| !left_out(fd, flags)) {
            files.hold(name);
            copy.set(fd, State::Open(name, flags));
        }
        copy
    }

    pub fn copy_without(&self, range: Range<i64>, how: CloseRange, files: &mut Holders) -> Table {
        let selected = self.selected(&range, how);
        let is_closed = !how.contains(CloseRange::CLOEXEC);
        self.copy(|fd, _| is_closed && selected.contains(&fd), files)
    }

    /// A sharer goes; the last one closes everything.
    pub fn leave(&mut self, files: &mut Holders) {
        self.sharers -= 1;
        if self.sharers == 0 {
            self.clear(files);
        }
    }
}
