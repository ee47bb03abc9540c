//! What requests cost: marks and their lives, models and their prices, and how each wire tells it.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::cost::Pricing;
use plimsoll_testkit::provider::{
    AnswerMode, Keep, Pace, RequestPrice, Rules, ScriptedPlan, ScriptedProvider,
    ScriptedProviderConfig, TIME,
};
use serde_json::{Value, json};

use crate::talk::{BOUND, FREE, MESSAGES, first, message, post, start};

fn mark(ttl: &str) -> Value {
    json!({"type": "ephemeral", "ttl": ttl})
}

/// A request with 2,000 tokens of system prompt and as many of a question, each with a mark.
fn marked(model: &str, system: &Value, question: &Value) -> Value {
    let mut body = first(model);
    let long = |word: &str| word.repeat(2000);
    body["system"] = json!([{"type": "text", "text": long("one "), "cache_control": system}]);
    body["messages"] = json!([{"role": "user", "content": [
        {"type": "text", "text": long("two "), "cache_control": question}]}]);
    body
}

async fn usage(provider: &ScriptedProvider, body: &Value, millis: Option<&str>) -> Value {
    let time = millis.map(|millis| (TIME, millis));
    let (status, answer) = post(provider, MESSAGES, time.as_slice(), body).await;
    assert_eq!(status, 200, "{answer}");
    answer["usage"].clone()
}

fn last_bill(provider: &ScriptedProvider) -> RequestPrice {
    provider.kept().pop().and_then(|kept| kept.bill).expect("a bill")
}

#[tokio::test]
async fn usage_tells_what_was_written_for_which_life() {
    let provider = start(0, Rules::default()).await;
    let body = marked(FREE, &mark("1h"), &mark("5m"));
    let written = usage(&provider, &body, None).await;
    let tiers = &written["cache_creation"];
    let number = |value: &Value| value.as_u64().expect("a number");
    let short = number(&tiers["ephemeral_5m_input_tokens"]);
    let long = number(&tiers["ephemeral_1h_input_tokens"]);
    assert!((2000..2010).contains(&short), "{written}");
    assert!((2000..2100).contains(&long), "{written}");
    assert_eq!(written["cache_creation_input_tokens"], short + long);
    let kept = provider.kept().pop().expect("kept");
    let bill = kept.bill.expect("a bill");
    // Sonnet 4.6: 3 dollars a million, writes at 1.25 and 2, output 15.
    let input = (short as f64 * 1.25 + long as f64 * 2.0) * 3.0 / 1e6;
    assert!((bill.input - input).abs() < 1e-9, "{bill:?}");
    assert!((bill.output - kept.usage.output as f64 * 15.0 / 1e6).abs() < 1e-9, "{bill:?}");
    let read = usage(&provider, &body, None).await;
    assert_eq!(read["cache_read_input_tokens"], short + long);
    assert_eq!(read["cache_creation_input_tokens"], 0);
    let input = (short + long) as f64 * 0.3 / 1e6;
    assert!((last_bill(&provider).input - input).abs() < 1e-9);
}

#[tokio::test]
async fn entries_end_when_the_request_says_so() {
    let provider = start(0, Rules::default()).await;
    let body = marked(FREE, &mark("1h"), &mark("5m"));
    usage(&provider, &body, Some("0")).await;
    let warm = usage(&provider, &body, Some("299000")).await;
    assert_eq!(warm["cache_creation_input_tokens"], 0);
    // Six minutes after the last use, the hour stands.
    let half = usage(&provider, &body, Some("660000")).await;
    assert_eq!(half["cache_creation"]["ephemeral_1h_input_tokens"], 0);
    assert!(half["cache_creation"]["ephemeral_5m_input_tokens"].as_u64() > Some(1990));
    provider.set_time(MillisSinceEpoch(660_000 + 3_601_000));
    let cold = usage(&provider, &body, None).await;
    assert_eq!(cold["cache_read_input_tokens"], 0);
}

#[tokio::test]
async fn an_edit_leaves_nothing_to_read_but_what_has_a_mark_before_it() {
    let provider = start(0, Rules::default()).await;
    let body = marked(FREE, &mark("5m"), &mark("5m"));
    usage(&provider, &body, None).await;
    let mut edited = body.clone();
    edited["messages"][0]["content"][0]["text"] = json!("three ".repeat(2000));
    let half = usage(&provider, &edited, None).await;
    assert!((2000..2100).contains(&half["cache_read_input_tokens"].as_u64().expect("a number")));
    let mut said = body.clone();
    said["messages"][0]["role"] = json!("assistant");
    let by_another = usage(&provider, &said, None).await;
    assert_eq!(by_another["cache_read_input_tokens"], half["cache_read_input_tokens"]);
    let mut unmarked = body;
    unmarked["system"][0]["text"] = json!("four ".repeat(2000));
    let none = usage(&provider, &unmarked, None).await;
    assert_eq!(none["cache_read_input_tokens"], 0);
    // No model reads what another wrote.
    let other = usage(&provider, &marked(BOUND, &mark("5m"), &mark("5m")), None).await;
    assert_eq!(other["cache_read_input_tokens"], 0);
}

