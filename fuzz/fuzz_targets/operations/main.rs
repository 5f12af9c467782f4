//! Arbitrary operations of a few tasks on their tables and on a model: results, contents, and the order
//! of flushes and releases are compared after each.
//!
//! `cargo +nightly fuzz run operations`
#![no_main]

mod model;
mod op;
mod step;

use std::cell::RefCell;
use std::rc::Rc;

use fdtable::{Errno, Files, Observer, Options, OwnedRef, OwnedReservation, TableId};
use libfuzzer_sys::fuzz_target;

use model::{Event, Holders, Name, Table};
use op::{Pick, Step};

const MAX: u64 = 8192;
const LIMIT: u64 = 5000;
const TASKS: usize = 4;

/// Tells what happens to it.
struct File {
    name: Name,
    events: Rc<RefCell<Vec<Event>>>,
}

impl File {
    fn new(holders: &mut Holders, events: &Rc<RefCell<Vec<Event>>>) -> File {
        File { name: holders.make(), events: Rc::clone(events) }
    }

    fn flush(&self, table: TableId) -> Result<(), Errno> {
        self.events.borrow_mut().push(Event::Flushed(self.name, table));
        model::flush_result(self.name)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.events.borrow_mut().push(Event::Released(self.name));
    }
}

struct Task {
    files: Files<File>,
    observer: Option<Observer<File>>,
    /// Its table, by its place in the world.
    table: usize,
}

#[derive(Default)]
struct World {
    events: Rc<RefCell<Vec<Event>>>,
    tasks: Vec<Task>,
    kept: Vec<OwnedRef<File>>,
    reservations: Vec<(OwnedReservation<File>, usize)>,
    // The model of it.
    holders: Holders,
    tables: Vec<Table>,
}

/// The place of a pick among so many; none if there are none.
fn place(pick: Pick, len: usize) -> Option<usize> {
    usize::from(pick).checked_rem(len)
}

impl World {
    fn options(&self) -> Options<File> {
        let options = Options::new().max(MAX).limit(LIMIT);
        if self.holders.is_flushed { options.on_close(File::flush) } else { options }
    }

    fn file(&mut self) -> File {
        File::new(&mut self.holders, &self.events)
    }

    fn add_task(&mut self, at: Pick, files: Files<File>, table: usize) {
        let task = Task { files, observer: None, table };
        let at = place(at, TASKS).filter(|&at| at < self.tasks.len());
        if let Some(at) = at {
            self.end(at);
            self.tasks[at] = task;
        } else {
            self.tasks.push(task);
        }
    }

    fn add_table(&mut self, files: Files<File>, at: Pick, mut table: Table) {
        table.id = files.id();
        self.tables.push(table);
        self.add_task(at, files, self.tables.len() - 1);
    }

    /// The task has moved to a table of its own.
    fn moved(&mut self, at: usize, mut table: Table) {
        let task = &mut self.tasks[at];
        table.id = task.files.id();
        let old = std::mem::replace(&mut task.table, self.tables.len());
        self.tables.push(table);
        self.tables[old].leave(&mut self.holders);
    }

    /// The task's table ends; in its place is an empty one that is to be replaced.
    fn end(&mut self, at: usize) {
        let Task { files, observer, table } = &mut self.tasks[at];
        *files = Files::new();
        let observer = observer.take();
        assert!(observer.is_none_or(|it| !it.is_alive() && it.list().is_empty()));
        self.tables[*table].leave(&mut self.holders);
    }

    fn check(&mut self) {
        assert_eq!(self.events.take(), std::mem::take(&mut self.holders.events));
        for file in &mut self.kept {
            let is_last = self.holders.is_last(file.name);
            assert_eq!(file.get_mut().is_some(), is_last);
        }
        for Task { files, observer, table } in &self.tasks {
            let table = &self.tables[*table];
            let open = files.iter().map(|it| (i64::from(it.fd), it.file.name, it.flags));
            assert_eq!(open.collect::<Vec<_>>(), table.open_fds().collect::<Vec<_>>());
            assert_eq!(files.len(), table.open_fds().count());
            assert_eq!(files.is_empty(), table.open_fds().next().is_none());
            let highest = table.open_fds().next_back().map(|(fd, ..)| fd);
            assert_eq!(files.highest_open().map(i64::from), highest);
            assert_eq!(files.high_water().map(i64::from), table.high_water);
            assert_eq!((files.limit(), files.max()), (table.limit, table.max));
            assert_eq!(files.is_shared(), table.sharers > 1);
            assert_eq!(files.id(), table.id);
            if let Some(observer) = observer {
                let seen = observer.list().into_iter().map(|(fd, flags)| (i64::from(fd), flags));
                let open = table.open_fds().map(|(fd, _, flags)| (fd, flags));
                assert!(seen.eq(open));
            }
        }
    }
}

// With the flush hook or without.
fuzz_target!(|input: (bool, Vec<Step>)| {
    let (is_flushed, steps) = input;
    let mut world = World::default();
    world.holders.is_flushed = is_flushed;
    let files = Files::from(world.options().build());
    let table = Table::new(files.id(), LIMIT, MAX as u32);
    world.add_table(files, 0, table);
    for step in steps {
        world.step(step);
        world.check();
    }
    // All that is left goes, one after the other.
    while !world.reservations.is_empty() {
        world.abandon(0);
    }
    for at in 0..world.tasks.len() {
        world.end(at);
    }
    for name in std::mem::take(&mut world.kept).into_iter().map(|file| file.name) {
        world.holders.release(name);
    }
    assert_eq!(world.events.take(), world.holders.events);
    assert_eq!(Rc::strong_count(&world.events), 1, "a file is leaked");
});
