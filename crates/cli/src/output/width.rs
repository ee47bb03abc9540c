//! The width of the terminal, and pages that fit it.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns the columns of the terminal, or those that `COLUMNS` names.
#[expect(clippy::disallowed_methods, reason = "the width of the terminal is the output's own")]
pub(super) fn columns() -> Option<usize> {
    /// A narrower terminal cannot show a table at all (chosen).
    const LEAST: usize = 20;
    let named = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let seen =
        || terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0.into());
    named.or_else(seen).filter(|width| *width >= LEAST)
}

/// Breaks lines that are wider than `width` at a blank, and begins what follows under the line's own beginning.
///
/// Colours have no width.
pub(super) fn wrapped(text: &str, width: usize) -> String {
    /// Columns by which the rest of a line is further in (chosen).
    const INDENT: usize = 2;
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let plain = anstream::adapter::strip_str(line).to_string();
        if UnicodeWidthStr::width(plain.as_str()) <= width {
            out.push_str(line);
        } else {
            let margin = plain.chars().take_while(|c| *c == ' ').count().min(width / 3) + INDENT;
            wrap(&mut out, line, width, margin);
        }
        out.push_str(end);
    }
    out
}

fn wrap(out: &mut String, line: &str, width: usize, margin: usize) {
    // The columns so far, and the last blank that can be a break: its place in `out`, and the columns up to it.
    let (mut columns, mut blank, mut is_escape) = (0, None, false);
    for c in line.chars() {
        if is_escape || c == '\u{1b}' {
            is_escape = !c.is_ascii_alphabetic();
            out.push(c);
            continue;
        }
        let own = UnicodeWidthChar::width(c).unwrap_or(0);
        if columns + own > width {
            let indent = format!("\n{:margin$}", "");
            if let Some((place, before)) = blank.take() {
                out.replace_range(place..=place, &indent);
                columns = margin + columns - before - 1;
            } else {
                out.push_str(&indent);
                columns = margin;
            }
            if c == ' ' && columns == margin {
                continue;
            }
        }
        if c == ' ' && columns > margin {
            blank = Some((out.len(), columns));
        }
        out.push(c);
        columns += own;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{BOLD, RESET};

    #[test]
    fn wide_lines_break_at_blanks_and_lose_nothing() {
        assert_eq!(wrapped("  a bc def\nx\n", 8), "  a bc\n    def\nx\n");
        assert_eq!(wrapped("123456789012", 8), "12345678\n  9012");
        let coloured = format!("{BOLD}name{RESET}      12    3456");
        assert_eq!(wrapped(&coloured, 40), coloured);
        for width in 20..60 {
            let text =
                "alpha  beta 日本語日本語日本語 gamma/delta/epsilon/zeta/eta/theta/iota  kappa";
            let found = wrapped(text, width);
            let widest = found.lines().map(UnicodeWidthStr::width).max().unwrap_or(0);
            assert!(widest <= width, "{width}: {found}");
            let letters =
                |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            assert_eq!(letters(&found), letters(text));
        }
    }
}
