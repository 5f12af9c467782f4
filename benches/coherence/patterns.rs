//! Other tables, by the lines that their operations access, in order. Written down from their sources.

use super::model::CORES;
use super::subjects::{Access, Subject};
use Access::{Read, Write};

/// The lines of a table, by what lies on them.
#[derive(Clone, Copy)]
enum Line {
    Lock,
    /// A word of a bitmap of numbers, by the number.
    Bitmap(usize),
    /// A pointer, by the fd.
    Slot(usize),
    /// A file's counter.
    Counter(usize),
    /// arc-swap: where a thread says what it reads, eight words and their places.
    Debts(usize, usize),
    /// arc-swap: whether a thread's debts are being paid.
    Node(usize),
    /// Linux: the pointer to the array.
    Array,
}

impl Line {
    fn number(self) -> u64 {
        let (kind, at) = match self {
            Line::Lock => (0, 0),
            Line::Bitmap(fd) => (1, fd / 512),
            Line::Slot(fd) => (2, fd / 8),
            Line::Counter(file) => (3, file),
            Line::Debts(core, debt) => (4, core * 2 + debt / 4),
            Line::Node(core) => (5, core),
            Line::Array => (6, 0),
        };
        kind << 32 | at as u64
    }
}

fn read(line: Line) -> Access {
    Read(line.number())
}

fn write(line: Line) -> Access {
    Write(line.number())
}

/// Which fd has which file, and which handle each core has.
struct Files {
    /// By fd.
    files: Vec<Option<usize>>,
    /// By core: an fd and its file.
    held: Vec<Option<(usize, usize)>>,
    made: usize,
}

impl Files {
    fn new(open: usize) -> Self {
        Files { files: (0..open).map(Some).collect(), held: vec![None; CORES], made: open }
    }

    fn look_up(&mut self, core: usize, fd: usize) -> usize {
        let file = self.files[fd].expect("open");
        self.held[core] = Some((fd, file));
        file
    }

    fn drop_handle(&mut self, core: usize) -> (usize, usize) {
        self.held[core].take().expect("held")
    }

    fn close(&mut self, fd: usize) -> usize {
        self.files[fd].take().expect("open")
    }

    /// The lowest free number, and a file that has never been seen.
    fn open(&mut self) -> usize {
        let free = self.files.iter().position(Option::is_none);
        let fd = free.unwrap_or(self.files.len());
        if fd == self.files.len() {
            self.files.push(None);
        }
        self.files[fd] = Some(self.made);
        self.made += 1;
        fd
    }
}

/// No table at all: the files' own counters.
pub(crate) struct KnownArcs(Files);

impl Subject for KnownArcs {
    fn new(open: usize) -> Self {
        KnownArcs(Files::new(open))
    }

    fn look_up(&mut self, core: usize, fd: usize) -> Vec<Access> {
        vec![write(Line::Counter(self.0.look_up(core, fd)))]
    }

    fn drop_handle(&mut self, core: usize) -> Vec<Access> {
        vec![write(Line::Counter(self.0.drop_handle(core).1))]
    }

    fn close(&mut self, _: usize, fd: usize) -> Vec<Access> {
        vec![write(Line::Counter(self.0.close(fd)))]
    }

    fn open(&mut self, _: usize) -> (usize, Vec<Access>) {
        (self.0.open(), Vec::new())
    }
}

/// Mutex or RwLock, which write the lock's word in the same places. The vector's pointer lies beside it.
pub(crate) struct LockedVec(Files);

impl Subject for LockedVec {
    fn new(open: usize) -> Self {
        LockedVec(Files::new(open))
    }

    fn look_up(&mut self, core: usize, fd: usize) -> Vec<Access> {
        let file = self.0.look_up(core, fd);
        vec![write(Line::Lock), read(Line::Slot(fd)), write(Line::Counter(file)), write(Line::Lock)]
    }

    fn drop_handle(&mut self, core: usize) -> Vec<Access> {
        vec![write(Line::Counter(self.0.drop_handle(core).1))]
    }

    fn close(&mut self, _: usize, fd: usize) -> Vec<Access> {
        let file = self.0.close(fd);
        vec![
            write(Line::Lock),
            write(Line::Slot(fd)),
            write(Line::Lock),
            write(Line::Counter(file)),
        ]
    }

    fn open(&mut self, _: usize) -> (usize, Vec<Access>) {
        let fd = self.0.open();
        (fd, vec![write(Line::Lock), write(Line::Slot(fd)), write(Line::Lock)])
    }
}

