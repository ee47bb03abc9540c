//! The same message in another form: what clients do to an answer before they send it back.

use std::collections::HashMap;

use plimsoll_core::{Block, Message, Role, ToolCall};

/// Returns whether two messages say the same.
///
/// Clients drop reasoning and blocks that they do not know, join or trim texts, and write arguments anew; none of that makes it another
/// message. Calls and results must be the same, in their order.
pub fn alike(a: &Message, b: &Message) -> bool {
    if a.role != b.role {
        return false;
    }
    let acts = |message: &Message| -> Vec<Block> {
        let counts = |block: &&Block| {
            matches!(block, Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_))
        };
        message.blocks.iter().filter(counts).cloned().collect()
    };
    let (acts_a, acts_b) = (acts(a), acts(b));
    if let Some(told) = told_calls(b) {
        return calls_as_text(a, &told) && acts_b.is_empty();
    }
    acts_a.len() == acts_b.len()
        && acts_a.iter().zip(&acts_b).all(|(a, b)| same_act(a, b))
        && said(a) == said(b)
}

/// The words with which smolagents begins the calls that it writes as text behind the model's answer.
const CALLS: &str = "Callingtools:[";

/// The longest end of a code block that an agent puts back where the provider stopped before it: smolagents' `</code>` and
/// the three ticks with `<end_code>`.
const CLOSING: usize = 13;

/// Returns what an agent's message says before its calls, and the calls, where it writes them as text.
fn told_calls(message: &Message) -> Option<(String, String)> {
    if message.role != Role::Assistant {
        return None;
    }
    let all = said(message);
    let at = all.rfind(CALLS)?;
    Some((all.get(..at)?.to_owned(), all.get(at..)?.to_owned()))
}

/// Returns whether `told` is the model's `answer` with its calls as text.
fn calls_as_text(answer: &Message, told: &(String, String)) -> bool {
    let (before, calls) = told;
    let own = said(answer);
    if own.contains(CALLS) && own == format!("{before}{calls}") {
        return true;
    }
    let closing = before.strip_prefix(&own);
    let named = |call: &ToolCall| {
        calls.contains(&format!("'id':'{}'", call.id))
            && calls.contains(&format!("'name':'{}'", call.name))
    };
    closing.is_some_and(|closing| closing.len() <= CLOSING) && answer.calls().all(named)
}

fn same_act(a: &Block, b: &Block) -> bool {
    match (a, b) {
        (Block::ToolCall(a), Block::ToolCall(b)) => {
            a.id == b.id && a.name == b.name && same_arguments(a, b)
        }
        _ => a == b,
    }
}

fn same_arguments(a: &ToolCall, b: &ToolCall) -> bool {
    if a.arguments == b.arguments {
        return true;
    }
    let read = |call: &ToolCall| match &*call.arguments {
        "" => Some(serde_json::Value::Object(serde_json::Map::new())),
        text => serde_json::from_str(text).ok(),
    };
    read(a).zip(read(b)).is_some_and(|(a, b)| a == b)
}

/// Returns the words of all texts, without the white space around and between them.
fn said(message: &Message) -> String {
    let mut all = String::new();
    for block in &message.blocks {
        if let Block::Text(text) = block {
            all.extend(text.chars().filter(|character| !character.is_whitespace()));
        }
    }
    all
}

