//! The drop of a reference ‖ close, or another drop: whoever is last runs the destructor, after all uses.
#![cfg(all(loom, feature = "loom"))]

use loom_tests::{Race, World};

/// A reference that the file itself counts.
#[test]
fn drop_or_close() {
    Race::new("drop_or_close", |ledger| World::new(ledger).open(0, "A").with_reference(0))
        .role("drop", |w| w.reference("A").name())
        .role("close", |w| w.close(0))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&["drop: A; close: ok; A by drop; .", "drop: A; close: ok; A by close; ."]);
}

/// Two references and no slot: as `Arc`.
#[test]
fn drop_or_drop() {
    Race::new("drop_or_drop", |ledger| World::new(ledger).with("A").with_clone("A"))
        .role("one", |w| w.reference("A").name())
        .role("two", |w| w.made("A").name())
        .end(|_, ledger| format!("A by {}", ledger.destroyer("A")))
        .allows(&["one: A; two: A; A by one", "one: A; two: A; A by two"]);
}

/// The value comes out only if nobody else has a reference, and then after all their uses.
#[test]
fn drop_or_into_inner() {
    Race::new("drop_or_into_inner", |ledger| World::new(ledger).with("A").with_clone("A"))
        .role("drop", |w| w.reference("A").name())
        .role("take", |w| match w.made("A").try_into_inner() {
            Ok(file) => {
                drop(file);
                "ok"
            }
            Err(file) => {
                drop(file);
                "shared"
            }
        })
        .end(|_, ledger| format!("A by {}", ledger.destroyer("A")))
        .allows(&[
            "drop: A; take: ok; A by take",
            "drop: A; take: shared; A by drop",
            "drop: A; take: shared; A by take",
        ]);
}

/// The value can be changed only if nobody else has a reference, and then after all their uses.
#[test]
fn drop_or_get_mut() {
    Race::new("drop_or_get_mut", |ledger| World::new(ledger).with("A").with_clone("A"))
        .role("drop", |w| w.reference("A").name())
        .role("change", |w| match w.made("A").get_mut() {
            Some(file) => {
                file.prepare();
                "ok"
            }
            None => "shared",
        })
        .end(|_, ledger| format!("A by {}", ledger.destroyer("A")))
        .allows(&[
            "drop: A; change: ok; A by change",
            "drop: A; change: shared; A by drop",
            "drop: A; change: shared; A by change",
        ]);
}

/// A file is opened by the last of its references, and closed again: the destructor runs after the use
/// through the reference that is gone, although only the insert has seen it go.
#[test]
fn drop_or_insert_then_close() {
    Race::new("drop_or_insert_then_close", |ledger| World::new(ledger).with("A").with_clone("A"))
        .role("drop", |w| w.reference("A").name())
        .role("insert", |w| {
            let fd = w.table.insert(w.made("A"), Default::default()).expect("there is room");
            w.close(fd.get())
        })
        .end(|_, ledger| format!("A by {}", ledger.destroyer("A")))
        .allows(&["drop: A; insert: ok; A by drop", "drop: A; insert: ok; A by insert"]);
}

/// The same, closed by a third thread.
#[test]
fn drop_or_insert_or_close() {
    Race::new("drop_or_insert_or_close", |ledger| World::new(ledger).with("A").with_clone("A"))
        .role("drop", |w| w.reference("A").name())
        .role("insert", |w| w.table.insert(w.made("A"), Default::default()).expect("there is room"))
        .role("close", |w| w.close(0))
        .end(|_, ledger| format!("A by {}", ledger.destroyer("A")))
        .allows(&[
            "drop: A; insert: 0; close: ok; A by drop",
            "drop: A; insert: 0; close: ok; A by close",
            "drop: A; insert: 0; close: EBADF; A by nobody",
        ]);
}

/// What comes out of a table is used and dropped while another reference is.
#[test]
fn drop_or_remove() {
    Race::new("drop_or_remove", |ledger| World::new(ledger).open(0, "A").with_reference(0))
        .role("drop", |w| w.reference("A").name())
        .role("remove", |w| w.table.remove(0).expect("open").name())
        .end(|_, ledger| format!("A by {}", ledger.destroyer("A")))
        .allows(&["drop: A; remove: A; A by drop", "drop: A; remove: A; A by remove"]);
}

/// A lookup's handle is given back, then the file is taken out, shared and dropped by two threads: the
/// use through the slot has to lie before the destructor, whoever runs it.
#[test]
fn get_or_remove_then_drop_or_drop() {
    Race::new("get_or_remove_then_drop_or_drop", |ledger| {
        World::new(ledger).open(0, "A").with_reference(0)
    })
    .role("get", |w| w.get(0))
    .role("remove", |w| w.table.remove(0).expect("open").name())
    .role("drop", |w| w.reference("A").name())
    .end(|_, ledger| format!("A by {}", ledger.destroyer("A")))
    .allows(&[
        "get: A; remove: A; drop: A; A by get",
        "get: A; remove: A; drop: A; A by remove",
        "get: A; remove: A; drop: A; A by drop",
        "get: -; remove: A; drop: A; A by remove",
        "get: -; remove: A; drop: A; A by drop",
    ]);
}

/// Clones of one reference on two threads, each used and dropped, and a close.
#[test]
fn clone_drop_or_close() {
    Race::new("clone_drop_or_close", |ledger| World::new(ledger).open(0, "A").with_reference(0))
        .role("clone", |w| {
            let file = w.reference("A");
            let clone = file.clone();
            drop(file);
            clone.name()
        })
        .role("close", |w| format!("{} {}", w.get(0), w.close(0)))
        .end(|_, ledger| format!("A by {}", ledger.destroyer("A")))
        .allows(&["clone: A; close: A ok; A by clone", "clone: A; close: A ok; A by close"]);
}

/// replace hands the old file out: the drop of that, or of the reference, is the last.
#[test]
fn drop_or_replace() {
    Race::new("drop_or_replace", |ledger| {
        World::new(ledger).open(0, "A").with_reference(0).with("B")
    })
    .role("drop", |w| w.reference("A").name())
    .role("replace", |w| w.replace(0, "B"))
    .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
    .allows(&["drop: A; replace: A; A by drop; B", "drop: A; replace: A; A by replace; B"]);
}
