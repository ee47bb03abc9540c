//! `plimsoll config`, and the page of all settings.

mod page;
mod source;

use std::collections::BTreeSet;
use std::path::Path;

use plimsoll_core::ContextBudget;
use serde_json::Value;

use crate::environment::Environment;
use source::Source;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");

/// The command that writes the page.
const WRITE: &str =
    "PLIMSOLL_WRITE_DOCS=1 cargo test -p plimsoll-cli --locked --test it settings::";

/// One of each table that the reader names: the smallest that is accepted.
const NAMED: &str = "
[models.providers.NAME]
price = { input = 1, output = 1 }
timeouts = {}
[models.spending]
unknown_model = { input = 1, output = 1 }
[gateway.upstreams.NAME]
base_url = 'http://127.0.0.1:1'
[gateway.keys.NAME]
sha256 = '0000000000000000000000000000000000000000000000000000000000000000'
[tools.commands.NAME]
command = ['true']
[tools.mcp.NAME]
command = ['true']
[[memory.frames]]
name = 'NAME'
";

fn source() -> Source {
    Source::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")))
}

/// Returns all settings with their values, by the binary itself.
fn values() -> Value {
    let environment = Environment::new();
    environment.write("plimsoll.toml", NAMED);
    let mut values = environment.json(&["config", "show", "--all"])["settings"].take();
    // It stands in the file above because a server without it or `url` is refused.
    values["tools"]["mcp"][page::NAME]["command"] = Value::Array(Vec::new());
    values
}

/// Returns the tables of `context.json`.
fn window(source: &Source) -> Vec<page::Table> {
    let defaults = serde_json::to_value(ContextBudget::default()).expect("JSON");
    page::tables(source, "ContextBudget", &defaults)
}

fn schema() -> Value {
    serde_json::from_str(&Environment::new().data(&["validate", "--schema"])).expect("JSON")
}

#[test]
fn the_page_of_settings_is_as_the_types_are() {
    let source = source();
    let tables = page::tables(&source, "Config", &values());
    let made = page::page(&source, &tables, &window(&source), &schema());
    if std::env::var_os("PLIMSOLL_WRITE_DOCS").is_some() {
        std::fs::write(PAGE, &made).expect("the page can be written");
    }
    let stands = std::fs::read_to_string(PAGE).unwrap_or_default();
    let differs = made.lines().zip(stands.lines()).find(|(made, stands)| made != stands);
    assert!(made == stands, "docs/settings.md is out of date at {differs:?}; run\n{WRITE}");
}

#[test]
fn every_setting_has_a_sentence() {
    let source = source();
    let mut missing = Vec::new();
    for table in page::tables(&source, "Config", &values()).into_iter().chain(window(&source)) {
        if table.about.is_empty() {
            missing.push(table.name.clone());
        }
        let rows = table.rows.iter().filter(|row| !row.about.ends_with('.'));
        missing.extend(rows.map(|row| row.path.join(".")));
    }
    missing.extend(source.variables.into_iter().filter(|one| one.docs.is_empty()).map(|v| v.name));
    for (name, record) in schema()["$defs"].as_object().expect("records") {
        let properties = record["properties"].as_object().into_iter().flatten();
        let bare = properties.filter(|(_, property)| page::text(property).is_empty());
        missing.extend(bare.map(|(key, _)| format!("{name}.{key}")));
    }
    assert!(missing.is_empty(), "without a sentence that ends in a stop: {missing:#?}");
}

