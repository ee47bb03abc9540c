//! E-mail addresses, and passwords in URLs.

use super::{Finding, SensitiveKind, before, byte_at, follows_escape};

/// The longest local part and host name (RFC 5321, 4.5.3.1).
const LONGEST_LOCAL: usize = 64;
const LONGEST_HOST: usize = 255;

/// Ends of files and units that look like hosts: `icon@2x.png`, `user@1000.service`.
const NO_HOST: &[&str] = &[
    "png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "mjs", "cjs", "ts", "tsx", "jsx",
    "json", "html", "py", "rs", "go", "md", "txt", "yml", "yaml", "toml", "lock", "service",
    "socket", "target", "slice", "mount", "timer", "scope", "git",
];

/// Reads the address around the `@` at `at`.
pub(super) fn email(text: &str, at: usize) -> Option<Finding> {
    let bytes = text.as_bytes();
    let is_local = |byte: u8| byte.is_ascii_alphanumeric() || b"._%+-'".contains(&byte);
    let floor = at.saturating_sub(LONGEST_LOCAL + 1);
    let mut start = at;
    while start > floor && is_local(bytes[start - 1]) {
        start -= 1;
    }
    while start < at && !bytes[start].is_ascii_alphanumeric() && bytes[start] != b'_' {
        start += 1;
    }
    // The letter of an escape such as \n stands directly before the address.
    if start < at && before(bytes, start) == b'\\' && b"nrt".contains(&bytes[start]) {
        start += 1;
    }
    // So does the end of a terminal's colour.
    if b"[;(".contains(&before(bytes, start)) {
        start = (start..at).find(|at| follows_escape(bytes, *at)).unwrap_or(start);
    }
    if start == at || at - start > LONGEST_LOCAL || bytes[at - 1] == b'.' {
        return None;
    }
    let most = (at + 1 + LONGEST_HOST).min(bytes.len());
    let mut end = at + 1;
    while end < most && (bytes[end].is_ascii_alphanumeric() || b".-".contains(&bytes[end])) {
        end += 1;
    }
    while end > at + 1 && b".-".contains(&bytes[end - 1]) {
        end -= 1;
    }
    let host = &text[at + 1..end];
    let (name, top) = host.rsplit_once('.')?;
    let labels_hold = host.split('.').all(|label| {
        (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
    });
    let top_holds = (2..=24).contains(&top.len()) && top.bytes().all(|b| b.is_ascii_alphabetic());
    let is_file = NO_HOST.iter().any(|end| top.eq_ignore_ascii_case(end)) || name == "self";
    // `git@host:path` is an address of a repository; an address followed by more of a word or by a call is code.
    let is_remote = &text[start..at] == "git" && b":/".contains(&byte_at(bytes, end));
    // The user and the password of a URL are no address.
    let in_url = match before(bytes, start) {
        b'/' => text[..start].ends_with("//"),
        b':' => {
            let from = text.floor_char_boundary(start.saturating_sub(LONGEST_LOCAL));
            let word = text[from..start].rsplit(char::is_whitespace).next().unwrap_or("");
            word.contains("://")
        }
        _ => false,
    };
    let is_code = b"_(@".contains(&byte_at(bytes, end));
    (labels_hold && top_holds && !is_file && !is_remote && !in_url && !is_code)
        .then_some(Finding { kind: SensitiveKind::Email, bytes: start..end })
}

/// Reads the password of `scheme://user:password@host` where `at` is the byte after `://`.
pub(super) fn url_password(text: &str, at: usize) -> Option<Finding> {
    let bytes = text.as_bytes();
    let ends = |byte: u8| byte.is_ascii_whitespace() || b"/?#\"'<>`\\()[]{}|,".contains(&byte);
    let most = (at + LONGEST_HOST).min(bytes.len());
    let authority = bytes[at..most].iter().take_while(|byte| !ends(**byte)).count();
    let authority = &bytes[at..at + authority];
    let host = authority.iter().rposition(|byte| *byte == b'@')?;
    let colon = authority[..host].iter().position(|byte| *byte == b':')?;
    let password = text.get(at + colon + 1..at + host)?;
    let user = text.get(at..at + colon)?;
    (password.len() >= 3
        && password != user
        && !super::assignment::is_placeholder(password)
        && host + 1 < authority.len())
    .then_some(Finding { kind: SensitiveKind::UrlPassword, bytes: at + colon + 1..at + host })
}
