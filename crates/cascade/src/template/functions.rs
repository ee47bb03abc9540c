//! What templates can call, each within the allowance of the rendering.

mod more;

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Output, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

/// Names that no template can write, since they hold a space.
pub(super) const CONCAT: &str = "the concat";
pub(super) const ADD: &str = "the add";
pub(super) const MULTIPLY: &str = "the multiply";
pub(super) const PAID: &str = "the paid";
pub(super) const PLAIN: &str = "the plain";

pub(super) const TOO_MUCH: &str = "it makes more than 2 MiB of values and output";

/// The cost of a value beside its text: the engine's own size of one.
const VALUE: usize = 24;
/// Levels of a value: what is deeper could not be dropped without recursion as deep.
const DEEPEST: usize = 64;
/// The largest number that may set how much a filter makes.
const LARGEST: i64 = 10_000;

/// Bytes that a rendering may still make.
#[derive(Debug)]
pub(super) struct Allowance(AtomicUsize);

impl Allowance {
    pub(super) fn new(bytes: usize) -> Self {
        Self(AtomicUsize::new(bytes))
    }

    fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn pay(&self, bytes: usize) -> Result<(), Error> {
        let left = self.left().checked_sub(bytes).ok_or_else(too_much)?;
        self.0.store(left, Ordering::Relaxed);
        Ok(())
    }

    /// Pays for a value with all that is in it.
    fn pay_for(&self, value: &Value) -> Result<(), Error> {
        let mut left = self.left();
        measure(value, &mut left, 0)?;
        self.0.store(left, Ordering::Relaxed);
        Ok(())
    }

    /// Prints a value, at most as long as the allowance; what is printed is not yet paid.
    pub(super) fn print(&self, value: &Value) -> Result<String, Error> {
        let mut text = BoundedText { text: String::new(), left: self.left() };
        match (write!(text, "{value}"), text.left) {
            (Ok(()), _) => Ok(text.text),
            _ => Err(too_much()),
        }
    }
}

struct BoundedText {
    text: String,
    left: usize,
}

impl std::fmt::Write for BoundedText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.left = self.left.checked_sub(text.len()).ok_or(std::fmt::Error)?;
        self.text.push_str(text);
        Ok(())
    }
}

pub(super) fn too_much() -> Error {
    Error::new(ErrorKind::InvalidOperation, TOO_MUCH)
}

/// Returns the bytes of a text, or those of a list without what its items hold.
pub(super) fn size_of(value: &Value) -> usize {
    value.as_str().map_or_else(|| value.len().unwrap_or(1).saturating_mul(VALUE), str::len)
}

fn measure(value: &Value, left: &mut usize, depth: usize) -> Result<(), Error> {
    if depth > DEEPEST {
        return Err(Error::new(ErrorKind::InvalidOperation, "a value has too many levels"));
    }
    let own = VALUE + value.as_str().map_or(0, str::len);
    *left = left.checked_sub(own).ok_or_else(too_much)?;
    match value.kind() {
        ValueKind::Seq => {
            for item in value.try_iter()? {
                measure(&item, left, depth + 1)?;
            }
        }
        // The keys are the names of the values, which are looked up again for what they hold.
        ValueKind::Map => {
            for key in value.try_iter()? {
                measure(&key, left, depth + 1)?;
                measure(&value.get_item(&key)?, left, depth + 1)?;
            }
        }
        // It may be made anew each time, or only once: its length is enough.
        ValueKind::Iterable => {
            let length = value.len().unwrap_or(0).saturating_mul(VALUE);
            *left = left.checked_sub(length).ok_or_else(too_much)?;
        }
        _ => {}
    }
    Ok(())
}

pub(super) fn add(environment: &mut Environment<'_>, allowance: &Arc<Allowance>) {
    operators(environment, allowance);
    // That function shows everything there is.
    environment.remove_global("debug");
    environment.remove_filter("pprint");
    let paid = allowance.clone();
    environment.set_formatter(move |out: &mut Output, _: &mut State, value: &Value| {
        if value.is_undefined() {
            return Ok(());
        }
        if let Some(text) = value.as_str() {
            paid.pay(text.len())?;
            return out.write_str(text).map_err(Error::from);
        }
        let text = paid.print(value)?;
        paid.pay(text.len())?;
        out.write_str(&text).map_err(Error::from)
    });
    let paid = allowance.clone();
    environment.add_filter(
        "join",
        move |value: &Value,
              separator: Option<String>,
              attribute: Option<String>,
              kwargs: Kwargs| {
            let separator = separator.or_else(|| kwargs.get("d").ok()).unwrap_or_default();
            let attribute = attribute.or_else(|| kwargs.get("attribute").ok());
            kwargs.assert_all_used()?;
            join(&paid, value, &separator, attribute.as_deref())
        },
    );
    let paid = allowance.clone();
    environment.add_filter("replace", move |text: &Value, from: &Value, to: &Value| {
        replace(&paid, &paid.print(text)?, &paid.print(from)?, &paid.print(to)?)
    });
    // The engine's own, behind a look at the widths that the text asks for.
    environment.add_filter("the format", minijinja::filters::format);
    environment.add_filter("format", |state: &mut State, args: Rest<Value>| {
        widths(args.first().and_then(Value::as_str).unwrap_or_default())?;
        state.apply_filter("the format", &args)
    });
    // These make as much as a number among their arguments says.
    environment.add_filter("the batch", minijinja::filters::batch);
    environment.add_filter("the slice", minijinja::filters::slice);
    environment.add_filter("the indent", minijinja::filters::indent);
    environment.add_filter("the tojson", minijinja::filters::tojson);
    for (name, engine) in [
        ("batch", "the batch"),
        ("slice", "the slice"),
        ("indent", "the indent"),
        ("tojson", "the tojson"),
    ] {
        environment.add_filter(name, move |state: &mut State, args: Rest<Value>| {
            args.iter().skip(1).try_for_each(small)?;
            state.apply_filter(engine, &args)
        });
    }
    environment.add_filter("truncate", truncate);
    environment.add_filter("wordcount", |text: &Value| {
        text.as_str().map_or(0, |text| text.split_whitespace().count())
    });
    environment.add_filter("int", int);
    more::add(environment, allowance);
    environment.add_filter("fromjson", |text: &Value| parsed(text));
    environment.add_filter("from_json", |text: &Value| parsed(text));
    methods(environment, allowance);
}

