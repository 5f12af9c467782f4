//! No text makes the replay panic.

use std::io::BufReader;

use flate2::bufread::MultiGzDecoder;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::{HEADER, bundled, pack, replay_input, with_header};

/// What may get into a line: words that mean something elsewhere, and some that mean nothing.
#[rustfmt::skip]
const WORDS: [&str; 36] = [
    "0", "1", "2", "3", "-1", "63", "64", "999", "2147483647", "4294967295",
    "18446744073709551616", "-", "->", "?", "@", "#", "", "r", "p", "bad", "r3", "at=0",
    "fail=EIO", "-EBADF", "pidfd", "use", "fork", "thread", "thread_copy", "exec", "exit",
    "reserve", "install", "cancel", "unshare_files", "\u{fe}",
];

#[derive(Clone, Debug)]
enum Edit {
    Replace(Index, &'static str),
    Remove(Index),
    Repeat,
    SwapWith(Index),
    Drop,
}

fn edit() -> impl Strategy<Value = (Index, Edit)> {
    let edit = prop_oneof![
        5 => (any::<Index>(), select(&WORDS[..])).prop_map(|(at, word)| Edit::Replace(at, word)),
        1 => any::<Index>().prop_map(Edit::Remove),
        1 => Just(Edit::Repeat),
        1 => any::<Index>().prop_map(Edit::SwapWith),
        1 => Just(Edit::Drop),
    ];
    (any::<Index>(), edit)
}

fn apply(lines: &mut Vec<String>, at: Index, edit: Edit) {
    let at = at.index(lines.len());
    let mut words: Vec<&str> = lines[at].split(' ').collect();
    match edit {
        Edit::Replace(word, with) => {
            let word = word.index(words.len());
            words[word] = with;
            lines[at] = words.join(" ");
        }
        Edit::Remove(word) => {
            words.remove(word.index(words.len()));
            lines[at] = words.join(" ");
        }
        Edit::Repeat => lines.insert(at, lines[at].clone()),
        Edit::SwapWith(other) => {
            let other = other.index(lines.len());
            lines.swap(at, other);
        }
        Edit::Drop => {
            // Never the last one.
            if lines.len() > 1 {
                lines.remove(at);
            }
        }
    }
}

/// No panic; and an error names a line that is there, or the end of the file.
fn survives(text: &[u8]) -> Result<(), TestCaseError> {
    if let Err(error) = replay_input(text) {
        let lines = text.split(|&byte| byte == b'\n').count() as u64;
        prop_assert!((1..=lines + 1).contains(&error.line), "{}", error);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_bytes_are_safe(bytes in vec(any::<u8>(), 0..400)) {
        survives(&bytes)?;
        survives(&[HEADER.as_bytes(), &bytes].concat())?;
        let unpacked = BufReader::new(MultiGzDecoder::new(&bytes[..]));
        let _ = replay_input(unpacked);
    }

    #[test]
    fn any_words_are_safe(lines in vec(vec(select(&WORDS[..]), 1..8), 0..12)) {
        let lines: Vec<String> = lines.iter().map(|words| words.join(" ")).collect();
        survives(with_header(&lines.join("\n")).as_bytes())?;
    }

    #[test]
    fn altered_traces_are_safe(
        name in select(&[
            "scen-reserve.fdt", "scen-tasks.fdt", "scen-limit.fdt", "scen-pass.fdt", "scen-pipe.fdt",
            "scen-duplimit.fdt", "ltp-openfile.fdt",
        ][..]),
        edits in vec(edit(), 1..6),
    ) {
        let mut lines: Vec<String> = bundled(name).lines().map(String::from).collect();
        for (at, edit) in edits {
            apply(&mut lines, at, edit);
        }
        survives(lines.join("\n").as_bytes())?;
    }

    #[test]
    fn damaged_gzip_is_safe(at in any::<Index>(), bit in 0..8) {
        let mut packed = pack(&bundled("scen-tasks.fdt"));
        let at = at.index(packed.len());
        packed[at] ^= 1_u8 << bit;
        let unpacked = BufReader::new(MultiGzDecoder::new(&packed[..]));
        // What still unpacks is the whole trace: only a field such as the time was hit.
        if let Ok(report) = replay_input(unpacked) {
            prop_assert_eq!((report.counts.events, report.counts.differences), (81, 0));
        }
    }
}
