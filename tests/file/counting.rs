//! A path reference that counts its clones and drops, and operations that keep a log.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fdtable::file::{AccessMode, File, FileOps, OpenOptions};
use fdtable::{Errno, FdTable, Options, TableId};

/// What a path reference leads to.
#[derive(Default)]
pub(crate) struct Place {
    clones: AtomicUsize,
    drops: AtomicUsize,
    /// Releases and flushes of its files, drops of its paths, in order.
    log: Mutex<Vec<String>>,
}

impl Place {
    pub(crate) fn clones(&self) -> usize {
        self.clones.load(Ordering::Relaxed)
    }

    pub(crate) fn drops(&self) -> usize {
        self.drops.load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self, what: impl Into<String>) {
        self.log.lock().unwrap().push(what.into());
    }

    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().unwrap())
    }
}

pub(crate) struct Path(pub(crate) Arc<Place>);

impl Path {
    /// The one reference that a test starts with. Not counted as a clone.
    pub(crate) fn to(place: &Arc<Place>) -> Path {
        Path(Arc::clone(place))
    }
}

impl Clone for Path {
    fn clone(&self) -> Self {
        self.0.clones.fetch_add(1, Ordering::Relaxed);
        Path(Arc::clone(&self.0))
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.0.drops.fetch_add(1, Ordering::Relaxed);
        self.0.note("path");
    }
}

/// Operations with a name, which they log with.
pub(crate) struct Ops(pub(crate) &'static str);

impl FileOps<Path> for Ops {
    fn flush(&self, path: &Path, table: TableId) -> Result<(), Errno> {
        path.0.note(format!("flush {} in {}", self.0, table.get()));
        match self.0 {
            "flush fails" => Err(Errno::EIO),
            "flush panics" => panic!("planned"),
            _ => Ok(()),
        }
    }

    fn release(&mut self, path: &Path) {
        path.0.note(format!("release {}", self.0));
        assert_ne!(self.0, "release panics");
    }
}

pub(crate) type TestFile = File<Path, Ops>;

pub(crate) fn options() -> Options<TestFile> {
    TestFile::table_options()
}

pub(crate) fn table() -> FdTable<TestFile> {
    options().build()
}

pub(crate) fn read_write() -> OpenOptions {
    OpenOptions::new(AccessMode::ReadWrite)
}

/// A file on its own place.
pub(crate) fn file(name: &'static str) -> (TestFile, Arc<Place>) {
    let place = Arc::default();
    let file = TestFile::open(Path::to(&place), &read_write(), |_| Ok(Ops(name))).unwrap();
    (file, place)
}

pub(crate) fn flush(name: &str, table: TableId) -> String {
    format!("flush {name} in {}", table.get())
}
