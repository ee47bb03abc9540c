//! Parts: pieces of a long text that are read and scored by themselves.

/// Splits a text at line ends into parts of about `most` characters; a short text is one part.
///
/// Shape: the parts in their order are the whole text. A line that is longer than `most` is split at a space, or within a word
/// where it has none.
pub fn parts(text: &str, most: usize) -> Vec<&str> {
    let most = most.max(1);
    if text.len() <= most {
        return vec![text];
    }
    let mut parts = Vec::new();
    let (mut begin, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        if at > begin && at + line.len() - begin > most {
            parts.push(&text[begin..at]);
            begin = at;
        }
        at += line.len();
        while at - begin > most {
            let end = text.floor_char_boundary(begin + most).max(begin + 1);
            let end = text.ceil_char_boundary(end);
            let space = text[begin..end].rfind(' ').map_or(end, |space| begin + space + 1);
            if space >= at {
                break;
            }
            parts.push(&text[begin..space]);
            begin = space;
        }
    }
    if begin < text.len() {
        parts.push(&text[begin..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole_text() {
        for text in ["", "a", "ab cd ef\ngh\n\nij", "äöü äöü äöüäöüäöü", "\n\n\n"] {
            for most in [0, 1, 2, 4, 7, 100] {
                let parts = parts(text, most);
                assert_eq!(parts.concat(), text, "{most}");
                assert!(!parts.is_empty());
            }
        }
    }

    #[test]
    fn lines_stay_whole_where_they_can() {
        assert_eq!(parts("one two\nthree\nfour", 9), ["one two\n", "three\n", "four"]);
        assert_eq!(parts("one two three", 8), ["one two ", "three"]);
    }
}
