//! The protocol: takes requests apart, hands them to the server, and sends its answers.

use std::ffi::OsStr;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use fuser::*;
use rustix::fs::{self, AtFlags, Mode, SeekFrom, XattrFlags};

use crate::node::NodeRef;
use crate::reply::*;
use crate::server::{Change, Server, Writer};
use crate::sys::{self, OrErrno, Who};

/// The requests that are not here the kernel answers itself: permission checks (by mode and owner), locks,
/// positions, appends; or it tells the program that there is no such thing.
pub(crate) struct Fuse(pub(crate) Arc<Server>);

fn who(request: &Request) -> Who {
    Who { uid: request.uid(), gid: request.gid() }
}

/// For requests that do not say whether set-id bits may be kept.
fn writer(request: &Request) -> Writer {
    Writer { gid: request.gid(), may_keep_ids: request.uid() == 0 }
}

impl Filesystem for Fuse {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for wish in [
            // The server strips what a write must strip, and is told who may keep it. Without it the
            // kernel strips, by a SETATTR before the write.
            InitFlags::FUSE_HANDLE_KILLPRIV_V2,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
        ] {
            // An older kernel does without.
            let _ = config.add_capabilities(wish);
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let parent = self.0.nodes.get(parent);
        entry(reply, parent.and_then(|parent| self.0.look_up(&parent, name)));
    }

    fn forget(&self, _: &Request, number: INodeNo, lookups: u64) {
        self.0.nodes.forget(number, lookups);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        attributes(reply, self.0.nodes.get(number).and_then(|node| node.refresh()));
    }

    fn setattr(
        &self,
        request: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let change = Change { mode, uid, gid, size, accessed, modified };
        let handle = handle.map(u64::from);
        attributes(reply, self.0.set_attributes(writer(request), number, handle, change));
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        let target = self.0.nodes.get(number).and_then(|node| {
            fs::readlinkat(&*node, "", Vec::new()).or_errno().map(|target| target.into_bytes())
        });
        data(reply, target);
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let kind = fs::FileType::from_raw_mode(mode);
        let mode = Mode::from_raw_mode(mode);
        let made = self.0.make(who(request), parent, name, |parent| {
            fs::mknodat(parent, name, kind, mode, device.into())
        });
        entry(reply, made);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let mode = Mode::from_raw_mode(mode);
        let made =
            self.0.make(who(request), parent, name, |parent| fs::mkdirat(parent, name, mode));
        entry(reply, made);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let made =
            self.0.make(who(request), parent, name, |parent| fs::symlinkat(target, parent, name));
        entry(reply, made);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let parent = self.0.nodes.get(parent);
        let unlink = |parent: NodeRef| fs::unlinkat(&*parent, name, AtFlags::empty()).or_errno();
        empty(reply, parent.and_then(unlink));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let parent = self.0.nodes.get(parent);
        let remove = |parent: NodeRef| fs::unlinkat(&*parent, name, AtFlags::REMOVEDIR).or_errno();
        empty(reply, parent.and_then(remove));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let flags = fs::RenameFlags::from_bits_retain(flags.bits());
        let rename = || {
            let (old, new) = (self.0.nodes.get(parent)?, self.0.nodes.get(new_parent)?);
            fs::renameat_with(&*old, name, &*new, new_name, flags).or_errno()
        };
        empty(reply, rename());
    }

