//! `plimsoll trim`: a smaller session, in the format that it was read from.

use std::collections::HashSet;

use plimsoll_core::context::{State, bound};
use plimsoll_core::plan::{Treatment, sent_tokens};
use plimsoll_core::render::without_refs;
use plimsoll_core::{
    ContextBudget, Message, Ref, Role, TrimSettings, TrimmedSession, statistics, trim,
};
use plimsoll_engine::session_summary::with_model_summary;
use plimsoll_formats::{ContextMessage, Session, SessionFormat, SessionNote};
use serde::Serialize;
use tokio::runtime::Builder;

use crate::arguments::TrimArguments;
use crate::config::{self, config};
use crate::context_config::context_budget;
use crate::error::CommandError;
use crate::figures::thousands;
use crate::inspect::session_tokens;
use crate::load::{self, Loaded, load_bytes, read_file};
use crate::models;
use crate::output;
use crate::progress::Progress;
use crate::write_file::{Existing, refuse, write_file};

/// The result of a trim.
#[derive(Debug, Serialize)]
struct TrimReport {
    /// `trim` or the policy.
    by: String,
    tokens_before: u64,
    tokens_after: u64,
    /// The part of the tokens that is left.
    ratio: f64,
    messages_before: usize,
    messages_after: usize,
    /// Messages that the summary stands for, or that a policy leaves out.
    left_out: usize,
    /// Messages that stay in a smaller form.
    made_smaller: usize,
    /// Tokens by which what is always kept passes the budget.
    over_budget: u64,
    /// Whether a policy decided by the prices of another model than the session's.
    estimate: bool,
    out: Option<String>,
}

pub(crate) fn run(arguments: &TrimArguments) -> Result<(), CommandError> {
    let existing = if arguments.overwrite { Existing::Replace } else { Existing::Refuse };
    if let Some(out) = &arguments.out {
        refuse(out, existing)?;
    }
    let policy = match &arguments.policy {
        Some(name) => Some((name, config(&arguments.settings)?.policy(name)?)),
        // Settings that do nothing would be taken for settings that did.
        None if arguments.settings.budget.is_some() => return Err(no_policy()),
        None => None,
    };
    let original = read_file(&arguments.session.file)?;
    let loaded = load_bytes(
        &arguments.session.file,
        &arguments.session.reading,
        load::compaction(arguments.no_compaction),
        &original,
    )?;
    crate::store::record(
        &arguments.session.reading,
        arguments.settings.config.as_deref(),
        &arguments.session.file,
        &loaded,
    )?;
    load::warn(&arguments.session.file, &loaded.session.notes, arguments.session.reading.verbose);
    if !loaded.session.format.is_writable() {
        return Err(unwritable(loaded.session.format));
    }
    if !loaded.session.compactions.is_empty() && !arguments.no_compaction {
        output::note(
            "the agent compacted this session: its last context is trimmed; `--no-compaction` trims all of it",
        );
    }
    let (mut context, mut report) = if let Some((name, policy)) = policy {
        by_policy(name, &policy, &loaded)
    } else {
        let budget = context_budget(&arguments.window, &loaded.session)?;
        by_shares(&budget, &loaded, arguments)?
    };
    if arguments.session.reading.store.is_none() && arguments.session.reading.history.is_none() {
        drop_refs(&mut context, &loaded);
    }
    let bytes = plimsoll_formats::write(&loaded.session, &original, &context).map_err(|error| {
        let hint = error.hint();
        let error = CommandError::usage(error);
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    })?;
    check(&bytes, &loaded.session, &context)?;
    match &arguments.out {
        Some(out) => write_file(out, &bytes, existing)?,
        None => output::bytes(&bytes)?,
    }
    report.out = arguments.out.as_ref().map(|out| out.display().to_string());
    if arguments.json {
        return output::json(&report);
    }
    tell(&report);
    Ok(())
}

fn no_policy() -> CommandError {
    CommandError::usage(anyhow::anyhow!(
        "`--config` and `--budget` are settings of a policy, and none is named"
    ))
    .hint("add `--policy plimsoll`, or give shares with `--context-config`")
}

