//! Directories for a test, and a running server.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Instant;
use std::{fmt, thread};

use rustix::mount::UnmountFlags;
use rustix::process::{Pid, Signal, kill_process};

use crate::Result;

/// A directory of this test's own, that other users can look into.
pub(crate) struct Scratch {
    top: PathBuf,
    pub(crate) plain: PathBuf,
    pub(crate) source: PathBuf,
    point: PathBuf,
}

impl Scratch {
    pub(crate) fn new() -> Result<Scratch> {
        let top = std::env::temp_dir().join(format!("passthrough-{}", std::process::id()));
        let [plain, source, point] = ["plain", "source", "mount"].map(|name| top.join(name));
        for directory in [&top, &plain, &source, &point] {
            fs::create_dir(directory)?;
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
        }
        Ok(Scratch { top, plain, source, point })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If it is still mounted there, which fails the test, nothing is removed through the mount.
        if fs::remove_dir(&self.point).is_ok() {
            let _ = fs::remove_dir_all(&self.top);
        }
    }
}

/// A running server. If the test ends early, or the time is up, it is killed.
pub(crate) struct Mount {
    point: PathBuf,
    server: Child,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
    /// Its end calls off the watchdog.
    _watchdog: Sender<()>,
}

impl Mount {
    /// Returns when the mount is there. None, with a line that says why, if mounting is refused here.
    pub(crate) fn start(
        scratch: &Scratch,
        options: &[&str],
        deadline: Instant,
    ) -> Result<Option<Mount>> {
        let mut server = Command::new(env!("CARGO_BIN_EXE_passthrough"))
            .args(options)
            .args([&scratch.source, &scratch.point])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let out = BufReader::new(server.stdout.take().ok_or("no output")?);
        let err = BufReader::new(server.stderr.take().ok_or("no errors")?);
        let watchdog = watch(&server, deadline);
        let mut mount =
            Mount { point: scratch.point.clone(), server, out, err, _watchdog: watchdog };
        let mut line = String::new();
        mount.out.read_line(&mut line)?;
        if line.starts_with("serving") {
            return Ok(Some(mount));
        }
        mount.err.read_to_string(&mut line)?;
        if line.contains("can't mount") {
            println!("skipped: passthrough: {}", line.trim());
            return Ok(None);
        }
        Err(line.into())
    }

    pub(crate) fn point(&self) -> &Path {
        &self.point
    }

    /// As Ctrl-C does.
    pub(crate) fn ask_to_end(self) -> Result<Mount> {
        kill_process(Pid::from_child(&self.server), Signal::TERM)?;
        Ok(self)
    }

    /// What the server says next of what goes wrong.
    pub(crate) fn next_line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.err.read_line(&mut line)?;
        Ok(line)
    }

    pub(crate) fn end(self) -> Result<Report> {
        let mut mount = self.ask_to_end()?;
        let (mut text, mut errors) = (String::new(), String::new());
        mount.out.read_to_string(&mut text)?;
        mount.err.read_to_string(&mut errors)?;
        let status = mount.server.wait()?;
        print!("{errors}");
        Ok(Report { text, status })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // If it has ended well there is nothing left to kill, and nothing mounted.
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = rustix::mount::unmount(&self.point, UnmountFlags::DETACH);
    }
}

/// Kills the server when the time is up: whatever waits for it fails then.
fn watch(server: &Child, deadline: Instant) -> Sender<()> {
    let server = Pid::from_child(server);
    let (call_off, called_off) = mpsc::channel::<()>();
    thread::spawn(move || {
        let time = deadline.saturating_duration_since(Instant::now());
        if called_off.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
            println!("the time is up");
            let _ = kill_process(server, Signal::KILL);
        }
    });
    call_off
}

/// What the server says at its end.
pub(crate) struct Report {
    text: String,
    status: ExitStatus,
}

impl Report {
    pub(crate) fn succeeded(&self) -> bool {
        self.status.success()
    }

    pub(crate) fn count(&self, name: &str) -> Result<u64> {
        let line = self.text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        Ok(line.ok_or_else(|| format!("the report has no {name}"))?.parse()?)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.trim_end())
    }
}
