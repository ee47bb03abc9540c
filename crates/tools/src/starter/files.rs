//! Files of one folder.

use std::path::{Component, Path, PathBuf};

use plimsoll_core::text::{Limit, head};
use plimsoll_engine::ToolAnswer;

use super::StarterLimits;

pub(super) async fn read(path: &str, limits: &StarterLimits) -> Result<ToolAnswer, String> {
    let (path, limit) = (path.to_owned(), limits.output);
    let folder = limits.folder.clone();
    blocking(move || {
        let path = match inside(&folder, &path) {
            Ok(path) => path,
            Err(why) => return ToolAnswer::failed(why),
        };
        match std::fs::read(&path) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let shown = head(&text, Limit::Bytes(limit));
                if shown.len() < text.len() {
                    let said = format!("{shown}\n[ended: the file has {} bytes]", bytes.len());
                    return ToolAnswer::text(said);
                }
                ToolAnswer::text(text)
            }
            Err(error) => ToolAnswer::failed(error.to_string()),
        }
    })
    .await
}

pub(super) async fn write(
    path: &str,
    content: &str,
    limits: &StarterLimits,
) -> Result<ToolAnswer, String> {
    if content.len() > limits.output {
        let said = format!("the text has more than {} bytes", limits.output);
        return Ok(ToolAnswer::failed(said));
    }
    let (path, content) = (path.to_owned(), content.to_owned());
    let folder = limits.folder.clone();
    blocking(move || {
        let target = match inside(&folder, &path) {
            Ok(target) => target,
            Err(why) => return ToolAnswer::failed(why),
        };
        match std::fs::write(&target, &content) {
            Ok(()) => ToolAnswer::text(format!("{} bytes written to {path}", content.len())),
            Err(error) => ToolAnswer::failed(error.to_string()),
        }
    })
    .await
}

async fn blocking(
    work: impl FnOnce() -> ToolAnswer + Send + 'static,
) -> Result<ToolAnswer, String> {
    tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())
}

/// Returns the place of a file of the folder; links that lead out of it are refused too.
fn inside(folder: &Path, path: &str) -> Result<PathBuf, String> {
    let leads_out = || format!("`{path}` leads out of the folder");
    let mut parts = Path::new(path).components();
    if path.is_empty()
        || parts.any(|part| !matches!(part, Component::Normal(_) | Component::CurDir))
    {
        return Err(leads_out());
    }
    let folder = folder.canonicalize().map_err(|error| error.to_string())?;
    let whole = folder.join(path);
    let known = if whole.symlink_metadata().is_ok() {
        whole.as_path()
    } else {
        whole.parent().unwrap_or(&folder)
    };
    let real = known.canonicalize().map_err(|error| format!("{path}: {error}"))?;
    if real.starts_with(&folder) { Ok(whole) } else { Err(leads_out()) }
}
