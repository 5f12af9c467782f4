//! C4: nothing waits for readers, nor for opens that are under way.

use super::*;

#[test]
fn c4_nothing_waits_for_handles_iterators_and_reservations() {
    let ledger = Ledger::new();
    let table = filled(&ledger, 100);
    let handles = [3, 70].map(|fd| table.get(fd).unwrap());
    let mut iter = table.iter();
    let entry = iter.nth(40).unwrap();
    let reserved = [table.reserve_in(100..200).unwrap(), {
        table.close(20).unwrap();
        table.reserve().unwrap()
    }];
    everything(&table, &|| ledger.file(1));
    // All that the handles are on is closed under them, and the storage grows.
    table.close_on_exec();
    let high = if cfg!(miri) { 2000 } else { 100_000 };
    table.insert_from(high, ledger.file(2), NONE).unwrap();
    table.clear();
    table.insert(ledger.file(3), NONE).unwrap();
    everything(&table, &|| ledger.file(1));
    assert_eq!(iter.next().map(|entry| entry.fd.get()), None);
    assert!(handles.iter().all(|handle| handle.name() == 0) && entry.file.name() == 0);
    assert_eq!(ledger.live(), 2);
    drop((handles, entry));
    assert_eq!((ledger.live(), reserved[1].fd()), (1, Fd::try_from(20).unwrap()));
}

#[test]
fn c4_opens_go_on_while_tables_are_forked() {
    let ledger = Ledger::new();
    // The last numbers are those of a word beyond the first.
    let end = if cfg!(miri) { 72 } else { 200 };
    let table = filled(&ledger, end);
    let churn = |fd: u32| {
        for _ in 0..rounds(3000) {
            let opened = table.insert_from(fd, ledger.file(1), NONE).unwrap();
            table.dup2(0, fd - 1).unwrap();
            table.close(opened).unwrap();
        }
    };
    table.close(10).unwrap();
    let fork = || {
        let child = table.fork().unwrap();
        assert!(child.len() + 1 >= end as usize);
    };
    // Two forks one after the other without a pause; neither keeps the others from finishing.
    alongside(&[&fork, &fork], || together(&[&|| churn(10), &|| churn(end)]));
    assert_eq!((table.len(), ledger.live()), (end as usize - 1, 1));
}
