//! Single-steps a child process between two marks, and looks at each instruction.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ops::Range;
use std::process::{Child, Command};

use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use super::{CHILD, Counts};

const BREAKPOINT: u8 = 0xcc;

/// The operation whose instructions are counted. Once per process.
#[inline(always)]
pub(super) fn marked<R>(operation: impl FnOnce() -> R) -> R {
    mark();
    let result = operation();
    mark();
    result
}

#[inline(always)]
fn mark() {
    // SAFETY: a breakpoint changes nothing; the tracer lets the process go on behind it.
    unsafe { std::arch::asm!("int3", options(nostack)) }
}

/// Lets the parent watch this process.
pub(super) fn be_traced() {
    ptrace::traceme().expect("the parent has tried that it can");
}

/// Runs a case in a child process.
pub(super) fn count(case: &str) -> Result<Counts, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(&program)
        .args([CHILD, case])
        .spawn()
        .map_err(|error| format!("can't start {}: {error}", program.display()))?;
    let counts = watch(&child).map_err(|error| format!("can't trace a process: {error}"));
    let _ = child.kill();
    let _ = child.wait();
    counts
}

fn watch(child: &Child) -> nix::Result<Counts> {
    let pid = Pid::from_raw(child.id() as i32);
    wait_for_trap(pid)?;
    let own = code_of(pid);
    let mut is_locked = HashMap::new();
    let mut counts = Counts { rmws: 0, instructions: 0 };
    loop {
        let at = ptrace::getregs(pid)?.rip;
        if own.contains(&at) {
            let locked = match is_locked.get(&at) {
                Some(&locked) => locked,
                None => {
                    let code = read(pid, at)?;
                    if code[0] == BREAKPOINT {
                        return Ok(counts);
                    }
                    *is_locked.entry(at).or_insert(locks(&code))
                }
            };
            counts.instructions += 1;
            counts.rmws += u64::from(locked);
        }
        ptrace::step(pid, None)?;
        wait_for_trap(pid)?;
    }
}

fn wait_for_trap(pid: Pid) -> nix::Result<()> {
    match waitpid(pid, None)? {
        WaitStatus::Stopped(_, Signal::SIGTRAP) => Ok(()),
        // It may not be traced, or the case has failed.
        _ => Err(nix::errno::Errno::EPERM),
    }
}

/// Where the program's own code lies in the process.
fn code_of(pid: Pid) -> Range<u64> {
    let program = std::env::current_exe().unwrap_or_default();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let own = maps.lines().filter(|line| line.ends_with(&*program.to_string_lossy()));
    let code = own.filter(|line| line.split(' ').nth(1).is_some_and(|mode| mode.contains('x')));
    let ends = code.filter_map(|line| line.split(' ').next()?.split_once('-'));
    let hex = |text| u64::from_str_radix(text, 16).unwrap_or_default();
    let code = ends.map(|(start, end)| hex(start)..hex(end));
    code.reduce(|low, high| low.start.min(high.start)..low.end.max(high.end)).unwrap_or_default()
}

/// The next instruction is at most so long.
const LONGEST: usize = 16;

fn read(pid: Pid, address: u64) -> nix::Result<[u8; LONGEST]> {
    let mut code = [0; LONGEST];
    for (word, at) in code.chunks_mut(8).zip([address, address + 8]) {
        // What lies past the end of the code is not part of an instruction.
        let read = ptrace::read(pid, at as *mut c_void).unwrap_or_default();
        word.copy_from_slice(&read.to_le_bytes());
    }
    Ok(code)
}

/// Whether the instruction is a locked read-modify-write or a full fence.
fn locks(code: &[u8; LONGEST]) -> bool {
    let is_prefix = |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3 | 0x40..=0x4f);
    let prefixes = code.iter().take_while(|byte| is_prefix(byte)).count();
    let has_lock = code[..prefixes].contains(&0xf0);
    match code[prefixes..] {
        // xchg with memory needs no prefix.
        [0x86 | 0x87, operands, ..] => operands >> 6 != 3,
        // mfence
        [0x0f, 0xae, 0xf0, ..] => true,
        _ => has_lock,
    }
}
