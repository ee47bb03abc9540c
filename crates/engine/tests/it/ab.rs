//! The next steps of two contexts, asked of a scripted model: nothing twice, and no secret.

use std::collections::HashMap;

use plimsoll_core::ab::{AbSummary, BAR, ObservedTool};
use plimsoll_core::safety::Safety;
use plimsoll_core::{Block, Message, Role, ToolCall};
use plimsoll_engine::ModelError;
use plimsoll_engine::ab::{
    AbCourse, AbSettings, AbTurn, StepAnswer, StepForm, ask_steps, compare_turns,
};

use crate::models::{Scripted, Words, unavailable};

const SETTINGS: AbSettings = AbSettings {
    form: StepForm::Plain,
    max_tokens: 100,
    temperature: None,
    again: false,
    handling: plimsoll_core::safety::Handling::SECRETS,
};

fn turn(number: u32) -> AbTurn {
    let call =
        ToolCall { id: "1".into(), name: "read".into(), arguments: "{\"path\":\"a\"}".into() };
    let task = |text: String| vec![Message::text(Role::User, text)];
    AbTurn {
        session: "s.jsonl".into(),
        turn: number,
        full_tokens: 100,
        tokens: 40,
        full: task(format!("the cache, step {number}, whole, key AKIAQ2X4K7M4WBT3ZN5H")),
        bounded: task(format!("step {number}, short")),
        recorded: Message::new(Role::Assistant, vec![Block::ToolCall(call)]),
        tools: vec![ObservedTool {
            name: "read".into(),
            schema: "{\"type\":\"object\"}".into(),
            in_fence: false,
        }],
    }
}

async fn asked(
    model: &Scripted,
    turns: &[AbTurn],
    settings: &AbSettings,
    answers: &mut HashMap<String, StepAnswer>,
) -> (AbCourse, Vec<String>) {
    let mut kept = Vec::new();
    let asked = ask_steps(
        model,
        turns,
        settings,
        answers,
        || 0.0,
        |answer| {
            kept.push(answer.key.clone());
            Ok::<_, ModelError>(())
        },
    );
    let asked = asked.await.expect("keeping never fails");
    (asked, kept)
}

#[tokio::test]
async fn both_contexts_are_asked_and_compared() {
    let model = Scripted::saying(&["read {\"path\":\"a\"}", "read {\"path\":\"b\"}"]);
    let mut answers = HashMap::new();
    let turns = [turn(3)];
    let (course, kept) = asked(&model, &turns, &SETTINGS, &mut answers).await;
    assert_eq!((course.answered, kept.len()), (2, 2));
    let found = compare_turns("test/scripted", &turns, &SETTINGS, &answers, None).await;
    let found = found.expect("no embedder fails");
    assert_eq!((found.len(), found[0].turn), (1, 3));
    assert!(found[0].bounded_to_full.same_tools);
    assert_eq!(found[0].bounded_to_full.arguments, Some(0.0));
    assert_eq!(found[0].full_to_recorded.arguments, Some(1.0));
    assert!((found[0].bounded_to_full.similarity - 2.0 / 3.0).abs() < 1e-9);
    assert_eq!(AbSummary::of(&found, BAR).above_bar.hits, 0);
}

#[tokio::test]
async fn no_secret_goes_to_the_model() {
    let model = Scripted::saying(&["a", "b"]);
    assert_eq!(SETTINGS.handling.secrets, Safety::default().summariser.secrets);
    asked(&model, &[turn(1)], &SETTINGS, &mut HashMap::new()).await;
    assert!(model.asked()[0].contains("whole") && !model.asked()[0].contains("AKIAQ2X4"));
}

#[tokio::test]
async fn a_run_that_stopped_asks_only_the_rest() {
    let turns = [turn(1), turn(2)];
    let mut answers = HashMap::new();
    let first = Scripted::new([Ok("one".into()), Ok("two".into()), Err(unavailable())]);
    let (course, _) = asked(&first, &turns, &SETTINGS, &mut answers).await;
    assert_eq!((course.answered, course.stopped), (2, Some(unavailable())));
    let half = compare_turns("test/scripted", &turns, &SETTINGS, &answers, None).await;
    assert_eq!(half.expect("compared").len(), 1, "a turn without both answers is not compared");
    let second = Scripted::saying(&["three", "four"]);
    let (course, kept) = asked(&second, &turns, &SETTINGS, &mut answers).await;
    assert_eq!((course.known, course.answered, kept.len()), (2, 2, 2));
    assert!(second.asked().iter().all(|last| last.contains("step 2")));
}

#[tokio::test]
async fn a_cap_stops_and_a_refused_turn_does_not() {
    let turns = [turn(1), turn(2)];
    let refused = || Err(ModelError::Invalid("too long".into()));
    let model = Scripted::new([
        refused(),
        Ok("a".into()),
        Ok("b".into()),
        Err(ModelError::Capped("spent".into())),
    ]);
    let (course, _) = asked(&model, &turns, &SETTINGS, &mut HashMap::new()).await;
    assert_eq!((course.answered, course.failed.len()), (2, 1));
    assert_eq!(course.stopped, Some(ModelError::Capped("spent".into())));
    let hopeless = Scripted::new([refused(), refused(), refused(), Ok("never asked".into())]);
    let (course, _) = asked(&hopeless, &turns, &SETTINGS, &mut HashMap::new()).await;
    assert_eq!((course.answered, hopeless.asked().len()), (0, 3));
}

#[tokio::test]
async fn another_answer_to_the_full_context_shows_the_noise() {
    let settings = AbSettings { again: true, ..SETTINGS };
    let model = Scripted::saying(&["the cache", "the cache", "the parser"]);
    let mut answers = HashMap::new();
    let turns = [turn(1)];
    asked(&model, &turns, &settings, &mut answers).await;
    let words = Words("words");
    let found = compare_turns("test/scripted", &turns, &settings, &answers, Some(&words)).await;
    let sums = AbSummary::of(&found.expect("compared"), BAR);
    assert_eq!(sums.noise.expect("asked").above_bar.hits, 1);
    assert_eq!(sums.above_bar.hits, 0, "by the embedder, cache and parser have nothing in common");
    assert!(sums.similarity.expect("one").mean < 1e-6);
}
