//! What is compared with what. The first candidate of a group is its reference.

mod bare;
mod churn;
mod lookup;
mod readers;
mod threads;
mod whole;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fdtable::FdFlags;

use crate::rounds::Candidate;

pub(crate) const NONE: FdFlags = FdFlags::empty();

/// The clone and drop of a known `Arc`: the two read-modify-writes that any counted handle needs.
pub(crate) const REFERENCE: &str = "Arc clone + drop";

/// A group is made when its turn comes, and dropped before the next one's.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    /// How many threads run at once.
    threads: usize,
    pub(crate) make: fn() -> Vec<Candidate>,
}

/// The groups that this machine has the processors for, and at least those with two threads; in the order in which
/// they are run.
pub(crate) fn all() -> impl Iterator<Item = &'static Group> {
    let processors = std::thread::available_parallelism().map_or(2, |processors| processors.get());
    ALL.iter().filter(move |group| group.threads <= processors.max(2))
}

const ALL: &[Group] = &[
    Group { name: "lookup, one fd", threads: 1, make: lookup::hot },
    Group { name: "lookup, random of 64", threads: 1, make: lookup::random_of::<64> },
    Group { name: "lookup, random of 100 000", threads: 1, make: lookup::random_of::<100_000> },
    Group { name: "two threads, same fd", threads: 2, make: threads::same::<2> },
    Group { name: "two threads, neighbouring fds", threads: 2, make: threads::neighbours::<2> },
    Group { name: "two threads, far fds", threads: 2, make: threads::far::<2> },
    Group { name: "4 threads, same fd", threads: 4, make: threads::same::<4> },
    Group { name: "4 threads, far fds", threads: 4, make: threads::far::<4> },
    Group { name: "8 threads, same fd", threads: 8, make: threads::same::<8> },
    Group { name: "8 threads, far fds", threads: 8, make: threads::far::<8> },
    Group { name: "16 threads, same fd", threads: 16, make: threads::same::<16> },
    Group { name: "16 threads, far fds", threads: 16, make: threads::far::<16> },
    Group { name: "32 threads, same fd", threads: 32, make: threads::same::<32> },
    Group { name: "32 threads, far fds", threads: 32, make: threads::far::<32> },
    Group { name: "64 threads, same fd", threads: 64, make: threads::same::<64> },
    Group { name: "64 threads, far fds", threads: 64, make: threads::far::<64> },
    Group { name: "lookup beside a churner, same line", threads: 2, make: threads::beside::<7> },
    Group { name: "lookup beside a churner, next fd", threads: 2, make: threads::beside::<1> },
    Group { name: "lookup beside a churner, same fd", threads: 2, make: threads::beside::<0> },
    Group { name: "two threads, insert + close", threads: 2, make: threads::churn::<3> },
    Group {
        name: "two threads, insert + close, 1 000 open",
        threads: 2,
        make: threads::churn::<1_000>,
    },
    Group { name: "insert + close, ready file", threads: 1, make: churn::ready },
    Group { name: "insert + close, fresh file", threads: 1, make: churn::fresh },
    Group { name: "insert + close, 1 000 open", threads: 1, make: churn::among::<1_000> },
    Group { name: "insert + close, 100 000 open", threads: 1, make: churn::among::<100_000> },
    Group { name: "insert + close, 1 000 000 open", threads: 1, make: churn::among::<1_000_000> },
    Group { name: "reserve + install + close", threads: 1, make: churn::reserve },
    Group { name: "two reserved, installed, closed", threads: 1, make: churn::pair },
    Group { name: "dup + close", threads: 1, make: churn::dup },
    Group { name: "dup2 over an open fd", threads: 1, make: churn::dup2 },
    Group { name: "insert + close, 1 live reader thread", threads: 1, make: readers::living::<1> },
    Group { name: "insert + close, 8 live reader threads", threads: 1, make: readers::living::<8> },
    Group {
        name: "insert + close, 64 live reader threads",
        threads: 1,
        make: readers::living::<64>,
    },
    Group {
        name: "insert + close, 512 live reader threads",
        threads: 1,
        make: readers::living::<512>,
    },
    Group { name: "close_range, per fd", threads: 1, make: whole::close_range },
    Group { name: "close_range of nothing, per call", threads: 1, make: whole::close_nothing },
    Group { name: "fork of 64 + drop, per fd", threads: 1, make: whole::fork::<64> },
    Group { name: "fork of 1 000 + drop, per fd", threads: 1, make: whole::fork::<1_000> },
    Group { name: "fork of 100 000 + drop, per fd", threads: 1, make: whole::fork::<100_000> },
    Group { name: "exec sweep of 1 000, per fd", threads: 1, make: whole::exec },
    Group { name: "a new table + drop", threads: 1, make: whole::create },
];

/// What there is for scale in each group: the reference, one read-modify-write, a load behind a load.
pub(crate) fn scale() -> Vec<Candidate> {
    let arc = Arc::new(7_u64);
    let word = AtomicU64::new(0);
    let pointer = Arc::new(7_u64);
    vec![
        Candidate::new(REFERENCE, move || *Arc::clone(black_box(&arc))),
        Candidate::new("one read-modify-write", move || word.fetch_add(1, Ordering::Relaxed)),
        Candidate::new("a dependent load", move || **black_box(&pointer)),
    ]
}

/// `scale`, with another reference in front.
pub(crate) fn scale_after(reference: Candidate) -> Vec<Candidate> {
    let mut candidates = vec![reference];
    candidates.extend(scale());
    candidates
}
