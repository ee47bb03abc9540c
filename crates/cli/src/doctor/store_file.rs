//! Whether the file of a store can be made or written where it is meant to be. Nothing that is tried stays.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use plimsoll_store::StoreAddress;

/// Bytes that must fit beside a store (chosen: about as much as an empty one takes).
const ROOM: usize = 256 << 10;

/// Checks that a store which is a file can be made or written; one that is reached over a network is not looked at.
pub(super) fn check(address: &StoreAddress) -> Result<(), String> {
    let address = address.to_string();
    let path = match address.split_once("://") {
        None => Path::new(&address),
        Some(("sqlite", path)) => Path::new(path),
        Some(_) => return Ok(()),
    };
    let cannot = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
    if let Ok(meant) = path.canonicalize() {
        // SQLite opens a file that it may not write for reading, and says so at the first write only.
        if meant.is_file() {
            OpenOptions::new().write(true).open(&meant).map_err(|error| cannot(path, error))?;
        }
        // Its log is made beside it.
        return take(&folder_of(&meant));
    }
    if path.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
        return Err(format!("{} is a link to nothing that is there", path.display()));
    }
    take(&folder_of(path))
}

/// Returns the folder that a file is in, or the nearest one that is there: the others are made with the store.
fn folder_of(path: &Path) -> PathBuf {
    let mut folders = path.ancestors().skip(1).filter(|folder| *folder != Path::new(""));
    let found = folders.find(|folder| folder.symlink_metadata().is_ok());
    found.map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// Makes a file in a folder, fills it and removes it.
fn take(folder: &Path) -> Result<(), String> {
    if !folder.is_dir() {
        return Err(format!("{} is no folder", folder.display()));
    }
    let cannot = |error: std::io::Error| format!("{} cannot be written: {error}", folder.display());
    let mut file =
        tempfile::Builder::new().prefix(".plimsoll-").tempfile_in(folder).map_err(cannot)?;
    file.write_all(&vec![0; ROOM]).and_then(|()| file.as_file().sync_all()).map_err(cannot)?;
    file.close().map_err(cannot)
}
