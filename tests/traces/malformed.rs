//! What is not a trace is refused, with the line and what was expected there.

use std::io::{self, BufReader, Read};

use crate::reader::Bounds;
use crate::{FIRST, HEADER, pack, replay_input, replay_within, with_header};

fn assert_refused(text: &[u8], line: u64, problem: &str) {
    let shown = String::from_utf8_lossy(text);
    let error = replay_input(text).err().unwrap_or_else(|| panic!("accepted: {shown}"));
    assert!(error.problem.contains("expected "), "{error}");
    assert!(error.line == line && error.problem.contains(problem), "{error}\nfor {shown}");
}

#[test]
fn malformed_events_are_refused() {
    for (event, problem) in [
        ("1 exit", "TASK OP ARG* -> RESULT, found `1 exit`"),
        ("1 exit ->", "RESULT"),
        ("1 exit -> ", "a result"),
        ("1 exit  -> 0", "nothing more, found ``"),
        ("1 exit -> 0 ", "a result"),
        ("1 exit -> 0\r", "found `0\\r`"),
        ("1 exit -> \u{1b}[31m", "found `\\u{1b}[31m`"),
        ("1 exit -> -ENOTHING", "by name"),
        ("1 exit -> -1", "a result"),
        ("1 exit -> ? 0", "nothing more"),
        ("1 exit -> - 0", "nothing more"),
        ("1 exit -> 18446744073709551616", "a result"),
        ("0 exit -> 0", "TASK"),
        ("-1 exit -> 0", "TASK"),
        ("+1 exit -> 0", "TASK"),
        ("18446744073709551616 exit -> 0", "TASK"),
        ("2 exit -> 0", "a task that has been started"),
        ("1 rlimit_get 2 -> 0 0", "a task that has been started"),
        ("1 fork 1 -> 0", "a new task"),
        ("1 fork - -> 0", "pidfd"),
        ("1 fork 2 pid -> 0", "pidfd"),
        ("1 fork 2 pidfd pidfd -> 0", "nothing more"),
        ("1 install r -> 3", "a reserve"),
        ("1 cancel -> 0", "a reserve"),
        ("1 frobnicate -> 0", "an operation, found `frobnicate`"),
        ("1 -> 0", "OP, found the end of the line"),
        ("1 open x 0 -> 1", "MODE"),
        ("1 open r 2 -> 1", "CE"),
        ("1 open r 0 fail=ENOTHING -> 1", "errno"),
        ("1 open r 0 fail= -> 1", "errno"),
        ("1 open r 0 at=x -> 1", "at=FD"),
        ("1 open r 0 fail=EIO at=0 -> 1", "nothing more"),
        ("1 create so\u{e7}ket rw 0 -> 1", "KIND"),
        ("1 dup 2147483648 -> 1", "OLD, a signed 32-bit"),
        ("1 dup3 0 1 good -> 1", "0, 1 or bad"),
        ("1 dupfd 0 9223372036854775808 0 -> 1", "MIN"),
        ("1 close_range -1 2 0 -> 0", "FIRST"),
        ("1 close_range 0 4294967296 0 -> 0", "LAST"),
        ("1 close_range 0 1 0x2 -> 0", "FLAGS"),
        ("1 recvfds 0 0 254 -> -", "at most 253"),
        ("1 recvfds 0 0 1152921504606846976 -> -", "at most 253"),
        ("1 use -> 0", "SPEC"),
        ("1 use x3 -> 0", "SPEC"),
        ("1 use r -> 0", "SPEC"),
        ("exit", "TASK"),
    ] {
        assert_refused(with_header(&format!("{event}\n")).as_bytes(), FIRST, problem);
        // Wherever it is, and also if the file ends there.
        let later = with_header(&format!("# what for\n\n1 getfd 0 -> 0\n{event}"));
        assert_refused(later.as_bytes(), FIRST + 3, problem);
    }
}

