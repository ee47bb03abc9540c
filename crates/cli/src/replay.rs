//! `plimsoll replay`: a recorded session under policies, turn by turn.

mod contexts;
pub(crate) mod html;
mod picture;
mod report;

use plimsoll_core::replay::{Replay, replay};

use crate::arguments::ReplayArguments;
use crate::config::config;
use crate::error::CommandError;
use crate::load::load;
use crate::output;
use crate::progress::Progress;
use crate::store;

/// A policy's name and what it gave.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) policy: String,
    pub(crate) replay: Replay,
}

pub(crate) fn run(arguments: &ReplayArguments) -> Result<(), CommandError> {
    let config = config(&arguments.settings)?;
    let names = if arguments.policy.is_empty() {
        vec!["plimsoll".to_owned()]
    } else {
        arguments.policy.clone()
    };
    let policies = names.iter().map(|name| config.policy(name)).collect::<Result<Vec<_>, _>>()?;
    if arguments.contexts.is_some() && policies.len() > 1 {
        return Err(CommandError::usage(anyhow::anyhow!(
            "`--contexts` writes the contexts of one policy, {} were given",
            policies.len()
        )));
    }
    if let Some(path) = &arguments.html {
        crate::write_file::refuse(path, crate::write_file::Existing::Replace)?;
    }
    let loaded = load(&arguments.session)?;
    let recording = store::record(
        arguments.session.store.as_deref(),
        arguments.settings.config.as_deref(),
        &loaded,
    )?;
    let turns = loaded.transcript.requests().count() as u64;
    let mut progress = Progress::new("replaying", turns * (policies.len() as u64 + 1));
    let mut runs = Vec::new();
    for (name, policy) in names.into_iter().zip(&policies) {
        let mut contexts = match &arguments.contexts {
            Some(path) => Some(contexts::Writer::create(path)?),
            None => None,
        };
        let mut records = Vec::new();
        let replay = replay(&loaded.transcript, policy, &loaded.terms, |turn| {
            if let Some(recording) = &recording {
                records.push(recording.receipt(&name, &turn));
            }
            if let Some(writer) = &mut contexts {
                writer.write(turn.receipt.turn, turn.context);
            }
            progress.step();
        });
        if let Some(writer) = contexts {
            writer.finish()?;
        }
        if let Some(recording) = &recording {
            recording.keep_receipts(records)?;
        }
        runs.push(Run { policy: name, replay });
    }
    let full =
        replay(&loaded.transcript, &plimsoll_core::policy::Policy::Full, &loaded.terms, |_| {
            progress.step();
        });
    drop(progress);
    if let Some(path) = &arguments.html {
        html::write(path, &arguments.session.file, &loaded, &full, &runs)?;
    }
    if arguments.json {
        return output::data(&report::json(&loaded, &full, &runs)?);
    }
    let mut text = report::text(&loaded, &full, &runs);
    if let [one] = runs.as_slice() {
        text.push_str(&picture::bars(&one.replay, arguments.all_turns));
    }
    if arguments.missed {
        for one in &runs {
            text.push_str(&report::missed(&loaded, one));
        }
    }
    output::data(&text)
}
