//! Usage as a provider reports it, with a prompt cache that compares prefixes.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use plimsoll_formats::provider::Wire;
use serde_json::Value;

/// Tokens of one request and its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Plain, neither read from the cache nor written to it.
    pub input: u64,
    pub cache_read: u64,
    /// Reported by Anthropic only.
    pub cache_written: u64,
    pub output: u64,
}

/// How a request continues the one before it in the same conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Continuity {
    /// Tools, system blocks, messages and their blocks of this request.
    pub segments: usize,
    /// How many the request before had; 0 at the first.
    pub before: usize,
    /// How many of those stand at the beginning, alike.
    pub alike: usize,
}

impl Continuity {
    /// Whether something that was sent before has changed or is gone.
    pub fn is_broken(&self) -> bool {
        self.alike < self.before
    }
}

/// What the provider has read before.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    prefixes: HashSet<u64>,
    conversations: HashMap<u64, Vec<u64>>,
}

/// A piece of a request in the order in which a provider reads it: tools, system, messages.
#[derive(Debug, Clone, Copy)]
struct Segment {
    /// Of everything up to here.
    prefix: u64,
    tokens: u64,
    is_marked: bool,
}

/// Four bytes a token: between what was measured for prose and for code (2.8 to 4.2), and easy to check by hand.
pub(crate) fn tokens(bytes: usize) -> u64 {
    bytes as u64 / 4
}

/// Anthropic looks back so many blocks from a mark (its page on prompt caching).
const LOOK_BACK: usize = 20;
/// The least length that is cached: Anthropic's and OpenAI's of most models.
const LEAST: u64 = 1024;
/// Gemini's of the 2.5 models.
const LEAST_GEMINI: u64 = 2048;
/// OpenAI counts what it read in steps.
const STEP: u64 = 128;

impl Cache {
    /// Reports the input of a request, and keeps its prefixes for the next.
    pub(crate) fn read(&mut self, wire: Wire, body: &Value) -> (Usage, Continuity) {
        let segments = segments(wire, body);
        let continuity = self.continuity(wire, body, &segments);
        let total = segments.last().map_or(0, |last| last.tokens);
        let mut usage = Usage { input: total, ..Usage::default() };
        match wire {
            Wire::AnthropicMessages => {
                let marks: Vec<usize> =
                    (0..segments.len()).filter(|&at| segments[at].is_marked).collect();
                let behind = |mark: usize| mark.saturating_sub(LOOK_BACK)..=mark;
                let known = marks.iter().flat_map(|&mark| behind(mark));
                let known = known.filter(|&at| self.prefixes.contains(&segments[at].prefix)).max();
                let end = marks.last().map_or(0, |&mark| segments[mark].tokens);
                if end >= LEAST {
                    usage.cache_read = known.map_or(0, |at| segments[at].tokens);
                    usage.cache_written = end.saturating_sub(usage.cache_read);
                    usage.input = total - end;
                    self.prefixes.extend(marks.iter().map(|&mark| segments[mark].prefix));
                }
            }
            Wire::ChatCompletions | Wire::Responses | Wire::Gemini => {
                let known = segments.iter().rev();
                let known = known.into_iter().find(|piece| self.prefixes.contains(&piece.prefix));
                let known = known.map_or(0, |piece| piece.tokens);
                let least = if wire == Wire::Gemini { LEAST_GEMINI } else { LEAST };
                let step = if wire == Wire::Gemini { 1 } else { STEP };
                if known >= least {
                    usage.cache_read = known / step * step;
                    usage.input = total - usage.cache_read;
                }
                self.prefixes.extend(segments.iter().map(|piece| piece.prefix));
            }
        }
        (usage, continuity)
    }

    fn continuity(&mut self, wire: Wire, body: &Value, segments: &[Segment]) -> Continuity {
        // Clients ask beside a session too, for its title say, then without tools.
        let mut key = DefaultHasher::new();
        body["tools"].is_null().hash(&mut key);
        if let Some(first) = messages(wire, body).iter().find(|item| item["role"] == "user") {
            hash(first, &mut key);
        }
        let now: Vec<u64> = segments.iter().map(|piece| piece.prefix).collect();
        let before = self.conversations.entry(key.finish()).or_default();
        let alike = before.iter().zip(&now).take_while(|(before, now)| before == now).count();
        let found = Continuity { segments: now.len(), before: before.len(), alike };
        *before = now;
        found
    }
}

fn segments(wire: Wire, body: &Value) -> Vec<Segment> {
    let mut all = Segments { hasher: DefaultHasher::new(), bytes: 0, found: Vec::new() };
    body["model"].as_str().hash(&mut all.hasher);
    body["tools"].as_array().into_iter().flatten().for_each(|tool| all.push(tool));
    for block in system(wire, body) {
        all.push(block);
    }
    for message in messages(wire, body) {
        message["role"].as_str().hash(&mut all.hasher);
        match message["content"].as_array() {
            Some(blocks) if wire == Wire::AnthropicMessages => {
                for block in blocks {
                    all.push(block);
                }
            }
            None if wire == Wire::AnthropicMessages => all.push(&message["content"]),
            _ => all.push(message),
        }
    }
    // Anthropic: a mark beside the messages stands for one on the last block.
    if let Some(last) = all.found.last_mut().filter(|_| !body["cache_control"].is_null()) {
        last.is_marked = true;
    }
    all.found
}

