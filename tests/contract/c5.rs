//! C5: the destructor runs on the thread that gave up the last reference, before that returns.

use super::*;

/// Looks up `fd` in each way there is; drops the handles outside of the lookups.
fn look_up(table: &FdTable<Traced>, proc: &Observer<Traced>, fd: u32) {
    fn inside<R>(lookup: impl FnOnce() -> R) -> R {
        LOOKING.set(true);
        let found = lookup();
        LOOKING.set(false);
        found
    }

    drop(inside(|| table.get(fd)));
    drop(inside(|| table.get_owned(fd)));
    drop(inside(|| proc.get(fd)));
    let _ = inside(|| (table.contains(fd), table.flags(fd), proc.flags(fd)));
    let mut iter = table.iter();
    while let Some(entry) = inside(|| iter.next()) {
        drop(entry);
    }
}

#[test]
fn c5_the_closer_drops() {
    type Way = fn(&FdTable<Traced>, u32);
    let ways: [Way; 11] = [
        |table, fd| table.close(fd).unwrap(),
        |table, fd| drop(table.remove(fd).unwrap()),
        |table, fd| assert!(table.dup2(0, fd).is_ok()),
        |table, fd| assert!(table.dup3(0, fd, CLOEXEC).is_ok()),
        |table, fd| table.renumber(table.dup(0).unwrap(), fd).unwrap(),
        |table, fd| drop(table.replace(fd, table.get_owned(0).unwrap(), NONE).unwrap()),
        |table, fd| table.close_range(fd, fd, CLOSE).unwrap(),
        |table, fd| table.close_range(fd, u32::MAX, CLOSE).unwrap(),
        |table, _| table.close_on_exec(),
        |table, fd| drop(table.remove(fd).unwrap().try_into_inner()),
        |table, fd| {
            // A copy holds it until it ends.
            let child = table.fork().unwrap();
            table.close(fd).unwrap();
            drop(child);
        },
    ];
    // Next to what others look up: in the same word, and in the same lines.
    for fd in [4, 70] {
        let ends = Arc::new(Ends::default());
        let table = Files::new();
        let proc = table.observe();
        for _ in 0..fd {
            table.insert(ends.file(), NONE).unwrap();
        }
        let look = || {
            for other in [0, 3, fd - 1, fd + 1] {
                drop(table.get(other));
                drop(table.get_owned(other));
                drop(proc.get(other));
            }
        };
        alongside(&[&look, &look], || {
            for _ in 0..rounds(500) {
                for way in ways {
                    drop(table.replace(fd, ends.file(), CLOEXEC).unwrap());
                    let (before, _) = (ends.count.load(SeqCst), ends.take_last());
                    way(&table, fd);
                    assert_eq!(ends.count.load(SeqCst), before + 1);
                    assert_eq!(ends.take_last(), Some(thread::current().id()));
                    let _ = table.close(fd);
                }
            }
        });
    }
}

#[test]
fn c5_the_last_sharer_drops() {
    for files in 1..4 {
        let ends = Arc::new(Ends::default());
        let table = Files::new();
        for _ in 0..100 {
            table.insert(ends.file(), NONE).unwrap();
        }
        let mut sharers: Vec<_> = (1..files).map(|_| table.share()).collect();
        sharers.push(table);
        let last = sharers.pop().unwrap();
        thread::scope(|scope| drop(scope.spawn(|| drop(sharers))));
        assert_eq!(ends.count.load(SeqCst), 0);
        drop(last);
        assert_eq!(ends.count.load(SeqCst), 100);
        assert_eq!(ends.take_last(), Some(thread::current().id()));
    }
}

#[test]
fn c5_never_inside_of_a_lookup() {
    for fd in [3, 70] {
        let ends = Arc::new(Ends::default());
        let table = Files::new();
        let proc = table.observe();
        for _ in 0..fd {
            table.insert(ends.file(), NONE).unwrap();
        }
        let turns = rounds(5000);
        alongside(&[&|| look_up(&table, &proc, fd), &|| look_up(&table, &proc, fd)], || {
            for turn in 0..turns {
                assert_eq!(table.insert(ends.file(), NONE).unwrap(), fd);
                if turn % 2 == 0 {
                    drop(table.replace(fd, ends.file(), NONE).unwrap());
                }
                table.close(fd).unwrap();
            }
        });
        assert_eq!(ends.in_lookup.load(SeqCst), 0);
        assert_eq!(ends.count.load(SeqCst), turns + turns.div_ceil(2));
    }
}

