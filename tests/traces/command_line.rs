//! What is replayed, what is said about it, and the exit status.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::{self, Status};
use crate::{HEADER, pack, sources, with_header};

/// An empty folder for the traces of one test.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("traces").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The status, and what was written to standard output and standard error.
fn run<A: AsRef<Path>>(arguments: &[A]) -> (Status, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = arguments.iter().map(|argument| argument.as_ref().into());
    let status = cli::run(arguments, &mut out, &mut err);
    (status, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

#[test]
fn without_arguments_the_bundled_traces_are_replayed() {
    let (status, out, err) = run::<&str>(&[]);
    assert_eq!((status, &err[..]), (Status::Exact, ""));
    assert_eq!(out.lines().count(), sources::find(&sources::bundled()).unwrap().len() + 1);
    assert!(out.lines().last().unwrap().starts_with("total of 17 traces       17494 events"));
}

#[test]
fn files_and_folders_are_replayed_in_order() {
    let folder = scratch("in-order");
    fs::create_dir(folder.join("b")).unwrap();
    let named = |name: &str| with_header("1 exit -> 0\n").replace("written-for-the-test", name);
    fs::write(folder.join("c.fdt"), named("third")).unwrap();
    fs::write(folder.join("b/x.fdt.gz"), pack(&named("second"))).unwrap();
    fs::write(folder.join("a.fdt"), named("first")).unwrap();
    fs::write(folder.join("README"), "not a trace").unwrap();
    fs::write(folder.join("not.gz"), "nor this").unwrap();

    let (status, out, err) = run(&[folder.clone(), folder.join("a.fdt")]);
    assert_eq!((status, &err[..]), (Status::Exact, ""));
    let names: Vec<&str> = out.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(names, ["first", "second", "third", "first", "total"]);
}

#[test]
fn a_difference_is_status_1_and_shown() {
    let trace = scratch("difference").join("x.fdt");
    fs::write(&trace, with_header("1 dup 0 -> 1\n1 dup 0 -> 3\n")).unwrap();
    let (status, out, err) = run(&[&trace]);
    assert_eq!((status, &err[..]), (Status::Different, ""));
    let shown = format!("  {}:7: expected 3, got 2: 1 dup 0 -> 3\n", trace.display());
    assert!(out.contains(&shown), "{out}");
    assert!(!out.contains("1 dup 0 -> 1"), "{out}");

    let (status, out, _) = run(&[Path::new("--verbose"), &trace]);
    assert_eq!(status, Status::Different);
    assert!(out.contains(&format!("{}:6: 1 dup 0 -> 1, got 1\n", trace.display())), "{out}");
}

#[test]
fn what_can_not_be_used_is_status_2_and_the_rest_is_replayed() {
    let folder = scratch("unusable");
    let good = folder.join("good.fdt");
    fs::write(&good, with_header("1 dup 0 -> 7\n")).unwrap();
    fs::create_dir(folder.join("empty")).unwrap();
    let packed = pack(HEADER);
    for (name, content, problem) in [
        ("malformed.fdt", with_header("1 exit").as_bytes(), ":6: expected TASK OP"),
        ("empty.fdt", b"", ":1: expected `@ fdt 1`"),
        ("empty.fdt.gz", b"", ":1: expected "),
        ("garbage.fdt.gz", b"not gzip at all", ":1: expected text, or gzip of it"),
        ("short.fdt.gz", &packed[..packed.len() - 9], "expected text, or gzip of it"),
        ("long.fdt.gz", &[&packed[..], b"more"].concat(), "expected text, or gzip of it"),
    ] {
        let path = folder.join(name);
        fs::write(&path, content).unwrap();
        let (status, out, err) = run(&[&path, &good]);
        assert_eq!(status, Status::Unusable, "{name}");
        assert!(err.starts_with(&format!("replay: {}", path.display())), "{err}");
        assert!(err.contains(problem), "{err}");
        assert!(out.contains("expected 7, got 1"), "{out}");
    }
    for path in [folder.join("missing.fdt"), folder.join("empty")] {
        let (status, out, err) = run(&[&path, &good]);
        assert_eq!(status, Status::Unusable);
        assert!(err.starts_with(&format!("replay: {}: ", path.display())), "{err}");
        assert!(out.contains("expected 7, got 1"), "{out}");
    }
}

#[test]
fn the_usage_is_explained() {
    let (status, out, err) = run(&["--help"]);
    assert_eq!((status, &err[..]), (Status::Exact, ""));
    assert!(out.contains("usage: replay"));

    let (status, out, err) = run(&["--frobnicate"]);
    assert_eq!((status, &out[..]), (Status::Unusable, ""));
    assert!(err.contains("--frobnicate") && err.contains("--help"), "{err}");
    assert_eq!(run(&["--verbose=9"]).0, Status::Unusable);
}
