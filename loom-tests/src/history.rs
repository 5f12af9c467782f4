//! What threads have done to a table and what they were told, and whether the contract allows it.
//!
//! A history is accepted if some order of the steps of all its operations explains every outcome and the
//! end (Wing and Gong's search; situations that have been met before are not searched again). Steps are
//! those of `steps`, what threads see of them that of `register.rs`.

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::register::View;
use crate::session::Calls;
use crate::spec::{Item, Op, Outcome, Table};
use crate::steps::Call;

/// An operation of a thread.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// What was called.
    pub op: Op,
    /// What it said.
    pub outcome: Outcome,
    /// When it was called and when it returned; both 0 without a clock.
    pub ticks: (u64, u64),
}

/// Orders calls and returns of different threads.
///
/// It does not read the time: it makes it. Each tick is a read-modify-write that acquires and releases,
/// so an operation that has returned before another is called also happens before it, and the contract,
/// which speaks of happens-before, holds for this order. (With a mere look at the time it would not: a
/// file may be on its way through a store buffer when its insert has returned, and a lookup that
/// misses it is right, see C2.)
///
/// The price: the ticks are barriers, and hide what goes wrong without them. So histories are to be made
/// with and without a clock. Under the model checker, whose runs do not follow any clock, without.
#[derive(Default)]
pub struct Clock(AtomicU64);

impl Clock {
    fn tick(&self) -> u64 {
        self.0.fetch_add(1, Ordering::AcqRel) + 1
    }
}

/// Writes down what one thread does.
#[derive(Default)]
pub struct Log<'c> {
    clock: Option<&'c Clock>,
    records: Vec<Record>,
}

impl<'c> Log<'c> {
    /// In program order only, or with a clock.
    pub fn new(clock: Option<&'c Clock>) -> Self {
        Log { clock, records: Vec::new() }
    }

    /// Does the operation, and writes it down.
    pub fn call(&mut self, on: &mut impl Calls, op: &Op) {
        let tick = || self.clock.map_or(0, Clock::tick);
        let called = tick();
        let outcome = on.call(op);
        let ticks = (called, tick());
        self.records.push(Record { op: op.clone(), outcome, ticks });
    }

    /// The records. The forks' outcomes are filled in: `children` has what they hold, in their order, if
    /// it was not known at once.
    pub fn into_records(mut self, children: impl IntoIterator<Item = Vec<Item>>) -> Vec<Record> {
        let mut children = children.into_iter();
        for record in self.records.iter_mut().filter(|record| record.op == Op::Fork) {
            if matches!(record.outcome, Outcome::Open(_))
                && let Some(items) = children.next()
            {
                record.outcome = Outcome::Open(items);
            }
        }
        self.records
    }
}

/// What has happened to a table.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct History {
    /// The table's `max` and limit at the beginning.
    pub bounds: (u32, u64),
    /// What was done before the threads began.
    pub setup: Vec<Record>,
    /// What each of them did.
    pub threads: Vec<Vec<Record>>,
    /// What was open when all were done.
    pub open: Vec<Item>,
    /// What was taken then, and not open.
    pub reserved: Vec<u32>,
}

/// No order of the steps explains the history.
pub struct Inexplicable<'h> {
    history: &'h History,
    why: String,
}

impl History {
    /// Looks for an order that explains it. The result is the number of situations met.
    ///
    /// # Errors
    /// There is none.
    pub fn explain(&self) -> Result<usize, Inexplicable<'_>> {
        let fail = |why| Err(Inexplicable { history: self, why });
        let mut table = Table::new(self.bounds.0, self.bounds.1);
        for record in &self.setup {
            let right = table.apply(&record.op);
            if right != record.outcome {
                return fail(format!("{record:?}: {right:?} is right, and nobody else was there"));
            }
        }
        let events = self.events();
        let search = Search { history: self, events };
        let mut met = HashSet::new();
        let mut open = vec![search.begin(table)];
        let mut furthest = 0;
        while let Some(situation) = open.pop() {
            if search.is_end(&situation) {
                return Ok(met.len());
            }
            furthest = furthest.max(situation.returned.iter().sum());
            open.extend(
                search.next(&situation).into_iter().filter(|next| met.insert(next.clone())),
            );
        }
        let all: usize = self.threads.iter().map(Vec::len).sum();
        fail(format!(
            "{} situations met, at most {furthest} of {all} operations explained",
            met.len()
        ))
    }

    /// Calls and returns in the order of their ticks; none without a clock.
    fn events(&self) -> Vec<(u64, usize, Event)> {
        let mut events = Vec::new();
        for (thread, records) in self.threads.iter().enumerate() {
            for Record { ticks: (called, returned), .. } in
                records.iter().filter(|it| it.ticks.1 > 0)
            {
                events.push((*called, thread, Event::Call));
                events.push((*returned, thread, Event::Return));
            }
        }
        events.sort_unstable_by_key(|event| event.0);
        events
    }
}

