//! Every cascade of the shared data validates; `PLIMSOLL_SHARED` says where they are.

use std::path::PathBuf;

use plimsoll_cascade::{Severity, parse};

#[test]
fn shared_cascades_validate() {
    #[expect(clippy::disallowed_methods, reason = "the one setting of this test")]
    let Ok(folder) = std::env::var("PLIMSOLL_SHARED") else {
        println!("skipped: PLIMSOLL_SHARED is not set");
        return;
    };
    let folder = PathBuf::from(folder).join("data/cascades");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("a folder of cascades") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a cascade");
        let (cascade, problems) = parse(&text, &path.to_string_lossy());
        for problem in &problems {
            println!("{}:{problem}", path.display());
        }
        assert!(cascade.is_some(), "{}", path.display());
        assert!(problems.iter().all(|problem| problem.severity == Severity::Warning));
        count += 1;
    }
    assert!(count > 0);
}
