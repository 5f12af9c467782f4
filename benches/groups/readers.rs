//! Does a close depend on how many threads have ever read?

use std::hint::black_box;
use std::sync::Arc;

use fdtable::FdTable;

use super::scale;
use crate::peers::{ArcSwaps, EpochSlots, Papaya, ParkingLotMutex, StdRwLock, Table, filled};
use crate::rounds::Candidate;
use crate::rounds::threads::Living;

/// While so many threads are alive that have looked something up.
pub(crate) fn living<const THREADS: usize>() -> Vec<Candidate> {
    type Read = Box<dyn Fn() + Send + Sync>;
    fn cycle<T: Table>() -> (Candidate, Read) {
        let (table, fds) = filled::<T>(3);
        let table = Arc::new(table);
        let shared = table.clone();
        let candidate =
            Candidate::new(T::NAME, move || table.close(table.insert(T::File::from(black_box(7)))));
        let read = move || {
            black_box(shared.read(fds[1]));
        };
        (candidate, Box::new(read))
    }
    let (mut cycles, reads): (Vec<_>, Vec<_>) = [
        cycle::<FdTable<u64>>(),
        cycle::<ParkingLotMutex>(),
        cycle::<StdRwLock>(),
        cycle::<ArcSwaps>(),
        cycle::<EpochSlots>(),
        cycle::<Papaya>(),
    ]
    .into_iter()
    .unzip();
    let living = Living::after(THREADS, move || reads.iter().for_each(|read| read()));
    // The threads live as long as the group.
    let last = cycles.pop().expect("there are some");
    cycles.push(last.keeping(living));
    let mut candidates = scale();
    candidates.append(&mut cycles);
    candidates
}
