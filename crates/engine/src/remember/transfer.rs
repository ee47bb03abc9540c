//! Transfer: records as lines of JSON, out of one store and into another.

use crate::error::StoreError;
use crate::id::TenantId;
use crate::memory::MemoryRecord;

/// Returns a record as a line of JSON, its vector left out: whoever reads it may have another model.
pub fn to_line(record: &MemoryRecord) -> Result<String, StoreError> {
    let mut record = record.clone();
    record.embedding = None;
    serde_json::to_string(&record).map_err(|error| StoreError::Other(Box::new(error)))
}

/// Reads a line that [`to_line`] wrote, for `tenant`, whoever it belonged to.
pub fn from_line(line: &str, tenant: &TenantId) -> Result<MemoryRecord, StoreError> {
    let mut record: MemoryRecord = serde_json::from_str(line)
        .map_err(|error| StoreError::Invalid { field: "memory", why: error.to_string() })?;
    record.tenant = tenant.clone();
    record.check()?;
    Ok(record)
}
