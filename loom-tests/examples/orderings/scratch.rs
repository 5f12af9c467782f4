//! A copy of the workspace with other sources, and the models that are built from it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

/// File by file below the workspace: what stands there instead.
pub(crate) type Sources = BTreeMap<PathBuf, String>;

/// One test of the loom suite.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Model {
    /// `transfer::transfer_or_close`: the file below `tests/`, and the function.
    pub(crate) name: String,
    pub(crate) executable: PathBuf,
}

impl Model {
    pub(crate) fn function(&self) -> &str {
        self.name.split_once("::").map_or(self.name.as_str(), |(_, function)| function)
    }
}

/// What the changed sources ask: which fault is planted in this run?
const PLANTED: &str = r#"
mod planted {
    use core::sync::atomic::Ordering;

    pub(crate) fn is(name: &str) -> bool {
        static FAULT: std::sync::OnceLock<Option<std::string::String>> = std::sync::OnceLock::new();
        FAULT.get_or_init(|| std::env::var("FDTABLE_FAULT").ok()).as_deref() == Some(name)
    }

    pub(crate) fn weaken(name: &str, strong: Ordering, weak: Ordering) -> Ordering {
        if is(name) { weak } else { strong }
    }
}
"#;

/// Copies the workspace to `scratch`, with `changed` in the place of what is there, and builds the models in
/// the files `tests`.
pub(crate) fn build(
    workspace: &Path,
    scratch: &Path,
    tests: &[String],
    mut changed: Sources,
) -> Result<Vec<Model>> {
    let root = Path::new("src/lib.rs");
    let text = match changed.remove(root) {
        Some(text) => text,
        None => fs::read_to_string(workspace.join(root))?,
    };
    changed.insert(root.to_path_buf(), text + PLANTED);
    // A part of the documentation, and the list that is being worked on: no reason to build again.
    changed.insert("src/design.md".into(), String::new());
    mirror(workspace, scratch, Path::new(""), &changed)?;
    let cargo = Command::new("cargo")
        .args(["loom", "--no-run", "--message-format=json-render-diagnostics"])
        .args(tests.iter().flat_map(|test| ["--test", test]))
        .current_dir(scratch)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("CARGO_BUILD_RUSTFLAGS")
        .stderr(Stdio::piped())
        .output()?;
    if !cargo.status.success() {
        bail!("{}", String::from_utf8_lossy(&cargo.stderr));
    }
    let mut models = Vec::new();
    for line in String::from_utf8(cargo.stdout)?.lines() {
        let message: serde_json::Value = serde_json::from_str(line)?;
        let Some(executable) = message["executable"].as_str() else { continue };
        let executable = scratch.join(executable);
        let list = Command::new(&executable).arg("--list").output()?;
        let target = message["target"]["name"].as_str().context("a target has a name")?;
        for line in String::from_utf8(list.stdout)?.lines() {
            if let Some(function) = line.strip_suffix(": test") {
                let name = format!("{target}::{function}");
                models.push(Model { name, executable: executable.clone() });
            }
        }
    }
    ensure!(!models.is_empty(), "the loom suite has no models");
    models.sort();
    Ok(models)
}

/// Makes `scratch` what `workspace` is. Writes only what differs, so that cargo builds only that again.
fn mirror(workspace: &Path, scratch: &Path, below: &Path, changed: &Sources) -> Result<()> {
    // Cargo finds its configuration above, and would put both together.
    let is_copied =
        |name: &OsStr| !["target", ".git", ".cargo"].iter().any(|skipped| name == *skipped);
    fs::create_dir_all(scratch.join(below))?;
    let mut present = BTreeSet::new();
    for entry in fs::read_dir(workspace.join(below))? {
        let entry = entry?;
        if !is_copied(&entry.file_name()) {
            continue;
        }
        present.insert(entry.file_name());
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            mirror(workspace, scratch, &path, changed)?;
            continue;
        }
        let wanted = match changed.get(&path) {
            Some(text) => text.clone().into_bytes(),
            None => fs::read(entry.path())?,
        };
        let copy = scratch.join(&path);
        if fs::read(&copy).ok().as_ref() != Some(&wanted) {
            fs::write(copy, wanted)?;
        }
    }
    for entry in fs::read_dir(scratch.join(below))? {
        let entry = entry?;
        if is_copied(&entry.file_name()) && !present.contains(&entry.file_name()) {
            let gone = entry.path();
            if gone.is_dir() { fs::remove_dir_all(gone)? } else { fs::remove_file(gone)? }
        }
    }
    Ok(())
}
