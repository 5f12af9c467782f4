#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

#[cfg(not(target_pointer_width = "64"))]
compile_error!(
    "fdtable packs an address and a count into one 64-bit word: it needs a 64-bit target"
);

// In reading order: from the face down to the words.
mod error;
mod fd;
pub mod file;
mod files;
#[expect(unsafe_code, reason = "handles that are counted elsewhere, or not at all")]
mod handle;
mod iter;
mod limited;
mod options;
mod reservation;
mod sweep;
mod table;

#[expect(unsafe_code, reason = "the reference count in a file's block")]
mod block;
mod geometry;
mod groups;
mod numbers;
#[expect(unsafe_code, reason = "address-stable storage behind raw pointers")]
mod segments;
#[expect(unsafe_code, reason = "the reference count in a slot's word")]
mod slot;
mod slots;
mod snapshot;
mod states;
mod sync;
mod tree;

pub use block::OwnedRef;
pub use error::*;
pub use fd::{CloseRange, Fd, FdFlags, FdLike};
pub use files::*;
pub use handle::Ref;
pub use iter::{Entry, Iter};
pub use limited::Limited;
pub use options::{CloseHook, Options, TableId};
pub use reservation::{OwnedReservation, Reservation};
pub use table::FdTable;

#[cfg(traced)]
#[doc(hidden)]
pub use sync::traced;

#[doc = include_str!("design.md")]
pub mod design {}
