//! models.dev: providers, each with its models; US dollars for a million tokens.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Left, ListedBand, ListedModel, Number, Object, Taken, maker};

#[derive(Deserialize)]
struct Provider<'a> {
    #[serde(borrow)]
    models: Object<'a>,
}

#[derive(Deserialize)]
struct Model<'a> {
    #[serde(borrow, default)]
    cost: Option<&'a RawValue>,
    #[serde(default)]
    limit: Limit,
    #[serde(default)]
    modalities: Modalities,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Limit {
    context: Number,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Modalities {
    output: Option<Vec<String>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Cost {
    input: Number,
    output: Number,
    cache_read: Number,
    cache_write: Number,
    tiers: Vec<Tier>,
    /// An older copy of `tiers`, which stands there for other sizes too.
    context_over_200k: Option<Rates>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Rates {
    input: Number,
    output: Number,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Tier {
    input: Number,
    output: Number,
    #[serde(rename = "tier")]
    from: Size,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Size {
    size: Number,
}

pub(super) fn read(providers: &Object<'_>, taken: &mut Taken) {
    for (provider, raw) in providers {
        let Ok(Provider { models }) = serde_json::from_str(raw.get()) else {
            taken.leave(provider, Left::Unreadable);
            continue;
        };
        for (name, raw) in models {
            let listed_as = format!("{provider}/{name}");
            let Some(maker) = maker(provider) else {
                taken.leave(&listed_as, Left::Reseller);
                continue;
            };
            let Ok(model) = serde_json::from_str::<Model<'_>>(raw.get()) else {
                taken.leave(&listed_as, Left::Unreadable);
                continue;
            };
            let modalities = model.modalities.output;
            if modalities.is_some_and(|all| !all.iter().any(|one| one == "text")) {
                taken.leave(&listed_as, Left::NotText);
                continue;
            }
            let cost = model.cost.filter(|cost| cost.get() != "null");
            let Some(cost) = cost else {
                taken.leave(&listed_as, Left::NoPrice);
                continue;
            };
            let Ok(cost) = serde_json::from_str::<Cost>(cost.get()) else {
                taken.leave(&listed_as, Left::Unreadable);
                continue;
            };
            let (Some(input), Some(output)) = (cost.input.0, cost.output.0) else {
                taken.leave(&listed_as, Left::NoPrice);
                continue;
            };
            let model = ListedModel {
                // Some providers' names have a maker in front.
                name: name.rsplit('/').next().unwrap_or(&name).to_owned(),
                maker,
                input,
                output,
                cache_read: cost.cache_read.0,
                cache_write: cost.cache_write.0,
                cache_write_long: None,
                cache_least: None,
                window: model.limit.context.tokens(),
                bands: bands(&cost),
            };
            taken.take(&listed_as, model);
        }
    }
}

fn bands(cost: &Cost) -> Vec<ListedBand> {
    let tier = |tier: &Tier| {
        let above = u64::from(tier.from.size.tokens()?);
        Some(ListedBand { above, input: tier.input.0?, output: tier.output.0? })
    };
    let bands: Vec<ListedBand> = cost.tiers.iter().filter_map(tier).collect();
    if !bands.is_empty() {
        return bands;
    }
    let older = cost.context_over_200k.as_ref().and_then(|rates| {
        Some(ListedBand { above: 200_000, input: rates.input.0?, output: rates.output.0? })
    });
    older.into_iter().collect()
}
