//! Vector search: over codes of ten bits in memory, measured again by the stored f32.
//!
//! The codes of a tenant are read when they are first asked for. Rows carry the count at which they changed, so a later
//! search reads only the rows that changed since, also those of other processes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use plimsoll_engine::{Embedding, TenantId};
use rusqlite::{Connection, OptionalExtension as _};

use super::failure::{SqliteFailure, unreadable};
use super::tenants::{self, Version};

/// Codes are measured again by f32 for this many times the hits asked for, and at least for `MEASURED`: two vectors whose
/// codes are in the wrong order differ by less than a thousandth, so few of them change places.
const MEASURED_PER_HIT: usize = 2;
const MEASURED: usize = 100;
/// The largest code: the products of 8,192 dimensions fit 32 bits.
const LARGEST_CODE: f32 = 511.0;

/// A table with vectors, and its statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum VectorTable {
    Cards,
    Memories,
}

impl VectorTable {
    /// Rows that changed after a generation; those without a vector leave the index.
    fn changes(self) -> &'static str {
        match self {
            Self::Cards => {
                "SELECT id, embedding, embedding_model FROM context_cards
                 WHERE tenant = ?1 AND generation > ?2 AND generation > 0"
            }
            Self::Memories => {
                "SELECT id, iif(is_present = 1, embedding, NULL), embedding_model
                 FROM memory_records WHERE tenant = ?1 AND generation > ?2 AND generation > 0"
            }
        }
    }

    fn vector(self) -> &'static str {
        match self {
            Self::Cards => {
                "SELECT embedding FROM context_cards
                 WHERE tenant = ?1 AND id = ?2 AND embedding_model = ?3"
            }
            Self::Memories => {
                "SELECT embedding FROM memory_records
                 WHERE tenant = ?1 AND id = ?2 AND embedding_model = ?3 AND is_present = 1"
            }
        }
    }
}

type SharedVectors = Arc<RwLock<TenantVectors>>;

/// The vectors that searches have read so far.
#[derive(Debug, Default)]
pub(super) struct VectorCache {
    by_tenant: Mutex<HashMap<(VectorTable, TenantId), SharedVectors>>,
}

#[derive(Debug, Default)]
struct TenantVectors {
    version: Version,
    /// By model and dimension: vectors of different models never meet.
    by_model: HashMap<(String, usize), Codes>,
    /// Where a row's codes stand.
    places: HashMap<i64, (String, usize)>,
}

/// The codes of one model, one row after another.
#[derive(Debug, Default)]
struct Codes {
    rows: Vec<i64>,
    parts: Vec<i16>,
    /// The factor of each row's codes.
    scales: Vec<f32>,
    slots: HashMap<i64, usize>,
}

impl VectorCache {
    /// Returns the rows nearest to `asked`, best first, with their cosines: at least `limit` if there are as many.
    pub(super) fn nearest(
        &self,
        connection: &Connection,
        table: VectorTable,
        tenant: &TenantId,
        asked: &Embedding,
        limit: usize,
    ) -> Result<Vec<(i64, f64)>, SqliteFailure> {
        let wanted = limit.saturating_mul(MEASURED_PER_HIT).max(MEASURED);
        let shared = self
            .by_tenant
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry((table, tenant.clone()))
            .or_default()
            .clone();
        let version = tenants::version(connection, tenant)?;
        let is_behind =
            |has: Version| has.epoch != version.epoch || has.generation < version.generation;
        let behind = is_behind(shared.read().unwrap_or_else(PoisonError::into_inner).version);
        if behind {
            let mut vectors = shared.write().unwrap_or_else(PoisonError::into_inner);
            if is_behind(vectors.version) {
                vectors.catch_up(connection, table, tenant, version)?;
            }
        }
        let rows = shared.read().unwrap_or_else(PoisonError::into_inner).scan(asked, wanted);
        let mut query = connection.prepare_cached(table.vector())?;
        let mut hits = Vec::with_capacity(rows.len());
        for row in rows {
            let stored: Option<Vec<u8>> = query
                .query_row((tenant.as_str(), row, &asked.model), |row| row.get(0))
                .optional()?;
            // Another reader may have seen a later state than this one.
            if let Some(stored) = stored
                && let Some(score) = cosine(&asked.vector, &vector(&stored)?)
            {
                hits.push((row, score));
            }
        }
        hits.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Ok(hits)
    }
}

impl TenantVectors {
    fn catch_up(
        &mut self,
        connection: &Connection,
        table: VectorTable,
        tenant: &TenantId,
        version: Version,
    ) -> Result<(), SqliteFailure> {
        if self.version.epoch != version.epoch {
            *self = Self::default();
        }
        let mut query = connection.prepare_cached(table.changes())?;
        let mut rows = query.query((tenant.as_str(), self.version.generation))?;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            self.remove(id);
            let stored: Option<&[u8]> =
                row.get_ref(1)?.as_blob_or_null().map_err(rusqlite::Error::from)?;
            let model: Option<String> = row.get(2)?;
            if let (Some(stored), Some(model)) = (stored, model) {
                let vector = vector(stored)?;
                let key = (model, vector.len());
                self.by_model.entry(key.clone()).or_default().insert(id, &vector);
                self.places.insert(id, key);
            }
        }
        self.version = version;
        Ok(())
    }

    fn remove(&mut self, row: i64) {
        if let Some(key) = self.places.remove(&row)
            && let Some(codes) = self.by_model.get_mut(&key)
        {
            codes.remove(row, key.1);
        }
    }

    fn scan(&self, asked: &Embedding, wanted: usize) -> Vec<i64> {
        let key = (asked.model.clone(), asked.vector.len());
        self.by_model.get(&key).map_or_else(Vec::new, |codes| codes.scan(&asked.vector, wanted))
    }
}

