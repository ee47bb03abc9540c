//! What a template asks for: inputs, filters and tests by name, each with its place.

use minijinja::machinery::ast::{CallArg, Expr, Stmt};
use minijinja::machinery::{Span, ast};

use super::TemplateError;

/// One thing that a template asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Use {
    /// `input.NAME` at a line and column, counted from 1.
    Input { name: String, line: usize, column: usize },
    /// A filter that the engine does not have.
    Filter { name: String, line: usize, column: usize },
}

/// Filters that templates have.
pub(crate) const FILTERS: [&str; 51] = [
    "abs",
    "attr",
    "batch",
    "bool",
    "capitalize",
    "chain",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "first",
    "float",
    "format",
    "from_json",
    "fromjson",
    "groupby",
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
    "sum",
    "title",
    "tojson",
    "trim",
    "truncate",
    "unique",
    "upper",
    "wordcount",
    "zip",
];

/// Reads a template and lists what it asks for.
///
/// Errors: the template cannot be read.
pub(crate) fn uses(source: &str) -> Result<Vec<Use>, TemplateError> {
    let tree = super::read(source)?;
    super::bounded::bounded(&tree).map_err(|error| super::told(source, &error))?;
    let mut found = Vec::new();
    statement(&tree, &mut found);
    Ok(found)
}

fn place(span: Span) -> (usize, usize) {
    (usize::from(span.start_line), usize::from(span.start_col) + 1)
}

fn body(statements: &[Stmt<'_>], found: &mut Vec<Use>) {
    for inner in statements {
        statement(inner, found);
    }
}

fn statement(of: &Stmt<'_>, found: &mut Vec<Use>) {
    match of {
        Stmt::Template(s) => body(&s.children, found),
        Stmt::EmitExpr(s) => expr(&s.expr, found),
        Stmt::ForLoop(s) => {
            expr(&s.iter, found);
            s.filter_expr.iter().for_each(|inner| expr(inner, found));
            body(&s.body, found);
            body(&s.else_body, found);
        }
        Stmt::IfCond(s) => {
            expr(&s.expr, found);
            body(&s.true_body, found);
            body(&s.false_body, found);
        }
        Stmt::WithBlock(s) => {
            s.assignments.iter().for_each(|(_, inner)| expr(inner, found));
            body(&s.body, found);
        }
        Stmt::Set(s) => expr(&s.expr, found),
        Stmt::SetBlock(s) => {
            s.filter.iter().for_each(|inner| expr(inner, found));
            body(&s.body, found);
        }
        Stmt::AutoEscape(s) => body(&s.body, found),
        Stmt::FilterBlock(s) => {
            expr(&s.filter, found);
            body(&s.body, found);
        }
        Stmt::Macro(s) => body(&s.body, found),
        Stmt::CallBlock(s) => {
            call(&s.call, found);
            body(&s.macro_decl.body, found);
        }
        Stmt::Do(s) => call(&s.call, found),
        _ => {}
    }
}

fn call(of: &ast::Call<'_>, found: &mut Vec<Use>) {
    expr(&of.expr, found);
    arguments(&of.args, found);
}

fn arguments(args: &[CallArg<'_>], found: &mut Vec<Use>) {
    for argument in args {
        match argument {
            CallArg::Pos(inner)
            | CallArg::Kwarg(_, inner)
            | CallArg::PosSplat(inner)
            | CallArg::KwargSplat(inner) => expr(inner, found),
        }
    }
}

fn expr(of: &Expr<'_>, found: &mut Vec<Use>) {
    match of {
        Expr::Var(_) | Expr::Const(_) => {}
        Expr::Slice(s) => {
            expr(&s.expr, found);
            [&s.start, &s.stop, &s.step].into_iter().flatten().for_each(|inner| expr(inner, found));
        }
        Expr::UnaryOp(s) => expr(&s.expr, found),
        Expr::BinOp(s) => {
            expr(&s.left, found);
            expr(&s.right, found);
        }
        Expr::Compare(s) => {
            expr(&s.expr, found);
            s.ops.iter().for_each(|op| expr(&op.expr, found));
        }
        Expr::IfExpr(s) => {
            expr(&s.test_expr, found);
            expr(&s.true_expr, found);
            s.false_expr.iter().for_each(|inner| expr(inner, found));
        }
        Expr::Filter(s) => {
            if !FILTERS.contains(&s.name) {
                let (line, column) = place(s.span());
                found.push(Use::Filter { name: s.name.to_owned(), line, column });
            }
            // What has a default may be missing.
            let is_asked = !matches!(s.name, "default" | "d");
            match &s.expr {
                Some(inner) if is_asked => expr(inner, found),
                Some(Expr::GetAttr(_)) | None => {}
                Some(inner) => expr(inner, found),
            }
            arguments(&s.args, found);
        }
        Expr::Test(s) => {
            if !matches!(s.name, "defined" | "undefined") {
                expr(&s.expr, found);
            }
            arguments(&s.args, found);
        }
        Expr::GetAttr(s) => match &s.expr {
            Expr::Var(owner) if owner.id == "input" => {
                let (line, column) = place(s.span());
                found.push(Use::Input { name: s.name.to_owned(), line, column });
            }
            inner => expr(inner, found),
        },
        Expr::GetItem(s) => {
            expr(&s.expr, found);
            expr(&s.subscript_expr, found);
        }
        Expr::Call(s) => call(s, found),
        Expr::List(s) => s.items.iter().for_each(|inner| expr(inner, found)),
        Expr::Tuple(s) => s.items.iter().for_each(|inner| expr(inner, found)),
        Expr::Map(s) => {
            s.keys.iter().for_each(|inner| expr(inner, found));
            s.values.iter().for_each(|inner| expr(inner, found));
        }
    }
}
