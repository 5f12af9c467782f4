//! Dup2, renumber, replace.

use super::*;

#[test]
fn d1_dup2_of_a_closed_number_leaves_the_target() {
    for target in [5, 70] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 100);
        table.close(4).unwrap();
        let file = table.get_owned(target).unwrap();
        assert_eq!(table.dup2(4, target), Err(ReplaceError::BadFd));
        assert!(OwnedRef::ptr_eq(&table.get_owned(target).unwrap(), &file));
        assert_eq!(ledger.flushed(), 1);
    }
}

#[test]
fn d2_renumber_to_itself_then_insert() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 1);
    table.renumber(0, 0).unwrap();
    assert_eq!(table.insert(ledger.file(1), NONE).unwrap(), 1);
    assert_eq!((name(&table, 0), ledger.flushed()), (0, 0));
}

#[test]
fn d3_renumber_in_a_loop_leaks_nothing() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 63);
    for turn in 0..rounds(2000) {
        // One of them among the first numbers, one not.
        let from = table.insert(ledger.file(1), NONE).unwrap();
        let to = table.insert(ledger.file(2), NONE).unwrap();
        let (from, to) = if turn % 2 == 0 { (from, to) } else { (to, from) };
        table.renumber(from, to).unwrap();
        assert_eq!((ledger.live(), table.len()), (64, 64));
        assert_eq!(table.get(to).unwrap().name(), 1 + turn as u32 % 2);
        table.close(to).unwrap();
        assert_eq!((ledger.live(), ledger.flushed()), (63, 2 * (turn + 1)));
    }
}

/// What a renumber and a `close` and `insert` at its source, at the same time, have left: the files at
/// the two numbers, how many fds were flushed, and whether the renumber and the close succeeded.
type Reopened = (Option<u32>, Option<u32>, usize, bool, bool);

fn renumber_while_its_source_is_reopened(check: impl Fn(Reopened)) {
    for (from, to) in [(5, 6), (5, 70), (70, 5), (70, 71)] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 4);
        for _ in 0..rounds(5000) {
            table.replace(from, ledger.file(1), NONE).unwrap();
            table.replace(to, ledger.file(2), NONE).unwrap();
            let flushed = ledger.flushed();
            let (renumbered, closed) = (AtomicBool::new(false), AtomicBool::new(false));
            let renumber = || renumbered.store(table.renumber(from, to).is_ok(), SeqCst);
            let reopen = || {
                if table.close(from).is_ok() {
                    closed.store(true, SeqCst);
                    table.insert_from(from, ledger.file(3), NONE).unwrap();
                }
            };
            together(&[&renumber, &reopen]);
            let at = |fd: u32| table.get(fd).ok().map(|file| file.name());
            let flushes = ledger.flushed() - flushed;
            check((at(from), at(to), flushes, renumbered.into_inner(), closed.into_inner()));
            table.close_range(4, u32::MAX, CLOSE).unwrap();
            assert_eq!(ledger.live(), 4);
        }
    }
}

/// Whatever a renumber does, it is not to take away what someone else has just opened.
#[test]
fn d3_renumber_while_its_source_is_reopened_loses_nothing() {
    renumber_while_its_source_is_reopened(|left| match left {
        // Before the close, after the insert, in between.
        (None, Some(1), 1, true, false) => {}
        (None, Some(3), 2, true, true) => {}
        (Some(3), Some(2), 1, false, true) => {}
        // In two steps, with the close between them.
        (Some(3), Some(1), 2, true, true) => {}
        _ => panic!("{left:?}"),
    });
}

/// It is one step: what it has moved can't be closed at its old number.
#[test]
fn d3_renumber_while_its_source_is_reopened_is_one_step() {
    renumber_while_its_source_is_reopened(|left| match left {
        (None, Some(1), 1, true, false) => {}
        (None, Some(3), 2, true, true) => {}
        (Some(3), Some(2), 1, false, true) => {}
        _ => panic!("{left:?}"),
    });
}

#[test]
fn d4_dup2_onto_a_free_number() {
    for target in [9, 90, 9000] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 2);
        assert_eq!(table.dup2(1, target).unwrap(), target);
        assert_eq!((name(&table, target), ledger.flushed()), (1, 0));
    }
}

#[test]
fn d5_dup2_onto_a_reserved_number() {
    for base in [1, 63, 64, 100] {
        let ledger = Ledger::new();
        let table = opened(&ledger, base);
        let reserved = table.reserve().unwrap();
        let fd = reserved.fd();
        assert_eq!(table.dup2(0, fd), Err(ReplaceError::Busy));
        assert_eq!(reserved.install(ledger.file(7), NONE), fd);
        assert_eq!(table.get(fd).unwrap().name(), 7);
        assert_eq!(table.dup2(0, fd).unwrap(), fd);
    }
}

#[test]
fn d6_two_dup2_onto_one_number() {
    for target in [7, 700] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 2);
        table.dup2(0, target).unwrap();
        let turns = rounds(5000);
        let replace = || {
            for turn in 0..turns {
                let fd = table.insert(ledger.file(turn as u32), NONE).unwrap();
                table.dup2(fd, target).unwrap();
                table.close(fd).unwrap();
            }
        };
        together(&[&replace, &replace]);
        // Each turn closed its own fd and one victim; the last one's file is still there.
        assert_eq!((ledger.flushed(), ledger.live()), (4 * turns, 3));
        assert_eq!(fds(&table), [0, 1, target]);
    }
}

#[test]
fn d7_a_reader_never_sees_the_target_closed() {
    for target in [7, 700] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 3);
        table.dup2(0, target).unwrap();
        let look = || {
            let found = table.get(target).expect("7 is open all the time").name();
            assert!(found < 3, "{found}");
            assert!(table.contains(target));
            assert!(table.iter().any(|entry| entry.fd == target && entry.file.name() < 3));
        };
        alongside(&[&look], || {
            for turn in 0..rounds(20_000) as u32 {
                match turn % 3 {
                    0 => drop(table.replace(target, ledger.file(0), NONE).unwrap()),
                    1 => drop(table.dup2(1, target).unwrap()),
                    _ => {
                        let from = table.insert(ledger.file(2), NONE).unwrap();
                        table.renumber(from, target).unwrap();
                    }
                }
            }
        });
        assert_eq!(fds(&table), [0, 1, 2, target]);
        table.close(target).unwrap();
        assert_eq!(ledger.live(), 3);
    }
}

#[test]
fn d8_crossed_dup2() {
    for (a, b) in [(3, 4), (3, 400), (300, 400)] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 3);
        table.replace(a, ledger.file(a), NONE).unwrap();
        table.replace(b, ledger.file(b), NONE).unwrap();
        let turns = rounds(10_000);
        let cross = |old: u32, new: u32| {
            for _ in 0..turns {
                assert_eq!(table.dup2(old, new).unwrap(), new);
            }
        };
        together(&[&|| cross(a, b), &|| cross(b, a)]);
        assert_eq!(ledger.flushed(), 2 * turns);
        // One file has won, or they have changed places; none was lost that is in the table.
        let names = [name(&table, a), name(&table, b)];
        assert!(names.iter().all(|name| [a, b].contains(name)));
        assert_eq!(ledger.live(), if names[0] == names[1] { 4 } else { 5 });
    }
}
