//! Sessions: what clients call theirs, and a name for those that do not say.

use plimsoll_core::{Block, ContentHash, Message, Role};

use super::ProviderRequest;

impl ProviderRequest {
    /// Returns the name that the client gives its session.
    ///
    /// `header` looks a header up by its name in small letters. Source: what Claude Code, Codex, opencode and pi send.
    pub fn named_session(&self, header: impl Fn(&str) -> Option<String>) -> Option<String> {
        let headers = |names: &[&str]| names.iter().find_map(|name| header(name));
        let in_body = || self.root().get("prompt_cache_key")?.text().map(Into::into);
        headers(&["x-claude-code-session-id", "session-id", "thread-id"])
            .or_else(|| headers(&["x-session-id", "session_id"]))
            .or_else(in_body)
            .filter(|name| !name.is_empty())
    }

    /// Returns a name made of the system prompt and the first words of the user, which stay while the session lasts.
    pub fn own_session(&self) -> String {
        let first = self.messages.iter().find(|message| message.role == Role::User);
        let said = first.map(|message| message.shown()).unwrap_or_default();
        let blocks = vec![Block::Text(self.system_text().into()), Block::Text(said.into())];
        ContentHash::of(&Message::new(Role::User, blocks)).short()
    }
}
