//! What the models in `tests/` are made of: `Race`, which runs one, `World`, the table it runs
//! on, and `File`, which notices if it is leaked, dropped twice or used too late.
//!
//! `cargo loom` runs them. Without `--cfg loom` there are no models.
//!
//! And what a table may do, for models and for real threads alike, in plain code: `spec`, the table as it
//! should be, `history`, the judge of what threads were told, and `session`, who asks the real one.

// `cargo loom` sets FDTABLE_LOOM and `--cfg loom`, but a RUSTFLAGS from the environment replaces the
// latter: without this, the run would be green with no models in it.
const _: () = assert!(
    option_env!("FDTABLE_LOOM").is_none() || cfg!(all(loom, feature = "loom")),
    "`cargo loom` has lost its `--cfg loom`: unset RUSTFLAGS, or add `--cfg loom` to it"
);

pub mod history;
mod register;
pub mod session;
pub mod spec;
mod steps;

#[cfg(all(loom, feature = "loom"))]
mod file;
#[cfg(all(loom, feature = "loom"))]
mod race;
#[cfg(all(loom, feature = "loom"))]
mod world;

#[cfg(all(loom, feature = "loom"))]
pub use {
    file::{File, Ledger},
    race::Race,
    world::World,
};
