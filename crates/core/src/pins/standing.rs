//! Standing pins: instruction files, plan files and the current to-do list, found as they come.

use std::collections::BTreeMap;

use crate::choose::Reason;
use crate::file_access::{Access, file_access};
use crate::message::{Message, Role};
use crate::policy::PinSettings;
use crate::transcript::{Position, Transcript};

/// The tools of agents that write or show a whole to-do list or plan, in lower case without signs.
const TO_DO: &[&str] = &[
    "todowrite",
    "todoread",
    "todolist",
    "todo",
    "updateplan",
    "writetodos",
    "managetodolist",
    "updatetodolist",
    "tasklist",
];

patterns! {
    /// A line with which a message of the user introduces the text of a file.
    INTRODUCED r#"(?m)^\s*(?:Contents of|#+|<\w+ path=)\s*[`"']?([^\s`"'<>]+?)[`"':]*(?:\s|>|$)"#;
}

/// The messages that are pinned without being named.
#[derive(Debug, Clone, Default)]
pub(super) struct Standing {
    settings: Option<PinSettings>,
    seen: Position,
    /// The newest message that shows a file, and whether it shows all of it.
    files: BTreeMap<String, (Position, bool)>,
    /// The newest call of a to-do tool, and its result.
    to_do: Vec<Position>,
}

impl Standing {
    /// Reads the messages before `end` that were not read yet.
    pub(super) fn read(
        &mut self,
        transcript: &Transcript,
        end: Position,
        settings: Option<&PinSettings>,
    ) {
        if self.settings.as_ref() != settings {
            *self = Self { settings: settings.cloned(), ..Self::default() };
        }
        let Some(settings) = settings else { return };
        for position in self.seen..end {
            let message = &transcript.entries()[position].message;
            match message.role {
                Role::System => {}
                Role::User => {
                    let text = message.shown();
                    for found in INTRODUCED.captures_iter(&text) {
                        self.shows(&found[1], position, true, settings);
                    }
                }
                Role::Assistant => {
                    if settings.to_do && message.calls().any(|call| is_to_do(&call.name)) {
                        self.to_do = vec![position];
                    }
                }
                Role::Tool => self.read_results(transcript, position, message, settings),
            }
        }
        self.seen = self.seen.max(end);
    }

    fn read_results(
        &mut self,
        transcript: &Transcript,
        position: Position,
        message: &Message,
        settings: &PinSettings,
    ) {
        for result in message.results().filter(|result| !result.is_error) {
            let Some(call) = transcript.call_of(position, &result.call_id) else { continue };
            if settings.to_do && is_to_do(&call.name) {
                self.to_do.push(position);
                continue;
            }
            match file_access(call) {
                Some((path, Access::ReadsAll)) => self.shows(&path, position, true, settings),
                Some((path, Access::ReadsPart)) => self.shows(&path, position, false, settings),
                Some((_, Access::Changes)) | None => {}
            }
        }
    }

    /// Takes note of a message that shows a file; a part does not stand for the whole.
    fn shows(&mut self, path: &str, position: Position, whole: bool, settings: &PinSettings) {
        if !settings.names(path) {
            return;
        }
        match self.files.get(path) {
            Some((_, true)) if !whole => {}
            _ => drop(self.files.insert(path.to_owned(), (position, whole))),
        }
    }

    /// Returns the pinned messages with the reasons.
    pub(super) fn pinned(&self) -> impl Iterator<Item = (Position, Reason)> + '_ {
        let files = self.files.values().map(|(position, _)| (*position, Reason::Instructions));
        files.chain(self.to_do.iter().map(|position| (*position, Reason::ToDo)))
    }

    /// Returns the file that a message is pinned for.
    pub(super) fn title(&self, position: Position) -> Option<&str> {
        let mut files = self.files.iter();
        files.find(|(_, (at, _))| *at == position).map(|(path, _)| path.as_str())
    }
}

/// Returns whether a tool of this name writes or shows a whole to-do list.
pub(super) fn is_to_do(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    TO_DO.contains(&plain.to_ascii_lowercase().as_str())
}
