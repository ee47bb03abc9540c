//! Keys that cascades of this kind have and that have no effect here, with the place where they stand.

/// The record, the key, and why; one table for the parser and the published schema.
const UNSUPPORTED: &[(&str, &str, &str)] = &[
    ("Cascade", "research_db", "a database is a tool, as an MCP server"),
    ("Cascade", "triggers", "cascades are started by their caller"),
    ("Cascade", "narrator", "there is no voice"),
    ("Cascade", "pure", "results of whole cascades are not kept"),
    ("Cascade", "explorer", "there is no explorer"),
    ("Cascade", "max_parallel", "phases run one after another"),
    ("Cascade", "execution", "phases run one after another"),
    ("Phase", "manifest_context", "a manifest is chosen from the instructions"),
    ("Phase", "manifest_limit", "a manifest is chosen from the whole directory"),
    ("Phase", "manifest_refresh", "a manifest is chosen once"),
    ("Phase", "image_config", "images are made by tools"),
    ("Phase", "use_native_tools", "tools are always native"),
    ("Phase", "parallel_tools", "tools run one after another"),
    ("Phase", "rag", "retrieval is a tool"),
    ("Phase", "retry", "a tool is called once; `wards` and `on_error` take its failure"),
    ("Phase", "for_each_row", "there are no tables"),
    ("Phase", "async_cascades", "sub-cascades are waited for"),
    ("Phase", "audibles", "a running phase takes no remarks"),
    ("Phase", "decision_points", "`ask_human` is a tool"),
    ("Phase", "ui_mode", "there are no screens"),
    ("Phase", "narrator", "there is no voice"),
    ("Phase", "browser", "a browser is a tool, as an MCP server"),
    ("Phase", "use_training", "there are no examples from earlier runs"),
    ("Phase", "training_limit", "there are no examples from earlier runs"),
    ("Phase", "training_strategy", "there are no examples from earlier runs"),
    ("Phase", "training_min_confidence", "there are no examples from earlier runs"),
    ("Phase", "training_verified_only", "there are no examples from earlier runs"),
    ("Phase", "training_format", "there are no examples from earlier runs"),
    ("Phase", "temperature", "sampling is the model's setting"),
    ("Phase", "max_tokens", "sampling is the model's setting"),
    ("Soundings", "human_eval", "a terminal shows attempts one after another"),
    ("Soundings", "downstream_model", "tools have models of their own"),
    ("SoundingModelRules", "temperature", "sampling is the model's setting"),
    ("SoundingModelRules", "max_tokens", "sampling is the model's setting"),
    ("Rules", "timeout", "a turn ends with the model's answer"),
    ("Rules", "timeout_seconds", "a turn ends with the model's answer"),
];

/// Keys that change nothing in a run anywhere: names and notes for catalogues.
const HARMLESS: &[(&str, &str)] = &[
    ("Cascade", "sql_function"),
    ("Cascade", "internal"),
    ("Cascade", "manifest"),
    ("Cascade", "metadata"),
    ("Cascade", "version"),
    ("Cascade", "tags"),
    ("Cascade", "name"),
    ("Cascade", "author"),
    ("Phase", "metadata"),
    ("Phase", "description"),
    ("ToolCaching", "storage"),
    ("ToolCachePolicy", "custom_key_fn"),
];

/// Returns whether a key of a record changes nothing in a run anywhere.
pub(crate) fn is_harmless(record: &str, key: &str) -> bool {
    HARMLESS.contains(&(record, key))
}

/// Says why a key of a record has no effect; `None` where it is not known at all.
pub(crate) fn why(record: &str, key: &str) -> Option<&'static str> {
    UNSUPPORTED
        .iter()
        .find(|(place, name, _)| *place == record && *name == key)
        .map(|(_, _, why)| *why)
}

/// Lists the keys of a record that have no effect.
pub(crate) fn keys_of(record: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    UNSUPPORTED
        .iter()
        .filter(move |(place, _, _)| *place == record)
        .map(|(_, key, why)| (*key, *why))
}
