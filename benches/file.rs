//! The file layer: each of its four rules against what kernels did before, timed in turns on one thread and
//! on two. The lines printed first are the ratios; Criterion's own figures follow.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use fdtable::file::{
    AccessMode, Caller, DeferredQueue, File, HasInode, Inode, Modify, NosecMemo, OpenOptions,
};
use fdtable::{Errno, FdFlags, FdTable};

#[allow(dead_code, reason = "the report's part is not used here")]
mod rounds;

use rounds::{Candidate, Plan, measure};

const NONE: FdFlags = FdFlags::empty();

/// What a small write moves.
const PAGE: usize = 4096;

/// On a page's border: whether the copy is fast must not depend on where malloc puts it.
#[derive(Clone, Copy)]
#[repr(align(4096))]
struct Page([u8; PAGE]);

impl Default for Page {
    fn default() -> Self {
        Page([0; PAGE])
    }
}

struct Node {
    attributes: RwLock<HashMap<String, Vec<u8>>>,
    memo: Option<NosecMemo>,
    /// Behind the lock that a write holds.
    data: Mutex<Box<Page>>,
}

impl Node {
    fn new(memo: Option<NosecMemo>) -> Self {
        let attributes = ["user.mime_type", "user.origin"];
        Node {
            attributes: RwLock::new(
                attributes.into_iter().map(|name| (name.to_string(), vec![1])).collect(),
            ),
            memo,
            data: Mutex::default(),
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

/// Prints the ratio `slow` over `fast`, on one thread and on two. A candidate is told the number of the thread
/// that runs it.
fn compare<S, F>(name: &str, slow: S, fast: F)
where
    S: Fn(usize) + Clone + Sync + 'static,
    F: Fn(usize) + Clone + Sync + 'static,
{
    for (how, threads) in [("1 thread", 1), ("2 threads", 2)] {
        let (slow, fast) = (slow.clone(), fast.clone());
        let candidates = if threads == 1 {
            vec![
                Candidate::new("slow", move || slow(black_box(0))),
                Candidate::new("fast", move || fast(black_box(0))),
            ]
        } else {
            vec![Candidate::on(threads, "slow", slow), Candidate::on(threads, "fast", fast)]
        };
        let plan = Plan { rounds: 41, batch: Duration::from_millis(4) };
        let [slow, fast] = &measure(candidates, plan)[..] else { unreachable!() };
        println!(
            "{name}, {how}: {:.1} ns over {:.1} ns = {:.2}x",
            slow.nanoseconds(),
            fast.nanoseconds(),
            slow.over(fast)
        );
    }
}

/// What candidates share for the rest of the run.
fn kept<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn open(criterion: &mut Criterion) {
    let (tables, shared, options) = (kept(tables()), kept(Path::new(None)), kept(options()));
    compare(
        "open + close of a shared path: borrowed over consuming",
        |thread| open_borrowed(&tables[thread], shared, options),
        |thread| open_consuming(&tables[thread], shared, options),
    );
    let mut group = criterion.benchmark_group("open + close");
    group.bench_function("consuming", |b| {
        b.iter(|| open_consuming(&tables[0], shared, options));
    });
    group.bench_function("borrowed", |b| b.iter(|| open_borrowed(&tables[0], shared, options)));
    group.finish();
}

fn close(criterion: &mut Criterion) {
    let (tables, options) = (kept(tables()), kept(options()));
    let paths = kept([Path::new(None), Path::new(None)]);
    let queue = kept(DeferredQueue::new());
    let open = move |thread: usize| {
        let path = paths[thread].clone();
        tables[thread].open_file(path, options, NONE, |_| Ok(())).expect("not full")
    };
    let synchronous = move |thread: usize| tables[thread].close(open(thread)).expect("open");
    let queued = move |thread: usize| {
        tables[thread].close_deferred(open(thread), queue).expect("open");
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
    let files = |memo: fn() -> Option<NosecMemo>| kept([file(memo()), file(memo())]);
    let (with, without) = (files(|| Some(NosecMemo::new())), files(|| None));
    let checked = move |file: &File<Path>| {
        file.modified(black_box(caller), Modify::empty()).expect("nothing to strip");
    };
    let with_memo = move |thread: usize| checked(&with[thread]);
    let without_memo = move |thread: usize| checked(&without[thread]);
    compare("modified(): without the memo over with it", without_memo, with_memo);
    // As `modified` asks for: under the inode's lock, the check, then the bytes.
    let bytes: &Page = kept(Page([1; PAGE]));
    let write = move |file: &File<Path>, check: bool| {
        let mut data = file.path().node.data.lock().expect("no panic");
        if check {
            checked(file);
        }
        data.0.copy_from_slice(black_box(&bytes.0));
    };
    compare(
        "a write of 4 KiB: with modified() over without any check",
        move |thread| write(&with[thread], true),
        move |thread| write(&with[thread], false),
    );
    compare(
        "a write of 4 KiB: with modified() and no memo over without any check",
        move |thread| write(&without[thread], true),
        move |thread| write(&without[thread], false),
    );
    let mut group = criterion.benchmark_group("modified()");
    group.bench_function("with the memo", |b| b.iter(|| with_memo(0)));
    group.bench_function("without the memo", |b| b.iter(|| without_memo(0)));
    group.finish();
}

criterion_group!(benches, open, close, modify);
criterion_main!(benches);
