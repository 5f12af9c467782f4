//! Bytes of the tables themselves, without the files.

use fdtable::FdTable;

use crate::peers::{
    ArcSwaps, DashMap, EpochSlots, MutexSlab, Papaya, ParkingLotMutex, Scc, ShardedSlab, StdRwLock,
    Table,
};
use crate::rounds::allocator::bytes_of;

pub(crate) struct Memory {
    pub(crate) table: &'static str,
    pub(crate) empty: f64,
    /// Per fd, of what 1 000 and 1 000 000 open ones add to an empty one.
    pub(crate) per_fd: [f64; 2],
}

pub(crate) const OPEN: [usize; 2] = [1_000, 1_000_000];

pub(crate) fn measure() -> Vec<Memory> {
    vec![
        of::<FdTable<u64>>(),
        of::<StdRwLock>(),
        of::<ParkingLotMutex>(),
        of::<MutexSlab>(),
        of::<ArcSwaps>(),
        of::<EpochSlots>(),
        of::<ShardedSlab>(),
        of::<Papaya>(),
        of::<DashMap>(),
        of::<Scc>(),
    ]
}

fn of<T: Table>() -> Memory {
    let with = |open: usize| {
        let files: Vec<_> = (0..open as u64).map(T::File::from).collect();
        let fill = || {
            let table = T::new(open);
            // Not consumed: the vector's own memory must not be counted as freed.
            let mut files = files;
            for file in files.drain(..) {
                table.insert(file);
            }
            (table, files)
        };
        let ((table, files), bytes) = bytes_of(fill);
        drop((table, files));
        bytes as f64
    };
    let empty = with(0);
    let per_fd = OPEN.map(|open| (with(open) - empty) / open as f64);
    Memory { table: T::NAME, empty: empty + size_of::<T>() as f64, per_fd }
}
