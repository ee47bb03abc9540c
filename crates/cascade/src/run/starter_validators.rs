//! Validators that real cascades name without defining them: each is a question to the phase's model.

/// The names, and the criterion of each.
const STARTERS: &[(&str, &str)] = &[
    (
        "satisfied",
        "Does the content below complete its task, so that whoever asked for it would be satisfied?",
    ),
    (
        "grammar_check",
        "Is the content below free of errors of grammar and spelling? Style and opinions do not count.",
    ),
    (
        "code_execution_validator",
        "Does the content below show that its code ran without an error, and what it printed?",
    ),
    ("length_check", "Is the content below long enough to answer its task, and not empty?"),
    ("simple_validator", "Is the content below a sensible answer that is not empty?"),
];

/// Returns the criterion of a validator that comes with Plimsoll.
///
/// One of the same name in the cascade, among the tools or beside the file goes before it.
pub fn starter_validator(name: &str) -> Option<&'static str> {
    STARTERS.iter().find(|(known, _)| *known == name).map(|(_, criterion)| *criterion)
}