/// Reads a whole number out of a value as Jinja does: what is none is the default.
#[expect(clippy::needless_pass_by_value, reason = "the engine hands it over")]
fn int(
    value: &Value,
    default: Option<i64>,
    base: Option<u32>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let default = default.or_else(|| kwargs.get("default").ok()).unwrap_or(0);
    let base = base.or_else(|| kwargs.get("base").ok()).unwrap_or(10);
    kwargs.assert_all_used()?;
    if let Some(text) = value.as_str() {
        let text = text.trim();
        let whole =
            if (2..=36).contains(&base) { i64::from_str_radix(text, base).ok() } else { None };
        let real = || text.parse::<f64>().ok().filter(|it| it.is_finite()).map(|it| it as i64);
        return Ok(Value::from(whole.or_else(real).unwrap_or(default)));
    }
    if value.kind() == ValueKind::Bool {
        return Ok(Value::from(i64::from(value.is_true())));
    }
    if value.is_integer() {
        return Ok(value.clone());
    }
    let real = f64::try_from(value.clone()).ok().filter(|it| it.is_finite());
    Ok(Value::from(real.map_or(default, |it| it as i64)))
}

fn operators(environment: &mut Environment<'_>, allowance: &Arc<Allowance>) {
    let paid = allowance.clone();
    environment.add_function(CONCAT, move |left: &Value, right: &Value| {
        let (left, right) = (paid.print(left)?, paid.print(right)?);
        paid.pay(left.len() + right.len())?;
        Ok::<_, Error>(left + &right)
    });
    let paid = allowance.clone();
    environment.add_function(ADD, move |left: &Value, right: &Value| {
        let is_list = |value: &Value| matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
        if let (Some(left), Some(right)) = (left.as_str(), right.as_str()) {
            paid.pay(left.len() + right.len())?;
            return Ok(Value::from(format!("{left}{right}")));
        }
        if is_list(left) && is_list(right) {
            paid.pay_for(left)?;
            paid.pay_for(right)?;
            return Ok(left.try_iter()?.chain(right.try_iter()?).collect());
        }
        number(left, right, "+", i128::checked_add, |a, b| a + b)
    });
    let paid = allowance.clone();
    environment.add_function(MULTIPLY, move |left: &Value, right: &Value| {
        let (value, times) = if left.is_number() { (right, left) } else { (left, right) };
        if value.is_number() {
            return number(left, right, "*", i128::checked_mul, |a, b| a * b);
        }
        let times = times.as_usize().unwrap_or(0);
        paid.pay(size_of(value).saturating_mul(times))?;
        if let Some(text) = value.as_str() {
            Ok(Value::from(text.repeat(times)))
        } else {
            let items: Vec<Value> = value.try_iter()?.collect();
            Ok(std::iter::repeat_n(items, times).flatten().collect())
        }
    });
    let paid = allowance.clone();
    environment.add_function(PAID, move |value: Value| paid.pay_for(&value).map(|()| value));
    environment.add_function(PLAIN, |value: Value| {
        if is_namespace(&value, 0) {
            let said = "a namespace cannot be put into a namespace";
            return Err(Error::new(ErrorKind::InvalidOperation, said));
        }
        Ok(value)
    });
}

/// Refuses a large number, also among arguments by name.
fn small(value: &Value) -> Result<(), Error> {
    if let Some(number) = value.as_i64().filter(|number| *number > LARGEST) {
        let why = format!("{number} is more than {LARGEST}");
        return Err(Error::new(ErrorKind::InvalidOperation, why));
    }
    if value.kind() == ValueKind::Map {
        for key in value.try_iter()? {
            small(&value.get_item(&key)?)?;
        }
    }
    Ok(())
}

