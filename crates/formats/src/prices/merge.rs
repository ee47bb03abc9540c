//! Merges a price list into a table: new models and new prices become entries; figures that no list has stay.

use plimsoll_core::cost::{Band, CacheKind, PriceEntry, Prices, Pricing, WriteTier, model_name};

use super::{ListedModel, Maker, PriceList};

/// The relative difference up to which two figures are the same, because lists round (chosen).
const NEAR: f64 = 0.002;
/// The most bands of a model in a table.
const MOST_STEPS: usize = 2;

/// The changes that a price list makes to a table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PriceChanges {
    /// All entries of the models that change, including those of other days.
    pub entries: Vec<PriceEntry>,
    /// Names that the table did not list.
    pub new: Vec<String>,
    /// Names that it listed with other figures.
    pub changed: Vec<String>,
    /// The number of models with the prices of the table.
    pub alike: usize,
}

/// Returns the changes that `list` makes to `table`. A model of the table gets the list's prices from `today` on,
/// `YYYY-MM-DD`; earlier prices and announced ones stay.
///
/// A list does not describe the cache. Its kind, lifetimes and least length, and whether thinking is bound, come from the
/// table's entry of that name, else from the maker's newest models.
pub fn merge(list: &PriceList, table: &Pricing, today: &str) -> PriceChanges {
    let mut merged = PriceChanges::default();
    for model in &list.models {
        let name = model_name(&model.name);
        let known = table.known(&name, None).map(|priced| priced.name.to_owned());
        let of_name = |entry: &&PriceEntry| Some(&entry.name) == known.as_ref();
        let holds = |entry: &&PriceEntry| entry.from.as_deref().is_none_or(|from| from <= today);
        let like = table.model.iter().filter(of_name).filter(holds).max_by_key(|one| &one.from);
        let entry = entry(model, &name, like);
        if like.is_some_and(|like| alike(like, &entry)) {
            merged.alike += 1;
            continue;
        }
        // A dated name has an entry of its own where its price differs from that of its model.
        let others: Vec<&PriceEntry> = table.model.iter().filter(|one| one.name == name).collect();
        if others.is_empty() {
            merged.new.push(name);
            merged.entries.push(entry);
            continue;
        }
        merged.changed.push(name);
        let others = others.into_iter().filter(|other| other.from.as_deref() != Some(today));
        merged.entries.extend(others.cloned());
        merged.entries.push(PriceEntry { from: Some(today.to_owned()), ..entry });
    }
    merged
}

fn entry(model: &ListedModel, name: &str, like: Option<&PriceEntry>) -> PriceEntry {
    let cache = like.map_or_else(|| kind(model.maker, name), |like| like.cache);
    let times = |price: f64| rounded(price / model.input);
    let listed = model.bands.iter().take(MOST_STEPS).map(|band| Band {
        above: band.above,
        input: times(band.input),
        output: if model.output > 0.0 { rounded(band.output / model.output) } else { 1.0 },
    });
    let mut bands: Vec<Band> = listed.collect();
    if bands.is_empty() {
        bands = like.map(|like| like.bands.clone()).unwrap_or_default();
    }
    let usual = like.map_or_else(|| writes(cache), |like| like.cache_writes.clone());
    let prices = [model.cache_write, model.cache_write_long].into_iter();
    let cache_writes = usual
        .into_iter()
        .zip(prices)
        .map(|(tier, price)| WriteTier { price: price.map_or(tier.price, times), ..tier });
    PriceEntry {
        name: name.to_owned(),
        from: None,
        input: model.input,
        output: model.output,
        cache,
        cache_read: model
            .cache_read
            .map_or_else(|| like.map_or(1.0, |like| like.cache_read), times),
        cache_writes: cache_writes.collect(),
        cache_least: like.map(|like| like.cache_least).or(model.cache_least).unwrap_or(1024),
        cache_step: like.map_or(Prices::PLAIN.cache_step, |like| like.cache_step),
        cache_hits: like.map_or(1.0, |like| like.cache_hits),
        window: like.and_then(|like| like.window).or(model.window),
        bands,
        bound_thinking: like.and_then(|like| like.bound_thinking),
        peak: like.and_then(|like| like.peak.clone()),
    }
}

fn kind(maker: Maker, name: &str) -> CacheKind {
    match maker {
        Maker::Anthropic => CacheKind::Marks,
        Maker::OpenAi if since_5_6(name) => CacheKind::Ends,
        Maker::OpenAi | Maker::Other => CacheKind::Steps,
    }
}

