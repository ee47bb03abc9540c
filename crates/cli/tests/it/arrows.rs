//! The arrows between crates point down only.

use std::process::Command;

/// Names all packages that `package` needs to run, itself apart.
fn needs(package: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "--locked",
            "-e",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .args([
            "-p",
            package,
            "--manifest-path",
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
        ])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}

fn check(package: &str, never: &[&str]) {
    let needs = needs(package);
    assert!(!needs.is_empty());
    for name in never {
        assert!(!needs.iter().any(|need| need == name), "{package} needs {name}");
    }
}

#[test]
fn core_computes_and_nothing_else() {
    check(
        "plimsoll-core",
        &[
            "plimsoll-formats",
            "plimsoll-cli",
            "tokio",
            "reqwest",
            "rusqlite",
            "axum",
            "clap",
            "anyhow",
            "jiff",
        ],
    );
}

/// Returns what a package needs of ours, core apart.
fn ours(package: &str) -> Vec<String> {
    let mut needs = needs(package);
    needs.retain(|name| name.starts_with("plimsoll-") && name != "plimsoll-core");
    needs
}

#[test]
fn formats_and_wire_know_core_only() {
    for package in ["plimsoll-formats", "plimsoll-wire"] {
        assert_eq!(ours(package), Vec::<String>::new(), "{package}");
        check(package, &["tokio", "reqwest", "rusqlite", "axum", "clap", "anyhow"]);
    }
}

#[test]
fn models_know_engine_wire_and_core_only() {
    check(
        "plimsoll-models",
        &[
            "plimsoll-cli",
            "plimsoll-store",
            "plimsoll-formats",
            "plimsoll-cascade",
            "plimsoll-tools",
            "rusqlite",
            "axum",
            "clap",
            "anyhow",
        ],
    );
}

#[test]
fn tools_know_the_engine_and_core_only() {
    check(
        "plimsoll-tools",
        // The starter tool for SQL opens databases of the user; the store's own database is none of its business.
        &["plimsoll-cli", "plimsoll-store", "plimsoll-models", "plimsoll-cascade"],
    );
}

#[test]
// It needs the runtime for one thing: a cascade inside another one is a task with a stack of its own.
fn cascades_know_the_engine_and_core_only() {
    check(
        "plimsoll-cascade",
        &[
            "plimsoll-store",
            "plimsoll-models",
            "plimsoll-formats",
            "plimsoll-cli",
            "reqwest",
            "rusqlite",
            "axum",
            "clap",
            "anyhow",
        ],
    );
}

#[test]
fn the_server_of_mcp_knows_the_engine_and_core_only() {
    check(
        "plimsoll-mcp",
        &[
            "plimsoll-formats",
            "plimsoll-wire",
            "plimsoll-store",
            "plimsoll-models",
            "plimsoll-tools",
            "plimsoll-cascade",
            "plimsoll-gateway",
            "plimsoll-cli",
            "rusqlite",
            "clap",
            "anyhow",
        ],
    );
}

#[test]
fn the_interface_knows_no_server_and_no_backend() {
    check(
        "plimsoll-api",
        &[
            "plimsoll-wire",
            "plimsoll-store",
            "plimsoll-models",
            "plimsoll-tools",
            "plimsoll-gateway",
            "plimsoll-mcp",
            "plimsoll-cli",
            "reqwest",
            "rusqlite",
            "hyper",
            "clap",
            "anyhow",
        ],
    );
}

#[test]
fn the_engine_waits_for_nothing_itself() {
    check(
        "plimsoll-engine",
        &["plimsoll-models", "plimsoll-store", "tokio", "reqwest", "rusqlite"],
    );
}

#[test]
fn the_gateway_knows_engine_and_wire_only() {
    check(
        "plimsoll-gateway",
        &[
            "plimsoll-formats",
            "plimsoll-store",
            "plimsoll-models",
            "plimsoll-tools",
            "plimsoll-cascade",
            "plimsoll-cli",
            "rusqlite",
            "clap",
            "anyhow",
        ],
    );
}

#[test]
fn what_is_unsafe_stands_in_its_module_only() {
    // In two parts, so that this file is not found.
    const ALLOWED: &str = concat!("unsafe", "_code,");
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    let mut folders = vec![crates];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && std::fs::read_to_string(&path).expect("text").contains(ALLOWED)
            {
                found.push(path.file_name().expect("a name").to_owned());
            }
        }
    }
    assert_eq!(found, ["heaps.rs"]);
}
