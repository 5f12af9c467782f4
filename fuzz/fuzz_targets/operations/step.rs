//! Each operation, on a task's table and on the model of it, and the comparison of the results.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use fdtable::{
    CloseError, CloseRange, Errno, Fd, FdFlags, OwnedReservation, Rejected, Reservation,
    ReserveError,
};

use super::model::{Holders, Name, State, Table};
use super::op::{Number, Op, Pick, Step};
use super::{File, LIMIT, MAX, World, place};

fn flags(bits: u8) -> FdFlags {
    FdFlags::from_bits_truncate(bits)
}

fn number<N: Into<i64>, E: Into<Errno>>(result: Result<N, E>) -> Result<i64, Errno> {
    result.map(Into::into).map_err(Into::into)
}

/// Calls the method of the table, or the one that takes its caller's limit.
macro_rules! limited {
    ($files:expr, $limit:expr, $($call:tt)*) => {
        match $limit {
            None => $files.$($call)*,
            Some(limit) => $files.limited(limit.into()).$($call)*,
        }
    };
}

impl World {
    pub(super) fn step(&mut self, Step { task, limit, op }: Step) {
        let Some(at) = place(task, self.tasks.len()) else { return };
        let task = &mut self.tasks[at];
        let files = &mut task.files;
        let table = &mut self.tables[task.table];
        let holders = &mut self.holders;
        let observed = limit.map_or(table.limit, u64::from);
        let bound = table.bound(observed);
        let file = |holders: &mut Holders| File::new(holders, &self.events);

        match op {
            Op::Get(fd) => {
                let expected = table.get(fd.get());
                let found = files.get(fd.get()).map(|file| file.name).map_err(Errno::from);
                assert_eq!(found, expected);
                let lent = files.borrow(fd.get()).map(|file| file.name).map_err(Errno::from);
                assert_eq!(lent, expected);
                let seen = files.flags(fd.get()).map_err(Errno::from);
                assert_eq!(seen.map(drop), expected.map(drop));
                assert_eq!(files.contains(fd.get()), expected.is_ok());
            }
            Op::Keep(fd) => {
                let kept = files.get_owned(fd.get());
                let expected = table.get(fd.get());
                assert_eq!(kept.as_ref().map(|file| file.name).map_err(|&e| e.into()), expected);
                if let Ok(file) = kept {
                    holders.hold(file.name);
                    self.kept.push(file);
                }
            }
            Op::Forget(pick) => {
                if let Some(at) = place(pick, self.kept.len()) {
                    let file = self.kept.swap_remove(at);
                    let (name, is_last) = (file.name, holders.is_last(file.name));
                    match file.try_into_inner() {
                        Ok(_) => assert!(is_last),
                        Err(shared) => drop(shared),
                    }
                    holders.release(name);
                }
            }
            Op::Observe => task.observer = Some(files.observe()),

            Op::Insert { flags: bits } => {
                let file = file(holders);
                let name = file.name;
                let opened = limited!(files, limit, insert(file, flags(bits)));
                let expected = table.insert(0..bound, name, flags(bits));
                self.check_inserted(name, opened, expected);
            }
            Op::InsertFrom { min, flags: bits } => {
                let file = file(holders);
                let name = file.name;
                let opened = limited!(files, limit, insert_from(min.get(), file, flags(bits)));
                let expected = match min.get() {
                    ..0 => Err(Errno::EMFILE),
                    min => table.insert(min..bound, name, flags(bits)),
                };
                self.check_inserted(name, opened, expected);
            }
            Op::InsertKept { kept, flags: bits } => {
                let Some(kept) = place(kept, self.kept.len()) else { return };
                let file = self.kept[kept].clone();
                let name = file.name;
                holders.hold(name);
                let opened = limited!(files, limit, insert(file, flags(bits)));
                let expected = table.insert(0..bound, name, flags(bits));
                self.check_inserted(name, opened, expected);
            }
            Op::ReserveIn { start, length, flags: bits } => {
                let file = file(holders);
                let name = file.name;
                let range = start..start.saturating_add(length.into());
                let (from, to) = (i64::from(range.start), i64::from(range.end));
                let reserved = limited!(files, limit, reserve_in(range));
                let expected = table.lowest(from..to.min(bound), 1).map(|fds| fds[0]);
                assert_eq!(
                    number(reserved.as_ref().map(Reservation::fd).map_err(|&e| e)),
                    expected
                );
                match reserved {
                    Ok(it) => {
                        let fd = it.install(file, flags(bits)).into();
                        table.set(fd, State::Open(name, flags(bits)));
                    }
                    Err(_) => {
                        drop(file);
                        holders.release(name);
                    }
                }
            }
            Op::ReserveMany { count, installed, flags: bits } => match count % 6 {
                0 => self.reserve_many::<0>(at, limit, installed, flags(bits)),
                1 => self.reserve_many::<1>(at, limit, installed, flags(bits)),
                2 => self.reserve_many::<2>(at, limit, installed, flags(bits)),
                3 => self.reserve_many::<7>(at, limit, installed, flags(bits)),
                4 => self.reserve_many::<64>(at, limit, installed, flags(bits)),
                _ => self.reserve_many::<130>(at, limit, installed, flags(bits)),
            },
            Op::ReserveOwned => {
                let reserved = files.reserve_owned(observed);
                let expected = table.lowest(0..bound, 1).map(|fds| fds[0]);
                let fd = reserved.as_ref().map(OwnedReservation::fd).map_err(|&error| error);
                assert_eq!(number(fd), expected);
                if let (Ok(reservation), Ok(fd)) = (reserved, expected) {
                    table.set(fd, State::Reserved(FdFlags::empty()));
                    table.sharers += 1;
                    self.reservations.push((reservation, task.table));
                }
            }
            Op::Install { reservation, flags: bits } => {
                let Some(at) = place(reservation, self.reservations.len()) else { return };
                let file = file(holders);
                let name = file.name;
                let (reservation, table) = self.reservations.swap_remove(at);
                let table = &mut self.tables[table];
                let fd = reservation.install(file, flags(bits)).into();
                match table.numbers.get(&fd) {
                    Some(&State::Reserved(set)) => {
                        table.set(fd, State::Open(name, flags(bits) | set));
                    }
                    _ => panic!("fd {fd} was not reserved"),
                }
                table.leave(holders);
            }
            Op::Abandon { reservation } => {
                if let Some(at) = place(reservation, self.reservations.len()) {
                    self.abandon(at);
                }
            }

            Op::Dup(fd) => {
                let duplicate = number(limited!(files, limit, dup(fd.get())));
                let name = table.get(fd.get());
                let expected = name.and_then(|name| table.insert(0..bound, name, flags(0)));
                assert_eq!(duplicate, expected);
                if duplicate.is_ok() {
                    name.into_iter().for_each(|name| holders.hold(name));
                }
            }
            Op::DupFrom { fd, min, flags: bits } => {
                let duplicate =
                    number(limited!(files, limit, dup_from(fd.get(), min.get(), flags(bits))));
                let name = table.get(fd.get());
                let expected = name.and_then(|name| match u32::try_from(min.get()) {
                    Ok(min) if u64::from(min) < observed && i32::try_from(min).is_ok() => {
                        table.insert(min.into()..bound, name, flags(bits))
                    }
                    _ => Err(Errno::EINVAL),
                });
                assert_eq!(duplicate, expected);
                if duplicate.is_ok() {
                    name.into_iter().for_each(|name| holders.hold(name));
                }
            }
            Op::Dup2 { old, new } => {
                let (old, new) = (old.get(), new.get());
                let duplicate = number(limited!(files, limit, dup2(old, new)));
                let expected = match old == new {
                    true => table.get(old).map(|_| new),
                    false => table.dup2((old, new), observed, flags(0), holders),
                };
                assert_eq!(duplicate, expected);
            }
            Op::Dup3 { old, new, flags: bits } => {
                let (old, new, given) = (old.get(), new.get(), FdFlags::from_bits_retain(bits));
                let duplicate = number(limited!(files, limit, dup3(old, new, given)));
                let expected = match old == new || !FdFlags::all().contains(given) {
                    true => Err(Errno::EINVAL),
                    false => table.dup2((old, new), observed, given, holders),
                };
                assert_eq!(duplicate, expected);
            }
            Op::Replace { fd, flags: bits } => {
                let file = file(holders);
                let name = file.name;
                let replaced = limited!(files, limit, replace(fd.get(), file, flags(bits)));
                let expected = table.replace(fd.get(), observed, name, flags(bits));
                match (&replaced, expected) {
                    (Ok(old), expected) => {
                        assert_eq!(Ok(old.as_ref().map(|old| old.name)), expected);
                        expected.unwrap_or(None).into_iter().for_each(|old| holders.release(old));
                    }
                    (Err(rejected), expected) => {
                        assert_eq!(Err(rejected.errno()), expected);
                        assert_eq!(rejected.file.name, name);
                        holders.release(name);
                    }
                }
            }
            Op::Renumber { from, to } => {
                let done = files.renumber(from.get(), to.get()).map_err(Errno::from);
                assert_eq!(done, table.renumber(from.get(), to.get(), holders));
            }

            Op::Remove(fd) => {
                let removed = files.remove(fd.get()).map(|file| file.name).map_err(Errno::from);
                let expected = table.remove(fd.get());
                assert_eq!(removed, expected);
                expected.into_iter().for_each(|name| holders.release(name));
            }
            Op::Close(fd) => {
                let closed = files.close(fd.get()).map_err(|error: CloseError| error.errno());
                assert_eq!(closed, table.close(fd.get(), holders));
            }
            Op::CloseRange { first, last, to_the_end, how: bits } => {
                let how = u32::from(bits & 7) | u32::from(bits >> 6) << 16;
                let how = CloseRange::from_bits_retain(how);
                let last = if to_the_end { u32::MAX } else { last.into() };
                let closed = files.close_range(first.into(), last, how).map_err(Errno::from);
                if u32::from(first) > last || !CloseRange::all().contains(how) {
                    return assert_eq!(closed, Err(Errno::EINVAL));
                }
                assert_eq!(closed, Ok(()));
                let range = i64::from(first)..i64::from(last) + 1;
                if how.contains(CloseRange::UNSHARE) && table.sharers > 1 {
                    let copy = table.copy_without(range.clone(), how, holders);
                    self.moved(at, copy);
                }
                let table = &mut self.tables[self.tasks[at].table];
                table.close_range(range, how, &mut self.holders);
            }
            Op::CloseOnExec => {
                files.close_on_exec();
                table.close_on_exec(holders);
            }
            Op::Clear => {
                files.clear();
                table.clear(holders);
            }

            Op::SetFlags { fd, flags: bits } => {
                let set = files.set_flags(fd.get(), flags(bits)).map_err(Errno::from);
                let expected = table.get(fd.get());
                assert_eq!(set, expected.map(drop));
                if let Ok(name) = expected {
                    table.numbers.insert(fd.get(), State::Open(name, flags(bits)));
                }
            }
            Op::Limit(limit) => {
                files.set_limit(limit.into());
                table.limit = limit.into();
            }
            Op::Max(max) => {
                files.set_max(max.into());
                table.max = u32::from(max).max(64) & !63;
            }
            Op::ReserveCapacity(numbers) => {
                files.reserve_capacity(numbers.into()).expect("memory");
                assert!(files.capacity() >= u32::from(numbers).min(table.max));
            }

            Op::Share { task: place } => {
                let (shared, table) = (files.share(), task.table);
                self.tables[table].sharers += 1;
                self.add_task(place, shared, table);
            }
            Op::Fork { task: place } => {
                let child = files.fork().expect("memory");
                let copy = table.copy(|_, flags| flags.contains(FdFlags::CLOFORK), holders);
                self.add_table(child, place, copy);
            }
            Op::Restore { task, items } => self.restore(task, items),
            Op::Unshare | Op::Exec => {
                let is_exec = matches!(op, Op::Exec);
                let unshared = if is_exec { files.exec() } else { files.unshare() };
                unshared.expect("memory");
                if table.sharers > 1 {
                    let copy = table.copy(|_, _| false, holders);
                    self.moved(at, copy);
                }
                if is_exec {
                    self.tables[self.tasks[at].table].close_on_exec(&mut self.holders);
                }
            }
            Op::Exit => {
                self.end(at);
                self.tasks.swap_remove(at);
            }
        }
    }

