//! The exec of a child, and what the new program finds open.

use std::ffi::{CStr, CString};
use std::fmt::Write;

use super::model::State;
use super::sys::{self, File, Kind};

/// What the new program is to find, as pairs of a number and a [`code`].
const EXPECTED: &CStr = c"FDTABLE_KERNEL_EXPECTED";

/// Makes a child process, which may share the table of this one (`CLONE_FILES` or 0), that runs this
/// program anew. Says how what it finds open differs from what is expected.
pub(super) fn check(expected: &[State], flags: i32) -> Result<(), String> {
    let mut variable = format!("{}=", EXPECTED.to_str().expect("it is ASCII"));
    for &(fd, state) in expected {
        write!(variable, "{fd} {} ", code(state)).expect("a string can be written to");
    }
    let variable = CString::new(variable).expect("it has no zeros");
    let Some(pid) = sys::spawn(flags) else {
        // Numbers must be left for the libraries that the program loads. The limit is the child's own.
        let hard = sys::limits().rlim_max;
        sys::set_limit(hard, hard);
        sys::exec([c"kernel"], [&variable]);
        sys::exit(FAILED);
    };
    let status = sys::wait(pid).expect("the child can be waited for");
    if status == 0 {
        return Ok(());
    }
    let code = libc::WEXITSTATUS(status);
    let differs = expected.get((code as usize).wrapping_sub(1));
    Err(format!("after an exec: status {status:#x}; if a difference, then at {differs:?}"))
}

/// The exit code if there was no exec.
const FAILED: i32 = 255;

/// One number for what is open at an fd.
fn code(state: Option<(fdtable::FdFlags, File)>) -> i64 {
    let Some((flags, file)) = state else { return -1 };
    let kind = match file.kind {
        Kind::Regular => 0,
        Kind::PipeRead => 1,
        Kind::PipeWrite => 2,
    };
    i64::from(file.tag) << 10 | i64::from(flags.bits()) << 2 | kind
}

/// Called by the loader: the runtime of Rust opens 0, 1 and 2 before `main` if they are closed, and the
/// harness what it likes.
// SAFETY: the section is a list of pointers to such functions.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

/// In a process made by [`check`], compares and ends it: the exit code is the place of the first
/// difference, from 1 on. Elsewhere nothing.
extern "C" fn before_main() {
    let Some(expected) = sys::variable(EXPECTED) else { return };
    // Nothing here needs what the runtime sets up.
    let mut words = expected.to_str().unwrap_or("?").split_ascii_whitespace();
    let mut place = 1;
    while let Some(fd) = words.next() {
        let expected = words.next().map(str::parse);
        let found = fd.parse().map(|fd| code(sys::inspect(fd)));
        if Some(found) != expected {
            sys::exit(place.min(FAILED - 1));
        }
        place += 1;
    }
    sys::exit(0);
}
