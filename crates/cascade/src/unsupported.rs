//! Keys that cascades of this kind have and that have no effect here, with the place where they stand.

/// The record, the key, and why; one table for the parser and the published schema.
const UNSUPPORTED: &[(&str, &str, &str)] = &[
    ("Cascade", "tool_caching", "results are kept by content, and tools are called each time"),
    ("Cascade", "research_db", "a database is a tool, as an MCP server"),
    ("Cascade", "triggers", "cascades are started by their caller"),
    ("Cascade", "narrator", "there is no voice"),
    ("Cascade", "sql_function", "cascades are not called from SQL"),
    ("Cascade", "internal", "cascades have no catalogue"),
    ("Cascade", "pure", "results of whole cascades are not kept"),
    ("Cascade", "manifest", "cascades have no catalogue"),
    ("Cascade", "explorer", "there is no explorer"),
    ("Cascade", "max_parallel", "phases run one after another"),
    ("Cascade", "execution", "phases run one after another"),
    ("Cascade", "metadata", "cascades have no catalogue"),
    ("Cascade", "version", "cascades have no catalogue"),
    ("Cascade", "tags", "cascades have no catalogue"),
    ("Cascade", "name", "a cascade is known by its `cascade_id`"),
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
    ("Phase", "human_input", "`ask_human` is a tool"),
    ("Phase", "hitl", "there are no screens; `ask_human` is a tool"),
    ("Phase", "hitl_title", "there are no screens"),
    ("Phase", "hitl_description", "there are no screens"),
    ("Phase", "htmx", "there are no screens; `ask_human` is a tool"),
    ("Phase", "await_input", "there are no screens"),
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
    ("Phase", "metadata", "phases have no catalogue"),
    ("Soundings", "reforge", "the winner is not refined"),
    ("Soundings", "mutate", "every attempt has the same instructions"),
    ("Soundings", "mutation_mode", "every attempt has the same instructions"),
    ("Soundings", "mutations", "every attempt has the same instructions"),
    ("Soundings", "cost_aware_evaluation", "the evaluator judges what was written"),
    ("Soundings", "pareto_frontier", "the evaluator judges what was written"),
    ("Soundings", "evaluator", "a model evaluates"),
    ("Soundings", "human_eval", "a model evaluates"),
    ("Soundings", "llm_prefilter", "a model evaluates"),
    ("Soundings", "llm_prefilter_instructions", "a model evaluates"),
    ("Soundings", "downstream_model", "tools have models of their own"),
    ("SoundingModelRules", "temperature", "sampling is the model's setting"),
    ("SoundingModelRules", "max_tokens", "sampling is the model's setting"),
    ("TokenBudget", "strategy", "the ceiling decides what is made smaller"),
    ("TokenBudget", "warning_threshold", "a run says how full its contexts were"),
    ("TokenBudget", "summarizer", "the ceiling decides what is made smaller"),
    ("Rules", "timeout", "a turn ends with the model's answer"),
    ("Rules", "timeout_seconds", "a turn ends with the model's answer"),
];

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
