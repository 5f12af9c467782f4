//! insert ‖ close: the number that comes back is the lowest at one instant of the call (C1), and it
//! comes back after its slot is empty (C3).
#![cfg(all(loom, feature = "loom"))]

use loom::cell::UnsafeCell;
use loom_tests::{Race, World};

/// The number in question is being closed. If the insert gets it, it gets an empty slot.
#[test]
fn insert_or_close() {
    Race::new("insert_or_close", |ledger| World::new(ledger).open(0, "A").with("B"))
        .role("insert", |w| w.insert("B"))
        .role("close", |w| w.close(0))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&["insert: 0; close: ok; A by close; B", "insert: 1; close: ok; A by close; -B"]);
}

/// What the last owner of a number did happens before what the next one does: only so can an insert fill the
/// slot by a plain store. Each owner writes to a cell of the number, and loom watches.
#[test]
fn insert_or_close_hand_a_number_over() {
    Race::new("insert_or_close_hand_a_number_over", |ledger| {
        (World::new(ledger).open(0, "A").with("B"), Owner::default())
    })
    .role("insert", |(w, owner)| {
        let fd = w.insert("B");
        if fd == "0" {
            owner.write();
        }
        fd
    })
    .role("close", |(w, owner)| {
        owner.write();
        w.close(0)
    })
    .end(|(w, _), _| w.contents())
    .allows(&["insert: 0; close: ok; B", "insert: 1; close: ok; -B"]);
}

/// The same from a reservation that is given back to one that is made, and beyond the first word.
#[test]
fn reserve_or_abandon_hand_a_number_over() {
    for (name, fd) in [
        ("reserve_or_abandon_hand_a_number_over", 0),
        ("reserve_or_abandon_hand_an_upper_number_over", 2),
    ] {
        let own = move |(w, owner): &(World, Owner)| {
            let Ok(reservation) = w.table.reserve_in(fd..fd + 1) else { return "EMFILE" };
            owner.write();
            drop(reservation);
            "ok"
        };
        Race::new(name, move |ledger| (World::new(ledger).grown_to(fd), Owner::default()))
            .role("one", own)
            .role("two", own)
            .end(|(w, _), _| w.contents())
            .allows(&["one: ok; two: ok; .", "one: ok; two: EMFILE; .", "one: EMFILE; two: ok; ."]);
    }
}

/// Written to by the owner of a number.
#[derive(Default)]
struct Owner(UnsafeCell<()>);

// SAFETY: loom's cell checks on every access that none is concurrent.
unsafe impl Sync for Owner {}

impl Owner {
    fn write(&self) {
        self.0.with_mut(|_| ());
    }
}

/// A number that is freed by one thread, claimed by a second and closed by a third: the file goes
/// through three hands. Two closers and one number: the second one finds the new file, or nothing.
#[test]
fn insert_or_close_or_close() {
    Race::new("insert_or_close_or_close", |ledger| {
        World::with_limit(ledger, 1).open(0, "A").with("B")
    })
    .role("insert", |w| w.insert("B"))
    .role("one", |w| w.close(0))
    .role("two", |w| w.close(0))
    .end(|w, _| w.contents())
    .allows(&[
        "insert: 0; one: ok; two: EBADF; B",
        "insert: 0; one: EBADF; two: ok; B",
        "insert: 0; one: ok; two: ok; .",
        "insert: EMFILE; one: ok; two: EBADF; .",
        "insert: EMFILE; one: EBADF; two: ok; .",
    ]);
}

/// The first word is full, and the insert goes to the upper numbers. While it is on its way a low
/// number is closed, then a high one: at no instant was the high one the lowest.
#[test]
fn insert_or_close_low_then_high() {
    Race::new("insert_or_close_low_then_high", |ledger| {
        World::new(ledger).open(0, "A").open(1, "B").open(2, "C").open(3, "D").grown_to(4).with("E")
    })
    .role("insert", |w| w.insert("E"))
    .role("close", |w| format!("{} {}", w.close(1), w.close(3)))
    .end(|w, _| w.contents())
    .allows(&["insert: 4; close: ok ok; A-C-E", "insert: 1; close: ok ok; AEC"]);
}

