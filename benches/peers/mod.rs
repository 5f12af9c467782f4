//! What a user would write or take instead, behind one small trait.

mod locked;
mod lockless;
mod maps;
mod numbers;

use std::hint::black_box;

use fdtable::{FdFlags, FdTable, OwnedRef};

pub(crate) use locked::*;
pub(crate) use lockless::*;
pub(crate) use maps::*;

/// A table of counted files, as far as the benchmarks need it.
pub(crate) trait Table: Send + Sync + Sized + 'static {
    const NAME: &'static str;
    /// Whether a number handed out is the lowest free one.
    const LOWEST: bool = true;
    /// What it stores: a reference to a file, mostly.
    type File: From<u64> + Send + Sync;

    /// An empty one. Some can't have more than `capacity` files.
    fn new(capacity: usize) -> Self;
    /// Opens the file.
    fn insert(&self, file: Self::File) -> usize;
    /// Looks a file up as something that keeps it alive, reads it, and drops that.
    fn read(&self, fd: usize) -> Option<u64>;
    /// Takes the file out.
    fn remove(&self, fd: usize) -> Option<Self::File>;

    /// Closes the fd. Not under a lock, if it can be helped.
    fn close(&self, fd: usize) -> bool {
        self.remove(fd).is_some()
    }
}

/// Those that can open a file twice.
pub(crate) trait Dup: Table {
    fn dup(&self, fd: usize) -> usize;
    /// Puts `old`'s file in the place of the one at `new`, which is open.
    fn dup2(&self, old: usize, new: usize);
}

/// An empty table, after a look at whether it does its work: what is timed must be right.
pub(crate) fn checked<T: Table>(capacity: usize) -> T {
    let table = T::new(100);
    let fds: Vec<_> = (0..100).map(|value| table.insert(T::File::from(value))).collect();
    assert!(!T::LOWEST || fds == (0..100).collect::<Vec<_>>(), "{}: not the lowest", T::NAME);
    assert!((0..).zip(&fds).all(|(value, &fd)| table.read(fd) == Some(value)), "{}", T::NAME);
    for fd in [fds[70], fds[7]] {
        assert!(table.close(fd) && !table.close(fd) && table.read(fd).is_none(), "{}", T::NAME);
    }
    let again = [1000, 1001].map(|value| table.insert(T::File::from(value)));
    assert!(!T::LOWEST || again == [7, 70], "{}: not the lowest", T::NAME);
    assert_eq!(again.map(|fd| table.read(fd)), [Some(1000), Some(1001)], "{}", T::NAME);
    drop(table);
    T::new(capacity)
}

/// A table with so many open, and their numbers.
pub(crate) fn filled<T: Table>(open: usize) -> (T, Vec<usize>) {
    let table = checked::<T>(open + 64);
    // What malloc has left in small blocks, here and there, would be used first.
    (0..2_000).for_each(|_| std::mem::forget(black_box(Box::new([0_u64; 3]))));
    let fds = (0..open)
        .map(|value| {
            if open < 1_000 {
                // Two files on one line would be a matter of the allocator, not of the table.
                std::mem::forget(black_box(Box::new([0_u64; 32])));
            }
            table.insert(T::File::from(value as u64))
        })
        .collect();
    (table, fds)
}

/// One candidate per table that there is, made by a generic function.
macro_rules! each_table {
    ($function:ident $($argument:expr)?) => {
        vec![
            $function::<fdtable::FdTable<u64>>($($argument)?),
            $function::<$crate::peers::StdRwLock>($($argument)?),
            $function::<$crate::peers::ParkingLotRwLock>($($argument)?),
            $function::<$crate::peers::StdMutex>($($argument)?),
            $function::<$crate::peers::ParkingLotMutex>($($argument)?),
            $function::<$crate::peers::MutexSlab>($($argument)?),
            $function::<$crate::peers::ArcSwaps>($($argument)?),
            $function::<$crate::peers::EpochSlots>($($argument)?),
            $function::<$crate::peers::ShardedSlab>($($argument)?),
            $function::<$crate::peers::Papaya>($($argument)?),
            $function::<$crate::peers::DashMap>($($argument)?),
            $function::<$crate::peers::Scc>($($argument)?),
        ]
    };
}
pub(crate) use each_table;

/// The same for those that have `Dup`.
macro_rules! each_dup_table {
    ($function:ident) => {
        vec![
            $function::<fdtable::FdTable<u64>>(),
            $function::<$crate::peers::StdRwLock>(),
            $function::<$crate::peers::ParkingLotRwLock>(),
            $function::<$crate::peers::StdMutex>(),
            $function::<$crate::peers::ParkingLotMutex>(),
        ]
    };
}
pub(crate) use each_dup_table;

const NONE: FdFlags = FdFlags::empty();

impl Table for FdTable<u64> {
    const NAME: &'static str = "fdtable";
    type File = OwnedRef<u64>;

    fn new(_: usize) -> Self {
        FdTable::new()
    }

    #[inline(always)]
    fn insert(&self, file: OwnedRef<u64>) -> usize {
        FdTable::insert(self, file, NONE).expect("not full").get() as usize
    }

    #[inline(always)]
    fn read(&self, fd: usize) -> Option<u64> {
        self.get(fd).ok().map(|file| *file)
    }

    #[inline(always)]
    fn remove(&self, fd: usize) -> Option<OwnedRef<u64>> {
        FdTable::remove(self, fd).ok()
    }

    #[inline(always)]
    fn close(&self, fd: usize) -> bool {
        FdTable::close(self, fd).is_ok()
    }
}

impl Dup for FdTable<u64> {
    fn dup(&self, fd: usize) -> usize {
        FdTable::dup(self, fd).expect("open").get() as usize
    }

    fn dup2(&self, old: usize, new: usize) {
        FdTable::dup2(self, old, new).expect("open");
    }
}
