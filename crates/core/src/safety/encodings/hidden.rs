//! Characters that nobody sees, and wide forms of ASCII.

/// Returns whether a character that begins with `byte` may be read otherwise: most of a text is passed by at once.
pub(super) fn may_be_hidden(byte: u8) -> bool {
    matches!(
        byte,
        0..=0x08 | 0x0B | 0x0C | 0x0E..=0x1F | 0x7F | 0xC2 | 0xCD | 0xD8 | 0xE1 | 0xE2 | 0xE3 | 0xEF | 0xF0 | 0xF3
    )
}

/// Returns whether a character has no width or is a control character, so that it may stand inside a secret unseen.
pub(super) fn is_hidden(character: char) -> bool {
    matches!(
        character,
        '\0'..='\u{8}'
            | '\u{b}'
            | '\u{c}'
            | '\u{e}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Returns the ASCII character that a wide or typographic one stands for; spaces and dashes only `inside` a word or number.
pub(super) fn plain(character: char, inside: bool) -> Option<char> {
    match character {
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
            inside.then_some(' ')
        }
        '\u{2010}'..='\u{2013}' | '\u{2212}' => inside.then_some('-'),
        // The punctuation of Chinese and Japanese prose is in nothing that is found.
        '！' | '（' | '）' | '，' | '；' | '？' => None,
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(character) - 0xFEE0),
        _ => None,
    }
}
