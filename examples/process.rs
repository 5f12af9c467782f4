//! The tutorial: what a small userspace kernel does with its processes' file descriptors.
//!
//! A shell runs `sort < names | tee copy 2>> log`: redirection, a pipe, two forks, two execs. Run it
//! with `cargo run --example process`; it prints the tables as they change.

use std::error::Error;
use std::sync::Mutex;

use fdtable::{FdFlags, Files, Options, OwnedRef};

/// What an open file of this kernel is. The table never looks into it.
enum OpenFile {
    Terminal,
    Regular { path: &'static str, position: Mutex<usize> },
    PipeEnd { name: &'static str },
}

impl OpenFile {
    fn describe(&self) -> String {
        match self {
            OpenFile::Terminal => "terminal".to_string(),
            OpenFile::Regular { path, position } => {
                format!("{path} at {}", position.lock().expect("not poisoned"))
            }
            OpenFile::PipeEnd { name } => format!("{name} end of a pipe"),
        }
    }
}

/// Runs when the last fd, and the last system call that uses the file, is gone; on the stack of
/// whoever was last.
impl Drop for OpenFile {
    fn drop(&mut self) {
        println!("    released: {}", self.describe());
    }
}

const NONE: FdFlags = FdFlags::empty();
const CLOEXEC: FdFlags = FdFlags::CLOEXEC;

/// The `open` system call. The number is taken first, as Linux does: a full table is EMFILE before
/// anything else is looked at. If the rest fails, the reservation gives the number back.
fn open(files: &Files<OpenFile>, path: &'static str, flags: FdFlags) -> Result<u32, String> {
    let reservation = files.reserve().map_err(|error| format!("{path}: {error}"))?;
    if path.is_empty() {
        return Err("no such file or directory".to_string());
    }
    let file = OpenFile::Regular { path, position: Mutex::new(0) };
    Ok(reservation.install(file, flags).get())
}

/// The `pipe2` system call: the two lowest numbers, or none.
fn pipe(files: &Files<OpenFile>, flags: FdFlags) -> Result<(u32, u32), Box<dyn Error>> {
    let [read, write] = files.reserve_many()?;
    let read = read.install(OpenFile::PipeEnd { name: "read" }, flags);
    let write = write.install(OpenFile::PipeEnd { name: "write" }, flags);
    Ok((read.get(), write.get()))
}

/// The `read` system call: the handle keeps the file open while it is used, whoever closes the fd.
fn read(files: &Files<OpenFile>, fd: i32, bytes: usize) -> Result<(), Box<dyn Error>> {
    let file = files.get(fd)?;
    if let OpenFile::Regular { position, .. } = &*file {
        *position.lock().expect("not poisoned") += bytes;
    }
    Ok(())
}

fn show(task: &str, files: &Files<OpenFile>) {
    println!("{task}:");
    for entry in files.iter() {
        let flags = if entry.flags.contains(CLOEXEC) { " (closed by exec)" } else { "" };
        println!("    {} -> {}{flags}", entry.fd, entry.file.describe());
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // A shell with a terminal at 0, 1 and 2, and a limit of 16 open files.
    let shell = Files::from(Options::new().limit(16).build());
    let terminal = OwnedRef::new(OpenFile::Terminal);
    for expected in 0..3 {
        let fd = shell.insert(terminal.clone(), NONE).map_err(|rejected| rejected.error)?;
        assert_eq!(fd, expected);
    }
    drop(terminal);

    // `|`: both ends, not for the programs that are run.
    let (read_end, write_end) = pipe(&shell, CLOEXEC)?;
    show("the shell, with a pipe", &shell);

    // The left side: fork, `< names`, `>|`, exec.
    let mut sort = shell.fork()?;
    let names = open(&sort, "names", NONE)?;
    sort.dup2(names, 0)?;
    sort.close(names)?;
    sort.dup2(write_end, 1)?; // the copy of a CLOEXEC fd is not CLOEXEC
    sort.exec()?;
    show("sort, after exec", &sort);

    // The right side: fork, `|<`, `2>> log`, exec.
    let mut tee = shell.fork()?;
    tee.dup2(read_end, 0)?;
    let log = open(&tee, "log", CLOEXEC)?;
    tee.dup2(log, 2)?;
    tee.exec()?;
    show("tee, after exec", &tee);

    // The shell closes its ends. They live on in the children.
    shell.close(read_end)?;
    shell.close(write_end)?;

    // tee opens what it copies to; its two threads share the table.
    let copy = open(&tee, "copy", NONE)?;
    let thread = tee.share();
    assert!(thread.contains(copy));
    println!("sort reads; a failed open, a closed fd and a wild one are errors:");
    read(&sort, 0, 100)?;
    println!("    {:?}", open(&sort, "", NONE));
    println!("    {:?}", read(&sort, 7, 1).map_err(|error| error.to_string()));
    println!("    {:?}", read(&sort, -1, 1).map_err(|error| error.to_string()));

    println!("sort exits:");
    drop(sort); // `names` and the write end are released: nobody else has them
    println!("one thread of tee exits:");
    drop(thread); // nothing is released: the table is still used
    println!("tee exits:");
    drop(tee);
    show("the shell, in the end", &shell);
    println!("the shell exits:");
    Ok(())
}
