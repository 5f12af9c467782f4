//! Every answer is the recorded one; and if it were not, it would be noticed.

use std::path::Path;

use crate::replay::Counts;
use crate::{FIRST, bundled, is_event, replay_input, sources, with_header};

#[test]
fn real_programs_get_the_answers_of_the_kernel() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/traces");
    let (folder, least_events) =
        if corpus.is_dir() { (corpus, 323_000) } else { (sources::bundled(), 17_000) };
    println!("replaying {}", folder.display());

    let mut total = Counts::default();
    for path in sources::find(&folder).unwrap() {
        let input = sources::open(&path).unwrap();
        let report =
            replay_input(input).unwrap_or_else(|error| panic!("{}:{error}", path.display()));
        if let Some(first) = report.first_differences.first() {
            let (line, expected, got) = (first.line, &first.expected, &first.got);
            panic!("{}:{line}: expected {expected}, got {got}: {}", path.display(), first.text);
        }
        total += report.counts;
    }
    assert_eq!(total.differences, 0);
    assert!(total.events >= least_events, "only {} events", total.events);
}

#[test]
fn rules_that_no_recording_shows() {
    let report =
        replay_input(with_header(RULES).as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    for first in &report.first_differences {
        println!("{}: {}, got {}", first.line, first.text, first.got);
    }
    assert_eq!(report.counts.differences, 0);
    assert_eq!(report.counts.events, RULES.lines().filter(|line| is_event(line)).count() as u64);
}

const RULES: &str = "
# A task of the same process with a copy of the table: the limit is one, the tables are two.
1 thread_copy 2 -> 0
2 open r 0 -> 1
1 getfd 1 -> -EBADF
2 rlimit_nofile 1 2 20 -> 0
2 open r 0 -> -EMFILE
1 rlimit_get 2 -> 2 20
# A pidfd is put in after the copy, or there is no child.
1 fork 3 pidfd -> 1
3 getfd 1 -> -EBADF
1 getfd 1 -> 1
1 thread - pidfd -> -EMFILE
1 rlimit_nofile 1 10 20 -> 0
1 thread_copy 4 pidfd -> 2
4 getfd 2 -> -EBADF
4 exit -> 0
1 close_range 1 2 0 -> 0
# A reservation survives a sweep that flags it, and ends with its task.
1 thread 5 -> 0
5 reserve 0 -> 1
1 close_range 0 9 4 -> 0
1 getfd 1 -> -EBADF
5 install w -> 1
1 getfd 1 -> 1
1 setfd 0 0 -> 0
5 reserve 1 -> 2
1 dup2 0 2 -> -EBUSY
5 exit -> 0
1 dup2 0 2 -> 2
1 exec -> 0
1 getfd 1 -> -EBADF
# With both flags the copy is flagged and the old table is not.
1 thread 6 -> 0
6 close_range 0 9 6 -> 0
6 getfd 2 -> 1
1 getfd 2 -> 0
# Bits that fdtable gives a meaning are unknown to Linux.
1 close_range 0 9 65536 -> -EINVAL
1 close_range 0 9 131072 -> -EINVAL
# No hard limit above nr_open, which need not be a multiple of anything.
1 rlimit_nofile 1 1001 1001 -> -EPERM
1 rlimit_nofile 1 2000 1001 -> -EINVAL
1 rlimit_nofile 1 1000 1000 fail=EPERM -> -EPERM
1 rlimit_nofile 1 1000 1000 -> 0
1 dup2 0 999 -> 999
1 dup2 0 1000 -> -EBADF
1 dupfd 0 999 0 -> -EMFILE
1 dupfd 0 1000 0 -> -EINVAL
1 dupfd 0 -9223372036854775808 0 -> -EINVAL
# The error of a close is that close's, and the descriptor is gone.
1 dup 0 -> 1
1 close 1 fail=EDQUOT -> -EDQUOT
1 close 1 fail=EDQUOT -> -EBADF
1 close 0 -> 0
# Of a message that finds no room nothing comes, and that is no error.
1 rlimit_nofile 1 0 1000 -> 0
1 recvfds 2 0 253 rw -> -
1 recvfds 1 0 253 -> -EBADF
# What was not observed is carried out, and anything will do.
1 rlimit_nofile 1 2 1000 -> 0
1 open p 0 -> ?
1 accept 0 0 -> -EBADF
1 fioclex 0 1 -> -EBADF
1 use p0 2 -> 0
1 use 2 0 -> -EBADF
";

/// Every recorded answer is replaced by a wrong one, one at a time, which must be the only
/// difference: answers depend on the calls alone.
#[test]
fn every_recorded_answer_is_compared() {
    let mut compared = 0;
    for path in sources::find(&sources::bundled()).unwrap() {
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.starts_with("scen-") {
            continue;
        }
        let text = bundled(name);
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| is_event(line)) {
            let Some(wrong) = with_wrong_answer(line) else { continue };
            let mut altered = lines.clone();
            altered[index] = &wrong;
            let report = replay_input(altered.join("\n").as_bytes()).unwrap();
            let differences = report.counts.differences;
            assert_eq!(differences, 1, "{name}:{}: {wrong}", index + 1);
            let difference = &report.first_differences[0];
            assert_eq!((difference.line, &difference.text), (index as u64 + 1, &wrong));
            compared += 1;
        }
    }
    assert!(compared > 800, "only {compared} answers");
}

/// The event with another number or another error, or one descriptor too many where none came.
fn with_wrong_answer(line: &str) -> Option<String> {
    let (call, answer) = line.split_once(" -> ")?;
    let wrong = match answer {
        "?" => return None,
        "-" => "3".to_string(),
        "-EBUSY" => "-EEXIST".to_string(),
        _ if answer.starts_with("-E") => "-EBUSY".to_string(),
        numbers => {
            let (first, rest) = numbers.split_at(numbers.find(' ').unwrap_or(numbers.len()));
            format!("{}{rest}", first.parse::<u64>().unwrap() + 1)
        }
    };
    Some(format!("{call} -> {wrong}"))
}

#[test]
fn differences_are_all_counted_and_the_first_are_kept() {
    let report = replay_input(with_header(&"1 close 5 -> 0\n".repeat(25)).as_bytes()).unwrap();
    assert_eq!((report.counts.events, report.counts.differences), (25, 25));
    let lines = report.first_differences.iter().map(|difference| difference.line);
    assert!(lines.eq(FIRST..FIRST + 10));
}

/// A call that is answered otherwise than recorded leads on to events that make no sense.
#[test]
fn a_replay_that_has_gone_astray_goes_on() {
    let events = "\
1 rlimit_nofile 1 1 20 -> 0
1 reserve 0 -> 7
1 install r -> 7
1 fork 2 pidfd -> 8
2 open r 0 -> 8
1 rlimit_get 2 -> 1 20
2 exit -> 0
";
    let report = replay_input(with_header(events).as_bytes()).unwrap();
    let got = report.first_differences.iter().map(|difference| difference.got.to_string());
    assert!(got.eq(["-EMFILE", "-EBADF", "-EMFILE", "-ESRCH", "-ESRCH", "-ESRCH"]));
}
