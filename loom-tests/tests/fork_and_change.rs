//! fork ‖ changes: the child is the parent at one instant of the call (C8), and no lookup can tell
//! otherwise. Lookups do not wait for it.
//!
//! Every shortcut in the algorithm has one of these families as its failing history; which one is in the
//! design page. One family takes three slots in the first word and four preemptions, too much for every run:
//! T1 `open 0; close 1`, T2 `open 1; open 2`, and the copy {2} of a fork that overlooks fill-and-empty.
#![cfg(all(loom, feature = "loom"))]

use fdtable::FdFlags;
use loom_tests::{Race, World};

/// Opens a low number, then closes a high one: never neither.
#[test]
fn fork_or_insert_then_close() {
    Race::new("fork_or_insert_then_close", |ledger| World::new(ledger).open(1, "B").with("A"))
        .role("fork", |w| w.fork())
        .role("change", |w| format!("{} {}", w.insert("A"), w.close(1)))
        .end(|w, _| format!("{}{}", w.children(), w.contents()))
        .allows(&[
            "fork: ; change: 0 ok; child -B; A",
            "fork: ; change: 0 ok; child AB; A",
            "fork: ; change: 0 ok; child A; A",
        ]);
}

/// The other way round: the slot that is looked at first is closed last.
#[test]
fn fork_or_insert_high_then_close_low() {
    Race::new("fork_or_insert_high_then_close_low", |ledger| {
        World::new(ledger).open(0, "A").with("B")
    })
    .role("fork", |w| w.fork())
    .role("change", |w| format!("{} {}", w.insert("B"), w.close(0)))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; change: 1 ok; child A; -B",
        "fork: ; change: 1 ok; child AB; -B",
        "fork: ; change: 1 ok; child -B; -B",
    ]);
}

/// Closes low, then high: never only the low one.
#[test]
fn fork_or_close_then_close() {
    Race::new("fork_or_close_then_close", |ledger| World::new(ledger).open(0, "A").open(1, "B"))
        .role("fork", |w| w.fork())
        .role("close", |w| format!("{} {}", w.close(0), w.close(1)))
        .end(|w, _| format!("{}{}", w.children(), w.contents()))
        .allows(&[
            "fork: ; close: ok ok; child AB; .",
            "fork: ; close: ok ok; child -B; .",
            "fork: ; close: ok ok; child .; .",
        ]);
}

/// Closes high, then low.
#[test]
fn fork_or_close_high_then_close_low() {
    Race::new("fork_or_close_high_then_close_low", |ledger| {
        World::new(ledger).open(0, "A").open(1, "B")
    })
    .role("fork", |w| w.fork())
    .role("close", |w| format!("{} {}", w.close(1), w.close(0)))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; close: ok ok; child AB; .",
        "fork: ; close: ok ok; child A; .",
        "fork: ; close: ok ok; child .; .",
    ]);
}

/// Opens a number and closes it again. The fork has marked the slot while it was empty, and the insert's store
/// has wiped the mark: so the file is not held by it, and must not be touched before the slot is marked anew.
#[test]
fn fork_or_insert_then_close_the_same() {
    Race::new("fork_or_insert_then_close_the_same", |ledger| World::new(ledger).with("A"))
        .role("fork", |w| w.fork())
        .role("change", |w| format!("{} {}", w.insert("A"), w.close(0)))
        .end(|w, _| format!("{}{}", w.children(), w.contents()))
        .allows(&["fork: ; change: 0 ok; child .; .", "fork: ; change: 0 ok; child A; ."]);
}

/// The same, closed by another thread.
#[test]
fn fork_or_insert_or_close_the_same() {
    Race::new("fork_or_insert_or_close_the_same", |ledger| World::new(ledger).with("A"))
        .role("fork", |w| w.fork())
        .role("insert", |w| w.insert("A"))
        .role("close", |w| w.close(0))
        .end(|w, _| format!("{}{}", w.children(), w.contents()))
        .allows(&[
            "fork: ; insert: 0; close: ok; child .; .",
            "fork: ; insert: 0; close: ok; child A; .",
            "fork: ; insert: 0; close: EBADF; child .; A",
            "fork: ; insert: 0; close: EBADF; child A; A",
        ]);
}

