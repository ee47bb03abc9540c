//! One request: its operation, its parameters, its answer.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use plimsoll_engine::TenantId;
use serde_json::Value;

use crate::asked::ApiRequest;
use crate::parts::ApiParts;
use crate::problem::ApiError;
use crate::query::Query;
use crate::runs::{self, Runs};
use crate::view::Views;
use crate::{cascades, contexts, finding, memory, openapi, sessions, site, turns};

/// The path below which the interface is.
const ROOT: &str = "/api/v1";

/// The interface over one store.
#[derive(Debug, Clone)]
pub struct StoreApi {
    shared: Arc<Shared>,
}

/// The state that all requests share.
#[derive(Debug)]
struct Shared {
    parts: ApiParts,
    views: Views,
    runs: Runs,
}

impl StoreApi {
    /// Makes the interface over these parts.
    pub fn new(parts: ApiParts) -> Self {
        Self { shared: Arc::new(Shared { parts, views: Views::default(), runs: Runs::default() }) }
    }

    /// Returns whether a path is one of the interface or of the dashboard.
    pub fn takes(path: &str) -> bool {
        Self::is_open(path) || path == ROOT || path.starts_with("/api/v1/")
    }

    /// Returns whether a path gives nothing but the program's own files.
    pub fn is_open(path: &str) -> bool {
        path == "/ui" || path.starts_with("/ui/")
    }

    /// Answers a request of a tenant.
    pub async fn answer(&self, tenant: &TenantId, request: Request<Bytes>) -> Response<Bytes> {
        let path = request.uri().path();
        if Self::is_open(path) {
            return site::file(request.method(), path)
                .unwrap_or_else(|| ApiError::NotFound(format!("file `{path}`")).response());
        }
        match self.asked(tenant, request).await {
            Ok(answer) => answer,
            Err(problem) => problem.response(),
        }
    }

    async fn asked(
        &self,
        tenant: &TenantId,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, ApiError> {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let found = openapi::at(path.strip_prefix(ROOT).unwrap_or_default());
        if found.is_empty() {
            return Err(ApiError::NotFound(format!("path `{path}`")));
        }
        let methods: BTreeSet<&str> = found.iter().map(|(one, _)| one.method.as_str()).collect();
        let allowed = methods.into_iter().collect::<Vec<_>>().join(", ");
        let Some((operation, parameters)) =
            found.into_iter().find(|(operation, _)| operation.method == head.method.as_str())
        else {
            return Err(ApiError::Method(allowed));
        };
        if head.method != Method::GET && head.method != Method::DELETE && !is_json(&head.headers) {
            return Err(ApiError::MediaType);
        }
        let query =
            Query::read(parameters, head.uri.query().unwrap_or_default(), &operation.parameters)?;
        let Shared { parts, views, runs } = &*self.shared;
        if operation.id == "openapi" {
            return Ok(written(openapi::document().into()));
        }
        let asked = ApiRequest { parts, views, runs, tenant, query, body };
        let answer = perform(&operation.id, asked).await?;
        Ok(written(answer.to_string()))
    }
}

async fn perform(operation: &str, asked: ApiRequest<'_>) -> Result<Value, ApiError> {
    match operation {
        "listSessions" => sessions::list(&asked).await,
        "getSession" => sessions::one(&asked).await,
        "listMessages" => sessions::messages(&asked).await,
        "listReceipts" => sessions::receipts(&asked).await,
        "listTurns" => turns::list(&asked).await,
        "getTurn" => turns::one(&asked).await,
        "getTurnMessage" => turns::message(&asked).await,
        "comparePolicies" => turns::what_if(&asked).await,
        "getMetrics" => sessions::metrics(&asked).await,
        "getRef" => finding::expanded(&asked).await,
        "recall" => finding::recall(&asked).await,
        "search" => finding::search(&asked).await,
        "listMemory" => memory::list(&asked).await,
        "addMemory" => memory::add(&asked).await,
        "getMemory" => memory::one(&asked).await,
        "editMemory" => memory::edit(&asked).await,
        "forgetMemory" => memory::forget(&asked).await,
        "changeMemory" => memory::change(&asked).await,
        "listFrames" => Ok(memory::frames(&asked)),
        "assemble" => contexts::assemble(&asked).await,
        "bound" => contexts::bound_messages(asked).await,
        "replay" => contexts::replayed(asked).await,
        "validateCascade" => cascades::validate(&asked),
        "graphCascade" => cascades::graph(&asked),
        "runCascade" => runs::begin(&asked).await,
        "listRuns" => runs::list(&asked),
        "getRun" => runs::one(&asked),
        "listRunEvents" => runs::events(&asked).await,
        "answerRun" => runs::answer(&asked),
        "stopRun" => runs::stop(&asked),
        _ => Err(ApiError::NotFound(format!("operation `{operation}`"))),
    }
}

/// Returns whether the body is JSON: a page of another site cannot send that without asking first.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    ["application/json", "application/x-ndjson", "application/jsonl"]
        .iter()
        .any(|known| kind.eq_ignore_ascii_case(known))
}

fn written(text: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(text));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
