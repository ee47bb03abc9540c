//! Gathering a bill: file by file, so that no more than one is ever in memory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::bill::{
    BillTotals, Cause, Prediction, Request, Row, Savings, predict, rate, savings, split,
};
use plimsoll_core::cost::{Prices, Pricing, day};
use plimsoll_core::safety::redact;
use plimsoll_core::text::{Limit, head};
use plimsoll_formats::{ReadOptions, Session};

use crate::arguments::By;

/// A longer file is not read: it would take its size several times in memory (chosen: far above any recorded).
const LARGEST: u64 = 256 << 20;
/// An answer whose reported output is so much below what the file shows of it was reported before it was complete.
const SHORT: f64 = 0.7;
const SHORT_BY: f64 = 50.0;

/// A bill.
#[derive(Debug)]
pub(super) struct Bill {
    pub(super) total: BillTotals,
    pub(super) by: BTreeMap<By, BTreeMap<String, BillTotals>>,
    /// By the format that recorded them.
    pub(super) by_client: BTreeMap<&'static str, (BillTotals, Prediction)>,
    pub(super) savings: Savings,
    pub(super) prediction: Prediction,
    /// Requests of sub-agents and of branches that were left.
    pub(super) aside: BillTotals,
    pub(super) first: Option<MillisSinceEpoch>,
    pub(super) last: Option<MillisSinceEpoch>,
    pub(super) pricing_date: String,
    /// Models that the table does not list, and as which it prices them.
    pub(super) unlisted: BTreeMap<String, String>,
    pub(super) files: Files,
    pub(super) short: Short,
    /// Dollars of content sent again without a reason, right after a user's message.
    pub(super) missed_after_user: f64,
    /// What sessions are called, by their ids.
    pub(super) labels: HashMap<String, String>,
}

impl Bill {
    /// Returns what a row of a table is called.
    pub(super) fn name<'a>(&'a self, by: By, key: &'a str) -> &'a str {
        let label = self.labels.get(key).filter(|_| by == By::Session);
        label.map_or(key, String::as_str)
    }
}

/// What became of the files.
#[derive(Debug, Default, serde::Serialize)]
pub(super) struct Files {
    /// Those with requests that are counted.
    pub(super) counted: usize,
    /// Sessions that report no usage.
    pub(super) without_usage: usize,
    /// Files that are no session, or cannot be read.
    pub(super) unreadable: usize,
    /// The first of them, and why.
    pub(super) first_unreadable: Option<String>,
    /// Requests that another file has already.
    pub(super) copies: u64,
    /// Requests before the date that was asked for.
    pub(super) earlier: u64,
}

/// Answers whose reported output is shorter than what the file shows of them.
#[derive(Debug, Default, serde::Serialize)]
pub(super) struct Short {
    pub(super) answers: u64,
    /// Tokens and dollars that are missing, at least.
    pub(super) tokens: f64,
    pub(super) dollars: f64,
}

/// A model at an hour since 1970.
type Asked = (Option<Arc<str>>, Option<i64>);

#[derive(Debug)]
pub(super) struct Gathered<'a> {
    pricing: &'a Pricing,
    since: Option<MillisSinceEpoch>,
    /// Prices by model and hour: a table is looked through for each name once an hour.
    known: HashMap<Asked, (Prices, bool)>,
    /// Digests of the requests that were counted.
    seen: HashSet<u64>,
    bill: Bill,
}

impl<'a> Gathered<'a> {
    pub(super) fn new(pricing: &'a Pricing, since: Option<MillisSinceEpoch>) -> Self {
        let bill = Bill {
            total: BillTotals::default(),
            by: BTreeMap::new(),
            by_client: BTreeMap::new(),
            savings: Savings::default(),
            prediction: Prediction::default(),
            aside: BillTotals::default(),
            first: None,
            last: None,
            pricing_date: pricing.date.clone(),
            unlisted: BTreeMap::new(),
            files: Files::default(),
            short: Short::default(),
            missed_after_user: 0.0,
            labels: HashMap::new(),
        };
        Self { pricing, since, known: HashMap::new(), seen: HashSet::new(), bill }
    }

    pub(super) fn finish(self) -> Bill {
        self.bill
    }

    /// Reads a file and adds what it reports.
    pub(super) fn read(&mut self, path: &Path) {
        match read(path) {
            Ok(session) => self.add(path, &session),
            Err(why) => {
                let files = &mut self.bill.files;
                files.unreadable += 1;
                files.first_unreadable.get_or_insert_with(|| format!("{}: {why}", path.display()));
            }
        }
    }

