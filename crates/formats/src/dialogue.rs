//! Dialogues: lines of `{"id", "session", "speaker", "time", "text"}`, of one conversation or of many.
//!
//! They are not sessions of an agent: a file may hold several sessions, and speakers have names instead of roles.

use plimsoll_core::{Message, MillisSinceEpoch, Role};
use serde::Deserialize;
use serde_json::Value;

use crate::json::{LONGEST_LINE, lines, without_mark};
use crate::note::{NoteKind, RecordPlace, SessionNote};
use crate::time;

/// The message of one line.
#[derive(Debug, Clone, PartialEq)]
pub struct DialogueLine {
    /// Counted from 1.
    pub line: u32,
    /// `None` where the line names no session.
    pub session: Option<String>,
    /// Has the id, speaker and time of the line.
    pub message: Message,
}

/// A file of dialogue lines.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dialogue {
    pub lines: Vec<DialogueLine>,
    /// Lines that could not be read, and why.
    pub notes: Vec<SessionNote>,
}

/// The fields of a line that are read.
#[derive(Deserialize)]
struct LineFields {
    text: String,
    #[serde(default)]
    id: Value,
    #[serde(default)]
    session: Value,
    #[serde(default)]
    speaker: Value,
    #[serde(default)]
    time: Value,
}

/// Reads a file of dialogue lines. Errors: `None` if it is not one.
///
/// The first line that is a JSON object decides: it has a `text`, and none of the keys `type`, `role`, `message` and
/// `content`, which records of agents have. An unreadable line is skipped with a note.
pub fn read_dialogue(bytes: &[u8]) -> Option<Dialogue> {
    let bytes = without_mark(bytes);
    let first = lines(bytes).find_map(|(_, line)| serde_json::from_slice::<Value>(line).ok())?;
    let foreign = ["type", "role", "message", "content"];
    let first = first.as_object()?;
    if !first.contains_key("text") || foreign.iter().any(|key| first.contains_key(*key)) {
        return None;
    }
    let mut dialogue = Dialogue::default();
    for (number, line) in lines(bytes) {
        match read_line(number, line) {
            Ok(line) => dialogue.lines.push(line),
            Err(why) => dialogue.notes.push(SessionNote {
                place: RecordPlace::Line(number),
                kind: NoteKind::Skipped { why },
            }),
        }
    }
    Some(dialogue)
}

fn read_line(number: u32, line: &[u8]) -> Result<DialogueLine, String> {
    if line.len() > LONGEST_LINE {
        return Err(format!("longer than {} MiB", LONGEST_LINE >> 20));
    }
    let text = str::from_utf8(line).map_err(|_| "not UTF-8".to_owned())?;
    let read: LineFields = serde_json::from_str(text).map_err(|error| match error.classify() {
        serde_json::error::Category::Data if text.starts_with('{') => "it has no `text`".to_owned(),
        serde_json::error::Category::Data => "not a JSON object".to_owned(),
        _ => format!("not JSON: {error}"),
    })?;
    let speaker = name("speaker", &read.speaker)?;
    let mut message = Message::text(role(speaker.as_deref()), read.text);
    message.time = when(&read.time)?;
    message.source = Some(number);
    message.id = name("id", &read.id)?.map(Into::into);
    message.speaker = speaker.filter(|speaker| role_of(speaker).is_none()).map(Into::into);
    let session = name("session", &read.session)?;
    Ok(DialogueLine { line: number, session, message })
}

/// Reads a field that is a text, a number or absent.
fn name(field: &str, value: &Value) -> Result<Option<String>, String> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        Value::Number(number) => Ok(Some(number.to_string())),
        _ => Err(format!("`{field}` is neither a text nor a number")),
    }
}

fn when(value: &Value) -> Result<Option<MillisSinceEpoch>, String> {
    let read = match value {
        Value::Null => return Ok(None),
        Value::String(text) if text.is_empty() => return Ok(None),
        Value::String(text) => time::from_text(text),
        Value::Number(number) => number.as_f64().and_then(time::from_number),
        _ => None,
    };
    match read {
        Some(time) => Ok(Some(time)),
        None => Err(format!("`time` is no time: {value:.40}")),
    }
}

/// Returns the role of a speaker; a speaker whose name is no role is a user.
fn role(speaker: Option<&str>) -> Role {
    speaker.and_then(role_of).unwrap_or(Role::User)
}

fn role_of(speaker: &str) -> Option<Role> {
    match speaker {
        "user" | "human" => Some(Role::User),
        "assistant" | "model" => Some(Role::Assistant),
        "system" => Some(Role::System),
        "tool" => Some(Role::Tool),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_who_said_what_and_when() {
        let file = concat!(
            "{\"id\":\"D1:1\",\"session\":\"c\",\"speaker\":\"Ann\",\"time\":\"2023-05-08T13:56:00\",\"text\":\"Hi\"}\n",
            "\n{\"id\":2,\"text\":\"Hm\",\"speaker\":\"assistant\",\"time\":1683554160,\"mood\":[]}\n",
        );
        let dialogue = read_dialogue(file.as_bytes()).expect("a dialogue");
        assert_eq!(dialogue.notes, []);
        let [first, second] = &dialogue.lines[..] else { panic!("two lines") };
        assert_eq!(
            (first.session.as_deref(), first.message.id.as_deref()),
            (Some("c"), Some("D1:1"))
        );
        assert_eq!(first.message.speaker.as_deref(), Some("Ann"));
        assert_eq!((first.message.role, second.message.role), (Role::User, Role::Assistant));
        assert_eq!(second.message.time, Some(MillisSinceEpoch(1_683_554_160_000)));
        assert_eq!(second.message.time, first.message.time);
        assert_eq!((second.line, second.session.as_deref()), (3, None));
        assert_eq!(
            (second.message.id.as_deref(), second.message.speaker.as_deref()),
            (Some("2"), None)
        );
    }

    #[test]
    fn bad_lines_are_noted_and_the_rest_is_read() {
        let file = b"{cut\n{\"text\":\"a\"}\n[1]\n{\"id\":1}\n{\"text\":\"b\",\"time\":\"soon\"}\n\xff\n{\"text\":\"c\",\"speaker\":[]}\n{\"text\":\"d\"}";
        let dialogue = read_dialogue(file).expect("a dialogue");
        assert_eq!(dialogue.lines.len(), 2);
        let notes: Vec<String> = dialogue.notes.iter().map(ToString::to_string).collect();
        assert_eq!(
            notes[0].split(" at ").next(),
            Some("line 1: skipped, not JSON: key must be a string")
        );
        assert_eq!(
            notes[1..],
            [
                "line 3: skipped, not a JSON object",
                "line 4: skipped, it has no `text`",
                "line 5: skipped, `time` is no time: \"soon\"",
                "line 6: skipped, not UTF-8",
                "line 7: skipped, `speaker` is neither a text nor a number",
            ]
        );
    }

    #[test]
    fn records_of_agents_are_no_dialogue() {
        for file in [
            "",
            "{",
            "[]",
            "{\"role\":\"user\",\"text\":\"a\"}",
            "{\"type\":\"message\",\"text\":\"a\"}",
            "{\"id\":1}",
        ] {
            assert_eq!(read_dialogue(file.as_bytes()), None, "{file}");
        }
    }
}
