//! Accounts that can be added up by hand.

use proptest::prelude::*;

use super::*;
use crate::cost::{Band, CacheKind, Prices, WriteTier};

/// A dollar for a million plain tokens; reads at .1, writes at 1.25 or 2, output at 5.
fn marks() -> Prices {
    Prices {
        cache: CacheKind::Marks,
        longer: Some(WriteTier { seconds: 3600, price: 2.0 }),
        ..Prices::PLAIN
    }
}

fn usage(plain: u64, cached: u64, written: u64, output_tokens: u64) -> Usage {
    Usage {
        prompt_tokens: plain + cached + written,
        cached_tokens: cached,
        written_tokens: written,
        output_tokens,
        ..Usage::default()
    }
}

/// A request `seconds` after the first; 3.3 characters are a token where nothing is learned.
fn request(continues: Option<usize>, seconds: i64, usage: Usage, added: u64) -> Request {
    Request {
        continues,
        sent: Some(MillisSinceEpoch(seconds * 1000)),
        usage,
        added: AddedContent { results: added, ..AddedContent::default() },
        ..Request::default()
    }
}

fn account(requests: &[Request], prices: Prices) -> BillTotals {
    let prices = vec![(prices, false); requests.len()];
    let mut account = BillTotals::default();
    for one in split(requests, &prices) {
        account.add(&one);
    }
    account
}

fn tokens(account: &BillTotals, row: Row) -> u64 {
    account.amount(row).tokens.round() as u64
}

#[test]
fn a_session_is_taken_apart_as_by_hand() {
    // 10,000 tokens of system prompt and tools, 1,000 of a question; then 2,000 of an answer and its result are added.
    let requests = [
        request(None, 0, usage(0, 0, 11_000, 100), 3300),
        request(Some(0), 60, usage(0, 11_000, 2000, 100), 6600),
        // An hour later everything is written anew, with 500 more.
        request(Some(1), 3660, usage(0, 0, 13_500, 100), 1650),
    ];
    let account = account(&requests, marks());
    assert_eq!(tokens(&account, Row::SystemFirst), 10_000);
    assert_eq!(tokens(&account, Row::SystemRead), 10_000);
    assert_eq!(tokens(&account, Row::HistoryRead), 1000);
    // All that was said is results.
    assert!((account.history()[2].1.tokens - 1000.0).abs() < 1e-6);
    assert_eq!(tokens(&account, Row::New), 1000 + 2000 + 500);
    assert_eq!(tokens(&account, Row::AgainPause), 13_000);
    assert_eq!(tokens(&account, Row::Output), 300);
    let input = (11_000.0 * 1.25 + 11_000.0 * 0.1 + 2000.0 * 1.25 + 13_500.0 * 1.25) / 1e6;
    assert!((account.dollars() - input - 300.0 * 5.0 / 1e6).abs() < 1e-12);
    assert!((account.dollars() - account.billed).abs() < 1e-12);
}

#[test]
fn each_cause_is_told_from_the_others() {
    let first = request(None, 0, usage(0, 0, 11_000, 100), 3300);
    let cause = |change: &dyn Fn(&mut Request)| {
        let mut next = request(Some(0), 60, usage(0, 0, 13_000, 100), 6600);
        change(&mut next);
        let requests = [first.clone(), next];
        split(&requests, &[(marks(), false); 2])[1].cause
    };
    assert_eq!(cause(&|_| {}), Some(Cause::Unknown));
    assert_eq!(cause(&|next| next.model = Some("other".into())), Some(Cause::Model));
    assert_eq!(cause(&|next| next.compacted = true), Some(Cause::Compaction));
    assert_eq!(cause(&|next| next.told = Some(Cause::Tools)), Some(Cause::Tools));
    let pause = |next: &mut Request| next.sent = Some(MillisSinceEpoch(301_000));
    assert_eq!(cause(&pause), Some(Cause::Pause));
    // 6,000 tokens came that nobody said, and nothing was read: the system prompt or the tools are others.
    assert_eq!(cause(&|next| next.usage = usage(0, 0, 19_000, 100)), Some(Cause::Tools));
    // 2,000 tokens were said, and the prompt is no larger.
    assert_eq!(cause(&|next| next.usage = usage(0, 5000, 6000, 100)), Some(Cause::Rewind));
    assert_eq!(cause(&|next| next.usage = usage(0, 10_990, 2010, 100)), Some(Cause::Step));
    assert_eq!(cause(&|next| next.usage = usage(0, 11_000, 2000, 100)), None);
}

