//! What `docs/models.md` shows is what works.

use plimsoll_engine::ChatModel as _;
use plimsoll_models::{ModelApi, ModelsConfig, ScriptedModel};
use serde::Deserialize;

use crate::start::ask;

const PAGE: &str = include_str!("../../../../docs/models.md");

/// Returns the page's first fenced block of a language.
fn block(language: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(&format!("```{language}\n")).expect("a block");
    rest.split_once("```").expect("its end").0
}

#[derive(Deserialize)]
struct File {
    models: ModelsConfig,
}

#[test]
fn the_settings_are_read() {
    let file: File = toml::from_str(block("toml")).expect("sound");
    let work = &file.models.providers["work"];
    assert_eq!((work.api, work.key_env.as_deref()), (Some(ModelApi::Chat), Some("WORK_KEY")));
    assert_eq!(work.timeouts.map(|timeouts| timeouts.connect_seconds), Some(5));
    assert_eq!(file.models.spending.call_dollars, Some(0.5));
    assert_eq!(file.models.embedder.dimension, Some(1536));
}

#[tokio::test]
async fn the_script_plays() {
    let (_, page) = PAGE.split_once("## Without a network").expect("the section");
    let (_, rest) = page.split_once("```\n").expect("a block");
    let model =
        ScriptedModel::parse("s", rest.split_once("```").expect("its end").0).expect("sound");
    assert_eq!(model.left(), 5);
    assert!(model.complete(&ask("the weather?")).await.is_ok());
    assert!(model.complete(&ask("rain")).await.is_ok());
}
