//! The bill of recorded sessions: their requests added up, each once, by project, model, day and session.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use serde::Serialize;

use crate::cost::{Prices, Pricing, day};
use crate::message::MillisSinceEpoch;
use crate::safety::{Handling, redact};
use crate::text::{Limit, head};

use super::{
    BillTotals, Cause, Prediction, Request, Row, Savings, Split, predict, rate, savings, split,
};

/// An answer whose reported output is below this share of its shown output was reported before it was complete.
const SHORT: f64 = 0.7;
/// Fewer missing tokens say nothing.
const SHORT_BY: f64 = 50.0;
/// Stands for a name that the session does not have.
const NOT_RECORDED: &str = "(not recorded)";

/// The parts that a bill is divided into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Division {
    /// The folder that an agent worked in.
    Project,
    Model,
    /// The day of a request, in UTC.
    Day,
    /// The session, its sub-agents included.
    Session,
}

impl Division {
    /// All divisions, in the order in which they are listed.
    pub const ALL: [Self; 4] = [Self::Project, Self::Model, Self::Day, Self::Session];

    /// Returns the name that JSON has.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Model => "model",
            Self::Day => "day",
            Self::Session => "session",
        }
    }
}

/// A recorded session, as a bill reads it.
#[derive(Debug, Clone, Copy)]
pub struct BilledSession<'a> {
    /// The format of its file, which says which client recorded it.
    pub client: &'static str,
    /// Its own id, else the name of its file.
    pub id: &'a str,
    pub folder: Option<&'a str>,
    pub started: Option<MillisSinceEpoch>,
    /// The model of requests that name none.
    pub model: Option<&'a str>,
    pub requests: &'a [Request],
    /// How many different tools were called.
    pub tools_used: usize,
}

/// The bill of recorded sessions.
#[derive(Debug)]
pub struct RecordedBill<'a> {
    pub pricing: &'a Pricing,
    pub total: BillTotals,
    pub by: BTreeMap<Division, BTreeMap<String, BillTotals>>,
    /// By the format that recorded them.
    pub by_client: BTreeMap<&'static str, (BillTotals, Prediction)>,
    pub savings: Savings,
    pub prediction: Prediction,
    /// Requests of sub-agents and of branches that were left.
    pub aside: BillTotals,
    pub first: Option<MillisSinceEpoch>,
    pub last: Option<MillisSinceEpoch>,
    /// Models that the table does not list, and as which it prices them.
    pub unlisted: BTreeMap<String, String>,
    pub files: FileCounts,
    pub short: ShortAnswers,
    /// Dollars of content sent again without a reason, right after a user's message.
    pub missed_after_user: f64,
    /// Names to show for sessions, by their ids.
    labels: HashMap<String, String>,
    since: Option<MillisSinceEpoch>,
    /// Prices by model and hour: a table is searched for each name once an hour.
    known: HashMap<(Option<Arc<str>>, Option<i64>), (Prices, bool)>,
    /// Digests of the requests that are counted.
    seen: HashSet<u64>,
}

/// How many files were counted, and why others were not.
#[derive(Debug, Default, Serialize)]
pub struct FileCounts {
    /// Those with requests that are counted.
    pub counted: usize,
    /// Sessions that report no usage.
    pub without_usage: usize,
    /// Files that are no session, or cannot be read.
    pub unreadable: usize,
    /// The first of them, and why.
    pub first_unreadable: Option<String>,
    /// Requests that another file has already.
    pub copies: u64,
    /// Requests before the date that was asked for.
    pub earlier: u64,
}

/// Answers whose reported output is shorter than what the file shows of them.
#[derive(Debug, Default, Serialize)]
pub struct ShortAnswers {
    pub answers: u64,
    /// Tokens and dollars that are missing, at least.
    pub tokens: f64,
    pub dollars: f64,
}

impl<'a> RecordedBill<'a> {
    /// Begins a bill of the requests that were sent at `since` or later.
    pub fn new(pricing: &'a Pricing, since: Option<MillisSinceEpoch>) -> Self {
        Self {
            pricing,
            total: BillTotals::default(),
            by: BTreeMap::new(),
            by_client: BTreeMap::new(),
            savings: Savings::default(),
            prediction: Prediction::default(),
            aside: BillTotals::default(),
            first: None,
            last: None,
            unlisted: BTreeMap::new(),
            files: FileCounts::default(),
            short: ShortAnswers::default(),
            missed_after_user: 0.0,
            labels: HashMap::new(),
            since,
            known: HashMap::new(),
            seen: HashSet::new(),
        }
    }

