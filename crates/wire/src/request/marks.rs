//! Marks of the provider's cache, as the client set them.

use plimsoll_core::cost::Life;

use super::ProviderRequest;
use crate::Wire;
use crate::document::Value;

/// The places of marks in a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// On a tool.
    pub tools: Option<Life>,
    /// In messages, by their index in [`ProviderRequest::messages`], ascending; the longest life of each.
    pub messages: Vec<(usize, Life)>,
    /// All of them; providers take four.
    pub count: usize,
}

impl ProviderRequest {
    /// Returns the marks of the request; none where its wire has none.
    pub fn marks(&self) -> Marks {
        let mut marks = Marks::default();
        if self.wire() != Wire::AnthropicMessages {
            return marks;
        }
        for tool in self.tool_lists().into_iter().flat_map(Value::elements) {
            if let Some(life) = life(tool) {
                marks.tools = marks.tools.max(Some(life));
                marks.count += 1;
            }
        }
        for (index, source) in self.sources().iter().enumerate() {
            let values = source.blocks.iter().map(|block| self.document().value(*block));
            let lives: Vec<Life> = values.filter_map(life).collect();
            marks.count += lives.len();
            if let Some(longest) = lives.into_iter().max() {
                marks.messages.push((index, longest));
            }
        }
        // A mark beside the messages stands for one at the end of the last.
        if let (Some(life), Some(last)) = (life(self.root()), self.messages().len().checked_sub(1))
        {
            marks.count += 1;
            match marks.messages.last_mut().filter(|(index, _)| *index == last) {
                Some((_, known)) => *known = life.max(*known),
                None => marks.messages.push((last, life)),
            }
        }
        marks
    }
}

fn life(bearer: Value<'_>) -> Option<Life> {
    let mark = bearer.object_at("cache_control")?;
    Some(if mark.has("ttl", "1h") { Life::Long } else { Life::Short })
}