#[tokio::test]
async fn a_mark_beside_the_messages_stands_on_the_last_block() {
    let provider = start(0, Rules::default()).await;
    let mut body = marked(FREE, &Value::Null, &Value::Null);
    let plain = usage(&provider, &body, None).await;
    assert_eq!(plain["cache_creation_input_tokens"], 0);
    body["cache_control"] = mark("5m");
    let written = usage(&provider, &body, None).await;
    assert_eq!(written["input_tokens"], 0);
    assert_eq!(written["cache_creation_input_tokens"], plain["input_tokens"]);
}

#[tokio::test]
async fn marks_that_a_provider_refuses_are_refused() {
    let provider = start(0, Rules::default()).await;
    let text =
        |text: &str, mark: Value| json!({"type": "text", "text": text, "cache_control": mark});
    let blocks = |blocks: Value| {
        let mut body = first(FREE);
        body["messages"][0]["content"] = blocks;
        body
    };
    let five = blocks(json!(vec![text("a", mark("5m")); 5]));
    let mut four_and_one = blocks(json!(vec![text("a", mark("5m")); 4]));
    four_and_one["messages"][0]["content"]
        .as_array_mut()
        .expect("blocks")
        .push(json!({"type": "text", "text": "the last"}));
    four_and_one["cache_control"] = mark("5m");
    let thinking = json!([{"type": "thinking", "thinking": "", "signature": "s", "cache_control": mark("5m")}]);
    for (body, expected) in [
        (five, "A maximum of 4 blocks with cache_control may be provided. Found 5."),
        (four_and_one, "A maximum of 4 blocks with cache_control may be provided. Found 5."),
        (marked(FREE, &mark("5m"), &mark("1h")), "must not come after a ttl='5m'"),
        (blocks(json!([text("", mark("5m"))])), "cannot be set for empty text blocks"),
        (blocks(thinking), "thinking.cache_control: Extra inputs are not permitted"),
    ] {
        let (status, answer) = post(&provider, MESSAGES, &[], &body).await;
        assert_eq!(status, 400, "{expected}");
        assert!(message(&answer).contains(expected), "{answer}");
    }
    assert_eq!(provider.kept().iter().filter(|kept| kept.violations.is_empty()).count(), 0);
}

#[tokio::test]
async fn a_token_count_is_what_is_billed() {
    let provider = start(0, Rules::default()).await;
    let body = marked(FREE, &Value::Null, &Value::Null);
    let (_, counted) = post(&provider, "/v1/messages/count_tokens", &[], &body).await;
    let billed = usage(&provider, &body, None).await;
    assert_eq!(counted["input_tokens"], billed["input_tokens"]);
}

#[tokio::test]
async fn a_model_that_is_not_listed_is_priced_by_option_or_wire() {
    let provider = start(0, Rules::default()).await;
    usage(&provider, &marked("scripted-model", &mark("5m"), &mark("5m")), None).await;
    assert!(last_bill(&provider).charge.written > 0.0, "marks count");
    let body = json!({"model": "scripted-model", "messages": [{"role": "user", "content": "go"}]});
    post(&provider, "/v1/chat/completions", &[], &body).await;
    assert_eq!(last_bill(&provider).priced_as, "gpt-5");
    let rules = Rules { price_as: Some("gpt-5.4".to_owned()), ..Rules::default() };
    let provider = start(0, rules).await;
    post(&provider, "/v1/chat/completions", &[], &body).await;
    assert_eq!(last_bill(&provider).priced_as, "gpt-5.4");
}

#[tokio::test]
async fn a_request_above_a_band_costs_more_as_a_whole() {
    let provider = start(0, Rules::default()).await;
    for (words, times) in [(99_000, 1.0), (101_000, 5.0)] {
        let mut body = first("claude-haiku-5-5");
        body["messages"][0]["content"] = json!("one ".repeat(words));
        usage(&provider, &body, None).await;
        let bill = last_bill(&provider);
        assert_eq!(bill.band, (times, times));
        let output = provider.kept().pop().expect("kept").usage.output as f64;
        assert!((bill.output - output * 0.5 / 1e6 * times).abs() < 1e-9, "{bill:?}");
        let expected = bill.charge.plain * 0.1 / 1e6 * times;
        assert!((bill.input - expected).abs() < 1e-9, "{bill:?}");
    }
}

