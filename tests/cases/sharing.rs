//! Sharing.

use super::*;

#[test]
fn s1_an_observer_does_not_share() {
    let ledger = Ledger::new();
    let mut files = Files::from(opened(&ledger, 1));
    let proc = files.observe();
    let _other = (files.observe(), proc.clone());
    assert!(!files.is_shared());
    assert_eq!(files.borrow(0).unwrap().name(), 0);
    // So an exec needs no copy either.
    let id = files.id();
    files.exec().unwrap();
    assert_eq!((files.id(), proc.list().len()), (id, 1));
}

#[test]
fn s2_one_task_exits_while_another_clones() {
    for turn in 0..rounds(2000) {
        let ledger = Ledger::new();
        let exiting = Mutex::new(Some(Files::from(opened(&ledger, 2))));
        let staying = exiting.lock().unwrap().as_ref().unwrap().share();
        let exit = || drop(exiting.lock().unwrap().take());
        let clone = || {
            for _ in 0..3 {
                let clone = staying.share();
                assert_eq!(name(&clone, 1), 1);
                assert!(clone.is_shared());
            }
        };
        together(&[&exit, &clone]);
        assert!(!staying.is_shared());
        assert_eq!((ledger.live(), ledger.flushed()), (2, 0), "turn {turn}");
        drop(staying);
        assert_eq!((ledger.live(), ledger.flushed()), (0, 2));
    }
}

#[test]
fn s2_all_tasks_exit_at_once() {
    let tables = if cfg!(miri) { 5 } else { 200 };
    for _ in 0..rounds(200) {
        let ledger = Ledger::new();
        let files: Vec<_> = (0..tables).map(|_| Files::from(opened(&ledger, 2))).collect();
        let others: Vec<_> = files.iter().map(Files::share).collect();
        let tasks = [files, others].map(|files| Mutex::new(Some(files)));
        // One table after the other, both of them.
        let exit = |task: usize| drop(tasks[task].lock().unwrap().take());
        together(&[&|| exit(0), &|| exit(1)]);
        // Of each exactly one was the last.
        assert_eq!((ledger.live(), ledger.flushed()), (0, 2 * tables));
    }
}

#[test]
fn s3_unshare_while_another_task_opens_and_closes() {
    let ledger = Ledger::new();
    let thread = Files::from(opened(&ledger, 3));
    let churn = |base: u32| {
        let fd = thread.insert_from(base, ledger.file(base), NONE).unwrap();
        assert_eq!(thread.get(fd).unwrap().name(), base);
        thread.set_flags(fd, CLOEXEC).unwrap();
        thread.close(fd).unwrap();
    };
    alongside(&[&|| churn(3), &|| churn(70)], || {
        for _ in 0..rounds(2000) {
            let mut files = thread.share();
            files.close_range(3, u32::MAX, CloseRange::UNSHARE).unwrap();
            assert!(files.id() != thread.id() && !files.is_shared());
            assert_eq!(fds(&files), [0, 1, 2]);
            assert!((0..3).all(|fd| name(&files, fd) == fd));
            assert_eq!(files.insert(ledger.file(9), NONE).unwrap(), 3);
        }
    });
    assert_eq!((ledger.live(), fds(&thread)), (3, vec![0, 1, 2]));
}

#[test]
fn s4_a_file_may_own_an_observer_of_its_own_table() {
    struct Proc {
        drops: Arc<AtomicUsize>,
        observer: OnceLock<Observer<Proc>>,
    }

    impl Drop for Proc {
        fn drop(&mut self) {
            // The task is gone by now.
            let observer = self.observer.get().unwrap();
            assert!(!observer.is_alive() && observer.list().is_empty());
            self.drops.fetch_add(1, SeqCst);
        }
    }

    let drops = Arc::new(AtomicUsize::new(0));
    let files = Files::new();
    let own = |files: &Files<Proc>| Proc {
        drops: Arc::clone(&drops),
        observer: OnceLock::from(files.observe()),
    };
    files.insert(own(&files), NONE).unwrap();
    files.insert_from(70, own(&files), NONE).unwrap();
    let thread = files.share();
    drop(files);
    assert_eq!(drops.load(SeqCst), 0);
    drop(thread);
    assert_eq!(drops.load(SeqCst), 2);
}

#[test]
fn s5_fork_100_000() {
    let end = if cfg!(miri) { 500 } else { 100_000 };
    let ledger = Ledger::new();
    let parent = opened(&ledger, end);
    let child = parent.fork().unwrap();
    assert_eq!((child.len(), ledger.live()), (end as usize, end as usize));
    let same =
        |(a, b): (Entry<'_, File>, Entry<'_, File>)| a.fd == b.fd && a.file.name() == b.file.name();
    assert!(parent.iter().zip(&child).all(same));
    parent.clear();
    assert_eq!((ledger.live(), ledger.flushed()), (end as usize, end as usize));
    // The copy holds one reference each, no more.
    for fd in (0..end).step_by(997) {
        assert_eq!(child.remove(fd).unwrap().try_into_inner().unwrap().name(), fd);
    }
    drop(child);
    assert_eq!(ledger.live(), 0);
}

#[test]
fn s5_fork_while_others_open_and_close() {
    let end = if cfg!(miri) { 130 } else { 5000 };
    let ledger = Ledger::new();
    let parent = opened(&ledger, end);
    // Each has a stretch of its own, so that it can tell what it finds there.
    let churn = |first: u32, last: u32| {
        for fd in first..last {
            parent.close(fd).unwrap();
            assert!(!parent.contains(fd));
            assert!(parent.replace(fd, ledger.file(fd), CLOEXEC).unwrap().is_none());
            assert_eq!(name(&parent, fd), fd);
        }
    };
    alongside(&[&|| churn(1, 40), &|| churn(100, end)], || {
        for _ in 0..rounds(100) {
            let child = parent.fork().unwrap();
            assert!(child.iter().all(|entry| entry.fd == entry.file.name()));
            // At most one fd of each stretch was in mid-churn.
            assert!(child.len() >= end as usize - 2);
        }
    });
    assert_eq!((ledger.live(), parent.len()), (end as usize, end as usize));
    parent.clear();
    assert_eq!(ledger.live(), 0);
}
