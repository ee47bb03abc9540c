//! The table's tokenizer: byte-pair encoding over characters, with bytes for characters that have no piece.
//!
//! The usual crate for this takes most of an embedding's time; the order of merges is the order of the pieces here, so a
//! look into the table's own hash is all that a merge needs.

use super::table;

/// Stands for a space.
const SPACE: char = '\u{2581}';
/// Characters of a run without a space after which it is cut, so that time stays linear (chosen: no word is longer).
const LONGEST: usize = 256;

/// A piece of the text while it grows.
#[derive(Clone, Copy)]
struct Symbol {
    start: usize,
    end: usize,
    id: u16,
    /// The merge with the next symbol: its order and its piece.
    merge: Option<(u32, u16)>,
}

/// Calls `take` with each token of `text`, in order.
pub(super) fn each_token(text: &str, mut take: impl FnMut(u16)) {
    if text.is_empty() {
        return;
    }
    let mut marked = String::with_capacity(text.len() + 3 + text.len() / 4);
    marked.push(SPACE);
    marked.extend(text.chars().map(|character| if character == ' ' { SPACE } else { character }));
    let mut symbols = Vec::new();
    // No piece holds a space behind another character, so nothing merges across the beginning of a run of spaces.
    let (mut before, mut count) = (SPACE, 0);
    let mut start = 0;
    for (at, character) in marked.char_indices() {
        if (character == SPACE && before != SPACE) || count == LONGEST {
            merge(&marked, start, at, &mut symbols, &mut take);
            (start, count) = (at, 0);
        }
        before = character;
        count += 1;
    }
    merge(&marked, start, marked.len(), &mut symbols, &mut take);
}

fn merge(
    text: &str,
    start: usize,
    end: usize,
    symbols: &mut Vec<Symbol>,
    take: &mut impl FnMut(u16),
) {
    let bytes = text.as_bytes();
    if let Some(id) =
        table::find(&bytes[start..end]).filter(|_| text[start..end].chars().count() == 1)
    {
        return take(id);
    }
    symbols.clear();
    for (at, character) in text[start..end].char_indices() {
        let (from, to) = (start + at, start + at + character.len_utf8());
        match table::find(&bytes[from..to]) {
            Some(id) => symbols.push(Symbol { start: from, end: to, id, merge: None }),
            None => symbols.extend((from..to).map(|byte| Symbol {
                start: byte,
                end: byte + 1,
                id: table::of_byte(bytes[byte]),
                merge: None,
            })),
        }
    }
    for place in 0..symbols.len().saturating_sub(1) {
        symbols[place].merge = between(bytes, symbols[place], symbols[place + 1]);
    }
    // The first of the lowest, as the reference does.
    while let Some((place, (_, id))) = symbols
        .iter()
        .enumerate()
        .filter_map(|(at, symbol)| Some((at, symbol.merge?)))
        .min_by_key(|(_, (order, _))| *order)
    {
        symbols[place].end = symbols[place + 1].end;
        symbols[place].id = id;
        symbols.remove(place + 1);
        for changed in [place.checked_sub(1), Some(place)].into_iter().flatten() {
            symbols[changed].merge =
                symbols.get(changed + 1).and_then(|next| between(bytes, symbols[changed], *next));
        }
    }
    for symbol in symbols {
        take(symbol.id);
    }
}

/// Returns the merge of two neighbours: when it is made, and the piece that it makes.
fn between(bytes: &[u8], left: Symbol, right: Symbol) -> Option<(u32, u16)> {
    let joined = &bytes[left.start..right.end];
    let id = table::find(joined)?;
    // Runs of spaces are merged last.
    let mut spaces = [0; 3];
    let space = SPACE.encode_utf8(&mut spaces).as_bytes();
    let last = joined.chunks(space.len()).all(|part| part == space);
    Some((u32::from(id) + if last { u32::from(u16::MAX) } else { 0 }, id))
}
