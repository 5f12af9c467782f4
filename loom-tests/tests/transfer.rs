//! A lookup that finds many handles out moves their count from the slot to the file, while the fd is
//! closed, replaced, or its file put back. Under the model checker two handles are many.
#![cfg(all(loom, feature = "loom"))]

use loom_tests::{Race, World};

/// The closer that sees the small count must see the file credited, else it takes itself for the last
/// and destroys a file with three handles out.
#[test]
fn transfer_or_close() {
    Race::new("transfer_or_close", |ledger| World::new(ledger).open(0, "A").hold(0, 2))
        .role("get", |w| w.get(0))
        .role("close", |w| w.close(0))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&["get: A; close: ok; A by nobody; .", "get: -; close: ok; A by nobody; ."]);
}

/// The same with a handle given back at the same time: the transfer finds one less in the slot than
/// it has credited, and takes the credit back.
#[test]
fn transfer_or_give_back() {
    Race::new("transfer_or_give_back", |ledger| World::new(ledger).open(0, "A").hold(0, 1))
        .role("get", |w| w.get(0))
        .role("look", |w| w.get(0))
        .role("close", |w| w.close(0))
        .end(|_, ledger| format!("A by {}", ledger.destroyer("A")))
        .allows(&[
            "get: A; look: A; close: ok; A by nobody",
            "get: A; look: -; close: ok; A by nobody",
            "get: -; look: A; close: ok; A by nobody",
            "get: -; look: -; close: ok; A by nobody",
        ]);
}

/// Two transfers at once: only one takes from the slot.
#[test]
fn transfer_or_transfer() {
    Race::new("transfer_or_transfer", |ledger| World::new(ledger).open(0, "A").hold(0, 2))
        .role("get", |w| w.get(0))
        .role("look", |w| format!("{} {}", w.get(0), w.close(0)))
        .end(|_, ledger| format!("A by {}", ledger.destroyer("A")))
        .allows(&["get: A; look: A ok; A by nobody", "get: -; look: A ok; A by nobody"]);
}

/// The count that a transfer has credited goes with the old file, not with the new one.
#[test]
fn transfer_or_replace() {
    Race::new("transfer_or_replace", |ledger| World::new(ledger).open(0, "A").hold(0, 2).with("B"))
        .role("get", |w| w.get(0))
        .role("replace", |w| w.replace(0, "B"))
        .end(|w, _| w.contents())
        .allows(&["get: A; replace: A; B", "get: B; replace: A; B"]);
}

/// ABA: the file is put back with fewer handles than the transfer has credited.
#[test]
fn transfer_or_put_back() {
    Race::new("transfer_or_put_back", |ledger| World::new(ledger).open(0, "A").hold(0, 2))
        .role("get", |w| w.get(0))
        .role("put back", |w| {
            let file = w.table.remove(0).expect("nobody else closes it");
            w.table.insert(file, Default::default()).expect("0 is free");
            w.get(0)
        })
        .end(|w, _| w.contents())
        .allows(&["get: A; put back: A; A", "get: -; put back: A; A"]);
}
