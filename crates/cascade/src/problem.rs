//! Problems: what is wrong with a cascade, each for one place of its file.

use std::fmt;

/// A place in a file, both counted from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Place {
    pub line: u32,
    pub column: u32,
}

impl Place {
    pub(crate) const START: Self = Self { line: 1, column: 1 };
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Whether a cascade with this problem can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
}

impl Severity {
    /// Returns the word that is printed for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// The kind of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The text is no JSON or YAML.
    Syntax,
    /// A value is not of the kind that stands there.
    Shape,
    /// A key that nobody knows.
    UnknownKey,
    /// A key that is known and has no effect here.
    Unsupported,
    /// A name that cannot be used, is given twice or names nothing.
    Name,
    /// A number outside its bounds.
    Bounds,
    /// The way through the phases: handoffs, sources of context, loops.
    Flow,
    /// A JSON Schema inside the cascade.
    Schema,
    /// A template.
    Template,
    /// The value is valid, but maybe not intended.
    Style,
}

/// One thing that is wrong, with its place and what to do.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    pub severity: Severity,
    pub kind: Kind,
    #[serde(flatten)]
    pub place: Place,
    /// The way to the value from the root, such as `phases[2].context.from[0]`; empty for the root.
    pub path: String,
    /// The problem: lower case, no final stop.
    pub message: String,
    /// The advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Problem {
    /// Returns the problem as it counts under `--strict`: an unknown key is an error.
    #[must_use]
    pub fn strict(mut self) -> Self {
        if self.kind == Kind::UnknownKey {
            self.severity = Severity::Error;
        }
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: ", self.place, self.severity.as_str())?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path.replace(['\n', '\r'], " "))?;
        }
        // One line, whatever a name or a text of the file holds.
        write!(f, "{}", self.message.replace(['\n', '\r'], " "))?;
        match &self.hint {
            Some(hint) => write!(f, "; {}", hint.replace(['\n', '\r'], " ")),
            None => Ok(()),
        }
    }
}
