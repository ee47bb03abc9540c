//! Properties of memory and requests: budgets are ceilings, order never shows, and nothing panics.

use plimsoll_core::context::Components;
use plimsoll_core::memory::assemble::{MemoryInput, MemorySettings, assemble};
use plimsoll_core::memory::extract::{ExtractedRecord, Extraction, extract};
use plimsoll_core::memory::frame::Frames;
use plimsoll_core::memory::layers::{
    Complexity, ComplexitySettings, Layer, LayerBudget, Priorities,
};
use plimsoll_core::memory::lifecycle::Severity;
use plimsoll_core::memory::score::MemoryCandidate;
use plimsoll_core::memory::{MemoryKind, MemoryState};
use plimsoll_core::policy::RequestSettings;
use plimsoll_core::request::{
    FoundFact, HotArtefact, PastMessage, RequestInput, ToolIntent, assemble_request,
};
use plimsoll_core::{ContentHash, Message, MillisSinceEpoch, Role, Tokenizer};
use proptest::prelude::*;

fn budgets() -> impl Strategy<Value = LayerBudget> {
    (any::<u16>(), prop::collection::vec(prop_oneof![0_u64..4000, any::<u64>()], 9)).prop_map(
        |(total, layers)| LayerBudget {
            total: u64::from(total),
            identity: layers[0],
            censors: layers[1],
            frame: layers[2],
            working: layers[3],
            decisions: layers[4],
            facts: layers[5],
            procedures: layers[6],
            episodes: layers[7],
            calibration: layers[8],
        },
    )
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z \n\"#>-]{0,80}",
        "\\PC{0,60}",
        Just("## Identity\nobey".to_owned()),
        "[a-z ]{200,600}",
    ]
}

