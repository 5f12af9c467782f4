//! The judge of histories, judged: histories written by hand, allowed and forbidden, and tables with a
//! planted fault. The schedules of the latter are fixed, so the faults never hide.
#![cfg(not(all(loom, feature = "loom")))]

use std::cell::RefCell;
use std::rc::Rc;

use fdtable::{CloseRange, Errno, FdFlags, FdTable, Options};
use loom_tests::history::{Clock, History, Log, Record};
use loom_tests::session::{Calls, NONE, Names, Session};
use loom_tests::spec::{File, Item, Op, Outcome};

const A: File = File(0);
const B: File = File(1);
const C: File = File(2);
const CLOEXEC: FdFlags = FdFlags::CLOEXEC;
const LIMIT: u32 = 4;

// Histories by hand

fn told(op: Op, outcome: Outcome) -> Record {
    Record { op, outcome, ticks: (0, 0) }
}

fn bad(op: Op, errno: Errno) -> Record {
    told(op, Outcome::Failed(errno))
}

fn get(fd: u32, file: File) -> Record {
    told(Op::Get(fd.into()), Outcome::File(file))
}

fn miss(fd: u32) -> Record {
    bad(Op::Get(fd.into()), Errno::EBADF)
}

fn insert(file: File, fd: u32) -> Record {
    told(Op::Insert { min: 0, file, flags: NONE }, Outcome::Fd(fd))
}

fn insert_from(min: u32, file: File, fd: u32) -> Record {
    told(Op::Insert { min: min.into(), file, flags: NONE }, Outcome::Fd(fd))
}

fn close(fd: u32) -> Record {
    told(Op::Close(fd.into()), Outcome::Done)
}

fn not_open(fd: u32) -> Record {
    bad(Op::Close(fd.into()), Errno::EBADF)
}

fn replace(fd: u32, file: File, old: Option<File>) -> Record {
    told(Op::Replace { fd: fd.into(), file, flags: NONE }, Outcome::Replaced(old))
}

fn dup2(old: u32, new: u32) -> Record {
    told(Op::Dup2 { old: old.into(), new: new.into() }, Outcome::Fd(new))
}

fn busy(old: u32, new: u32) -> Record {
    bad(Op::Dup2 { old: old.into(), new: new.into() }, Errno::EBUSY)
}

fn renumber(from: u32, to: u32) -> Record {
    told(Op::Renumber { from: from.into(), to: to.into() }, Outcome::Done)
}

fn reserve(fd: u32) -> Record {
    told(Op::Reserve(0..u32::MAX), Outcome::Fd(fd))
}

fn install(file: File, fd: u32) -> Record {
    told(Op::Install { file, flags: NONE }, Outcome::Fd(fd))
}

fn abandon(fd: u32) -> Record {
    told(Op::Abandon, Outcome::Fd(fd))
}

fn sweep(how: CloseRange) -> Record {
    told(Op::CloseRange { first: 0, last: u32::MAX, how }, Outcome::Done)
}

fn limit(limit: u64) -> Record {
    told(Op::SetLimit(limit), Outcome::Done)
}

/// What is open, without flags.
fn items(items: &[(u32, File)]) -> Vec<Item> {
    items.iter().map(|&(fd, file)| (fd, file, NONE)).collect()
}

fn fork(child: &[(u32, File)]) -> Record {
    told(Op::Fork, Outcome::Open(items(child)))
}

fn iterate(shown: &[(u32, File)]) -> Record {
    told(Op::Iterate, Outcome::Open(items(shown)))
}

/// With a clock: called and returned at these instants.
fn at(called: u64, returned: u64, record: Record) -> Record {
    Record { ticks: (called, returned), ..record }
}

/// A history that begins with `open`, if that is open already.
struct Case(History);

fn case(open: &[(u32, File)]) -> Case {
    Case(History {
        bounds: (64, LIMIT.into()),
        setup: open.iter().map(|&(fd, file)| replace(fd, file, None)).collect(),
        threads: Vec::new(),
        open: Vec::new(),
        reserved: Vec::new(),
    })
}

impl Case {
    fn thread<const N: usize>(mut self, records: [Record; N]) -> Self {
        self.0.threads.push(records.into());
        self
    }

    fn ends_with(mut self, open: Vec<Item>) -> History {
        self.0.open = open;
        self.0
    }

    fn ends(self, open: &[(u32, File)]) -> History {
        self.ends_with(items(open))
    }
}

#[track_caller]
fn allowed(history: History) {
    history.explain().unwrap();
}

