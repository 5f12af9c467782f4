//! Replays recorded traces of real programs against the table, and compares every answer with the
//! one that Linux gave. `cargo run --release --example replay -- --help` says how.

mod cli;
mod engine;
mod errno;
mod reader;
mod replay;
mod sources;
mod trace;
mod words;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut status = cli::run(std::env::args_os().skip(1), &mut out, &mut io::stderr());
    if out.flush().is_err() {
        status = cli::Status::Unusable;
    }
    ExitCode::from(status as u8)
}