#[test]
fn c5_the_last_handle_drops_whatever_kind_it_is() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = filled(&ledger, fd);
        type Way = for<'t> fn(&'t FdTable<File>, u32) -> Box<dyn std::any::Any>;
        // Handles that own, as anything: to be dropped last.
        let ways: [Way; 8] = [
            |table, fd| Box::new(table.get_owned(fd).unwrap()),
            |table, fd| Box::new(table.get(fd).unwrap().to_owned()),
            |table, fd| Box::new(table.get(fd).unwrap().into_owned()),
            |table, fd| Box::new(table.get_owned(fd).unwrap().clone()),
            |table, fd| Box::new(table.fork().unwrap().remove(fd).unwrap()),
            |table, fd| {
                Box::new(table.iter().find(|entry| entry.fd == fd).unwrap().file.into_owned())
            },
            |table, fd| {
                let file = table.get_owned(fd).unwrap();
                Box::new(table.limited(0).insert(file, NONE).unwrap_err())
            },
            |table, _| Box::new(table.fork().unwrap()),
        ];
        for way in ways {
            assert_eq!(table.insert(ledger.file(1), NONE).unwrap(), fd);
            let handle = way(&table, fd);
            let borrowed = table.get(fd).unwrap();
            table.close(fd).unwrap();
            assert_eq!((ledger.live(), borrowed.name()), (2, 1));
            drop(borrowed);
            assert_eq!(ledger.live(), 2);
            drop(handle);
            assert_eq!(ledger.live(), 1);
        }
    }
}

#[test]
fn c5_the_last_handle_drops_on_its_own_thread() {
    for fd in [3, 70] {
        let ends = Arc::new(Ends::default());
        let table = FdTable::new();
        for _ in 0..fd + 1 {
            table.insert(ends.file(), NONE).unwrap();
        }
        thread::scope(|scope| {
            let (handle, owned) = (table.get(fd).unwrap(), table.get_owned(fd).unwrap());
            table.close(fd).unwrap();
            let other = scope.spawn(move || {
                drop(handle);
                drop(owned);
            });
            let id = other.thread().id();
            other.join().unwrap();
            assert_eq!((ends.count.load(SeqCst), ends.take_last()), (1, Some(id)));
        });
    }
}

/// More handles than any field of a word has room for, and in every order.
#[test]
fn c5_counts_of_many_handles() {
    // Past 2^16 for those of one fd, past 2^20 for those of one file.
    let (handles, clones) = if cfg!(miri) { (300, 300) } else { (200_000, 2_200_000) };
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = filled(&ledger, fd);
        for close_at in [0, handles / 2, handles] {
            assert_eq!(table.insert(ledger.file(1), NONE).unwrap(), fd);
            let mut held = Vec::new();
            for turn in 0..handles {
                if turn == close_at {
                    table.dup(fd).unwrap();
                    table.close(fd + 1).unwrap();
                }
                held.push(table.get(fd).unwrap());
                if turn % 3 == 0 {
                    drop(held.swap_remove(turn % held.len()));
                }
            }
            // A part before the close, a part after.
            held.truncate(held.len() - close_at / 3);
            table.close(fd).unwrap();
            assert_eq!(ledger.live(), 2);
            let last = held.swap_remove(held.len() / 2);
            drop(held);
            assert_eq!((ledger.live(), last.name()), (2, 1));
            drop(last);
            assert_eq!(ledger.live(), 1);
        }

        // Handles that are never given back to the fd.
        assert_eq!(table.insert(ledger.file(1), NONE).unwrap(), fd);
        let owned: Vec<_> = (0..handles).map(|_| table.get(fd).unwrap().into_owned()).collect();
        drop(owned);
        let file = table.remove(fd).unwrap();
        let copies = vec![file; clones];
        assert_eq!(ledger.live(), 2);
        let mut copies = copies.into_iter();
        let last = copies.next().unwrap();
        drop(copies);
        assert_eq!((ledger.live(), last.name()), (2, 1));
        assert!(last.try_into_inner().is_ok());
        assert_eq!(ledger.live(), 1);
    }
}

/// A handle remembers the fd it came from: the file may be there again, or another one.
#[test]
fn c5_counts_of_handles_whose_fd_has_changed_hands() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = filled(&ledger, fd);
        for handles in 1..4 {
            for again in 0..4 {
                assert_eq!(table.insert(ledger.file(1), NONE).unwrap(), fd);
                let mut held: Vec<_> = (0..handles).map(|_| table.get(fd).unwrap()).collect();
                let file = table.remove(fd).unwrap();
                match again {
                    0 => assert_eq!(table.insert(file, NONE).unwrap(), fd),
                    1 => {
                        assert_eq!(table.insert(ledger.file(2), NONE).unwrap(), fd);
                        drop(file);
                    }
                    2 => {
                        assert_eq!(table.insert_from(fd + 1, file, NONE).unwrap(), fd + 1);
                        assert_eq!(table.dup(fd + 1).unwrap(), fd);
                    }
                    _ => drop(file),
                }
                held.extend(table.get(fd).ok());
                let newer: Vec<_> = held.iter().map(Ref::to_owned).collect();
                while let Some(handle) = held.pop() {
                    assert!(handle.name() > 0);
                }
                drop(newer);
                let open = table.len() - fd as usize;
                assert_eq!(ledger.live(), 1 + open.min(1));
                table.close_range(fd, u32::MAX, CLOSE).unwrap();
                assert_eq!(ledger.live(), 1);
            }
        }
    }
}

/// What is open, and how many references each file has: at fds of all tables, and as handles.
#[derive(Default)]
struct Model {
    ended: Vec<Arc<AtomicBool>>,
    references: Vec<usize>,
    tables: Vec<Vec<Option<usize>>>,
}

