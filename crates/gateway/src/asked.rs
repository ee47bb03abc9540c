//! A request as its session was asked it: kept until its answer is, in case another gateway went on with the session meanwhile.

use std::borrow::Cow;
use std::sync::Arc;

use plimsoll_core::policy::Policy;
use plimsoll_core::safety::{Action, Handling, handle_message, redact};
use plimsoll_core::terms::Surroundings;
use plimsoll_core::{Message, MillisSinceEpoch};
use plimsoll_engine::live::{AddedMemory, RequestPins, SessionRequest};

/// A request as its session was asked it.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) messages: Vec<Arc<Message>>,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) policy: Policy,
    pub(crate) strategy: String,
    pub(crate) tools: u64,
    pub(crate) around: Surroundings,
    pub(crate) added: Option<AddedMemory>,
    pub(crate) observed: bool,
    pub(crate) pins: RequestPins,
    pub(crate) now: MillisSinceEpoch,
}

impl Asked {
    pub(crate) fn request(&self) -> SessionRequest<'_> {
        SessionRequest {
            messages: &self.messages,
            model: self.model.as_deref(),
            policy: &self.policy,
            strategy: &self.strategy,
            tools: self.tools,
            around: &self.around,
            added: self.added.clone(),
            observed: self.observed,
            pins: self.pins.clone(),
            now: self.now,
        }
    }
}

/// Returns messages as the store may have them; a message always has the same form there, so a session goes on from it.
pub(crate) fn stored(messages: &[Arc<Message>], ingestion: Handling) -> Vec<Arc<Message>> {
    if !redacts(ingestion) {
        return messages.to_vec();
    }
    let redacted = |message: &Arc<Message>| match handle_message(message, ingestion).0 {
        Some(changed) => Arc::new(changed),
        None => message.clone(),
    };
    messages.iter().map(redacted).collect()
}

/// Returns whether anything is taken out of what is stored.
fn redacts(ingestion: Handling) -> bool {
    ingestion.personal == Action::Redact || ingestion.secrets == Action::Redact
}

/// Returns whether the store may have a text as it is.
pub(crate) fn may_be_stored(text: &str, ingestion: Handling) -> bool {
    !redacts(ingestion) || matches!(redact(text, ingestion).0, Cow::Borrowed(_))
}
