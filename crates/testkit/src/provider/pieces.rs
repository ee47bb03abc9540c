//! A request as the provider reads it: tools, system blocks and content blocks in order, with their cache marks.
//!
//! A tool, a system block and a block of a message is one piece each; on the wires without blocks a message is one. Text counts
//! four bytes a token, marks and the form of a text (plain or as a block) count nothing. The rules of marks are Anthropic's:
//! at most four, those of an hour first, none on thinking or on an empty text. A mark beside the messages stands on the last
//! block. Chat Completions and Responses have marks for the models whose cache has ends.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use plimsoll_core::cost::{CacheKind, Life, MOST_MARKS, Piece};
use plimsoll_wire::Wire;
use serde_json::Value;

/// Four bytes a token: between what was measured for prose and for code (2.8 to 4.2), and easy to check by hand.
pub(crate) fn tokens(bytes: usize) -> u64 {
    bytes as u64 / 4
}

/// Reads a request to `model`. Errors: what a provider would say to its marks.
pub(crate) fn pieces(
    wire: Wire,
    body: &Value,
    model: &str,
    cache: CacheKind,
) -> Result<Vec<Piece>, String> {
    let mut all = PieceReader { model, bytes: 0, found: Vec::new(), marks: CacheMarks::default() };
    for (at, tool) in list(&body["tools"]).iter().enumerate() {
        all.push("tools", tool, || format!("tools.{at}"))?;
    }
    for (at, block) in system(wire, body).iter().enumerate() {
        all.push("system", block, || format!("system.{at}"))?;
    }
    for (index, message) in messages(wire, body).iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        match &message["content"] {
            Value::Array(blocks) if wire == Wire::AnthropicMessages => {
                for (at, block) in blocks.iter().enumerate() {
                    all.push(role, block, || format!("messages.{index}.content.{at}"))?;
                }
            }
            text if wire == Wire::AnthropicMessages => {
                all.push(role, text, || format!("messages.{index}.content"))?;
            }
            _ => all.push(role, message, || format!("messages.{index}"))?,
        }
    }
    if wire == Wire::AnthropicMessages {
        all.automatic(&body["cache_control"])?;
    } else if cache != CacheKind::Ends {
        for name in ["prompt_cache_breakpoint", "prompt_cache_options"] {
            if !body[name].is_null() || names(messages(wire, body), name) {
                return Err(format!("Unknown parameter: '{name}'."));
            }
        }
    }
    Ok(all.found)
}

/// Returns the tokens of all pieces.
pub(crate) fn total(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|piece| piece.tokens as u64).sum()
}

/// Returns the system blocks of a request, where its wire has them beside the messages.
pub(crate) fn system(wire: Wire, body: &Value) -> &[Value] {
    let key = match wire {
        Wire::AnthropicMessages => "system",
        Wire::ChatCompletions => return &[],
        Wire::Responses => "instructions",
        Wire::Gemini => "systemInstruction",
    };
    one_or_many(&body[key])
}

/// Returns the messages or items of a request.
pub(crate) fn messages(wire: Wire, body: &Value) -> &[Value] {
    one_or_many(match wire {
        Wire::AnthropicMessages | Wire::ChatCompletions => &body["messages"],
        Wire::Responses => &body["input"],
        Wire::Gemini => &body["contents"],
    })
}

/// Returns the items of a list; a single value is a list of one.
pub(crate) fn one_or_many(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        Value::Null => &[],
        one => std::slice::from_ref(one),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

struct PieceReader<'a> {
    model: &'a str,
    bytes: usize,
    found: Vec<Piece>,
    marks: CacheMarks,
}

impl PieceReader<'_> {
    fn push(
        &mut self,
        role: &str,
        piece: &Value,
        place: impl Fn() -> String,
    ) -> Result<(), String> {
        let mark = self.marks.of(piece, &place)?;
        let mut hasher = DefaultHasher::new();
        (self.model, role).hash(&mut hasher);
        let before = tokens(self.bytes);
        self.bytes += hash(piece, &mut hasher);
        let own = tokens(self.bytes) - before;
        self.found.push(Piece { key: hasher.finish(), tokens: own as f64, blocks: 1, mark });
        Ok(())
    }

    /// Reads a mark beside the messages.
    fn automatic(&mut self, mark: &Value) -> Result<(), String> {
        let Some(last) = self.found.last_mut().filter(|_| !mark.is_null()) else { return Ok(()) };
        let life = life(mark);
        match last.mark {
            Some(own) if own == life => Ok(()),
            Some(_) => Err("cache_control: the last block has a mark of another ttl".to_owned()),
            None => {
                last.mark = Some(life);
                self.marks.count(life, || "cache_control".to_owned())
            }
        }
    }
}

/// The marks of a request so far.
#[derive(Default)]
struct CacheMarks {
    count: usize,
    short_seen: bool,
}

impl CacheMarks {
    /// Returns the mark of a piece, its own or that of a part of it.
    fn of(&mut self, piece: &Value, place: impl Fn() -> String) -> Result<Option<Life>, String> {
        let mut found = None;
        for bearer in std::iter::once(piece).chain(list(&piece["content"])) {
            let mark = &bearer["cache_control"];
            if !bearer["prompt_cache_breakpoint"].is_null() {
                found = Some(Life::Short);
            }
            if mark.is_null() {
                continue;
            }
            let kind = bearer["type"].as_str().unwrap_or_default();
            if kind.ends_with("thinking") {
                let place = place();
                return Err(format!(
                    "{place}.{kind}.cache_control: Extra inputs are not permitted"
                ));
            }
            if kind == "text" && bearer["text"] == "" {
                let place = place();
                return Err(format!("{place}: cache_control cannot be set for empty text blocks"));
            }
            found = Some(life(mark));
            self.count(life(mark), &place)?;
        }
        Ok(found)
    }

    fn count(&mut self, life: Life, place: impl Fn() -> String) -> Result<(), String> {
        self.count += 1;
        if self.count > MOST_MARKS {
            let found = self.count;
            return Err(format!(
                "A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {found}."
            ));
        }
        if life == Life::Long && self.short_seen {
            let place = place();
            return Err(format!(
                "{place}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' \
                 cache_control block. Note that blocks are processed in the following order: `tools`, `system`, \
                 `messages`."
            ));
        }
        self.short_seen |= life == Life::Short;
        Ok(())
    }
}

fn life(mark: &Value) -> Life {
    if mark["ttl"] == "1h" { Life::Long } else { Life::Short }
}

fn names(messages: &[Value], field: &str) -> bool {
    messages.iter().flat_map(|message| list(&message["content"])).any(|part| !part[field].is_null())
}

/// Hashes a piece and returns its bytes: a text block is its text, and marks do not count.
pub(crate) fn hash(piece: &Value, hasher: &mut DefaultHasher) -> usize {
    match piece {
        Value::Object(fields) => {
            let known = |name: &str| name == "type" || name == "text" || is_mark(name);
            if piece["type"] == "text" && fields.keys().all(|name| known(name)) {
                return hash(&piece["text"], hasher);
            }
            let mut fields: Vec<_> = fields.iter().filter(|(name, _)| !is_mark(name)).collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            let bytes = fields.into_iter().map(|(name, value)| {
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

fn is_mark(name: &str) -> bool {
    name == "cache_control" || name == "prompt_cache_breakpoint"
}
