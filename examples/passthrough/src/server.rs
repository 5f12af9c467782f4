//! The file system: what each request does to the nodes, the table and the host.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::path::Path;

use fdtable::file::{Budget, Caller, Modify, remove_privileges};
use fdtable::{Errno, FdFlags, FdTable, Ref};
use fuser::{FileAttr, INodeNo, OpenFlags, TimeOrNow};
use rustix::fs::{
    self, AtFlags, FallocateFlags, Gid, Mode, OFlags, RawDir, RawDirEntry, SeekFrom, Uid,
};

use crate::counts::COUNTS;
use crate::node::{Node, NodeRef, Nodes};
use crate::open::{OpenFile, OpenFiles, Opened, host_flags, options};
use crate::stop::Stop;
use crate::sys::{self, OrErrno, Who};

pub(crate) struct Server {
    pub(crate) nodes: Nodes,
    pub(crate) files: OpenFiles,
    budget: Budget,
    stop: Stop,
}

/// What a SETATTR asks for.
pub(crate) struct Change {
    pub(crate) mode: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) size: Option<u64>,
    pub(crate) accessed: Option<TimeOrNow>,
    pub(crate) modified: Option<TimeOrNow>,
}

impl Server {
    /// The table is one without the flush hook of [`File::table_options`]. The descriptors that programs
    /// close are in the kernel's tables, and of each the kernel tells by a FLUSH, which is answered by the
    /// file's flush; a number of this table is an open file of the kernel's, and is closed when that is
    /// gone. With the hook every file would be flushed once more then.
    pub(crate) fn new(source: &Path, max_files: usize, stop: Stop) -> Result<Server, Errno> {
        let (nodes, budget) = (Nodes::new(source)?, Budget::new(max_files));
        Ok(Server { nodes, files: FdTable::new(), budget, stop })
    }

    // Open files

    /// The number first, then the budget, then the host's open: an error of one leaves nothing of the
    /// others. The node's reference is the file's from here on.
    pub(crate) fn open(&self, number: INodeNo, flags: OpenFlags) -> Result<u64, Errno> {
        let node = self.nodes.get(number)?;
        let options = options(flags).budget(&self.budget);
        let hook = |node: &NodeRef| Opened::open(node, flags);
        Ok(self.files.open_file(node, &options, FdFlags::empty(), hook)?.into())
    }

    /// As [`open`](Self::open), but the path reference exists only once the host has made the file.
    pub(crate) fn create(
        &self,
        who: Who,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        flags: OpenFlags,
    ) -> Result<(FileAttr, u64), Errno> {
        let parent = self.nodes.get(parent)?;
        let passed_on = OFlags::from_bits_retain(flags.0 as u32) & (OFlags::EXCL | OFlags::TRUNC);
        let creating = OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (host_flags, mode) =
            (host_flags(flags) | passed_on | creating, Mode::from_raw_mode(mode));
        let options = options(flags).budget(&self.budget);
        let mut made = None;
        let handle = self.files.create_file(&options, FdFlags::empty(), || {
            let open = || fs::openat(&*parent, name, host_flags, mode);
            let host = sys::make_as(who, open).or_errno()?;
            let (node, attributes) = self.nodes.look_up(sys::reopen(&host, OFlags::PATH)?)?;
            made = Some(attributes);
            Ok((node, Opened::new(host)))
        })?;
        Ok((made.ok_or(Errno::EIO)?, handle.into()))
    }

    pub(crate) fn read(&self, handle: u64, offset: u64, size: u32) -> Result<Vec<u8>, Errno> {
        let file = self.files.get_readable(handle)?;
        sys::read_at(opened(&file)?, offset, size as usize)
    }

    pub(crate) fn write(
        &self,
        writer: Writer,
        handle: u64,
        offset: u64,
        data: &[u8],
    ) -> Result<usize, Errno> {
        let file = self.files.get_writable(handle)?;
        COUNTS.writes.add_one();
        file.modified(writer.caller(file.path()), Modify::empty())?;
        rustix::io::pwrite(opened(&file)?, data, offset).or_errno()
    }

    pub(crate) fn flush(&self, handle: u64) -> Result<(), Errno> {
        let file = self.files.get_file(handle)?;
        file.flush(self.files.id())
    }

    /// RELEASE and RELEASEDIR, once per open. The drop of the file's last reference releases it: here, or
    /// in a request that still uses it.
    pub(crate) fn close(&self, handle: u64) -> Result<(), Errno> {
        let closed = self.files.close(handle);
        self.stop.something_closed();
        Ok(closed?)
    }

    pub(crate) fn sync(&self, handle: u64, data_only: bool) -> Result<(), Errno> {
        let file = self.files.get_file(handle)?;
        let host = opened(&file)?;
        if data_only { fs::fdatasync(host).or_errno() } else { fs::fsync(host).or_errno() }
    }

