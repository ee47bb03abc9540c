//! `plimsoll cache`: lists, shows and evicts cached answers, and checks the guard.

mod check;

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::text::{Limit, head};
use plimsoll_engine::Answer;
use plimsoll_engine::answer::{answer_of_key, evict_answer, ref_changed};
use serde::Serialize;
use serde_json::json;

use crate::arguments::{CacheArguments, CacheCommand};
use crate::clock;
use crate::config;
use crate::error::CommandError;
use crate::figures::thousands;
use crate::output;
use crate::store::Store;

/// Digits of a key that a list shows; more than enough to tell ten thousand apart.
const SHOWN: usize = 12;

pub(crate) fn run(arguments: &CacheArguments) -> Result<(), CommandError> {
    match &arguments.command {
        CacheCommand::List { store, limit, json } => {
            let store = Store::open_existing(store, None)?;
            let found = store
                .knowledge(async |knowledge, tenant| knowledge.answers(tenant, *limit).await)?;
            if *json {
                return output::json(&found.iter().map(Shown::of).collect::<Vec<_>>());
            }
            output::page(&list(&found))
        }
        CacheCommand::Show { key, store, json } => {
            let store = Store::open_existing(store, None)?;
            let found = store
                .knowledge(async |knowledge, tenant| answer_of_key(knowledge, tenant, key).await)?;
            if *json {
                return output::json(&Shown::of(&found));
            }
            output::data(&(found.answer_text + "\n"))
        }
        CacheCommand::Evict { key, used_ref, store, json } => {
            let store = Store::open_existing(store, None)?;
            let dropped = store.knowledge(async |knowledge, tenant| match (key, used_ref) {
                (Some(key), _) => evict_answer(knowledge, tenant, key).await.map(|_| 1),
                (None, Some(used)) => ref_changed(knowledge, tenant, used).await,
                (None, None) => Ok(0),
            })?;
            if *json {
                return output::json(&json!({"evicted": dropped}));
            }
            output::data(&format!("{dropped} answers removed\n"))
        }
        CacheCommand::Stats { store, config, json } => {
            stats(&Store::open_existing(store, config.as_deref())?, config.as_deref(), *json)
        }
        CacheCommand::Check(check) => check::run(check),
    }
}

/// An answer as JSON shows it: all but its vector.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    key: &'a str,
    question: &'a str,
    answer: &'a str,
    context_signature: &'a str,
    used_refs: &'a [String],
    created_at: MillisSinceEpoch,
    ttl_expires_at: Option<MillisSinceEpoch>,
    hit_count: u32,
    last_hit_at: Option<MillisSinceEpoch>,
}

impl<'a> Shown<'a> {
    fn of(answer: &'a Answer) -> Self {
        Self {
            key: &answer.cache_key,
            question: &answer.query_text,
            answer: &answer.answer_text,
            context_signature: &answer.context_signature,
            used_refs: &answer.used_refs,
            created_at: answer.created_at,
            ttl_expires_at: answer.ttl_expires_at,
            hit_count: answer.hit_count,
            last_hit_at: answer.last_hit_at,
        }
    }
}

fn list(found: &[Answer]) -> String {
    let mut out = String::new();
    for answer in found {
        let key = head(&answer.cache_key, Limit::Characters(SHOWN));
        let (hits, question) = (answer.hit_count, output::line(&answer.query_text, 60));
        // Writing to a string does not fail.
        let _ = writeln!(out, "{} {hits:>6} hits  {question}", output::plain(key));
    }
    if found.is_empty() {
        out.push_str("no answer is kept\n");
    }
    out
}

/// Statistics of the cached answers.
#[derive(Debug, Default, Serialize)]
struct Stats {
    answers: u64,
    /// Expired answers; the next stored one removes them.
    expired: u64,
    bytes: u64,
    hits: u64,
    /// Answers that were served at least once.
    served: u64,
    /// Hits among hits and answers: every answer was a miss once.
    hit_rate: f64,
    most_entries: u64,
    most_bytes: u64,
}

fn stats(store: &Store, settings: Option<&Path>, json: bool) -> Result<(), CommandError> {
    let settings = config::read(settings)?.answers;
    let all =
        store.knowledge(async |knowledge, tenant| knowledge.answers(tenant, usize::MAX).await)?;
    let now = clock::now();
    let mut stats = Stats {
        most_entries: settings.most_entries,
        most_bytes: settings.most_bytes,
        ..Stats::default()
    };
    for answer in &all {
        stats.answers += 1;
        stats.expired += u64::from(answer.ttl_expires_at.is_some_and(|end| end <= now));
        stats.bytes += (answer.query_text.len() + answer.answer_text.len()) as u64;
        stats.hits += u64::from(answer.hit_count);
        stats.served += u64::from(answer.hit_count > 0);
    }
    let asked = stats.hits + stats.answers;
    stats.hit_rate = if asked == 0 { 0.0 } else { stats.hits as f64 / asked as f64 };
    if json {
        return output::json(&stats);
    }
    output::data(&format!(
        "{} answers of at most {}, {} of them past their time\n\
         {} bytes of at most {}\n\
         {} hits, {} answers served at least once, hit rate {:.1} %\n",
        thousands(stats.answers),
        thousands(stats.most_entries),
        thousands(stats.expired),
        thousands(stats.bytes),
        thousands(stats.most_bytes),
        thousands(stats.hits),
        thousands(stats.served),
        stats.hit_rate * 100.0,
    ))
}
