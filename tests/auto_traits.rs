//! Which types cross threads: with a `Send + Sync` file all of them, with any other none, as with an
//! `Arc`. A table hands out references to one file on many threads, and any of them may drop it.

use std::cell::Cell;
use std::error::Error;
use std::rc::Rc;
use std::sync::MutexGuard;

use fdtable::*;
use static_assertions::{assert_impl_all, assert_not_impl_any};

/// Neither `Send` nor `Sync`.
type Neither = Rc<()>;
/// `Send`, not `Sync`: may be moved to a thread, but not looked at from two.
type OnlySend = Cell<u8>;
/// `Sync`, not `Send`: may be looked at from two threads, but not dropped on another one.
type OnlySync = MutexGuard<'static, u8>;

assert_not_impl_any!(Neither: Send, Sync);
assert_impl_all!(OnlySend: Send);
assert_not_impl_any!(OnlySend: Sync);
assert_impl_all!(OnlySync: Sync);
assert_not_impl_any!(OnlySync: Send);

macro_rules! as_an_arc {
    ($($holder:ident<$($life:lifetime,)? T>)*) => {$(
        assert_impl_all!($holder<$($life,)? String>: Send, Sync);
        assert_not_impl_any!($holder<$($life,)? Neither>: Send, Sync);
        assert_not_impl_any!($holder<$($life,)? OnlySend>: Send, Sync);
        assert_not_impl_any!($holder<$($life,)? OnlySync>: Send, Sync);
    )*};
}

as_an_arc! {
    FdTable<T>
    Files<T>
    Observer<T>
    OwnedRef<T>
    OwnedReservation<T>
    Ref<'static, T>
    Reservation<'static, T>
    Limited<'static, T>
    Entry<'static, T>
    Iter<'static, T>
}

// A rejected file is a file.
assert_impl_all!(Rejected<String, ReserveError>: Send, Sync, Error);
assert_not_impl_any!(Rejected<Neither, ReserveError>: Send, Sync);
assert_not_impl_any!(Rejected<OnlySend, ReserveError>: Send, Sync);
assert_not_impl_any!(Rejected<OnlySync, ReplaceError>: Send, Sync);

// Options have no file yet, only how one is flushed.
assert_impl_all!(Options<Neither>: Send, Sync, Clone);

assert_impl_all!(BadFd: Send, Sync, Error, Copy);
assert_impl_all!(OutOfMemory: Send, Sync, Error, Copy);
assert_impl_all!(ReserveError: Send, Sync, Error, Copy);
assert_impl_all!(DupError: Send, Sync, Error, Copy);
assert_impl_all!(ReplaceError: Send, Sync, Error, Copy);
assert_impl_all!(CloseRangeError: Send, Sync, Error, Copy);
assert_impl_all!(RestoreError: Send, Sync, Error, Copy);
assert_impl_all!(CloseError: Send, Sync, Error, Copy);
assert_impl_all!(Errno: Send, Sync, Error, Copy);
assert_impl_all!(Fd: Send, Sync, Copy, Ord);
assert_impl_all!(TableId: Send, Sync, Copy, Ord);

// To copy any of these would be to forge a reference or a claim.
assert_not_impl_any!(Ref<'static, String>: Clone, Copy);
assert_not_impl_any!(Reservation<'static, String>: Clone, Copy);
assert_not_impl_any!(OwnedReservation<String>: Clone, Copy);
assert_impl_all!(OwnedRef<String>: Clone);
assert_not_impl_any!(OwnedRef<String>: Copy);
