//! C1: the number returned was the lowest free one at one instant inside the call.

use super::*;

/// With nobody closing, each instant has one lowest free number: no gap, no number twice.
#[test]
fn c1_inserts_alone_leave_no_gap() {
    let each = |turns: usize, size: u32| {
        for _ in 0..turns {
            let ledger = Ledger::new();
            let table = FdTable::new();
            let insert = || {
                let mut last = None;
                for _ in 0..size {
                    let fd = table.insert(ledger.file(0), NONE).unwrap();
                    assert!(last < Some(fd), "a lower number became free by itself");
                    last = Some(fd);
                }
            };
            together(&[&insert, &insert, &insert]);
            assert_eq!(fds(&table), (0..3 * size).collect::<Vec<_>>());
            assert_eq!(table.high_water().unwrap(), 3 * size - 1);
        }
    };
    each(rounds(300), 50);
    each(1, rounds(5000) as u32);
}

#[test]
fn c1_batches_alone_are_adjacent() {
    for _ in 0..rounds(200) {
        let table = FdTable::new();
        let insert = || {
            for _ in 0..30 {
                let batch = table.reserve_many::<3>().unwrap();
                let fds = batch.map(|reservation| reservation.install((), NONE).get());
                assert!(fds[0].is_multiple_of(3), "{fds:?}");
                assert_eq!(fds, [0, 1, 2].map(|offset| fds[0] + offset));
            }
        };
        together(&[&insert, &insert]);
        assert_eq!(table.len(), 180);
    }
}

/// Only this thread takes the hole: it is free at every instant of each of its calls, so nothing
/// above it can be the answer, whatever others do there.
#[test]
fn c1_a_hole_that_stays_is_found() {
    for hole in [5, 63, 64, 70, 4095, 4096, 4100] {
        if cfg!(miri) && hole > 100 {
            continue;
        }
        let ledger = Ledger::new();
        let table = filled(&ledger, hole);
        // One above opens and closes single numbers, the other fills words and empties them.
        let single = || {
            let fd = table.insert_from(hole + 1, ledger.file(1), NONE).unwrap();
            // The other one may have closed it, and opened it again.
            let _ = table.close(fd);
        };
        let words = || {
            for _ in 0..70 {
                table.insert_from(hole + 1, ledger.file(1), NONE).unwrap();
            }
            table.close_range(hole + 1, u32::MAX, CLOSE).unwrap();
        };
        alongside(&[&single, &words], || {
            for _ in 0..rounds(2000) {
                let fd = table.insert(ledger.file(2), NONE).unwrap();
                assert_eq!(fd, hole);
                table.close(fd).unwrap();
                let fd = table.dup_from(0, hole.saturating_sub(1), NONE).unwrap();
                assert_eq!(fd, hole);
                assert_eq!(table.remove(fd).unwrap().name(), 0);
                let reserved = table.reserve_in(0..u32::MAX).unwrap();
                assert_eq!(reserved.fd(), hole);
            }
        });
    }
}

/// As above, with a lower number that comes and goes.
#[test]
fn c1_nothing_above_a_hole_is_handed_out() {
    for (low, hole) in [(3, 9), (3, 70), (65, 70), (3, 4100)] {
        if cfg!(miri) && hole > 100 {
            continue;
        }
        let ledger = Ledger::new();
        let table = filled(&ledger, hole);
        let flap = || {
            // Either may close what the other has put there.
            let _ = table.close(low);
            drop(table.replace(low, ledger.file(1), NONE));
        };
        alongside(&[&flap], || {
            for _ in 0..rounds(10_000) {
                let fd = table.insert(ledger.file(2), NONE).unwrap();
                assert!(fd == low || fd == hole, "{fd}");
                let _ = table.close(fd);
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

/// The higher number is free only while the lower one is as well, or this thread has that itself: it is
/// never the lowest, though a search that looks at one after the other may find the lower one taken
/// and the higher one free.
#[test]
fn c1_a_number_that_is_never_the_lowest_is_no_answer() {
    let end = if cfg!(miri) { 80 } else { 1000 };
    for (low, high, flaps) in [(3, 9, 500), (3, 70, 4000), (65, 70, 500)] {
        let ledger = Ledger::new();
        let table = filled(&ledger, end);
        let (inserts, flapped) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let flap = || {
            // The other thread may have the lower one, or take it now: then it closes it.
            let _ = table.close(low);
            table.close(high).unwrap();
            table.replace(high, ledger.file(1), NONE).unwrap();
            drop(table.replace(low, ledger.file(1), NONE));
            flapped.fetch_add(1, SeqCst);
            // For a while both are taken: that is when a search goes on to the higher ones.
            let seen = inserts.load(SeqCst);
            (0..1000).take_while(|_| inserts.load(SeqCst) < seen + 2).for_each(|_| spin_loop());
            (0..fastrand::u32(..100)).for_each(|_| spin_loop());
        };
        // So that a search may have to wait on its way.
        let hold_up = || assert!(table.fork().is_ok());
        alongside(&[&flap, &hold_up], || {
            while flapped.load(SeqCst) < rounds(flaps) {
                inserts.fetch_add(1, SeqCst);
                let fd = table.insert(ledger.file(2), NONE).unwrap();
                assert!(fd == low || fd == end, "{fd}");
                let _ = table.close(fd);
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

/// As many free numbers as threads that want one: at every instant one is free for each.
#[test]
fn c1_emfile_only_when_full() {
    for free in [[5, 9, 11], [5, 63, 64], [5, 70, 130], [64, 127, 128]] {
        let ledger = Ledger::new();
        let table = filled(&ledger, 140);
        for fd in free {
            table.close(fd).unwrap();
        }
        table.set_limit(140);
        let reopen = || {
            for turn in 0..rounds(10_000) {
                let fd = if turn % 2 == 0 {
                    table.insert(ledger.file(1), NONE).unwrap()
                } else {
                    table.dup(0).unwrap()
                };
                assert!(free.iter().any(|&free| fd == free), "{fd}");
                table.close(fd).unwrap();
            }
        };
        together(&[&reopen, &reopen, &reopen]);
        assert_eq!((table.len(), ledger.live()), (137, 1));
    }
}
