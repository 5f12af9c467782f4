//! The table as it should be: a `BTreeMap` from numbers to their states, and every operation on it.
//!
//! [`Table::apply`] does a whole operation, for one thread. Between threads operations are not atomic
//! (C3: a close is two steps, and so is an insert); what they are made of is in `steps`, and both
//! ways of doing them are the same steps. For what a thread may see of another's steps, `register.rs`.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use fdtable::{CloseRange, Errno, FdFlags};

use crate::register::{Register, View, rebase};
use crate::steps::Call;

/// The identity of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct File(pub u32);

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match u8::try_from(self.0) {
            Ok(n @ 0..26) => write!(f, "{}", char::from(b'A' + n)),
            _ => write!(f, "file {}", self.0),
        }
    }
}

/// An operation. Numbers are what a program may pass: anything.
#[expect(missing_docs, reason = "as the table's own methods")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    Get(i64),
    Flags(i64),
    SetFlags(i64, FdFlags),
    /// `insert_from`; `insert` if the minimum is 0.
    Insert {
        min: i64,
        file: File,
        flags: FdFlags,
    },
    Reserve(Range<u32>),
    /// `reserve_many`, two of them.
    ReservePair,
    /// Of the reservation that the thread has made last. [`Outcome::Nothing`] if it has none.
    Install {
        file: File,
        flags: FdFlags,
    },
    /// As [`Op::Install`]: drops the reservation.
    Abandon,
    Remove(i64),
    Close(i64),
    Replace {
        fd: i64,
        file: File,
        flags: FdFlags,
    },
    Dup(i64),
    DupFrom {
        fd: i64,
        min: i64,
        flags: FdFlags,
    },
    Dup2 {
        old: i64,
        new: i64,
    },
    Dup3 {
        old: i64,
        new: i64,
        flags: FdFlags,
    },
    Renumber {
        from: i64,
        to: i64,
    },
    CloseRange {
        first: u32,
        last: u32,
        how: CloseRange,
    },
    CloseOnExec,
    Fork,
    Iterate,
    SetLimit(u64),
}

/// An open file descriptor.
pub type Item = (u32, File, FdFlags);

/// What an operation says.
#[expect(missing_docs, reason = "the kinds of results that the table's methods have")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    Done,
    /// No reservation was there to install or abandon.
    Nothing,
    Fd(u32),
    Pair(u32, u32),
    File(File),
    Replaced(Option<File>),
    Flags(FdFlags),
    Open(Vec<Item>),
    Failed(Errno),
}

/// The state of a number, see the design page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum State {
    Free,
    /// Claimed, without a file; also between the two steps of an insert or a close. With the flag that
    /// a `close_range` has put there.
    Reserved {
        cloexec: bool,
    },
    Open(File, FdFlags),
}

impl State {
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, State::Open(..))
    }

    pub(crate) fn is_reserved(&self) -> bool {
        matches!(self, State::Reserved { .. })
    }
}

/// What a thread has of its own.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Thread {
    pub(crate) view: View,
    pub(crate) reservations: Vec<u32>,
}

/// The table.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Table {
    pub(crate) max: u32,
    pub(crate) limit: Register<u64>,
    /// A number that is not in here is free, and everybody knows it.
    pub(crate) numbers: BTreeMap<u32, Register<State>>,
    pub(crate) threads: Vec<Thread>,
    /// The target of a renumber between its two steps: held, as is the whole for forks.
    pub(crate) held: Option<u32>,
}

/// Where views have the limit; a number is one further.
const LIMIT: usize = 0;

fn location(fd: u32) -> usize {
    fd as usize + 1
}

impl Table {
    /// An empty table.
    pub fn new(max: u32, limit: u64) -> Self {
        Table {
            max,
            limit: Register::new(limit),
            numbers: BTreeMap::new(),
            threads: vec![Thread::default()],
            held: None,
        }
    }

    /// Does the operation, with nobody else at work.
    pub fn apply(&mut self, op: &Op) -> Outcome {
        assert_eq!(self.threads.len(), 1, "only for one thread");
        let mut call = Call::start(self, 0, op.clone());
        while !call.has_returned() {
            let mut next = call.steps(self, 0);
            assert_eq!(next.len(), 1, "without other threads there is no choice");
            (*self, call) = next.remove(0);
            self.forget(|_| true, &mut []);
        }
        call.outcome.expect("a call that returns has an outcome")
    }

    /// What is open, in ascending order.
    pub fn open(&self) -> Vec<Item> {
        let item = |(&fd, register): (&u32, &Register<State>)| match *register.value() {
            State::Open(file, flags) => Some((fd, file, flags)),
            _ => None,
        };
        self.numbers.iter().filter_map(item).collect()
    }

    /// The numbers that are taken and have no file.
    pub fn reserved(&self) -> Vec<u32> {
        let reserved = self.numbers.iter().filter(|(_, register)| register.value().is_reserved());
        reserved.map(|(&fd, _)| fd).collect()
    }

    /// The same table, used by `n` threads that all know what has happened so far.
    pub(crate) fn shared_by(mut self, n: usize) -> Self {
        self.threads.resize_with(n, Thread::default);
        self
    }

