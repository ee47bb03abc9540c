//! `plimsoll log`: the unified log of a store, and how efficient its contexts were.

use std::fmt::Write as _;

use plimsoll_core::safety::{Action, Handling, redact};
use plimsoll_engine::{Efficiency, Gathering, LogQuery, LogRow, SessionId};
use serde::Serialize;

use crate::arguments::LogArguments;
use crate::config;
use crate::error::CommandError;
use crate::figures::{cost, thousands};
use crate::output::{self, BOLD, DIM, RESET};
use crate::store::Store;

pub(crate) fn run(arguments: &LogArguments) -> Result<(), CommandError> {
    let store = Store::open_existing(&arguments.store, None)?;
    if arguments.what.is_some() {
        let by = match &*arguments.by {
            "session" => Gathering::Session,
            _ => Gathering::Cascade,
        };
        let rows = store.history(async |history, tenant| history.efficiency(tenant, by).await)?;
        let rows: Vec<Row> = rows.into_iter().map(Row::of).collect();
        return output::show(arguments.json, &rows, || stats(&rows, by));
    }
    let query = LogQuery {
        session: arguments.session.as_deref().map(|text| store.session_named(text)).transpose()?,
        node_type: arguments.node_type.clone(),
        since: None,
        limit: arguments.limit,
    };
    let mut rows = store.history(async |history, tenant| history.log(tenant, &query).await)?;
    let handling = config::read(None)?.safety.logs;
    for row in &mut rows {
        row.text = safe(&row.text, handling);
    }
    output::show(arguments.json, &rows, || table(&rows))
}

/// Redacts a line. One that the log cut may end within a secret that is no longer known as one: that word goes.
fn safe(line: &str, handling: Handling) -> String {
    let is_cut = line.chars().count() == LogRow::LINE && handling.secrets == Action::Redact;
    let end = line.rfind(char::is_whitespace).filter(|_| is_cut).unwrap_or(line.len());
    redact(&line[..end], handling).0.into_owned()
}

fn table(rows: &[LogRow]) -> String {
    let mut out = String::new();
    for row in rows {
        let _ = writeln!(
            out,
            "{DIM}{}{RESET} {:>5} {:17} {:9} {:>7}  {}",
            output::line(row.session.as_str(), 8),
            row.number,
            row.node_type,
            row.role.as_deref().unwrap_or(""),
            row.tokens.map_or_else(String::new, |tokens| thousands(u64::from(tokens))),
            output::line(&row.text, 60),
        );
    }
    if rows.is_empty() {
        out.push_str("nothing is logged; `plimsoll replay FILE --store PATH` keeps a session\n");
    }
    out
}

/// A row of the statistics.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    efficiency: Efficiency,
    /// `None` where no provider reported usage.
    dollars_saved: Option<f64>,
}

impl Row {
    fn of(efficiency: Efficiency) -> Self {
        Self { dollars_saved: efficiency.bills.saved(), efficiency }
    }

    fn name(&self) -> String {
        let session = self.efficiency.session.as_ref().map(SessionId::as_str);
        output::line(session.or(self.efficiency.cascade_id.as_deref()).unwrap_or("none"), 24)
    }

    /// Returns how many requests were billed, and in dollars: billed, without Plimsoll, saved.
    fn bills(&self) -> [String; 4] {
        let bills = self.efficiency.bills;
        let Some(saved) = self.dollars_saved else {
            return ["0", "", "", ""].map(str::to_owned);
        };
        let cost = |dollars| cost(dollars, bills.bills_estimated > 0);
        let [billed, without] = [bills.dollars_billed, bills.dollars_without].map(cost);
        [bills.requests_billed.to_string(), billed, without, cost(saved)]
    }
}

fn stats(rows: &[Row], by: Gathering) -> String {
    let name = match by {
        Gathering::Cascade => "cascade",
        Gathering::Session => "session",
    };
    let mut out = format!(
        "{BOLD}{name:24} {:>10} {:>8} {:>8} {:>10} {:>12} {:>9} {:>10} {:>10} {:>10}{RESET}\n",
        "selections",
        "messages",
        "sent",
        "saved each",
        "tokens saved",
        "reported",
        "billed",
        "without",
        "saved"
    );
    for row in rows {
        let [reported, billed, without, saved] = row.bills();
        let efficiency = &row.efficiency;
        let _ = writeln!(
            out,
            "{:24} {:>10} {:>8.1} {:>8.1} {:>10.0} {:>12} {reported:>9} {billed:>10} {without:>10} {saved:>10}",
            row.name(),
            efficiency.selections,
            efficiency.avg_full_size,
            efficiency.avg_context_size,
            efficiency.avg_tokens_saved,
            efficiency.tokens_saved,
        );
    }
    out.push_str(
        "\ntokens are by our own count; dollars are input as billed for the requests whose provider reported usage",
    );
    if rows.iter().any(|row| row.efficiency.bills.bills_estimated > 0) {
        out.push_str("; ~: a model's price is not known");
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use plimsoll_engine::Bills;

    use super::*;

    fn row(bills: Bills) -> Row {
        Row::of(Efficiency {
            cascade_id: None,
            session: None,
            selections: 3,
            avg_full_size: 4.0,
            avg_context_size: 3.0,
            avg_tokens_saved: 10.0,
            tokens_saved: 30,
            bills,
        })
    }

    #[test]
    fn savings_are_what_was_billed_and_may_be_negative() {
        let bills = Bills {
            requests_billed: 2,
            dollars_billed: 0.5,
            dollars_without: 0.25,
            bills_estimated: 0,
        };
        assert_eq!(row(bills).bills(), ["2", "$0.5000", "$0.2500", "−$0.2500"]);
        assert_eq!(row(Bills::default()).bills(), ["0", "", "", ""], "nothing was reported");
        let estimate = Bills { bills_estimated: 1, ..bills };
        assert_eq!(row(estimate).bills(), ["2", "~$0.5000", "~$0.2500", "~−$0.2500"]);
        assert!(stats(&[row(estimate)], Gathering::Cascade).contains("~: a model's price"));
        let json = serde_json::to_value(row(bills)).expect("JSON");
        assert_eq!(json["dollars_saved"], -0.25);
        assert_eq!((&json["requests_billed"], &json["tokens_saved"]), (&2.into(), &30.into()));
    }
}
