//! dup2 ‖ what opens or closes its target: claimed and empty is EBUSY, nothing else is.
#![cfg(all(loom, feature = "loom"))]

use fdtable::FdFlags;
use loom_tests::{Race, World};

/// A reservation that is made and filled meanwhile. The dup2 comes before it, in between, or after it;
/// it never takes the reserved number away.
#[test]
fn dup2_or_reserve_then_install() {
    Race::new("dup2_or_reserve_then_install", |ledger| World::new(ledger).open(0, "A").with("B"))
        .role("dup2", |w| w.dup2(0, 1))
        .role("reserve", |w| {
            let reservation = w.table.reserve().expect("there is room");
            reservation.install(w.take("B"), FdFlags::empty())
        })
        .end(|w, ledger| format!("B by {}; {}", ledger.destroyer("B"), w.contents()))
        .allows(&[
            "dup2: ok; reserve: 2; B by nobody; AAB",
            "dup2: EBUSY; reserve: 1; B by nobody; AB",
            "dup2: ok; reserve: 1; B by dup2; AA",
        ]);
}

/// A number that was reserved before: EBUSY, or the file that was installed is replaced.
#[test]
fn dup2_or_install() {
    Race::new("dup2_or_install", |ledger| World::new(ledger).open(0, "A").reserve(1).with("B"))
        .role("dup2", |w| w.dup2(0, 1))
        .role("install", |w| w.install(1, "B"))
        .end(|w, ledger| format!("B by {}; {}", ledger.destroyer("B"), w.contents()))
        .allows(&[
            "dup2: EBUSY; install: ok; B by nobody; AB",
            "dup2: ok; install: ok; B by dup2; AA",
        ]);
}

/// The same beyond the first word.
#[test]
fn dup2_or_install_an_upper_fd() {
    Race::new("dup2_or_install_an_upper_fd", |ledger| {
        World::new(ledger).open(0, "A").reserve(2).with("B")
    })
    .role("dup2", |w| w.dup2(0, 2))
    .role("install", |w| w.install(2, "B"))
    .end(|w, ledger| format!("B by {}; {}", ledger.destroyer("B"), w.contents()))
    .allows(&[
        "dup2: EBUSY; install: ok; B by nobody; A-B",
        "dup2: ok; install: ok; B by dup2; A-A",
    ]);
}

/// The target is closed and opened again meanwhile. dup2 replaces the old file or the new one, claims
/// the number in between, or meets it half-way; no file is lost and none is closed twice.
#[test]
fn dup2_or_close_then_insert() {
    Race::new("dup2_or_close_then_insert", |ledger| {
        World::new(ledger).open(0, "A").open(1, "X").with("B")
    })
    .role("dup2", |w| w.dup2(0, 1))
    .role("reuse", |w| format!("{} {}", w.close(1), w.insert("B")))
    .end(|w, ledger| {
        format!("{} {}; {}", ledger.destroyer("X"), ledger.destroyer("B"), w.contents())
    })
    .allows(&[
        // First; then what it has put there was closed.
        "dup2: ok; reuse: ok 1; dup2 nobody; AB",
        // In between: it claims 1.
        "dup2: ok; reuse: ok 2; reuse nobody; AAB",
        // Last.
        "dup2: ok; reuse: ok 1; reuse dup2; AA",
        "dup2: EBUSY; reuse: ok 1; reuse nobody; AB",
    ]);
}

/// Closer and opener on their own: replace must not fill the slot while its number changes hands.
#[test]
fn replace_or_close_or_insert() {
    Race::new("replace_or_close_or_insert", |ledger| {
        World::with_limit(ledger, 1).open(0, "X").with("A").with("B")
    })
    .role("replace", |w| w.replace(0, "A"))
    .role("close", |w| w.close(0))
    .role("insert", |w| w.insert("B"))
    .end(|w, _| w.contents())
    .allows(&[
        "replace: X; close: ok; insert: 0; B",
        "replace: X; close: ok; insert: EMFILE; .",
        "replace: -; close: ok; insert: EMFILE; A",
        "replace: B; close: ok; insert: 0; A",
        "replace: EBUSY; close: ok; insert: 0; B",
        "replace: EBUSY; close: ok; insert: EMFILE; .",
    ]);
}

/// The source is closed meanwhile: its file is at the target all the same, or EBADF and the target is
/// untouched (d1).
#[test]
fn dup2_or_close_the_source() {
    Race::new("dup2_or_close_the_source", |ledger| World::new(ledger).open(0, "A").open(1, "B"))
        .role("dup2", |w| w.dup2(0, 1))
        .role("close", |w| w.close(0))
        .end(|w, ledger| format!("B by {}; {}", ledger.destroyer("B"), w.contents()))
        .allows(&["dup2: ok; close: ok; B by dup2; -A", "dup2: EBADF; close: ok; B by nobody; -B"]);
}

