//! Names of models: brings them to one spelling and reads their versions.

/// Returns a model's name without provider, region and case, as the table spells it.
///
/// Gateways write `anthropic/claude-opus-4.5`, Bedrock `us.anthropic.claude-opus-4-5-20251101-v1:0`, Vertex
/// `claude-opus-4-5@20251101`; brackets hold a setting of the client.
pub fn normal(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let name = name.split(['[', ' ']).next().unwrap_or("");
    let name = match name.find("claude") {
        Some(at) => name[at..].replace(['.', '@'], "-"),
        None => name.replace('@', "-"),
    };
    name.strip_suffix(":free").unwrap_or(&name).to_owned()
}

/// The meaning of the rest of a name behind a listed name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rest {
    /// Another model: a further version, a smaller sister.
    Other,
    /// A date, a revision, or a word that changes no price.
    Same,
}

/// Words that name a release or a way of serving and not another model.
const SAME: [&str; 6] = ["latest", "preview", "exp", "beta", "thinking", "0"];

/// Returns the meaning of `rest` behind a listed name; `None` if the name continues without a break.
pub(super) fn rest(rest: &str) -> Option<Rest> {
    let Some(first) = rest.chars().next() else { return Some(Rest::Same) };
    if !matches!(first, '-' | ':' | '@' | '.' | '_') {
        return None;
    }
    let mut dated = false;
    let same = rest[1..].split(['-', ':', '@', '_']).all(|word| {
        let digits = word.bytes().all(|byte| byte.is_ascii_digit());
        // A date, whole or as year, month and day; `v1` is Bedrock's revision.
        dated |= digits && word.len() >= 4;
        (digits && (dated || word.is_empty()))
            || SAME.contains(&word)
            || word.strip_prefix('v').is_some_and(|of| of.bytes().all(|byte| byte.is_ascii_digit()))
    });
    Some(if same && first != '.' { Rest::Same } else { Rest::Other })
}

/// Returns whether a Claude model of this name binds its thinking: versions from 5.1 on, and unknown versions.
///
/// `None` for models of other providers.
pub(super) fn binds_thinking(name: &str) -> Option<bool> {
    let words = name.strip_prefix("claude")?;
    let numbers: Vec<u32> = words
        .split('-')
        .filter(|word| word.len() <= 2)
        .filter_map(|word| word.parse().ok())
        .take(2)
        .collect();
    Some(match numbers[..] {
        [] => true,
        [major] => major > 5,
        [major, minor, ..] => (major, minor) >= (5, 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_model_has_one_name() {
        for written in [
            "claude-opus-4-5-20251101",
            "anthropic/claude-opus-4.5-20251101",
            "us.anthropic.claude-opus-4-5-20251101",
            "claude-opus-4-5@20251101",
            "Claude-Opus-4-5-20251101[1m]",
        ] {
            assert_eq!(normal(written), "claude-opus-4-5-20251101", "{written}");
        }
        assert_eq!(normal("openai/gpt-5.6-sol"), "gpt-5.6-sol");
    }

    #[test]
    fn a_further_version_is_another_model() {
        for (behind, expected) in [
            ("", Some(Rest::Same)),
            ("-20251101", Some(Rest::Same)),
            ("-20251101-v1:0", Some(Rest::Same)),
            ("-2025-08-07", Some(Rest::Same)),
            ("-latest", Some(Rest::Same)),
            ("-5", Some(Rest::Other)),
            (".1", Some(Rest::Other)),
            ("-mini", Some(Rest::Other)),
            ("x", None),
        ] {
            assert_eq!(rest(behind), expected, "{behind}");
        }
    }

    #[test]
    fn newer_models_bind_their_thinking() {
        for (name, expected) in [
            ("claude-opus-5", Some(false)),
            ("claude-fable-5-1", Some(true)),
            ("claude-opus-5-5-20260922", Some(true)),
            ("claude-sonnet-4-5-20250929", Some(false)),
            ("claude-3-5-haiku-20241022", Some(false)),
            ("claude-sonnet-6", Some(true)),
            ("claude-next", Some(true)),
            ("gpt-6.2-sol", None),
        ] {
            assert_eq!(binds_thinking(name), expected, "{name}");
        }
    }
}
