//! Finds the file that a call reads or changes, which shows whether a result was read again or is out of date.

use serde::Deserialize;

use crate::message::ToolCall;

/// The effect of a call on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    ReadsAll,
    ReadsPart,
    Changes,
}

/// The arguments that name a file in the agents' own tools.
#[derive(Debug, Default, Deserialize)]
struct Arguments {
    #[serde(
        default,
        alias = "file_path",
        alias = "filePath",
        alias = "filename",
        alias = "absolute_path",
        alias = "target_file"
    )]
    path: Option<String>,
    #[serde(default, alias = "cmd")]
    command: Option<String>,
    #[serde(default, alias = "start_line")]
    offset: Option<serde::de::IgnoredAny>,
    #[serde(default, alias = "end_line")]
    limit: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    view_range: Option<serde::de::IgnoredAny>,
}

patterns! {
    /// A command that shows one file and does nothing else.
    SHOWS r#"^\s*(?:cd [^;&|]+ && )?(?:(cat|nl|bat)(?: -[A-Za-z]+)*|sed -n ['"]?[0-9,$]+p['"]?) ["']?([^\s"';&|<>]+)["']?\s*$"#;
}

/// Returns the file that a call reads or changes, and which of both; `None` if the call does not show one.
pub(crate) fn file_access(call: &ToolCall) -> Option<(String, Access)> {
    let arguments: Arguments = serde_json::from_str(&call.arguments).ok()?;
    let name = call.name.to_ascii_lowercase();
    if let Some(path) = arguments.path {
        let is = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let command = arguments.command.as_deref().unwrap_or("");
        if is(&["write", "edit", "replace", "patch", "create"]) && command != "view" {
            return Some((path, Access::Changes));
        }
        if is(&["read", "view", "cat", "open"]) || command == "view" {
            let part = arguments.offset.is_some()
                || arguments.limit.is_some()
                || arguments.view_range.is_some();
            return Some((path, if part { Access::ReadsPart } else { Access::ReadsAll }));
        }
        return None;
    }
    let command = arguments.command?;
    let found = SHOWS.captures(&command)?;
    let access = if found.get(1).is_some() { Access::ReadsAll } else { Access::ReadsPart };
    Some((found[2].to_owned(), access))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, arguments: &str, expected: Option<(&str, Access)>) {
        let call = ToolCall { id: "1".into(), name: name.into(), arguments: arguments.into() };
        let found = file_access(&call);
        assert_eq!(
            found.as_ref().map(|(path, access)| (path.as_str(), *access)),
            expected,
            "{name}"
        );
    }

    #[test]
    fn reads_and_changes_are_known_by_tool_and_by_command() {
        check("read", r#"{"path":"a.rs"}"#, Some(("a.rs", Access::ReadsAll)));
        check("Read", r#"{"file_path":"a.rs","offset":3}"#, Some(("a.rs", Access::ReadsPart)));
        check("Edit", r#"{"file_path":"a.rs","old_string":"x"}"#, Some(("a.rs", Access::Changes)));
        check(
            "str_replace_editor",
            r#"{"command":"view","path":"a"}"#,
            Some(("a", Access::ReadsAll)),
        );
        check("bash", r#"{"command":"cat src/a.rs"}"#, Some(("src/a.rs", Access::ReadsAll)));
        check(
            "exec_command",
            r#"{"cmd":"sed -n '1,20p' a.rs"}"#,
            Some(("a.rs", Access::ReadsPart)),
        );
        check("bash", r#"{"command":"cat a b | grep c"}"#, None);
        check("bash", "not JSON", None);
    }
}
