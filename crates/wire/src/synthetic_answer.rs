//! An answer of ours: a text in the provider's shape, whole or as the events of a stream.

use plimsoll_core::MillisSinceEpoch;

use super::document::quoted;
use super::events::written;
use super::{ProviderRequest, Wire};

/// An answer that no provider gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyntheticAnswer<'a> {
    /// By which the client knows it, of letters, digits and `_`; each wire puts its own prefix before it.
    pub id: &'a str,
    pub text: &'a str,
    pub at: MillisSinceEpoch,
}

impl ProviderRequest {
    /// Writes a text as the answer to this request: one body, or all the events of a stream where the client wants one.
    ///
    /// It costs nothing, so all counts of tokens are 0.
    pub fn answered(&self, answer: &SyntheticAnswer<'_>) -> Vec<u8> {
        let said = AnswerParts {
            id: answer.id,
            model: quoted(self.model().unwrap_or_default()),
            text: quoted(answer.text),
            seconds: answer.at.0 / 1000,
        };
        if !self.streams() {
            return said.whole(self.wire()).into_bytes();
        }
        match self.wire() {
            Wire::AnthropicMessages => said.messages_events(),
            Wire::ChatCompletions => said.chat_events(self.is_counted()),
            Wire::Responses => said.responses_events(),
            // An answer is an event as it stands.
            Wire::Gemini => written("", &said.whole(Wire::Gemini)),
        }
    }
}

/// The parts of an answer, as JSON.
struct AnswerParts<'a> {
    id: &'a str,
    model: String,
    text: String,
    seconds: i64,
}

const MESSAGES_USAGE: &str = r#"{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}"#;
const CHAT_USAGE: &str = r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0,"prompt_tokens_details":{"cached_tokens":0}}"#;
const RESPONSES_USAGE: &str = r#"{"input_tokens":0,"input_tokens_details":{"cached_tokens":0},"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}"#;

