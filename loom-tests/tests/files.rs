//! `Files`: share, drop, borrow, exec, unshare (cases s1 to s3).
//!
//! Observers are not raced here: they look through arc-swap, which loom does not know.
#![cfg(all(loom, feature = "loom"))]

use std::collections::BTreeMap;
use std::sync::Mutex;

use fdtable::file::{AccessMode, OpenOptions};
use fdtable::{CloseRange, FdFlags, Files, Observer, OwnedRef, OwnedReservation};
use loom_tests::{File, Ledger, Race};

const NONE: FdFlags = FdFlags::empty();

/// Tasks that share a table with A at 0. Each thread takes one.
struct Tasks {
    tasks: Mutex<Vec<Files<File>>>,
    kept: Mutex<BTreeMap<&'static str, Files<File>>>,
    reservation: Mutex<Option<OwnedReservation<File>>>,
    spare: Mutex<Option<OwnedRef<File>>>,
}

impl Tasks {
    fn new(ledger: &Ledger, n: usize, flags: FdFlags) -> Self {
        let first = Files::new();
        first.insert(ledger.file("A"), flags).expect("there is room");
        let mut tasks: Vec<_> = (1..n).map(|_| first.share()).collect();
        tasks.push(first);
        Tasks {
            tasks: Mutex::new(tasks),
            kept: Mutex::default(),
            reservation: Mutex::default(),
            spare: Mutex::new(Some(ledger.file("B"))),
        }
    }

    fn task(&self) -> Files<File> {
        self.tasks.lock().unwrap().pop().expect("one for each role")
    }

    fn spare(&self) -> OwnedRef<File> {
        let file = self.spare.lock().unwrap().take().expect("taken once");
        file.prepare();
        file
    }

    /// Keeps the task until the race is over.
    fn keep(&self, role: &'static str, task: Files<File>) {
        self.kept.lock().unwrap().insert(role, task);
    }

    /// What the tasks that were kept see.
    fn kept(&self) -> String {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap());
        kept.iter().map(|(role, task)| format!("{role} {}; ", names(task))).collect()
    }
}

fn names(task: &Files<File>) -> String {
    let shown: String = task.iter().map(|entry| entry.file.name()).collect();
    if shown.is_empty() { ".".to_string() } else { shown }
}

/// The last sharer's drop closes everything, after all that the other has done with it.
#[test]
fn drop_or_drop() {
    Race::new("files_drop_or_drop", |ledger| Tasks::new(ledger, 2, NONE))
        .role("one", |tasks| tasks.task().get(0).map_or("-", |file| file.name()))
        .role("two", |tasks| tasks.task().get(0).map_or("-", |file| file.name()))
        .end(|_, ledger| format!("A by {}", ledger.destroyer("A")))
        .allows(&["one: A; two: A; A by one", "one: A; two: A; A by two"]);
}

/// One task exits while the other shares its own handle on (s2): the fds stay.
#[test]
fn drop_or_share() {
    Race::new("files_drop_or_share", |ledger| Tasks::new(ledger, 2, NONE))
        .role("exit", |tasks| {
            drop(tasks.task());
            ""
        })
        .role("clone", |tasks| {
            let task = tasks.task();
            let thread = task.share();
            drop(task);
            thread.get(0).map_or("-", |file| file.name())
        })
        .end(|_, ledger| format!("A by {}", ledger.destroyer("A")))
        .allows(&["exit: ; clone: A; A by clone", "exit: ; clone: A; A by exit"]);
}

/// What the last sharer closes was opened by another one, in a part of the table that it has never seen.
#[test]
fn insert_then_drop_or_drop() {
    Race::new("files_insert_then_drop_or_drop", |ledger| Tasks::new(ledger, 2, NONE))
        .role("insert", |tasks| {
            let task = tasks.task();
            let file = tasks.spare();
            task.insert_from(2, file, NONE).expect("there is room")
        })
        .role("drop", |tasks| {
            drop(tasks.task());
            ""
        })
        .end(|_, ledger| format!("{} {}", ledger.destroyer("A"), ledger.destroyer("B")))
        .allows(&["insert: 2; drop: ; insert insert", "insert: 2; drop: ; drop drop"]);
}

