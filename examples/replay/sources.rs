//! Where traces come from: files, folders of them, and those that are bundled with this example.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

/// The folder of traces that is bundled with this example.
pub(crate) fn bundled() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/replay/traces")
}

/// The traces that `path` stands for: the file itself, or those in the folder and below, sorted.
pub(crate) fn find(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut found = Vec::new();
    find_below(path, &mut found)?;
    found.sort();
    if found.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "expected .fdt or .fdt.gz files in it",
        ));
    }
    Ok(found)
}

fn find_below(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        // Not through a link, which may lead back here.
        if entry.file_type()?.is_dir() {
            find_below(&path, found)?;
        } else if is_trace(&path) && path.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

fn is_trace(path: &Path) -> bool {
    let unpacked = if is_packed(path) { path.file_stem() } else { path.file_name() };
    unpacked.is_some_and(|name| Path::new(name).extension() == Some(OsStr::new("fdt")))
}

fn is_packed(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("gz"))
}

/// Opens a trace, unpacking it on the way if its name ends in `.gz`.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let file = BufReader::new(File::open(path)?);
    if is_packed(path) {
        Ok(Box::new(BufReader::new(MultiGzDecoder::new(file))))
    } else {
        Ok(Box::new(file))
    }
}
