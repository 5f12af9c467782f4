//! What operations are made of: the steps that other threads can tell apart.
//!
//! | operation | steps |
//! |---|---|
//! | lookup | finds the file that is there; or an empty slot, which may be an old sight (C2) |
//! | insert, dup | number, then file (C3); a dup looks its source up first |
//! | reserve | number, then clears an old flag |
//! | close, remove | file, then number (C3) |
//! | replace, dup2 | the swap; or as an insert; `EBUSY` is a sight of *reserved* |
//! | renumber | `from` is empty, `to` has the file, `from` is free: one step to changes and forks |
//! | close_range, exec | each fd by itself, as a close |
//! | iteration | each fd by itself |
//! | fork | one (C8) |
//!
//! Sweeps, iteration and fork are in `many.rs`.
//!
//! Numbers are strict: lowest means lowest in the one order of all steps (C1), also for `EMFILE`.

use std::collections::BTreeSet;

use fdtable::{Errno, Fd, FdFlags};

use crate::spec::{File, Item, Op, Outcome, State, Table};
use many::Selection;

mod many;

/// An operation between its call and its return.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Call {
    op: Op,
    stage: Stage,
    /// What it says, once that is decided.
    pub(crate) outcome: Option<Outcome>,
    /// The limits that it may have observed: one of those since the call.
    limits: Vec<u64>,
    /// Of a sweep: the numbers that it must not pass over. Those that have been selected ever since
    /// the call.
    due: BTreeSet<u32>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stage {
    Called,
    /// A dup that has its file, and no number yet.
    Numberless(File),
    /// A dup2 that has its file.
    Swap(File),
    /// An insert that has its number.
    Fill(u32, File, FdFlags),
    Vacate(Vec<u32>),
    /// A close whose file is gone.
    Empty(u32),
    /// A renumber that has emptied the first one.
    Moving(u32, u32, File),
    /// A sweep that has come to this number, which it has emptied or not.
    Sweep(u32),
    SweepEmpty(u32),
    /// An iteration that has come to this number.
    Shown(u32, Vec<Item>),
    Returned,
}

impl Call {
    pub(crate) fn start(table: &Table, thread: usize, op: Op) -> Call {
        let due = Selection::of(&op).map_or_else(BTreeSet::new, |selection| {
            // Also an old sight of a number is enough to pass over it.
            let is_due = |&fd: &u32| {
                let seen = table.readable(thread, fd);
                seen.iter().all(|(_, state)| selection.contains(fd, state))
            };
            table.numbers.keys().copied().filter(is_due).collect()
        });
        Call { op, stage: Stage::Called, outcome: None, limits: table.limits(thread), due }
    }

    pub(crate) fn has_returned(&self) -> bool {
        self.stage == Stage::Returned
    }

    /// To be told after each step of another thread.
    pub(crate) fn watch(&mut self, table: &Table) {
        if !self.due.is_empty()
            && let Some(selection) = Selection::of(&self.op)
        {
            self.due.retain(|&fd| selection.contains(fd, &table.state(fd)));
        }
        if !self.limits.contains(table.limit.value()) {
            self.limits.push(*table.limit.value());
        }
    }

    /// Whether it can still end like this.
    pub(crate) fn may_give(&self, outcome: &Outcome) -> bool {
        match (&self.outcome, &self.stage, outcome) {
            (Some(own), ..) => own == outcome,
            (None, Stage::Shown(_, items), Outcome::Open(all)) => all.starts_with(items),
            _ => true,
        }
    }

