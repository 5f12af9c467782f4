//! Steps of the operations on many numbers.

use fdtable::{CloseRange, FdFlags};

use super::{Next, Stage};
use crate::spec::{Item, Op, Outcome, State};

/// Numbers and the flags that an fd must have, as the crate's sweeps select them.
pub(super) struct Selection {
    first: u32,
    last: u32,
    except: bool,
    only: FdFlags,
    /// Sets CLOEXEC, also on what is reserved, instead of closing.
    sets: bool,
}

impl Selection {
    /// `None` for other operations, and for a range that is not valid.
    pub(super) fn of(op: &Op) -> Option<Selection> {
        let every = Selection {
            first: 0,
            last: u32::MAX,
            except: false,
            only: FdFlags::CLOEXEC,
            sets: false,
        };
        match *op {
            Op::CloseOnExec => Some(every),
            Op::CloseRange { first, last, how }
                if first <= last && (CloseRange::all() - CloseRange::UNSHARE).contains(how) =>
            {
                let only = match how.contains(CloseRange::CLOEXEC_ONLY) {
                    true => FdFlags::CLOEXEC,
                    false => FdFlags::empty(),
                };
                let except = how.contains(CloseRange::EXCEPT);
                Some(Selection {
                    first,
                    last,
                    except,
                    only,
                    sets: how.contains(CloseRange::CLOEXEC),
                })
            }
            _ => None,
        }
    }

    pub(super) fn contains(&self, fd: u32, state: &State) -> bool {
        let flags = match *state {
            State::Open(_, flags) => flags,
            State::Reserved { cloexec: true } if self.sets => FdFlags::CLOEXEC,
            State::Reserved { .. } if self.sets => FdFlags::empty(),
            _ => return false,
        };
        (self.first..=self.last).contains(&fd) != self.except && flags.contains(self.only)
    }
}

impl Next<'_> {
    pub(super) fn sweep(&mut self, from: u32) {
        let (table, thread) = (self.table, self.thread);
        let selection = Selection::of(&self.call.op).expect("valid, or it had failed");
        for (&fd, register) in table.numbers.range(from..) {
            let state = *register.value();
            if selection.contains(fd, &state) && table.held != Some(fd) {
                match state {
                    State::Open(file, flags) if selection.sets => {
                        self.go(Stage::Sweep(fd + 1), |table| {
                            let flags = flags | FdFlags::CLOEXEC;
                            table.change(thread, fd, State::Open(file, flags));
                        });
                    }
                    State::Reserved { .. } => self.go(Stage::Sweep(fd + 1), |table| {
                        table.change(thread, fd, State::Reserved { cloexec: true });
                    }),
                    _ => self.go(Stage::SweepEmpty(fd), |table| {
                        table.change(thread, fd, State::Reserved { cloexec: false });
                    }),
                }
            }
            if self.call.due.contains(&fd) {
                return;
            }
        }
        self.end(Outcome::Done, |_| {});
    }

    pub(super) fn iterate(&mut self, from: u32, items: &[Item]) {
        let (table, thread) = (self.table, self.thread);
        let mut passed = Vec::new();
        for (&fd, register) in table.numbers.range(from..) {
            if let State::Open(file, flags) = *register.value() {
                let items = [items, &[(fd, file, flags)]].concat();
                self.go(Stage::Shown(fd + 1, items), |table| {
                    passed.iter().for_each(|&(fd, position)| table.know(thread, fd, position));
                    table.acquire_last(thread, fd);
                });
            }
            match table.find(thread, fd, |state| !state.is_open()) {
                Some(position) => passed.push((fd, position)),
                None => return,
            }
        }
        self.end(Outcome::Open(items.to_vec()), |table| {
            passed.iter().for_each(|&(fd, position)| table.know(thread, fd, position));
        });
    }

    pub(super) fn fork(&mut self) {
        let (table, thread) = (self.table, self.thread);
        if table.held.is_some() {
            return;
        }
        let copied = |&(_, _, flags): &Item| !flags.contains(FdFlags::CLOFORK);
        let child = table.open().into_iter().filter(copied).collect();
        self.end(Outcome::Open(child), |table| {
            let fds: Vec<_> = table.numbers.keys().copied().collect();
            fds.iter().for_each(|&fd| table.acquire_last(thread, fd));
            fds.iter().for_each(|&fd| table.show(thread, fd));
        });
    }
}
