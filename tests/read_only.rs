//! C4, held against memory that can't be written: what a lookup writes to, and what it does not.
//!
//! A child process makes some of its memory read-only and then looks up. If it writes there it ends by a
//! signal. Each test has its counterpart, an operation that must end so: if nothing could, a test that
//! passes would say nothing.
#![cfg(all(target_os = "linux", not(miri)))]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::ops::Range;
use std::ptr::{drop_in_place, from_ref};

use fdtable::{FdFlags, FdTable, Files, Options};

const NONE: FdFlags = FdFlags::empty();

/// Open in each table: all of the first word, or half of it, and some beyond.
const OPEN: u32 = 100;
/// Numbers that have storage.
const CAPACITY: u32 = 2000;

/// What the child's status says.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Ended {
    Well,
    /// It has written where it must not.
    Written,
}

/// In a child process, makes memory read-only by `freeze`, then does `look`. Both say whether all went
/// well; they must not allocate.
fn ended(freeze: impl FnOnce() -> bool, look: impl FnOnce() -> bool) -> Ended {
    // SAFETY: the child makes system calls and does what the two do, without the heap or a lock that
    // another thread of the harness may have held.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "a process can be made");
    if child == 0 {
        let status = if freeze() && look() { 0 } else { 1 };
        // SAFETY: always allowed.
        unsafe { libc::_exit(status) }
    }
    let mut status = 0;
    // SAFETY: it is written to an int, as is expected.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    if libc::WIFSIGNALED(status) {
        assert_eq!(libc::WTERMSIG(status), libc::SIGSEGV);
        return Ended::Written;
    }
    assert_eq!(libc::WEXITSTATUS(status), 0, "a wrong answer");
    Ended::Well
}

fn page() -> usize {
    // SAFETY: it takes a number.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

fn freeze(pages: &Range<usize>) -> bool {
    // SAFETY: nobody needs to write there but who ends by it.
    unsafe { libc::mprotect(pages.start as *mut _, pages.len(), libc::PROT_READ) == 0 }
}

/// All that is writable, statics too, but for this thread's stack.
fn freeze_all() -> bool {
    let mut text = [0_u8; 1 << 17];
    let stack = from_ref(&text).addr();
    let Ok(mut maps) = File::open("/proc/self/maps") else { return false };
    let mut length = 0;
    while length < text.len() {
        match maps.read(&mut text[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(_) => return false,
        }
    }
    let Ok(text) = str::from_utf8(&text[..length]) else { return false };
    let all = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (range, access) = (words.next()?, words.next()?);
        let (start, end) = range.split_once('-')?;
        let number = |hex| usize::from_str_radix(hex, 16).ok();
        let range = number(start)?..number(end)?;
        (access.starts_with("rw") && !range.contains(&stack)).then_some(range)
    });
    length < (1 << 17) && all.into_iter().all(|range| freeze(&range))
}

/// A table with `OPEN` numbers open but for the odd ones of the first word, and storage for more.
fn half_filled() -> FdTable<u32> {
    let table = Options::new().build();
    for fd in (0..64).step_by(2).chain(64..OPEN) {
        table.replace(fd, fd, NONE).unwrap();
    }
    table.reserve_capacity(CAPACITY as usize).unwrap();
    table
}

#[test]
fn a_miss_writes_nothing() {
    let table = Box::new(half_filled());
    let reserved = [table.reserve().unwrap(), table.reserve_in(OPEN + 3..u32::MAX).unwrap()];
    let closed = (1..64).step_by(2).chain(OPEN..CAPACITY).map(i64::from);
    let never = [-1, 1 << 20, i64::from(i32::MAX), i64::MAX, i64::MIN];
    let missed: Vec<i64> = closed.chain(never).collect();
    assert!(missed.contains(&reserved[0].fd().into()) && missed.contains(&reserved[1].fd().into()));
    let misses = |fd: i64| {
        let table = black_box(&table);
        table.get(fd).is_err()
            && table.get_owned(fd).is_err()
            && table.flags(fd).is_err()
            && !table.contains(fd)
    };
    assert_eq!(ended(freeze_all, || missed.iter().all(|&fd| misses(fd))), Ended::Well);
    // And what does not take a reference, of what is open.
    let looks = |fd: i64| table.flags(fd) == Ok(NONE) && table.contains(fd);
    assert_eq!(ended(freeze_all, || looks(0) && looks(i64::from(OPEN) - 1)), Ended::Well);

    for open in [0, 62, 64, OPEN - 1] {
        let end = ended(freeze_all, || black_box(&table).get(open).is_ok());
        assert_eq!(end, Ended::Written, "the lookup of {open} counts");
    }
}

