//! Replays a trace: each event is carried out and the answer compared with the recorded one.

use std::io::BufRead;
use std::ops::AddAssign;

use crate::engine::Machine;
use crate::reader::{Bounds, Reader, TraceError};
use crate::trace::Answer;

/// How many differences are kept, the first ones; the others are only counted.
const KEPT: usize = 10;

/// How much was replayed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) events: u64,
    pub(crate) tasks: u64,
    pub(crate) differences: u64,
}

/// What came of a trace.
pub(crate) struct Report {
    pub(crate) name: String,
    pub(crate) counts: Counts,
    pub(crate) first_differences: Vec<Difference>,
}

/// An event that was answered otherwise than recorded.
pub(crate) struct Difference {
    pub(crate) line: u64,
    pub(crate) text: String,
    pub(crate) expected: Answer,
    pub(crate) got: Answer,
}

/// Replays the trace that `input` holds; shows `observe` the number and the text of every event, and
/// what it was answered.
pub(crate) fn replay(
    input: impl BufRead,
    bounds: Bounds,
    mut observe: impl FnMut(u64, &str, &Answer),
) -> Result<Report, TraceError> {
    let (header, mut reader) = Reader::new(input, bounds)?;
    let mut machine = Machine::new(&header)
        .map_err(|error| reader.error(format!("the first task's table: {error}")))?;
    let (mut counts, mut first_differences) = (Counts::default(), Vec::new());

    while let Some(event) = reader.next_event()? {
        let got = machine.carry_out(event.task, &event.op);
        if machine.bytes() > bounds.tables {
            return Err(reader.error(format!("expected tables of at most {} bytes", bounds.tables)));
        }
        let (line, text) = (reader.line(), reader.text());
        observe(line, text, &got);
        counts.events += 1;
        if let Some(expected) = event.recorded.filter(|expected| *expected != got) {
            counts.differences += 1;
            if first_differences.len() < KEPT {
                first_differences.push(Difference { line, text: text.to_string(), expected, got });
            }
        }
    }
    counts.tasks = reader.tasks();
    Ok(Report { name: header.name, counts, first_differences })
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.events += other.events;
        self.tasks += other.tasks;
        self.differences += other.differences;
    }
}
