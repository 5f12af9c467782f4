//! get ‖ close: the count in the slot's word, the count in the file, and who runs the destructor
//! (C2, C5).
#![cfg(all(loom, feature = "loom"))]

use loom_tests::{Race, World};

/// The lookup hits or misses. Whoever is last runs the destructor; a lookup that missed never does.
#[test]
fn get_or_close() {
    Race::new("get_or_close", |ledger| World::new(ledger).open(0, "A"))
        .role("get", |w| w.get(0))
        .role("close", |w| w.close(0))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&[
            "get: A; close: ok; A by close; .",
            "get: A; close: ok; A by get; .",
            "get: -; close: ok; A by close; .",
        ]);
}

/// The same beyond the first word, where close takes the lock.
#[test]
fn get_or_close_an_upper_fd() {
    Race::new("get_or_close_an_upper_fd", |ledger| World::new(ledger).open(2, "A"))
        .role("get", |w| w.get(2))
        .role("close", |w| w.close(2))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&[
            "get: A; close: ok; A by close; .",
            "get: A; close: ok; A by get; .",
            "get: -; close: ok; A by close; .",
        ]);
}

/// Two handles are given back or debited while the fd is closed: the closer's bare credit and the two
/// debits are one zero between them. The lookup's handle of `get` borrows, that of `owned` does not.
#[test]
fn two_gets_or_close() {
    Race::new("two_gets_or_close", |ledger| World::new(ledger).open(0, "A"))
        .role("get", |w| w.get(0))
        .role("owned", |w| w.get_owned(0))
        .role("close", |w| w.close(0))
        .end(|_, ledger| format!("A by {}", ledger.destroyer("A")))
        .allows(&[
            "get: A; owned: A; close: ok; A by get",
            "get: A; owned: A; close: ok; A by owned",
            "get: A; owned: A; close: ok; A by close",
            "get: A; owned: -; close: ok; A by get",
            "get: A; owned: -; close: ok; A by close",
            "get: -; owned: A; close: ok; A by owned",
            "get: -; owned: A; close: ok; A by close",
            "get: -; owned: -; close: ok; A by close",
        ]);
}

/// A clone of a lookup's handle keeps the file alive like the handle itself: its count is the
/// file's, the handle's is the slot's.
#[test]
fn clone_or_close() {
    Race::new("clone_or_close", |ledger| World::new(ledger).open(0, "A"))
        .role("clone", |w| match w.table.get(0) {
            Ok(file) => {
                let clone = file.to_owned();
                drop(file);
                clone.name()
            }
            Err(_) => "-",
        })
        .role("close", |w| w.close(0))
        .end(|_, ledger| format!("A by {}", ledger.destroyer("A")))
        .allows(&[
            "clone: A; close: ok; A by clone",
            "clone: A; close: ok; A by close",
            "clone: -; close: ok; A by close",
        ]);
}

/// A late lookup: between its look at the word and its addition the number is closed and opened again.
/// It finds either file or none, never a freed one, and its count is wiped or counts.
#[test]
fn get_or_close_then_insert() {
    Race::new("get_or_close_then_insert", |ledger| World::new(ledger).open(0, "A").with("B"))
        .role("get", |w| w.get(0))
        .role("reuse", |w| format!("{} {}", w.close(0), w.insert("B")))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&[
            "get: A; reuse: ok 0; A by get; B",
            "get: A; reuse: ok 0; A by reuse; B",
            "get: B; reuse: ok 0; A by reuse; B",
            "get: -; reuse: ok 0; A by reuse; B",
        ]);
}

/// The same, and the new file is closed again: a count that a late lookup left on the empty slot
/// belongs to nobody.
#[test]
fn get_or_close_insert_close() {
    Race::new("get_or_close_insert_close", |ledger| World::new(ledger).open(0, "A").with("B"))
        .role("get", |w| w.get(0))
        .role("reuse", |w| format!("{} {} {}", w.close(0), w.insert("B"), w.close(0)))
        .end(|w, ledger| {
            format!(
                "A by {}; B by {}; {}",
                ledger.destroyer("A"),
                ledger.destroyer("B"),
                w.contents()
            )
        })
        .allows(&[
            "get: A; reuse: ok 0 ok; A by get; B by reuse; .",
            "get: A; reuse: ok 0 ok; A by reuse; B by reuse; .",
            "get: B; reuse: ok 0 ok; A by reuse; B by get; .",
            "get: B; reuse: ok 0 ok; A by reuse; B by reuse; .",
            "get: -; reuse: ok 0 ok; A by reuse; B by reuse; .",
        ]);
}

