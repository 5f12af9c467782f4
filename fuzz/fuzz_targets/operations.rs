//! Arbitrary operations on a table and on a `BTreeMap` that stands for it: results, contents and the
//! number of live files are compared after each.
//!
//! `cargo +nightly fuzz run operations`
#![no_main]

use std::collections::BTreeMap;
use std::rc::Rc;

use arbitrary::Arbitrary;
use fdtable::{CloseRange, Errno, FdFlags, FdTable, Options};
use libfuzzer_sys::fuzz_target;

type File = Rc<u32>;

/// A number as a program may pass it; mostly where something happens.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Number {
    Small(u8),
    Border(i8),
    Any(i64),
}

impl Number {
    fn get(self) -> i64 {
        match self {
            Number::Small(number) => number.into(),
            Number::Border(offset) => 4096 + i64::from(offset),
            Number::Any(number) => number,
        }
    }
}

#[derive(Arbitrary, Debug)]
enum Op {
    Get(Number),
    Insert(u8),
    InsertFrom(Number, u8),
    ReserveAndDrop,
    ReserveAndInstall(u8),
    Pair(u8),
    Dup(Number),
    DupFrom(Number, Number, u8),
    Dup2(Number, Number),
    Dup3(Number, Number, u8),
    Replace(Number, u8),
    Renumber(Number, Number),
    Remove(Number),
    Close(Number),
    SetFlags(Number, u8),
    CloseRange(u16, u16, u8),
    CloseOnExec,
    Fork,
    Limit(u16),
    Restore,
}

/// The table as it should be.
#[derive(Clone, Default)]
struct Model {
    open: BTreeMap<i64, (File, FdFlags)>,
    limit: i64,
}

const MAX: i64 = 8192;

impl Model {
    fn bound(&self) -> i64 {
        self.limit.min(MAX)
    }

    fn lowest(&self, from: i64) -> Result<i64, Errno> {
        let free = (from.max(0)..self.bound()).find(|fd| !self.open.contains_key(fd));
        free.filter(|_| from <= i64::from(i32::MAX)).ok_or(Errno::EMFILE)
    }

    fn insert(&mut self, from: i64, file: &File, flags: FdFlags) -> Result<i64, Errno> {
        let fd = self.lowest(from)?;
        self.open.insert(fd, (file.clone(), flags));
        Ok(fd)
    }

    fn get(&self, fd: i64) -> Result<File, Errno> {
        self.open.get(&fd).map(|(file, _)| file.clone()).ok_or(Errno::EBADF)
    }

    fn dup2(&mut self, old: i64, new: i64, flags: FdFlags) -> Result<i64, Errno> {
        if !(0..self.bound()).contains(&new) {
            return Err(Errno::EBADF);
        }
        let file = self.get(old)?;
        self.open.insert(new, (file, flags));
        Ok(new)
    }
}

fn flags(bits: u8) -> FdFlags {
    FdFlags::from_bits_truncate(bits)
}

fn number<E: Into<Errno>>(result: Result<fdtable::Fd, E>) -> Result<i64, Errno> {
    result.map(i64::from).map_err(Into::into)
}

