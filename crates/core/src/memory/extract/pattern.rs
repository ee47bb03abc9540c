//! Patterns: the words and forms by which sentences are recognised.

use crate::message::Role;

patterns! {
    pub(super) DECISION r"(?i)\b(?:we|i|team)(?:['’]ve| have|['’]re| are| all)?\s+(?:now |finally |just )?(?:decided (?:to|on|against|that|for)|agreed (?:to|on|that)|settled on|opted for|opted to|chose\b|going with|will go with)|^\s*(?:[-*>]\s+)?[*_]{0,2}(?:final )?decision(?: made)?:[*_]{0,2}\s*\w";
    // Questions, suppositions, negations and denials: sentences that leave open whether something is so.
    pub(super) OPEN r"(?i)\?\s*$|^\W*(?:if|whether|suppose|should|would|could|maybe|perhaps|did|have|has|do|does|is|are|unless|until|when)\b|\b(?:not|n['’]t|never) (?:\w+ ){0,2}?(?:say|said|claim|claimed|state|stated|mean|meant|think|thought|believe|believed)\b|\b(?:not|n['’]t|never|yet to) (?:yet )?(?:decided|agreed|settled|chosen|clear)|\b(?:have|has|had) ?n['’]t\b|\b(?:once|until|unless|if|whether) (?:we|i|you|they)\b";
    pub(super) TASK r"(?i)^\s*(?:[-*>]\s+)?[*_]{0,2}(?:todo|action item|follow-?up|next step)s?\b\s*(?:\([^)]*\))?:[*_]{0,2}\s*\w|^\s*(?:[-*+]|\d+[.)])\s+\[ \]\s+\w";
    MARK r"^\s*(?:#{1,6}\s+)?(?:(?:[-*+>]|\d{1,3}[.)])\s+(?:\[ \]\s+)?)?";
    // Signs of source code, diffs and data that statements do not have.
    pub(super) CODE r#"[{};]\s*$|^\s*[{\["]|^\s*\d+\s*[→:|]|^[+-]\s*[#/*]|^\s*(?://|/\*|#!|\$\s)|=>|\w\(['"]|^[\w./-]+\.\w{1,5}:\d+|\b(?:const|let|var|def|fn|return|import)\s+\w"#;
    FACT_BY_USER r"(?i)^\s*(?:[-*>]\s+)?(?:please )?(?:remember|note|keep in mind|for the record)(?: that\b|:)\s*\w|^\W*(?:and |also,? )?(?:i|we) (?:(?:always|usually|generally) )?(?:prefer|live in|work at|work for|am based in)\b|^\W*(?:and )?(?:my|our) (?:name|role|time ?zone|team|company|project|stack|deadline|budget|preference|birthday|address) (?:is|are)\b";
    FACT_OF_CAUSE r"(?i)^\W*(?:so,? |ah,? |indeed,? )?(?:the |it['’]s )?(?:actual |real |root |underlying |main )*(?:root cause|cause|culprit|real issue|actual issue|actual problem|underlying problem|underlying issue)\W{0,3} (?:is|was|of (?:the|this|that) [\w ]{3,40} (?:is|was))\b";
    REASON r"(?i)^\W*(?:because|since|so that|as|the reason|that way|otherwise|this (?:way|keeps|avoids|allows|lets|makes))\b";
    ENTITY r"(?i)\b(issue|pr|pull request|ticket|mr|merge request|order|invoice|incident|bug|rfc|cve|run|job|build)(?:\s+(?:no\.?|number|id))?[\s:]*#(\d{1,9})\b";
    COMMIT r"(?i)\bcommit[\s:]+`?([0-9a-f]{7,40})\b";
    KEY r"\b([A-Z][A-Z0-9]{1,9})-(\d{1,6})\b";
    CVE r"\bCVE-\d{4}-\d{4,7}\b";
    UUID r"(?i)\b(\w*id)\W{1,4}([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b";
    LINK r#"https?://[^\s"'<>`\\|{}]+"#;
    SECRET r"(?i)\b(?:sk|pk|rk)-[a-z0-9_-]{16,}|\bgh[pousr]_[a-z0-9]{20,}|\bgithub_pat_|\bxox[abprs]-|\bAKIA[0-9A-Z]{12,}|\bAIza[0-9a-z_-]{20,}|\beyJ[\w-]{10,}\.|-----BEGIN|\b(?:password|passwd|passphrase|secret|api[ _-]?key|access[ _-]?token|auth[ _-]?token|token)\b\s*(?:is\b|=|:)\s*\S|://[^/\s:@]+:[^/\s@]+@|\bbearer\s+[a-z0-9._-]{16,}";
}

