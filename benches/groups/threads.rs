//! Lookups by two threads at once, and beside a thread that opens and closes.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use fdtable::FdTable;

use super::scale_after;
use crate::peers::{Table, each_table, filled};
use crate::rounds::Candidate;

/// All threads look up the same fd.
pub(crate) fn same<const THREADS: usize>() -> Vec<Candidate> {
    let arc = Arc::new(7_u64);
    let reference = Candidate::on(THREADS, "all on one Arc: clone + drop", move |_| {
        *Arc::clone(black_box(&arc))
    });
    on(&[4; THREADS], reference)
}

/// Each looks up its own one; they are neighbours.
pub(crate) fn neighbours<const THREADS: usize>() -> Vec<Candidate> {
    on(&std::array::from_fn::<_, THREADS, _>(|thread| 4 + thread), each_its_arc(THREADS))
}

/// Each looks up its own one; they are far from each other.
pub(crate) fn far<const THREADS: usize>() -> Vec<Candidate> {
    on(&std::array::from_fn::<_, THREADS, _>(|thread| 4 + thread * 48), each_its_arc(THREADS))
}

fn each_its_arc(threads: usize) -> Candidate {
    let arcs: Vec<_> = (0..threads as u64).map(|value| Arc::new(CachePadded::new(value))).collect();
    Candidate::on(threads, "each on its Arc: clone + drop", move |thread| {
        **Arc::clone(&arcs[thread])
    })
}

/// One thread for each of the fds.
fn on(fds: &[usize], reference: Candidate) -> Vec<Candidate> {
    /// Enough for all threads, each fd on a line of its own.
    fn table<T: Table>(wanted: &[usize]) -> (T, Vec<CachePadded<usize>>) {
        let (table, fds) = filled::<T>(wanted.iter().max().map_or(64, |&last| last.max(63) + 1));
        (table, wanted.iter().map(|&fd| CachePadded::new(fds[fd])).collect())
    }
    fn read<T: Table>(wanted: &[usize]) -> Candidate {
        let (table, fds) = table::<T>(wanted);
        Candidate::on(fds.len(), T::NAME, move |thread| table.read(*fds[thread]))
    }
    let mut candidates = scale_after(reference);
    candidates.extend(each_table!(read fds));
    let (table, fds) = table::<FdTable<u64>>(fds);
    candidates.push(Candidate::on(fds.len(), "fdtable: get_owned", move |thread| {
        table.get_owned(*fds[thread]).map(|file| *file)
    }));
    candidates
}

/// Two threads that open and close, each a file that it makes, with so many open.
pub(crate) fn churn<const OPEN: usize>() -> Vec<Candidate> {
    fn cycle<T: Table>(open: usize) -> Candidate {
        let (table, _) = filled::<T>(open);
        Candidate::on(2, T::NAME, move |thread| {
            table.close(table.insert(T::File::from(black_box(thread as u64))))
        })
    }
    let mut candidates = scale_after(each_its_arc(2));
    candidates.extend(each_table!(cycle OPEN));
    candidates
}

/// One thread looks fd 4 up, another one closes and opens the fd that is so far from it.
///
/// The slots of 4 and 11 share a line in `fdtable`, those of neighbours do not.
pub(crate) fn beside<const DISTANCE: usize>() -> Vec<Candidate> {
    fn read<T: Table>(distance: usize) -> Candidate {
        let (table, fds) = filled::<T>(64);
        let table = Arc::new(table);
        let churned = Arc::new(CachePadded::new(AtomicUsize::new(fds[4 + distance])));
        let reader = {
            let (table, churned) = (table.clone(), churned.clone());
            move || {
                // A table that does not hand out the lowest number opens another one each time.
                let follows = distance == 0 && !T::LOWEST;
                let fd = if follows { churned.load(Ordering::Relaxed) } else { fds[4] };
                table.read(black_box(fd))
            }
        };
        let churner = move || {
            let fd = churned.load(Ordering::Relaxed);
            let file = table.remove(fd).expect("open");
            let again = table.insert(file);
            if !T::LOWEST {
                churned.store(again, Ordering::Relaxed);
            }
        };
        Candidate::beside(T::NAME, reader, churner)
    }
    let arcs = [7_u64, 8].map(|value| Arc::new(CachePadded::new(value)));
    let other = arcs[1].clone();
    let reference = Candidate::beside(
        "Arc clone + drop beside another's",
        move || **Arc::clone(black_box(&arcs[0])),
        move || **Arc::clone(black_box(&other)),
    );
    let mut candidates = scale_after(reference);
    candidates.extend(each_table!(read DISTANCE));
    candidates
}
