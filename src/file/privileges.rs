//! What a write does to the file's inode: strips privileges, updates times. Linux'
//! `file_modified_flags` and `file_remove_privs_flags`.

use crate::error::Errno;
use crate::sync::{AtomicU64, Ordering};

/// The set-user-id bit of a mode.
pub const S_ISUID: u32 = 0o4000;
/// The set-group-id bit of a mode.
pub const S_ISGID: u32 = 0o2000;
/// The group's execute bit of a mode.
pub const S_IXGRP: u32 = 0o0010;

bitflags::bitflags! {
    /// What a file may lose when it is written to.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
    pub struct Privileges: u8 {
        /// The set-user-id bit.
        const SUID = 1;
        /// The set-group-id bit.
        const SGID = 2;
        /// The security attribute: `security.capability`.
        const SECURITY_XATTR = 4;
    }
}

bitflags::bitflags! {
    /// How a modification may be done.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
    pub struct Modify: u8 {
        /// Fail with `EAGAIN` rather than wait (`IOCB_NOWAIT`).
        const NOWAIT = 1;
        /// The file does not update times (`FMODE_NOCMTIME`).
        const NOCMTIME = 2;
    }
}

/// What counts of the caller's rights.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Caller {
    /// It may keep set-id bits (`CAP_FSETID`), as root may.
    pub may_keep_ids: bool,
    /// It is in the file's group.
    pub in_group: bool,
}

/// Whether a modification changes the inode's times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeUpdate {
    /// They are new enough.
    Unneeded,
    /// They change in memory only, which does not block.
    Lazy,
    /// They change, which may block.
    Blocking,
}

/// The inode of a file, as far as a modification looks at it. A runtime without privileges and times
/// implements nothing.
///
/// The layer holds no lock: as in Linux it is the caller that keeps the inode's mode and attributes still,
/// by the inode's lock, over [`modified`] and the write that follows. (The memo is right without.)
pub trait Inode {
    /// Whether it is a regular file: only these have privileges to lose.
    fn is_regular(&self) -> bool {
        true
    }

    /// The permission bits, with set-user-id and set-group-id. An error is returned to the writer.
    fn mode(&self) -> Result<u32, Errno> {
        Ok(0)
    }

    /// Whether there is a security attribute. May block; an error is returned to the writer.
    fn security_xattr(&self) -> Result<bool, Errno> {
        Ok(false)
    }

    /// Removes what a write takes away.
    fn strip(&self, privileges: Privileges) -> Result<(), Errno> {
        let _ = privileges;
        Ok(())
    }

    /// Where it is remembered that there is nothing to strip, if the inode's mount has opted in
    /// (`SB_NOSEC`): the inode then calls [`NosecMemo::forget`] whenever mode or attributes have changed.
    fn nosec_memo(&self) -> Option<&NosecMemo> {
        None
    }

    /// What the times need.
    fn time_update(&self) -> TimeUpdate {
        TimeUpdate::Unneeded
    }

    /// Updates the times.
    fn update_times(&self) -> Result<(), Errno> {
        Ok(())
    }
}

/// An inode's memo that it has nothing to strip (`S_NOSEC`), so that the next write need not ask.
///
/// A memo that was about to be set while the mode changed does not survive the change: it is set only
/// if [`forget`](Self::forget) has not been called since the question was asked.
#[derive(Debug)]
pub struct NosecMemo {
    /// Low bit: set. Above it: how often it was forgotten.
    state: AtomicU64,
}

impl NosecMemo {
    /// A memo that is not set.
    pub fn new() -> Self {
        NosecMemo { state: AtomicU64::new(0) }
    }

    /// Whether it is known that there is nothing to strip.
    pub fn is_set(&self) -> bool {
        // Acquire pairs with the Release of `forget`: who finds it forgotten sees the new mode.
        self.state.load(Ordering::Acquire) & 1 != 0
    }

    /// To be called after mode or attributes have changed (chmod, setxattr, a refresh from a remote
    /// side), before that call returns.
    pub fn forget(&self) {
        // Clears the low bit and counts up. Release: who sees this asks, and sees the change. Relaxed
        // on failure: another change of the memo came first, nothing is done yet.
        let _ = self.state.fetch_update(Ordering::Release, Ordering::Relaxed, |state| {
            Some((state | 1).wrapping_add(1))
        });
    }

