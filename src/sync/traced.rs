//! The atomics of `core`, noting each access: for the model of cache coherence in `benches/`, which asks which
//! cache lines an operation reads and writes. Chosen by `--cfg traced`; no part of the crate's interface.

use core::sync::atomic::Ordering;

use alloc::vec::Vec;
use std::cell::RefCell;

/// What an access does to its line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A load.
    Read,
    /// A store.
    Write,
    /// A read-modify-write, also one that fails.
    ReadModifyWrite,
}

/// One access to an atomic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Of the atomic.
    pub address: usize,
    /// What is done to it.
    pub kind: Kind,
}

std::thread_local! {
    static NOTED: RefCell<Option<Vec<Access>>> = const { RefCell::new(None) };
}

/// Runs `operation`, and notes what it accesses on this thread.
pub fn record<R>(operation: impl FnOnce() -> R) -> (R, Vec<Access>) {
    NOTED.set(Some(Vec::new()));
    let result = operation();
    (result, NOTED.take().unwrap_or_default())
}

fn note<A>(atomic: &A, kind: Kind) {
    let access = Access { address: core::ptr::from_ref(atomic).addr(), kind };
    NOTED.with_borrow_mut(|noted| {
        if let Some(noted) = noted {
            noted.push(access);
        }
    });
}

/// The operations that every kind of atomic has.
macro_rules! traced {
    ([$($generic:ident)?], $type:ident, $value:ty) => {
        #[derive(Default, Debug)]
        pub(crate) struct $type$(<$generic>)?(core::sync::atomic::$type$(<$generic>)?);

        #[allow(dead_code, reason = "which operations are used is the table's matter")]
        impl$(<$generic>)? $type$(<$generic>)? {
            pub(crate) const fn new(value: $value) -> Self {
                Self(core::sync::atomic::$type::new(value))
            }

            pub(crate) fn load(&self, order: Ordering) -> $value {
                note(self, Kind::Read);
                self.0.load(order)
            }

            pub(crate) fn store(&self, value: $value, order: Ordering) {
                note(self, Kind::Write);
                self.0.store(value, order);
            }

            pub(crate) fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                note(self, Kind::ReadModifyWrite);
                self.0.compare_exchange(current, new, success, failure)
            }

            /// Never fails without a reason here: what is traced is to be the same each time.
            pub(crate) fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            pub(crate) fn fetch_update(
                &self,
                success: Ordering,
                failure: Ordering,
                update: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                note(self, Kind::ReadModifyWrite);
                self.0.fetch_update(success, failure, update)
            }
        }
    };
}

/// The read-modify-writes of one kind of atomic.
macro_rules! updates {
    ([$($generic:ident)?], $type:ident, $value:ty, $operand:ty: $($name:ident)*) => {
        #[allow(dead_code, reason = "which operations are used is the table's matter")]
        impl$(<$generic>)? $type$(<$generic>)? {
            $(pub(crate) fn $name(&self, operand: $operand, order: Ordering) -> $value {
                note(self, Kind::ReadModifyWrite);
                self.0.$name(operand, order)
            })*
        }
    };
}

traced!([], AtomicBool, bool);
traced!([], AtomicU64, u64);
traced!([], AtomicUsize, usize);
traced!([T], AtomicPtr, *mut T);

updates!([], AtomicBool, bool, bool: swap fetch_or fetch_and);
updates!([], AtomicU64, u64, u64: swap fetch_or fetch_and fetch_xor fetch_add fetch_sub fetch_max);
updates!([], AtomicUsize, usize, usize: swap fetch_or fetch_and fetch_add fetch_sub fetch_max);
updates!([T], AtomicPtr, *mut T, *mut T: swap);
updates!([T], AtomicPtr, *mut T, usize: fetch_byte_add fetch_byte_sub fetch_or fetch_and);
