//! Flush once per closed fd, release once per file, then the path; nothing under a lock.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fdtable::{CloseError, CloseRange, Errno, FdFlags, Files};

use crate::counting::*;

const NONE: FdFlags = FdFlags::empty();

#[test]
fn a_last_close_flushes_then_releases_then_drops_the_path() {
    let table = table();
    let (file, place) = file("a");
    let fd = table.insert(file, NONE).unwrap();
    table.close(fd).unwrap();
    assert_eq!(place.take_log(), [flush("a", table.id()), "release a".into(), "path".into()]);
}

#[test]
fn boxed_operations_are_flushed_and_released() {
    use fdtable::file::{File, FileOps};

    type Boxed = Box<dyn FileOps<Path>>;
    let table = File::<Path, Boxed>::table_options().build();
    let place = std::sync::Arc::<Place>::default();
    let hook = |_: &Path| Ok(Box::new(Ops("flush fails")) as Boxed);
    let fd = table.open_file(Path::to(&place), &read_write(), NONE, hook).unwrap();
    assert_eq!(table.close(fd), Err(CloseError::Flush(Errno::EIO)));
    let log = ["release flush fails".into(), "path".into()];
    assert_eq!(place.take_log(), [&[flush("flush fails", table.id())], &log[..]].concat());
}

#[test]
fn a_flush_error_is_returned_and_the_fd_is_closed_all_the_same() {
    let table = table();
    let (file, place) = file("flush fails");
    let fd = table.insert(file, NONE).unwrap();
    assert_eq!(table.close(fd), Err(CloseError::Flush(Errno::EIO)));
    assert!(!table.contains(fd));
    assert_eq!(place.take_log().len(), 3);
    assert_eq!(table.close(fd), Err(CloseError::BadFd));
}

#[test]
fn a_handle_keeps_the_file_and_drops_it_last() {
    let table = table();
    let (file, place) = file("a");
    let fd = table.insert(file, NONE).unwrap();
    let handle = table.get(fd).unwrap();
    table.close(fd).unwrap();
    assert_eq!(place.take_log(), [flush("a", table.id())]);
    drop(handle);
    assert_eq!(place.take_log(), ["release a", "path"]);
}

#[test]
fn f1_a_release_that_blocks_delays_nobody() {
    use fdtable::file::{File, FileOps};
    use std::sync::Barrier;

    struct Blocks<'a>(Option<&'a Barrier>);
    impl FileOps<()> for Blocks<'_> {
        fn release(&mut self, (): &()) {
            if let Some(barrier) = self.0 {
                barrier.wait(); // the release has begun
                barrier.wait(); // the other thread is done
            }
        }
    }
    let barrier = Barrier::new(2);
    let table = File::<(), Blocks>::table_options().build();
    let open = |barrier| table.open_file((), &read_write(), NONE, |()| Ok(Blocks(barrier)));
    let (slow, other) = (open(Some(&barrier)).unwrap(), open(None).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| table.close(slow).unwrap());
        barrier.wait();
        assert!(table.get(other).is_ok());
        assert_eq!(open(None).unwrap(), slow);
        table.close(other).unwrap();
        drop(table.fork().unwrap());
        barrier.wait();
    });
}

#[test]
fn f2_flush_and_release_may_use_the_table() {
    use fdtable::file::{File, FileOps};
    use fdtable::{FdTable, TableId};
    use std::sync::Arc;

    type Shared = Arc<FdTable<File<(), Reenters>>>;
    struct Reenters(Option<Shared>);
    impl Reenters {
        fn use_table(&self) {
            let Some(table) = &self.0 else { return };
            let fd = table.open_file((), &read_write(), NONE, |()| Ok(Reenters(None))).unwrap();
            assert!(table.get(fd).is_ok());
            let copy = table.dup(fd).unwrap();
            table.dup2(fd, 70).unwrap();
            assert!(format!("{table:?}").contains("70"));
            table.close(fd).unwrap();
            table.close(copy).unwrap();
            table.close(70).unwrap();
        }
    }
    impl FileOps<()> for Reenters {
        fn flush(&self, (): &(), _: TableId) -> Result<(), Errno> {
            self.use_table();
            Ok(())
        }
        fn release(&mut self, (): &()) {
            self.use_table();
        }
    }
    let table: Shared = Arc::new(File::table_options().build());
    let file = || Reenters(Some(Arc::clone(&table)));
    let open = || table.open_file((), &read_write(), FdFlags::CLOEXEC, |()| Ok(file())).unwrap();
    table.close(open()).unwrap();
    let (a, b) = (open(), open());
    table.dup2(a, b).unwrap();
    table.close_on_exec();
    table.close_range(0, u32::MAX, CloseRange::empty()).unwrap();
    open();
    table.clear();
    assert!(table.is_empty());
    assert_eq!(Arc::strong_count(&table), 1);
}

#[test]
fn f3_the_victim_of_a_dup2_is_flushed_once() {
    let table = table();
    let ((a, a_place), (b, b_place)) = (file("a"), file("b"));
    let (a, b) = (table.insert(a, NONE).unwrap(), table.insert(b, NONE).unwrap());
    table.dup2(a, b).unwrap();
    assert_eq!(b_place.take_log(), [flush("b", table.id()), "release b".into(), "path".into()]);
    assert!(a_place.take_log().is_empty());
    table.dup2(a, a).unwrap();
    assert!(a_place.take_log().is_empty());
}

