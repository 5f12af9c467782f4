//! get ‖ replace: an open fd that is replaced is never seen closed.
#![cfg(all(loom, feature = "loom"))]

use fdtable::FdFlags;
use loom_tests::{Race, World};

/// The old file or the new one.
#[test]
fn get_or_replace() {
    Race::new("get_or_replace", |ledger| World::new(ledger).open(0, "A").with("B"))
        .role("get", |w| w.get(0))
        .role("replace", |w| w.replace(0, "B"))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&[
            "get: A; replace: A; A by get; B",
            "get: A; replace: A; A by replace; B",
            "get: B; replace: A; A by replace; B",
        ]);
}

/// The same beyond the first word.
#[test]
fn get_or_replace_an_upper_fd() {
    Race::new("get_or_replace_an_upper_fd", |ledger| World::new(ledger).open(2, "A").with("B"))
        .role("get", |w| w.get(2))
        .role("replace", |w| w.replace(2, "B"))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&[
            "get: A; replace: A; A by get; --B",
            "get: A; replace: A; A by replace; --B",
            "get: B; replace: A; A by replace; --B",
        ]);
}

/// dup2 onto an open fd: what was there is closed after the swap, and no lookup misses.
#[test]
fn get_or_dup2() {
    Race::new("get_or_dup2", |ledger| World::new(ledger).open(0, "A").open(1, "B"))
        .role("get", |w| format!("{} {}", w.get(1), w.get(1)))
        .role("dup2", |w| w.dup2(0, 1))
        .end(|w, ledger| format!("B by {}; {}", ledger.destroyer("B"), w.contents()))
        .allows(&[
            "get: B B; dup2: ok; B by get; AA",
            "get: B B; dup2: ok; B by dup2; AA",
            "get: B A; dup2: ok; B by get; AA",
            "get: B A; dup2: ok; B by dup2; AA",
            "get: A A; dup2: ok; B by dup2; AA",
        ]);
}

/// File and flags are one word: never the flags of one with the file of the other.
#[test]
fn iterate_or_replace() {
    Race::new("iterate_or_replace", |ledger| {
        World::new(ledger).open_with(0, "A", FdFlags::CLOEXEC).with("B")
    })
    .role("iterate", |w| {
        let entry = w.table.iter().next().expect("0 is open throughout");
        format!("{}{}", entry.file.name(), if entry.flags.is_empty() { "" } else { "*" })
    })
    .role("replace", |w| w.replace(0, "B"))
    .end(|w, _| w.contents())
    .allows(&["iterate: A*; replace: A; B", "iterate: B; replace: A; B"]);
}
