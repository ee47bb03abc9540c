//! The contexts of a replay as JSON Lines, for scorers of other hands.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use plimsoll_core::plan::Context;
use serde::Serialize;

use crate::error::CommandError;

/// A file that gets one line a turn: `{"turn": k, "messages": [{"role", "text"}]}`.
#[derive(Debug)]
pub(crate) struct Writer {
    path: PathBuf,
    file: BufWriter<File>,
    failed: Option<std::io::Error>,
}

#[derive(Serialize)]
struct Line<'a> {
    turn: u32,
    messages: Vec<Shown<'a>>,
}

#[derive(Serialize)]
struct Shown<'a> {
    role: &'a str,
    text: String,
}

impl Writer {
    pub(crate) fn create(path: &Path) -> Result<Self, CommandError> {
        let file = File::create(path).map_err(|error| cannot_write(path, error))?;
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), failed: None })
    }

    /// Writes a turn; the first failure is kept for [`Writer::finish`].
    pub(crate) fn write(&mut self, turn: u32, context: &Context) {
        if self.failed.is_some() {
            return;
        }
        let messages = context
            .iter()
            .map(|sent| Shown { role: sent.message.role.as_str(), text: sent.message.shown() })
            .collect();
        let written = serde_json::to_writer(&mut self.file, &Line { turn, messages })
            .map_err(std::io::Error::from)
            .and_then(|()| self.file.write_all(b"\n"));
        self.failed = written.err();
    }

    pub(crate) fn finish(mut self) -> Result<(), CommandError> {
        let flushed = self.file.flush().err();
        match self.failed.or(flushed) {
            Some(error) => Err(cannot_write(&self.path, error)),
            None => Ok(()),
        }
    }
}

fn cannot_write(path: &Path, error: std::io::Error) -> CommandError {
    CommandError::failure(
        anyhow::Error::new(error).context(format!("cannot write {}", path.display())),
    )
}
