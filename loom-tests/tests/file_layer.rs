//! The file layer: flush and release when the last references go at the same time, the deferred
//! queue, the budget, the memo of an inode.
#![cfg(all(loom, feature = "loom"))]

use std::sync::{Arc, Mutex};

use fdtable::file::{
    AccessMode, Budget, Caller, DeferredQueue, File, FileOps, Inode, Modify, NosecMemo,
    OpenOptions, S_ISUID, modified,
};
use fdtable::{Errno, FdFlags, FdTable, OwnedRef, TableId};
use loom::sync::atomic::{AtomicU32, Ordering};
use loom_tests::Race;

type Log = Arc<Mutex<Vec<&'static str>>>;

/// Operations that write down what is done to the file.
struct Logged(Log);

impl FileOps<()> for Logged {
    fn flush(&self, (): &(), _: TableId) -> Result<(), Errno> {
        self.0.lock().unwrap().push("flush");
        Ok(())
    }

    fn release(&mut self, (): &()) {
        self.0.lock().unwrap().push("release");
    }
}

type Logging = File<(), Logged>;

#[derive(Default)]
struct Tables {
    log: Log,
    tables: Vec<FdTable<Logging>>,
}

/// A table with one file at 0.
fn one_file() -> Tables {
    let log = Log::default();
    let table = File::table_options().build();
    let open = |_: &()| Ok(Logged(Arc::clone(&log)));
    let options = OpenOptions::new(AccessMode::Read);
    table.open_file((), &options, FdFlags::empty(), open).unwrap();
    Tables { log, tables: vec![table] }
}

/// Whoever drops the last reference releases, once, and after the flush.
#[test]
fn close_or_lookup() {
    Race::new("close_or_lookup", |_| one_file())
        .role("close", |s| s.tables[0].close(0).is_ok())
        .role("look", |s| s.tables[0].get(0).is_ok())
        .end(|s, _| s.log.lock().unwrap().join(" "))
        .allows(&[
            "close: true; look: true; flush release",
            "close: true; look: false; flush release",
        ]);
}

/// A handle held across the close: the flush does not wait for it, the release does.
#[test]
fn close_or_last_handle() {
    struct Held(Tables, Mutex<Option<OwnedRef<Logging>>>);
    Race::new("close_or_last_handle", |_| {
        let tables = one_file();
        let handle = tables.tables[0].get_owned(0).unwrap();
        Held(tables, Mutex::new(Some(handle)))
    })
    .role("close", |s| s.0.tables[0].close(0).is_ok())
    .role("drop", |s| {
        let handle = s.1.lock().unwrap().take();
        handle.is_some()
    })
    .end(|s, _| s.0.log.lock().unwrap().join(" "))
    .allows(&["close: true; drop: true; flush release"]);
}

/// Parent and child close the file that they share: two flushes, one release, after both.
#[test]
fn close_or_close_in_a_forks_copy() {
    Race::new("close_or_close_in_a_forks_copy", |_| {
        let mut tables = one_file();
        let child = tables.tables[0].fork().unwrap();
        tables.tables.push(child);
        tables
    })
    .role("parent", |s| s.tables[0].close(0).is_ok())
    .role("child", |s| s.tables[1].close(0).is_ok())
    .end(|s, _| s.log.lock().unwrap().join(" "))
    .allows(&["parent: true; child: true; flush flush release"]);
}

struct Queue {
    log: Log,
    files: Mutex<Vec<OwnedRef<Logging>>>,
    queue: Mutex<Option<Arc<DeferredQueue<Logging>>>>,
}

fn queue_and_file() -> Queue {
    let log = Log::default();
    let ops = Logged(Arc::clone(&log));
    let file = File::open((), &OpenOptions::new(AccessMode::Read), |()| Ok(ops)).unwrap();
    let file = OwnedRef::new(file);
    let queue = Arc::new(DeferredQueue::new());
    Queue { log, files: Mutex::new(vec![file.clone(), file]), queue: Mutex::new(Some(queue)) }
}

impl Queue {
    fn queue(&self) -> Option<Arc<DeferredQueue<Logging>>> {
        self.queue.lock().unwrap().clone()
    }

    fn file(&self) -> OwnedRef<Logging> {
        self.files.lock().unwrap().pop().unwrap()
    }
}

