//! Finds cascades that other cascades name, in the folder of the first one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_cascade::run::Library;
use plimsoll_cascade::{Cascade, Severity};

/// The folder of a cascade; cascades in it serve as tools and validators.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    itself: PathBuf,
    known: Mutex<HashMap<String, Result<Arc<Cascade>, String>>>,
}

impl Folder {
    pub(crate) fn new(folder: &Path, itself: &Path) -> Self {
        Self { path: folder.to_owned(), itself: itself.to_owned(), known: Mutex::default() }
    }

    fn find(&self, reference: &str) -> Result<Arc<Cascade>, String> {
        // A cascade may name files of its own folder only.
        let parts = Path::new(reference).components();
        if parts.into_iter().any(|part| !matches!(part, std::path::Component::Normal(_))) {
            return Err(format!("`{reference}` leads out of the folder of the cascade"));
        }
        let stem = Path::new(reference).with_extension("");
        let exact = std::iter::once(PathBuf::from(reference));
        let others = ["yaml", "yml", "json"].map(|extension| stem.with_extension(extension));
        let path = exact
            .chain(others)
            .map(|name| self.path.join(name))
            .find(|path| path.is_file())
            .or_else(|| self.by_id(reference))
            .ok_or_else(|| {
                format!("there is no cascade `{reference}` beside {}", self.itself.display())
            })?;
        let (cascade, problems) = crate::cascade::read(&path).map_err(|error| error.to_string())?;
        cascade.map(Arc::new).ok_or_else(|| {
            let first = problems.iter().find(|problem| problem.severity == Severity::Error);
            let told = first.map(ToString::to_string).unwrap_or_default();
            format!("{} can't be run: {told}", path.display())
        })
    }

    /// Looks for a cascade of this id among the files of the folder.
    fn by_id(&self, id: &str) -> Option<PathBuf> {
        let folder = if self.path.as_os_str().is_empty() { Path::new(".") } else { &self.path };
        let mut paths: Vec<PathBuf> =
            std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        paths.into_iter().find(|path| {
            let extension = path.extension().and_then(|extension| extension.to_str());
            matches!(extension, Some("json" | "yaml" | "yml"))
                && crate::cascade::read(path).is_ok_and(|(cascade, _)| {
                    cascade.is_some_and(|one| one.cascade_id.as_str() == id)
                })
        })
    }
}

impl Library for Folder {
    fn cascade(&self, reference: &str) -> Result<Arc<Cascade>, String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(reference) {
            return found.clone();
        }
        let found = self.find(reference);
        known.insert(reference.to_owned(), found.clone());
        found
    }
}
