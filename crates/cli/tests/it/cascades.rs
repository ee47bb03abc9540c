use crate::environment::Environment;

const GOOD: &str = "cascade_id: report
phases:
  - name: draft
    instructions: Write about {{ input.topic }}.
    tackle: [web_search]
    handoffs: [review]
  - name: review
    instructions: Review it.
    context:
      from:
        - draft
        - {phase: draft, include: [state]}
    soundings: {factor: 3}
  - name: save
    tool: store_text
    inject_from: [draft]
    sub_cascades: [child.yaml]
";

#[test]
fn problems_are_one_line_each() {
    let environment = Environment::new();
    environment.write("good.yaml", GOOD);
    environment
        .write("bad.yaml", GOOD.replace("[review]", "[reviw]").replace("soundings", "soundngs"));
    let ran = environment.run(&["validate", "good.yaml", "bad.yaml"]);
    assert_eq!(ran.code, 1);
    insta::assert_snapshot!(ran.stdout, @r"
    good.yaml: note: a run needs the tools `store_text` (missing), `web_search` (missing)
    good.yaml: note: a run needs the cascades `child.yaml` (missing)
    bad.yaml:6:16: error: phases[0].handoffs: there is no phase `reviw`; did you mean `review`?
    bad.yaml:13:5: warning: phases[1]: `soundngs` is not a key of a phase; did you mean `soundings`?
    ");
    insta::assert_snapshot!(ran.stderr, @"note: 2 cascades, 1 error and 1 warning");
}

#[test]
fn strict_makes_unknown_keys_errors() {
    let environment = Environment::new();
    environment.write("c.yaml", GOOD.replace("soundings", "soundngs"));
    let ran = environment.run(&["validate", "c.yaml"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "1 cascade, 0 errors and 1 warning\n"));
    let ran = environment.run(&["validate", "c.yaml", "--strict"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("c.yaml:13:5: error: "), "{}", ran.stdout);
}

#[test]
fn folders_are_searched_for_cascades() {
    let environment = Environment::new();
    environment.write("all/a.yaml", GOOD);
    environment.write("all/deep/b.json", "{\"cascade_id\": \"b\", \"phases\": [}");
    environment.write("all/package.json", "{\"name\": \"no cascade\"}");
    let ran = environment.run(&["validate", "all", "--json"]);
    assert_eq!(ran.code, 1);
    let found: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(found.as_array().map(Vec::len), Some(2));
    assert_eq!(found[0]["is_valid"], true);
    assert_eq!(found[1]["problems"][0]["line"], 1);
    assert_eq!(environment.run(&["validate", "nowhere.yaml"]).code, 2);
    environment.write("empty/readme.txt", "");
    assert_eq!(environment.run(&["validate", "empty"]).code, 2);
    assert_eq!(environment.run(&["validate"]).code, 2);
}

#[test]
fn the_schema_is_printed() {
    let environment = Environment::new();
    let schema = environment.data(&["validate", "--schema"]);
    assert!(schema.contains("\"$defs\""));
}

#[test]
fn graphs_are_drawn() {
    let environment = Environment::new();
    environment.write("c.yaml", GOOD);
    insta::assert_snapshot!(environment.data(&["graph", "c.yaml"]), @r##"
    ---
    title: "report"
    ---
    flowchart TD
      n0["draft<br/>web_search"]
      n1["review<br/>3 soundings"]
      n2[/"save<br/>store_text"/]
      n3[["child.yaml<br/>state in and out"]]
      n0 --> n1
      n1 --> n2
      n0 -.->|"sees images, output, state"| n1
      n0 -.->|"injects"| n2
      n2 --- n3
    "##);
    let ran = environment.run(&["graph", "c.yaml", "--out", "c.svg"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let svg = environment.read("c.svg");
    for part in [
        "<svg ",
        "draft",
        "3 soundings",
        "child.yaml",
        "prefers-color-scheme: dark",
        "is injected into",
    ] {
        assert!(svg.contains(part), "{part}");
    }
    assert_eq!(environment.run(&["graph", "c.yaml", "--out", "c.svg"]).code, 2);
    assert_eq!(environment.run(&["graph", "c.yaml", "--out", "c.svg", "--overwrite"]).code, 0);
    environment.write("bad.yaml", GOOD.replace("[review]", "[reviw]"));
    let ran = environment.run(&["graph", "bad.yaml"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("bad.yaml:6:16: error: "), "{}", ran.stderr);
}
