//! What a sequence is made of, and how one is drawn.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::select;

/// A file descriptor as drawn, or any other argument of its kind. What it is depends on the task.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    At(i32),
    /// So far from the soft limit.
    Limit(i32),
    /// One of the open ones, modulo their count; the number itself if there is none.
    Open(u8),
}

/// A system call, with numbers as drawn (`Op<Number>`) or as made (`Op<i32>`).
#[derive(Clone, Debug)]
pub(super) enum Op<N> {
    Dup(N),
    Dup2(N, N),
    /// With flags of `open`.
    Dup3(N, N, i32),
    DupFd(N, N),
    DupFdCloexec(N, N),
    Close(N),
    /// The numbers are reinterpreted as unsigned: -1 is the last one.
    CloseRange(N, N, u32),
    GetFd(N),
    SetFd(N, i32),
    /// With flags of `open`, as the next.
    Pipe(i32),
    Open(i32),
    /// A path that does not exist.
    OpenMissing,
    /// The soft `RLIMIT_NOFILE`.
    SetLimit(u64),
    Unshare,
    /// A new task with a copy of the table, or one that shares it. It acts from now on, too.
    Fork,
    Share,
    /// The end of a task; of the only one, nothing.
    Exit,
    /// A new task, with a copy or sharing the table, that execs and ends.
    ForkExec,
    ShareExec,
}

impl<N: Copy> Op<N> {
    pub(super) fn map<M>(&self, mut f: impl FnMut(N) -> M) -> Op<M> {
        match *self {
            Op::Dup(fd) => Op::Dup(f(fd)),
            Op::Dup2(old, new) => Op::Dup2(f(old), f(new)),
            Op::Dup3(old, new, flags) => Op::Dup3(f(old), f(new), flags),
            Op::DupFd(fd, min) => Op::DupFd(f(fd), f(min)),
            Op::DupFdCloexec(fd, min) => Op::DupFdCloexec(f(fd), f(min)),
            Op::Close(fd) => Op::Close(f(fd)),
            Op::CloseRange(first, last, how) => Op::CloseRange(f(first), f(last), how),
            Op::GetFd(fd) => Op::GetFd(f(fd)),
            Op::SetFd(fd, flags) => Op::SetFd(f(fd), flags),
            Op::Pipe(flags) => Op::Pipe(flags),
            Op::Open(flags) => Op::Open(flags),
            Op::OpenMissing => Op::OpenMissing,
            Op::SetLimit(limit) => Op::SetLimit(limit),
            Op::Unshare => Op::Unshare,
            Op::Fork => Op::Fork,
            Op::Share => Op::Share,
            Op::Exit => Op::Exit,
            Op::ForkExec => Op::ForkExec,
            Op::ShareExec => Op::ShareExec,
        }
    }
}

/// One call by one of the tasks that are alive: `task` modulo their number.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) task: u8,
    pub(super) op: Op<Number>,
}

#[derive(Clone, Debug)]
pub(super) struct Sequence {
    /// At the start every number below this is open, at least 0, 1 and 2.
    pub(super) full: i32,
    /// What else is open at the start, and whether it has CLOEXEC.
    pub(super) open: BTreeMap<i32, bool>,
    /// The soft limit at the start.
    pub(super) limit: u64,
    pub(super) steps: Vec<Step>,
}

/// Where words, the kernel's tables, and the type of a file descriptor end.
const EDGES: &[i32] = &[
    63,
    64,
    65,
    127,
    128,
    129,
    255,
    256,
    1023,
    1024,
    1025,
    (1 << 20) - 1,
    1 << 20,
    (1 << 20) + 1,
    i32::MAX - 1,
    i32::MAX,
    -1,
    -2,
    i32::MIN,
];

/// Soft limits. The last one stands for the hard limit.
const LIMITS: &[u64] = &[
    1024,
    256,
    20,
    10,
    5,
    3,
    1,
    0,
    63,
    64,
    65,
    100,
    127,
    128,
    129,
    1023,
    1025,
    1030,
    u64::MAX,
    u64::MAX,
];

