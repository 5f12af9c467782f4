//! The runner of a model.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::file::Ledger;

type Setup<S> = dyn Fn(&Ledger) -> S + Send + Sync;
type Role<S> = dyn Fn(&S) -> String + Send + Sync;
type End<S> = dyn Fn(&S, &Ledger) -> String + Send + Sync;

/// A model: threads that race, each playing a role, and the complete list of how it may end.
///
/// An outcome is written `role: result; role: result; …; end`, in the order in which the roles were
/// given. The run fails on an outcome that is not listed, on a listed one that no schedule leads to,
/// on a leak, and if there was one schedule only.
pub struct Race<S> {
    name: &'static str,
    preemptions: usize,
    orders: Orders,
    unreached: &'static [&'static str],
    setup: Arc<Setup<S>>,
    roles: Vec<(&'static str, Arc<Role<S>>)>,
    end: Arc<End<S>>,
}

/// loom 0.7.3 misses runs: it remembers one last access per atomic, and a thread's own load hides
/// another thread's earlier one. Which runs depends on the order in which threads start. So a model is
/// run in several orders; the main thread plays the last role of each.
enum Orders {
    All,
    /// Each role is the main thread's once.
    Rotations,
}

/// How many times a thread may be preempted, unless the model or LOOM_MAX_PREEMPTIONS says otherwise.
const PREEMPTIONS: usize = 3;

impl<S: Send + Sync + 'static> Race<S> {
    /// A model on what `setup` makes.
    pub fn new(name: &'static str, setup: impl Fn(&Ledger) -> S + Send + Sync + 'static) -> Self {
        Race {
            name,
            preemptions: PREEMPTIONS,
            orders: Orders::All,
            unreached: &[],
            setup: Arc::new(setup),
            roles: Vec::new(),
            end: Arc::new(|_, _| String::new()),
        }
    }

    /// One more thread.
    pub fn role<R: ToString>(
        mut self,
        name: &'static str,
        role: impl Fn(&S) -> R + Send + Sync + 'static,
    ) -> Self {
        self.roles.push((name, Arc::new(move |state| role(state).to_string())));
        self
    }

    /// What is looked at when all threads are done.
    pub fn end<R: ToString>(
        mut self,
        end: impl Fn(&S, &Ledger) -> R + Send + Sync + 'static,
    ) -> Self {
        self.end = Arc::new(move |state, ledger| end(state, ledger).to_string());
        self
    }

    /// Another bound than the usual three preemptions, for a reason that the model gives.
    pub fn preemptions(mut self, bound: usize) -> Self {
        self.preemptions = bound;
        self
    }

    /// Only as many orders as there are roles, for a reason that the model gives.
    pub fn rotations_only(mut self) -> Self {
        self.orders = Orders::Rotations;
        self
    }

    /// Outcomes that are allowed too and that loom does not reach, for a reason that the model gives.
    pub fn unreached(mut self, outcomes: &'static [&'static str]) -> Self {
        self.unreached = outcomes;
        self
    }

    /// Runs the model. `outcomes` are all those that are allowed, and each of them must occur.
    #[track_caller]
    pub fn allows(self, outcomes: &[&str]) {
        let allowed: BTreeSet<String> = outcomes.iter().map(|outcome| squeeze(outcome)).collect();
        assert_eq!(allowed.len(), outcomes.len(), "an outcome is listed twice");
        let mut known = allowed.clone();
        known.extend(self.unreached.iter().map(|outcome| squeeze(outcome)));
        let model = Arc::new(self);
        let known = Arc::new(known);
        let seen = Arc::new(Mutex::new(BTreeMap::<String, usize>::new()));
        let schedules = Arc::new(AtomicUsize::new(0));
        let orders = model.orders.list(model.roles.len());
        let runs = orders.len();
        for order in orders {
            let mut builder = loom::model::Builder::new();
            builder.preemption_bound = builder.preemption_bound.or(Some(model.preemptions));
            builder.max_branches = 10_000;
            let (model, known) = (Arc::clone(&model), Arc::clone(&known));
            let (seen, schedules) = (Arc::clone(&seen), Arc::clone(&schedules));
            builder.check(move || {
                schedules.fetch_add(1, Ordering::Relaxed);
                let outcome = model.run(&order);
                *seen.lock().unwrap().entry(outcome.clone()).or_default() += 1;
                if !known.contains(&outcome) && std::env::var_os("FDTABLE_LOOM_SURVEY").is_none() {
                    panic!("{}: not allowed: {outcome:?}, order {order:?}", model.name);
                }
            });
        }
        let schedules = schedules.load(Ordering::Relaxed);
        // Not by `println!`, which the test harness swallows when all is well.
        let _ = writeln!(std::io::stderr(), "{}: {schedules} schedules", model.name);
        assert!(schedules > runs, "{}: explored a single schedule", model.name);
        let seen = seen.lock().unwrap();
        if std::env::var_os("FDTABLE_LOOM_SURVEY").is_some() {
            for (outcome, times) in &*seen {
                let new = if known.contains(outcome) { " " } else { "!" };
                let _ = writeln!(std::io::stderr(), "  {new} {times:7} {outcome:?}");
            }
        }
        let unseen: Vec<_> =
            allowed.iter().filter(|outcome| !seen.contains_key(*outcome)).collect();
        assert!(unseen.is_empty(), "{}: no schedule leads to {unseen:#?}", model.name);
    }

    fn run(&self, order: &[usize]) -> String {
        let ledger = Ledger::default();
        let state = Arc::new((self.setup)(&ledger));
        let (&last, others) = order.split_last().expect("a race has roles");
        let play = |role: usize| {
            let (name, role) = self.roles[role].clone();
            let (state, ledger) = (Arc::clone(&state), ledger.clone());
            move || {
                ledger.enter(name);
                role(&state)
            }
        };
        let threads: Vec<_> =
            others.iter().map(|&role| (role, loom::thread::spawn(play(role)))).collect();
        let mut results = vec![(last, play(last)())];
        for (role, thread) in threads {
            results.push((role, thread.join().expect("no role panics")));
        }
        ledger.leave_all();
        results.sort();
        let mut outcome = String::new();
        for (role, result) in results {
            outcome += &format!("{}: {result}; ", self.roles[role].0);
        }
        outcome += &(self.end)(&state, &ledger);
        drop(Arc::into_inner(state).expect("the threads are gone"));
        ledger.close();
        squeeze(&outcome)
    }
}

impl Orders {
    fn list(&self, n: usize) -> Vec<Vec<usize>> {
        match self {
            Orders::All => permutations((0..n).collect()),
            Orders::Rotations => {
                (0..n).map(|first| (0..n).map(|i| (first + i) % n).collect()).collect()
            }
        }
    }
}

fn permutations(items: Vec<usize>) -> Vec<Vec<usize>> {
    if items.len() < 2 {
        return vec![items];
    }
    let mut all = Vec::new();
    for at in 0..items.len() {
        let mut rest = items.clone();
        let first = rest.remove(at);
        for mut tail in permutations(rest) {
            tail.insert(0, first);
            all.push(tail);
        }
    }
    all
}

/// With single spaces, and no separator at the end.
fn squeeze(outcome: &str) -> String {
    let words: Vec<_> = outcome.split_whitespace().collect();
    words.join(" ").trim_end_matches(';').to_string()
}
