//! A folder and a home of its own for each test, and the binary run in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// The result of a run.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) struct Environment {
    folder: TempDir,
}

impl Environment {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().expect("a folder for the test");
        for name in ["home", "work"] {
            std::fs::create_dir(folder.path().join(name)).expect("an empty folder");
        }
        Self { folder }
    }

    /// Where the binary runs.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Writes a file below the folder in which the binary runs.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        write(&self.work().join(name), content.as_ref());
        if name == "plimsoll.toml" {
            // As a user does who wrote it; what cannot be read needs no trust.
            self.run(&["trust"]);
        }
    }

    /// Writes a file below the folder in which the binary runs, as one that came with the folder.
    pub(crate) fn write_foreign(&self, name: &str, content: impl AsRef<[u8]>) {
        write(&self.work().join(name), content.as_ref());
    }

    /// Writes a file below the home.
    pub(crate) fn write_home(&self, name: &str, content: impl AsRef<[u8]>) {
        write(&self.home().join(name), content.as_ref());
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.work().join(name)).expect("a file that was written")
    }

    /// Names all files in the folder in which the binary runs.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.work())
            .expect("the folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Runs the binary with nothing of the user's environment.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.ran(&self.command(arguments).output().expect("the binary runs"))
    }

    /// Runs the binary with these variables and nothing else of the user's environment.
    pub(crate) fn run_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
        let mut command = self.command(arguments);
        self.ran(&command.envs(variables.iter().copied()).output().expect("the binary runs"))
    }

    /// Runs the binary as on a terminal: with colours, and nothing stripped.
    pub(crate) fn run_coloured(&self, arguments: &[&str]) -> Ran {
        let mut command = self.command(arguments);
        self.ran(&command.env("CLICOLOR_FORCE", "1").output().expect("the binary runs"))
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(arguments).current_dir(self.work()).env_clear().env("HOME", self.home());
        command
    }

    /// Runs the binary; it must succeed and say nothing on standard error.
    pub(crate) fn data(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{arguments:?}");
        ran.stdout
    }

    /// Runs the binary with `--json` and reads what it prints.
    pub(crate) fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let all: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&self.data(&all)).expect("JSON")
    }

    fn ran(&self, output: &Output) -> Ran {
        let place = self.folder.path().to_string_lossy();
        let text = |bytes: &[u8]| {
            String::from_utf8(bytes.to_vec()).expect("UTF-8").replace(&*place, "[FOLDER]")
        };
        Ran {
            code: output.status.code().expect("no signal"),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }
}

fn write(path: &Path, content: &[u8]) {
    std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder");
    std::fs::write(path, content).expect("a file");
}