/// Two references put at once: the last one is queued, and drained once, now or later.
#[test]
fn put_or_put_or_drain() {
    Race::new("put_or_put_or_drain", |_| queue_and_file())
        .role("put", |s| {
            s.file().put_deferred(&s.queue().unwrap());
            "ok"
        })
        .role("put too", |s| {
            s.file().put_deferred(&s.queue().unwrap());
            "ok"
        })
        .role("drain", |s| s.queue().unwrap().drain(1))
        .end(|s, _| {
            let before = s.log.lock().unwrap().len();
            let queued = s.queue().unwrap().len();
            drop(s.queue.lock().unwrap().take());
            format!("{before} + {queued} = {}", s.log.lock().unwrap().len())
        })
        .allows(&[
            "put: ok; put too: ok; drain: 0; 0 + 1 = 1",
            "put: ok; put too: ok; drain: 1; 1 + 0 = 1",
        ]);
}

/// The queue is dropped by whoever has it last, while a file is being put, and dropped by its other holder:
/// it is released once all the same.
#[test]
fn put_or_drop_of_the_queue() {
    Race::new("put_or_drop_of_the_queue", |_| queue_and_file())
        .role("put", |s| match s.queue() {
            Some(queue) => {
                s.file().put_deferred(&queue);
                "queued"
            }
            None => {
                drop(s.file());
                "dropped"
            }
        })
        .role("end", |s| {
            let queue = s.queue.lock().unwrap().take();
            drop(queue);
            drop(s.file());
            "ok"
        })
        .end(|s, _| s.log.lock().unwrap().join(" "))
        .allows(&["put: queued; end: ok; release", "put: dropped; end: ok; release"]);
}

/// One place left in the budget, two that open: one gets it, and the count is right afterwards.
#[test]
fn open_or_open_at_the_budgets_maximum() {
    type Opened = File<(), ()>;
    fn open(budget: &Budget) -> &'static str {
        let options = OpenOptions::new(AccessMode::Read).budget(budget);
        match Opened::open((), &options, |()| Ok(())) {
            Ok(file) => {
                assert!(budget.used() <= budget.max());
                drop(file);
                "ok"
            }
            Err(error) => {
                assert_eq!(error, Errno::ENFILE);
                "ENFILE"
            }
        }
    }
    Race::new("open_or_open_at_the_budgets_maximum", |_| Budget::new(1))
        .role("open", open)
        .role("open too", open)
        .end(|budget, _| budget.used())
        .allows(&[
            "open: ok; open too: ok; 0",
            "open: ok; open too: ENFILE; 0",
            "open: ENFILE; open too: ok; 0",
        ]);
}

struct Node {
    mode: AtomicU32,
    memo: NosecMemo,
}

impl Inode for Node {
    fn mode(&self) -> Result<u32, Errno> {
        // Relaxed: what orders it is the memo.
        Ok(self.mode.load(Ordering::Relaxed))
    }

    fn strip(&self, _: fdtable::file::Privileges) -> Result<(), Errno> {
        self.mode.fetch_and(!S_ISUID, Ordering::Relaxed);
        self.memo.forget();
        Ok(())
    }

    fn nosec_memo(&self) -> Option<&NosecMemo> {
        Some(&self.memo)
    }
}

/// A write asks and is about to remember the answer, while the mode changes: the next write strips.
#[test]
fn memo_or_chmod() {
    Race::new("memo_or_chmod", |_| Node { mode: AtomicU32::new(0o644), memo: NosecMemo::new() })
        .role("write", |node| {
            modified(node, Caller::default(), Modify::empty()).unwrap();
            "ok"
        })
        .role("chmod", |node| {
            node.mode.fetch_or(S_ISUID, Ordering::Relaxed);
            node.memo.forget();
            "ok"
        })
        .end(|node, _| {
            modified(node, Caller::default(), Modify::empty()).unwrap();
            format!("{:o}", node.mode().unwrap())
        })
        .allows(&["write: ok; chmod: ok; 644"]);
}

/// A write that finds the memo gone sees the mode for which it went.
#[test]
fn forgotten_or_asked() {
    Race::new("forgotten_or_asked", |_| {
        let node = Node { mode: AtomicU32::new(0o644), memo: NosecMemo::new() };
        modified(&node, Caller::default(), Modify::empty()).unwrap();
        assert!(node.memo.is_set());
        node
    })
    .role("write", |node| {
        let forgotten = !node.memo.is_set();
        !forgotten || node.mode().unwrap() & S_ISUID != 0
    })
    .role("chmod", |node| {
        node.mode.fetch_or(S_ISUID, Ordering::Relaxed);
        node.memo.forget();
        "ok"
    })
    .allows(&["write: true; chmod: ok"]);
}
