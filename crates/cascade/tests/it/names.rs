use crate::{phase, said};

#[test]
fn names_that_cannot_be_folders_are_refused() {
    for name in ["../evil", "a/b", ".hidden", "''", "\"a\\0b\""] {
        let text = format!("cascade_id: c\nphases:\n  - name: {name}\n    instructions: x\n");
        let said = said(&text);
        assert!(
            said.starts_with("3:11: error: phases[0].name: ") && said.contains("cannot be a name"),
            "{said}"
        );
        assert!(said.contains("letters, digits, `_` and `-` always can"));
    }
    assert!(
        said("cascade_id: ..\nphases: []")
            .contains("1:13: error: cascade_id: \"..\" cannot be a name")
    );
}

#[test]
fn a_name_stands_once() {
    let text =
        "cascade_id: c\nphases:\n  - {name: a, instructions: x}\n  - {name: A, instructions: y}\n";
    assert_eq!(said(text), "4:12: error: phases[1]: a phase named `A` stands at 3:12 already");
}

#[test]
fn a_name_that_means_an_order_warns() {
    let text = phase("instructions: x").replace("name: a", "name: previous");
    assert!(said(&text).contains("names phases by their order"));
}
