//! The command line: which traces to replay, and what to say about them.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lexopt::prelude::*;

use crate::reader::Bounds;
use crate::replay::{Counts, Difference, replay};
use crate::sources;

const HELP: &str = "\
Replays recorded traces of descriptor tables, and compares every answer with
that of the Linux kernel.

usage: replay [--verbose] [FILE | FOLDER]...

Takes .fdt files, .fdt.gz files, and folders of them. Without any, replays the
traces that are bundled with it.

  -v, --verbose  show every event
  -h, --help     show this text

exit status: 0 all answers are the same, 1 some are not, 2 a trace could not
be read or is malformed, or the command line is wrong";

/// How it went. Of several the worst counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Status {
    /// Every answer was the recorded one.
    Exact = 0,
    Different = 1,
    /// Something could not be read, or not be understood.
    Unusable = 2,
}

enum Command {
    Help,
    Replay { paths: Vec<PathBuf>, verbosity: Verbosity },
}

#[derive(Clone, Copy)]
enum Verbosity {
    Summary,
    Events,
}

/// Does what the arguments say, without the program's name. Reports to `out`, errors to `err`.
pub(crate) fn run(
    arguments: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Status {
    let done = match Command::parse(arguments) {
        Err(error) => {
            writeln!(err, "replay: {error}; --help shows the usage").map(|()| Status::Unusable)
        }
        Ok(Command::Help) => writeln!(out, "{HELP}").map(|()| Status::Exact),
        Ok(Command::Replay { paths, verbosity }) => {
            Output { out, err, verbosity }.replay_all(&paths)
        }
    };
    // Nobody is listening any more.
    done.unwrap_or(Status::Unusable)
}

impl Command {
    fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, lexopt::Error> {
        let (mut paths, mut verbosity) = (Vec::new(), Verbosity::Summary);
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Short('h') | Long("help") => return Ok(Command::Help),
                Short('v') | Long("verbose") => verbosity = Verbosity::Events,
                Value(path) => paths.push(path.into()),
                _ => return Err(argument.unexpected()),
            }
        }
        if paths.is_empty() {
            paths.push(sources::bundled());
        }
        Ok(Command::Replay { paths, verbosity })
    }
}

/// The sum over all traces.
#[derive(Default)]
struct Total {
    traces: u64,
    counts: Counts,
    time: Duration,
}

struct Output<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    verbosity: Verbosity,
}

impl Output<'_> {
    fn replay_all(&mut self, paths: &[PathBuf]) -> io::Result<Status> {
        let (mut total, mut status) = (Total::default(), Status::Exact);
        for path in paths {
            match sources::find(path) {
                Ok(traces) => {
                    for trace in traces {
                        status = status.max(self.replay_one(&trace, &mut total)?);
                    }
                }
                Err(error) => {
                    writeln!(self.err, "replay: {}: {error}", path.display())?;
                    status = Status::Unusable;
                }
            }
        }
        let Total { traces, counts, time } = total;
        self.line(&format!("total of {traces} traces"), counts, time)?;
        Ok(status)
    }

    fn replay_one(&mut self, path: &Path, total: &mut Total) -> io::Result<Status> {
        let input = match sources::open(path) {
            Ok(input) => input,
            Err(error) => {
                writeln!(self.err, "replay: {}: {error}", path.display())?;
                return Ok(Status::Unusable);
            }
        };
        let (begin, mut shown) = (Instant::now(), Ok(()));
        let report = replay(input, Bounds::default(), |line, text, got| {
            if let (Verbosity::Events, Ok(())) = (self.verbosity, &shown) {
                shown = writeln!(self.out, "{}:{line}: {text}, got {got}", path.display());
            }
        });
        let time = begin.elapsed();
        shown?;
        let report = match report {
            Ok(report) => report,
            Err(error) => {
                writeln!(self.err, "replay: {}:{error}", path.display())?;
                return Ok(Status::Unusable);
            }
        };
        self.line(&report.name, report.counts, time)?;
        for Difference { line, text, expected, got } in &report.first_differences {
            let path = path.display();
            writeln!(self.out, "  {path}:{line}: expected {expected}, got {got}: {text}")?;
        }
        total.traces += 1;
        total.counts += report.counts;
        total.time += time;
        Ok(if report.counts.differences == 0 { Status::Exact } else { Status::Different })
    }

    fn line(&mut self, name: &str, counts: Counts, time: Duration) -> io::Result<()> {
        let Counts { events, tasks, differences } = counts;
        let rate = events as f64 / time.as_secs_f64().max(1e-9);
        writeln!(
            self.out,
            "{name:<22} {events:>7} events {tasks:>5} tasks {differences:>5} differences \
             {rate:>9.0} events/s"
        )
    }
}
