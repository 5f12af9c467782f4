//! Open files and directories: what the table holds.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use fdtable::file::{AccessMode, File, FileOps, OpenOptions, StatusFlags};
use fdtable::{Errno, FdTable, TableId};
use fuser::{OpenAccMode, OpenFlags};
use rustix::fs::OFlags;

use crate::counts::COUNTS;
use crate::node::NodeRef;
use crate::sys;

pub(crate) type OpenFile = File<NodeRef, Opened>;

/// A number of this table is an open file of the kernel's, which it calls its handle.
pub(crate) type OpenFiles = FdTable<OpenFile>;

/// What an open file needs of its own: the host's. Enough for all kinds, because the host tells them
/// apart; a runtime with kinds of its own would put `Box<dyn Trait>` here.
pub(crate) struct Opened {
    host: OwnedFd,
    flushed: AtomicBool,
}

impl Opened {
    /// The open hook.
    pub(crate) fn open(node: &NodeRef, flags: OpenFlags) -> Result<Opened, Errno> {
        Ok(Opened::new(sys::reopen(&**node, host_flags(flags))?))
    }

    pub(crate) fn new(host: OwnedFd) -> Opened {
        COUNTS.opened.add_one();
        Opened { host, flushed: AtomicBool::new(false) }
    }
}

impl AsFd for Opened {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.host.as_fd()
    }
}

impl FileOps<NodeRef> for Opened {
    /// A program has closed one of its descriptors. Its locks are with the kernel, not here; what is left
    /// is the host's own flush.
    fn flush(&self, _: &NodeRef, _: TableId) -> Result<(), Errno> {
        COUNTS.flushed.add_one();
        self.flushed.store(true, Ordering::Relaxed);
        sys::flush(self)
    }

    /// The last descriptor, mapping and request are gone. The host's file is closed by the drop that
    /// follows, the node by the one after that.
    fn release(&mut self, node: &NodeRef) {
        COUNTS.released.add_one();
        if !*self.flushed.get_mut() && !node.is_directory() {
            COUNTS.never_flushed.add_one();
        }
    }
}

/// How the file layer opens what the kernel asks for.
pub(crate) fn options(flags: OpenFlags) -> OpenOptions {
    let mode = AccessMode::from_linux(flags.0 as u32);
    OpenOptions::new(mode).status(StatusFlags::from_linux(flags.0 as u32))
}

/// How the host opens it: for the same access, and nothing else. Where an append goes, and what a direct
/// read goes past, is with the kernel: each of its requests says where.
pub(crate) fn host_flags(flags: OpenFlags) -> OFlags {
    match flags.acc_mode() {
        OpenAccMode::O_RDONLY => OFlags::RDONLY,
        OpenAccMode::O_WRONLY => OFlags::WRONLY,
        OpenAccMode::O_RDWR => OFlags::RDWR,
    }
}