/// The other way round either may be.
#[test]
fn insert_or_close_high_then_low() {
    Race::new("insert_or_close_high_then_low", |ledger| {
        World::new(ledger).open(0, "A").open(1, "B").open(2, "C").open(3, "D").grown_to(4).with("E")
    })
    .role("insert", |w| w.insert("E"))
    .role("close", |w| format!("{} {}", w.close(3), w.close(1)))
    .end(|w, _| w.contents())
    .allows(&[
        "insert: 4; close: ok ok; A-C-E",
        "insert: 3; close: ok ok; A-CE",
        "insert: 1; close: ok ok; AEC",
    ]);
}

/// EMFILE, too, is an answer of one instant: there was none free below the limit. Closed low, then
/// high: if the insert fails, it was before both; it never gets the high one.
#[test]
fn insert_or_close_low_then_high_at_the_limit() {
    Race::new("insert_or_close_low_then_high_at_the_limit", |ledger| {
        World::with_limit(ledger, 3).open(0, "A").open(1, "B").open(2, "C").with("E")
    })
    .role("insert", |w| w.insert("E"))
    .role("close", |w| format!("{} {}", w.close(1), w.close(2)))
    .end(|w, _| w.contents())
    .allows(&["insert: EMFILE; close: ok ok; A", "insert: 1; close: ok ok; AE"]);
}

/// EMFILE while a number moves: 1 is closed and opened again at once, so that never both are free.
/// An insert that may take 0 or 1 gets one only if it comes between.
#[test]
fn insert_or_close_then_insert_at_the_limit() {
    Race::new("insert_or_close_then_insert_at_the_limit", |ledger| {
        World::with_limit(ledger, 2).open(0, "A").open(1, "B").with("C").with("D")
    })
    .role("insert", |w| w.insert("C"))
    .role("reuse", |w| format!("{} {}", w.close(1), w.insert("D")))
    .end(|w, _| w.contents())
    .allows(&["insert: EMFILE; reuse: ok 1; AD", "insert: 1; reuse: ok EMFILE; AC"]);
}

/// An insert from a minimum inside the first word passes over what is freed below.
#[test]
fn insert_from_or_close_low_then_high() {
    Race::new("insert_from_or_close_low_then_high", |ledger| {
        World::new(ledger).open(0, "A").open(1, "B").open(2, "C").grown_to(3).with("E")
    })
    .role("insert", |w| w.insert_from(1, "E"))
    .role("close", |w| format!("{} {} {}", w.close(0), w.close(1), w.close(2)))
    .end(|w, _| w.contents())
    .allows(&["insert: 3; close: ok ok ok; ---E", "insert: 1; close: ok ok ok; -E"]);
}

/// The same from a minimum beyond the first word, both closed under the lock.
#[test]
fn insert_from_or_close_beyond_the_first_word() {
    Race::new("insert_from_or_close_beyond_the_first_word", |ledger| {
        World::new(ledger).open(2, "A").open(3, "B").open(4, "C").grown_to(5).with("E")
    })
    .role("insert", |w| w.insert_from(3, "E"))
    .role("close", |w| format!("{} {} {}", w.close(2), w.close(3), w.close(4)))
    .end(|w, _| w.contents())
    .allows(&["insert: 5; close: ok ok ok; -----E", "insert: 3; close: ok ok ok; ---E"]);
}

/// reserve in a range that ends inside the table.
#[test]
fn reserve_in_or_close() {
    Race::new("reserve_in_or_close", |ledger| {
        World::new(ledger).open(1, "B").open(2, "C").open(3, "D")
    })
    .role("reserve", |w| w.reserve_in(1..3))
    .role("close", |w| format!("{} {}", w.close(1), w.close(2)))
    .end(|w, _| w.contents())
    .allows(&["reserve: EMFILE; close: ok ok; ---D", "reserve: 1; close: ok ok; ---D"]);
}

/// Two closers and the insert, all on their own: all three answers are right.
#[test]
fn insert_or_close_low_or_close_high() {
    Race::new("insert_or_close_low_or_close_high", |ledger| {
        World::new(ledger).open(0, "A").open(1, "B").open(2, "C").open(3, "D").grown_to(4).with("E")
    })
    .role("insert", |w| w.insert("E"))
    .role("low", |w| w.close(1))
    .role("high", |w| w.close(3))
    .end(|w, _| w.contents())
    .allows(&[
        "insert: 1; low: ok; high: ok; AEC",
        "insert: 3; low: ok; high: ok; A-CE",
        "insert: 4; low: ok; high: ok; A-C-E",
    ]);
}
