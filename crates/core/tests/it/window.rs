//! Properties of trimming a session and of compressing tool results.

use plimsoll_core::{
    Block, ContextBudget, HEURISTIC_HEADER, Message, Role, SummaryBy, Tokenizer, ToolCall,
    Transcript, TrimSettings, TrimmedSession, calculate_budgets, compress_result, pressure,
    score_turns, statistics, trim,
};
use proptest::prelude::*;

/// A part of a session.
#[derive(Debug, Clone)]
enum Part {
    Say(Role, String),
    /// Parallel calls and the sizes of their results, in reverse order if so; the last may stay unanswered.
    Exchange {
        says: String,
        results: Vec<String>,
        reversed: bool,
        open: bool,
        in_one_message: bool,
    },
    /// A further answer to the newest call.
    Again,
    /// An answer to nobody.
    Orphan,
}

fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("please fix this. "),
        Just("the result is clear! "),
        Just("nothing of note, "),
        Just("ärger mit Umlauten 🚢 "),
        Just("```let a = 1;```\n"),
        Just("\n"),
    ];
    (prop::collection::vec(word, 0..6), 1..12_usize)
        .prop_map(|(words, times)| words.concat().repeat(times))
}

fn result() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("a line of output that is neither long nor short\n"),
        Just("error: it broke\n"),
        Just("x"),
        Just("🚢🚢🚢 0 errors "),
    ];
    prop_oneof![
        3 => text(),
        1 => (prop::collection::vec(line, 1..4), 1..400_usize)
            .prop_map(|(lines, times)| lines.concat().repeat(times)),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    let role = prop_oneof![
        4 => Just(Role::User),
        4 => Just(Role::Assistant),
        1 => Just(Role::System),
    ];
    let exchange = (
        text(),
        prop::collection::vec(result(), 1..6),
        any::<bool>(),
        prop::bool::weighted(0.1),
        any::<bool>(),
    );
    prop_oneof![
        6 => (role, text()).prop_map(|(role, text)| Part::Say(role, text)),
        6 => exchange.prop_map(|(says, results, reversed, open, in_one_message)| Part::Exchange {
            says, results, reversed, open, in_one_message
        }),
        1 => Just(Part::Again),
        1 => Just(Part::Orphan),
    ]
}

fn session(parts: &[Part], tokenizer: Tokenizer) -> Transcript {
    let mut transcript = Transcript::new(tokenizer);
    let mut newest = String::new();
    for (n, part) in parts.iter().enumerate() {
        match part {
            Part::Say(role, text) => {
                transcript.push(Message::text(*role, text.as_str()));
            }
            Part::Exchange { says, results, reversed, open, in_one_message } => {
                let mut answers = Vec::new();
                let mut blocks = vec![Block::Text(says.as_str().into())];
                for (k, result) in results.iter().enumerate() {
                    newest = format!("{n}-{k}");
                    blocks.push(Block::ToolCall(ToolCall {
                        id: newest.as_str().into(),
                        name: "bash".into(),
                        arguments: "{}".into(),
                    }));
                    answers.push(Message::result(newest.as_str(), result.as_str()));
                }
                transcript.push(Message::new(Role::Assistant, blocks));
                if *reversed {
                    answers.reverse();
                }
                if *open {
                    answers.pop();
                }
                if *in_one_message {
                    let blocks = answers.into_iter().flat_map(|answer| answer.blocks).collect();
                    transcript.push(Message::new(Role::User, blocks));
                } else {
                    for answer in answers {
                        transcript.push(answer);
                    }
                }
            }
            Part::Again => {
                transcript.push(Message::result(newest.as_str(), "again"));
            }
            Part::Orphan => {
                transcript.push(Message::result("nobody", "orphan"));
            }
        }
    }
    transcript
}

fn settings() -> impl Strategy<Value = TrimSettings> {
    (0..600_u64, 0..6000_u64, any::<bool>()).prop_map(|(summary_budget, recent_budget, model)| {
        TrimSettings {
            summary_budget,
            recent_budget,
            summary_by: if model { SummaryBy::Model } else { SummaryBy::Heuristic },
        }
    })
}

fn kept(trimmed: &TrimmedSession, position: usize) -> bool {
    trimmed.kept.iter().any(|turn| turn.position == position)
}

