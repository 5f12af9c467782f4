//! C3: close = the fd stops resolving, then its number is free; insert = claimed, then it resolves.

use super::*;

thread_local! {
    /// What a callback is to find; set by the thread that closes.
    static FOUND: Cell<Option<(bool, Fd)>> = const { Cell::new(None) };
}

/// Says whether its number still resolves, and which number is the next, when it is flushed.
struct Asking {
    table: Weak<FdTable<Asking>>,
    fd: u32,
}

fn ask(file: &Asking, _: TableId) -> Result<(), Errno> {
    if let Some(table) = file.table.upgrade() {
        FOUND.set(Some((table.contains(file.fd), table.reserve().unwrap().fd())));
    }
    Ok(())
}

#[test]
fn c3_when_flush_and_drop_run_the_number_is_free() {
    for fd in [3, 63, 64, 70] {
        let table = Arc::new(Options::new().on_close(ask).build());
        let asking = || Asking { table: Arc::downgrade(&table), fd };
        for _ in 0..fd + 1 {
            table.insert(asking(), CLOEXEC).unwrap();
        }
        let ways: [fn(&FdTable<Asking>, u32); 3] = [
            |table, fd| table.close(fd).unwrap(),
            |table, fd| table.close_range(fd, fd, CLOSE).unwrap(),
            |table, fd| table.close_range(0, fd - 1, CloseRange::EXCEPT).unwrap(),
        ];
        for close in ways {
            close(&table, fd);
            assert_eq!(FOUND.take(), Some((false, Fd::try_from(fd).unwrap())));
            assert_eq!(table.insert(asking(), NONE).unwrap(), fd);
        }
    }
}

#[test]
fn c3_who_is_given_a_number_finds_nothing_of_its_last_owner() {
    for fd in [3, 70] {
        let ledger = Ledger::new();
        let table = filled(&ledger, fd);
        let own = |me: u32| {
            for _ in 0..rounds(10_000) {
                let Ok(reserved) = table.reserve_in(fd..fd + 1) else { continue };
                assert_eq!(table.get(fd).err(), Some(BadFd));
                assert!(!table.contains(fd) && table.flags(fd).is_err());
                reserved.install(ledger.file(me), CLOFORK);
                assert_eq!((name(&table, fd), table.flags(fd)), (me, Ok(CLOFORK)));
                table.close(fd).unwrap();
            }
        };
        together(&[&|| own(1), &|| own(2), &|| own(3)]);
        assert_eq!((ledger.live(), table.len()), (1, fd as usize));
        // Before close returns the number is free.
        assert_eq!(table.reserve().unwrap().fd(), fd);
    }
}