/// Returns whether a model of OpenAI caches up to the ends of requests, as all do since GPT-5.6.
fn since_5_6(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("gpt-") else { return false };
    let version = rest.split('-').next().unwrap_or(rest);
    let mut numbers = version.split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), minor) => (major, minor.and_then(Result::ok).unwrap_or(0)) >= (5, 6),
        _ => false,
    }
}

/// Returns the lifetimes of a cache and the price of a write, from the providers' pages on prompt caching.
fn writes(cache: CacheKind) -> Vec<WriteTier> {
    let tier = |(seconds, price)| WriteTier { seconds, price };
    match cache {
        CacheKind::Marks => [(300, 1.25), (3600, 2.0)].map(tier).to_vec(),
        CacheKind::Ends => vec![tier((1800, 1.25))],
        CacheKind::Steps => vec![tier((300, 1.0))],
    }
}

fn alike(one: &PriceEntry, other: &PriceEntry) -> bool {
    let near = |one: f64, other: f64| (one - other).abs() <= NEAR * one.abs().max(other.abs());
    let bands = |one: &Band, other: &Band| {
        one.above == other.above && near(one.input, other.input) && near(one.output, other.output)
    };
    near(one.input, other.input)
        && near(one.output, other.output)
        && near(one.cache_read, other.cache_read)
        && one.cache_writes.len() == other.cache_writes.len()
        && one.cache_writes.iter().zip(&other.cache_writes).all(|(a, b)| near(a.price, b.price))
        && one.bands.len() == other.bands.len()
        && one.bands.iter().zip(&other.bands).all(|(a, b)| bands(a, b))
}

/// Removes the rounding error of a division.
fn rounded(ratio: f64) -> f64 {
    (ratio * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::PriceSource;
    use super::*;

    fn listed(name: &str, maker: Maker, input: f64) -> ListedModel {
        ListedModel {
            name: name.to_owned(),
            maker,
            input,
            output: 5.0 * input,
            cache_read: Some(0.1 * input),
            cache_write: None,
            cache_write_long: None,
            cache_least: None,
            window: Some(64_000),
            bands: Vec::new(),
        }
    }

    fn of(models: Vec<ListedModel>) -> PriceChanges {
        let list =
            PriceList { source: PriceSource::ModelsDev, models, omitted: BTreeMap::default() };
        merge(&list, &Pricing::shipped(), "2026-11-22")
    }

    #[test]
    fn what_costs_the_same_changes_nothing() {
        let mut opus = listed("claude-opus-4-5-20251101", Maker::Anthropic, 5.0);
        assert_eq!(of(vec![opus.clone()]).alike, 1, "a dated name is the model that it belongs to");
        opus.cache_read = None;
        assert_eq!(of(vec![opus]), PriceChanges { alike: 1, ..PriceChanges::default() });
    }

    #[test]
    fn another_price_holds_from_today_on_and_keeps_what_no_list_says() {
        let merged = of(vec![listed("claude-fable-5-2", Maker::Anthropic, 16.0)]);
        assert_eq!(merged.changed, ["claude-fable-5-2"]);
        let [before, now] = &merged.entries[..] else { panic!("two entries") };
        assert_eq!((before.input, before.from.as_deref()), (8.0, None));
        assert_eq!((now.input, now.from.as_deref()), (16.0, Some("2026-11-22")));
        assert_eq!(
            (now.cache, now.cache_least, now.window),
            (CacheKind::Marks, 512, before.window)
        );
        assert_eq!(now.cache_writes, before.cache_writes);
    }

    #[test]
    fn announced_prices_stay() {
        let merged = of(vec![listed("gemini-4-argon", Maker::Other, 3.0)]);
        let days: Vec<_> = merged.entries.iter().map(|entry| entry.from.as_deref()).collect();
        assert_eq!(days, [None, Some("2026-12-01"), Some("2026-11-22")]);
    }

    #[test]
    fn a_new_model_caches_as_its_maker_does() {
        for (name, maker, cache, lives) in [
            ("claude-novel-7", Maker::Anthropic, CacheKind::Marks, 2),
            ("gpt-7-sol", Maker::OpenAi, CacheKind::Ends, 1),
            ("gpt-5.5-nova", Maker::OpenAi, CacheKind::Steps, 1),
            ("o9", Maker::OpenAi, CacheKind::Steps, 1),
            ("glorious-1", Maker::Other, CacheKind::Steps, 1),
        ] {
            let merged = of(vec![listed(name, maker, 1.0)]);
            assert_eq!(merged.new, [name]);
            let entry = &merged.entries[0];
            assert_eq!((entry.cache, entry.cache_writes.len()), (cache, lives), "{name}");
            assert_eq!((entry.window, entry.bound_thinking), (Some(64_000), None));
        }
    }
}
