//! A template's tree, rewritten so that whatever makes a value larger is paid for.
//!
//! The engine counts steps but not bytes: eighteen doublings take a few dozen steps and hundreds of megabytes. So the
//! operators `~`, `+` and `*` become calls of functions that look at the sizes first, and the results of literals,
//! filters and calls are measured. The engine's nodes can be read but not changed; hence the copy.

use minijinja::machinery::ast::{
    AutoEscape, BinOp, BinOpKind, Call, CallArg, CallBlock, Compare, CompareOp, Const, Do,
    EmitExpr, Expr, Filter, FilterBlock, ForLoop, GetAttr, GetItem, IfCond, IfExpr, List, Macro,
    Map, Set, SetBlock, Slice, Spanned, Stmt, Template, Test, Tuple, UnaryOp, UnaryOpKind, Var,
    WithBlock,
};
use minijinja::machinery::{Span, ast};
use minijinja::{Error, ErrorKind, Value};

use super::functions::{ADD, CONCAT, MULTIPLY, NUMBER, PAID, PLAIN};

/// Filters that make as much as a number among their arguments says.
const BY_NUMBER: [&str; 4] = ["batch", "slice", "indent", "tojson"];
/// Levels of expressions and blocks: every operator of a chain is one (chosen; the engine's reader allows 150 by brackets
/// but any number by operators, and walks them all by recursion).
const DEEPEST: usize = 200;

/// Returns the tree with everything that grows bounded.
///
/// Errors: the template includes, imports or extends another.
pub(super) fn bounded<'a>(tree: &Stmt<'a>) -> Result<Stmt<'a>, Error> {
    Copy { depth: 0 }.statement(tree)
}

struct Copy {
    depth: usize,
}

impl Copy {
    fn deeper<T>(&mut self, copy: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth >= DEEPEST {
            return Err(Error::new(ErrorKind::SyntaxError, "the template has too many levels"));
        }
        self.depth += 1;
        let copied = copy(self);
        self.depth -= 1;
        copied
    }

