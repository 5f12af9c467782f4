//! Arbitrary programs for two or three threads, on the first numbers or where the first word ends; what
//! they were told is judged by `loom_tests::history`.
//!
//! A program is played a few times: which of its histories come about is up to the machine.
//!
//! `cargo +nightly fuzz run threads`
#![no_main]

use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use arbitrary::Arbitrary;
use fdtable::{CloseRange, FdFlags, FdTable, Options};
use libfuzzer_sys::fuzz_target;
use loom_tests::history::{Clock, History, Log, Record};
use loom_tests::session::{NONE, Names, Session};
use loom_tests::spec::{File, Op};

/// How often, half of the times with a clock.
const ROUNDS: usize = 4;
/// Of each thread. With more the judge takes seconds for some.
const CALLS: usize = 3;
const SETUP: usize = 6;
const THREADS: usize = 3;
/// No limit is above this, so far from the base.
const END: u32 = 7;

/// Up to one beyond the limit, and -1.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Number(u8);

impl Number {
    fn get(self) -> i64 {
        i64::from(self.0 % (END as u8 + 2)) - 1
    }

    fn unsigned(self) -> u32 {
        u32::from(self.0) % (END + 1)
    }
}

/// Bits of an `FdFlags`.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Flags(u8);

impl Flags {
    fn get(self) -> FdFlags {
        FdFlags::from_bits_truncate(self.0)
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Call {
    Get(Number),
    Flags(Number),
    SetFlags(Number, Flags),
    Insert(Flags),
    InsertFrom(Number, Flags),
    Reserve(Number, u8),
    ReservePair,
    Install(Flags),
    Abandon,
    Remove(Number),
    Close(Number),
    Replace(Number, Flags),
    Dup(Number),
    DupFrom(Number, Number, Flags),
    Dup2(Number, Number),
    Dup3(Number, Number, Flags),
    Renumber(Number, Number),
    CloseRange(Number, Number, u8),
    CloseOnExec,
    Fork,
    Iterate,
    SetLimit(Number),
}

/// All of full length, so that bytes at random are long programs.
#[derive(Arbitrary, Debug)]
struct Program {
    /// Whether it is about the last three numbers of the first word and those above.
    at_the_border: bool,
    limit: Number,
    /// What is open at first.
    setup: [Option<Flags>; SETUP],
    threads: [(u8, [Call; CALLS]); THREADS],
}

/// Names the files, in the order in which they are asked for.
#[derive(Default)]
struct Ops {
    files: u32,
    base: u32,
}

impl Ops {
    fn file(&mut self) -> File {
        self.files += 1;
        File(self.files - 1)
    }

    fn op(&mut self, call: Call) -> Op {
        match call {
            Call::Get(fd) => Op::Get(fd.get()),
            Call::Flags(fd) => Op::Flags(fd.get()),
            Call::SetFlags(fd, flags) => Op::SetFlags(fd.get(), flags.get()),
            Call::Insert(flags) => Op::Insert { min: 0, file: self.file(), flags: flags.get() },
            Call::InsertFrom(min, flags) => {
                Op::Insert { min: min.get(), file: self.file(), flags: flags.get() }
            }
            Call::Reserve(start, length) => {
                let start = start.unsigned();
                Op::Reserve(start..start + u32::from(length))
            }
            Call::ReservePair => Op::ReservePair,
            Call::Install(flags) => Op::Install { file: self.file(), flags: flags.get() },
            Call::Abandon => Op::Abandon,
            Call::Remove(fd) => Op::Remove(fd.get()),
            Call::Close(fd) => Op::Close(fd.get()),
            Call::Replace(fd, flags) => {
                Op::Replace { fd: fd.get(), file: self.file(), flags: flags.get() }
            }
            Call::Dup(fd) => Op::Dup(fd.get()),
            Call::DupFrom(fd, min, flags) => {
                Op::DupFrom { fd: fd.get(), min: min.get(), flags: flags.get() }
            }
            Call::Dup2(old, new) => Op::Dup2 { old: old.get(), new: new.get() },
            Call::Dup3(old, new, flags) => {
                Op::Dup3 { old: old.get(), new: new.get(), flags: flags.get() }
            }
            Call::Renumber(from, to) => Op::Renumber { from: from.get(), to: to.get() },
            Call::CloseRange(first, last, bits) => {
                let all = [CloseRange::CLOEXEC, CloseRange::CLOEXEC_ONLY, CloseRange::EXCEPT];
                // What lies below the base stays.
                let all = &all[..if self.base == 0 { 3 } else { 2 }];
                let set = all.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 != 0);
                let how = set.map(|(_, &how)| how).collect();
                Op::CloseRange { first: first.unsigned(), last: last.unsigned(), how }
            }
            Call::CloseOnExec => Op::CloseOnExec,
            Call::Fork => Op::Fork,
            Call::Iterate => Op::Iterate,
            Call::SetLimit(limit) => Op::SetLimit(limit.unsigned().into()),
        }
    }
}

/// Where the threads of a round meet. They spin: those that are woken come one after the other.
struct Start(AtomicUsize);

impl Start {
    fn wait(&self) {
        self.0.fetch_sub(1, SeqCst);
        let mut spins = 0;
        while self.0.load(SeqCst) > 0 {
            spins += 1;
            // There may be more threads than processors.
            if spins % 200 == 0 { thread::yield_now() } else { spin_loop() }
        }
    }
}

struct Round {
    table: FdTable<File>,
    clock: Option<Clock>,
    start: Start,
    setup: Vec<Record>,
}

impl Round {
    fn new(number: usize, base: u32, limit: u32, setup: &[Op], threads: usize) -> Round {
        let table = Options::new().limit((base + limit).into()).build();
        for _ in 0..base {
            table.insert(File(u32::MAX), NONE).expect("below the limit");
        }
        let setup = {
            let (mut session, mut log) = (Session::new(&table, &Names, base), Log::default());
            setup.iter().for_each(|op| log.call(&mut session, op));
            log.into_records([])
        };
        let clock = number.is_multiple_of(2).then(Clock::default);
        Round { table, clock, start: Start(AtomicUsize::new(threads)), setup }
    }

