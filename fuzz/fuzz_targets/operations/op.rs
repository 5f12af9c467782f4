//! What a program can ask for, as the fuzzer makes it up.

use arbitrary::Arbitrary;

/// A number as a program may pass it; mostly where something happens.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Number {
    Small(u8),
    Border(i8),
    Any(i64),
}

impl Number {
    pub fn get(self) -> i64 {
        match self {
            Number::Small(number) => number.into(),
            Number::Border(offset) => 4096 + i64::from(offset),
            Number::Any(number) => number,
        }
    }
}

/// Which of several, modulo their number.
pub type Pick = u8;

#[derive(Arbitrary, Debug)]
pub struct Step {
    pub task: Pick,
    /// The caller's, if not the table's own.
    pub limit: Option<u16>,
    pub op: Op,
}

/// Flags are bits of an `FdFlags`.
#[derive(Arbitrary, Debug)]
pub enum Op {
    // Look
    Get(Number),
    Keep(Number),
    Forget(Pick),
    Observe,
    // Open
    Insert {
        flags: u8,
    },
    InsertFrom {
        min: Number,
        flags: u8,
    },
    InsertKept {
        kept: Pick,
        flags: u8,
    },
    ReserveIn {
        start: u32,
        length: u8,
        flags: u8,
    },
    /// How many, and the bits of those that are installed.
    ReserveMany {
        count: Pick,
        installed: u8,
        flags: u8,
    },
    ReserveOwned,
    Install {
        reservation: Pick,
        flags: u8,
    },
    Abandon {
        reservation: Pick,
    },
    // Duplicate
    Dup(Number),
    DupFrom {
        fd: Number,
        min: Number,
        flags: u8,
    },
    Dup2 {
        old: Number,
        new: Number,
    },
    Dup3 {
        old: Number,
        new: Number,
        flags: u8,
    },
    Replace {
        fd: Number,
        flags: u8,
    },
    Renumber {
        from: Number,
        to: Number,
    },
    // Close
    Remove(Number),
    Close(Number),
    CloseRange {
        first: u16,
        last: u16,
        to_the_end: bool,
        how: u8,
    },
    CloseOnExec,
    Clear,
    // Set
    SetFlags {
        fd: Number,
        flags: u8,
    },
    Limit(u16),
    Max(u16),
    ReserveCapacity(u16),
    // Tasks; `task` is the place of the new one, whose own table ends by this
    Share {
        task: Pick,
    },
    Fork {
        task: Pick,
    },
    Restore {
        task: Pick,
        items: Vec<(Number, u8)>,
    },
    Unshare,
    Exec,
    Exit,
}
