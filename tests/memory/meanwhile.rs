//! What an allocator does while the table waits for memory.

use super::*;

thread_local! {
    /// For the callbacks. Leaked, to be had without a lifetime.
    static TABLE: Cell<Option<&'static FdTable<u32>>> = const { Cell::new(None) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// Runs `operation` with `callback` at its n-th allocation; says whether there were so many.
fn calling(callback: Callback, table: FdTable<u32>, operation: impl FnOnce(&FdTable<u32>)) -> bool {
    let table = Box::leak(Box::new(table));
    TABLE.set(Some(table));
    CALLS.set(0);
    CALLBACK.set(Some(callback));
    operation(table);
    CALLBACK.set(None);
    TABLE.set(None);
    CALLS.get() > 0
}

fn use_the_table() {
    let table = TABLE.get().unwrap();
    CALLS.set(CALLS.get() + 1);
    assert!(table.get(0).is_ok() && !table.is_empty());
    let low = table.dup(0).unwrap();
    let high = table.dup_from(0, 66, CLOEXEC).unwrap();
    table.dup2(0, 1000).unwrap();
    table.close_range(1000, 1000, CloseRange::empty()).unwrap();
    table.set_flags(high, NONE).unwrap();
    drop(table.fork().unwrap());
    table.close(high).unwrap();
    table.close(low).unwrap();
}

/// No lock is held and nothing is half done while memory is allocated.
#[test]
fn c6_an_allocator_may_use_the_table() {
    let operations: [fn(&FdTable<u32>); 7] = [
        |table| assert!(table.dup(0).is_ok()),
        |table| assert!(table.dup_from(0, 5000, NONE).is_ok()),
        |table| assert!(table.dup2(0, 1_000_000).is_ok()),
        |table| assert!(table.reserve_in(700..701).is_ok()),
        |table| assert!(table.reserve_many::<200>().is_ok()),
        |table| assert!(table.reserve_capacity(2000).is_ok()),
        |table| assert!(table.fork().is_ok_and(|child| child.len() >= 64)),
    ];
    for operation in operations {
        let mut calls = 0;
        for end in [64, 70] {
            let scene = || Scene::filled(end).table;
            calls += (0..).take_while(|&n| calling((n, use_the_table), scene(), operation)).count();
        }
        assert!(calls > 0, "nothing was allocated");
    }
}

/// With a file that is open in it.
type Task = (Files<Rc<()>>, Rc<()>);

thread_local! {
    static TASK: Cell<Option<Task>> = const { Cell::new(None) };
    static OWNERS: Cell<usize> = const { Cell::new(0) };
}

fn end_the_task() {
    let (task, file) = TASK.take().unwrap();
    drop(task);
    OWNERS.set(Rc::strong_count(&file));
}

/// The end of a task closes its files itself, and does not leave that to an observer which looks just then.
#[test]
fn c5_a_task_ends_while_an_observer_looks() {
    let (task, file) = (Files::new(), Rc::new(()));
    task.insert(Rc::clone(&file), NONE).unwrap();
    let observer = task.observe();
    // What arc-swap sets up once per thread is not the allocation that is meant.
    assert!(observer.is_alive());
    TASK.set(Some((task, file)));
    CALLBACK.set(Some((0, end_the_task)));
    let seen = observer.list();
    assert_eq!((OWNERS.get(), seen.len(), observer.is_alive()), (1, 1, false));
}

fn free_3_then_70() {
    CALLS.set(CALLS.get() + 1);
    let table = TABLE.get().unwrap();
    table.close(3).unwrap();
    table.close(70).unwrap();
}

/// 128 is the lowest free number, then 3 is; 70 never is, as it is freed after 3.
#[test]
fn c1_what_is_freed_during_the_growth_counts_in_its_order() {
    let operations: [fn(&FdTable<u32>); 5] = [
        |table| {
            let fd = table.insert(table.get_owned(0).unwrap(), NONE).unwrap();
            assert!(fd == 3 || fd == 128, "{fd}");
        },
        |table| {
            let fd = table.dup(0).unwrap();
            assert!(fd == 3 || fd == 128, "{fd}");
        },
        |table| {
            let fd = table.reserve().unwrap().fd();
            assert!(fd == 3 || fd == 128, "{fd}");
        },
        |table| {
            let fd = table.dup_from(0, 1, NONE).unwrap();
            assert!(fd == 3 || fd == 128, "{fd}");
        },
        |table| {
            let fds = table.reserve_many::<2>().unwrap().map(|reserved| reserved.fd().get());
            assert!([[128, 129], [3, 128], [3, 70]].contains(&fds), "{fds:?}");
        },
    ];
    for operation in operations {
        let scene = || Scene::filled(128).table;
        let calls = (0..).take_while(|&n| calling((n, free_3_then_70), scene(), operation)).count();
        assert!(calls > 0, "nothing was allocated");
    }
}

fn open_1000_then_5001() {
    CALLS.set(CALLS.get() + 1);
    let table = TABLE.get().unwrap();
    table.dup2(0, 1000).unwrap();
    table.dup2(0, 5001).unwrap();
}

/// Where a copy grows for 5000 there is room for 5001, and yet none for 1000, which is open by then.
#[test]
fn c8_what_is_opened_while_a_copy_grows_counts_in_its_order() {
    let scene = || {
        let table = Scene::filled(70).table;
        table.dup2(0, 5000).unwrap();
        table
    };
    let fork = |table: &FdTable<u32>| {
        let child = table.fork().unwrap();
        assert!(child.contains(1000) || !child.contains(5001));
    };
    let calls = (0..).take_while(|&n| calling((n, open_1000_then_5001), scene(), fork)).count();
    assert!(calls > 0, "nothing was allocated");
}

fn lower_max() {
    CALLS.set(CALLS.get() + 1);
    TABLE.get().unwrap().set_max(64);
}

/// Checked, then lowered, then grown: nothing is opened above the new maximum.
#[test]
fn b11_max_is_lowered_while_the_table_grows() {
    type Operation = fn(&FdTable<u32>) -> Result<(), Errno>;
    let file = |table: &FdTable<u32>| table.get_owned(0).unwrap();
    let operations: [(Operation, Errno); 7] = [
        (|table| table.dup(0).map(drop_fd).map_err(bare), Errno::EMFILE),
        (|table| table.dup_from(0, 700, NONE).map(drop_fd).map_err(bare), Errno::EMFILE),
        (|table| table.reserve_in(700..701).map(drop).map_err(bare), Errno::EMFILE),
        (|table| table.reserve_many::<2>().map(drop).map_err(bare), Errno::EMFILE),
        (|table| table.dup2(0, 64).map(drop_fd).map_err(bare), Errno::EBADF),
        (|table| table.dup2(0, 1_000_000).map(drop_fd).map_err(bare), Errno::EBADF),
        (|table| table.dup3(0, 5000, CLOEXEC).map(drop_fd).map_err(bare), Errno::EBADF),
    ];
    for (operation, errno) in operations {
        let check = |table: &FdTable<u32>| {
            let result = operation(table);
            if table.max() == 64 {
                assert_eq!((result, table.len(), table.capacity()), (Err(errno), 64, 64));
            } else {
                assert_eq!(result, Ok(()));
            }
        };
        let scene = || Scene::filled(64).table;
        let calls = (0..).take_while(|&n| calling((n, lower_max), scene(), check)).count();
        assert!(calls > 0, "nothing was allocated");
    }
    // With a file in hand it comes back.
    calling((0, lower_max), Scene::filled(64).table, |table| {
        let rejected = table.insert(file(table), NONE).unwrap_err();
        assert!(OwnedRef::ptr_eq(&rejected.file, &file(table)));
        assert_eq!(rejected.error, ReserveError::LimitReached);
    });
    calling((0, lower_max), Scene::filled(64).table, |table| {
        let rejected = table.replace(5000, file(table), NONE).unwrap_err();
        assert!(OwnedRef::ptr_eq(&rejected.file, &file(table)));
        assert_eq!(rejected.error, ReplaceError::BadFd);
    });
}

fn drop_fd(_: Fd) {}
