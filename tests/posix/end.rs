//! The end of a table.

use super::*;

#[test]
fn drop_and_clear_close_from_the_highest_down() {
    struct Noted(u32, Arc<Mutex<Vec<(char, u32)>>>);

    impl Drop for Noted {
        fn drop(&mut self) {
            self.1.lock().unwrap().push(('d', self.0));
        }
    }

    fn note(file: &Noted, _: TableId) -> Result<(), Errno> {
        file.1.lock().unwrap().push(('f', file.0));
        Err(Errno::ENOSPC)
    }

    for clear in [false, true] {
        let log = Arc::<Mutex<Vec<_>>>::default();
        let table = Options::new().max(u64::MAX).on_close(note).build();
        let fds = [0, 1, 5, 63, 64, 65, 127, 128, 500, 4095, 4096, 70_000, 1 << 27];
        for fd in fds {
            table.replace(fd, Noted(fd, Arc::clone(&log)), NONE).unwrap();
        }
        // Its file is at 0 as well: flushed twice, dropped at the last.
        table.dup2(0, 3000).unwrap();
        if clear {
            table.clear();
        } else {
            drop(table);
        }
        let mut expected = Vec::new();
        for fd in fds.into_iter().rev() {
            if fd == 500 {
                expected.push(('f', 0));
            }
            expected.extend([('f', fd), ('d', fd)]);
        }
        // 3000 lies between 4095 and 500.
        assert_eq!(*log.lock().unwrap(), expected);
    }
}

#[test]
fn clear_leaves_a_table_in_use() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), CLOEXEC).unwrap();
        table.clear();
        assert_eq!((table.len(), ledger.live()), (0, 0));
        assert_eq!(ledger.flushed(), base as usize + 1);
        for fd in 0..base + 2 {
            assert_eq!(table.insert(ledger.file(2), NONE).unwrap(), fd);
        }
        assert_eq!(table.flags(base), Ok(NONE));
    });
}
