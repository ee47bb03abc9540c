//! Routes: the wire and the endpoint of a path.

use super::Wire;

/// The endpoint that a request's method and path name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// An answer of a model.
    Generate(Wire),
    /// The size of the request in the body, which is changed as that request would be, and is no part of history.
    CountTokens(Wire),
    /// A smaller history, made by the provider; never changed.
    Compact,
    /// The socket that Codex tries first; status 426 sends it to the ordinary path at once.
    Socket,
    /// Anything else, passed on as it is.
    Other,
}

impl Route {
    /// Recognises a method and a path, with or without `/v1`; a query and a final slash do not matter.
    pub fn of(method: &str, path: &str) -> Self {
        let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        let bare = path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).unwrap_or(path);
        match (method, bare) {
            ("GET", "/responses") => Self::Socket,
            ("POST", "/messages") => Self::Generate(Wire::AnthropicMessages),
            ("POST", "/messages/count_tokens") => Self::CountTokens(Wire::AnthropicMessages),
            ("POST", "/chat/completions") => Self::Generate(Wire::ChatCompletions),
            ("POST", "/responses") => Self::Generate(Wire::Responses),
            ("POST", "/responses/input_tokens") => Self::CountTokens(Wire::Responses),
            ("POST", "/responses/compact") => Self::Compact,
            ("POST", _) => match model_and_method(path) {
                Some((_, "generateContent" | "streamGenerateContent")) => {
                    Self::Generate(Wire::Gemini)
                }
                Some((_, "countTokens")) => Self::CountTokens(Wire::Gemini),
                _ => Self::Other,
            },
            _ => Self::Other,
        }
    }
}

/// Returns the model and the method that a Gemini path names.
pub(crate) fn model_and_method(path: &str) -> Option<(&str, &str)> {
    let path = path.split(['?', '#']).next()?.trim_end_matches('/');
    let (_, last) = path.rsplit_once("odels/")?;
    last.split_once(':').filter(|(model, _)| !model.is_empty() && !model.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_recognised_with_and_without_version() {
        let cases = [
            ("POST", "/v1/messages?beta=true", Route::Generate(Wire::AnthropicMessages)),
            ("POST", "/messages", Route::Generate(Wire::AnthropicMessages)),
            ("POST", "/v1/messages/count_tokens", Route::CountTokens(Wire::AnthropicMessages)),
            ("POST", "/v1/messages/batches", Route::Other),
            ("GET", "/v1/messages", Route::Other),
            ("POST", "/v1/chat/completions/", Route::Generate(Wire::ChatCompletions)),
            ("POST", "/chat/completions", Route::Generate(Wire::ChatCompletions)),
            ("POST", "/v1/responses", Route::Generate(Wire::Responses)),
            ("POST", "/responses/compact", Route::Compact),
            ("GET", "/v1/responses", Route::Socket),
            ("GET", "/v1/responses/resp_1", Route::Other),
            ("GET", "/v1/models", Route::Other),
            (
                "POST",
                "/v1beta/models/gemini-2.5-pro:generateContent",
                Route::Generate(Wire::Gemini),
            ),
            (
                "POST",
                "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
                Route::Generate(Wire::Gemini),
            ),
            ("POST", "/v1beta/models/gemini-2.5-pro:countTokens", Route::CountTokens(Wire::Gemini)),
            ("POST", "/v1beta/models/gemini-embedding-001:embedContent", Route::Other),
            ("POST", "/v1beta/tunedModels/mine:generateContent", Route::Generate(Wire::Gemini)),
            ("POST", "", Route::Other),
        ];
        for (method, path, expected) in cases {
            assert_eq!(Route::of(method, path), expected, "{method} {path}");
        }
    }
}
