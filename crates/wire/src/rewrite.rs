//! Rewriting: edits are spliced into a request, so that unchanged values keep their bytes.

mod continuation;
mod earlier_rounds;
mod forms;
mod marks;
mod omit;
mod options;
mod restore;
mod tools;
mod user_text;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use plimsoll_core::cost::Life;
use plimsoll_core::lazy_tools::ToolDefinition;
use plimsoll_core::{Message, ToolResult};

pub use self::options::{BETA_EDITING, BETA_THINKING};

use super::document::{NodeId, Value, quoted};
use super::patch::{Misfit, Patch};
use super::request::ProviderRequest;

/// Changes to a request. Without any, the bytes stay as they are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Edits {
    /// Messages in another form, by their index in [`ProviderRequest::messages`], ascending; without a form it is left out.
    ///
    /// A form has the blocks of the original: texts, arguments and results may differ, and images of a result may be gone.
    pub messages: Vec<(usize, Option<Arc<Message>>)>,
    /// Tools behind the client's.
    pub add_tools: Vec<ToolDefinition>,
    /// Tools of the client with another description and schema, by name; all else of them stays.
    pub outline_tools: Vec<ToolDefinition>,
    /// Texts behind messages of the user, by their index, ascending.
    pub append: Vec<(usize, Arc<str>)>,
    /// Calls of ours that the client did not see are put back into the history.
    pub restore: Vec<WithheldCalls>,
    /// Answers of the model to this very request, whose calls were ours, with the results.
    pub continuations: Vec<Continuation>,
    /// Marks of the provider's cache at the ends of these messages, by their index; where the wire has marks.
    pub marks: Vec<(usize, Life)>,
    /// Thinking that is bound to something else is dropped by the provider; needs [`BETA_THINKING`].
    pub drop_thinking: bool,
    /// The provider's own context editing; needs [`BETA_EDITING`].
    pub context_editing: Option<ContextEditing>,
}

/// The conditions under which a provider clears old results by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextEditing {
    /// Tokens of input above which results are cleared.
    pub trigger: u64,
    /// The newest results that stay.
    pub keep: u32,
    /// Tokens that are cleared at least, so that the broken prefix is worth it.
    pub at_least: u64,
}

/// A call of one of our tools, with what we answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCall {
    /// The call as the provider wrote it.
    pub raw: Arc<str>,
    pub name: Arc<str>,
    pub result: ToolResult,
}

/// An answer that called our tools only, to be sent back with the results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation {
    /// The answer as elements of the wire's list of messages, as [`super::ProviderAnswer`] has them.
    pub items: Vec<Arc<str>>,
    pub calls: Vec<OwnCall>,
}

/// Calls of our tools that the client did not see in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithheldCalls {
    /// The answer as the client was shown it, by which it is found in later requests.
    pub shown: Arc<Message>,
    pub calls: Vec<WithheldCall>,
    /// The answers before the last, which we answered ourselves, each as it was sent back to the provider.
    pub earlier: Vec<Vec<Arc<str>>>,
    /// The number of messages of the request that it answered, so that it is not mistaken for one that says the same.
    pub at: usize,
}

/// A call that was withheld, and where it stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithheldCall {
    /// The number of shown blocks before it.
    pub before: usize,
    /// In which of the provider's answers, counted from 0; the last one's calls are answered beside the client's.
    pub round: usize,
    pub call: OwnCall,
}

/// A request with its edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    pub body: Vec<u8>,
    /// Which of [`Edits::restore`] have no place in what the client sends, by their index, ascending.
    pub unplaced: Vec<usize>,
}