#[derive(Clone, Copy)]
enum Event {
    Call,
    Return,
}

struct Search<'h> {
    history: &'h History,
    events: Vec<(u64, usize, Event)>,
}

/// How far an explanation has come.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Situation {
    table: Table,
    /// For each thread the operations that have returned, and the one that is called.
    returned: Vec<usize>,
    calls: Vec<Option<Call>>,
    /// With a clock: how many events have passed, and what it shows to those who look at it.
    passed: usize,
    shown: View,
}

impl Search<'_> {
    fn begin(&self, table: Table) -> Situation {
        let n = self.history.threads.len();
        let mut situation = Situation {
            table: table.shared_by(n),
            returned: vec![0; n],
            calls: vec![None; n],
            passed: 0,
            shown: View::default(),
        };
        self.advance(&mut situation);
        situation
    }

    fn is_done(&self, situation: &Situation, thread: usize) -> bool {
        situation.returned[thread] == self.history.threads[thread].len()
    }

    fn is_end(&self, situation: &Situation) -> bool {
        (0..self.history.threads.len()).all(|thread| self.is_done(situation, thread))
            && situation.table.open() == self.history.open
            && situation.table.reserved() == self.history.reserved
    }

    /// What one more step can lead to.
    fn next(&self, situation: &Situation) -> Vec<Situation> {
        let mut all = Vec::new();
        for (thread, call) in situation.calls.iter().enumerate() {
            let Some(call) = call.as_ref().filter(|call| !call.has_returned()) else { continue };
            let record = &self.history.threads[thread][situation.returned[thread]];
            for (table, call) in call.steps(&situation.table, thread) {
                if !call.may_give(&record.outcome) {
                    continue;
                }
                let mut next = Situation { table, ..situation.clone() };
                next.calls[thread] = Some(call);
                for call in next.calls.iter_mut().flatten().filter(|call| !call.has_returned()) {
                    call.watch(&next.table);
                }
                self.advance(&mut next);
                all.push(next);
            }
        }
        all
    }

    /// Lets operations return and others be called, as early as it can be: that allows the most.
    fn advance(&self, situation: &mut Situation) {
        if self.events.is_empty() {
            for thread in 0..self.history.threads.len() {
                self.finish(situation, thread);
                if situation.calls[thread].is_none() {
                    self.start(situation, thread);
                }
            }
        }
        while let Some(&(_, thread, event)) = self.events.get(situation.passed) {
            let view = &mut situation.table.threads[thread].view;
            match event {
                Event::Call => {
                    view.join(&situation.shown);
                    self.start(situation, thread);
                }
                Event::Return => {
                    let shown = view.clone();
                    if !self.finish(situation, thread) {
                        break;
                    }
                    situation.shown.join(&shown);
                }
            }
            situation.passed += 1;
        }
        let at_work: Vec<_> = (0..self.history.threads.len())
            .map(|thread| !self.is_done(situation, thread))
            .collect();
        // A thread between two operations will look at the clock before it looks at the table.
        for (thread, own) in situation.table.threads.iter_mut().enumerate() {
            if situation.calls[thread].is_none() {
                own.view.join(&situation.shown);
            }
        }
        let shown = std::slice::from_mut(&mut situation.shown);
        situation.table.forget(|thread| at_work[thread], shown);
        if !at_work.contains(&true) {
            situation.shown = View::default();
        }
    }

    fn start(&self, situation: &mut Situation, thread: usize) {
        let record = self.history.threads[thread].get(situation.returned[thread]);
        situation.calls[thread] =
            record.map(|record| Call::start(&situation.table, thread, record.op.clone()));
    }

    /// Whether the operation of the thread has made all its steps.
    fn finish(&self, situation: &mut Situation, thread: usize) -> bool {
        let has_returned = situation.calls[thread].as_ref().is_some_and(Call::has_returned);
        if has_returned {
            situation.calls[thread] = None;
            situation.returned[thread] += 1;
        }
        has_returned
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ticks.1 > 0 {
            write!(f, "{:>3} to {:>3}  ", self.ticks.0, self.ticks.1)?;
        }
        write!(f, "{:?} = {:?}", self.op, self.outcome)
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "max and limit {:?}", self.bounds)?;
        for record in &self.setup {
            writeln!(f, "  before     {record:?}")?;
        }
        for (thread, records) in self.threads.iter().enumerate() {
            for record in records {
                writeln!(f, "  thread {thread}   {record:?}")?;
            }
        }
        writeln!(f, "  at the end {:?}, reserved {:?}", self.open, self.reserved)
    }
}

impl fmt::Debug for Inexplicable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no order of steps explains this ({}):\n{:?}", self.why, self.history)
    }
}
