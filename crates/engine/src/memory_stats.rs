//! Whether memory works: the key metrics of `memory-context.md` and `context-strategy.md` 10.1, from what was recorded.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::memory::similar::is_referenced;
use serde::Serialize;

use crate::assemble::{ASSEMBLE, AssemblyReceipt, Refreshed, answer_behind};
use crate::error::StoreError;
use crate::history::HistoryStore;
use crate::id::TenantId;
use crate::knowledge::KnowledgeStore;
use crate::memory::{MemoryRecord, MemoryVersion};
use crate::remember::Details;

/// The metrics; what nothing was recorded of is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MemoryStats {
    pub records: usize,
    /// By kind, then by state.
    pub by_kind: BTreeMap<&'static str, BTreeMap<&'static str, usize>>,
    /// New records by day, UTC, the newest last.
    pub growth: Vec<(MillisSinceEpoch, usize)>,
    /// Share of facts that were met again.
    pub confirmation_rate: Option<f64>,
    /// Assemblies that were recorded.
    pub assemblies: usize,
    /// Mean similarity of shown records to the question; aim: above 0.6.
    pub relevance: Option<f64>,
    /// Mean share of the budget that was used; aim: 0.5 to 0.9.
    pub utilisation: Option<f64>,
    /// Share of assemblies after a session's first that made the context anew; aim: below 0.3.
    pub refresh_rate: Option<f64>,
    /// Share of shown records that the next answer takes up; aim: above 0.4.
    pub recall_precision: Option<f64>,
    /// Median and 90th percentile of milliseconds of an assembly; aim: below 500 from scratch.
    pub took: Option<(f64, f64)>,
    /// Median and 90th percentile of a request's tokens; aim: 3,000.
    pub tokens_a_turn: Option<(f64, f64)>,
    /// Mean share of a session's tokens that requests left out; aim: 0.7.
    pub compression: Option<f64>,
}

const DAY: i64 = 86_400_000;

/// Computes the metrics of a tenant.
pub async fn memory_stats(
    history: &dyn HistoryStore,
    knowledge: &dyn KnowledgeStore,
    tenant: &TenantId,
) -> Result<MemoryStats, StoreError> {
    let changes = knowledge.memory_changes(tenant, MemoryVersion::default()).await?;
    let mut stats = of_records(&changes.records);
    let mut receipts: Vec<AssemblyReceipt> = Vec::new();
    let (mut shown, mut taken_up, mut rebuilt, mut later) = (0_u32, 0_u32, 0_u32, 0_u32);
    for session in history.sessions(tenant, usize::MAX >> 1).await? {
        for record in history.receipts(tenant, &session.session).await? {
            if record.strategy != ASSEMBLE {
                continue;
            }
            let Ok(receipt) = serde_json::from_str::<AssemblyReceipt>(&record.receipt) else {
                continue;
            };
            if receipt.refreshed != Refreshed::Built {
                later += 1;
                let kept = matches!(receipt.refreshed, Refreshed::Kept | Refreshed::Evicted);
                rebuilt += u32::from(!kept);
            }
            let answer = answer_behind(history, tenant, &session.session, receipt.position).await?;
            if let Some(answer) = answer {
                shown += receipt.items.len() as u32;
                let words = receipt.items.iter().filter(|item| is_referenced(&item.text, &answer));
                taken_up += words.count() as u32;
            }
            receipts.push(receipt);
        }
    }
    stats.assemblies = receipts.len();
    let filled = receipts.iter().filter(|receipt| !receipt.items.is_empty());
    stats.relevance = mean(filled.map(|receipt| receipt.relevance));
    let limited = receipts.iter().filter(|receipt| receipt.limit > 0);
    stats.utilisation = mean(limited.map(|receipt| receipt.used as f64 / receipt.limit as f64));
    stats.refresh_rate = (later > 0).then(|| f64::from(rebuilt) / f64::from(later));
    stats.recall_precision = (shown > 0).then(|| f64::from(taken_up) / f64::from(shown));
    stats.took = percentiles(receipts.iter().map(|receipt| receipt.took));
    let requests: Vec<&AssemblyReceipt> =
        receipts.iter().filter(|receipt| receipt.request_limit > 0).collect();
    stats.tokens_a_turn = percentiles(requests.iter().map(|receipt| receipt.request_used as f64));
    let long = requests.iter().filter(|receipt| receipt.full_tokens > 0);
    stats.compression =
        mean(long.map(|receipt| 1.0 - receipt.request_used as f64 / receipt.full_tokens as f64));
    Ok(stats)
}

fn of_records(records: &[MemoryRecord]) -> MemoryStats {
    let mut stats = MemoryStats { records: records.len(), ..MemoryStats::default() };
    let mut days: BTreeMap<i64, usize> = BTreeMap::new();
    let (mut facts, mut confirmed) = (0_u32, 0_u32);
    let kinds: BTreeSet<&str> = ["entity", "task", "metric", "link", "fact"].into();
    for record in records {
        let kind = record.kind.as_str();
        *stats.by_kind.entry(kind).or_default().entry(record.state.as_str()).or_default() += 1;
        *days.entry(record.created_at.0.div_euclid(DAY) * DAY).or_default() += 1;
        if kinds.contains(kind) {
            facts += 1;
            confirmed += u32::from(Details::of(record).confirmations > 0);
        }
    }
    stats.growth = days.into_iter().map(|(day, count)| (MillisSinceEpoch(day), count)).collect();
    stats.confirmation_rate = (facts > 0).then(|| f64::from(confirmed) / f64::from(facts));
    stats
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), one| (sum + one, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Returns the median and the 90th percentile, each a value that occurs.
fn percentiles(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let at = |share: f64| values[((last as f64 * share).round() as usize).min(last)];
    Some((at(0.5), at(0.9)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occur() {
        assert_eq!(percentiles(std::iter::empty()), None);
        assert_eq!(percentiles([7.0].into_iter()), Some((7.0, 7.0)));
        assert_eq!(percentiles((1..=11).map(f64::from)), Some((6.0, 10.0)));
    }
}
