//! Lookup and drop of the handle, on one thread. The reference is the clone and drop of a known
//! `Arc`: the two read-modify-writes that any counted handle needs.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use fdtable::{FdTable, Files};

mod peers;

use peers::{MutexVec, RwLockVec, Table};

fn lookup(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("lookup");
    let arc = Arc::new(7_u64);
    group.bench_function("reference: Arc clone + drop", |b| b.iter(|| Arc::clone(black_box(&arc))));

    fn hot(table: &impl Table) -> usize {
        peers::check(table);
        table.insert(7)
    }
    let table = FdTable::new();
    let fd = hot(&table);
    group.bench_function("fdtable: get", |b| b.iter(|| table.read(black_box(fd))));
    group.bench_function("fdtable: get_owned", |b| {
        b.iter(|| table.get_owned(black_box(fd)).map(|file| *file))
    });
    let mut files = Files::from(table);
    group.bench_function("fdtable: borrow", |b| {
        b.iter(|| files.borrow(black_box(fd)).map(|file| *file))
    });
    let table = RwLockVec::default();
    let fd = hot(&table);
    group.bench_function("RwLock<Vec<Option<Arc>>>", |b| b.iter(|| table.read(black_box(fd))));
    let table = MutexVec::default();
    let fd = hot(&table);
    group.bench_function("Mutex<Vec<Option<Arc>>>", |b| b.iter(|| table.read(black_box(fd))));
    group.finish();
}

criterion_group!(benches, lookup);
criterion_main!(benches);
