//! Calls over HTTP: timeouts, retries, and what a failure means.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::ModelError;
use plimsoll_wire::{Failure, FailureKind};
use reqwest::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
};
use reqwest::{Client, Method, Response, StatusCode};

use crate::config::{ModelApi, Retries};
use crate::failure;
use crate::ports::Outside;
use crate::provider::Provider;
use crate::retry;

/// Larger answers are no answer of a model (chosen; embeddings of a thousand texts are some 30 MB of JSON).
const LARGEST: usize = 256 << 20;

/// The version of the Messages API that is spoken.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The way to one provider.
#[derive(Debug, Clone)]
pub(crate) struct Transport {
    client: Client,
    headers: HeaderMap,
    pub(crate) provider: Arc<Provider>,
    retries: Retries,
    outside: Outside,
}

impl Transport {
    /// Makes the way; nothing is sent.
    pub(crate) fn new(
        provider: Arc<Provider>,
        retries: Retries,
        outside: Outside,
    ) -> Result<Self, ModelError> {
        // Whoever was first has installed one already; any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .connect_timeout(provider.timeouts.connect())
            // A key must not follow a redirect to another host.
            .redirect(reqwest::redirect::Policy::none())
            // Shorter than any known server keeps a silent connection: writing into a closing one loses the request.
            .pool_idle_timeout(Duration::from_secs(15))
            .user_agent(concat!("plimsoll/", env!("CARGO_PKG_VERSION")));
        if is_on_this_machine(&provider.base_url) {
            builder = builder.no_proxy();
        }
        let client = builder
            .build()
            .map_err(|error| ModelError::Invalid(format!("no HTTP client: {}", causes(&error))))?;
        let headers = headers(&provider)?;
        Ok(Self { client, headers, provider, retries, outside })
    }

    /// Sends `body` and returns the begun answer of a status that means success.
    ///
    /// Tried again is what failed before the first byte of an answer: no connection, one that was lost, or a status that says
    /// so. A request that was taken and not answered in time is being worked on, and so is not.
    pub(crate) async fn post(&self, path: &str, body: &[u8]) -> Result<HttpAnswer, ModelError> {
        let mut attempt = 1;
        loop {
            let refused = match self.once(Method::POST, path, Some(body), self.first_byte()).await {
                Ok(answer) => return Ok(answer),
                Err(AttemptError::Final(error)) => return Err(error),
                Err(AttemptError::Refused(refused)) => refused,
            };
            let chance = self.outside.chance.draw();
            match retry::pause(self.retries, attempt, refused.retry_after, chance) {
                Some(pause) => self.outside.clock.sleep(pause).await,
                None => return Err(refused.into()),
            }
            attempt += 1;
        }
    }

    /// Asks once, without a body.
    pub(crate) async fn get(&self, path: &str, limit: Duration) -> Result<Vec<u8>, ModelError> {
        match self.once(Method::GET, path, None, limit).await {
            Ok(answer) => answer.bytes().await,
            Err(AttemptError::Final(error)) => Err(error),
            Err(AttemptError::Refused(refused)) => Err(refused.into()),
        }
    }

    fn first_byte(&self) -> Duration {
        self.provider.timeouts.first_byte().min(self.provider.timeouts.whole())
    }

