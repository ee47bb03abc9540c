//! Loading: a file to a transcript, counted and priced.

use std::path::Path;
use std::sync::Arc;

use plimsoll_core::calibrate::{RequestOverhead, reported, unshown};
use plimsoll_core::cost::{Prices, Pricing};
use plimsoll_core::replay::Stretch;
use plimsoll_core::terms::Terms;
use plimsoll_core::{Calibration, Message, Tokenizer, Transcript, tokens};
use plimsoll_formats::{Compaction, ReadOptions, Session, SessionFormat, SessionNote};

use crate::arguments::{PriceOverrides, ReadingArguments};
use crate::error::CommandError;
use crate::output;
use crate::pricing::{Unlisted, pricing};

/// A session, ready to be worked on.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) session: Session,
    /// What the agent had in its context before each compaction, where those are honoured.
    pub(crate) earlier: Vec<Counted>,
    pub(crate) transcript: Transcript,
    /// What the reported usage said, where it was asked.
    pub(crate) calibration: Option<Calibration>,
    /// What requests hold beside the messages.
    pub(crate) unshown: RequestOverhead,
    /// The price family and its prices.
    pub(crate) family: String,
    /// Whether they are those of another model, so that figures in money are estimates.
    pub(crate) estimate: bool,
    pub(crate) terms: Terms,
    pub(crate) pricing: Pricing,
    /// The model that was named instead of the recorded ones.
    model: Option<String>,
    overrides: PriceOverrides,
}

/// A transcript that ended with a compaction.
#[derive(Debug)]
pub(crate) struct Counted {
    transcript: Transcript,
    known: usize,
}

impl Loaded {
    /// Returns the session's stretches between compactions, oldest first.
    pub(crate) fn stretches(&self) -> impl Iterator<Item = Stretch<'_>> {
        let last = Stretch { transcript: &self.transcript, known: self.session.known };
        stretches(&self.earlier).chain([last])
    }

    /// Returns the transcript that holds a turn, counted from 0 over all stretches.
    pub(crate) fn transcript_of(&self, turn: u32) -> &Transcript {
        let mut turns = 0;
        for counted in &self.earlier {
            let requests = counted.transcript.requests().filter(|at| *at >= counted.known);
            turns += requests.count() as u32;
            if turn < turns {
                return &counted.transcript;
            }
        }
        &self.transcript
    }

    /// Returns all turns of all stretches.
    pub(crate) fn turns(&self) -> u64 {
        let turns =
            |one: Stretch<'_>| one.transcript.requests().filter(|at| *at >= one.known).count();
        self.stretches().map(turns).sum::<usize>() as u64
    }

    /// Returns all messages, each once.
    pub(crate) fn messages(&self) -> usize {
        let fresh = |one: Stretch<'_>| {
            one.transcript.entries().len() - one.known.min(one.transcript.entries().len())
        };
        self.stretches().map(fresh).sum()
    }

    /// Returns the tokens of all messages, each once.
    pub(crate) fn tokens(&self) -> u64 {
        let fresh = |one: Stretch<'_>| -> u64 {
            one.transcript
                .entries()
                .iter()
                .skip(one.known)
                .map(|entry| u64::from(entry.tokens))
                .sum()
        };
        self.stretches().map(fresh).sum()
    }

    /// Returns all that was said, what compactions left out included, in the order of the file.
    pub(crate) fn history(&self) -> Transcript {
        let mut history = Transcript::new(self.transcript.tokenizer());
        let mut seen = std::collections::HashSet::new();
        for stretch in self.stretches() {
            for (position, entry) in stretch.transcript.entries().iter().enumerate() {
                // What a compaction kept is there already; its summary is not.
                if seen.insert(entry.hash) || position >= stretch.known {
                    history.push_known(entry.message.clone(), entry.hash, entry.tokens);
                }
            }
        }
        history
    }

    /// Returns the model that is priced where a message names none.
    pub(crate) fn model(&self) -> Option<&str> {
        self.model.as_deref().or(self.session.header.model.as_deref())
    }

    /// Returns what the request that a message answers cost: by its own model and time, where they are recorded.
    pub(crate) fn prices_of(&self, message: &Message) -> Prices {
        let model = self.model.as_deref().or(message.model.as_deref()).or(self.model());
        let time = message.time.or(self.session.header.started);
        self.overrides.over(self.pricing.of(model, time).prices)
    }

    /// Returns the terms of the request that a message answers.
    pub(crate) fn terms_of(&self, message: &Message) -> Terms {
        Terms { prices: self.prices_of(message), ..self.terms.clone() }
    }

    /// Takes other prices and rules than the model's own.
    pub(crate) fn set_rules(&mut self, overrides: Option<PriceOverrides>, append_only: bool) {
        self.overrides = overrides.unwrap_or_default();
        self.terms.prices = self.overrides.over(self.terms.prices);
        self.terms.append_only = append_only;
    }
}

fn stretches(earlier: &[Counted]) -> impl Iterator<Item = Stretch<'_>> {
    earlier.iter().map(|one| Stretch { transcript: &one.transcript, known: one.known })
}

/// Reads, counts and prices a session.
pub(crate) fn load(
    path: &Path,
    arguments: &ReadingArguments,
    compaction: Compaction,
) -> Result<Loaded, CommandError> {
    let loaded = load_bytes(path, arguments, compaction, &read_file(path)?)?;
    warn(path, &loaded.session.notes, arguments.verbose);
    Ok(loaded)
}

