//! The table that a model runs on, with operations that tell what they saw in a word.

use std::collections::BTreeMap;
use std::sync::Mutex;

use fdtable::{FdFlags, FdTable, Options, OwnedRef, Reservation};

use crate::file::{File, Ledger};

/// A table, files to put into it, and reservations to fill.
///
/// Under the model checker the first word has the numbers 0 and 1; `max` is 8.
pub struct World {
    // Before the table, which they borrow.
    reservations: Mutex<BTreeMap<u32, Reservation<'static, File>>>,
    children: Mutex<Vec<FdTable<File>>>,
    held: Mutex<Vec<OwnedRef<File>>>,
    files: Mutex<BTreeMap<&'static str, OwnedRef<File>>>,
    references: Mutex<BTreeMap<&'static str, OwnedRef<File>>>,
    /// The table.
    pub table: Box<FdTable<File>>,
    ledger: Ledger,
}

/// No flags.
const NONE: FdFlags = FdFlags::empty();

impl World {
    /// An empty table.
    pub fn new(ledger: &Ledger) -> Self {
        Self::with_limit(ledger, u64::MAX)
    }

    /// An empty table with a limit.
    pub fn with_limit(ledger: &Ledger, limit: u64) -> Self {
        World {
            reservations: Mutex::default(),
            children: Mutex::default(),
            held: Mutex::default(),
            files: Mutex::default(),
            references: Mutex::default(),
            table: Box::new(Options::new().limit(limit).build()),
            ledger: ledger.clone(),
        }
    }

    // Before the race

    /// Opens a new file at `fd`.
    pub fn open(self, fd: u32, name: &'static str) -> Self {
        self.open_with(fd, name, NONE)
    }

    /// Opens a new file at `fd`, with flags.
    pub fn open_with(self, fd: u32, name: &'static str, flags: FdFlags) -> Self {
        let old = self.table.replace(fd, self.ledger.file(name), flags).expect("below the limit");
        assert!(old.is_none());
        self
    }

    /// Opens the file of `fd` at `new` as well.
    pub fn open_same(self, fd: u32, new: u32) -> Self {
        self.table.dup2(fd, new).expect("below the limit");
        self
    }

    /// Gives `fd` storage.
    pub fn grown_to(self, fd: u32) -> Self {
        self.table.reserve_capacity(fd as usize + 1).expect("enough memory");
        self
    }

    /// Takes `n` handles on the file of `fd`, which are dropped after the race.
    pub fn hold(self, fd: u32, n: usize) -> Self {
        for _ in 0..n {
            self.keep(self.table.get_owned(fd).expect("open"));
        }
        self
    }

    /// Reserves the number.
    pub fn reserve(self, fd: u32) -> Self {
        let reservation = self.table.reserve_in(fd..fd + 1).expect("free");
        // SAFETY: the table is boxed, so it does not move with `self`; reservations are dropped
        // before it, those of `self` by the order of its fields, those taken out in their roles.
        let reservation = unsafe {
            std::mem::transmute::<Reservation<'_, File>, Reservation<'static, File>>(reservation)
        };
        self.reservations.lock().unwrap().insert(fd, reservation);
        self
    }

    /// Makes a file, for [`take`](Self::take).
    pub fn with(self, name: &'static str) -> Self {
        self.files.lock().unwrap().insert(name, self.ledger.file(name));
        self
    }

    /// Makes a second reference to that file, for [`reference`](Self::reference).
    pub fn with_clone(self, name: &'static str) -> Self {
        let clone = self.files.lock().unwrap()[name].clone();
        self.references.lock().unwrap().insert(name, clone);
        self
    }

    /// Makes a reference to the file of `fd`, counted in the file and not in the slot.
    pub fn with_reference(self, fd: u32) -> Self {
        let reference = self.table.get(fd).expect("open").to_owned();
        self.references.lock().unwrap().insert(reference.name(), reference);
        self
    }

    // In the race. None of the locks is held across an operation of the table.

    /// A file that was made before the race and is not new to the other threads.
    pub fn made(&self, name: &str) -> OwnedRef<File> {
        self.files.lock().unwrap().remove(name).expect("made before the race")
    }

    /// A new file. It was allocated before the race, but is written to now.
    pub fn take(&self, name: &str) -> OwnedRef<File> {
        let file = self.made(name);
        file.prepare();
        file
    }

    /// A reference that was made before the race.
    pub fn reference(&self, name: &str) -> OwnedRef<File> {
        self.references.lock().unwrap().remove(name).expect("made before the race")
    }

