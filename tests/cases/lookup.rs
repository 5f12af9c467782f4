//! Lookup, close, growth.

use super::*;

#[test]
fn l1_lookup_while_closed_and_reopened() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = opened(&ledger, fd);
        table.insert(ledger.file(1000), NONE).unwrap();
        // The first file that may still be open, and the last that may be already.
        let (first, last) = (AtomicU32::new(1000), AtomicU32::new(1000));
        let look = || {
            let first = first.load(SeqCst);
            let found = table.get(fd).ok().map(|file| file.name());
            let last = last.load(SeqCst);
            assert!(found.is_none_or(|file| (first..=last).contains(&file)), "{found:?}");
        };
        alongside(&[&look], || {
            for turn in 1000..1000 + rounds(20_000) as u32 {
                table.close(fd).unwrap();
                first.store(turn + 1, SeqCst);
                last.store(turn + 1, SeqCst);
                assert_eq!(table.insert(ledger.file(turn + 1), NONE).unwrap(), fd);
            }
        });
        assert_eq!(ledger.live(), fd as usize + 1);
    }
}

#[test]
fn l2_install_while_iterating() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 2);
    for turn in 0..rounds(1000) as u32 {
        let numbers = if turn % 2 == 0 { 2..u32::MAX } else { 500..u32::MAX };
        let (fd, installed) = (numbers.start, AtomicBool::new(false));
        let reserved = Mutex::new(Some(table.reserve_in(numbers).unwrap()));
        let install = || {
            let reserved = reserved.lock().unwrap().take().unwrap();
            reserved.install(ledger.file(turn), CLOEXEC);
            installed.store(true, SeqCst);
        };
        let look = || {
            for _ in 0..4 {
                let must = installed.load(SeqCst);
                let shown: Vec<_> = table
                    .iter()
                    .map(|entry| (entry.fd.get(), entry.file.name(), entry.flags))
                    .collect();
                let open = [(0, 0, NONE), (1, 1, NONE), (fd, turn, CLOEXEC)];
                assert!(shown == open || !must && shown == open[..2], "{shown:?}");
            }
        };
        together(&[&install, &look]);
        table.close(fd).unwrap();
    }
    assert_eq!(ledger.live(), 2);
}

#[test]
fn l3_listed_while_it_grows() {
    let end = if cfg!(miri) { 200 } else { 10_000 };
    let ledger = Ledger::new();
    let table = opened(&ledger, 1);
    let (begun, done) = (AtomicU32::new(1), AtomicU32::new(1));
    let list = || {
        let done = done.load(SeqCst);
        let shown: Vec<_> = table.iter().map(|entry| (entry.fd.get(), entry.file.name())).collect();
        let begun = begun.load(SeqCst);
        assert!(shown.iter().all(|&(fd, name)| fd == name && fd < begun));
        // In order and once; whatever was open before is there.
        assert!(shown.is_sorted_by(|a, b| a < b));
        assert_eq!(shown.iter().filter(|(fd, _)| *fd < done).count(), done as usize);
    };
    alongside(&[&list], || {
        for fd in 1..end {
            begun.store(fd + 1, SeqCst);
            table.insert(ledger.file(fd), NONE).unwrap();
            done.store(fd + 1, SeqCst);
        }
    });
    assert_eq!(ledger.live(), end as usize);
}

#[test]
fn l4_dup_while_closed() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = opened(&ledger, fd);
        let duplicate = || {
            for _ in 0..rounds(10_000) {
                if let Ok(duplicate) = table.dup_from(fd, fd + 1, NONE) {
                    table.close(duplicate).unwrap();
                }
            }
        };
        let reopen = || {
            for turn in 0..rounds(10_000) as u32 {
                assert_eq!(table.insert(ledger.file(turn), NONE).unwrap(), fd);
                table.close(fd).unwrap();
            }
        };
        together(&[&duplicate, &duplicate, &reopen]);
        assert_eq!((ledger.live(), table.len()), (fd as usize, fd as usize));
    }
}

#[test]
fn l5_a_handle_outlives_the_close() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = opened(&ledger, fd + 1);
        let (held, closed) = (Barrier::new(2), Barrier::new(2));
        let hold = || {
            let (handle, owned) = (table.get(fd).unwrap(), table.get_owned(fd).unwrap());
            held.wait();
            closed.wait();
            // Its number belongs to someone else now.
            assert_eq!(table.insert(ledger.file(1000), NONE).unwrap(), fd);
            assert_eq!((handle.name(), owned.name()), (fd, fd));
            let live = ledger.live();
            drop(handle);
            assert_eq!((owned.name(), ledger.live()), (fd, live));
            drop(owned);
            assert_eq!(ledger.live(), live - 1);
        };
        let close = || {
            held.wait();
            table.close(fd).unwrap();
            assert_eq!((ledger.flushed(), ledger.live()), (1, fd as usize + 1));
            closed.wait();
        };
        together(&[&hold, &close]);
    }
}

