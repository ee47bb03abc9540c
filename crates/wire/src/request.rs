//! A request: the bytes as they came, and core's messages with the place of each in them.

mod chat;
mod gemini;
mod kind;
mod marks;
mod messages;
mod observation;
mod question;
mod responses;
mod session;
mod surroundings;
mod tools;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use plimsoll_core::{Block, Message, Role};

pub(crate) use self::gemini::{Names, part as answered_part, spoken};
pub use self::kind::RequestKind;
pub use self::marks::Marks;
pub(crate) use self::messages::block as answered_block;
pub use self::question::CacheQuestion;
pub(crate) use self::responses::said as answered_item;
pub(crate) use self::tools::SCHEMAS;

use super::Wire;
use super::content::{self, LocatedBlock};
use super::document::{Document, NodeId, ScanError, Value, scanned};
use super::route::model_and_method;

/// Reads elements of the wire's list of messages as an answer of the model, whatever their role is.
pub(crate) fn answered_blocks(wire: Wire, items: &[Arc<str>]) -> Vec<Block> {
    let mut names = Names::default();
    let documents = items.iter().filter_map(|item| scanned(item));
    let found = documents.flat_map(|document| {
        let item = document.root();
        match wire {
            Wire::AnthropicMessages => content::parts(item.get("content"), answered_block),
            Wire::ChatCompletions => chat::assistant(item),
            Wire::Responses => answered_item(item),
            Wire::Gemini => gemini::parts(item, &mut names),
        }
    });
    found.map(|(_, block)| block).collect()
}

/// Why a body is not a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The body is no JSON in UTF-8.
    #[error("the body is not JSON, from byte {at} on")]
    NotJson { at: usize },
    /// Lists and objects stand deeper inside of each other than allowed.
    #[error("the body nests deeper than {depth} lists and objects")]
    TooDeep { depth: usize },
    /// The body has 4 GiB or more.
    #[error("the body is longer than 4 GiB")]
    TooLong,
    /// Readers disagree which of two equal keys counts.
    #[error("the body has the key `{key}` twice")]
    RepeatedKey { key: String },
    /// The body is JSON, but no request of its wire.
    #[error("the body is no request: {what}")]
    Shape { what: &'static str },
    /// Thinking cannot be redacted, since its signature holds for its words only, and the provider takes the message with it only.
    #[error("thinking that the provider asks for holds personal data or a secret")]
    Thinking,
}

impl RequestError {
    pub(crate) fn of_scan(error: ScanError, depth: usize) -> Self {
        match error {
            ScanError::Syntax { at } => Self::NotJson { at },
            ScanError::TooDeep => Self::TooDeep { depth },
            ScanError::TooLong => Self::TooLong,
        }
    }
}

/// A request to a provider.
///
/// Shape: [`ProviderRequest::messages`] is the conversation as core knows it, the system prompt first. It is canonical: a string is a
/// list with one text, marks of the cache and empty texts are left out, a result of a tool is a message of its own, and what
/// a model said in several items of one answer is one message. So the messages of a session's request begin with those of the
/// one before.
#[derive(Debug, Clone)]
pub struct ProviderRequest {
    wire: Wire,
    document: Document,
    model: Option<String>,
    streams: bool,
    /// It wants a stream that is one list and no events.
    streams_a_list: bool,
    messages: Vec<Arc<Message>>,
    sources: Vec<MessageSource>,
}

/// The place of a message in the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageSource {
    pub(crate) place: Place,
    /// The value that each block was read from.
    pub(crate) blocks: Vec<NodeId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a field of its own: a system prompt, or a conversation that is a string.
    Field,
    /// In these elements of the list of messages.
    Items(Range<usize>),
}

/// A tool that the client offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedTool<'a> {
    /// Its name, or its type where it has none.
    pub name: Cow<'a, str>,
    /// Its definition as sent.
    pub raw: &'a str,
}

impl ProviderRequest {
    /// Reads a body that nests at most `depth` lists and objects, fields that are only passed on included.
    ///
    /// `path` is that of the request: Gemini names the model and asks for a stream there.
    ///
    /// Errors: every [`RequestError`]; nothing panics, whatever the bytes are.
    pub fn parse(wire: Wire, body: &[u8], path: &str, depth: usize) -> Result<Self, RequestError> {
        let text = str::from_utf8(body)
            .map_err(|error| RequestError::NotJson { at: error.valid_up_to() })?;
        let document = Document::scan(Arc::from(text), depth)
            .map_err(|error| RequestError::of_scan(error, depth))?;
        let root = document.root();
        refuse_repeated_keys(root)?;
        let mut conversation = MessageList::default();
        match wire {
            Wire::AnthropicMessages => messages::read(root, &mut conversation)?,
            Wire::ChatCompletions => chat::read(root, &mut conversation)?,
            Wire::Responses => responses::read(root, &mut conversation)?,
            Wire::Gemini => gemini::read(root, &mut conversation)?,
        }
        let (model, streams) = match (wire, model_and_method(path)) {
            (Wire::Gemini, Some((model, method))) => {
                (Some(model.to_owned()), method.starts_with("stream"))
            }
            _ => (
                root.get("model").and_then(Value::text).map(Cow::into_owned),
                root.is_true_at("stream"),
            ),
        };
        let MessageList { messages, sources } = conversation;
        let streams_a_list = wire == Wire::Gemini && streams && !path.contains("alt=sse");
        Ok(Self { wire, document, model, streams, streams_a_list, messages, sources })
    }

    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// Returns the bytes as they came.
    pub fn body(&self) -> &[u8] {
        self.document.text().as_bytes()
    }

    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Returns whether the client wants a stream of events.
    pub fn streams(&self) -> bool {
        self.streams
    }