impl AnswerParts<'_> {
    fn whole(&self, wire: Wire) -> String {
        let Self { id, model, text, seconds } = self;
        match wire {
            Wire::AnthropicMessages => {
                let content = format!(r#"{{"type":"text","text":{text}}}"#);
                self.message(&content, r#""end_turn""#)
            }
            Wire::ChatCompletions => format!(
                r#"{{"id":"chatcmpl-{id}","object":"chat.completion","created":{seconds},"model":{model},"choices":[{{"index":0,"message":{{"role":"assistant","content":{text},"refusal":null}},"logprobs":null,"finish_reason":"stop"}}],"usage":{CHAT_USAGE}}}"#
            ),
            Wire::Responses => self.response("completed", &self.item("completed", &self.part())),
            Wire::Gemini => format!(
                r#"{{"candidates":[{{"content":{{"role":"model","parts":[{{"text":{text}}}]}},"finishReason":"STOP","index":0}}],"usageMetadata":{{"promptTokenCount":0,"candidatesTokenCount":0,"totalTokenCount":0}},"modelVersion":{model},"responseId":"{id}"}}"#
            ),
        }
    }

    fn message(&self, content: &str, stop: &str) -> String {
        let Self { id, model, .. } = self;
        format!(
            r#"{{"id":"msg_{id}","type":"message","role":"assistant","model":{model},"content":[{content}],"stop_reason":{stop},"stop_sequence":null,"usage":{MESSAGES_USAGE}}}"#
        )
    }

    fn messages_events(&self) -> Vec<u8> {
        let (message, text) = (self.message("", "null"), &self.text);
        let event =
            |name: &str, rest: &str| written(name, &format!(r#"{{"type":"{name}"{rest}}}"#));
        [
            event("message_start", &format!(r#","message":{message}"#)),
            event(
                "content_block_start",
                r#","index":0,"content_block":{"type":"text","text":""}"#,
            ),
            event(
                "content_block_delta",
                &format!(r#","index":0,"delta":{{"type":"text_delta","text":{text}}}"#),
            ),
            event("content_block_stop", r#","index":0"#),
            event(
                "message_delta",
                &format!(
                    r#","delta":{{"stop_reason":"end_turn","stop_sequence":null}},"usage":{MESSAGES_USAGE}"#
                ),
            ),
            event("message_stop", ""),
        ]
        .concat()
    }

    fn chat_events(&self, is_counted: bool) -> Vec<u8> {
        let Self { id, model, text, seconds } = self;
        let chunk = |choices: &str, usage: &str| {
            // Every chunk has the field where the last one says it.
            let usage = if is_counted { format!(r#","usage":{usage}"#) } else { String::new() };
            let data = format!(
                r#"{{"id":"chatcmpl-{id}","object":"chat.completion.chunk","created":{seconds},"model":{model},"choices":[{choices}]{usage}}}"#
            );
            written("", &data)
        };
        let choice = |delta: &str, finish: &str| {
            format!(r#"{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}"#)
        };
        let begun = choice(r#"{"role":"assistant","content":"","refusal":null}"#, "null");
        let mut out = chunk(&begun, "null");
        out.extend(chunk(&choice(&format!(r#"{{"content":{text}}}"#), "null"), "null"));
        out.extend(chunk(&choice("{}", r#""stop""#), "null"));
        if is_counted {
            out.extend(chunk("", CHAT_USAGE));
        }
        out.extend(written("", "[DONE]"));
        out
    }

    fn part(&self) -> String {
        format!(r#"{{"type":"output_text","text":{},"annotations":[]}}"#, self.text)
    }

    fn item(&self, status: &str, content: &str) -> String {
        let id = self.id;
        format!(
            r#"{{"type":"message","id":"msg_{id}","role":"assistant","status":"{status}","content":[{content}]}}"#
        )
    }

    fn response(&self, status: &str, output: &str) -> String {
        let Self { id, model, seconds, .. } = self;
        let usage = if status == "completed" { RESPONSES_USAGE } else { "null" };
        format!(
            r#"{{"id":"resp_{id}","object":"response","created_at":{seconds},"status":"{status}","background":false,"error":null,"incomplete_details":null,"instructions":null,"metadata":{{}},"model":{model},"output":[{output}],"parallel_tool_calls":true,"store":false,"tool_choice":"auto","tools":[],"usage":{usage}}}"#
        )
    }

    fn responses_events(&self) -> Vec<u8> {
        let (id, text, part) = (self.id, &self.text, self.part());
        let (begun, done) = (self.response("in_progress", ""), self.whole(Wire::Responses));
        let at = format!(r#""item_id":"msg_{id}","output_index":0,"content_index":0"#);
        let empty = r#"{"type":"output_text","text":"","annotations":[]}"#;
        let item = |status: &str, content: &str| {
            format!(r#""output_index":0,"item":{}"#, self.item(status, content))
        };
        let events = [
            ("created", format!(r#""response":{begun}"#)),
            ("in_progress", format!(r#""response":{begun}"#)),
            ("output_item.added", item("in_progress", "")),
            ("content_part.added", format!(r#"{at},"part":{empty}"#)),
            ("output_text.delta", format!(r#"{at},"delta":{text}"#)),
            ("output_text.done", format!(r#"{at},"text":{text}"#)),
            ("content_part.done", format!(r#"{at},"part":{part}"#)),
            ("output_item.done", item("completed", &part)),
            ("completed", format!(r#""response":{done}"#)),
        ];
        let mut out = Vec::new();
        for (number, (name, rest)) in events.iter().enumerate() {
            let data = format!(r#"{{"type":"response.{name}","sequence_number":{number},{rest}}}"#);
            out.extend(written(&format!("response.{name}"), &data));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnswerUsage, DEFAULT_DEPTH, Ending, Events, Moment, ProviderAnswer, Watch};

    const TEXT: &str = "line \"one\"\nand é \u{1f600}\\ end";

    fn request(wire: Wire, streams: bool) -> ProviderRequest {
        let (path, body) = match wire {
            Wire::AnthropicMessages => ("", r#"{"model":"m","stream":S,"messages":[]}"#),
            Wire::ChatCompletions => (
                "",
                r#"{"model":"m","stream":S,"stream_options":{"include_usage":true},"messages":[]}"#,
            ),
            Wire::Responses => ("", r#"{"model":"m","stream":S,"input":[]}"#),
            Wire::Gemini if streams => {
                ("/v1beta/models/m:streamGenerateContent?alt=sse", r#"{"contents":[]}"#)
            }
            Wire::Gemini => ("/v1beta/models/m:generateContent", r#"{"contents":[]}"#),
        };
        let body = body.replace("\":S", if streams { "\":true" } else { "\":false" });
        ProviderRequest::parse(wire, body.as_bytes(), path, DEFAULT_DEPTH).expect("a request")
    }

    fn check(wire: Wire, answer: &ProviderAnswer) {
        assert_eq!(answer.ending, Ending::Complete, "{wire}");
        assert_eq!(answer.text(), TEXT, "{wire}");
        assert_eq!(answer.model.as_deref(), Some("m"), "{wire}");
        assert_eq!(answer.usage, Some(AnswerUsage::default()), "{wire}");
        assert!(answer.id.as_deref().is_some_and(|id| id.ends_with("abc")), "{wire}");
        assert_eq!(answer.facts(wire), plimsoll_core::answer::AnswerFacts::default(), "{wire}");
    }

    #[test]
    fn what_we_write_is_read_as_a_whole_answer() {
        let ours = SyntheticAnswer { id: "abc", text: TEXT, at: MillisSinceEpoch(7000) };
        for wire in Wire::ALL {
            let body = request(wire, false).answered(&ours);
            check(wire, &ProviderAnswer::of_body(wire, &body));
            let stream = request(wire, true).answered(&ours);
            let mut events = Events::default();
            events.push(&stream);
            let mut watch = Watch::new(wire);
            let mut ends = 0;
            while let Some(event) = events.next_event() {
                ends += usize::from(watch.see(&event) == Moment::End);
            }
            assert_eq!((ends, events.rest().len()), (1, 0), "{wire}: one end, the last event");
            check(wire, watch.answer());
        }
    }

    #[test]
    fn a_stream_counts_where_the_client_asks_for_it() {
        let ours = SyntheticAnswer { id: "abc", text: TEXT, at: MillisSinceEpoch(7000) };
        let body = br#"{"model":"m","stream":true,"messages":[]}"#;
        let plain = ProviderRequest::parse(Wire::ChatCompletions, body, "", DEFAULT_DEPTH);
        let plain = plain.expect("a request").answered(&ours);
        assert!(!String::from_utf8_lossy(&plain).contains("usage"));
        let counted = request(Wire::ChatCompletions, true).answered(&ours);
        assert!(String::from_utf8_lossy(&counted).contains(CHAT_USAGE));
    }
}