#[test]
fn an_hour_in_the_cache_outlives_a_shorter_pause() {
    let long =
        |cached, written| Usage { written_long_tokens: written, ..usage(0, cached, written, 0) };
    let requests = [
        request(None, 0, long(0, 11_000), 3300),
        request(Some(0), 3000, long(0, 13_000), 6600),
        request(Some(1), 6700, long(0, 13_500), 1650),
    ];
    let splits = split(&requests, &[(marks(), false); 3]);
    assert_eq!((splits[1].cause, splits[2].cause), (Some(Cause::Unknown), Some(Cause::Pause)));
}

#[test]
fn a_price_jump_is_a_row_of_its_own() {
    let above = Band { above: 10_000, input: 2.0, output: 1.5 };
    let prices = Prices { bands: [above, Prices::PLAIN.bands[1]], ..marks() };
    let requests = [request(None, 0, usage(12_000, 0, 0, 1000), 3300)];
    let account = account(&requests, prices);
    assert!((account.amount(Row::New).dollars - 1000.0 / 1e6).abs() < 1e-12);
    assert!((account.amount(Row::Cliff).dollars - (12_000.0 + 2500.0) / 1e6).abs() < 1e-12);
    assert!((account.dollars() - account.billed).abs() < 1e-12);
}

#[test]
fn thinking_is_told_apart_where_the_provider_counts_it() {
    let mut asked = request(None, 0, usage(5000, 0, 0, 1000), 3300);
    asked.thinking_tokens = Some(400);
    let account = account(&[asked], marks());
    assert_eq!((tokens(&account, Row::Thinking), tokens(&account, Row::Output)), (400, 600));
}

#[test]
fn tokens_for_a_character_are_learned_from_growth() {
    let mut requests = vec![request(None, 0, usage(0, 0, 5000, 0), 400)];
    for step in 1..12_u64 {
        // Each step adds 1,000 characters, which are 250 tokens.
        requests.push(request(Some(step as usize - 1), 0, usage(5000 + 250 * step, 0, 0, 0), 1000));
    }
    let learned = rate(&requests);
    assert!((learned.tokens_per_character - 0.25).abs() < 1e-9 && learned.steps > 0, "{learned:?}");
    assert_eq!(rate(&requests[..3]).steps, 0);
}

/// A session of ten requests with a pause of 20 minutes in the middle.
fn with_pause(long: bool) -> Vec<Request> {
    let mut requests: Vec<Request> = Vec::new();
    for step in 0..10_u32 {
        let cold = step == 5 && !long;
        let prefix = u64::from(20_000 + step * 1000);
        let cached = if step == 0 || cold { 0 } else { prefix };
        let written = prefix + 1000 - cached;
        let mut own = request(
            (step as usize).checked_sub(1),
            i64::from(step) * 30 + if step >= 5 { 1200 } else { 0 },
            usage(0, cached, written, 50),
            3300,
        );
        own.usage.written_long_tokens = if long { written } else { 0 };
        requests.push(own);
    }
    requests
}

#[test]
fn the_life_of_the_cache_is_weighed_exactly() {
    let weigh = |long| {
        let requests = with_pause(long);
        let splits = split(&requests, &vec![(marks(), false); requests.len()]);
        savings(&requests, &splits, &vec![true; requests.len()], 0)
    };
    let short = weigh(false);
    let own = short.of(Saving::LongerLife);
    assert_eq!(short.of(Saving::ShorterLife), Estimate::default());
    // One rewriting of some 20,000 tokens against .75 more for some 29,000 written ones: nearly even, and never certain.
    assert!(own.low <= own.likely && own.likely <= own.high, "{own:?}");
    let long = weigh(true);
    assert_eq!(long.of(Saving::LongerLife), Estimate::default());
    // From here, five minutes would save .75 on each written token and write the prefix once more.
    let Estimate { likely, .. } = long.of(Saving::ShorterLife);
    let exact = (30_000.0 * 0.75 - 25_000.0 * (1.25 - 0.1)) / 1e6;
    assert!((likely - exact).abs() < 0.02, "{likely} {exact}");
}