#[test]
fn f4_each_closed_duplicate_flushes_and_the_last_one_releases() {
    let table = table();
    let (file, place) = file("a");
    let fd = table.insert(file, NONE).unwrap();
    let copy = table.dup(fd).unwrap();
    table.close(fd).unwrap();
    assert_eq!(place.take_log(), [flush("a", table.id())]);
    table.close(copy).unwrap();
    assert_eq!(place.take_log(), [flush("a", table.id()), "release a".into(), "path".into()]);
}

#[test]
fn f5_a_table_is_torn_down_from_the_highest_fd() {
    let table = table();
    let place = std::sync::Arc::<Place>::default();
    for (fd, name) in [(3, "3"), (4, "4"), (63, "63"), (64, "64"), (200, "200")] {
        let file = TestFile::open(Path::to(&place), &read_write(), |_| Ok(Ops(name))).unwrap();
        assert!(table.replace(fd, file, NONE).unwrap().is_none());
    }
    drop(table);
    let mut log = place.take_log();
    log.retain(|entry| entry.starts_with("release"));
    assert_eq!(log, ["release 200", "release 64", "release 63", "release 4", "release 3"]);
}

#[test]
fn f6_an_unshare_without_a_range_does_not_touch_its_files() {
    let mut files = Files::from(table());
    let (file, place) = file("a");
    files.insert(file, NONE).unwrap();
    let sharer = files.share();
    files.close_range(0, 1, CloseRange::UNSHARE).unwrap();
    assert!(files.is_empty() && place.take_log().is_empty());
    drop(files);
    assert!(place.take_log().is_empty());
    let id = sharer.id();
    drop(sharer);
    assert_eq!(place.take_log(), [flush("a", id), "release a".into(), "path".into()]);
}

/// The flush is told the table that the fd was in.
#[test]
fn a_forks_copy_flushes_with_its_own_identity() {
    let parent = table();
    let (file, place) = file("a");
    parent.insert(file, NONE).unwrap();
    let child = parent.fork().unwrap();
    assert_ne!(parent.id(), child.id());
    let id = child.id();
    drop(child);
    assert_eq!(place.take_log(), [flush("a", id)]);
    parent.close_range(0, u32::MAX, CloseRange::empty()).unwrap();
    let log = place.take_log();
    assert_eq!(log, [flush("a", parent.id()), "release a".into(), "path".into()]);
}

#[test]
fn f7_panics_of_flush_and_release_leave_a_sound_table() {
    for culprit in ["flush panics", "release panics"] {
        for how in ["close", "dup2", "close_range", "exec", "clear", "drop"] {
            let table = table();
            let names = ["before", culprit, "after", "far"];
            let mut places = Vec::new();
            for (fd, name) in [0, 1, 2, 100].into_iter().zip(names) {
                let (file, place) = file(name);
                table.replace(fd, file, FdFlags::CLOEXEC).unwrap();
                places.push(place);
            }
            let panicked = match how {
                "drop" => catch_unwind(AssertUnwindSafe(|| drop(table))).is_err(),
                _ => {
                    let run = || match how {
                        "close" => drop(table.close(1)),
                        "dup2" => drop(table.dup2(0, 1)),
                        "close_range" => drop(table.close_range(0, 200, CloseRange::empty())),
                        "exec" => table.close_on_exec(),
                        _ => table.clear(),
                    };
                    let panicked = catch_unwind(AssertUnwindSafe(run)).is_err();
                    assert_eq!(table.contains(1), how == "dup2");
                    table.clear();
                    assert!(table.is_empty());
                    let (file, place) = file("new");
                    assert_eq!(table.insert(file, NONE).unwrap(), 0);
                    table.close(0).unwrap();
                    assert_eq!(place.drops(), 1);
                    panicked
                }
            };
            assert!(panicked, "{how}: the panic comes through");
            for place in places {
                let log = place.take_log();
                let releases = log.iter().filter(|entry| entry.starts_with("release")).count();
                assert_eq!((releases, place.drops()), (1, 1), "{culprit} in {how}: {log:?}");
            }
        }
    }
}

#[test]
fn f8_a_rejected_file_comes_back_whole() {
    let table = options().limit(0).build();
    let (file, place) = file("a");
    let rejected = table.insert(file, NONE).unwrap_err();
    assert!(place.take_log().is_empty());
    assert_eq!(rejected.file.ops().unwrap().0, "a");
    drop(rejected);
    assert_eq!(place.take_log(), ["release a", "path"]);
}

#[test]
fn f9_an_exec_flushes_and_releases_each_cloexec_fd_once() {
    let mut files = Files::from(table());
    let mut places = Vec::new();
    for name in ["a", "b", "c"] {
        let (file, place) = file(name);
        files.insert(file, FdFlags::CLOEXEC).unwrap();
        places.push(place);
    }
    let (kept, kept_place) = file("kept");
    files.insert(kept, NONE).unwrap();
    files.exec().unwrap();
    for (place, name) in places.iter().zip(["a", "b", "c"]) {
        let log = place.take_log();
        assert_eq!(log, [flush(name, files.id()), format!("release {name}"), "path".into()]);
    }
    assert!(kept_place.take_log().is_empty() && files.len() == 1);
}