struct Numbered {
    number: usize,
    ended: Arc<AtomicBool>,
}

impl Drop for Numbered {
    fn drop(&mut self) {
        assert!(!self.ended.swap(true, SeqCst), "dropped twice");
    }
}

impl Model {
    fn file(&mut self) -> Numbered {
        let ended = Arc::<AtomicBool>::default();
        self.ended.push(Arc::clone(&ended));
        self.references.push(0);
        Numbered { number: self.ended.len() - 1, ended }
    }

    fn set(&mut self, table: usize, at: usize, file: Option<usize>) {
        if let Some(new) = file {
            self.references[new] += 1;
        }
        if let Some(old) = std::mem::replace(&mut self.tables[table][at], file) {
            self.references[old] -= 1;
        }
    }

    fn check(&self) {
        for (ended, &references) in self.ended.iter().zip(&self.references) {
            assert_eq!(ended.load(SeqCst), references == 0);
        }
    }
}

#[test]
fn c5_counts_are_exact_after_any_operations() {
    const FDS: usize = 4;

    for (seed, base) in [(1, 0), (2, 62), (3, 64), (4, 4094)] {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut model = Model { tables: vec![vec![None; FDS]; 2], ..Model::default() };
        // Handles may borrow the first two tables; the others are copies that come and go.
        let fixed = [FdTable::new(), FdTable::new()];
        let mut copies: Vec<FdTable<Numbered>> = Vec::new();
        let mut borrowed: Vec<(usize, Ref<'_, Numbered>)> = Vec::new();
        let mut owned: Vec<(usize, OwnedRef<Numbered>)> = Vec::new();
        for _ in 0..rounds(6000) {
            let (at, to) = (random.usize(..FDS), random.usize(..FDS));
            let (fd, new) = (base + at, base + to);
            let which = random.usize(..model.tables.len());
            let table = fixed.get(which).unwrap_or_else(|| &copies[which - fixed.len()]);
            let there = model.tables[which][at];
            match random.u32(..13) {
                0 => {
                    let file = model.file();
                    model.references[file.number] += 1;
                    owned.push((file.number, OwnedRef::new(file)));
                }
                1 | 2 if !owned.is_empty() => {
                    let (file, handle) = owned.swap_remove(random.usize(..owned.len()));
                    let old = table.replace(fd, handle, CLOEXEC).ok().unwrap();
                    assert_eq!(old.map(|old| old.number), there);
                    model.set(which, at, Some(file));
                    model.references[file] -= 1;
                }
                3 => {
                    assert_eq!(table.close(fd).is_ok(), there.is_some());
                    model.set(which, at, None);
                }
                4 => {
                    let file = table.remove(fd).ok();
                    assert_eq!(file.as_ref().map(|file| file.number), there);
                    model.set(which, at, None);
                    if let Some(file) = file {
                        model.references[file.number] += 1;
                        owned.push((file.number, file));
                    }
                }
                5 | 6 => {
                    if let (Some(fixed), Some(file)) = (fixed.get(which), there) {
                        borrowed.push((file, fixed.get(fd).unwrap()));
                        model.references[file] += 1;
                    }
                }
                7 => {
                    if let Some(file) = there {
                        owned.push((file, table.get_owned(fd).unwrap()));
                        model.references[file] += 1;
                    }
                }
                8 if !borrowed.is_empty() => {
                    let (file, handle) = borrowed.swap_remove(random.usize(..borrowed.len()));
                    if random.bool() {
                        owned.push((file, handle.into_owned()));
                    } else {
                        drop(handle);
                        model.references[file] -= 1;
                    }
                }
                9 if !owned.is_empty() => {
                    let (file, handle) = owned.swap_remove(random.usize(..owned.len()));
                    model.references[file] -= 1;
                    if random.bool() {
                        drop(handle);
                    } else {
                        let is_last = model.references[file] == 0;
                        assert_eq!(handle.try_into_inner().is_ok(), is_last);
                    }
                }
                10 if at != to => {
                    assert_eq!(table.dup2(fd, new).is_ok(), there.is_some());
                    if there.is_some() {
                        model.set(which, to, there);
                    }
                }
                11 if at != to => {
                    let both = there.is_some() && model.tables[which][to].is_some();
                    assert_eq!(table.renumber(fd, new).is_ok(), both);
                    if both {
                        model.set(which, to, there);
                        model.set(which, at, None);
                    }
                }
                12 if copies.len() < 3 => {
                    let copy = table.fork().unwrap();
                    copies.push(copy);
                    let copied = model.tables[which].clone();
                    for &file in copied.iter().flatten() {
                        model.references[file] += 1;
                    }
                    model.tables.push(copied);
                }
                12 => {
                    drop(copies.remove(0));
                    for file in model.tables.remove(fixed.len()).into_iter().flatten() {
                        model.references[file] -= 1;
                    }
                }
                _ => {}
            }
            model.check();
        }
        drop((borrowed, owned, copies));
        drop(fixed);
        assert!(model.ended.iter().all(|ended| ended.load(SeqCst)));
    }
}