/// Does to two numbers what an operator says.
fn number(
    left: &Value,
    right: &Value,
    operator: &str,
    whole: fn(i128, i128) -> Option<i128>,
    real: fn(f64, f64) -> f64,
) -> Result<Value, Error> {
    let fails = || {
        let said = format!("`{operator}` takes no {} and {}", left.kind(), right.kind());
        Error::new(ErrorKind::InvalidOperation, said)
    };
    if !(left.is_number() && right.is_number()) {
        return Err(fails());
    }
    if left.is_integer() && right.is_integer() {
        let (left, right) = (i128::try_from(left.clone())?, i128::try_from(right.clone())?);
        return whole(left, right).map(Value::from).ok_or_else(fails);
    }
    Ok(Value::from(real(f64::try_from(left.clone())?, f64::try_from(right.clone())?)))
}

fn join(
    allowance: &Allowance,
    value: &Value,
    separator: &str,
    attribute: Option<&str>,
) -> Result<String, Error> {
    let mut text = String::new();
    for (index, item) in value.try_iter()?.enumerate() {
        let item = match attribute {
            Some(attribute) => item.get_attr(attribute)?,
            None => item,
        };
        let printed = allowance.print(&item)?;
        allowance.pay(printed.len() + separator.len() + 1)?;
        if index > 0 {
            text.push_str(separator);
        }
        text.push_str(&printed);
    }
    Ok(text)
}

fn replace(allowance: &Allowance, text: &str, from: &str, to: &str) -> Result<String, Error> {
    let count = text.matches(from).count();
    allowance.pay(text.len().saturating_add(count.saturating_mul(to.len())))?;
    Ok(text.replace(from, to))
}

/// Reads JSON out of a text; what is none stays a text.
fn parsed(text: &Value) -> Value {
    text.as_str()
        .and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok())
        .map_or_else(|| text.clone(), |read| Value::from(minijinja::value::Serde(read)))
}

/// Refuses widths of more than four digits, and those that an argument gives.
fn widths(text: &str) -> Result<(), Error> {
    let mut digits = 0;
    for byte in text.bytes() {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        if digits > 4 {
            return Err(Error::new(ErrorKind::InvalidOperation, "the width is too large"));
        }
    }
    if text.contains("%*") || text.contains(".*") || text.contains(":{") {
        return Err(Error::new(ErrorKind::InvalidOperation, "the width must stand in the text"));
    }
    Ok(())
}

fn is_namespace(value: &Value, depth: usize) -> bool {
    let own = value.as_object().is_some_and(|object| object.type_name().contains("Namespace"));
    let holds = || {
        matches!(value.kind(), ValueKind::Seq)
            && value
                .try_iter()
                .is_ok_and(|mut items| items.any(|item| is_namespace(&item, depth + 1)))
            || matches!(value.kind(), ValueKind::Map)
                && value.try_iter().is_ok_and(|mut keys| {
                    keys.any(|key| {
                        value.get_item(&key).is_ok_and(|item| is_namespace(&item, depth + 1))
                    })
                })
    };
    own || depth < DEEPEST && holds()
}

/// Adds the methods that Python's texts, lists and maps have, of which cascades use some.
fn methods(environment: &mut Environment<'_>, allowance: &Arc<Allowance>) {
    let paid = allowance.clone();
    environment.set_unknown_method_callback(move |state, value, method, args| {
        let texts: Option<Vec<&str>> = args.iter().map(Value::as_str).collect();
        match (method, value.as_str(), args, texts.as_deref()) {
            ("replace", Some(text), _, Some([from, to])) => {
                replace(&paid, text, from, to).map(Value::from)
            }
            ("join", Some(separator), [items], _) => {
                join(&paid, items, separator, None).map(Value::from)
            }
            ("format", Some(text), ..) => {
                widths(text)?;
                unknown_method_callback(state, value, method, args)
            }
            _ => unknown_method_callback(state, value, method, args),
        }
    });
}

/// Shortens a text as Jinja does: at a space, unless `killwords`, and only if it is longer by more than `leeway`.
#[expect(clippy::needless_pass_by_value, reason = "the engine hands it over")]
fn truncate(
    text: &Value,
    length: Option<usize>,
    killwords: Option<bool>,
    end: Option<String>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let length = length.or_else(|| kwargs.get("length").ok()).unwrap_or(255);
    let killwords = killwords.or_else(|| kwargs.get("killwords").ok()).unwrap_or(false);
    let end = end.or_else(|| kwargs.get("end").ok()).unwrap_or_else(|| "...".to_owned());
    let leeway: usize = kwargs.get("leeway").unwrap_or(5);
    kwargs.assert_all_used()?;
    let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
    if text.chars().count() <= length.saturating_add(leeway) {
        return Ok(text);
    }
    let room = length.saturating_sub(end.chars().count());
    let kept = plimsoll_core::text::head(&text, plimsoll_core::text::Limit::Characters(room));
    let kept = match kept.rfind(' ') {
        Some(space) if !killwords => &kept[..space],
        _ => kept,
    };
    Ok(format!("{kept}{end}"))
}
