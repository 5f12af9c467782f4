//! An open consumes its path reference, on every path exactly once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use fdtable::file::{AccessMode, Budget, OpenOptions, StatusFlags};
use fdtable::{BadFd, Errno, FdFlags, Files};

use crate::counting::*;

const NONE: FdFlags = FdFlags::empty();

#[test]
fn a_consuming_open_touches_no_counter() {
    let place = Arc::<Place>::default();
    let file = TestFile::open(Path::to(&place), &read_write(), |_| Ok(Ops("a"))).unwrap();
    assert_eq!((place.clones(), place.drops()), (0, 0));
    drop(file);
    assert_eq!((place.clones(), place.drops()), (0, 1));
    assert_eq!(place.take_log(), ["release a", "path"]);
}

#[test]
fn a_borrowing_open_clones_once() {
    let place = Arc::<Place>::default();
    let path = Path::to(&place);
    let file = TestFile::open_borrowed(&path, &read_write(), |_| Ok(Ops("a"))).unwrap();
    assert_eq!((place.clones(), place.drops()), (1, 0));
    drop(file);
    assert_eq!((place.clones(), place.drops()), (1, 1));
    assert!(TestFile::open_borrowed(&path, &read_write(), |_| Err(Errno::EIO)).is_err());
    assert_eq!((place.clones(), place.drops()), (2, 2));
}

/// Each way to fail drops the path once, and neither flushes nor releases.
#[test]
fn every_failure_is_balanced() {
    let table = options().limit(1).build();
    let budget = Budget::new(1);
    let within = read_write().budget(&budget);
    type Attempt<'a> = (&'static str, Box<dyn Fn(Path) -> Option<Errno> + 'a>);
    let attempts: Vec<Attempt> = vec![
        (
            "the hook fails",
            Box::new(|path| TestFile::open(path, &within, |_| Err(Errno::EIO)).err()),
        ),
        (
            "the hook panics",
            Box::new(|path| {
                let open = || TestFile::open(path, &within, |_| panic!("planned"));
                catch_unwind(AssertUnwindSafe(open)).is_err().then_some(Errno::EIO)
            }),
        ),
        (
            "the hook fails for a table",
            Box::new(|path| table.open_file(path, &within, NONE, |_| Err(Errno::EIO)).err()),
        ),
        (
            "the hook panics for a table",
            Box::new(|path| {
                let open = || table.open_file(path, &within, NONE, |_| panic!("planned"));
                catch_unwind(AssertUnwindSafe(open)).is_err().then_some(Errno::EIO)
            }),
        ),
        (
            "the budget is used up",
            Box::new(|path| {
                let other = TestFile::open(path.clone(), &within, |_| Ok(Ops("other"))).unwrap();
                let error = table.open_file(path, &within, NONE, |_| panic!("not called")).err();
                other.path().0.take_log();
                drop(other);
                error.filter(|&error| error == Errno::ENFILE).map(|_| Errno::EIO)
            }),
        ),
        (
            "the table is full",
            Box::new(|path| {
                let limited = table.limited(0);
                let error = limited.open_file(path, &within, NONE, |_| panic!("not called")).err();
                error.filter(|&error| error == Errno::EMFILE).map(|_| Errno::EIO)
            }),
        ),
    ];
    for (name, attempt) in attempts {
        let place = Arc::<Place>::default();
        assert_eq!(attempt(Path::to(&place)), Some(Errno::EIO), "{name}");
        assert_eq!(place.drops(), place.clones() + 1, "{name}");
        let log = place.take_log();
        assert!(!log.iter().any(|entry| entry.starts_with("flush")), "{name}: {log:?}");
        assert_eq!(Arc::strong_count(&place), 1, "{name}");
        assert_eq!(budget.used(), 0, "{name}");
        assert!(table.is_empty() && table.reserve().unwrap().fd() == 0, "{name}");
    }
}

#[test]
fn a_full_table_comes_before_the_hook_and_the_hook_before_the_install() {
    let table = options().limit(2).build();
    let place = Arc::<Place>::default();
    let opened = table.open_file(Path::to(&place), &read_write(), FdFlags::CLOEXEC, |_| {
        // The number is taken, and not open yet.
        assert_eq!(table.get(0).err(), Some(BadFd));
        let (inner, _) = file("inner");
        assert_eq!(table.insert(inner, NONE).unwrap(), 1);
        Ok(Ops("outer"))
    });
    assert_eq!(opened.unwrap(), 0);
    assert_eq!(table.flags(0), Ok(FdFlags::CLOEXEC));
}

#[test]
fn the_access_mode_filters_lookups() {
    let table = table();
    let modes = [AccessMode::Read, AccessMode::Write, AccessMode::ReadWrite, AccessMode::Path];
    for (fd, mode) in modes.into_iter().enumerate() {
        let place = Arc::default();
        let hook = |_: &Path| {
            assert_ne!(mode, AccessMode::Path, "O_PATH does not call the hook");
            Ok(Ops("a"))
        };
        let opened = table.open_file(Path::to(&place), &OpenOptions::new(mode), NONE, hook);
        assert_eq!(opened.unwrap(), fd as u32);
    }
    let found = |fd: usize| {
        [
            table.get(fd).is_ok(),
            table.get_file(fd).is_ok(),
            table.get_readable(fd).is_ok(),
            table.get_writable(fd).is_ok(),
        ]
    };
    assert_eq!(found(0), [true, true, true, false]);
    assert_eq!(found(1), [true, true, false, true]);
    assert_eq!(found(2), [true, true, true, true]);
    assert_eq!(found(3), [true, false, false, false]);
    assert_eq!(found(4), [false; 4]);
}