/// Opens a low number, closes it, then closes a high one: a child with the low file has the high one too.
#[test]
fn fork_or_insert_then_close_then_close() {
    Race::new("fork_or_insert_then_close_then_close", |ledger| {
        World::new(ledger).open(1, "B").with("A")
    })
    .role("fork", |w| w.fork())
    .role("change", |w| format!("{} {} {}", w.insert("A"), w.close(0), w.close(1)))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; change: 0 ok ok; child -B; .",
        "fork: ; change: 0 ok ok; child AB; .",
        "fork: ; change: 0 ok ok; child .; .",
    ]);
}

/// A reservation that is made, filled and closed again.
#[test]
fn fork_or_reserve_then_install_then_close() {
    Race::new("fork_or_reserve_then_install_then_close", |ledger| World::new(ledger).with("A"))
        .role("fork", |w| w.fork())
        .role("change", |w| {
            let reservation = w.table.reserve().expect("there is room");
            let fd = reservation.install(w.take("A"), FdFlags::empty());
            format!("{fd} {}", w.close(0))
        })
        .end(|w, _| format!("{}{}", w.children(), w.contents()))
        .allows(&["fork: ; change: 0 ok; child .; .", "fork: ; change: 0 ok; child A; ."]);
}

/// Installs low, then high: never only the high one.
#[test]
fn fork_or_install_then_install() {
    Race::new("fork_or_install_then_install", |ledger| {
        World::new(ledger).reserve(0).reserve(1).with("A").with("B")
    })
    .role("fork", |w| w.fork())
    .role("install", |w| format!("{} {}", w.install(0, "A"), w.install(1, "B")))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; install: ok ok; child .; AB",
        "fork: ; install: ok ok; child A; AB",
        "fork: ; install: ok ok; child AB; AB",
    ]);
}

/// The same by inserts, which are plain stores.
#[test]
fn fork_or_insert_then_insert() {
    Race::new("fork_or_insert_then_insert", |ledger| World::new(ledger).with("A").with("B"))
        .role("fork", |w| w.fork())
        .role("insert", |w| format!("{} {}", w.insert("A"), w.insert("B")))
        .end(|w, _| format!("{}{}", w.children(), w.contents()))
        .allows(&[
            "fork: ; insert: 0 1; child .; AB",
            "fork: ; insert: 0 1; child A; AB",
            "fork: ; insert: 0 1; child AB; AB",
        ]);
}

/// By an insert, then an install on a number that was reserved before.
#[test]
fn fork_or_insert_then_install() {
    Race::new("fork_or_insert_then_install", |ledger| {
        World::new(ledger).reserve(1).with("A").with("B")
    })
    .role("fork", |w| w.fork())
    .role("open", |w| format!("{} {}", w.insert("A"), w.install(1, "B")))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; open: 0 ok; child .; AB",
        "fork: ; open: 0 ok; child A; AB",
        "fork: ; open: 0 ok; child AB; AB",
    ]);
}

/// Whatever changes the second slot after an insert has filled the first: a fork that sees the change has
/// to see the insert. Here the file is replaced.
#[test]
fn fork_or_insert_then_replace() {
    Race::new("fork_or_insert_then_replace", |ledger| {
        World::new(ledger).open(1, "B").with("A").with("C")
    })
    .role("fork", |w| w.fork())
    .role("change", |w| format!("{} {}", w.insert("A"), w.replace(1, "C")))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; change: 0 B; child -B; AC",
        "fork: ; change: 0 B; child AB; AC",
        "fork: ; change: 0 B; child AC; AC",
    ]);
}

/// Here its flags are set.
#[test]
fn fork_or_insert_then_set_flags() {
    Race::new("fork_or_insert_then_set_flags", |ledger| World::new(ledger).open(1, "B").with("A"))
        .role("fork", |w| w.fork())
        .role("change", |w| format!("{} {}", w.insert("A"), w.set_flags(1, FdFlags::CLOEXEC)))
        .end(|w, _| format!("{}{}", w.children(), w.contents()))
        .allows(&[
            "fork: ; change: 0 ok; child -B; AB*",
            "fork: ; change: 0 ok; child AB; AB*",
            "fork: ; change: 0 ok; child AB*; AB*",
        ]);
}