#[track_caller]
fn forbidden(history: History) {
    assert!(history.explain().is_err(), "not to be explained:\n{history:?}");
}

#[test]
fn numbers_are_the_lowest_at_one_instant() {
    allowed(case(&[(0, A)]).thread([close(0)]).thread([insert(B, 0)]).ends(&[(0, B)]));
    allowed(case(&[(0, A)]).thread([close(0)]).thread([insert(B, 1)]).ends(&[(1, B)]));
    forbidden(case(&[(0, A)]).thread([close(0)]).thread([insert(B, 2)]).ends(&[(2, B)]));
    // Low first, then high: 1 is never free while 0 is not.
    let low_then_high = || case(&[(0, A), (1, B)]).thread([close(0), close(1)]);
    forbidden(low_then_high().thread([insert(C, 1)]).ends(&[(1, C)]));
    allowed(low_then_high().thread([insert(C, 2)]).ends(&[(2, C)]));
    allowed(low_then_high().thread([insert_from(1, C, 1)]).ends(&[(1, C)]));
    let full = bad(Op::Insert { min: 3, file: B, flags: NONE }, Errno::EMFILE);
    forbidden(case(&[(0, A)]).thread([full]).ends(&[(0, A)]));
}

#[test]
fn two_owners_of_one_number() {
    forbidden(case(&[]).thread([insert(A, 0)]).thread([insert(B, 0)]).ends(&[(0, B)]));
    forbidden(
        case(&[])
            .thread([reserve(0), abandon(0)])
            .thread([insert(B, 0), close(0), miss(0)])
            .ends(&[(0, B)]),
    );
    allowed(
        case(&[])
            .thread([reserve(0), abandon(0)])
            .thread([insert(B, 0), close(0), miss(0)])
            .ends(&[]),
    );
    let reserved = |n| case(&[]).thread([reserve(0), install(A, 0)]).thread([insert(B, n)]);
    allowed(reserved(1).ends(&[(0, A), (1, B)]));
    forbidden(reserved(0).ends(&[(0, A)]));
}

#[test]
fn a_miss_orders_nothing() {
    let both = || {
        case(&[(2, C), (3, C)])
            .thread([insert_from(0, A, 0), miss(1)])
            .thread([insert_from(1, B, 1), miss(0)])
    };
    allowed(both().ends(&[(0, A), (1, B), (2, C), (3, C)]));
    // Two observers that disagree on which came first.
    allowed(
        case(&[])
            .thread([insert_from(0, A, 0)])
            .thread([insert_from(1, B, 1)])
            .thread([get(0, A), miss(1)])
            .thread([get(1, B), miss(0)])
            .ends(&[(0, A), (1, B)]),
    );
}

#[test]
fn a_hit_does() {
    let installed = || case(&[]).thread([insert(A, 0), insert(B, 1)]);
    allowed(installed().thread([get(0, A), miss(1)]).ends(&[(0, A), (1, B)]));
    forbidden(installed().thread([get(1, B), miss(0)]).ends(&[(0, A), (1, B)]));
    // By way of a third.
    let third = || installed().thread([get(1, B), insert(C, 2)]);
    forbidden(third().thread([get(2, C), miss(0)]).ends(&[(0, A), (1, B), (2, C)]));
    allowed(third().thread([miss(0), get(2, C)]).ends(&[(0, A), (1, B), (2, C)]));
    // A thread knows what it did itself.
    forbidden(case(&[]).thread([insert(A, 0), miss(0)]).ends(&[(0, A)]));
    forbidden(case(&[(0, A)]).thread([close(0), get(0, A)]).ends(&[]));
    // A close that finds nothing comes after the one that did, and after all that this one knew.
    let closed = || case(&[(0, A), (1, B)]).thread([close(1), close(0)]);
    forbidden(closed().thread([not_open(0), get(1, B)]).ends(&[]));
}

#[test]
fn one_file_at_a_time() {
    let replaced = || case(&[(0, A)]).thread([replace(0, B, Some(A))]);
    allowed(replaced().thread([get(0, A), get(0, B)]).ends(&[(0, B)]));
    forbidden(replaced().thread([get(0, B), get(0, A)]).ends(&[(0, B)]));
    forbidden(replaced().thread([miss(0)]).ends(&[(0, B)]));
    forbidden(replaced().thread([replace(0, C, Some(A))]).ends(&[(0, C)]));
    forbidden(
        case(&[(0, A), (1, B)]).thread([dup2(1, 0)]).thread([miss(0)]).ends(&[(0, B), (1, B)]),
    );
    forbidden(case(&[(0, A)]).thread([close(0)]).thread([close(0)]).ends(&[]));
    forbidden(case(&[(0, A)]).thread([close(0)]).ends(&[(0, A)]));
    forbidden(case(&[(0, A)]).thread([not_open(0)]).ends(&[(0, A)]));
}