fn system(wire: Wire, body: &Value) -> Vec<&Value> {
    let key = match wire {
        Wire::AnthropicMessages => "system",
        Wire::ChatCompletions => return Vec::new(),
        Wire::Responses => "instructions",
        Wire::Gemini => "systemInstruction",
    };
    match &body[key] {
        Value::Null => Vec::new(),
        Value::Array(blocks) => blocks.iter().collect(),
        other => vec![other],
    }
}

fn messages(wire: Wire, body: &Value) -> &[Value] {
    let key = match wire {
        Wire::AnthropicMessages | Wire::ChatCompletions => "messages",
        Wire::Responses => "input",
        Wire::Gemini => "contents",
    };
    match &body[key] {
        Value::Array(items) => items,
        Value::Null => &[],
        one => std::slice::from_ref(one),
    }
}

struct Segments {
    hasher: DefaultHasher,
    bytes: usize,
    found: Vec<Segment>,
}

impl Segments {
    fn push(&mut self, piece: &Value) {
        self.bytes += hash(piece, &mut self.hasher);
        let is_marked = !piece["cache_control"].is_null();
        let prefix = self.hasher.finish();
        self.found.push(Segment { prefix, tokens: tokens(self.bytes), is_marked });
    }
}

/// Hashes a piece in canonical form and returns its bytes: a text block is its text, and marks do not count.
fn hash(piece: &Value, hasher: &mut DefaultHasher) -> usize {
    match piece {
        Value::Object(fields) => {
            let known = |name: &str| matches!(name, "type" | "text" | "cache_control");
            if piece["type"] == "text" && fields.keys().all(|name| known(name)) {
                return hash(&piece["text"], hasher);
            }
            let fields = fields.iter().filter(|(name, _)| *name != "cache_control");
            let bytes = fields.map(|(name, value)| {
                name.hash(hasher);
                name.len() + 4 + hash(value, hasher)
            });
            bytes.sum()
        }
        Value::Array(items) if items.len() == 1 => hash(&items[0], hasher),
        Value::Array(items) => {
            items.len().hash(hasher);
            items.iter().map(|item| hash(item, hasher) + 1).sum()
        }
        Value::String(text) => {
            text.hash(hasher);
            text.len() + 2
        }
        other => {
            let text = other.to_string();
            text.hash(hasher);
            text.len()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(cache: &mut Cache, wire: Wire, messages: &Value) -> (Usage, Continuity) {
        cache.read(wire, &json!({"model": "m", "messages": messages, "system": "s"}))
    }

    #[test]
    fn a_marked_prefix_is_written_once_and_read_again() {
        let long = "word ".repeat(2000);
        let marked =
            json!([{"type": "text", "text": long, "cache_control": {"type": "ephemeral"}}]);
        let first = json!([{"role": "user", "content": marked}]);
        // The same message as a plain text, without its mark, and a new mark further on.
        let next = json!([
            {"role": "user", "content": long},
            {"role": "assistant", "content": "yes"},
            {"role": "user", "content": [{"type": "text", "text": "go on",
                "cache_control": {"type": "ephemeral"}}]},
        ]);
        let mut cache = Cache::default();
        let (written, _) = ask(&mut cache, Wire::AnthropicMessages, &first);
        assert_eq!((written.cache_read, written.cache_written), (0, 2501));
        let (read, continuity) = ask(&mut cache, Wire::AnthropicMessages, &next);
        assert_eq!((read.cache_read, read.cache_written), (2501, 3));
        assert_eq!(continuity, Continuity { segments: 4, before: 2, alike: 2 });
        assert!(!continuity.is_broken());
    }

    #[test]
    fn what_has_no_mark_or_is_short_is_not_cached() {
        let mut cache = Cache::default();
        let unmarked = json!([{"role": "user", "content": "word ".repeat(2000)}]);
        let short = json!([{"role": "user", "content": [{"type": "text", "text": "short",
            "cache_control": {"type": "ephemeral"}}]}]);
        for messages in [unmarked, short] {
            for _ in 0..2 {
                let (usage, _) = ask(&mut cache, Wire::AnthropicMessages, &messages);
                assert_eq!((usage.cache_read, usage.cache_written), (0, 0));
            }
        }
    }

    #[test]
    fn a_change_is_seen_and_read_again_from_there() {
        let mut cache = Cache::default();
        let message = |text: &str| json!({"role": "user", "content": text.repeat(2000)});
        let wire = Wire::ChatCompletions;
        ask(&mut cache, wire, &json!([message("a"), message("word "), message("more ")]));
        let (usage, continuity) =
            ask(&mut cache, wire, &json!([message("a"), message("word "), message("less ")]));
        assert_eq!(usage.cache_read % STEP, 0);
        assert!(usage.cache_read > 2800 && usage.input < 2700, "{usage:?}");
        assert!(continuity.is_broken());
        assert_eq!(continuity.alike, 2);
    }
}