#[test]
fn events_that_contradict_earlier_ones_are_refused() {
    for (events, line, problem) in [
        ("1 exit -> 0\n1 close 0 -> 0", 1, "task 1 has exited"),
        ("1 fork 2 -> 0\n2 exit -> 0\n1 rlimit_get 2 -> 10 20", 2, "task 2 has exited"),
        ("1 fork 2 -> 0\n2 exit -> 0\n1 fork 2 -> 0", 2, "a new task"),
        ("1 fork - pidfd -> -EMFILE\n2 close 0 -> 0", 1, "a task that has been started"),
        ("1 reserve 0 -> 1\n1 reserve 0 -> 2", 1, "install or cancel"),
        ("1 reserve 0 -> ?\n1 reserve 0 -> 2", 1, "install or cancel"),
        ("1 reserve 0 -> -EMFILE\n1 install r -> 1", 1, "a reserve"),
        ("1 reserve 0 -> 1\n1 cancel -> 0\n1 install r -> 1", 2, "a reserve"),
    ] {
        assert_refused(with_header(events).as_bytes(), FIRST + line, problem);
    }
}

#[test]
fn malformed_headers_are_refused() {
    let header = |lines: &str| format!("@ fdt 1\n{lines}\n1 exit -> 0\n");
    for (text, line, problem) in [
        (String::new(), 1, "`@ fdt 1`, found the end of the file"),
        ("# nothing\n".into(), 2, "`@ fdt 1`, found the end of the file"),
        ("@ fdt 2\n".into(), 1, "`@ fdt 1`, found `@ fdt 2`"),
        ("@ name x\n@ fdt 1\n".into(), 1, "`@ fdt 1`"),
        ("1 exit -> 0\n".into(), 1, "`@ fdt 1`"),
        (header("@ fdt 1"), 2, "name, kernel"),
        (header("@ colour blue"), 2, "found `colour`"),
        (header("@name x"), 2, "`@`, found `@name`"),
        (header("@"), 2, "the key"),
        (header("@ kernel"), 2, "a word"),
        (header("@ name"), 2, "N, a name"),
        (header("@ name x y"), 2, "nothing more"),
        (header("@ name \u{1b}"), 2, "found `\\u{1b}`"),
        (header("@ name x\n@ name y"), 3, "`@ name` once"),
        (header("@ use table\n@ use table"), 3, "`@ use` once"),
        (header("@ nr_open 63"), 2, "64 to"),
        (header("@ nr_open 2147483585"), 2, "64 to"),
        (header("@ nr_open 64\n@ nr_open 64"), 3, "`@ nr_open` once"),
        (header("@ task 1 1 1"), 2, "`@ nr_open N` before"),
        (header("@ fd 1 0 r 0"), 2, "`@ nr_open N` before"),
        (header("@ nr_open 64\n@ task 2 1 1"), 3, "task 1"),
        (header("@ nr_open 64\n@ task 1 2 1"), 3, "SOFT <= HARD"),
        (header("@ nr_open 64\n@ task 1 1 65"), 3, "nr_open, 64"),
        (header("@ nr_open 64\n@ task 1 1 1\n@ task 1 1 1"), 4, "`@ task` once"),
        (header("@ nr_open 64\n@ fd 1 64 r 0"), 3, "below nr_open"),
        (header("@ nr_open 64\n@ fd 1 -1 r 0"), 3, "below nr_open"),
        (header("@ nr_open 64\n@ fd 1 3 r 0\n@ fd 1 3 w 0"), 4, "found 3 again"),
        (header("@ nr_open 64\n@ task 1 1 1"), 4, "`@ name N` in the header"),
        (header("@ name x"), 3, "`@ nr_open N` in the header"),
        (header("@ name x\n@ nr_open 64"), 4, "`@ task 1 SOFT HARD` in the header"),
        ("@ fdt 1\n@ name x".into(), 3, "`@ nr_open N` in the header"),
    ] {
        assert_refused(text.as_bytes(), line, problem);
    }
    let late = with_header("1 getfd 0 -> 0\n@ use table\n");
    assert_refused(late.as_bytes(), FIRST + 1, "an event: the header has ended");
}

#[test]
fn what_is_not_text_is_refused() {
    let mut text = with_header("1 getfd 0 -> 0\n").into_bytes();
    text.extend(b"1 exit -> 0\xff\n");
    assert_refused(&text, FIRST + 1, "UTF-8");
    // Packed, but not named so.
    assert_refused(&pack(HEADER), 1, "UTF-8");
}

fn assert_refused_within(bounds: Bounds, input: impl Read, problem: &str) {
    let error = replay_within(bounds, BufReader::new(input)).err().unwrap();
    assert!(error.to_string().ends_with(problem), "{error}");
}

