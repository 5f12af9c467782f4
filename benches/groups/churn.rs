//! Opening and closing, on one thread.

use std::fs::File;
use std::hint::black_box;

use fdtable::FdTable;

use super::{NONE, bare, scale};
use crate::peers::{
    Dup, MutexSlab, ParkingLotMutex, StdRwLock, Table, each_dup_table, each_table, filled,
};
use crate::rounds::Candidate;

/// Insert and remove of a file that exists, in a nearly empty table.
pub(crate) fn ready() -> Vec<Candidate> {
    let mut candidates = scale();
    candidates.push(bare::cycle());
    candidates.extend(each_table!(move_in_and_out));
    candidates
}

fn move_in_and_out<T: Table>() -> Candidate {
    let (table, _) = filled::<T>(3);
    let mut file = Some(T::File::from(7));
    Candidate::new(T::NAME, move || {
        let fd = table.insert(file.take().expect("put back below"));
        file = table.remove(fd);
        fd
    })
}

/// The file is made for each open, and destroyed by the close.
pub(crate) fn fresh() -> Vec<Candidate> {
    fn cycle<T: Table>() -> Candidate {
        let (table, _) = filled::<T>(3);
        Candidate::new(T::NAME, move || table.close(table.insert(T::File::from(black_box(7)))))
    }
    fn recycled<T: Table>() -> Candidate {
        let mut candidate = cycle::<T>().recycling();
        candidate.name.push_str(", recycled blocks");
        candidate
    }
    let mut candidates = scale();
    candidates.push(Candidate::new("Box", || Box::new(black_box([7_u64, 8]))));
    candidates.push(bare::fresh_cycle());
    candidates.extend(each_table!(cycle));
    candidates.push(recycled::<FdTable<u64>>());
    candidates.push(recycled::<ParkingLotMutex>());
    candidates
}

/// A file moves in and out of a table with `OPEN` others: at the top, at a low fd, and at random places.
pub(crate) fn among<const OPEN: usize>() -> Vec<Candidate> {
    fn three<T: Table>(candidates: &mut Vec<Candidate>, open: usize) {
        candidates.push(at_the_top::<T>(open));
        candidates.push(in_a_low_hole::<T>(open));
        candidates.push(in_random_holes::<T>(open));
    }
    let mut candidates = scale();
    let mut nearly_empty = move_in_and_out::<FdTable<u64>>();
    nearly_empty.name.push_str(", nearly empty");
    candidates.push(nearly_empty);
    three::<FdTable<u64>>(&mut candidates, OPEN);
    three::<ParkingLotMutex>(&mut candidates, OPEN);
    three::<StdRwLock>(&mut candidates, OPEN);
    three::<MutexSlab>(&mut candidates, OPEN);
    candidates
}

fn at_the_top<T: Table>(open: usize) -> Candidate {
    let (table, _) = filled::<T>(open);
    let mut file = Some(T::File::from(7));
    Candidate::new(format!("{}, top", T::NAME), move || {
        let fd = table.insert(file.take().expect("put back below"));
        file = table.remove(fd);
        fd
    })
}

/// The fd lies above the first word: below fd 64 nothing depends on what else is open.
fn in_a_low_hole<T: Table>(open: usize) -> Candidate {
    let (table, fds) = filled::<T>(open);
    let mut fd = fds[500];
    Candidate::new(format!("{}, lowest hole", T::NAME), move || {
        let file = table.remove(fd).expect("open");
        fd = table.insert(file);
        fd
    })
}

/// Closes 512 random ones, then opens as many: on average there are 256 holes.
fn in_random_holes<T: Table>(open: usize) -> Candidate {
    const HOLES: usize = 512;
    let (table, fds) = filled::<T>(open);
    let mut random = fastrand::Rng::with_seed(2);
    let mut chosen = random.choose_multiple(fds, HOLES);
    random.shuffle(&mut chosen);
    let mut files = Vec::with_capacity(HOLES);
    Candidate::new(format!("{}, random holes", T::NAME), move || {
        files.extend(chosen.iter().map(|&fd| table.remove(fd).expect("open")));
        for (fd, file) in chosen.iter_mut().zip(files.drain(..)) {
            let again = table.insert(file);
            // The lowest numbers are the same ones again, and are to stay in their random order.
            if !T::LOWEST {
                *fd = again;
            }
        }
    })
    .per(HOLES as u64)
}

/// In two steps, and in one for comparison.
pub(crate) fn reserve() -> Vec<Candidate> {
    let mut candidates = scale();
    let (table, _) = filled::<FdTable<u64>>(3);
    candidates.push(Candidate::new("fdtable", move || {
        let fd = table.reserve().expect("not full").install(black_box(7), NONE);
        table.close(fd)
    }));
    let (table, _) = filled::<FdTable<u64>>(3);
    candidates.push(Candidate::new("fdtable: insert + close", move || {
        let fd = table.insert(black_box(7), NONE).expect("not full");
        table.close(fd)
    }));
    let (table, _) = filled::<FdTable<u64>>(3);
    candidates.push(Candidate::new("fdtable: reserve + give back", move || drop(table.reserve())));
    candidates
}

/// As a pipe does; the peers can only insert twice.
pub(crate) fn pair() -> Vec<Candidate> {
    fn twice<T: Table>() -> Candidate {
        let (table, _) = filled::<T>(3);
        Candidate::new(format!("{}: insert twice", T::NAME), move || {
            let fds = [7, 8].map(|value| table.insert(T::File::from(black_box(value))));
            fds.map(|fd| table.close(fd))
        })
    }
    let mut candidates = scale();
    let (table, _) = filled::<FdTable<u64>>(3);
    candidates.push(Candidate::new("fdtable", move || {
        let reservations = table.reserve_many::<2>().expect("not full");
        let fds = reservations.map(|reserved| reserved.install(black_box(7), NONE));
        fds.map(|fd| table.close(fd))
    }));
    candidates.push(twice::<FdTable<u64>>());
    candidates.push(twice::<ParkingLotMutex>());
    candidates.push(twice::<MutexSlab>());
    candidates
}

/// A second fd for an open file.
pub(crate) fn dup() -> Vec<Candidate> {
    fn cycle<T: Dup>() -> Candidate {
        let (table, fds) = filled::<T>(3);
        Candidate::new(T::NAME, move || table.close(table.dup(black_box(fds[1]))))
    }
    let mut candidates = scale();
    candidates.push(bare::dup());
    candidates.extend(each_dup_table!(cycle));
    let file = File::open("/dev/null").expect("there");
    candidates.push(Candidate::new("Linux: dup + close", move || rustix::io::dup(&file)));
    candidates
}

/// The victim is another file each time, and stays open at its other fd.
pub(crate) fn dup2() -> Vec<Candidate> {
    fn cycle<T: Dup>() -> Candidate {
        let (table, fds) = filled::<T>(8);
        let mut from = 0;
        Candidate::new(T::NAME, move || {
            from ^= 1;
            table.dup2(fds[from], black_box(fds[5]));
        })
    }
    let mut candidates = scale();
    candidates.extend(each_dup_table!(cycle));
    let file = File::open("/dev/null").expect("there");
    let mut target = rustix::io::dup(&file).expect("not full");
    candidates.push(Candidate::new("Linux: dup2", move || rustix::io::dup2(&file, &mut target)));
    candidates
}