    /// Keeps a reference until the race is over.
    pub fn keep(&self, file: OwnedRef<File>) {
        self.held.lock().unwrap().push(file);
    }

    /// Looks `fd` up, uses the file and drops the handle: its name, or `-`.
    pub fn get(&self, fd: u32) -> &'static str {
        self.table.get(fd).map_or("-", |file| file.name())
    }

    /// As [`get`](Self::get), by a handle that does not borrow the table.
    pub fn get_owned(&self, fd: u32) -> &'static str {
        self.table.get_owned(fd).map_or("-", |file| file.name())
    }

    /// `ok` or `EBADF`.
    pub fn close(&self, fd: u32) -> &'static str {
        self.table.close(fd).map_or("EBADF", |()| "ok")
    }

    /// The number, or `EMFILE`.
    pub fn insert(&self, name: &str) -> String {
        number(self.table.insert(self.take(name), NONE))
    }

    /// The number, or `EMFILE`.
    pub fn insert_from(&self, min: u32, name: &str) -> String {
        number(self.table.insert_from(min, self.take(name), NONE))
    }

    /// Reserves the lowest number and gives it back; the number, or `EMFILE`.
    pub fn reserve_in(&self, numbers: std::ops::Range<u32>) -> String {
        number(self.table.reserve_in(numbers).map(|reservation| reservation.fd()))
    }

    /// Installs on a number that was reserved before the race.
    pub fn install(&self, fd: u32, name: &str) -> &'static str {
        let reservation = self.reservations.lock().unwrap().remove(&fd);
        let reservation = reservation.expect("reserved before the race");
        reservation.install(self.take(name), NONE);
        "ok"
    }

    /// The name of the file that was there, which is used and dropped; `-` or `EBUSY`.
    pub fn replace(&self, fd: u32, name: &str) -> &'static str {
        match self.table.replace(fd, self.take(name), NONE) {
            Ok(Some(old)) => old.name(),
            Ok(None) => "-",
            Err(_) => "EBUSY",
        }
    }

    /// `ok`, `EBADF` or `EBUSY`.
    pub fn dup2(&self, old: u32, new: u32) -> &'static str {
        match self.table.dup2(old, new) {
            Ok(_) => "ok",
            Err(fdtable::ReplaceError::Busy) => "EBUSY",
            Err(_) => "EBADF",
        }
    }

    /// `ok` or `EBADF`.
    pub fn set_flags(&self, fd: u32, flags: FdFlags) -> &'static str {
        self.table.set_flags(fd, flags).map_or("EBADF", |()| "ok")
    }

    /// Forks. The child is shown by [`children`](Self::children) after the race.
    pub fn fork(&self) -> &'static str {
        let child = self.table.fork().expect("enough memory");
        self.children.lock().unwrap().push(child);
        ""
    }

    // After the race

    /// What is open, see [`contents`].
    pub fn contents(&self) -> String {
        contents(&self.table)
    }

    /// What is open in the children.
    pub fn children(&self) -> String {
        let children = std::mem::take(&mut *self.children.lock().unwrap());
        children.iter().map(|child| format!("child {}; ", contents(child))).collect()
    }
}

fn number<E>(result: Result<fdtable::Fd, E>) -> String {
    result.map_or("EMFILE".to_string(), |fd| fd.to_string())
}

/// The names of the files, in the order of their numbers; `-` where there is none; a star behind
/// those with CLOEXEC. `A-B*`: A at 0 and B at 2, with CLOEXEC. Nothing at all is `.`.
///
/// Checks that exactly the numbers of open files are taken, and that the table counts them right.
pub(crate) fn contents(table: &FdTable<File>) -> String {
    let mut shown = String::new();
    let mut open = 0;
    let is_free = |fd| table.limited(u64::MAX).reserve_in(fd..fd + 1).is_ok();
    for fd in 0..table.capacity() {
        let Ok(file) = table.get(fd) else {
            assert!(is_free(fd), "{fd} is not open, and not free");
            shown += "-";
            continue;
        };
        open += 1;
        assert!(!is_free(fd), "{fd} is open, and free");
        shown += file.name();
        if table.flags(fd).is_ok_and(|flags| flags.contains(FdFlags::CLOEXEC)) {
            shown += "*";
        }
    }
    assert_eq!(open, table.len(), "the table's own count is wrong");
    let shown = shown.trim_end_matches('-');
    if shown.is_empty() { ".".to_string() } else { shown.to_string() }
}