    fn link(&self, _: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(reply, self.0.link(number, parent, name));
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        opened(reply, self.0.open(number, flags));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        match self.0.create(who(request), parent, name, mode, OpenFlags(flags)) {
            Ok((made, handle)) => {
                let flags = FopenFlags::empty();
                reply.created(&trust(&made), &made, GENERATION, FileHandle(handle), flags);
            }
            Err(error) => reply.error(code(error)),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        data(reply, self.0.read(handle.0, offset, size));
    }

    fn write(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        flags: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let may_keep_ids = !flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        let writer = Writer { gid: request.gid(), may_keep_ids };
        written(reply, self.0.write(writer, handle.0, offset, data));
    }

    /// A program has closed a descriptor: of several of one file each is told.
    fn flush(&self, _: &Request, _: INodeNo, handle: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        empty(reply, self.0.flush(handle.0));
    }

    /// An open file is gone, with all its descriptors and mappings. Nobody waits for the answer.
    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        empty(reply, self.0.close(handle.0));
    }

    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, data: bool, reply: ReplyEmpty) {
        empty(reply, self.0.sync(handle.0, data));
    }

    fn opendir(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        opened(reply, self.0.open(number, flags));
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let read = self.0.read_directory(handle.0, offset, |directory, entry| {
            let number = INodeNo(entry.ino());
            // Gone since: not shown.
            let Some(kind) = sys::kind_of(&**directory, entry) else { return false };
            reply.add(number, entry.next_entry_cookie(), kind, sys::name_of(entry))
        });
        match read {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(code(error)),
        }
    }

    fn readdirplus(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let read = self.0.read_directory(handle.0, offset, |directory, entry| {
            let (name, next) = (sys::name_of(entry), entry.next_entry_cookie());
            // Of these two the kernel uses only the name, and counts no lookup.
            let is_dots = name == "." || name == "..";
            let found = if is_dots { directory.refresh() } else { self.0.look_up(directory, name) };
            // Gone since: not shown.
            let Ok(found) = found else { return false };
            let number = if is_dots { INodeNo(entry.ino()) } else { found.ino };
            let full = reply.add(number, next, name, &trust(&found), &found, GENERATION);
            if full && !is_dots {
                self.0.nodes.forget(number, 1);
            }
            full
        });
        match read {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(code(error)),
        }
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        empty(reply, self.0.close(handle.0));
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, handle: FileHandle, data: bool, reply: ReplyEmpty) {
        empty(reply, self.0.sync(handle.0, data));
    }

    fn statfs(&self, _: &Request, number: INodeNo, reply: ReplyStatfs) {
        match self.0.nodes.get(number).and_then(|node| fs::fstatvfs(&*node).or_errno()) {
            Ok(s) => reply.statfs(
                s.f_blocks,
                s.f_bfree,
                s.f_bavail,
                s.f_files,
                s.f_ffree,
                s.f_bsize as u32,
                s.f_namemax as u32,
                s.f_frsize as u32,
            ),
            Err(error) => reply.error(code(error)),
        }
    }

    fn setxattr(
        &self,
        _: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let flags = XattrFlags::from_bits_retain(flags as u32);
        let set = |place: BorrowedFd<'_>| {
            fs::setxattr(sys::proc_path(place), name, value, flags).or_errno()
        };
        empty(reply, self.0.nodes.get(number).and_then(|node| node.change(set)));
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, room: u32, reply: ReplyXattr) {
        let value = self.0.nodes.get(number).and_then(|node| {
            sys::read_attribute(|space| {
                fs::getxattr(sys::proc_path(&*node), name, space).map(|(value, _)| value.to_vec())
            })
        });
        attribute(reply, room, value);
    }

    fn listxattr(&self, _: &Request, number: INodeNo, room: u32, reply: ReplyXattr) {
        let names = self.0.nodes.get(number).and_then(|node| {
            sys::read_attribute(|space| {
                fs::listxattr(sys::proc_path(&*node), space).map(|(names, _)| names.to_vec())
            })
        });
        attribute(reply, room, names);
    }

    fn removexattr(&self, _: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let remove =
            |place: BorrowedFd<'_>| fs::removexattr(sys::proc_path(place), name).or_errno();
        empty(reply, self.0.nodes.get(number).and_then(|node| node.change(remove)));
    }

    fn fallocate(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let writer = writer(request);
        empty(reply, self.0.allocate(writer, handle.0, offset, length, mode as u32));
    }

    fn lseek(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        // Linux' SEEK_DATA and SEEK_HOLE: of all other positions the kernel knows itself.
        let to = match (whence, u64::try_from(offset)) {
            (3, Ok(offset)) => SeekFrom::Data(offset),
            (4, Ok(offset)) => SeekFrom::Hole(offset),
            _ => return reply.error(fuser::Errno::EINVAL),
        };
        match self.0.seek(handle.0, to) {
            Ok(position) => reply.offset(position as i64),
            Err(error) => reply.error(code(error)),
        }
    }

    fn copy_file_range(
        &self,
        request: &Request,
        _: INodeNo,
        from: FileHandle,
        from_offset: u64,
        _: INodeNo,
        to: FileHandle,
        to_offset: u64,
        length: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        // The answer is 32 bits wide.
        let length = length.min(u32::MAX.into()) as usize;
        let (from, to) = ((from.0, from_offset), (to.0, to_offset));
        written(reply, self.0.copy_range(writer(request), from, to, length));
    }
}
