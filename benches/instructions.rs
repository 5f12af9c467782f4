//! Guards the cost of the hot paths, without a clock: the locked read-modify-writes and the instructions
//! that each operation executes, against what `counting/expected.txt` has.
//!
//! `cargo bench --bench instructions` compares and fails if an operation has a read-modify-write more, or
//! over 10 % more instructions. After `-- --write` the file has today's figures.

mod counting;

use std::process::ExitCode;

use counting::{Verdict, cases, expected};

fn main() -> ExitCode {
    counting::run_if_child();
    let counted = match cases::count_all() {
        Ok(counted) => counted,
        Err(reason) => {
            println!("skipped: instructions: {reason}");
            return ExitCode::SUCCESS;
        }
    };
    if std::env::args().any(|argument| argument == "--write") {
        expected::write(&counted);
        return ExitCode::SUCCESS;
    }
    match expected::compare(&counted) {
        Verdict::Kept => ExitCode::SUCCESS,
        Verdict::Worse => ExitCode::FAILURE,
    }
}
