//! Texts with `{{ values }}`, as they stand in a cascade.

use plimsoll_core::nearest;
use serde_json::{Value, json};

use crate::decode::{Decode, Decoder, Definitions, is_near};
use crate::node::{Node, NodeKind};
use crate::problem::{Kind, Place, Severity};
use crate::template::{FILTERS, Template, Use, uses};

impl Decode for Template {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let source = String::decode(node, decoder)?;
        if source.contains('{') {
            check(&source, node, decoder)?;
        }
        Some(Self::new(&source, node.place))
    }

    fn schema(definitions: &mut Definitions) -> Value {
        String::schema(definitions)
    }
}

/// Reports the problems of a template, and notes the inputs that it asks for.
fn check(source: &str, node: &Node, decoder: &mut Decoder) -> Option<()> {
    let block = match &node.kind {
        NodeKind::Text(text) => text.block,
        _ => None,
    };
    // Only the lines of a block stand in the file as they stand in the text.
    let place = |line: usize, column: usize| match block {
        Some(start) => Place {
            line: start.line + (line.max(1) - 1) as u32,
            column: start.column + (column.max(1) - 1) as u32,
        },
        None => node.place,
    };
    match uses(source) {
        Ok(uses) => {
            for used in uses {
                match used {
                    Use::Input { name, line, column } => {
                        decoder.uses_input(name, place(line, column));
                    }
                    Use::Filter { name, line, column } => {
                        let hint = nearest(&name, FILTERS)
                            .filter(|near| is_near(&name, near))
                            .map(|near| format!("did you mean `{near}`?"));
                        let said = format!("there is no filter `{name}`");
                        let at = place(line, column);
                        decoder.tell(Severity::Warning, at, Kind::Template, said, hint);
                    }
                }
            }
            Some(())
        }
        Err(error) => {
            let at = place(error.line.unwrap_or(1), error.column.unwrap_or(1));
            let said = if block.is_some() { error.message.clone() } else { error.to_string() };
            decoder.error_at(at, Kind::Template, format!("invalid template: {said}"));
            None
        }
    }
}

/// A value whose texts are templates: an input of a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum Templated {
    Text(Template),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
    /// A number, a switch or nothing; or a text that is no template.
    Plain(Value),
}

impl Decode for Templated {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        match &node.kind {
            NodeKind::Text(text) => {
                // An input may be a program, whose braces are its own.
                if text.text.contains('{')
                    && let Err(error) = uses(&text.text)
                {
                    let said =
                        format!("this is not a template, so it is passed on as it is: {error}");
                    decoder.warn(node, Kind::Template, said);
                    return Some(Self::Plain(node.json()));
                }
                Template::decode(node, decoder).map(Self::Text)
            }
            NodeKind::List(_) => Vec::decode(node, decoder).map(Self::List),
            NodeKind::Map(_) => Vec::<(String, Self)>::decode(node, decoder).map(Self::Map),
            _ => Some(Self::Plain(node.json())),
        }
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({})
    }
}
