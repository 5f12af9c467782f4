//! Lookup, a read of the file, and the drop of the handle, on one thread.

use std::fs::File;
use std::hint::black_box;
use std::sync::Arc;

use fdtable::{FdTable, Files};

use super::{REFERENCE, bare, scale};
use crate::peers::{Table, each_table, filled};
use crate::rounds::Candidate;

/// The same fd again and again.
pub(crate) fn hot() -> Vec<Candidate> {
    fn read<T: Table>() -> Candidate {
        let (table, fds) = filled::<T>(8);
        Candidate::new(T::NAME, move || table.read(black_box(fds[4])))
    }
    let mut candidates = scale();
    candidates.push(bare::lookup());
    candidates.extend(each_table!(read));
    let (table, _) = filled::<FdTable<u64>>(8);
    candidates.push(Candidate::new("fdtable: get_owned", move || {
        table.get_owned(black_box(4)).map(|file| *file)
    }));
    let (mut table, _) = filled::<FdTable<u64>>(8);
    candidates.push(Candidate::new("fdtable: borrow", move || {
        table.borrow(black_box(4)).map(|file| *file)
    }));
    let mut files = Files::from(filled::<FdTable<u64>>(8).0);
    candidates.push(Candidate::new("fdtable: Files::borrow", move || {
        files.borrow(black_box(4)).map(|file| *file)
    }));
    let file = File::open("/dev/null").expect("there");
    candidates.push(Candidate::new("Linux: fstat", move || rustix::fs::fstat(&file)));
    candidates
}

/// Another fd each time.
pub(crate) fn random_of<const OPEN: usize>() -> Vec<Candidate> {
    fn read<T: Table>(open: usize) -> Candidate {
        let (table, fds) = filled::<T>(open);
        let fds = order(open).into_iter().map(|at| fds[at]).collect();
        let mut next = cycle(fds);
        Candidate::new(T::NAME, move || table.read(next()))
    }
    let arcs: Vec<_> = (0..OPEN as u64).map(Arc::new).collect();
    let mut next = cycle(order(OPEN));
    let mut candidates = scale();
    // Known, that is in an array that nobody changes: what a table can't do better.
    candidates[0] = Candidate::new(REFERENCE, move || *Arc::clone(&arcs[next()]));
    candidates.extend(each_table!(read OPEN));
    let (table, _) = filled::<FdTable<u64>>(OPEN);
    let mut next = cycle(order(OPEN));
    candidates.push(Candidate::new("fdtable: get_owned", move || {
        table.get_owned(next()).map(|file| *file)
    }));
    let (mut table, _) = filled::<FdTable<u64>>(OPEN);
    let mut next = cycle(order(OPEN));
    candidates
        .push(Candidate::new("fdtable: borrow", move || table.borrow(next()).map(|file| *file)));
    candidates
}

/// Random numbers below `end`, the same for each candidate.
fn order(end: usize) -> Vec<usize> {
    let mut random = fastrand::Rng::with_seed(1);
    (0..1 << 17).map(|_| random.usize(..end)).collect()
}

fn cycle(values: Vec<usize>) -> impl FnMut() -> usize {
    let mut at = 0;
    move || {
        at = (at + 1) % (1 << 17);
        values[at]
    }
}
