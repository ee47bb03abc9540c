//! Writes Claude Code sessions.

use plimsoll_core::{Block, ContentHash, Message, Role};

use crate::error::WriteError;
use crate::object::{Object, quoted, quoted_or_null};
use crate::time;
use crate::write::edit;
use crate::write::lines::{LineOutput, OriginalLine, RecordTree, lines};
use crate::write::pi::unframed;
use crate::write::plan::{BlockPlan, Fate, InsertedMessage, RecordPlan, WritePlan};

/// The fields that a new line copies from its neighbour.
const ENVELOPE: [&str; 6] = ["isSidechain", "userType", "cwd", "sessionId", "version", "gitBranch"];

/// The fields of a message's usage with the size of its prompt.
const PROMPT_SIZES: [&str; 3] =
    ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];

/// Writes the plan.
pub(crate) fn write(plan: &WritePlan<'_>, original: &[u8]) -> Result<Vec<u8>, WriteError> {
    let mut tree = RecordTree::default();
    for line in lines(original) {
        let Some(text) = line.text() else { continue };
        let Some(object) = Object::parse(&text) else { continue };
        let Some(id) = object.owned("uuid") else { continue };
        let dropped = is_dropped(plan, &line, &object);
        // A boundary has no parent. Without the boundary the summary continues the messages before it.
        let parent = object.owned("parentUuid").or_else(|| object.owned("logicalParentUuid"));
        tree.add(id, parent, dropped);
    }
    ClaudeCodeWriter { plan, tree }.write(original)
}

fn is_dropped(plan: &WritePlan<'_>, line: &OriginalLine<'_>, object: &Object<'_>) -> bool {
    match plan.records.get(&line.number) {
        Some(record) => !record.kept || record_is_empty(record),
        None => {
            plan.without_compactions
                && object.owned("subtype").as_deref() == Some("compact_boundary")
        }
    }
}

/// Returns whether all blocks of a line are dropped, while other lines of its message stay.
fn record_is_empty(record: &RecordPlan) -> bool {
    !record.parts.is_empty() && record.parts.iter().all(|part| matches!(part.fate, Fate::Dropped))
}

struct ClaudeCodeWriter<'a> {
    plan: &'a WritePlan<'a>,
    tree: RecordTree,
}

