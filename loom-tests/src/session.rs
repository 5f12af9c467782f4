//! Who does operations: a thread on a real table, or on one with a planted fault.

use fdtable::{CloseRange, Errno, FdFlags, FdTable, OwnedRef, Reservation};

use crate::spec::{File, Item, Op, Outcome};

/// Does operations and tells their outcomes.
pub trait Calls {
    /// One operation.
    fn call(&mut self, op: &Op) -> Outcome;
}

/// Where the files come from, and which they are.
pub trait Files<T> {
    /// A new file.
    fn make(&self, file: File) -> OwnedRef<T>;
    /// Which one this is; a use of it.
    fn name(&self, file: &T) -> File;
}

/// A file is its identity, and nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Names;

impl Files<File> for Names {
    fn make(&self, file: File) -> OwnedRef<File> {
        file.into()
    }

    fn name(&self, file: &File) -> File {
        *file
    }
}

/// One thread's way to a table, with the reservations that it holds.
pub struct Session<'t, T, F> {
    table: &'t FdTable<T>,
    files: &'t F,
    /// The real numbers from here on are called 0 and so on; those below stay as they are.
    base: u32,
    reservations: Vec<Reservation<'t, T>>,
    children: Vec<FdTable<T>>,
}

impl<'t, T, F: Files<T>> Session<'t, T, F> {
    /// On the numbers from `base` on.
    pub fn new(table: &'t FdTable<T>, files: &'t F, base: u32) -> Self {
        Session { table, files, base, reservations: Vec::new(), children: Vec::new() }
    }

    /// Whether it holds reservations.
    pub fn has_reservations(&self) -> bool {
        !self.reservations.is_empty()
    }

    /// The children of its forks, in their order. What they hold is for [`open`](Self::open), once the
    /// threads are joined; until then a fork's outcome is empty.
    pub fn into_children(self) -> Vec<FdTable<T>> {
        self.children
    }

    /// What is open there.
    pub fn open(files: &F, table: &FdTable<T>, base: u32) -> Vec<Item> {
        let items = table.iter().map(|it| (it.fd.get(), files.name(&it.file), it.flags));
        items.filter(|it| it.0 >= base).map(|(fd, file, flags)| (fd - base, file, flags)).collect()
    }

    /// The numbers below `end` that are taken and have no file; nobody else is at work.
    pub fn reserved(table: &FdTable<T>, base: u32, end: u32) -> Vec<u32> {
        let is_free = |fd| table.limited(u64::MAX).reserve_in(fd..fd + 1).is_ok();
        let is_reserved = |&n: &u32| !table.contains(base + n) && !is_free(base + n);
        (0..end).filter(is_reserved).collect()
    }

    fn real(&self, fd: i64) -> i64 {
        if fd < 0 { fd } else { fd.saturating_add(self.base.into()) }
    }

    fn fd(&self, fd: impl Into<u32>) -> Outcome {
        Outcome::Fd(fd.into() - self.base)
    }

    fn number(&self, result: Result<fdtable::Fd, impl Into<Errno>>) -> Outcome {
        result.map_or_else(failed, |fd| self.fd(fd))
    }
}

fn failed(error: impl Into<Errno>) -> Outcome {
    Outcome::Failed(error.into())
}

fn done(result: Result<(), impl Into<Errno>>) -> Outcome {
    result.map_or_else(failed, |()| Outcome::Done)
}

impl<T, F: Files<T>> Calls for Session<'_, T, F> {
    fn call(&mut self, op: &Op) -> Outcome {
        let (table, files) = (self.table, self.files);
        match *op {
            Op::Get(fd) => {
                let file = table.get(self.real(fd));
                file.map_or_else(failed, |file| Outcome::File(files.name(&file)))
            }
            Op::Flags(fd) => table.flags(self.real(fd)).map_or_else(failed, Outcome::Flags),
            Op::SetFlags(fd, flags) => done(table.set_flags(self.real(fd), flags)),
            Op::Insert { min: 0, file, flags } => {
                self.number(table.insert(files.make(file), flags))
            }
            Op::Insert { min, file, flags } => {
                self.number(table.insert_from(self.real(min), files.make(file), flags))
            }
            Op::Reserve(ref range) => {
                let start = range.start.saturating_add(self.base);
                let end = range.end.saturating_add(self.base);
                match table.reserve_in(start..end) {
                    Ok(reservation) => {
                        let fd = self.fd(reservation.fd());
                        self.reservations.push(reservation);
                        fd
                    }
                    Err(error) => failed(error),
                }
            }
            Op::ReservePair => match table.reserve_many::<2>() {
                Ok(pair) => {
                    let [one, two] = pair.each_ref().map(|it| it.fd().get() - self.base);
                    self.reservations.extend(pair);
                    Outcome::Pair(one, two)
                }
                Err(error) => failed(error),
            },
            Op::Install { file, flags } => match self.reservations.pop() {
                Some(reservation) => self.fd(reservation.install(files.make(file), flags)),
                None => Outcome::Nothing,
            },
            Op::Abandon => match self.reservations.pop() {
                Some(reservation) => self.fd(reservation.fd()),
                None => Outcome::Nothing,
            },
            Op::Remove(fd) => {
                let file = table.remove(self.real(fd));
                file.map_or_else(failed, |file| Outcome::File(files.name(&file)))
            }
            Op::Close(fd) => done(table.close(self.real(fd))),
            Op::Replace { fd, file, flags } => {
                match table.replace(self.real(fd), files.make(file), flags) {
                    Ok(old) => Outcome::Replaced(old.map(|old| files.name(&old))),
                    Err(rejected) => failed(rejected),
                }
            }
            Op::Dup(fd) => self.number(table.dup(self.real(fd))),
            Op::DupFrom { fd, min, flags } => {
                self.number(table.dup_from(self.real(fd), self.real(min), flags))
            }
            Op::Dup2 { old, new } => self.number(table.dup2(self.real(old), self.real(new))),
            Op::Dup3 { old, new, flags } => {
                self.number(table.dup3(self.real(old), self.real(new), flags))
            }
            Op::Renumber { from, to } => done(table.renumber(self.real(from), self.real(to))),
            Op::CloseRange { first, last, how } => {
                assert!(self.base == 0 || !how.contains(CloseRange::EXCEPT), "what is below stays");
                let (first, last) =
                    (first.saturating_add(self.base), last.saturating_add(self.base));
                done(table.close_range(first, last, how))
            }
            Op::CloseOnExec => {
                table.close_on_exec();
                Outcome::Done
            }
            Op::Fork => match table.fork() {
                Ok(child) => {
                    self.children.push(child);
                    Outcome::Open(Vec::new())
                }
                Err(error) => failed(error),
            },
            Op::Iterate => Outcome::Open(Self::open(files, table, self.base)),
            Op::SetLimit(limit) => {
                table.set_limit(limit.saturating_add(self.base.into()));
                Outcome::Done
            }
        }
    }
}

/// No flags.
pub const NONE: FdFlags = FdFlags::empty();
