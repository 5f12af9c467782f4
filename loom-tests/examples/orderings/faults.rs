//! Faults that are not orderings: `loom-tests/faults.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::scratch::Sources;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Faults {
    pub(crate) fault: Vec<Fault>,
    /// Files in `loom-tests/tests` that are no part of this, each with the reason.
    pub(crate) left_out: BTreeMap<String, String>,
    /// Models that nothing makes fail, each with the reason.
    #[serde(default)]
    pub(crate) without_twin: BTreeMap<String, String>,
}

/// An ingredient of the table that is left out, or done wrongly.
#[derive(Deserialize)]
pub(crate) struct Fault {
    pub(crate) name: String,
    #[serde(flatten)]
    edit: Edit,
    /// Further places where the same fault is made.
    #[serde(default)]
    also: Vec<Edit>,
    /// The models that must notice.
    #[serde(default)]
    pub(crate) fails: Vec<String>,
    /// Why no model does.
    pub(crate) survives: Option<String>,
}

/// A piece of a file below `src/`, and what stands there instead. In it FAULT is whether the fault is
/// planted: all of them are built into one program.
#[derive(Deserialize)]
struct Edit {
    file: String,
    /// A text that comes before, if what is to be found comes more than once.
    #[serde(default)]
    after: String,
    find: String,
    replace: String,
}

pub(crate) fn read(path: &Path) -> Result<Faults> {
    let text = fs::read_to_string(path)?;
    let faults: Faults = toml::from_str(&text).with_context(|| path.display().to_string())?;
    for fault in &faults.fault {
        let Fault { name, fails, survives, .. } = fault;
        let is_planted = fault.edits().any(|edit| edit.replace.contains("FAULT"));
        ensure!(is_planted, "{name}: nothing asks for FAULT");
        ensure!(fails.is_empty() == survives.is_some(), "{name}: which models fail, or why none?");
    }
    Ok(faults)
}

/// The sources with all faults in them.
pub(crate) fn planted(workspace: &Path, faults: &[Fault]) -> Result<Sources> {
    let mut sources = Sources::new();
    let mut stale = Vec::new();
    for fault in faults {
        for edit in fault.edits() {
            let path = PathBuf::from("src").join(&edit.file);
            let text = match sources.remove(&path) {
                Some(text) => text,
                None => fs::read_to_string(workspace.join(&path))?,
            };
            match edit.apply(&text, &fault.name) {
                Ok(text) => sources.insert(path, text),
                Err(error) => {
                    stale.push(format!("{}: {error}", fault.name));
                    sources.insert(path, text)
                }
            };
        }
    }
    ensure!(stale.is_empty(), "faults that cannot be planted:\n{}", stale.join("\n"));
    Ok(sources)
}

impl Fault {
    fn edits(&self) -> impl Iterator<Item = &Edit> {
        [&self.edit].into_iter().chain(&self.also)
    }
}

impl Edit {
    fn apply(&self, text: &str, name: &str) -> Result<String> {
        let Edit { file, after, find, .. } = self;
        let start =
            text.find(after.as_str()).with_context(|| format!("{file} has no {after:?}"))?;
        let at =
            text[start..].find(find).with_context(|| format!("{file} has no {find:?}"))? + start;
        ensure!(
            !after.is_empty() || text.matches(find.as_str()).count() == 1,
            "{file} has {find:?} more than once: say what comes before"
        );
        let replace = self.replace.replace("FAULT", &format!("crate::planted::is({name:?})"));
        Ok(format!("{}{replace}{}", &text[..at], &text[at + find.len()..]))
    }
}
