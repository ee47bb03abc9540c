//! Selects the lines of an excerpt.

use crate::names::{self, Key, KeySet};
use crate::text::is_error_line;

use super::ContentKind;

/// The most error lines that an excerpt keeps from each end of a result.
const ERRORS_FROM_EACH_END: usize = 5;
/// Lines kept before and after a line that reports an error, as far as [`Cut::errors`] has room.
pub(super) const BEFORE_ERROR: usize = 2;
pub(super) const AFTER_ERROR: usize = 4;
/// The cost of a line beside its bytes, when lines are compared by the names that they hold.
const PRICE_OF_A_LINE: f64 = 12.0;
/// Bytes of the count that stands for lines left out.
const GAP: f64 = 14.0;
/// The part of the room that lines of structure may take (chosen).
const STRUCTURE: f64 = 0.5;

/// How much of a text an excerpt keeps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cut {
    /// Bytes for structure and names.
    pub(crate) room: f64,
    /// Bytes of the beginning and of the end that stay, at least three lines each.
    pub(crate) head: usize,
    pub(crate) tail: usize,
    /// Bytes for error lines with their surroundings; 0 where errors are not kept.
    pub(crate) errors: usize,
    /// Bytes above which a line is cut in its middle.
    pub(crate) longest_line: usize,
}

/// Lines kept at each end at least (chosen).
const AT_EACH_END: usize = 3;

/// Decides for each line whether the excerpt keeps it.
///
/// `must` returns whether a line has to stay or to go; `stands` returns whether a name stands elsewhere in the context.
pub(super) fn selected(
    lines: &[&str],
    cut: &Cut,
    content: ContentKind,
    must: impl Fn(usize) -> Option<bool>,
    stands: &dyn Fn(Key) -> bool,
) -> Vec<bool> {
    let mut kept = vec![false; lines.len()];
    // A text that ends with a line break has an empty last line, which is not worth keeping.
    let end = lines.len() - usize::from(lines.last().is_some_and(|line| line.is_empty()));
    let may = |at: usize| must(at) != Some(false);
    let size = |at: usize| lines[at].len().min(cut.longest_line) + 1;
    keep_end(0..end, cut.head, size, |at| kept[at] = may(at));
    keep_end((0..end).rev(), cut.tail, size, |at| kept[at] = may(at));
    for (at, kept) in kept.iter_mut().enumerate() {
        *kept |= must(at) == Some(true);
    }
    if cut.errors > 0 {
        keep_errors(lines, end, cut.errors, size, may, &mut kept);
    }
    let fits = |at: usize| lines[at].len() <= cut.longest_line && may(at);
    let mut room = cut.room;
    let add = |at: usize, kept: &mut [bool], room: &mut f64, floor: f64| {
        // A line between two gaps makes one more of them; one that joins two lines takes one away.
        let beside = |at: Option<usize>| at.is_none_or(|at| kept.get(at).is_none_or(|kept| *kept));
        let gaps = match (beside(at.checked_sub(1)), beside(Some(at + 1))) {
            (false, false) => GAP,
            (true, true) => -GAP,
            _ => 0.0,
        };
        let bytes = size(at) as f64 + gaps;
        let fits = *room - bytes >= floor;
        if fits {
            kept[at] = true;
            *room -= bytes;
        }
        fits
    };
    let floor = cut.room * (1.0 - STRUCTURE);
    for at in content.structure(&lines[..end]) {
        if !kept[at] && fits(at) && !add(at, &mut kept, &mut room, floor) {
            break;
        }
    }
    let mut named: Vec<(f64, usize, KeySet)> = (0..end)
        .filter(|&at| fits(at) && !kept[at])
        .filter_map(|at| {
            let mut names = names::names(lines[at]);
            names.retain(|name| !stands(*name));
            let worth = names.len() as f64 / (lines[at].len() as f64 + PRICE_OF_A_LINE);
            (!names.is_empty() && !is_number(lines[at])).then_some((worth, at, names))
        })
        .collect();
    named.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    let mut shown = KeySet::default();
    for (_, at, names) in named {
        let is_new = names.iter().any(|name| !shown.contains(name));
        if is_new && add(at, &mut kept, &mut room, 0.0) {
            shown.extend(names);
        }
    }
    kept
}

/// Keeps lines from an end of the text: three of them, and more up to `bytes`.
fn keep_end(
    order: impl Iterator<Item = usize>,
    bytes: usize,
    size: impl Fn(usize) -> usize,
    mut keep: impl FnMut(usize),
) {
    let mut taken = 0;
    for (count, at) in order.enumerate() {
        taken += size(at);
        if count >= AT_EACH_END && taken > bytes {
            return;
        }
        keep(at);
    }
}

/// Keeps lines that report errors, and the lines around them as far as there is room.
fn keep_errors(
    lines: &[&str],
    end: usize,
    mut room: usize,
    size: impl Fn(usize) -> usize,
    may: impl Fn(usize) -> bool,
    kept: &mut [bool],
) {
    let reports: Vec<usize> =
        (0..end).filter(|&at| may(at) && is_error_line(lines[at].trim_end())).collect();
    let from_end = reports.len().saturating_sub(ERRORS_FROM_EACH_END);
    let told = |order: usize| order < ERRORS_FROM_EACH_END || order >= from_end;
    let reports: Vec<usize> =
        (0..reports.len()).filter(|order| told(*order)).map(|order| reports[order]).collect();
    for &at in &reports {
        kept[at] = true;
        room = room.saturating_sub(size(at));
    }
    for &report in &reports {
        let around = report.saturating_sub(BEFORE_ERROR)..(report + AFTER_ERROR + 1).min(end);
        for at in around.filter(|&at| may(at)) {
            if kept[at] || lines[at].trim().is_empty() {
                continue;
            }
            let Some(left) = room.checked_sub(size(at)) else { return };
            room = left;
            kept[at] = true;
        }
    }
}

/// Returns whether a line is a number and nothing else: without its line such a name tells nothing.
fn is_number(line: &str) -> bool {
    line.trim().bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b' '))
}