/// Trims to the shares of `context.json`.
fn by_shares(
    budget: &ContextBudget,
    loaded: &Loaded,
    arguments: &TrimArguments,
) -> Result<(Vec<ContextMessage>, TrimReport), CommandError> {
    let config = arguments.settings.config.as_deref();
    // Only the model of the summary is configured there.
    if config.is_some() && !budget.use_llm_summarization {
        return Err(no_policy());
    }
    let tokens = session_tokens(&statistics(&loaded.counted.transcript));
    if !arguments.force && !budget.trimming_due(tokens) {
        let threshold = (budget.total_tokens as f64 * budget.compression_threshold).ceil() as u64;
        return Err(CommandError::finding(anyhow::anyhow!(
            "nothing to trim: {} tokens are {:.0}% of {}, it is due from {} tokens on",
            thousands(tokens),
            100.0 * tokens as f64 / budget.total_tokens as f64,
            thousands(budget.total_tokens),
            thousands(threshold.max(budget.session_budget() + 1))
        ))
        .hint("`--force` trims all the same"));
    }
    let mut trimmed = trim(&loaded.counted.transcript, &TrimSettings::from(budget));
    if trimmed.wants_model_summary {
        trimmed = summarised(trimmed, loaded, &config::for_sending(config)?)?;
    }
    let mut context: Vec<ContextMessage> = trimmed
        .kept
        .iter()
        .map(|turn| ContextMessage { position: Some(turn.position), message: turn.message.clone() })
        .collect();
    if !trimmed.summary.is_empty() {
        let message = Message::text(Role::User, trimmed.summary.as_str());
        context
            .insert(trimmed.summary_at, ContextMessage { position: None, message: message.into() });
    }
    let report = TrimReport {
        by: "trim".to_owned(),
        tokens_before: trimmed.total_original_tokens,
        tokens_after: trimmed.total_trimmed_tokens,
        ratio: 1.0 - trimmed.compression_ratio,
        messages_before: loaded.session.messages.len(),
        messages_after: context.len(),
        left_out: trimmed.summarized.len(),
        made_smaller: trimmed.kept.iter().filter(|turn| turn.compressed).count(),
        over_budget: trimmed.over_ceiling,
        estimate: false,
        out: None,
    };
    Ok((context, report))
}

/// Asks the configured model for the summary; without its answer the summary stays as it is.
fn summarised(
    trimmed: TrimmedSession,
    loaded: &Loaded,
    config: &config::Config,
) -> Result<TrimmedSession, CommandError> {
    const WITHOUT: &str = "the summary is made of first sentences";
    let name = &config.cards.summarizer_model;
    if name.is_empty() {
        output::note(&format!("`cards.summarizer_model` names no model: {WITHOUT}"));
    }
    let Some(model) = models::chat(&models::open(&config.models)?, name, WITHOUT) else {
        return Ok(trimmed);
    };
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(CommandError::failure)?;
    let plain = trimmed.clone();
    let asked = with_model_summary(trimmed, &loaded.counted.transcript, &*model, config.safety);
    Ok(runtime.block_on(asked).unwrap_or_else(|error| {
        output::warning(&format!("{name}: {error}; {WITHOUT}"));
        plain
    }))
}

