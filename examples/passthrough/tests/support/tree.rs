//! Directory trees, entry by entry, and how they differ.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::Result;

/// What two trees must have in common of an entry. No times and no inode numbers.
#[derive(PartialEq, Debug)]
struct Entry {
    mode: u32,
    links: u64,
    owner: (u32, u32),
    content: Content,
}

#[derive(PartialEq)]
enum Content {
    File(Vec<u8>),
    Directory,
    Link(PathBuf),
    Other,
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Content::File(bytes) => write!(f, "{} bytes", bytes.len()),
            Content::Directory => f.write_str("a directory"),
            Content::Link(target) => write!(f, "-> {}", target.display()),
            Content::Other => f.write_str("special"),
        }
    }
}

/// Entries whose names end with one of `private` are the program's own affair.
pub(crate) fn differences(left: &Path, right: &Path, private: &[&str]) -> Result<Vec<String>> {
    let (left, right) = (tree(left, private)?, tree(right, private)?);
    let names = left.keys().chain(right.keys().filter(|name| !left.contains_key(*name)));
    let different = names.filter(|name| left.get(*name) != right.get(*name));
    Ok(different
        .map(|name| format!("{}: {:?} | {:?}", name.display(), left.get(name), right.get(name)))
        .collect())
}

fn tree(top: &Path, private: &[&str]) -> Result<BTreeMap<PathBuf, Entry>> {
    let mut entries = BTreeMap::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(top.join(&directory))? {
            let name = directory.join(entry?.file_name());
            if private.iter().any(|suffix| name.to_string_lossy().ends_with(suffix)) {
                continue;
            }
            let path = top.join(&name);
            let metadata = fs::symlink_metadata(&path)?;
            let kind = metadata.file_type();
            let content = if kind.is_file() {
                Content::File(fs::read(&path)?)
            } else if kind.is_dir() {
                directories.push(name.clone());
                Content::Directory
            } else if kind.is_symlink() {
                Content::Link(fs::read_link(&path)?)
            } else {
                assert!(kind.is_fifo() || kind.is_socket(), "{}", path.display());
                Content::Other
            };
            let (mode, links) = (metadata.mode(), metadata.nlink());
            let owner = (metadata.uid(), metadata.gid());
            entries.insert(name, Entry { mode, links, owner, content });
        }
    }
    Ok(entries)
}

/// Files and directories, without their times.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

pub(crate) fn text_differences(left: &str, right: &str) -> Vec<String> {
    let (mut left, mut right) = (left.lines(), right.lines());
    let mut different = Vec::new();
    loop {
        match (left.next(), right.next()) {
            (None, None) => return different,
            (left, right) if left == right => {}
            (left, right) => different.push(format!("{left:?} | {right:?}")),
        }
    }
}
