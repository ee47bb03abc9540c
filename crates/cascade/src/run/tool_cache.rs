//! Results of tools that serve again within a run, as `tool_caching` of the cascade says.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::ToolAnswer;
use serde_json::Value;

use crate::definition::{CacheKey, ToolCachePolicy, ToolCaching};

/// The results of one run.
#[derive(Debug, Default)]
pub(crate) struct ToolCache {
    rules: Option<ToolCaching>,
    /// The oldest first.
    kept: Mutex<VecDeque<KeptResult>>,
}

#[derive(Debug, Clone)]
struct KeptResult {
    tool: String,
    key: String,
    answer: ToolAnswer,
    until: MillisSinceEpoch,
}

impl ToolCache {
    pub(crate) fn new(rules: Option<&ToolCaching>) -> Self {
        let rules = rules.filter(|rules| rules.enabled).cloned();
        Self { rules, kept: Mutex::default() }
    }

    fn policy(&self, tool: &str) -> Option<(&ToolCaching, Option<&ToolCachePolicy>)> {
        let rules = self.rules.as_ref()?;
        let own = rules.tools.iter().find(|(name, _)| name == tool).map(|(_, policy)| policy);
        let is_on = own.map_or(rules.tools.is_empty(), |policy| policy.enabled);
        is_on.then_some((rules, own))
    }

    /// Returns the result that serves for a call.
    pub(crate) fn get(
        &self,
        tool: &str,
        arguments: &str,
        now: MillisSinceEpoch,
    ) -> Option<ToolAnswer> {
        let (_, own) = self.policy(tool)?;
        let key = key(arguments, own);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().rev().find(|one| one.tool == tool && one.key == key)?;
        if found.until <= now {
            return None;
        }
        let mut answer = found.answer.clone();
        if let Some(message) = own.and_then(|own| own.hit_message.as_deref()) {
            answer.text = format!("{message}\n{}", answer.text);
        }
        Some(answer)
    }

    /// Keeps the result of a call, and drops those that the call ends.
    pub(crate) fn put(
        &self,
        tool: &str,
        arguments: &str,
        answer: &ToolAnswer,
        now: MillisSinceEpoch,
    ) {
        let Some(rules) = &self.rules else { return };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_ended = |one: &KeptResult| {
            let policy = rules.tools.iter().find(|(name, _)| *name == one.tool);
            policy.is_some_and(|(_, own)| own.invalidate_on.iter().any(|name| name == tool))
        };
        kept.retain(|one| !is_ended(one));
        let Some((_, own)) = self.policy(tool).filter(|_| !answer.is_error) else { return };
        let seconds = own.and_then(|own| own.ttl).unwrap_or(rules.global_ttl);
        let until = MillisSinceEpoch(now.0.saturating_add(i64::from(seconds) * 1_000));
        let key = key(arguments, own);
        kept.retain(|one| !(one.tool == tool && one.key == key));
        while kept.len() >= (rules.max_cache_size as usize).max(1) {
            kept.pop_front();
        }
        kept.push_back(KeptResult { tool: tool.to_owned(), key, answer: answer.clone(), until });
    }
}

/// Returns the text by which calls are told apart: arguments with sorted keys, or the query in one case and spacing.
fn key(arguments: &str, policy: Option<&ToolCachePolicy>) -> String {
    let value: Value = serde_json::from_str(arguments).unwrap_or(Value::Null);
    if policy.is_some_and(|policy| policy.key == CacheKey::Query) {
        let names = ["query", "sql", "question", "code"];
        if let Some(text) = names.iter().find_map(|name| value.get(*name)).and_then(Value::as_str) {
            return text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        }
    }
    sorted(&value).to_string()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            entries.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}