#[test]
fn settings_that_touch_nothing_save_nothing() {
    let requests = [request(None, 0, usage(0, 0, 2000, 100), 3300)];
    let splits = split(&requests, &[(marks(), false)]);
    let savings = savings(&requests, &splits, &[true], 3);
    for saving in [Saving::LazyTools, Saving::SaidOnce, Saving::PruneWhenCold, Saving::BelowCliff] {
        assert_eq!(savings.of(saving), Estimate::default(), "{saving:?}");
    }
}

#[test]
fn what_stood_there_already_is_saved_at_every_further_read() {
    let mut requests = with_pause(true);
    requests[2].added.repeated = 1650;
    requests[2].added.repeated_long = 1650;
    let splits = split(&requests, &vec![(marks(), false); requests.len()]);
    let saved = savings(&requests, &splits, &vec![true; requests.len()], 0).of(Saving::SaidOnce);
    // 500 tokens or a little less, written once for an hour and read seven times.
    let most = 500.0 * (2.0 + 7.0 * 0.1) / 1e6;
    assert!(saved.likely > most * 0.5 && saved.likely < most * 1.2, "{saved:?} {most}");
}

#[test]
fn the_model_of_the_cache_predicts_a_plain_session() {
    let requests = with_pause(true);
    let found = predict(&requests, &vec![marks(); requests.len()]);
    assert_eq!((found.requests, found.misses), (9, 0));
    assert!(found.error < 1.0, "{found:?}");
}

fn any_request(index: usize) -> impl Strategy<Value = Request> {
    let numbers = (0..300_000_u64, 0..300_000_u64, 0..300_000_u64, 0..100_000_u64, 0..20_000_u64);
    let flags = (any::<bool>(), any::<bool>(), 0..3_u32, 0..10_000_000_i64, 0..=index);
    (numbers, flags, 0..1_000_000_u64, 0..1_000_000_u64).prop_map(
        move |(
            (prompt, cached, written, long, output),
            (compacted, model, thread, at, from),
            said,
            repeated,
        )| {
            Request {
                usage: Usage {
                    prompt_tokens: prompt,
                    cached_tokens: cached,
                    written_tokens: written,
                    written_long_tokens: long,
                    output_tokens: output,
                },
                thinking_tokens: model.then_some(long),
                sent: compacted.then_some(MillisSinceEpoch(at)),
                model: model.then(|| "m".into()),
                thread,
                // Now and then a request that no reader would make: one that continues itself.
                continues: (index > 0).then_some(from),
                compacted,
                added: AddedContent {
                    text: said,
                    results: repeated,
                    repeated,
                    ..AddedContent::default()
                },
                ..Request::default()
            }
        },
    )
}

fn any_session() -> impl Strategy<Value = Vec<Request>> {
    (1..12_usize).prop_flat_map(|length| (0..length).map(any_request).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parts_add_up_to_what_was_billed(requests in any_session(), kind in 0..3) {
        let cache = [CacheKind::Marks, CacheKind::Ends, CacheKind::Steps][kind as usize];
        let band = Band { above: 100_000, input: 5.0, output: 2.0 };
        let prices = Prices { cache, bands: [band, Prices::PLAIN.bands[1]], ..marks() };
        let splits = split(&requests, &vec![(prices, false); requests.len()]);
        let mut account = BillTotals::default();
        for (request, split) in requests.iter().zip(&splits) {
            let parts: f64 = split.amounts().iter().map(|(_, amount)| amount.dollars).sum();
            let billed = prices.billed(&request.usage);
            prop_assert!((parts - billed).abs() <= 1e-9 * billed.max(1.0), "{parts} {billed}");
            prop_assert!((split.tokens.prompt() - request.usage.prompt_tokens as f64).abs() < 1e-3);
            for (row, amount) in split.amounts() {
                prop_assert!(amount.tokens > -1e-6 && amount.dollars > -1e-9, "{row:?} {amount:?}");
            }
            account.add(split);
        }
        prop_assert!((account.dollars() - account.billed).abs() <= 1e-9 * account.billed.max(1.0));
        let counted = vec![true; requests.len()];
        let saved = savings(&requests, &splits, &counted, 5);
        for saving in Saving::ALL {
            let Estimate { low, likely, high } = saved.of(saving);
            prop_assert!(low <= likely && likely <= high && high <= account.billed + 1e-9);
        }
        let predicted = predict(&requests, &vec![prices; requests.len()]);
        prop_assert!(predicted.error.is_finite() && predicted.predicted >= 0.0);
    }
}
