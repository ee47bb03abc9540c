//! Loading: a file to a transcript, counted and priced.

use std::path::Path;
use std::sync::Arc;

use plimsoll_core::cost::{Prices, Pricing};
use plimsoll_core::terms::Terms;
use plimsoll_core::{Calibration, Message, Tokenizer, Transcript, tokens};
use plimsoll_formats::{Compaction, Note, ReadOptions, Session};

use crate::arguments::SessionArguments;
use crate::error::CommandError;
use crate::output;
use crate::pricing::{Unlisted, pricing};

/// A session, ready to be worked on.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) session: Session,
    pub(crate) transcript: Transcript,
    /// What the reported usage said, where it was asked.
    pub(crate) calibration: Option<Calibration>,
    /// The model that was named instead of the recorded ones.
    pub(crate) model: Option<String>,
    /// The price family and its prices.
    pub(crate) family: String,
    /// Whether they are those of another model, so that figures in money are estimates.
    pub(crate) estimate: bool,
    pub(crate) terms: Terms,
    pub(crate) pricing: Pricing,
}

impl Loaded {
    /// Returns what the request that a message answers cost: by its own model and time, where they are recorded.
    pub(crate) fn prices_of(&self, message: &Message) -> Prices {
        let model = self.model.as_deref().or(message.model.as_deref());
        let model = model.or(self.session.header.model.as_deref());
        self.pricing.of(model, message.time.or(self.session.header.started)).prices
    }
}

/// Reads, counts and prices the session that the arguments name.
pub(crate) fn load(arguments: &SessionArguments) -> Result<Loaded, CommandError> {
    let loaded = load_bytes(arguments, &read_file(&arguments.file)?)?;
    warn(&arguments.file, &loaded.session.notes, arguments.verbose);
    Ok(loaded)
}

/// As [`load`], from the file's bytes, and without a warning of what was skipped or repaired.
pub(crate) fn load_bytes(
    arguments: &SessionArguments,
    bytes: &[u8],
) -> Result<Loaded, CommandError> {
    let pricing = pricing(arguments.pricing.as_deref())?;
    let session = parse(&arguments.file, bytes, arguments)?;
    let model = arguments.model.as_deref().or(session.header.model.as_deref());
    let priced = pricing.of(model, session.header.started);
    Unlisted::default().warn(model, &priced);
    let family = priced.name.to_owned();
    let estimate = priced.is_estimate();
    let terms = Terms::new(priced.prices);
    let (transcript, calibration) = count(&session, arguments, model)?;
    let model = arguments.model.clone();
    Ok(Loaded { session, transcript, calibration, model, family, estimate, terms, pricing })
}

/// Reads a file's bytes.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, CommandError> {
    std::fs::read(path).map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("cannot read {}", path.display()));
        CommandError::usage(error).hint("give the path of a recorded session")
    })
}

/// Reads a session out of a file's bytes.
pub(crate) fn parse(
    path: &Path,
    bytes: &[u8],
    arguments: &SessionArguments,
) -> Result<Session, CommandError> {
    let compaction =
        if arguments.honour_compaction { Compaction::Honour } else { Compaction::PassOver };
    read_session(path, bytes, ReadOptions { compaction })
}

/// As [`parse`], without a session's arguments.
pub(crate) fn read_session(
    path: &Path,
    bytes: &[u8],
    options: ReadOptions,
) -> Result<Session, CommandError> {
    plimsoll_formats::read(bytes, &options).map_err(|error| {
        let hint = error.hint();
        let error = anyhow::Error::new(error).context(path.display().to_string());
        let error = CommandError::usage(error);
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    })
}

/// Tells on standard error what was skipped or repaired.
pub(crate) fn warn(path: &Path, notes: &[Note], verbose: bool) {
    let path = output::plain(&path.display().to_string());
    if verbose {
        for note in notes {
            output::warning(&format!("{path}: {note}"));
        }
    } else if let [first, ..] = notes {
        let counts: Vec<String> =
            Note::count(notes).iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        output::warning(&format!(
            "{path}: {} (first: {first}; `--verbose` lists them)",
            counts.join(", ")
        ));
    }
}

/// Reads the name of a tokenizer.
pub(crate) fn tokenizer(name: &str) -> Result<Tokenizer, CommandError> {
    name.parse().map_err(|error| {
        CommandError::usage(anyhow::Error::new(error))
            .hint("one of o200k, cl100k, claude, estimate, chars:N, o200k:FACTOR")
    })
}

fn count(
    session: &Session,
    arguments: &SessionArguments,
    model: Option<&str>,
) -> Result<(Transcript, Option<Calibration>), CommandError> {
    let fill = |tokenizer| {
        let mut transcript = Transcript::new(tokenizer);
        for message in &session.messages {
            transcript.push(Arc::clone(message));
        }
        transcript
    };
    if let Some(name) = &arguments.tokens {
        return Ok((fill(tokenizer(name)?), None));
    }
    let chosen = model.map_or(Tokenizer::O200k { factor: 1.0 }, Tokenizer::for_model);
    let exact = matches!(chosen, Tokenizer::Cl100k)
        || model.is_some_and(|model| model.contains("gpt") || model.contains("/o"));
    match chosen {
        Tokenizer::O200k { factor } if !exact => {
            let transcript = fill(Tokenizer::O200k { factor: 1.0 });
            let calibration = tokens::calibrate(&transcript.reported());
            let factor = calibration.map_or(factor, |found| found.factor);
            Ok((transcript.calibrated(factor), calibration))
        }
        other => Ok((fill(other), None)),
    }
}
