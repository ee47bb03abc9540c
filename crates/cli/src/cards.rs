//! `plimsoll cards`: lists context cards, and shows what would be selected for a task.

use std::fmt::Write as _;

use plimsoll_core::select::{InterPhaseContextConfig, Selection, Strategy};
use plimsoll_engine::selection::{SelectionRequest, Selectors, select};
use plimsoll_engine::{ContextCard, MessageRecord, SessionId};
use serde::Serialize;

use crate::arguments::CardsArguments;
use crate::clock;
use crate::config::{self, Config};
use crate::error::CommandError;
use crate::figures::thousands;
use crate::models::{self, chat, embedder};
use crate::output::{self, BOLD, DIM, RESET};
use crate::store::{Store, session_id};
use crate::work::Staff;

/// A card as JSON shows it: all but the numbers of its vector.
#[derive(Debug, Serialize)]
struct CardRow<'a> {
    session: &'a SessionId,
    content_hash: &'a str,
    r#ref: String,
    role: &'static str,
    phase_name: Option<&'a str>,
    turn_number: Option<u32>,
    summary: &'a str,
    keywords: &'a [String],
    estimated_tokens: u32,
    is_anchor: bool,
    is_callout: bool,
    callout_name: Option<&'a str>,
    generator_model: &'a str,
    embedding_model: Option<&'a str>,
    generated_at: i64,
    message_timestamp: i64,
}

pub(crate) fn run(arguments: &CardsArguments) -> Result<(), CommandError> {
    let config = config::read(arguments.config.as_deref())?;
    let store = Store::open_existing(&arguments.store, arguments.config.as_deref())?;
    let session = arguments.session.as_deref().map(session_id).transpose()?;
    if arguments.make {
        Staff::hire(&config)?.work(&store, session.as_ref())?;
    }
    if let (Some(task), Some(session)) = (&arguments.task, &session) {
        return selected(&store, &config, session, task, arguments.json);
    }
    let cards = store.history(async |history, tenant| {
        let sessions = if let Some(session) = &session {
            vec![session.clone()]
        } else {
            let all = history.sessions(tenant, usize::MAX >> 1).await?;
            all.into_iter().map(|summary| summary.session).collect()
        };
        let mut cards: Vec<ContextCard> = Vec::new();
        for session in &sessions {
            if cards.len() < arguments.limit {
                cards.extend(history.cards(tenant, session).await?);
            }
        }
        cards.truncate(arguments.limit);
        Ok(cards)
    })?;
    let rows: Vec<CardRow<'_>> = cards.iter().map(row).collect();
    if arguments.json { output::json(&rows) } else { output::page(&table(&rows)) }
}

fn row(card: &ContextCard) -> CardRow<'_> {
    CardRow {
        session: &card.session,
        content_hash: &card.content_hash,
        r#ref: format!("ref:message:{}", card.content_hash),
        role: card.role.as_str(),
        phase_name: card.phase_name.as_deref(),
        turn_number: card.turn_number,
        summary: &card.summary,
        keywords: &card.keywords,
        estimated_tokens: card.estimated_tokens,
        is_anchor: card.is_anchor,
        is_callout: card.is_callout,
        callout_name: card.callout_name.as_deref(),
        generator_model: &card.generator_model,
        embedding_model: card.embedding.as_ref().map(|embedding| embedding.model.as_str()),
        generated_at: card.generated_at.0,
        message_timestamp: card.message_timestamp.0,
    }
}

fn table(rows: &[CardRow<'_>]) -> String {
    let mut out = String::new();
    for row in rows {
        let marks = match (row.is_anchor, row.is_callout) {
            (true, _) => " anchor",
            (false, true) => " callout",
            (false, false) => "",
        };
        let vector = if row.embedding_model.is_some() { ", vector" } else { "" };
        let _ = writeln!(
            out,
            "{}  {:9} {:>7}  {DIM}{} by {}{vector}{RESET}{BOLD}{marks}{RESET}\n    {}",
            row.r#ref,
            row.role,
            thousands(u64::from(row.estimated_tokens)),
            output::line(row.session.as_str(), 12),
            output::line(row.generator_model, 40),
            output::line(row.summary, 100),
        );
    }
    if rows.is_empty() {
        out.push_str("no message has a card; `--make` makes them\n");
    }
    out
}

/// A selection with its originals' refs, as JSON shows it.
#[derive(Debug, Serialize)]
struct Chosen<'a> {
    selection: &'a Selection,
    /// In the order in which they were said.
    refs: Vec<String>,
}

fn selected(
    store: &Store,
    config: &Config,
    session: &SessionId,
    task: &str,
    json: bool,
) -> Result<(), CommandError> {
    let models = models::open(&config.models)?;
    let strategy = config.selection.strategy();
    let model = match strategy {
        Strategy::Llm | Strategy::Hybrid => {
            chat(&models, config.selection.selector_model(), "the heuristic selects")
        }
        Strategy::Heuristic | Strategy::Semantic => None,
    };
    let embedder = embedder(&models);
    let settings = InterPhaseContextConfig {
        strategy,
        selection: config.selection.clone(),
        ..InterPhaseContextConfig::default()
    };
    let found = store.history(async |history, tenant| {
        let summaries = history.sessions(tenant, usize::MAX >> 1).await?;
        let turn = summaries.iter().find(|summary| summary.session == *session);
        let asked = SelectionRequest {
            session,
            task,
            phases: &[],
            current: None,
            config: &settings,
            turn: turn.map_or(0, |summary| summary.messages),
            cascade_id: None,
        };
        let selectors = Selectors {
            history,
            model: model.as_deref(),
            embedder: embedder.as_deref(),
            safety: &config.safety,
        };
        select(&selectors, tenant, &asked, clock::now()).await
    })?;
    let Some(found) = found else { return Ok(()) };
    if json {
        let refs = found.messages.iter().map(|it| format!("ref:message:{}", it.hash)).collect();
        return output::json(&Chosen { selection: &found.selection, refs });
    }
    output::page(&choice(&found.selection, &found.messages))
}

fn choice(selection: &Selection, messages: &[MessageRecord]) -> String {
    let mut out = format!(
        "{} of {} tokens by {}",
        thousands(selection.tokens),
        thousands(selection.budget),
        selection.used.as_str()
    );
    if let Some(why) = &selection.fallback {
        let _ =
            write!(out, " in place of {}: {}", selection.asked.as_str(), output::line(why, 100));
    }
    if selection.over_budget > 0 {
        let _ = write!(out, "; anchors are {} over", thousands(selection.over_budget));
    }
    out.push('\n');
    for chosen in selection.anchors.iter().chain(&selection.chosen) {
        let shown = messages.iter().find(|it| it.hash.short() == chosen.hash);
        let _ = writeln!(
            out,
            "ref:message:{}  {:>7}  {DIM}{}{RESET}\n    {}",
            chosen.hash,
            thousands(u64::from(chosen.tokens)),
            chosen.reason,
            output::line(&shown.map_or_else(String::new, |it| it.message.shown()), 100),
        );
    }
    let _ = writeln!(out, "{} not chosen", selection.left_out.len());
    out
}
