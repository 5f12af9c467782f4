//! growth ‖ growth, lookup, iteration: storage is published once and never moves (C10).
#![cfg(all(loom, feature = "loom"))]

use loom_tests::{Race, World};

/// Both find no storage for the number and allocate it. One of them frees its own, before anyone has
/// seen it; no file is lost with it.
#[test]
fn insert_or_insert_grow() {
    Race::new("insert_or_insert_grow", |ledger| {
        World::new(ledger).open(0, "X").open(1, "Y").with("A").with("B")
    })
    .role("one", |w| w.insert("A"))
    .role("two", |w| w.insert("B"))
    .end(|w, _| w.contents())
    .allows(&["one: 2; two: 3; XYAB", "one: 3; two: 2; XYBA"]);
}

/// The one that comes second finds storage, fills the group, not in order, and searches past it, while the first is
/// still at it: by then the group has its words in the tree.
#[test]
fn insert_or_replace_then_insert_grow() {
    Race::new("insert_or_replace_then_insert_grow", |ledger| {
        World::new(ledger).open(0, "X").open(1, "Y").with("A").with("B").with("C").with("D")
    })
    // Two are enough to stop the first in its growth; a third makes the search five times as long.
    .preemptions(2)
    .role("one", |w| w.insert("A"))
    .role("two", |w| format!("{} {} {}", w.replace(3, "B"), w.insert("C"), w.insert("D")))
    .end(|w, _| w.contents())
    .allows(&[
        "one: 2; two: - 4 5; XYABCD",
        "one: 4; two: - 2 5; XYCBAD",
        "one: 5; two: - 2 4; XYCBDA",
    ]);
}

/// Numbers far apart: the tree's words and the slots are different, its upper levels are the same.
#[test]
fn replace_or_insert_grow() {
    Race::new("replace_or_insert_grow", |ledger| {
        World::new(ledger).open(0, "X").open(1, "Y").with("A").with("B")
    })
    .role("one", |w| w.replace(4, "A"))
    .role("two", |w| w.insert("B"))
    .end(|w, _| w.contents())
    .allows(&["one: -; two: 2; XYB-A"]);
}

/// Two pieces of one directory.
#[test]
fn replace_or_replace_grow_a_directory() {
    Race::new("replace_or_replace_grow_a_directory", |ledger| {
        World::new(ledger).with("A").with("B")
    })
    .role("one", |w| w.replace(6, "A"))
    .role("two", |w| w.replace(7, "B"))
    .end(|w, _| w.contents())
    .allows(&["one: -; two: -; ------AB"]);
}

/// A lookup that comes with the growth sees no storage, a free number, or the file.
#[test]
fn insert_grows_or_get() {
    Race::new("insert_grows_or_get", |ledger| World::new(ledger).with("A"))
        .role("insert", |w| w.insert_from(2, "A"))
        .role("get", |w| w.get(2))
        .end(|w, _| w.contents())
        .allows(&["insert: 2; get: A; --A", "insert: 2; get: -; --A"]);
}

/// The same through a directory.
#[test]
fn replace_grows_or_get() {
    Race::new("replace_grows_or_get", |ledger| World::new(ledger).with("A"))
        .role("replace", |w| w.replace(6, "A"))
        .role("get", |w| w.get(6))
        .end(|w, _| w.contents())
        .allows(&["replace: -; get: A; ------A", "replace: -; get: -; ------A"]);
}

/// Iteration over a table that grows (l3): what is shown was open at some moment.
#[test]
fn insert_grows_or_iterate() {
    Race::new("insert_grows_or_iterate", |ledger| World::new(ledger).open(0, "A").with("B"))
        .role("insert", |w| w.insert_from(2, "B"))
        .role("iterate", |w| w.table.iter().map(|entry| entry.file.name()).collect::<String>())
        .end(|w, _| w.contents())
        .allows(&["insert: 2; iterate: A; A-B", "insert: 2; iterate: AB; A-B"]);
}

/// A sweep over a table that grows.
#[test]
fn insert_grows_or_close_range() {
    Race::new("insert_grows_or_close_range", |ledger| World::new(ledger).open(0, "A").with("B"))
        .role("insert", |w| w.insert_from(2, "B"))
        .role("sweep", |w| {
            w.table.close_range(0, u32::MAX, Default::default()).expect("a valid call");
            ""
        })
        .end(|w, _| w.contents())
        .allows(&["insert: 2; sweep: ; --B", "insert: 2; sweep: ; ."]);
}