/// renumber needs an open target, and leaves it open throughout.
#[test]
fn renumber_or_get() {
    Race::new("renumber_or_get", |ledger| World::new(ledger).open(0, "A").open(1, "B"))
        .role("renumber", |w| w.table.renumber(0, 1).map_or("EBADF", |()| "ok"))
        .role("get", |w| w.get(1))
        .end(|w, _| w.contents())
        .allows(&["renumber: ok; get: A; -A", "renumber: ok; get: B; -A"]);
}

/// renumber ‖ close of its target: EBADF, and the source stays; or the target was there.
#[test]
fn renumber_or_close_the_target() {
    Race::new("renumber_or_close_the_target", |ledger| {
        World::new(ledger).open(0, "A").open(1, "B")
    })
    .role("renumber", |w| w.table.renumber(0, 1).map_or("EBADF", |()| "ok"))
    .role("close", |w| w.close(1))
    .end(|w, _| w.contents())
    .allows(&["renumber: ok; close: ok; .", "renumber: EBADF; close: ok; A"]);
}

/// A renumber whose target is closed has changed nothing, not even for a moment: the source is open
/// throughout, so whoever closes both succeeds.
#[test]
fn renumber_or_close_both() {
    Race::new("renumber_or_close_both", |ledger| World::new(ledger).open(0, "A").open(1, "B"))
        .role("renumber", |w| w.table.renumber(0, 1).map_or("EBADF", |()| "ok"))
        .role("close", |w| format!("{} {}", w.close(1), w.close(0)))
        .end(|w, _| w.contents())
        .allows(&[
            // Before both: A is at 1.
            "renumber: ok; close: ok EBADF; .",
            // After the first one.
            "renumber: EBADF; close: ok ok; .",
        ]);
}

/// renumber is one step to a fork.
#[test]
fn renumber_or_fork() {
    Race::new("renumber_or_fork", |ledger| World::new(ledger).open(0, "A").open(1, "B"))
        .role("renumber", |w| w.table.renumber(0, 1).map_or("EBADF", |()| "ok"))
        .role("fork", |w| w.fork())
        .end(|w, _| format!("{}{}", w.children(), w.contents()))
        .allows(&["renumber: ok; fork: ; child AB; -A", "renumber: ok; fork: ; child -A; -A"]);
}

/// The number that the source leaves is free afterwards.
#[test]
fn renumber_or_insert() {
    Race::new("renumber_or_insert", |ledger| {
        World::new(ledger).open(0, "A").open(1, "B").with("C")
    })
    .role("renumber", |w| w.table.renumber(0, 1).map_or("EBADF", |()| "ok"))
    .role("insert", |w| w.insert("C"))
    .end(|w, ledger| format!("B by {}; {}", ledger.destroyer("B"), w.contents()))
    .allows(&[
        "renumber: ok; insert: 0; B by renumber; CA",
        "renumber: ok; insert: 2; B by renumber; -AC",
    ]);
}

/// Two renumbers crosswise.
#[test]
fn renumber_crosswise() {
    Race::new("renumber_crosswise", |ledger| World::new(ledger).open(0, "A").open(1, "B"))
        .role("one", |w| w.table.renumber(0, 1).map_or("EBADF", |()| "ok"))
        .role("two", |w| w.table.renumber(1, 0).map_or("EBADF", |()| "ok"))
        .end(|w, _| w.contents())
        .allows(&["one: ok; two: EBADF; -A", "one: EBADF; two: ok; B"]);
}

/// The handles that are out go with the file that is moved: who closes it at its new number must see them.
#[test]
fn renumber_a_held_file_or_close() {
    Race::new("renumber_a_held_file_or_close", |ledger| {
        World::new(ledger).open(0, "A").open(1, "B").hold(0, 1)
    })
    .role("renumber", |w| w.table.renumber(0, 1).map_or("EBADF", |()| "ok"))
    .role("close", |w| w.close(1))
    .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
    .allows(&[
        "renumber: ok; close: ok; A by nobody; .",
        "renumber: EBADF; close: ok; A by nobody; A",
    ]);
}

/// A number that a renumber is about to move from, or holds for a moment although nobody has it open.
#[test]
fn renumber_or_install() {
    Race::new("renumber_or_install", |ledger| World::new(ledger).reserve(0).open(1, "B").with("A"))
        .role("renumber", |w| w.table.renumber(0, 1).map_or("EBADF", |()| "ok"))
        .role("install", |w| w.install(0, "A"))
        .end(|w, ledger| format!("B by {}; {}", ledger.destroyer("B"), w.contents()))
        .allows(&[
            "renumber: ok; install: ok; B by renumber; -A",
            "renumber: EBADF; install: ok; B by nobody; AB",
        ]);
}

/// A target that is reserved and given back meanwhile.
#[test]
fn dup2_or_reserve_then_abandon() {
    Race::new("dup2_or_reserve_then_abandon", |ledger| World::new(ledger).open(0, "A"))
        .role("dup2", |w| w.dup2(0, 1))
        .role("reserve", |w| w.reserve_in(1..2))
        .end(|w, _| w.contents())
        .allows(&[
            "dup2: ok; reserve: 1; AA",
            "dup2: ok; reserve: EMFILE; AA",
            "dup2: EBUSY; reserve: 1; A",
        ]);
}
