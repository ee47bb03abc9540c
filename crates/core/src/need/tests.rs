use super::*;
use crate::plan::Plan;
use crate::tokens::Tokenizer;

fn session() -> Transcript {
    let mut transcript = Transcript::new(Tokenizer::Characters { per_token: 3.3 });
    transcript.push(Message::text(Role::User, "please look at src/main.rs for the failing test"));
    transcript.push(Message::text(Role::Assistant, "I will look"));
    transcript
        .push(Message::result("1", "in src/main.rs the function parse_header is on line 1234"));
    transcript.push(Message::text(Role::Assistant, "parse_header it is"));
    transcript.push(Message::text(Role::User, "go on"));
    transcript.push(Message::text(Role::Assistant, "changed parse_header at 1234"));
    transcript
}

#[test]
fn hidden_content_is_named_with_its_message_and_its_price() {
    let transcript = session();
    let terms = Terms::new(Prices::PLAIN);
    let mut scorer = Scorer::default();
    let mut missed = Vec::new();
    for position in transcript.requests().collect::<Vec<_>>() {
        let mut plan = Plan::default();
        plan.extend(&transcript, position);
        let mut context = plan.render();
        if position == 5 {
            context.remove(2);
        }
        missed.extend(scorer.turn(&transcript, position, &context, &terms, 100.0));
    }
    assert_eq!(missed.len(), 1);
    assert_eq!((missed[0].turn, missed[0].position, missed[0].first), (2, 2, false));
    assert_eq!(missed[0].names, ["1234"]);
    let score = scorer.score();
    assert_eq!((score.turns, score.blind, score.fetches), (3, 1, 1));
    assert!((score.work - 300.0 - missed[0].cost).abs() < 1e-9);
    assert!((score.blind_share() - 1.0 / 3.0).abs() < 1e-9);
}

#[test]
fn a_fetch_reads_the_context_again_and_keeps_the_original_for_a_while() {
    let prices = Prices::PLAIN;
    let more = fetch_price(&prices, 1000.0, 500.0) - fetch_price(&prices, 0.0, 500.0);
    assert!((more - 1000.0 * prices.cache_read).abs() < 1e-9);
    let call = fetch_price(&prices, 0.0, 0.0);
    assert!((call - CALL * prices.output_ratio()).abs() < 1e-9);
}
