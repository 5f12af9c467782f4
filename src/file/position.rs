//! The file position, shared by all duplicates of an fd.

use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::sync::{AtomicU64, Guard, Mutex, Ordering};

pub(super) struct Position {
    value: AtomicU64,
    lock: Mutex<()>,
}

impl Position {
    pub(super) fn new() -> Self {
        Position { value: AtomicU64::new(0), lock: Mutex::new(()) }
    }

    pub(super) fn get(&self) -> u64 {
        // Relaxed: a number; what orders accesses to it is the lock, or the caller's exclusiveness.
        self.value.load(Ordering::Relaxed)
    }

    pub(super) fn lock(&self) -> PositionGuard<'_> {
        let lock = Some(self.lock.lock());
        PositionGuard { value: self.get(), position: self, lock }
    }

    /// Without the lock, for a caller that nobody shares the position with.
    pub(super) fn assume_exclusive(&self) -> PositionGuard<'_> {
        PositionGuard { value: self.get(), position: self, lock: None }
    }
}

/// The position of a file, to be read and moved by one system call; written back when it is dropped.
///
/// While it exists other calls that move the position wait, as POSIX asks of `read` and `write`.
pub struct PositionGuard<'f> {
    value: u64,
    position: &'f Position,
    lock: Option<Guard<'f, ()>>,
}

impl PositionGuard<'_> {
    /// Whether the lock had to be taken, because somebody else can reach the position.
    pub fn is_locked(&self) -> bool {
        self.lock.is_some()
    }
}

impl Deref for PositionGuard<'_> {
    type Target = u64;

    fn deref(&self) -> &u64 {
        &self.value
    }
}

impl DerefMut for PositionGuard<'_> {
    fn deref_mut(&mut self) -> &mut u64 {
        &mut self.value
    }
}

impl Drop for PositionGuard<'_> {
    fn drop(&mut self) {
        // Relaxed: the lock, dropped after this, publishes it.
        self.position.value.store(self.value, Ordering::Relaxed);
    }
}

impl fmt::Debug for PositionGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PositionGuard").field(&self.value).finish()
    }
}
