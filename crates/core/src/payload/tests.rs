use insta::assert_snapshot;
use serde_json::json;

use super::*;

fn compressed(value: &Value) -> CompressedPayload {
    compress(&value.to_string(), Tokenizer::Estimate).expect("a payload that becomes smaller")
}

fn repository(n: u32) -> Value {
    json!({
        "id": n, "full_name": format!("owner/repo-{n}"), "html_url": format!("https://github.com/owner/repo-{n}"),
        "stargazers_count": n * 7, "updated_at": "2025-11-02T10:00:00Z",
        "description": "long ".repeat(20),
    })
}

#[test]
fn a_search_has_the_fields_of_the_specification() {
    let items: Vec<Value> = (0..12).map(repository).collect();
    let found =
        compressed(&json!({"total_count": 120, "incomplete_results": false, "items": items}));
    assert_eq!(found.kind.as_str(), "github_search");
    assert!(found.text.starts_with(
        r#"{"count":120,"top":[{"full_name":"owner/repo-0","url":"https://github.com/owner/repo-0","stars":0,"updated":"2025-11-02"},"#
    ), "{}", found.text);
    assert!(found.text.ends_with(r#"],"more":110}"#));
    assert_eq!(found.left_out.items, 110);

    let found = compressed(&json!({"items": (0..12).map(repository).collect::<Vec<_>>()}));
    assert!(found.text.starts_with(r#"{"count":12,"#) && found.text.ends_with(r#""more":2}"#));
}

#[test]
fn hits_of_code_and_issues_keep_what_names_them() {
    let code = json!({"total_count": 1, "items": [{
        "name": "a.rs", "path": "src/a.rs", "html_url": "https://github.com/o/r/blob/3fa9/src/a.rs",
        "repository": {"full_name": "o/r", "description": "x".repeat(200)},
    }]});
    assert_snapshot!(compressed(&code).text, @r#"{"count":1,"top":[{"full_name":"o/r","path":"src/a.rs","url":"https://github.com/o/r/blob/3fa9/src/a.rs"}],"more":0}"#);
}

fn issue() -> Value {
    json!({
        "id": 991, "node_id": "n".repeat(300), "number": 42, "title": "It fails", "state": "open",
        "html_url": "https://github.com/o/r/issues/42", "user": {"login": "jane", "id": 5},
        "labels": [{"name": "bug", "color": "f00"}], "assignees": [], "comments": 3,
        "created_at": "2025-11-01T00:00:00Z", "updated_at": "2025-11-02T00:00:00Z", "closed_at": null,
        "body": format!("steps\n{}\nerror: could not find `x`\n{}", "word ".repeat(80), "more ".repeat(80)),
    })
}

#[test]
fn an_issue_keeps_its_fields_and_its_error_lines() {
    let found = compressed(&issue());
    assert_eq!(found.kind, PayloadKind::GithubIssue);
    let view: Value = serde_json::from_str(&found.text).expect("JSON");
    let keys: Vec<&String> = view.as_object().expect("an object").keys().collect();
    assert_eq!(
        keys,
        [
            "id", "number", "title", "url", "state", "author", "labels", "created", "updated",
            "comments", "body", "kept"
        ]
    );
    assert_eq!(view["kept"], json!(["error: could not find `x`"]));
    assert!(view["body"].as_str().is_some_and(|body| body.ends_with("characters]")));
    assert!(found.left_out.characters > 400);
}

#[test]
fn a_pull_request_has_branches_and_figures() {
    let mut value = issue();
    for (key, field) in [
        ("head", json!({"ref": "fix", "sha": "3fa9c1d2", "repo": {"name": "r".repeat(300)}})),
        ("base", json!({"ref": "main", "sha": "aa11"})),
        ("draft", json!(false)),
        ("merged", json!(true)),
        ("merged_at", json!("2025-11-03T01:02:03Z")),
        ("additions", json!(10)),
        ("deletions", json!(2)),
        ("changed_files", json!(3)),
        ("body", json!("short")),
    ] {
        value[key] = field;
    }
    let found = compressed(&value);
    assert_eq!(found.kind, PayloadKind::GithubPullRequest);
    assert_snapshot!(found.text, @r#"{"id":991,"number":42,"title":"It fails","url":"https://github.com/o/r/issues/42","state":"open","draft":false,"merged":true,"head":"fix","head_sha":"3fa9c1d2","base":"main","base_sha":"aa11","author":"jane","labels":["bug"],"created":"2025-11-01","updated":"2025-11-02","changed_files":3,"additions":10,"deletions":2,"comments":3,"merged_at":"2025-11-03","body":"short"}"#);
}

#[test]
fn a_page_is_its_structure() {
    let text =
        |words: &str| json!({"type": "text", "plain_text": words, "text": {"content": words}});
    let page = json!({
        "object": "page", "id": "59833787-2cf9-4fdf-8782-e53db20768a5",
        "url": "https://www.notion.so/Plan-598337872cf94fdf8782e53db20768a5",
        "last_edited_time": "2025-12-18T09:00:00.000Z", "created_by": {"object": "user", "id": "u".repeat(200)},
        "properties": {"Name": {"id": "title", "type": "title", "title": [text("The "), text("plan")]}},
        "children": [{"id": "b1", "type": "paragraph", "paragraph": {"rich_text": [text("one two three")]}}],
    });
    let found = compressed(&page);
    assert_eq!(found.kind, PayloadKind::NotionPage);
    assert_snapshot!(found.text, @r#"{"title":"The plan","id":"59833787-2cf9-4fdf-8782-e53db20768a5","url":"https://www.notion.so/Plan-598337872cf94fdf8782e53db20768a5","type":"page","last_edited":"2025-12-18","word_count":3,"has_children":true}"#);
    assert_eq!(found.left_out, Omissions { items: 1, characters: 13 });
}

#[test]
fn e_mails_of_both_great_providers_are_lists() {
    let gmail = |n: u32| {
        json!({"id": format!("m{n}"), "threadId": "t1", "labelIds": ["UNREAD"], "snippet": "hello there",
            "payload": {"headers": [{"name": "From", "value": "Jane <jane@example.com>"},
                {"name": "Subject", "value": format!("news {n}")}, {"name": "Date", "value": "Thu, 18 Dec 2025"}],
                "body": {"data": "x".repeat(300)}}})
    };
    let found = compressed(
        &json!({"messages": (0..12).map(gmail).collect::<Vec<_>>(), "resultSizeEstimate": 40}),
    );
    assert_eq!(found.kind, PayloadKind::EmailList);
    assert!(found.text.starts_with(r#"{"count":40,"emails":[{"id":"m0","thread":"t1","from":"Jane <jane@example.com>","subject":"news 0","date":"Thu, 18 Dec 2025","unread":true,"preview":"hello there"},"#), "{}", found.text);
    assert!(found.text.ends_with(r#""more":30}"#));

    let graph = json!({"value": [{"id": "AA", "subject": "s", "isRead": true, "hasAttachments": false,
        "receivedDateTime": "2025-12-18T09:00:00Z", "webLink": "https://outlook.example/AA", "bodyPreview": "b",
        "from": {"emailAddress": {"name": "Jane", "address": "jane@example.com"}}, "body": {"content": "c".repeat(400)}}]});
    assert_snapshot!(compressed(&graph).text, @r#"{"count":1,"emails":[{"id":"AA","url":"https://outlook.example/AA","from":"Jane <jane@example.com>","subject":"s","date":"2025-12-18T09:00:00Z","unread":false,"attachments":false,"preview":"b"}],"more":0}"#);
}

#[test]
fn errors_are_not_compressed_and_warnings_survive() {
    let error = json!({"error": {"message": "x ".repeat(5000)}});
    assert_eq!(compress(&error.to_string(), Tokenizer::Estimate), None);
    let mut found = json!({"items": (0..14).map(repository).collect::<Vec<_>>()});
    found["warnings"] = json!(["the index is old"]);
    found["items"][13]["description"] = json!("found CVE-2024-12345 in libfoo\nfine");
    let found = compressed(&found);
    let view: Value = serde_json::from_str(&found.text).expect("JSON");
    assert_eq!(view["warnings"], json!(["the index is old"]));
    assert_eq!(view["kept"], json!(["found CVE-2024-12345 in libfoo"]));
}

#[test]
fn other_json_and_text_are_cut_where_they_are_large() {
    let small = json!({"a": [1, 2, 3]});
    assert_eq!(compress(&small.to_string(), Tokenizer::Estimate), None);
    let large = json!({"rows": (0..2000).collect::<Vec<_>>(), "log": "line one ".repeat(200)});
    let found = compressed(&large);
    assert_eq!((found.kind, found.left_out.items), (PayloadKind::Json, 1990));
    assert!(found.text.contains(r#"9,"[… 1990 items]"]"#), "{}", found.text);
    let text = "a line of the log\n".repeat(2000);
    let found = compress(&text, Tokenizer::Estimate).expect("a large text");
    assert_eq!(found.kind, PayloadKind::Text);
}

#[test]
fn a_cut_never_halves_a_url() {
    let body = format!("{}https://example.com/{} end", "w ".repeat(145), "p".repeat(40));
    let mut left_out = Omissions::default();
    let shown = cut(&body, &mut left_out);
    assert!(!shown.contains("http"), "{shown}");
    let one = "x".repeat(400);
    assert_eq!(cut(&one, &mut left_out), "[… 400 characters]");
}

proptest::proptest! {
    #[test]
    fn any_text_is_taken(new in "[\\[\\]{}:,\"a-c0-9 \n]{0,60}") {
        let _ = compress(&new, Tokenizer::Estimate);
    }
}
