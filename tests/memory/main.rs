//! Memory: what every operation does when an allocation fails, at each of its allocations in turn; what
//! the table says it holds against what it has allocated; and who allocates nothing at all.
//!
//! A test of its own for its global allocator, which counts and refuses per thread.

#[path = "../common/alone.rs"]
mod alone;
mod amounts;
mod meanwhile;
mod refused;
mod tasks;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{catch_unwind, resume_unwind};
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
