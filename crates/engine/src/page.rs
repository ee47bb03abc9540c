//! Results of tools as artefacts: kind and compressed view by content, and what changed since a page was last seen.

use plimsoll_core::card::{Summary, summarise};
use plimsoll_core::payload::{Delta, compress, delta, kind_of_payload, source_of};
use plimsoll_core::text::{Limit, head};
use plimsoll_core::{Message, MillisSinceEpoch, Tokenizer};

use crate::artefact::{Artefact, ArtefactKind, ArtefactRef, RefQuery};
use crate::error::StoreError;
use crate::id::{SessionId, TenantId};
use crate::knowledge::KnowledgeStore;
use crate::valid::{LONGEST_SUMMARY, digest};

/// The newest artefacts of a kind among which an earlier state of a page is looked for (chosen).
const LOOKED_AT: usize = 500;

/// Makes the artefact of what a tool answered: the payload's kind, its compressed view, a summary, and where it came from.
pub fn artefact_of(
    tenant: &TenantId,
    session: Option<&SessionId>,
    text: &str,
    tokenizer: Tokenizer,
    now: MillisSinceEpoch,
) -> Artefact {
    let summary = match summarise(&Message::result("", text)) {
        Summary::Fast(summary) => {
            Some(head(&summary, Limit::Characters(LONGEST_SUMMARY)).to_owned())
        }
        Summary::Model => None,
    };
    Artefact {
        tenant: tenant.clone(),
        reference: ArtefactRef {
            kind: ArtefactKind(kind_of_payload(text).as_str().to_owned()),
            digest: digest(text.as_bytes()),
            view: None,
        },
        session: session.cloned(),
        created_at: now,
        ttl_expires_at: None,
        summary,
        compressed: compress(text, tokenizer).map(|compressed| compressed.text),
        content: text.as_bytes().to_vec(),
        freshness_score: 1.0,
        access_count: 0,
        last_accessed_at: None,
        source_meta: source_of(text).map(|source| source.to_string()),
    }
}

/// Returns what changed since the newest earlier state of the same page, with that state's ref; `None` for an unknown page,
/// and for one that is as it was.
///
/// A page is the same by its kind and its source's id or URL.
pub async fn changed_since(
    knowledge: &dyn KnowledgeStore,
    tenant: &TenantId,
    artefact: &Artefact,
    now: MillisSinceEpoch,
) -> Result<Option<(ArtefactRef, Delta)>, StoreError> {
    let content = String::from_utf8_lossy(&artefact.content);
    let Some(source) = source_of(&content) else { return Ok(None) };
    let kind = Some(artefact.reference.kind.clone());
    let query = RefQuery { kind, limit: LOOKED_AT, ..RefQuery::default() };
    let known = knowledge.artefacts(tenant, &query).await?;
    let is_same = |other: &&Artefact| {
        let meta = other.source_meta.as_deref().and_then(|meta| serde_json::from_str(meta).ok());
        other.reference.view.is_none()
            && meta.is_some_and(|meta: serde_json::Value| source.is_of(&meta))
    };
    let Some(last) = known.iter().find(is_same) else { return Ok(None) };
    if last.reference.digest == artefact.reference.digest {
        return Ok(None);
    }
    let last = knowledge.artefact(tenant, &last.reference.print(), now).await?;
    let delta = delta(&String::from_utf8_lossy(&last.content), &content);
    Ok(Some((last.reference, delta)))
}
