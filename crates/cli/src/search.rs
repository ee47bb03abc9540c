//! `plimsoll search`: finds the messages of a store that hold some words.

use std::fmt::Write as _;

use plimsoll_engine::{Hit, MessageRecord, SearchQuery};

use crate::arguments::SearchArguments;
use crate::error::CommandError;
use crate::output::{self, DIM, RESET};
use crate::store::Store;

pub(crate) fn run(arguments: &SearchArguments) -> Result<(), CommandError> {
    let store = Store::open_existing(&arguments.store, None)?;
    let session = arguments.session.as_deref().map(|text| store.session_named(text)).transpose()?;
    let query = SearchQuery {
        text: Some(arguments.words.join(" ")),
        embedding: None,
        limit: arguments.limit,
    };
    let (hits, left_out) = store.history(async |history, tenant| {
        let hits = history.search(tenant, session.as_ref(), &query).await?;
        Ok((hits, history.mismatches()))
    })?;
    if left_out > 0 {
        output::warning(&format!(
            "{} damaged and missing here; `plimsoll store check` lists the faults",
            if left_out == 1 {
                "1 message is".to_owned()
            } else {
                format!("{left_out} messages are")
            }
        ));
    }
    if arguments.json {
        let mut text = serde_json::to_string_pretty(&hits).map_err(CommandError::failure)?;
        text.push('\n');
        return output::data(&text);
    }
    output::page(&table(&hits))
}

fn table(hits: &[Hit<MessageRecord>]) -> String {
    let mut out = String::new();
    for hit in hits {
        let record = &hit.item;
        let _ = writeln!(
            out,
            "ref:message:{}  {:9} {DIM}message {} of {}{RESET}\n    {}",
            record.hash,
            record.message.role.as_str(),
            record.position,
            record.session,
            output::line(&record.message.shown(), 76),
        );
    }
    if hits.is_empty() {
        out.push_str("no message has these words\n");
    }
    out
}