/// Returns `client`'s message in the form that `kept` has in `form`; `None` where the change has no place in it.
pub fn carried(client: &Message, kept: &Message, form: &Message) -> Option<Message> {
    if kept.blocks.len() != form.blocks.len() {
        return None;
    }
    let mut texts: HashMap<usize, &Block> = HashMap::new();
    let mut acts: HashMap<&str, &Block> = HashMap::new();
    let mut place = 0;
    for (was, now) in kept.blocks.iter().zip(&form.blocks) {
        match now {
            Block::Text(_) => {
                if was != now {
                    texts.insert(place, now);
                }
                place += 1;
            }
            Block::ToolCall(call) if was != now => drop(acts.insert(&call.id, now)),
            Block::ToolResult(result) if was != now => drop(acts.insert(&result.call_id, now)),
            _ if was != now => return None,
            _ => {}
        }
    }
    let own = client.blocks.iter().filter(|block| matches!(block, Block::Text(_))).count();
    if !texts.is_empty() && own != place {
        return None;
    }
    let mut next = 0;
    let blocks = client.blocks.iter().map(|block| match block {
        Block::Text(_) => {
            next += 1;
            texts.get(&(next - 1)).map_or_else(|| block.clone(), |now| (*now).clone())
        }
        Block::ToolCall(call) => {
            acts.get(&*call.id).map_or_else(|| block.clone(), |now| (*now).clone())
        }
        Block::ToolResult(result) => {
            acts.get(&*result.call_id).map_or_else(|| block.clone(), |now| (*now).clone())
        }
        _ => block.clone(),
    });
    Some(Message { blocks: blocks.collect(), ..client.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::Thinking;

    fn call(arguments: &str) -> Block {
        Block::ToolCall(ToolCall {
            id: "1".into(),
            name: "read".into(),
            arguments: arguments.into(),
        })
    }

    fn said_by_model(blocks: Vec<Block>) -> Message {
        Message::new(Role::Assistant, blocks)
    }

    #[test]
    fn what_clients_do_to_an_answer_does_not_make_it_another() {
        let thinking = Block::Thinking(Thinking { text: "hm".into(), signature: "s".into() });
        let answer = said_by_model(vec![
            thinking,
            Block::Text("a ".into()),
            Block::Text("b\n".into()),
            call(r#"{"path": "x","n":1}"#),
        ]);
        let repeated = said_by_model(vec![Block::Text("ab".into()), call(r#"{"n":1,"path":"x"}"#)]);
        assert!(alike(&answer, &repeated));
        for other in [
            said_by_model(vec![Block::Text("ac".into()), call(r#"{"n":1,"path":"x"}"#)]),
            said_by_model(vec![Block::Text("ab".into()), call(r#"{"n":2,"path":"x"}"#)]),
            said_by_model(vec![Block::Text("ab".into())]),
        ] {
            assert!(!alike(&answer, &other));
        }
    }

    #[test]
    fn an_agent_may_write_the_calls_of_an_answer_as_text() {
        let text = |text: &str| said_by_model(vec![Block::Text(text.into())]);
        let tail = "\nCalling tools:\n[{'id': '1', 'type': 'function', 'function': {'name': 'read', 'arguments': {}}}]";
        let called = said_by_model(vec![Block::Text("Look.".into()), call("{}")]);
        assert!(alike(&called, &text(&format!("Look.{tail}"))));
        assert!(alike(&text("<code>\nx()\n"), &text(&format!("<code>\nx()\n</code>{tail}"))));
        let repeated = text(&format!("Look.{tail}"));
        assert!(alike(&repeated, &repeated.clone()));
        for other in
            [format!("Listen.{tail}"), "Look.".into(), format!("Look.{tail}").replace("'1'", "'2'")]
        {
            assert!(!alike(&called, &text(&other)), "{other}");
        }
    }

    #[test]
    fn a_form_is_carried_over_to_what_the_client_says() {
        let kept = said_by_model(vec![Block::Text("a".into()), call(r#"{"text": "long"}"#)]);
        let form = said_by_model(vec![Block::Text("a".into()), call(r#"{"text":"l"}"#)]);
        let client = said_by_model(vec![call(r#"{"text":"long"}"#)]);
        let fitting = carried(&client, &kept, &form).expect("the call is there");
        assert_eq!(fitting.blocks, [call(r#"{"text":"l"}"#)]);
        let shorter = said_by_model(vec![Block::Text("-".into()), call(r#"{"text": "long"}"#)]);
        assert_eq!(carried(&client, &kept, &shorter), None, "there is no text to shorten");
    }
}
