//! close ‖ close: of one fd, and of two fds with one file.
#![cfg(all(loom, feature = "loom"))]

use fdtable::CloseRange;
use loom_tests::{Race, World};

/// One of them wins.
#[test]
fn close_or_close() {
    Race::new("close_or_close", |ledger| World::new(ledger).open(0, "A"))
        .role("one", |w| w.close(0))
        .role("two", |w| w.close(0))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&["one: ok; two: EBADF; A by one; .", "one: EBADF; two: ok; A by two; ."]);
}

#[test]
fn close_or_close_an_upper_fd() {
    Race::new("close_or_close_an_upper_fd", |ledger| World::new(ledger).open(2, "A"))
        .role("one", |w| w.close(2))
        .role("two", |w| w.close(2))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&["one: ok; two: EBADF; A by one; .", "one: EBADF; two: ok; A by two; ."]);
}

/// A close that comes second comes after the first one, and after what that thread had closed before: it is a
/// change that was tried, not a lookup, whose miss says nothing about other fds.
#[test]
fn close_finds_nothing() {
    Race::new("close_finds_nothing", |ledger| World::new(ledger).open(0, "A").open(1, "B"))
        .role("first", |w| format!("{} {}", w.close(1), w.close(0)))
        .role("second", |w| format!("{} {}", w.close(0), w.table.contains(1)))
        .end(|w, _| w.contents())
        .allows(&[
            "first: ok ok; second: EBADF false; .",
            "first: ok EBADF; second: ok true; .",
            "first: ok EBADF; second: ok false; .",
        ]);
}

/// The same under the lock.
#[test]
fn close_finds_nothing_high() {
    Race::new("close_finds_nothing_high", |ledger| World::new(ledger).open(2, "A").open(3, "B"))
        .role("first", |w| format!("{} {}", w.close(3), w.close(2)))
        .role("second", |w| format!("{} {}", w.close(2), w.table.contains(3)))
        .end(|w, _| w.contents())
        .allows(&[
            "first: ok ok; second: EBADF false; .",
            "first: ok EBADF; second: ok true; .",
            "first: ok EBADF; second: ok false; .",
        ]);
}

/// One file in two slots: whoever comes second runs the destructor; neither takes itself for the last
/// while the other slot has the file.
#[test]
fn close_one_file_twice() {
    Race::new("close_one_file_twice", |ledger| World::new(ledger).open(0, "A").open_same(0, 1))
        .role("one", |w| w.close(0))
        .role("two", |w| w.close(1))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&["one: ok; two: ok; A by one; .", "one: ok; two: ok; A by two; ."]);
}

/// The same, and each closer has used the file through its own fd before. Whichever destroys it has to
/// see the other's use.
#[test]
fn use_and_close_one_file_twice() {
    Race::new("use_and_close_one_file_twice", |ledger| {
        World::new(ledger).open(0, "A").open_same(0, 1)
    })
    .role("one", |w| format!("{} {}", w.get(0), w.close(0)))
    .role("two", |w| format!("{} {}", w.get(1), w.close(1)))
    .end(|_, ledger| format!("A by {}", ledger.destroyer("A")))
    .allows(&["one: A ok; two: A ok; A by one", "one: A ok; two: A ok; A by two"]);
}

/// The same with a lookup's handle out: one of three is the last.
#[test]
fn close_one_file_twice_or_get() {
    Race::new("close_one_file_twice_or_get", |ledger| {
        World::new(ledger).open(0, "A").open_same(0, 1)
    })
    .role("one", |w| w.close(0))
    .role("two", |w| w.close(1))
    .role("get", |w| w.get(0))
    .end(|_, ledger| format!("A by {}", ledger.destroyer("A")))
    .allows(&[
        "one: ok; two: ok; get: A; A by one",
        "one: ok; two: ok; get: A; A by two",
        "one: ok; two: ok; get: A; A by get",
        "one: ok; two: ok; get: -; A by one",
        "one: ok; two: ok; get: -; A by two",
    ]);
}

/// One slot in the first word and one above.
#[test]
fn close_one_file_low_and_high() {
    Race::new("close_one_file_low_and_high", |ledger| {
        World::new(ledger).open(0, "A").open_same(0, 2)
    })
    .role("low", |w| w.close(0))
    .role("high", |w| w.close(2))
    .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
    .allows(&["low: ok; high: ok; A by low; .", "low: ok; high: ok; A by high; ."]);
}

/// remove ‖ close of one file: the reference that comes out keeps it alive.
#[test]
fn remove_and_close_one_file() {
    Race::new("remove_and_close_one_file", |ledger| {
        World::new(ledger).open(0, "A").open_same(0, 1)
    })
    .role("remove", |w| w.table.remove(0).expect("nobody else closes it").name())
    .role("close", |w| w.close(1))
    .end(|_, ledger| format!("A by {}", ledger.destroyer("A")))
    .allows(&["remove: A; close: ok; A by remove", "remove: A; close: ok; A by close"]);
}

/// A sweep ‖ close: every fd is closed by one of them.
#[test]
fn close_range_or_close() {
    Race::new("close_range_or_close", |ledger| World::new(ledger).open(1, "A").open(2, "B"))
        .role("sweep", |w| {
            w.table.close_range(0, u32::MAX, CloseRange::empty()).expect("a valid call");
            ""
        })
        .role("close", |w| format!("{} {}", w.close(2), w.close(1)))
        .end(|w, ledger| {
            format!("{} {}; {}", ledger.destroyer("A"), ledger.destroyer("B"), w.contents())
        })
        .allows(&[
            "sweep: ; close: ok ok; close close; .",
            "sweep: ; close: ok EBADF; sweep close; .",
            "sweep: ; close: EBADF EBADF; sweep sweep; .",
        ]);
}

/// A sweep ‖ insert: what is opened meanwhile is closed as well, or stays.
#[test]
fn close_range_or_insert() {
    Race::new("close_range_or_insert", |ledger| World::new(ledger).open(0, "A").with("B"))
        .role("sweep", |w| {
            w.table.clear();
            ""
        })
        .role("insert", |w| w.insert("B"))
        .end(|w, _| w.contents())
        .allows(&["sweep: ; insert: 0; B", "sweep: ; insert: 1; -B", "sweep: ; insert: 1; ."]);
}

/// The end of a table: whoever holds the last handle on it drops it and what is in it.
#[test]
fn close_or_highest_open() {
    Race::new("close_or_highest_open", |ledger| World::new(ledger).open(0, "A").open(2, "B"))
        .role("highest", |w| w.table.highest_open().map_or("none".into(), |fd| fd.to_string()))
        .role("close", |w| format!("{} {}", w.close(2), w.close(0)))
        .end(|w, _| w.contents())
        .allows(&[
            "highest: 2; close: ok ok; .",
            "highest: 0; close: ok ok; .",
            "highest: none; close: ok ok; .",
        ]);
}
