//! Sequences worth having whatever the random ones do.

use super::ops::Number::{At, Limit};
use super::ops::Op::*;
use super::ops::{Number, Op, Sequence, Step};

const UNSHARE: u32 = libc::CLOSE_RANGE_UNSHARE;
const CLOEXEC: u32 = libc::CLOSE_RANGE_CLOEXEC;
/// As a flag of `open`, `pipe2` and `dup3`.
const O_CLOEXEC: i32 = libc::O_CLOEXEC;
/// As an end of a range, the last number.
const LAST: Number = At(-1);
/// The hard limit.
const HARD: u64 = u64::MAX;

/// Each step is a task's number and its call.
fn tasks(limit: u64, steps: Vec<(u8, Op<Number>)>) -> Sequence {
    let steps = steps.into_iter().map(|(task, op)| Step { task, op }).collect();
    Sequence { full: 3, open: [].into(), limit, steps }
}

fn task(limit: u64, ops: Vec<Op<Number>>) -> Sequence {
    tasks(limit, ops.into_iter().map(|op| (0, op)).collect())
}

/// All numbers below `full` are open at the start.
fn full(full: i32, limit: u64, ops: Vec<Op<Number>>) -> Sequence {
    Sequence { full, ..task(limit, ops) }
}

pub(super) fn sequences() -> Vec<(&'static str, Sequence)> {
    [numbers(), errors(), ranges(), many_tasks()].into_iter().flatten().collect()
}

// Skipped below: sequences are read in lines, as prose is.

#[rustfmt::skip]
fn numbers() -> Vec<(&'static str, Sequence)> {
    vec![
        ("the last number, and those that are none", task(HARD, vec![
            Dup2(At(0), Limit(-1)), Dup(Limit(-1)), Dup2(At(0), Limit(0)), Dup2(At(0), At(-1)),
            Dup2(At(0), At(i32::MAX)), Dup2(At(0), At(i32::MIN)), Dup2(At(-1), At(-1)),
            Dup2(At(i32::MAX), At(i32::MAX)), DupFd(At(0), Limit(-1)), Close(Limit(-1)),
            DupFdCloexec(At(0), Limit(-1)), Fork, CloseRange(At(3), LAST, 0),
        ])),
        ("a pipe across the end of the first word", full(63, 1024, vec![
            Pipe(O_CLOEXEC), Close(At(63)), Pipe(0), Close(At(5)), Pipe(0), Close(At(62)),
            Close(At(64)), Pipe(0), Pipe(0),
        ])),
        ("a hole in a full word beyond the first, or in two", full(200, 1024, vec![
            Close(At(130)), Dup(At(0)), Close(At(190)), Close(At(70)), Pipe(0), Dup(At(0)),
            CloseRange(At(127), At(128), 0), DupFd(At(0), At(128)), DupFd(At(0), At(64)), Open(0),
            CloseRange(At(64), At(191), CLOEXEC), ForkExec, CloseRange(At(64), At(127), 0),
            DupFd(At(0), At(127)), DupFd(At(0), At(127)), Dup(At(0)), Fork, Dup(At(0)),
        ])),
        ("the lowest hole of many", task(1024, vec![
            DupFd(At(0), At(100)), DupFd(At(0), At(100)), Dup2(At(0), At(128)), Close(At(1)),
            Close(At(100)), Open(0), Open(0), DupFd(At(0), At(99)), DupFd(At(0), At(99)),
            DupFd(At(0), At(99)), DupFd(At(0), At(127)), DupFd(At(0), At(127)), Pipe(0),
        ])),
        ("numbers above a lowered limit stay usable", task(1024, vec![
            Dup2(At(0), At(1000)), SetLimit(10), Dup(At(1000)), SetFd(At(1000), 1),
            GetFd(At(1000)), DupFd(At(1000), At(9)), Dup2(At(1000), At(8)),
            Dup2(At(1), At(1000)), Fork, CloseRange(At(10), LAST, CLOEXEC), ForkExec,
            Close(At(1000)), Close(At(1000)),
        ])),
    ]
}

