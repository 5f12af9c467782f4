//! C9: no number at or above the observed limit is visible, not even for a moment.

use super::*;

#[test]
fn c9_nothing_shows_at_or_above_the_limit() {
    // The highest limit that any call can observe, and one below it.
    for (limit, lower) in [(20_u32, 10_u32), (64, 60), (66, 62), (150, 100)] {
        let ledger = Ledger::new();
        let table = filled(&ledger, lower - 5);
        // There is room for more.
        table.reserve_capacity(1000).unwrap();
        table.set_limit(limit.into());
        let watch = || {
            assert!((limit..limit + 70).all(|fd| !table.contains(fd)));
            assert!(table.iter().all(|entry| entry.fd.get() < limit));
            assert!(table.highest_open() < Some(fd_of(limit)));
        };
        let toggle = || {
            table.set_limit(lower.into());
            table.set_limit(limit.into());
        };
        // The table's own limit changes; a caller's does not.
        let open = |own: Option<u32>| {
            let bound = own.unwrap_or(limit);
            for turn in 0..rounds(4000) as u32 {
                let near = bound - 1 - turn % 3;
                let beyond = limit + turn % 64;

                macro_rules! try_to_open {
                    ($seen:expr) => {
                        match turn % 8 {
                            0 => $seen.insert(ledger.file(1), NONE).ok(),
                            1 => $seen.dup(0).ok(),
                            2 => $seen.dup_from(0, near, NONE).ok(),
                            3 => $seen.insert_from(near, ledger.file(1), NONE).ok(),
                            4 => {
                                $seen.reserve().ok().map(|seat| seat.install(ledger.file(1), NONE))
                            }
                            // These have to fail, and may not show on the way.
                            5 => $seen.dup2(0, beyond).ok(),
                            6 => {
                                assert!($seen.replace(beyond, ledger.file(1), NONE).is_err());
                                None
                            }
                            _ => {
                                assert!($seen.reserve_many::<160>().is_err());
                                assert!($seen.reserve_in(limit..limit + 64).is_err());
                                None
                            }
                        }
                    };
                }

                let opened = match own {
                    Some(own) => try_to_open!(table.limited(own.into())),
                    None => try_to_open!(table),
                };
                if let Some(fd) = opened {
                    assert!(fd.get() < bound, "{fd} with limit {bound}");
                    // Someone may have closed it, and opened it again: that is his to close.
                    let _ = table.close(fd);
                }
            }
        };
        alongside(&[&watch, &toggle], || {
            together(&[&|| open(None), &|| open(Some(limit)), &|| open(Some(lower))]);
        });
        // Not even reserved.
        assert!(table.high_water() < Some(fd_of(limit)));
        table.clear();
        assert_eq!(ledger.live(), 0);
    }
}

/// Full for these callers: each call fails, and may not have had a number on the way.
#[test]
fn c9_calls_that_fail_show_nothing() {
    for limit in [10, 64, 65, 100] {
        let ledger = Ledger::new();
        let table = filled(&ledger, limit);
        table.reserve_capacity(1000).unwrap();
        table.set_limit(limit.into());
        let watch = || assert!((limit..limit + 70).all(|fd| !table.contains(fd)));
        let fail = |seen: Limited<'_, File>| {
            for turn in 0..rounds(1000) as u32 {
                assert!(seen.insert(ledger.file(1), NONE).is_err());
                assert!(seen.insert_from(limit - 1, ledger.file(1), NONE).is_err());
                assert!(seen.insert_from(limit + turn % 70, ledger.file(1), NONE).is_err());
                assert!(seen.dup(0).is_err());
                assert!(seen.dup_from(0, limit - 1, NONE).is_err());
                assert!(seen.dup_from(0, limit + turn % 70, NONE).is_err());
                assert!(seen.dup2(0, limit + turn % 70).is_err());
                assert!(seen.replace(limit + turn % 70, ledger.file(1), NONE).is_err());
                assert!(seen.reserve().is_err() && seen.reserve_many::<2>().is_err());
                assert!(seen.reserve_in(limit..limit + 70).is_err());
            }
        };
        alongside(&[&watch], || {
            let own = || fail(table.limited(table.limit()));
            together(&[&own, &|| fail(table.limited(limit.into()))]);
        });
        assert_eq!((table.high_water(), table.len()), (Some(fd_of(limit - 1)), limit as usize));
        assert_eq!(ledger.live(), 1);
    }
}

#[test]
fn c9_two_callers_with_their_own_limits() {
    for (small, large) in [(10, 20), (60, 70), (100, 200)] {
        let ledger = Ledger::new();
        let table = filled(&ledger, small - 1);
        let fill = |limit: u32| {
            for _ in 0..rounds(2000) {
                let opened = table.limited(limit.into()).insert(ledger.file(limit), NONE);
                if let Ok(fd) = opened {
                    assert!(fd.get() < limit);
                    table.close(fd).unwrap();
                }
            }
        };
        let watch = || {
            for entry in table.iter().filter(|entry| entry.file.name() == small) {
                assert!(entry.fd.get() < small);
            }
            assert!((large..large + 64).all(|fd| !table.contains(fd)));
        };
        alongside(&[&watch], || together(&[&|| fill(small), &|| fill(large)]));
        assert!(table.high_water() < Some(fd_of(large)));
        assert_eq!(ledger.live(), 1);
    }
}
