//! A table without memory: `ENOMEM`, and nothing has changed.

use super::*;

#[test]
fn c10_insert_without_memory() {
    for (open, min) in [(64, 0), (128, 0), (512, 0), (3, 64), (3, 600), (3, 5000), (3, 1_000_000)] {
        refused_at_each(
            || Scene::filled(open),
            |scene| {
                let file = scene.file.take().unwrap();
                let opened = scene.table.insert_from(min, file, CLOEXEC);
                let fd = opened.map_err(|rejected| bare(scene.give_back(rejected)))?;
                assert_eq!((fd.get(), scene.table.len()), (min.max(open), open as usize + 1));
                assert_eq!(*scene.table.get(fd).unwrap(), 1);
                Ok(())
            },
        );
    }
}

#[test]
fn c10_reserve_without_memory() {
    for (open, numbers) in [(64, 0..u32::MAX), (3, 700..701), (3, 1_000_000..u32::MAX)] {
        refused_at_each(
            || Scene::filled(open),
            |scene| {
                let reserved = scene.table.reserve_in(numbers.clone()).map_err(bare)?;
                assert_eq!(reserved.fd(), numbers.start.max(open));
                Ok(())
            },
        );
    }
}

#[test]
fn c10_reserve_many_without_memory() {
    fn check<const N: usize>(open: u32) {
        refused_at_each(
            || Scene::filled(open),
            |scene| {
                let reserved = scene.table.reserve_many::<N>().map_err(bare)?;
                let expected = open..open + N as u32;
                assert!(reserved.iter().map(|reserved| reserved.fd().get()).eq(expected));
                Ok(())
            },
        );
    }

    check::<1>(64);
    check::<3>(63);
    check::<200>(0);
    check::<2>(127);
    check::<1000>(60);
}

#[test]
fn c10_dup_without_memory() {
    refused_at_each(
        || Scene::filled(64),
        |scene| {
            let fd = scene.table.dup(0).map_err(bare)?;
            assert_eq!(fd, 64);
            Ok(())
        },
    );
    for min in [64, 3000, 500_000] {
        refused_at_each(
            || Scene::filled(1),
            |scene| {
                let fd = scene.table.dup_from(0, min, CLOEXEC).map_err(bare)?;
                assert_eq!(fd, min);
                Ok(())
            },
        );
    }
}

#[test]
fn c10_dup2_and_replace_without_memory() {
    for fd in [64, 3000, 1_048_575] {
        refused_at_each(
            || Scene::filled(1),
            |scene| {
                assert_eq!(scene.table.dup2(0, fd).map_err(bare)?, fd);
                Ok(())
            },
        );
        refused_at_each(
            || Scene::filled(1),
            |scene| {
                assert_eq!(scene.table.dup3(0, fd, CLOEXEC).map_err(bare)?, fd);
                Ok(())
            },
        );
        refused_at_each(
            || Scene::filled(1),
            |scene| {
                let file = scene.file.take().unwrap();
                let old = scene.table.replace(fd, file, CLOEXEC);
                assert!(old.map_err(|rejected| bare(scene.give_back(rejected)))?.is_none());
                assert_eq!(*scene.table.get(fd).unwrap(), 1);
                Ok(())
            },
        );
    }
}

#[test]
fn c10_fork_without_memory() {
    for highest in [64, 600, 5000, 100_000, 1_048_575] {
        let make = || {
            let scene = Scene::filled(70);
            scene.table.dup2(0, highest).unwrap();
            scene
        };
        refused_at_each(make, |scene| {
            let child = scene.table.fork().map_err(bare)?;
            assert_eq!(child.len(), scene.table.len());
            assert!(child.contains(highest));
            Ok(())
        });
    }
    // Nothing to allocate.
    let table = Scene::filled(64).table;
    let (child, _) = refusing(Refused::From(0), || table.fork());
    assert_eq!(child.unwrap().len(), 64);
}

/// The references that a failed copy has taken are given back, each of them.
#[test]
fn c10_fork_without_memory_leaves_the_counts() {
    for n in 0.. {
        let table = FdTable::new();
        for fd in 0..700 {
            table.replace(fd, fd, NONE).unwrap();
        }
        let (is_forked, _) = refusing(Refused::Nth(n), || table.fork().is_ok());
        for fd in 0..700 {
            assert_eq!(table.remove(fd).unwrap().try_into_inner().ok(), Some(fd));
        }
        if is_forked {
            assert!(n > 0);
            break;
        }
    }
}

#[test]
fn c10_reserve_capacity_without_memory_keeps_what_it_has() {
    for (numbers, kind) in [(65, Refused::Nth as fn(usize) -> Refused), (20_000, Refused::From)] {
        for n in 0.. {
            let before = BYTES.get();
            let Scene { table, file } = Scene::filled(3);
            let (result, _) = refusing(kind(n), || table.reserve_capacity(numbers));
            assert_eq!((table.len(), table.high_water().unwrap().get()), (3, 2));
            // What it says it has, it has.
            let capacity = table.capacity();
            let allocations = ALLOCATIONS.get();
            table.dup2(0, capacity - 1).unwrap();
            if result.is_ok() {
                assert!(capacity as usize >= numbers && n > 0);
                for fd in 3..numbers {
                    table.dup2(0, fd).unwrap();
                }
            } else {
                assert_eq!(result, Err(OutOfMemory));
                table.reserve_capacity(numbers).unwrap();
            }
            assert!(result.is_err() || ALLOCATIONS.get() == allocations);
            drop((table, file));
            assert_eq!(BYTES.get(), before);
            if result.is_ok() {
                break;
            }
        }
    }
}

#[test]
fn c10_restore_without_memory_drops_all_files() {
    for fds in [[0_u32, 1, 64], [70, 5000, 3], [1_000_000, 0, 600]] {
        let mut refusals = 0;
        for n in 0.. {
            let before = BYTES.get();
            let files = fds.map(|fd| (fd, OwnedRef::new(fd), NONE));
            let copies = files.each_ref().map(|(_, file, _)| file.clone());
            let restore = || Options::<u32>::new().restore(files);
            let (result, _) = refusing(Refused::Nth(n), restore);
            let is_restored = match result {
                Ok(table) => {
                    assert_eq!(table.len(), 3);
                    true
                }
                Err(error) => {
                    assert_eq!(error, RestoreError::OutOfMemory);
                    refusals += 1;
                    false
                }
            };
            for copy in copies {
                assert!(copy.try_into_inner().is_ok());
            }
            assert_eq!(BYTES.get(), before);
            if is_restored {
                break;
            }
        }
        assert!(refusals > 0);
    }
}

#[test]
fn c10_a_file_without_memory_comes_back() {
    let (file, _) = refusing(Refused::Nth(0), || OwnedRef::try_new(7));
    assert_eq!(file.err(), Some(7));
    assert_eq!(OwnedRef::try_new(7).unwrap().try_into_inner().ok(), Some(7));
}