#[rustfmt::skip]
fn errors() -> Vec<(&'static str, Sequence)> {
    vec![
        ("dup2 to itself clears no flags and checks no limit", task(20, vec![
            Dup3(At(0), At(19), O_CLOEXEC), SetLimit(10), Dup2(At(19), At(19)), GetFd(At(19)),
            Dup2(At(18), At(18)), Dup2(At(0), At(19)), Dup2(At(19), At(9)), GetFd(At(9)),
        ])),
        ("dup3: the flags, whether both are the same, the target, the source", task(20, vec![
            Dup3(At(9), At(9), 1), Dup3(At(9), At(9), 0), Dup3(At(0), At(0), O_CLOEXEC),
            Dup3(At(0), At(20), libc::O_NONBLOCK), Dup3(At(0), At(20), 0),
            Dup3(At(9), At(20), 0), Dup3(At(9), At(1), 0), Dup3(At(0), At(1), O_CLOEXEC),
            Dup3(At(0), At(1), 0), GetFd(At(1)),
        ])),
        ("F_DUPFD: the source, the minimum, the room", task(20, vec![
            DupFd(At(9), At(20)), DupFd(At(-1), At(-1)), DupFd(At(0), At(20)),
            DupFd(At(0), At(-1)), DupFd(At(0), At(i32::MAX)), DupFd(At(0), At(i32::MIN)),
            DupFd(At(0), At(19)), DupFd(At(0), At(19)), DupFdCloexec(At(0), At(18)),
            DupFdCloexec(At(0), At(18)), DupFd(At(0), At(0)), SetLimit(0), DupFd(At(0), At(0)),
            DupFd(At(9), At(0)),
        ])),
        ("with limit 0 nothing is opened, and what is open works", task(0, vec![
            Open(0), OpenMissing, Pipe(0), Dup(At(0)), Dup(At(3)), DupFd(At(0), At(0)),
            Dup2(At(0), At(0)), Dup2(At(0), At(1)), Dup3(At(0), At(1), 0), SetFd(At(0), 1),
            GetFd(At(0)), CloseRange(At(0), At(1), CLOEXEC), ForkExec, Close(At(2)), Close(At(2)),
        ])),
        ("a full table is reported before a missing file", task(4, vec![
            OpenMissing, Open(0), OpenMissing, Open(0), Close(At(1)), OpenMissing, Open(O_CLOEXEC),
        ])),
        ("a pipe with one number left takes none", task(4, vec![
            Pipe(O_CLOEXEC), Open(0), Pipe(0), Close(At(0)), Pipe(0), Close(At(2)),
            Pipe(O_CLOEXEC), GetFd(At(0)), GetFd(At(2)),
        ])),
        ("F_SETFD takes one bit, of one number", task(20, vec![
            Dup(At(0)), SetFd(At(3), -1), GetFd(At(3)), GetFd(At(0)), SetFd(At(3), !1),
            GetFd(At(3)), SetFd(At(4), 1), SetFd(At(-1), 1), GetFd(At(20)), SetFd(At(0), 1),
            Dup(At(0)), GetFd(At(4)),
        ])),
    ]
}

