//! models.dev: an object of providers, each with its models; US dollars for a million tokens.

use std::collections::BTreeMap;

use super::{ListedBand, ListedModel, Maker, OmitReason, PriceListBuilder, maker, tokens};
use crate::object::Object;

pub(super) fn read(providers: &BTreeMap<&str, &str>, builder: &mut PriceListBuilder) {
    for (provider, raw) in providers {
        let models = Object::parse(raw).and_then(|provider| provider.object("models"));
        let Some(models) = models else {
            builder.omit(provider, OmitReason::Unreadable);
            continue;
        };
        for (name, raw) in models.fields() {
            let listed_as = format!("{provider}/{name}");
            let read = maker(provider).ok_or(OmitReason::Reseller);
            match read.and_then(|maker| model(name, maker, raw)) {
                Ok(model) => builder.add(&listed_as, model),
                Err(why) => builder.omit(&listed_as, why),
            }
        }
    }
}

fn model(name: &str, maker: Maker, raw: &str) -> Result<ListedModel, OmitReason> {
    let model = Object::parse(raw).ok_or(OmitReason::Unreadable)?;
    let modalities = model.object("modalities").unwrap_or_default();
    let is_text = modalities.list("output").iter().any(|output| output.get() == "\"text\"");
    if modalities.has("output") && !is_text {
        return Err(OmitReason::NotText);
    }
    if !model.has("cost") {
        return Err(OmitReason::NoPrice);
    }
    let cost = model.object("cost").ok_or(OmitReason::Unreadable)?;
    let price = |key| cost.number(key);
    Ok(ListedModel {
        // Some providers put a maker before the name.
        name: name.rsplit('/').next().unwrap_or(name).to_owned(),
        maker,
        input: price("input").ok_or(OmitReason::NoPrice)?,
        output: price("output").ok_or(OmitReason::NoPrice)?,
        cache_read: price("cache_read"),
        cache_write: price("cache_write"),
        cache_write_long: None,
        cache_least: None,
        window: model.object("limit").and_then(|limit| tokens(&limit, "context")),
        bands: bands(&cost),
    })
}

fn bands(cost: &Object<'_>) -> Vec<ListedBand> {
    let band = |above, rates: &Object<'_>| {
        Some(ListedBand { above, input: rates.number("input")?, output: rates.number("output")? })
    };
    let tiers = cost.objects("tiers");
    let sized = |tier: &Object<'_>| band(tokens(&tier.object("tier")?, "size")?.into(), tier);
    let bands: Vec<ListedBand> = tiers.iter().filter_map(sized).collect();
    if !bands.is_empty() {
        return bands;
    }
    // An older copy of `tiers`; the file has it for other sizes, too.
    let older = cost.object("context_over_200k");
    older.and_then(|rates| band(200_000, &rates)).into_iter().collect()
}