    fn body<'a>(&mut self, body: &[Stmt<'a>]) -> Result<Vec<Stmt<'a>>, Error> {
        body.iter().map(|statement| self.statement(statement)).collect()
    }

    fn optional<'a>(&mut self, expr: Option<&Expr<'a>>) -> Result<Option<Expr<'a>>, Error> {
        expr.map(|expr| self.expr(expr)).transpose()
    }

    fn exprs<'a>(&mut self, exprs: &[Expr<'a>]) -> Result<Vec<Expr<'a>>, Error> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn statement<'a>(&mut self, statement: &Stmt<'a>) -> Result<Stmt<'a>, Error> {
        self.deeper(|copy| copy.copied(statement))
    }

    fn copied<'a>(&mut self, statement: &Stmt<'a>) -> Result<Stmt<'a>, Error> {
        Ok(match statement {
            Stmt::Template(s) => Stmt::Template(Spanned::new(
                Template { children: self.body(&s.children)? },
                s.span(),
            )),
            Stmt::EmitExpr(s) => {
                Stmt::EmitExpr(Spanned::new(EmitExpr { expr: self.expr(&s.expr)? }, s.span()))
            }
            // As a value, since what a loop says over and over is paid for only where values are written.
            Stmt::EmitRaw(s) => {
                let raw = Const { value: Value::from(s.raw) };
                let expr = Expr::Const(Spanned::new(raw, s.span()));
                Stmt::EmitExpr(Spanned::new(EmitExpr { expr }, s.span()))
            }
            Stmt::ForLoop(s) => {
                let copied = ForLoop {
                    target: target_of(&s.target)?,
                    iter: self.expr(&s.iter)?,
                    filter_expr: self.optional(s.filter_expr.as_ref())?,
                    recursive: s.recursive,
                    body: self.body(&s.body)?,
                    else_body: self.body(&s.else_body)?,
                };
                Stmt::ForLoop(Spanned::new(copied, s.span()))
            }
            Stmt::IfCond(s) => {
                let copied = IfCond {
                    expr: self.expr(&s.expr)?,
                    true_body: self.body(&s.true_body)?,
                    false_body: self.body(&s.false_body)?,
                };
                Stmt::IfCond(Spanned::new(copied, s.span()))
            }
            Stmt::WithBlock(s) => {
                let assignments = s
                    .assignments
                    .iter()
                    .map(|(target, expr)| Ok((target_of(target)?, self.expr(expr)?)))
                    .collect::<Result<_, Error>>()?;
                Stmt::WithBlock(Spanned::new(
                    WithBlock { assignments, body: self.body(&s.body)? },
                    s.span(),
                ))
            }
            Stmt::Set(s) => {
                let mut expr = self.expr(&s.expr)?;
                // A namespace that holds itself has no end when it is printed.
                if matches!(s.target, Expr::GetAttr(_)) {
                    expr = call(PLAIN, vec![expr], s.span());
                }
                Stmt::Set(Spanned::new(Set { target: target_of(&s.target)?, expr }, s.span()))
            }
            Stmt::SetBlock(s) => {
                let copied = SetBlock {
                    target: target_of(&s.target)?,
                    filter: self.optional_filter(s.filter.as_ref())?,
                    body: self.body(&s.body)?,
                };
                Stmt::SetBlock(Spanned::new(copied, s.span()))
            }
            Stmt::AutoEscape(s) => {
                let copied =
                    AutoEscape { enabled: self.expr(&s.enabled)?, body: self.body(&s.body)? };
                Stmt::AutoEscape(Spanned::new(copied, s.span()))
            }
            Stmt::FilterBlock(s) => {
                let copied =
                    FilterBlock { filter: self.bare_filter(&s.filter)?, body: self.body(&s.body)? };
                Stmt::FilterBlock(Spanned::new(copied, s.span()))
            }
            Stmt::Macro(s) => Stmt::Macro(Spanned::new(self.macro_of(s)?, s.span())),
            Stmt::CallBlock(s) => {
                let copied = CallBlock {
                    call: Spanned::new(self.call_of(&s.call)?, s.call.span()),
                    macro_decl: Spanned::new(self.macro_of(&s.macro_decl)?, s.macro_decl.span()),
                };
                Stmt::CallBlock(Spanned::new(copied, s.span()))
            }
            Stmt::Continue(s) => Stmt::Continue(Spanned::new(ast::Continue, s.span())),
            Stmt::Break(s) => Stmt::Break(Spanned::new(ast::Break, s.span())),
            Stmt::Do(s) => {
                let call = Spanned::new(self.call_of(&s.call)?, s.call.span());
                Stmt::Do(Spanned::new(Do { call }, s.span()))
            }
            Stmt::Block(_)
            | Stmt::Import(_)
            | Stmt::FromImport(_)
            | Stmt::Extends(_)
            | Stmt::Include(_) => {
                let said = "a template stands alone: no include, import, extends or block";
                return Err(Error::new(ErrorKind::SyntaxError, said));
            }
        })
    }

    fn macro_of<'a>(&mut self, s: &Macro<'a>) -> Result<Macro<'a>, Error> {
        Ok(Macro {
            name: s.name,
            args: s.args.iter().map(target_of).collect::<Result<_, _>>()?,
            defaults: self.exprs(&s.defaults)?,
            body: self.body(&s.body)?,
        })
    }

    fn call_of<'a>(&mut self, s: &Call<'a>) -> Result<Call<'a>, Error> {
        Ok(Call { expr: self.callee(&s.expr)?, args: self.arguments(&s.args, false)? })
    }

    /// Copies what is called: a method keeps its form, of which the engine makes one step.
    fn callee<'a>(&mut self, expr: &Expr<'a>) -> Result<Expr<'a>, Error> {
        match expr {
            Expr::GetAttr(s) => {
                let copied = GetAttr { expr: self.expr(&s.expr)?, name: s.name };
                Ok(Expr::GetAttr(Spanned::new(copied, s.span())))
            }
            _ => self.expr(expr),
        }
    }

    fn arguments<'a>(
        &mut self,
        args: &[CallArg<'a>],
        by_number: bool,
    ) -> Result<Vec<CallArg<'a>>, Error> {
        let mut copied = Vec::with_capacity(args.len());
        for argument in args {
            let mut checked = |expr: &Expr<'a>| {
                let span = expr.span();
                let expr = self.expr(expr)?;
                Ok::<_, Error>(if by_number { call(NUMBER, vec![expr], span) } else { expr })
            };
            copied.push(match argument {
                CallArg::Pos(expr) => CallArg::Pos(checked(expr)?),
                CallArg::Kwarg(name, expr) => CallArg::Kwarg(name, checked(expr)?),
                CallArg::PosSplat(expr) => CallArg::PosSplat(self.expr(expr)?),
                CallArg::KwargSplat(expr) => CallArg::KwargSplat(self.expr(expr)?),
            });
        }
        Ok(copied)
    }

    fn optional_filter<'a>(
        &mut self,
        filter: Option<&Expr<'a>>,
    ) -> Result<Option<Expr<'a>>, Error> {
        filter.map(|filter| self.bare_filter(filter)).transpose()
    }

    /// Copies the filter of a block, whose innermost input is the block.
    fn bare_filter<'a>(&mut self, expr: &Expr<'a>) -> Result<Expr<'a>, Error> {
        let Expr::Filter(s) = expr else { return self.expr(expr) };
        let inner = s.expr.as_ref().map(|inner| self.bare_filter(inner)).transpose()?;
        let args = self.arguments(&s.args, BY_NUMBER.contains(&s.name))?;
        Ok(Expr::Filter(Spanned::new(Filter { name: s.name, expr: inner, args }, s.span())))
    }

    fn expr<'a>(&mut self, expr: &Expr<'a>) -> Result<Expr<'a>, Error> {
        self.deeper(|copy| copy.copied_expr(expr))
    }

    fn copied_expr<'a>(&mut self, expr: &Expr<'a>) -> Result<Expr<'a>, Error> {
        Ok(match expr {
            Expr::Var(s) => Expr::Var(Spanned::new(Var { id: s.id }, s.span())),
            Expr::Const(s) => Expr::Const(Spanned::new(Const { value: s.value.clone() }, s.span())),
            Expr::Slice(s) => {
                let copied = Slice {
                    expr: self.expr(&s.expr)?,
                    start: self.optional(s.start.as_ref())?,
                    stop: self.optional(s.stop.as_ref())?,
                    step: self.optional(s.step.as_ref())?,
                };
                paid(Expr::Slice(Spanned::new(copied, s.span())), s.span())
            }
            Expr::UnaryOp(s) => {
                let is_not = matches!(s.op, UnaryOpKind::Not);
                let op = if is_not { UnaryOpKind::Not } else { UnaryOpKind::Neg };
                Expr::UnaryOp(Spanned::new(UnaryOp { op, expr: self.expr(&s.expr)? }, s.span()))
            }
            Expr::BinOp(s) => {
                let (left, right) = (self.expr(&s.left)?, self.expr(&s.right)?);
                match s.op {
                    BinOpKind::Concat => call(CONCAT, vec![left, right], s.span()),
                    BinOpKind::Add => call(ADD, vec![left, right], s.span()),
                    BinOpKind::Mul => call(MULTIPLY, vec![left, right], s.span()),
                    op => Expr::BinOp(Spanned::new(BinOp { op, left, right }, s.span())),
                }
            }
            Expr::Compare(s) => {
                let ops = s
                    .ops
                    .iter()
                    .map(|op| Ok(CompareOp { op: op.op, expr: self.expr(&op.expr)? }))
                    .collect::<Result<_, Error>>()?;
                Expr::Compare(Spanned::new(Compare { expr: self.expr(&s.expr)?, ops }, s.span()))
            }
            Expr::IfExpr(s) => {
                let copied = IfExpr {
                    test_expr: self.expr(&s.test_expr)?,
                    true_expr: self.expr(&s.true_expr)?,
                    false_expr: self.optional(s.false_expr.as_ref())?,
                };
                Expr::IfExpr(Spanned::new(copied, s.span()))
            }
            Expr::Filter(s) => {
                let inner = self.optional(s.expr.as_ref())?;
                let args = self.arguments(&s.args, BY_NUMBER.contains(&s.name))?;
                let copied = Filter { name: s.name, expr: inner, args };
                paid(Expr::Filter(Spanned::new(copied, s.span())), s.span())
            }
            Expr::Test(s) => {
                let copied = Test {
                    name: s.name,
                    expr: self.expr(&s.expr)?,
                    args: self.arguments(&s.args, false)?,
                };
                Expr::Test(Spanned::new(copied, s.span()))
            }
            Expr::GetAttr(s) => Expr::GetAttr(Spanned::new(
                GetAttr { expr: self.expr(&s.expr)?, name: s.name },
                s.span(),
            )),
            Expr::GetItem(s) => {
                let copied = GetItem {
                    expr: self.expr(&s.expr)?,
                    subscript_expr: self.expr(&s.subscript_expr)?,
                };
                Expr::GetItem(Spanned::new(copied, s.span()))
            }
            Expr::Call(s) => {
                let copied = Expr::Call(Spanned::new(self.call_of(s)?, s.span()));
                // The body of a loop is called as a statement of its own, which takes no wrapping.
                match &s.expr {
                    Expr::Var(callee) if matches!(callee.id, "super" | "loop" | "caller") => copied,
                    _ => paid(copied, s.span()),
                }
            }
            Expr::List(s) => paid(
                Expr::List(Spanned::new(List { items: self.exprs(&s.items)? }, s.span())),
                s.span(),
            ),
            Expr::Tuple(s) => paid(
                Expr::Tuple(Spanned::new(Tuple { items: self.exprs(&s.items)? }, s.span())),
                s.span(),
            ),
            Expr::Map(s) => {
                let copied = Map { keys: self.exprs(&s.keys)?, values: self.exprs(&s.values)? };
                paid(Expr::Map(Spanned::new(copied, s.span())), s.span())
            }
        })
    }
}

