//! The document of the interface, and the operations that it names.

use std::sync::LazyLock;

use serde_json::Value;

const TEXT: &str = include_str!("../openapi.json");

/// One operation of the document.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) id: String,
    pub(crate) method: String,
    segments: Vec<String>,
    /// The names of parameters of its query.
    pub(crate) parameters: Vec<String>,
}

static OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(|| {
    let document: Value = serde_json::from_str(TEXT).unwrap_or_default();
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let in_query = parameters.filter(|parameter| parameter["in"] == "query");
            found.push(Operation {
                id: operation["operationId"].as_str().unwrap_or_default().to_owned(),
                method: method.to_ascii_uppercase(),
                segments: path.split('/').map(str::to_owned).collect(),
                parameters: in_query
                    .filter_map(|parameter| parameter["name"].as_str().map(str::to_owned))
                    .collect(),
            });
        }
    }
    found
});

/// Returns the document as it is served.
pub fn document() -> &'static str {
    TEXT
}

/// Returns the operations at a path, each with the parameters that the path gives it.
///
/// `path` is behind `/api/v1`. A literal segment goes before a parameter.
pub(crate) fn at(path: &str) -> Vec<(&'static Operation, Vec<(String, String)>)> {
    let segments: Vec<&str> = path.split('/').collect();
    let mut found: Vec<_> = OPERATIONS
        .iter()
        .filter_map(|operation| Some((operation, operation.takes(&segments)?)))
        .collect();
    let fewest = found.iter().map(|(_, parameters)| parameters.len()).min();
    found.retain(|(_, parameters)| Some(parameters.len()) == fewest);
    found
}

impl Operation {
    fn takes(&self, segments: &[&str]) -> Option<Vec<(String, String)>> {
        if self.segments.len() != segments.len() {
            return None;
        }
        let mut parameters = Vec::new();
        for (own, given) in self.segments.iter().zip(segments) {
            match own.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                Some(name) if !given.is_empty() => {
                    parameters.push((name.to_owned(), crate::query::decoded(given)?));
                }
                None if own == given => {}
                _ => return None,
            }
        }
        Some(parameters)
    }
}