/// Sometimes whole words are full at the start. Many open numbers cost time.
const FULL: &[i32] = &[63, 64, 127, 128, 200, 256];

pub(super) fn sequence() -> impl Strategy<Value = Sequence> {
    let number = prop_oneof![3 => 3..70_i32, 1 => 70..1100_i32];
    let open = prop::collection::btree_map(number, any::<bool>(), 0..6);
    let steps = prop::collection::vec(step(), 1..120);
    let full = prop_oneof![7 => Just(3), 1 => select(FULL)];
    (full, open, select(LIMITS), steps).prop_map(|(full, open, limit, steps)| Sequence {
        full,
        open,
        limit,
        steps,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let task = prop_oneof![Just(0_u8), any::<u8>()];
    (task, op()).prop_map(|(task, op)| Step { task, op })
}

fn number() -> impl Strategy<Value = Number> + Clone {
    prop_oneof![
        6 => (0..8).prop_map(Number::At),
        2 => (8..140).prop_map(Number::At),
        4 => select(EDGES).prop_map(Number::At),
        3 => (-2..=1).prop_map(Number::Limit),
        6 => any::<u8>().prop_map(Number::Open),
    ]
}

fn op() -> impl Strategy<Value = Op<Number>> {
    // So that calls that need an open one mostly get one.
    let open = prop_oneof![number(), any::<u8>().prop_map(Number::Open)];
    let cloexec = select(&[0, libc::O_CLOEXEC][..]);
    // Of flags of a file only those are tried that the call does not know.
    let dup3_flags = select(&[0, libc::O_CLOEXEC, libc::O_NONBLOCK, libc::O_CLOEXEC | 1][..]);
    // More bits than FD_CLOEXEC are ignored.
    let fd_flags = select(&[0, libc::FD_CLOEXEC, !libc::FD_CLOEXEC, -1][..]);
    prop_oneof![
        10 => open.clone().prop_map(Op::Dup),
        12 => (open.clone(), number()).prop_map(|(old, new)| Op::Dup2(old, new)),
        8 => (open.clone(), number(), dup3_flags).prop_map(|(old, new, f)| Op::Dup3(old, new, f)),
        10 => (open.clone(), number()).prop_map(|(fd, min)| Op::DupFd(fd, min)),
        6 => (open.clone(), number()).prop_map(|(fd, min)| Op::DupFdCloexec(fd, min)),
        12 => open.clone().prop_map(Op::Close),
        6 => close_range(),
        3 => open.clone().prop_map(Op::GetFd),
        6 => (open, fd_flags).prop_map(|(fd, flags)| Op::SetFd(fd, flags)),
        6 => cloexec.clone().prop_map(Op::Pipe),
        12 => cloexec.prop_map(Op::Open),
        4 => Just(Op::OpenMissing),
        8 => select(LIMITS).prop_map(Op::SetLimit),
        3 => Just(Op::Unshare),
        3 => Just(Op::Fork),
        4 => Just(Op::Share),
        4 => Just(Op::Exit),
        1 => Just(Op::ForkExec),
        1 => Just(Op::ShareExec),
    ]
}

fn close_range() -> impl Strategy<Value = Op<Number>> {
    let (unshare, cloexec) = (libc::CLOSE_RANGE_UNSHARE, libc::CLOSE_RANGE_CLOEXEC);
    let how = prop_oneof![
        6 => select(vec![0, unshare, cloexec, unshare | cloexec]),
        // Bits that Linux does not know; some of them mean something to the crate.
        1 => select(vec![1, 8, unshare | 1, 1 << 16, cloexec | 1 << 17, u32::MAX]),
    ];
    let last = prop_oneof![number(), Just(Number::At(-1))];
    // Both ends anywhere, or a short range that is not empty.
    let ends = prop_oneof![
        (number(), last),
        (0..140_i32, 0..70_i32)
            .prop_map(|(first, count)| { (Number::At(first), Number::At(first + count)) }),
    ];
    (ends, how).prop_map(|((first, last), how)| Op::CloseRange(first, last, how))
}
