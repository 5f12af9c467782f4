//! What an operation executes, instruction by instruction.

pub(crate) mod cases;
pub(crate) mod expected;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod step;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod step {
    //! Only x86-64 Linux is known here.

    pub(super) fn marked<R>(operation: impl FnOnce() -> R) -> R {
        operation()
    }

    pub(super) fn count(_: &str) -> Result<super::Counts, String> {
        Err("needs x86-64 Linux".to_string())
    }

    pub(super) fn be_traced() {}
}

/// What one execution of an operation consists of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Counts {
    /// Locked read-modify-writes, and full fences.
    pub(crate) rmws: u64,
    /// All instructions of this program; those of the C library, where malloc is, are not counted.
    pub(crate) instructions: u64,
}

/// What a comparison has found.
pub(crate) enum Verdict {
    Kept,
    Worse,
}

const CHILD: &str = "--child";

/// Runs one case and exits, if this process was started to be watched.
pub(crate) fn run_if_child() {
    let mut arguments = std::env::args().skip_while(|argument| argument != CHILD).skip(1);
    if let Some(name) = arguments.next() {
        let case = cases::ALL.iter().find(|case| case.name == name).expect("a case of that name");
        step::be_traced();
        (case.run)();
        std::process::exit(0);
    }
}
