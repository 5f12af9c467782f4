//! The exec sweep and close_range with CLOEXEC ‖ lookups and changes: a sweep looks at a flag and changes
//! the slot in one step, never an fd that has lost the flag or got another file in between.
#![cfg(all(loom, feature = "loom"))]

use fdtable::{CloseRange, FdFlags};
use loom_tests::{Race, World};

const CLOEXEC: FdFlags = FdFlags::CLOEXEC;

fn exec(w: &World) -> &'static str {
    w.table.close_on_exec();
    ""
}

fn flag_all(w: &World) -> &'static str {
    w.table.close_range(0, u32::MAX, CloseRange::CLOEXEC).expect("a valid call");
    ""
}

/// A lookup has the file or misses; whoever is last destroys it.
#[test]
fn close_on_exec_or_get() {
    Race::new("close_on_exec_or_get", |ledger| World::new(ledger).open_with(0, "A", CLOEXEC))
        .role("exec", exec)
        .role("get", |w| w.get(0))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&[
            "exec: ; get: A; A by exec; .",
            "exec: ; get: A; A by get; .",
            "exec: ; get: -; A by exec; .",
        ]);
}

/// A file without the flag that takes the place of one with it stays.
#[test]
fn close_on_exec_or_replace() {
    Race::new("close_on_exec_or_replace", |ledger| {
        World::new(ledger).open_with(0, "A", CLOEXEC).with("B")
    })
    .role("exec", exec)
    .role("replace", |w| w.replace(0, "B"))
    .end(|w, _| w.contents())
    .allows(&["exec: ; replace: A; B", "exec: ; replace: -; B"]);
}

/// A file that is installed on a number with the flag is closed, or stays with the flag.
#[test]
fn close_on_exec_or_install() {
    Race::new("close_on_exec_or_install", |ledger| World::new(ledger).reserve(0).with("A"))
        .role("exec", |w| {
            flag_all(w);
            exec(w)
        })
        .role("install", |w| w.install(0, "A"))
        .end(|w, ledger| format!("A by {}; {}", ledger.destroyer("A"), w.contents()))
        .allows(&["exec: ; install: ok; A by exec; .", "exec: ; install: ok; A by nobody; A*"]);
}

/// One of them is last: the other flag stays beside CLOEXEC, or CLOEXEC is overwritten.
#[test]
fn close_range_cloexec_or_set_flags() {
    Race::new("close_range_cloexec_or_set_flags", |ledger| World::new(ledger).open(0, "A"))
        .role("sweep", flag_all)
        .role("flag", |w| w.set_flags(0, FdFlags::CLOFORK))
        .end(|w, _| format!("{:?}", w.table.flags(0)))
        .allows(&[
            "sweep: ; flag: ok; Ok(FdFlags(CLOFORK))",
            "sweep: ; flag: ok; Ok(FdFlags(CLOEXEC | CLOFORK))",
        ]);
}
