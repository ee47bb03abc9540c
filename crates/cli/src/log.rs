//! `plimsoll log`: the unified log of a store, and how efficient its contexts were.

use std::fmt::Write as _;

use plimsoll_core::safety::{Action, Handling, redact};
use plimsoll_engine::{Efficiency, LogQuery, LogRow};

use crate::arguments::LogArguments;
use crate::config;
use crate::error::CommandError;
use crate::output::{self, BOLD, DIM, RESET, thousands};
use crate::store::{Store, session_id};

pub(crate) fn run(arguments: &LogArguments) -> Result<(), CommandError> {
    let store = Store::open(arguments.store.store.as_deref())?;
    if arguments.what.is_some() {
        let rows = store.history(async |history, tenant| history.efficiency(tenant).await)?;
        return output::data(&if arguments.json { json(&rows)? } else { stats(&rows) });
    }
    let query = LogQuery {
        session: arguments.session.as_deref().map(session_id).transpose()?,
        node_type: arguments.node_type.clone(),
        since: None,
        limit: arguments.limit,
    };
    let mut rows = store.history(async |history, tenant| history.log(tenant, &query).await)?;
    let handling = config::read(None)?.safety.logs;
    for row in &mut rows {
        row.text = safe(&row.text, handling);
    }
    output::data(&if arguments.json { json(&rows)? } else { table(&rows) })
}

/// Redacts a line. One that the log cut may end within a secret that is no longer known as one: that word goes.
fn safe(line: &str, handling: Handling) -> String {
    let is_cut = line.chars().count() == LogRow::LINE && handling.secrets == Action::Redact;
    let end = line.rfind(char::is_whitespace).filter(|_| is_cut).unwrap_or(line.len());
    redact(&line[..end], handling).0.into_owned()
}

fn json<T: serde::Serialize>(rows: &[T]) -> Result<String, CommandError> {
    let mut text = serde_json::to_string_pretty(rows).map_err(CommandError::failure)?;
    text.push('\n');
    Ok(text)
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

fn stats(rows: &[Efficiency]) -> String {
    let mut out = format!(
        "{BOLD}{:24} {:>10} {:>10} {:>10} {:>12} {:>14}{RESET}\n",
        "cascade", "selections", "messages", "sent", "saved each", "tokens saved"
    );
    for row in rows {
        let _ = writeln!(
            out,
            "{:24} {:>10} {:>10.1} {:>10.1} {:>12.0} {:>14}",
            row.cascade_id.as_deref().unwrap_or("none"),
            row.selections,
            row.avg_full_size,
            row.avg_context_size,
            row.avg_tokens_saved,
            row.tokens_saved,
        );
    }
    out
}