/// As [`load`], from the file's bytes, and without a warning of what was skipped or repaired.
pub(crate) fn load_bytes(
    path: &Path,
    arguments: &ReadingArguments,
    compaction: Compaction,
    bytes: &[u8],
) -> Result<Loaded, CommandError> {
    let pricing = pricing(arguments.pricing.as_deref())?;
    let session = read_session(path, bytes, ReadOptions { compaction })?;
    let model = arguments.model.clone().or_else(|| session.header.model.clone());
    let priced = pricing.of(model.as_deref(), session.header.started);
    Unlisted::default().warn(model.as_deref(), &priced);
    let (family, estimate) = (priced.name.to_owned(), priced.is_estimate());
    let prices = priced.prices;
    let (mut earlier, mut transcript, calibration) = count(&session, arguments, model.as_deref())?;
    let usual = usual_before(&session, transcript.tokenizer());
    let find = |earlier: &[Counted], transcript: &Transcript| {
        let last = Stretch { transcript, known: session.known };
        unshown(&reported(stretches(earlier).chain([last])), usual)
    };
    let mut unshown = find(&earlier, &transcript);
    if let (Some(found), true) = (calibration, unshown.scale < 1.0) {
        let factor = (f64::from(found.factor) * unshown.scale) as f32;
        transcript = transcript.calibrated(factor);
        for one in &mut earlier {
            one.transcript = one.transcript.clone().calibrated(factor);
        }
        unshown = find(&earlier, &transcript);
    }
    let terms = Terms { around: unshown.surroundings(), ..Terms::new(prices) };
    Ok(Loaded {
        session,
        earlier,
        transcript,
        calibration,
        unshown,
        family,
        estimate,
        terms,
        pricing,
        model: arguments.model.clone(),
        overrides: PriceOverrides::default(),
    })
}

/// Returns how compactions are read where they are honoured only when it is asked for.
pub(crate) fn compaction(honour: bool) -> Compaction {
    if honour { Compaction::Honour } else { Compaction::PassOver }
}

/// Returns the tokens of system prompt and tools that a client has before its messages, where no usage tells.
///
/// The medians of first requests of recorded sessions; else what the session itself says of its system prompt.
fn usual_before(session: &Session, tokenizer: Tokenizer) -> f64 {
    match session.format {
        SessionFormat::ClaudeCode => 42_000.0,
        SessionFormat::Codex => 18_000.0,
        SessionFormat::Pi => 1700.0,
        _ => {
            let instructions = session.header.instructions.as_deref();
            instructions.map_or(0.0, |text| f64::from(tokenizer.count(text)))
        }
    }
}

/// Reads a file's bytes.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, CommandError> {
    std::fs::read(path).map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("cannot read {}", path.display()));
        CommandError::usage(error).hint("give the path of a recorded session")
    })
}

/// Reads a session out of a file's bytes.
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
pub(crate) fn warn(path: &Path, notes: &[SessionNote], verbose: bool) {
    let path = output::plain(&path.display().to_string());
    if verbose {
        for note in notes {
            output::warning(&format!("{path}: {note}"));
        }
    } else if let [first, ..] = notes {
        let counts: Vec<String> = SessionNote::count(notes)
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
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
    arguments: &ReadingArguments,
    model: Option<&str>,
) -> Result<(Vec<Counted>, Transcript, Option<Calibration>), CommandError> {
    let fill = |tokenizer| {
        let filled = |messages: &[Arc<Message>]| {
            let mut transcript = Transcript::new(tokenizer);
            for message in messages {
                transcript.push(Arc::clone(message));
            }
            transcript
        };
        let earlier = session
            .earlier
            .iter()
            .map(|stretch| Counted { transcript: filled(&stretch.messages), known: stretch.known });
        (earlier.collect::<Vec<_>>(), filled(&session.messages))
    };
    if let Some(name) = &arguments.tokens {
        let (earlier, transcript) = fill(tokenizer(name)?);
        return Ok((earlier, transcript, None));
    }
    let chosen = model.map_or(Tokenizer::O200k { factor: 1.0 }, Tokenizer::for_model);
    let exact = matches!(chosen, Tokenizer::Cl100k)
        || model.is_some_and(|model| model.contains("gpt") || model.contains("/o"));
    match chosen {
        Tokenizer::O200k { factor } if !exact => {
            let (earlier, transcript) = fill(Tokenizer::O200k { factor: 1.0 });
            let last = Stretch { transcript: &transcript, known: session.known };
            let reported: Vec<(u32, u64)> = reported(stretches(&earlier).chain([last]))
                .iter()
                .map(|one| (one.counted as u32, one.usage.prompt_tokens))
                .collect();
            let calibration = tokens::calibrate(&reported);
            let factor = calibration.map_or(factor, |found| found.factor);
            let earlier = earlier
                .into_iter()
                .map(|one| Counted { transcript: one.transcript.calibrated(factor), ..one })
                .collect();
            Ok((earlier, transcript.calibrated(factor), calibration))
        }
        other => {
            let (earlier, transcript) = fill(other);
            Ok((earlier, transcript, None))
        }
    }
}