    async fn once(
        &self,
        method: Method,
        path: &str,
        body: Option<&[u8]>,
        limit: Duration,
    ) -> Result<HttpAnswer, AttemptError> {
        let start = self.outside.clock.now();
        let url = format!("{}{path}", self.provider.base_url);
        let mut request = self.client.request(method, url).headers(self.headers.clone());
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_vec());
        }
        let sent = self.outside.within(limit, request.send()).await;
        let Some(sent) = sent else {
            return Err(AttemptError::Final(ModelError::Interrupted(format!(
                "{} sent nothing within {} s",
                self.provider.name,
                limit.as_secs()
            ))));
        };
        let response = sent.map_err(|error| {
            AttemptError::Refused(RefusedAttempt { message: self.told(error), retry_after: None })
        })?;
        let status = response.status();
        let wait = self.wait(&response);
        let answer = HttpAnswer {
            response,
            start,
            outside: self.outside.clone(),
            provider: self.provider.clone(),
        };
        if status.is_success() {
            return Ok(answer);
        }
        // A failure that can't be read whole is a failure all the same.
        let text = answer.bytes().await.unwrap_or_default();
        Err(self.refusal(status, &text, wait))
    }

    fn wait(&self, response: &Response) -> Option<Duration> {
        let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
        retry::retry_after(value, self.outside.clock.now())
    }

    fn refusal(
        &self,
        status: StatusCode,
        body: &[u8],
        retry_after: Option<Duration>,
    ) -> AttemptError {
        let told = Failure::of_body(body).unwrap_or_else(|| Failure {
            message: String::from_utf8_lossy(body).into_owned(),
            word: None,
        });
        let message = self.provider.clean(&told.message);
        let message = format!("{} answered {}: {message}", self.provider.name, status.as_u16());
        match told.kind(status.as_u16()) {
            FailureKind::Later => AttemptError::Refused(RefusedAttempt { message, retry_after }),
            kind => AttemptError::Final(failure::error(kind, message, retry_after)),
        }
    }

    fn told(&self, error: reqwest::Error) -> String {
        let text = causes(&error.without_url());
        format!("{}: {}", self.provider.name, self.provider.clean(&text))
    }
}

/// A failed attempt.
enum AttemptError {
    /// May be tried again.
    Refused(RefusedAttempt),
    Final(ModelError),
}

struct RefusedAttempt {
    message: String,
    retry_after: Option<Duration>,
}

impl From<RefusedAttempt> for ModelError {
    fn from(refused: RefusedAttempt) -> Self {
        Self::Unavailable { message: refused.message, retry_after: refused.retry_after }
    }
}

/// An answer whose head has come.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    response: Response,
    start: MillisSinceEpoch,
    outside: Outside,
    provider: Arc<Provider>,
}

impl HttpAnswer {
    /// Returns the next chunk, `None` at the proper end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Vec<u8>>, ModelError> {
        let whole = self.provider.timeouts.whole();
        let left = self.outside.left(self.start, whole);
        match self.outside.within(left, self.response.chunk()).await {
            None => Err(ModelError::Interrupted(format!(
                "{} was not done within {} s",
                self.provider.name,
                whole.as_secs()
            ))),
            Some(Err(error)) => {
                let text = causes(&error.without_url());
                let text = self.provider.clean(&text);
                Err(ModelError::Interrupted(format!("{}: {text}", self.provider.name)))
            }
            Some(Ok(chunk)) => Ok(chunk.map(Vec::from)),
        }
    }

    /// Returns the whole body.
    pub(crate) async fn bytes(mut self) -> Result<Vec<u8>, ModelError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            bytes.extend(chunk);
            if bytes.len() > LARGEST {
                let name = &self.provider.name;
                return Err(ModelError::Unusable(format!("{name} sent more than {LARGEST} bytes")));
            }
        }
        Ok(bytes)
    }
}

fn headers(provider: &Provider) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    let mut add = |name: &str, value: &str| {
        let pair = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
        // The value may be a key, so only the name is told.
        let (name, mut value) = pair.ok_or_else(|| {
            ModelError::Invalid(format!(
                "the header `{name}` for `{}` can't be sent",
                provider.name
            ))
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok::<(), ModelError>(())
    };
    if provider.api == ModelApi::Anthropic {
        add("anthropic-version", ANTHROPIC_VERSION)?;
    }
    if let Some(key) = &provider.key {
        match &provider.key_header {
            Some(name) => add(name, key.expose())?,
            None if provider.api == ModelApi::Anthropic => add("x-api-key", key.expose())?,
            None => add(AUTHORIZATION.as_str(), &format!("Bearer {}", key.expose()))?,
        }
    }
    for (name, value) in &provider.headers {
        add(name, value.expose())?;
    }
    Ok(headers)
}

fn is_on_this_machine(base_url: &str) -> bool {
    let url = reqwest::Url::parse(base_url).ok();
    let host = url.as_ref().and_then(reqwest::Url::host_str);
    host.is_some_and(|host| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost"
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

/// Writes an error with its causes, since the first one rarely says what happened.
fn causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text.push_str(": ");
        text.push_str(&deeper.to_string());
        cause = deeper.source();
    }
    text
}
