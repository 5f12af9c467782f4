//! The payload: a file that notices what must never happen to it.

use std::sync::{Arc, Mutex};

use fdtable::OwnedRef;
use loom::cell::UnsafeCell;
use loom::thread::{ThreadId, current};

/// A file with a name. Made by [`Ledger::file`].
pub struct File {
    name: &'static str,
    /// Written before the file is handed over, read by every use and written by the destructor: loom
    /// reports a use that does not happen after the former and before the latter.
    alive: UnsafeCell<bool>,
    ledger: Ledger,
}

// SAFETY: loom's cell checks on every access that none is concurrent.
unsafe impl Sync for File {}

impl File {
    /// Uses the file.
    pub fn name(&self) -> &'static str {
        // SAFETY: loom has checked that no write is concurrent.
        let alive = self.alive.with(|alive| unsafe { *alive });
        assert!(alive, "{} is used after its destructor", self.name);
        self.name
    }

    /// Changes the file, which nobody else may use before it has been handed over.
    pub fn prepare(&self) {
        // SAFETY: loom has checked that no access is concurrent.
        self.alive.with_mut(|alive| unsafe { *alive = true });
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.ledger.destroyed(self.name);
        // SAFETY: loom has checked that no access is concurrent.
        self.alive.with_mut(|alive| unsafe { *alive = false });
    }
}

/// The files of one run: which live, and who ran the destructors of the others. Not known to loom,
/// so that it orders nothing between the threads.
#[derive(Clone, Default)]
pub struct Ledger(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    live: Vec<&'static str>,
    destroyed: Vec<(&'static str, &'static str)>,
    roles: Vec<(ThreadId, &'static str)>,
}

impl Ledger {
    fn entries(&self) -> std::sync::MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A new file, whose name is unique in the run.
    ///
    /// To be called before the race: were files allocated in the race, a new one could get the
    /// address of one that is gone, or not; and loom needs runs that can be repeated.
    pub fn file(&self, name: &'static str) -> OwnedRef<File> {
        self.entries().live.push(name);
        OwnedRef::new(File { name, alive: UnsafeCell::new(true), ledger: self.clone() })
    }

    fn destroyed(&self, name: &'static str) {
        let mut entries = self.entries();
        let Some(at) = entries.live.iter().position(|&live| live == name) else {
            drop(entries);
            panic!("{name} is destroyed twice");
        };
        entries.live.remove(at);
        let thread = current().id();
        let role = entries.roles.iter().find(|(id, _)| *id == thread).map_or("end", |(_, r)| r);
        entries.destroyed.push((name, role));
    }

    /// Who has run the destructor of `name`: a role, `end` after the race, or `nobody`.
    pub fn destroyer(&self, name: &str) -> &'static str {
        let entries = self.entries();
        entries.destroyed.iter().find(|(n, _)| *n == name).map_or("nobody", |(_, role)| role)
    }

    /// The calling thread plays `role` from now on.
    pub(crate) fn enter(&self, role: &'static str) {
        let thread = current().id();
        let mut entries = self.entries();
        entries.roles.retain(|(id, _)| *id != thread);
        entries.roles.push((thread, role));
    }

    /// The race is over.
    pub(crate) fn leave_all(&self) {
        self.entries().roles.clear();
    }

    /// Whatever was created must be gone.
    pub fn close(&self) {
        let live = std::mem::take(&mut self.entries().live);
        assert!(live.is_empty(), "leaked: {live:?}");
    }
}
