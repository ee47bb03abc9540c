//! The plans by name. Their files are made by `e2e/workspace.py`.

use super::plan::{Action, Plan};

impl Plan {
    /// The names that [`Plan::named`] knows.
    pub const NAMES: [&'static str; 5] = ["mending", "short", "nine", "mixed", "again"];

    /// Returns the plan of a name.
    ///
    /// `mending` is [`Plan::mending`]. `short` has four small turns. `nine` reads 26 files of 9 KB, each once. `mixed` has 26
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

fn shell(line: &str) -> Action {
    Action::Shell(line.to_owned())
}

fn read(path: &str) -> Action {
    Action::Read(path.to_owned())
}

fn edit(path: &str, old: &str, new: &str) -> Action {
    Action::Edit { path: path.to_owned(), old: old.to_owned(), new: new.to_owned() }
}

fn short() -> Vec<Action> {
    vec![
        shell("ls -la . parts"),
        read("parts/small.py"),
        Action::Search("def rounded".to_owned()),
        shell("python3 check.py | tail -n 3"),
    ]
}

fn nine() -> Vec<Action> {
    (0..26).map(|at| Action::Read(format!("nine/part_{at:02}.py"))).collect()
}

fn mixed() -> Vec<Action> {
    vec![
        shell("ls -la . src logs data"),
        read("src/engine.py"),
        shell("cat logs/build.log"),
        read("src/store.py"),
        Action::Search("def open_".to_owned()),
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
        Action::Search("LIMIT".to_owned()),
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
fn again() -> Vec<Action> {
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
