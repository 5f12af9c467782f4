//! Tasks that share a table, fork, unshare, exec and exit, and those who look at it from outside.

use std::sync::Arc;

use fdtable::{CloseRange, FdFlags, Files, Observer, Options};

use crate::common::{File, Ledger, flush};
use crate::{OPERATIONS, below, pct, random, together};

#[test]
fn in_random_schedules() {
    random(scenario);
}

#[test]
fn with_few_preemptions() {
    pct(scenario);
}

fn scenario() {
    let ledger = Ledger::new();
    let first = Files::from(Options::new().on_close(flush).build());
    let observer = first.observe();
    together(|me| {
        let mut task = first.share();
        for _ in 0..OPERATIONS {
            // One looks from outside, now and then.
            if me == 0 && below(2) == 0 {
                look(&observer);
            } else {
                step(&first, &mut task, &ledger);
            }
        }
    });
    assert!(!first.is_shared(), "a sharer too many");
    let open = first.len();
    drop(first);
    assert!(!observer.is_alive() && observer.list().is_empty());
    assert_eq!(ledger.live(), 0, "leaked");
    assert!(ledger.flushed() >= open, "not every fd is flushed");
}

fn look(observer: &Observer<File>) {
    assert!(observer.is_alive());
    let _ = observer.get(below(4)).map(|file| file.name());
    assert!(observer.list().is_sorted_by_key(|(fd, _)| *fd));
}

fn step(first: &Files<File>, task: &mut Files<File>, ledger: &Arc<Ledger>) {
    let fd = below(6);
    match below(16) {
        0 => *task = task.fork().expect("memory"),
        1 => *task = first.share(),
        2 => task.unshare().expect("memory"),
        3 => task.exec().expect("memory"),
        4 => {
            task.close_range(fd, u32::MAX, CloseRange::UNSHARE).expect("valid");
            assert!(
                !task.is_shared() && task.highest_open().is_none_or(|highest| highest.get() < fd)
            );
        }
        5..7 => {
            let _ = task.borrow(fd).map(|file| file.name());
        }
        7 => {
            if let Ok(reservation) = task.reserve_owned(8)
                && below(2) == 0
            {
                reservation.install(ledger.file(0), FdFlags::empty());
            }
        }
        8..10 => drop(task.close(fd)),
        10 => drop(task.dup2(fd, below(6))),
        11 => drop(task.limited(4).insert(ledger.file(0), FdFlags::CLOEXEC)),
        _ => drop(task.insert(ledger.file(0), FdFlags::CLOEXEC)),
    }
}
