//! insert ‖ insert: distinct numbers, the lowest (C1).
#![cfg(all(loom, feature = "loom"))]

use loom_tests::{Race, World};

#[test]
fn insert_or_insert() {
    Race::new("insert_or_insert", |ledger| World::new(ledger).with("A").with("B"))
        .role("one", |w| w.insert("A"))
        .role("two", |w| w.insert("B"))
        .end(|w, _| w.contents())
        .allows(&["one: 0; two: 1; AB", "one: 1; two: 0; BA"]);
}

/// One of them is left for the slow path, and grows the table.
#[test]
fn three_inserts() {
    Race::new("three_inserts", |ledger| World::new(ledger).with("A").with("B").with("C"))
        .role("one", |w| w.insert("A"))
        .role("two", |w| w.insert("B"))
        .role("three", |w| w.insert("C"))
        .end(|w, _| w.contents())
        .allows(&[
            "one: 0; two: 1; three: 2; ABC",
            "one: 0; two: 2; three: 1; ACB",
            "one: 1; two: 0; three: 2; BAC",
            "one: 1; two: 2; three: 0; CAB",
            "one: 2; two: 0; three: 1; BCA",
            "one: 2; two: 1; three: 0; CBA",
        ]);
}

/// The last number below the limit goes to one of them.
#[test]
fn insert_or_insert_at_the_limit() {
    Race::new("insert_or_insert_at_the_limit", |ledger| {
        World::with_limit(ledger, 1).with("A").with("B")
    })
    .role("one", |w| w.insert("A"))
    .role("two", |w| w.insert("B"))
    .end(|w, _| w.contents())
    .allows(&["one: 0; two: EMFILE; A", "one: EMFILE; two: 0; B"]);
}

/// A batch takes its numbers at one instant, so nobody gets a number between them.
#[test]
fn reserve_many_or_insert() {
    Race::new("reserve_many_or_insert", |ledger| World::new(ledger).with("A"))
        .role("batch", |w| {
            w.table
                .reserve_many::<2>()
                .map_or("EMFILE".to_string(), |pair| format!("{} {}", pair[0].fd(), pair[1].fd()))
        })
        .role("insert", |w| w.insert("A"))
        .end(|w, _| w.contents())
        .allows(&[
            "batch: 0 1; insert: 2; --A",
            "batch: 1 2; insert: 0; A",
            // The batch was given back before.
            "batch: 0 1; insert: 0; A",
        ]);
}

/// A batch of two with room for one claims nothing, not even for a moment: the insert finds room.
#[test]
fn reserve_many_fails_or_insert() {
    Race::new("reserve_many_fails_or_insert", |ledger| {
        World::with_limit(ledger, 2).open(0, "X").with("A")
    })
    .role("batch", |w| w.table.reserve_many::<2>().map_or("EMFILE", |_| "ok"))
    .role("insert", |w| w.insert("A"))
    .end(|w, _| w.contents())
    .allows(&["batch: EMFILE; insert: 1; XA"]);
}

/// The same across the border of the first word.
#[test]
fn reserve_many_fails_or_insert_beyond_the_first_word() {
    Race::new("reserve_many_fails_or_insert_beyond_the_first_word", |ledger| {
        World::with_limit(ledger, 3).open(0, "X").open(2, "Y").with("A")
    })
    .role("batch", |w| w.table.reserve_many::<2>().map_or("EMFILE", |_| "ok"))
    .role("insert", |w| w.insert("A"))
    .end(|w, _| w.contents())
    .allows(&["batch: EMFILE; insert: 1; XAY"]);
}

/// A batch with one number in the first word and one above, and an insert that wants the first: none
/// of them gets what the other has.
#[test]
fn reserve_many_or_insert_across_the_border() {
    Race::new("reserve_many_or_insert_across_the_border", |ledger| {
        World::new(ledger).open(0, "X").grown_to(2).with("A").with("B").with("C")
    })
    .role("batch", |w| {
        let [low, high] = w.table.reserve_many::<2>().expect("there is room");
        let low = low.install(w.take("B"), Default::default());
        let high = high.install(w.take("C"), Default::default());
        format!("{low} {high}")
    })
    .role("insert", |w| w.insert("A"))
    .end(|w, _| w.contents())
    .allows(&["batch: 1 2; insert: 3; XBCA", "batch: 2 3; insert: 1; XABC"]);
}

/// A batch of two, while one number is closed and opened again: never both the closed number and one
/// that was taken at that moment (l7).
#[test]
fn reserve_many_or_close_then_insert() {
    Race::new("reserve_many_or_close_then_insert", |ledger| {
        World::with_limit(ledger, 2).open(0, "X").with("A")
    })
    .role("batch", |w| match w.table.reserve_many::<2>() {
        Ok(pair) => {
            pair.into_iter().for_each(std::mem::forget);
            "ok"
        }
        Err(_) => "EMFILE",
    })
    .role("reuse", |w| format!("{} {}", w.close(0), w.insert("A")))
    .end(|w, _| format!("{}{}", w.table.contains(0), w.table.contains(1)))
    .allows(&["batch: ok; reuse: ok EMFILE; falsefalse", "batch: EMFILE; reuse: ok 0; truefalse"]);
}

/// A reservation that is given back.
#[test]
fn insert_or_abandon() {
    Race::new("insert_or_abandon", |ledger| World::new(ledger).with("A"))
        .role("reserve", |w| w.reserve_in(0..8))
        .role("insert", |w| w.insert("A"))
        .end(|w, _| w.contents())
        .allows(&[
            "reserve: 0; insert: 0; A",
            "reserve: 0; insert: 1; -A",
            "reserve: 1; insert: 0; A",
        ]);
}

/// The same beyond the first word.
#[test]
fn insert_or_abandon_an_upper_number() {
    Race::new("insert_or_abandon_an_upper_number", |ledger| {
        World::new(ledger).grown_to(2).with("A")
    })
    .role("reserve", |w| w.reserve_in(2..8))
    .role("insert", |w| w.insert_from(2, "A"))
    .end(|w, _| w.contents())
    .allows(&[
        "reserve: 2; insert: 2; --A",
        "reserve: 2; insert: 3; ---A",
        "reserve: 3; insert: 2; --A",
    ]);
}