/// A task borrows without a count as soon as it is alone. The other one has closed the fd before it left;
/// whoever finds itself alone has to see that.
#[test]
fn borrow_or_close_then_drop() {
    Race::new("files_borrow_or_close_then_drop", |ledger| Tasks::new(ledger, 2, NONE))
        .role("borrow", |tasks| {
            let mut task = tasks.task();
            task.borrow(0).map_or("-", |file| file.name())
        })
        .role("close", |tasks| tasks.task().close(0).map_or("EBADF", |()| "ok"))
        .end(|_, ledger| format!("A by {}", ledger.destroyer("A")))
        .allows(&[
            "borrow: A; close: ok; A by borrow",
            "borrow: A; close: ok; A by close",
            "borrow: -; close: ok; A by close",
        ]);
}

/// The same for an fd that the other one has opened.
#[test]
fn borrow_or_insert_then_drop() {
    Race::new("files_borrow_or_insert_then_drop", |ledger| Tasks::new(ledger, 2, NONE))
        .role("borrow", |tasks| {
            let mut task = tasks.task();
            let alone = !task.is_shared();
            let name = task.borrow(1).map_or("-", |file| file.name());
            format!("{} {name}", if alone { "alone" } else { "shared" })
        })
        .role("insert", |tasks| {
            let task = tasks.task();
            let file = tasks.spare();
            task.insert(file, NONE).expect("there is room")
        })
        .end(|_, _| "")
        .allows(&[
            "borrow: shared -; insert: 1",
            "borrow: shared B; insert: 1",
            "borrow: alone B; insert: 1",
        ]);
}

/// exec closes in a copy. The other task sees nothing of it, and what it opens meanwhile is in the copy or
/// not.
#[test]
fn exec_or_insert() {
    Race::new("files_exec_or_insert", |ledger| Tasks::new(ledger, 2, FdFlags::CLOEXEC))
        .role("exec", |tasks| {
            let mut task = tasks.task();
            task.exec().expect("enough memory");
            tasks.keep("exec", task);
            ""
        })
        .role("insert", |tasks| {
            let task = tasks.task();
            let file = tasks.spare();
            let fd = task.insert(file, NONE).expect("there is room");
            tasks.keep("insert", task);
            fd
        })
        .end(|tasks, _| tasks.kept())
        .allows(&["exec: ; insert: 1; exec .; insert AB", "exec: ; insert: 1; exec B; insert AB"]);
}

/// exec while the other task exits: in a copy, or in the table itself if it is alone by then.
#[test]
fn exec_or_drop() {
    Race::new("files_exec_or_drop", |ledger| Tasks::new(ledger, 2, FdFlags::CLOEXEC))
        .role("exec", |tasks| {
            let mut task = tasks.task();
            task.exec().expect("enough memory");
            tasks.keep("exec", task);
            ""
        })
        .role("exit", |tasks| {
            drop(tasks.task());
            ""
        })
        .end(|tasks, ledger| format!("{} A by {}", tasks.kept(), ledger.destroyer("A")))
        .allows(&["exec: ; exit: ; exec .; A by exec", "exec: ; exit: ; exec .; A by exit"]);
}

/// close_range with UNSHARE (s3): the others' table does not change, and they see no file go.
#[test]
fn unshare_or_close_then_insert() {
    Race::new("files_unshare_or_close_then_insert", |ledger| Tasks::new(ledger, 2, NONE))
        .role("unshare", |tasks| {
            let mut task = tasks.task();
            task.close_range(1, u32::MAX, CloseRange::UNSHARE).expect("a valid call");
            tasks.keep("unshare", task);
            ""
        })
        .role("reuse", |tasks| {
            let task = tasks.task();
            let closed = task.close(0).map_or("EBADF", |()| "ok");
            let file = tasks.spare();
            let fd = task.insert(file, NONE).expect("there is room");
            tasks.keep("reuse", task);
            format!("{closed} {fd}")
        })
        .end(|tasks, _| tasks.kept())
        .allows(&[
            "unshare: ; reuse: ok 0; reuse B; unshare A",
            "unshare: ; reuse: ok 0; reuse B; unshare .",
            "unshare: ; reuse: ok 0; reuse B; unshare B",
        ]);
}

