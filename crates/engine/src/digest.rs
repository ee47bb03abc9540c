//! Digests of rows, by which a store checks what it reads. Each covers all that the row says; what a store counts on it, such as hits, is left out.

use plimsoll_core::MillisSinceEpoch;

use crate::card::ContextCard;
use crate::error::StoreError;
use crate::history::{Bill, ReceiptRecord};
use crate::knowledge::Answer;
use crate::memory::{MemoryRecord, Scope};
use crate::search::Embedding;
use crate::valid::digest;

/// Joins parts by a character that texts hardly hold, so that none runs into the next.
fn joined(parts: &[String]) -> String {
    digest(parts.join("\u{1f}").as_bytes())
}

fn list(texts: &[String]) -> String {
    texts.join("\u{1e}")
}

fn text(text: Option<&String>) -> String {
    text.cloned().unwrap_or_default()
}

fn time(time: Option<MillisSinceEpoch>) -> String {
    time.map_or_else(String::new, |time| time.0.to_string())
}

fn vector(embedding: Option<&Embedding>) -> String {
    let Some(Embedding { model, vector }) = embedding else { return String::new() };
    let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_bits().to_le_bytes()).collect();
    format!("{model}:{}", digest(&bytes))
}

fn check(
    what: impl FnOnce() -> String,
    own: impl FnOnce() -> String,
    stored: Option<&str>,
) -> Result<(), StoreError> {
    if stored.is_none_or(|stored| stored == own()) {
        return Ok(());
    }
    Err(StoreError::Corrupt { what: what() })
}

impl MemoryRecord {
    /// Returns the digest of all that it says; its vector is not part of it.
    pub fn digest(&self) -> String {
        let Self {
            tenant: _,
            id,
            kind,
            state,
            scope: Scope { workspace, user, session, agent },
            micro,
            summary,
            full,
            origin,
            confidence,
            source_ref,
            tags,
            event_at,
            created_at,
            updated_at,
            superseded_by,
            embedding: _,
            details,
        } = self;
        joined(&[
            id.0.clone(),
            kind.as_str().to_owned(),
            state.as_str().to_owned(),
            text(workspace.as_ref()),
            text(user.as_ref()),
            session.as_ref().map_or_else(String::new, |one| one.as_str().to_owned()),
            text(agent.as_ref()),
            micro.clone(),
            text(summary.as_ref()),
            text(full.as_ref()),
            origin.clone(),
            confidence.to_bits().to_string(),
            text(source_ref.as_ref()),
            list(tags),
            time(*event_at),
            created_at.0.to_string(),
            updated_at.0.to_string(),
            superseded_by.as_ref().map_or_else(String::new, |id| id.0.clone()),
            details.clone(),
        ])
    }

    /// Checks the digest that was stored with it, if one was.
    pub fn check_digest(&self, stored: Option<&str>) -> Result<(), StoreError> {
        check(|| format!("memory {:?}", self.id.0), || self.digest(), stored)
    }
}

impl ContextCard {
    /// Returns the digest of all that it says, its vector included.
    pub fn digest(&self) -> String {
        let Self {
            tenant: _,
            session,
            content_hash,
            summary,
            keywords,
            embedding,
            estimated_tokens,
            role,
            phase_name,
            turn_number,
            is_anchor,
            is_callout,
            callout_name,
            generated_at,
            generator_model,
            message_timestamp,
        } = self;
        joined(&[
            session.as_str().to_owned(),
            content_hash.clone(),
            summary.clone(),
            list(keywords),
            vector(embedding.as_ref()),
            estimated_tokens.to_string(),
            role.as_str().to_owned(),
            text(phase_name.as_ref()),
            turn_number.map_or_else(String::new, |turn| turn.to_string()),
            is_anchor.to_string(),
            is_callout.to_string(),
            text(callout_name.as_ref()),
            generated_at.0.to_string(),
            generator_model.clone(),
            message_timestamp.0.to_string(),
        ])
    }

    /// Checks the digest that was stored with it, if one was.
    pub fn check_digest(&self, stored: Option<&str>) -> Result<(), StoreError> {
        let what =
            || format!("the card of message {} in session {}", self.content_hash, self.session);
        check(what, || self.digest(), stored)
    }
}

impl ReceiptRecord {
    /// Returns the digest of all that it says.
    pub fn digest(&self) -> String {
        let Self {
            session,
            turn,
            trace_id,
            cascade_id,
            selection_type,
            strategy,
            full_history_size,
            context_size,
            masked_count,
            anchor_hashes,
            selected_hashes,
            tokens_saved,
            bill,
            receipt,
            recorded_at,
        } = self;
        let bill = bill.map_or_else(String::new, |Bill { billed, without, estimate }| {
            format!("{} {} {estimate}", billed.to_bits(), without.to_bits())
        });
        joined(&[
            session.as_str().to_owned(),
            turn.to_string(),
            trace_id.clone(),
            text(cascade_id.as_ref()),
            selection_type.as_str().to_owned(),
            strategy.clone(),
            full_history_size.to_string(),
            context_size.to_string(),
            masked_count.to_string(),
            list(anchor_hashes),
            list(selected_hashes),
            tokens_saved.to_string(),
            bill,
            receipt.clone(),
            recorded_at.0.to_string(),
        ])
    }

    /// Checks the digest that was stored with it, if one was.
    pub fn check_digest(&self, stored: Option<&str>) -> Result<(), StoreError> {
        let what = || format!("the receipt of turn {} in session {}", self.turn, self.session);
        check(what, || self.digest(), stored)
    }
}

impl Answer {
    /// Returns the digest of all that it says, its vector included; its hits are counted apart.
    pub fn digest(&self) -> String {
        let Self {
            tenant: _,
            cache_key,
            query_text,
            query_embedding,
            answer_text,
            context_signature,
            used_refs,
            created_at,
            ttl_expires_at,
            hit_count: _,
            last_hit_at: _,
        } = self;
        joined(&[
            cache_key.clone(),
            query_text.clone(),
            vector(query_embedding.as_ref()),
            answer_text.clone(),
            context_signature.clone(),
            list(used_refs),
            created_at.0.to_string(),
            time(*ttl_expires_at),
        ])
    }

    /// Checks the digest that was stored with it, if one was.
    pub fn check_digest(&self, stored: Option<&str>) -> Result<(), StoreError> {
        check(|| format!("the answer {}", self.cache_key), || self.digest(), stored)
    }
}
