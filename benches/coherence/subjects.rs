//! What is compared: the table itself, with its accesses recorded, and others by their access patterns.

use fdtable::traced::{Kind, record};
use fdtable::{FdFlags, FdTable, OwnedRef, Ref};

/// What a core does to a line. A read-modify-write needs the line as a write does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Access {
    Read(u64),
    Write(u64),
}

/// A table as the cores use it, one step at a time. Each step says what was accessed.
pub(crate) trait Subject {
    /// A table with the fds below `open` open.
    fn new(open: usize) -> Self
    where
        Self: Sized;
    /// The core looks the fd up, which is open, and keeps the handle.
    fn look_up(&mut self, core: usize, fd: usize) -> Vec<Access>;
    /// The core drops its handle.
    fn drop_handle(&mut self, core: usize) -> Vec<Access>;
    /// The core closes the fd, which is open.
    fn close(&mut self, core: usize, fd: usize) -> Vec<Access>;
    /// The core opens a file that it has made.
    fn open(&mut self, core: usize) -> (usize, Vec<Access>);
}

pub(crate) type New = fn(usize) -> Box<dyn Subject>;

/// All of them, the reference first.
pub(crate) const ALL: &[(&str, New)] = &[
    ("a known Arc", |open| Box::new(crate::parts::patterns::KnownArcs::new(open))),
    ("fdtable", |open| Box::new(Fdtable::<Borrowed>::new(open))),
    ("fdtable, owned handles", |open| Box::new(Fdtable::<OwnedRef<File>>::new(open))),
    ("lock around Vec<Option<Arc>>", |open| Box::new(crate::parts::patterns::LockedVec::new(open))),
    ("arc-swap per slot", |open| Box::new(crate::parts::patterns::ArcSwaps::new(open))),
    ("Linux: increment, look again", |open| Box::new(crate::parts::patterns::Linux::new(open))),
];

/// So large that no two files' counters share a line.
type File = [u64; 16];
type Borrowed = Ref<'static, File>;

/// A way to look up.
trait Handle: Sized {
    fn get(table: &'static FdTable<File>, fd: usize) -> Self;
}

impl Handle for Borrowed {
    fn get(table: &'static FdTable<File>, fd: usize) -> Self {
        table.get(fd).expect("open")
    }
}

impl Handle for OwnedRef<File> {
    fn get(table: &'static FdTable<File>, fd: usize) -> Self {
        table.get_owned(fd).expect("open")
    }
}

struct Fdtable<H> {
    /// Lives as long as the program.
    table: &'static FdTable<File>,
    handles: Vec<Option<H>>,
}

fn recorded<R>(operation: impl FnOnce() -> R) -> (R, Vec<Access>) {
    let (result, accesses) = record(operation);
    let to_line = |access: fdtable::traced::Access| {
        let line = access.address as u64 / 64;
        match access.kind {
            Kind::Read => Access::Read(line),
            Kind::Write | Kind::ReadModifyWrite => Access::Write(line),
        }
    };
    (result, accesses.into_iter().map(to_line).collect())
}

impl<H: Handle> Subject for Fdtable<H> {
    fn new(open: usize) -> Self {
        let table: &FdTable<File> = Box::leak(Box::default());
        for _ in 0..open {
            table.insert([0; 16], FdFlags::empty()).expect("not full");
        }
        Fdtable { table, handles: (0..super::model::CORES).map(|_| None).collect() }
    }

    fn look_up(&mut self, core: usize, fd: usize) -> Vec<Access> {
        let (handle, accesses) = recorded(|| H::get(self.table, fd));
        self.handles[core] = Some(handle);
        accesses
    }

    fn drop_handle(&mut self, core: usize) -> Vec<Access> {
        let handle = self.handles[core].take();
        recorded(|| drop(handle)).1
    }

    fn close(&mut self, _: usize, fd: usize) -> Vec<Access> {
        recorded(|| self.table.close(fd).expect("open")).1
    }

    fn open(&mut self, _: usize) -> (usize, Vec<Access>) {
        let file = OwnedRef::new([0; 16]);
        let (fd, accesses) =
            recorded(|| self.table.insert(file, FdFlags::empty()).expect("not full"));
        (fd.get() as usize, accesses)
    }
}
