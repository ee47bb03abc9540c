//! Age: the older a message, the less of it is sent, and where the rest is.

use super::PastMessage;
use crate::aging::{Aging, at_age, truncate_middle};
use crate::tokens::Tokenizer;

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

/// Returns `text`, which is that of `message` at its age, cut in its middle to at most `room` tokens, with where the rest is.
pub(super) fn within(message: &PastMessage, text: &str, room: u64, tokenizer: Tokenizer) -> String {
    let tokens = u64::from(tokenizer.count(text));
    if tokens <= room {
        return text.to_owned();
    }
    let mark = message.reference.as_ref().map(|reference| format!(" [{reference}]"));
    let mark = mark.unwrap_or_default();
    let mut characters = text.chars().count() as u64 * room / tokens;
    loop {
        let short =
            truncate_middle(text, usize::try_from(characters).unwrap_or(usize::MAX)) + &mark;
        // A part of a text may have more tokens to a character than the whole.
        if u64::from(tokenizer.count(&short)) <= room || characters == 0 {
            return short;
        }
        characters = characters * 9 / 10;
    }
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
        assert!(at(2).contains(" characters]"));
        assert!(at(4).ends_with("[ref:msg:0123456789abcdef]"));
        assert!(at(5).starts_with("word word") && at(5).len() < 200);
        let short = PastMessage { text: "Yes.".into(), ..message.clone() };
        assert_eq!(compressed(&short, 9, &aging), "Yes.");
        for room in [0, 1, 20, 50, 100, 300] {
            let cut = within(&message, &message.text, room, Tokenizer::Estimate);
            assert!(u64::from(Tokenizer::Estimate.count(&cut)) <= room.max(10), "{room}: {cut}");
        }
        assert_eq!(within(&message, &message.text, 300, Tokenizer::Estimate), message.text);
    }
}
