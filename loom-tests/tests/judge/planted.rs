//! Tables with a planted fault.

use std::cell::RefCell;
use std::rc::Rc;

use fdtable::{FdTable, Options};
use loom_tests::history::{Clock, Log};
use loom_tests::session::{Calls, Names, Session};

use super::*;

type Real<'t> = Session<'t, File, Names>;

/// A fault: what a thread's operation does instead.
type Fault = fn(&mut Real<'_>, &Op, &dyn Fn()) -> Option<Outcome>;

/// A session on a table that has the fault. In the middle of a faulty operation `meanwhile` happens.
struct Faulty<'t> {
    real: Real<'t>,
    fault: Fault,
    meanwhile: &'t dyn Fn(),
}

impl Calls for Faulty<'_> {
    fn call(&mut self, op: &Op) -> Outcome {
        match (self.fault)(&mut self.real, op, self.meanwhile) {
            Some(outcome) => outcome,
            None => match self.real.call(op) {
                Outcome::Open(_) if *op == Op::Fork => {
                    // Of a table that nobody else uses: what the child holds.
                    self.real.call(&Op::Iterate)
                }
                outcome => outcome,
            },
        }
    }
}

/// The first thread does `ops` on the table with the fault; the second `others`, when the fault lets it, or
/// at the end.
fn played(
    open: &[(u32, File)],
    fault: Fault,
    ops: &[Op],
    others: &[Op],
    clock: Option<&Clock>,
) -> History {
    let table: FdTable<File> = Options::new().limit(LIMIT.into()).build();
    for &(fd, file) in open {
        assert!(table.replace(fd, file, NONE).expect("below the limit").is_none());
    }
    let other = Rc::new(RefCell::new((Session::new(&table, &Names, 0), Log::new(clock))));
    let rest = RefCell::new(others.iter());
    let meanwhile = || {
        let (session, log) = &mut *other.borrow_mut();
        rest.borrow_mut().by_ref().for_each(|op| log.call(session, op));
    };
    let mut log = Log::new(clock);
    let mut faulty = Faulty { real: Session::new(&table, &Names, 0), fault, meanwhile: &meanwhile };
    ops.iter().for_each(|op| log.call(&mut faulty, op));
    meanwhile();
    drop(faulty);
    let (session, second) = Rc::into_inner(other).expect("nobody else has it").into_inner();
    drop(session);
    History {
        threads: vec![log.into_records([]), second.into_records([])],
        reserved: Real::reserved(&table, 0, LIMIT),
        ..case(open).ends_with(Session::open(&Names, &table, 0))
    }
}

/// The fault is seen, with a clock and without; a table without it passes with the same operations.
#[track_caller]
fn is_seen(open: &[(u32, File)], fault: Fault, ops: &[Op], others: &[Op]) {
    for clock in [None, Some(&Clock::default())] {
        allowed(played(open, |_, _, _| None, ops, others, clock));
        forbidden(played(open, fault, ops, others, clock));
    }
}

fn op(record: Record) -> Op {
    record.op
}

#[test]
fn a_number_that_is_not_the_lowest() {
    let fault: Fault = |real, op, _| match *op {
        Op::Insert { min, file, flags } => {
            Some(real.call(&Op::Insert { min: min + 1, file, flags }))
        }
        _ => None,
    };
    is_seen(&[], fault, &[op(insert(A, 0))], &[]);
    is_seen(&[(1, B)], fault, &[op(insert(A, 0)), Op::Fork], &[Op::Get(0)]);
}

#[test]
fn a_torn_fork() {
    let fault: Fault = |real, op, meanwhile| {
        (*op == Op::Fork).then(|| {
            let Outcome::Open(mut low) = real.call(&Op::Iterate) else { unreachable!() };
            meanwhile();
            let Outcome::Open(mut high) = real.call(&Op::Iterate) else { unreachable!() };
            low.retain(|item| item.0 < 1);
            high.retain(|item| item.0 >= 1);
            Outcome::Open([low, high].concat())
        })
    };
    is_seen(&[(0, A), (1, B)], fault, &[Op::Fork], &[Op::Close(0), Op::Close(1)]);
    is_seen(&[], fault, &[Op::Fork], &[op(insert(A, 0)), op(insert(B, 1))]);
    is_seen(&[(0, A), (1, B)], fault, &[Op::Fork], &[op(renumber(0, 1))]);
}

