//! `OpenAI` Chat Completions: calls are numbered over all answers of a reply, under the id of the first.

use super::{EventEdit, State, body, stops_for_calls};
use crate::Wire;
use crate::answer::{call_index, call_name};
use crate::document::{Value, quoted};
use crate::patch::Patch;

#[derive(Debug, Default)]
pub(super) struct Numbers {
    next: u64,
    /// For each call of this answer, the number that the client knows; none for what is withheld.
    given: Vec<Option<u64>>,
}

impl Numbers {
    pub(super) fn begin_round(&mut self) {
        self.given.clear();
    }

    pub(super) fn treat(
        &mut self,
        data: Value<'_>,
        mut patch: Patch<'_>,
        state: &mut State,
    ) -> EventEdit {
        let mut changed = false;
        let id = data.get("id").filter(|id| id.is_text());
        if let Some(id) = id {
            let known = state.id.get_or_insert_with(|| id.text().unwrap_or_default().into_owned());
            if !id.says(known) {
                patch.replace(id, quoted(known));
                changed = true;
            }
        }
        let choice = data.get("choices").and_then(|choices| choices.elements().next());
        let Some(choice) = choice else {
            if state.hides_usage && data.get("usage").is_some_and(Value::is_object) {
                return EventEdit::Drop;
            }
            changed |= body::count_chat(data, &mut patch, state);
            return if changed { EventEdit::of(patch) } else { EventEdit::Pass };
        };
        let delta = choice.get("delta").filter(|delta| delta.is_object());
        let list = delta.and_then(|delta| delta.get("tool_calls")).filter(|list| list.is_list());
        let (kept, renumbered) = match list {
            Some(list) => self.treat_calls(list, &mut patch, state),
            None => (0, false),
        };
        changed |= renumbered;
        let reason = choice.get("finish_reason").filter(|reason| reason.is_text());
        let stop = reason.and_then(Value::text);
        let asks = state.only_own(stops_for_calls(Wire::ChatCompletions, stop.as_deref()));
        // A second `role` is appended to the first by some clients.
        let repeats_role =
            state.round > 0 && delta.is_some_and(|delta| delta.get("role").is_some());
        let gone = |key: &str| match key {
            "tool_calls" => list.is_some() && kept == 0,
            "role" => repeats_role,
            _ => false,
        };
        let Some(delta) = delta else {
            state.asks = asks;
            return match (asks, changed) {
                (true, _) => EventEdit::Drop,
                (false, true) => EventEdit::of(patch),
                (false, false) => EventEdit::Pass,
            };
        };
        let withheld = list.is_some()
            && kept == 0
            && list.is_some_and(|list| list.elements().next().is_some());
        if asks || withheld || repeats_role {
            let stays: Vec<String> = delta
                .fields()
                .filter(|(key, value)| !value.is_null() && !gone(&key.text().unwrap_or_default()))
                .map(|(key, value)| format!("{}:{}", key.raw(), value.raw()))
                .collect();
            let says_nothing = stays.is_empty() && (asks || reason.is_none());
            let counts = data.get("usage").is_some_and(Value::is_object);
            state.asks = asks;
            if says_nothing && (asks || !counts) {
                return EventEdit::Drop;
            }
            // Calls that stay are in the patch already, and the delta is not replaced over them.
            if kept == 0 {
                let Some(fresh) = without(data, choice, delta, &stays, state) else {
                    return EventEdit::Drop;
                };
                return EventEdit::Changed(fresh);
            }
            if repeats_role {
                patch.remove_field(delta, "role");
                changed = true;
            }
        }
        changed |= body::count_chat(data, &mut patch, state);
        if changed { EventEdit::of(patch) } else { EventEdit::Pass }
    }

    /// Takes out our calls and renumbers the others; returns how many stay, and whether anything changed.
    fn treat_calls(
        &mut self,
        list: Value<'_>,
        patch: &mut Patch<'_>,
        state: &mut State,
    ) -> (usize, bool) {
        let (mut kept, mut changed) = (0, false);
        for (place, call) in list.elements().enumerate() {
            let at = call_index(call, self.given.len());
            if at == self.given.len() {
                if call_name(call).is_some_and(|name| state.is_own(&name)) {
                    state.own_calls += 1;
                    self.given.push(None);
                } else {
                    state.other_calls += 1;
                    self.given.push(Some(self.next));
                    self.next += 1;
                }
            }
            match self.given[at] {
                None => {
                    patch.remove(list, place);
                    changed = true;
                }
                Some(given) => {
                    kept += 1;
                    let index = call.get("index").filter(|index| !index.is_null());
                    if index.is_some_and(|index| index.number() != Some(given)) {
                        patch.set(call, "index", given.to_string());
                        changed = true;
                    }
                }
            }
        }
        (kept, changed)
    }
}

/// Returns the chunk with a delta of the fields that stay; an answer that asks does not stop yet.
fn without(
    data: Value<'_>,
    choice: Value<'_>,
    delta: Value<'_>,
    stays: &[String],
    state: &State,
) -> Option<String> {
    let document = data.document();
    let mut patch = Patch::new(document);
    patch.replace(delta, format!("{{{}}}", stays.join(",")));
    if let (Some(id), Some(known)) = (data.get("id").filter(|id| id.is_text()), &state.id) {
        patch.replace(id, quoted(known));
    }
    if state.asks {
        if let Some(reason) = choice.get("finish_reason") {
            patch.replace(reason, "null".to_owned());
        }
        if let Some(usage) = data.get("usage") {
            patch.replace(usage, "null".to_owned());
        }
    } else {
        body::count_chat(data, &mut patch, state);
    }
    String::from_utf8(patch.apply().ok()?).ok()
}