    fn play(&self, base: u32, ops: &[Op]) -> Vec<Record> {
        let mut session = Session::new(&self.table, &Names, base);
        let mut log = Log::new(self.clock.as_ref());
        self.start.wait();
        ops.iter().for_each(|op| log.call(&mut session, op));
        while session.has_reservations() {
            log.call(&mut session, &Op::Abandon);
        }
        let children = session.into_children();
        log.into_records(children.iter().map(|child| Session::open(&Names, child, base)))
    }
}

fuzz_target!(|program: Program| {
    let mut ops = Ops { base: if program.at_the_border { 61 } else { 0 }, ..Ops::default() };
    let (base, limit) = (ops.base, program.limit.unsigned());
    let open = (0..).zip(program.setup).filter_map(|(fd, flags)| Some((fd, flags?)));
    let setup: Vec<Op> =
        open.map(|(fd, flags)| Op::Replace { fd, file: ops.file(), flags: flags.get() }).collect();
    let mut thread = |(length, calls): (u8, [Call; CALLS])| {
        let length = usize::from(length) % (CALLS + 1);
        calls.into_iter().take(length).map(|call| ops.op(call)).collect()
    };
    let threads: Vec<Vec<Op>> = program.threads.map(&mut thread).into();
    let round = |number| Round::new(number, base, limit, &setup, threads.len());
    let rounds: Vec<Round> = (0..ROUNDS).map(round).collect();
    let play = |ops: &Vec<Op>| rounds.iter().map(|round| round.play(base, ops)).collect();
    let played: Vec<Vec<Vec<Record>>> = thread::scope(|scope| {
        let started: Vec<_> = threads.iter().map(|ops| scope.spawn(|| play(ops))).collect();
        started.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    for (number, Round { table, setup, .. }) in rounds.into_iter().enumerate() {
        let history = History {
            bounds: (table.max() - base, limit.into()),
            setup,
            threads: played.iter().map(|rounds| rounds[number].clone()).collect(),
            open: Session::open(&Names, &table, base),
            reserved: Session::<_, Names>::reserved(&table, base, END),
        };
        if let Err(inexplicable) = history.explain() {
            panic!("{inexplicable:?}");
        }
    }
});
