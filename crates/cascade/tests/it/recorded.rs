//! Real cascades, where a folder of them is at hand: each validates, and draws.

use std::path::{Path, PathBuf};

use plimsoll_cascade::graph::{Graph, svg};
use plimsoll_cascade::{Severity, parse};

fn folder() -> Option<PathBuf> {
    let given = option_env!("PLIMSOLL_TEST_CASCADES").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/cascades");
    given.or(Some(beside)).filter(|folder| folder.is_dir())
}

#[test]
fn recorded_cascades_validate_and_draw() {
    let Some(folder) = folder() else {
        eprintln!("skipped: no folder of cascades (PLIMSOLL_TEST_CASCADES)");
        return;
    };
    for path in folder.read_dir().unwrap().flatten().map(|entry| entry.path()) {
        let text = std::fs::read_to_string(&path).unwrap();
        let (cascade, problems) = parse(&text, &path.to_string_lossy());
        for problem in &problems {
            println!("{}:{problem}", path.display());
        }
        assert!(problems.iter().all(|problem| problem.severity == Severity::Warning));
        let graph = Graph::of(&cascade.unwrap());
        assert!(graph.nodes.iter().all(|node| graph.mermaid().contains(&node.name)));
        assert!(svg(&graph).ends_with("</svg>\n"));
    }
}