    /// Returns whether the answer reports usage; a stream of Chat Completions does where the client asks for it.
    pub fn is_counted(&self) -> bool {
        let options = || self.root().get("stream_options")?.get("include_usage");
        self.wire != Wire::ChatCompletions || !self.streams || options().is_some_and(Value::is_true)
    }

    /// Returns whether the provider keeps the answer, so that the client may go on by its id and without its history.
    ///
    /// Tools of ours have no place in such a request: calls that the client did not see could not be put back.
    pub fn is_kept_by_the_server(&self) -> bool {
        self.wire == Wire::Responses
            && self.root().get("store").is_none_or(|store| store.is_null() || store.is_true())
    }

    /// Returns the conversation as core knows it, oldest first.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    pub(crate) fn sources(&self) -> &[MessageSource] {
        &self.sources
    }

    /// Returns the elements of the wire's list in which a message stands; none for a message in a field of its own.
    pub fn elements_of(&self, message: usize) -> Range<usize> {
        match self.sources.get(message).map(|source| &source.place) {
            Some(Place::Items(elements)) => elements.clone(),
            Some(Place::Field) | None => 0..0,
        }
    }

    pub(crate) fn document(&self) -> &Document {
        &self.document
    }

    pub(crate) fn root(&self) -> Value<'_> {
        self.document.root()
    }

    /// Returns the list of messages, where the conversation is one.
    pub(crate) fn items(&self) -> Option<Value<'_>> {
        self.root().list_at(self.wire.list_key())
    }

    /// Returns the text of the leading system messages.
    pub fn system_text(&self) -> String {
        let system = self.messages.iter().take_while(|message| message.role == Role::System);
        system.map(|message| message.shown()).collect::<Vec<_>>().join("\n")
    }

    /// Returns the tools that the client offers, in their order; members of groups one by one.
    pub fn tools(&self) -> Vec<OfferedTool<'_>> {
        self.tool_lists().into_iter().flat_map(|list| list.elements().flat_map(tools_in)).collect()
    }

    /// Returns the lists in which tools stand.
    pub(crate) fn tool_lists(&self) -> Vec<Value<'_>> {
        let mut lists: Vec<Value<'_>> = self.root().list_at("tools").into_iter().collect();
        if self.wire == Wire::Responses {
            let items = self.items().into_iter().flat_map(Value::elements);
            let further = items.filter(|item| item.has("type", "additional_tools"));
            lists
                .extend(further.filter_map(|item| item.get("tools")).filter(|list| list.is_list()));
        }
        lists
    }
}

fn tools_in(tool: Value<'_>) -> Vec<OfferedTool<'_>> {
    if let Some(members) = tool.any(&["functionDeclarations", "function_declarations"]) {
        return members.elements().map(one_tool).collect();
    }
    match tool.list_at("tools") {
        Some(members) => members.elements().map(one_tool).collect(),
        None => vec![one_tool(tool)],
    }
}

pub(crate) fn one_tool(tool: Value<'_>) -> OfferedTool<'_> {
    let inner = ["function", "custom"].iter().find_map(|key| tool.get(key));
    let inner = inner.filter(|inner| inner.is_object()).unwrap_or(tool);
    let name = inner.get("name").or_else(|| tool.get("type")).and_then(Value::text);
    let first_key = || tool.fields().next().and_then(|(key, _)| key.text());
    OfferedTool { name: name.or_else(first_key).unwrap_or_default(), raw: tool.raw() }
}

fn refuse_repeated_keys(root: Value<'_>) -> Result<(), RequestError> {
    if !root.is_object() {
        return Err(RequestError::Shape { what: "it is not an object" });
    }
    let mut keys: Vec<Cow<'_, str>> = root.fields().filter_map(|(key, _)| key.text()).collect();
    keys.sort_unstable();
    match keys.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(RequestError::RepeatedKey { key: pair[0].to_string() }),
        None => Ok(()),
    }
}

/// Messages as they are read.
#[derive(Debug, Default)]
pub(super) struct MessageList {
    messages: Vec<Arc<Message>>,
    sources: Vec<MessageSource>,
}

impl MessageList {
    /// Appends the message of a user, with the results of tools in it as messages of their own before it.
    fn push_user(&mut self, place: Place, blocks: Vec<LocatedBlock>) {
        let (results, others): (Vec<LocatedBlock>, Vec<LocatedBlock>) =
            blocks.into_iter().partition(|(_, block)| matches!(block, Block::ToolResult(_)));
        for result in results {
            self.push(Role::Tool, place.clone(), vec![result]);
        }
        self.push(Role::User, place, others);
    }

    /// Appends a message, unless it is empty.
    fn push(&mut self, role: Role, place: Place, found: Vec<LocatedBlock>) {
        if found.is_empty() {
            return;
        }
        let (role, found) = match role {
            Role::User => observation::results(self.messages.last(), self.messages.len(), found),
            _ => (role, found),
        };
        let (nodes, blocks): (Vec<NodeId>, Vec<Block>) = found.into_iter().unzip();
        self.messages.push(Arc::new(Message::new(role, blocks)));
        self.sources.push(MessageSource { place, blocks: nodes });
    }
}

/// Returns the list of messages that a wire insists on.
fn list_at<'a>(root: Value<'a>, key: &str, what: &'static str) -> Result<Value<'a>, RequestError> {
    root.list_at(key).ok_or(RequestError::Shape { what })
}
