//! The cost of a request: prices as data, and the provider's cache by its own rules.
//!
//! `prices` holds the prices of one model, `pricing` finds them in a dated table, `name` reads models' names, `piece` has a
//! request as a cache reads it, `cache` computes how much it reads from the provider's cache, writes to it and pays in full.

mod cache;
mod name;
mod piece;
mod prices;
mod pricing;
mod unlisted;

pub use cache::{Cache, Charge, MOST_MARKS};
pub use name::normal as model_name;
pub(crate) use piece::RequestPieces;
pub use piece::{Life, Piece};
pub use prices::{Band, CacheKind, Prices, WriteTier};
pub use pricing::{
    Fallback, ModelPrice, Peak, PriceEntry, PriceMatch, Pricing, PricingError, SHIPPED_PRICING, day,
};
pub use unlisted::UnlistedModels;
