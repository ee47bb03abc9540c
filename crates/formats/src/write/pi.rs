//! Writes pi sessions.
//!
//! A summary at the beginning of the context becomes a compaction entry; any other new text becomes a message.

use std::sync::Arc;

use plimsoll_core::{Block, ContentHash, Role};

use crate::error::WriteError;
use crate::object::{Object, quoted, quoted_or_null};
use crate::pi;
use crate::time;
use crate::write::edit;
use crate::write::lines::{LineOutput, OriginalLine, RecordTree, lines};
use crate::write::plan::{Fate, InsertedMessage, RecordPlan, WritePlan};

/// The fields of a message's usage with the size of its prompt.
const PROMPT_SIZES: [&str; 4] = ["input", "cacheRead", "cacheWrite", "totalTokens"];

/// Writes the plan.
pub(crate) fn write(plan: &WritePlan<'_>, original: &[u8]) -> Result<Vec<u8>, WriteError> {
    let dropped = plan.session.compactions.iter().map(|seen| seen.source).find(|source| {
        !plan.without_compactions && plan.records.get(source).is_some_and(|record| !record.kept)
    });
    let mut writer =
        PiWriter { plan, tree: RecordTree::default(), hidden_before: dropped.unwrap_or(0) };
    let mut leaf = None;
    for line in lines(original) {
        let Some(text) = line.text() else { continue };
        let Some(object) = Object::parse(&text) else { continue };
        if object.owned("type").as_deref() == Some("session") {
            continue;
        }
        let Some(id) = object.owned("id") else { continue };
        let dropped = writer.is_dropped(&line, &object);
        writer.tree.add(id.clone(), object.owned("parentId"), dropped);
        leaf = Some(id);
    }
    writer.write(original, leaf.as_deref())
}

struct PiWriter<'a> {
    plan: &'a WritePlan<'a>,
    tree: RecordTree,
    /// A compaction that is not in the context hid the messages before this line; they must stay out.
    hidden_before: u32,
}

