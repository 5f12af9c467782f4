//! The file layer: each of its four rules against what kernels did before, timed in turns. The lines
//! printed first are the ratios; Criterion's own figures follow.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use criterion::{Criterion, criterion_group, criterion_main};
use fdtable::file::{
    AccessMode, Caller, DeferredQueue, File, Inode, Modify, NosecMemo, OpenOptions,
};
use fdtable::{Errno, FdFlags, FdTable};

mod pairs;

use pairs::compare;

const NONE: FdFlags = FdFlags::empty();

/// A node whose question costs as little as it can: a lookup in a small map under a lock.
#[derive(Default)]
struct Node {
    attributes: RwLock<HashMap<&'static str, Vec<u8>>>,
    memo: Option<NosecMemo>,
    data: [AtomicU64; 8],
    size: AtomicU64,
}

impl Inode for Node {
    fn mode(&self) -> Result<u32, Errno> {
        Ok(0o644)
    }

    fn security_xattr(&self) -> Result<bool, Errno> {
        let attributes = self.attributes.read().map_err(|_| Errno::EIO)?;
        Ok(attributes.contains_key("security.capability"))
    }

    fn nosec_memo(&self) -> Option<&NosecMemo> {
        self.memo.as_ref()
    }
}

type Path = Arc<Node>;

type Table = FdTable<File<Path>>;

fn tables() -> [Table; 2] {
    [(); 2].map(|()| File::table_options().build())
}

fn options() -> OpenOptions {
    OpenOptions::new(AccessMode::Write)
}

/// Looks the path up, which takes a reference; opens; closes.
fn open_consuming(table: &Table, shared: &Path, options: &OpenOptions) {
    let path = shared.clone();
    let fd = table.open_file(path, options, NONE, |_| Ok(())).expect("not full");
    table.close(fd).expect("open");
}

/// The same, but the open takes a reference of its own and the caller puts its one afterwards.
fn open_borrowed(table: &Table, shared: &Path, options: &OpenOptions) {
    let path = shared.clone();
    let number = table.reserve().expect("not full");
    let file = File::open_borrowed(&path, options, |_| Ok(())).expect("opens");
    let fd = number.install(file, NONE);
    drop(path);
    table.close(fd).expect("open");
}

fn open(criterion: &mut Criterion) {
    let (tables, shared, options) = (tables(), Path::default(), options());
    compare(
        "open of a shared path: borrowed over consuming",
        &|thread| open_borrowed(&tables[thread], &shared, &options),
        &|thread| open_consuming(&tables[thread], &shared, &options),
    );
    let mut group = criterion.benchmark_group("open + close");
    group.bench_function("consuming", |b| {
        b.iter(|| open_consuming(&tables[0], &shared, &options));
    });
    group.bench_function("borrowed", |b| b.iter(|| open_borrowed(&tables[0], &shared, &options)));
    group.finish();
}

fn close(criterion: &mut Criterion) {
    let (tables, path, options) = (tables(), Path::default(), options());
    let paths = [path.clone(), Path::default()];
    let queue = DeferredQueue::new();
    let open = |thread: usize| {
        let path = paths[thread].clone();
        tables[thread].open_file(path, &options, NONE, |_| Ok(())).expect("not full")
    };
    let synchronous = |thread: usize| tables[thread].close(open(thread)).expect("open");
    let queued = |thread: usize| {
        tables[thread].close_deferred(open(thread), &queue).expect("open");
        queue.drain(1);
    };
    compare("close: a shared queue over synchronous", &queued, &synchronous);
    let mut group = criterion.benchmark_group("open + close, the drop");
    group.bench_function("synchronous", |b| b.iter(|| synchronous(0)));
    group.bench_function("queued", |b| b.iter(|| queued(0)));
    group.finish();
}

/// A small write: 64 bytes and the size.
fn write(file: &File<Path>) {
    let node = file.path();
    for word in &node.data {
        word.store(black_box(1), Ordering::Relaxed);
    }
    node.size.store(64, Ordering::Relaxed);
}

fn modify(criterion: &mut Criterion) {
    let caller = Caller::default();
    let file = |memo| {
        let path = Arc::new(Node { memo, ..Node::default() });
        File::<Path>::open(path, &options(), |_| Ok(())).expect("opens")
    };
    let (with, without) = (file(Some(NosecMemo::new())), file(None));
    let checked = |file: &File<Path>| {
        file.modified(black_box(caller), Modify::empty()).expect("nothing to strip");
    };
    let with_memo = |_: usize| checked(&with);
    let without_memo = |_: usize| checked(&without);
    compare("modified(): without the memo over with it", &without_memo, &with_memo);
    let checked_write = |_: usize| {
        checked(&with);
        write(&with);
    };
    let bare_write = |_: usize| write(&with);
    compare("a write: with modified() over without", &checked_write, &bare_write);
    let mut group = criterion.benchmark_group("modified()");
    group.bench_function("with the memo", |b| b.iter(|| with_memo(0)));
    group.bench_function("without the memo", |b| b.iter(|| without_memo(0)));
    group.finish();
}

criterion_group!(benches, open, close, modify);
criterion_main!(benches);