impl ClaudeCodeWriter<'_> {
    fn write(&mut self, original: &[u8]) -> Result<Vec<u8>, WriteError> {
        let mut output = LineOutput::default();
        let mut last: Option<String> = None;
        let mut last_line: Option<String> = None;
        for line in lines(original) {
            let text = line.text();
            let Some(object) = text.as_deref().and_then(Object::parse) else {
                output.copy(&line);
                continue;
            };
            let mut parent = self.tree.kept(object.owned("parentUuid").as_deref());
            for inserted in self.plan.inserted_before(Some(line.number)) {
                let (entry, id) = self.new_line(inserted, parent.as_deref(), &object);
                output.put(&entry);
                self.tree.put_before(line.number, id.clone());
                parent = Some(id);
            }
            // A line that repeats a dropped one would take its place.
            let repeats = object.owned("uuid").is_some_and(|id| self.tree.is_dropped(&id));
            if repeats || is_dropped(self.plan, &line, &object) {
                continue;
            }
            if self.plan.records.contains_key(&line.number) {
                last = object.owned("uuid").or(last);
                last_line = text.as_deref().map(str::to_owned);
            }
            match self.line(&line, object)? {
                Some(text) => output.put(&text),
                None => output.copy(&line),
            }
        }
        for inserted in self.plan.inserted_before(None) {
            let template = last_line.as_deref().unwrap_or("{}");
            let Some(template) = Object::parse(template) else { continue };
            let (entry, id) = self.new_line(inserted, last.as_deref(), &template);
            output.put(&entry);
            last = Some(id);
        }
        Ok(output.into_bytes())
    }

    /// Returns the new text of a line, or `None` if it stays as it is.
    fn line(
        &self,
        line: &OriginalLine<'_>,
        mut object: Object<'_>,
    ) -> Result<Option<String>, WriteError> {
        if let Some(record) = self.plan.records.get(&line.number)
            && !record.is_untouched()
        {
            let edited = edited(&object, &record.parts)
                .ok_or(WriteError::OtherOriginal { record: line.number })?;
            object.set("message", edited);
            // The field is a second copy of the result and still has the removed text.
            object.remove("toolUseResult");
        }
        if self.plan.is_behind_change(line.number) {
            edit::reset_prompt_size(&mut object, &PROMPT_SIZES);
        }
        // Claude Code hides all messages before a marked summary; without its boundary the summary is an ordinary message.
        if self.plan.without_compactions {
            object.remove("isCompactSummary");
        }
        self.tree.relink(line.number, &mut object, "parentUuid");
        Ok(object.changed())
    }

    fn new_line(
        &mut self,
        inserted: &InsertedMessage<'_>,
        parent: Option<&str>,
        neighbour: &Object<'_>,
    ) -> (String, String) {
        let text = inserted.message.shown();
        let seed = format!("{parent:?}\n{text}");
        let hash = ContentHash::of(&Message::text(Role::User, seed)).full();
        let id = uuid(&hash);
        self.tree.add(id.clone(), parent.map(str::to_owned), false);
        let mut fields = quoted_or_null(parent);
        for key in ENVELOPE {
            if let Some(value) = neighbour.get(key) {
                fields = format!("{fields},{}:{value}", quoted(key));
            }
        }
        let time = inserted.time.unwrap_or(plimsoll_core::MillisSinceEpoch(0));
        let content = format!("[{}]", edit::text_block(&text));
        let (kind, message) = if inserted.message.role == Role::Assistant {
            let model = quoted(self.plan.session.header.model.as_deref().unwrap_or("<synthetic>"));
            let id = quoted(&format!("msg_{}", &hash[..24]));
            let usage = r#"{"input_tokens":0,"output_tokens":0}"#;
            (
                "assistant",
                format!(
                    "{{\"model\":{model},\"id\":{id},\"type\":\"message\",\"role\":\"assistant\",\"content\":{content},\"stop_reason\":\"end_turn\",\"stop_sequence\":null,\"usage\":{usage}}}"
                ),
            )
        } else {
            ("user", format!("{{\"role\":\"user\",\"content\":{content}}}"))
        };
        let line = format!(
            "{{\"parentUuid\":{fields},\"type\":\"{kind}\",\"message\":{message},\"uuid\":{},\"timestamp\":{}}}",
            quoted(&id),
            quoted(&time::to_text(time)),
        );
        (line, id)
    }
}

/// Returns the digits of a hash as a UUID of version 8, the version for custom ids.
fn uuid(hash: &str) -> String {
    format!(
        "{}-{}-8{}-8{}-{}",
        &hash[..8],
        &hash[8..12],
        &hash[13..16],
        &hash[17..20],
        &hash[20..32]
    )
}

fn edited(object: &Object<'_>, parts: &[BlockPlan]) -> Option<String> {
    let mut message = Object::parse(object.get("message")?)?;
    // The reader made a text of a result without a call, so the change of the text goes into the result.
    let parts: Vec<BlockPlan> = parts
        .iter()
        .map(|part| match (&part.was, &part.fate) {
            (Block::Text(_), Fate::Changed(Block::Text(text)))
                if part.index.is_some_and(|index| edit::is_result(&message, index)) =>
            {
                let mut result = Message::result("", unframed(text)).blocks;
                let fate = result.pop().map_or(Fate::Kept, Fate::Changed);
                BlockPlan { index: part.index, was: part.was.clone(), fate }
            }
            _ => part.clone(),
        })
        .collect();
    let content = edit::content(message.get("content")?, &parts)?;
    message.set("content", content);
    Some(message.to_string())
}
