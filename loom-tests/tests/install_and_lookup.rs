//! install of a reservation ‖ lookup, close, iteration: the number is EBADF, then the file (C3).
#![cfg(all(loom, feature = "loom"))]

use fdtable::FdFlags;
use loom_tests::{Race, World};

/// Whoever finds the file finds it initialized.
#[test]
fn install_or_get() {
    Race::new("install_or_get", |ledger| World::new(ledger).reserve(0).with("A"))
        .role("install", |w| w.install(0, "A"))
        .role("get", |w| w.get(0))
        .end(|w, _| w.contents())
        .allows(&["install: ok; get: A; A", "install: ok; get: -; A"]);
}

/// The same beyond the first word.
#[test]
fn install_or_get_an_upper_fd() {
    Race::new("install_or_get_an_upper_fd", |ledger| World::new(ledger).reserve(2).with("A"))
        .role("install", |w| w.install(2, "A"))
        .role("get", |w| w.get(2))
        .end(|w, _| w.contents())
        .allows(&["install: ok; get: A; --A", "install: ok; get: -; --A"]);
}

/// insert, the one-call form, is a plain store.
#[test]
fn insert_or_get() {
    Race::new("insert_or_get", |ledger| World::new(ledger).with("A"))
        .role("insert", |w| w.insert("A"))
        .role("get", |w| w.get(0))
        .end(|w, _| w.contents())
        .allows(&["insert: 0; get: A; A", "insert: 0; get: -; A"]);
}

/// The file is closed as soon as it is there. The closer, who may destroy it, has seen it initialized.
#[test]
fn install_or_close() {
    Race::new("install_or_close", |ledger| World::new(ledger).reserve(0).with("A"))
        .role("install", |w| w.install(0, "A"))
        .role("close", |w| w.close(0))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&[
            "install: ok; close: ok; A by close; .",
            "install: ok; close: EBADF; A by nobody; A",
        ]);
}

#[test]
fn insert_or_close_the_same() {
    Race::new("insert_or_close_the_same", |ledger| World::new(ledger).with("A"))
        .role("insert", |w| w.insert("A"))
        .role("close", |w| w.close(0))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&[
            "insert: 0; close: ok; A by close; .",
            "insert: 0; close: EBADF; A by nobody; A",
        ]);
}

/// A file that another thread replaces, and then the file that it has put there is looked up: the
/// exchange publishes the new file as well.
#[test]
fn install_or_replace_or_get() {
    Race::new("install_or_replace_or_get", |ledger| {
        World::new(ledger).reserve(0).with("A").with("B")
    })
    .role("install", |w| w.install(0, "A"))
    .role("replace", |w| w.replace(0, "B"))
    .role("get", |w| w.get(0))
    .end(|w, _| w.contents())
    .allows(&[
        "install: ok; replace: A; get: A; B",
        "install: ok; replace: A; get: B; B",
        "install: ok; replace: A; get: -; B",
        "install: ok; replace: EBUSY; get: A; A",
        "install: ok; replace: EBUSY; get: -; A",
    ]);
}

/// Iteration shows it or not (l2). A miss at one number says nothing about another (C2).
#[test]
fn install_or_iterate() {
    Race::new("install_or_iterate", |ledger| {
        World::new(ledger).reserve(0).reserve(1).with("A").with("B")
    })
    .role("install", |w| format!("{} {}", w.install(0, "A"), w.install(1, "B")))
    .role("iterate", |w| w.table.iter().map(|entry| entry.file.name()).collect::<String>())
    .end(|w, _| w.contents())
    .allows(&[
        "install: ok ok; iterate: AB; AB",
        "install: ok ok; iterate: A; AB",
        "install: ok ok; iterate: B; AB",
        "install: ok ok; iterate: ; AB",
    ]);
}

/// The count of a lookup that was late for the last owner of the number lies on the empty slot when the
/// reservation is filled; it must not count for the new file.
#[test]
fn late_get_or_install() {
    Race::new("late_get_or_install", |ledger| World::new(ledger).open(0, "A").with("B"))
        .role("get", |w| w.get(0))
        .role("reuse", |w| {
            let closed = w.close(0);
            let reservation = w.table.reserve().expect("there is room");
            let fd = reservation.install(w.take("B"), FdFlags::empty());
            format!("{closed} {fd} {}", w.close(0))
        })
        .end(|w, ledger| {
            format!("{} {}; {}", ledger.destroyer("A"), ledger.destroyer("B"), w.contents())
        })
        .allows(&[
            "get: A; reuse: ok 0 ok; get reuse; .",
            "get: A; reuse: ok 0 ok; reuse reuse; .",
            "get: B; reuse: ok 0 ok; reuse get; .",
            "get: B; reuse: ok 0 ok; reuse reuse; .",
            "get: -; reuse: ok 0 ok; reuse reuse; .",
        ]);
}
