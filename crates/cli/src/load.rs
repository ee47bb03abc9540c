//! Loading: a file to a transcript, counted and priced.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use plimsoll_core::cost::{Prices, Pricing};
use plimsoll_core::counted_session::{CountedSession, MessageStretch};
use plimsoll_core::message_label::message_label;
use plimsoll_core::terms::Terms;
use plimsoll_core::{Message, Position, Tokenizer, Transcript};
use plimsoll_formats::{Compaction, ReadOptions, Session, SessionNote};

use crate::arguments::{PriceOverrides, ReadingArguments};
use crate::error::CommandError;
use crate::output;
use crate::pricing::{Unlisted, pricing};

/// A session, ready to be worked on.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) session: Session,
    pub(crate) counted: CountedSession,
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

impl Loaded {
    /// Returns a printable label of a message.
    pub(crate) fn label(&self, transcript: &Transcript, at: Position, most: usize) -> String {
        let folder = self.session.header.working_directory.as_deref();
        output::plain(&message_label(transcript, at, folder, most))
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
    load_part(path, arguments, compaction, bytes, part_of(path).1)
}

/// As [`load_bytes`], for the conversation of this number in the file.
pub(crate) fn load_part(
    path: &Path,
    arguments: &ReadingArguments,
    compaction: Compaction,
    bytes: &[u8],
    part: usize,
) -> Result<Loaded, CommandError> {
    let pricing = pricing(arguments.pricing.as_deref())?;
    let session = read_part(path, bytes, ReadOptions { part, compaction })?;
    let model = arguments.model.clone().or_else(|| session.header.model.clone());
    let priced = pricing.of(model.as_deref(), session.header.started);
    Unlisted::default().warn(model.as_deref(), &priced);
    let (family, estimate) = (priced.name.to_owned(), priced.is_estimate());
    let prices = priced.prices;
    let tokenizer = arguments.tokens.as_deref().map(tokenizer).transpose()?;
    let earlier: Vec<MessageStretch<'_>> = session
        .earlier
        .iter()
        .map(|one| MessageStretch { messages: &one.messages, known: one.known })
        .collect();
    let last = MessageStretch { messages: &session.messages, known: session.known };
    let usual = |tokenizer| session.usual_overhead(tokenizer);
    let counted = CountedSession::count(&earlier, last, tokenizer, model.as_deref(), usual);
    let terms = Terms { around: counted.overhead.surroundings(), ..Terms::new(prices) };
    Ok(Loaded {
        session,
        counted,
        family,
        estimate,
        terms,
        pricing,
        model: arguments.model.clone(),
        overrides: PriceOverrides::default(),
    })
}

/// Returns how compactions are read: they are honoured unless the arguments ignore them.
pub(crate) fn compaction(is_ignored: bool) -> Compaction {
    if is_ignored { Compaction::PassOver } else { Compaction::Honour }
}

/// The path that means standard input.
pub(crate) const STANDARD_INPUT: &str = "-";

/// Splits the number of a conversation off a path: `FILE#2` is the second one besides the first of `FILE`.
///
/// A file whose own name ends like that is meant itself.
pub(crate) fn part_of(path: &Path) -> (PathBuf, usize) {
    let split = || {
        let (file, number) = path.to_str()?.rsplit_once('#')?;
        Some((PathBuf::from(file), number.parse().ok()?))
    };
    let own = || (path.to_owned(), 0);
    if path.exists() { own() } else { split().unwrap_or_else(own) }
}

/// Reads a file's bytes, or standard input for `-`.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, CommandError> {
    let (path, _) = &part_of(path);
    let bytes = if path.as_os_str() == STANDARD_INPUT {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    bytes.map_err(|error| {
        CommandError::unreadable(path, error).hint("give the path of a recorded session")
    })
}

/// Reads a session out of a file's bytes.
pub(crate) fn read_session(
    path: &Path,
    bytes: &[u8],
    options: ReadOptions,
) -> Result<Session, CommandError> {
    read_part(path, bytes, ReadOptions { part: part_of(path).1, ..options })
}

fn read_part(path: &Path, bytes: &[u8], options: ReadOptions) -> Result<Session, CommandError> {
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

/// Warns of records that were skipped or repaired.
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

/// Reads the name of a tokenizer, and builds its tables meanwhile: they take as long as reading thousands of records.
pub(crate) fn tokenizer(name: &str) -> Result<Tokenizer, CommandError> {
    let tokenizer: Tokenizer = name.parse().map_err(|error| {
        CommandError::usage(anyhow::Error::new(error))
            .hint("one of o200k, cl100k, claude, estimate, chars:N, o200k:FACTOR")
    })?;
    std::thread::spawn(move || tokenizer.count("a"));
    Ok(tokenizer)
}