#[rustfmt::skip]
fn ranges() -> Vec<(&'static str, Sequence)> {
    vec![
        ("close_range: flags and ends", task(20, vec![
            CloseRange(At(2), At(1), 0), CloseRange(LAST, At(0), CLOEXEC),
            CloseRange(At(0), LAST, 1), CloseRange(At(0), LAST, 1 << 16),
            CloseRange(At(0), LAST, 1 << 17), CloseRange(LAST, LAST, 0),
            CloseRange(At(i32::MIN), LAST, UNSHARE), CloseRange(At(1), At(1), CLOEXEC),
            GetFd(At(1)), CloseRange(At(1), At(1), 0), CloseRange(At(1), At(1), 0),
            CloseRange(At(0), LAST, UNSHARE | CLOEXEC), CloseRange(At(0), LAST, UNSHARE), Open(0),
        ])),
        ("close_range with UNSHARE, then dup", tasks(256, vec![
            (0, Dup2(At(0), At(5))), (0, Dup2(At(0), At(100))), (0, Share),
            (1, CloseRange(At(3), LAST, UNSHARE)), (1, Dup(At(0))), (0, Dup(At(5))),
            (0, Close(At(100))), (1, DupFd(At(0), At(100))), (1, Exit), (0, Dup(At(0))),
        ])),
        ("close_range with UNSHARE, in the middle, around the ends of words", tasks(256, vec![
            (0, Dup2(At(0), At(63))), (0, Dup2(At(0), At(64))), (0, Dup2(At(0), At(130))),
            (0, Share), (0, CloseRange(At(2), At(64), UNSHARE)), (0, Open(0)), (1, Open(0)),
            (0, DupFd(At(0), At(63))), (1, DupFd(At(0), At(63))), (0, Dup2(At(0), At(130))),
        ])),
        ("close_range with UNSHARE and CLOEXEC copies, then marks", tasks(256, vec![
            (0, Dup2(At(0), At(70))), (0, Share),
            (1, CloseRange(At(1), LAST, UNSHARE | CLOEXEC)), (0, GetFd(At(70))),
            (1, GetFd(At(70))), (1, ForkExec), (0, ForkExec), (1, ShareExec), (0, Close(At(70))),
            (1, Dup(At(70))),
        ])),
        ("a close_range that is an error unshares nothing", tasks(256, vec![
            (0, Share), (1, CloseRange(At(3), At(2), UNSHARE)), (1, Open(0)), (0, GetFd(At(3))),
            (1, CloseRange(At(0), LAST, UNSHARE | 1)), (1, Open(0)), (0, GetFd(At(4))),
        ])),
    ]
}

#[rustfmt::skip]
fn many_tasks() -> Vec<(&'static str, Sequence)> {
    vec![
        ("sharers have limits of their own", tasks(256, vec![
            (0, Share), (1, SetLimit(3)), (1, Open(0)), (0, Open(0)), (1, Dup2(At(0), At(3))),
            (1, Close(At(3))), (0, SetLimit(100)), (0, Dup2(At(0), At(99))), (1, Dup(At(99))),
            (1, Dup3(At(0), At(2), O_CLOEXEC)), (0, GetFd(At(2))), (1, Share), (2, Open(0)),
            (2, SetLimit(5)), (2, Open(0)), (1, Close(At(0))), (2, Exit), (1, Exit), (0, Open(0)),
        ])),
        ("a fork copies flags and limit, then both go their ways", tasks(20, vec![
            (0, Open(O_CLOEXEC)), (0, SetLimit(5)), (0, Fork), (1, GetFd(At(3))), (1, Open(0)),
            (1, Open(0)), (0, Open(O_CLOEXEC)), (0, SetLimit(64)), (1, SetFd(At(3), 0)),
            (0, CloseRange(At(3), At(3), 0)), (1, Dup2(At(3), At(0))), (1, Fork), (2, Exit),
            (1, Exit),
        ])),
        ("an exec of a sharer leaves the table alone", tasks(256, vec![
            (0, Pipe(O_CLOEXEC)), (0, Dup3(At(3), At(64), O_CLOEXEC)), (0, Dup2(At(4), At(65))),
            (0, Share), (0, ShareExec), (1, ForkExec), (0, SetFd(At(0), 1)), (0, SetFd(At(2), 1)),
            (1, ShareExec), (1, Unshare), (1, CloseRange(At(0), LAST, 0)), (1, ShareExec),
            (0, Open(0)),
        ])),
        ("unshare, and unshare again", tasks(64, vec![
            (0, Unshare), (0, Share), (0, Share), (1, Unshare), (1, Close(At(0))),
            (2, GetFd(At(0))), (1, Unshare), (2, Open(O_CLOEXEC)), (0, Unshare),
            (0, Dup2(At(0), At(63))), (2, Exit), (1, Open(0)), (0, Close(At(3))),
        ])),
    ]
}
