//! A line as words, and the errors that say what was expected instead.

use std::fmt;
use std::iter::Peekable;
use std::str::{FromStr, Split};

/// What was expected, and what was found instead.
pub(crate) type Problem = String;

/// The words of a line, separated by one space.
pub(crate) struct Words<'a>(Peekable<Split<'a, char>>);

impl<'a> Words<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Words(text.split(' ').peekable())
    }

    pub(crate) fn peek(&mut self) -> Option<&'a str> {
        self.0.peek().copied()
    }

    pub(crate) fn next(&mut self, expected: &str) -> Result<&'a str, Problem> {
        self.0.next().ok_or_else(|| format!("expected {expected}, found the end of the line"))
    }

    pub(crate) fn end(&mut self) -> Result<(), Problem> {
        match self.0.next() {
            None => Ok(()),
            Some(word) => Err(unexpected("nothing more", word)),
        }
    }

    /// Whatever follows, one word at least.
    pub(crate) fn rest(&mut self, expected: &str) -> Result<(), Problem> {
        self.one_or_more(expected, |_| Some(())).map(drop)
    }

    /// The next word, which `read` must understand.
    pub(crate) fn read<T>(
        &mut self,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Problem> {
        let word = self.next(expected)?;
        read(word).ok_or_else(|| unexpected(expected, word))
    }

    pub(crate) fn one_or_more<T>(
        &mut self,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, Problem> {
        let mut items = vec![self.read(expected, &read)?];
        while self.peek().is_some() {
            items.push(self.read(expected, &read)?);
        }
        Ok(items)
    }

    /// A word that begins with `key`, if that comes next; `read` gets the rest of it.
    pub(crate) fn option<T>(
        &mut self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        if self.peek().is_some_and(|word| word.starts_with(key)) {
            self.read(expected, |word| read(&word[key.len()..])).map(Some)
        } else {
            Ok(None)
        }
    }
}

/// An integer in decimal, without a plus sign, that a `T` can hold.
pub(crate) fn integer<T: FromStr>(word: &str) -> Option<T> {
    if word.starts_with('+') { None } else { word.parse().ok() }
}

pub(crate) fn unexpected(expected: &str, found: &str) -> Problem {
    format!("expected {expected}, found {}", Quoted(found))
}

/// The beginning of a text, without what would confuse a terminal.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut characters = self.0.chars();
        let beginning: String = characters.by_ref().take(60).collect();
        let rest = if characters.next().is_some() { "..." } else { "" };
        write!(f, "`{}{rest}`", beginning.escape_debug())
    }
}
