//! Age: the older a message, the less of it is sent (`context-strategy.md` 6.2).

use super::{PastMessage, RequestSettings};

/// Returns the text of a message that is `age` messages old, the newest 0.
pub(super) fn compressed(message: &PastMessage, age: usize, settings: &RequestSettings) -> String {
    let text = &*message.text;
    let short = if age < settings.whole_before {
        return text.to_owned();
    } else if age < settings.shortened_before {
        middle(text, settings.shortened_characters)
    } else {
        line(text, settings.line_characters)
    };
    let Some(mut short) = short else { return text.to_owned() };
    if let Some(reference) = &message.reference {
        short.push_str(" [");
        short.push_str(reference);
        short.push(']');
    }
    // The mark may be longer than what it stands for.
    if short.len() < text.len() { short } else { text.to_owned() }
}

/// Leaves the two ends of `text`; `None` if it is short enough.
fn middle(text: &str, characters: usize) -> Option<String> {
    let total = text.chars().count();
    let left_out = total.checked_sub(characters).filter(|count| *count > 0)?;
    let head: String = text.chars().take(characters.div_ceil(2)).collect();
    let tail: String = text.chars().skip(total - characters / 2).collect();
    Some(format!("{head} … [{left_out} characters left out] … {tail}"))
}

/// Leaves the beginning on one line; `None` if that is all there is.
fn line(text: &str, characters: usize) -> Option<String> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let total = line.chars().count();
    let left_out = total.checked_sub(characters).filter(|count| *count > 0)?;
    let head: String = line.chars().take(characters).collect();
    Some(format!("{head} … [{left_out} characters left out]"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Role;

    #[test]
    fn older_messages_are_shorter() {
        let message = PastMessage {
            role: Role::User,
            text: "word ".repeat(200),
            reference: Some("ref:msg:0123456789abcdef".into()),
        };
        let settings = RequestSettings::default();
        let at = |age| compressed(&message, age, &settings);
        assert_eq!(at(0), message.text);
        assert_eq!(at(1), message.text);
        assert!(at(2).contains("… [700 characters left out] …"));
        assert!(at(4).ends_with("[ref:msg:0123456789abcdef]"));
        assert!(at(5).starts_with("word word") && at(5).len() < 200);
        let short = PastMessage { text: "Yes.".into(), ..message };
        assert_eq!(compressed(&short, 9, &settings), "Yes.");
    }
}
