//! Tasks without memory: the sharing stays as it was, too. Each test runs in a process of its own, since an
//! allocation that is not expected to fail aborts.

use crate::alone::alone;

use super::*;

thread_local! {
    static FLUSHES: Cell<usize> = const { Cell::new(0) };
}

fn count_flush(_: &u32, _: TableId) -> Result<(), Errno> {
    FLUSHES.set(FLUSHES.get() + 1);
    Ok(())
}

/// As `refused_at_each`, for a task that shares its table with another one.
fn task_refused_at_each(operation: impl Fn(&mut Files<u32>) -> Result<(), Errno>) {
    for n in 0.. {
        let before = BYTES.get();
        let table = Options::new().on_close(count_flush).build();
        for fd in 0..70 {
            table.insert(fd, if fd == 69 { CLOEXEC } else { NONE }).unwrap();
        }
        let mut files = Files::from(table);
        let thread = files.share();
        let id = files.id();
        FLUSHES.set(0);
        let (result, _) = refusing(Refused::Nth(n), || operation(&mut files));
        let flushes = FLUSHES.get();
        assert_eq!((thread.len(), thread.id()), (70, id));
        if result.is_err() {
            assert_eq!(result, Err(Errno::ENOMEM));
            // Nothing has changed, the sharing included; and what was never open was not closed.
            assert!(files.is_shared());
            assert_eq!((files.id(), files.len(), flushes), (id, 70, 0));
            assert_eq!(operation(&mut files), Ok(()));
        }
        drop((files, thread));
        assert_eq!(BYTES.get(), before, "leaked at allocation {n}");
        if result.is_ok() {
            assert!(n > 0, "nothing was refused");
            break;
        }
    }
}

#[test]
fn c10_a_task_forks_without_memory() {
    alone("tasks::c10_a_task_forks_without_memory", || {
        task_refused_at_each(|files| files.fork().map(drop).map_err(bare));
    });
}

#[test]
fn c10_a_task_unshares_without_memory() {
    alone("tasks::c10_a_task_unshares_without_memory", || {
        task_refused_at_each(|files| files.unshare().map_err(bare));
    });
}

#[test]
fn c10_a_task_execs_without_memory() {
    alone("tasks::c10_a_task_execs_without_memory", || {
        task_refused_at_each(|files| {
            files.exec().map_err(bare)?;
            assert_eq!(files.len(), 69);
            Ok(())
        });
    });
}

#[test]
fn c10_a_task_closes_a_range_of_its_own_without_memory() {
    alone("tasks::c10_a_task_closes_a_range_of_its_own_without_memory", || {
        task_refused_at_each(|files| {
            files.close_range(66, u32::MAX, CloseRange::UNSHARE).map_err(bare)?;
            assert_eq!(files.len(), 66);
            Ok(())
        });
    });
}
