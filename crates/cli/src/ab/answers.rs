//! The file of answers: one JSON object a line, written as each answer comes.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use plimsoll_engine::ab::StepAnswer;

use super::wrong;
use crate::error::CommandError;
use crate::write_file::{Existing, refuse};

/// The answers so far, and the file that gets the next ones.
#[derive(Debug, Default)]
pub(crate) struct AnswerFile {
    answers: HashMap<String, StepAnswer>,
    file: Option<AnswerWriter>,
}

#[derive(Debug)]
pub(crate) struct AnswerWriter {
    path: PathBuf,
    file: File,
}

impl AnswerFile {
    /// Opens a new file, or one that exists if the run is resumed.
    pub(crate) fn open(path: &Path, resume: bool) -> Result<Self, CommandError> {
        refuse(path, Existing::Replace)?;
        if !resume && path.exists() {
            return Err(CommandError::usage(anyhow!("{} exists", path.display()))
                .hint("`--resume` takes its answers and asks the rest"));
        }
        let text = if path.exists() {
            std::fs::read_to_string(path).map_err(|error| wrong(path, error))?
        } else {
            String::new()
        };
        let (mut answers, mut whole) = (HashMap::new(), 0);
        for (number, line) in text.split_inclusive('\n').enumerate() {
            match serde_json::from_str::<StepAnswer>(line) {
                Ok(answer) => answers.insert(answer.key.clone(), answer),
                // A run that was killed leaves a part of its last line.
                Err(_) if !line.ends_with('\n') => break,
                Err(error) => {
                    let error = anyhow::Error::new(error).context(format!("line {}", number + 1));
                    return Err(wrong(path, error));
                }
            };
            whole += line.len();
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            // Answers repeat parts of the sessions.
            options.mode(0o600);
        }
        let mut file = options.open(path).map_err(|error| wrong(path, error))?;
        file.set_len(whole as u64).map_err(|error| wrong(path, error))?;
        if whole > 0 && !text[..whole].ends_with('\n') {
            file.write_all(b"\n").map_err(|error| wrong(path, error))?;
        }
        Ok(Self { answers, file: Some(AnswerWriter { path: path.to_owned(), file }) })
    }

    /// Returns US dollars of all answers.
    pub(crate) fn dollars(&self) -> f64 {
        self.answers.values().map(|answer| answer.dollars).sum()
    }

    pub(crate) fn parts(&mut self) -> (&mut HashMap<String, StepAnswer>, AnswerSink<'_>) {
        (&mut self.answers, AnswerSink(self.file.as_mut()))
    }
}

/// The place that gets the next answers.
#[derive(Debug)]
pub(crate) struct AnswerSink<'a>(Option<&'a mut AnswerWriter>);

impl AnswerSink<'_> {
    /// Writes an answer, so that a run that is killed later has it.
    pub(crate) fn keep(&mut self, answer: &StepAnswer) -> Result<(), CommandError> {
        let Some(AnswerWriter { path, file }) = &mut self.0 else { return Ok(()) };
        let mut line = serde_json::to_string(answer).map_err(CommandError::failure)?;
        line.push('\n');
        file.write_all(line.as_bytes()).map_err(|error| {
            CommandError::failure(
                anyhow::Error::new(error).context(format!("cannot write {}", path.display())),
            )
        })
    }
}
