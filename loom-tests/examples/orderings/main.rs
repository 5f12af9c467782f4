//! Do the orderings earn their keep, and can each model fail?
//!
//! `.ci/run orderings`, or `cargo run --package loom-tests --example orderings -- [--jobs N] [--survey] [FILTER…]`.
//!
//! First every Acquire and Release in `src/` is taken away, one at a time, until a model fails: those first that the
//! design page's table names. One that no model misses is an error, unless the table says why.
//! Then the models, each of which must fail at least once: without the orderings for which the table names it, or
//! with the faults of `loom-tests/faults.toml`. Each such claim is tried.
//!
//! The faults are built into copies of the workspace below `target/orderings`, all of a kind into one; the environment
//! says which of them a run has. A filter is a part of an ordering's or a fault's name, as the report writes it.
//! `--survey` shows all models that each makes fail within one preemption.

mod design;
mod faults;
mod run;
mod scratch;
mod sites;
mod suite;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::design::Row;
use crate::faults::Fault;
use crate::scratch::Sources;
use crate::sites::{Mutant, Site};
use crate::suite::{Caught, Suite};

struct Options {
    jobs: usize,
    survey: bool,
    filters: Vec<String>,
}

impl Options {
    fn parse() -> Result<Self> {
        use lexopt::prelude::*;
        let mut options = Options { jobs: 1, survey: false, filters: Vec::new() };
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("jobs") => options.jobs = parser.value()?.parse()?,
                Long("survey") => options.survey = true,
                Value(filter) => options.filters.push(filter.string()?),
                other => bail!(other.unexpected()),
            }
        }
        Ok(options)
    }

    fn selects(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(filter.as_str()))
    }
}

/// That a model fails with one of some faults.
struct Claim<'s> {
    model: String,
    faults: Vec<String>,
    suite: &'s Suite,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse()?;
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a member crate");
    let work = workspace.join("target/orderings");

    let (sites, sources) = switches(workspace)?;
    let mutants: Vec<_> = sites.iter().flat_map(Site::mutants).collect();
    let rows = design::rows(&fs::read_to_string(workspace.join("src/design.md"))?)?;
    let planted = faults::read(&workspace.join("loom-tests/faults.toml"))?;

    let tests = tests(workspace, &planted.left_out)?;

    // Only what is asked for is built.
    let weakened = match mutants.iter().any(|mutant| options.selects(&mutant.to_string())) {
        true => Some(Suite::build(workspace, &work.join("weakened"), &tests, sources)?),
        false => None,
    };
    let faulty = match planted.fault.iter().any(|fault| options.selects(&fault.name)) {
        true => {
            let sources = faults::planted(workspace, &planted.fault)?;
            Some(Suite::build(workspace, &work.join("faulty"), &tests, sources)?)
        }
        false => None,
    };
    if options.survey {
        let names = mutants.iter().map(|mutant| (weakened.as_ref(), mutant.to_string()));
        let names = names.chain(planted.fault.iter().map(|f| (faulty.as_ref(), f.name.clone())));
        let names: Vec<_> = names.filter(|(_, name)| options.selects(name)).collect();
        suite::each(options.jobs, &names, |(suite, name)| suite.expect("built").survey(name))?;
        return Ok(ExitCode::SUCCESS);
    }

    let mut problems = Vec::new();
    let mut claims = Vec::new();
    if let Some(suite) = &weakened {
        problems.extend(weaken(&options, suite, &mutants, &rows)?);
        for row in &rows {
            let covered = mutants.iter().filter(|mutant| row.covers(mutant));
            let faults: Vec<_> = covered.map(Mutant::to_string).collect();
            if faults.is_empty() {
                problems.push(format!("the design page has an ordering too many: {}", row.name()));
            }
            let claim =
                |model: &String| Claim { model: model.clone(), faults: faults.clone(), suite };
            claims.extend(row.models.iter().map(claim));
        }
    }
    if let Some(suite) = &faulty {
        for fault in &planted.fault {
            let faults = vec![fault.name.clone()];
            let claim =
                |model: &String| Claim { model: model.clone(), faults: faults.clone(), suite };
            claims.extend(fault.fails.iter().map(claim));
        }
        problems.extend(survivors(&options, suite, &planted.fault)?);
    }
    let failed = twins(&options, claims, &mut problems)?;
    if options.filters.is_empty()
        && let Some(suite) = &faulty
    {
        complete(suite, &failed, &planted.without_twin, &mut problems);
    }
    for problem in &problems {
        println!("error: {problem}");
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The names of the files with models.
fn tests(workspace: &Path, left_out: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let mut tests = Vec::new();
    for entry in fs::read_dir(workspace.join("loom-tests/tests"))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_file() && !left_out.contains_key(&name) {
            tests.push(name);
        }
    }
    Ok(tests)
}

/// All sites, and the sources in which they can be weakened. The facade is left out: its lock is not modelled,
/// and what it does instead of an operation has the ordering of that.
fn switches(workspace: &Path) -> Result<(Vec<Site>, Sources)> {
    let mut sites = Vec::new();
    let mut sources = Sources::new();
    let mut folders = vec![workspace.join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let below = path.strip_prefix(workspace)?;
            let file = below.strip_prefix("src")?.display().to_string();
            if path.extension().is_none_or(|extension| extension != "rs")
                || file.starts_with("sync/")
            {
                continue;
            }
            let text = fs::read_to_string(&path)?;
            let found = sites::find(&file, &text)?;
            if !found.is_empty() {
                sources.insert(below.to_path_buf(), sites::switched(&text, &found));
                sites.extend(found);
            }
        }
    }
    sites.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    Ok((sites, sources))
}

