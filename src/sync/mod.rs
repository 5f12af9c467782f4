//! The primitives of `core`; or loom's under the model checker, or those of the randomized scheduler
//! shuttle; or `core`'s with a note of each access (`cfg(traced)`). With `geometry.rs` the only place that
//! knows of these.
//!
//! Two defects of loom 0.7.3 are worked around here, each by an operation that is a plain
//! load or store outside of loom:
//! * `load_for_update`, the load before a compare-and-swap: loom remembers one last access per
//!   atomic, so a thread's own load hides another thread's earlier one, and runs are missed. Under
//!   loom it is a read-modify-write that changes nothing.
//! * `overwrite`, a store that races with read-modify-writes: loom invents results that C11
//!   forbids. Under loom it is a swap.

#[cfg(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle")))]
mod checked;
#[cfg(not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle"))))]
mod lock;
#[cfg(all(loom, feature = "loom"))]
mod loom;
#[cfg(not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle"))))]
mod native;
#[cfg(not(all(loom, feature = "loom")))]
mod plain;
#[cfg(all(shuttle, feature = "shuttle"))]
mod shuttle;
#[cfg(traced)]
pub mod traced;

pub(crate) use core::sync::atomic::Ordering;

pub(crate) trait ForUpdate<V> {
    fn load_for_update(&self, order: Ordering) -> V;
}

pub(crate) trait Overwrite<V> {
    fn overwrite(&self, value: V, order: Ordering);
}

#[cfg(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle")))]
pub(crate) use checked::*;

#[cfg(all(loom, feature = "loom"))]
pub(crate) use self::loom::*;
#[cfg(all(shuttle, feature = "shuttle"))]
pub(crate) use self::shuttle::*;
#[cfg(not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle"))))]
pub(crate) use {
    lock::{Guard, Mutex},
    native::*,
};
