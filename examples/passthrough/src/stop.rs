//! When to unmount: asked once, as soon as nothing is open; asked twice, now.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

#[derive(Clone, Default)]
pub(crate) struct Stop {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    requests: Mutex<u32>,
    changed: Condvar,
}

impl Stop {
    /// Asks for it.
    pub(crate) fn request(&self) {
        *self.requests() += 1;
        self.shared.changed.notify_all();
    }

    /// To be called after a file has left the table.
    pub(crate) fn something_closed(&self) {
        // Taken, so that whoever waits is either before its look at the table or already waiting.
        drop(self.requests());
        self.shared.changed.notify_all();
    }

    /// Waits until this holds for the number of requests.
    pub(crate) fn wait_until(&self, holds: impl Fn(u32) -> bool) -> u32 {
        let requests = self.requests();
        *self
            .shared
            .changed
            .wait_while(requests, |requests| !holds(*requests))
            .expect("no panic under the lock")
    }

    fn requests(&self) -> MutexGuard<'_, u32> {
        self.shared.requests.lock().expect("no panic under the lock")
    }
}
