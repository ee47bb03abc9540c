//! Personal data and secrets in text: found by form, flagged or redacted by setting.
//!
//! Numbers with a checksum are checked, tokens with a fixed prefix must have its alphabet and length, and other values count
//! only if a name says what they are. Hashes, UUIDs, timestamps and ids are none of these.

mod address;
mod anchors;
mod assignment;
mod boundary;
mod encodings;
mod entropy;
mod numbers;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::boundary::{before, byte_at, follows_escape, is_word};
use self::encodings::Decoded;
use crate::message::{Block, Image, Message, Thinking, ToolCall, ToolResult};

/// The kind of a sensitive piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SensitiveKind {
    Email,
    Phone,
    PaymentCard,
    Iban,
    NationalId,
    AwsKey,
    GithubToken,
    GitlabToken,
    OpenaiKey,
    AnthropicKey,
    GoogleKey,
    SlackToken,
    StripeKey,
    /// A token of another service, known by its prefix.
    ServiceToken,
    Jwt,
    PrivateKey,
    /// The credentials behind `Bearer` or `Basic` in a header.
    AuthHeader,
    /// The password in a URL.
    UrlPassword,
    /// The value of something named password.
    Password,
    /// The value of something named key, token or secret, with the entropy of one.
    Secret,
}

names!(SensitiveKind {
    Email "email",
    Phone "phone",
    PaymentCard "payment_card",
    Iban "iban",
    NationalId "national_id",
    AwsKey "aws_key",
    GithubToken "github_token",
    GitlabToken "gitlab_token",
    OpenaiKey "openai_key",
    AnthropicKey "anthropic_key",
    GoogleKey "google_key",
    SlackToken "slack_token",
    StripeKey "stripe_key",
    ServiceToken "service_token",
    Jwt "jwt",
    PrivateKey "private_key",
    AuthHeader "auth_header",
    UrlPassword "url_password",
    Password "password",
    Secret "secret",
});

impl SensitiveKind {
    /// Returns whether it is personal data; the other kinds are secrets.
    pub fn is_personal(self) -> bool {
        matches!(
            self,
            Self::Email | Self::Phone | Self::PaymentCard | Self::Iban | Self::NationalId
        )
    }
}

/// The place of sensitive data; its value stays in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub kind: SensitiveKind,
    pub bytes: Range<usize>,
}

/// The action on sensitive data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is ignored.
    Ignore,
    /// It is counted, and stays.
    #[default]
    Flag,
    /// It is counted, and a mark with its kind replaces it.
    Redact,
}

/// The actions at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Handling {
    /// The action on personal data: e-mail addresses, telephone, card and account numbers, national ids.
    pub personal: Action,
    /// The action on keys, tokens and passwords.
    pub secrets: Action,
}

impl Handling {
    /// Everything redacted.
    pub const REDACT: Self = Self { personal: Action::Redact, secrets: Action::Redact };

    /// Secrets redacted, personal data left: for a name or an error that is printed.
    pub const SECRETS: Self = Self { personal: Action::Ignore, secrets: Action::Redact };

    /// Returns the action on `kind`.
    pub fn of(self, kind: SensitiveKind) -> Action {
        if kind.is_personal() { self.personal } else { self.secrets }
    }
}

/// The actions at each place where text is stored or passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Safety {
    /// Messages that are stored; redacted text is nowhere in the store, and no ref gives it back.
    pub ingestion: Handling,
    /// Text that is sent to a model that summarises or selects, and contexts that `plimsoll ab` sends.
    pub summariser: Handling,
    /// Text that logs print.
    pub logs: Handling,
}

impl Default for Safety {
    /// Chosen: originals stay whole, a summariser gets no secrets, logs hold neither.
    fn default() -> Self {
        Self {
            ingestion: Handling::default(),
            summariser: Handling { personal: Action::Flag, secrets: Action::Redact },
            logs: Handling::REDACT,
        }
    }
}

/// How often each kind was found.
pub type Flags = BTreeMap<SensitiveKind, u32>;

/// Encodings of encodings that are read (chosen: an address in a query of an address in a text, and hidden characters in that).
const ENCODINGS: usize = 4;