    /// What `remember` must be given: read before the question is asked.
    fn version(&self) -> u64 {
        // Acquire pairs with `forget`: the answers are at least as new as the version.
        self.state.load(Ordering::Acquire)
    }

    fn remember(&self, version: u64) {
        // Fails if it was forgotten since `version`: the answer may be old then. Relaxed: it hands
        // nothing over itself, and as a read-modify-write it continues what `forget` has released.
        let _ = self.state.compare_exchange(
            version & !1,
            version | 1,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }
}

impl Default for NosecMemo {
    fn default() -> Self {
        Self::new()
    }
}

/// Strips what a write must strip, then updates the times.
///
/// # Errors
/// Those of the inode. With NOWAIT, `EAGAIN` if something must be stripped or times be updated by a call
/// that may block; nothing has changed then.
#[doc(alias = "file_modified")]
pub fn modified(inode: &impl Inode, caller: Caller, how: Modify) -> Result<(), Errno> {
    let nowait = how.contains(Modify::NOWAIT);
    remove_privileges(inode, caller, how)?;
    if how.contains(Modify::NOCMTIME) {
        return Ok(());
    }
    match inode.time_update() {
        TimeUpdate::Unneeded => Ok(()),
        TimeUpdate::Blocking if nowait => Err(Errno::EAGAIN),
        TimeUpdate::Lazy | TimeUpdate::Blocking => inode.update_times(),
    }
}

/// The first half of [`modified`]: strips what a write, truncate or fallocate must strip.
///
/// # Errors
/// As [`modified`].
#[doc(alias = "file_remove_privs")]
pub fn remove_privileges(inode: &impl Inode, caller: Caller, how: Modify) -> Result<(), Errno> {
    let memo = inode.nosec_memo();
    if !inode.is_regular() || memo.is_some_and(NosecMemo::is_set) {
        return Ok(());
    }
    let mut question = Question::ask(inode, memo, caller)?;
    if !question.to_strip.is_empty() {
        if how.contains(Modify::NOWAIT) {
            return Err(Errno::EAGAIN);
        }
        inode.strip(question.to_strip)?;
        if memo.is_some() {
            // Stripping has changed the mode, so the memo has been forgotten; what is left now?
            question = Question::ask(inode, memo, caller)?;
        }
    }
    // Also when there was nothing to strip: without the memo every write would ask again.
    if let Some(memo) = memo
        && question.to_strip.is_empty()
        && !question.has_set_ids
    {
        memo.remember(question.version);
    }
    Ok(())
}

/// What an inode has to lose, and the version of its memo from before it was asked.
struct Question {
    version: u64,
    to_strip: Privileges,
    has_set_ids: bool,
}

impl Question {
    fn ask(
        inode: &impl Inode,
        memo: Option<&NosecMemo>,
        caller: Caller,
    ) -> Result<Question, Errno> {
        let version = memo.map_or(0, NosecMemo::version);
        let mode = inode.mode()?;
        let mut to_strip = set_ids_to_strip(mode, caller);
        if inode.security_xattr()? {
            to_strip |= Privileges::SECURITY_XATTR;
        }
        Ok(Question { version, to_strip, has_set_ids: has_set_ids(mode) })
    }
}

/// Linux' `setattr_should_drop_suidgid`.
fn set_ids_to_strip(mode: u32, caller: Caller) -> Privileges {
    let mut stripped = Privileges::empty();
    if mode & S_ISUID != 0 {
        stripped |= Privileges::SUID;
    }
    if mode & S_ISGID != 0 && (mode & S_IXGRP != 0 || !caller.in_group && !caller.may_keep_ids) {
        stripped |= Privileges::SGID;
    }
    if caller.may_keep_ids { Privileges::empty() } else { stripped }
}

/// Linux' `is_sxid`: set-group-id without group execute is a mark of mandatory locking, not a
/// privilege.
fn has_set_ids(mode: u32) -> bool {
    mode & S_ISUID != 0 || mode & (S_ISGID | S_IXGRP) == S_ISGID | S_IXGRP
}
