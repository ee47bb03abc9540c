//! The client's options for one request: headers over the settings.

use http::{HeaderMap, HeaderName};
use plimsoll_core::pins::Wish;
use plimsoll_core::policy::Policy;

use crate::config::Mode;
use crate::gateway::Gateway;
use crate::headers;
use crate::pins;
use crate::refusal::RequestRefusal;

/// The client's options for one request.
#[derive(Debug, Clone)]
pub(crate) struct RequestOptions {
    pub(crate) mode: Mode,
    pub(crate) policy: Policy,
    pub(crate) strategy: String,
    pub(crate) session: Option<String>,
    /// Whether the answer cache may have a part in it.
    pub(crate) cache: bool,
    /// What the headers pin and drop.
    pub(crate) wishes: Vec<Wish>,
}

impl RequestOptions {
    /// Reads the headers over the settings.
    pub(crate) fn of(gateway: &Gateway, headers: &HeaderMap) -> Result<Self, RequestRefusal> {
        let text = |name: &HeaderName| match headers.get(name).map(|value| value.to_str()) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text.trim())),
            Some(Err(_)) => Err(RequestRefusal::Malformed(format!("the header {name} is no text"))),
        };
        let mode = match text(&headers::MODE)? {
            None => gateway.config.mode,
            Some(name) => Mode::parse(name).ok_or_else(|| {
                RequestRefusal::Malformed(format!("{} is observe, on or off", headers::MODE))
            })?,
        };
        let strategy = text(&headers::POLICY)?.unwrap_or(&gateway.config.policy).to_owned();
        let budget = match text(&headers::BUDGET)? {
            None => None,
            Some(number) => Some(number.parse().map_err(|_| {
                RequestRefusal::Malformed(format!(
                    "{} is a whole number of tokens",
                    headers::BUDGET
                ))
            })?),
        };
        let policy = gateway.policies.policy(&strategy, budget).ok_or_else(|| {
            RequestRefusal::Malformed(format!("{} names no policy that is known", headers::POLICY))
        })?;
        let session = text(&headers::SESSION)?.filter(|name| !name.is_empty()).map(str::to_owned);
        let cache = match text(&headers::CACHE)? {
            None | Some("on") => true,
            Some("off") => false,
            Some(_) => {
                return Err(RequestRefusal::Malformed(format!("{} is on or off", headers::CACHE)));
            }
        };
        let wishes = pins::of_headers(headers)?;
        Ok(Self { mode, policy, strategy, session, cache, wishes })
    }
}
