//! The bill as JSON.

use std::collections::BTreeMap;

use plimsoll_core::bill::{
    Amount, BillTotals, Estimate, FileCounts, Prediction, RecordedBill, Row, Saving, SavingVerdict,
    ShortAnswers,
};
use plimsoll_core::{MillisSinceEpoch, Usage};
use serde::Serialize;

#[derive(Debug, Serialize)]
pub(super) struct BillDocument<'a> {
    pricing_date: &'a str,
    first: Option<MillisSinceEpoch>,
    last: Option<MillisSinceEpoch>,
    total: AccountFigures,
    /// Requests of sub-agents and of branches that were left, which the total holds too.
    aside: AccountFigures,
    by: BTreeMap<&'static str, Vec<DivisionRow<'a>>>,
    clients: BTreeMap<&'static str, ClientRow>,
    savings: Vec<SavingRow>,
    cache_model: Prediction,
    unlisted_models: &'a BTreeMap<String, String>,
    files: &'a FileCounts,
    short_answers: &'a ShortAnswers,
}

/// An account.
#[derive(Debug, Serialize)]
struct AccountFigures {
    requests: u64,
    /// Whether some of it is priced as another model.
    is_estimate: bool,
    dollars: f64,
    usage: Usage,
    rows: BTreeMap<&'static str, Amount>,
    /// The parts of the row `history_read`.
    history_read: BTreeMap<&'static str, Amount>,
}

#[derive(Debug, Serialize)]
struct DivisionRow<'a> {
    name: &'a str,
    #[serde(flatten)]
    figures: AccountFigures,
}

#[derive(Debug, Serialize)]
struct ClientRow {
    #[serde(flatten)]
    figures: AccountFigures,
    cache_model: Prediction,
}

#[derive(Debug, Serialize)]
struct SavingRow {
    setting: Saving,
    #[serde(flatten)]
    dollars: Estimate,
    verdict: SavingVerdict,
}

impl AccountFigures {
    fn new(account: &BillTotals) -> Self {
        Self {
            requests: account.requests,
            is_estimate: account.estimated > 0,
            dollars: account.dollars(),
            usage: account.usage,
            history_read: account.history().into_iter().collect(),
            rows: Row::ALL.iter().map(|&row| (row.as_str(), account.amount(row))).collect(),
        }
    }
}

impl<'a> BillDocument<'a> {
    pub(super) fn new(bill: &'a RecordedBill<'_>) -> Self {
        let by = bill.by.keys().map(|by| {
            let list = bill.dearest(*by);
            let named = |(name, account): (&'a str, &BillTotals)| DivisionRow {
                name,
                figures: AccountFigures::new(account),
            };
            (by.as_str(), list.into_iter().map(named).collect())
        });
        let total = bill.total.dollars();
        Self {
            pricing_date: &bill.pricing.date,
            first: bill.first,
            last: bill.last,
            total: AccountFigures::new(&bill.total),
            aside: AccountFigures::new(&bill.aside),
            by: by.collect(),
            clients: bill
                .by_client
                .iter()
                .map(|(client, (account, cache_model))| {
                    (
                        *client,
                        ClientRow {
                            figures: AccountFigures::new(account),
                            cache_model: *cache_model,
                        },
                    )
                })
                .collect(),
            savings: Saving::ALL
                .into_iter()
                .map(|setting| {
                    let dollars = bill.savings.of(setting);
                    SavingRow { setting, dollars, verdict: dollars.verdict(total) }
                })
                .collect(),
            cache_model: bill.prediction,
            unlisted_models: &bill.unlisted,
            files: &bill.files,
            short_answers: &bill.short,
        }
    }
}
