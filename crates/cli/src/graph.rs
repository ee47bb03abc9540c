//! `plimsoll graph`: a cascade as a picture.

use plimsoll_cascade::Severity;
use plimsoll_cascade::graph::{Graph, svg};

use crate::arguments::{GraphArguments, GraphFormat};
use crate::cascade::{line, read};
use crate::error::CommandError;
use crate::output;
use crate::write_file::{Existing, write_file};

pub(crate) fn run(arguments: &GraphArguments) -> Result<(), CommandError> {
    let (cascade, problems) = read(&arguments.file)?;
    let Some(cascade) = cascade else {
        let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
        let first = errors.map(|problem| line(&arguments.file, problem)).next().unwrap_or_default();
        let first = anstream::adapter::strip_str(&first).to_string();
        return Err(CommandError::failure(anyhow::anyhow!("{}", first.trim_end()))
            .hint("`plimsoll validate` lists every problem"));
    };
    let graph = Graph::of(&cascade);
    let by_name =
        arguments.out.as_ref().and_then(|out| out.extension()).is_some_and(|of| of == "svg");
    let format =
        arguments.format.unwrap_or(if by_name { GraphFormat::Svg } else { GraphFormat::Mermaid });
    let drawn = match format {
        GraphFormat::Mermaid => graph.mermaid(),
        GraphFormat::Svg => svg(&graph),
    };
    match &arguments.out {
        Some(out) => {
            let existing = if arguments.overwrite { Existing::Replace } else { Existing::Refuse };
            write_file(out, drawn.as_bytes(), existing)
        }
        None => output::data(&drawn),
    }
}