#[test]
fn status_and_position_are_shared_by_duplicates() {
    let mut files = Files::from(table());
    let (file, _place) = file("a");
    let fd = files.insert(file, NONE).unwrap();
    {
        let mut file = files.lock_position(fd).unwrap();
        let mut position = file.position();
        assert!(!position.is_locked(), "one task, one fd, no handle");
        *position += 10;
        assert_eq!(*position, 10);
    }
    let copy = files.dup(fd).unwrap();
    assert_eq!(files.get(copy).unwrap().position(), 10);
    files.get(copy).unwrap().set_status(StatusFlags::APPEND | StatusFlags::NONBLOCK);
    let status = files.get(fd).unwrap().status();
    assert_eq!(status, StatusFlags::APPEND | StatusFlags::NONBLOCK);
    assert!(files.lock_position(fd).unwrap().position().is_locked(), "two fds");
    files.close(copy).unwrap();
    assert!(!files.lock_position(fd).unwrap().position().is_locked());
    let handle = files.get_owned(fd).unwrap();
    assert!(files.lock_position(fd).unwrap().position().is_locked(), "a handle");
    drop(handle);
    let sharer = files.share();
    assert!(files.lock_position(fd).unwrap().position().is_locked(), "a shared table");
    drop(sharer);
    assert!(!files.lock_position(fd).unwrap().position().is_locked());
    let child = files.fork().unwrap();
    assert!(files.lock_position(fd).unwrap().position().is_locked(), "a fork's copy");
    drop(child);
    assert!(files.lock_position(7).is_err());
}

/// Two threads that add to one position under its lock lose nothing.
#[test]
fn the_position_lock_excludes() {
    let table = table();
    let (file, _place) = file("a");
    let fd = table.insert(file, NONE).unwrap();
    let rounds = if cfg!(miri) { 50 } else { 10_000 };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..rounds {
                    *table.get(fd).unwrap().lock_position() += 1;
                }
            });
        }
    });
    assert_eq!(table.get(fd).unwrap().position(), 2 * rounds);
}

/// Several tables and threads share a budget: never more files than it has, none lost.
#[test]
fn the_budget_is_exact() {
    let budget = Budget::new(3);
    let options = read_write().budget(&budget);
    let rounds = if cfg!(miri) { 20 } else { 5_000 };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let (table, place) = (table(), Arc::default());
                for _ in 0..rounds {
                    let open =
                        || table.open_file(Path::to(&place), &options, NONE, |_| Ok(Ops("a")));
                    let opened: Vec<_> = (0..3).map(|_| open()).collect();
                    assert!(budget.used() <= 3);
                    for fd in opened {
                        match fd {
                            Ok(fd) => table.close(fd).unwrap(),
                            Err(error) => assert_eq!(error, Errno::ENFILE),
                        }
                    }
                }
            });
        }
    });
    assert_eq!(budget.used(), 0);
    budget.set_max(0);
    let refused = TestFile::open(Path::to(&Arc::default()), &options, |_| panic!("not called"));
    assert_eq!(refused.err(), Some(Errno::ENFILE));
}

/// A file whose path comes into being by the open: number and budget are taken before the hook runs.
#[test]
fn a_create_takes_number_and_budget_first() {
    let (table, budget, place) = (options().limit(1).build(), Budget::new(1), Arc::default());
    let within = read_write().budget(&budget);
    let fd = table.create_file(&within, NONE, || {
        assert_eq!((budget.used(), table.get(0).err()), (1, Some(BadFd)));
        Ok((Path::to(&place), Ops("a")))
    });
    assert_eq!(fd.unwrap(), 0);
    let full = table.create_file(&within, NONE, || panic!("not called"));
    assert_eq!(full, Err(Errno::EMFILE));
    let used_up = table.limited(2).create_file(&within, NONE, || panic!("not called"));
    assert_eq!(used_up, Err(Errno::ENFILE));
    table.close(0).unwrap();
    assert_eq!((place.clones(), place.drops(), budget.used()), (0, 1, 0));
    assert_eq!(table.create_file(&within, NONE, || Err(Errno::EEXIST)), Err(Errno::EEXIST));
    assert_eq!((budget.used(), table.reserve().unwrap().fd().get()), (0, 0));
}

#[test]
fn a_guests_flags_mean_what_they_mean_to_linux() {
    let modes = [AccessMode::Read, AccessMode::Write, AccessMode::ReadWrite, AccessMode::Path];
    for (flags, mode) in (0o2000..).zip(modes) {
        assert_eq!(AccessMode::from_linux(flags), mode);
    }
    assert_eq!(AccessMode::from_linux(0o10_000_002), AccessMode::Path);
    assert_eq!(StatusFlags::from_linux(u32::MAX), StatusFlags::all() - StatusFlags::NOCMTIME);
}
