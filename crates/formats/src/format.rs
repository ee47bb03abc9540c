//! The formats of recorded sessions and their names.

use std::fmt;

/// A format of recorded sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SessionFormat {
    Pi,
    ClaudeCode,
    Codex,
    OpenAiChat,
    AnthropicMessages,
    SweAgent,
    MiniSweAgent,
    OpenHands,
    GeminiCli,
    OpenCode,
    CopilotCli,
    Cursor,
    Cline,
    TauBench,
}

impl SessionFormat {
    /// All formats, in the order in which they are listed.
    pub const ALL: [Self; 14] = [
        Self::Pi,
        Self::ClaudeCode,
        Self::Codex,
        Self::OpenAiChat,
        Self::AnthropicMessages,
        Self::SweAgent,
        Self::MiniSweAgent,
        Self::OpenHands,
        Self::GeminiCli,
        Self::OpenCode,
        Self::CopilotCli,
        Self::Cursor,
        Self::Cline,
        Self::TauBench,
    ];

    /// Returns the name of the format in all interfaces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pi => "pi",
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::OpenAiChat => "openai-messages",
            Self::AnthropicMessages => "anthropic-messages",
            Self::SweAgent => "swe-agent",
            Self::MiniSweAgent => "mini-swe-agent",
            Self::OpenHands => "openhands",
            Self::GeminiCli => "gemini-cli",
            Self::OpenCode => "opencode",
            Self::CopilotCli => "copilot-cli",
            Self::Cursor => "cursor",
            Self::Cline => "cline",
            Self::TauBench => "tau-bench",
        }
    }

    /// Returns whether [`crate::write`] can write it.
    pub fn is_writable(self) -> bool {
        matches!(
            self,
            Self::Pi | Self::ClaudeCode | Self::OpenAiChat | Self::AnthropicMessages | Self::Cline
        )
    }

    pub(crate) fn names() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }
}

impl fmt::Display for SessionFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
