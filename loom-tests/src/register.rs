//! Memory of release and acquire: what is written, and how much of it a thread already knows.
//!
//! Each location has one order of writes, and all threads agree on it. But a thread that only reads may
//! read an old value, unless it knows better: from its own accesses of the location, or from a thread
//! that knew better and whose write it has acquired. This is happens-before, as the contract means it,
//! and neither a wall clock nor sequential consistency.

/// How far a thread knows the writes of each location: never less than the first that is kept.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(crate) struct View(Vec<u16>);

impl View {
    pub(crate) fn at(&self, location: usize) -> usize {
        self.0.get(location).copied().unwrap_or(0).into()
    }

    pub(crate) fn raise(&mut self, location: usize, position: usize) {
        if position > self.at(location) {
            if self.0.len() <= location {
                self.0.resize(location + 1, 0);
            }
            self.0[location] = position as u16;
        }
    }

    pub(crate) fn join(&mut self, other: &View) {
        for (location, &position) in other.0.iter().enumerate() {
            self.raise(location, position.into());
        }
    }

    /// The first `n` writes of the location are no longer kept.
    fn rebase(&mut self, location: usize, n: usize) {
        if let Some(position) = self.0.get_mut(location) {
            *position = position.saturating_sub(n as u16);
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Write<V> {
    value: V,
    /// What its writer shows to those who acquire it.
    shown: View,
}

/// One location: the writes that somebody may still read, in their order. Never empty.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Register<V>(Vec<Write<V>>);

impl<V: Clone + PartialEq> Register<V> {
    pub(crate) fn new(value: V) -> Self {
        Register(vec![Write { value, shown: View::default() }])
    }

    fn last(&self) -> &Write<V> {
        self.0.last().expect("a register has a value")
    }

    /// What a read-modify-write finds.
    pub(crate) fn value(&self) -> &V {
        &self.last().value
    }

    /// The position of the last write.
    pub(crate) fn end(&self) -> usize {
        self.0.len() - 1
    }

    /// What a load may find if the writes before `known` are known to be old, with positions.
    pub(crate) fn readable(&self, known: usize) -> impl Iterator<Item = (usize, &V)> {
        self.0.iter().enumerate().skip(known).map(|(position, write)| (position, &write.value))
    }

    /// What the writer of `position` knew.
    pub(crate) fn shown(&self, position: usize) -> &View {
        &self.0[position].shown
    }

    pub(crate) fn write(&mut self, value: V, shown: View) {
        self.0.push(Write { value, shown });
    }

    /// The last write shows this too (a read-modify-write that releases, and leaves the value).
    pub(crate) fn show(&mut self, more: &View) {
        self.0.last_mut().expect("a register has a value").shown.join(more);
    }

    /// The last write is overwritten by one that nobody can tell from it, and that shows nothing.
    pub(crate) fn overwrite(&mut self, value: V) {
        *self.0.last_mut().expect("a register has a value") =
            Write { value, shown: View::default() };
    }

    /// Forgets the first `n` writes.
    pub(crate) fn forget(&mut self, n: usize) {
        self.0.drain(..n);
    }

    pub(crate) fn rebase(&mut self, location: usize, n: usize) {
        self.0.iter_mut().for_each(|write| write.shown.rebase(location, n));
    }

    /// Nothing to tell it from a new one.
    pub(crate) fn is_only(&self, value: &V) -> bool {
        self.0.len() == 1 && self.value() == value && *self.shown(0) == View::default()
    }
}

/// For every view that is outside of a register.
pub(crate) fn rebase<'a>(views: impl IntoIterator<Item = &'a mut View>, location: usize, n: usize) {
    views.into_iter().for_each(|view| view.rebase(location, n));
}
