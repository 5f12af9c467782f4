//! Flags that are none.

use super::*;

#[test]
fn unknown_flags_corrupt_nothing() {
    at_each_base(|ledger, table, base| {
        let wild = FdFlags::from_bits_retain(0xff);
        let known = CLOEXEC | CLOFORK;
        let (a, b) = (base, base + 1);
        assert_eq!(table.insert(ledger.file(1), wild).unwrap(), a);
        assert_eq!(table.insert_from(b, ledger.file(2), wild).unwrap(), b);
        assert_eq!(table.reserve().unwrap().install(ledger.file(3), wild), base + 2);
        assert_eq!(table.dup_from(a, 0, wild).unwrap(), base + 3);
        assert!(table.replace(base + 4, ledger.file(4), wild).unwrap().is_none());
        assert!(table.replace(base + 4, ledger.file(5), wild).unwrap().is_some());
        assert_eq!(table.dup2(b, base + 5).unwrap(), base + 5);
        table.set_flags(base + 5, wild).unwrap();
        table.set_flags(base + 5, wild).unwrap();
        assert_eq!(table.dup3(a, b, wild), Err(ReplaceError::InvalidArgument));
        let limited = table.limited(u64::MAX);
        assert_eq!(limited.insert(ledger.file(6), wild).unwrap(), base + 6);
        assert_eq!(limited.insert_from(0, ledger.file(7), wild).unwrap(), base + 7);
        assert_eq!(limited.dup_from(a, 0, wild).unwrap(), base + 8);
        assert!(limited.replace(base + 9, ledger.file(8), wild).unwrap().is_none());
        let rejected = table.limited(0).insert(ledger.file(9), wild).unwrap_err();
        assert_eq!(rejected.file.name(), 9);
        drop(rejected);

        let names: Vec<_> = listing(&table, base).into_iter().map(|(_, name, _)| name).collect();
        assert_eq!(names, [1, 2, 3, 1, 5, 2, 6, 7, 1, 8]);
        for entry in table.iter().filter(|entry| entry.fd.get() >= base) {
            assert!(entry.flags.contains(known));
        }
        // CLOFORK was among them.
        let child = table.fork().unwrap();
        assert_eq!(listing(&child, base), []);
        // What is set can be cleared.
        table.set_flags(a, NONE).unwrap();
        assert_eq!((table.flags(a), name(&table, a)), (Ok(NONE), 1));
        let file = table.remove(base + 2).unwrap();
        assert_eq!(file.try_into_inner().unwrap().name(), 3);
        assert_eq!(table.insert(ledger.file(9), NONE).unwrap(), base + 2);
        assert_eq!(table.flags(base + 2), Ok(NONE));
        table.close_on_exec();
        assert_eq!(listing(&table, base), [(base, 1, NONE), (base + 2, 9, NONE)]);

        let files = Files::from(table);
        let fd = files.reserve_owned(u64::MAX).unwrap().install(ledger.file(10), wild);
        assert!(fd == b && name(&files, b) == 10);
        let items = [(base, ledger.file(11), wild), (base + 70, ledger.file(12), wild)];
        let restored = Options::new().restore(items).unwrap();
        let names: Vec<_> = restored.iter().map(|entry| entry.file.name()).collect();
        assert_eq!(names, [11, 12]);
    });
}

#[test]
fn flags_have_the_values_of_linux() {
    assert_eq!((CLOEXEC.bits(), CLOFORK.bits()), (1, 2));
    assert_eq!((CloseRange::UNSHARE.bits(), CloseRange::CLOEXEC.bits()), (2, 4));
}