/// Names of standards and models that look like prefixes of tickets.
const NO_KEYS: &[&str] = &[
    "UTF", "SHA", "ISO", "RFC", "GPT", "MD", "AES", "RSA", "IEEE", "HTTP", "TLS", "SSL", "CVE",
    "X", "US", "PEP", "CP", "UTC", "GMT", "COVID", "H", "P", "F", "B", "BASE", "ES", "CC", "WCAG",
    "PY", "AMD", "ARM", "GB", "BM", "TOP", "V", "TIER", "STEP", "PHASE", "LLAMA", "CLAUDE",
    "GEMINI", "MIT", "LGPL", "GPL", "AGPL", "BSD", "APACHE", "HMAC", "KOI8", "LATIN", "WINDOWS",
    "ANSI", "UUID", "ADR", "Q", "EC", "ED", "CRC", "PKCS", "RS", "HS", "I", "U", "S3",
];

/// Hosts that nobody would look up.
#[rustfmt::skip]
const NO_HOSTS: &[&str] = &[
    "localhost", "127.0.0.1", "0.0.0.0", "[::1]", "example.com", "www.example.com",
    "www.w3.org", "schemas.xmlsoap.org", "schemas.microsoft.com", "json-schema.org", "host",
    "hostname",
];

/// Returns whether a sentence states a fact: a user's statement about themselves, or anybody's about a cause.
pub(super) fn is_fact(text: &str, role: Role) -> bool {
    (role == Role::User && FACT_BY_USER.is_match(text)) || FACT_OF_CAUSE.is_match(text)
}

/// Returns whether a sentence may hold a secret; such a sentence is never remembered.
///
/// It is wider than [`crate::safety`]: a false alarm only costs a fact here.
pub(super) fn is_secret(text: &str) -> bool {
    let found = crate::safety::find(text);
    SECRET.is_match(text) || found.iter().any(|finding| !finding.kind.is_personal())
}

/// Returns `text` without the marks of headings, lists, open tasks and banners.
pub(super) fn unmarked(text: &str) -> &str {
    let text = MARK.find(text).map_or(text, |mark| &text[mark.end()..]);
    text.trim_matches(|c: char| c == '=' || c.is_whitespace())
}

/// Returns whether a sentence gives the reason of the one before it.
pub(super) fn is_reason(text: &str) -> bool {
    REASON.is_match(text) && !is_secret(text)
}

/// Returns the ids in a sentence as tags.
pub(super) fn entities(text: &str) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for found in ENTITY.captures_iter(text) {
        tags.push(format!("{}:{}", found[1].to_lowercase().replace(' ', "_"), &found[2]));
    }
    tags.extend(
        COMMIT
            .captures_iter(text)
            .filter(|found| {
                // Seven letters may be a word, seven digits a number.
                found[1].bytes().any(|b| b.is_ascii_digit())
                    && found[1].bytes().any(|b| b.is_ascii_alphabetic())
            })
            .map(|found| format!("commit:{}", found[1].to_lowercase())),
    );
    tags.extend(UUID.captures_iter(text).map(|found| format!("uuid:{}", found[2].to_lowercase())));
    tags.extend(CVE.find_iter(text).map(|found| format!("cve:{}", found.as_str())));
    for found in KEY.captures_iter(text) {
        // A range of a pattern such as `[A-Z0-9-]` is no key.
        let whole = found.get(0).map_or(0..0, |whole| whole.range());
        let is_range = text[..whole.start].ends_with(['-', '['])
            || text[whole.end..].starts_with(['-', ']', '_']);
        if !is_range && !NO_KEYS.contains(&&found[1]) {
            tags.push(format!("key:{}", &found[0]));
        }
    }
    tags
}

/// Returns the hosts of the links in a sentence as tags.
pub(super) fn hosts(text: &str) -> Vec<String> {
    LINK.find_iter(text)
        .filter_map(|link| host(trimmed(link.as_str())))
        .map(|host| format!("host:{host}"))
        .collect()
}

/// Returns an address without the punctuation of the sentence, and without closing brackets that it does not open.
fn trimmed(address: &str) -> &str {
    let mut address = address;
    loop {
        let shorter = address.trim_end_matches(['.', ',', ';', ':', '!', '?', '*', '_', ']', '…']);
        let opens = shorter.matches('(').count();
        let closes = shorter.matches(')').count();
        let shorter = match shorter.strip_suffix(')') {
            Some(inner) if closes > opens => inner,
            _ => shorter,
        };
        if shorter.len() == address.len() {
            return address;
        }
        address = shorter;
    }
}

/// Returns the host of an address, if it is a real one.
fn host(address: &str) -> Option<String> {
    let rest = address.split_once("://")?.1;
    let host = rest.split(['/', '?', '#']).next()?;
    let host = host.split(':').next()?.to_ascii_lowercase();
    let real = host.contains('.') && host.is_ascii() && !NO_HOSTS.contains(&&*host);
    real.then_some(host)
}
