//! A session: lists of messages of one agent, each bounded like a request of it that goes through the gateway.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use plimsoll_cli::BoundRules;
use plimsoll_core::policy::Policy;
use plimsoll_core::terms::Surroundings;
use plimsoll_core::{MillisSinceEpoch, Ref};
use plimsoll_engine::SessionId;
use plimsoll_engine::live::{Conversation, RequestPins, SessionRequest};
use plimsoll_wire::{DEFAULT_DEPTH, Edits, ProviderRequest, Wire, check_rewritten};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::failed;

/// A session in memory.
#[pyclass(frozen, name = "NativeSession", module = "plimsoll._native")]
#[derive(Debug)]
pub(crate) struct NativeSession {
    rules: BoundRules,
    policy: Policy,
    strategy: String,
    /// Whether the agent has a tool that returns the original behind a ref.
    lookups: bool,
    conversation: Mutex<Conversation>,
}

/// A list as it goes out: for each element the index of the one that it was, and its JSON if that changed.
type Written = Vec<(Option<usize>, Option<String>)>;

/// A bounded list.
#[pyclass(frozen, get_all, module = "plimsoll._native")]
#[derive(Debug)]
pub(crate) struct BoundList {
    /// The elements; `None` if the list goes out as it came.
    elements: Option<Written>,
    /// The decision as JSON.
    receipt: String,
    /// The rule that the changed list would have broken; then it goes out as it came.
    violation: Option<String>,
}

#[pymethods]
impl NativeSession {
    /// Begins a session under a policy of the settings in force, or of those in a file.
    #[new]
    #[pyo3(signature = (policy, budget=None, lookups=false, config=None))]
    fn new(
        py: Python<'_>,
        policy: &str,
        budget: Option<u64>,
        lookups: bool,
        config: Option<PathBuf>,
    ) -> PyResult<Self> {
        let rules = py.detach(move || BoundRules::read(config.as_deref())).map_err(failed)?;
        let name = SessionId::new("python").map_err(failed)?;
        Ok(Self {
            policy: rules.policy(policy, budget).map_err(failed)?,
            strategy: policy.to_owned(),
            rules,
            lookups,
            conversation: Mutex::new(Conversation::new(name)),
        })
    }

    /// Bounds a list of messages; `fields` are the other fields of the request, as the inner part of a JSON object.
    #[pyo3(signature = (wire, fields, messages, at=None))]
    fn bound(
        &self,
        py: Python<'_>,
        wire: &str,
        fields: &str,
        messages: Vec<pyo3::pybacked::PyBackedStr>,
        at: Option<i64>,
    ) -> PyResult<BoundList> {
        let known = Wire::ALL.into_iter().find(|one| one.as_str() == wire);
        let names = || Wire::ALL.map(Wire::as_str).join(", ");
        let wire =
            known.ok_or_else(|| failed(format!("unknown wire `{wire}`; one of {}", names())))?;
        let fields = fields.to_owned();
        py.detach(move || {
            let now = at.map_or_else(BoundRules::now, MillisSinceEpoch);
            self.bounded(wire, &fields, &messages, now)
        })
        .map_err(failed)
    }

    /// Returns the text of the message behind a ref, if it was said in this session.
    fn expand(&self, py: Python<'_>, reference: &str) -> Option<String> {
        let prefix = Ref::prefix(reference)?;
        py.detach(|| {
            let conversation = self.conversation.lock().unwrap_or_else(PoisonError::into_inner);
            conversation.original(&prefix)
        })
    }
}

