//! `[memory]` and `[request]`: how what is known is kept, found and shown.

use plimsoll_core::memory::assemble::MemorySettings;
use plimsoll_core::memory::extract::Extraction;
use plimsoll_core::memory::frame::{Frame, FrameSelection, Frames};
use plimsoll_core::memory::lifecycle::LifecycleSettings;
use plimsoll_core::policy::RequestSettings;
use plimsoll_engine::assemble::AssembleSettings;
use plimsoll_engine::memories::MemorySearch;
use plimsoll_engine::remember::SourceConfidence;
use serde::{Deserialize, Serialize};

use crate::error::CommandError;

/// Settings of memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MemoryConfig {
    /// Who the agent is, in the words of the operator.
    pub(crate) identity: String,
    /// The text that every request begins with.
    pub(crate) rules: String,
    /// The user's project, time zone and role.
    pub(crate) profile: String,
    pub(crate) search: MemorySearch,
    pub(crate) context: MemorySettings,
    pub(crate) lifecycles: LifecycleSettings,
    pub(crate) confidence: SourceConfidence,
    pub(crate) extraction: Extraction,
    pub(crate) frame_selection: FrameSelection,
    /// Frames of your own; they stand before the built-in ones and replace those of the same name.
    pub(crate) frames: Vec<Frame>,
}

impl MemoryConfig {
    pub(crate) fn frames(&self) -> Result<Frames, CommandError> {
        Frames::with_own(self.frames.clone())
            .map_err(|error| CommandError::usage(anyhow::Error::new(error).context("[memory]")))
    }

    pub(crate) fn assemble(&self, request: &RequestSettings) -> AssembleSettings {
        AssembleSettings {
            context: self.context.clone(),
            frames: self.frame_selection.clone(),
            request: request.clone(),
        }
    }
}
