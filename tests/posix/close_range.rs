//! Close_range.

use super::*;

/// Every second number from `base` on, up to `base + 200`; every third of these with CLOEXEC. The
/// file's name is the number.
fn for_ranges(ledger: &Arc<Ledger>, table: &FdTable<File>, base: u32) {
    for fd in (base..base + 200).step_by(2) {
        let flags = if fd % 3 == 0 { CLOEXEC } else { CLOFORK };
        assert!(table.replace(fd, ledger.file(fd), flags).unwrap().is_none());
    }
}

#[test]
fn close_range_does_what_a_filter_does() {
    let all = CloseRange::CLOEXEC | CloseRange::EXCEPT | CloseRange::CLOEXEC_ONLY;
    let hows = (0..).map_while(|i| all.iter().nth(i)).collect::<Vec<_>>();
    for base in [0, 61, 1000] {
        let ends = [0, 1, base, base + 1, base + 63, base + 64, base + 150, base + 199, base + 300];
        let mut ranges = Vec::new();
        for (i, &first) in ends.iter().enumerate() {
            ranges.extend(ends[i..].iter().map(|&last| (first.min(last), first.max(last))));
            ranges.push((first, u32::MAX));
        }
        ranges.push((u32::MAX, u32::MAX));
        for (first, last) in ranges {
            for subset in 0..1 << hows.len() {
                let chosen = hows.iter().enumerate().filter(|(i, _)| subset >> i & 1 == 1);
                let how: CloseRange = chosen.map(|(_, how)| *how).collect();
                let ledger = Ledger::new();
                let table = filled(&ledger, base);
                for_ranges(&ledger, &table, base);

                let before = listing(&table, 0);
                let mut expected = Vec::new();
                for &(fd, name, flags) in &before {
                    let inside = (first..=last).contains(&fd) != how.contains(CloseRange::EXCEPT);
                    let only = !how.contains(CloseRange::CLOEXEC_ONLY) || flags.contains(CLOEXEC);
                    if !(inside && only) {
                        expected.push((fd, name, flags));
                    } else if how.contains(CloseRange::CLOEXEC) {
                        expected.push((fd, name, flags | CLOEXEC));
                    }
                }
                table.close_range(first, last, how).unwrap();
                let after = listing(&table, 0);
                assert_eq!(after, expected, "{first} ..= {last}, {how:?}");
                assert_eq!(ledger.flushed(), before.len() - after.len());
                assert_eq!(table.len(), after.len());
            }
        }
    }
}

#[test]
fn close_range_closes_in_ascending_order() {
    fn note(file: &(u32, Arc<Mutex<Vec<u32>>>), _: TableId) -> Result<(), Errno> {
        file.1.lock().unwrap().push(file.0);
        // Its error is nobody's.
        Err(Errno::EIO)
    }

    let log = Arc::<Mutex<Vec<u32>>>::default();
    let table = Options::new().on_close(note).build();
    for fd in (0..300).chain([5000]) {
        table.replace(fd, (fd, Arc::clone(&log)), NONE).unwrap();
    }
    table.close_range(3, u32::MAX, CloseRange::EXCEPT).unwrap();
    table.close_range(10, 4000, CLOSE).unwrap();
    table.close_range(0, u32::MAX, CLOSE).unwrap();
    let order: Vec<u32> = (0..3).chain(10..300).chain(3..10).chain([5000]).collect();
    assert_eq!(*log.lock().unwrap(), order);
}

