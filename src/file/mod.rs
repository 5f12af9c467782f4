#![doc = include_str!("guide.md")]

mod budget;
mod open;
mod ops;
mod position;
mod privileges;
mod queue;

pub use budget::Budget;
pub use open::{AccessMode, File, HasInode, OpenOptions, Positioned, StatusFlags};
pub use ops::FileOps;
pub use position::PositionGuard;
pub use privileges::{
    Caller, Inode, Modify, NosecMemo, Privileges, S_ISGID, S_ISUID, S_IXGRP, TimeUpdate, modified,
    remove_privileges,
};
pub use queue::DeferredQueue;