impl NativeSession {
    fn bounded(
        &self,
        wire: Wire,
        fields: &str,
        messages: &[impl AsRef<str>],
        now: MillisSinceEpoch,
    ) -> Result<BoundList, String> {
        let body = body(wire, fields, messages);
        let request = ProviderRequest::parse(wire, body.as_bytes(), "", DEFAULT_DEPTH)
            .map_err(|error| error.to_string())?;
        let around = Surroundings { lookups: self.lookups, ..request.surroundings() };
        let asked = SessionRequest {
            messages: request.messages(),
            model: request.model(),
            policy: &self.policy,
            strategy: &self.strategy,
            tools: around.before_key,
            around: &around,
            added: None,
            observed: false,
            pins: RequestPins::default(),
            now,
        };
        let bounded = {
            let mut conversation = self.conversation.lock().unwrap_or_else(PoisonError::into_inner);
            conversation.ask(&asked, self.rules.pricing())
        };
        let (_, bounded) = bounded.ok_or("the session has no room for another branch")?;
        let receipt = serde_json::to_string(&bounded.receipt).map_err(|error| error.to_string())?;
        let edits = Edits { messages: bounded.edits, append: bounded.added, ..Edits::default() };
        if edits.is_empty() {
            return Ok(BoundList { elements: None, receipt, violation: None });
        }
        let rewritten = request.rewritten(&edits).map_err(|error| error.to_string())?;
        // The caller's own mistakes stay; only new ones keep the rewritten list back.
        if let Some(first) = check_rewritten(wire, request.body(), &rewritten.body).first() {
            let violation = Some(first.to_string());
            return Ok(BoundList { elements: None, receipt, violation });
        }
        let written: WrittenBody<'_> =
            serde_json::from_slice(&rewritten.body).map_err(|error| error.to_string())?;
        let kept = kept(&request, &edits, messages.len());
        let elements = Some(elements(messages, &kept, &written.messages));
        Ok(BoundList { elements, receipt, violation: None })
    }
}

/// Writes the request that these messages and fields make.
fn body(wire: Wire, fields: &str, messages: &[impl AsRef<str>]) -> String {
    let length: usize = messages.iter().map(|message| message.as_ref().len() + 1).sum();
    let mut body = String::with_capacity(length + fields.len() + 32);
    body.push('{');
    body.push_str(fields);
    if !fields.is_empty() {
        body.push(',');
    }
    body.push('"');
    body.push_str(wire.list_key());
    body.push_str("\":[");
    for (index, message) in messages.iter().enumerate() {
        if index > 0 {
            body.push(',');
        }
        body.push_str(message.as_ref());
    }
    body.push_str("]}");
    body
}

/// The list of a request that was rewritten.
#[derive(Deserialize)]
struct WrittenBody<'a> {
    #[serde(borrow, alias = "input", alias = "contents")]
    messages: Vec<&'a RawValue>,
}

/// Returns the elements of the list in which something stays, ascending.
fn kept(request: &ProviderRequest, edits: &Edits, elements: usize) -> Vec<usize> {
    let (mut gone, mut stays) = (vec![false; elements], vec![false; elements]);
    let mut forms = edits.messages.iter().peekable();
    for index in 0..request.messages().len() {
        let form = forms.next_if(|(at, _)| *at == index);
        let seen =
            if form.is_some_and(|(_, form)| form.is_none()) { &mut gone } else { &mut stays };
        for element in request.elements_of(index) {
            if let Some(seen) = seen.get_mut(element) {
                *seen = true;
            }
        }
    }
    (0..elements).filter(|&element| stays[element] || !gone[element]).collect()
}

/// Returns the written elements beside the ones that they were: those that stay are in their order.
fn elements(messages: &[impl AsRef<str>], kept: &[usize], written: &[&RawValue]) -> Written {
    let is_aligned = kept.len() == written.len();
    let as_it_came = |raw: &str| messages.iter().position(|message| message.as_ref() == raw);
    let elements = written.iter().enumerate().map(|(at, raw)| {
        let raw = raw.get();
        // A list that got an element of our own is matched by content.
        let origin = if is_aligned { kept.get(at).copied() } else { as_it_came(raw) };
        let is_same = origin.is_some_and(|origin| messages[origin].as_ref() == raw);
        (origin, (!is_same).then(|| raw.to_owned()))
    });
    elements.collect()
}
