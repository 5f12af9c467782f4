//! The number that is handed out was the lowest free one at some instant of the call.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fdtable::Options;

use crate::common::{File, Ledger, NONE, flush};
use crate::{THREADS, below, pct, quiet, random, together};

#[test]
fn in_random_schedules() {
    random(scenario);
}

#[test]
fn with_few_preemptions() {
    pct(scenario);
}

/// When a call for a number began and when it was over, by a clock that counts such instants.
#[derive(Clone, Copy)]
struct Call {
    fd: u32,
    from: usize,
    to: usize,
}

/// The first numbers are open; each is closed at most once, while others open some.
fn scenario() {
    const OPEN: u32 = 16;
    let ledger = Ledger::new();
    let table = Options::<File>::new().on_close(flush).build();
    for _ in 0..OPEN {
        table.insert(ledger.file(0), NONE).unwrap();
    }
    // Not the scheduler's: a clock must order nothing, nor be a point to switch threads at.
    let clock = AtomicUsize::new(0);
    let now = || clock.fetch_add(1, Ordering::Relaxed);
    let (opened, closed) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    together(|me| {
        if me < THREADS / 2 {
            let mut mine: Vec<_> = (me as u32..OPEN).step_by(THREADS / 2).collect();
            while !mine.is_empty() {
                let fd = mine.swap_remove(below(mine.len() as u32) as usize);
                let from = now();
                table.close(fd).expect("nobody else closes it");
                closed.lock().unwrap().push(Call { fd, from, to: now() });
            }
        } else {
            for _ in 0..4 {
                let from = now();
                let fd = table.insert(ledger.file(0), NONE).expect("there is room").get();
                opened.lock().unwrap().push(Call { fd, from, to: now() });
            }
        }
    });
    check(&opened.into_inner().unwrap(), &closed.into_inner().unwrap());
    quiet::take_apart(table, &ledger);
}

fn check(opened: &[Call], closed: &[Call]) {
    for open in opened {
        // The first instant of the call at which its number can have been free.
        let freed = closed.iter().find(|close| close.fd == open.fd).map_or(0, |close| close.from);
        let from = open.from.max(freed);
        let lower = closed.iter().filter(|close| close.fd < open.fd && close.to < from);
        for low in lower {
            // Free since before that; so it must have been handed out before the end of the call.
            let taken = opened.iter().any(|other| other.fd == low.fd && other.from < open.to);
            assert!(taken, "{} is handed out while {} is free", open.fd, low.fd);
        }
    }
}