/// And here a sweep sets them.
#[test]
fn fork_or_insert_then_close_range_cloexec() {
    Race::new("fork_or_insert_then_close_range_cloexec", |ledger| {
        World::new(ledger).open(1, "B").with("A")
    })
    .role("fork", |w| w.fork())
    .role("change", |w| {
        let fd = w.insert("A");
        w.table.close_range(1, 1, fdtable::CloseRange::CLOEXEC).expect("a valid call");
        fd
    })
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; change: 0; child -B; AB*",
        "fork: ; change: 0; child AB; AB*",
        "fork: ; change: 0; child AB*; AB*",
    ]);
}

/// A pair that was reserved at one instant: the fork may have begun in between, and the marks are wiped
/// when the reservations are made.
#[test]
fn fork_or_reserve_many_then_install() {
    Race::new("fork_or_reserve_many_then_install", |ledger| World::new(ledger).with("A").with("B"))
        .role("fork", |w| w.fork())
        .role("pipe", |w| {
            let [read, write] = w.table.reserve_many().expect("there is room");
            let read = read.install(w.take("A"), FdFlags::empty());
            format!("{read} {}", write.install(w.take("B"), FdFlags::empty()))
        })
        .end(|w, _| format!("{}{}", w.children(), w.contents()))
        .allows(&[
            "fork: ; pipe: 0 1; child .; AB",
            "fork: ; pipe: 0 1; child A; AB",
            "fork: ; pipe: 0 1; child AB; AB",
        ]);
}

/// F1: two installs by one thread, and a mutator of the second slot that meets the mark. A mutator must
/// not get the late install into the copy.
#[test]
fn fork_or_install_then_install_or_close() {
    Race::new("fork_or_install_then_install_or_close", |ledger| {
        World::new(ledger).reserve(0).reserve(1).with("A").with("B")
    })
    .role("fork", |w| w.fork())
    .role("install", |w| format!("{} {}", w.install(0, "A"), w.install(1, "B")))
    .role("close", |w| w.close(1))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; install: ok ok; close: EBADF; child .; AB",
        "fork: ; install: ok ok; close: EBADF; child A; AB",
        "fork: ; install: ok ok; close: EBADF; child AB; AB",
        "fork: ; install: ok ok; close: ok; child .; A",
        "fork: ; install: ok ok; close: ok; child A; A",
        "fork: ; install: ok ok; close: ok; child AB; A",
    ]);
}

/// F2: one thread closes the low fd and then still finds the old file at the high one, which another
/// thread replaces. So the close came first, and a child with the low file and the new one is of no instant.
#[test]
fn fork_or_close_then_get_or_replace() {
    Race::new("fork_or_close_then_get_or_replace", |ledger| {
        World::new(ledger).open(0, "A").open(1, "B").with("C")
    })
    .role("fork", |w| w.fork())
    .role("close", |w| format!("{} {}", w.close(0), w.get(1)))
    .role("replace", |w| w.replace(1, "C"))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; close: ok B; replace: B; child AB; -C",
        "fork: ; close: ok B; replace: B; child -B; -C",
        "fork: ; close: ok B; replace: B; child -C; -C",
        "fork: ; close: ok C; replace: B; child AB; -C",
        "fork: ; close: ok C; replace: B; child AC; -C",
        "fork: ; close: ok C; replace: B; child -B; -C",
        "fork: ; close: ok C; replace: B; child -C; -C",
    ]);
}