#[test]
fn inserts_and_closes_have_two_steps() {
    // The fd is gone, and its number not yet free.
    allowed(case(&[(0, A)]).thread([close(0)]).thread([miss(0), insert(B, 1)]).ends(&[(1, B)]));
    // The number is free, and the fd not yet gone.
    forbidden(
        case(&[(0, A), (1, B)])
            .thread([close(0)])
            .thread([insert(C, 0)])
            .thread([get(0, C), get(0, A)])
            .ends(&[(0, C), (1, B)]),
    );
    // Claimed and empty.
    allowed(case(&[(1, B)]).thread([insert(A, 0)]).thread([busy(1, 0)]).ends(&[(0, A), (1, B)]));
    allowed(case(&[(0, A), (1, B)]).thread([close(0)]).thread([busy(1, 0)]).ends(&[(1, B)]));
    forbidden(case(&[(1, B)]).thread([get(1, B)]).thread([busy(1, 0)]).ends(&[(1, B)]));
    forbidden(case(&[(0, A), (1, B)]).thread([busy(1, 0)]).ends(&[(0, A), (1, B)]));
}

#[test]
fn a_fork_is_one_instant() {
    let closed = |child: &[(u32, File)]| {
        let closes = case(&[(0, A), (1, B)]).thread([close(0), close(1)]);
        closes.thread([fork(child)]).ends(&[])
    };
    allowed(closed(&[(0, A), (1, B)]));
    allowed(closed(&[(1, B)]));
    allowed(closed(&[]));
    forbidden(closed(&[(0, A)]));
    let installed = |child: &[(u32, File)]| {
        let inserts = case(&[]).thread([insert(A, 0), insert(B, 1)]);
        inserts.thread([fork(child)]).ends(&[(0, A), (1, B)])
    };
    allowed(installed(&[(0, A)]));
    forbidden(installed(&[(1, B)]));
    // The failing history of a flag that changes check before they begin.
    let observed = |child: &[(u32, File)]| {
        let closes = case(&[(0, A), (1, B)]).thread([close(0), get(1, B)]);
        closes.thread([replace(1, C, Some(B))]).thread([fork(child)]).ends(&[(1, C)])
    };
    allowed(observed(&[(1, B)]));
    forbidden(observed(&[(0, A), (1, C)]));
    // That of passes that look only for new files.
    let passes = |child: &[(u32, File)]| {
        let filled = case(&[]).thread([insert_from(1, B, 1), insert_from(2, C, 2)]);
        let emptied = filled.thread([insert(A, 0), close(1)]);
        emptied.thread([fork(child)]).ends(&[(0, A), (2, C)])
    };
    allowed(passes(&[(0, A), (1, B)]));
    allowed(passes(&[(1, B), (2, C)]));
    forbidden(passes(&[(2, C)]));
    // What is reserved is free in it; an fd with CLOFORK as well.
    forbidden(case(&[]).thread([fork(&[(0, A)]), insert(A, 0)]).ends(&[(0, A)]));
    let clofork = told(Op::SetFlags(0, FdFlags::CLOFORK), Outcome::Done);
    let left_out = |child| case(&[(0, A)]).thread([clofork.clone(), fork(child)]);
    allowed(left_out(&[]).ends_with(vec![(0, A, FdFlags::CLOFORK)]));
    forbidden(left_out(&[(0, A)]).ends_with(vec![(0, A, FdFlags::CLOFORK)]));
}

#[test]
fn a_renumber_is_one_step_but_to_lookups() {
    let moved = || case(&[(0, A), (1, B)]).thread([renumber(0, 1)]);
    allowed(moved().thread([miss(0), get(1, B), get(1, A)]).ends(&[(1, A)]));
    forbidden(moved().thread([get(1, A), get(0, A)]).ends(&[(1, A)]));
    allowed(moved().thread([fork(&[(1, A)])]).ends(&[(1, A)]));
    allowed(moved().thread([fork(&[(0, A), (1, B)])]).ends(&[(1, A)]));
    forbidden(moved().thread([fork(&[(1, B)])]).ends(&[(1, A)]));
    forbidden(moved().thread([fork(&[(0, A), (1, A)])]).ends(&[(1, A)]));
    forbidden(moved().thread([not_open(0), replace(1, C, Some(B))]).ends(&[(1, A)]));
    forbidden(case(&[(0, A)]).thread([renumber(0, 1)]).ends(&[(1, A)]));
}

