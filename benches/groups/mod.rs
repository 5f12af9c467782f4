//! What is compared with what. The first candidate of a group is its reference.

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
    pub(crate) make: fn() -> Vec<Candidate>,
}

/// All groups, in the order in which they are run.
pub(crate) const ALL: &[Group] = &[
    Group { name: "lookup, one fd", make: lookup::hot },
    Group { name: "lookup, random of 64", make: lookup::random_of::<64> },
    Group { name: "lookup, random of 100 000", make: lookup::random_of::<100_000> },
    Group { name: "two threads, same fd", make: threads::same },
    Group { name: "two threads, neighbouring fds", make: threads::neighbours },
    Group { name: "two threads, far fds", make: threads::far },
    Group { name: "lookup beside a churner, 8 fds apart", make: threads::beside::<8> },
    Group { name: "lookup beside a churner, next fd", make: threads::beside::<1> },
    Group { name: "lookup beside a churner, same fd", make: threads::beside::<0> },
    Group { name: "insert + close, ready file", make: churn::ready },
    Group { name: "insert + close, fresh file", make: churn::fresh },
    Group { name: "insert + close, 1 000 open", make: churn::among::<1_000> },
    Group { name: "insert + close, 100 000 open", make: churn::among::<100_000> },
    Group { name: "insert + close, 1 000 000 open", make: churn::among::<1_000_000> },
    Group { name: "reserve + install + close", make: churn::reserve },
    Group { name: "two reserved, installed, closed", make: churn::pair },
    Group { name: "dup + close", make: churn::dup },
    Group { name: "dup2 over an open fd", make: churn::dup2 },
    Group { name: "insert + close, 1 live reader thread", make: readers::living::<1> },
    Group { name: "insert + close, 8 live reader threads", make: readers::living::<8> },
    Group { name: "insert + close, 64 live reader threads", make: readers::living::<64> },
    Group { name: "insert + close, 512 live reader threads", make: readers::living::<512> },
    Group { name: "close_range, per fd", make: whole::close_range },
    Group { name: "close_range of nothing, per call", make: whole::close_nothing },
    Group { name: "fork of 64 + drop, per fd", make: whole::fork::<64> },
    Group { name: "fork of 1 000 + drop, per fd", make: whole::fork::<1_000> },
    Group { name: "fork of 100 000 + drop, per fd", make: whole::fork::<100_000> },
    Group { name: "exec sweep of 1 000, per fd", make: whole::exec },
    Group { name: "a new table + drop", make: whole::create },
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
