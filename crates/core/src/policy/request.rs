//! Settings of requests that are assembled from a stored session.

use serde::{Deserialize, Serialize};

use crate::aging::Aging;

/// Settings of request assembly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RequestSettings {
    /// The most tokens of a request.
    pub total: u64,
    /// Tokens of rules, the directory of tools and the profile.
    pub header: u64,
    /// Tokens of the last messages.
    pub history: u64,
    /// Tokens of facts.
    pub facts: u64,
    /// Tokens of summaries of artefacts.
    pub summaries: u64,
    /// Tokens of the profile card, within the header.
    pub profile: u64,
    /// The most messages of history; the default is eight pairs.
    pub most_messages: usize,
    /// The most facts.
    pub most_facts: usize,
    /// Facts beyond this number go last when room is short.
    pub extra_facts: usize,
    /// Facts less similar than this go early when room is short.
    pub low_similarity: f64,
    pub aging: Aging,
}

impl Default for RequestSettings {
    fn default() -> Self {
        Self {
            total: 3000,
            header: 600,
            history: 1000,
            facts: 800,
            summaries: 600,
            profile: 100,
            most_messages: 16,
            most_facts: 20,
            extra_facts: 10,
            // Chosen: the similarity under which the other document calls a topic unknown.
            low_similarity: 0.5,
            aging: Aging::default(),
        }
    }
}
