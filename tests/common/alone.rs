//! A test in a process of its own: where its thread is the only one that acts, or where it may abort.

use std::env;
use std::process::{Command, Stdio};

/// Set in the process that a test runs itself in.
const ALONE: &str = "FDTABLE_TEST_ALONE";

/// Runs the test of this name once more, by itself; there, `body`.
pub(crate) fn alone(test: &str, body: impl FnOnce()) {
    if env::var_os(ALONE).is_some() {
        return body();
    }
    let output = Command::new(env::current_exe().expect("the test has a path"))
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ALONE, "1")
        .stderr(Stdio::inherit())
        .output()
        .expect("the test can be run");
    assert!(output.status.success(), "{test} failed, see above");
    // Or one that is renamed would pass unseen.
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 passed"), "{test} is not the name of this test");
}
