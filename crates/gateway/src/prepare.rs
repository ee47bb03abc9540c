//! Preparing a request: read, aligned with its session, bounded, written, checked; whatever fails, the original stands.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use plimsoll_core::policy::Policy;
use plimsoll_core::safety::{Handling, handle_message};
use plimsoll_core::{ContentHash, ContextBudget, Message, Role, pressure};
use plimsoll_engine::live::{Asked, session_name};
use plimsoll_engine::{SessionId, StoreError, TenantId};
use plimsoll_formats::provider::{
    Edits, Request, RequestError, RequestKind, RewriteError, Wire, check_rewritten,
};

use crate::config::Mode;
use crate::gateway::Gateway;
use crate::headers;
use crate::lookup;
use crate::refusal::Refusal;
use crate::report::Report;
use crate::sessions::{Key, read};
use crate::turn::Turn;
use crate::withheld;

/// Bodies up to this size are worked on where they came in; handing larger ones to other threads costs less than they do.
const SMALL: usize = 32 << 10;

/// How a client wants this request to be treated.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) mode: Mode,
    pub(crate) policy: Policy,
    pub(crate) strategy: String,
    pub(crate) session: Option<String>,
}

impl Wish {
    /// Reads the headers over the settings.
    pub(crate) fn of(gateway: &Gateway, headers: &HeaderMap) -> Result<Self, Refusal> {
        let text = |name: &HeaderName| match headers.get(name).map(|value| value.to_str()) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text.trim())),
            Some(Err(_)) => Err(Refusal::Malformed(format!("the header {name} is no text"))),
        };
        let mode = match text(&headers::MODE)? {
            None => gateway.config.mode,
            Some(name) => Mode::parse(name).ok_or_else(|| {
                Refusal::Malformed(format!("{} is observe, on or off", headers::MODE))
            })?,
        };
        let strategy = text(&headers::POLICY)?.unwrap_or(&gateway.config.policy).to_owned();
        let budget = match text(&headers::BUDGET)? {
            None => None,
            Some(number) => Some(number.parse().map_err(|_| {
                Refusal::Malformed(format!("{} is a whole number of tokens", headers::BUDGET))
            })?),
        };
        let policy = gateway.policies.policy(&strategy, budget).ok_or_else(|| {
            Refusal::Malformed(format!("{} names no policy that is known", headers::POLICY))
        })?;
        let session = text(&headers::SESSION)?.filter(|name| !name.is_empty()).map(str::to_owned);
        Ok(Self { mode, policy, strategy, session })
    }
}

