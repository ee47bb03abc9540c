//! Cascades: their problems and their graph.

use plimsoll_cascade::graph::{Graph, svg};
use plimsoll_cascade::parse;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::asked::ApiRequest;
use crate::problem::ApiError;
use crate::query::body;

/// The body of both operations: the text of a cascade, JSON or YAML.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CascadeBody {
    source: String,
    #[serde(default = "usual_name")]
    name: String,
}

fn usual_name() -> String {
    "cascade.yaml".to_owned()
}

pub(crate) fn validate(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let CascadeBody { source, name } = body(&asked.body)?;
    let (cascade, problems) = parse(&source, &name);
    let is_valid = cascade.is_some();
    Ok(json!({"is_valid": is_valid, "problems": problems}))
}

pub(crate) fn graph(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let CascadeBody { source, name } = body(&asked.body)?;
    let (cascade, problems) = parse(&source, &name);
    let Some(cascade) = cascade else {
        let first = problems.first().map(ToString::to_string).unwrap_or_default();
        return Err(ApiError::Invalid(first));
    };
    let graph = Graph::of(&cascade);
    Ok(json!({"mermaid": graph.mermaid(), "svg": svg(&graph)}))
}
