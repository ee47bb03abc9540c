//! The plans by name. Their files are made by `e2e/workspace.py`.

use super::plan::{PlanAction, ScriptedPlan};

impl ScriptedPlan {
    /// The names that [`ScriptedPlan::named`] knows.
    pub const NAMES: [&'static str; 5] = ["mending", "short", "nine", "mixed", "again"];

    /// Returns the plan of a name.
    ///
    /// `mending` is [`ScriptedPlan::mending`]. `short` has four small turns. `nine` reads 26 files of 9 KB, each once. `mixed` has 26
    /// results up to 100 KB: sources, logs, listings, JSON, copies that are unchanged or slightly changed, two edits. `again`
    /// reads seven files twenty times, so two thirds of the lines that it reads stand in the context already.
    pub fn named(name: &str, workspace: impl Into<String>) -> Option<Self> {
        let workspace = workspace.into();
        let (turns, last) = match name {
            "mending" => return Some(Self::mending(workspace)),
            "short" => (short(), "Done: three is rounded to two places."),
            "nine" => (nine(), "Done: all parts are read, and none of them calls another."),
            "mixed" => (mixed(), "Done: the limit was one too low, and the tests pass."),
            "again" => (again(), "Done: the halls agree with each other."),
            _ => return None,
        };
        let turns = turns.into_iter().map(|action| vec![action]).collect();
        Some(Self { turns, workspace, last: last.to_owned() })
    }
}

fn shell(line: &str) -> PlanAction {
    PlanAction::Shell(line.to_owned())
}

fn read(path: &str) -> PlanAction {
    PlanAction::Read(path.to_owned())
}

fn edit(path: &str, old: &str, new: &str) -> PlanAction {
    PlanAction::Edit { path: path.to_owned(), old: old.to_owned(), new: new.to_owned() }
}

fn short() -> Vec<PlanAction> {
    vec![
        shell("ls -la . parts"),
        read("parts/small.py"),
        PlanAction::Search("def rounded".to_owned()),
        shell("python3 check.py | tail -n 3"),
    ]
}

fn nine() -> Vec<PlanAction> {
    (0..26).map(|at| PlanAction::Read(format!("nine/part_{at:02}.py"))).collect()
}

fn mixed() -> Vec<PlanAction> {
    vec![
        shell("ls -la . src logs data"),
        read("src/engine.py"),
        shell("cat logs/build.log"),
        read("src/store.py"),
        PlanAction::Search("def open_".to_owned()),
        shell("cat data/rows.json"),
        shell("find . -type f | sort | xargs wc -l"),
        read("src/engine.py"),
        read("src/routes.py"),
        shell("cat logs/server.log"),
        edit("src/engine.py", "LIMIT = 40", "LIMIT = 41"),
        read("src/engine.py"),
        shell("python3 run_tests.py"),
        read("src/settings.py"),
        shell("cat src/store.py"),
        PlanAction::Search("LIMIT".to_owned()),
        shell("cat data/users.json"),
        read("src/models.py"),
        edit("src/store.py", "RETRIES = 3", "RETRIES = 4"),
        shell("cat src/store.py"),
        shell("python3 run_tests.py"),
        shell("ls -la src logs data"),
        shell("cat logs/build.log"),
        read("src/views.py"),
        shell("tail -n 300 logs/server.log"),
        shell("python3 run_tests.py | tail -n 5"),
    ]
}

/// Thirteen of twenty reads are of a file that was read before. By the shell, since some tools for reading files answer a second
/// time that nothing has changed.
fn again() -> Vec<PlanAction> {
    let order = [
        "north", "south", "east", "north", "west", "south", "yard", "north", "east", "gate",
        "south", "west", "north", "yard", "tower", "east", "gate", "south", "tower", "north",
    ];
    let mut turns: Vec<_> = order.map(|name| shell(&format!("cat again/{name}.py"))).into();
    // One line changes between two reads.
    turns[11] = shell("sed -i 's/^LIMIT = 40/LIMIT = 41/' again/west.py; cat again/west.py");
    turns[17] = shell("sed -i 's/^LIMIT = 40/LIMIT = 41/' again/south.py; cat again/south.py");
    turns
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_name_has_its_plan() {
        let turns = |name| ScriptedPlan::named(name, "/work").map(|plan| plan.turns.len());
        // `e2e/workspace.py` counts on these figures.
        assert_eq!(ScriptedPlan::NAMES.map(turns), [14, 4, 26, 26, 20].map(Some));
        assert_eq!(turns("none"), None);
    }

    #[test]
    fn two_thirds_of_what_again_reads_was_read_before() {
        let file = |action: &PlanAction| match action {
            PlanAction::Shell(line) => line.split_whitespace().last().map(str::to_owned),
            _ => None,
        };
        let files: Vec<_> = again().iter().filter_map(file).collect();
        let distinct: HashSet<_> = files.iter().collect();
        assert_eq!((files.len(), distinct.len()), (20, 7));
        let twice = nine().iter().zip(nine().iter().skip(1)).any(|(one, next)| one == next);
        assert!(!twice, "nine reads nothing twice");
    }
}