#[test]
fn l6_the_first_number_of_new_storage_while_others_look_up() {
    for end in [64, 256] {
        for _ in 0..rounds(150) {
            let ledger = Ledger::new();
            let table = opened(&ledger, end);
            let addresses =
                [0, end / 2, end - 1].map(|fd| (fd, &raw const *table.get(fd).unwrap()));
            let addresses = addresses.map(|(fd, address)| (fd, address.addr()));
            let look = || {
                for (fd, address) in addresses {
                    let file = table.get(fd).unwrap();
                    assert_eq!((file.name(), (&raw const *file).addr()), (fd, address));
                }
                let new = table.get(end).ok().map(|file| file.name());
                assert!(new.is_none_or(|new| new == end));
            };
            alongside(&[&look], || {
                assert_eq!(table.insert(ledger.file(end), NONE).unwrap(), end);
            });
            assert_eq!(ledger.live(), end as usize + 1);
        }
    }
}

#[test]
fn l7_a_batch_without_room_claims_nothing() {
    // Room for one below the limit: in the first word, as its last number, in a later word.
    for free in [9, 63, 64, 130] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 140);
        table.close(free).unwrap();
        let limit = 140;
        let batch = || {
            let full = table.limited(limit).reserve_many::<2>();
            assert_eq!(full.err(), Some(ReserveError::LimitReached));
        };
        let elsewhere = || {
            let fd = table.insert_from(200, ledger.file(7), NONE).unwrap();
            assert_eq!(table.get(fd).unwrap().name(), 7);
            table.close(fd).unwrap();
        };
        alongside(&[&batch, &elsewhere], || {
            for turn in 0..rounds(5000) as u32 {
                // The free number is there at every moment for who asks for one.
                assert_eq!(table.limited(limit).insert(ledger.file(turn), NONE).unwrap(), free);
                assert_eq!(name(&table, free), turn);
                table.close(free).unwrap();
            }
        });
        assert_eq!((ledger.live(), table.len()), (139, 139));
        assert_eq!(table.reserve().unwrap().fd(), free);
    }
}

#[test]
fn l7_a_batch_sees_the_table_at_one_instant() {
    // 5 is free or not, `other` always: the batch gets both or none.
    for other in [9, 70] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 71);
        table.close(other).unwrap();
        let batch = || match table.limited(71).reserve_many::<2>() {
            Ok([a, b]) => assert!(a.fd() == 5 && b.fd() == other),
            Err(error) => assert_eq!(error, ReserveError::LimitReached),
        };
        alongside(&[&batch], || {
            for turn in 0..rounds(10_000) as u32 {
                table.close(5).unwrap();
                // The batch may have it at the moment; then it gives it back.
                while table.replace(5, ledger.file(turn), NONE).is_err() {
                    thread::yield_now();
                }
            }
        });
        assert_eq!((ledger.live(), table.len()), (70, 70));
    }
}

#[test]
fn l8_the_limit_falls_while_others_dup() {
    for _ in 0..rounds(20) {
        let ledger = Ledger::new();
        let table = opened(&ledger, 1);
        table.set_limit(2000);
        table.reserve_capacity(4096).unwrap();
        let lower = || {
            for limit in (20..2000).rev().step_by(if cfg!(miri) { 100 } else { 1 }) {
                table.set_limit(limit);
            }
        };
        let duplicate = || {
            for turn in 0..rounds(3000) as u64 {
                // It only falls: what a call observes is at most this.
                let limit = table.limit();
                let done = match turn % 3 {
                    0 => table.dup_from(0, limit.saturating_sub(2), NONE).ok(),
                    1 => table.dup2(0, limit - 1 - turn % 5).ok(),
                    _ => table.dup(0).ok(),
                };
                if let Some(fd) = done {
                    assert!(u64::from(fd) < limit, "{fd} with limit {limit}");
                    // The other one may have replaced it, or closed it already.
                    let _ = table.close(fd);
                }
            }
        };
        let watch = || {
            assert!(table.iter().all(|entry| entry.fd.get() < 2000));
        };
        alongside(&[&watch], || together(&[&lower, &duplicate, &duplicate]));
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}
