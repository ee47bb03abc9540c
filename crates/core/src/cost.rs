//! The cost of a request: prices as data, and the provider's cache by its own rules.
//!
//! `prices` holds the prices of one model, `pricing` finds them in a dated table, `name` reads models' names, `cache` computes
//! how much a request reads from the provider's cache, writes to it and pays in full.

mod cache;
mod name;
mod prices;
mod pricing;
mod unlisted;

pub(crate) use cache::RequestPieces;
pub use cache::{Cache, Charge, Life, MOST_MARKS, Piece};
pub use name::normal as model_name;
pub use prices::{Band, CacheKind, Prices, WriteTier};
pub use pricing::{
    Fallback, ModelPrice, Peak, PriceEntry, PriceMatch, Pricing, PricingError, SHIPPED_PRICING, day,
};
pub use unlisted::UnlistedModels;