/// Why a request was not rewritten. The original is still valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// An index is outside of the conversation, or not behind the one before it.
    #[error("message {index} is not in the request, or not behind the one before it")]
    Position { index: usize },
    /// A message cannot have this form.
    #[error("message {index} cannot be written: {what}")]
    Form { index: usize, what: &'static str },
    /// A call would stand without its result, or a result without its call.
    #[error("the call {call_id} would be parted from its result")]
    SplitExchange { call_id: String },
    /// The client has a tool of this name.
    #[error("the client offers a tool `{name}` itself")]
    ToolExists { name: String },
    /// There is nowhere to put something.
    #[error("there is no place for {what}")]
    NoPlace { what: &'static str },
    /// Two edits want the same bytes, or one a list or object where something else is.
    #[error("an edit does not fit the request")]
    Misfit,
}

impl From<Misfit> for RewriteError {
    fn from(_: Misfit) -> Self {
        Self::Misfit
    }
}

impl Edits {
    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl ProviderRequest {
    /// Returns the body with `edits`.
    ///
    /// Shape: values that are not edited keep their bytes, in their order; no edits give the same bytes. Marks of the
    /// cache stay on their blocks, and go to the block before where theirs is left out.
    /// Errors: [`RewriteError`] where the edits would make a request that the provider refuses.
    pub fn rewrite(&self, edits: &Edits) -> Result<Vec<u8>, RewriteError> {
        Ok(self.rewritten(edits)?.body)
    }

    /// Returns the body with `edits`, and those edits that have no place in it.
    ///
    /// Errors: as [`ProviderRequest::rewrite`].
    pub fn rewritten(&self, edits: &Edits) -> Result<Rewritten, RewriteError> {
        if edits.is_empty() {
            return Ok(Rewritten { body: self.body().to_vec(), unplaced: Vec::new() });
        }
        let mut rewrite = Rewrite {
            request: self,
            patch: Patch::new(self.document()),
            texts: BTreeMap::new(),
            marked: BTreeMap::new(),
            omitted: self.check(&edits.messages)?,
        };
        for (index, form) in &edits.messages {
            if let Some(form) = form {
                rewrite.put_form(*index, form)?;
            }
        }
        let unplaced = rewrite.restore_all(&edits.restore);
        rewrite.omit()?;
        rewrite.offer_tools(edits)?;
        rewrite.mark(&edits.marks)?;
        for (index, text) in &edits.append {
            rewrite.append(*index, text)?;
        }
        if edits.drop_thinking {
            rewrite.drop_thinking();
        }
        if let Some(editing) = edits.context_editing {
            rewrite.edit_context(editing);
        }
        rewrite.continue_with(&edits.continuations)?;
        Ok(Rewritten { body: rewrite.finish()?, unplaced })
    }

    /// Returns which messages are left out. Errors: wrong indexes, and exchanges of which only a part would go.
    fn check(&self, edits: &[(usize, Option<Arc<Message>>)]) -> Result<Vec<bool>, RewriteError> {
        let mut omitted = vec![false; self.messages().len()];
        let mut next = 0;
        for (index, form) in edits {
            if *index < next || *index >= omitted.len() {
                return Err(RewriteError::Position { index: *index });
            }
            next = index + 1;
            omitted[*index] = form.is_none();
        }
        let ids = |gone: bool| {
            let messages = self.messages().iter().zip(&omitted);
            let some = messages.filter(move |(_, omitted)| **omitted == gone);
            some.flat_map(|(message, _)| {
                let calls = message.calls().map(|call| &*call.id);
                calls.chain(message.results().map(|result| &*result.call_id))
            })
        };
        let gone: HashSet<&str> = ids(true).collect();
        match ids(false).find(|id| gone.contains(id)) {
            Some(call_id) => Err(RewriteError::SplitExchange { call_id: call_id.to_owned() }),
            None => Ok(omitted),
        }
    }
}

/// A rewriting under way.
struct Rewrite<'a> {
    request: &'a ProviderRequest,
    patch: Patch<'a>,
    /// Strings that change, in what they will say; more may be appended to them.
    texts: BTreeMap<NodeId, String>,
    /// Strings that get a mark, for which they have to become a list.
    marked: BTreeMap<NodeId, &'static str>,
    /// For each message, whether it is left out.
    omitted: Vec<bool>,
}

impl<'a> Rewrite<'a> {
    fn value(&self, id: NodeId) -> Value<'a> {
        self.request.document().value(id)
    }

    /// Returns the elements of the list of messages that stay, with their index.
    fn kept_items(&self) -> Vec<(usize, Value<'a>)> {
        let Some(items) = self.request.items() else { return Vec::new() };
        let all = items.elements().enumerate();
        all.filter(|(index, _)| !self.patch.is_removed(items, *index)).collect()
    }

    fn finish(mut self) -> Result<Vec<u8>, RewriteError> {
        for (id, mark) in std::mem::take(&mut self.marked) {
            let string = self.value(id);
            let said = self.texts.remove(&id);
            let said = said.map_or_else(|| string.raw().to_owned(), |text| quoted(&text));
            self.patch.replace(string, format!("[{}]", marks::text(&said, Some(mark))));
        }
        for (id, text) in std::mem::take(&mut self.texts) {
            self.patch.replace(self.request.document().value(id), quoted(&text));
        }
        Ok(self.patch.apply()?)
    }
}
