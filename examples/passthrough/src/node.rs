//! Nodes: the host's inodes that the kernel knows by number, and the path reference that opens consume.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use fdtable::Errno;
use fdtable::file::{HasInode, Inode, NosecMemo, Privileges, S_ISGID, S_ISUID};
use fuser::{FileAttr, INodeNo};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};

use crate::counts::COUNTS;
use crate::sys::{self, OrErrno};

/// What a write may take away from a file besides set-id bits.
const SECURITY_XATTR: &str = "security.capability";

/// An inode of the host's, held by a descriptor that only stands for its place: it stays, and keeps its
/// number, while the node exists.
pub(crate) struct Node {
    number: u64,
    kind: FileType,
    place: OwnedFd,
    group: AtomicU32,
    /// That a write has nothing to strip. All changes of mode and attributes come through
    /// [`change`](Node::change); those that are made behind the mount's back are noticed, as in Linux'
    /// own client, when the attributes are read anew.
    nosec: NosecMemo,
}

impl Node {
    pub(crate) fn is_directory(&self) -> bool {
        self.kind == FileType::Directory
    }

    /// The attributes as they are now, for the kernel.
    pub(crate) fn refresh(&self) -> Result<FileAttr, Errno> {
        self.learn(&self.stat()?)
    }

    /// What the kernel is told, the node must know: it may be news.
    fn learn(&self, stat: &Stat) -> Result<FileAttr, Errno> {
        // Relaxed: a number.
        self.group.store(stat.st_gid, Ordering::Relaxed);
        self.nosec.forget();
        sys::attributes(self.number, stat)
    }

    /// For whatever changes what a write looks at.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(BorrowedFd<'_>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let changed = change(self.place.as_fd());
        self.nosec.forget();
        changed
    }

    pub(crate) fn set_mode(&self, mode: u32) -> Result<(), Errno> {
        self.change(|place| {
            let mode = Mode::from_raw_mode(mode);
            fs::chmodat(fs::CWD, sys::proc_path(place), mode, AtFlags::empty()).or_errno()
        })
    }

    /// Whether the file is in this group, without a call for every write.
    pub(crate) fn is_in_group(&self, gid: u32) -> bool {
        self.group.load(Ordering::Relaxed) == gid
    }

    fn stat(&self) -> Result<Stat, Errno> {
        fs::fstat(&self.place).or_errno()
    }
}

impl AsFd for Node {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.place.as_fd()
    }
}

/// What a write strips. Nothing about times: the host updates them when it is written to.
///
/// The kernel holds the inode's lock over a write and over a change of the mode, so the mode that is
/// read here is still the file's when it is set.
impl Inode for Node {
    fn is_regular(&self) -> bool {
        self.kind == FileType::RegularFile
    }

    fn mode(&self) -> Result<u32, Errno> {
        COUNTS.privileges_asked.add_one();
        Ok(self.stat()?.st_mode)
    }

    fn security_xattr(&self) -> Result<bool, Errno> {
        match fs::getxattr_query(sys::proc_path(&self.place), SECURITY_XATTR) {
            Ok(_) => Ok(true),
            Err(rustix::io::Errno::NODATA | rustix::io::Errno::NOTSUP) => Ok(false),
            Err(error) => Err(error).or_errno(),
        }
    }

    fn strip(&self, privileges: Privileges) -> Result<(), Errno> {
        let mut gone = 0;
        if privileges.contains(Privileges::SUID) {
            gone |= S_ISUID;
        }
        if privileges.contains(Privileges::SGID) {
            gone |= S_ISGID;
        }
        if gone != 0 {
            self.set_mode(self.stat()?.st_mode & 0o7777 & !gone)?;
        }
        if privileges.contains(Privileges::SECURITY_XATTR) {
            self.change(|place| fs::removexattr(sys::proc_path(place), SECURITY_XATTR).or_errno())?;
        }
        Ok(())
    }

    fn nosec_memo(&self) -> Option<&NosecMemo> {
        Some(&self.nosec)
    }
}

/// A path reference: what an open consumes and a file owns. Counted, so one word.
#[derive(Clone)]
pub(crate) struct NodeRef(Arc<Node>);

impl Deref for NodeRef {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.0
    }
}

impl HasInode for NodeRef {
    type Inode = Node;

    fn inode(&self) -> &Node {
        self
    }
}

/// The nodes that the kernel knows, by number. It counts its lookups of each, and forgets some or all of
/// them later; what is open lives on by its own reference.
pub(crate) struct Nodes {
    /// The device and number of the source directory, which the kernel calls 1.
    root: (u64, u64),
    known: Mutex<HashMap<u64, Known>>,
}

struct Known {
    node: NodeRef,
    lookups: u64,
}

impl Nodes {
    /// With the source directory, which is never forgotten.
    pub(crate) fn new(source: &Path) -> Result<Nodes, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let place = fs::open(source, flags, Mode::empty()).or_errno()?;
        let stat = fs::fstat(&place).or_errno()?;
        let nodes = Nodes { root: (stat.st_dev, stat.st_ino), known: Mutex::new(HashMap::new()) };
        nodes.look_up(place)?;
        Ok(nodes)
    }

    /// A number that the kernel knows.
    pub(crate) fn get(&self, number: INodeNo) -> Result<NodeRef, Errno> {
        // An ESTALE of ours would hide a mistake: the kernel uses no number that it has forgotten.
        self.known().get(&number.0).map(|known| known.node.clone()).ok_or(Errno::EIO)
    }

    /// The node of this place, whose number the kernel is about to be told: one lookup more.
    pub(crate) fn look_up(&self, place: OwnedFd) -> Result<(NodeRef, FileAttr), Errno> {
        let stat = fs::fstat(&place).or_errno()?;
        let (device, host_number) = self.root;
        if stat.st_dev != device {
            // Numbers are unique per device: what is mounted inside the source is not shown.
            return Err(Errno::new(rustix::io::Errno::XDEV.raw_os_error()));
        }
        let number = if stat.st_ino == host_number { INodeNo::ROOT.0 } else { stat.st_ino };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let mut known = self.known();
        let known = known.entry(number).or_insert_with(|| {
            let (group, nosec) = (AtomicU32::new(stat.st_gid), NosecMemo::new());
            let node = Node { number, kind, place, group, nosec };
            Known { node: NodeRef(Arc::new(node)), lookups: 0 }
        });
        let attributes = known.node.learn(&stat)?;
        known.lookups += 1;
        Ok((known.node.clone(), attributes))
    }

    /// The kernel forgets some of its lookups of a node.
    pub(crate) fn forget(&self, number: INodeNo, lookups: u64) {
        let mut known = self.known();
        if let Entry::Occupied(mut entry) = known.entry(number.0) {
            let left = entry.get().lookups.saturating_sub(lookups);
            entry.get_mut().lookups = left;
            if left == 0 && number != INodeNo::ROOT {
                entry.remove();
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<u64, Known>> {
        self.known.lock().expect("no panic under the lock")
    }
}
