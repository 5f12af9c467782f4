//! The models of one build, and the searches for those that a fault makes fail.

use std::fmt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::run::{SEARCHES, Verdict, run};
use crate::scratch::{self, Model, Sources};

/// The models of a build, those first that take the least time.
pub(crate) struct Suite {
    models: Vec<Model>,
}

/// A model that has failed.
pub(crate) struct Caught {
    pub(crate) model: String,
    pub(crate) said: String,
    pub(crate) time: Duration,
}

impl fmt::Display for Caught {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:.1} s)", self.model, self.time.as_secs_f64())
    }
}

impl Suite {
    /// Builds, and runs the models without a fault: they pass.
    pub(crate) fn build(
        workspace: &Path,
        scratch: &Path,
        tests: &[String],
        sources: Sources,
    ) -> Result<Self> {
        let models = scratch::build(workspace, scratch, tests, sources)?;
        let mut timed = Vec::new();
        for model in models {
            let run = run(&model, None, SEARCHES[0])?;
            match run.verdict {
                Verdict::Passed => timed.push((run.time, model)),
                Verdict::Failed(said) => bail!("{} fails without a fault: {said}", model.name),
                Verdict::OutOfTime => bail!("{} takes too long", model.name),
            }
        }
        timed.sort();
        Ok(Suite { models: timed.into_iter().map(|(_, model)| model).collect() })
    }

    pub(crate) fn models(&self) -> impl Iterator<Item = &Model> {
        self.models.iter()
    }

    /// By its function's name, or by its full name where there are two.
    pub(crate) fn find(&self, name: &str) -> Result<&Model> {
        let named = |model: &&Model| model.name == name || model.function() == name;
        let found: Vec<_> = self.models.iter().filter(named).collect();
        match found.as_slice() {
            &[model] => Ok(model),
            [] => bail!("there is no model {name}"),
            _ => bail!("there are two models {name}: say which by its file, as in files::{name}"),
        }
    }

    /// A model that fails with the fault: one of `hints`, or any.
    pub(crate) fn search<'n>(
        &self,
        fault: &str,
        hints: impl Iterator<Item = &'n String>,
    ) -> Result<Option<Caught>> {
        for hint in hints {
            // One that is not there is reported with the claims.
            if let Ok(model) = self.find(hint)
                && let Some(caught) = self.fails(&model.name, fault)?
            {
                return Ok(Some(caught));
            }
        }
        let mut rest: Vec<_> = self.models.iter().collect();
        for search in SEARCHES {
            let mut finished = Vec::new();
            for model in rest {
                let run = run(model, Some(fault), search)?;
                match run.verdict {
                    Verdict::Passed => finished.push(model),
                    // A wider search would not finish either.
                    Verdict::OutOfTime => {}
                    Verdict::Failed(said) => {
                        return Ok(Some(Caught {
                            model: model.name.clone(),
                            said,
                            time: run.time,
                        }));
                    }
                }
            }
            rest = finished;
        }
        Ok(None)
    }

    /// Whether the model fails with the fault, with ever more preemptions.
    pub(crate) fn fails(&self, model: &str, fault: &str) -> Result<Option<Caught>> {
        let model = self.find(model)?;
        for search in SEARCHES {
            let run = run(model, Some(fault), search)?;
            if let Verdict::Failed(said) = run.verdict {
                return Ok(Some(Caught { model: model.name.clone(), said, time: run.time }));
            }
        }
        Ok(None)
    }

    /// Prints all models that fail with the fault within one preemption.
    pub(crate) fn survey(&self, fault: &str) -> Result<()> {
        let mut failing = Vec::new();
        for model in &self.models {
            if let Verdict::Failed(_) = run(model, Some(fault), SEARCHES[0])?.verdict {
                failing.push(model.name.as_str());
            }
        }
        println!("{fault}: {} fail: {}", failing.len(), failing.join(" "));
        Ok(())
    }
}

/// Calls `act` on each of the items, on `jobs` threads. The results are in the order of the items.
pub(crate) fn each<I: Sync, R: Send>(
    jobs: usize,
    items: &[I],
    act: impl Fn(&I) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { break };
                    let result = act(item);
                    results.lock().expect("no thread panics here").push((at, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no thread panics here");
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}
