//! Results of tools as artefacts: kind and compressed view by content.

use plimsoll_core::card::{Summary, summarise};
use plimsoll_core::payload::{compress, kind_of_payload, source_of};
use plimsoll_core::text::{Limit, head};
use plimsoll_core::{Message, MillisSinceEpoch, Tokenizer};

use crate::artefact::{Artefact, ArtefactKind, ArtefactRef};
use crate::id::{SessionId, TenantId};
use crate::valid::{LONGEST_SUMMARY, digest};

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