    /// Counts a file that cannot be read.
    pub fn add_unreadable(&mut self, why: impl FnOnce() -> String) {
        self.files.unreadable += 1;
        self.files.first_unreadable.get_or_insert_with(why);
    }

    /// Adds the requests of a session; those that another file had already are left out.
    pub fn add(&mut self, session: &BilledSession<'_>) {
        let requests = session.requests;
        if requests.is_empty() {
            self.files.without_usage += 1;
            return;
        }
        let prices: Vec<(Prices, bool)> =
            requests.iter().map(|request| self.prices(request, session.model)).collect();
        let splits = split(requests, &prices);
        let counted: Vec<bool> = requests.iter().map(|request| self.counts(request)).collect();
        if !counted.contains(&true) {
            return;
        }
        self.files.counted += 1;
        self.labels.entry(session.id.to_owned()).or_insert_with(|| label(session));
        let per_character = rate(requests).tokens_per_character;
        let mut client = BillTotals::default();
        for ((request, split), _) in
            requests.iter().zip(&splits).zip(&counted).filter(|(_, counted)| **counted)
        {
            client.add(split);
            self.add_request(session, request, split, per_character);
        }
        self.savings.merge(&savings(requests, &splits, &counted, session.tools_used));
        let plain: Vec<Prices> = prices.iter().map(|(prices, _)| *prices).collect();
        let prediction = predict(requests, &plain);
        self.prediction.merge(&prediction);
        self.total.merge(&client);
        let own = self.by_client.entry(session.client).or_default();
        own.0.merge(&client);
        own.1.merge(&prediction);
    }

    fn add_request(
        &mut self,
        session: &BilledSession<'_>,
        request: &Request,
        split: &Split,
        per_character: f64,
    ) {
        if request.thread > 0 {
            self.aside.add(split);
        }
        if let Some(sent) = request.sent {
            self.first = Some(self.first.map_or(sent, |first| first.min(sent)));
            self.last = Some(self.last.map_or(sent, |last| last.max(sent)));
        }
        let on = request.sent.map_or_else(|| NOT_RECORDED.to_owned(), day);
        for (by, key) in [
            (Division::Project, session.folder.unwrap_or(NOT_RECORDED)),
            (Division::Model, request.model.as_deref().or(session.model).unwrap_or(NOT_RECORDED)),
            (Division::Day, &on),
            (Division::Session, session.id),
        ] {
            let accounts = self.by.entry(by).or_default();
            match accounts.get_mut(key) {
                Some(account) => account.add(split),
                None => accounts.entry(key.to_owned()).or_default().add(split),
            }
        }
        if request.after_user && split.cause == Some(Cause::Unknown) {
            let missed = split.amounts().into_iter();
            let missed = missed.filter(|(row, _)| *row == Row::AgainUnknown);
            self.missed_after_user += missed.map(|(_, amount)| amount.dollars).sum::<f64>();
        }
        let shown = request.answered as f64 * per_character;
        let reported = request.usage.output_tokens as f64;
        if reported < SHORT * shown && shown - reported > SHORT_BY {
            self.short.answers += 1;
            self.short.tokens += shown - reported;
            self.short.dollars += (shown - reported) * split.prices.output / 1e6;
        }
    }

    /// Returns the accounts of a division with their names, the most expensive first.
    pub fn dearest(&self, by: Division) -> Vec<(&str, &BillTotals)> {
        let accounts = self.by.get(&by).into_iter().flatten();
        let mut list: Vec<(&str, &BillTotals)> =
            accounts.map(|(name, account)| (name.as_str(), account)).collect();
        list.sort_by(|a, b| b.1.dollars().total_cmp(&a.1.dollars()).then(a.0.cmp(b.0)));
        list
    }

    /// Returns how many sessions have requests that are counted.
    pub fn sessions(&self) -> usize {
        self.by.get(&Division::Session).map_or(0, BTreeMap::len)
    }

    /// Returns the name to show for an account of a division.
    pub fn label<'b>(&'b self, by: Division, key: &'b str) -> &'b str {
        let label = self.labels.get(key).filter(|_| by == Division::Session);
        label.map_or(key, String::as_str)
    }

