//! Numbers, bitmaps, hints.

use super::*;

#[test]
fn n1_unshare_without_a_whole_word_then_dup() {
    let ledger = Ledger::new();
    let mut files = Files::from(opened(&ledger, 128));
    let thread = files.share();
    files.close_range(64, u32::MAX, CloseRange::UNSHARE).unwrap();
    for fd in 64..300 {
        assert_eq!(files.dup(0).unwrap(), fd);
    }
    assert_eq!(fds(&thread), (0..128).collect::<Vec<_>>());
    assert!((0..128).all(|fd| name(&thread, fd) == fd));
    assert_eq!(ledger.live(), 128);
}

#[test]
fn n2_unshare_then_dup2_onto_the_last_number_with_storage() {
    let ledger = Ledger::new();
    let mut files = Files::from(opened(&ledger, 71));
    let _thread = files.share();
    files.close_range(3, u32::MAX, CloseRange::UNSHARE).unwrap();
    let last = files.capacity() - 1;
    assert_eq!(files.capacity() % 64, 0);
    assert_eq!(files.dup2(0, last).unwrap(), last);
    assert_eq!(fds(&files), [0, 1, 2, last]);
    assert_eq!(files.dup2(0, last + 1).unwrap(), last + 1);
    assert_eq!(files.capacity() % 64, 0);
}

#[test]
fn n3_restore_with_a_hole_then_insert() {
    let ledger = Ledger::new();
    let items = [0, 1, 2, 5].map(|fd| (fd, ledger.file(fd), NONE));
    let table = Options::new().restore(items).unwrap();
    for expected in [3, 4, 6, 7] {
        assert_eq!(table.insert(ledger.file(9), NONE).unwrap(), expected);
    }
    // And with the hole in a word of its own.
    let items = (0..200).filter(|&fd| fd != 130).map(|fd| (fd, ledger.file(fd), NONE));
    let table = Options::new().restore(items).unwrap();
    assert_eq!(table.insert(ledger.file(9), NONE).unwrap(), 130);
    assert_eq!(table.insert(ledger.file(9), NONE).unwrap(), 200);
}

#[test]
fn n4_clofork_leaves_a_hole_in_the_child() {
    for hole in [3, 70] {
        let ledger = Ledger::new();
        let parent = opened(&ledger, 100);
        parent.set_flags(hole, FdFlags::CLOFORK).unwrap();
        let child = parent.fork().unwrap();
        assert_eq!(child.insert(ledger.file(0), NONE).unwrap(), hole);
        assert_eq!(child.insert(ledger.file(0), NONE).unwrap(), 100);
        assert_eq!(name(&parent, hole), hole);
    }
}

#[test]
fn n5_one_hole_in_a_million() {
    let (end, turns) = if cfg!(miri) { (10_000, 10) } else { (1_000_000, 20_000) };
    let table = FdTable::new();
    table.insert('0', NONE).unwrap();
    for fd in 1..end {
        assert_eq!(table.dup(0).unwrap(), fd);
    }
    // That this costs the same at every size is for the benchmarks; at a word per step of a search
    // it would not finish in time here either.
    for _ in 0..turns {
        table.close(999).unwrap();
        assert_eq!(table.insert('1', NONE).unwrap(), 999);
    }
    assert_eq!(table.len(), end as usize);
    assert_eq!(table.insert('2', NONE).unwrap(), end);
}

#[test]
fn n6_pairs_until_70_000() {
    let end = if cfg!(miri) { 5000 } else { 70_000 };
    let ledger = Ledger::new();
    let table = FdTable::new();
    for fd in (0..end).step_by(2) {
        let [read, write] = table.reserve_many().unwrap();
        assert_eq!(read.install(ledger.file(fd), NONE), fd);
        assert_eq!(write.install(ledger.file(fd + 1), NONE), fd + 1);
    }
    assert_eq!(fds(&table), (0..end).collect::<Vec<_>>());
    assert!(table.iter().all(|entry| entry.fd == entry.file.name()));
}

#[test]
fn n7_close_then_insert_whatever_was_opened_above() {
    for low in [3, 64, 100] {
        let ledger = Ledger::new();
        let table = opened(&ledger, 101);
        let reserved = table.reserve().unwrap();
        table.close(low).unwrap();
        table.insert_from(102, ledger.file(0), NONE).unwrap();
        table.dup2(0, 700).unwrap();
        table.dup_from(0, 4096, NONE).unwrap();
        table.close(102).unwrap();
        drop(reserved);
        assert_eq!(table.insert(ledger.file(0), NONE).unwrap(), low);
        assert_eq!(table.insert(ledger.file(0), NONE).unwrap(), 101);
    }
}

#[test]
fn n8_the_limit_bounds_the_number_not_the_count() {
    let ledger = Ledger::new();
    let items = [0, 1, 2].into_iter().chain(100..=110).map(|fd| (fd, ledger.file(fd), NONE));
    let table = Options::new().limit(5).restore(items).unwrap();
    assert_eq!(table.insert(ledger.file(0), NONE).unwrap(), 3);
    assert_eq!(table.insert(ledger.file(0), NONE).unwrap(), 4);
    assert_eq!(table.insert(ledger.file(0), NONE).unwrap_err().errno(), Errno::EMFILE);
}

#[test]
fn n9_dup_from_skips_what_is_free_below_the_minimum() {
    let ledger = Ledger::new();
    let table = opened(&ledger, 3);
    assert_eq!(table.dup_from(0, 10, NONE).unwrap(), 10);
    assert_eq!(table.dup_from(0, 10, CLOEXEC).unwrap(), 11);
    assert_eq!(table.dup_from(0, 100, NONE).unwrap(), 100);
    assert_eq!(table.insert(ledger.file(3), NONE).unwrap(), 3);
}
