//! replace ‖ replace, dup2 ‖ dup2: every file that was there comes back once.
#![cfg(all(loom, feature = "loom"))]

use loom_tests::{Race, World};

/// One of them gets A, the other what the first has put there.
#[test]
fn replace_or_replace() {
    Race::new("replace_or_replace", |ledger| World::new(ledger).open(0, "A").with("B").with("C"))
        .role("one", |w| w.replace(0, "B"))
        .role("two", |w| w.replace(0, "C"))
        .end(|w, _| w.contents())
        .allows(&["one: A; two: B; C", "one: C; two: A; B"]);
}

/// Onto a number that is free: one opens it, the other replaces. Or the other meets it claimed and empty
/// at both its looks; loom lets the first one go on in between, and there is nothing left for it to do
/// but to fill the slot. (`dup2_and_open.rs` has EBUSY.)
#[test]
fn replace_or_replace_a_free_fd() {
    Race::new("replace_or_replace_a_free_fd", |ledger| World::new(ledger).with("B").with("C"))
        .role("one", |w| w.replace(0, "B"))
        .role("two", |w| w.replace(0, "C"))
        .end(|w, _| w.contents())
        .unreached(&["one: -; two: EBUSY; B", "one: EBUSY; two: -; C"])
        .allows(&["one: -; two: B; C", "one: C; two: -; B"]);
}

/// dup2 of two files onto one number (d6).
#[test]
fn dup2_or_dup2() {
    Race::new("dup2_or_dup2", |ledger| World::new(ledger).open(0, "A").open(1, "B").open(2, "C"))
        .role("one", |w| w.dup2(0, 2))
        .role("two", |w| w.dup2(1, 2))
        .end(|w, ledger| format!("C by {}; {}", ledger.destroyer("C"), w.contents()))
        .allows(&["one: ok; two: ok; C by one; ABB", "one: ok; two: ok; C by two; ABA"]);
}

/// dup2 crosswise (d8): both finish; they exchange the files, or one of them stays in both.
#[test]
fn dup2_crosswise() {
    Race::new("dup2_crosswise", |ledger| World::new(ledger).open(0, "A").open(1, "B"))
        .role("one", |w| w.dup2(0, 1))
        .role("two", |w| w.dup2(1, 0))
        .end(|w, _| w.contents())
        .allows(&["one: ok; two: ok; AA", "one: ok; two: ok; BB", "one: ok; two: ok; BA"]);
}
