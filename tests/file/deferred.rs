//! A queue of files whose last reference went where releases must not run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fdtable::FdFlags;
use fdtable::file::DeferredQueue;

use crate::counting::*;

const NONE: FdFlags = FdFlags::empty();

#[test]
fn only_the_last_reference_is_queued_and_the_flush_is_not_deferred() {
    let (table, queue) = (table(), DeferredQueue::new());
    let (file, place) = file("a");
    let fd = table.insert(file, NONE).unwrap();
    let copy = table.dup(fd).unwrap();
    table.close_deferred(fd, &queue).unwrap();
    assert_eq!(place.take_log(), [flush("a", table.id())]);
    assert!(queue.is_empty());
    let handle = table.get_owned(copy).unwrap();
    table.close_deferred(copy, &queue).unwrap();
    assert!(queue.is_empty(), "a reader has it");
    handle.put_deferred(&queue);
    assert_eq!((queue.len(), queue.is_empty(), place.take_log().len()), (1, false, 1));
    assert_eq!(queue.drain(10), 1);
    assert_eq!(place.take_log(), ["release a", "path"]);
}

#[test]
fn it_drains_in_order_by_number_and_on_its_drop() {
    let queue = DeferredQueue::new();
    let place = Arc::<Place>::default();
    for name in ["1", "2", "3"] {
        let file = TestFile::open(Path::to(&place), &read_write(), |_| Ok(Ops(name))).unwrap();
        fdtable::OwnedRef::new(file).put_deferred(&queue);
    }
    assert_eq!(queue.drain(0), 0);
    assert_eq!(queue.drain(2), 2);
    assert_eq!(place.take_log(), ["release 1", "path", "release 2", "path"]);
    drop(queue);
    assert_eq!(place.take_log(), ["release 3", "path"]);
}

#[test]
fn a_release_may_put_another_file_and_may_panic() {
    let queue = Arc::new(DeferredQueue::new());
    let (bad, bad_place) = file("release panics");
    let (good, good_place) = file("good");
    fdtable::OwnedRef::new(bad).put_deferred(&queue);
    fdtable::OwnedRef::new(good).put_deferred(&queue);
    assert!(catch_unwind(AssertUnwindSafe(|| queue.drain(10))).is_err());
    assert_eq!((bad_place.drops(), good_place.drops(), queue.len()), (1, 0, 1));

    struct Puts(Arc<DeferredQueue<Puts>>, Option<fdtable::OwnedRef<Puts>>);
    impl Drop for Puts {
        fn drop(&mut self) {
            if let Some(other) = self.1.take() {
                other.put_deferred(&self.0);
            }
        }
    }
    let queue = Arc::new(DeferredQueue::new());
    let inner = fdtable::OwnedRef::new(Puts(Arc::clone(&queue), None));
    fdtable::OwnedRef::new(Puts(Arc::clone(&queue), Some(inner))).put_deferred(&queue);
    assert_eq!(queue.drain(usize::MAX), 2);
    assert_eq!(Arc::strong_count(&queue), 1);
}

/// Putters and a drainer at once: each file is released once.
#[test]
fn nothing_is_lost_between_putters_and_the_drainer() {
    let (table, queue) = (table(), DeferredQueue::new());
    let place = Arc::<Place>::default();
    let rounds = if cfg!(miri) { 20 } else { 5_000 };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let putter = || {
            for _ in 0..rounds {
                let path = Path::to(&place);
                let fd = table.open_file(path, &read_write(), NONE, |_| Ok(Ops("a"))).unwrap();
                table.close_deferred(fd, &queue).unwrap();
            }
        };
        let putters = [scope.spawn(putter), scope.spawn(putter)];
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                queue.drain(3);
            }
        });
        for putter in putters {
            putter.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    drop(queue);
    assert_eq!(place.drops(), 2 * rounds);
    let releases = place.take_log().iter().filter(|entry| *entry == "release a").count();
    assert_eq!(releases, 2 * rounds);
}
