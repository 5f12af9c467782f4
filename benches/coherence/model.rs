//! Which cores have which cache lines: the MESI protocol, with caches that never overflow.

use std::collections::HashMap;

use super::subjects::Access;

/// Cores that the model can have.
pub(crate) const CORES: usize = 256;

/// A set of cores.
#[derive(Clone, Copy, Default, PartialEq)]
struct Cores([u64; CORES / 64]);

impl Cores {
    fn only(core: usize) -> Self {
        let mut cores = Cores::default();
        cores.add(core);
        cores
    }

    fn add(&mut self, core: usize) {
        self.0[core / 64] |= 1 << (core % 64);
    }

    fn has(&self, core: usize) -> bool {
        self.0[core / 64] >> (core % 64) & 1 != 0
    }

    fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

/// Who holds a line. MESI's *shared* with several holders; *modified* and *exclusive* with one, who may write
/// without asking, so they need not be told apart.
#[derive(Clone, Copy)]
enum Line {
    Shared(Cores),
    Exclusive(usize),
}

/// The caches, and what has happened to them.
#[derive(Default)]
pub(crate) struct Caches {
    lines: HashMap<u64, Line>,
    /// Accesses that had to wait for another core's cache.
    pub(crate) misses: u64,
    /// Copies that other cores lost by writes.
    pub(crate) invalidations: u64,
}

impl Caches {
    /// `core` accesses a line. The first access of all is not counted: the line comes from memory.
    pub(crate) fn access(&mut self, core: usize, access: Access) {
        let (Access::Read(line) | Access::Write(line)) = access;
        let Some(state) = self.lines.get_mut(&line) else {
            self.lines.insert(line, Line::Exclusive(core));
            return;
        };
        let holders = match *state {
            Line::Shared(cores) => cores,
            Line::Exclusive(owner) => Cores::only(owner),
        };
        match (access, *state) {
            (_, Line::Exclusive(owner)) if owner == core => {}
            (Access::Read(_), _) if holders.has(core) => {}
            (Access::Read(_), _) => {
                self.misses += 1;
                let mut holders = holders;
                holders.add(core);
                *state = Line::Shared(holders);
            }
            (Access::Write(_), _) => {
                let others = holders.count() - u32::from(holders.has(core));
                self.misses += u64::from(others > 0);
                self.invalidations += u64::from(others);
                *state = Line::Exclusive(core);
            }
        }
    }
}

/// The model's own rules, on the smallest examples: run before anything is believed.
pub(crate) fn check() {
    use Access::{Read, Write};
    /// Who does what, and the misses and invalidations that follow.
    type Example = (&'static [(usize, Access)], (u64, u64));
    let examples: [Example; 6] = [
        (&[(0, Write(1)), (0, Read(1)), (0, Write(1))], (0, 0)),
        (&[(0, Write(1)), (1, Read(1)), (0, Read(1))], (1, 0)),
        (&[(0, Write(1)), (1, Read(1)), (0, Write(1))], (2, 1)),
        (&[(0, Read(1)), (1, Read(1)), (2, Read(1)), (3, Write(1)), (0, Read(1))], (4, 3)),
        (&[(0, Write(1)), (1, Write(1)), (0, Write(1))], (2, 2)),
        (&[(0, Write(1)), (1, Write(2)), (0, Write(1)), (255, Read(2))], (1, 0)),
    ];
    for (accesses, expected) in examples {
        let mut caches = Caches::default();
        accesses.iter().for_each(|&(core, access)| caches.access(core, access));
        assert_eq!((caches.misses, caches.invalidations), expected, "{accesses:?}");
    }
}