/// arc-swap 1.9: a reader notes its debt on a line of its own; a writer looks at the debts of all threads that
/// live, and pays those on what it has taken out. Numbers from a bitmap under a lock.
pub(crate) struct ArcSwaps {
    files: Files,
    /// By core: its next debt's place.
    next: Vec<usize>,
    /// By core: the debt that it has, and whether a writer has paid it.
    debts: Vec<(usize, bool)>,
    /// Cores that have ever read or written.
    threads: Vec<usize>,
}

impl ArcSwaps {
    fn knows(&mut self, core: usize) {
        if !self.threads.contains(&core) {
            self.threads.push(core);
        }
    }

    /// Puts something else into a slot.
    fn swap(&mut self, fd: usize, old: Option<usize>) -> Vec<Access> {
        let mut accesses = vec![write(Line::Slot(fd))];
        let counter = old.map(|file| write(Line::Counter(file)));
        // Prepaid for one debt, and taken back in the end.
        accesses.extend(counter);
        for &core in &self.threads {
            accesses.extend([write(Line::Node(core)), read(Line::Node(core))]);
            accesses.extend([read(Line::Debts(core, 0)), read(Line::Debts(core, 4))]);
            let owes =
                self.files.held[core].is_some_and(|(at, file)| at == fd && Some(file) == old);
            if owes && !self.debts[core].1 {
                accesses.push(write(Line::Debts(core, self.debts[core].0)));
                accesses.extend(counter);
                self.debts[core].1 = true;
            }
            accesses.push(write(Line::Node(core)));
        }
        accesses.extend(counter);
        accesses
    }

    fn numbers(fd: usize) -> [Access; 3] {
        [write(Line::Lock), write(Line::Bitmap(fd)), write(Line::Lock)]
    }
}

impl Subject for ArcSwaps {
    fn new(open: usize) -> Self {
        ArcSwaps {
            files: Files::new(open),
            next: vec![0; CORES],
            debts: vec![(0, false); CORES],
            threads: Vec::new(),
        }
    }

    fn look_up(&mut self, core: usize, fd: usize) -> Vec<Access> {
        self.knows(core);
        self.files.look_up(core, fd);
        let debt = self.next[core];
        self.next[core] = (debt + 1) % 8;
        self.debts[core] = (debt, false);
        vec![read(Line::Slot(fd)), write(Line::Debts(core, debt)), read(Line::Slot(fd))]
    }

    fn drop_handle(&mut self, core: usize) -> Vec<Access> {
        let (_, file) = self.files.drop_handle(core);
        let (debt, paid) = self.debts[core];
        let mut accesses = vec![write(Line::Debts(core, debt))];
        accesses.extend(paid.then(|| write(Line::Counter(file))));
        accesses
    }

    fn close(&mut self, core: usize, fd: usize) -> Vec<Access> {
        self.knows(core);
        let file = self.files.close(fd);
        let mut accesses = self.swap(fd, Some(file));
        accesses.extend(Self::numbers(fd));
        accesses.push(write(Line::Counter(file)));
        accesses
    }

    fn open(&mut self, core: usize) -> (usize, Vec<Access>) {
        self.knows(core);
        let fd = self.files.open();
        let mut accesses = Self::numbers(fd).to_vec();
        accesses.extend(self.swap(fd, None));
        (fd, accesses)
    }
}

/// Linux' `fget`, `fput`, `close` and `get_unused_fd` with `fd_install`: the lock's line has the next fd as well,
/// and unlocking is a store.
pub(crate) struct Linux(Files);

impl Subject for Linux {
    fn new(open: usize) -> Self {
        Linux(Files::new(open))
    }

    fn look_up(&mut self, core: usize, fd: usize) -> Vec<Access> {
        let file = self.0.look_up(core, fd);
        vec![
            read(Line::Array),
            read(Line::Slot(fd)),
            write(Line::Counter(file)),
            read(Line::Slot(fd)),
        ]
    }

    fn drop_handle(&mut self, core: usize) -> Vec<Access> {
        vec![write(Line::Counter(self.0.drop_handle(core).1))]
    }

    fn close(&mut self, _: usize, fd: usize) -> Vec<Access> {
        let file = self.0.close(fd);
        vec![
            write(Line::Lock),
            read(Line::Array),
            write(Line::Slot(fd)),
            write(Line::Bitmap(fd)),
            write(Line::Lock),
            write(Line::Counter(file)),
        ]
    }

    fn open(&mut self, _: usize) -> (usize, Vec<Access>) {
        let fd = self.0.open();
        let accesses = vec![
            write(Line::Lock),
            read(Line::Array),
            write(Line::Bitmap(fd)),
            write(Line::Lock),
            write(Line::Slot(fd)),
        ];
        (fd, accesses)
    }
}
