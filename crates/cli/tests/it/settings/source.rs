//! Reads types of settings from the source: fields, types, doc comments and serde's attributes.
//!
//! A derive that gives the same at run time (`schemars`) would have to stand on every type of five crates; the source has it all.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A type that settings are made of.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) docs: String,
    pub(crate) body: Body,
    file: PathBuf,
}

#[derive(Debug)]
pub(crate) enum Body {
    Fields(Vec<Field>),
    /// A struct around one value, which is written as that value.
    Transparent(String),
    /// Another name for a type, without its parameters.
    Alias(String),
    /// The words of an enum.
    Words(Vec<String>),
    /// An enum that is a value or a word; in words, which values it takes.
    Told(String),
}

#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) key: String,
    pub(crate) kind: String,
    pub(crate) docs: String,
    /// Whether it may be left out.
    pub(crate) is_optional: bool,
}

/// A variable of the environment.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) docs: String,
}

#[derive(Debug, Default)]
pub(crate) struct Source {
    items: BTreeMap<String, Vec<Item>>,
    texts: BTreeMap<PathBuf, String>,
    pub(crate) variables: Vec<Variable>,
}

impl Source {
    pub(crate) fn read(crates: &Path) -> Self {
        let mut source = Self::default();
        for entry in fs::read_dir(crates).expect("the crates") {
            source.read_folder(&entry.expect("a crate").path().join("src"));
        }
        source.variables.sort_by(|a, b| a.name.cmp(&b.name));
        source
    }

    fn read_folder(&mut self, folder: &Path) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                self.read_folder(&path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source");
                self.read_file(&path, &text);
                self.texts.insert(path, text);
            }
        }
    }

    fn read_file(&mut self, file: &Path, text: &str) {
        let mut lines = text.lines();
        let (mut docs, mut attributes) = (String::new(), String::new());
        while let Some(line) = lines.next() {
            if let Some(doc) = line.strip_prefix("///") {
                docs.push_str(doc.trim());
                docs.push('\n');
            } else if line.starts_with("#[") {
                attributes.push_str(line);
                while attributes.matches('[').count() > attributes.matches(']').count() {
                    attributes.push_str(lines.next().unwrap_or("]").trim());
                }
            } else {
                if let Some(item) = item(file, text, line, &docs, &attributes, &mut lines) {
                    self.items.entry(item.name.clone()).or_default().push(item);
                }
                self.variables.extend(variable(line, &docs));
                docs.clear();
                attributes.clear();
            }
        }
    }

    /// Finds the type that a file of `from` means by `name`; none for types that are not ours.
    pub(crate) fn find(&self, name: &str, from: Option<&Item>) -> Option<&Item> {
        let all = self.items.get(name)?;
        if let [Item { body: Body::Alias(target), .. }] = &all[..] {
            return self.find(target, None);
        }
        let Some(from) = from else { return all.first() };
        let in_crate = |item: &Item, name: &str| {
            item.file.components().any(|part| part.as_os_str().to_str() == Some(name))
        };
        if let Some(item) = all.iter().find(|item| item.file == from.file) {
            return Some(item);
        }
        let text = &self.texts[&from.file];
        let used = text.split(';').map(str::trim_start).find(|statement| {
            let statement = statement.lines().last().unwrap_or("").to_owned() + statement;
            statement.contains("use ") && words(&statement).any(|word| word == name)
        })?;
        let home = used.split("use ").nth(1)?.split("::").next()?;
        let home = home.strip_prefix("plimsoll_").map_or_else(
            || {
                let parts: Vec<_> = from.file.iter().filter_map(|part| part.to_str()).collect();
                let at = parts.iter().rposition(|part| *part == "src").expect("a source folder");
                parts[at - 1].to_owned()
            },
            str::to_owned,
        );
        let found: Vec<&Item> = all.iter().filter(|item| in_crate(item, &home)).collect();
        assert!(found.len() < 2, "{name} in {} may be one of {found:?}", from.file.display());
        found.first().copied()
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

fn variable(line: &str, docs: &str) -> Option<Variable> {
    let (head, value) = line.split_once(": &str = \"")?;
    let name = value.strip_suffix("\";")?;
    let docs = docs.split_once("`: ").map_or(docs, |(_, docs)| docs);
    let is_one = head.contains("const ") && name.starts_with("PLIMSOLL_");
    is_one.then(|| Variable { name: name.to_owned(), docs: sentence(docs) })
}

fn item<'a>(
    file: &Path,
    text: &str,
    line: &str,
    docs: &str,
    attributes: &str,
    lines: &mut impl Iterator<Item = &'a str>,
) -> Option<Item> {
    let head = line.split_once(") ").filter(|_| line.starts_with("pub(")).map_or(line, |(_, b)| b);
    let head = head.strip_prefix("pub ").unwrap_or(head);
    let (word, rest) = head.split_once(' ')?;
    let name = words(rest).next()?.to_owned();
    let value_or_word = format!("for {name} {{\n    type Error = String;");
    if word == "type" {
        let target = rest.split_once("= ")?.1.split('<').next()?;
        return Some(Item::of(name, docs, Body::Alias(target.to_owned()), file));
    }
    if !attributes.contains("erialize") {
        return None;
    }
    // A type that another one reads (`try_from`), or that is not read by itself, has its defaults there.
    let has_default = !attributes.contains("Deserialize")
        || serde_words(attributes).iter().any(|word| word == "default" || word == "try_from");
    let case = serde_argument(attributes, "rename_all").unwrap_or_default();
    let body = match word {
        "struct" if rest.ends_with('{') => Body::Fields(fields(lines, has_default, &case)),
        "struct" if attributes.contains("transparent") => {
            let inner = rest.split_once('(')?.1.trim_end_matches(");");
            Body::Transparent(inner.rsplit(' ').next()?.to_owned())
        }
        "enum" if text.contains(&value_or_word) => {
            let call = text.split(&value_or_word).nth(1)?.split("value_unless(\"").nth(1)?;
            let (word, values) = (call.split('"').next()?, call.split("` is ").nth(1)?);
            Body::Told(format!("{} or \"{word}\"", values.split('"').next()?))
        }
        "enum" => {
            let found = lines.take_while(|line| *line != "}").filter_map(|line| {
                let name = line.strip_prefix("    ")?;
                name.starts_with(char::is_uppercase).then(|| cased(words(name).next()?, &case))?
            });
            Body::Words(found.collect())
        }
        _ => return None,
    };
    Some(Item::of(name, docs, body, file))
}