#[test]
fn what_has_no_end_is_refused() {
    let endless = |byte| HEADER.as_bytes().chain(io::repeat(byte));
    let all = Bounds::default();
    assert_refused_within(all, endless(b'1'), "6: expected a line of at most 1048576 bytes");

    let small = Bounds { line: 100, text: 1000, ..all };
    let number = FIRST + 1000 - HEADER.len() as u64;
    let problem = format!("{number}: expected a text of at most 1000 bytes");
    assert_refused_within(small, endless(b'\n'), &problem);
}

#[test]
fn bounds_are_inclusive() {
    let text = with_header("1 use 0 0 0 0 0 0 0 0 0 0 0 0 -> 0\n");
    let line = text.lines().last().unwrap().len() as u64 + 1;
    let bounds = Bounds { line, text: text.len() as u64, ..Bounds::default() };
    assert_eq!(replay_within(bounds, text.as_bytes()).unwrap().counts.events, 1);

    let short = Bounds { line: line - 1, ..bounds };
    assert_refused_within(
        short,
        text.as_bytes(),
        &format!("6: expected a line of at most {} bytes", line - 1),
    );
    let small = Bounds { text: bounds.text - 1, ..bounds };
    assert_refused_within(
        small,
        text.as_bytes(),
        &format!("6: expected a text of at most {} bytes", bounds.text - 1),
    );
}

#[test]
fn tables_that_take_too_much_memory_are_refused() {
    const MAX: u64 = 2_147_483_584;
    let roomy = |lines: String| {
        format!("@ fdt 1\n@ name x\n@ nr_open {MAX}\n@ task 1 {MAX} {MAX}\n@ fd 1 0 r 0\n{lines}")
    };
    let bounds = Bounds { tables: 8 << 20, ..Bounds::default() };
    let problem = "expected tables of at most 8388608 bytes";
    let refused = |lines: String| assert_refused_within(bounds, roomy(lines).as_bytes(), problem);

    // One that grows; and, with other tasks about, those of tasks that do so one after the other.
    refused((1..100).map(|step| format!("1 dup2 0 {0} -> {0}\n", MAX - (step << 15))).collect());
    refused((2..2000).map(grow_in_child).collect());
    // Many copies, however they are made.
    refused((2..20_000).map(|child| format!("1 fork {child} -> 0\n")).collect());
    refused((2..20_000).map(|child| format!("1 thread_copy {child} -> 0\n")).collect());
    for unshare in ["unshare_files", "exec", "close_range 9 9 2"] {
        let copy = |child| format!("1 fork_shared {child} -> 0\n{child} {unshare} -> 0\n");
        refused((2..20_000).map(copy).collect());
    }
    // At the start, before there is a table.
    let start = |fd| format!("@ fd 1 {fd} r 0\n");
    let starts = roomy((1..=1024).map(start).collect());
    assert_refused(starts.as_bytes(), FIRST + 1023, "at most 1024 descriptors");
}

/// A child that grows its table to some 64 KiB, and lives on.
fn grow_in_child(child: u64) -> String {
    format!("1 fork {child} -> 0\n{child} dup2 0 65536 -> 65536\n")
}

#[test]
fn tables_that_are_gone_take_no_memory() {
    let bounds = Bounds { tables: 1 << 20, ..Bounds::default() };
    let header = HEADER.replace("1000", "100000").replace("10 20", "100000 100000");
    let pass = |child| format!("{}{child} exit -> 0\n", grow_in_child(child));
    let forks: String = (2..1000).map(pass).collect();
    let report = replay_within(bounds, format!("{header}{forks}").as_bytes()).unwrap();
    assert_eq!((report.counts.events, report.counts.differences), (3 * 998, 0));

    // It may be another sharer that let it grow, and the last one may go in mid-open.
    let pass = |child| {
        let (grower, last) = (2 * child, 2 * child + 1);
        format!(
            "1 fork {last} -> 0\n{last} thread {grower} -> 0\n{grower} dup2 0 65536 -> 65536\n\
             {grower} exit -> 0\n{last} reserve 0 -> 1\n{last} exit -> 0\n"
        )
    };
    let threads: String = (1..1000).map(pass).collect();
    let report = replay_within(bounds, format!("{header}{threads}").as_bytes()).unwrap();
    assert_eq!((report.counts.events, report.counts.differences), (6 * 999, 0));
}