/// F3: as F1, by inserts, and the mutator only sets flags.
#[test]
fn fork_or_insert_then_insert_or_set_flags() {
    Race::new("fork_or_insert_then_insert_or_set_flags", |ledger| {
        World::new(ledger).with("A").with("B")
    })
    .role("fork", |w| w.fork())
    .role("insert", |w| format!("{} {}", w.insert("A"), w.insert("B")))
    .role("flag", |w| w.set_flags(1, FdFlags::CLOEXEC))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; insert: 0 1; flag: EBADF; child .; AB",
        "fork: ; insert: 0 1; flag: EBADF; child A; AB",
        "fork: ; insert: 0 1; flag: EBADF; child AB; AB",
        "fork: ; insert: 0 1; flag: ok; child .; AB*",
        "fork: ; insert: 0 1; flag: ok; child A; AB*",
        "fork: ; insert: 0 1; flag: ok; child AB; AB*",
        "fork: ; insert: 0 1; flag: ok; child AB*; AB*",
    ]);
}

/// Two threads install one number each: any combination, but not what is filled after what is missing.
#[test]
fn fork_or_install_or_install() {
    Race::new("fork_or_install_or_install", |ledger| {
        World::new(ledger).reserve(0).reserve(1).with("A").with("B")
    })
    .role("fork", |w| w.fork())
    .role("low", |w| w.install(0, "A"))
    .role("high", |w| format!("{} {}", w.get(0), w.install(1, "B")))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; low: ok; high: A ok; child .; AB",
        "fork: ; low: ok; high: A ok; child A; AB",
        "fork: ; low: ok; high: A ok; child AB; AB",
        "fork: ; low: ok; high: - ok; child .; AB",
        "fork: ; low: ok; high: - ok; child A; AB",
        "fork: ; low: ok; high: - ok; child -B; AB",
        "fork: ; low: ok; high: - ok; child AB; AB",
    ]);
}

/// A miss as an observer: closes the low fd, then finds nothing at the high one, which another thread
/// installs. The contract does not promise it (C2), the algorithm keeps it: no child has both.
#[test]
fn fork_or_close_then_miss_or_install() {
    Race::new("fork_or_close_then_miss_or_install", |ledger| {
        World::new(ledger).open(0, "A").reserve(1).with("B")
    })
    .role("fork", |w| w.fork())
    .role("close", |w| format!("{} {}", w.close(0), w.get(1)))
    .role("install", |w| w.install(1, "B"))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; close: ok -; install: ok; child A; -B",
        "fork: ; close: ok -; install: ok; child .; -B",
        "fork: ; close: ok -; install: ok; child -B; -B",
        "fork: ; close: ok B; install: ok; child A; -B",
        "fork: ; close: ok B; install: ok; child AB; -B",
        "fork: ; close: ok B; install: ok; child .; -B",
        "fork: ; close: ok B; install: ok; child -B; -B",
    ]);
}

/// The same, and the change that comes after the fork is an install. A child with B and without A is older
/// than the install of A; so B was there when A was installed, and is found.
#[test]
fn fork_or_install_then_miss_or_install() {
    Race::new("fork_or_install_then_miss_or_install", |ledger| {
        World::new(ledger).reserve(0).reserve(1).with("A").with("B")
    })
    .role("fork", |w| w.fork())
    .role("low", |w| format!("{} {}", w.install(0, "A"), w.get(1)))
    .role("high", |w| w.install(1, "B"))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; low: ok -; high: ok; child .; AB",
        "fork: ; low: ok -; high: ok; child A; AB",
        "fork: ; low: ok -; high: ok; child AB; AB",
        "fork: ; low: ok B; high: ok; child .; AB",
        "fork: ; low: ok B; high: ok; child A; AB",
        "fork: ; low: ok B; high: ok; child -B; AB",
        "fork: ; low: ok B; high: ok; child AB; AB",
    ]);
}

/// A reservation is free in the child, also if a mark meets it.
#[test]
fn fork_or_reserve_then_abandon() {
    Race::new("fork_or_reserve_then_abandon", |ledger| World::new(ledger).open(0, "A"))
        .role("fork", |w| w.fork())
        .role("reserve", |w| format!("{} {}", w.reserve_in(0..2), w.close(0)))
        .end(|w, _| format!("{}{}", w.children(), w.contents()))
        .allows(&["fork: ; reserve: 1 ok; child A; .", "fork: ; reserve: 1 ok; child .; ."]);
}

