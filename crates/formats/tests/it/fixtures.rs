//! Small sessions, written by hand in the shape of recorded ones.

pub(crate) const PI: &str = r#"{"type":"session","version":3,"id":"s1","timestamp":"2026-02-20T12:00:00.000Z","cwd":"/work"}
{"type":"model_change","id":"m0","parentId":null,"timestamp":"2026-02-20T12:00:00.500Z","provider":"p","modelId":"large"}
{"type":"message","id":"a1","parentId":"m0","timestamp":"2026-02-20T12:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"Fix it\u2019s bug"}],"timestamp":1771588801000}}
{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-02-20T12:00:02.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"sig"},{"type":"text","text":"Looking."},{"type":"toolCall","id":"c1","name":"read","arguments":{"path": "a.rs","n":1.0}},{"type":"toolCall","id":"c2","name":"bash","arguments":{"command":"ls"}}],"api":"x","provider":"p","model":"large","usage":{"input":10,"output":5,"cacheRead":90,"cacheWrite":3},"stopReason":"toolUse","timestamp":1771588802000}}
{"type":"message","id":"a3","parentId":"a2","timestamp":"2026-02-20T12:00:03.000Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"fn main() {}"}],"details":{"keep": [1]},"isError":false,"timestamp":1771588803000}}
{"type":"message","id":"a4","parentId":"a3","timestamp":"2026-02-20T12:00:04.000Z","message":{"role":"toolResult","toolCallId":"c2","toolName":"bash","content":[{"type":"text","text":"a.rs"},{"type":"image","data":"AA==","mimeType":"image/png"}],"isError":true,"timestamp":1771588804000}}
{"type":"message","id":"b1","parentId":"a1","timestamp":"2026-02-20T12:00:04.500Z","message":{"role":"user","content":"another branch","timestamp":1}}
{"type":"message","id":"a5","parentId":"a4","timestamp":"2026-02-20T12:00:05.000Z","message":{"role":"bashExecution","command":"make","output":"","exitCode":2,"cancelled":false,"truncated":false,"timestamp":5}}
{"type":"message","id":"a6","parentId":"a5","timestamp":"2026-02-20T12:00:06.000Z","message":{"role":"assistant","content":[],"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0},"stopReason":"aborted","timestamp":6}}
{"type":"compaction","id":"a7","parentId":"a6","timestamp":"2026-02-20T12:00:07.000Z","summary":"what was","firstKeptEntryId":"a5","tokensBefore":5000}
{"type":"message","id":"a8","parentId":"a7","timestamp":"2026-02-20T12:00:08.000Z","message":{"role":"user","content":"go on","timestamp":8}}
{"type":"message","id":"a9","parentId":"a8","timestamp":"2026-02-20T12:00:09.000Z","message":{"role":"assistant","content":[{"type":"text","text":"Done."}],"model":"small","usage":{"input":7,"output":1,"cacheRead":0,"cacheWrite":0},"stopReason":"stop","timestamp":9}}
"#;

pub(crate) const PI_FIRST_VERSION: &str = r#"{"type":"session","id":"s0","timestamp":"2025-11-20T23:33:50.805Z","cwd":"/w","provider":"p","modelId":"m"}
{"type":"message","timestamp":"2025-11-20T23:33:51.000Z","message":{"role":"user","content":[{"type":"text","text":"one"}]}}
{"type":"message","timestamp":"2025-11-20T23:33:52.000Z","message":{"role":"assistant","content":[{"type":"text","text":"two"}],"stopReason":"stop"}}
{"type":"message","timestamp":"2025-11-20T23:33:53.000Z","message":{"role":"user","content":[{"type":"text","text":"three"}]}}
{"type":"compaction","timestamp":"2025-11-20T23:33:54.000Z","summary":"one and two","firstKeptEntryIndex":3,"tokensBefore":9}
{"type":"message","timestamp":"2025-11-20T23:33:55.000Z","message":{"role":"assistant","content":[{"type":"text","text":"four"}],"stopReason":"stop"}}
"#;

pub(crate) const CLAUDE_CODE: &str = r#"{"type":"summary","summary":"old","leafUuid":"zz"}
{"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"/w","sessionId":"s","version":"2.1","gitBranch":"main","type":"user","message":{"role":"user","content":"Caveat"},"isMeta":true,"uuid":"u0","timestamp":"2026-01-21T06:24:39.000Z"}
{"parentUuid":"u0","isSidechain":false,"userType":"external","cwd":"/w","sessionId":"s","version":"2.1","gitBranch":"main","type":"user","message":{"role":"user","content":"Change it"},"uuid":"u1","timestamp":"2026-01-21T06:24:40.000Z"}
{"parentUuid":"u1","isSidechain":false,"cwd":"/w","sessionId":"s","version":"2.1","message":{"model":"claude-x","id":"msg_1","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"S"}],"usage":{"input_tokens":2,"cache_creation_input_tokens":30,"cache_read_input_tokens":100,"output_tokens":1}},"requestId":"r","type":"assistant","uuid":"u2","timestamp":"2026-01-21T06:24:41.000Z"}
{"parentUuid":"u2","isSidechain":false,"cwd":"/w","sessionId":"s","version":"2.1","message":{"model":"claude-x","id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"Reading."}],"usage":{"input_tokens":2,"cache_creation_input_tokens":30,"cache_read_input_tokens":100,"output_tokens":1}},"type":"assistant","uuid":"u3","timestamp":"2026-01-21T06:24:42.000Z"}
{"parentUuid":"u3","isSidechain":false,"cwd":"/w","sessionId":"s","version":"2.1","message":{"model":"claude-x","id":"msg_1","type":"message","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"a"}}],"usage":{"input_tokens":2,"cache_creation_input_tokens":30,"cache_read_input_tokens":100,"output_tokens":1}},"type":"assistant","uuid":"u4","timestamp":"2026-01-21T06:24:43.000Z"}
{"parentUuid":"u4","isSidechain":false,"type":"progress","data":{"type":"hook_progress"},"uuid":"p1","timestamp":"2026-01-21T06:24:43.500Z"}
{"parentUuid":"u4","isSidechain":false,"cwd":"/w","sessionId":"s","version":"2.1","message":{"model":"claude-x","id":"msg_1","type":"message","role":"assistant","content":[{"type":"tool_use","id":"t2","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":2,"cache_creation_input_tokens":30,"cache_read_input_tokens":100,"output_tokens":77}},"type":"assistant","uuid":"u5","timestamp":"2026-01-21T06:24:44.000Z"}
{"parentUuid":"u5","isSidechain":false,"cwd":"/w","sessionId":"s","version":"2.1","type":"user","message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":"secret original"},{"tool_use_id":"t2","type":"tool_result","content":[{"type":"text","text":"listing"}],"is_error":true},{"type":"text","text":"and now?"}]},"uuid":"u6","timestamp":"2026-01-21T06:24:45.000Z","toolUseResult":{"stdout":"secret original"}}
{"parentUuid":"u6","isSidechain":true,"type":"user","message":{"role":"user","content":"sub-agent"},"uuid":"x1","timestamp":"2026-01-21T06:24:45.500Z"}
{"parentUuid":"u6","isSidechain":false,"type":"user","message":{"role":"user","content":"again"},"uuid":"u6","timestamp":"2026-01-21T06:24:45.700Z"}
{"parentUuid":null,"logicalParentUuid":"u6","isSidechain":false,"type":"system","subtype":"compact_boundary","content":"Conversation compacted","compactMetadata":{"trigger":"auto","preTokens":155979},"uuid":"b1","timestamp":"2026-01-21T06:24:46.000Z"}
{"parentUuid":"b1","isSidechain":false,"cwd":"/w","sessionId":"s","version":"2.1","type":"user","message":{"role":"user","content":"This session is being continued"},"isCompactSummary":true,"uuid":"u7","timestamp":"2026-01-21T06:24:47.000Z"}
{"parentUuid":"u7","isSidechain":false,"cwd":"/w","sessionId":"s","version":"2.1","message":{"model":"claude-x","id":"msg_2","type":"message","role":"assistant","content":[{"type":"text","text":"Done."}],"usage":{"input_tokens":9,"output_tokens":3}},"type":"assistant","uuid":"u8","timestamp":"2026-01-21T06:24:48.000Z"}
"#;

pub(crate) const CODEX: &str = r#"{"timestamp":"2026-05-12T10:00:00.000Z","type":"session_meta","payload":{"id":"cx","timestamp":"2026-05-12T09:59:55.000Z","cwd":"/home","base_instructions":{"text":"You are an agent."}}}
{"timestamp":"2026-05-12T10:00:00.001Z","type":"turn_context","payload":{"cwd":"/home","model":"o9"}}
{"timestamp":"2026-05-12T10:00:00.002Z","type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"rules"}]}}
{"timestamp":"2026-05-12T10:00:00.003Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_text","text":"there"}]}}
{"timestamp":"2026-05-12T10:00:00.004Z","type":"event_msg","payload":{"type":"user_message","message":"hi"}}
{"timestamp":"2026-05-12T10:00:01.000Z","type":"response_item","payload":{"type":"reasoning","summary":[],"content":null,"encrypted_content":"gAAA"}}
{"timestamp":"2026-05-12T10:00:02.000Z","type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\": \"ls\"}","call_id":"k1"}}
{"timestamp":"2026-05-12T10:00:02.100Z","type":"response_item","payload":{"type":"custom_tool_call","status":"completed","call_id":"k2","name":"apply_patch","input":"*** Begin Patch"}}
{"timestamp":"2026-05-12T10:00:02.500Z","type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":1000,"cached_input_tokens":400,"output_tokens":20},"model_context_window":258400}}}
{"timestamp":"2026-05-12T10:00:03.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"k1","output":"a.rs"}}
{"timestamp":"2026-05-12T10:00:03.100Z","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"k2","output":[{"type":"input_text","text":"ok"}]}}
{"timestamp":"2026-05-12T10:00:04.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}}
{"timestamp":"2026-05-12T10:00:05.000Z","type":"compacted","payload":{"message":"","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"in short"}]}]}}
{"timestamp":"2026-05-12T10:00:06.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"more"}]}}
"#;

pub(crate) const CODEX_OLD: &str = r#"{"id":"old","timestamp":"2025-09-10T18:58:38.331Z","instructions":"AGENTS.md","git":{}}
{"record_type":"state"}
{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}
{"type":"reasoning","id":"rs","summary":[],"content":null,"encrypted_content":"g"}
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"scan"}]}
{"type":"function_call","name":"next","arguments":"{}","call_id":"k"}
{"type":"function_call_output","call_id":"k","output":"[]"}
"#;

pub(crate) const OPENAI: &str = r#"{
  "messages": [
    {"role": "system", "content": [{"type": "text", "text": "Be good."}]},
    {"role": "user", "content": "do"},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "o1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}, {"id": "o2", "type": "function", "function": {"name": "g", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "o1", "name": "f", "content": "one"},
    {"role": "tool", "tool_call_id": "o2", "name": "g", "content": [{"type": "text", "text": "two"}]},
    {"role": "assistant", "content": "ready"}
  ],
  "context_window": 200000, "response": {"model": "gpt-x"}, "tools": [{"n": 1.50}]
}
"#;

pub(crate) const ANTHROPIC: &str = r#"{"model":"claude-y","system":[{"type":"text","text":"Be kind."}],"max_tokens":9,"messages":[{"role":"user","content":"do"},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"},{"type":"text","text":"on it"},{"type":"tool_use","id":"n1","name":"f","input":{"a":1}},{"type":"tool_use","id":"n2","name":"g","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"n1","content":"one"},{"type":"tool_result","tool_use_id":"n2","content":[{"type":"text","text":"two"}]},{"type":"text","text":"next"}]},{"role":"assistant","content":"ready"}]}"#;

pub(crate) const SWE_AGENT: &str = r#"{"environment":"swe","trajectory":[{"action":"ls"}],"history":[{"role":"system","content":"s"},{"role":"user","content":"issue"},{"role":"assistant","content":"look","action":"ls","tool_calls":[{"function":{"arguments":"{\"command\":\"ls\"}","name":"bash"},"id":"w1","type":"function"}]},{"role":"tool","content":[{"type":"text","text":"OBSERVATION:\na"}],"tool_call_ids":["w1"]},{"role":"assistant","content":"look\n<command>\nls\n</command>"},{"role":"user","content":"b"}],"info":{}}"#;

pub(crate) const MINI_SWE_AGENT: &str = r#"{"info":{"exit_status":"Submitted"},"messages":[{"role":"system","content":"s"},{"role":"user","content":"task"},{"role":"assistant","content":"THOUGHT: ls","extra":{"response":{"model":"g","usage":{"prompt_tokens":50,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":8}}}}},{"role":"user","content":"<returncode>0</returncode>"},{"role":"assistant","content":"end"}],"trajectory_format":"mini-swe-agent-1","instance_id":"i"}"#;

pub(crate) const OPENHANDS: &str = r#"[{"id":0,"source":"agent","action":"system","args":{"content":"You are."}},
{"id":1,"timestamp":"2025-04-30T16:32:57.82","source":"user","action":"message","args":{"content":"go"}},
{"id":2,"source":"environment","action":"change_agent_state","args":{}},
{"id":3,"source":"agent","observation":"agent_state_changed","content":""},
{"id":5,"source":"agent","message":"Running","action":"run","args":{"command":"ls","thought":"look"},"tool_call_metadata":{"function_name":"execute_bash","tool_call_id":"h1","model_response":{"id":"r1","model":"claude","choices":[{"message":{"content":"I look","tool_calls":[{"id":"h1","function":{"name":"execute_bash","arguments":"{\"command\": \"ls\"}"}}]}}],"usage":{"prompt_tokens":11,"completion_tokens":2}}}},
{"id":6,"source":"agent","cause":5,"observation":"run","content":"total 3"},
{"id":7,"source":"agent","action":"condensation","args":{"forgotten_events_start_id":5,"forgotten_events_end_id":6,"summary":"looked around","summary_offset":2}},
{"id":8,"source":"agent","action":"finish","args":{"final_thought":"done"}}]"#;

pub(crate) const GEMINI_CLI: &str = r#"{
  "sessionId": "g", "projectHash": "h", "startTime": "2025-12-01T21:45:00.000Z",
  "messages": [
    {"id": "1", "timestamp": "2025-12-01T21:45:34.362Z", "type": "user", "content": "hi"},
    {"id": "2", "timestamp": "2025-12-01T21:45:40.110Z", "type": "gemini", "content": "", "thoughts": [{"subject": "S", "description": "d"}],
     "tokens": {"input": 20, "output": 3, "cached": 5, "thoughts": 4}, "model": "gemini-x",
     "toolCalls": [{"id": "q1", "name": "read_file", "args": {"file_path": "a b"}, "result": [{"functionResponse": {"id": "q1", "name": "read_file", "response": {"output": "text"}}}], "status": "success"},
                   {"id": "q2", "name": "shell", "args": {}, "status": "cancelled"}]},
    {"id": "3", "timestamp": "2025-12-01T21:46:00.000Z", "type": "info", "content": "Request cancelled."},
    {"id": "4", "timestamp": "2025-12-01T21:46:01.000Z", "type": "user", "content": [{"text": "go on"}]}
  ]
}"#;

/// Every fixture with the name of its format.
pub(crate) const OPENCODE: &str = r#"{
  "info": {"id": "ses_1", "directory": "/work", "time": {"created": 1772830362586}},
  "messages": [
    {"info": {"role": "user", "id": "msg_1", "time": {"created": 1772830362589}},
     "parts": [{"type": "text", "text": "look"}, {"type": "text", "text": "not sent", "ignored": true}]},
    {"info": {"role": "assistant", "id": "msg_2", "time": {"created": 1772830362593}, "modelID": "gpt-x",
              "tokens": {"total": 47, "input": 20, "output": 7, "reasoning": 4, "cache": {"read": 20, "write": 0}}},
     "parts": [{"type": "step-start"}, {"type": "reasoning", "text": "hm"}, {"type": "text", "text": "Looking."},
               {"type": "tool", "callID": "c1", "tool": "bash", "state": {"status": "completed", "input": {"command": "ls"}, "output": "a.rs"}},
               {"type": "tool", "callID": "c2", "tool": "read", "state": {"status": "error", "input": {}, "error": "no such file"}},
               {"type": "step-finish", "tokens": {"total": 47}}]},
    {"info": {"role": "assistant", "id": "msg_3", "time": {"created": 1772830362600}, "modelID": "gpt-x",
              "tokens": {"input": 5, "output": 2, "reasoning": 0, "cache": {"read": 40, "write": 3}}},
     "parts": [{"type": "text", "text": "Done."}]}
  ]
}"#;

pub(crate) const ALL: [(&str, &str); 20] = [
    ("pi", PI),
    ("pi", PI_FIRST_VERSION),
    ("claude-code", CLAUDE_CODE),
    ("codex", CODEX),
    ("codex", CODEX_OLD),
    ("openai-messages", OPENAI),
    ("anthropic-messages", ANTHROPIC),
    ("swe-agent", SWE_AGENT),
    ("mini-swe-agent", MINI_SWE_AGENT),
    ("openhands", OPENHANDS),
    ("gemini-cli", GEMINI_CLI),
    ("opencode", OPENCODE),
    ("gemini-cli", GEMINI_LOG),
    ("copilot-cli", COPILOT),
    ("copilot-cli", COPILOT_FIRST_VERSION),
    ("cursor", CURSOR),
    ("cursor", CURSOR_EXPORT),
    ("cline", CLINE),
    ("cline", CLINE_EXPORT),
    ("tau-bench", TAU_BENCH),
];

pub(crate) const GEMINI_LOG: &str = r#"{"sessionId":"gl","projectHash":"h","startTime":"2026-05-01T10:00:00.000Z","lastUpdated":"2026-05-01T10:00:00.000Z","messages":[],"kind":"main","directories":["/work"]}
{"id":"1","timestamp":"2026-05-01T10:00:01.000Z","type":"user","content":[{"text":"mend the net"}]}
{"id":"2","timestamp":"2026-05-01T10:00:02.000Z","type":"gemini","content":"","model":"gemini-x","tokens":{"input":20,"output":3,"cached":5,"thoughts":4}}
{"id":"2","timestamp":"2026-05-01T10:00:02.000Z","type":"gemini","content":"","model":"gemini-x","tokens":{"input":20,"output":3,"cached":5,"thoughts":4},"toolCalls":[{"id":"q1","name":"read_file","args":{"file_path":"net"},"result":[{"functionResponse":{"id":"q1","name":"read_file","response":{"output":"a hole"}}}],"status":"success"}]}
{"id":"3","timestamp":"2026-05-01T10:00:03.000Z","type":"user","content":"a mistake"}
{"id":"4","timestamp":"2026-05-01T10:00:04.000Z","type":"gemini","content":"taken back","model":"gemini-x","tokens":{"input":30,"output":2,"cached":20}}
{"$rewindTo":"3"}
{"$set":{"lastUpdated":"2026-05-01T10:00:05.000Z"}}
{"id":"5","timestamp":"2026-05-01T10:00:06.000Z","type":"user","content":"go on"}
{"$set":{"messages":[{"id":"s","timestamp":"2026-05-01T10:00:07.000Z","type":"user","content":"so far: a hole"},{"id":"5","timestamp":"2026-05-01T10:00:06.000Z","type":"user","content":"go on"}]}}
{"id":"6","timestamp":"2026-05-01T10:00:08.000Z","type":"gemini","content":"Mended.","model":"gemini-x","tokens":{"input":12,"output":2,"cached":0}}
"#;

pub(crate) const COPILOT: &str = r#"{"type":"session.start","data":{"sessionId":"cp","version":1,"producer":"copilot-agent","startTime":"2026-05-01T10:00:00.000Z","selectedModel":"model-a","context":{"cwd":"/work"}},"id":"e1","timestamp":"2026-05-01T10:00:00.000Z","parentId":null}
{"type":"user.message","data":{"content":"fix it","transformedContent":"<now/>fix it"},"id":"e2","timestamp":"2026-05-01T10:00:01.000Z","parentId":"e1"}
{"type":"assistant.turn_start","data":{"turnId":"0"},"id":"e3","timestamp":"2026-05-01T10:00:02.000Z","parentId":"e2"}
{"type":"assistant.message","data":{"messageId":"m1","model":"model-b","content":"","reasoningText":"hm","outputTokens":9,"toolRequests":[{"toolCallId":"t1","name":"view","arguments":{"path":"a"},"type":"function"},{"toolCallId":"t2","name":"task","arguments":{},"type":"function"}]},"id":"e4","timestamp":"2026-05-01T10:00:03.000Z","parentId":"e3"}
{"type":"tool.execution_start","data":{"toolCallId":"t1","toolName":"view","arguments":{"path":"a"}},"id":"e5","timestamp":"2026-05-01T10:00:03.000Z","parentId":"e4"}
{"type":"tool.execution_complete","data":{"toolCallId":"t1","success":true,"result":{"content":"text","detailedContent":"longer"}},"id":"e6","timestamp":"2026-05-01T10:00:04.000Z","parentId":"e5"}
{"type":"subagent.started","data":{"toolCallId":"t2","agentName":"explore"},"id":"e7","timestamp":"2026-05-01T10:00:04.000Z","parentId":"e6"}
{"type":"assistant.message","data":{"messageId":"m2","content":"I look around.","toolRequests":[{"toolCallId":"t3","name":"grep","arguments":{}}],"parentToolCallId":"t2"},"id":"e8","timestamp":"2026-05-01T10:00:05.000Z","parentId":"e7"}
{"type":"tool.execution_complete","data":{"toolCallId":"t3","success":true,"result":{"content":"found"},"parentToolCallId":"t2"},"id":"e9","timestamp":"2026-05-01T10:00:06.000Z","parentId":"e8"}
{"type":"tool.execution_complete","data":{"toolCallId":"t2","success":false,"error":{"message":"out of time"}},"id":"e10","timestamp":"2026-05-01T10:00:07.000Z","parentId":"e9"}
{"type":"session.compaction_complete","data":{"success":true,"preCompactionTokens":9000,"summaryContent":"viewed a"},"id":"e11","timestamp":"2026-05-01T10:00:08.000Z","parentId":"e10"}
{"type":"assistant.message","data":{"messageId":"m3","content":"Fixed.","toolRequests":[]},"id":"e12","timestamp":"2026-05-01T10:00:09.000Z","parentId":"e11"}
"#;

pub(crate) const COPILOT_FIRST_VERSION: &str = r#"{"sessionId":"c0","startTime":"2025-10-01T10:00:00.000Z","chatMessages":[{"role":"user","content":"fix it"},{"role":"assistant","content":"","tool_calls":[{"id":"t1","type":"function","function":{"name":"view","arguments":"{}"}}]},{"role":"tool","tool_call_id":"t1","content":"text"}],"timeline":[]}"#;

pub(crate) const CURSOR: &str = r#"{"role":"user","message":{"content":[{"type":"text","text":"look"}]}}
{"role":"assistant","message":{"content":[{"type":"text","text":"Looking."},{"type":"tool_use","name":"Read","input":{"path":"a"}},{"type":"tool_use","name":"Grep","input":{}}]}}
{"role":"user","message":{"content":[{"type":"tool_result","content":"text of a"}]}}
{"type":"turn_ended","status":"ok"}
{"role":"assistant","message":{"content":[{"type":"text","text":"Done."}]}}
"#;

pub(crate) const CURSOR_EXPORT: &str = "# A chat\n_Exported on 5/19/2026 at 22:12:45 GMT+9 from Cursor (0.50.5)_\n\n---\n\n**User**\n\nlook\n\n---\n\n**Cursor**\n\nLooking.\n\n```\n---\n```\n";

pub(crate) const CLINE: &str = r#"[{"role":"user","content":[{"type":"text","text":"<task>\ndo\n</task>"}],"ts":1777629600000},
{"role":"assistant","content":[{"type":"text","text":"on it"},{"type":"tool_use","id":"n1","name":"read_file","input":{"path":"a"}}],"ts":1777629601000,"modelInfo":{"modelId":"claude-z","providerId":"p","mode":"act"},"metrics":{"tokens":{"prompt":90,"completion":7,"cached":60},"cost":0.1}},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"n1","content":"text"}],"ts":1777629602000}]"#;

pub(crate) const CLINE_EXPORT: &str =
    "**User:**\n\n<task>\ndo\n</task>\n\n---\n\n**Assistant:**\n\non it\n\n[read_file]\n\n---\n\n";

pub(crate) const TAU_BENCH: &str = r#"[{"task_id":0,"reward":0.0,"info":{},"traj":[{"role":"system","content":"policy"},{"role":"user","content":"book"},{"role":"assistant","content":null,"tool_calls":[{"id":"b1","type":"function","function":{"name":"find","arguments":"{}"}}]},{"role":"tool","tool_call_id":"b1","name":"find","content":"none"}],"trial":0},
{"task_id":1,"reward":1.0,"info":{},"traj":[{"role":"system","content":"policy"},{"role":"user","content":"cancel"},{"role":"assistant","content":"Cancelled."}],"trial":0},
{"task_id":2,"reward":0.0,"info":{"error":"x"},"traj":[],"trial":0}]"#;