impl PiWriter<'_> {
    fn is_dropped(&self, line: &OriginalLine<'_>, object: &Object<'_>) -> bool {
        match self.plan.records.get(&line.number) {
            Some(record) => !record.kept,
            None => match object.owned("type").as_deref() {
                Some("compaction") => self.plan.without_compactions,
                Some("message" | "custom_message" | "branch_summary") => {
                    line.number < self.hidden_before
                }
                _ => false,
            },
        }
    }

    fn write(&mut self, original: &[u8], leaf: Option<&str>) -> Result<Vec<u8>, WriteError> {
        let mut output = LineOutput::default();
        let mut last_id = None;
        let mut entries = 0;
        // The new index of each entry of a file without ids, by its old index.
        let mut moved = Vec::new();
        for line in lines(original) {
            let text = line.text();
            let Some(object) = text.as_deref().and_then(Object::parse) else {
                output.copy(&line);
                continue;
            };
            let mut parent = self.tree.kept(object.owned("parentId").as_deref());
            for inserted in self.plan.inserted_before(Some(line.number)) {
                let (entry, id) = self.new_entry(inserted, parent.as_deref(), &object, entries);
                output.put(&entry);
                entries += 1;
                parent = id;
                if let Some(id) = &parent {
                    self.tree.put_before(line.number, id.clone());
                }
            }
            moved.push(entries);
            if self.is_dropped(&line, &object) {
                continue;
            }
            entries += 1;
            last_id = object.owned("id").or(last_id);
            match self.entry(&line, object, &moved)? {
                Some(text) => output.put(&text),
                None => output.copy(&line),
            }
        }
        let leaf = self.tree.kept(leaf);
        self.end(&mut output, leaf, last_id, entries);
        Ok(output.into_bytes())
    }

    /// Writes the new messages at the end, and makes sure that the last line is on the live branch.
    fn end(
        &mut self,
        output: &mut LineOutput,
        leaf: Option<String>,
        last_id: Option<String>,
        entries: usize,
    ) {
        let mut parent = leaf;
        let mut last_id = last_id;
        let with_ids = Object::parse(if parent.is_some() { r#"{"id":""}"# } else { "{}" });
        let Some(template) = with_ids else { return };
        for inserted in self.plan.inserted_before(None) {
            let (entry, id) = self.new_entry(inserted, parent.as_deref(), &template, entries);
            output.put(&entry);
            last_id.clone_from(&id);
            parent = id;
        }
        if let Some(leaf) = parent.filter(|leaf| last_id.as_ref() != Some(leaf)) {
            let id = self.new_id(&leaf);
            let (id, leaf) = (quoted(&id), quoted(&leaf));
            output.put(&format!(
                "{{\"type\":\"custom\",\"customType\":\"live-branch\",\"id\":{id},\"parentId\":{leaf},\"timestamp\":{}}}",
                timestamp(self.plan.session.header.started),
            ));
        }
    }

    /// Returns the new text of an entry, or `None` if it stays as it is.
    fn entry(
        &self,
        line: &OriginalLine<'_>,
        mut object: Object<'_>,
        moved: &[usize],
    ) -> Result<Option<String>, WriteError> {
        if let Some(record) = self.plan.records.get(&line.number)
            && !record.is_untouched()
        {
            object =
                edited(object, record).ok_or(WriteError::OtherOriginal { record: line.number })?;
        }
        if self.plan.is_behind_change(line.number) {
            edit::reset_prompt_size(&mut object, &PROMPT_SIZES);
        }
        let parent = object.owned("parentId");
        self.tree.relink(line.number, &mut object, "parentId");
        if let Some(first) = object.owned("firstKeptEntryId")
            && self.tree.is_dropped(&first)
        {
            let kept =
                self.tree.kept_from(&first, parent.as_deref()).or_else(|| object.owned("id"));
            object.set("firstKeptEntryId", quoted(&kept.unwrap_or_default()));
        }
        let index: Option<usize> =
            object.get("firstKeptEntryIndex").and_then(|raw| raw.parse().ok());
        if let Some(index) = index
            && let Some(&now) = moved.get(index)
            && now != index
        {
            object.set("firstKeptEntryIndex", now.to_string());
        }
        Ok(object.changed())
    }

    /// Returns a new entry and, in a file of entries with ids, its id.
    fn new_entry(
        &mut self,
        inserted: &InsertedMessage<'_>,
        parent: Option<&str>,
        next: &Object<'_>,
        entries: usize,
    ) -> (String, Option<String>) {
        let with_ids = next.get("id").is_some();
        let text = inserted.message.shown();
        let id = with_ids.then(|| self.new_id(&format!("{parent:?}\n{text}")));
        if let Some(id) = &id {
            self.tree.add(id.clone(), parent.map(str::to_owned), false);
        }
        let time = timestamp(inserted.time);
        let links = id.as_ref().map_or_else(String::new, |id| {
            let parent = quoted_or_null(parent);
            format!(",\"id\":{},\"parentId\":{parent}", quoted(id))
        });
        let entry = if inserted.leads && inserted.message.role != Role::Assistant {
            // pi shows the summary and all entries from the first kept one on, so that is the next entry.
            let first = match next.owned("id").filter(|id| with_ids && !id.is_empty()) {
                Some(id) => format!("\"firstKeptEntryId\":{}", quoted(&id)),
                None if with_ids => "\"firstKeptEntryId\":\"\"".to_owned(),
                None => format!("\"firstKeptEntryIndex\":{}", entries + 1),
            };
            let summary = quoted(edit::nonblank(&text));
            format!(
                "{{\"type\":\"compaction\"{links},\"timestamp\":{time},\"summary\":{summary},{first},\"tokensBefore\":0}}"
            )
        } else {
            let content = format!("[{}]", edit::text_block(&text));
            let millis = inserted.time.map_or(0, |time| time.0);
            let message = if inserted.message.role == Role::Assistant {
                assistant(&content, self.plan.session.header.model.as_deref(), millis)
            } else {
                user(&content, millis)
            };
            format!("{{\"type\":\"message\"{links},\"timestamp\":{time},\"message\":{message}}}")
        };
        (entry, id)
    }

    /// Returns an unused id of eight hex digits, the same for the same text.
    fn new_id(&self, seed: &str) -> String {
        let hash = ContentHash::of(&plimsoll_core::Message::text(Role::User, seed)).full();
        let free = (0..=56).map(|at| &hash[at..at + 8]).find(|id| !self.tree.has(id));
        free.unwrap_or(&hash).to_owned()
    }
}

fn timestamp(time: Option<plimsoll_core::MillisSinceEpoch>) -> String {
    quoted(&time::to_text(time.unwrap_or(plimsoll_core::MillisSinceEpoch(0))))
}

fn user(content: &str, millis: i64) -> String {
    format!("{{\"role\":\"user\",\"content\":{content},\"timestamp\":{millis}}}")
}

fn assistant(content: &str, model: Option<&str>, millis: i64) -> String {
    let model = quoted(model.unwrap_or("unknown"));
    let usage = r#"{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}"#;
    format!(
        "{{\"role\":\"assistant\",\"content\":{content},\"api\":\"unknown\",\"provider\":\"unknown\",\"model\":{model},\"usage\":{usage},\"stopReason\":\"stop\",\"timestamp\":{millis}}}"
    )
}

/// Returns the entry with the changes of its parts. Errors: `None` if it is not the entry that was read.
fn edited<'a>(mut object: Object<'a>, record: &RecordPlan) -> Option<Object<'a>> {
    if object.owned("type").as_deref() == Some("custom_message") {
        let content = edit::content(object.get("content")?, &record.parts)?;
        object.set("content", content);
        return Some(object);
    }
    let raw = object.get("message").map(str::to_owned);
    let message = raw.as_deref().and_then(Object::parse);
    let role = message.as_ref().and_then(|message| message.owned("role"));
    let text = match (role.as_deref(), message) {
        (Some("user" | "assistant" | "custom" | "hookMessage"), Some(mut message)) => {
            let content = edit::content(message.get("content")?, &record.parts)?;
            message.set("content", content);
            message.to_string()
        }
        (Some("toolResult"), Some(mut message)) => {
            let content = message.get("content").unwrap_or("[]").to_owned();
            for part in &record.parts {
                match &part.fate {
                    Fate::Changed(Block::ToolResult(result)) => {
                        message.set("content", edit::result_content(&content, result));
                        message.set("isError", result.is_error.to_string());
                    }
                    // The reader made a user message of a result without a call.
                    Fate::Changed(Block::Text(text)) => {
                        message.set("content", format!("[{}]", edit::text_block(unframed(text))));
                    }
                    _ => {}
                }
            }
            message.to_string()
        }
        _ if object.owned("type").as_deref() == Some("compaction") => {
            let text = changed_text(record)?;
            object.set("summary", quoted(pi::without_frame(&text)));
            return Some(object);
        }
        // pi frames the text of user commands and summaries itself, so the changed text becomes a plain message.
        (_, message) => {
            let text = changed_text(record)?;
            let millis = message.as_ref().and_then(|message| message.get("timestamp"));
            let millis = millis.and_then(|raw| raw.parse().ok()).unwrap_or(0);
            for key in ["summary", "fromId", "details"] {
                object.remove(key);
            }
            object.set("type", "\"message\"");
            user(&format!("[{}]", edit::text_block(&text)), millis)
        }
    };
    object.set("message", text);
    Some(object)
}

fn changed_text(record: &RecordPlan) -> Option<Arc<str>> {
    record.parts.iter().find_map(|part| match &part.fate {
        Fate::Changed(Block::Text(text)) => Some(text.clone()),
        _ => None,
    })
}

/// Returns the text without the first line that a repair put before it.
pub(crate) fn unframed(text: &str) -> &str {
    match text.split_once('\n') {
        Some((first, rest)) if first.starts_with('[') && first.ends_with(']') => rest,
        _ => text,
    }
}