/// Finds sensitive data in `text`, also where it is encoded, in order and without overlaps.
pub fn find(text: &str) -> Vec<Finding> {
    let mut found = find_decoded(text, ENCODINGS);
    if found.len() > 1 {
        // Of two overlapping findings the one that begins first counts, then the longer, then the more exact kind.
        found.sort_by_key(|finding: &Finding| {
            (finding.bytes.start, std::cmp::Reverse(finding.bytes.end), finding.kind)
        });
        let mut end = 0;
        found.retain(|finding| {
            let free = finding.bytes.start >= end;
            if free {
                end = finding.bytes.end;
            }
            free
        });
    }
    found
}

/// Finds sensitive data as it stands, and behind so many encodings, each within the one before.
fn find_decoded(text: &str, encodings: usize) -> Vec<Finding> {
    let mut found = Vec::new();
    anchors::find(text, &mut found);
    numbers::find(text, &mut found);
    if encodings > 0
        && let Some(decoded) = Decoded::of(text)
    {
        let encoded = find_decoded(&decoded.text, encodings - 1);
        found.extend(encoded.iter().map(|finding| decoded.original(finding)));
    }
    found
}

/// Returns `text` with `[redacted:KIND]` in the place of everything that `handling` redacts, and the counts.
///
/// Shape: no part of a value is left, not even its length, and a second call finds nothing more to redact.
pub fn redact(text: &str, handling: Handling) -> (Cow<'_, str>, Flags) {
    let mut flags = Flags::new();
    let mut redacted = Cow::Borrowed(text);
    // A finding may hide another that overlaps it and that shows once the first is replaced. Every round removes text
    // that is not a mark, and no finding lies inside a mark, so this ends.
    loop {
        let found = find(&redacted);
        let first_round = flags.is_empty();
        let mut out = String::new();
        let mut at = 0;
        for finding in found {
            let action = handling.of(finding.kind);
            if action == Action::Redact || (first_round && action == Action::Flag) {
                *flags.entry(finding.kind).or_default() += 1;
            }
            if action == Action::Redact {
                out.push_str(&redacted[at..finding.bytes.start]);
                out.push_str("[redacted:");
                out.push_str(finding.kind.as_str());
                out.push(']');
                at = finding.bytes.end;
            }
        }
        if at == 0 {
            return (redacted, flags);
        }
        out.push_str(&redacted[at..]);
        redacted = Cow::Owned(out);
    }
}

/// Returns `message` with redacted texts, or `None` if nothing changes; and the counts.
///
/// It reads texts, results, the arguments of calls, thinking and the addresses of images, but not opaque blocks. Thinking that
/// changes loses its signature, which no longer holds. A changed message has another content hash.
pub fn handle_message(message: &Message, handling: Handling) -> (Option<Message>, Flags) {
    let mut flags = Flags::new();
    let mut redacted = |text: &str| -> Option<Arc<str>> {
        let (new, found) = redact(text, handling);
        add(&mut flags, &found);
        match new {
            Cow::Borrowed(_) => None,
            Cow::Owned(new) => Some(new.into()),
        }
    };
    let changed = message.with_blocks(|_, block| {
        Some(match block {
            Block::Text(text) => Block::Text(redacted(text)?),
            Block::ToolResult(result) => {
                let text = redacted(&result.text);
                let images = images(&result.images, &mut redacted);
                if text.is_none() && images.is_none() {
                    return None;
                }
                let text = text.unwrap_or_else(|| result.text.clone());
                let images = images.unwrap_or_else(|| result.images.clone());
                Block::ToolResult(ToolResult { text, images, ..result.clone() })
            }
            Block::Thinking(thinking) => Block::Thinking(Thinking {
                text: redacted(&thinking.text)?,
                signature: Arc::from(""),
            }),
            Block::Image(shown) => Block::Image(image(shown, &mut redacted)?),
            Block::ToolCall(call) => {
                let changed = redacted(&call.arguments)?.to_string();
                let arguments = still_json(&call.arguments, changed, handling).into();
                Block::ToolCall(ToolCall { arguments, ..call.clone() })
            }
            Block::Opaque(_) => return None,
        })
    });
    (changed, flags)
}

