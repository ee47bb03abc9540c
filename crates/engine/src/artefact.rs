//! Artefacts: large contents kept once, known by their hash, asked for by ref.

use plimsoll_core::MillisSinceEpoch;
use serde::{Deserialize, Serialize};

use crate::id::{SessionId, TenantId};

/// The kind of an artefact: `message`, `github_search`, `notion_page`, `email_list` and so on; lower case, `_` between words.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ArtefactKind(pub String);

/// The address of an artefact: `ref:<kind>:<16 hex>[:view]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ArtefactRef {
    pub kind: ArtefactKind,
    /// All 64 hex digits of the content's SHA-256.
    pub digest: String,
    /// A view of the content that was made for a purpose, under its own content.
    pub view: Option<String>,
}

impl ArtefactRef {
    /// Returns the printed form.
    pub fn print(&self) -> String {
        let short = &self.digest[..self.digest.len().min(16)];
        match &self.view {
            Some(view) => format!("ref:{}:{short}:{view}", self.kind.0),
            None => format!("ref:{}:{short}", self.kind.0),
        }
    }
}

/// An artefact with what is known of it: a row of `cas_refs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Artefact {
    pub tenant: TenantId,
    pub reference: ArtefactRef,
    pub session: Option<SessionId>,
    pub created_at: MillisSinceEpoch,
    /// After this the artefact is stale: it is still returned, and says so.
    pub ttl_expires_at: Option<MillisSinceEpoch>,
    /// 50–120 tokens for a reader; at most 500 characters.
    pub summary: Option<String>,
    /// The deterministic compressed view, as JSON or text.
    pub compressed: Option<String>,
    /// The content itself, as it came.
    pub content: Vec<u8>,
    pub freshness_score: f32,
    pub access_count: u32,
    pub last_accessed_at: Option<MillisSinceEpoch>,
    /// Where it came from, as JSON.
    pub source_meta: Option<String>,
}

impl Artefact {
    /// Returns whether it is older than its time to live.
    pub fn is_stale(&self, now: MillisSinceEpoch) -> bool {
        self.ttl_expires_at.is_some_and(|end| end <= now)
    }
}

/// Which refs to list, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RefQuery {
    pub kind: Option<ArtefactKind>,
    pub session: Option<SessionId>,
    pub limit: usize,
}
