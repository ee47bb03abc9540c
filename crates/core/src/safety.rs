//! Personal data and secrets in text: found by form, flagged or redacted by setting.
//!
//! What has a checksum is checked, what has a fixed prefix is held to its alphabet and length, and what has neither counts
//! only where a name says what it is. Hashes, UUIDs, timestamps and ids are none of these.

mod address;
mod anchors;
mod assignment;
mod entropy;
mod numbers;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{Block, Message};

/// What a piece of text gives away.
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
    /// What follows `Bearer` or `Basic` in a header.
    AuthHeader,
    /// The password in a URL.
    UrlPassword,
    /// The value of something named password.
    Password,
    /// The value of something named key, token or secret, with the entropy of one.
    Secret,
}

impl SensitiveKind {
    /// Every kind, personal data first.
    pub const ALL: [Self; 20] = [
        Self::Email,
        Self::Phone,
        Self::PaymentCard,
        Self::Iban,
        Self::NationalId,
        Self::AwsKey,
        Self::GithubToken,
        Self::GitlabToken,
        Self::OpenaiKey,
        Self::AnthropicKey,
        Self::GoogleKey,
        Self::SlackToken,
        Self::StripeKey,
        Self::ServiceToken,
        Self::Jwt,
        Self::PrivateKey,
        Self::AuthHeader,
        Self::UrlPassword,
        Self::Password,
        Self::Secret,
    ];

    /// Returns the name that stands in a redacted text and in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Phone => "phone",
            Self::PaymentCard => "payment_card",
            Self::Iban => "iban",
            Self::NationalId => "national_id",
            Self::AwsKey => "aws_key",
            Self::GithubToken => "github_token",
            Self::GitlabToken => "gitlab_token",
            Self::OpenaiKey => "openai_key",
            Self::AnthropicKey => "anthropic_key",
            Self::GoogleKey => "google_key",
            Self::SlackToken => "slack_token",
            Self::StripeKey => "stripe_key",
            Self::ServiceToken => "service_token",
            Self::Jwt => "jwt",
            Self::PrivateKey => "private_key",
            Self::AuthHeader => "auth_header",
            Self::UrlPassword => "url_password",
            Self::Password => "password",
            Self::Secret => "secret",
        }
    }

    /// Tells personal data from what opens doors.
    pub fn is_personal(self) -> bool {
        matches!(
            self,
            Self::Email | Self::Phone | Self::PaymentCard | Self::Iban | Self::NationalId
        )
    }
}

/// Where something sensitive stands; its value is only in the text itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub kind: SensitiveKind,
    pub bytes: Range<usize>,
}

/// What is done about something sensitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is not looked for.
    Ignore,
    /// It is counted, and stays.
    #[default]
    Flag,
    /// It is counted, and its place says what stood there.
    Redact,
}

/// What is done at one place.
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

    /// Returns what is done about `kind`.
    pub fn of(self, kind: SensitiveKind) -> Action {
        if kind.is_personal() { self.personal } else { self.secrets }
    }
}

/// What is done at each place where text is kept or passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Safety {
    /// Messages that are stored; redacted text is nowhere in the store, and no ref gives it back.
    pub ingestion: Handling,
    /// Text that is sent to a model that summarises or selects.
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

/// Finds what is sensitive in `text`, in order; no two findings overlap.
pub fn find(text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    anchors::find(text, &mut found);
    numbers::find(text, &mut found);
    if found.len() > 1 {
        // Of two in one place the one that begins first counts, then the longer, then the more exact kind.
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

/// Returns `text` with `[redacted:KIND]` in the place of everything that `handling` redacts, and what it counts.
///
/// Shape: nothing of the value, not even its length, is left, and nothing that is redacted is found again.
pub fn redact(text: &str, handling: Handling) -> (Cow<'_, str>, Flags) {
    let mut flags = Flags::new();
    let mut redacted = Cow::Borrowed(text);
    // A finding may have hidden another that overlaps with it, which shows when it is gone. Every round takes something away
    // that is not a mark, and no finding holds a bracket's inside, so this ends.
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

/// Returns `message` with its texts handled, or `None` where nothing of it changes; and what was counted.
///
/// Texts, results and the arguments of calls are looked at; thinking and opaque blocks are not, since providers refuse a
/// change there. A changed message has another content hash.
pub fn handle_message(message: &Message, handling: Handling) -> (Option<Message>, Flags) {
    let mut flags = Flags::new();
    let mut changed = false;
    let mut handled = |text: &Arc<str>| -> Arc<str> {
        let (new, found) = redact(text, handling);
        add(&mut flags, &found);
        match new {
            Cow::Borrowed(_) => text.clone(),
            Cow::Owned(new) => {
                changed = true;
                new.into()
            }
        }
    };
    let blocks = message
        .blocks
        .iter()
        .map(|block| match block.clone() {
            Block::Text(text) => Block::Text(handled(&text)),
            Block::ToolResult(mut result) => {
                result.text = handled(&result.text);
                Block::ToolResult(result)
            }
            Block::ToolCall(mut call) => {
                let arguments = handled(&call.arguments);
                call.arguments = still_json(&call.arguments, arguments, handling);
                Block::ToolCall(call)
            }
            other => other,
        })
        .collect();
    (changed.then(|| Message { blocks, ..message.clone() }), flags)
}

/// Returns `redacted`, or where it is no JSON any more and `arguments` were, the same as JSON: a number is no place for a mark.
fn still_json(arguments: &Arc<str>, redacted: Arc<str>, handling: Handling) -> Arc<str> {
    let holds = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if redacted == *arguments || holds(&redacted) {
        return redacted;
    }
    let Ok(mut value) = serde_json::from_str::<Value>(arguments) else { return redacted };
    redact_value(&mut value, handling);
    value.to_string().into()
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
            // What only its name gives away, and what stands in the names themselves.
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

/// A byte that continues a word.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The byte before `at`, or a space at the beginning.
fn before(bytes: &[u8], at: usize) -> u8 {
    at.checked_sub(1).map_or(b' ', |at| bytes[at])
}

/// The byte at `at`, or a space at the end.
fn byte_at(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(b' ')
}

#[cfg(test)]
mod tests;