/// The file or its flags are changed: as they were before, or after.
#[test]
fn fork_or_replace_then_set_flags() {
    Race::new("fork_or_replace_then_set_flags", |ledger| {
        World::new(ledger).open(0, "A").open(1, "B").with("C")
    })
    .role("fork", |w| w.fork())
    .role("change", |w| format!("{} {}", w.replace(1, "C"), w.set_flags(0, FdFlags::CLOEXEC)))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; change: B ok; child AB; A*C",
        "fork: ; change: B ok; child AC; A*C",
        "fork: ; change: B ok; child A*C; A*C",
    ]);
}

/// CLOEXEC is swept over while the table is copied. A sweep is not one step.
#[test]
fn fork_or_close_range_cloexec() {
    Race::new("fork_or_close_range_cloexec", |ledger| World::new(ledger).open(0, "A").open(1, "B"))
        .role("fork", |w| w.fork())
        .role("sweep", |w| {
            w.table.close_range(0, 7, fdtable::CloseRange::CLOEXEC).expect("a valid call");
            ""
        })
        .end(|w, _| format!("{}{}", w.children(), w.contents()))
        .allows(&[
            "fork: ; sweep: ; child AB; A*B*",
            "fork: ; sweep: ; child A*B; A*B*",
            "fork: ; sweep: ; child A*B*; A*B*",
        ]);
}

/// dup2 is one step.
#[test]
fn fork_or_dup2_then_close() {
    Race::new("fork_or_dup2_then_close", |ledger| World::new(ledger).open(0, "A").open(1, "B"))
        .role("fork", |w| w.fork())
        .role("move", |w| format!("{} {}", w.dup2(0, 1), w.close(0)))
        .end(|w, ledger| {
            format!("{}B by {}; {}", w.children(), ledger.destroyer("B"), w.contents())
        })
        .allows(&[
            "fork: ; move: ok ok; child AB; B by end; -A",
            "fork: ; move: ok ok; child AA; B by move; -A",
            "fork: ; move: ok ok; child -A; B by move; -A",
        ]);
}

/// A low number and an upper one: the upper ones stand still under the lock.
#[test]
fn fork_or_close_low_then_close_high() {
    Race::new("fork_or_close_low_then_close_high", |ledger| {
        World::new(ledger).open(0, "A").open(2, "C")
    })
    .role("fork", |w| w.fork())
    .role("close", |w| format!("{} {}", w.close(0), w.close(2)))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; close: ok ok; child A-C; .",
        "fork: ; close: ok ok; child --C; .",
        "fork: ; close: ok ok; child .; .",
    ]);
}

/// The flags of an upper fd, then a close below.
#[test]
fn fork_or_set_flags_high_then_close_low() {
    Race::new("fork_or_set_flags_high_then_close_low", |ledger| {
        World::new(ledger).open(0, "A").open(2, "C")
    })
    .role("fork", |w| w.fork())
    .role("change", |w| format!("{} {}", w.set_flags(2, FdFlags::CLOEXEC), w.close(0)))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; change: ok ok; child A-C; --C*",
        "fork: ; change: ok ok; child A-C*; --C*",
        "fork: ; change: ok ok; child --C*; --C*",
    ]);
}

/// A file is installed at an upper fd, then one is closed below.
#[test]
fn fork_or_install_high_then_close_low() {
    Race::new("fork_or_install_high_then_close_low", |ledger| {
        World::new(ledger).open(0, "A").reserve(2).with("C")
    })
    .role("fork", |w| w.fork())
    .role("change", |w| format!("{} {}", w.install(2, "C"), w.close(0)))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; change: ok ok; child A; --C",
        "fork: ; change: ok ok; child A-C; --C",
        "fork: ; change: ok ok; child --C; --C",
    ]);
}

