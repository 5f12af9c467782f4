//! Memory: what every operation does when an allocation fails, at each of its allocations in turn; what
//! the table says it holds against what it has allocated; and who allocates nothing at all.
//!
//! In a file of its own for its global allocator, which counts and refuses per thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::env;
use std::panic::{catch_unwind, resume_unwind};
use std::process::Command;
use std::ptr::null_mut;
use std::rc::Rc;

use fdtable::*;

const NONE: FdFlags = FdFlags::empty();
const CLOEXEC: FdFlags = FdFlags::CLOEXEC;

thread_local! {
    /// Bytes that this thread has allocated and not freed.
    static BYTES: Cell<isize> = const { Cell::new(0) };
    /// How often it has allocated.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    /// Which allocations from now on are refused.
    static REFUSED: Cell<Refused> = const { Cell::new(Refused::None) };
    /// How many were.
    static REFUSALS: Cell<usize> = const { Cell::new(0) };
    /// What to call once, at the n-th allocation from now.
    static CALLBACK: Cell<Option<Callback>> = const { Cell::new(None) };
}

type Callback = (usize, fn());

#[derive(Clone, Copy)]
enum Refused {
    None,
    /// The n-th from now.
    Nth(usize),
    /// That and all others.
    From(usize),
}

/// Runs `operation` with those allocations refused; says whether it came to that.
fn refusing<R>(refused: Refused, operation: impl FnOnce() -> R) -> (R, bool) {
    REFUSALS.set(0);
    REFUSED.set(refused);
    let result = operation();
    REFUSED.set(Refused::None);
    (result, REFUSALS.get() > 0)
}

struct Checked;

impl Checked {
    fn is_refused() -> bool {
        let (now, next) = match REFUSED.get() {
            Refused::None => (false, Refused::None),
            Refused::Nth(0) => (true, Refused::None),
            Refused::Nth(n) => (false, Refused::Nth(n - 1)),
            Refused::From(0) => (true, Refused::From(0)),
            Refused::From(n) => (false, Refused::From(n - 1)),
        };
        REFUSED.set(next);
        REFUSALS.set(REFUSALS.get() + usize::from(now));
        now
    }
}

// SAFETY: as `System`, which does the work; refusing is what every allocator may do.
unsafe impl GlobalAlloc for Checked {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match CALLBACK.take() {
            Some((0, callback)) => callback(),
            later => CALLBACK.set(later.map(|(n, callback)| (n - 1, callback))),
        }
        if Self::is_refused() {
            return null_mut();
        }
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        BYTES.set(BYTES.get() + layout.size() as isize);
        // SAFETY: by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        BYTES.set(BYTES.get() - layout.size() as isize);
        // SAFETY: by the caller; every block is one of `System`.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Checked = Checked;

/// A table and a file in hand: nothing but the table is left to allocate.
struct Scene {
    table: FdTable<u32>,
    file: Option<OwnedRef<u32>>,
}

impl Scene {
    /// 0 .. `end` are open.
    fn filled(end: u32) -> Scene {
        let file = OwnedRef::new(0);
        let table = FdTable::new();
        for _ in 0..end {
            table.insert(file.clone(), NONE).unwrap();
        }
        Scene { table, file: Some(OwnedRef::new(1)) }
    }

    /// What may not change when memory fails.
    fn state(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        let open: Vec<_> =
            self.table.iter().map(|entry| (entry.fd, *entry.file, entry.flags)).collect();
        let table = &self.table;
        (open, table.len(), table.highest_open(), table.high_water())
    }

