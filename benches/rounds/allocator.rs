//! The system's allocator, which can also recycle blocks or count bytes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicIsize, AtomicU8, Ordering};

/// What is done beside calling the system's allocator.
#[derive(Clone, Copy)]
pub(crate) enum Mode {
    /// Nothing: the price is one load of a word that nobody writes.
    Plain,
    /// Small blocks that a thread has freed are handed out to it again.
    Recycle,
    /// The bytes in use are counted.
    Count,
}

static MODE: AtomicU8 = AtomicU8::new(Mode::Plain as u8);
static BYTES: AtomicIsize = AtomicIsize::new(0);

/// Ends a mode when it is dropped.
pub(crate) struct Entered(());

impl Mode {
    /// For all threads, until the result is dropped.
    pub(crate) fn enter(self) -> Entered {
        MODE.store(self as u8, Ordering::Relaxed);
        Entered(())
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        MODE.store(Mode::Plain as u8, Ordering::Relaxed);
    }
}

/// The bytes that the result of `make` keeps allocated.
pub(crate) fn bytes_of<R>(make: impl FnOnce() -> R) -> (R, isize) {
    let _mode = Mode::Count.enter();
    let before = BYTES.load(Ordering::Relaxed);
    let made = make();
    (made, BYTES.load(Ordering::Relaxed) - before)
}

const CLASSES: usize = 9;

thread_local! {
    /// Freed blocks of 8, 16 … 64 bytes, each holding the address of the next.
    static FREED: [Cell<*mut u8>; CLASSES] = const { [const { Cell::new(null_mut()) }; CLASSES] };
}

/// The list for blocks of exactly this layout.
fn class(layout: Layout) -> Option<usize> {
    let size = layout.size();
    let fits = layout.align() <= 8 && size.is_multiple_of(8) && size / 8 < CLASSES;
    (fits && size > 0).then_some(size / 8)
}

fn is(mode: Mode) -> bool {
    MODE.load(Ordering::Relaxed) == mode as u8
}

struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: every block comes from `System` with the layout asked for; one that waits in a list is handed
// out once, for exactly the size that it has.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is(Mode::Plain)
            && let Some(block) = special_alloc(layout)
        {
            return block;
        }
        // SAFETY: by the caller.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: by the caller, the block is free now, and 8 bytes at least if its layout has a class.
        if !is(Mode::Plain) && unsafe { special_dealloc(block, layout) } {
            return;
        }
        // SAFETY: by the caller; all blocks are `System`'s.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is(Mode::Count) {
            BYTES.fetch_add(layout.size() as isize, Ordering::Relaxed);
        }
        // SAFETY: by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is(Mode::Count) {
            BYTES.fetch_add(size as isize - layout.size() as isize, Ordering::Relaxed);
        }
        // SAFETY: by the caller; all blocks are `System`'s.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[cold]
fn special_alloc(layout: Layout) -> Option<*mut u8> {
    if is(Mode::Count) {
        BYTES.fetch_add(layout.size() as isize, Ordering::Relaxed);
        return None;
    }
    let class = class(layout)?;
    FREED.with(|freed| {
        let block = freed[class].get();
        if block.is_null() {
            return None;
        }
        // SAFETY: a block in a list holds the address of the next, see `special_dealloc`.
        freed[class].set(unsafe { block.cast::<*mut u8>().read() });
        Some(block)
    })
}

/// Whether the block has been put into a list.
///
/// # Safety
/// Nobody uses the block, which has this layout.
#[cold]
unsafe fn special_dealloc(block: *mut u8, layout: Layout) -> bool {
    if is(Mode::Count) {
        BYTES.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        return false;
    }
    let Some(class) = class(layout) else { return false };
    FREED.with(|freed| {
        // SAFETY: the block is free and has at least 8 bytes, 8-aligned as malloc's blocks are.
        unsafe { block.cast::<*mut u8>().write(freed[class].get()) };
        freed[class].set(block);
    });
    true
}
