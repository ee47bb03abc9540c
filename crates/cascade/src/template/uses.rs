//! The tree of a template: which inputs and filters it asks for, and whether the engine can compile it safely.

use minijinja::machinery::ast::{self, BinOpKind, CallArg, Expr, Stmt};
use minijinja::{Error, ErrorKind};

use super::functions::{size_of, too_much};

/// An input or a filter that a template names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Use {
    /// `input.NAME` at a line and column, counted from 1.
    Input { name: String, line: usize, column: usize },
    /// A filter that the engine does not have.
    Filter { name: String, line: usize, column: usize },
}

/// The filters of the template engine.
pub(crate) const FILTERS: [&str; 66] = [
    "abs",
    "attr",
    "batch",
    "bool",
    "capitalize",
    "center",
    "chain",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "filesizeformat",
    "fingerprint",
    "first",
    "float",
    "format",
    "from_json",
    "fromjson",
    "groupby",
    "hash",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "pprint",
    "random",
    "regex_replace",
    "regex_search",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "slice",
    "sort",
    "split",
    "string",
    "striptags",
    "sum",
    "title",
    "to_json",
    "to_pretty_json",
    "to_toon",
    "tojson",
    "toon",
    "totoon",
    "trim",
    "truncate",
    "unique",
    "upper",
    "wordcount",
    "wordwrap",
    "zip",
];

/// Levels of expressions and blocks: every operator of a chain is one (chosen; the engine's parser allows 150 by brackets
/// but any number by operators, and its compiler walks them all by recursion).
const DEEPEST: usize = 200;
/// Bytes of constants that operators repeat: the engine computes them when it compiles the template, before the rendering
/// has an allowance (chosen: a rule of dashes has 80).
const MOST_REPEATED: usize = 64 << 10;

#[derive(Clone, Copy)]
enum Part<'t, 'a> {
    Statement(&'t Stmt<'a>),
    Expression(&'t Expr<'a>),
    /// An expression whose inputs may be missing.
    Optional(&'t Expr<'a>),
}

/// Lists what a template asks for, in the order of the source.
///
/// Errors: the template has too many levels or too large constants, or it includes, imports or extends another.
pub(super) fn uses(tree: &Stmt<'_>) -> Result<Vec<Use>, Error> {
    let mut parts = Vec::new();
    let mut open = vec![(Part::Statement(tree), 0)];
    while let Some((part, depth)) = open.pop() {
        if depth > DEEPEST {
            return Err(Error::new(ErrorKind::SyntaxError, "the template has too many levels"));
        }
        parts.push(part);
        let mut inner = Vec::new();
        match part {
            Part::Statement(statement) => inside(statement, &mut inner)?,
            Part::Expression(expr) => operands(expr, &mut inner),
            Part::Optional(expr) => {
                operands(expr, &mut inner);
                for part in &mut inner {
                    if let Part::Expression(expr) = part {
                        *part = Part::Optional(expr);
                    }
                }
            }
        }
        open.extend(inner.into_iter().rev().map(|part| (part, depth + 1)));
    }
    repetitions(&parts)?;
    Ok(parts.into_iter().filter_map(used).collect())
}

fn used(part: Part<'_, '_>) -> Option<Use> {
    let place = |span: minijinja::machinery::Span| {
        (usize::from(span.start_line), usize::from(span.start_col) + 1)
    };
    match part {
        Part::Expression(Expr::GetAttr(s)) => match &s.expr {
            Expr::Var(owner) if owner.id == "input" => {
                let (line, column) = place(s.span());
                Some(Use::Input { name: s.name.to_owned(), line, column })
            }
            _ => None,
        },
        Part::Expression(Expr::Filter(s)) if !FILTERS.contains(&s.name) => {
            let (line, column) = place(s.span());
            Some(Use::Filter { name: s.name.to_owned(), line, column })
        }
        _ => None,
    }
}

/// Refuses constants that are repeated too often; inner ones are checked first, so that computing them is safe.
fn repetitions(parts: &[Part<'_, '_>]) -> Result<(), Error> {
    let mut repeated: usize = 0;
    for part in parts.iter().rev() {
        let (Part::Expression(Expr::BinOp(s)) | Part::Optional(Expr::BinOp(s))) = part else {
            continue;
        };
        if !matches!(s.op, BinOpKind::Mul) {
            continue;
        }
        let (Some(left), Some(right)) = (s.left.as_const(), s.right.as_const()) else { continue };
        let (value, times) = if left.is_number() { (right, left) } else { (left, right) };
        if !value.is_number() {
            let size = size_of(&value).saturating_mul(times.as_usize().unwrap_or(0));
            repeated = repeated.saturating_add(size);
        }
        if repeated > MOST_REPEATED {
            return Err(too_much());
        }
    }
    Ok(())
}

