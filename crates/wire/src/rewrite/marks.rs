//! Marks of our own, where no cache entry is left before the client's marks after a change.

use plimsoll_core::cost::Life;

use super::omit::bears_marks;
use super::{Rewrite, RewriteError};
use crate::Wire;
use crate::document::Value;

impl Rewrite<'_> {
    /// Puts a mark at the end of each of these messages; one that has a mark already, or can bear none, stays as it is.
    pub(super) fn mark(&mut self, marks: &[(usize, Life)]) -> Result<(), RewriteError> {
        if self.request.wire() != Wire::AnthropicMessages {
            return Ok(());
        }
        for &(index, life) in marks {
            let source =
                self.request.sources().get(index).ok_or(RewriteError::Position { index })?;
            let mark = match life {
                Life::Short => r#"{"type":"ephemeral"}"#,
                Life::Long => r#"{"type":"ephemeral","ttl":"1h"}"#,
            };
            if self.omitted.get(index).is_some_and(|omitted| *omitted) {
                continue;
            }
            let blocks: Vec<Value<'_>> =
                source.blocks.iter().map(|block| self.request.document().value(*block)).collect();
            if blocks.iter().any(|block| block.get("cache_control").is_some()) {
                continue;
            }
            let bearer = blocks.iter().rev().find(|block| block.is_text() || bears_marks(**block));
            match bearer {
                // A string bears none: it becomes a list of one text, which says the same.
                Some(text) if text.is_text() => {
                    let original = text.text();
                    let changed = self.texts.get(&text.id()).map(String::as_str);
                    let said = changed.or(original.as_deref());
                    if said.is_some_and(|said| !said.trim().is_empty()) {
                        self.marked.insert(text.id(), mark);
                    }
                }
                Some(block) => self.patch.set(*block, "cache_control", mark.to_owned()),
                None => {}
            }
        }
        Ok(())
    }
}

/// Writes a block of text; `said` is quoted.
pub(super) fn text(said: &str, mark: Option<&str>) -> String {
    let mark = mark.map(|mark| format!(r#","cache_control":{mark}"#)).unwrap_or_default();
    format!(r#"{{"type":"text","text":{said}{mark}}}"#)
}

#[cfg(test)]
mod tests {
    use plimsoll_core::cost::Life;

    use crate::{DEFAULT_DEPTH, Edits, ProviderRequest, Wire, check};

    fn rewritten(wire: Wire, body: &str, edits: &Edits) -> String {
        let request = ProviderRequest::parse(wire, body.as_bytes(), "", DEFAULT_DEPTH);
        let body = request.expect("a request").rewrite(edits).expect("it is written");
        assert_eq!(check(wire, &body), [], "{wire}");
        String::from_utf8(body).expect("text")
    }

    fn marked(wire: Wire, body: &str, marks: &[(usize, Life)]) -> String {
        rewritten(wire, body, &Edits { marks: marks.to_vec(), ..Edits::default() })
    }

    #[test]
    fn a_string_becomes_a_list_that_says_the_same() {
        assert_eq!(
            marked(
                Wire::AnthropicMessages,
                r#"{"model":"m","max_tokens":9,"system":"Help.","messages":[{"role":"user","content":"a \u00e9\n"}]}"#,
                &[(0, Life::Long), (1, Life::Short)],
            ),
            r#"{"model":"m","max_tokens":9,"system":[{"type":"text","text":"Help.","cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[{"role":"user","content":[{"type":"text","text":"a \u00e9\n","cache_control":{"type":"ephemeral"}}]}]}"#
        );
    }

    #[test]
    fn a_mark_stands_at_the_last_block_that_may_bear_it() {
        let body = |mark: &str| {
            format!(
                r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":"go"}},{{"role":"assistant","content":[{{"type":"text","text":"Fine."{mark}}},{{"type":"thinking","thinking":"","signature":"s"}}]}},{{"role":"user","content":"on"}}]}}"#
            )
        };
        let mark = r#","cache_control":{"type":"ephemeral"}"#;
        let of_client = r#","cache_control":{"type":"ephemeral","ttl":"5m"}"#;
        let at = [(1, Life::Short)];
        assert_eq!(marked(Wire::AnthropicMessages, &body(""), &at), body(mark));
        assert_eq!(marked(Wire::AnthropicMessages, &body(of_client), &at), body(of_client));
    }

    #[test]
    fn a_mark_stands_before_what_is_appended() {
        let append = |content: &str| {
            let body = format!(
                r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":{content}}}]}}"#
            );
            let edits = Edits {
                marks: vec![(0, Life::Short)],
                append: vec![(0, "Remember.".into())],
                ..Edits::default()
            };
            rewritten(Wire::AnthropicMessages, &body, &edits)
        };
        let expected = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"go","cache_control":{"type":"ephemeral"}},{"type":"text","text":"Remember."}]}]}"#;
        assert_eq!(append(r#""go""#), expected);
        assert_eq!(append(r#"[{"type":"text","text":"go"}]"#), expected);
    }

    #[test]
    fn a_string_in_another_form_is_marked_too() {
        let body =
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a secret"}]}"#;
        let form = plimsoll_core::Message::text(plimsoll_core::Role::User, "nothing");
        let edits = Edits {
            messages: vec![(0, Some(std::sync::Arc::new(form)))],
            marks: vec![(0, Life::Short)],
            ..Edits::default()
        };
        assert_eq!(
            rewritten(Wire::AnthropicMessages, body, &edits),
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"nothing","cache_control":{"type":"ephemeral"}}]}]}"#
        );
    }

    #[test]
    fn other_wires_have_no_marks() {
        for (wire, body) in [
            (Wire::ChatCompletions, r#"{"model":"m","messages":[{"role":"user","content":"go"}]}"#),
            (Wire::Responses, r#"{"model":"m","input":[{"role":"user","content":"go"}]}"#),
            (Wire::Gemini, r#"{"contents":[{"role":"user","parts":[{"text":"go"}]}]}"#),
        ] {
            assert_eq!(marked(wire, body, &[(0, Life::Short)]), body);
        }
    }
}