/// Returns images with redacted addresses, or `None` if nothing changes.
fn images(
    images: &[Image],
    redacted: &mut impl FnMut(&str) -> Option<Arc<str>>,
) -> Option<Vec<Image>> {
    let new: Vec<_> = images.iter().map(|shown| image(shown, redacted)).collect();
    new.iter().any(Option::is_some).then(|| {
        let pairs = new.into_iter().zip(images);
        pairs.map(|(new, old)| new.unwrap_or_else(|| old.clone())).collect()
    })
}

/// Returns an image with a redacted address; encoded data is not looked into.
fn image(image: &Image, redacted: &mut impl FnMut(&str) -> Option<Arc<str>>) -> Option<Image> {
    // A scheme ends in a colon, which base64 does not have.
    let scheme =
        image.data.as_bytes().iter().take(LONGEST_SCHEME).position(|byte| *byte == b':')?;
    let is_data = image.data[..scheme].eq_ignore_ascii_case("data");
    let data = if is_data { None } else { redacted(&image.data) };
    data.map(|data| Image { data, ..image.clone() })
}

/// The most bytes of an address that are searched for the end of its scheme (chosen: registered ones have at most 36).
const LONGEST_SCHEME: usize = 40;

/// Returns the value of the field `name` without what `handling` redacts; `None` if nothing changes.
///
/// The name counts: the value of a field named `password` is redacted. A value that is JSON stays JSON.
pub fn redact_field(name: &str, value: &str, handling: Handling) -> Option<String> {
    let before = if name.is_empty() { String::new() } else { format!("{name}: ") };
    let written = format!("{before}{value}");
    let Cow::Owned(written) = redact(&written, handling).0 else { return None };
    let redacted = match written.strip_prefix(&before) {
        Some(rest) => rest.to_owned(),
        // The name itself holds something, so the value is read alone.
        None => redact(value, handling).0.into_owned(),
    };
    if redacted == value {
        return None;
    }
    let is_json = value.trim_start().starts_with(['{', '[']);
    Some(if is_json { still_json(value, redacted, handling) } else { redacted })
}

/// Returns `redacted`; if a mark in the place of a number broke its JSON, redacts the values of `arguments` instead.
fn still_json(arguments: &str, redacted: String, handling: Handling) -> String {
    let holds = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if holds(&redacted) {
        return redacted;
    }
    let Ok(mut value) = serde_json::from_str::<Value>(arguments) else { return redacted };
    redact_value(&mut value, handling);
    value.to_string()
}

fn redact_value(value: &mut Value, handling: Handling) {
    match value {
        Value::String(text) => *text = redact(text, handling).0.into_owned(),
        Value::Number(number) => {
            let written = number.to_string();
            if let Cow::Owned(redacted) = redact(&written, handling).0 {
                *value = Value::String(redacted);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact_value(item, handling)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| redact_value(field, handling));
            // Values that only their name shows as secrets, and the names themselves.
            *fields = std::mem::take(fields)
                .into_iter()
                .map(|(key, field)| of_name(&key, field, handling))
                .collect();
        }
        _ => {}
    }
}

fn of_name(key: &str, field: Value, handling: Handling) -> (String, Value) {
    let named = match &field {
        Value::String(text) => redact(&format!("{key}: {text}"), handling).0.into_owned(),
        _ => String::new(),
    };
    let field = match named.strip_prefix(&format!("{key}: ")) {
        Some(text) if field.as_str().is_some_and(|field| field != text) => Value::from(text),
        _ => field,
    };
    (redact(key, handling).0.into_owned(), field)
}

/// Adds the counts of `more` to `flags`.
pub fn add(flags: &mut Flags, more: &Flags) {
    for (kind, count) in more {
        *flags.entry(*kind).or_default() += count;
    }
}

/// Writes counts as `2 email, 1 jwt`; empty for none.
pub fn told(flags: &Flags) -> String {
    let parts: Vec<String> =
        flags.iter().map(|(kind, count)| format!("{count} {}", kind.as_str())).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests;