impl Item {
    fn of(name: String, docs: &str, body: Body, file: &Path) -> Self {
        Self { name, docs: sentence(docs), body, file: file.to_owned() }
    }
}

fn fields<'a>(
    lines: &mut impl Iterator<Item = &'a str>,
    has_default: bool,
    case: &str,
) -> Vec<Field> {
    let mut fields = Vec::new();
    let (mut docs, mut attributes) = (String::new(), String::new());
    for line in lines.take_while(|line| *line != "}").map(str::trim) {
        if let Some(doc) = line.strip_prefix("///") {
            docs.push_str(doc.trim());
            docs.push('\n');
        } else if line.starts_with('#') {
            attributes.push_str(line);
        } else if let Some((name, kind)) = line.split_once(": ") {
            let name = name.rsplit(' ').next().unwrap_or(name);
            let kind = kind.trim_end_matches(',').to_owned();
            let is_optional = has_default
                || kind.starts_with("Option<")
                || serde_words(&attributes).iter().any(|word| word == "default");
            let key = serde_argument(&attributes, "rename").unwrap_or_else(|| match case {
                "camelCase" => camel(name),
                _ => name.to_owned(),
            });
            if !serde_words(&attributes).iter().any(|word| word == "skip") {
                fields.push(Field { key, kind, docs: sentence(&docs), is_optional });
            }
            docs.clear();
            attributes.clear();
        }
    }
    fields
}

fn serde_words(attributes: &str) -> Vec<String> {
    let inside = attributes.split("#[serde(").skip(1).filter_map(|part| part.split(")]").next());
    inside.flat_map(words).map(str::to_owned).collect()
}

fn serde_argument(attributes: &str, name: &str) -> Option<String> {
    let value = attributes.split(&format!("{name} = \"")).nth(1)?;
    value.split('"').next().map(str::to_owned)
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |key, part| key + &part[..1].to_uppercase() + &part[1..])
}

fn cased(variant: &str, case: &str) -> Option<String> {
    let separator = match case {
        "lowercase" => "",
        "snake_case" => "_",
        "kebab-case" => "-",
        _ => return None,
    };
    let mut word = String::new();
    for c in variant.chars() {
        if c.is_uppercase() && !word.is_empty() {
            word.push_str(separator);
        }
        word.extend(c.to_lowercase());
    }
    Some(word)
}

/// Returns the first sentence of a doc comment, without links into the source.
fn sentence(docs: &str) -> String {
    let first = docs.split("\n\n").next().unwrap_or("").replace('\n', " ");
    let plain = first.replace("[`", "`").replace("`]", "`");
    let ends = plain.match_indices(". ").map(|(at, _)| at);
    let mut ends = ends.filter(|at| plain[at + 2..].starts_with(|c: char| !c.is_lowercase()));
    let end = ends.next().map_or(plain.len(), |at| at + 1);
    plain[..end].trim().to_owned()
}