fn step(table: &mut FdTable<File>, model: &mut Model, file: &File, op: Op) {
    match op {
        Op::Get(fd) => {
            let found = table.get(fd.get()).map(|file| **file).map_err(Errno::from);
            assert_eq!(found, model.get(fd.get()).map(|file| *file));
            let lent = table.borrow(fd.get()).map(|file| **file).map_err(Errno::from);
            assert_eq!(lent, found);
        }
        Op::Insert(bits) => {
            let opened = number(table.insert(file.clone(), flags(bits)));
            assert_eq!(opened, model.insert(0, file, flags(bits)));
        }
        Op::InsertFrom(min, bits) => {
            let opened = number(table.insert_from(min.get(), file.clone(), flags(bits)));
            let expected = match min.get() {
                ..0 => Err(Errno::EMFILE),
                min => model.insert(min, file, flags(bits)),
            };
            assert_eq!(opened, expected);
        }
        Op::ReserveAndDrop => {
            let reserved = number(table.reserve().map(|reservation| reservation.fd()));
            assert_eq!(reserved, model.lowest(0));
        }
        Op::ReserveAndInstall(bits) => {
            let reserved = table.reserve();
            let opened = number(reserved.map(|it| it.install(file.clone(), flags(bits))));
            assert_eq!(opened, model.insert(0, file, flags(bits)));
        }
        Op::Pair(bits) => match table.reserve_many::<2>() {
            Ok(pair) => {
                for reservation in pair {
                    let fd = i64::from(reservation.install(file.clone(), flags(bits)));
                    assert_eq!(Ok(fd), model.insert(0, file, flags(bits)));
                }
            }
            Err(error) => {
                assert_eq!(error.errno(), Errno::EMFILE);
                let first = model.lowest(0);
                assert!(first.is_err() || model.lowest(first.unwrap() + 1).is_err());
            }
        },
        Op::Dup(fd) => {
            let expected = model.get(fd.get());
            let expected = expected.and_then(|file| model.insert(0, &file, FdFlags::empty()));
            assert_eq!(number(table.dup(fd.get())), expected);
        }
        Op::DupFrom(fd, min, bits) => {
            let expected = model.get(fd.get()).and_then(|file| match min.get() {
                min if (0..model.limit.min(i64::from(i32::MAX) + 1)).contains(&min) => {
                    model.insert(min, &file, flags(bits))
                }
                _ => Err(Errno::EINVAL),
            });
            assert_eq!(number(table.dup_from(fd.get(), min.get(), flags(bits))), expected);
        }
        Op::Dup2(old, new) => {
            let (old, new) = (old.get(), new.get());
            let expected = match old == new {
                true => model.get(old).map(|_| new),
                false => model.dup2(old, new, FdFlags::empty()),
            };
            assert_eq!(number(table.dup2(old, new)), expected);
        }
        Op::Dup3(old, new, bits) => {
            let (old, new, given) = (old.get(), new.get(), FdFlags::from_bits_retain(bits));
            let expected = match old == new || bits > 3 {
                true => Err(Errno::EINVAL),
                false => model.dup2(old, new, given),
            };
            assert_eq!(number(table.dup3(old, new, given)), expected);
        }
        Op::Replace(fd, bits) => {
            let replaced = table.replace(fd.get(), file.clone(), flags(bits));
            let replaced = replaced.map(|old| old.map(|file| **file)).map_err(Errno::from);
            let expected = match (0..model.bound()).contains(&fd.get()) {
                true => Ok(model.open.insert(fd.get(), (file.clone(), flags(bits)))),
                false => Err(Errno::EBADF),
            };
            assert_eq!(replaced, expected.map(|old| old.map(|(file, _)| *file)));
        }
        Op::Renumber(from, to) => {
            let (from, to) = (from.get(), to.get());
            let expected =
                model.get(from).and_then(|file| model.get(to).map(|_| file)).map(|file| {
                    if from != to {
                        model.open.remove(&from);
                        model.open.insert(to, (file, FdFlags::empty()));
                    }
                });
            assert_eq!(table.renumber(from, to).map_err(Errno::from), expected);
        }
        Op::Remove(fd) => {
            let removed = table.remove(fd.get()).map(|file| **file).map_err(Errno::from);
            let expected = model.open.remove(&fd.get()).map(|(file, _)| *file);
            assert_eq!(removed, expected.ok_or(Errno::EBADF));
        }
        Op::Close(fd) => {
            let closed = table.close(fd.get()).map_err(Errno::from);
            assert_eq!(closed, model.open.remove(&fd.get()).map(drop).ok_or(Errno::EBADF));
        }
        Op::SetFlags(fd, bits) => {
            let entry = model.open.get_mut(&fd.get());
            let expected = entry.map(|entry| entry.1 = flags(bits)).ok_or(Errno::EBADF);
            assert_eq!(table.set_flags(fd.get(), flags(bits)).map_err(Errno::from), expected);
        }
        Op::CloseRange(first, last, how) => {
            let how = CloseRange::from_bits_retain(u32::from(how & 7) | u32::from(how >> 6) << 16);
            let closed = table.close_range(first.into(), last.into(), how).map_err(Errno::from);
            if first > last || !(CloseRange::all() - CloseRange::UNSHARE).contains(how) {
                return assert_eq!(closed, Err(Errno::EINVAL));
            }
            assert_eq!(closed, Ok(()));
            let range = i64::from(first)..=i64::from(last);
            model.open.retain(|fd, (_, flags)| {
                let meant = range.contains(fd) != how.contains(CloseRange::EXCEPT)
                    && (!how.contains(CloseRange::CLOEXEC_ONLY)
                        || flags.contains(FdFlags::CLOEXEC));
                if meant && how.contains(CloseRange::CLOEXEC) {
                    *flags |= FdFlags::CLOEXEC;
                }
                !meant || how.contains(CloseRange::CLOEXEC)
            });
        }
        Op::CloseOnExec => {
            table.close_on_exec();
            model.open.retain(|_, (_, flags)| !flags.contains(FdFlags::CLOEXEC));
        }
        Op::Fork => {
            *table = table.fork().expect("memory");
            model.open.retain(|_, (_, flags)| !flags.contains(FdFlags::CLOFORK));
        }
        Op::Limit(limit) => {
            table.set_limit(limit.into());
            model.limit = limit.into();
        }
        Op::Restore => {
            let items = table.iter().map(|entry| (entry.fd, entry.file.to_owned(), entry.flags));
            let options = Options::new().max(MAX as u64).limit(table.limit());
            *table = options.restore(items).expect("as it was");
        }
    }
}

fuzz_target!(|ops: Vec<Op>| {
    let mut table = Options::new().max(MAX as u64).limit(5000).build();
    let mut model = Model { limit: 5000, ..Model::default() };
    for (name, op) in ops.into_iter().enumerate() {
        let file = Rc::new(name as u32);
        step(&mut table, &mut model, &file, op);
        let open: Vec<_> = table.iter().map(|e| (i64::from(e.fd), **e.file, e.flags)).collect();
        let expected = model.open.iter().map(|(&fd, (file, flags))| (fd, **file, *flags));
        assert_eq!(open, expected.collect::<Vec<_>>());
        assert_eq!(table.len(), model.open.len());
        assert_eq!(table.highest_open().map(i64::from), model.open.keys().last().copied());
    }
    // What is open is held once by the table, for all its numbers, and by the model; no more.
    let files: BTreeMap<u32, (File, usize)> =
        model.open.values().fold(BTreeMap::new(), |mut files, (file, _)| {
            files.entry(**file).or_insert((file.clone(), 0)).1 += 1;
            files
        });
    drop((table, model));
    for (file, _) in files.values() {
        assert_eq!(Rc::strong_count(file), 1, "file {file} is leaked");
    }
});
