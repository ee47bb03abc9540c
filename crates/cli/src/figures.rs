//! Figures as they are printed: numbers, counts, tokens, shares, money, sizes, bars and aligned columns.

use crate::output::{GOOD, RESET};

/// Writes a number with a comma at each thousand.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Writes a number with its noun: `1 session`, `1,234 sessions`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {}", thousands(number), plimsoll_core::text::plural(number as usize, noun))
}

/// Writes a number of tokens in a few digits: `45.2 M`.
pub(crate) fn tokens(number: f64) -> String {
    match number {
        ..10_000.0 => thousands(number.max(0.0).round() as u64),
        ..1_000_000.0 => format!("{:.0} k", number / 1e3),
        ..1e9 => format!("{:.1} M", number / 1e6),
        _ => format!("{:.2} G", number / 1e9),
    }
}

/// Writes a number of tokens for the axis of a chart or a narrow column: `2.5k`, `1M`.
pub(crate) fn compact(tokens: u64) -> String {
    match tokens {
        0..1000 => tokens.to_string(),
        1000..1_000_000 => format!("{}k", trimmed((tokens as f64 / 100.0).round() / 10.0)),
        _ => format!("{}M", trimmed((tokens as f64 / 10_000.0).round() / 100.0)),
    }
}

/// Writes a figure without zeros at its end.
pub(crate) fn trimmed(figure: f64) -> String {
    let text = format!("{figure:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Writes the size of a file.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Returns the mark before a figure that is an estimate.
pub(crate) fn mark(is_estimate: bool) -> &'static str {
    if is_estimate { "~" } else { "" }
}

/// Writes dollars with this many digits behind the point.
pub(crate) fn dollars(amount: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", amount.abs());
    let is_zero = text.bytes().all(|digit| matches!(digit, b'0' | b'.'));
    let sign = if amount < 0.0 && !is_zero { "−" } else { "" };
    let (whole, rest) = text.split_once('.').unwrap_or((&text, "0"));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), thousands);
    format!("{sign}${whole}.{rest}")
}

/// Writes dollars of a single request or run, marked where they are an estimate.
pub(crate) fn cost(amount: f64, is_estimate: bool) -> String {
    format!("{}{}", mark(is_estimate), dollars(amount, 4))
}

/// Returns a part in percent of the whole; 0 where there is nothing.
pub(crate) fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { 100.0 * part / whole } else { 0.0 }
}

/// Draws a part of the whole as a bar of at most this many cells, without trailing blanks; returns its cells too.
pub(crate) fn bar(part: f64, whole: f64, cells: usize) -> (String, usize) {
    let eighths = (percent(part, whole).clamp(0.0, 100.0) / 100.0 * (cells * 8) as f64) as usize;
    let mut bar = "█".repeat(eighths / 8);
    bar.extend("▏▎▍▌▋▊▉".chars().nth((eighths % 8).wrapping_sub(1)));
    let drawn = bar.chars().count();
    (format!("{GOOD}{bar}{RESET}"), drawn)
}

/// Pads the cells of a table to the width of their columns, all but the last of each row.
///
/// A cell may hold colours: they have no width.
pub(crate) fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |cell: &str| anstream::adapter::strip_str(cell).to_string().chars().count();
    let widths: [usize; N] =
        std::array::from_fn(|at| rows.iter().map(|row| width(&row[at])).max().unwrap_or(0));
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, most) in row.iter().zip(widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', most - width(cell) + 2));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Pads the cells of a table on their left, but those of the first column on their right.
pub(crate) fn aligned_right<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |cell: &str| anstream::adapter::strip_str(cell).to_string().chars().count();
    let widths: [usize; N] =
        std::array::from_fn(|at| rows.iter().map(|row| width(&row[at])).max().unwrap_or(0));
    let mut out = String::new();
    for row in rows {
        for (at, (cell, most)) in row.iter().zip(widths).enumerate() {
            let padding = std::iter::repeat_n(' ', most - width(cell));
            if at == 0 {
                out.push_str(cell);
                out.extend(padding);
            } else {
                out.push_str("  ");
                out.extend(padding);
                out.push_str(cell);
            }
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas_and_nouns() {
        assert_eq!([0, 999, 1_234_567].map(thousands), ["0", "999", "1,234,567"]);
        assert_eq!([counted(1, "query"), counted(1234, "session")], ["1 query", "1,234 sessions"]);
    }

    #[test]
    fn tokens_and_sizes_have_three_digits_or_so() {
        assert_eq!([9_999.4, 45_200.0, 45.2e6].map(tokens), ["9,999", "45 k", "45.2 M"]);
        assert_eq!(
            [500, 2000, 2500, 1_000_000, 1_500_000].map(compact),
            ["500", "2k", "2.5k", "1M", "1.5M"]
        );
        assert_eq!([5, 12_345, 12_345_678].map(bytes), ["5 B", "12 kB", "12.3 MB"]);
    }

    #[test]
    fn money_has_a_sign_only_where_it_shows() {
        assert_eq!(dollars(-0.25, 4), "−$0.2500");
        assert_eq!(dollars(-0.001, 2), "$0.00");
        assert_eq!(dollars(12_345.678, 2), "$12,345.68");
        assert_eq!(cost(0.5, true), "~$0.5000");
    }

    #[test]
    fn columns_are_as_wide_as_they_look() {
        let row = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        let coloured = format!("{GOOD}é{RESET}");
        assert_eq!(
            aligned(&[row("abc", "1"), row(&coloured, "2")]),
            format!("abc  1\n{coloured}    2\n")
        );
    }
}
