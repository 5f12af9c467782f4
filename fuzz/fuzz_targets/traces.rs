//! Arbitrary bytes as a trace, plain or packed: whatever they are, the replay refuses them or replays
//! them, and names a line that is there.
//!
//! `cargo +nightly fuzz run traces`
#![no_main]

#[path = "../../examples/replay/engine.rs"]
mod engine;
#[path = "../../examples/replay/errno.rs"]
mod errno;
#[path = "../../examples/replay/reader.rs"]
mod reader;
#[path = "../../examples/replay/replay.rs"]
mod replay;
#[path = "../../examples/replay/trace.rs"]
mod trace;
#[path = "../../examples/replay/words.rs"]
mod words;

use std::io::{BufRead, BufReader, Read};

use flate2::Compression;
use flate2::bufread::{GzEncoder, MultiGzDecoder};
use libfuzzer_sys::fuzz_target;

use reader::{Bounds, TraceError};

/// So that the header need not be found again and again.
const HEADER: &[u8] = b"@ fdt 1\n@ name fuzz\n@ nr_open 8192\n@ task 1 100 4096\n@ fd 1 0 rw 0\n";
/// Small: it is the parser that is looked at, not the memory.
const BOUNDS: Bounds = Bounds { line: 1 << 12, text: 1 << 18, tables: 16 << 20 };

/// What came of it: the counts, or the error's line and text.
fn outcome(input: impl BufRead) -> Result<(u64, u64, u64), (u64, String)> {
    let mut events = 0;
    let report = replay::replay(input, BOUNDS, |_, text, answer| {
        events += 1;
        // What is shown of an answer can be read again.
        let shown = format!("1 exit -> {answer}").parse::<trace::Event>();
        let read = shown.unwrap_or_else(|problem| panic!("{text}: {problem}")).recorded;
        assert!(read.as_ref() == Some(answer), "{text}: {answer}");
    });
    report
        .map(|report| {
            assert_eq!(report.counts.events, events);
            let differences = report.first_differences.iter();
            assert!(differences.clone().all(|it| it.expected != it.got && !it.text.is_empty()));
            assert!(differences.is_sorted_by_key(|it| it.line));
            assert!(!report.name.is_empty());
            (events, report.counts.tasks, report.counts.differences)
        })
        .map_err(|error: TraceError| (error.line, error.to_string()))
}

fn check_plain(text: &[u8]) {
    let plain = outcome(text);
    if let Err((line, problem)) = &plain {
        let lines = text.split(|&byte| byte == b'\n').count() as u64;
        assert!((1..=lines + 1).contains(line), "{problem}");
        assert!(problem.contains("expected ") || problem.contains("first task"), "{problem}");
    }
    let mut packed = Vec::new();
    GzEncoder::new(text, Compression::fast()).read_to_end(&mut packed).expect("memory");
    assert_eq!(outcome(BufReader::new(MultiGzDecoder::new(&packed[..]))), plain);
}

fuzz_target!(|bytes: &[u8]| {
    // The first byte says how the others are meant.
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 3 {
        0 => check_plain(bytes),
        1 => check_plain(&[HEADER, bytes].concat()),
        _ => _ = outcome(BufReader::new(MultiGzDecoder::new(bytes))),
    }
});
