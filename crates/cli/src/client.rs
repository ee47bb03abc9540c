//! Clients: the variables, arguments and files that point each at the gateway.

use clap::ValueEnum;

/// A supported agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// pi
    Pi,
    /// opencode
    Opencode,
    /// Gemini CLI
    Gemini,
    /// Qwen Code
    Qwen,
    /// Programs with the OpenAI SDK
    Openai,
    /// Programs with the Anthropic SDK
    Anthropic,
}

impl Client {
    /// The agents; an SDK has no program of its own.
    pub(crate) const ALL: [Self; 6] =
        [Self::Claude, Self::Codex, Self::Pi, Self::Opencode, Self::Gemini, Self::Qwen];

    /// Returns the name of its program.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Pi => "pi",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
        }
    }

    /// Recognises a program by its name or path.
    pub(crate) fn of(program: &str) -> Option<Self> {
        let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
        let name = name.split('.').next().unwrap_or(name);
        Self::ALL.into_iter().find(|client| client.program() == name)
    }

    /// Returns the name of the upstream that it uses, where it uses one only.
    pub(crate) fn upstream(self) -> Option<&'static str> {
        match self {
            Self::Claude | Self::Anthropic => Some("anthropic"),
            Self::Codex | Self::Qwen | Self::Openai => Some("openai"),
            Self::Gemini => Some("gemini"),
            Self::Pi | Self::Opencode => None,
        }
    }

    /// Returns the environment variables that point it at a gateway.
    pub(crate) fn variables(self, base: &str) -> Vec<(&'static str, String)> {
        match self {
            Self::Claude | Self::Anthropic => vec![("ANTHROPIC_BASE_URL", base.to_owned())],
            Self::Openai => vec![
                ("OPENAI_BASE_URL", format!("{base}/v1")),
                ("OPENAI_API_BASE", format!("{base}/v1")),
            ],
            Self::Codex | Self::Qwen => vec![("OPENAI_BASE_URL", format!("{base}/v1"))],
            Self::Gemini => vec![("GOOGLE_GEMINI_BASE_URL", base.to_owned())],
            Self::Opencode => vec![("OPENCODE_CONFIG_CONTENT", opencode(base))],
            Self::Pi => Vec::new(),
        }
    }

    /// Returns the arguments that must follow the program's name.
    pub(crate) fn arguments(self, base: &str) -> Vec<String> {
        match self {
            // Its own provider no longer reads the variable.
            Self::Codex => vec!["-c".to_owned(), format!("openai_base_url=\"{base}/v1\"")],
            _ => Vec::new(),
        }
    }

    /// Returns the name and the content of a file that it needs.
    pub(crate) fn file(self, base: &str) -> Option<(&'static str, String)> {
        (self == Self::Pi).then(|| {
            let text = format!(
                r#"{{"providers":{{"anthropic":{{"baseUrl":"{base}"}},"openai":{{"baseUrl":"{base}/v1"}},"google":{{"baseUrl":"{base}/v1beta"}}}}}}"#
            );
            ("~/.pi/agent/models.json", text)
        })
    }
}

/// Returns the variables that point programs with the providers' own libraries at a gateway.
pub(crate) fn usual_variables(base: &str) -> Vec<(&'static str, String)> {
    vec![
        ("ANTHROPIC_BASE_URL", base.to_owned()),
        ("OPENAI_BASE_URL", format!("{base}/v1")),
        ("OPENAI_API_BASE", format!("{base}/v1")),
        ("GOOGLE_GEMINI_BASE_URL", base.to_owned()),
    ]
}

fn opencode(base: &str) -> String {
    format!(
        r#"{{"provider":{{"anthropic":{{"options":{{"baseURL":"{base}/v1"}}}},"openai":{{"options":{{"baseURL":"{base}/v1"}}}},"google":{{"options":{{"baseURL":"{base}/v1beta"}}}}}}}}"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_recognised_by_their_names() {
        assert_eq!(Client::of("/usr/local/bin/claude"), Some(Client::Claude));
        assert_eq!(Client::of("codex.exe"), Some(Client::Codex));
        assert_eq!(Client::of("python"), None);
    }

    #[test]
    fn what_is_written_for_files_is_json() {
        for text in [opencode("http://a"), Client::Pi.file("http://a").expect("a file").1] {
            serde_json::from_str::<serde_json::Value>(&text).expect("JSON");
        }
    }
}
