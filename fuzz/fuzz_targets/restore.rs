//! Arbitrary options and items of a checkpoint: a table that is restored from them answers as one that
//! got there by operations, and one that can't be leaves nothing behind.
//!
//! `cargo +nightly fuzz run restore`
#![no_main]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use arbitrary::Arbitrary;
use fdtable::{Errno, Fd, FdFlags, FdTable, Options, OwnedRef, Rejected, RestoreError, TableId};
use libfuzzer_sys::fuzz_target;

/// Far numbers take memory; there is no need for many.
const ITEMS: usize = 64;
const CEILING: u64 = 2_147_483_584;

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Number {
    Small(u8),
    Middle(u16),
    Any(i64),
}

impl Number {
    fn get(self) -> i64 {
        match self {
            Number::Small(number) => number.into(),
            Number::Middle(number) => number.into(),
            Number::Any(number) => number,
        }
    }
}

#[derive(Arbitrary, Debug)]
struct Checkpoint {
    max: u64,
    limit: Option<u64>,
    /// A number, which of a few files, and flags.
    items: Vec<(Number, u8, u8)>,
    questions: Vec<Question>,
}

#[derive(Arbitrary, Debug)]
enum Question {
    Insert,
    InsertFrom(Number),
    Pair,
    DupFrom(Number, Number),
    Dup2(Number, Number),
    Close(Number),
    Fork,
}

#[derive(Default)]
struct Counts {
    flushed: Cell<usize>,
    live: Cell<usize>,
}

struct File {
    name: u8,
    counts: Rc<Counts>,
}

impl File {
    fn new(name: u8, counts: &Rc<Counts>) -> File {
        counts.live.update(|live| live + 1);
        File { name, counts: Rc::clone(counts) }
    }

    fn flush(&self, _: TableId) -> Result<(), Errno> {
        self.counts.flushed.update(|flushed| flushed + 1);
        Ok(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.counts.live.update(|live| live - 1);
    }
}

/// All that can be seen of a table.
#[derive(PartialEq, Debug)]
struct Seen {
    open: Vec<(i64, u8, FdFlags)>,
    len: usize,
    highest_open: Option<Fd>,
    high_water: Option<Fd>,
    capacity: u32,
    bytes: usize,
    limit: u64,
    max: u32,
}

impl Seen {
    fn of(table: &FdTable<File>) -> Seen {
        Seen {
            open: table.iter().map(|it| (it.fd.into(), it.file.name, it.flags)).collect(),
            len: table.len(),
            highest_open: table.highest_open(),
            high_water: table.high_water(),
            capacity: table.capacity(),
            bytes: table.bytes(),
            limit: table.limit(),
            max: table.max(),
        }
    }
}

impl Question {
    /// A number, if one is given, or the error.
    fn ask(&self, table: &mut FdTable<File>, file: OwnedRef<File>) -> Result<Option<Fd>, Errno> {
        const NONE: FdFlags = FdFlags::empty();
        Ok(match *self {
            Question::Insert => Some(table.insert(file, NONE)?),
            Question::InsertFrom(min) => Some(table.insert_from(min.get(), file, NONE)?),
            Question::Pair => {
                let [_, second] = table.reserve_many()?;
                Some(second.install(file, NONE))
            }
            Question::DupFrom(fd, min) => Some(table.dup_from(fd.get(), min.get(), NONE)?),
            Question::Dup2(old, new) => Some(table.dup2(old.get(), new.get())?),
            Question::Close(fd) => table.close(fd.get()).map(|()| None)?,
            Question::Fork => {
                *table = table.fork()?;
                None
            }
        })
    }
}

/// What is to come of the items, in their order.
fn expect(
    items: &[(i64, u8, FdFlags)],
    max: u32,
) -> Result<BTreeMap<i64, (u8, FdFlags)>, RestoreError> {
    let mut open = BTreeMap::new();
    for &(fd, name, flags) in items {
        if !(0..max.into()).contains(&fd) {
            return Err(RestoreError::BadFd);
        }
        if open.insert(fd, (name, flags)).is_some() {
            return Err(RestoreError::Duplicate);
        }
    }
    Ok(open)
}

fuzz_target!(|checkpoint: Checkpoint| {
    let Checkpoint { max, limit, items, questions } = checkpoint;
    let counts = Rc::new(Counts::default());
    let files: Vec<_> = (0..4).map(|name| OwnedRef::new(File::new(name, &counts))).collect();
    let items: Vec<_> = items
        .into_iter()
        .take(ITEMS)
        .map(|(fd, name, bits)| (fd.get(), name % 4, FdFlags::from_bits_truncate(bits)))
        .collect();
    let with_file = |&(fd, name, flags): &(_, u8, _)| (fd, files[usize::from(name)].clone(), flags);

    let mut options = Options::new().max(max).on_close(File::flush);
    if let Some(limit) = limit {
        options = options.limit(limit);
    }
    let max = max.clamp(64, CEILING) as u32 & !63;
    let expected = expect(&items, max);
    let restored = options.clone().restore(items.iter().map(with_file));
    assert_eq!(restored.as_ref().err(), expected.as_ref().err());
    if let (Ok(mut restored), Ok(expected)) = (restored, expected) {
        let mut operated = options.clone().build();
        for (fd, file, flags) in items.iter().map(with_file) {
            let old = operated.limited(u64::MAX).replace(fd, file, flags);
            assert!(old.map_err(Rejected::into_error).expect("a free number").is_none());
        }
        let backwards = options.restore(items.iter().rev().map(with_file)).expect("as before");
        let seen = Seen::of(&restored);
        assert_eq!(seen, Seen::of(&operated));
        assert_eq!(seen, Seen::of(&backwards));
        let open: Vec<_> = expected.iter().map(|(&fd, &(name, flags))| (fd, name, flags)).collect();
        assert_eq!(seen.open, open);
        assert_eq!((seen.max, seen.limit), (max, limit.unwrap_or(u64::MAX)));
        let hole = (0..i64::from(max)).find(|fd| !expected.contains_key(fd));
        let lowest = restored.limited(u64::MAX).reserve().map(|it| it.fd().into());
        assert_eq!(lowest.ok(), hole);
        drop(operated.limited(u64::MAX).reserve());

        for question in questions.iter().take(ITEMS) {
            let answer = question.ask(&mut restored, files[0].clone());
            assert_eq!(answer, question.ask(&mut operated, files[0].clone()), "{question:?}");
            assert_eq!(Seen::of(&restored), Seen::of(&operated), "{question:?}");
        }
        let flushed = counts.flushed.get();
        let left = restored.len() + operated.len() + backwards.len();
        drop((restored, operated, backwards));
        assert_eq!(counts.flushed.get() - flushed, left);
    } else {
        assert_eq!(counts.flushed.get(), 0, "never open, so never flushed");
    }
    for file in files {
        assert!(file.try_into_inner().is_ok(), "a table that is gone still holds a file");
    }
    assert_eq!(counts.live.get(), 0);
});
