//! The flags of an fd ‖ close, reuse, install, lookup: they belong to one opening of the number.
#![cfg(all(loom, feature = "loom"))]

use fdtable::{CloseRange, FdFlags};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom_tests::{Ledger, Race, World};

const CLOEXEC: FdFlags = FdFlags::CLOEXEC;

/// A late set_flags: the number is closed and opened again meanwhile. The flag is set on the old file's
/// fd or on the new one's, or nowhere; it never comes back from the old to the new.
#[test]
fn set_flags_or_close_then_insert() {
    Race::new("set_flags_or_close_then_insert", |ledger| World::new(ledger).open(0, "A").with("B"))
        .role("flag", |w| w.set_flags(0, CLOEXEC))
        .role("reuse", |w| format!("{} {}", w.close(0), w.insert("B")))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&[
            "flag: ok; reuse: ok 0; A by reuse; B",
            "flag: ok; reuse: ok 0; A by reuse; B*",
            "flag: EBADF; reuse: ok 0; A by reuse; B",
        ]);
}

/// Two threads set flags: one of them is last, and no lookup's count is lost.
#[test]
fn set_flags_or_set_flags_or_get() {
    Race::new("set_flags_or_set_flags_or_get", |ledger| World::new(ledger).open(0, "A"))
        .role("one", |w| w.set_flags(0, CLOEXEC))
        .role("two", |w| w.set_flags(0, FdFlags::CLOFORK))
        .role("get", |w| w.get(0))
        .end(|w, _| format!("{:?}", w.table.flags(0)))
        .allows(&[
            "one: ok; two: ok; get: A; Ok(FdFlags(CLOEXEC))",
            "one: ok; two: ok; get: A; Ok(FdFlags(CLOFORK))",
        ]);
}

/// close_range with CLOEXEC ‖ replace: the new file has the flag only if it was there first.
#[test]
fn close_range_cloexec_or_replace() {
    Race::new("close_range_cloexec_or_replace", |ledger| World::new(ledger).open(0, "A").with("B"))
        .role("sweep", flag_all)
        .role("replace", |w| w.replace(0, "B"))
        .end(|w, _| w.contents())
        .allows(&["sweep: ; replace: A; B", "sweep: ; replace: A; B*"]);
}

/// On a reserved number the flag is set as well, and the file that is installed keeps it, whichever
/// comes first (Linux): a flag that is set in between is not lost.
#[test]
fn close_range_cloexec_or_install() {
    Race::new("close_range_cloexec_or_install", |ledger| World::new(ledger).reserve(0).with("A"))
        .role("sweep", flag_all)
        .role("install", |w| w.install(0, "A"))
        .end(|w, _| w.contents())
        .allows(&["sweep: ; install: ok; A*"]);
}

/// The same beyond the first word.
#[test]
fn close_range_cloexec_or_install_an_upper_fd() {
    Race::new("close_range_cloexec_or_install_an_upper_fd", |ledger| {
        World::new(ledger).reserve(2).with("A")
    })
    .role("sweep", flag_all)
    .role("install", |w| w.install(2, "A"))
    .end(|w, _| w.contents())
    .allows(&["sweep: ; install: ok; --A*"]);
}

/// With a lookup that counts on the empty slot meanwhile.
#[test]
fn close_range_cloexec_or_install_or_get() {
    Race::new("close_range_cloexec_or_install_or_get", |ledger| {
        World::new(ledger).reserve(0).with("A")
    })
    .role("sweep", flag_all)
    .role("install", |w| w.install(0, "A"))
    .role("get", |w| w.get(0))
    .end(|w, _| w.contents())
    .allows(&["sweep: ; install: ok; get: A; A*", "sweep: ; install: ok; get: -; A*"]);
}

/// A world in which one thread can tell another that it is done.
struct Told {
    world: World,
    done: AtomicBool,
}

impl Told {
    fn new(ledger: &Ledger) -> Self {
        Told { world: World::new(ledger).open(0, "A").with("B"), done: AtomicBool::new(false) }
    }

    fn sweep(&self) -> &'static str {
        flag_all(&self.world);
        // Release: whoever sees it comes after the sweep.
        self.done.store(true, Ordering::Release);
        ""
    }

    fn is_done(&self) -> &'static str {
        // Acquire: as above.
        if self.done.load(Ordering::Acquire) { "after" } else { "during" }
    }
}

/// A close_range that found the number taken sets its flag late, on the empty slot. If the sweep is over
/// when the number is reserved, the reservation starts without the flag.
#[test]
fn late_close_range_cloexec_or_reserve() {
    Race::new("late_close_range_cloexec_or_reserve", Told::new)
        .role("sweep", |told| told.sweep())
        .role("reuse", |told| {
            let w = &told.world;
            let closed = w.close(0);
            let sweep = told.is_done();
            let reservation = w.table.reserve().expect("there is room");
            format!("{closed} {sweep} {}", reservation.install(w.take("B"), FdFlags::empty()))
        })
        .end(|told, _| told.world.contents())
        .allows(&[
            "sweep: ; reuse: ok after 0; B",
            "sweep: ; reuse: ok during 0; B",
            "sweep: ; reuse: ok during 0; B*",
        ]);
}

/// The same with an insert, whose store wipes the flag.
#[test]
fn late_close_range_cloexec_or_insert() {
    Race::new("late_close_range_cloexec_or_insert", Told::new)
        .role("sweep", |told| told.sweep())
        .role("reuse", |told| {
            let closed = told.world.close(0);
            let sweep = told.is_done();
            format!("{closed} {sweep} {}", told.world.insert("B"))
        })
        .end(|told, _| told.world.contents())
        .allows(&[
            "sweep: ; reuse: ok after 0; B",
            "sweep: ; reuse: ok during 0; B",
            "sweep: ; reuse: ok during 0; B*",
        ]);
}

/// close of what has CLOEXEC ‖ set_flags: the fd is closed with the flag, or it has lost it before.
#[test]
fn close_on_exec_or_set_flags() {
    Race::new("close_on_exec_or_set_flags", |ledger| World::new(ledger).open_with(0, "A", CLOEXEC))
        .role("exec", |w| {
            w.table.close_on_exec();
            ""
        })
        .role("flag", |w| w.set_flags(0, FdFlags::empty()))
        .end(|w, _| w.contents())
        .allows(&["exec: ; flag: ok; A", "exec: ; flag: EBADF; ."]);
}

/// A number that is being opened has no flags to set, until it is open.
#[test]
fn set_flags_or_install() {
    Race::new("set_flags_or_install", |ledger| World::new(ledger).reserve(0).with("A"))
        .role("flag", |w| w.set_flags(0, CLOEXEC))
        .role("install", |w| w.install(0, "A"))
        .end(|w, _| w.contents())
        .allows(&["flag: ok; install: ok; A*", "flag: EBADF; install: ok; A"]);
}

/// The flag is set on the old file's fd, or on the new one's; the file is never put back with it.
#[test]
fn set_flags_or_replace() {
    Race::new("set_flags_or_replace", |ledger| World::new(ledger).open(0, "A").with("B"))
        .role("flag", |w| w.set_flags(0, CLOEXEC))
        .role("replace", |w| w.replace(0, "B"))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&[
            "flag: ok; replace: A; A by replace; B",
            "flag: ok; replace: A; A by replace; B*",
        ]);
}

fn flag_all(w: &World) -> &'static str {
    w.table.close_range(0, u32::MAX, CloseRange::CLOEXEC).expect("a valid call");
    ""
}
