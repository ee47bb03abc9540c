//! Prices: the shipped table, the user's over it, that of `--pricing` over both; and warnings about unlisted models.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use etcetera::BaseStrategy as _;
use plimsoll_core::cost::{self, ModelPrice, Pricing, PricingError};

use crate::error::CommandError;
use crate::output;

/// The file's name in the user's configuration folder.
const FILE: &str = "pricing.toml";

/// The largest file of prices that is read, in bytes (chosen: ten times the largest list that is published).
const MOST_BYTES: u64 = 64 << 20;

/// Returns the prices in force: `named` over the user's own over the shipped ones.
pub(crate) fn pricing(named: Option<&Path>) -> Result<Pricing, CommandError> {
    let own = user_file().filter(|path| path.is_file());
    [own.as_deref(), named].into_iter().flatten().try_fold(Pricing::shipped(), lay_over)
}

/// Returns where the user's own prices are.
pub(crate) fn user_file() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.config_dir().join("plimsoll").join(FILE))
}

/// Lays the table of a file over `below`.
pub(crate) fn lay_over(below: Pricing, path: &Path) -> Result<Pricing, CommandError> {
    let bytes = read(path)?;
    let text = String::from_utf8(bytes).map_err(|_| {
        CommandError::usage(anyhow::anyhow!("{} is not UTF-8", path.display())).hint(SHAPE)
    })?;
    below.overlaid(&text).map_err(|error| {
        let error = match error {
            // A syntax error shows the place over several lines; its message and line are enough.
            PricingError::Syntax(error) => {
                let before = error.span().and_then(|span| text.get(..span.start));
                let line = 1 + before.map_or(0, |text| text.matches('\n').count());
                anyhow::anyhow!("{}:{line}: {}", path.display(), error.message())
            }
            other => anyhow::Error::new(other).context(path.display().to_string()),
        };
        CommandError::usage(error).hint(SHAPE)
    })
}

const SHAPE: &str = "the shipped table in the repository shows the shape";

/// Reads a file of prices whole, if it is not absurdly large.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    let cannot = |error: std::io::Error| {
        CommandError::usage(
            anyhow::Error::new(error).context(format!("cannot read {}", path.display())),
        )
    };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(cannot)?;
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > MOST_BYTES {
        let error = anyhow::anyhow!("{} is larger than {} MiB", path.display(), MOST_BYTES >> 20);
        return Err(CommandError::usage(error));
    }
    Ok(bytes)
}

/// Warns once of each model that the table does not list.
#[derive(Debug, Default)]
pub(crate) struct Unlisted(Mutex<cost::UnlistedModels>);

impl Unlisted {
    /// Returns the warning for `model` when it is met first.
    pub(crate) fn met(&self, model: Option<&str>, priced: &ModelPrice<'_>) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).met(model, priced)
    }

    /// As [`Unlisted::met`], printed.
    pub(crate) fn warn(&self, model: Option<&str>, priced: &ModelPrice<'_>) {
        if let Some(warning) = self.met(model, priced) {
            output::warning(&warning);
        }
    }
}
