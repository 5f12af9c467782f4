//! `fdtable` against the kernel it runs on: random sequences of system calls, each made for real and
//! on the model at once, with everything that can be seen compared after every step. And threads that do
//! the same on either table, with what must hold of both; `FDTABLE_KERNEL_OPERATIONS` says how many.
//!
//! A failure prints the smallest sequence and a seed: `FDTABLE_SEED=… cargo test --test kernel` makes
//! the same run again. Linux 5.11 or later, and a hard limit of 1024 open files.

#[cfg(all(target_os = "linux", not(miri)))]
mod linux;

#[cfg(not(all(target_os = "linux", not(miri))))]
#[test]
fn random_sequences() {
    println!("kernel: skipped, there is no Linux kernel to compare with");
}
