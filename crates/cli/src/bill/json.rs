//! The bill as JSON.

use std::collections::BTreeMap;

use plimsoll_core::bill::{Amount, BillTotals, Estimate, Prediction, Row, Saving};
use plimsoll_core::{MillisSinceEpoch, Usage};
use serde::Serialize;

use super::gather::{Bill, Files, Short};
use super::words::Verdict;

#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    pricing_date: &'a str,
    first: Option<MillisSinceEpoch>,
    last: Option<MillisSinceEpoch>,
    total: Told,
    /// Requests of sub-agents and of branches that were left, which the total holds too.
    aside: Told,
    by: BTreeMap<&'static str, Vec<Named<'a>>>,
    clients: BTreeMap<&'static str, Client>,
    savings: Vec<Saved>,
    cache_model: Prediction,
    unlisted_models: &'a BTreeMap<String, String>,
    files: &'a Files,
    short_answers: &'a Short,
}

/// An account.
#[derive(Debug, Serialize)]
struct Told {
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
struct Named<'a> {
    name: &'a str,
    #[serde(flatten)]
    told: Told,
}

#[derive(Debug, Serialize)]
struct Client {
    #[serde(flatten)]
    told: Told,
    cache_model: Prediction,
}

#[derive(Debug, Serialize)]
struct Saved {
    setting: Saving,
    #[serde(flatten)]
    dollars: Estimate,
    verdict: Verdict,
}

impl Told {
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

impl<'a> Document<'a> {
    pub(super) fn new(bill: &'a Bill) -> Self {
        let by = bill.by.iter().map(|(by, accounts)| {
            let list = super::page::dearest(accounts);
            let named =
                |(name, account): (&'a str, &BillTotals)| Named { name, told: Told::new(account) };
            (by.as_str(), list.into_iter().map(named).collect())
        });
        let total = bill.total.dollars();
        Self {
            pricing_date: &bill.pricing_date,
            first: bill.first,
            last: bill.last,
            total: Told::new(&bill.total),
            aside: Told::new(&bill.aside),
            by: by.collect(),
            clients: bill
                .by_client
                .iter()
                .map(|(client, (account, cache_model))| {
                    (*client, Client { told: Told::new(account), cache_model: *cache_model })
                })
                .collect(),
            savings: Saving::ALL
                .into_iter()
                .map(|setting| {
                    let dollars = bill.savings.of(setting);
                    Saved { setting, dollars, verdict: Verdict::of(dollars, total) }
                })
                .collect(),
            cache_model: bill.prediction,
            unlisted_models: &bill.unlisted,
            files: &bill.files,
            short_answers: &bill.short,
        }
    }
}
