//! The table in PAIRS.md against the models: no pair is missing, no name is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const PAIRS: &str = include_str!("../PAIRS.md");

/// The files that have a test of this name.
fn models() -> BTreeMap<String, Vec<String>> {
    let mut models = BTreeMap::<_, Vec<_>>::new();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for entry in fs::read_dir(tests).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue; // Not models.
        }
        let file = path.file_stem().unwrap().to_str().unwrap().to_string();
        let text = fs::read_to_string(&path).unwrap();
        for test in text.split("#[test]").skip(1) {
            let name = test.split("fn ").nth(1).unwrap().split('(').next().unwrap();
            models.entry(name.to_string()).or_default().push(file.clone());
        }
    }
    models
}

/// The three columns of each row.
fn rows() -> impl Iterator<Item = [&'static str; 3]> {
    let rows = PAIRS.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| {
        let columns: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        columns.try_into().expect("three columns")
    })
}

/// What stands between backticks.
fn names(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_model_named_exists() {
    let models = models();
    for [one, other, text] in rows() {
        if text.starts_with("none: ") {
            continue;
        }
        assert!(names(text).next().is_some(), "{one}, {other}: no model and no reason");
        for name in names(text) {
            let (file, test) = name.split_once("::").map_or((None, name), |(f, t)| (Some(f), t));
            let files = models.get(test).unwrap_or_else(|| panic!("no model {name}"));
            match file {
                Some(file) => assert!(files.iter().any(|f| f == file), "no model {name}"),
                None => assert_eq!(files.len(), 1, "{name} is in {files:?}"),
            }
        }
    }
}

#[test]
fn no_pair_is_missing_or_given_twice() {
    let mut pairs = BTreeSet::new();
    let mut operations = BTreeSet::new();
    for [one, others, _] in rows() {
        for other in others.split(", ") {
            assert!(pairs.insert([one.min(other), one.max(other)]), "{one}, {other}: twice");
            operations.extend([one, other]);
        }
    }
    for one in &operations {
        for other in operations.iter().filter(|other| *other >= one) {
            assert!(pairs.contains(&[*one, *other]), "{one}, {other}: missing");
        }
    }
    assert_eq!(operations.len(), 17);
}