/// A thread that has seen the upper fd replaced closes the low one: a child without the low file has the new
/// upper one. So an upper slot, too, changes only under the lock.
#[test]
fn fork_or_replace_high_or_get_then_close_low() {
    Race::new("fork_or_replace_high_or_get_then_close_low", |ledger| {
        World::new(ledger).open(0, "A").open(2, "C").with("D")
    })
    .role("fork", |w| w.fork())
    .role("replace", |w| w.replace(2, "D"))
    .role("close", |w| format!("{} {}", w.get(2), w.close(0)))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; replace: C; close: C ok; child A-C; --D",
        "fork: ; replace: C; close: C ok; child A-D; --D",
        "fork: ; replace: C; close: C ok; child --C; --D",
        "fork: ; replace: C; close: C ok; child --D; --D",
        "fork: ; replace: C; close: D ok; child A-C; --D",
        "fork: ; replace: C; close: D ok; child A-D; --D",
        "fork: ; replace: C; close: D ok; child --D; --D",
    ]);
}

/// The other way round.
#[test]
fn fork_or_close_high_then_insert_low() {
    Race::new("fork_or_close_high_then_insert_low", |ledger| {
        World::new(ledger).open(2, "C").with("A")
    })
    .role("fork", |w| w.fork())
    .role("change", |w| format!("{} {}", w.close(2), w.insert("A")))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; change: ok 0; child --C; A",
        "fork: ; change: ok 0; child .; A",
        "fork: ; change: ok 0; child A; A",
    ]);
}

/// The parent grows while the child's storage is made.
#[test]
fn fork_or_insert_grows() {
    Race::new("fork_or_insert_grows", |ledger| {
        World::new(ledger).open(0, "A").open(2, "C").with("E").with("B")
    })
    .role("fork", |w| w.fork())
    .role("insert", |w| format!("{} {}", w.insert_from(4, "E"), w.insert("B")))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; insert: 4 1; child A-C; ABC-E",
        "fork: ; insert: 4 1; child A-C-E; ABC-E",
        "fork: ; insert: 4 1; child ABC-E; ABC-E",
    ]);
}

/// The same, and it grows below what the fork has already made storage for; what is opened after that is
/// not in a copy without it.
#[test]
fn fork_or_insert_grows_below() {
    Race::new("fork_or_insert_grows_below", |ledger| {
        World::new(ledger).open(4, "E").with("C").with("A")
    })
    .role("fork", |w| w.fork())
    .role("insert", |w| format!("{} {}", w.insert_from(2, "C"), w.insert("A")))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; insert: 2 0; child ----E; A-C-E",
        "fork: ; insert: 2 0; child --C-E; A-C-E",
        "fork: ; insert: 2 0; child A-C-E; A-C-E",
    ]);
}

/// Two threads that close and open: each number may end up with either. All combinations, but for an open
/// fd with what came before it was opened or closed.
#[test]
fn fork_or_close_then_insert_or_close_then_insert() {
    Race::new("fork_or_close_then_insert_or_close_then_insert", |ledger| {
        World::new(ledger).open(0, "A").open(1, "B").with("C").with("D")
    })
    .role("fork", |w| w.fork())
    .role("low", |w| format!("{} {}", w.close(0), w.insert("C")))
    .role("high", |w| format!("{} {}", w.close(1), w.insert("D")))
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; low: ok 0; high: ok 1; child AB; CD",
        "fork: ; low: ok 0; high: ok 1; child A; CD",
        "fork: ; low: ok 0; high: ok 1; child -B; CD",
        "fork: ; low: ok 0; high: ok 1; child .; CD",
        "fork: ; low: ok 0; high: ok 1; child AD; CD",
        "fork: ; low: ok 0; high: ok 1; child -D; CD",
        "fork: ; low: ok 0; high: ok 1; child CB; CD",
        "fork: ; low: ok 0; high: ok 1; child C; CD",
        "fork: ; low: ok 0; high: ok 1; child CD; CD",
        "fork: ; low: ok 1; high: ok 0; child AB; DC",
        "fork: ; low: ok 1; high: ok 0; child A; DC",
        "fork: ; low: ok 1; high: ok 0; child -B; DC",
        "fork: ; low: ok 1; high: ok 0; child .; DC",
        "fork: ; low: ok 1; high: ok 0; child D; DC",
        "fork: ; low: ok 1; high: ok 0; child -C; DC",
        "fork: ; low: ok 1; high: ok 0; child DC; DC",
    ]);
}

