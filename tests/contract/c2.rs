//! C2: for one fd, install, lookup, replace, remove and flags are a register.

use super::*;

#[test]
fn c2_a_lookup_finds_what_was_there_during_the_call() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = filled(&ledger, fd + 1);
        let generations = Generations::new();
        let look = || {
            let a = generations.read(|| name(&table, fd));
            let b = generations.read(|| table.get_owned(fd).unwrap().name());
            let at = || table.iter().find(|entry| entry.fd == fd).unwrap().file.name();
            let c = generations.read(at);
            // One reader never sees them go back.
            assert!(a <= b && b <= c);
        };
        alongside(&[&look, &look], || {
            for turn in 1..=rounds(10_000) as u32 {
                generations.write(turn, || {
                    let new = ledger.file(turn);
                    match turn % 3 {
                        0 => drop(table.replace(fd, new, NONE).unwrap()),
                        1 => {
                            let other = table.insert(new, NONE).unwrap();
                            table.dup2(other, fd).unwrap();
                            table.close(other).unwrap();
                        }
                        _ => {
                            let other = table.insert(new, NONE).unwrap();
                            table.renumber(other, fd).unwrap();
                        }
                    }
                });
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

#[test]
fn c2_entries_pair_the_file_with_its_own_flags() {
    // Next to each other, for a reader to meet with a change now and then.
    for fds in [0..8, 64..72] {
        let ledger = Ledger::new();
        let table = FdTable::new();
        let flags_of = |name: u32| [NONE, CLOEXEC][name as usize % 2];
        let put = |fd: u32, name: u32| {
            drop(table.replace(fd, ledger.file(name), flags_of(name)).unwrap());
        };
        fds.clone().for_each(|fd| put(fd, 0));
        let pairs = |table: &FdTable<File>| {
            for entry in table.iter() {
                assert_eq!(entry.flags, flags_of(entry.file.name()), "{}", entry.file.name());
            }
            assert_eq!(table.iter().count(), 8);
        };
        let change = || {
            for turn in 1..=rounds(20_000) as u32 {
                fds.clone().for_each(|fd| put(fd, turn));
            }
        };
        alongside(&[&|| pairs(&table)], change);
        alongside(&[&|| pairs(&table.fork().unwrap())], change);
    }
}

/// Flags and the count of handles may well live in one word.
#[test]
fn c2_flags_hold_while_others_look_up() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = filled(&ledger, fd + 1);
        let look = || {
            let handles = [(); 5].map(|()| table.get(fd).unwrap());
            drop(handles.map(Ref::into_owned));
            let _ = table.get(fd).unwrap().to_owned();
            assert_eq!(table.iter().last().unwrap().fd, fd);
        };
        alongside(&[&look, &look], || {
            let all = [NONE, CLOEXEC, CLOFORK, CLOEXEC | CLOFORK];
            for turn in 0..rounds(20_000) {
                let flags = all[turn * 7 / 3 % 4];
                table.set_flags(fd, flags).unwrap();
                assert_eq!(table.flags(fd), Ok(flags));
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

#[test]
fn c2_a_change_of_flags_brings_no_file_back() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = filled(&ledger, fd + 1);
        let flag = || {
            table.set_flags(fd, CLOEXEC).unwrap();
            table.close_range(fd, fd, CloseRange::CLOEXEC).unwrap();
            table.set_flags(fd, NONE).unwrap();
        };
        alongside(&[&flag], || {
            for turn in 1..=rounds(10_000) as u32 {
                let old = table.replace(fd, ledger.file(turn), NONE).unwrap().unwrap();
                assert_eq!((old.name(), name(&table, fd)), (turn - 1, turn));
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

/// Not atomic: were there no order between install and lookup this would be a data race.
#[test]
fn c2_what_was_written_before_an_install_is_seen_after_a_lookup() {
    for fd in [3, 70] {
        let table = FdTable::new();
        for _ in 0..fd {
            table.insert(vec![0; 8], NONE).unwrap();
        }
        let look = || {
            if let Ok(file) = table.get(fd) {
                let first = file[0];
                assert!(file.iter().all(|&word| word == first) && file.len() == 8);
            }
        };
        alongside(&[&look], || {
            for turn in 0..rounds(10_000) {
                assert_eq!(table.insert(vec![turn; 8], NONE).unwrap(), fd);
                drop(table.replace(fd, vec![turn + 1; 8], NONE).unwrap());
                table.close(fd).unwrap();
            }
        });
    }
}

#[test]
fn c2_one_of_two_gets_the_file() {
    for base in [0, 64] {
        let fds = base..base + 50;
        for turn in 0..rounds(500) {
            let ledger = Ledger::new();
            let table = filled(&ledger, base);
            for fd in fds.clone() {
                assert_eq!(table.insert(ledger.file(1), NONE).unwrap(), fd);
            }
            let (taken, closed) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let take = |way: usize| {
                for fd in fds.clone() {
                    match (turn + way) % 4 {
                        0 | 1 => {
                            let file = table.remove(fd).map(|file| assert_eq!(file.name(), 1));
                            taken.fetch_add(usize::from(file.is_ok()), SeqCst);
                        }
                        2 => {
                            closed.fetch_add(usize::from(table.close(fd).is_ok()), SeqCst);
                        }
                        // This one does not tell.
                        _ => table.close_range(fd, fd, CLOSE).unwrap(),
                    }
                }
            };
            together(&[&|| take(0), &|| take(1)]);
            // Each was taken or closed, and who closes flushes.
            let (taken, closed) = (taken.into_inner(), closed.into_inner());
            assert_eq!(taken + ledger.flushed(), 50, "turn {turn}");
            assert!(closed <= ledger.flushed());
            assert_eq!((table.len(), ledger.live()), (base as usize, base.min(1) as usize));
        }
    }
}

#[test]
fn c2_exactly_one_close_succeeds() {
    for base in [0, 64] {
        let fds = base..base + 50;
        for _ in 0..rounds(500) {
            let ledger = Ledger::new();
            let table = filled(&ledger, base + 50);
            let closed = AtomicUsize::new(0);
            let close = || {
                for fd in fds.clone() {
                    closed.fetch_add(usize::from(table.close(fd).is_ok()), SeqCst);
                }
            };
            together(&[&close, &close]);
            assert_eq!((closed.into_inner(), ledger.flushed()), (50, 50));
        }
    }
}
