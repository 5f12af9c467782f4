//! Many threads at random operations, scheduled at random: `cargo shuttle` runs `tests/`. Without
//! `--cfg shuttle` there is nothing in them.

// `cargo shuttle` sets FDTABLE_SHUTTLE and `--cfg shuttle`, but a RUSTFLAGS from the environment replaces
// the latter: without this, the run would be green with no tests in it.
const _: () = assert!(
    option_env!("FDTABLE_SHUTTLE").is_none() || cfg!(all(shuttle, feature = "shuttle")),
    "`cargo shuttle` has lost its `--cfg shuttle`: unset RUSTFLAGS, or add `--cfg shuttle` to it"
);
