//! The grammar of names against the expression of the scoring script, as Python's `re` reads it.

use plimsoll_core::names::each_name;

/// Made by running the script's expression over these strings.
///
/// Not among them: combining marks, which are word characters here and none in Python, and digits like ², the reverse.
#[test]
fn tricky_strings_give_the_names_that_the_script_finds() {
    let cases: &[(&str, &[&str])] = &[
        ("see https://a.example/x?y=1) and", &["https://a.example/x?y=1"]),
        ("a/b/c.", &["a/b/c"]),
        ("./x/y:12:", &["./x/y"]),
        ("~/.config/app.toml,", &["~/.config/app.toml"]),
        ("@scope/pkg-name@1.2.3", &["scope/pkg-name@1.2.3"]),
        ("3fa9c1d", &["3fa9c1d"]),
        ("3fa9c1", &[]),
        ("deadbeefcafe0123456789", &["deadbeefcafe0123456789"]),
        ("os.path.join(x)", &["os.path.join"]),
        ("a.b.c.d", &["a.b.c.d"]),
        ("x1.y_2", &["x1.y_2"]),
        ("_private.member", &["_private.member"]),
        ("snake_case_2", &["snake_case_2"]),
        ("CamelCase", &["CamelCase"]),
        ("camelCaseName", &["camelCaseName"]),
        ("HTTPServer", &[]),
        ("MAX_", &["MAX_"]),
        ("__init__", &[]),
        ("__MAX_X", &["__MAX_X"]),
        ("ID3", &[]),
        ("v1.2.3", &["v1.2.3"]),
        ("1234567", &["1234567"]),
        (
            "12345678901234567890123456789012345678901234567",
            &["12345678901234567890123456789012345678901234567"],
        ),
        ("größe.wert", &["größe.wert"]),
        ("straße/öl", &["straße/öl"]),
        ("über_maß", &[]),
        ("naïve_value", &[]),
        ("日本語の行", &[]),
        ("日本/語.txt", &["日本/語.txt"]),
        ("x/日本", &["x/日本"]),
        ("\u{ff11}\u{ff12}\u{ff13}\u{ff14}", &["\u{ff11}\u{ff12}\u{ff13}\u{ff14}"]),
        ("http://x.y/ü?ä=ö", &["http://x.y/ü?ä=ö"]),
        ("foo\u{a0}bar_baz", &["bar_baz"]),
        ("a\u{2028}b_c_d", &["b_c_d"]),
        ("\\nparse_header", &["nparse_header"]),
        ("\\\"quoted_name\\\"", &["quoted_name"]),
        ("\u{130}stanbul.x", &[]),
        ("\u{17f}nake_case", &[]),
        ("K_elvin", &[]),
        ("a_b\u{301}_c", &[]),
        ("\u{661}\u{662}\u{663}\u{664}", &["\u{661}\u{662}\u{663}\u{664}"]),
        ("_a._b", &["_a._b"]),
        ("don't_stop", &["t_stop"]),
        ("--flag-name/x", &["--flag-name/x"]),
        ("a//b", &[]),
        ("/", &[]),
        ("//", &[]),
        ("http://", &[]),
        ("https://)", &[]),
        ("C:\\path\\to_file", &["to_file"]),
        ("src/a-b+c@d.rs", &["src/a-b+c@d.rs"]),
        ("...../x", &["...../x"]),
        ("end.", &[]),
        ("a.b.", &[]),
        ("1.2.3.4", &[]),
        ("0x1f_ff", &[]),
        ("\u{200b}zero_width", &["zero_width"]),
        ("emoji🚢ship_name/x", &["ship_name/x"]),
    ];
    for (text, expected) in cases {
        let mut found = Vec::new();
        each_name(text, |name| found.push(name));
        assert_eq!(found, *expected, "{text}");
    }
}
