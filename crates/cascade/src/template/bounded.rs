//! Compiled templates in which everything that makes a value larger is paid for.
//!
//! The engine counts steps but not bytes: eighteen doublings take a few dozen steps and hundreds of megabytes. So the
//! operators `~`, `+` and `*` become calls of functions that look at the sizes first, and the results of literals,
//! filters and calls are measured.

use minijinja::Value;
use minijinja::machinery::{Instruction, Instructions};

use super::functions::{ADD, CONCAT, MULTIPLY, PAID, PLAIN};

/// Returns the instructions with everything that grows bounded.
pub(super) fn bounded<'source>(compiled: &Instructions<'source>) -> Instructions<'source> {
    let original = || (0..).map_while(|index| compiled.get(index));
    // Where each instruction begins once calls stand around it.
    let starts: Vec<u32> = original()
        .scan(0, |next, instruction| {
            let start = *next;
            *next += paid(instruction).len() as u32;
            Some(start)
        })
        .collect();
    let end = original().map(|instruction| paid(instruction).len() as u32).sum();
    let moved = |target: u32| starts.get(target as usize).copied().unwrap_or(end);
    let mut out = Instructions::new(compiled.name(), compiled.source());
    for (index, instruction) in (0..).zip(original()) {
        for mut instruction in paid(instruction) {
            if let Instruction::Iterate(target)
            | Instruction::Jump(target)
            | Instruction::JumpIfFalse(target)
            | Instruction::JumpIfFalseOrPop(target)
            | Instruction::JumpIfTrueOrPop(target)
            | Instruction::BuildMacro(_, target, _) = &mut instruction
            {
                *target = moved(*target);
            }
            match (compiled.get_span(index), compiled.get_line(index)) {
                (Some(span), _) => out.add_with_span(instruction, span),
                (None, Some(line)) => out.add_with_line(instruction, line as u16),
                (None, None) => out.add(instruction),
            };
        }
    }
    out
}

/// Returns what stands for an instruction: itself, with a call before or behind it, or a call alone.
fn paid<'source>(instruction: &Instruction<'source>) -> Vec<Instruction<'source>> {
    let call = |name, count| Instruction::CallFunction(name, Some(count));
    match instruction {
        Instruction::StringConcat => vec![call(CONCAT, 2)],
        Instruction::Add => vec![call(ADD, 2)],
        Instruction::Mul => vec![call(MULTIPLY, 2)],
        // As a value, since what a loop says over and over is paid for only where values are written.
        Instruction::EmitRaw(text) => {
            vec![Instruction::LoadConst(Value::from(*text)), Instruction::Emit]
        }
        // A namespace that holds itself has no end when it is printed.
        Instruction::SetAttr(_) => {
            vec![Instruction::Swap, call(PLAIN, 1), Instruction::Swap, instruction.clone()]
        }
        // The body of a loop is no value.
        Instruction::CallFunction("super" | "loop" | "caller", _) => vec![instruction.clone()],
        Instruction::Slice
        | Instruction::BuildMap(_)
        | Instruction::BuildList(_)
        | Instruction::BuildTuple(_)
        | Instruction::ApplyFilter(..)
        | Instruction::CallFunction(..)
        | Instruction::CallMethod(..)
        | Instruction::CallObject(_) => vec![instruction.clone(), call(PAID, 1)],
        _ => vec![instruction.clone()],
    }
}
