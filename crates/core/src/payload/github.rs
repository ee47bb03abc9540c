//! GitHub's search, issue and pull request, as its REST API returns them.

use serde_json::Value;

use super::{ITEMS, Omissions, View, cut, day, first, text_of};

/// Returns whether `items` is a list of items with URLs of the site.
pub(super) fn is_search(value: &Value) -> bool {
    let Some(items) = value.get("items").and_then(Value::as_array) else { return false };
    let is_hit = |item: &Value| {
        text_of(item, &["html_url"]).is_some()
            && (["full_name", "repository_url", "repository"]
                .iter()
                .any(|key| item.get(key).is_some()))
    };
    match items.first() {
        Some(item) => is_hit(item),
        None => value.get("total_count").is_some() && value.get("incomplete_results").is_some(),
    }
}

pub(super) fn is_issue(value: &Value) -> bool {
    value.get("number").is_some_and(Value::is_number)
        && ["title", "state"].iter().all(|key| value.get(key).is_some_and(Value::is_string))
        && first(value, &["html_url", "url"]).is_some()
        && first(value, &["comments", "labels", "user", "assignees"]).is_some()
}

pub(super) fn is_pull_request(value: &Value) -> bool {
    let branch = |key| value.get(key).is_some_and(|branch| branch.get("ref").is_some());
    is_issue(value) && (branch("head") || branch("base"))
}

pub(super) fn search(value: &Value, left_out: &mut Omissions) -> Value {
    let items = value.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let count = value.get("total_count").and_then(Value::as_u64).unwrap_or(items.len() as u64);
    let top: Vec<Value> = items.iter().take(ITEMS).map(hit).collect();
    let more = count.max(items.len() as u64) - top.len() as u64;
    left_out.items += more;
    View::default().put("count", count).put("top", top).put("more", more).done()
}

fn hit(item: &Value) -> Value {
    let mut view = View::default();
    let url = text_of(item, &["html_url", "url"]).unwrap_or("");
    if let Some(name) = text_of(item, &["full_name"]) {
        // The four fields of `compress_github_search`.
        let stars = item.get("stargazers_count").cloned().unwrap_or(Value::from(0));
        let updated = text_of(item, &["updated", "updated_at"]).map_or("", day);
        return view
            .put("full_name", name)
            .put("url", url)
            .put("stars", stars)
            .put("updated", updated)
            .done();
    }
    let repository = item.get("repository").and_then(|of| text_of(of, &["full_name"]));
    view.put_some("full_name", repository)
        .put_some("path", text_of(item, &["path"]))
        .put_some("number", item.get("number").cloned())
        .put_some("title", text_of(item, &["title"]))
        .put_some("state", text_of(item, &["state"]))
        .put("url", url)
        .put_some("comments", item.get("comments").cloned())
        .put_day("updated", item, &["updated", "updated_at"])
        .done()
}

pub(super) fn issue(value: &Value, left_out: &mut Omissions) -> Value {
    let mut view = View::default();
    heading(value, &mut view);
    people_and_times(value, &mut view);
    view.put_some("comments", value.get("comments").cloned());
    body(value, left_out, &mut view);
    view.done()
}

pub(super) fn pull_request(value: &Value, left_out: &mut Omissions) -> Value {
    let mut view = View::default();
    heading(value, &mut view);
    view.put_some("draft", value.get("draft").cloned())
        .put_some("merged", value.get("merged").cloned())
        .put_some("mergeable", first(value, &["mergeable_state", "mergeable"]).cloned());
    for side in ["head", "base"] {
        let branch = value.get(side);
        view.put_some(side, branch.and_then(|branch| text_of(branch, &["ref"])));
        view.put_some(&format!("{side}_sha"), branch.and_then(|branch| text_of(branch, &["sha"])));
    }
    people_and_times(value, &mut view);
    view.put_some("reviewers", names(value, "requested_reviewers", "login"));
    for figure in
        ["commits", "changed_files", "additions", "deletions", "comments", "review_comments"]
    {
        view.put_some(figure, value.get(figure).filter(|figure| figure.is_number()).cloned());
    }
    view.put_day("merged_at", value, &["merged_at"]);
    body(value, left_out, &mut view);
    view.done()
}

fn heading(value: &Value, view: &mut View) {
    view.put_some("id", value.get("id").cloned())
        .put_some("number", value.get("number").cloned())
        .put_some("title", text_of(value, &["title"]))
        .put_some("url", text_of(value, &["html_url", "url"]))
        .put_some("state", text_of(value, &["state"]))
        .put_some("state_reason", text_of(value, &["state_reason"]));
}

fn people_and_times(value: &Value, view: &mut View) {
    view.put_some("author", value.get("user").and_then(|user| text_of(user, &["login"])))
        .put_some("labels", names(value, "labels", "name"))
        .put_some("assignees", names(value, "assignees", "login"))
        .put_some("milestone", value.get("milestone").and_then(|of| text_of(of, &["title"])))
        .put_day("created", value, &["created_at"])
        .put_day("updated", value, &["updated_at"])
        .put_day("closed", value, &["closed_at"]);
}

/// Returns the names of a list of objects, or of a list of names; `None` for an empty list.
fn names(value: &Value, list: &str, key: &str) -> Option<Vec<String>> {
    let items = value.get(list)?.as_array()?;
    let name = |item: &Value| item.as_str().or_else(|| text_of(item, &[key])).map(str::to_owned);
    let names: Vec<String> = items.iter().filter_map(name).collect();
    (!names.is_empty()).then_some(names)
}

fn body(value: &Value, left_out: &mut Omissions, view: &mut View) {
    view.put_some("body", text_of(value, &["body"]).map(|body| cut(body, left_out)));
}
