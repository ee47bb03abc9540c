//! Images on disk: `images/{session}/{phase}/`, by names that are made and never given.

use base64::Engine as _;
use plimsoll_core::{Image, Message};
use plimsoll_engine::SessionId;

use super::Run;
use super::error::RunError;
use super::past::Past;
use crate::definition::Phase;

impl Run {
    /// Saves the images of a result that has just come.
    pub(crate) fn save_images(
        &self,
        phase: &Phase,
        session: &SessionId,
        message: &Message,
        _past: &Past,
    ) -> Result<(), RunError> {
        let Some(root) = &self.runner.settings.images else { return Ok(()) };
        let images: Vec<&Image> = message.results().flat_map(|result| &result.images).collect();
        if images.is_empty() {
            return Ok(());
        }
        // Attempts of soundings share the folder of the run that they are part of.
        let main = session.as_str().split(':').next().unwrap_or_default();
        let folder = root.join("images").join(main).join(phase.name.as_str());
        let failed = |source| RunError::Image { path: folder.display().to_string(), source };
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let prefix = self.sounding.map(|index| format!("sounding_{index}_")).unwrap_or_default();
        let mut number = 0;
        for image in images {
            // An address is no image of this run's.
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

fn extension(image: &Image) -> &'static str {
    match &*image.media_type {
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => "png",
    }
}