    /// Everything that the thread may do next; empty if it has to wait for another.
    pub(crate) fn steps(&self, table: &Table, thread: usize) -> Vec<(Table, Call)> {
        let mut next = Next { table, thread, call: self, all: Vec::new() };
        match self.stage {
            Stage::Called => next.called(),
            Stage::Numberless(file) => next.dup(file),
            Stage::Swap(file) => next.dup2(file),
            Stage::Fill(fd, file, flags) => next.go(Stage::Returned, |table| {
                table.store(thread, fd, State::Open(file, flags));
            }),
            Stage::Vacate(ref fds) => next.go(Stage::Returned, |table| {
                fds.iter().for_each(|&fd| table.vacate(fd));
            }),
            Stage::Empty(fd) => {
                next.go(Stage::Returned, |table| table.store(thread, fd, State::Free));
            }
            Stage::Moving(from, to, file) => next.go(Stage::Empty(from), |table| {
                table.change(thread, to, State::Open(file, FdFlags::empty()));
                table.held = None;
            }),
            Stage::Sweep(from) => next.sweep(from),
            Stage::SweepEmpty(fd) => {
                next.go(Stage::Sweep(fd + 1), |table| table.store(thread, fd, State::Free));
            }
            Stage::Shown(from, ref items) => next.iterate(from, items),
            Stage::Returned => {}
        }
        next.all
    }
}

/// Collects the possible steps.
struct Next<'a> {
    table: &'a Table,
    thread: usize,
    call: &'a Call,
    all: Vec<(Table, Call)>,
}

/// The number, if it is one that a descriptor can have.
fn valid(fd: i64) -> Option<u32> {
    Fd::try_from(fd).ok().map(Fd::get)
}