/// Bounds the request that would come next, as the policy would bound it live.
fn by_policy(
    name: &str,
    policy: &plimsoll_core::policy::Policy,
    loaded: &Loaded,
) -> (Vec<ContextMessage>, TrimReport) {
    let (transcript, mut state) = (&loaded.counted.transcript, State::default());
    // The policy decides as it goes: what it would send next follows from what it sent before.
    let mut progress = Progress::new("bounding", transcript.requests().count() as u64);
    for position in transcript.requests() {
        bound(transcript, position, policy, &loaded.terms, &mut state);
        progress.step();
    }
    drop(progress);
    let next = transcript.entries().len();
    let (context, receipt) = bound(transcript, next, policy, &loaded.terms, &mut state);
    let context: Vec<ContextMessage> = context
        .iter()
        .map(|sent| ContextMessage { position: sent.position, message: sent.message.clone() })
        .collect();
    let decisions = state.plan().decisions();
    let smaller = |one: &&plimsoll_core::plan::Decision| {
        one.treatment != Treatment::Omit && sent_tokens(one) < one.whole.tokens
    };
    let report = TrimReport {
        by: name.to_owned(),
        tokens_before: receipt.full_tokens,
        tokens_after: receipt.tokens,
        ratio: receipt.tokens as f64 / receipt.full_tokens.max(1) as f64,
        messages_before: next,
        messages_after: context.len(),
        left_out: decisions.iter().filter(|one| one.treatment == Treatment::Omit).count(),
        made_smaller: decisions.iter().filter(smaller).count(),
        over_budget: receipt.over_budget,
        estimate: loaded.estimate,
        out: None,
    };
    (context, report)
}

/// Takes the refs out of shortened messages: without a store, nothing can expand them.
fn drop_refs(context: &mut [ContextMessage], loaded: &Loaded) {
    let transcript = &loaded.counted.transcript;
    let own: HashSet<String> =
        transcript.entries().iter().map(|entry| Ref::message(entry.hash).to_string()).collect();
    for written in context {
        // A message that was not changed may quote refs.
        let original = written.position.map(|position| &loaded.session.messages[position]);
        if original.is_some_and(|original| *original == written.message) {
            continue;
        }
        if let Some(changed) = without_refs(&written.message, |reference| own.contains(reference)) {
            written.message = changed.into();
        }
    }
}

/// Reads the written session again: what our own reader would have to repair, an agent would refuse.
///
/// It may lack the same records as the recording, such as the result of an interrupted call.
fn check(bytes: &[u8], session: &Session, context: &[ContextMessage]) -> Result<(), CommandError> {
    let wrong = |what: String| {
        CommandError::failure(anyhow::anyhow!("the trimmed session does not read back: {what}"))
            .hint("nothing was written")
    };
    let read = plimsoll_formats::read(bytes, &session.options)
        .map_err(|error| wrong(error.to_string()))?;
    if read.format != session.format {
        return Err(wrong(format!("it is {}, not {}", read.format, session.format)));
    }
    let known = SessionNote::count(&session.notes);
    if let Some(new) = read.notes.iter().find(|note| !known.contains_key(note.kind.name())) {
        return Err(wrong(new.to_string()));
    }
    let written: Vec<Role> = context.iter().map(|one| one.message.role).collect();
    let found: Vec<Role> = read.messages.iter().map(|message| message.role).collect();
    if written != found {
        return Err(wrong(format!("{} messages became {}", written.len(), found.len())));
    }
    Ok(())
}

fn unwritable(format: SessionFormat) -> CommandError {
    CommandError::usage(plimsoll_formats::WriteError::Unsupported { format })
        .hint("`plimsoll replay --contexts` writes the contexts of any session as JSON Lines")
}

fn tell(report: &TrimReport) {
    let mut changes = Vec::new();
    if report.left_out > 0 {
        let how = if report.by == "trim" { "summarised" } else { "dropped" };
        changes.push(format!("{} {how}", thousands(report.left_out as u64)));
    }
    if report.made_smaller > 0 {
        changes.push(format!("{} made smaller", thousands(report.made_smaller as u64)));
    }
    if changes.is_empty() {
        changes.push("nothing to change".to_owned());
    }
    output::note(&format!(
        "{} → {} tokens ({:.0}%), {} → {} messages: {}{}",
        thousands(report.tokens_before),
        thousands(report.tokens_after),
        100.0 * report.ratio,
        thousands(report.messages_before as u64),
        thousands(report.messages_after as u64),
        changes.join(", "),
        report.out.as_ref().map_or_else(String::new, |out| format!("; wrote {out}"))
    ));
    if report.over_budget > 0 {
        output::warning(&format!(
            "what is always kept passes the budget by {} tokens",
            thousands(report.over_budget)
        ));
    }
}
