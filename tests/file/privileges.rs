//! What a write strips and updates: every combination against a straightforward model, and the cases
//! p1 to p4.

use std::cell::{Cell, RefCell};

use fdtable::Errno;
use fdtable::file::*;

/// An inode that counts what it is asked.
struct Node {
    regular: bool,
    mode: Cell<u32>,
    xattr: Cell<bool>,
    xattr_fails: bool,
    mode_fails: bool,
    strip_fails: bool,
    memo: Option<NosecMemo>,
    times: TimeUpdate,
    asked: Cell<u32>,
    log: RefCell<Vec<String>>,
}

impl Node {
    fn new(mode: u32) -> Self {
        Node {
            regular: true,
            mode: Cell::new(mode),
            xattr: Cell::new(false),
            xattr_fails: false,
            mode_fails: false,
            strip_fails: false,
            memo: Some(NosecMemo::new()),
            times: TimeUpdate::Unneeded,
            asked: Cell::new(0),
            log: RefCell::default(),
        }
    }

    fn chmod(&self, mode: u32) {
        self.mode.set(mode);
        if let Some(memo) = &self.memo {
            memo.forget();
        }
    }

    fn is_remembered(&self) -> bool {
        self.memo.as_ref().is_some_and(NosecMemo::is_set)
    }
}

impl Inode for Node {
    fn is_regular(&self) -> bool {
        self.regular
    }

    fn mode(&self) -> Result<u32, Errno> {
        if self.mode_fails { Err(Errno::EPERM) } else { Ok(self.mode.get()) }
    }

    fn security_xattr(&self) -> Result<bool, Errno> {
        self.asked.set(self.asked.get() + 1);
        if self.xattr_fails { Err(Errno::EIO) } else { Ok(self.xattr.get()) }
    }

    fn strip(&self, what: Privileges) -> Result<(), Errno> {
        if self.strip_fails {
            return Err(Errno::ENOSPC);
        }
        self.log.borrow_mut().push(format!("strip {}", what.bits()));
        let mut mode = self.mode.get();
        if what.contains(Privileges::SUID) {
            mode &= !S_ISUID;
        }
        if what.contains(Privileges::SGID) {
            mode &= !S_ISGID;
        }
        if what.contains(Privileges::SECURITY_XATTR) {
            self.xattr.set(false);
        }
        self.chmod(mode);
        Ok(())
    }

    fn nosec_memo(&self) -> Option<&NosecMemo> {
        self.memo.as_ref()
    }

    fn time_update(&self) -> TimeUpdate {
        self.times
    }

    fn update_times(&self) -> Result<(), Errno> {
        self.log.borrow_mut().push("times".into());
        Ok(())
    }
}

const USER: Caller = Caller { may_keep_ids: false, in_group: false };
const ROOT: Caller = Caller { may_keep_ids: true, in_group: false };

/// The model: result, mode, xattr, whether times were updated, and whether it is remembered.
type Outcome = (Result<(), Errno>, u32, bool, bool, bool);

fn expected(node: &Node, caller: Caller, how: Modify, had_memo: bool) -> Outcome {
    let nowait = how.contains(Modify::NOWAIT);
    let (mut mode, mut xattr, mut memo) = (node.mode.get(), node.xattr.get(), had_memo);
    let unchanged = |error| (Err(error), node.mode.get(), node.xattr.get(), false, had_memo);
    if node.regular && !had_memo {
        if node.mode_fails {
            return unchanged(Errno::EPERM);
        }
        if node.xattr_fails {
            return unchanged(Errno::EIO);
        }
        let group_runs_it = mode & S_IXGRP != 0;
        let suid = mode & S_ISUID != 0 && !caller.may_keep_ids;
        let sgid =
            mode & S_ISGID != 0 && !caller.may_keep_ids && (group_runs_it || !caller.in_group);
        if suid || sgid || xattr {
            if nowait {
                return unchanged(Errno::EAGAIN);
            }
            if node.strip_fails {
                return unchanged(Errno::ENOSPC);
            }
            mode &= !(if suid { S_ISUID } else { 0 } | if sgid { S_ISGID } else { 0 });
            xattr = false;
        }
        let privileged = mode & S_ISUID != 0 || mode & S_ISGID != 0 && group_runs_it;
        memo = node.memo.is_some() && !privileged;
    }
    let (result, times) = if how.contains(Modify::NOCMTIME) || node.times == TimeUpdate::Unneeded {
        (Ok(()), false)
    } else if nowait && node.times == TimeUpdate::Blocking {
        (Err(Errno::EAGAIN), false)
    } else {
        (Ok(()), true)
    };
    (result, mode, xattr, times, memo)
}

/// mode × caller × attribute × kind × mount × memo × failures × times × flags.
#[test]
fn every_combination_is_as_the_model_says() {
    let bools = [false, true];
    let mut combinations = 0;
    for bits in 0..8_u32 {
        let mode = [S_ISUID, S_ISGID, S_IXGRP]
            .into_iter()
            .enumerate()
            .filter(|(at, _)| bits >> at & 1 != 0)
            .fold(0o640, |mode, (_, bit)| mode | bit);
        for (choice, times) in (0..1_u32 << 10).flat_map(|choice| {
            [TimeUpdate::Unneeded, TimeUpdate::Lazy, TimeUpdate::Blocking].map(|t| (choice, t))
        }) {
            let on = |at: u32| bools[(choice >> at & 1) as usize];
            let mut node = Node::new(mode);
            node.xattr.set(on(0));
            node.xattr_fails = on(1);
            node.strip_fails = on(2);
            node.mode_fails = on(9);
            node.regular = on(3);
            node.times = times;
            if on(4) {
                node.memo = None;
            }
            let caller = Caller { may_keep_ids: on(5), in_group: on(6) };
            let how = Modify::from_bits_truncate(u8::from(on(7)) | u8::from(on(8)) << 1);
            let expected = expected(&node, caller, how, false);
            let result = modified(&node, caller, how);
            let times_updated = node.log.borrow().iter().any(|entry| entry == "times");
            let found =
                (result, node.mode.get(), node.xattr.get(), times_updated, node.is_remembered());
            assert_eq!(found, expected, "mode {mode:o}, choice {choice:b}, {times:?}");
            if found.4 {
                // And with the memo: nothing is asked.
                let asked = node.asked.get();
                modified(&node, caller, Modify::NOCMTIME).unwrap();
                assert_eq!(node.asked.get(), asked);
            }
            combinations += 1;
        }
    }
    assert_eq!(combinations, 8 * 1024 * 3);
}

