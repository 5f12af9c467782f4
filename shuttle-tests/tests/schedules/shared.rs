//! Any operation on any number by any thread: what is counted must come out right.

use std::sync::Arc;

use fdtable::{BadFd, CloseRange, FdFlags, FdTable, Options, OwnedRef, Ref};

use crate::common::{File, Ledger, NONE, flush};
use crate::{OPERATIONS, below, pct, quiet, random, together};

#[test]
fn in_random_schedules() {
    random(scenario);
}

#[test]
fn with_few_preemptions() {
    pct(scenario);
}

fn scenario() {
    let table = Options::new().on_close(flush).build();
    let ledger = Ledger::new();
    together(|_| {
        let mut kept = Vec::new();
        for _ in 0..OPERATIONS {
            step(&table, &ledger, &mut kept);
        }
    });
    quiet::take_apart(table, &ledger);
}

/// One random operation. Handles that it wants to keep go into `kept`.
fn step(table: &FdTable<File>, ledger: &Arc<Ledger>, kept: &mut Vec<OwnedRef<File>>) {
    // Mostly few numbers, so that threads meet; some beyond the first word.
    let fd = if below(2) == 0 { below(2) } else { below(12) };
    let flags = FdFlags::from_bits_truncate(below(4) as u8);
    let file = || ledger.file(0);
    match below(24) {
        0..4 => look(table.get(fd)),
        4 => kept.extend(table.get_owned(fd)),
        5 => kept.extend(table.get(fd).map(|file| file.to_owned())),
        6 => drop(kept.pop()),
        7 => drop(table.insert(file(), flags)),
        8 => drop(table.insert_from(fd, kept.pop().unwrap_or_else(|| file().into()), flags)),
        9 => {
            let limit = below(12);
            let fd = table.limited(limit.into()).insert(file(), flags);
            assert!(fd.is_ok_and(|fd| fd.get() < limit) || limit < 12, "at or above the limit");
        }
        10 => {
            if let Ok(reservation) = table.reserve_in(fd..12)
                && below(2) == 0
            {
                reservation.install(file(), flags);
            }
        }
        11 => {
            if let Ok([one, two]) = table.reserve_many() {
                one.install(file(), flags);
                drop(two);
            }
        }
        12 => drop(table.dup_from(fd, below(12), flags)),
        13 => drop(table.dup2(fd, below(12))),
        14 => drop(table.dup3(fd, below(12), flags)),
        15 => drop(table.replace(fd, file(), flags)),
        16 => drop(table.remove(fd)),
        17 => drop(table.close(fd)),
        18 => drop(table.set_flags(fd, flags)),
        19 => drop(table.renumber(fd, below(12))),
        20 => table.iter().for_each(|entry| look(Ok(entry.file))),
        21 => drop((table.len(), table.highest_open(), table.flags(fd))),
        22 => match below(3) {
            0 => table.close_on_exec(),
            1 => table.set_limit(below(24).into()),
            _ => {
                let how = CloseRange::from_bits_truncate(below(8)) - CloseRange::UNSHARE;
                let _ = table.close_range(fd, fd + below(8), how);
            }
        },
        _ => {
            let child = table.fork().expect("memory");
            child.iter().for_each(|entry| look(Ok(entry.file)));
            drop(child.insert(file(), NONE));
        }
    }
}

/// Uses the file, if there is one; it notices if it is gone.
fn look(file: Result<Ref<'_, File>, BadFd>) {
    let _ = file.map(|file| file.name());
}
