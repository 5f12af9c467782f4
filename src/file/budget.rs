//! The system-wide maximum of files.

use core::fmt;

use alloc::sync::Arc;

use crate::error::Errno;
use crate::sync::{AtomicUsize, Ordering};

/// How many files may exist at once, over all the tables and processes that share the budget (Linux'
/// `file-max`). Beyond it opens fail with `ENFILE`.
///
/// Cheap: one compare-and-swap per open, one subtraction per release. Exact: it is never exceeded, not
/// even for a moment, and every path gives back what it took.
///
/// ```
/// use fdtable::Errno;
/// use fdtable::file::{AccessMode, Budget, File, OpenOptions};
///
/// let budget = Budget::new(1);
/// let options = OpenOptions::new(AccessMode::Read).budget(&budget);
/// let first = File::open("a", &options, |_| Ok(()))?;
/// assert_eq!(File::open("b", &options, |_| Ok(())).err(), Some(Errno::ENFILE));
/// drop(first);
/// assert_eq!(budget.used(), 0);
/// # Ok::<(), Errno>(())
/// ```
#[derive(Clone)]
pub struct Budget {
    counts: Arc<Counts>,
}

struct Counts {
    used: AtomicUsize,
    max: AtomicUsize,
}

impl Budget {
    /// A budget of `max` files.
    pub fn new(max: usize) -> Self {
        let counts = Counts { used: AtomicUsize::new(0), max: AtomicUsize::new(max) };
        Budget { counts: Arc::new(counts) }
    }

    /// How many files exist.
    pub fn used(&self) -> usize {
        // Relaxed: a statistic.
        self.counts.used.load(Ordering::Relaxed)
    }

    /// The maximum.
    pub fn max(&self) -> usize {
        self.counts.max.load(Ordering::Relaxed)
    }

    /// Changes the maximum. Files beyond a lowered one stay.
    pub fn set_max(&self, max: usize) {
        // Relaxed: one word, each open observes it once.
        self.counts.max.store(max, Ordering::Relaxed);
    }

    pub(super) fn take(&self) -> Result<Ticket, Errno> {
        let max = self.max();
        // Relaxed throughout: a count, nothing is reached through it. A compare-and-swap, so that the
        // maximum is not exceeded even for a moment, which would fail a third open wrongly.
        let mut used = self.counts.used.load(Ordering::Relaxed);
        loop {
            if used >= max {
                return Err(Errno::ENFILE);
            }
            match self.counts.used.compare_exchange_weak(
                used,
                used + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(Ticket { budget: self.clone() }),
                Err(seen) => used = seen,
            }
        }
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("used", &self.used()).field("max", &self.max()).finish()
    }
}

/// One file's share of a budget, given back when it is dropped.
pub(super) struct Ticket {
    budget: Budget,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.budget.counts.used.fetch_sub(1, Ordering::Relaxed);
    }
}