/// An open that waits holds its task's share: it is filled or given back after the task is gone, and then
/// closes what is left.
#[test]
fn install_or_drop() {
    Race::new("files_install_or_drop", |ledger| {
        let tasks = Tasks::new(ledger, 1, NONE);
        let reservation = tasks.tasks.lock().unwrap()[0].reserve_owned(u64::MAX).expect("room");
        *tasks.reservation.lock().unwrap() = Some(reservation);
        tasks
    })
    .role("install", |tasks| {
        let reservation = tasks.reservation.lock().unwrap().take().expect("made before");
        reservation.install(tasks.spare(), NONE)
    })
    .role("exit", |tasks| {
        drop(tasks.task());
        ""
    })
    .end(|_, ledger| format!("{} {}", ledger.destroyer("A"), ledger.destroyer("B")))
    .allows(&["install: 1; exit: ; install install", "install: 1; exit: ; exit exit"]);
}

/// A task takes the position without its lock once nobody else has the file. It has to see what the last
/// other handle has done to it.
#[test]
fn lock_position_or_drop() {
    type Opened = fdtable::file::File<(), ()>;
    struct Position(Mutex<Files<Opened>>, Mutex<Option<OwnedRef<Opened>>>);
    Race::new("lock_position_or_drop", |_| {
        let options = OpenOptions::new(AccessMode::Read);
        let task = Files::new();
        let file = Opened::open((), &options, |()| Ok(())).expect("opens");
        let fd = task.insert(file, NONE).expect("there is room");
        let handle = task.get_owned(fd).expect("open");
        Position(Mutex::new(task), Mutex::new(Some(handle)))
    })
    .role("handle", |Position(_, handle)| {
        let file = handle.lock().unwrap().take().expect("taken once");
        *file.lock_position() += 1;
        drop(file);
        ""
    })
    .role("task", |Position(task, _)| {
        let mut task = task.lock().unwrap();
        let mut file = task.lock_position(0).expect("open");
        let mut position = file.position();
        let lock = if position.is_locked() { "locked" } else { "alone" };
        *position += 10;
        format!("{lock} {}", *position)
    })
    .end(|Position(task, _), _| task.lock().unwrap().get(0).expect("open").position())
    .allows(&[
        "handle: ; task: alone 11; 11",
        "handle: ; task: locked 10; 11",
        "handle: ; task: locked 11; 11",
    ]);
}

/// A count that is being moved to the file while the task looks whether it is alone: who sees the slot's count
/// gone sees the file's. (The observer only gets the lookup past the task's exclusive borrow; loom need not know
/// how it finds the table, which does not change.)
#[test]
fn lock_position_or_transfer() {
    type Opened = fdtable::file::File<(), ()>;
    struct Held {
        task: Mutex<Files<Opened>>,
        observer: Observer<Opened>,
        handles: Mutex<Vec<OwnedRef<Opened>>>,
    }
    Race::new("lock_position_or_transfer", |_| {
        let task = Files::new();
        let open = Opened::open((), &OpenOptions::new(AccessMode::Read), |()| Ok(()));
        let fd = task.insert(open.expect("opens"), NONE).expect("there is room");
        let handles = (0..2).map(|_| task.get_owned(fd).expect("open")).collect();
        let observer = task.observe();
        Held { task: Mutex::new(task), observer, handles: Mutex::new(handles) }
    })
    .role("look", |held| {
        let handle = held.observer.get(0).expect("open");
        held.handles.lock().unwrap().push(handle);
        ""
    })
    .role("task", |held| {
        let mut task = held.task.lock().unwrap();
        let mut file = task.lock_position(0).expect("open");
        if file.position().is_locked() { "locked" } else { "alone" }
    })
    .end(|_, _| "")
    .allows(&["look: ; task: locked"]);
}
