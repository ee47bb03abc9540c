//! The one wording for omitted text: how much is missing, and how to get it.

use std::fmt::Display;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_counts_and_names_the_way_back() {
        assert_eq!(left_out(1, "line", None), "[… 1 line]");
        assert_eq!(left_out(3, "item", Some(&"ref:message:0")), "[… 3 items; ref:message:0]");
    }
}
