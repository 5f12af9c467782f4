//! The file layer: each of its four rules against what kernels did before, timed in turns. The lines
//! printed first are the ratios; Criterion's own figures follow.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::{Arc, Mutex, RwLock};

use criterion::{Criterion, criterion_group, criterion_main};
use fdtable::file::{
    AccessMode, Caller, DeferredQueue, File, HasInode, Inode, Modify, NosecMemo, OpenOptions,
};
use fdtable::{Errno, FdFlags, FdTable};

mod pairs;

use pairs::compare;

const NONE: FdFlags = FdFlags::empty();

/// What a small write moves.
const PAGE: usize = 4096;

struct Node {
    attributes: RwLock<HashMap<String, Vec<u8>>>,
    memo: Option<NosecMemo>,
    /// Behind the lock that a write holds.
    data: Mutex<Box<[u8; PAGE]>>,
}

impl Node {
    fn new(memo: Option<NosecMemo>) -> Self {
        let attributes = ["user.mime_type", "user.origin"];
        Node {
            attributes: RwLock::new(
                attributes.into_iter().map(|name| (name.to_string(), vec![1])).collect(),
            ),
            memo,
            data: Mutex::new(Box::new([0; PAGE])),
        }
    }
}

/// In memory, so that a question costs as little as it can.
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

/// As a kernel's: a counted pair.
#[derive(Clone)]
struct Path {
    _mount: Arc<()>,
    node: Arc<Node>,
}

impl Path {
    fn new(memo: Option<NosecMemo>) -> Self {
        Path { _mount: Arc::default(), node: Arc::new(Node::new(memo)) }
    }
}

impl HasInode for Path {
    type Inode = Node;

    fn inode(&self) -> &Node {
        &self.node
    }
}

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
    let (tables, shared, options) = (tables(), Path::new(None), options());
    compare(
        "open + close of a shared path: borrowed over consuming",
        |thread| open_borrowed(&tables[thread], &shared, &options),
        |thread| open_consuming(&tables[thread], &shared, &options),
    );
    let mut group = criterion.benchmark_group("open + close");
    group.bench_function("consuming", |b| {
        b.iter(|| open_consuming(&tables[0], &shared, &options));
    });
    group.bench_function("borrowed", |b| b.iter(|| open_borrowed(&tables[0], &shared, &options)));
    group.finish();
}

fn close(criterion: &mut Criterion) {
    let (tables, options) = (tables(), options());
    let paths = [Path::new(None), Path::new(None)];
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
    compare("open + close: a shared queue over synchronous", queued, synchronous);
    let mut group = criterion.benchmark_group("open + close, the drop");
    group.bench_function("synchronous", |b| b.iter(|| synchronous(0)));
    group.bench_function("queued", |b| b.iter(|| queued(0)));
    group.finish();
}

fn modify(criterion: &mut Criterion) {
    let caller = Caller::default();
    let file = |memo| File::<Path>::open(Path::new(memo), &options(), |_| Ok(())).expect("opens");
    let files = |memo: fn() -> Option<NosecMemo>| [file(memo()), file(memo())];
    let (with, without) = (files(|| Some(NosecMemo::new())), files(|| None));
    let checked = |file: &File<Path>| {
        file.modified(black_box(caller), Modify::empty()).expect("nothing to strip");
    };
    let with_memo = |thread: usize| checked(&with[thread]);
    let without_memo = |thread: usize| checked(&without[thread]);
    compare("modified(): without the memo over with it", without_memo, with_memo);
    // As `modified` asks for: under the inode's lock, the check, then the bytes.
    let bytes = [1_u8; PAGE];
    let write = |file: &File<Path>, check: bool| {
        let mut data = file.path().node.data.lock().expect("no panic");
        if check {
            checked(file);
        }
        data.copy_from_slice(black_box(&bytes));
    };
    compare(
        "a write of 4 KiB: with modified() over without any check",
        |thread| write(&with[thread], true),
        |thread| write(&with[thread], false),
    );
    compare(
        "a write of 4 KiB: with modified() and no memo over without any check",
        |thread| write(&without[thread], true),
        |thread| write(&without[thread], false),
    );
    let mut group = criterion.benchmark_group("modified()");
    group.bench_function("with the memo", |b| b.iter(|| with_memo(0)));
    group.bench_function("without the memo", |b| b.iter(|| without_memo(0)));
    group.finish();
}

criterion_group!(benches, open, close, modify);
criterion_main!(benches);
