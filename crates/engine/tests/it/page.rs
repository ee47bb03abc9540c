//! Results of tools as artefacts.

use plimsoll_core::{MillisSinceEpoch, Tokenizer};
use plimsoll_engine::page::artefact_of;
use plimsoll_testkit::sample::{session, tenant};

#[test]
fn a_page_is_an_artefact_with_its_kind_view_and_source() {
    let text = serde_json::json!({
        "id": 901, "number": 1, "title": "It fails", "state": "open", "comments": 0,
        "html_url": "https://github.com/o/r/issues/1", "node_id": "n".repeat(300),
    });
    let (tenant, session, now) = (tenant("t"), session("s"), MillisSinceEpoch(1));
    let text = text.to_string();
    let artefact = artefact_of(&tenant, Some(&session), &text, Tokenizer::Estimate, now);
    assert_eq!(artefact.reference.kind.0, "github_issue");
    assert!(artefact.compressed.is_some_and(|view| view.contains("\"number\":1")));
    assert!(artefact.source_meta.is_some_and(|source| source.contains("issues/1")));
}
