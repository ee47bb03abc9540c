//! The parameters of a request: those of its path, its query and its body.

use percent_encoding::percent_decode_str;
use plimsoll_engine::SessionId;
use serde::de::DeserializeOwned;

use crate::problem::ApiError;

/// The parameters of a request.
#[derive(Debug, Default)]
pub(crate) struct Query {
    path: Vec<(String, String)>,
    pairs: Vec<(String, String)>,
}

/// Decodes a part of an address; `None` where it is no text.
pub(crate) fn decoded(part: &str) -> Option<String> {
    percent_decode_str(part).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

impl Query {
    /// Reads the query of an address beside the parameters of its path; names that are not `known` are refused.
    pub(crate) fn read(
        path: Vec<(String, String)>,
        query: &str,
        known: &[String],
    ) -> Result<Self, ApiError> {
        let mut pairs = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let text = |part: &str| {
                decoded(&part.replace('+', " "))
                    .ok_or_else(|| ApiError::Invalid("the query is no text in UTF-8".to_owned()))
            };
            let (name, value) = (text(name)?, text(value)?);
            if !known.contains(&name) {
                return Err(ApiError::Invalid(format!("there is no parameter `{name}`")));
            }
            pairs.push((name, value));
        }
        Ok(Self { path, pairs })
    }

    /// Returns a parameter of the path.
    pub(crate) fn path(&self, name: &str) -> &str {
        self.path.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Returns a parameter of the query.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns all values of a parameter.
    pub(crate) fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.pairs.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns a parameter that is read as a value.
    pub(crate) fn parsed<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let parse = |value: &str| {
            value.parse().map_err(|_| ApiError::Invalid(format!("`{name}` is not `{value}`")))
        };
        self.get(name).map(parse).transpose()
    }

    /// Returns a parameter whose values are the names of a type.
    pub(crate) fn named<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let read = |value: &str| {
            serde_json::from_value(value.into())
                .map_err(|_| ApiError::Invalid(format!("`{name}` is not `{value}`")))
        };
        self.get(name).map(read).transpose()
    }

    /// Returns the session that the path names.
    pub(crate) fn session(&self) -> Result<SessionId, ApiError> {
        let name = self.path("session");
        SessionId::new(name).map_err(|_| ApiError::NotFound(format!("session `{name}`")))
    }
}

/// Reads a body of JSON.
pub(crate) fn body<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(|error| ApiError::Invalid(error.to_string()))
}
