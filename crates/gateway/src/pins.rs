//! Pins and drops of a request: from its headers, from the log of its session, and from the conversation that it goes on with.

use http::{HeaderMap, HeaderName};
use plimsoll_core::lazy_tools::ToolDefinition;
use plimsoll_core::lookup::{DROP_FROM_CONTEXT, not_found};
use plimsoll_core::pins::{PinnedText, Wish, WishKind, WishedBy};
use plimsoll_core::{Ref, text};
use plimsoll_engine::live::RequestPins;
use plimsoll_engine::{SessionId, StoreError, wishes};
use plimsoll_wire::ProviderRequest;
use serde::Deserialize;

use crate::causes::causes;
use crate::gateway::Gateway;
use crate::headers;
use crate::refusal::RequestRefusal;
use crate::sessions::{SessionBranch, SessionKey, read};

/// Characters of a reason that are kept (chosen: a sentence or two).
const REASON: usize = 300;

/// Reads the wishes of the headers: refs, parted by commas or white space.
pub(crate) fn of_headers(headers: &HeaderMap) -> Result<Vec<Wish>, RequestRefusal> {
    let mut wishes = Vec::new();
    for (name, kind) in [(headers::PIN, WishKind::Pin), (headers::DROP, WishKind::Drop)] {
        for value in headers.get_all(&name) {
            let text = value.to_str().map_err(|_| malformed(&name))?;
            let refs = text.split([',', ' ']).filter(|one| !one.is_empty());
            for reference in refs {
                wishes.push(Wish::of_user(kind, reference).ok_or_else(|| malformed(&name))?);
            }
        }
    }
    Ok(wishes)
}

fn malformed(name: &HeaderName) -> RequestRefusal {
    RequestRefusal::Malformed(format!("{name} holds refs, or 8 or more hex digits of each"))
}

/// Gathers the pins and drops of a request; `is_new` says that nothing is known of its conversation.
///
/// A store that does not answer costs a wish its place in this request, and nothing else.
pub(crate) async fn of_request(
    gateway: &Gateway,
    request: &ProviderRequest,
    key: &SessionKey,
    of_headers: &[Wish],
    is_new: bool,
) -> RequestPins {
    let history = &*gateway.history;
    let logged = wishes::wishes(history, &key.0, &key.1).await;
    let mut wishes = logged.unwrap_or_else(|error| {
        tracing::warn!(error = %causes(&error), "pins could not be read");
        Vec::new()
    });
    wishes.extend(of_headers.iter().cloned());
    let is_compacted = request.goes_on_behind_a_summary();
    let before = if is_compacted && is_new {
        compacted(gateway, key).await.unwrap_or_else(|error| {
            tracing::warn!(error = %causes(&error), "what was pinned could not be read");
            Vec::new()
        })
    } else {
        Vec::new()
    };
    RequestPins { wishes, is_compacted, before }
}

/// Returns what was pinned in the conversation that the client compacted.
async fn compacted(gateway: &Gateway, key: &SessionKey) -> Result<Vec<PinnedText>, StoreError> {
    let tenant = &key.0;
    let Some(link) = link(key) else { return Ok(Vec::new()) };
    let Some(before) = wishes::last_compacted(&*gateway.history, tenant, &link).await? else {
        return Ok(Vec::new());
    };
    // It is locked already, and a conversation cannot go on from itself.
    if before == key.1 {
        return Ok(Vec::new());
    }
    let key = (tenant.clone(), before);
    let held = gateway.sessions.get(&key, || None);
    let mut guard = read(held, &key, &*gateway.history).await?;
    Ok(guard.as_mut().map_or_else(Vec::new, |one| one.pinned_texts(&gateway.pricing)))
}

/// Takes note of a conversation whose client asks for a summary, in whose place it will go on.
pub(crate) async fn note_compaction(gateway: &Gateway, key: &SessionKey) {
    let Some(link) = link(key) else { return };
    let (history, now) = (&*gateway.history, gateway.clock.now());
    let noted = wishes::note_compaction(history, &key.0, &link, &key.1, now).await;
    if let Err(error) = noted {
        tracing::warn!(error = %causes(&error), "a compaction could not be noted");
    }
}

/// Returns the name that the client gave a session; `None` where it gave none.
fn link(key: &SessionKey) -> Option<SessionId> {
    // The conversations of one session have a digest of their first words behind it.
    let (name, _) = key.1.as_str().rsplit_once(':')?;
    SessionId::new(name).ok()
}

/// Returns the definition of the tool with which a model gives up a message.
pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: DROP_FROM_CONTEXT.name.to_owned(),
        description: DROP_FROM_CONTEXT.description.to_owned(),
        schema: DROP_FROM_CONTEXT.parameters.to_owned(),
    }
}

#[derive(Debug, Deserialize)]
struct DropArguments {
    #[serde(rename = "ref")]
    reference: String,
    reason: String,
}

/// Answers a call with which the model gives up a message.
pub(crate) async fn give_up(
    gateway: &Gateway,
    branch: &SessionBranch,
    arguments: &str,
) -> Result<String, String> {
    let asked: DropArguments = serde_json::from_str(arguments)
        .map_err(|error| format!("the arguments cannot be read: {error}"))?;
    let prefix = Ref::prefix(asked.reference.trim()).ok_or_else(|| not_found(&asked.reference))?;
    let known = branch.read(|session| session.original(&prefix).is_some()).await;
    if known != Some(true) {
        return Err(not_found(&asked.reference));
    }
    let why = text::line(&asked.reason, REASON);
    let wish = Wish {
        number: None,
        kind: WishKind::Drop,
        prefix,
        by: WishedBy::Agent,
        why: Some(why.into()),
    };
    let (tenant, session) = &branch.key;
    let now = gateway.clock.now();
    let kept = wishes::wish(&*gateway.history, tenant, session, wish, now).await;
    kept.map_err(|error| error.to_string())?;
    Ok("It goes as soon as that saves something; expand_ref still returns it.".to_owned())
}
