//! Real programs on the mount, and the same in a plain directory: what they print, how they exit and what
//! they leave must be the same. At the end every file that they opened has been flushed and released.
//!
//! Not libtest: the lines about what was skipped are for everybody to see.

#[path = "support/mount.rs"]
mod mount;
#[path = "support/scripts.rs"]
mod scripts;
#[path = "support/tree.rs"]
mod tree;

use std::error::Error;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::time::{Duration, Instant};

use mount::{Mount, Scratch};
use scripts::{PROGRAMS, Program};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// All of it. A program that hangs is let go by the end of the server.
const TIME: Duration = Duration::from_secs(55);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("passthrough: FAILED: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    if let Err(error) = File::options().read(true).write(true).open("/dev/fuse") {
        println!("skipped: passthrough: /dev/fuse: {error}");
        return Ok(());
    }
    let deadline = Instant::now() + TIME;
    let scratch = Scratch::new()?;
    for top in [&scratch.plain, &scratch.source] {
        tree::copy(&library().join("src"), &top.join("ready"))?;
    }
    let Some(mount) = Mount::start(&scratch, &[], deadline)? else { return Ok(()) };
    programs_do_the_same(&scratch, &mount)?;
    let report = mount.end()?;
    println!("{report}");
    let count = |name| report.count(name);
    check("every file is released", count("opened")? == count("released")?)?;
    check("every file is flushed", count("released without a flush")? == 0)?;
    check("nothing is open", count("still open")? == 0)?;
    check("the memo spares questions", count("privileges asked")? < count("writes")?)?;
    check("the server says so", report.succeeded())?;

    the_budget_holds(&scratch, deadline)?;
    an_unmount_waits_for_open_files(&scratch, deadline)
}

fn programs_do_the_same(scratch: &Scratch, mount: &Mount) -> Result<()> {
    let mut different = 0;
    for program in PROGRAMS {
        let missing = program.needs.iter().find(|name| !is_installed(name));
        if let Some(missing) = missing {
            println!("skipped: {}: {missing} is not installed", program.name);
            continue;
        }
        let started = Instant::now();
        let (plain, source) = (scratch.plain.join(program.name), scratch.source.join(program.name));
        let mounted = mount.point().join(program.name);
        let expected = execute(program, &plain)?;
        let plain_time = started.elapsed();
        let found = execute(program, &mounted)?;
        let mounted_time = started.elapsed() - plain_time;

        let mut differences = tree::text_differences(&report(&expected), &report(&found));
        // What the mount shows, and what is really there.
        for place in [&mounted, &source] {
            differences.extend(tree::differences(&plain, place, program.private)?);
        }
        if !expected.status.success() {
            differences.push(format!("failed in both: {}", report(&expected)));
        }
        if differences.is_empty() {
            println!("{}: the same ({plain_time:.1?} plain, {mounted_time:.1?})", program.name);
        } else {
            different += 1;
            println!("{}: DIFFERENT, plain | mounted", program.name);
            differences.iter().take(20).for_each(|line| println!("    {line}"));
        }
    }
    check(&format!("{different} programs differ"), different == 0)
}

/// Its sources are what is copied, packed and committed.
fn library() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// In a new directory, with the same environment for all.
fn execute(program: &Program, directory: &Path) -> Result<Output> {
    fs::create_dir(directory)?;
    let interpreter = program.needs.first().copied().unwrap_or("sh");
    let mut command = match interpreter {
        "python3" => Command::new("python3"),
        _ => Command::new("sh"),
    };
    if interpreter != "python3" {
        command.arg("-eu");
    }
    command.arg("-c").arg(program.script).current_dir(directory);
    command.env("LIBRARY", library()).env("HOME", directory).env("LC_ALL", "C").env("TZ", "UTC");
    command.env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "nobody");
        command.env(format!("GIT_{who}_EMAIL"), "nobody@example.org");
        command.env(format!("GIT_{who}_DATE"), "2024-01-01T00:00:00Z");
    }
    Ok(command.output()?)
}

fn report(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err), output.status)
}

/// Of two files a third is too many; when the mount ends the two are released.
fn the_budget_holds(scratch: &Scratch, deadline: Instant) -> Result<()> {
    const ENFILE: i32 = 23;
    fs::write(scratch.source.join("file"), "text")?;
    let Some(mount) = Mount::start(scratch, &["--max-files", "2"], deadline)? else {
        return Ok(());
    };
    let path = mount.point().join("file");
    let files = [File::open(&path)?, File::open(&path)?];
    let third = File::open(&path).err().and_then(|error| error.raw_os_error());
    check("a third file is ENFILE", third == Some(ENFILE))?;
    drop(files);
    let report = mount.end()?;
    check("the failed open opened nothing", report.count("opened")? == 2)?;
    check("one close, one flush", report.count("flushed")? == 2)?;
    check("both are released", report.succeeded())?;
    println!("budget: ENFILE beyond it");
    Ok(())
}

/// An unmount is asked for while a file is open: it waits, and the file works until it is closed.
fn an_unmount_waits_for_open_files(scratch: &Scratch, deadline: Instant) -> Result<()> {
    let Some(mount) = Mount::start(scratch, &[], deadline)? else { return Ok(()) };
    let mut file = File::open(mount.point().join("file"))?;
    let mut ending = mount.ask_to_end()?;
    check("it says that it waits", ending.next_line()?.contains("waiting"))?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    check("the file works", text == "text")?;
    drop(file);
    check("a clean end", ending.end()?.succeeded())?;
    println!("unmount: waits for open files");
    Ok(())
}

fn check(what: &str, holds: bool) -> Result<()> {
    if holds { Ok(()) } else { Err(format!("not so: {what}").into()) }
}
