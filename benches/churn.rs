//! Opening and closing, on one thread, in a nearly empty table and in a large one.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use fdtable::{FdFlags, FdTable};

mod peers;

use peers::{MutexVec, RwLockVec, Table};

const NONE: FdFlags = FdFlags::empty();

fn cycle(table: &impl Table) {
    let fd = table.insert(black_box(7));
    table.close(fd);
}

fn churn(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("insert + close, a fresh file");
    let arc = Arc::new(7_u64);
    group.bench_function("reference: Arc clone + drop", |b| b.iter(|| Arc::clone(black_box(&arc))));
    group.bench_function("reference: Box", |b| b.iter(|| Box::new(black_box([7_u64, 8]))));
    let table = FdTable::new();
    peers::check(&table);
    group.bench_function("fdtable", |b| b.iter(|| cycle(&table)));
    let mutex = MutexVec::default();
    peers::check(&mutex);
    group.bench_function("Mutex<Vec<Option<Arc>>>", |b| b.iter(|| cycle(&mutex)));
    let rwlock = RwLockVec::default();
    peers::check(&rwlock);
    group.bench_function("RwLock<Vec<Option<Arc>>>", |b| b.iter(|| cycle(&rwlock)));

    group.bench_function("fdtable: reserve + install + close", |b| {
        b.iter(|| {
            let fd = table.reserve().expect("not full").install(black_box(7), NONE);
            table.close(fd)
        });
    });
    let open = table.insert(7, NONE).expect("not full");
    group.bench_function("fdtable: dup + close", |b| {
        b.iter(|| table.close(table.dup(open).expect("not full")));
    });
    group.finish();

    let mut group = criterion.benchmark_group("insert + close, many open");
    for open in [1_000_u32, 100_000, 1_000_000] {
        let table = FdTable::new();
        (0..open).for_each(|file| drop(table.insert(u64::from(file), NONE)));
        group
            .bench_function(format!("fdtable: at the top of {open}"), |b| b.iter(|| cycle(&table)));
        group.bench_function(format!("fdtable: fd 999 of {open}"), |b| {
            b.iter(|| {
                table.close(999).expect("open");
                table.insert(7, NONE)
            });
        });
        let _ = table.close(999);
        group.bench_function(format!("fdtable: fork and drop the copy of {open}"), |b| {
            b.iter(|| table.fork().expect("memory"));
        });
    }
    group.finish();
}

criterion_group!(benches, churn);
criterion_main!(benches);