#[tokio::test]
async fn each_wire_tells_what_was_read_and_written() {
    let provider = start(0, Rules::default()).await;
    let text = "word ".repeat(4000);
    let chat =
        |model: &str| json!({"model": model, "messages": [{"role": "user", "content": text}]});
    let responses =
        |model: &str| json!({"model": model, "input": [{"role": "user", "content": text}]});
    let pricing = Pricing::shipped();
    for (path, body, details, prompt) in [
        ("/v1/chat/completions", chat("gpt-6.2-sol"), "prompt_tokens_details", "prompt_tokens"),
        ("/v1/responses", responses("gpt-6.2-sol"), "input_tokens_details", "input_tokens"),
        ("/v1/chat/completions", chat("gpt-5.4"), "prompt_tokens_details", "prompt_tokens"),
        ("/v1/responses", responses("gpt-5.4"), "input_tokens_details", "input_tokens"),
    ] {
        // A new provider each: the two wires do not share what they read.
        let provider = start(0, Rules::default()).await;
        let (_, first) = post(&provider, path, &[], &body).await;
        let (_, again) = post(&provider, path, &[], &body).await;
        let (first, again) = (&first["usage"], &again["usage"]);
        let writes = body["model"] == "gpt-6.2-sol";
        let total = first[prompt].as_u64().expect("a number");
        assert_eq!(first[details]["cached_tokens"], 0);
        assert_eq!(first[details]["cache_write_tokens"], if writes { total } else { 0 });
        let cached = again[details]["cached_tokens"].as_u64().expect("a number");
        assert_eq!(cached, if writes { total } else { total / 128 * 128 });
        assert_eq!(again[prompt], total);
        let prices = pricing.of(body["model"].as_str(), None).prices;
        let bill = last_bill(&provider);
        let expected = (total - cached) as f64 * prices.input / 1e6
            + cached as f64 * prices.input * prices.cache_read / 1e6;
        assert!((bill.input - expected).abs() < 1e-9, "{bill:?} {expected}");
    }
    let body = json!({"contents": [{"role": "user", "parts": [{"text": text}]}]});
    let path = "/v1beta/models/gemini-2.5-pro:generateContent";
    post(&provider, path, &[], &body).await;
    let (_, again) = post(&provider, path, &[], &body).await;
    // Gemini reads in steps of 4,096 tokens and promises no hit: the table has what was found of them.
    let hits = pricing.of(Some("gemini-2.5-pro"), None).prices.cache_hits;
    let cached = again["usageMetadata"]["cachedContentTokenCount"].as_u64();
    assert_eq!(cached, Some((4096.0 * hits) as u64), "{again}");
    assert_eq!(last_bill(&provider).model, "gemini-2.5-pro");
}

#[tokio::test]
async fn breakpoints_are_for_the_models_that_have_them() {
    let provider = start(0, Rules::default()).await;
    let part =
        json!({"type": "text", "text": "go", "prompt_cache_breakpoint": {"mode": "explicit"}});
    for (model, expected) in [("gpt-5.4", 400), ("gpt-6.2-sol", 200)] {
        let body = json!({"model": model, "messages": [{"role": "user", "content": [part]}]});
        let (status, answer) = post(&provider, "/v1/chat/completions", &[], &body).await;
        assert_eq!(status, expected, "{answer}");
    }
}

#[tokio::test]
async fn the_record_in_a_folder_has_the_bill() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = ScriptedPlan::text("the end");
    let answers = AnswerMode::Planned { plan, check: None, rules: Rules::default() };
    let keep = Keep::Folder(folder.path().to_owned());
    let config = ScriptedProviderConfig { answers, keep, pace: Pace::Together };
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let provider = ScriptedProvider::listen(address, config).await.expect("it starts");
    usage(&provider, &marked(FREE, &mark("1h"), &mark("5m")), None).await;
    let record = std::fs::read(folder.path().join("000001.json")).expect("kept");
    let record: Value = serde_json::from_slice(&record).expect("JSON");
    let bill = &record["bill"];
    assert_eq!((&bill["model"], &bill["priced_as"]), (&json!(FREE), &json!(FREE)));
    assert!(bill["charge"]["written_long"].as_f64() > Some(1990.0), "{record}");
    assert!(bill["charge"]["written"].as_f64() > Some(3990.0), "{record}");
    assert!(bill["dollars"]["input"].as_f64() > Some(0.01), "{record}");
    assert!(bill["dollars"]["output"].as_f64() > Some(0.0), "{record}");
    assert_eq!(record["thinking"], json!({"sent": 0, "invalid": 0, "dropped": 0}));
}
