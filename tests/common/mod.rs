//! A file for tests: it counts, and notices when it is looked at or dropped once it is gone.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use fdtable::{Errno, FdFlags, TableId};

pub(crate) const NONE: FdFlags = FdFlags::empty();

const ALIVE: u32 = 0xa11_0e11;
const GONE: u32 = 0xdead_f11e;

/// What has happened to a group of files. Relaxed throughout: the counts are to be read once the
/// threads are joined, and must not order what is tested.
#[derive(Default)]
pub(crate) struct Ledger {
    made: AtomicUsize,
    flushed: AtomicUsize,
    dropped: AtomicUsize,
}

impl Ledger {
    pub(crate) fn new() -> Arc<Ledger> {
        Arc::default()
    }

    pub(crate) fn file(self: &Arc<Self>, name: u32) -> File {
        self.made.fetch_add(1, Relaxed);
        File { name, mark: AtomicU32::new(ALIVE), ledger: Arc::clone(self) }
    }

    /// How many files exist.
    pub(crate) fn live(&self) -> usize {
        self.made.load(Relaxed) - self.dropped.load(Relaxed)
    }

    /// How many fds were flushed, by [`flush`].
    pub(crate) fn flushed(&self) -> usize {
        self.flushed.load(Relaxed)
    }
}

pub(crate) struct File {
    name: u32,
    mark: AtomicU32,
    ledger: Arc<Ledger>,
}

impl File {
    pub(crate) fn name(&self) -> u32 {
        assert_eq!(self.mark.load(Relaxed), ALIVE, "a file was used after its drop");
        self.name
    }
}

impl Drop for File {
    fn drop(&mut self) {
        assert_eq!(self.mark.swap(GONE, Relaxed), ALIVE, "a file was dropped twice");
        self.ledger.dropped.fetch_add(1, Relaxed);
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {}", self.name())
    }
}

/// The flush hook that counts.
pub(crate) fn flush(file: &File, _: TableId) -> Result<(), Errno> {
    // By its name, to notice a file that is gone.
    let _ = file.name();
    file.ledger.flushed.fetch_add(1, Relaxed);
    Ok(())
}
