//! Which API a request speaks, and what it asks for.

use hyper::Method;
use plimsoll_wire::Wire;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// An answer of the model. Gemini says in the path whether it streams; the others say it in the body.
    Turn(Wire, Option<AnswerDelivery>),
    CountTokens(Wire),
    /// `responses/compact`.
    Compact,
    Models,
    /// `HEAD /`, with which clients look whether anybody is there.
    Presence,
    Unknown,
}

/// How an answer arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerDelivery {
    Whole,
    Streamed,
}

impl Endpoint {
    /// Reads method and path (without query), with or without the version in front.
    pub(crate) fn of(method: &Method, path: &str) -> Self {
        let path = path.trim_matches('/');
        let versions = ["v1beta/", "v1alpha/", "v1/"];
        let path = versions.iter().find_map(|version| path.strip_prefix(version)).unwrap_or(path);
        if *method == Method::HEAD {
            return Self::Presence;
        }
        if *method == Method::GET {
            return if path == "models" { Self::Models } else { Self::Unknown };
        }
        match path {
            "messages" => Self::Turn(Wire::AnthropicMessages, None),
            "messages/count_tokens" => Self::CountTokens(Wire::AnthropicMessages),
            "chat/completions" => Self::Turn(Wire::ChatCompletions, None),
            "responses" => Self::Turn(Wire::Responses, None),
            "responses/compact" => Self::Compact,
            _ => match path.strip_prefix("models/").and_then(|rest| rest.rsplit_once(':')) {
                Some((_, "generateContent")) => {
                    Self::Turn(Wire::Gemini, Some(AnswerDelivery::Whole))
                }
                Some((_, "streamGenerateContent")) => {
                    Self::Turn(Wire::Gemini, Some(AnswerDelivery::Streamed))
                }
                Some((_, "countTokens")) => Self::CountTokens(Wire::Gemini),
                _ => Self::Unknown,
            },
        }
    }
}
