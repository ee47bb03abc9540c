//! Cascades: declarative phases whose context is chosen.
//!
//! A file in JSON or YAML becomes a [`Cascade`] and a list of [`Problem`]s, each with its line, column and path.

#[macro_use]
mod record;
mod checks;
mod decode;
pub mod definition;
pub mod graph;
mod json;
mod needs;
mod node;
mod parse;
mod problem;
pub mod run;
mod schema;
pub mod template;
mod unsupported;
mod yaml;

pub use definition::{Cascade, Phase};
pub use needs::{NeedKind, RunNeed};
pub use parse::parse;
pub use problem::{Kind, Place, Problem, Severity};
pub use schema::json_schema;
pub use template::{TemplateError, Values};
