//! Concurrent maps from numbers to `Arc`s, with a bitmap for the numbers.

use std::sync::Arc;

use super::Table;
use super::numbers::Numbers;

macro_rules! map {
    ($type:ident, $name:literal, $map:ty, $insert:expr, $get:expr, $remove:expr) => {
        #[derive(Default)]
        pub(crate) struct $type {
            numbers: Numbers,
            files: $map,
        }

        impl Table for $type {
            const NAME: &'static str = $name;
            type File = Arc<u64>;

            fn new(_: usize) -> Self {
                Self::default()
            }

            #[inline(always)]
            fn insert(&self, file: Arc<u64>) -> usize {
                let fd = self.numbers.claim();
                $insert(&self.files, fd, file);
                fd
            }

            #[inline(always)]
            fn read(&self, fd: usize) -> Option<u64> {
                let file: Option<Arc<u64>> = $get(&self.files, fd);
                file.map(|file| *file)
            }

            #[inline(always)]
            fn remove(&self, fd: usize) -> Option<Arc<u64>> {
                let file: Option<Arc<u64>> = $remove(&self.files, fd);
                file.inspect(|_| self.numbers.release(fd))
            }
        }
    };
}

type PapayaMap = papaya::HashMap<usize, Arc<u64>>;
type DashMapMap = dashmap::DashMap<usize, Arc<u64>>;
type SccMap = scc::HashMap<usize, Arc<u64>>;

map!(
    Papaya,
    "papaya",
    PapayaMap,
    |map: &PapayaMap, fd, file| drop(map.pin().insert(fd, file).cloned()),
    |map: &PapayaMap, fd| map.pin().get(&fd).cloned(),
    |map: &PapayaMap, fd| map.pin().remove(&fd).cloned()
);
map!(
    DashMap,
    "dashmap",
    DashMapMap,
    |map: &DashMapMap, fd, file| drop(map.insert(fd, file)),
    |map: &DashMapMap, fd| map.get(&fd).map(|entry| entry.value().clone()),
    |map: &DashMapMap, fd| map.remove(&fd).map(|(_, file)| file)
);
map!(
    Scc,
    "scc",
    SccMap,
    |map: &SccMap, fd, file| drop(map.upsert_sync(fd, file)),
    |map: &SccMap, fd| map.read_sync(&fd, |_, file| file.clone()),
    |map: &SccMap, fd| map.remove_sync(&fd).map(|(_, file)| file)
);
