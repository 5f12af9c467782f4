//! The lowest free number, for tables that only map numbers to files.

use parking_lot::Mutex;

/// A bitmap under a lock, with a hint.
#[derive(Default)]
pub(super) struct Numbers(Mutex<Bitmap>);

#[derive(Default)]
struct Bitmap {
    words: Vec<u64>,
    /// No word below this has a number free.
    lowest: usize,
}

impl Numbers {
    #[inline(always)]
    pub(super) fn claim(&self) -> usize {
        let mut bitmap = self.0.lock();
        let lowest = bitmap.lowest;
        let free = bitmap.words[lowest..].iter().position(|&word| word != u64::MAX);
        let index = free.map_or(bitmap.words.len(), |free| lowest + free);
        if index == bitmap.words.len() {
            bitmap.words.push(0);
        }
        bitmap.lowest = index;
        let bit = bitmap.words[index].trailing_ones() as usize;
        bitmap.words[index] |= 1 << bit;
        index * 64 + bit
    }

    #[inline(always)]
    pub(super) fn release(&self, fd: usize) {
        let mut bitmap = self.0.lock();
        bitmap.words[fd / 64] &= !(1 << (fd % 64));
        bitmap.lowest = bitmap.lowest.min(fd / 64);
    }
}
