//! Conversations that an editor exported as Markdown: a heading names the speaker of each section, and rules part them.

use plimsoll_core::Role;

use crate::draft::{RecordedMessage, SessionDraft};
use crate::json;

/// The line between two sections.
const RULE: &str = "---";

/// Returns whether a text has a section of one of these speakers near its beginning.
pub(crate) fn has_speaker(bytes: &[u8], speakers: &[(&str, Role)]) -> bool {
    /// Lines of titles before the first section (chosen).
    const BEFORE: usize = 12;
    json::lines(bytes).take(BEFORE).any(|(_, line)| role_of(line, speakers).is_some())
}

fn role_of(line: &[u8], speakers: &[(&str, Role)]) -> Option<Role> {
    speakers.iter().find(|(heading, _)| heading.as_bytes() == line).map(|(_, role)| *role)
}

/// Reads the sections of an exported conversation.
///
/// A heading begins a section only behind a rule or before the first one: a message may quote the heading.
pub(crate) fn read(bytes: &[u8], speakers: &[(&str, Role)]) -> SessionDraft {
    let mut draft = SessionDraft::of_lines();
    let mut section: Option<(u32, Role, Vec<String>)> = None;
    let mut behind_rule = true;
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let trimmed = line.trim_ascii();
        if let Some(role) = role_of(trimmed, speakers).filter(|_| behind_rule || section.is_none())
        {
            push(&mut draft, section.replace((number, role, Vec::new())));
        } else if let Some((_, _, lines)) = &mut section {
            lines.push(String::from_utf8_lossy(line).trim_end_matches('\r').to_owned());
        }
        behind_rule = trimmed == RULE.as_bytes() || (behind_rule && trimmed.is_empty());
    }
    push(&mut draft, section);
    draft
}

fn push(draft: &mut SessionDraft, section: Option<(u32, Role, Vec<String>)>) {
    let Some((number, role, mut lines)) = section else { return };
    let is_margin = |line: &String| line.trim().is_empty() || line.trim() == RULE;
    while lines.last().is_some_and(is_margin) {
        lines.pop();
    }
    let text = lines.join("\n");
    let text = text.trim_start_matches('\n');
    if !text.is_empty() {
        draft.messages.push(RecordedMessage::text(role, number, None, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_without_a_rule_before_it_is_text() {
        let speakers = [("**User**", Role::User), ("**Cursor**", Role::Assistant)];
        let text =
            b"# T\n\n---\n\n**User**\n\na\n**Cursor**\nb\n\n---\n\n**Cursor**\n\nc\n\n---\n\nd\n";
        let draft = read(text, &speakers);
        let found: Vec<_> =
            draft.messages.iter().map(|one| (one.message.role, one.message.shown())).collect();
        assert_eq!(
            found,
            [
                (Role::User, "a\n**Cursor**\nb".to_owned()),
                (Role::Assistant, "c\n\n---\n\nd".to_owned())
            ]
        );
    }
}