/// Two forks at once: one waits for the other.
#[test]
fn fork_or_fork_or_close() {
    Race::new("fork_or_fork_or_close", |ledger| World::new(ledger).open(0, "A"))
        .role("one", |w| w.fork())
        .role("two", |w| w.fork())
        .role("close", |w| w.close(0))
        .end(|w, _| format!("{}{}", w.children(), w.contents()))
        .allows(&[
            "one: ; two: ; close: ok; child A; child A; .",
            "one: ; two: ; close: ok; child A; child .; .",
            "one: ; two: ; close: ok; child .; child .; .",
        ]);
}

// The count and the mark in one word, and the references that the copy takes

/// The child's reference keeps the file alive, and whoever is last runs the destructor: the fork that
/// drops its copy at once, the closer, or a lookup.
#[test]
fn fork_then_drop_or_close() {
    Race::new("fork_then_drop_or_close", |ledger| World::new(ledger).open(0, "A"))
        .role("fork", |w| {
            let child = w.table.fork().expect("enough memory");
            child.get(0).map_or("-", |file| file.name())
        })
        .role("close", |w| w.close(0))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&[
            "fork: A; close: ok; A by fork; .",
            "fork: A; close: ok; A by close; .",
            "fork: -; close: ok; A by close; .",
        ]);
}

/// With a lookup: its count and the mark share the word, and neither is lost.
#[test]
fn fork_or_get_or_close() {
    Race::new("fork_or_get_or_close", |ledger| World::new(ledger).open(0, "A"))
        .role("fork", |w| w.fork())
        .role("get", |w| w.get(0))
        .role("close", |w| w.close(0))
        .end(|w, ledger| {
            format!("{}A by {}; {}", w.children(), ledger.destroyer("A"), w.contents())
        })
        .allows(&[
            "fork: ; get: A; close: ok; child A; A by end; .",
            "fork: ; get: -; close: ok; child A; A by end; .",
            "fork: ; get: A; close: ok; child .; A by get; .",
            "fork: ; get: A; close: ok; child .; A by close; .",
            "fork: ; get: -; close: ok; child .; A by close; .",
        ]);
}

/// A lookup's handle that is moved to the file while the fork marks the slot.
#[test]
fn fork_or_transfer_then_close() {
    Race::new("fork_or_transfer_then_close", |ledger| World::new(ledger).open(0, "A").hold(0, 2))
        .role("fork", |w| w.fork())
        .role("get", |w| format!("{} {}", w.get(0), w.close(0)))
        .end(|w, _| format!("{}{}", w.children(), w.contents()))
        .allows(&["fork: ; get: A ok; child A; .", "fork: ; get: A ok; child .; ."]);
}

/// CLOFORK is set or cleared meanwhile: the fd is left out, or not; never the file of one with the flag
/// of the other.
#[test]
fn fork_or_set_clofork() {
    Race::new("fork_or_set_clofork", |ledger| {
        World::new(ledger).open_with(0, "A", FdFlags::CLOFORK).open(1, "B")
    })
    .role("fork", |w| w.fork())
    .role("flag", |w| {
        format!("{} {}", w.set_flags(0, FdFlags::empty()), w.set_flags(1, FdFlags::CLOFORK))
    })
    .end(|w, _| format!("{}{}", w.children(), w.contents()))
    .allows(&[
        "fork: ; flag: ok ok; child -B; AB",
        "fork: ; flag: ok ok; child AB; AB",
        "fork: ; flag: ok ok; child A; AB",
    ]);
}

/// A reference goes while the fork makes one: the parent's last holder is not the file's.
#[test]
fn fork_or_drop_then_close() {
    Race::new("fork_or_drop_then_close", |ledger| {
        World::new(ledger).open(0, "A").with_reference(0)
    })
    .role("fork", |w| w.fork())
    .role("drop", |w| {
        drop(w.reference("A"));
        w.close(0)
    })
    .end(|w, ledger| format!("{}A by {}; {}", w.children(), ledger.destroyer("A"), w.contents()))
    .allows(&["fork: ; drop: ok; child A; A by end; .", "fork: ; drop: ok; child .; A by drop; ."]);
}
