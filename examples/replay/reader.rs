//! Reads a `.fdt` trace event by event, and checks what a line alone does not show: the header, and
//! that a task acts only while it lives. A trace that has passed is consistent; whether its results
//! are right is for the replay to say.
//!
//! Nothing is kept of an event but which tasks there are.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::io::{BufRead, Read};
use std::ops::RangeInclusive;

use fdtable::FdFlags;

use crate::trace::*;
use crate::words::*;

/// The most descriptors that the first task has at the start: what a process may have by default.
const MAX_START: usize = 1024;
/// What Linux accepts as `nr_open`.
const NR_OPEN: RangeInclusive<u64> = 64..=2_147_483_584;

/// What is too large, in bytes. Nobody means to record that: such a file is damaged, or out for memory.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) line: u64,
    /// Unpacked.
    pub(crate) text: u64,
    /// What the tables have allocated, all together.
    pub(crate) tables: usize,
}

impl Default for Bounds {
    /// A line that names a million descriptors does not fit, nor do some ten million events. The
    /// tables of real programs take less than a thousandth of this.
    fn default() -> Self {
        Bounds { line: 1 << 20, text: 256 << 20, tables: 128 << 20 }
    }
}

/// What a trace says before its first event.
pub(crate) struct Header {
    pub(crate) name: String,
    /// No number reaches it, no limit exceeds it.
    pub(crate) nr_open: u64,
    /// Those of task 1.
    pub(crate) limits: Limits,
    /// What task 1 has open.
    pub(crate) fds: BTreeMap<u32, (Mode, FdFlags)>,
}

/// Why a trace could not be read, and where.
#[derive(Debug)]
pub(crate) struct TraceError {
    pub(crate) line: u64,
    pub(crate) problem: Problem,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.problem)
    }
}

/// How far a task has got, by what is recorded.
#[derive(Clone, Copy)]
enum Life {
    Running,
    /// Between the two steps of a creation.
    Reserving,
    Exited,
}

/// A trace whose header has been read.
pub(crate) struct Reader<R> {
    lines: Lines<R>,
    tasks: HashMap<TaskId, Life>,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header.
    pub(crate) fn new(input: R, bounds: Bounds) -> Result<(Header, Self), TraceError> {
        let mut lines = Lines::new(input, bounds);
        let header = read_header(&mut lines).map_err(|problem| lines.error(problem))?;
        Ok((header, Reader { lines, tasks: HashMap::from([(1, Life::Running)]) }))
    }

    /// The next event; `None` at the end.
    pub(crate) fn next_event(&mut self) -> Result<Option<Event>, TraceError> {
        let event = self.read_event();
        event.map_err(|problem| self.lines.error(problem))
    }

    fn read_event(&mut self) -> Result<Option<Event>, Problem> {
        let Some(line) = self.lines.current()? else { return Ok(None) };
        if line.starts_with('@') {
            return Err(unexpected("an event: the header has ended", line));
        }
        let event = line.parse()?;
        self.follow(&event)?;
        self.lines.consume();
        Ok(Some(event))
    }

    /// An error at the event that was read last.
    pub(crate) fn error(&self, problem: Problem) -> TraceError {
        self.lines.error(problem)
    }

    /// The number of the line that was read last.
    pub(crate) fn line(&self) -> u64 {
        self.lines.number
    }

    /// That line.
    pub(crate) fn text(&self) -> &str {
        &self.lines.text
    }

    /// How many tasks there have been.
    pub(crate) fn tasks(&self) -> u64 {
        self.tasks.len() as u64
    }

    /// Keeps account of which tasks there are and which of them have a reservation, going by what is
    /// recorded.
    fn follow(&mut self, event: &Event) -> Result<(), Problem> {
        let life = self.life_of(event.task)?;
        let next = match &event.op {
            Op::Call(Call::Reserve { .. }) => match (life, &event.recorded) {
                (Life::Reserving, _) => {
                    return Err("expected install or cancel before another reserve".into());
                }
                (_, Some(Answer::Error(_))) => Life::Running,
                _ => Life::Reserving,
            },
            Op::Call(Call::Install { .. } | Call::Cancel) => match life {
                Life::Reserving => Life::Running,
                _ => return Err(format!("expected a reserve of task {} before", event.task)),
            },
            Op::Exit => Life::Exited,
            Op::SetLimits { target, .. } | Op::GetLimits { target } => {
                self.life_of(*target)?;
                life
            }
            Op::Start(Start { child: Some(child), .. }) => {
                if self.tasks.insert(*child, Life::Running).is_some() {
                    return Err(format!("expected a new task, found task {child} again"));
                }
                life
            }
            Op::Start(_) | Op::Call(_) => life,
        };
        self.tasks.insert(event.task, next);
        Ok(())
    }

    fn life_of(&self, task: TaskId) -> Result<Life, Problem> {
        match self.tasks.get(&task) {
            None => Err(format!("expected a task that has been started, found task {task}")),
            Some(Life::Exited) => Err(format!("expected a task that runs, task {task} has exited")),
            Some(life) => Ok(*life),
        }
    }
}

