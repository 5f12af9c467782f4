//! Answers to the kernel: a result of the server's, as the protocol wants it.

use std::time::Duration;

use fdtable::Errno;
use fuser::*;

/// How long the kernel may believe what it is told: what is changed directly in the source is seen
/// after that. Never for set-id bits, which a write takes away without the kernel being told.
pub(crate) fn trust(attributes: &FileAttr) -> Duration {
    if attributes.perm & 0o6000 == 0 { Duration::from_secs(1) } else { Duration::ZERO }
}

/// A number that is used again while the kernel knows it would need another; here a node holds on to its
/// number.
pub(crate) const GENERATION: Generation = Generation(0);

pub(crate) fn code(error: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(error.get())
}

pub(crate) fn empty(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(code(error)),
    }
}

pub(crate) fn entry(reply: ReplyEntry, result: Result<FileAttr, Errno>) {
    match result {
        Ok(found) => reply.entry(&trust(&found), &found, GENERATION),
        Err(error) => reply.error(code(error)),
    }
}

pub(crate) fn attributes(reply: ReplyAttr, result: Result<FileAttr, Errno>) {
    match result {
        Ok(found) => reply.attr(&trust(&found), &found),
        Err(error) => reply.error(code(error)),
    }
}

pub(crate) fn opened(reply: ReplyOpen, result: Result<u64, Errno>) {
    match result {
        Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
        Err(error) => reply.error(code(error)),
    }
}

pub(crate) fn data(reply: ReplyData, result: Result<Vec<u8>, Errno>) {
    match result {
        Ok(data) => reply.data(&data),
        Err(error) => reply.error(code(error)),
    }
}

pub(crate) fn written(reply: ReplyWrite, result: Result<usize, Errno>) {
    match result {
        Ok(size) => reply.written(size as u32),
        Err(error) => reply.error(code(error)),
    }
}

/// With a room of 0 the question is how much there is.
pub(crate) fn attribute(reply: ReplyXattr, room: u32, result: Result<Vec<u8>, Errno>) {
    match result {
        Ok(value) if room == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > room as usize => reply.error(fuser::Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(error) => reply.error(code(error)),
    }
}
