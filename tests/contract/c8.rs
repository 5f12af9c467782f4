//! C8: a fork's copy is what the table was at one instant inside the call.

use super::*;

/// Where the fds in question lie: among the first, above, and on both sides; in both directions.
const PLACES: [&[u32]; 10] = [
    &[0, 63],
    &[3, 40],
    &[40, 3],
    &[70, 5000],
    &[5000, 70],
    &[3, 70],
    &[70, 3],
    &[63, 64],
    &[70, 3, 5000, 40, 75, 9],
    &[9, 75, 40, 130, 3, 70, 20],
];

fn places() -> impl Iterator<Item = &'static [u32]> {
    PLACES.into_iter().filter(|place| !cfg!(miri) || place.iter().all(|&fd| fd < 100))
}

/// One fd after the other gets the next file. At every instant the names, in this order, are those of
/// one generation and then those of the one before.
#[test]
fn c8_a_copy_is_no_mixture_of_generations() {
    for place in places() {
        let ledger = Ledger::new();
        let table = filled(&ledger, 3);
        for &fd in place {
            drop(table.replace(fd, ledger.file(0), NONE).unwrap());
        }
        let generations = Generations::new();
        let fork = || {
            let mut copy = None;
            generations.read(|| {
                let copy = copy.insert(table.fork().unwrap());
                name(copy, *place.last().unwrap())
            });
            let copy = copy.unwrap();
            let names: Vec<_> = place.iter().map(|&fd| name(&copy, fd)).collect();
            assert!(names.is_sorted_by(|a, b| a >= b), "{place:?}: {names:?}");
            assert!(names[0] - names[names.len() - 1] <= 1, "{place:?}: {names:?}");
            assert_eq!(copy.len(), 3 + place.iter().filter(|&&fd| fd > 2).count());
        };
        alongside(&[&fork, &fork], || {
            for generation in 1..=rounds(10_000) as u32 {
                generations.write(generation, || {
                    for (turn, &fd) in place.iter().enumerate() {
                        let new = ledger.file(generation);
                        if (turn + generation as usize).is_multiple_of(2) {
                            drop(table.replace(fd, new, NONE).unwrap());
                        } else {
                            let other = table.replace(2, new, NONE).unwrap();
                            table.dup2(2, fd).unwrap();
                            drop(other);
                        }
                    }
                });
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

/// The next is opened before the last is closed: at every instant one or two in a row are open.
#[test]
fn c8_a_copy_never_lacks_what_is_always_there() {
    for place in places() {
        let ledger = Ledger::new();
        let table = Options::new().on_close(flush).build();
        table.replace(place[0], ledger.file(0), NONE).unwrap();
        let fork = || {
            let copy = table.fork().unwrap();
            let open: Vec<_> = fds(&copy);
            let mut turn = place.iter().zip(place.iter().cycle().skip(1));
            match *open {
                [one] => assert!(place.contains(&one)),
                [a, b] => assert!(
                    turn.any(|(&x, &y)| [a, b] == [x, y] || [a, b] == [y, x]),
                    "{place:?}: {open:?}"
                ),
                _ => panic!("{place:?}: {open:?}"),
            }
            // What the copy says of itself agrees with what is in it.
            assert_eq!(copy.len(), open.len());
            let lowest = (0..).find(|fd| !open.contains(fd)).unwrap();
            assert_eq!(copy.insert(ledger.file(9), NONE).unwrap(), lowest);
            assert_eq!(copy.highest_open(), open.last().max(Some(&lowest)).map(|&fd| fd_of(fd)));
        };
        alongside(&[&fork], || {
            // The fds that lie furthest apart give a change the best chance to slip through between them.
            let turns = rounds(if *place == [0, 63] { 800_000 } else { 30_000 });
            let mut open = place[0];
            for (turn, &next) in place.iter().cycle().skip(1).take(turns).enumerate() {
                match turn % 3 {
                    0 => drop(table.replace(next, ledger.file(1), NONE).unwrap()),
                    1 => {
                        let reserved = table.reserve_in(next..next + 1).unwrap();
                        reserved.install(ledger.file(1), CLOEXEC);
                    }
                    _ => assert_eq!(table.dup_from(open, next, NONE).unwrap(), next),
                }
                match turn % 2 {
                    0 => table.close(open).unwrap(),
                    _ => drop(table.remove(open).unwrap()),
                }
                open = next;
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

#[test]
fn c8_a_copy_has_the_flags_of_one_instant() {
    for place in places() {
        let ledger = Ledger::new();
        let table = filled(&ledger, 1);
        for &fd in place {
            table.replace(fd, ledger.file(0), NONE).unwrap();
        }
        let fork = || {
            let copy = table.fork().unwrap();
            let set: Vec<_> =
                place.iter().map(|&fd| copy.flags(fd).unwrap().contains(CLOEXEC)).collect();
            // On from the front, or off from the front: one change along the way at most.
            let changes = set.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert!(changes <= 1, "{place:?}: {set:?}");
        };
        alongside(&[&fork], || {
            for turn in 0..rounds(5000) {
                for &fd in place {
                    table.set_flags(fd, [CLOEXEC, NONE][turn % 2]).unwrap();
                }
            }
        });
    }
}

/// One of them is without CLOFORK at every instant: a copy has at least that one.
#[test]
fn c8_a_copy_leaves_out_what_is_clofork_at_that_instant() {
    for place in places() {
        let ledger = Ledger::new();
        let table = Options::new().on_close(flush).build();
        for &fd in place {
            let flags = if fd == place[0] { NONE } else { CLOFORK };
            table.replace(fd, ledger.file(fd), flags).unwrap();
        }
        let fork = || {
            let copy = table.fork().unwrap();
            assert!((1..=2).contains(&copy.len()), "{place:?}: {copy:?}");
            for entry in &copy {
                assert!(entry.fd == entry.file.name() && entry.flags == NONE);
            }
        };
        alongside(&[&fork], || {
            let mut last = place[0];
            for &next in place.iter().cycle().skip(1).take(rounds(10_000)) {
                table.set_flags(next, NONE).unwrap();
                table.set_flags(last, CLOFORK).unwrap();
                last = next;
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

/// What one thread does after it has seen what another did is not in a copy without that.
#[test]
fn c8_a_copy_has_the_cause_with_the_effect() {
    for (cause, effect) in [(3, 40), (3, 70), (70, 3), (70, 75), (5000, 70), (70, 5000)] {
        if cfg!(miri) && cause.max(effect) > 100 {
            continue;
        }
        let ledger = Ledger::new();
        let table = filled(&ledger, 1);
        for fd in [cause, effect] {
            table.replace(fd, ledger.file(0), NONE).unwrap();
        }
        let follow = || {
            let seen = table.get(cause).unwrap();
            drop(table.replace(effect, seen.to_owned(), NONE).unwrap());
        };
        let fork = || {
            let copy = table.fork().unwrap();
            assert!(name(&copy, effect) <= name(&copy, cause));
        };
        alongside(&[&follow, &fork], || {
            for turn in 1..=rounds(10_000) as u32 {
                drop(table.replace(cause, ledger.file(turn), NONE).unwrap());
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

/// A renumber moves a file in one step: it is at one of the two numbers in every copy.
#[test]
fn c8_a_copy_has_a_renumbered_file_once() {
    for (a, b) in [(3, 40), (3, 70), (70, 75), (70, 5000)] {
        if cfg!(miri) && b > 100 {
            continue;
        }
        let ledger = Ledger::new();
        let table = Options::new().on_close(flush).build();
        table.replace(a, ledger.file(1), NONE).unwrap();
        table.replace(b, ledger.file(2), NONE).unwrap();
        let fork = || {
            let copy = table.fork().unwrap();
            let names = [a, b].map(|fd| copy.get(fd).map_or(0, |file| file.name()));
            let moved = names.iter().filter(|&&name| name == 1).count();
            assert_eq!(moved, 1, "{a}, {b}: {names:?}");
        };
        alongside(&[&fork], || {
            for turn in 0..rounds(10_000) {
                let (from, to) = if turn % 2 == 0 { (a, b) } else { (b, a) };
                table.renumber(from, to).unwrap();
                table.replace(from, ledger.file(2), NONE).unwrap();
            }
        });
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

#[test]
fn c8_a_fork_holds_what_it_copies() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = filled(&ledger, fd);
        let reopen = || {
            for _ in 0..rounds(3000) {
                assert_eq!(table.insert(ledger.file(1), NONE).unwrap(), fd);
                table.close(fd).unwrap();
            }
        };
        let fork = || {
            let copy = table.fork().unwrap();
            if let Ok(file) = copy.get(fd) {
                assert_eq!(file.name(), 1);
            }
        };
        alongside(&[&fork, &fork], reopen);
        assert_eq!((ledger.live(), table.len()), (1, fd as usize));
    }
}
