//! No two top-level modules of a crate need each other, by whatever way.
//!
//! Uses are found by patterns, as `scripts/structure` finds them: `crate::name`, and `super::name` where it leads to the crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use regex::Regex;

/// Which module uses which.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Lists the Rust files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the code without comments, texts and modules of tests.
fn production(text: &str) -> String {
    let literals = Regex::new(
        r##"(?s)(?:r#".*?"#|r"[^"]*"|"(?:[^"\\]|\\.)*")|'(?:[^'\\]|\\[^u]|\\u\{\w+\})'|//[^\n]*|/\*.*?\*/"##,
    );
    let bare = literals.expect("a pattern").replace_all(text, "").into_owned();
    let mut code = String::new();
    let mut lines = bare.lines();
    while let Some(line) = lines.next() {
        let attribute = line.trim_start();
        if !attribute.starts_with("#[cfg(test") && !attribute.starts_with("#[cfg(all(test") {
            code.push_str(line);
            code.push('\n');
            continue;
        }
        let end = format!("{}}}", &line[..line.len() - attribute.len()]);
        let item = lines.find(|line| !line.trim_start().starts_with("#[")).unwrap_or("");
        if !item.trim_end().ends_with(';') {
            lines.find(|line| *line == end);
        }
    }
    code
}

/// Returns whether the module above declares a file as one for tests only.
fn is_test_file(path: &Path) -> bool {
    let (Some(folder), Some(stem)) = (path.parent(), path.file_stem()) else { return false };
    let above =
        if folder.ends_with("src") { folder.join("lib.rs") } else { folder.with_extension("rs") };
    let text = std::fs::read_to_string(above).unwrap_or_default();
    let declared = format!(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))?\s+)?mod {};", stem.display());
    Regex::new(&declared).expect("a pattern").is_match(&text)
}

/// Returns the module behind each name that `lib.rs` exports: `crate::Message` is `crate::message`.
fn exports(source: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(source.join("lib.rs")).unwrap_or_default();
    let uses =
        Regex::new(r"pub(?:\(crate\))? use (?:crate::|self::)?(\w+)::([^;]+);").expect("a pattern");
    let word = Regex::new(r"\b(?:\w+ as )?([A-Za-z_]\w*)\b").expect("a pattern");
    let mut exports = BTreeMap::new();
    for found in uses.captures_iter(&text) {
        for name in word.captures_iter(&found[2]) {
            exports.insert(name[1].to_owned(), found[1].to_owned());
        }
    }
    exports
}

/// Returns the top-level modules that a file `depth` modules below the crate names.
fn targets(code: &str, depth: usize) -> BTreeSet<String> {
    let above = "super::".repeat(depth);
    let single = Regex::new(&format!(r"(^|[^:\w])(?:crate::|{above})(\w+)")).expect("a pattern");
    let group =
        Regex::new(&format!(r"(?s)\b(?:crate::|{above})\{{([^;]*?)\}};")).expect("a pattern");
    let inner = Regex::new(r"\{[^{}]*\}").expect("a pattern");
    let first = Regex::new(r"(?:^|[,{])\s*(\w+)").expect("a pattern");
    let mut found: BTreeSet<String> =
        single.captures_iter(code).map(|found| found[2].to_owned()).collect();
    for names in group.captures_iter(code) {
        let names = inner.replace_all(&names[1], "");
        found.extend(first.captures_iter(&names).map(|found| found[1].to_owned()));
    }
    found
}

fn uses(source: &Path) -> Uses {
    let mut paths = Vec::new();
    files(source, &mut paths);
    paths.retain(|path| !is_test_file(path));
    let exports = exports(source);
    let parts = |path: &Path| -> Vec<String> {
        let inside = path.strip_prefix(source).expect("a file of the crate").with_extension("");
        inside.iter().map(|part| part.to_string_lossy().into_owned()).collect()
    };
    let homes: BTreeSet<String> = paths.iter().map(|path| parts(path).remove(0)).collect();
    let mut uses = Uses::new();
    for path in &paths {
        let parts = parts(path);
        let own = &parts[0];
        if ["lib", "main", "bin"].contains(&own.as_str()) {
            continue;
        }
        let code = production(&std::fs::read_to_string(path).expect("a source"));
        for target in targets(&code, parts.len()) {
            let target = exports.get(&target).unwrap_or(&target);
            if homes.contains(target) && target != own {
                uses.entry(own.clone()).or_default().insert(target.clone());
            }
        }
    }
    uses
}

/// Returns all modules that a module needs, at first or at second hand.
fn needs<'a>(uses: &'a Uses, module: &'a str) -> BTreeSet<&'a str> {
    let mut needs = BTreeSet::new();
    let mut open = vec![module];
    while let Some(module) = open.pop() {
        open.extend(
            uses.get(module)
                .into_iter()
                .flatten()
                .filter(|next| needs.insert(next.as_str()))
                .map(String::as_str),
        );
    }
    needs
}

/// Returns groups of modules that need each other.
fn cycles(uses: &Uses) -> BTreeSet<Vec<&str>> {
    let needs: BTreeMap<&str, BTreeSet<&str>> =
        uses.keys().map(|module| (module.as_str(), needs(uses, module))).collect();
    let around = |module: &&str| -> Vec<&str> {
        let both = needs[module]
            .iter()
            .filter(|other| needs.get(*other).is_some_and(|back| back.contains(module)));
        both.copied().collect()
    };
    needs.keys().map(around).filter(|group| group.len() > 1).collect()
}

#[test]
fn modules_of_a_crate_do_not_need_each_other() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut read = BTreeMap::new();
    for entry in std::fs::read_dir(crates).expect("the crates").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let uses = uses(&entry.path().join("src"));
        read.insert(name.clone(), uses.len());
        let found = cycles(&uses);
        assert!(found.is_empty(), "cycles in {name}: {found:?}");
    }
    assert!(read["core"] > 20 && read["cli"] > 20, "modules were read: {read:?}");
}

#[test]
fn cycles_are_found_through_other_modules() {
    let code = "use crate::b::B;\n// crate::no\nlet text = \"crate::no\";\n#[cfg(test)]\nmod tests {\n    use crate::no;\n}\nuse super::c;\n";
    assert_eq!(targets(&production(code), 1).into_iter().collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(targets("use super::c;", 2).len(), 0, "it does not lead to the crate");
    assert_eq!(
        targets("use crate::{a::{X, Y}, b};", 1).into_iter().collect::<Vec<_>>(),
        ["a", "b"]
    );
    let uses = |pairs: &[(&str, &str)]| {
        let mut uses = Uses::new();
        for (from, to) in pairs {
            uses.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        uses
    };
    assert!(cycles(&uses(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    let tangled = uses(&[("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")]);
    assert_eq!(cycles(&tangled).into_iter().collect::<Vec<_>>(), [["a", "b", "c"]]);
}