/// Copies what is assigned to, which is no value and is not paid for.
fn target_of<'a>(expr: &Expr<'a>) -> Result<Expr<'a>, Error> {
    Ok(match expr {
        Expr::Var(s) => Expr::Var(Spanned::new(Var { id: s.id }, s.span())),
        Expr::GetAttr(s) => Expr::GetAttr(Spanned::new(
            GetAttr { expr: target_of(&s.expr)?, name: s.name },
            s.span(),
        )),
        Expr::List(s) => {
            let items = s.items.iter().map(target_of).collect::<Result<_, _>>()?;
            Expr::List(Spanned::new(List { items }, s.span()))
        }
        Expr::Tuple(s) => {
            let items = s.items.iter().map(target_of).collect::<Result<_, _>>()?;
            Expr::Tuple(Spanned::new(Tuple { items }, s.span()))
        }
        _ => return Err(Error::new(ErrorKind::SyntaxError, "this cannot be assigned to")),
    })
}

fn paid(expr: Expr<'_>, span: Span) -> Expr<'_> {
    call(PAID, vec![expr], span)
}

fn call<'a>(function: &'static str, args: Vec<Expr<'a>>, span: Span) -> Expr<'a> {
    let callee = Expr::Var(Spanned::new(Var { id: function }, span));
    let args = args.into_iter().map(CallArg::Pos).collect();
    Expr::Call(Spanned::new(Call { expr: callee, args }, span))
}
