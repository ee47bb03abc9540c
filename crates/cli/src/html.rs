//! Pages of HTML: self-contained, without a script, and closed to the network by their own policy.

mod text;

use sha2::{Digest as _, Sha256};

use text::base64;
pub(crate) use text::escaped;

const STYLE: &str = include_str!("html/page.css");

/// The sign of the program: a hull's circle with its line.
pub(crate) const MARK: &str = "<svg class=\"sign\" viewBox=\"0 0 24 24\" aria-hidden=\"true\"><circle cx=\"12\" cy=\"12\" r=\"7\"/><path d=\"M1 12h22\"/></svg>";

/// Returns a page around `body`; both arguments are HTML already.
pub(crate) fn page(title: &str, body: &str) -> String {
    // Only this style applies and nothing is fetched, whatever the text of a session may hold.
    let hash = base64(&Sha256::digest(STYLE.as_bytes()));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title} · Plimsoll</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// Returns the facts below a page's headline.
pub(crate) fn facts(facts: impl IntoIterator<Item = String>) -> String {
    facts.into_iter().fold(String::new(), |out, fact| out + "<span>" + &escaped(&fact) + "</span> ")
}

/// Returns cards: a figure, what it is, and a note; the note is HTML already.
pub(crate) fn cards<const N: usize>(cards: [(String, &str, String); N]) -> String {
    let card = |(figure, label, note): (String, &str, String)| {
        format!("<li><strong>{figure}</strong> <span>{label}</span> <small>{note}</small></li>\n")
    };
    format!("<ul class=\"cards\">\n{}</ul>\n", cards.into_iter().map(card).collect::<String>())
}

/// Begins a table in a box that scrolls sideways; `heads` are cells of HTML.
pub(crate) fn table(class: &str, label: &str, heads: &str) -> String {
    format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\">\n<table class=\"{class}\">\n<thead><tr>{heads}</tr></thead>\n<tbody>\n"
    )
}

/// Ends what [`table`] began.
pub(crate) const TABLE_END: &str = "</tbody>\n</table>\n</div>\n";

/// Returns the heads of a table, each in a cell.
pub(crate) fn heads<const N: usize>(names: [&str; N]) -> String {
    names.into_iter().fold(String::new(), |out, name| out + "<th scope=\"col\">" + name + "</th>")
}

/// Returns a cell with a bar; `share` is in percent.
pub(crate) fn share_bar(share: f64, fill: &str) -> String {
    format!(
        "<td class=\"share\"><svg viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"groove\" width=\"100\" height=\"8\"/><rect class=\"{fill}\" width=\"{:.1}\" height=\"8\"/></svg></td>",
        share.clamp(0.0, 100.0)
    )
}