    // What a thread can read

    pub(crate) fn state(&self, fd: u32) -> State {
        self.numbers.get(&fd).map_or(State::Free, |register| *register.value())
    }

    /// What a load by the thread may find, with positions.
    pub(crate) fn readable(&self, thread: usize, fd: u32) -> Vec<(usize, State)> {
        let Some(register) = self.numbers.get(&fd) else { return vec![(0, State::Free)] };
        let known = self.threads[thread].view.at(location(fd));
        register.readable(known).map(|(position, state)| (position, *state)).collect()
    }

    /// The first that a load may find of those wanted. An earlier one tells the thread less, so no other
    /// has to be tried.
    pub(crate) fn find(
        &self,
        thread: usize,
        fd: u32,
        wanted: impl Fn(&State) -> bool,
    ) -> Option<usize> {
        self.readable(thread, fd).into_iter().find(|(_, state)| wanted(state)).map(|(at, _)| at)
    }

    /// The limits that a load may find.
    pub(crate) fn limits(&self, thread: usize) -> Vec<u64> {
        let known = self.threads[thread].view.at(LIMIT);
        self.limit.readable(known).map(|(_, limit)| *limit).collect()
    }

    // What it knows then, and what it writes

    /// The thread has read this, and it orders nothing else.
    pub(crate) fn know(&mut self, thread: usize, fd: u32, position: usize) {
        self.threads[thread].view.raise(location(fd), position);
    }

    /// The thread has read this, and knows what the writer knew.
    pub(crate) fn acquire(&mut self, thread: usize, fd: u32, position: usize) {
        self.know(thread, fd, position);
        if let Some(register) = self.numbers.get(&fd) {
            self.threads[thread].view.join(register.shown(position));
        }
    }

    /// A read-modify-write reads the last write.
    pub(crate) fn acquire_last(&mut self, thread: usize, fd: u32) {
        let end = self.numbers.get(&fd).map_or(0, Register::end);
        self.acquire(thread, fd, end);
    }

    /// A store that releases.
    pub(crate) fn store(&mut self, thread: usize, fd: u32, state: State) {
        let register = self.numbers.entry(fd).or_insert_with(|| Register::new(State::Free));
        let view = &mut self.threads[thread].view;
        view.raise(location(fd), register.end() + 1);
        register.write(state, view.clone());
    }

    /// A read-modify-write that acquires and releases.
    pub(crate) fn change(&mut self, thread: usize, fd: u32, state: State) {
        self.acquire_last(thread, fd);
        self.store(thread, fd, state);
    }

    /// Free → reserved: acquires from who made it free, shows nothing.
    pub(crate) fn claim(&mut self, thread: usize, fd: u32) {
        self.acquire_last(thread, fd);
        let register = self.numbers.entry(fd).or_insert_with(|| Register::new(State::Free));
        register.write(State::Reserved { cloexec: false }, View::default());
        self.acquire_last(thread, fd);
    }

    /// The owner of a reservation clears a flag that was put there meanwhile.
    pub(crate) fn vacate(&mut self, fd: u32) {
        let register = self.numbers.get_mut(&fd).expect("claimed");
        register.overwrite(State::Reserved { cloexec: false });
    }

    /// A fork has seen this number; who changes it from now on comes after the fork.
    pub(crate) fn show(&mut self, thread: usize, fd: u32) {
        let view = &self.threads[thread].view;
        self.numbers.get_mut(&fd).expect("seen").show(view);
    }

    pub(crate) fn set_limit(&mut self, thread: usize, limit: u64) {
        self.limit.write(limit, View::default());
        self.threads[thread].view.raise(LIMIT, self.limit.end());
    }

    /// Forgets what nobody can read any more, neither the threads at work nor who holds `others`: then
    /// equal situations are equal values.
    pub(crate) fn forget(&mut self, at_work: impl Fn(usize) -> bool, others: &mut [View]) {
        let working: Vec<_> = (0..self.threads.len()).filter(|&thread| at_work(thread)).collect();
        let ends = self.numbers.iter().map(|(&fd, register)| (location(fd), register.end()));
        let ends: Vec<_> = ends.chain([(LIMIT, self.limit.end())]).collect();
        for (location, end) in ends {
            let known = working.iter().map(|&thread| self.threads[thread].view.at(location));
            let n = known.min().unwrap_or(end);
            if n == 0 {
                continue;
            }
            match location.checked_sub(1) {
                Some(fd) => self.numbers.get_mut(&(fd as u32)).expect("listed").forget(n),
                None => self.limit.forget(n),
            }
            rebase(self.threads.iter_mut().map(|thread| &mut thread.view), location, n);
            rebase(&mut *others, location, n);
            self.limit.rebase(location, n);
            self.numbers.values_mut().for_each(|register| register.rebase(location, n));
        }
        self.numbers.retain(|_, register| !register.is_only(&State::Free));
        for (thread, own) in self.threads.iter_mut().enumerate() {
            if !at_work(thread) {
                own.view = View::default();
            }
        }
    }
}