/// The owner of the number changes: one thread closes, another one opens, a third looks. What the
/// closer left in the slot must not reach the new file.
#[test]
fn get_or_close_or_insert() {
    Race::new("get_or_close_or_insert", |ledger| {
        World::new(ledger).open(0, "A").open(1, "X").with("B")
    })
    .role("get", |w| w.get(0))
    .role("close", |w| w.close(0))
    .role("insert", |w| w.insert("B"))
    .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
    .allows(&[
        "get: A; close: ok; insert: 0; A by get; BX",
        "get: A; close: ok; insert: 0; A by close; BX",
        "get: A; close: ok; insert: 2; A by get; -XB",
        "get: A; close: ok; insert: 2; A by close; -XB",
        "get: B; close: ok; insert: 0; A by close; BX",
        "get: -; close: ok; insert: 0; A by close; BX",
        "get: -; close: ok; insert: 2; A by close; -XB",
    ]);
}

/// ABA: the same file is taken out and put back while a handle is out. The handle may be given back to
/// the other incarnation's count; the sum is what counts (I1).
#[test]
fn get_or_put_back() {
    Race::new("get_or_put_back", |ledger| World::new(ledger).open(0, "A"))
        .role("get", |w| w.get(0))
        .role("put back", |w| {
            let file = w.table.remove(0).expect("nobody else closes it");
            let fd = w.table.insert(file, Default::default()).expect("0 is free");
            format!("{fd} {}", w.close(0))
        })
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&[
            "get: A; put back: 0 ok; A by get; .",
            "get: A; put back: 0 ok; A by put back; .",
            "get: -; put back: 0 ok; A by put back; .",
        ]);
}

/// The same with two lookups: the count of one may be taken for that of the other.
#[test]
fn two_gets_or_put_back() {
    Race::new("two_gets_or_put_back", |ledger| World::new(ledger).open(0, "A"))
        .role("get", |w| w.get(0))
        .role("look", |w| w.get(0))
        .role("put back", |w| {
            let file = w.table.remove(0).expect("nobody else closes it");
            w.table.insert(file, Default::default()).expect("0 is free")
        })
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&[
            "get: A; look: A; put back: 0; A by nobody; A",
            "get: A; look: -; put back: 0; A by nobody; A",
            "get: -; look: A; put back: 0; A by nobody; A",
            "get: -; look: -; put back: 0; A by nobody; A",
        ]);
}

/// A file is opened at a second number through a handle that is then given back to the first slot. The
/// closer that sees the count gone must see the second slot's share as well, else it takes itself for
/// the last and destroys an open file.
#[test]
fn dup_by_handle_or_close() {
    Race::new("dup_by_handle_or_close", |ledger| World::new(ledger).open(0, "A").open(1, "X"))
        .role("dup", |w| {
            let Ok(file) = w.table.get(0) else { return "-".to_string() };
            let fd = w.table.insert_from(2, file.to_owned(), Default::default());
            drop(file);
            fd.map_or("EMFILE".to_string(), |fd| fd.to_string())
        })
        .role("close", |w| w.close(0))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&["dup: 2; close: ok; A by nobody; -XA", "dup: -; close: ok; A by close; -X"]);
}

/// dup ‖ close: the copy is open, or there was nothing to copy.
#[test]
fn dup_or_close() {
    Race::new("dup_or_close", |ledger| World::new(ledger).open(0, "A"))
        .role("dup", |w| w.table.dup(0).map_or("EBADF".to_string(), |fd| fd.to_string()))
        .role("close", |w| w.close(0))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&[
            "dup: 1; close: ok; A by nobody; -A",
            // Looked up, then closed, then 0 was the lowest.
            "dup: 0; close: ok; A by nobody; A",
            "dup: EBADF; close: ok; A by close; .",
        ]);
}

/// Iteration shows the file or nothing, and what it shows stays alive.
#[test]
fn iterate_or_close() {
    Race::new("iterate_or_close", |ledger| World::new(ledger).open(0, "A").open(1, "B"))
        .role("iterate", |w| w.table.iter().map(|entry| entry.file.name()).collect::<String>())
        .role("close", |w| format!("{} {}", w.close(0), w.close(1)))
        .end(|w, _| w.contents())
        .allows(&[
            "iterate: AB; close: ok ok; .",
            "iterate: A; close: ok ok; .",
            "iterate: B; close: ok ok; .",
            "iterate: ; close: ok ok; .",
        ]);
}