fn read_header<R: BufRead>(lines: &mut Lines<R>) -> Result<Header, Problem> {
    const FIRST: &str = "`@ fdt 1`";
    match lines.current()? {
        Some("@ fdt 1") => lines.consume(),
        Some(line) => return Err(unexpected(FIRST, line)),
        None => return Err(format!("expected {FIRST}, found the end of the file")),
    }
    let (mut name, mut nr_open, mut limits, mut fds) = (None, None, None, BTreeMap::new());
    let mut keys = HashSet::new();

    while let Some(line) = lines.current()?
        && line.starts_with('@')
    {
        let mut words = Words::new(line);
        words.read("`@`", |word| (word == "@").then_some(()))?;
        let key = words.next("the key of a header line")?;
        match key {
            "name" => name = Some(words.read("N, a name", name_of)?),
            "nr_open" => nr_open = Some(words.read("N, 64 to 2147483584", nr_open_of)?),
            "task" => {
                words.read("task 1", |word| (word == "1").then_some(()))?;
                let (start, nr_open) = (words.limits()?, nr_open.ok_or(NR_OPEN_FIRST)?);
                if start.soft > start.hard || start.hard > nr_open {
                    return Err(format!("expected SOFT <= HARD <= nr_open, {nr_open}"));
                }
                limits = Some(start);
            }
            "fd" => {
                words.read("task 1", |word| (word == "1").then_some(()))?;
                let nr_open = nr_open.ok_or(NR_OPEN_FIRST)?;
                let fd = words.read("FD, below nr_open", |word| {
                    integer(word).filter(|&fd| u64::from(fd) < nr_open)
                })?;
                if fds.insert(fd, (words.mode()?, words.flags()?)).is_some() {
                    return Err(format!("expected each descriptor once, found {fd} again"));
                }
                if fds.len() > MAX_START {
                    return Err(format!("expected at most {MAX_START} descriptors at the start"));
                }
            }
            // How the trace came about: for people, in any words.
            "kernel" | "use" | "order" => words.rest("a word")?,
            _ => return Err(unexpected("name, kernel, nr_open, task, fd, use or order", key)),
        }
        words.end()?;
        if key != "fd" && !keys.insert(key.to_string()) {
            return Err(format!("expected `@ {key}` once, found it again"));
        }
        lines.consume();
    }
    Ok(Header {
        name: name.ok_or("expected `@ name N` in the header")?,
        nr_open: nr_open.ok_or("expected `@ nr_open N` in the header")?,
        limits: limits.ok_or("expected `@ task 1 SOFT HARD` in the header")?,
        fds,
    })
}

const NR_OPEN_FIRST: &str = "expected `@ nr_open N` before this line";

fn name_of(word: &str) -> Option<String> {
    (!word.is_empty() && word.bytes().all(is_name)).then(|| word.to_string())
}

fn nr_open_of(word: &str) -> Option<u64> {
    integer(word).filter(|nr_open| NR_OPEN.contains(nr_open))
}

/// The lines that mean something, numbered.
struct Lines<R> {
    input: R,
    bounds: Bounds,
    bytes_read: u64,
    /// Of the current line.
    number: u64,
    text: String,
    /// Whether it has been dealt with.
    is_consumed: bool,
}

impl<R: BufRead> Lines<R> {
    fn new(input: R, bounds: Bounds) -> Self {
        let (number, text, is_consumed) = (0, String::new(), true);
        Lines { input, bounds, bytes_read: 0, number, text, is_consumed }
    }

    /// The line after those that were consumed; `None` at the end of the file.
    fn current(&mut self) -> Result<Option<&str>, Problem> {
        while self.is_consumed {
            if self.read_line()? == 0 {
                return Ok(None);
            }
            self.is_consumed = self.text.is_empty() || self.text.starts_with('#');
        }
        Ok(Some(&self.text))
    }

    fn consume(&mut self) {
        self.is_consumed = true;
    }

    /// Returns its length; 0 at the end of the file.
    fn read_line(&mut self) -> Result<u64, Problem> {
        let mut line = std::mem::take(&mut self.text).into_bytes();
        line.clear();
        self.number += 1;
        // Never more than one byte too many.
        let length = (&mut self.input)
            .take(self.bounds.line + 1)
            .read_until(b'\n', &mut line)
            .map_err(|error| format!("expected text, or gzip of it: {error}"))?
            as u64;
        self.bytes_read += length;
        if length > self.bounds.line {
            return Err(format!("expected a line of at most {} bytes", self.bounds.line));
        }
        if self.bytes_read > self.bounds.text {
            return Err(format!("expected a text of at most {} bytes", self.bounds.text));
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        self.text = String::from_utf8(line).map_err(|error| format!("expected UTF-8: {error}"))?;
        Ok(length)
    }

    fn error(&self, problem: Problem) -> TraceError {
        TraceError { line: self.number, problem }
    }
}
