//! Every thread works on the numbers that it was given, and knows what must be there. The copies
//! that forks make must be states that there have been.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use fdtable::{FdFlags, FdTable, Options};

use crate::common::{File, Ledger, NONE, flush};
use crate::{OPERATIONS, THREADS, below, pct, quiet, random, together};

#[test]
fn in_random_schedules() {
    random(scenario);
}

#[test]
fn with_few_preemptions() {
    pct(scenario);
}

/// Names of files by number.
type State = BTreeMap<u32, u32>;

/// What the threads note besides what they do; no part of the schedule.
#[derive(Default)]
struct Notes {
    /// The numbers that somebody has.
    taken: BTreeSet<u32>,
    /// The states of each thread's files, one after the other.
    states: [Vec<State>; THREADS],
}

struct Scene {
    table: FdTable<File>,
    ledger: Arc<Ledger>,
    notes: Mutex<Notes>,
}

fn scenario() {
    let mut notes = Notes::default();
    notes.states.iter_mut().for_each(|states| states.push(State::new()));
    let scene = Scene {
        table: Options::new().on_close(flush).build(),
        ledger: Ledger::new(),
        notes: Mutex::new(notes),
    };
    let forks = Mutex::new(Vec::new());
    together(|me| {
        let mut thread = Thread { me, scene: &scene, own: State::new(), made: 0 };
        for _ in 0..OPERATIONS {
            thread.step(&forks);
        }
    });
    let notes = scene.notes.into_inner().unwrap();
    forks.into_inner().unwrap().iter().for_each(|fork: &Fork| fork.check(&notes.states));
    let last = notes.states.iter().flat_map(|states| states.last().unwrap().clone()).collect();
    assert_eq!(contents(&scene.table), last);
    assert_eq!(scene.ledger.live(), last.values().collect::<BTreeSet<_>>().len());
    quiet::take_apart(scene.table, &scene.ledger);
}

fn contents(table: &FdTable<File>) -> State {
    table.iter().map(|entry| (entry.fd.get(), entry.file.name())).collect()
}

/// The thread that has made the file.
fn maker(name: u32) -> usize {
    name as usize / 1000
}

/// A fork's copy, and how many changes the threads had done before and after.
struct Fork {
    copy: State,
    before: [usize; THREADS],
    after: [usize; THREADS],
}

impl Fork {
    /// Each thread's files are as that thread had them at some instant of the fork.
    fn check(&self, states: &[Vec<State>; THREADS]) {
        for (thread, states) in states.iter().enumerate() {
            let mut copy = self.copy.clone();
            copy.retain(|_, &mut name| maker(name) == thread);
            // One more change may have been on its way at the end.
            let possible = self.before[thread]..(self.after[thread] + 2).min(states.len());
            assert!(
                states[possible.clone()].contains(&copy),
                "a copy that never existed: {copy:?}, thread {thread} had {:?}",
                &states[possible]
            );
        }
    }
}

struct Thread<'a> {
    me: usize,
    scene: &'a Scene,
    own: State,
    made: u32,
}

impl Thread<'_> {
    fn file(&mut self) -> (u32, File) {
        self.made += 1;
        let name = self.me as u32 * 1000 + self.made;
        (name, self.scene.ledger.file(name))
    }

    /// One of this thread's numbers.
    fn some(&self) -> Option<u32> {
        (!self.own.is_empty())
            .then(|| *self.own.keys().nth(below(self.own.len() as u32) as usize).unwrap())
    }

    fn take(&self, fd: u32) {
        assert!(self.scene.notes.lock().unwrap().taken.insert(fd), "{fd} is handed out twice");
    }

    /// To be called before the number can become free.
    fn give(&self, fd: u32) {
        assert!(self.scene.notes.lock().unwrap().taken.remove(&fd));
    }

    /// A change is done.
    fn note(&self) {
        self.scene.notes.lock().unwrap().states[self.me].push(self.own.clone());
    }

    fn opened(&mut self, fd: u32, name: u32) {
        self.take(fd);
        self.own.insert(fd, name);
        self.note();
    }

    fn step(&mut self, forks: &Mutex<Vec<Fork>>) {
        let table = &self.scene.table;
        match below(14) {
            0..3 => {
                let (name, file) = self.file();
                if let Ok(fd) = table.insert_from(below(6).saturating_sub(2), file, NONE) {
                    self.opened(fd.get(), name);
                }
            }
            3 => {
                let (name, file) = self.file();
                if let Ok([one, two]) = table.reserve_many() {
                    let (given, back) = (one.fd().get(), two.fd().get());
                    self.take(back);
                    self.give(back);
                    drop(two);
                    one.install(file, NONE);
                    self.opened(given, name);
                }
            }
            4 => self.fork(forks),
            _ => {
                if let Some(fd) = self.some() {
                    self.step_on(fd);
                }
            }
        }
    }

    fn step_on(&mut self, fd: u32) {
        let table = &self.scene.table;
        match below(10) {
            0 => {
                if let Ok(new) = table.dup(fd) {
                    self.opened(new.get(), self.own[&fd]);
                }
            }
            1 => {
                let to = self.some().expect("has one");
                table.dup2(fd, to).expect("both are open");
                self.own.insert(to, self.own[&fd]);
                self.note();
            }
            2 => {
                let to = self.some().expect("has one");
                if to != fd {
                    self.give(fd);
                }
                table.renumber(fd, to).expect("both are open");
                let name = self.own.remove(&fd).expect("own");
                self.own.insert(to, name);
                self.note();
            }
            3 => {
                let (name, file) = self.file();
                let old = table.replace(fd, file, NONE).expect("open").expect("open");
                assert_eq!(Some(old.name()), self.own.insert(fd, name), "another's file");
                self.note();
            }
            4 => {
                let flags = FdFlags::from_bits_truncate(below(4) as u8) - FdFlags::CLOFORK;
                table.set_flags(fd, flags).expect("open");
                assert_eq!(table.flags(fd), Ok(flags));
            }
            5 => assert_eq!(table.get(fd).expect("open").name(), self.own[&fd]),
            6 => {
                let mut seen = contents(table);
                seen.retain(|_, &mut name| maker(name) == self.me);
                assert_eq!(seen, self.own);
            }
            _ => {
                self.give(fd);
                let file = table.remove(fd).expect("open");
                assert_eq!(Some(file.name()), self.own.remove(&fd), "another's file");
                self.note();
            }
        }
    }

    fn fork(&self, forks: &Mutex<Vec<Fork>>) {
        let done = || {
            let notes = self.scene.notes.lock().unwrap();
            std::array::from_fn(|thread| notes.states[thread].len() - 1)
        };
        let before = done();
        let child = self.scene.table.fork().expect("memory");
        let after = done();
        // Not under the lock of `forks`, which must not be held where threads are switched.
        let copy = contents(&child);
        forks.lock().unwrap().push(Fork { copy, before, after });
    }
}