impl Next<'_> {
    fn add(&mut self, stage: Stage, outcome: Option<Outcome>, effect: impl FnOnce(&mut Table)) {
        let mut step = (self.table.clone(), self.call.clone());
        effect(&mut step.0);
        step.1.stage = stage;
        step.1.outcome = outcome.or(step.1.outcome);
        if step.1.has_returned() {
            step.1.due.clear();
            step.1.limits.clear();
        }
        self.all.push(step);
    }

    /// A step after which the outcome is as open, or as decided, as before.
    fn go(&mut self, stage: Stage, effect: impl FnOnce(&mut Table)) {
        self.add(stage, None, effect);
    }

    fn end(&mut self, outcome: Outcome, effect: impl FnOnce(&mut Table)) {
        self.add(Stage::Returned, Some(outcome), effect);
    }

    fn fail(&mut self, errno: Errno) {
        self.end(Outcome::Failed(errno), |_| {});
    }

    fn called(&mut self) {
        let (table, thread) = (self.table, self.thread);
        match self.call.op {
            Op::Get(fd) => self.look_up(fd, |next, fd, file, _| {
                next.end(Outcome::File(file), |table| table.acquire_last(thread, fd));
            }),
            Op::Flags(fd) => self.load(fd, |_, flags| Outcome::Flags(flags)),
            Op::SetFlags(fd, flags) => self.change(fd, |next, fd, file, _| {
                let flags = flags & FdFlags::all();
                next.end(Outcome::Done, |table| {
                    table.change(thread, fd, State::Open(file, flags));
                });
            }),
            Op::Insert { min, file, flags } => {
                for limit in self.call.limits.clone() {
                    self.number(min, limit, file, flags);
                }
            }
            Op::Reserve(ref range) => {
                for limit in self.call.limits.clone() {
                    match self.lowest(range.start, limit.min(range.end.into())) {
                        Some(fd) => {
                            self.add(Stage::Vacate(vec![fd]), Some(Outcome::Fd(fd)), |table| {
                                table.claim(thread, fd);
                                table.threads[thread].reservations.push(fd);
                            })
                        }
                        None => self.fail(Errno::EMFILE),
                    }
                }
            }
            Op::ReservePair => {
                for limit in self.call.limits.clone() {
                    let one = self.lowest(0, limit);
                    let pair = one.and_then(|one| Some((one, self.lowest(one + 1, limit)?)));
                    let Some((one, two)) = pair else {
                        self.fail(Errno::EMFILE);
                        continue;
                    };
                    self.add(
                        Stage::Vacate(vec![one, two]),
                        Some(Outcome::Pair(one, two)),
                        |table| {
                            for fd in [one, two] {
                                table.claim(thread, fd);
                                table.threads[thread].reservations.push(fd);
                            }
                        },
                    );
                }
            }
            Op::Install { file, flags } => {
                let Some(&fd) = table.threads[thread].reservations.last() else {
                    return self.end(Outcome::Nothing, |_| {});
                };
                let cloexec = table.state(fd) == State::Reserved { cloexec: true };
                let flags = if cloexec { flags | FdFlags::CLOEXEC } else { flags };
                self.end(Outcome::Fd(fd), |table| {
                    table.threads[thread].reservations.pop();
                    table.change(thread, fd, State::Open(file, flags));
                });
            }
            Op::Abandon => match table.threads[thread].reservations.last() {
                Some(&fd) => self.end(Outcome::Fd(fd), |table| {
                    table.threads[thread].reservations.pop();
                    table.store(thread, fd, State::Free);
                }),
                None => self.end(Outcome::Nothing, |_| {}),
            },
            Op::Remove(fd) => self.change(fd, |next, fd, file, _| {
                next.empty(fd, Stage::Empty(fd), Outcome::File(file));
            }),
            Op::Close(fd) => self.change(fd, |next, fd, _, _| {
                next.empty(fd, Stage::Empty(fd), Outcome::Done);
            }),
            Op::Replace { fd, file, flags } => {
                self.swap(fd, file, flags, |_, old| Outcome::Replaced(old))
            }
            Op::Dup(fd) | Op::DupFrom { fd, .. } => self.look_up(fd, |next, fd, file, _| {
                next.go(Stage::Numberless(file), |table| table.acquire_last(thread, fd));
            }),
            Op::Dup3 { old, new, flags } if old == new || !FdFlags::all().contains(flags) => {
                self.fail(Errno::EINVAL);
            }
            Op::Dup2 { old, new } if old == new => self.load(old, |fd, _| Outcome::Fd(fd)),
            Op::Dup2 { old, new } | Op::Dup3 { old, new, .. } => {
                if self.may_be_below(new) {
                    self.look_up(old, |next, fd, file, _| {
                        next.go(Stage::Swap(file), |table| table.acquire_last(thread, fd));
                    });
                }
            }
            Op::Renumber { from, to } => self.renumber(from, to),
            Op::CloseRange { .. } | Op::CloseOnExec => match Selection::of(&self.call.op) {
                Some(_) => self.sweep(0),
                None => self.fail(Errno::EINVAL),
            },
            Op::Fork => self.fork(),
            Op::Iterate => self.iterate(0, &[]),
            Op::SetLimit(limit) => self.end(Outcome::Done, |table| table.set_limit(thread, limit)),
        }
    }

    // Lookups

    /// The fd is not open, at least as the thread sees it.
    fn miss(&mut self, fd: u32) {
        let thread = self.thread;
        if let Some(position) = self.table.find(thread, fd, |state| !state.is_open()) {
            self.end(Outcome::Failed(Errno::EBADF), |table| table.know(thread, fd, position));
        }
    }

    /// `found` goes on with the file that is there now.
    fn look_up(&mut self, fd: i64, found: impl FnOnce(&mut Self, u32, File, FdFlags)) {
        let Some(fd) = valid(fd) else { return self.fail(Errno::EBADF) };
        self.miss(fd);
        if let State::Open(file, flags) = self.table.state(fd) {
            found(self, fd, file, flags);
        }
    }

    /// A look that takes no reference: all that it sees may be old.
    fn load(&mut self, fd: i64, outcome: impl Fn(u32, FdFlags) -> Outcome) {
        let Some(fd) = valid(fd) else { return self.fail(Errno::EBADF) };
        self.miss(fd);
        let thread = self.thread;
        for (position, state) in self.table.readable(thread, fd) {
            if let State::Open(_, flags) = state {
                self.end(outcome(fd, flags), |table| table.know(thread, fd, position));
            }
        }
    }

    // Numbers

    fn is_below(&self, fd: i64, limit: u64) -> bool {
        valid(fd).is_some_and(|fd| u64::from(fd) < limit.min(self.table.max.into()))
    }

    /// Whether that is so for a limit that may have been observed. Where it is not the call fails.
    fn may_be_below(&mut self, fd: i64) -> bool {
        let below = self.call.limits.iter().filter(|&&limit| self.is_below(fd, limit)).count();
        if below < self.call.limits.len() {
            self.fail(Errno::EBADF);
        }
        below > 0
    }

    fn lowest(&self, from: u32, end: u64) -> Option<u32> {
        let end = end.min(self.table.max.into()) as u32;
        (from..end).find(|&fd| self.table.state(fd) == State::Free)
    }

    fn number(&mut self, min: i64, limit: u64, file: File, flags: FdFlags) {
        let thread = self.thread;
        match valid(min).and_then(|min| self.lowest(min, limit)) {
            Some(fd) => self.add(Stage::Fill(fd, file, flags), Some(Outcome::Fd(fd)), |table| {
                table.claim(thread, fd);
            }),
            None => self.fail(Errno::EMFILE),
        }
    }

    fn dup(&mut self, file: File) {
        let (min, flags) = match self.call.op {
            Op::DupFrom { min, flags, .. } => (min, flags),
            _ => (0, FdFlags::empty()),
        };
        let from = matches!(self.call.op, Op::DupFrom { .. });
        for limit in self.call.limits.clone() {
            match from && valid(min).is_none_or(|min| u64::from(min) >= limit) {
                true => self.fail(Errno::EINVAL),
                false => self.number(min, limit, file, flags),
            }
        }
    }

    // Changes

    /// `found` goes on with the file that is there now. A miss knows who has taken the file away.
    fn change(&mut self, fd: i64, found: impl FnOnce(&mut Self, u32, File, FdFlags)) {
        let (table, thread) = (self.table, self.thread);
        let Some(fd) = valid(fd) else { return self.fail(Errno::EBADF) };
        if let Some(position) = table.find(thread, fd, |state| !state.is_open()) {
            self.end(Outcome::Failed(Errno::EBADF), |table| table.acquire(thread, fd, position));
        }
        if let State::Open(file, flags) = table.state(fd)
            && table.held != Some(fd)
        {
            found(self, fd, file, flags);
        }
    }

    /// The file goes, the number stays taken.
    fn empty(&mut self, fd: u32, stage: Stage, outcome: Outcome) {
        let thread = self.thread;
        self.add(stage, Some(outcome), |table| {
            table.change(thread, fd, State::Reserved { cloexec: false });
        });
    }

    fn swap(
        &mut self,
        fd: i64,
        file: File,
        flags: FdFlags,
        outcome: impl Fn(u32, Option<File>) -> Outcome,
    ) {
        let (table, thread) = (self.table, self.thread);
        if !self.may_be_below(fd) {
            return;
        }
        let Some(fd) = valid(fd) else { return };
        if let Some(position) = table.find(thread, fd, State::is_reserved) {
            self.end(Outcome::Failed(Errno::EBUSY), |table| table.know(thread, fd, position));
        }
        match table.state(fd) {
            State::Open(old, _) if table.held != Some(fd) => {
                self.end(outcome(fd, Some(old)), |table| {
                    table.change(thread, fd, State::Open(file, flags));
                });
            }
            State::Free => {
                self.add(Stage::Fill(fd, file, flags), Some(outcome(fd, None)), |table| {
                    table.claim(thread, fd);
                });
            }
            _ => {}
        }
    }

    fn dup2(&mut self, file: File) {
        let (new, flags) = match self.call.op {
            Op::Dup2 { new, .. } => (new, FdFlags::empty()),
            Op::Dup3 { new, flags, .. } => (new, flags),
            _ => unreachable!("has no source"),
        };
        self.swap(new, file, flags, |fd, _| Outcome::Fd(fd));
    }

    fn renumber(&mut self, from: i64, to: i64) {
        let (table, thread) = (self.table, self.thread);
        let (Some(from), Some(to)) = (valid(from), valid(to)) else {
            return self.fail(Errno::EBADF);
        };
        if from == to {
            return self.load(from.into(), |_, _| Outcome::Done);
        }
        if [from, to].iter().any(|&fd| table.find(thread, fd, |state| !state.is_open()).is_some()) {
            self.fail(Errno::EBADF);
        }
        if let (State::Open(file, _), State::Open(..)) = (table.state(from), table.state(to))
            && table.held.is_none()
        {
            self.add(Stage::Moving(from, to, file), Some(Outcome::Done), |table| {
                // Both are looked at before either is changed.
                table.acquire_last(thread, to);
                table.change(thread, from, State::Reserved { cloexec: false });
                table.held = Some(to);
            });
        }
    }
}