/// Lists the statements and expressions of a statement.
fn inside<'t, 'a>(statement: &'t Stmt<'a>, parts: &mut Vec<Part<'t, 'a>>) -> Result<(), Error> {
    let mut expressions: Vec<&Expr<'a>> = Vec::new();
    let mut bodies: Vec<&[Stmt<'a>]> = Vec::new();
    match statement {
        Stmt::Template(s) => bodies.push(&s.children),
        Stmt::EmitExpr(s) => expressions.push(&s.expr),
        Stmt::ForLoop(s) => {
            expressions.push(&s.iter);
            expressions.extend(&s.filter_expr);
            bodies.extend([s.body.as_slice(), &s.else_body]);
        }
        Stmt::IfCond(s) => {
            expressions.push(&s.expr);
            bodies.extend([s.true_body.as_slice(), &s.false_body]);
        }
        Stmt::WithBlock(s) => {
            expressions.extend(s.assignments.iter().map(|(_, expr)| expr));
            bodies.push(&s.body);
        }
        Stmt::Set(s) => expressions.push(&s.expr),
        Stmt::SetBlock(s) => {
            expressions.extend(&s.filter);
            bodies.push(&s.body);
        }
        Stmt::AutoEscape(s) => {
            expressions.push(&s.enabled);
            bodies.push(&s.body);
        }
        Stmt::FilterBlock(s) => {
            expressions.push(&s.filter);
            bodies.push(&s.body);
        }
        Stmt::Macro(s) => {
            expressions.extend(&s.defaults);
            bodies.push(&s.body);
        }
        Stmt::CallBlock(s) => {
            called(&s.call, &mut expressions);
            bodies.push(&s.macro_decl.body);
        }
        Stmt::Do(s) => called(&s.call, &mut expressions),
        Stmt::EmitRaw(_) | Stmt::Continue(_) | Stmt::Break(_) => {}
        Stmt::Block(_)
        | Stmt::Import(_)
        | Stmt::FromImport(_)
        | Stmt::Extends(_)
        | Stmt::Include(_) => {
            let why = "a template stands alone: no include, import, extends or block";
            return Err(Error::new(ErrorKind::SyntaxError, why));
        }
    }
    parts.extend(expressions.into_iter().map(Part::Expression));
    parts.extend(bodies.into_iter().flatten().map(Part::Statement));
    Ok(())
}

/// Lists the operands of an expression.
fn operands<'t, 'a>(expr: &'t Expr<'a>, parts: &mut Vec<Part<'t, 'a>>) {
    let mut inner: Vec<&Expr<'a>> = Vec::new();
    match expr {
        Expr::Var(_) | Expr::Const(_) => {}
        Expr::Slice(s) => {
            inner.push(&s.expr);
            inner.extend([&s.start, &s.stop, &s.step].into_iter().flatten());
        }
        Expr::UnaryOp(s) => inner.push(&s.expr),
        Expr::BinOp(s) => inner.extend([&s.left, &s.right]),
        Expr::Compare(s) => {
            inner.push(&s.expr);
            inner.extend(s.ops.iter().map(|op| &op.expr));
        }
        Expr::IfExpr(s) => {
            inner.extend([&s.test_expr, &s.true_expr]);
            inner.extend(&s.false_expr);
        }
        Expr::Filter(s) => {
            // An attribute with a default may be missing.
            match &s.expr {
                Some(of @ Expr::GetAttr(_)) if matches!(s.name, "default" | "d") => {
                    parts.push(Part::Optional(of));
                }
                of => inner.extend(of),
            }
            arguments(&s.args, &mut inner);
        }
        Expr::Test(s) => {
            if matches!(s.name, "defined" | "undefined") {
                parts.push(Part::Optional(&s.expr));
            } else {
                inner.push(&s.expr);
            }
            arguments(&s.args, &mut inner);
        }
        Expr::GetAttr(s) => inner.push(&s.expr),
        Expr::GetItem(s) => inner.extend([&s.expr, &s.subscript_expr]),
        Expr::Call(s) => called(s, &mut inner),
        Expr::List(s) => inner.extend(&s.items),
        Expr::Tuple(s) => inner.extend(&s.items),
        Expr::Map(s) => inner.extend(s.keys.iter().chain(&s.values)),
    }
    parts.extend(inner.into_iter().map(Part::Expression));
}

fn called<'t, 'a>(call: &'t ast::Call<'a>, inner: &mut Vec<&'t Expr<'a>>) {
    inner.push(&call.expr);
    arguments(&call.args, inner);
}

fn arguments<'t, 'a>(args: &'t [CallArg<'a>], inner: &mut Vec<&'t Expr<'a>>) {
    inner.extend(args.iter().map(|argument| match argument {
        CallArg::Pos(expr)
        | CallArg::Kwarg(_, expr)
        | CallArg::PosSplat(expr)
        | CallArg::KwargSplat(expr) => expr,
    }));
}
