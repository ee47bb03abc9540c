//! The registry of tools: definitions kept by server and name, and what changed since they were last seen.

use plimsoll_core::lazy_tools::{NoSchema, ToolDefinition};
use plimsoll_core::{MillisSinceEpoch, Tokenizer};
use serde::Serialize;
use thiserror::Error;

use crate::chat::Tool;
use crate::error::StoreError;
use crate::id::TenantId;
use crate::knowledge::{KnowledgeStore, ToolSchema};

/// A tool that is registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RegisteredTool {
    pub server: String,
    pub definition: ToolDefinition,
    /// `v1`, and one more for each change.
    pub version: String,
    pub schema_hash: String,
    pub token_count: u32,
    pub updated_at: MillisSinceEpoch,
}

/// The result of registering, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Registered {
    pub added: Vec<String>,
    /// Another description or schema than before: these have a new version.
    pub changed: Vec<String>,
    pub unchanged: Vec<String>,
}

/// Why tools were not registered.
#[derive(Debug, Error)]
pub enum RegisterError {
    /// Nothing was registered.
    #[error(transparent)]
    NoSchema(#[from] NoSchema),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Registers the tools of a server; what is there already and did not change is not written.
///
/// Tools that the server no longer has stay: a session may still know them, and calling one says that it is gone.
pub async fn register_tools(
    knowledge: &dyn KnowledgeStore,
    tenant: &TenantId,
    server: &str,
    tools: &[ToolDefinition],
    tokenizer: Tokenizer,
    now: MillisSinceEpoch,
) -> Result<Registered, RegisterError> {
    // All are read before the first is written.
    let hashed =
        tools.iter().map(|tool| Ok((tool, tool.hash()?))).collect::<Result<Vec<_>, NoSchema>>()?;
    let known = knowledge.tool_schemas(tenant).await?;
    let mut registered = Registered::default();
    for (tool, schema_hash) in hashed {
        let before =
            known.iter().find(|known| known.server_name == server && known.tool_name == tool.name);
        let (list, version) = match before {
            Some(before) if before.schema_hash == schema_hash => {
                registered.unchanged.push(tool.name.clone());
                continue;
            }
            Some(before) => (&mut registered.changed, next_version(&before.version)),
            None => (&mut registered.added, "v1".to_owned()),
        };
        let schema = ToolSchema {
            tenant: tenant.clone(),
            tool_name: tool.name.clone(),
            server_name: server.to_owned(),
            schema_json: serde_json::to_string(tool).map_err(|error| StoreError::Invalid {
                field: "schema_json",
                why: error.to_string(),
            })?,
            version,
            schema_hash,
            token_count: tool.tokens(tokenizer),
            updated_at: now,
        };
        knowledge.put_tool_schema(&schema).await?;
        list.push(tool.name.clone());
    }
    Ok(registered)
}

/// Returns the registered tools in the order of server and name.
pub async fn registered_tools(
    knowledge: &dyn KnowledgeStore,
    tenant: &TenantId,
) -> Result<Vec<RegisteredTool>, StoreError> {
    let schemas = knowledge.tool_schemas(tenant).await?;
    Ok(schemas.into_iter().map(RegisteredTool::from).collect())
}

impl From<ToolSchema> for RegisteredTool {
    fn from(schema: ToolSchema) -> Self {
        // A row that another program wrote may hold the schema alone.
        let definition =
            serde_json::from_str(&schema.schema_json).unwrap_or_else(|_| ToolDefinition {
                name: schema.tool_name.clone(),
                description: String::new(),
                schema: schema.schema_json.clone(),
            });
        Self {
            server: schema.server_name,
            definition,
            version: schema.version,
            schema_hash: schema.schema_hash,
            token_count: schema.token_count,
            updated_at: schema.updated_at,
        }
    }
}

impl From<&Tool> for ToolDefinition {
    fn from(tool: &Tool) -> Self {
        Self {
            name: tool.name.to_string(),
            description: tool.description.to_string(),
            schema: tool.schema.to_string(),
        }
    }
}

impl From<&ToolDefinition> for Tool {
    fn from(tool: &ToolDefinition) -> Self {
        Self {
            name: tool.name.as_str().into(),
            description: tool.description.as_str().into(),
            schema: tool.schema.as_str().into(),
        }
    }
}

fn next_version(version: &str) -> String {
    let number: u64 = version.trim_start_matches('v').parse().unwrap_or(0);
    format!("v{}", number.saturating_add(1))
}