#[test]
fn p1_the_second_write_asks_nothing() {
    let node = Node::new(0o644);
    modified(&node, USER, Modify::empty()).unwrap();
    assert_eq!(node.asked.get(), 1);
    modified(&node, USER, Modify::empty()).unwrap();
    assert_eq!(node.asked.get(), 1);
    let mut not_opted_in = Node::new(0o644);
    not_opted_in.memo = None;
    modified(&not_opted_in, USER, Modify::empty()).unwrap();
    modified(&not_opted_in, USER, Modify::empty()).unwrap();
    assert_eq!(not_opted_in.asked.get(), 2);
}

#[test]
fn p2_nowait_with_suid_changes_nothing() {
    let mut node = Node::new(0o4755);
    node.times = TimeUpdate::Lazy;
    assert_eq!(modified(&node, USER, Modify::NOWAIT), Err(Errno::EAGAIN));
    assert_eq!(node.mode.get(), 0o4755);
    assert!(node.log.borrow().is_empty() && !node.is_remembered());
}

#[test]
fn a_lazy_time_update_is_done_under_nowait() {
    let mut node = Node::new(0o644);
    node.times = TimeUpdate::Lazy;
    modified(&node, USER, Modify::NOWAIT).unwrap();
    assert_eq!(*node.log.borrow(), ["times"]);
}

#[test]
fn p3_a_chmod_drops_the_memo() {
    let node = Node::new(0o644);
    modified(&node, USER, Modify::empty()).unwrap();
    assert!(node.is_remembered());
    node.chmod(0o4755);
    modified(&node, USER, Modify::empty()).unwrap();
    assert_eq!(node.mode.get(), 0o755);
    assert!(node.is_remembered());
}

/// The question is asked, then the mode changes, then the answer comes: it must not be remembered.
#[test]
fn a_memo_for_an_old_mode_is_not_set() {
    struct Raced(Node);
    impl Inode for Raced {
        fn mode(&self) -> Result<u32, Errno> {
            self.0.mode()
        }
        fn security_xattr(&self) -> Result<bool, Errno> {
            self.0.chmod(0o4755);
            Ok(false)
        }
        fn nosec_memo(&self) -> Option<&NosecMemo> {
            self.0.nosec_memo()
        }
    }
    let node = Raced(Node::new(0o644));
    modified(&node, USER, Modify::empty()).unwrap();
    assert!(!node.0.is_remembered());
}

#[test]
fn p4_the_capability_always_goes_and_set_ids_by_the_callers_rights() {
    for (caller, mode) in [(ROOT, 0o6755), (USER, 0o755)] {
        let node = Node::new(0o6755);
        node.xattr.set(true);
        modified(&node, caller, Modify::empty()).unwrap();
        assert!(!node.xattr.get());
        assert_eq!(node.mode.get(), mode);
    }
    // Set-group-id without group execute stays with a caller of the group.
    let node = Node::new(0o2744);
    modified(&node, Caller { may_keep_ids: false, in_group: true }, Modify::empty()).unwrap();
    assert_eq!(node.mode.get(), 0o2744);
}

#[test]
fn remove_privileges_leaves_times_alone() {
    let mut node = Node::new(0o4755);
    node.times = TimeUpdate::Blocking;
    remove_privileges(&node, USER, Modify::empty()).unwrap();
    assert_eq!(*node.log.borrow(), [format!("strip {}", Privileges::SUID.bits())]);
}

#[test]
fn a_file_asks_its_paths_inode_and_minds_nocmtime() {
    let mut node = Node::new(0o4755);
    node.times = TimeUpdate::Blocking;
    let options = OpenOptions::new(AccessMode::Write).status(StatusFlags::NOCMTIME);
    let file = File::open(&node, &options, |_| Ok(())).unwrap();
    file.modified(USER, Modify::empty()).unwrap();
    assert_eq!(node.log.borrow().len(), 1, "stripped, no times");
    file.modified(USER, Modify::NOCMTIME).unwrap();
    assert_eq!(node.log.borrow().len(), 1, "asked for by both, still no times");
    file.set_status(StatusFlags::empty());
    file.modified(USER, Modify::empty()).unwrap();
    assert_eq!(node.log.borrow().last().unwrap(), "times");
    file.remove_privileges(USER, Modify::NOWAIT).unwrap();
    node.chmod(0o4755);
    assert_eq!(file.remove_privileges(USER, Modify::NOWAIT), Err(Errno::EAGAIN));
    file.remove_privileges(USER, Modify::empty()).unwrap();
    assert_eq!(node.mode.get(), 0o755);
}

#[test]
fn an_inode_that_implements_nothing_has_nothing_to_strip() {
    struct Plain;
    impl Inode for Plain {}
    assert!(Plain.is_regular() && Plain.nosec_memo().is_none());
    assert_eq!((Plain.mode(), Plain.security_xattr()), (Ok(0), Ok(false)));
    modified(&Plain, USER, Modify::NOWAIT).unwrap();
}
