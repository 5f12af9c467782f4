//! The judge of histories, judged: histories written by hand, allowed and forbidden, and tables with a
//! planted fault. The schedules of the latter are fixed, so the faults never hide.
#![cfg(not(all(loom, feature = "loom")))]

mod planted;
mod written;

use fdtable::{CloseRange, Errno, FdFlags};
use loom_tests::history::{History, Record};
use loom_tests::session::NONE;
use loom_tests::spec::{File, Item, Op, Outcome};

const A: File = File(0);
const B: File = File(1);
const C: File = File(2);
const CLOEXEC: FdFlags = FdFlags::CLOEXEC;
const LIMIT: u32 = 4;

fn told(op: Op, outcome: Outcome) -> Record {
    Record { op, outcome, ticks: (0, 0) }
}

fn bad(op: Op, errno: Errno) -> Record {
    told(op, Outcome::Failed(errno))
}

fn get(fd: u32, file: File) -> Record {
    told(Op::Get(fd.into()), Outcome::File(file))
}

fn miss(fd: u32) -> Record {
    bad(Op::Get(fd.into()), Errno::EBADF)
}

fn insert(file: File, fd: u32) -> Record {
    told(Op::Insert { min: 0, file, flags: NONE }, Outcome::Fd(fd))
}

fn insert_from(min: u32, file: File, fd: u32) -> Record {
    told(Op::Insert { min: min.into(), file, flags: NONE }, Outcome::Fd(fd))
}

fn close(fd: u32) -> Record {
    told(Op::Close(fd.into()), Outcome::Done)
}

fn not_open(fd: u32) -> Record {
    bad(Op::Close(fd.into()), Errno::EBADF)
}

fn replace(fd: u32, file: File, old: Option<File>) -> Record {
    told(Op::Replace { fd: fd.into(), file, flags: NONE }, Outcome::Replaced(old))
}

fn dup2(old: u32, new: u32) -> Record {
    told(Op::Dup2 { old: old.into(), new: new.into() }, Outcome::Fd(new))
}

fn busy(old: u32, new: u32) -> Record {
    bad(Op::Dup2 { old: old.into(), new: new.into() }, Errno::EBUSY)
}

fn renumber(from: u32, to: u32) -> Record {
    told(Op::Renumber { from: from.into(), to: to.into() }, Outcome::Done)
}

fn reserve(fd: u32) -> Record {
    told(Op::Reserve(0..u32::MAX), Outcome::Fd(fd))
}

fn install(file: File, fd: u32) -> Record {
    told(Op::Install { file, flags: NONE }, Outcome::Fd(fd))
}

fn abandon(fd: u32) -> Record {
    told(Op::Abandon, Outcome::Fd(fd))
}

fn sweep(how: CloseRange) -> Record {
    told(Op::CloseRange { first: 0, last: u32::MAX, how }, Outcome::Done)
}

fn limit(limit: u64) -> Record {
    told(Op::SetLimit(limit), Outcome::Done)
}

/// What is open, without flags.
fn items(items: &[(u32, File)]) -> Vec<Item> {
    items.iter().map(|&(fd, file)| (fd, file, NONE)).collect()
}

fn fork(child: &[(u32, File)]) -> Record {
    told(Op::Fork, Outcome::Open(items(child)))
}

fn iterate(shown: &[(u32, File)]) -> Record {
    told(Op::Iterate, Outcome::Open(items(shown)))
}

/// With a clock: called and returned at these instants.
fn at(called: u64, returned: u64, record: Record) -> Record {
    Record { ticks: (called, returned), ..record }
}

/// A history that begins with `open`, if that is open already.
struct Case(History);

fn case(open: &[(u32, File)]) -> Case {
    Case(History {
        bounds: (64, LIMIT.into()),
        setup: open.iter().map(|&(fd, file)| replace(fd, file, None)).collect(),
        threads: Vec::new(),
        open: Vec::new(),
        reserved: Vec::new(),
    })
}

impl Case {
    fn thread<const N: usize>(mut self, records: [Record; N]) -> Self {
        self.0.threads.push(records.into());
        self
    }

    fn ends_with(mut self, open: Vec<Item>) -> History {
        self.0.open = open;
        self.0
    }

    fn ends(self, open: &[(u32, File)]) -> History {
        self.ends_with(items(open))
    }
}

#[track_caller]
fn allowed(history: History) {
    history.explain().unwrap();
}

#[track_caller]
fn forbidden(history: History) {
    assert!(history.explain().is_err(), "not to be explained:\n{history:?}");
}