    fn add(&mut self, path: &Path, session: &Session) {
        let requests = &session.requests;
        if requests.is_empty() {
            self.bill.files.without_usage += 1;
            return;
        }
        let header = session.header.model.as_deref();
        let prices: Vec<(Prices, bool)> =
            requests.iter().map(|request| self.prices(request, header)).collect();
        let splits = split(requests, &prices);
        let counted: Vec<bool> = requests.iter().map(|request| self.counts(request)).collect();
        if !counted.contains(&true) {
            return;
        }
        self.bill.files.counted += 1;
        let name =
            |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let of_session = session.header.id.clone().unwrap_or_else(|| name(path));
        let project = session.header.working_directory.clone();
        let project = project.unwrap_or_else(|| "(not recorded)".to_owned());
        self.bill.labels.entry(of_session.clone()).or_insert_with(|| label(session, &of_session));
        let per_character = rate(requests).tokens_per_character;
        let mut client = BillTotals::default();
        for ((request, split), _) in
            requests.iter().zip(&splits).zip(&counted).filter(|(_, counted)| **counted)
        {
            let bill = &mut self.bill;
            client.add(split);
            if request.thread > 0 {
                bill.aside.add(split);
            }
            if let Some(sent) = request.sent {
                bill.first = Some(bill.first.map_or(sent, |first| first.min(sent)));
                bill.last = Some(bill.last.map_or(sent, |last| last.max(sent)));
            }
            let model = request.model.as_deref().or(header).unwrap_or("(not recorded)");
            let on = request.sent.map_or_else(|| "(not recorded)".to_owned(), day);
            for (by, key) in [
                (By::Project, project.as_str()),
                (By::Model, model),
                (By::Day, on.as_str()),
                (By::Session, of_session.as_str()),
            ] {
                let accounts = bill.by.entry(by).or_default();
                match accounts.get_mut(key) {
                    Some(account) => account.add(split),
                    None => accounts.entry(key.to_owned()).or_default().add(split),
                }
            }
            if request.after_user && split.cause == Some(Cause::Unknown) {
                let missed = split.amounts().into_iter();
                let missed = missed.filter(|(row, _)| *row == Row::AgainUnknown);
                bill.missed_after_user += missed.map(|(_, amount)| amount.dollars).sum::<f64>();
            }
            let shown = request.answered as f64 * per_character;
            let told = request.usage.output_tokens as f64;
            if told < SHORT * shown && shown - told > SHORT_BY {
                bill.short.answers += 1;
                bill.short.tokens += shown - told;
                bill.short.dollars += (shown - told) * split.prices.output / 1e6;
            }
        }
        let tools: HashSet<&str> = session
            .messages
            .iter()
            .flat_map(|message| message.calls())
            .map(|call| &*call.name)
            .collect();
        self.bill.savings.merge(&savings(requests, &splits, &counted, tools.len()));
        let plain: Vec<Prices> = prices.iter().map(|(prices, _)| *prices).collect();
        let prediction = predict(requests, &plain);
        self.bill.prediction.merge(&prediction);
        self.bill.total.merge(&client);
        let own = self.bill.by_client.entry(session.format.as_str()).or_default();
        own.0.merge(&client);
        own.1.merge(&prediction);
    }

    /// Tells whether a request belongs to the bill: recent enough, and not in another file already.
    fn counts(&mut self, request: &Request) -> bool {
        if self.since.is_some_and(|since| request.sent.is_none_or(|sent| sent < since)) {
            self.bill.files.earlier += 1;
            return false;
        }
        let Some(id) = &request.id else { return true };
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let is_new = self.seen.insert(hasher.finish());
        self.bill.files.copies += u64::from(!is_new);
        is_new
    }

    fn prices(&mut self, request: &Request, header: Option<&str>) -> (Prices, bool) {
        let model = request.model.clone().or_else(|| header.map(Arc::from));
        let hour = request.sent.map(|sent| sent.0.div_euclid(3_600_000));
        let (pricing, unlisted) = (self.pricing, &mut self.bill.unlisted);
        let key = (model, hour);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let priced = pricing.of(key.0.as_deref(), request.sent);
        if priced.is_estimate() {
            let name = key.0.as_deref().unwrap_or("(not recorded)");
            unlisted.insert(redact(name, super::NAMES).0.into_owned(), priced.name.to_owned());
        }
        let found = (priced.prices, priced.is_estimate());
        self.known.insert(key, found);
        found
    }
}

/// Returns a name that people know a session by: its day and folder, and the beginning of its id.
fn label(session: &Session, id: &str) -> String {
    let mut label = session.header.started.map_or_else(String::new, |at| day(at) + " ");
    if let Some(folder) = session.header.working_directory.as_deref()
        && let Some(name) = folder.rsplit(['/', '\\']).find(|name| !name.is_empty())
    {
        label += name;
        label.push(' ');
    }
    label + head(id, Limit::Characters(8))
}

fn read(path: &Path) -> anyhow::Result<Session> {
    let bytes = path.metadata()?.len();
    anyhow::ensure!(bytes <= LARGEST, "it is larger than {} MiB", LARGEST >> 20);
    Ok(plimsoll_formats::read(&std::fs::read(path)?, &ReadOptions::default())?)
}
