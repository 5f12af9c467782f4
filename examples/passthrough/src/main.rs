//! A FUSE passthrough file system whose open files and directories live in a table of this crate:
//! a real runtime on the file layer. `--help` says how to run it.

mod counts;
mod fuse;
mod node;
mod open;
mod reply;
mod server;
mod stop;
mod sys;

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use fuser::{Config, MountOption, Session, SessionACL, SessionUnmounter};
use lexopt::prelude::*;
use rustix::mount::UnmountFlags;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::counts::COUNTS;
use crate::fuse::Fuse;
use crate::server::Server;
use crate::stop::Stop;

const HELP: &str = "\
Shows the directory SOURCE at MOUNTPOINT, through a file system that runs in
this process.

usage: passthrough [--max-files N] [--threads N] SOURCE MOUNTPOINT

Unmounts on Ctrl-C or SIGTERM, once all files are closed. The second time the
mount is gone at once, and the process ends with the last user of it.

      --max-files N  how many files and directories may be open at once
                     [default: 100000]
      --threads N    how many requests are served at once [default: 4]
  -h, --help         show this text

exit status: 0 every file that was opened was released, 1 something was still
open at the end, as may happen if somebody else unmounts, 2 the command line
is wrong or the mount was refused";

enum Command {
    Help,
    Serve(Arguments),
}

struct Arguments {
    source: PathBuf,
    mountpoint: PathBuf,
    max_files: usize,
    threads: usize,
}

impl Command {
    fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, lexopt::Error> {
        let mut parser = lexopt::Parser::from_args(arguments);
        let (mut paths, mut max_files, mut threads) = (Vec::new(), 100_000, 4);
        while let Some(argument) = parser.next()? {
            match argument {
                Short('h') | Long("help") => return Ok(Command::Help),
                Long("max-files") => max_files = parser.value()?.parse()?,
                Long("threads") => threads = parser.value()?.parse()?,
                Value(path) => paths.push(PathBuf::from(path)),
                _ => return Err(argument.unexpected()),
            }
        }
        match <[PathBuf; 2]>::try_from(paths) {
            Ok([source, mountpoint]) => {
                Ok(Command::Serve(Arguments { source, mountpoint, max_files, threads }))
            }
            Err(_) => Err("SOURCE and MOUNTPOINT are needed".into()),
        }
    }
}

fn main() -> ExitCode {
    let done = match Command::parse(std::env::args_os().skip(1)) {
        Ok(Command::Help) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Ok(Command::Serve(arguments)) => serve(arguments),
        Err(error) => Err(format!("{error}; --help shows the usage").into()),
    };
    match done {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("passthrough: {error}");
            ExitCode::from(2)
        }
    }
}

/// Mounts, serves until it is unmounted, and reports. Returns how many files are still open.
fn serve(arguments: Arguments) -> Result<usize, Box<dyn Error>> {
    let Arguments { source, mountpoint, max_files, threads } = arguments;
    sys::prepare_process();
    let stop = Stop::default();
    // Before the mount exists: there is no moment at which a signal would leave it behind.
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let asked = stop.clone();
    thread::spawn(move || signals.forever().for_each(|_| asked.request()));

    let server = Server::new(&source, max_files, stop.clone())
        .map_err(|error| format!("{}: {error}", source.display()))?;
    let server = Arc::new(server);
    let mut session =
        Session::new(Fuse(Arc::clone(&server)), &mountpoint, &config(&source, threads))
            .map_err(|error| format!("can't mount at {}: {error}", mountpoint.display()))?;
    println!("serving {} at {}", source.display(), mountpoint.display());

    let unmounter = session.unmount_callable();
    let asked = Arc::clone(&server);
    thread::spawn(move || unmount_when_asked(&stop, &asked, unmounter, &mountpoint));
    session.run()?;

    let still_open = server.files.len();
    print!("{COUNTS}");
    println!("still open: {still_open}");
    Ok(still_open)
}

fn config(source: &Path, threads: usize) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(source.display().to_string()),
        MountOption::Subtype("passthrough".to_string()),
        // The kernel checks permissions by mode and owner, before it asks.
        MountOption::DefaultPermissions,
    ];
    // Others than root may only if the system's configuration says so.
    if rustix::process::geteuid().is_root() {
        config.acl = SessionACL::All;
    }
    config.n_threads = Some(threads.max(1));
    config.clone_fd = true;
    config
}

/// An unmount drops the RELEASEs that are still under way. So it waits until the table is empty.
fn unmount_when_asked(
    stop: &Stop,
    server: &Server,
    mut unmounter: SessionUnmounter,
    mountpoint: &Path,
) {
    stop.wait_until(|requests| requests > 0);
    if !server.files.is_empty() {
        eprintln!("passthrough: waiting until all files are closed; once more to unmount now");
    }
    stop.wait_until(|requests| requests > 1 || server.files.is_empty());
    // Busy with open files, or with somebody's working directory: the mount is gone for all others, and
    // ends when they leave.
    if unmounter.unmount().is_err() {
        eprintln!("passthrough: the mount is busy, and ends when its last user has left");
        let _ = rustix::mount::unmount(mountpoint, UnmountFlags::DETACH);
    }
}
