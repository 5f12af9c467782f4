//! What has happened, for the report at the end.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// One server per process, so one of these.
pub(crate) static COUNTS: Counts = Counts {
    opened: Counter::new(),
    flushed: Counter::new(),
    never_flushed: Counter::new(),
    released: Counter::new(),
    writes: Counter::new(),
    privileges_asked: Counter::new(),
};

pub(crate) struct Counts {
    /// Files and directories that were opened.
    pub(crate) opened: Counter,
    /// Flushes: one for each descriptor of a program that was closed.
    pub(crate) flushed: Counter,
    /// Regular files that were released without one.
    pub(crate) never_flushed: Counter,
    pub(crate) released: Counter,
    pub(crate) writes: Counter,
    /// How often a write asked what it must strip.
    pub(crate) privileges_asked: Counter,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { opened, flushed, never_flushed, released, writes, privileges_asked } = self;
        writeln!(f, "opened: {opened}")?;
        writeln!(f, "flushed: {flushed}")?;
        writeln!(f, "released: {released}")?;
        writeln!(f, "released without a flush: {never_flushed}")?;
        writeln!(f, "writes: {writes}")?;
        writeln!(f, "privileges asked: {privileges_asked}")
    }
}

/// Relaxed: a statistic, read when the threads that count are gone.
pub(crate) struct Counter(AtomicU64);

impl Counter {
    const fn new() -> Counter {
        Counter(AtomicU64::new(0))
    }

    pub(crate) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.load(Ordering::Relaxed).fmt(f)
    }
}
