//! Preparing a request: it is read, aligned with its session, bounded, written and checked. If a step fails, the original goes out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::HeaderMap;
use plimsoll_core::safety::Handling;
use plimsoll_core::{Block, ContextBudget, Message, pressure};
use plimsoll_engine::live::{AddedMemory, Bounded, Conversation, RequestPins, session_name};
use plimsoll_engine::{Bills, SessionId, StoreError, TenantId};
use plimsoll_wire::{
    Edits, ProviderRequest, RequestError, RequestKind, RewriteError, Rewritten, Wire,
    check_rewritten, redact_body,
};

use crate::answer_cache::Awaited;
use crate::asked::{self, Asked};
use crate::client_options::RequestOptions;
use crate::config::Mode;
use crate::gateway::Gateway;
use crate::metrics::Counter;
use crate::offer::Offer;
use crate::options::RequestAdditions;
use crate::own_calls;
use crate::pins;
use crate::ports::KeptAnswer;
use crate::refusal::RequestRefusal;
use crate::report::Report;
use crate::sessions::{SessionBranch, SessionKey, read};
use crate::surroundings::{RequestSurroundings, offers_lookups};
use crate::turn::SessionTurn;
use crate::work::BrokeOff;

/// Why a request goes out as it came.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FailOpen {
    /// It must stay untouched.
    #[error("{0}")]
    Kind(&'static str),
    /// It is nested too deep to be passed on at all.
    #[error("too deep")]
    Refused(RequestRefusal),
    #[error("it cannot be read")]
    Request(#[from] RequestError),
    #[error("the store did not answer")]
    Store(#[from] StoreError),
    #[error("it cannot be written")]
    Rewrite(#[from] RewriteError),
    /// No provider would accept the request that we wrote.
    #[error("it would break a rule: {0}")]
    Violation(String),
    /// The store takes nothing, and no more can wait for it.
    #[error("the history is behind, and no more turns can wait for the store")]
    Behind,
    #[error("it has no room in its session")]
    NoBranch,
    #[error(transparent)]
    BrokeOff(#[from] BrokeOff),
}

impl FailOpen {
    /// Returns whether this is intended, and no failure of ours.
    pub(crate) fn is_expected(&self) -> bool {
        matches!(self, Self::Kind(_) | Self::Refused(_))
    }
}

/// A prepared request.
#[derive(Debug)]
pub(crate) struct PreparedRequest {
    pub(crate) request: Arc<ProviderRequest>,
    /// The body that goes out; `None` where it is the client's.
    pub(crate) body: Option<Bytes>,
    /// The values of `anthropic-beta` that the provider needs to read it.
    pub(crate) betas: Vec<&'static str>,
    pub(crate) edits: Edits,
    pub(crate) turn: SessionTurn,
    pub(crate) report: Report,
    /// The question under which the answer cache may keep the answer.
    pub(crate) awaited: Option<Awaited>,
    /// The answer from the cache, where it has one.
    pub(crate) found: Option<KeptAnswer>,
}

/// The decision about a request in its conversation.
#[derive(Debug)]
struct TurnDecision {
    branch: usize,
    bounded: Bounded,
    asked: Asked,
    offer: Offer,
    carried: Vec<Arc<str>>,
    session: SessionId,
    bills: Bills,
    additions: RequestAdditions,
}

/// A request to be prepared.
#[derive(Debug, Clone)]
pub(crate) struct Preparation {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) wire: Wire,
    pub(crate) tenant: TenantId,
    /// The name of the upstream.
    pub(crate) upstream: String,
    pub(crate) options: RequestOptions,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Set where the session has to be read from the store first.
    pub(crate) is_rebuilt: Arc<AtomicBool>,
}

/// A request as the client sent it, for when it goes out without us.
#[derive(Debug)]
pub(crate) struct Original {
    wire: Wire,
    path: String,
    body: Bytes,
    depth: usize,
    is_bounded: bool,
}

impl Original {
    /// Returns the body with the wish that thinking which fits no more is dropped; `None` where there is no such thinking.
    pub(crate) fn unbound(&self, gateway: &Gateway) -> Option<Bytes> {
        if !self.is_bounded || self.wire != Wire::AnthropicMessages {
            return None;
        }
        let request = ProviderRequest::parse(self.wire, &self.body, &self.path, self.depth).ok()?;
        let priced = gateway.prices_now(request.model());
        let thinks = |message: &Arc<Message>| {
            message.blocks.iter().any(|block| matches!(block, Block::Thinking(_)))
        };
        if !priced.prices.bound_thinking || !request.messages().iter().any(thinks) {
            return None;
        }
        let edits = Edits { drop_thinking: true, ..Edits::default() };
        request.rewrite(&edits).ok().map(Bytes::from)
    }
}

impl TurnDecision {
    /// Returns the changes of the request, and the values of `anthropic-beta` under which the provider reads them.
    fn edits(&self) -> (Edits, Vec<&'static str>) {
        let lookups = self.carried.iter().filter_map(|text| own_calls::read(text));
        let restore = lookups.skip(self.bounded.receipt.lookups_left_out).collect();
        let messages = self.bounded.edits.clone();
        let append = self.bounded.added.clone();
        let edits = Edits { messages, restore, append, ..Edits::default() };
        let edits = self.additions.clone().added_to(edits);
        (self.offer.clone().added_to(edits), self.additions.betas())
    }
}

impl Preparation {
    pub(crate) fn original(&self) -> Original {
        Original {
            wire: self.wire,
            path: self.path.clone(),
            body: self.body.clone(),
            depth: self.depth(),
            is_bounded: self.options.mode == Mode::On,
        }
    }

    fn depth(&self) -> usize {
        self.gateway.config.limits.depth
    }

    /// Does work that grows with the body.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, FailOpen> {
        Ok(self.gateway.work.run(self.body.len(), work).await?)
    }

    /// Reads the body.
    async fn parse(&self) -> Result<ProviderRequest, FailOpen> {
        let (wire, body, path) = (self.wire, self.body.clone(), self.path.clone());
        let depth = self.depth();
        let parse = move || ProviderRequest::parse(wire, &body, &path, depth);
        self.gateway.work.read(self.body.len(), parse).await?.map_err(|error| match error {
            RequestError::TooDeep { depth } => {
                FailOpen::Refused(RequestRefusal::TooDeep { most: depth })
            }
            error => FailOpen::Request(error),
        })
    }

    /// Returns what the answer cache may answer, of a request or of the body that goes out in its stead.
    fn awaited(&self, request: &ProviderRequest, body: Option<&[u8]>) -> Option<Awaited> {
        let answers = self.gateway.answers.as_ref()?;
        // Where tools are offered an answer may act, and none is kept; to ask would cost reading the body again.
        if self.options.mode != Mode::On || !self.options.cache || !request.tools().is_empty() {
            return None;
        }
        // These decide what a provider makes of a body.
        let headers = ["anthropic-version", "anthropic-beta", "openai-beta"];
        let header = |name| self.headers.get(name).and_then(|value| value.to_str().ok());
        let mut beside: Vec<&str> = headers.map(|name| header(name).unwrap_or_default()).into();
        beside.push(&self.upstream);
        let depth = self.depth();
        // The question is what the model reads, and so is without what is taken out on the way.
        let redacted = self.gateway.config.add.redact.then(|| {
            redact_body(body.unwrap_or_else(|| request.body()), depth, Handling::REDACT).ok()
        });
        let redacted = match redacted {
            Some(unread) => unread?,
            None => None,
        };
        let question = match redacted.as_deref().or(body) {
            None => request.question(&beside),
            Some(body) => {
                ProviderRequest::parse(self.wire, body, &self.path, depth).ok()?.question(&beside)
            }
        };
        // The cache stores a question with its answer, and a redacted one would no longer ask the same.
        if !asked::may_be_stored(&question.text, self.gateway.ingestion) {
            return None;
        }
        let awaited = Awaited { tenant: self.tenant.clone(), question };
        answers.takes(&awaited.question).then_some(awaited)
    }

    /// Names the session of a request; one that stands beside a conversation is none of its turns.
    pub(crate) fn key(&self, request: &ProviderRequest) -> Result<SessionKey, FailOpen> {
        let header = |name: &str| Some(self.headers.get(name)?.to_str().ok()?.to_owned());
        let is_turn = request.kind() != RequestKind::Aside;
        let by_client = || is_turn.then(|| request.named_session(header)).flatten();
        let named = self.options.session.clone().or_else(by_client);
        let name = session_name(named.as_deref(), &request.own_session(), request.messages());
        let session =
            SessionId::new(&name).map_err(|_| FailOpen::Kind("its session has no name"))?;
        Ok((self.tenant.clone(), session))
    }

    /// Decides what goes out of a request in its conversation; `None` where it has no branch there.
    fn decide(
        &self,
        conversation: &mut Conversation,
        request: &ProviderRequest,
        added: Option<AddedMemory>,
        pins: RequestPins,
        goes_out_as_it_came: bool,
    ) -> Option<TurnDecision> {
        let gateway = &self.gateway;
        let now = gateway.clock.now();
        let messages = asked::stored(request.messages(), gateway.ingestion);
        let prices = gateway.priced(request.model()).prices;
        let (offer, put_back) = if goes_out_as_it_came {
            (Offer::default(), Vec::new())
        } else {
            let session = conversation.predict(&messages);
            let policy = &self.options.policy;
            let lookups = offers_lookups(gateway, request, &prices, session, policy, now);
            (
                Offer::of(gateway, request, lookups),
                session.map(own_calls::put_back).unwrap_or_default(),
            )
        };
        let (tools, lookups) = (offer.digest(request), offer.has_lookups());
        let around = RequestSurroundings::of(
            gateway, request, &prices, tools, &offer.own, lookups, put_back,
        );
        let asked = Asked {
            messages,
            model: request.model().map(Into::into),
            policy: self.options.policy.clone(),
            strategy: self.options.strategy.clone(),
            tools,
            around: around.surroundings.clone(),
            added,
            observed: goes_out_as_it_came,
            pins,
            now,
        };
        let (branch, bounded) = conversation.ask(&asked.request(), &gateway.pricing)?;
        let session = conversation.branch(branch)?;
        let as_it_came = session.went_out_as_it_came();
        let additions = RequestAdditions::of(
            &self.options.policy,
            &prices,
            &bounded,
            &around,
            as_it_came,
            request.messages(),
        );
        let (carried, bills) = (session.carried().to_vec(), session.bills());
        let session = session.id().clone();
        Some(TurnDecision { branch, bounded, asked, offer, carried, session, bills, additions })
    }

    /// Writes a request with its changes.
    fn write(&self, request: &ProviderRequest, edits: &Edits) -> Result<Rewritten, FailOpen> {
        let rewritten = request.rewritten(edits)?;
        // The client's own mistakes stay; only new ones keep the rewritten request back.
        match check_rewritten(self.wire, request.body(), &rewritten.body).first() {
            None => Ok(rewritten),
            Some(violation) => Err(FailOpen::Violation(violation.to_string())),
        }
    }

    /// Returns the budget of the model's window, else of the usual one.
    fn window(&self, request: &ProviderRequest) -> ContextBudget {
        let usual = ContextBudget::default();
        let window = u64::from(self.gateway.priced(request.model()).prices.window);
        ContextBudget {
            total_tokens: if window > 0 { window } else { usual.total_tokens },
            ..usual
        }
    }

    /// Bounds a request.
    pub(crate) async fn prepare(self) -> Result<PreparedRequest, FailOpen> {
        let request = Arc::new(self.parse().await?);
        let aside = match request.kind() {
            RequestKind::Turn => None,
            RequestKind::Unsupported(what) => return Err(FailOpen::Kind(what)),
            kind @ RequestKind::Compaction => {
                if let Ok(key) = self.key(&request) {
                    pins::note_compaction(&self.gateway, &key).await;
                }
                return Err(FailOpen::Kind(kind.as_str()));
            }
            // Nothing of it is bounded, but a question by itself is what a cache answers.
            kind @ RequestKind::Aside => {
                Some(self.awaited(&request, None).ok_or(FailOpen::Kind(kind.as_str()))?)
            }
            kind => return Err(FailOpen::Kind(kind.as_str())),
        };
        if self.gateway.backlog.is_full() {
            return Err(FailOpen::Behind);
        }
        let goes_out_as_it_came = self.options.mode != Mode::On || aside.is_some();
        let key = self.key(&request)?;
        self.gateway.pauses.end(&key);
        self.is_rebuilt.store(!self.gateway.sessions.has(&key), Ordering::Relaxed);
        let held = self.gateway.sessions.get(&key, || None);
        let mut guard = read(held.clone(), &key, &*self.gateway.history).await?;
        let recalled = match (&self.gateway.memory, guard.as_mut()) {
            (Some(memory), Some(conversation)) if !goes_out_as_it_came => {
                let messages = asked::stored(request.messages(), self.gateway.ingestion);
                let shown = conversation.shown_records(&messages);
                let most = self.options.policy.ceiling();
                memory.recalled(&self.tenant, &key.1, request.messages(), &shown, most).await
            }
            _ => None,
        };
        let (added, assembly) = recalled.map(|found| (found.added, found.assembly)).unzip();
        let is_new = guard.as_ref().is_some_and(Conversation::is_empty);
        let pins =
            pins::of_request(&self.gateway, &request, &key, &self.options.wishes, is_new).await;
        let preparation = self.clone();
        let asked = request.clone();
        // Both in one piece of work: to hand another one to a thread takes a tenth of a millisecond.
        let done = self
            .work(move || {
                let decision = preparation.decide(
                    guard.as_mut()?,
                    &asked,
                    added,
                    pins,
                    goes_out_as_it_came,
                )?;
                drop(guard);
                let (edits, betas) = decision.edits();
                let edits = if goes_out_as_it_came { Edits::default() } else { edits };
                let written = (!edits.is_empty()).then(|| preparation.write(&asked, &edits));
                Some((decision, edits, betas, written))
            })
            .await?;
        let (decision, edits, betas, written) = done.ok_or(FailOpen::NoBranch)?;
        let TurnDecision { branch, bounded, asked, offer, session, bills, .. } = decision;
        let receipt = &bounded.receipt;
        // A request that goes out as it came saves nothing, whatever a policy would have done.
        let tokens = if goes_out_as_it_came { receipt.full_tokens } else { receipt.tokens };
        let mut report = Report {
            session: session.clone(),
            strategy: self.options.strategy.clone(),
            full_tokens: receipt.full_tokens,
            tokens,
            observed: goes_out_as_it_came.then_some(receipt.tokens),
            over_budget: if goes_out_as_it_came { 0 } else { receipt.over_budget },
            pressure: pressure(tokens, &self.window(&request)).percent,
            cost: bounded.receipt.cost,
            full_cost: bounded.note.full_cost,
            changes: bounded.receipt.changes.len(),
            misses: bounded.note.misses.clone(),
            preview: if goes_out_as_it_came { bounded.receipt.preview() } else { None },
            bills,
        };
        let branch = SessionBranch { key, held, number: branch };
        let mut turn =
            SessionTurn::new(self.gateway.clone(), branch, bounded, asked, assembly.flatten());
        let saved = offer.saved;
        let body = match written {
            None => None,
            Some(written) => {
                let written = written?;
                report.misses = turn.note_unplaced(written.unplaced);
                Some(Bytes::from(written.body))
            }
        };
        self.gateway.metrics.add_amount(Counter::Tokens, "tools_saved", saved);
        let awaited = aside.or_else(|| self.awaited(&request, body.as_deref()));
        let found = match &awaited {
            Some(awaited) => awaited.find(&self.gateway).await,
            None => None,
        };
        Ok(PreparedRequest { request, body, betas, edits, turn, report, awaited, found })
    }

    /// Gives a request whose size is asked for the form that it will have; history does not change.
    pub(crate) async fn predict(self) -> Result<Option<Bytes>, FailOpen> {
        let request = Arc::new(self.parse().await?);
        let key = self.key(&request)?;
        if !self.gateway.sessions.has(&key) {
            return Ok(None);
        }
        let held = self.gateway.sessions.get(&key, || None);
        let mut guard = read(held, &key, &*self.gateway.history).await?;
        let Some(conversation) = guard.as_mut() else { return Ok(None) };
        let messages = asked::stored(request.messages(), self.gateway.ingestion);
        // Decided like the request itself, on a copy, so that the size is that of the request.
        let mut copy = conversation.copy_for(&messages);
        drop(guard);
        let (preparation, asked) = (self.clone(), request.clone());
        let done = self
            .work(move || {
                preparation.decide(&mut copy, &asked, None, RequestPins::default(), false)
            })
            .await?;
        let (edits, _) = done.ok_or(FailOpen::NoBranch)?.edits();
        if edits.is_empty() {
            return Ok(None);
        }
        let body = self.work(move || request.rewrite(&edits)).await??;
        Ok(Some(Bytes::from(body)))
    }
}
