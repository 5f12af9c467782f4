//! The file layer: what an open consumes, what a close runs and in which order, what a write strips.

mod closing;
mod counting;
mod deferred;
mod opening;
mod privileges;