    /// Calls `add` for each entry from `offset` on, until it says that there is no room.
    pub(crate) fn read_directory(
        &self,
        handle: u64,
        offset: u64,
        mut add: impl FnMut(&NodeRef, &RawDirEntry<'_>) -> bool,
    ) -> Result<(), Errno> {
        let file = self.files.get_readable(handle)?;
        let host = opened(&file)?;
        // The host's stream has one position, which is the file's: one reader at a time.
        let mut position = file.lock_position();
        *position = fs::seek(host, SeekFrom::Start(offset)).or_errno()?;
        let mut buffer = [MaybeUninit::uninit(); 1 << 14];
        let mut entries = RawDir::new(host, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry.or_errno()?;
            if add(file.path(), &entry) {
                break;
            }
            *position = entry.next_entry_cookie();
        }
        Ok(())
    }

    pub(crate) fn allocate(
        &self,
        writer: Writer,
        handle: u64,
        offset: u64,
        length: u64,
        mode: u32,
    ) -> Result<(), Errno> {
        let file = self.files.get_writable(handle)?;
        file.modified(writer.caller(file.path()), Modify::empty())?;
        let mode = FallocateFlags::from_bits_retain(mode);
        fs::fallocate(opened(&file)?, mode, offset, length).or_errno()
    }

    pub(crate) fn copy_range(
        &self,
        writer: Writer,
        (from, mut from_offset): (u64, u64),
        (to, mut to_offset): (u64, u64),
        length: usize,
    ) -> Result<usize, Errno> {
        let (from, to) = (self.files.get_readable(from)?, self.files.get_writable(to)?);
        to.modified(writer.caller(to.path()), Modify::empty())?;
        let (from, to) = (opened(&from)?, opened(&to)?);
        fs::copy_file_range(from, Some(&mut from_offset), to, Some(&mut to_offset), length)
            .or_errno()
    }

    /// Finds data or holes; nothing else of a seek is the server's.
    pub(crate) fn seek(&self, handle: u64, to: SeekFrom) -> Result<u64, Errno> {
        let file = self.files.get_file(handle)?;
        fs::seek(opened(&file)?, to).or_errno()
    }

    // Nodes

    /// Finds an entry, and counts that the kernel knows it.
    pub(crate) fn look_up(&self, parent: &Node, name: &OsStr) -> Result<FileAttr, Errno> {
        Ok(self.nodes.look_up(sys::find(parent, name)?)?.1)
    }

    pub(crate) fn set_attributes(
        &self,
        writer: Writer,
        number: INodeNo,
        handle: Option<u64>,
        change: Change,
    ) -> Result<FileAttr, Errno> {
        let node = self.nodes.get(number)?;
        if let Some(mode) = change.mode {
            node.set_mode(mode)?;
        }
        if change.uid.is_some() || change.gid.is_some() {
            let (uid, gid) = (change.uid.map(Uid::from_raw), change.gid.map(Gid::from_raw));
            // The host strips set-id bits by itself.
            node.change(|place| fs::chownat(place, "", uid, gid, AtFlags::EMPTY_PATH).or_errno())?;
        }
        if let Some(size) = change.size {
            remove_privileges(&*node, writer.caller(&node), Modify::empty())?;
            match handle {
                Some(handle) => {
                    let file = self.files.get_writable(handle)?;
                    fs::ftruncate(opened(&file)?, size).or_errno()?;
                }
                None => fs::ftruncate(sys::reopen(&*node, OFlags::WRONLY)?, size).or_errno()?,
            }
        }
        if change.accessed.is_some() || change.modified.is_some() {
            let times = sys::times(change.accessed, change.modified);
            node.change(|place| fs::utimensat(place, "", &times, AtFlags::EMPTY_PATH).or_errno())?;
        }
        node.refresh()
    }

    /// What is made by `make` belongs to the caller; then finds it.
    pub(crate) fn make(
        &self,
        who: Who,
        parent: INodeNo,
        name: &OsStr,
        make: impl FnOnce(&Node) -> rustix::io::Result<()>,
    ) -> Result<FileAttr, Errno> {
        let parent = self.nodes.get(parent)?;
        sys::make_as(who, || make(&parent)).or_errno()?;
        self.look_up(&parent, name)
    }

    pub(crate) fn link(
        &self,
        number: INodeNo,
        parent: INodeNo,
        name: &OsStr,
    ) -> Result<FileAttr, Errno> {
        let (node, parent) = (self.nodes.get(number)?, self.nodes.get(parent)?);
        let old = sys::proc_path(&*node);
        fs::linkat(fs::CWD, old, &*parent, name, AtFlags::SYMLINK_FOLLOW).or_errno()?;
        self.look_up(&parent, name)
    }
}

/// The operations; a table without O_PATH files has them always.
fn opened<'f>(file: &'f Ref<'_, OpenFile>) -> Result<&'f Opened, Errno> {
    Ok(file.ops()?)
}

/// Who writes, as far as a request tells.
#[derive(Clone, Copy)]
pub(crate) struct Writer {
    pub(crate) gid: u32,
    /// That it may keep set-id bits: the kernel has looked at its capabilities.
    pub(crate) may_keep_ids: bool,
}

impl Writer {
    fn caller(self, node: &Node) -> Caller {
        Caller { may_keep_ids: self.may_keep_ids, in_group: node.is_in_group(self.gid) }
    }
}