    /// Returns whether a request belongs to the bill: it is recent enough, and no other file has it.
    fn counts(&mut self, request: &Request) -> bool {
        if self.since.is_some_and(|since| request.sent.is_none_or(|sent| sent < since)) {
            self.files.earlier += 1;
            return false;
        }
        let Some(id) = &request.id else { return true };
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let is_new = self.seen.insert(hasher.finish());
        self.files.copies += u64::from(!is_new);
        is_new
    }

    fn prices(&mut self, request: &Request, usual: Option<&str>) -> (Prices, bool) {
        let model = request.model.clone().or_else(|| usual.map(Arc::from));
        let hour = request.sent.map(|sent| sent.0.div_euclid(3_600_000));
        let key = (model, hour);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let priced = self.pricing.of(key.0.as_deref(), request.sent);
        if priced.is_estimate() {
            // The name comes from a file and is printed.
            let name = redact(key.0.as_deref().unwrap_or(NOT_RECORDED), Handling::SECRETS).0;
            self.unlisted.insert(name.into_owned(), priced.name.to_owned());
        }
        let found = (priced.prices, priced.is_estimate());
        self.known.insert(key, found);
        found
    }
}

/// Returns a name by which people recognise a session: its day and folder, and the beginning of its id.
fn label(session: &BilledSession<'_>) -> String {
    let mut label = session.started.map_or_else(String::new, |at| day(at) + " ");
    if let Some(folder) = session.folder
        && let Some(name) = folder.rsplit(['/', '\\']).find(|name| !name.is_empty())
    {
        label += name;
        label.push(' ');
    }
    label + head(session.id, Limit::Characters(8))
}

#[cfg(test)]
mod tests {
    use crate::message::Usage;

    use super::*;

    fn request(id: &str, sent: i64) -> Request {
        Request {
            id: Some(id.into()),
            sent: Some(MillisSinceEpoch(sent)),
            usage: Usage { prompt_tokens: 1000, output_tokens: 10, ..Usage::default() },
            ..Request::default()
        }
    }

    fn session(requests: &[Request]) -> BilledSession<'_> {
        BilledSession {
            client: "pi",
            id: "0123456789",
            folder: Some("/home/ada/harbour"),
            started: Some(MillisSinceEpoch(0)),
            model: Some("claude-sonnet-4-5"),
            requests,
            tools_used: 0,
        }
    }

    #[test]
    fn a_request_in_two_files_is_billed_once() {
        let pricing = Pricing::shipped();
        let mut bill = RecordedBill::new(&pricing, None);
        bill.add(&session(&[request("a", 0), request("b", 86_400_000)]));
        let total = bill.total.dollars();
        bill.add(&session(&[request("b", 86_400_000)]));
        assert_eq!((bill.files.counted, bill.files.copies, bill.total.requests), (1, 1, 2));
        assert!((bill.total.dollars() - total).abs() < 1e-12 && total > 0.0);
        assert_eq!(bill.by[&Division::Day].len(), 2);
        assert_eq!(bill.label(Division::Session, "0123456789"), "1970-01-01 harbour 01234567");
        assert_eq!(bill.label(Division::Day, "0123456789"), "0123456789");
    }

    #[test]
    fn requests_before_the_date_are_left_out() {
        let pricing = Pricing::shipped();
        let mut bill = RecordedBill::new(&pricing, Some(MillisSinceEpoch(5)));
        bill.add(&session(&[request("a", 4), request("b", 5)]));
        assert_eq!((bill.files.earlier, bill.total.requests), (1, 1));
    }

    #[test]
    fn unlisted_models_are_named_without_secrets() {
        let pricing = Pricing::shipped();
        let mut bill = RecordedBill::new(&pricing, None);
        let key = format!("sk-ant-api03-{}", "a1B2".repeat(24));
        bill.add(&BilledSession { model: Some(&key), ..session(&[request("a", 0)]) });
        assert_eq!(bill.unlisted.len(), 1);
        assert!(bill.unlisted.keys().all(|name| !name.contains("a1B2a1B2")), "{:?}", bill.unlisted);
    }

    #[test]
    fn answers_that_are_longer_than_reported_are_noted() {
        let pricing = Pricing::shipped();
        let mut bill = RecordedBill::new(&pricing, None);
        bill.add(&session(&[Request { answered: 100_000, ..request("a", 0) }]));
        assert_eq!(bill.short.answers, 1);
        assert!(bill.short.tokens > 1000.0 && bill.short.dollars > 0.0);
    }
}