fn candidates() -> impl Strategy<Value = Vec<MemoryCandidate>> {
    let candidate = (
        0_u8..40,
        prop::sample::select(MemoryKind::ALL),
        prop::sample::select(MemoryState::ALL),
        (texts(), prop::option::of(texts()), texts()),
        prop::sample::select(vec!["operator", "user", "tool", ""]),
        prop_oneof![0.0..=1.0, any::<f64>()],
        any::<i64>(),
        any::<bool>(),
    );
    prop::collection::vec(candidate, 0..40).prop_map(|all| {
        all.into_iter()
            .map(|(id, kind, state, (micro, summary, name), origin, similarity, at, block)| {
                MemoryCandidate {
                    state,
                    name,
                    summary,
                    origin: origin.to_owned(),
                    similarity,
                    at: MillisSinceEpoch(at),
                    severity: if block { Severity::Block } else { Severity::Warn },
                    ..MemoryCandidate::new(format!("r{id}"), kind, micro)
                }
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn layers_never_exceed_the_total(
        budget in budgets(),
        wanted in prop::collection::vec(prop_oneof![0_u64..5000, any::<u64>()], 9),
        priorities in prop::collection::vec(any::<f64>(), 4),
        factor in any::<f64>(),
    ) {
        let settings = ComplexitySettings {
            short_factor: factor,
            complex_factor: factor,
            ..ComplexitySettings::default()
        };
        let priorities = Priorities {
            decisions: priorities[0],
            facts: priorities[1],
            procedures: priorities[2],
            episodes: priorities[3],
        };
        for complexity in [Complexity::Short, Complexity::Plain, Complexity::Complex] {
            let adjusted = budget.adjusted(complexity, &settings);
            prop_assert!(adjusted.allocated().sum() <= budget.total);
            let want = |layer: Layer| wanted[layer as usize];
            let given = adjusted.flowed(want, &priorities);
            prop_assert!(given.sum() <= budget.total);
            for layer in Layer::ALL {
                prop_assert!(given.of(layer) <= want(layer));
            }
        }
    }

    #[test]
    fn a_request_is_within_its_budget_or_says_by_how_much_it_is_not(
        total in prop_oneof![0_u64..200, 0_u64..3000],
        texts in prop::collection::vec((texts(), any::<bool>(), any::<f64>()), 0..30),
        turn in texts(),
        memory in prop::option::of(texts()),
        exact in any::<bool>(),
    ) {
        let tokenizer = if exact { Tokenizer::O200k { factor: 1.0 } } else { Tokenizer::Estimate };
        let tools: Vec<ToolIntent> = texts
            .iter()
            .map(|(text, ..)| ToolIntent { name: text.chars().take(9).collect(), intent: text.clone() })
            .collect();
        let history: Vec<PastMessage> = texts
            .iter()
            .map(|(text, user, _)| PastMessage {
                role: if *user { Role::User } else { Role::Assistant },
                text: text.clone(),
                hash: ContentHash::of(&Message::text(Role::User, &**text)),
            })
            .collect();
        let facts: Vec<FoundFact> = texts
            .iter()
            .map(|(text, _, similarity)| FoundFact {
                id: text.clone(),
                text: text.clone(),
                origin: "tool".into(),
                similarity: *similarity,
            })
            .collect();
        let artefacts: Vec<HotArtefact> = texts
            .iter()
            .map(|(text, stale, _)| HotArtefact {
                reference: "ref:page:0123456789abcdef".into(),
                summary: stale.then(|| text.clone()),
                extract: text.clone(),
                stale: *stale,
            })
            .collect();
        let input = RequestInput {
            rules: "Answer.",
            tools: &tools,
            memory: memory.as_deref(),
            profile: &turn,
            history: &history,
            facts: &facts,
            artefacts: &artefacts,
            user_turn: &turn,
            tokenizer,
        };
        let settings = RequestSettings { total, ..RequestSettings::default() };
        match assemble_request(&input, &settings) {
            Ok(request) => {
                let messages = request.header.iter().chain(&request.memory);
                let messages = messages.chain(&request.working_set);
                let used: u64 =
                    messages.map(|message| u64::from(tokenizer.count_message(message))).sum();
                prop_assert_eq!(used, request.budget.used);
                let Components { system, user, assistant, facts, artefacts, .. } =
                    request.receipt.components;
                let sections = system + user + assistant + facts + artefacts;
                // Shares of one message are rounded down, by less than a token each.
                prop_assert!(sections <= used && used < sections + 3, "{sections} of {used}");
                prop_assert!(used <= total);
                let last = request.working_set.last().expect("the turn");
                prop_assert!(last.shown().ends_with(&*turn));
            }
            Err(error) => prop_assert!(error.by > 0),
        }
    }

    #[test]
    fn what_is_extracted_stands_in_the_text(
        parts in prop::collection::vec(
            prop_oneof![
                texts(),
                Just("We decided to use it.".to_owned()),
                Just("- [ ] ".to_owned()),
                Just("issue #12 [a](https://b.example/".to_owned()),
                Just("```".to_owned()),
                Just("\n".to_owned()),
                "\\PC{0,8}",
            ],
            0..20,
        ),
        longest in 0_usize..600,
    ) {
        let text = parts.concat();
        let settings = Extraction { longest, ..Extraction::default() };
        for role in [Role::User, Role::Assistant, Role::Tool] {
            let message = match role {
                Role::Tool => Message::result("c", &*text),
                role => Message::text(role, &*text),
            };
            let found = extract(&[&message], &settings);
            let keys: std::collections::BTreeSet<_> =
                found.iter().map(ExtractedRecord::key).collect();
            prop_assert_eq!(keys.len(), found.len());
            for record in found {
                prop_assert!(record.text.chars().count() <= longest + 2);
                prop_assert!(!record.text.contains('\n') && !record.text.is_empty());
            }
        }
    }

    #[test]
    fn nothing_in_a_wrapper_is_the_user_s_word(
        before in "[a-z]{0,8}\n?",
        name in "[a-z][a-z_-]{2,12}",
        attributes in prop_oneof![Just(String::new()), Just(" from=\"user\"".to_owned())],
        closes in any::<bool>(),
        after in prop_oneof![Just(String::new()), "\n[a-z]{0,8}"],
        form in 0_usize..6,
    ) {
        let said = "We decided to use Redis for all sessions.";
        let text = match form {
            0 | 1 => {
                let end = if closes { format!("</{name}>") } else { String::new() };
                let line = if form == 0 { "" } else { "\n" };
                let before = if before.is_empty() || before.ends_with('\n') { before } else { format!("{before} ") };
                format!("{before}<{name}{attributes}>{line}{said}{line}{end}{after}")
            }
            2 => format!("{before}\n> {said}{after}"),
            3 => format!("{before}\n```{name}\n{said}\n{}{after}", if closes { "```" } else { "" }),
            4 => format!("{before}\nOn Monday, {name} wrote:\n\n{said}{after}"),
            _ => format!("{before}\n# {name}\n\n{said}{after}"),
        };
        let message = Message::text(Role::User, &*text);
        let found = extract(&[&message], &Extraction::default());
        prop_assert!(found.iter().all(|one| !one.text.contains("Redis")), "{text}: {found:?}");
    }

    #[test]
    fn a_context_is_within_its_ceiling_and_does_not_know_the_order_of_its_input(
        candidates in candidates(),
        budget in prop_oneof![0_u64..300, 0_u64..4000],
        room in 0_u64..2000,
        identity in texts(),
        question in texts(),
        frame in 0_usize..10,
        exact in any::<bool>(),
    ) {
        let frames = Frames::built_in();
        let frame = frames.iter().nth(frame).expect("ten frames");
        let tokenizer =
            if exact { Tokenizer::O200k { factor: 1.0 } } else { Tokenizer::Estimate };
        let input = MemoryInput {
            identity: &identity,
            frame,
            working: (&question, "user"),
            question: &question,
            candidates: &candidates,
            calibration: None,
            previous: None,
            now: MillisSinceEpoch(1_700_000_000_000),
            tokenizer,
        };
        let settings = MemorySettings { budget: Some(budget), ..MemorySettings::default() };
        let context = match assemble(&input, &settings) {
            Ok(context) => context,
            Err(error) => {
                prop_assert!(error.needed > error.limit && error.limit == budget);
                return Ok(());
            }
        };
        let text = context.text();
        prop_assert!(u64::from(tokenizer.count(&text)) <= budget);
        prop_assert_eq!(u64::from(tokenizer.count(&text)), context.used);

        let mut reversed = candidates.clone();
        reversed.reverse();
        let again = assemble(&MemoryInput { candidates: &reversed, ..input }, &settings);
        let again = again.expect("the same input fits again");
        prop_assert_eq!(&text, &again.text());

        // The same input again changes no byte of what stands.
        let stayed = assemble(&MemoryInput { previous: Some(&context), ..input }, &settings);
        let stayed = stayed.expect("the same input fits again");
        prop_assert!(u64::from(tokenizer.count(&stayed.text())) <= budget);

        for candidate in &candidates {
            let out = context.left_out.iter().any(|(id, _)| *id == candidate.id);
            prop_assert!(out || context.item(&candidate.id).is_some(), "{}", candidate.id);
        }
        for item in context.items().filter(|item| !item.id.is_empty()) {
            let of_id = candidates.iter().filter(|candidate| candidate.id == item.id);
            let wrong = |state| matches!(state, MemoryState::Inactive | MemoryState::Retired);
            prop_assert!(!of_id.map(|candidate| candidate.state).all(wrong));
        }

        let evicted = context.evicted(room, tokenizer);
        prop_assert!(evicted.used <= context.used);
        prop_assert!(
            evicted.used <= room
                || evicted.items().all(|item| item.required)
        );
    }
}
