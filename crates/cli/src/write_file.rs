//! Writing files whole or not at all.

use std::io::Write as _;
use std::path::Path;

use crate::error::CommandError;

/// The handling of a file that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    /// Leave it and say so.
    Refuse,
    Replace,
}

/// Writes `bytes` to `path` through a file beside it, so that a reader sees the old content or the new, never a part.
pub(crate) fn write_file(
    path: &Path,
    bytes: &[u8],
    existing: Existing,
) -> Result<(), CommandError> {
    let cannot = |error: std::io::Error| {
        CommandError::failure(
            anyhow::Error::new(error).context(format!("cannot write {}", path.display())),
        )
    };
    refuse(path, existing)?;
    // A device or a pipe is written to, not replaced; behind a link stands the file that is meant.
    let meant = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let path = meant.as_path();
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return std::fs::write(path, bytes).map_err(cannot);
    }
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".plimsoll-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // As any new file: the umask takes away what the user does not want to give.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder).map_err(cannot)?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(cannot)?;
    let done = match existing {
        Existing::Replace => file.persist(path),
        Existing::Refuse => file.persist_noclobber(path),
    };
    done.map(|_| ()).map_err(|failed| cannot(failed.error))
}

/// Refuses a path that cannot be written, before any work is done for it.
pub(crate) fn refuse(path: &Path, existing: Existing) -> Result<(), CommandError> {
    if path.is_dir() {
        return Err(CommandError::usage(anyhow::anyhow!("{} is a folder", path.display()))
            .hint("give the name of a file in it"));
    }
    if existing == Existing::Refuse && path.symlink_metadata().is_ok() {
        return Err(CommandError::usage(anyhow::anyhow!("{} exists", path.display()))
            .hint("`--overwrite` replaces it"));
    }
    Ok(())
}