#[test]
fn the_page_has_the_keys_that_the_binary_has() {
    fn leaves(value: &Value, path: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                map.iter().for_each(|(key, value)| leaves(value, &format!("{path}.{key}"), found));
            }
            Value::Array(list) if list.first().is_some_and(Value::is_object) => {
                leaves(&list[0], &format!("{path}.[]"), found);
            }
            _ => drop(found.insert(path.to_owned())),
        }
    }
    let values = values();
    let mut known = BTreeSet::new();
    leaves(&values, "", &mut known);
    // Without a value they are not written at all.
    known.extend([".selection.strategy", ".selection.selector_model"].map(str::to_owned));
    let tables = page::tables(&source(), "Config", &values);
    let rows = tables.iter().flat_map(|table| &table.rows);
    let shown: BTreeSet<String> = rows.map(|row| format!(".{}", row.path.join("."))).collect();
    assert_eq!(shown.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(known.difference(&shown).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(shown.len() > 200, "{} settings", shown.len());
}

#[test]
fn what_is_shown_has_its_origin() {
    let environment = Environment::new();
    environment.write_home(".config/plimsoll/plimsoll.toml", "[newest]\nbudget = 9\n");
    let shown = environment.data(&["config", "show"]);
    assert!(
        shown.contains("[newest]\nbudget = 9  # [FOLDER]/home/.config/plimsoll/plimsoll.toml:2\n")
    );

    // The project's file replaces the user's.
    environment.write("plimsoll.toml", "budget = 7\n\n[settle]\nfloor = 20_000\n");
    let shown = environment.data(&["config", "show"]);
    assert_eq!(
        shown,
        "# plimsoll.toml is in force; all other keys have their defaults\n\
         budget = 7  # plimsoll.toml:1\n\n[settle]\nfloor = 20000  # plimsoll.toml:4\n"
    );
    let ran = environment.run_with(&["config", "show"], &[("PLIMSOLL_BUDGET", "8")]);
    assert!(ran.stdout.contains("budget = 8  # PLIMSOLL_BUDGET\n"), "{}", ran.stdout);
    let shown = environment.data(&["config", "show", "--budget", "5"]);
    assert!(shown.contains("budget = 5  # --budget\n"), "{shown}");

    let json = environment.json(&["config", "show"]);
    assert_eq!(json["settings"], serde_json::json!({"budget": 7, "settle": {"floor": 20_000}}));
    assert_eq!(json["origins"]["settle.floor"]["line"], 4);
}

#[test]
fn all_settings_can_be_read_again() {
    let environment = Environment::new();
    environment.write("plimsoll.toml", NAMED);
    let all = environment.data(&["config", "show", "--all"]);
    environment.write("again.toml", &all);
    let again = ["config", "show", "--all", "--json", "--config", "again.toml"];
    let again: Value = serde_json::from_str(&environment.data(&again)).expect("JSON");
    let first = environment.json(&["config", "show", "--all"]);
    assert_eq!(again["settings"], first["settings"]);
    assert!(all.contains("\nyoung = 0\n") && all.contains("[recall]"), "{all}");
}

#[test]
fn secrets_are_not_shown() {
    let environment = Environment::new();
    environment.write(
        "plimsoll.toml",
        "[models.providers.a]\nbase_url = 'https://ann:pa55w0rd@models.example/v1'\nkey_env = 'A_KEY'\n\
         headers = { x-extra = 'hidden' }\n[gateway.keys.b]\n\
         sha256 = 'c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00'\n",
    );
    for more in [&[][..], &["--json"], &["--all"]] {
        let shown = environment.data(&[&["config", "show"], more].concat());
        assert!(!shown.contains("hidden") && !shown.contains("pa55w0rd"), "{shown}");
        assert!(shown.contains("[redacted]") && shown.contains("A_KEY"), "{shown}");
        assert!(shown.contains("c0ffee00c0ffee00"), "a digest is no secret: {shown}");
    }
}

#[test]
fn the_path_says_which_file_is_in_force() {
    let environment = Environment::new();
    let note = |arguments: &[&str], layer: &str| {
        let places = environment.json(&[&["config", "path"], arguments].concat());
        let places = places.as_array().expect("places").clone();
        let place = places.into_iter().find(|place| place["layer"] == layer).expect("the layer");
        place["note"].as_str().expect("a note").to_owned()
    };
    assert_eq!(note(&[], "project"), "does not exist");
    environment.write_home(".config/plimsoll/plimsoll.toml", "");
    assert_eq!(note(&[], "user"), "in force");
    environment.write("plimsoll.toml", "");
    assert_eq!(note(&[], "project"), "in force");
    assert!(note(&[], "user").starts_with("not read"));
    environment.write("own.toml", "");
    assert_eq!(note(&["--config", "own.toml"], "--config"), "in force");
    let ran = environment.run_with(&["config", "path"], &[("PLIMSOLL_BUDGET", "8")]);
    let budget = ran.stdout.lines().find(|line| line.contains("PLIMSOLL_BUDGET"));
    assert!(budget.is_some_and(|line| line.ends_with(" set") && !line.contains("not set")));
}

#[test]
fn every_error_of_every_file_is_told() {
    let environment = Environment::new();
    environment.write("plimsoll.toml", "nonsense = 1\n[settle]\nflor = 3\nleast = 'x'\n");
    environment.write_home(".config/plimsoll/plimsoll.toml", "[gateway]\npolicy = 'no'\n");
    environment.write_home(".config/plimsoll/pricing.toml", "broken =\n");
    environment.write("context.json", r#"{"totalToken": 1}"#);
    let ran = environment.run_with(&["config", "check"], &[("PLIMSOLL_BUDGET", "much")]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let starts = [
        "plimsoll.toml:1: unknown field `nonsense`",
        "plimsoll.toml:3: unknown field `flor`; the nearest known key is `floor`",
        "plimsoll.toml:4: invalid type",
        "[FOLDER]/home/.config/plimsoll/plimsoll.toml:2: unknown policy `no`",
        "context.json: unknown key `totalToken`, nearest known key is `totalTokens`",
        "[FOLDER]/home/.config/plimsoll/pricing.toml:1: ",
        "environment: PLIMSOLL_BUDGET is `much`",
    ];
    assert_eq!(lines.len(), starts.len(), "{lines:#?}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
    assert_eq!(ran.stderr, "note: 4 files of settings checked, 7 errors\n");

    let sound = Environment::new();
    let ran = sound.run(&["config", "check"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "0 files of settings checked, 0 errors\n"));
    let ran = sound.run(&["config", "check", "--config", "none.toml"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
}
