//! Replays what real programs did with their descriptors and compares every answer with the
//! kernel's; and makes sure that the replay can fail: that wrong answers are noticed, and that no
//! text, however malformed, does more than be refused.

#[path = "../../examples/replay/cli.rs"]
mod cli;
#[path = "../../examples/replay/engine.rs"]
mod engine;
#[path = "../../examples/replay/errno.rs"]
mod errno;
#[path = "../../examples/replay/reader.rs"]
mod reader;
#[path = "../../examples/replay/replay.rs"]
mod replay;
#[path = "../../examples/replay/sources.rs"]
mod sources;
#[path = "../../examples/replay/trace.rs"]
mod trace;
#[path = "../../examples/replay/words.rs"]
mod words;

mod any_text;
mod command_line;
mod malformed;
mod recorded;

use std::io::{self, BufRead, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use reader::{Bounds, TraceError};
use replay::Report;

const HEADER: &str = "\
@ fdt 1
@ name written-for-the-test
@ nr_open 1000
@ task 1 10 20
@ fd 1 0 r 0
";
/// The number of the first line after it.
const FIRST: u64 = 6;

fn replay_input(input: impl BufRead) -> Result<Report, TraceError> {
    replay_within(Bounds::default(), input)
}

fn replay_within(bounds: Bounds, input: impl BufRead) -> Result<Report, TraceError> {
    replay::replay(input, bounds, |_, _, _| ())
}

fn with_header(events: &str) -> String {
    format!("{HEADER}{events}")
}

/// The text of a bundled trace.
fn bundled(name: &str) -> String {
    let path = sources::bundled().join(name);
    io::read_to_string(sources::open(&path).unwrap()).unwrap()
}

fn is_event(line: &str) -> bool {
    line.contains(" -> ")
}

fn pack(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}
