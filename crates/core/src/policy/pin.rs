//! Settings of pins: messages that stay whole without being named.

use serde::{Deserialize, Serialize};

/// Settings of the messages that stay whole without being named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PinSettings {
    /// Files whose newest showing stays whole: patterns of a file's name, or with a slash of the end of its path, in which
    /// `*` stands for any characters but a slash.
    pub files: Vec<String>,
    /// Whether the newest call of a tool that writes a to-do list or a plan stays whole, with its result.
    pub to_do: bool,
}

impl PinSettings {
    /// Returns settings that pin nothing by themselves.
    pub fn none() -> Self {
        Self { files: Vec::new(), to_do: false }
    }

    /// Returns whether `path` fits one of the patterns, in whatever case it is written.
    pub(crate) fn names(&self, path: &str) -> bool {
        let path = path.replace('\\', "/").to_lowercase();
        self.files.iter().any(|pattern| {
            let pattern = pattern.to_lowercase();
            let parts = pattern.matches('/').count() + 1;
            let start = path.rmatch_indices('/').nth(parts - 1).map_or(0, |(at, _)| at + 1);
            fits(&path[start..], &pattern)
        })
    }
}

impl Default for PinSettings {
    fn default() -> Self {
        let files = [
            "AGENTS.md",
            "CLAUDE.md",
            "GEMINI.md",
            ".cursorrules",
            "copilot-instructions.md",
            "PLAN.md",
            "TODO.md",
            "*.plan.md",
            "plans/*.md",
        ];
        Self { files: files.map(str::to_owned).into(), to_do: true }
    }
}

fn fits(name: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return name == pattern };
    let Some(name) = name.strip_prefix(start) else { return false };
    let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
    let mut ends = ends.take_while(|at| !name[..*at].contains('/'));
    ends.any(|at| fits(&name[at..], rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_the_end_of_a_path() {
        let usual = PinSettings::default();
        for path in
            ["CLAUDE.md", "/a/b/agents.md", r"C:\work\GEMINI.md", "x/big.plan.md", "/p/plans/é.md"]
        {
            assert!(usual.names(path), "{path}");
        }
        for path in ["", "README.md", "CLAUDE.md.bak", "my-CLAUDE.md", "plans/a/b.md", "plans.md"] {
            assert!(!usual.names(path), "{path}");
        }
        assert!(!PinSettings::none().names("CLAUDE.md"));
    }
}