#[test]
fn close_range_errors_change_nothing() {
    at_each_base(|ledger, table, base| {
        table.insert(ledger.file(1), NONE).unwrap();
        let invalid = Err(CloseRangeError::InvalidArgument);
        for how in [CLOSE, CloseRange::CLOEXEC, CloseRange::EXCEPT, CloseRange::CLOEXEC_ONLY] {
            assert_eq!(table.close_range(base + 1, base, how), invalid);
            assert_eq!(table.close_range(u32::MAX, 0, how), invalid);
        }
        for bits in [1, 8, 1 << 15, 1 << 18, 1 << 31, u32::MAX, 4 | 1] {
            let unknown = CloseRange::from_bits_retain(bits);
            assert_eq!(table.close_range(0, u32::MAX, unknown), invalid);
            assert_eq!(table.close_range(1, 0, unknown), invalid);
        }
        // A bare table has no other to leave it to.
        for how in [CloseRange::UNSHARE, CloseRange::UNSHARE | CloseRange::CLOEXEC] {
            assert_eq!(table.close_range(0, u32::MAX, how), invalid);
        }
        assert_eq!(listing(&table, base), [(base, 1, NONE)]);

        let mut files = Files::from(table);
        let sharer = files.share();
        for bits in [1, 3, 2 | 1 << 18] {
            let unknown = CloseRange::from_bits_retain(bits);
            assert_eq!(files.close_range(0, u32::MAX, unknown), invalid);
        }
        assert_eq!(files.close_range(base + 1, base, CloseRange::UNSHARE), invalid);
        assert!(files.is_shared() && files.id() == sharer.id());
        assert_eq!(listing(&files, base), [(base, 1, NONE)]);
    });
}

#[test]
fn close_range_cloexec_sticks_to_a_reserved_number() {
    at_each_base(|ledger, table, base| {
        let [a, b, c, d] = table.reserve_many().unwrap();
        table.close_range(base, base + 1, CloseRange::CLOEXEC).unwrap();
        table.close_range(base + 2, base + 2, CLOSE).unwrap();
        // Its file has it as well as those it was given.
        assert_eq!(table.flags(a.install(ledger.file(1), CLOFORK)), Ok(CLOEXEC | CLOFORK));
        // It goes with the reservation.
        drop(b);
        let b = table.reserve().unwrap();
        assert_eq!(b.fd(), base + 1);
        assert_eq!(table.flags(b.install(ledger.file(2), NONE)), Ok(NONE));
        assert_eq!(table.flags(c.install(ledger.file(3), NONE)), Ok(NONE));
        // Twice is once, with EXCEPT too; and it can be taken away once the fd is open.
        table.close_range(0, base + 2, CloseRange::CLOEXEC | CloseRange::EXCEPT).unwrap();
        table.close_range(base + 3, base + 3, CloseRange::CLOEXEC).unwrap();
        let d = d.install(ledger.file(4), NONE);
        assert_eq!(table.flags(d), Ok(CLOEXEC));
        table.set_flags(d, NONE).unwrap();
        assert_eq!(table.flags(d), Ok(NONE));
        // Nor does a free number keep it.
        table.close_range(0, u32::MAX, CloseRange::CLOEXEC).unwrap();
        assert_eq!(table.insert(ledger.file(5), NONE).unwrap(), base + 4);
        assert_eq!(table.flags(base + 4), Ok(NONE));
    });
}

#[test]
fn close_range_cloexec_only_leaves_a_reserved_number_as_it_is() {
    at_each_base(|ledger, table, base| {
        let reserved = table.reserve().unwrap();
        let how = CloseRange::CLOEXEC | CloseRange::CLOEXEC_ONLY;
        table.close_range(0, u32::MAX, how).unwrap();
        let fd = reserved.install(ledger.file(1), NONE);
        assert!(fd == base && table.flags(fd) == Ok(NONE));
    });
}

/// Of a guest's flags Linux' own two are known, and not this crate's.
#[test]
fn the_flags_of_a_guests_close_range() {
    use fdtable::CloseRangeError::InvalidArgument;
    assert_eq!(CloseRange::from_linux(0), Ok(CloseRange::empty()));
    assert_eq!(CloseRange::from_linux(2), Ok(CloseRange::UNSHARE));
    assert_eq!(CloseRange::from_linux(4), Ok(CloseRange::CLOEXEC));
    assert_eq!(CloseRange::from_linux(6), Ok(CloseRange::UNSHARE | CloseRange::CLOEXEC));
    for unknown in [1, 8, 4 | 1 << 31, CloseRange::EXCEPT.bits(), CloseRange::CLOEXEC_ONLY.bits()] {
        assert_eq!(CloseRange::from_linux(unknown), Err(InvalidArgument), "{unknown:#x}");
    }
}
