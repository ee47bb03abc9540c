//! Text for the page: what a session holds may be hostile.

use plimsoll_core::{Position, Role};

use crate::load::Loaded;
use crate::output;

/// Returns `text` with all that HTML reads as its own written as references, and without control characters.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in output::plain(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Tells in a few words what a message is: of a result the call that it answers, else its beginning.
pub(super) fn label(loaded: &Loaded, position: Position) -> String {
    let entries = loaded.transcript.entries();
    let message = &entries[position].message;
    let answered = message.results().next().and_then(|result| {
        let exchange = &loaded.transcript.exchanges()[entries[position].exchange?];
        entries[exchange.call].message.calls().find(|call| call.id == result.call_id)
    });
    match answered {
        Some(call) => output::line(&format!("{} {}", call.name, call.arguments), 80),
        None if message.role == Role::Tool => {
            output::line(&format!("result: {}", begin(&message.shown())), 80)
        }
        None => {
            output::line(&format!("{}: {}", message.role.as_str(), begin(&message.shown())), 80)
        }
    }
}

fn begin(text: &str) -> &str {
    plimsoll_core::error_lines::head(text.trim_start(), 400)
}

/// Encodes bytes as a content security policy wants its hashes.
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let three =
            [chunk[0], chunk.get(1).copied().unwrap_or(0), chunk.get(2).copied().unwrap_or(0)];
        let number = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for digit in 0..4 {
            if digit > chunk.len() {
                out.push('=');
            } else {
                out.push(char::from(DIGITS[(number >> (18 - 6 * digit)) as usize & 63]));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_inert() {
        assert_eq!(
            escaped("</script><b a='\"'>&\0\u{1b}"),
            "&lt;/script&gt;&lt;b a=&#39;&quot;&#39;&gt;&amp;\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn base64_is_padded() {
        let all = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(all, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }
}