#[test]
fn a_borrow_of_what_is_not_shared_writes_nothing() {
    let mut table = Box::new(half_filled());
    let mut files = Files::from(half_filled());
    let mut borrows = |fd: u32| {
        black_box(&mut table).borrow(fd).is_ok_and(|file| *file == fd)
            && black_box(&mut files).borrow(fd).is_ok_and(|file| *file == fd)
    };
    assert_eq!(ended(freeze_all, || borrows(0) && borrows(OPEN - 1)), Ended::Well);
    let other = files.share();
    let end = ended(freeze_all, || black_box(&mut files).borrow(0).is_ok());
    assert_eq!(end, Ended::Written, "a lookup in a table that is shared counts");
    drop(other);
}

/// A table across the border of two pages, so many bytes of it before the border.
struct Across {
    table: *mut FdTable<u32>,
    memory: *mut u8,
    pages: [Range<usize>; 2],
}

impl Across {
    const SIZE: usize = size_of::<FdTable<u32>>();

    fn layout() -> Layout {
        Layout::from_size_align(2 * page(), page()).expect("a page is a power of two")
    }

    fn new(before: usize) -> Across {
        assert!(Self::SIZE <= page() && before.is_multiple_of(align_of::<FdTable<u32>>()));
        // SAFETY: it has a size.
        let memory = unsafe { alloc(Self::layout()) };
        if memory.is_null() {
            handle_alloc_error(Self::layout());
        }
        let (start, border) = (memory.addr(), memory.addr() + page());
        // SAFETY: within the allocation.
        let table: *mut FdTable<u32> = unsafe { memory.add(page() - before) }.cast();
        // SAFETY: there is place for it, see the assertion, and it is aligned.
        unsafe { table.write(half_filled()) };
        Across { table, memory, pages: [start..border, border..border + page()] }
    }

    fn table(&self) -> &FdTable<u32> {
        // SAFETY: it was written, and lives as long as we do.
        unsafe { &*self.table }
    }
}

impl Drop for Across {
    fn drop(&mut self) {
        // SAFETY: it was written, and is not used again.
        unsafe { drop_in_place(self.table) };
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.memory, Self::layout()) };
    }
}

/// Takes the lock, and writes to nothing else within the table itself.
fn take_the_lock(table: &FdTable<u32>) -> bool {
    table.set_flags(64, NONE).is_ok()
}

fn look_up(table: &FdTable<u32>, mut fds: impl Iterator<Item = u32>) -> bool {
    fds.all(|fd| black_box(table).get(fd).is_ok_and(|file| *file == fd))
}

/// Of the numbers from 64 on the slots lie outside of the table: all of that can be frozen, the lock too.
#[test]
fn a_lookup_beyond_the_first_word_does_not_take_the_lock() {
    let across = Across::new(0);
    let (table, pages) = (across.table(), &across.pages);
    assert_eq!(ended(|| pages.iter().all(freeze), || look_up(table, 64..OPEN)), Ended::Well);
    assert_eq!(ended(|| pages.iter().all(freeze), || take_the_lock(table)), Ended::Written);
    assert_eq!(ended(|| true, || take_the_lock(table)), Ended::Well);
}

/// Whether there is a place to cut a table at, with the lock on one side and all that is written on the other.
fn does_without_the_lock(work: impl Fn(&FdTable<u32>) -> bool) -> bool {
    let is_cut_there = |before: usize| {
        let across = Across::new(before);
        let table = across.table();
        across.pages.iter().any(|page| {
            ended(|| freeze(page), || take_the_lock(table)) == Ended::Written
                && ended(|| freeze(page), || work(table)) == Ended::Well
        })
    };
    (0..Across::SIZE).step_by(align_of::<FdTable<u32>>()).any(is_cut_there)
}

/// The slots of the first word lie in the table, as does the lock, on other lines. So there is such a place,
/// whatever the order of its fields.
#[test]
fn a_lookup_in_the_first_word_does_not_take_the_lock() {
    assert!(does_without_the_lock(|table| look_up(table, (0..64).step_by(2))));
}

/// These write to the numbers' word, too; there is such a place as long as the lock does not lie in between.
#[test]
fn an_open_and_a_close_in_the_first_word_do_not_take_the_lock() {
    assert!(does_without_the_lock(|table| {
        table.dup(0).is_ok_and(|fd| fd == 1 && table.close(fd).is_ok())
            && table.reserve_many::<2>().is_ok()
            && table.set_flags(0, NONE).is_ok()
    }));
    assert!(!does_without_the_lock(|table| table.dup_from(0, 64, NONE).is_ok()));
}
