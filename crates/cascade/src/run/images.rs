//! Images on disk: `images/{session}/{phase}/`, by names that the run makes itself.

use base64::Engine as _;
use plimsoll_core::{Image, Message};
use plimsoll_engine::SessionId;

use super::error::RunError;
use super::visit::Visit;
use crate::definition::Name;

impl Visit<'_> {
    /// Saves the images of a new result.
    pub(crate) fn save_images(&self, message: &Message) -> Result<(), RunError> {
        let Some(root) = &self.run.runner.settings.images else { return Ok(()) };
        let images: Vec<&Image> = message.results().flat_map(|result| &result.images).collect();
        if images.is_empty() {
            return Ok(());
        }
        let folder = root.join("images").join(main(self.journal.session())).join(self.name());
        let failed = |source| RunError::Image { path: folder.display().to_string(), source };
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let prefix =
            self.run.sounding.map(|index| format!("sounding_{index}_")).unwrap_or_default();
        let mut number = 0;
        for image in images {
            // A URL holds no image data.
            let Ok(bytes) = base64::engine::general_purpose::STANDARD.decode(image.data.as_bytes())
            else {
                continue;
            };
            let path = loop {
                let path = folder.join(format!("{prefix}image_{number}.{}", extension(image)));
                if !path.exists() {
                    break path;
                }
                number += 1;
            };
            std::fs::write(path, bytes).map_err(failed)?;
        }
        Ok(())
    }
}

/// Checks that a session can name a folder: ids may be `..`.
pub(crate) fn check(session: &SessionId) -> Result<(), RunError> {
    Name::new(main(session)).map(drop).map_err(|why| RunError::Missing {
        what: format!("the session `{session}` can't name a folder for images: {why}"),
    })
}

/// Returns the part of a session's id before its attempts and inner cascades: they share one folder.
fn main(session: &SessionId) -> &str {
    session.as_str().split(':').next().unwrap_or_default()
}

fn extension(image: &Image) -> &'static str {
    match &*image.media_type {
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => "png",
    }
}