#[test]
fn a_stale_lookup() {
    // It remembers what was there at first.
    let fault: Fault = |_, op, _| (*op == Op::Get(0)).then_some(Outcome::File(A));
    is_seen(&[(0, A)], fault, &[Op::Close(0), Op::Get(0)], &[]);
    is_seen(&[(0, A)], fault, &[op(replace(0, B, None)), Op::Get(0)], &[]);
    // In the other's eyes: it has seen what happened after the close, and the file that is closed.
    let late: Fault = |_, op, meanwhile| match *op {
        Op::Get(0) => Some(Outcome::File(A)),
        Op::Get(1) => {
            meanwhile();
            None
        }
        _ => None,
    };
    let others = [Op::Close(0), op(insert_from(1, B, 1))];
    is_seen(&[(0, A)], late, &[Op::Get(1), Op::Get(0)], &others);
}

#[test]
fn a_lost_close() {
    let fault: Fault = |_, op, _| matches!(op, Op::Close(_)).then_some(Outcome::Done);
    is_seen(&[(0, A)], fault, &[Op::Close(0)], &[]);
    is_seen(&[(0, A)], fault, &[Op::Close(0), op(insert(B, 0))], &[]);
    // One of two in a sweep.
    let fault: Fault = |real, op, _| match *op {
        Op::CloseRange { last, how, .. } => {
            Some(real.call(&Op::CloseRange { first: 1, last, how }))
        }
        _ => None,
    };
    is_seen(&[(0, A), (1, B)], fault, &[op(sweep(CloseRange::empty()))], &[op(insert(C, 0))]);
}

#[test]
fn a_double_claim() {
    // Two threads find the number free; the second to fill it overwrites the first one's file.
    let fault: Fault = |real, op, meanwhile| match *op {
        Op::Insert { file, flags, .. } => {
            meanwhile();
            real.call(&Op::Replace { fd: 0, file, flags });
            Some(Outcome::Fd(0))
        }
        _ => None,
    };
    is_seen(&[], fault, &[op(insert(A, 0))], &[op(insert(B, 0))]);
    // One reserves it, and finds the other's file there.
    let fault: Fault = |_, op, meanwhile| match *op {
        Op::Reserve(_) => {
            meanwhile();
            Some(Outcome::Fd(0))
        }
        Op::Abandon => Some(Outcome::Fd(0)),
        _ => None,
    };
    is_seen(&[], fault, &[op(reserve(0)), Op::Get(0), Op::Abandon], &[op(insert(B, 0))]);
}

#[test]
fn a_lost_flag() {
    let fault: Fault = |real, op, _| match *op {
        Op::Install { file, .. } => {
            let Outcome::Fd(fd) = real.call(&Op::Install { file, flags: NONE }) else {
                return None;
            };
            real.call(&Op::SetFlags(fd.into(), NONE));
            Some(Outcome::Fd(fd))
        }
        _ => None,
    };
    let ops = [op(reserve(0)), op(sweep(CloseRange::CLOEXEC)), op(install(A, 0))];
    is_seen(&[], fault, &ops, &[]);
}

#[test]
fn a_renumber_in_two_steps() {
    let fault: Fault = |real, op, meanwhile| match *op {
        Op::Renumber { from, to } => {
            real.call(&Op::Dup2 { old: from, new: to });
            meanwhile();
            Some(real.call(&Op::Close(from)))
        }
        _ => None,
    };
    is_seen(&[(0, A), (1, B)], fault, &[op(renumber(0, 1))], &[Op::Close(0)]);
}
