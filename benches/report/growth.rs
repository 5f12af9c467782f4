//! How long each insert takes on the way from an empty table to a million fds, while another thread reads.
//!
//! Each run has a process of its own, so that no earlier run has touched the memory. What the machine does to one
//! insert of one run is told from what the table does by taking each insert's best of several runs: the
//! table grows at the same numbers every time.

use std::hint::black_box;
use std::io::Write as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fdtable::FdTable;

use crate::peers::{MutexSlab, ParkingLotMutex, StdRwLock, Table};
use crate::rounds::threads::pin;

const CHILD: &str = "--growth";
const INSERTS: usize = 1_000_000;
const RUNS: usize = 3;

/// Whether memory has been touched before the table asks for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pages {
    Fresh,
    Touched,
}

pub(crate) struct Growth {
    pub(crate) table: &'static str,
    pub(crate) pages: Pages,
    /// Nanoseconds of all runs, ascending.
    pub(crate) all: Vec<u32>,
    /// The slowest insert, each at its best.
    pub(crate) slowest_at_best: u32,
}

impl Growth {
    /// The latency that this share of the inserts does not exceed.
    pub(crate) fn quantile(&self, share: f64) -> u32 {
        let at = (self.all.len() as f64 * share) as usize;
        self.all.get(at.min(self.all.len() - 1)).copied().unwrap_or_default()
    }
}

type Run = fn() -> Vec<u32>;

const TABLES: [(&str, Run); 4] = [
    (FdTable::<u64>::NAME, run::<FdTable<u64>>),
    (ParkingLotMutex::NAME, run::<ParkingLotMutex>),
    (StdRwLock::NAME, run::<StdRwLock>),
    (MutexSlab::NAME, run::<MutexSlab>),
];

/// Does one run and exits, if this process was started for it.
pub(crate) fn run_if_child() {
    let mut arguments = std::env::args().skip_while(|argument| argument != CHILD).skip(1);
    let (Some(table), Some(pages)) = (arguments.next(), arguments.next()) else { return };
    let (_, run) = TABLES.iter().find(|(name, _)| *name == table).expect("a table of that name");
    if pages == format!("{:?}", Pages::Touched) {
        touch();
    }
    let bytes: Vec<u8> = run().into_iter().flat_map(u32::to_le_bytes).collect();
    std::io::stdout().write_all(&bytes).expect("the parent reads");
    std::process::exit(0);
}

/// Makes the heap large, touches it, and gives it back to the allocator, which keeps it.
fn touch() {
    // SAFETY: it only sets when malloc goes to the system: never again.
    let trim = unsafe { libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX) };
    // SAFETY: as above.
    let mmap = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 30) };
    assert_eq!((trim, mmap), (1, 1), "the allocator is glibc's");
    let touched: Vec<_> = (0..4096).map(|_| black_box(vec![1_u8; 1 << 16])).collect();
    drop(touched);
}

fn run<T: Table>() -> Vec<u32> {
    let mut latencies = vec![1; INSERTS];
    let table = T::new(INSERTS);
    let first = table.insert(T::File::from(7));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            while !stop.load(Ordering::Relaxed) {
                black_box(table.read(first));
            }
        });
        pin(0);
        for latency in &mut latencies {
            let file = T::File::from(7);
            let began = Instant::now();
            black_box(table.insert(file));
            *latency = u32::try_from(began.elapsed().as_nanos()).unwrap_or(u32::MAX);
        }
        stop.store(true, Ordering::Relaxed);
    });
    latencies
}

pub(crate) fn measure() -> Result<Vec<Growth>, String> {
    let both = TABLES
        .iter()
        .flat_map(|(table, _)| [Pages::Fresh, Pages::Touched].map(|pages| growth_of(table, pages)));
    both.collect()
}

fn growth_of(table: &'static str, pages: Pages) -> Result<Growth, String> {
    let runs: Vec<_> = (0..RUNS).map(|_| run_child(table, pages)).collect::<Result<_, _>>()?;
    let best = |insert: usize| runs.iter().map(|run| run[insert]).min().unwrap_or_default();
    let slowest_at_best = (0..INSERTS).map(best).max().unwrap_or_default();
    let mut all: Vec<_> = runs.concat();
    all.sort_unstable();
    Ok(Growth { table, pages, all, slowest_at_best })
}

fn run_child(table: &str, pages: Pages) -> Result<Vec<u32>, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .args([CHILD, table, &format!("{pages:?}")])
        .output()
        .map_err(|error| error.to_string())?;
    let (words, _) = output.stdout.as_chunks::<4>();
    if words.len() != INSERTS {
        return Err(format!("growth of {table}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
}
