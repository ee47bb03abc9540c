//! The one wording for omitted text: how much is missing, and how to get it; and the wordings of other tools.

use std::fmt::Display;

use super::cut::{Limit, head, tail};

/// The user message that begins a context whose first message is a response, which providers refuse.
pub const EARLIER_LEFT_OUT: &str = "[earlier messages were left out]";

/// Returns `noun`, with an s unless `count` is 1.
pub fn plural(count: usize, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}

/// Returns the mark for `count` omitted things, as in `[… 12 lines; ref:message:0123456789abcdef]`.
///
/// `unit` names one of them. `way` says how to get them: a reference that can be expanded, or a request to make.
pub fn left_out(count: usize, unit: &str, way: Option<&dyn Display>) -> String {
    let way = way.map(|way| format!("; {way}")).unwrap_or_default();
    format!("[… {count} {}{way}]", plural(count, unit))
}

patterns! {
    /// The marks by which tools say that they left out a part of their output themselves.
    CUT_BY_TOOL concat!(
        r"(?i)(?:\.\.\.|…|\[|<|\()[^\n]{0,40}(?:truncated|omitted|clipped|elided|left out|more lines|more characters)",
        r"|\b(?:output|results?|response|content|file) (?:was |is |has been |are )?(?:too (?:large|long)|truncated|clipped|cut off)",
        r"|[Uu]se (?:the )?`?(?:offset|limit|head_limit)"
    );
}

/// Returns whether a tool left out a part of its output itself: it knows better what to show.
pub(crate) fn is_cut_by_tool(text: &str) -> bool {
    // Marks stand near the ends, or in the middle between a head and a tail of the same size.
    let near = Limit::Bytes(MARK_WITHIN);
    let first = head(text, Limit::Bytes(text.len() / 2 + MARK_WITHIN));
    let middle = tail(first, Limit::Bytes(2 * MARK_WITHIN));
    let parts = [head(text, near), middle, tail(text, near)];
    parts.iter().any(|part| CUT_BY_TOOL.is_match(part))
}

/// Bytes within which such a mark is looked for (chosen).
const MARK_WITHIN: usize = 2000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_counts_and_names_the_way_back() {
        assert_eq!(left_out(1, "line", None), "[… 1 line]");
        assert_eq!(left_out(3, "item", Some(&"ref:message:0")), "[… 3 items; ref:message:0]");
    }

    #[test]
    fn tools_that_cut_their_output_are_known() {
        for cut in
            ["… +27 lines (truncated)", "[1234 characters truncated]", "Use offset=100 to read on"]
        {
            assert!(is_cut_by_tool(&format!("{}\n{cut}", "a\n".repeat(9000))), "{cut}");
        }
        let middle =
            format!("{}…46359 tokens truncated…{}", "a\n".repeat(9000), "b\n".repeat(9000));
        assert!(is_cut_by_tool(&middle));
        assert!(!is_cut_by_tool(&"fn truncate(text: &str)\n".repeat(2000)));
    }
}
