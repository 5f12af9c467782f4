//! Keeps threads busy with everything that a table can do, for as long as is asked for, and counts: at
//! the end nothing may be lost. `cargo run --release --example soak -- --help` says how.

mod worker;

use std::ffi::OsString;
use std::fs;
use std::panic::{self, AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use fdtable::{FdFlags, Files};
use lexopt::prelude::*;

use worker::{DROPPED, Deliberate, Done, FLUSHED, File, MADE, NEAR, Scene, Worker, fd};

const HELP: &str = "\
Keeps threads busy with a table of file descriptors: churn, forks, growth,
limits, drops that panic, handles that are held for long. Says each second how
it goes, and at the end whether anything was lost.

usage: soak [--minutes N] [--threads N]

  -m, --minutes N  how long, 1 if not given; may be a fraction
  -t, --threads N  how many, 4 if not given
  -h, --help       show this text

exit status: 0 all is accounted for, 1 files or descriptors were lost, a thread
has failed, or memory has grown, 2 the command line is wrong";

/// So much more resident memory at the end than after a tenth of the time is a leak. The large table
/// that comes and goes takes about half of it.
const GROWTH: u64 = 32 << 20;

struct Arguments {
    time: Duration,
    threads: usize,
}

impl Arguments {
    /// `None`: help is asked for.
    fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<Self>, lexopt::Error> {
        let (mut minutes, mut threads) = (1.0, 4);
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Short('h') | Long("help") => return Ok(None),
                Short('m') | Long("minutes") => minutes = parser.value()?.parse()?,
                Short('t') | Long("threads") => threads = parser.value()?.parse()?,
                _ => return Err(argument.unexpected()),
            }
        }
        let time = Duration::try_from_secs_f64(minutes * 60.0).map_err(|e| e.to_string())?;
        if threads == 0 {
            return Err("at least one thread is needed".into());
        }
        Ok(Some(Arguments { time, threads }))
    }
}

/// Resident memory in bytes; 0 where that can't be found out.
fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0) * 4096
}

/// Drops a table; its files may panic.
fn end(files: Files<File>) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(files)))
        && !panic.is::<Deliberate>()
    {
        resume_unwind(panic);
    }
}

/// Until the time is over or a thread has failed: says how it goes, and gives them a new table each
/// second. Returns the resident memory after a tenth of the time.
fn watch(scene: &Scene, time: Duration, has_failed: impl Fn() -> bool) -> u64 {
    let (start, mut before, mut warm) = (Instant::now(), 0, None);
    while start.elapsed() < time && !has_failed() {
        thread::sleep(Duration::from_secs(1).min(time - start.elapsed().min(time)));
        let (passed, memory) = (start.elapsed(), resident());
        let Done { operations, taken, panics, .. } = *scene.done.lock().expect("no panic");
        let live = MADE.load(Relaxed) - DROPPED.load(Relaxed).min(MADE.load(Relaxed));
        println!(
            "{:>5} s {:>8.2} Mop/s {live:>7} files {:>10} fds closed {panics:>8} panics {:>5} MiB",
            passed.as_secs(),
            (operations - before) as f64 / 1e6,
            FLUSHED.load(Relaxed) + taken,
            memory >> 20,
        );
        before = operations;
        if passed * 10 >= time {
            warm.get_or_insert(memory);
        }
        // The last one is for the end to look at, well used.
        if start.elapsed() < time {
            end(scene.renew());
        }
    }
    warm.unwrap_or(0)
}

/// All is quiet. Whether everything is accounted for.
fn conclude(scene: Scene, failed: usize, warm: u64) -> ExitCode {
    let files = scene.current.into_inner().expect("no panic");
    let mut done = scene.done.into_inner().expect("no panic");
    let memory = resident();
    let mut problems = Vec::new();
    let mut check = |is_right: bool, problem: String| {
        if !is_right {
            problems.push(problem);
        }
    };
    check(failed == 0, format!("{failed} threads have failed"));

    let open: Vec<u32> = files.iter().map(|entry| entry.fd.get()).collect();
    let (len, highest) = (files.len(), files.highest_open());
    check(len == open.len(), format!("{len} fds counted, {} found", open.len()));
    check(highest.map(u32::from) == open.last().copied(), format!("highest open: {highest:?}"));
    for expected in (0..).filter(|fd| !open.contains(fd)).take(NEAR as usize) {
        let number = files
            .reserve()
            .map(|reservation| reservation.install(File::new(false), FdFlags::empty()));
        done.opened += u64::from(number.is_ok());
        if number != Ok(fd(expected)) {
            check(false, format!("fd {expected} is free and is not handed out: {number:?}"));
            break;
        }
    }
    end(files);

    let (made, dropped) = (MADE.load(Relaxed), DROPPED.load(Relaxed));
    check(made == dropped, format!("{made} files were made, {dropped} dropped"));
    let (opened, closed) = (done.opened, FLUSHED.load(Relaxed) + done.taken);
    check(opened == closed, format!("{opened} fds were opened, {closed} closed"));
    let is_flat = warm == 0 || memory <= warm + GROWTH;
    check(is_flat, format!("memory has grown from {} to {} MiB", warm >> 20, memory >> 20));

    println!("soak: {} operations, {made} files, {opened} fds opened", done.operations);
    problems.iter().for_each(|problem| eprintln!("soak: {problem}"));
    if problems.is_empty() {
        println!("soak: all is accounted for");
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn main() -> ExitCode {
    let Arguments { time, threads } = match Arguments::parse(std::env::args_os().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("soak: {error}; --help shows the usage");
            return ExitCode::from(2);
        }
    };
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !info.payload().is::<Deliberate>() {
            report(info);
        }
    }));
    let scene = Scene::new();
    let seed = fastrand::u64(..);
    println!("soak: {threads} threads for {time:.0?}, seed {seed}");

    let (failed, warm) = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads as u64)
            .map(|number| {
                let worker = Worker::new(&scene, seed ^ number << 32);
                scope.spawn(|| worker.run())
            })
            .collect();
        let warm = watch(&scene, time, || workers.iter().any(|worker| worker.is_finished()));
        scene.stop.store(true, Relaxed);
        (workers.into_iter().map(|worker| worker.join()).filter(Result::is_err).count(), warm)
    });
    conclude(scene, failed, warm)
}
