//! Prints a session as JSON lines of role, shown text, time and source, and its notes on standard error.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command for developers")]

use plimsoll_formats::{ReadOptions, read};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let session = read(&std::fs::read(&path)?, &ReadOptions::default())?;
        eprintln!("{path}: {}, {} messages", session.format, session.messages.len());
        for note in &session.notes {
            eprintln!("  {note}");
        }
        for (message, origin) in session.messages.iter().zip(&session.origins) {
            let calls: Vec<_> = message
                .calls()
                .map(|call| json!([&*call.id, &*call.name, &*call.arguments]))
                .collect();
            let line = json!({
                "role": message.role.as_str(),
                "text": message.shown(),
                "calls": calls,
                "reply": message.results().next().map(|result| result.call_id.to_string()),
                "time": message.time.map(|time| time.0),
                "source": message.source,
                "repaired": origin.repaired,
                "usage": message.usage.map(|usage| usage.prompt_tokens),
            });
            println!("{line}");
        }
    }
    Ok(())
}
