//! What must hold once nobody is at work any more.

use std::collections::BTreeMap;
use std::sync::Arc;

use fdtable::{FdTable, OwnedRef};

use crate::common::{File, Ledger, NONE};

/// Takes the table apart: its numbers, its count, the files' counts.
pub(crate) fn take_apart(table: FdTable<File>, ledger: &Arc<Ledger>) {
    let open: Vec<_> = table.iter().map(|entry| entry.fd.get()).collect();
    assert_eq!(table.len(), open.len(), "the table's own count is wrong");
    assert_eq!(table.highest_open().map(u32::from), open.last().copied());
    let all = table.limited(u64::MAX);
    // No number is lost: the free ones are handed out in order, then there are none.
    for expected in (0..table.max()).filter(|fd| !open.contains(fd)) {
        assert_eq!(all.insert(ledger.file(0), NONE).unwrap(), expected, "not the lowest");
    }
    assert!(all.insert(ledger.file(0), NONE).is_err(), "a number above max");
    // Half of them by the table's drop, half one by one: then the last reference is the only one.
    let mut taken = BTreeMap::<_, OwnedRef<File>>::new();
    for fd in (0..table.max()).step_by(2) {
        let file = table.remove(fd).unwrap();
        taken.insert(core::ptr::from_ref::<File>(&file).addr(), file);
    }
    let (flushed, left) = (ledger.flushed(), table.len());
    drop(table);
    assert_eq!(ledger.flushed() - flushed, left, "not every fd is flushed");
    assert_eq!(ledger.live(), taken.len(), "leaked, or dropped too early");
    for (_, file) in taken {
        assert!(file.try_into_inner().is_ok(), "a count is wrong");
    }
    assert_eq!(ledger.live(), 0);
}