    fn give_back<E>(&mut self, rejected: Rejected<u32, E>) -> E {
        self.file = Some(rejected.file);
        rejected.error
    }
}

/// Runs `operation` with each of its allocations refused, on a new scene each time: it must say so, have
/// changed nothing, have leaked nothing, and work when there is memory again.
fn refused_at_each(make: impl Fn() -> Scene, operation: impl Fn(&mut Scene) -> Result<(), Errno>) {
    let mut refusals = 0;
    for kind in [Refused::Nth, Refused::From] {
        for n in 0.. {
            let before = BYTES.get();
            let mut scene = make();
            let state = scene.state();
            let capacity = scene.table.capacity();
            let (result, is_refused) = refusing(kind(n), || operation(&mut scene));
            match result {
                Err(error) => {
                    assert!(is_refused, "{error} without need");
                    assert_eq!(error, Errno::ENOMEM);
                    refusals += 1;
                    assert_eq!(scene.state(), state, "at allocation {n}");
                    assert!(scene.file.as_ref().is_some_and(|file| **file == 1));
                    // A batch may have had a part of the storage that it needed: that part stays.
                    assert!(scene.table.capacity() >= capacity);
                    assert_eq!(operation(&mut scene), Ok(()), "with memory again");
                }
                Ok(()) => assert!(!is_refused, "done without the memory at allocation {n}"),
            }
            drop((scene, state));
            assert_eq!(BYTES.get(), before, "leaked at allocation {n}");
            if result.is_ok() {
                break;
            }
        }
    }
    assert!(refusals >= 2, "nothing was refused");
}

fn bare<E>(error: E) -> Errno
where
    E: Into<AnyError>,
{
    error.into().0
}

/// Any of the crate's errors, as its number.
struct AnyError(Errno);

macro_rules! numbered {
    ($($error:ty)*) => {$(
        impl From<$error> for AnyError {
            fn from(error: $error) -> Self {
                AnyError(error.errno())
            }
        }
    )*};
}

numbered! { OutOfMemory ReserveError DupError ReplaceError CloseRangeError RestoreError }

// ENOMEM

#[test]
fn c10_insert_without_memory() {
    for (open, min) in [(64, 0), (128, 0), (512, 0), (3, 64), (3, 600), (3, 5000), (3, 1_000_000)] {
        refused_at_each(
            || Scene::filled(open),
            |scene| {
                let file = scene.file.take().unwrap();
                let opened = scene.table.insert_from(min, file, CLOEXEC);
                let fd = opened.map_err(|rejected| bare(scene.give_back(rejected)))?;
                assert_eq!((fd.get(), scene.table.len()), (min.max(open), open as usize + 1));
                assert_eq!(*scene.table.get(fd).unwrap(), 1);
                Ok(())
            },
        );
    }
}

#[test]
fn c10_reserve_without_memory() {
    for (open, numbers) in [(64, 0..u32::MAX), (3, 700..701), (3, 1_000_000..u32::MAX)] {
        refused_at_each(
            || Scene::filled(open),
            |scene| {
                let reserved = scene.table.reserve_in(numbers.clone()).map_err(bare)?;
                assert_eq!(reserved.fd(), numbers.start.max(open));
                Ok(())
            },
        );
    }
}

#[test]
fn c10_reserve_many_without_memory() {
    fn check<const N: usize>(open: u32) {
        refused_at_each(
            || Scene::filled(open),
            |scene| {
                let reserved = scene.table.reserve_many::<N>().map_err(bare)?;
                let expected = open..open + N as u32;
                assert!(reserved.iter().map(|reserved| reserved.fd().get()).eq(expected));
                Ok(())
            },
        );
    }

    check::<1>(64);
    check::<3>(63);
    check::<200>(0);
    check::<2>(127);
    check::<1000>(60);
}

#[test]
fn c10_dup_without_memory() {
    refused_at_each(
        || Scene::filled(64),
        |scene| {
            let fd = scene.table.dup(0).map_err(bare)?;
            assert_eq!(fd, 64);
            Ok(())
        },
    );
    for min in [64, 3000, 500_000] {
        refused_at_each(
            || Scene::filled(1),
            |scene| {
                let fd = scene.table.dup_from(0, min, CLOEXEC).map_err(bare)?;
                assert_eq!(fd, min);
                Ok(())
            },
        );
    }
}

#[test]
fn c10_dup2_and_replace_without_memory() {
    for fd in [64, 3000, 1_048_575] {
        refused_at_each(
            || Scene::filled(1),
            |scene| {
                assert_eq!(scene.table.dup2(0, fd).map_err(bare)?, fd);
                Ok(())
            },
        );
        refused_at_each(
            || Scene::filled(1),
            |scene| {
                assert_eq!(scene.table.dup3(0, fd, CLOEXEC).map_err(bare)?, fd);
                Ok(())
            },
        );
        refused_at_each(
            || Scene::filled(1),
            |scene| {
                let file = scene.file.take().unwrap();
                let old = scene.table.replace(fd, file, CLOEXEC);
                assert!(old.map_err(|rejected| bare(scene.give_back(rejected)))?.is_none());
                assert_eq!(*scene.table.get(fd).unwrap(), 1);
                Ok(())
            },
        );
    }
}

#[test]
fn c10_fork_without_memory() {
    for highest in [64, 600, 5000, 100_000, 1_048_575] {
        let make = || {
            let scene = Scene::filled(70);
            scene.table.dup2(0, highest).unwrap();
            scene
        };
        refused_at_each(make, |scene| {
            let child = scene.table.fork().map_err(bare)?;
            assert_eq!(child.len(), scene.table.len());
            assert!(child.contains(highest));
            Ok(())
        });
    }
    // Nothing to allocate.
    let table = Scene::filled(64).table;
    let (child, _) = refusing(Refused::From(0), || table.fork());
    assert_eq!(child.unwrap().len(), 64);
}

/// The references that a failed copy has taken are given back, each of them.
#[test]
fn c10_fork_without_memory_leaves_the_counts() {
    for n in 0.. {
        let table = FdTable::new();
        for fd in 0..700 {
            table.replace(fd, fd, NONE).unwrap();
        }
        let (is_forked, _) = refusing(Refused::Nth(n), || table.fork().is_ok());
        for fd in 0..700 {
            assert_eq!(table.remove(fd).unwrap().try_into_inner().ok(), Some(fd));
        }
        if is_forked {
            assert!(n > 0);
            break;
        }
    }
}

#[test]
fn c10_reserve_capacity_without_memory_keeps_what_it_has() {
    for (numbers, kind) in [(65, Refused::Nth as fn(usize) -> Refused), (20_000, Refused::From)] {
        for n in 0.. {
            let before = BYTES.get();
            let Scene { table, file } = Scene::filled(3);
            let (result, _) = refusing(kind(n), || table.reserve_capacity(numbers));
            assert_eq!((table.len(), table.high_water().unwrap().get()), (3, 2));
            // What it says it has, it has.
            let capacity = table.capacity();
            let allocations = ALLOCATIONS.get();
            table.dup2(0, capacity - 1).unwrap();
            if result.is_ok() {
                assert!(capacity as usize >= numbers && n > 0);
                for fd in 3..numbers {
                    table.dup2(0, fd).unwrap();
                }
            } else {
                assert_eq!(result, Err(OutOfMemory));
                table.reserve_capacity(numbers).unwrap();
            }
            assert!(result.is_err() || ALLOCATIONS.get() == allocations);
            drop((table, file));
            assert_eq!(BYTES.get(), before);
            if result.is_ok() {
                break;
            }
        }
    }
}

#[test]
fn c10_restore_without_memory_drops_all_files() {
    for fds in [[0_u32, 1, 64], [70, 5000, 3], [1_000_000, 0, 600]] {
        let mut refusals = 0;
        for n in 0.. {
            let before = BYTES.get();
            let files = fds.map(|fd| (fd, OwnedRef::new(fd), NONE));
            let copies = files.each_ref().map(|(_, file, _)| file.clone());
            let restore = || Options::<u32>::new().restore(files);
            let (result, _) = refusing(Refused::Nth(n), restore);
            let is_restored = match result {
                Ok(table) => {
                    assert_eq!(table.len(), 3);
                    true
                }
                Err(error) => {
                    assert_eq!(error, RestoreError::OutOfMemory);
                    refusals += 1;
                    false
                }
            };
            for copy in copies {
                assert!(copy.try_into_inner().is_ok());
            }
            assert_eq!(BYTES.get(), before);
            if is_restored {
                break;
            }
        }
        assert!(refusals > 0);
    }
}

#[test]
fn c10_a_file_without_memory_comes_back() {
    let (file, _) = refusing(Refused::Nth(0), || OwnedRef::try_new(7));
    assert_eq!(file.err(), Some(7));
    assert_eq!(OwnedRef::try_new(7).unwrap().try_into_inner().ok(), Some(7));
}

/// Runs a test in a process of its own, since an allocation that is not expected to fail aborts.
fn alone(name: &str, test: impl FnOnce()) {
    const ALONE: &str = "FDTABLE_TEST_ALONE";
    if env::var_os(ALONE).is_some() {
        return test();
    }
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
}

thread_local! {
    static FLUSHES: Cell<usize> = const { Cell::new(0) };
}

fn count_flush(_: &u32, _: TableId) -> Result<(), Errno> {
    FLUSHES.set(FLUSHES.get() + 1);
    Ok(())
}

/// As `refused_at_each`, for a task that shares its table with another one.
fn task_refused_at_each(operation: impl Fn(&mut Files<u32>) -> Result<(), Errno>) {
    for n in 0.. {
        let before = BYTES.get();
        let table = Options::new().on_close(count_flush).build();
        for fd in 0..70 {
            table.insert(fd, if fd == 69 { CLOEXEC } else { NONE }).unwrap();
        }
        let mut files = Files::from(table);
        let thread = files.share();
        let id = files.id();
        FLUSHES.set(0);
        let (result, _) = refusing(Refused::Nth(n), || operation(&mut files));
        let flushes = FLUSHES.get();
        assert_eq!((thread.len(), thread.id()), (70, id));
        if result.is_err() {
            assert_eq!(result, Err(Errno::ENOMEM));
            // Nothing has changed, the sharing included; and what was never open was not closed.
            assert!(files.is_shared());
            assert_eq!((files.id(), files.len(), flushes), (id, 70, 0));
            assert_eq!(operation(&mut files), Ok(()));
        }
        drop((files, thread));
        assert_eq!(BYTES.get(), before, "leaked at allocation {n}");
        if result.is_ok() {
            assert!(n > 0, "nothing was refused");
            break;
        }
    }
}

#[test]
fn c10_a_task_forks_without_memory() {
    alone("c10_a_task_forks_without_memory", || {
        task_refused_at_each(|files| files.fork().map(drop).map_err(bare));
    });
}

#[test]
fn c10_a_task_unshares_without_memory() {
    alone("c10_a_task_unshares_without_memory", || {
        task_refused_at_each(|files| files.unshare().map_err(bare));
    });
}

#[test]
fn c10_a_task_execs_without_memory() {
    alone("c10_a_task_execs_without_memory", || {
        task_refused_at_each(|files| {
            files.exec().map_err(bare)?;
            assert_eq!(files.len(), 69);
            Ok(())
        });
    });
}

#[test]
fn c10_a_task_closes_a_range_of_its_own_without_memory() {
    alone("c10_a_task_closes_a_range_of_its_own_without_memory", || {
        task_refused_at_each(|files| {
            files.close_range(66, u32::MAX, CloseRange::UNSHARE).map_err(bare)?;
            assert_eq!(files.len(), 66);
            Ok(())
        });
    });
}

// Who allocates, and how much

#[test]
fn c10_bytes_are_what_was_allocated() {
    let own = size_of::<FdTable<u32>>() as isize;
    let file = OwnedRef::new(0);
    let before = BYTES.get();
    let held = |table: &FdTable<u32>| {
        let held = table.bytes() as isize - own;
        assert_eq!(held, BYTES.get() - before, "with {} open", table.len());
        held
    };
    let table = FdTable::new();
    assert_eq!(held(&table), 0);
    for open in 1..=20_000 {
        table.insert(file.clone(), NONE).unwrap();
        if open % 64 < 2 {
            held(&table);
        }
    }
    table.set_max(u64::MAX);
    // The last one gets its storage with others that have their bits in two pieces of the tree.
    for fd in [100_000, 1_048_575, 500_000, (1 << 25) + (510 << 12)] {
        table.insert_from(fd, file.clone(), NONE).unwrap();
        held(&table);
    }
    table.reserve_capacity(40_000).unwrap();
    let bytes = held(&table);
    table.clear();
    assert_eq!(held(&table), bytes);
    // A copy is a table of its own.
    table.insert(file.clone(), NONE).unwrap();
    table.insert_from(700, file.clone(), NONE).unwrap();
    let child = table.fork().unwrap();
    let both = child.bytes() as isize - own + bytes;
    assert_eq!(both, BYTES.get() - before);
    drop(child);
    assert_eq!(held(&table), bytes);
    drop(table);
    assert_eq!(BYTES.get(), before);
}

#[test]
fn c10_a_million_costs_less_than_ten_bytes_each() {
    let end = 1_000_000;
    let table = FdTable::new();
    table.insert((), NONE).unwrap();
    let before = BYTES.get();
    for _ in 1..end {
        table.dup(0).unwrap();
    }
    let bytes = BYTES.get() - before;
    assert!(bytes <= 10 * end, "{bytes} bytes");
}

#[test]
fn c10_the_highest_number_alone_is_cheap() {
    let table = FdTable::new();
    table.insert((), NONE).unwrap();
    let before = BYTES.get();
    table.dup2(0, table.max() - 1).unwrap();
    let bytes = BYTES.get() - before;
    assert!(bytes <= 64 << 10, "{bytes} bytes");
}

#[test]
fn c10_nothing_allocates_but_growth() {
    ALLOCATIONS.set(0);
    let table = FdTable::<u32>::new();
    assert_eq!(ALLOCATIONS.get(), 0);
    let files = [(); 8].map(|()| OwnedRef::new(0));
    for _ in 0..200 {
        table.insert(files[0].clone(), NONE).unwrap();
    }
    for fd in [5, 70, 150] {
        table.close(fd).unwrap();
    }
    let mut files = files.into_iter();
    ALLOCATIONS.set(0);
    for fd in [3, 100] {
        let handle = table.get(fd).unwrap();
        let owned =
            [table.get_owned(fd).unwrap(), handle.to_owned(), table.get(fd).unwrap().into_owned()];
        drop((handle, owned));
        assert!(table.contains(fd) && table.flags(fd).is_ok() && table.get(1_000_000).is_err());
        table.set_flags(fd, CLOEXEC).unwrap();
        assert!(table.iter().count() > 100);
    }
    // Into what is there already.
    assert_eq!(table.insert(files.next().unwrap(), NONE).unwrap(), 5);
    assert_eq!(table.insert(files.next().unwrap(), NONE).unwrap(), 70);
    assert_eq!(table.dup(0).unwrap(), 150);
    drop(table.reserve_in(200..u32::MAX).unwrap());
    drop(table.reserve_many::<20>().unwrap());
    table.dup2(0, 90).unwrap();
    table.dup2(0, 220).unwrap();
    table.renumber(220, 90).unwrap();
    drop(table.replace(91, files.next().unwrap(), NONE).unwrap());
    assert!(table.limited(0).insert(files.next().unwrap(), NONE).is_err());
    assert!(!table.is_empty() && table.highest_open().is_some() && table.high_water().is_some());
    drop(table.remove(70).unwrap());
    for fd in [5, 90, 91] {
        table.close(fd).unwrap();
    }
    table.close_on_exec();
    table.close_range(180, u32::MAX, CloseRange::CLOEXEC).unwrap();
    table.close_range(100, u32::MAX, CloseRange::empty()).unwrap();
    table.clear();
    assert_eq!(ALLOCATIONS.get(), 0);
}

#[test]
fn c10_sizes_of_handles() {
    let word = size_of::<usize>();
    assert!(size_of::<Ref<'_, u8>>() <= 3 * word);
    assert_eq!(size_of::<OwnedRef<u8>>(), word);
    assert_eq!(size_of::<Option<OwnedRef<u8>>>(), word);
    assert_eq!(size_of::<OwnedRef<[u64; 8]>>(), word);
    assert!(size_of::<Reservation<'_, u8>>() <= 2 * word);
    assert_eq!(size_of::<Fd>(), 4);
    assert!(size_of::<FdTable<u8>>() <= 1536);
}

/// Tasks, observers, reservations; also with files that observe the table they sit in, and after a
/// drop that panics.
#[test]
fn c10_nothing_leaks() {
    struct Proc {
        observer: Observer<Proc>,
        panics: bool,
    }

    impl Drop for Proc {
        fn drop(&mut self) {
            if self.panics && !self.observer.is_alive() {
                resume_unwind(Box::new(()));
            }
        }
    }

    let live = |panics: bool| {
        let mut files = Files::new();
        for fd in 0..100 {
            let proc = Proc { observer: files.observe(), panics: panics && fd == 3 };
            files.insert(proc, CLOEXEC).unwrap();
        }
        let thread = files.share();
        let waiting = files.reserve_owned(u64::MAX).unwrap();
        files.close_range(10, 80, CloseRange::UNSHARE).unwrap();
        let child = thread.fork().unwrap();
        drop((waiting, child, thread));
        let _ = files.observe().list();
        drop(files);
    };
    // What the standard library and others set up once per thread is not counted.
    for panics in [false, true] {
        let run = || {
            let result = catch_unwind(|| live(panics));
            assert_eq!(result.is_err(), panics);
        };
        run();
        let before = BYTES.get();
        run();
        assert_eq!(BYTES.get(), before, "panics: {panics}");
    }
}

// What an allocator does meanwhile

thread_local! {
    /// For the callbacks. Leaked, to be had without a lifetime.
    static TABLE: Cell<Option<&'static FdTable<u32>>> = const { Cell::new(None) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// Runs `operation` with `callback` at its n-th allocation; says whether there were so many.
fn calling(callback: Callback, table: FdTable<u32>, operation: impl FnOnce(&FdTable<u32>)) -> bool {
    let table = Box::leak(Box::new(table));
    TABLE.set(Some(table));
    CALLS.set(0);
    CALLBACK.set(Some(callback));
    operation(table);
    CALLBACK.set(None);
    TABLE.set(None);
    CALLS.get() > 0
}

fn use_the_table() {
    let table = TABLE.get().unwrap();
    CALLS.set(CALLS.get() + 1);
    assert!(table.get(0).is_ok() && !table.is_empty());
    let low = table.dup(0).unwrap();
    let high = table.dup_from(0, 66, CLOEXEC).unwrap();
    table.dup2(0, 1000).unwrap();
    table.close_range(1000, 1000, CloseRange::empty()).unwrap();
    table.set_flags(high, NONE).unwrap();
    drop(table.fork().unwrap());
    table.close(high).unwrap();
    table.close(low).unwrap();
}

/// No lock is held and nothing is half done while memory is allocated.
#[test]
fn c6_an_allocator_may_use_the_table() {
    let operations: [fn(&FdTable<u32>); 7] = [
        |table| assert!(table.dup(0).is_ok()),
        |table| assert!(table.dup_from(0, 5000, NONE).is_ok()),
        |table| assert!(table.dup2(0, 1_000_000).is_ok()),
        |table| assert!(table.reserve_in(700..701).is_ok()),
        |table| assert!(table.reserve_many::<200>().is_ok()),
        |table| assert!(table.reserve_capacity(2000).is_ok()),
        |table| assert!(table.fork().is_ok_and(|child| child.len() >= 64)),
    ];
    for operation in operations {
        let mut calls = 0;
        for end in [64, 70] {
            let scene = || Scene::filled(end).table;
            calls += (0..).take_while(|&n| calling((n, use_the_table), scene(), operation)).count();
        }
        assert!(calls > 0, "nothing was allocated");
    }
}

/// With a file that is open in it.
type Task = (Files<Rc<()>>, Rc<()>);

thread_local! {
    static TASK: Cell<Option<Task>> = const { Cell::new(None) };
    static OWNERS: Cell<usize> = const { Cell::new(0) };
}

fn end_the_task() {
    let (task, file) = TASK.take().unwrap();
    drop(task);
    OWNERS.set(Rc::strong_count(&file));
}

/// The end of a task closes its files itself, and does not leave that to an observer which looks just then.
#[test]
fn c5_a_task_ends_while_an_observer_looks() {
    let (task, file) = (Files::new(), Rc::new(()));
    task.insert(Rc::clone(&file), NONE).unwrap();
    let observer = task.observe();
    // What arc-swap sets up once per thread is not the allocation that is meant.
    assert!(observer.is_alive());
    TASK.set(Some((task, file)));
    CALLBACK.set(Some((0, end_the_task)));
    let seen = observer.list();
    assert_eq!((OWNERS.get(), seen.len(), observer.is_alive()), (1, 1, false));
}

fn free_3_then_70() {
    CALLS.set(CALLS.get() + 1);
    let table = TABLE.get().unwrap();
    table.close(3).unwrap();
    table.close(70).unwrap();
}

/// 128 is the lowest free number, then 3 is; 70 never is, as it is freed after 3.
#[test]
fn c1_what_is_freed_during_the_growth_counts_in_its_order() {
    let operations: [fn(&FdTable<u32>); 5] = [
        |table| {
            let fd = table.insert(table.get_owned(0).unwrap(), NONE).unwrap();
            assert!(fd == 3 || fd == 128, "{fd}");
        },
        |table| {
            let fd = table.dup(0).unwrap();
            assert!(fd == 3 || fd == 128, "{fd}");
        },
        |table| {
            let fd = table.reserve().unwrap().fd();
            assert!(fd == 3 || fd == 128, "{fd}");
        },
        |table| {
            let fd = table.dup_from(0, 1, NONE).unwrap();
            assert!(fd == 3 || fd == 128, "{fd}");
        },
        |table| {
            let fds = table.reserve_many::<2>().unwrap().map(|reserved| reserved.fd().get());
            assert!([[128, 129], [3, 128], [3, 70]].contains(&fds), "{fds:?}");
        },
    ];
    for operation in operations {
        let scene = || Scene::filled(128).table;
        let calls = (0..).take_while(|&n| calling((n, free_3_then_70), scene(), operation)).count();
        assert!(calls > 0, "nothing was allocated");
    }
}

fn open_1000_then_5001() {
    CALLS.set(CALLS.get() + 1);
    let table = TABLE.get().unwrap();
    table.dup2(0, 1000).unwrap();
    table.dup2(0, 5001).unwrap();
}

/// Where a copy grows for 5000 there is room for 5001, and yet none for 1000, which is open by then.
#[test]
fn c8_what_is_opened_while_a_copy_grows_counts_in_its_order() {
    let scene = || {
        let table = Scene::filled(70).table;
        table.dup2(0, 5000).unwrap();
        table
    };
    let fork = |table: &FdTable<u32>| {
        let child = table.fork().unwrap();
        assert!(child.contains(1000) || !child.contains(5001));
    };
    let calls = (0..).take_while(|&n| calling((n, open_1000_then_5001), scene(), fork)).count();
    assert!(calls > 0, "nothing was allocated");
}

fn lower_max() {
    CALLS.set(CALLS.get() + 1);
    TABLE.get().unwrap().set_max(64);
}

/// Checked, then lowered, then grown: nothing is opened above the new maximum.
#[test]
fn b11_max_is_lowered_while_the_table_grows() {
    type Operation = fn(&FdTable<u32>) -> Result<(), Errno>;
    let file = |table: &FdTable<u32>| table.get_owned(0).unwrap();
    let operations: [(Operation, Errno); 7] = [
        (|table| table.dup(0).map(drop_fd).map_err(bare), Errno::EMFILE),
        (|table| table.dup_from(0, 700, NONE).map(drop_fd).map_err(bare), Errno::EMFILE),
        (|table| table.reserve_in(700..701).map(drop).map_err(bare), Errno::EMFILE),
        (|table| table.reserve_many::<2>().map(drop).map_err(bare), Errno::EMFILE),
        (|table| table.dup2(0, 64).map(drop_fd).map_err(bare), Errno::EBADF),
        (|table| table.dup2(0, 1_000_000).map(drop_fd).map_err(bare), Errno::EBADF),
        (|table| table.dup3(0, 5000, CLOEXEC).map(drop_fd).map_err(bare), Errno::EBADF),
    ];
    for (operation, errno) in operations {
        let check = |table: &FdTable<u32>| {
            let result = operation(table);
            if table.max() == 64 {
                assert_eq!((result, table.len(), table.capacity()), (Err(errno), 64, 64));
            } else {
                assert_eq!(result, Ok(()));
            }
        };
        let scene = || Scene::filled(64).table;
        let calls = (0..).take_while(|&n| calling((n, lower_max), scene(), check)).count();
        assert!(calls > 0, "nothing was allocated");
    }
    // With a file in hand it comes back.
    calling((0, lower_max), Scene::filled(64).table, |table| {
        let rejected = table.insert(file(table), NONE).unwrap_err();
        assert!(OwnedRef::ptr_eq(&rejected.file, &file(table)));
        assert_eq!(rejected.error, ReserveError::LimitReached);
    });
    calling((0, lower_max), Scene::filled(64).table, |table| {
        let rejected = table.replace(5000, file(table), NONE).unwrap_err();
        assert!(OwnedRef::ptr_eq(&rejected.file, &file(table)));
        assert_eq!(rejected.error, ReplaceError::BadFd);
    });
}

fn drop_fd(_: Fd) {}