/// The first part. Returns what is wrong.
fn weaken(
    options: &Options,
    suite: &Suite,
    mutants: &[Mutant<'_>],
    rows: &[Row],
) -> Result<Vec<String>> {
    let selected: Vec<_> =
        mutants.iter().filter(|mutant| options.selects(&mutant.to_string())).collect();
    println!("{} of {} orderings, taken away one at a time", selected.len(), mutants.len());
    let outcomes = suite::each(options.jobs, &selected, |mutant| {
        let rows: Vec<_> = rows.iter().filter(|row| row.covers(mutant)).collect();
        let hints = rows.iter().flat_map(|row| &row.models);
        let caught = suite.search(&mutant.to_string(), hints)?;
        let excuse = rows.iter().find_map(|row| row.excuse.as_deref());
        let name = mutant.to_string();
        let shown = format!(
            "src/{}:{}{}",
            mutant.site.file,
            mutant.site.line,
            &name[4 + mutant.site.file.len()..]
        );
        match (&caught, excuse) {
            (Some(caught), _) => println!("{shown}: caught by {caught}"),
            (None, Some(excuse)) => println!("{shown}: SURVIVES, as expected: {excuse}"),
            (None, None) => println!("{shown}: SURVIVES"),
        }
        let problem = match (&caught, excuse) {
            _ if rows.is_empty() => Some("is not in the design page's table"),
            (Some(_), Some(_)) => Some("is caught, and the design page says that it is not"),
            (None, None) => Some("survives, and the design page does not say why"),
            _ => None,
        };
        Ok((caught.is_some(), problem.map(|problem| format!("{name} {problem}"))))
    })?;
    let caught = outcomes.iter().filter(|(caught, _)| *caught).count();
    println!("{caught} of {} orderings are missed when they are gone", selected.len());
    Ok(outcomes.into_iter().filter_map(|(_, problem)| problem).collect())
}

/// Whether the faults that no model notices, as the list says, are still unnoticed. Returns what is wrong.
fn survivors(options: &Options, suite: &Suite, faults: &[Fault]) -> Result<Vec<String>> {
    let selected = |fault: &&Fault| fault.survives.is_some() && options.selects(&fault.name);
    let selected: Vec<_> = faults.iter().filter(selected).collect();
    let outcomes = suite::each(options.jobs, &selected, |fault| {
        let caught = suite.search(&fault.name, [].into_iter())?;
        match (&caught, &fault.survives) {
            (None, Some(reason)) => println!("{}: SURVIVES, as expected: {reason}", fault.name),
            (Some(caught), _) => println!("{}: caught by {caught}", fault.name),
            (None, None) => {}
        }
        Ok(caught.map(|caught| format!("{} is listed as unnoticed: {}", fault.name, caught.model)))
    })?;
    Ok(outcomes.into_iter().flatten().collect())
}

/// The second part: which models have failed.
fn twins(
    options: &Options,
    claims: Vec<Claim<'_>>,
    problems: &mut Vec<String>,
) -> Result<BTreeSet<String>> {
    let mut selected = Vec::new();
    for mut claim in claims {
        if !claim.faults.iter().any(|fault| options.selects(fault)) {
            continue;
        }
        match claim.suite.find(&claim.model) {
            Ok(model) => {
                claim.model = model.name.clone();
                selected.push(claim);
            }
            Err(error) => problems.push(format!("{}: {error}", claim.faults.join(", "))),
        }
    }
    selected.sort_by(|a, b| a.model.cmp(&b.model));
    println!("\n{} claims that a model fails", selected.len());
    let outcomes = suite::each(options.jobs, &selected, |claim| {
        let Claim { model, faults, suite } = claim;
        for fault in faults {
            if let Some(Caught { said, time, .. }) = suite.fails(model, fault)? {
                println!("{model:<60} {fault}: {said} ({:.1} s)", time.as_secs_f64());
                return Ok(true);
            }
        }
        println!("{model:<60} PASSES with {}", faults.join(", "));
        Ok(false)
    })?;
    let mut failed = BTreeSet::new();
    for (Claim { model, faults, .. }, has_failed) in selected.into_iter().zip(outcomes) {
        if has_failed {
            failed.insert(model);
        } else {
            problems.push(format!("{model} passes with {}", faults.join(", ")));
        }
    }
    Ok(failed)
}

/// Whether every model has failed, but for those that cannot, each with the reason.
fn complete(
    suite: &Suite,
    failed: &BTreeSet<String>,
    without: &BTreeMap<String, String>,
    problems: &mut Vec<String>,
) {
    for model in suite.models() {
        match (failed.contains(&model.name), without.get(&model.name)) {
            (true, None) => {}
            (true, Some(_)) => {
                problems.push(format!("{} has a twin, and is listed without", model.name))
            }
            (false, Some(reason)) => println!("{:<60} has no twin: {reason}", model.name),
            (false, None) => {
                problems.push(format!("{} has no twin: nothing makes it fail", model.name))
            }
        }
    }
    for listed in without.keys().filter(|name| suite.find(name).is_err()) {
        problems.push(format!("{listed} is listed without a twin, and is no model"));
    }
    println!("{} of {} models have failed", failed.len(), suite.models().count());
}