    fn reserve_many<const N: usize>(
        &mut self,
        at: usize,
        limit: Option<u16>,
        installed: u8,
        flags: FdFlags,
    ) {
        let files = self.tasks[at].files.share();
        let table = self.tasks[at].table;
        let observed = limit.map_or(self.tables[table].limit, u64::from);
        let reserved = limited!(files, limit, reserve_many::<N>());
        let bound = self.tables[table].bound(observed);
        let expected = self.tables[table].lowest(0..bound, N);
        let fds = |all: &[Reservation<_>; N]| all.iter().map(|it| it.fd().into()).collect();
        assert_eq!(reserved.as_ref().map(fds).map_err(|&error| error.into()), expected);
        for (place, reservation) in reserved.into_iter().flatten().enumerate() {
            let fd = reservation.fd().into();
            self.tables[table].set(fd, State::Reserved(flags));
            if installed >> (place % 8) & 1 != 0 {
                let file = self.file();
                self.tables[table].set(fd, State::Open(file.name, flags));
                reservation.install(file, flags);
            } else {
                self.tables[table].numbers.remove(&fd);
            }
        }
    }

    pub(super) fn abandon(&mut self, at: usize) {
        let (reservation, table) = self.reservations.swap_remove(at);
        self.tables[table].numbers.remove(&reservation.fd().into());
        drop(reservation);
        self.tables[table].leave(&mut self.holders);
    }