impl Codes {
    fn insert(&mut self, row: i64, vector: &[f32]) {
        let (codes, scale) = encode(vector);
        self.slots.insert(row, self.rows.len());
        self.rows.push(row);
        self.parts.extend(codes);
        self.scales.push(scale);
    }

    /// The last row takes the place of the removed one.
    fn remove(&mut self, row: i64, dimension: usize) {
        let Some(slot) = self.slots.remove(&row) else { return };
        let last = self.rows.len() - 1;
        self.parts.copy_within(last * dimension.., slot * dimension);
        self.parts.truncate(last * dimension);
        self.rows.swap_remove(slot);
        self.scales.swap_remove(slot);
        if let Some(moved) = self.rows.get(slot) {
            self.slots.insert(*moved, slot);
        }
    }

    /// Returns the `wanted` rows whose codes are nearest, in no order.
    fn scan(&self, asked: &[f32], wanted: usize) -> Vec<i64> {
        let (asked, _) = encode(asked);
        let mut best: Vec<(f32, i64)> = Vec::with_capacity(wanted * 2);
        let mut least = f32::NEG_INFINITY;
        let rows = self.parts.chunks_exact(asked.len().max(1));
        for ((codes, scale), row) in rows.zip(&self.scales).zip(&self.rows) {
            let score = dot(&asked, codes) as f32 * scale;
            if score > least {
                best.push((score, *row));
                if best.len() == wanted * 2 {
                    least = keep_best(&mut best, wanted);
                }
            }
        }
        if best.len() > wanted {
            keep_best(&mut best, wanted);
        }
        best.into_iter().map(|(_, row)| row).collect()
    }
}

/// Keeps the best `wanted` and returns the least score among them.
fn keep_best(best: &mut Vec<(f32, i64)>, wanted: usize) -> f32 {
    best.select_nth_unstable_by(wanted - 1, |a, b| b.0.total_cmp(&a.0));
    best.truncate(wanted);
    best[wanted - 1].0
}

/// Rounds a vector to ten bits a part, its largest part to the largest code.
fn encode(vector: &[f32]) -> (Vec<i16>, f32) {
    let largest = vector.iter().fold(0.0_f32, |largest, part| largest.max(part.abs()));
    let scale = if largest > 0.0 { largest / LARGEST_CODE } else { 1.0 };
    (vector.iter().map(|part| (part / scale).round() as i16).collect(), scale)
}

/// Sixteen bits are what every x86-64 multiplies and adds in pairs, eight at a time: at 100,000 × 256 this took 7 to 12 ms,
/// bytes widened first 9 to 19 ms on the same machine, shared.
fn dot(a: &[i16], b: &[i16]) -> i32 {
    a.iter()
        .zip(b)
        .map(|(a, b)| i32::from(*a).wrapping_mul(i32::from(*b)))
        .fold(0, i32::wrapping_add)
}

/// Returns the cosine of two unit vectors; `None` if they are of different lengths.
pub(super) fn cosine(a: &[f32], b: &[f32]) -> Option<f64> {
    (a.len() == b.len()).then(|| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum())
}

/// Returns the bytes under which a vector is stored.
pub(super) fn bytes(embedding: &Embedding) -> Vec<u8> {
    embedding.vector.iter().flat_map(|part| part.to_le_bytes()).collect()
}

/// Reads a vector back.
pub(super) fn vector(stored: &[u8]) -> Result<Vec<f32>, SqliteFailure> {
    let parts = stored.chunks_exact(4);
    if !parts.remainder().is_empty() {
        return Err(unreadable("embedding"));
    }
    Ok(parts.map(|part| f32::from_le_bytes([part[0], part[1], part[2], part[3]])).collect())
}

/// Reads a vector with its model back.
pub(super) fn embedding(
    model: Option<String>,
    stored: Option<Vec<u8>>,
) -> Result<Option<Embedding>, SqliteFailure> {
    let (Some(model), Some(stored)) = (model, stored) else { return Ok(None) };
    Ok(Some(Embedding { model, vector: vector(&stored)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_row_leaves_the_others_in_place() {
        let mut codes = Codes::default();
        for (row, vector) in [(1, [1.0, 0.0]), (2, [0.0, 1.0]), (3, [0.6, 0.8])] {
            codes.insert(row, &vector);
        }
        codes.remove(1, 2);
        codes.remove(7, 2);
        assert_eq!(codes.scan(&[0.0, 1.0], 1), [2]);
        assert_eq!(codes.scan(&[0.6, 0.8], 1), [3]);
        codes.remove(3, 2);
        codes.remove(2, 2);
        assert_eq!(codes.scan(&[0.6, 0.8], 1), [0_i64; 0]);
    }
}