/// Why a request goes out as it came.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Open {
    /// It must stay untouched.
    #[error("{0}")]
    Kind(&'static str),
    /// It is nested too deep to be passed on at all.
    #[error("too deep")]
    Refused(Refusal),
    #[error("it cannot be read")]
    Request(#[from] RequestError),
    #[error("the store did not answer")]
    Store(#[from] StoreError),
    #[error("it cannot be written")]
    Rewrite(#[from] RewriteError),
    /// What we made of it, no provider would accept.
    #[error("it would break a rule: {0}")]
    Violation(String),
    #[error("it has no room in its session")]
    NoBranch,
    #[error("our own work broke off")]
    Panicked,
}

impl Open {
    /// Tells whether this is as it should be, and no failure of ours.
    pub(crate) fn is_expected(&self) -> bool {
        matches!(self, Self::Kind(_) | Self::Refused(_))
    }
}

/// What a request came to.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) request: Arc<Request>,
    /// What goes out; `None` where it is what came in.
    pub(crate) body: Option<Bytes>,
    pub(crate) edits: Edits,
    pub(crate) turn: Turn,
    pub(crate) report: Report,
}

/// A request to be prepared.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) wire: Wire,
    pub(crate) tenant: TenantId,
    pub(crate) wish: Wish,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Set where the session has to be read from the store first.
    pub(crate) is_rebuilt: Arc<AtomicBool>,
}

impl Job {
    /// Reads the body.
    async fn parse(&self) -> Result<Request, Open> {
        let (wire, body, path) = (self.wire, self.body.clone(), self.path.clone());
        let limits = plimsoll_formats::provider::Limits { depth: self.gateway.config.limits.depth };
        let parsed = heavy(self.body.len(), move || Request::parse(wire, &body, &path, limits));
        parsed.await?.map_err(|error| match error {
            RequestError::TooDeep { depth } => Open::Refused(Refusal::TooDeep { most: depth }),
            error => Open::Request(error),
        })
    }

    fn key(&self, request: &Request) -> Result<Key, Open> {
        let header = |name: &str| Some(self.headers.get(name)?.to_str().ok()?.to_owned());
        let named = self.wish.session.clone().or_else(|| request.named_session(header));
        let name = session_name(named.as_deref(), &request.own_session(), request.messages());
        let session = SessionId::new(&name).map_err(|_| Open::Kind("its session has no name"))?;
        Ok((self.tenant.clone(), session))
    }

    /// Bounds a request.
    pub(crate) async fn prepare(self) -> Result<Prepared, Open> {
        let request = Arc::new(self.parse().await?);
        match request.kind() {
            RequestKind::Turn => {}
            RequestKind::Unsupported(what) => return Err(Open::Kind(what)),
            kind => return Err(Open::Kind(kind.as_str())),
        }
        let key = self.key(&request)?;
        self.is_rebuilt.store(!self.gateway.sessions.has(&key), Ordering::Relaxed);
        let held = self.gateway.sessions.get(&key);
        let mut guard = read(held.clone(), &key, &*self.gateway.history).await?;
        let job = self.clone();
        let asked = request.clone();
        let done = heavy(self.body.len(), move || {
            let conversation = guard.as_mut()?;
            let asked = Asked {
                messages: asked.messages(),
                model: asked.model(),
                policy: &job.wish.policy,
                strategy: &job.wish.strategy,
                tools: digest(&asked),
                observed: job.wish.mode != Mode::On,
                now: job.gateway.clock.now(),
            };
            let (branch, bounded) = conversation.ask(&asked, &job.gateway.pricing)?;
            let carried = conversation.branch(branch).map(|branch| branch.carried().to_vec());
            let id = conversation.branch(branch)?.id().clone();
            Some((branch, bounded, carried.unwrap_or_default(), id))
        })
        .await?;
        let (branch, bounded, carried, session) = done.ok_or(Open::NoBranch)?;
        let mut report = Report {
            session: session.clone(),
            strategy: self.wish.strategy.clone(),
            full_tokens: bounded.receipt.full_tokens,
            tokens: bounded.receipt.tokens,
            pressure: pressure(bounded.receipt.tokens, &ContextBudget::default()).percent,
            cost: bounded.receipt.cost,
            full_cost: bounded.note.full_cost,
            changes: bounded.receipt.changes.len(),
            misses: bounded.note.misses.clone(),
        };
        let restore = carried.iter().filter_map(|text| withheld::read(text)).collect();
        let messages = if self.gateway.config.add.redact {
            redacted(request.messages(), bounded.edits.clone())
        } else {
            bounded.edits.clone()
        };
        let append_user_text = match (&self.gateway.memory, self.wish.mode) {
            (Some(memory), Mode::On) => {
                memory.recalled(&self.tenant, &session, request.messages()).await
            }
            _ => None,
        };
        let edits = Edits { messages, restore, append_user_text, ..Edits::default() };
        let mut turn = Turn::new(self.gateway.clone(), key, held, branch, bounded);
        if self.wish.mode != Mode::On {
            return Ok(Prepared { request, body: None, edits: Edits::default(), turn, report });
        }
        let edits = self.with_tools(&request, edits);
        let body = if edits.is_empty() {
            None
        } else {
            let (wire, request, edits) = (self.wire, request.clone(), edits.clone());
            let written = heavy(self.body.len(), move || {
                let rewritten = request.rewritten(&edits)?;
                // What the client got wrong itself is its own business; what we add to that is not.
                let violations = check_rewritten(wire, request.body(), &rewritten.body);
                if violations.is_empty() {
                    return Ok(rewritten);
                }
                let first = violations.first().map(ToString::to_string);
                Err(Open::Violation(first.unwrap_or_default()))
            });
            let written = written.await??;
            report.misses = turn.note_unplaced(written.unplaced);
            Some(Bytes::from(written.body))
        };
        Ok(Prepared { request, body, edits, turn, report })
    }

    /// Offers our tools beside the client's: always, for they stand before everything else in a cached prefix.
    fn with_tools(&self, request: &Request, edits: Edits) -> Edits {
        let offered = request.tools();
        let own = lookup::definitions();
        let taken = own.iter().any(|own| offered.iter().any(|tool| tool.name == own.name));
        // Where the provider keeps the conversation, a call that we withheld could not be put back into it.
        let is_possible = !offered.is_empty() && !taken && !request.is_kept_by_the_server();
        if !self.gateway.config.add.tools || !is_possible {
            return edits;
        }
        Edits { add_tools: own, ..edits }
    }

    /// Gives a request whose size is asked for the form that it will have; history does not change.
    pub(crate) async fn predict(self) -> Result<Option<Bytes>, Open> {
        let request = Arc::new(self.parse().await?);
        let key = self.key(&request)?;
        if !self.gateway.sessions.has(&key) {
            return Ok(None);
        }
        let held = self.gateway.sessions.get(&key);
        let mut guard = read(held, &key, &*self.gateway.history).await?;
        let Some(conversation) = guard.as_mut() else { return Ok(None) };
        let edits = conversation.predict(request.messages()).map(|session| Edits {
            messages: session.forms(request.messages()),
            restore: session.carried().iter().filter_map(|text| withheld::read(text)).collect(),
            ..Edits::default()
        });
        drop(guard);
        let edits = self.with_tools(&request, edits.unwrap_or_default());
        if edits.is_empty() {
            return Ok(None);
        }
        let body = heavy(self.body.len(), move || request.rewrite(&edits)).await??;
        Ok(Some(Bytes::from(body)))
    }
}

/// Takes personal data and secrets out of what the user and the tools say, whatever its form is.
fn redacted(
    messages: &[Arc<Message>],
    edits: Vec<(usize, Option<Arc<Message>>)>,
) -> Vec<(usize, Option<Arc<Message>>)> {
    let mut forms: BTreeMap<usize, Option<Arc<Message>>> = edits.into_iter().collect();
    for (position, message) in messages.iter().enumerate() {
        if !matches!(message.role, Role::User | Role::Tool) {
            continue;
        }
        let form = match forms.get(&position) {
            Some(None) => continue,
            Some(Some(form)) => form,
            None => message,
        };
        if let (Some(changed), _) = handle_message(form, Handling::REDACT) {
            forms.insert(position, Some(Arc::new(changed)));
        }
    }
    forms.into_iter().collect()
}

/// Digests the tools that a request offers: they stand before everything in a cached prefix.
fn digest(request: &Request) -> u64 {
    let mut all = String::new();
    for tool in request.tools() {
        all.push_str(tool.raw);
        all.push('\n');
    }
    ContentHash::of(&Message::text(Role::System, all)).key()
}

/// Does work here where there is little of it, else on a thread that nobody waits on.
async fn heavy<T: Send + 'static>(
    size: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Open> {
    if size <= SMALL {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work).await.map_err(|_| Open::Panicked)
}
