//! The forms of a conversation on each wire: the path, the beginning of a body, a turn, and the last event of a stream.

use std::fmt::Write as _;

use plimsoll_testkit::provider::call_id;
use plimsoll_wire::Wire;
use serde_json::json;

use crate::conversation::AnswerDelivery;

/// All wires.
pub(crate) const WIRES: [Wire; 4] =
    [Wire::AnthropicMessages, Wire::ChatCompletions, Wire::Responses, Wire::Gemini];

pub(crate) fn path(wire: Wire, delivery: AnswerDelivery) -> &'static str {
    match (wire, delivery) {
        (Wire::AnthropicMessages, _) => "/v1/messages",
        (Wire::ChatCompletions, _) => "/v1/chat/completions",
        (Wire::Responses, _) => "/v1/responses",
        (Wire::Gemini, AnswerDelivery::Whole) => "/v1beta/models/gemini-2.5-pro:generateContent",
        (Wire::Gemini, AnswerDelivery::Streamed) => {
            "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
        }
    }
}

/// Returns text that only the last event of a stream has.
pub(crate) fn last_event(wire: Wire) -> &'static [u8] {
    match wire {
        Wire::AnthropicMessages => b"message_stop",
        Wire::ChatCompletions => b"[DONE]",
        Wire::Responses => b"response.completed",
        Wire::Gemini => b"finishReason",
    }
}

/// Writes the fields by which a stream is asked for, and the model.
pub(crate) fn head(wire: Wire, delivery: AnswerDelivery) -> String {
    let streams = delivery == AnswerDelivery::Streamed;
    match wire {
        Wire::AnthropicMessages => {
            format!(r#"{{"stream":{streams},"model":"claude-sonnet-4-5","max_tokens":4096,"#)
        }
        Wire::ChatCompletions | Wire::Responses => {
            format!(r#"{{"stream":{streams},"model":"gpt-5","#)
        }
        Wire::Gemini => "{".to_owned(),
    }
}

/// Writes everything from the system prompt to the user's first message; the list of messages stays open.
pub(crate) fn beginning(
    wire: Wire,
    system: &str,
    tools: &[(String, String)],
    asked: &str,
) -> String {
    let schema =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let tools = tools.iter().map(|(name, description)| match wire {
        Wire::AnthropicMessages => {
            json!({"name": name, "description": description, "input_schema": schema})
        }
        Wire::ChatCompletions => {
            let function = json!({"name": name, "description": description, "parameters": schema});
            json!({"type": "function", "function": function})
        }
        Wire::Responses => {
            json!({"type": "function", "name": name, "description": description, "parameters": schema})
        }
        Wire::Gemini => json!({"name": name, "description": description, "parameters": schema}),
    });
    let tools = serde_json::Value::Array(tools.collect());
    let (system, asked) = (json!(system), json!(asked));
    match wire {
        Wire::AnthropicMessages => format!(
            r#""system":[{{"type":"text","text":{system}}}],"tools":{tools},"messages":[{{"role":"user","content":{asked}}}"#
        ),
        Wire::ChatCompletions => format!(
            r#""tools":{tools},"messages":[{{"role":"system","content":{system}}},{{"role":"user","content":{asked}}}"#
        ),
        Wire::Responses => format!(
            r#""instructions":{system},"tools":{tools},"input":[{{"type":"message","role":"user","content":[{{"type":"input_text","text":{asked}}}]}}"#
        ),
        Wire::Gemini => format!(
            r#""systemInstruction":{{"parts":[{{"text":{system}}}]}},"tools":[{{"functionDeclarations":{tools}}}],"contents":[{{"role":"user","parts":[{{"text":{asked}}}]}}"#
        ),
    }
}

/// Writes an answer with its call, and the result; `result` is escaped for JSON already.
pub(crate) fn turn(wire: Wire, into: &mut String, request: u64, text: &str, result: &str) {
    let prefix = if wire == Wire::AnthropicMessages { "toolu" } else { "call" };
    let id = call_id(prefix, 0, 0, request);
    let arguments = json!({"path": format!("parts/{request}.py")});
    let quoted = json!(arguments.to_string());
    let _ = match wire {
        Wire::AnthropicMessages => write!(
            into,
            r#",{{"role":"assistant","content":[{{"type":"text","text":"{text}"}},{{"type":"tool_use","id":"{id}","name":"read","input":{arguments}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"{result}"}}]}}"#
        ),
        Wire::ChatCompletions => write!(
            into,
            r#",{{"role":"assistant","content":"{text}","tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"read","arguments":{quoted}}}}}]}},{{"role":"tool","tool_call_id":"{id}","content":"{result}"}}"#
        ),
        Wire::Responses => write!(
            into,
            r#",{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{text}"}}]}},{{"type":"function_call","call_id":"{id}","name":"read","arguments":{quoted}}},{{"type":"function_call_output","call_id":"{id}","output":"{result}"}}"#
        ),
        Wire::Gemini => write!(
            into,
            r#",{{"role":"model","parts":[{{"text":"{text}"}},{{"functionCall":{{"id":"{id}","name":"read","args":{arguments}}}}}]}},{{"role":"user","parts":[{{"functionResponse":{{"id":"{id}","name":"read","response":{{"output":"{result}"}}}}}}]}}"#
        ),
    };
}