#[test]
fn sweeps_and_iterations_take_each_fd_by_itself() {
    let closed = || case(&[(0, A), (1, B)]).thread([close(0), close(1)]);
    allowed(closed().thread([iterate(&[(0, A)])]).ends(&[]));
    allowed(closed().thread([iterate(&[(1, B)])]).ends(&[]));
    forbidden(closed().thread([iterate(&[(0, A), (0, A)])]).ends(&[]));
    forbidden(closed().thread([iterate(&[(2, C)])]).ends(&[]));
    // What is open throughout is shown.
    forbidden(
        case(&[(0, A)]).thread([iterate(&[])]).thread([insert(B, 1)]).ends(&[(0, A), (1, B)]),
    );

    let all = CloseRange::empty();
    allowed(case(&[(0, A)]).thread([sweep(all)]).thread([insert(B, 1)]).ends(&[]));
    allowed(case(&[(0, A)]).thread([sweep(all)]).thread([insert(B, 1)]).ends(&[(1, B)]));
    allowed(case(&[(0, A)]).thread([sweep(all)]).thread([insert(B, 0)]).ends(&[(0, B)]));
    forbidden(case(&[(0, A)]).thread([sweep(all)]).thread([insert(B, 1)]).ends(&[(0, A)]));
    forbidden(case(&[(0, A)]).thread([insert(B, 1), sweep(all)]).ends(&[(1, B)]));
    let outside =
        told(Op::CloseRange { first: 1, last: 1, how: CloseRange::EXCEPT }, Outcome::Done);
    allowed(case(&[(0, A), (1, B)]).thread([outside.clone()]).ends(&[(1, B)]));
    forbidden(case(&[(0, A), (1, B)]).thread([outside]).ends(&[(0, A)]));
    let exec = || {
        case(&[(0, A)]).thread([sweep(CloseRange::CLOEXEC), told(Op::CloseOnExec, Outcome::Done)])
    };
    allowed(exec().ends(&[]));
    forbidden(exec().ends_with(vec![(0, A, CLOEXEC)]));
    forbidden(case(&[(0, A)]).thread([sweep(CloseRange::CLOEXEC_ONLY)]).ends(&[]));
}

#[test]
fn cloexec_on_a_reserved_number_stays() {
    let flagged = || {
        let owner = case(&[]).thread([at(1, 2, reserve(0)), at(5, 6, install(A, 0))]);
        owner.thread([at(3, 4, sweep(CloseRange::CLOEXEC))])
    };
    allowed(flagged().ends_with(vec![(0, A, CLOEXEC)]));
    forbidden(flagged().ends(&[(0, A)]));
    // Not with the next owner.
    let next = |how| case(&[]).thread([reserve(0), sweep(how), abandon(0), insert(A, 0)]);
    allowed(next(CloseRange::CLOEXEC).ends(&[(0, A)]));
    forbidden(next(CloseRange::CLOEXEC).ends_with(vec![(0, A, CLOEXEC)]));
}

#[test]
fn a_limit_is_one_that_was_there_during_the_call() {
    let lowered = |first, second| {
        let lower = case(&[(0, A)]).thread([at(first, first + 1, limit(1))]);
        lower.thread([at(second, second + 3, insert(B, 1))]).ends(&[(0, A), (1, B)])
    };
    allowed(lowered(2, 1));
    allowed(lowered(5, 1));
    forbidden(lowered(1, 5));
}

#[test]
fn with_a_clock_who_has_returned_comes_first() {
    let insert_and_miss = |(one, two): (u64, u64)| {
        let first = case(&[]).thread([at(one, one + 1, insert(A, 0))]);
        first.thread([at(two, two + 2, miss(0))]).ends(&[(0, A)])
    };
    forbidden(insert_and_miss((1, 3)));
    allowed(insert_and_miss((2, 1)));
    let both = case(&[])
        .thread([at(1, 2, insert_from(0, A, 0)), at(5, 8, miss(1))])
        .thread([at(3, 4, insert_from(1, B, 1)), at(6, 7, miss(0))]);
    forbidden(both.ends(&[(0, A), (1, B)]));
    // What it showed when it returned, not what it did later.
    allowed(
        case(&[])
            .thread([at(1, 2, insert(A, 0)), at(4, 9, insert(B, 1))])
            .thread([at(3, 8, miss(1))])
            .ends(&[(0, A), (1, B)]),
    );
}

// Tables with a fault

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