/// The trimmed session counted afresh: every kept message and the summary as a message of its own.
fn recount(trimmed: &TrimmedSession, tokenizer: Tokenizer) -> u64 {
    let mut again = Transcript::new(tokenizer);
    for turn in &trimmed.kept {
        again.push(turn.message.clone());
    }
    if !trimmed.summary.is_empty() {
        again.push(Message::text(Role::User, trimmed.summary.as_str()));
    }
    again.tokens()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn trimming_keeps_its_laws(
        parts in prop::collection::vec(part(), 0..30),
        settings in settings(),
        written in text(),
    ) {
        let tokenizer = Tokenizer::Estimate;
        let transcript = session(&parts, tokenizer);
        let trimmed = trim(&transcript, &settings);
        let total = transcript.entries().len();

        // The ceiling, by the record and counted afresh; and never more than there was.
        let ceiling = settings.summary_budget + settings.recent_budget;
        prop_assert!(trimmed.total_trimmed_tokens <= ceiling + trimmed.over_ceiling);
        prop_assert_eq!(recount(&trimmed, tokenizer), trimmed.total_trimmed_tokens);
        prop_assert!(trimmed.total_trimmed_tokens <= trimmed.total_original_tokens);
        prop_assert_eq!(trimmed.total_original_tokens, transcript.tokens());
        prop_assert!(trimmed.summary_tokens <= settings.summary_budget);
        prop_assert!(trimmed.over_ceiling == 0 || trimmed.summary.is_empty());
        let header = trimmed.summary.is_empty() || trimmed.summary.starts_with(HEURISTIC_HEADER);
        prop_assert!(header, "{}", trimmed.summary);

        // First and last five, in order, and every position once.
        let first = transcript.entries().iter().position(|e| e.message.role != Role::System);
        for position in (0..=first.unwrap_or(0)).chain(total.saturating_sub(5)..total) {
            prop_assert!(position >= total || kept(&trimmed, position), "{position}");
        }
        prop_assert!(trimmed.kept.is_sorted_by(|a, b| a.position < b.position));
        let mut all: Vec<usize> = trimmed.kept.iter().map(|turn| turn.position).collect();
        all.extend(&trimmed.summarized);
        all.sort_unstable();
        prop_assert_eq!(all, (0..total).collect::<Vec<_>>());

        // Exchanges stay or go together, and the summary never stands inside one.
        let before = &trimmed.kept[..trimmed.summary_at];
        for exchange in transcript.exchanges() {
            for result in &exchange.results {
                prop_assert_eq!(kept(&trimmed, *result), kept(&trimmed, exchange.call));
                let ahead = |at| before.iter().any(|turn| turn.position == at);
                prop_assert_eq!(ahead(*result), ahead(exchange.call));
            }
        }

        // No kept message grew.
        for turn in &trimmed.kept {
            prop_assert!(turn.tokens <= u64::from(transcript.entries()[turn.position].tokens));
        }

        // Same input, same output; and a model's summary keeps the ceiling too.
        prop_assert_eq!(format!("{:?}", trim(&transcript, &settings)), format!("{trimmed:?}"));
        let by_model = trimmed.with_model_summary(&written, tokenizer);
        prop_assert!(by_model.total_trimmed_tokens <= ceiling + by_model.over_ceiling);
        prop_assert_eq!(recount(&by_model, tokenizer), by_model.total_trimmed_tokens);
    }

    #[test]
    fn scores_are_in_range(parts in prop::collection::vec(part(), 0..20)) {
        let transcript = session(&parts, Tokenizer::Estimate);
        let scores = score_turns(&transcript);
        prop_assert_eq!(scores.len(), transcript.entries().len());
        for score in scores {
            prop_assert!((30..=100).contains(&score.priority));
        }
        let found = statistics(&transcript);
        prop_assert_eq!(found.largest_messages.len(), transcript.entries().len().min(10));
    }

    #[test]
    fn compression_never_enlarges(text in result(), per_token in 0.1_f32..6.0) {
        for tokenizer in [Tokenizer::Estimate, Tokenizer::Characters { per_token }] {
            if let Some(compressed) = compress_result(&text, tokenizer) {
                prop_assert!(compressed.len() < text.len());
                prop_assert!(tokenizer.count(&compressed) < tokenizer.count(&text));
                prop_assert_eq!(compress_result(&compressed, tokenizer), None);
                let head = compressed.split("\n\n[... ").next().unwrap_or_default();
                prop_assert!(text.starts_with(head));
            }
        }
    }

    #[test]
    fn any_settings_are_read_or_refused(
        total_tokens in any::<u64>(),
        share in any::<f64>(),
        threshold in any::<f64>(),
        session_tokens in any::<u64>(),
    ) {
        let mut budget = ContextBudget { total_tokens, ..ContextBudget::default() };
        budget.allocations.session_recent = share;
        budget.show_pressure_above = threshold;
        if let Ok(checked) = budget.checked() {
            let budgets = calculate_budgets(&checked).named();
            let sum: u128 = budgets.iter().map(|(_, tokens)| u128::from(*tokens)).sum();
            // Shares of windows beyond 2^53 tokens are rounded as floats are.
            prop_assert!(sum <= u128::from(total_tokens) + u128::from(total_tokens >> 50));
        }
        // Unchecked settings must not panic either.
        let shown = pressure(session_tokens, &budget);
        prop_assert_eq!(shown.bar.chars().count(), 20);
        prop_assert!(shown.markdown().is_empty() || shown.markdown().ends_with("</sub>"));
    }
}

#[test]
fn byte_pairs_keep_the_ceiling_too() {
    let tokenizer = Tokenizer::O200k { factor: 1.18 };
    let say = |n: usize| {
        let role = if n.is_multiple_of(2) { Role::User } else { Role::Assistant };
        Part::Say(role, format!("Turn {n} about the ᚠᛇᚻ ships 🚢 of the fleet. ").repeat(n % 7 + 1))
    };
    let transcript = session(&(0..120).map(say).collect::<Vec<_>>(), tokenizer);
    for summary_budget in [0, 30, 100, 333] {
        let settings =
            TrimSettings { summary_budget, recent_budget: 900, summary_by: SummaryBy::Heuristic };
        let trimmed = trim(&transcript, &settings);
        assert_eq!(trimmed.over_ceiling, 0);
        assert!(recount(&trimmed, tokenizer) <= 900 + summary_budget, "{summary_budget}");
    }
}
