//! Templates of cascade files: what they say with given values, in bounded time and memory.
//!
//! User text enters as values and is never a template. A template stands alone: it includes, imports and extends nothing.

mod bounded;
mod functions;
mod uses;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use minijinja::machinery::ast::Stmt;
use minijinja::machinery::{CodeGenerator, Token, eval, make_string_output, parse, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value};

use crate::problem::Place;
pub(crate) use uses::{FILTERS, Use};

/// Steps of one rendering (chosen: a loop over 10,000 values takes about half of it, and 2 ms).
const FUEL: u64 = 100_000;
/// Bytes that one rendering may make, intermediate values and output together (chosen: 16 times the largest prompt that
/// was seen; four times this stays under 16 MiB).
const ALLOWANCE: usize = 2 << 20;
/// Bytes of one template (chosen: the longest that was seen has 30 kB).
const LONGEST: usize = 256 << 10;
/// Tokens between two braces, and branches of all conditions (chosen: ten times what was seen).
const LONGEST_TAG: usize = 1_000;
const MOST_BRANCHES: usize = 200;
/// Calls inside calls.
const DEEPEST: usize = 50;

/// The reason for which a template cannot be read or rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// The line in the template, counted from 1.
    pub line: Option<usize>,
    /// The column in that line, counted from 1 in characters.
    pub column: Option<usize>,
    /// Lower case, no final stop.
    pub message: String,
    /// Whether it was stopped because it took or made too much.
    pub is_runaway: bool,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match (self.line, self.column) {
            (Some(line), Some(column)) => {
                write!(f, " (line {line}, column {column} of the template)")
            }
            (Some(line), None) => write!(f, " (line {line} of the template)"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for TemplateError {}

/// The values that templates can name: `input`, `state`, `outputs`, `lineage`, `history`, `phase` and so on.
#[derive(Debug, Clone, Default)]
pub struct Values(BTreeMap<String, Value>);

impl Values {
    /// Gives a name a value; texts in it are data, whatever they hold.
    pub fn set(&mut self, name: &str, value: &serde_json::Value) {
        self.0.insert(name.to_owned(), Value::from(minijinja::value::Serde(value)));
    }
}

/// A Jinja template and its place in the cascade's file; its syntax was checked when the cascade was read.
#[derive(Debug, Clone)]
pub struct Template {
    source: Arc<str>,
    place: Place,
}

/// Templates are equal if their texts are.
impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Template {
    pub(crate) fn new(source: &str, place: Place) -> Self {
        Self { source: source.into(), place }
    }

    /// Returns the text with its braces.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns where it stands in its file.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Renders the template; what is not defined is empty, also the parts of it.
    ///
    /// Errors: [`TemplateError`], also where it took more than 100,000 steps or made more than 2 MiB of values and output.
    pub fn render(&self, values: &Values) -> Result<String, TemplateError> {
        // Nothing to do for most texts.
        if !self.source().contains('{') {
            return Ok(self.source().to_owned());
        }
        render(self.source(), values)
    }

    /// Returns whether a condition is true: it renders to something else than nothing, `false`, `no`, `0` or `none`.
    pub fn is_true(&self, values: &Values) -> Result<bool, TemplateError> {
        let said = self.render(values)?;
        let said = said.trim();
        let is_false = ["", "false", "no", "0", "none", "null", "undefined", "[]", "{}"]
            .iter()
            .any(|word| said.eq_ignore_ascii_case(word));
        Ok(!is_false)
    }
}

/// Reads a template and lists what it asks for.
pub(crate) fn uses(source: &str) -> Result<Vec<Use>, TemplateError> {
    read(source).map(|(_, uses)| uses)
}

fn render(source: &str, values: &Values) -> Result<String, TemplateError> {
    let (tree, _) = read(source)?;
    let mut generator = CodeGenerator::new("template", source);
    generator.compile_stmt(&tree);
    let (instructions, blocks) = generator.finish();
    let instructions = bounded::bounded(&instructions);
    let allowance = Arc::new(functions::Allowance::new(ALLOWANCE));
    let environment = environment(&allowance);
    let mut text = String::new();
    let mut output = make_string_output(&mut text);
    let root =
        Value::from_pairs(values.0.iter().map(|(name, value)| (name.as_str(), value.clone())));
    eval(&environment, &instructions, root, &blocks, &mut output, AutoEscape::None)
        .map_err(|error| told(source, &error))?;
    if text.len() > ALLOWANCE {
        return Err(told(source, &functions::too_much()));
    }
    Ok(text)
}

/// Reads a template without rendering it.
fn read(source: &str) -> Result<(Stmt<'_>, Vec<Use>), TemplateError> {
    if source.len() > LONGEST {
        return Err(TemplateError {
            line: None,
            column: None,
            message: format!("the template has more than {LONGEST} bytes"),
            is_runaway: true,
        });
    }
    shallow(source)?;
    parse(source, "template", SyntaxConfig::default())
        .and_then(|tree| uses::uses(&tree).map(|uses| (tree, uses)))
        .map_err(|error| told(source, &error))
}

/// Refuses what the engine would read by recursion without a bound: chains of operators and of `elif`.
fn shallow(source: &str) -> Result<(), TemplateError> {
    let (mut tokens, mut branches) = (0, 0);
    for token in tokenize(source, false, SyntaxConfig::default()) {
        // The reader tells it better.
        let Ok((token, span)) = token else { return Ok(()) };
        match token {
            Token::VariableStart | Token::BlockStart => tokens = 0,
            Token::Ident("elif") => branches += 1,
            _ => {}
        }
        tokens += 1;
        if tokens > LONGEST_TAG || branches > MOST_BRANCHES {
            return Err(TemplateError {
                line: Some(usize::from(span.start_line)),
                column: Some(usize::from(span.start_col) + 1),
                message: "the template has too many levels".to_owned(),
                is_runaway: true,
            });
        }
    }
    Ok(())
}

fn environment<'source>(allowance: &Arc<functions::Allowance>) -> Environment<'source> {
    let mut environment = Environment::new();
    // A phase that was passed over has no output, and its parts are as empty as it is.
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(DEEPEST);
    environment.set_debug(false);
    functions::add(&mut environment, allowance);
    environment
}

/// Says an error in our words, without the name that every template has.
fn told(source: &str, error: &Error) -> TemplateError {
    let message = match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => format!("it takes more than {FUEL} steps"),
        (ErrorKind::SyntaxError, Some(detail)) => detail.to_owned(),
        (kind, None | Some("")) => kind.to_string(),
        (_, Some(detail)) => detail.to_owned(),
    };
    let column = error.range().and_then(|range| {
        let before = source.get(..range.start)?;
        let line = before.rfind('\n').map_or(0, |index| index + 1);
        Some(before.get(line..)?.chars().count() + 1)
    });
    let line =
        error.range().and_then(|range| Some(source.get(..range.start)?.matches('\n').count() + 1));
    let is_runaway = error.kind() == ErrorKind::OutOfFuel || message == functions::TOO_MUCH;
    TemplateError { line: line.or_else(|| error.line()), column, message, is_runaway }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(source: &str) -> String {
        let mut values = Values::default();
        values.set(
            "input",
            &json!({"topic": "tides", "list": [1, 2, 3], "map": {"a": 1}, "evil": "{{ 7 * 7 }}"}),
        );
        values.set("state", &json!({}));
        match render(source, &values) {
            Ok(text) if text.len() > 200 => format!("{} bytes", text.len()),
            Ok(text) => text,
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn values_are_rendered_as_real_cascades_expect() {
        for (source, expected) in [
            ("plain", "plain"),
            ("{{ input.topic }}", "tides"),
            ("{{ input.topic | upper }} {{ input.list | length }}", "TIDES 3"),
            ("{{ input.missing }}|{{ outputs.a.b.c }}|{{ state.x | default('none') }}", "||none"),
            ("{{ input.map | tojson }}", "{\"a\": 1}"),
            ("{{ input.list | join(', ') }}", "1, 2, 3"),
            (
                "{% for i in input.list %}{{ loop.index }}{{ ',' if not loop.last }}{% endfor %}",
                "1,2,3",
            ),
            ("{{ input.evil }}", "{{ 7 * 7 }}"),
            ("{{ input.topic ~ '-' ~ (2 + 3) }}", "tides-5"),
            ("{{ 'ab' * 3 }}", "ababab"),
            ("{{ input.map.items() | list }}", "[('a', 1)]"),
            ("{{ input.map.get('a') }}{{ input.topic.upper() }}", "1TIDES"),
            ("{{ 'a long text of many words' | truncate(10) }}", "a long..."),
            ("{{ 'a-b' | replace('-', '+') }}", "a+b"),
            ("{{ input.list[:2] + [9] }}", "[1, 2, 9]"),
            ("{{ '%.2f' | format(1.239) }}", "1.24"),
            (
                "{% set ns = namespace(n=0) %}{% for i in input.list %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}",
                "6",
            ),
            ("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(1) }}", "<1>"),
            ("{% raw %}{{ x }}{% endraw %}", "{{ x }}"),
            ("{% for i in [1, 2, 3] if i != 2 %}{{ i }}{% else %}none{% endfor %}", "13"),
            (
                "{% for i in [[1, [2]], 3] recursive %}{% if i is iterable %}({{ loop(i) }}){% else %}{{ i }}{% endif %}{% endfor %}",
                "(1(2))3",
            ),
            ("{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}x{% endcall %}", "[x]"),
            ("{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(*[3, 4]) }}", "1234"),
            (
                "{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}",
                "02",
            ),
            ("{% set a | upper %}x{{ 1 < 2 < 3 }}{% endset %}{{ a }}{{ 'b' if false }}", "XTRUE"),
            ("{{ '-' * 3 }}{{ 2 * 3 + 1 }}{{ [1] * 2 }}", "---7[1, 1]"),
        ] {
            assert_eq!(said(source), expected, "{source}");
        }
    }

    #[test]
    fn templates_stand_alone() {
        for source in [
            "{% include 'x' %}",
            "{% extends 'x' %}",
            "{% import 'x' as y %}",
            "{% from 'x' import y %}",
        ] {
            assert!(said(source).starts_with("error: a template stands alone"), "{source}");
        }
    }

    #[test]
    fn errors_have_their_place() {
        let error =
            render("a\nb {{ x | nosuch }}", &Values::default()).expect_err("no such filter");
        assert_eq!((error.line, error.is_runaway), (Some(2), false));
        let error = render("a\n  {{ x + }}", &Values::default()).expect_err("a syntax error");
        assert_eq!((error.line, error.column), (Some(2), Some(10)));
    }

    #[test]
    fn filters_that_are_listed_are_there_and_others_are_not() {
        let is_known =
            |name: &str| !said(&format!("{{{{ 'x' | {name} }}}}")).contains("is unknown");
        for name in FILTERS {
            assert!(is_known(name), "{name}: {}", said(&format!("{{{{ 'x' | {name} }}}}")));
        }
        assert!(!is_known("nosuch"), "{}", said("{{ 'x' | nosuch }}"));
    }

    /// Each of these makes gigabytes, or goes on for hours, where nothing is bounded.
    #[test]
    fn bombs_end_in_an_error() {
        let doubling = "{% set a = 'xxxxxxxxxx' %}".to_owned() + &"{% set a = a ~ a %}".repeat(40);
        let adding = "{% set a = 'xxxxxxxxxx' %}".to_owned() + &"{% set a = a + a %}".repeat(40);
        let captured = "{% set a = 'xxxxxxxxxx' %}".to_owned()
            + &"{% set a %}{{ a }}{{ a }}{% endset %}".repeat(40);
        let listed =
            "{% set a = [1] %}".to_owned() + &"{% set a = [a, a] %}".repeat(40) + "{{ a }}";
        let mapped = "{% set a = 1 %}".to_owned()
            + &"{% set a = {'x': a, 'y': a} %}".repeat(40)
            + "{{ a | tojson }}";
        let joined =
            "{% set a = 'xxxxxxxxxx' %}".to_owned() + &"{% set a = [a, a] | join(a) %}".repeat(40);
        let replaced = "{% set a = 'xxxxxxxxxx' %}".to_owned()
            + &"{% set a = a | replace('x', a) %}".repeat(40);
        let summed =
            "{% set a = [1] %}".to_owned() + &"{% set a = a + a %}".repeat(40) + "{{ a | length }}";
        let macros = (0..40).fold("{% macro m0() %}x{% endmacro %}".to_owned(), |text, n| {
            format!(
                "{text}{{% macro m{}() %}}{{{{ m{n}() }}}}{{{{ m{n}() }}}}{{% endmacro %}}",
                n + 1
            )
        }) + "{{ m40() }}";
        let looped = "{% set ns = namespace(a='x') %}{% for i in range(60) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}";
        let looping = format!("{{% for i in range(9999) %}}{}{{% endfor %}}", "x".repeat(9999));
        let kept = format!("{{% set a %}}{looping}{{% endset %}}{{{{ a | length }}}}");
        for bomb in [
            doubling.as_str(),
            &adding,
            &captured,
            &listed,
            &mapped,
            &joined,
            &replaced,
            &summed,
            &macros,
            looped,
            "{{ 'x' * 99999999 }}",
            "{{ ([1] * 99999999) | length }}{{ ([1] * 99999999) | list | length }}",
            &looping,
            &kept,
            "{% for i in range(99999) %}{% for j in range(99999) %}{{ i }}{% endfor %}{% endfor %}",
            "{{ 'x' | indent(99999999, true) }}",
            "{{ 'x' | indent(first=true, width=99999999) }}",
            "{% filter indent(99999999, true) %}x{% endfilter %}",
            "{% set a | indent(99999999, true) %}x{% endset %}",
            "{{ [1] | batch(*[99999999, 'x']) | list }}",
            "{{ ('x' * 9999) * 9999 }}",
            "{{ ([1] * 9999) * 9999 }}",
            "{{ '%99999999d' | format(1) }}",
            "{{ '{:>99999999}'.format(1) }}",
            "{{ [1] | batch(99999999, 'x') | list }}",
            "{{ 'x'.replace('x', 'y' * 999999).replace('y', 'z' * 999999) }}",
            "{{ ('y' * 999999).join(['a'] * 9999) }}",
            "{% macro m(n) %}{{ m(n) }}{% endmacro %}{{ m(1) }}",
            "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
            "{% set ns = namespace(a=[]) %}{% for i in range(9999) %}{% set ns.a = [ns.a] %}{% endfor %}{{ ns.a }}",
        ] {
            let said = said(bomb);
            assert!(
                said.starts_with("error: "),
                "{said} {}",
                bomb.chars().take(80).collect::<String>()
            );
        }
        // The engine computes constants when it compiles, so they are refused before that.
        assert!(super::uses("{{ ('x' * 9999) * 9999 }}").is_err_and(|error| error.is_runaway));
        let nested = "{% if true %}".repeat(5500) + &"{% endif %}".repeat(5500);
        assert!(said(&nested).starts_with("error: "));
        let parens = "{{ ".to_owned() + &"(".repeat(50_000) + " }}";
        assert!(said(&parens).starts_with("error: "));
        let chain = "{{ 1".to_owned() + &" + 1".repeat(50_000) + " }}";
        assert!(said(&chain).starts_with("error: "), "{}", said(&chain));
        let nots = "{{ ".to_owned() + &"not ".repeat(50_000) + "1 }}";
        assert!(said(&nots).starts_with("error: "), "{}", said(&nots));
        let filters = "{{ 1".to_owned() + &"|string".repeat(30_000) + " }}";
        assert!(said(&filters).starts_with("error: "));
        let branches = "{% if 0 %}".to_owned() + &"{% elif 0 %}".repeat(20_000) + "{% endif %}";
        assert!(said(&branches).starts_with("error: "));
    }
}
