//! Age: the older a message, the less of it is sent, and where the rest is.

use super::PastMessage;
use crate::aging::{Aging, at_age};

/// Returns the text of a message that is `age` messages old, the newest 0.
pub(super) fn compressed(message: &PastMessage, age: usize, aging: &Aging) -> String {
    let text = &*message.text;
    let mut short = at_age(text, u32::try_from(age).unwrap_or(u32::MAX), aging);
    if short.len() >= text.len() {
        return text.to_owned();
    }
    if let Some(reference) = &message.reference {
        short.push_str(" [");
        short.push_str(reference);
        short.push(']');
    }
    // The mark may be longer than what it stands for.
    if short.len() < text.len() { short } else { text.to_owned() }
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
        let aging = Aging::default();
        let at = |age| compressed(&message, age, &aging);
        assert_eq!(at(0), message.text);
        assert_eq!(at(1), message.text);
        assert!(at(2).contains("characters left out"));
        assert!(at(4).ends_with("[ref:msg:0123456789abcdef]"));
        assert!(at(5).starts_with("word word") && at(5).len() < 200);
        let short = PastMessage { text: "Yes.".into(), ..message };
        assert_eq!(compressed(&short, 9, &aging), "Yes.");
    }
}
