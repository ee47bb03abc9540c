//! A request whose operation and parameters are known.

use bytes::Bytes;
use plimsoll_engine::TenantId;

use crate::parts::ApiParts;
use crate::query::Query;
use crate::runs::Runs;
use crate::view::Views;

/// A request whose operation and parameters are known.
#[derive(Debug)]
pub(crate) struct ApiRequest<'a> {
    pub(crate) parts: &'a ApiParts,
    pub(crate) views: &'a Views,
    pub(crate) runs: &'a Runs,
    pub(crate) tenant: &'a TenantId,
    pub(crate) query: Query,
    pub(crate) body: Bytes,
}