    fn restore(&mut self, at: Pick, items: Vec<(Number, u8)>) {
        let mut taken = Vec::new();
        let restored = self.options().restore(items.into_iter().map(|(fd, bits)| {
            let file = self.file();
            taken.push((fd.get(), file.name, flags(bits)));
            (fd.get(), file, flags(bits))
        }));
        let (mut numbers, mut failed) = (BTreeMap::new(), None);
        for (fd, name, flags) in taken {
            assert_eq!(failed, None, "went on after a failure");
            if !(0..MAX as i64).contains(&fd) {
                failed = Some((Errno::EBADF, name));
            } else if let Entry::Vacant(free) = numbers.entry(fd) {
                free.insert((name, flags));
            } else {
                failed = Some((Errno::EINVAL, name));
            }
        }
        assert_eq!(restored.as_ref().err().map(|&error| error.into()), failed.map(|it| it.0));
        match restored {
            Ok(table) => {
                let mut model = Table::new(table.id(), LIMIT, MAX as u32);
                for (fd, (name, flags)) in numbers {
                    model.set(fd, State::Open(name, flags));
                }
                self.add_table(table.into(), at, model);
            }
            Err(_) => {
                let down = numbers.into_values().rev().map(|(name, _)| name);
                let released = failed.map(|(_, name)| name).into_iter().chain(down);
                released.for_each(|name| self.holders.release(name));
            }
        }
    }

    /// A file that was given to a call: it comes back inside the error.
    fn check_inserted(
        &mut self,
        name: Name,
        inserted: Result<Fd, Rejected<File, ReserveError>>,
        expected: Result<i64, Errno>,
    ) {
        let errno = |rejected: &Rejected<_, _>| rejected.errno();
        assert_eq!(number(inserted.as_ref().map(|&fd| fd).map_err(errno)), expected);
        if let Err(rejected) = inserted {
            assert_eq!(rejected.file.name, name);
            drop(rejected);
            self.holders.release(name);
        }
    }
}
