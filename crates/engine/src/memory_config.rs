//! Settings of memory: how records are kept, found and shown.

use plimsoll_core::memory::assemble::MemorySettings;
use plimsoll_core::memory::extract::Extraction;
use plimsoll_core::memory::frame::{Frame, FrameSelection, Frames, FramesError};
use plimsoll_core::memory::lifecycle::LifecycleSettings;
use plimsoll_core::policy::RequestSettings;
use serde::{Deserialize, Serialize};

use crate::assemble::AssembleSettings;
use crate::memories::MemorySearch;
use crate::remember::SourceConfidence;

/// Settings of memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// Who the agent is, in the words of the operator.
    pub identity: String,
    /// The text that every request begins with.
    pub rules: String,
    /// The user's project, time zone and role.
    pub profile: String,
    pub search: MemorySearch,
    pub context: MemorySettings,
    pub lifecycles: LifecycleSettings,
    pub confidence: SourceConfidence,
    pub extraction: Extraction,
    pub frame_selection: FrameSelection,
    /// Frames of your own; they stand before the built-in ones and replace those of the same name.
    pub frames: Vec<Frame>,
}

impl MemoryConfig {
    /// Returns the frames to choose from: the operator's, then the built-in ones.
    pub fn frames(&self) -> Result<Frames, FramesError> {
        Frames::with_own(self.frames.clone())
    }

    /// Returns the settings of an assembly, with those of requests.
    pub fn assemble(&self, request: &RequestSettings) -> AssembleSettings {
        AssembleSettings {
            context: self.context.clone(),
            frames: self.frame_selection.clone(),
            request: request.clone(),
        }
    }
}
