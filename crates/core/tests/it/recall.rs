//! Recall: what is found, that every setting matters, and what holds of any text.

use std::sync::Arc;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::Role;
use plimsoll_core::recall::{
    IndexedMessage, RecallIndex, RecallSettings, RecalledMessage, WordVectors, pack,
};
use proptest::prelude::*;

const DAY: i64 = 86_400_000;

/// Vectors by theme: enough to tell what is alike.
#[derive(Debug)]
struct Themes;

impl WordVectors for Themes {
    fn dimension(&self) -> usize {
        4
    }

    fn word(&self, word: &str, into: &mut [f32]) {
        let theme: &[f32] = match word {
            "ship" | "ships" => &[1.0, 0.1, 0.0, 0.0],
            "boat" => &[0.9, 0.0, 0.3, 0.0],
            "harbour" | "sea" => &[0.6, 0.0, 0.8, 0.0],
            "cake" => &[0.0, 1.0, 0.0, 0.2],
            "bread" | "baked" => &[0.0, 0.8, 0.0, 0.6],
            _ => &[0.0; 4],
        };
        into.copy_from_slice(theme);
    }
}

#[derive(Debug, Clone)]
struct Line {
    session: &'static str,
    speaker: &'static str,
    day: i64,
    minute: i64,
    text: String,
}

fn line(speaker: &'static str, day: i64, minute: i64, text: &str) -> Line {
    Line { session: "s", speaker, day, minute, text: text.to_owned() }
}

/// Three talks of two people, in May 2023.
fn talks() -> Vec<Line> {
    // 2023-05-01.
    let may = 19_478;
    let mut lines = vec![
        line("Ann", may, 0, "Hello Ben, how was the weekend?"),
        line(
            "Ben",
            may,
            1,
            "We went out in a boat, the sea was calm. The boat is old but the sails are new.",
        ),
        line("Ann", may, 2, "Which harbour did you leave from?"),
        line("Ben", may, 3, "From Falmouth, early."),
        line("Ann", may, 4, "Lovely."),
        line(
            "Ben",
            may + 7,
            0,
            "I baked bread today and the ship model is nearly done, ship by ship my shelf fills.",
        ),
        line("Ann", may + 7, 1, "Do you still build ships?"),
        line("Ben", may + 7, 2, "Every winter, yes."),
        line(
            "Ann",
            may + 7,
            3,
            "My sister asked for one with three masts and a crew of tiny people.",
        ),
        line("Ann", may + 14, 0, "My cake won the first prize! Ben, did you see the ship on it?"),
        line("Ben", may + 14, 1, "A cake with a ship? Congratulations!"),
        line("Ann", may + 14, 2, "Thank you, it took a week."),
    ];
    for number in 0..20 {
        let speaker = if number % 2 == 0 { "Ann" } else { "Ben" };
        lines.push(line(speaker, may + 30 + number, 0, &format!("Nothing new on day {number}.")));
    }
    lines
}

fn said(line: &Line) -> IndexedMessage<'_> {
    IndexedMessage {
        session: line.session,
        role: Role::User,
        speaker: Some(line.speaker),
        time: Some(MillisSinceEpoch(line.day * DAY + line.minute * 60_000)),
        text: &line.text,
    }
}

fn index(settings: RecallSettings, lines: &[Line]) -> RecallIndex {
    let mut index = RecallIndex::new(settings, Some(Arc::new(Themes)));
    index.add(lines.iter().map(said));
    index.embed();
    index
}

fn best(question: &str) -> usize {
    let found = index(RecallSettings::default(), &talks()).search(question);
    found.first().map(|best| best.message).expect("something is found")
}

#[test]
fn what_is_asked_for_comes_first() {
    assert_eq!(best("Whose sailing boats are old?"), 1);
    assert_eq!(best("Who won a prize?"), 9);
    assert_eq!(best("Which model was nearly done on 8 May 2023?"), 5);
    // Nothing but its place says that the third message answers.
    let found =
        index(RecallSettings::default(), &talks()).search("Which harbour did Ben leave from?");
    assert!(found[..3].iter().any(|found| found.message == 3), "{found:?}");
}

#[test]
fn words_of_like_meaning_are_found() {
    let lines = talks();
    let with = index(RecallSettings::default(), &lines).search("vessel ship");
    assert!(with.iter().any(|found| found.message == 1 && found.why.text > 0.0));
    let mut without = RecallIndex::new(RecallSettings::default(), None);
    without.add(lines.iter().map(said));
    without.embed();
    let found = without.search("ship");
    assert!(found.iter().all(|found| found.why.vector == 0.0));
    assert!(found.iter().all(|found| found.message != 1 || found.why.text == 0.0));
    let index = index(RecallSettings::default(), &lines);
    let matches = index.matches("a ship", 1);
    assert!(matches.iter().any(|found| found.asked == "ship" && found.said == "boat"));
    assert_eq!(index.matches("a ship", lines.len()), []);
}

#[test]
fn any_script_and_code_are_found() {
    let texts = [
        "我们昨天去了海边",
        "Мы были на берегу",
        "fn read_pages(path: &Path) -> io::Result<()>",
        "error[E0425]: x",
    ];
    let lines: Vec<Line> = texts.iter().map(|text| line("Ann", 0, 0, text)).collect();
    let index = index(RecallSettings::default(), &lines);
    for (question, expected) in
        [("海边", 0), ("на БЕРЕГУ?", 1), ("read_pages", 2), ("what is E0425", 3)]
    {
        assert_eq!(index.search(question)[0].message, expected, "{question}");
    }
}

#[test]
fn a_whole_page_is_asked_by_its_rarest_words() {
    let mut lines: Vec<Line> =
        (0..200).map(|n| line("Ann", 0, n, &format!("common word{} again", n % 90))).collect();
    lines.push(line("Ann", 0, 201, "marigold"));
    let page: Vec<String> = (0..90).map(|n| format!("word{n}")).collect();
    let question = format!("common {} marigold", page.join(" "));
    let index = index(RecallSettings::default(), &lines);
    assert_eq!(index.search(&question)[0].message, 200);
    assert!(index.matches(&question, 0).iter().all(|found| found.asked != "common"));
}

#[test]
fn nothing_is_found_for_nothing() {
    let index = index(RecallSettings::default(), &talks());
    for question in ["", "?", "what is it", "\0", "zzzz qqqq"] {
        assert!(index.search(question).iter().all(|found| found.score > 0.0));
    }
    assert_eq!(index.search("what is it"), []);
    assert_eq!(RecallIndex::new(RecallSettings::default(), None).search("ship"), []);
}

#[test]
fn scores_are_what_they_are_made_of() {
    for found in
        index(RecallSettings::default(), &talks()).search("Which ship did Ben build in May?")
    {
        let why = found.why;
        let sum = why.text + why.vector + why.neighbours + why.passage + why.date;
        let factors = why.speaker * why.question * why.role * why.size;
        assert!((sum * factors - found.score).abs() < 1e-4, "{found:?}");
    }
}

/// Everything that the questions find, with scores.
fn outcome(settings: RecallSettings) -> Vec<(usize, f32)> {
    let of_talk = ["When does my first sprint end?", "What did you recommend for roses?"];
    let of_talk = of_talk.iter().flat_map(|question| in_talk(settings.clone(), question));
    let of_talk: Vec<RecalledMessage> = of_talk.collect();
    let index = index(settings, &talks());
    let questions = [
        "Which ship did Ben build?",
        "boat with new sails in May",
        "Who baked a cake on 3 May 2023?",
    ];
    let found = questions.iter().flat_map(|question| index.search(question));
    found.chain(of_talk).map(|found| (found.message, found.score)).collect()
}

#[test]
fn every_setting_changes_what_is_found() {
    let usual = RecallSettings::default();
    // Taken apart by name, so that a new setting does not compile until it has a line here.
    let RecallSettings {
        saturation,
        length,
        likeness,
        like_from,
        vector,
        neighbour,
        second_neighbour,
        passage,
        passage_break,
        passage_messages,
        date,
        date_days,
        speaker,
        question,
        part,
        size,
        size_from,
        asker,
        answerer,
        words,
        limit,
    } = usual.clone();
    let other = |change: &dyn Fn(&mut RecallSettings)| {
        let mut settings = RecallSettings::default();
        change(&mut settings);
        assert_ne!(settings, RecallSettings::default());
        outcome(settings)
    };
    let outcomes = [
        ("saturation", other(&|settings| settings.saturation = saturation / 2.0)),
        ("length", other(&|settings| settings.length = length / 2.0)),
        ("likeness", other(&|settings| settings.likeness = likeness / 2.0)),
        ("like_from", other(&|settings| settings.like_from = like_from + 0.2)),
        ("vector", other(&|settings| settings.vector = vector / 2.0)),
        ("neighbour", other(&|settings| settings.neighbour = neighbour / 2.0)),
        ("second_neighbour", other(&|settings| settings.second_neighbour = second_neighbour * 2.0)),
        ("passage", other(&|settings| settings.passage = passage / 2.0)),
        ("passage_break", other(&|settings| settings.passage_break = passage_break * 200)),
        ("passage_messages", other(&|settings| settings.passage_messages = passage_messages / 25)),
        ("date", other(&|settings| settings.date = date / 2.0)),
        ("date_days", other(&|settings| settings.date_days = date_days / 2.0)),
        ("speaker", other(&|settings| settings.speaker = speaker / 2.0)),
        ("question", other(&|settings| settings.question = question / 2.0)),
        ("part", other(&|settings| settings.part = part / 4)),
        ("size", other(&|settings| settings.size = size / 2.0)),
        ("size_from", other(&|settings| settings.size_from = size_from / 2.0)),
        ("asker", other(&|settings| settings.asker = asker / 2.0)),
        ("answerer", other(&|settings| settings.answerer = answerer / 2.0)),
        ("words", other(&|settings| settings.words = words / 2000)),
        ("limit", other(&|settings| settings.limit = limit / 500)),
    ];
    let usual = outcome(usual);
    for (name, outcome) in outcomes {
        assert_ne!(outcome, usual, "{name}");
    }
}

#[test]
fn settings_of_no_sense_find_nothing_wrong() {
    for value in [0.0, -1.0, f32::NAN, f32::INFINITY, f32::MAX] {
        let settings = RecallSettings {
            saturation: value,
            length: value,
            likeness: value,
            like_from: value,
            vector: value,
            neighbour: value,
            second_neighbour: value,
            passage: value,
            passage_break: 0,
            passage_messages: 0,
            date: value,
            date_days: value,
            speaker: value,
            question: value,
            part: 0,
            size: value,
            size_from: value,
            asker: value,
            answerer: value,
            words: 0,
            limit: 0,
        };
        assert_eq!(outcome(settings), []);
    }
}

fn any_line() -> impl Strategy<Value = Line> {
    let text = prop_oneof![
        "[a-c ?]{0,12}",
        "(ship|boat|sea|cake|bread|in May 2023|Ann|Ben|the|[a-z]{1,6}|日|\\PC| ){0,12}",
    ];
    let speaker = prop_oneof![Just("Ann"), Just("Ben"), Just("The Will"), Just("日"), Just("")];
    let session = prop_oneof![Just("s"), Just("t")];
    (session, speaker, any::<i64>(), 0..3000_i64, text).prop_map(
        |(session, speaker, day, minute, text)| {
            let day = if day % 3 == 0 { day / DAY } else { 19_478 + day % 60 };
            Line { session, speaker, day: day / 2, minute, text }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_index_that_grows_is_the_same_as_one_built_at_once(
        lines in prop::collection::vec(any_line(), 0..40),
        cuts in prop::collection::vec(0..40_usize, 0..4),
        question in "(ship|cake|Ann|Ben|May|[a-c]| ){1,6}",
    ) {
        let whole = index(RecallSettings::default(), &lines);
        let mut grown = RecallIndex::new(RecallSettings::default(), Some(Arc::new(Themes)));
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(lines.len())).collect();
        cuts.sort_unstable();
        cuts.push(lines.len());
        let mut begin = 0;
        for cut in cuts {
            grown.add(lines[begin..cut].iter().map(said));
            grown.embed();
            grown.search(&question);
            begin = cut;
        }
        prop_assert_eq!(whole.search(&question), grown.search(&question));
        prop_assert_eq!(whole.search(&question), whole.search(&question));
    }

    #[test]
    fn any_text_is_taken(
        lines in prop::collection::vec(any_line(), 0..20),
        odd in "\\PC{0,40}",
        question in any::<String>(),
    ) {
        let mut lines = lines;
        lines.push(Line { text: odd, ..line("Ann", 0, 0, "") });
        lines.push(Line { text: question.clone(), ..line("Ann", 0, 0, "") });
        let index = index(RecallSettings::default(), &lines);
        let found = index.search(&question);
        prop_assert!(found.windows(2).all(|pair| pair[0].score >= pair[1].score));
        prop_assert!(found.iter().all(|found| found.message < lines.len() && found.score.is_finite()));
        for found in &found {
            index.matches(&question, found.message);
        }
    }

    #[test]
    fn what_is_packed_fits(sizes in prop::collection::vec(any::<u32>().prop_map(|n| n % 500), 0..60), budget in 0..5000_u64) {
        let packed = pack(sizes.iter().copied(), budget);
        let tokens: u64 = packed.places.iter().map(|place| u64::from(sizes[*place])).sum();
        prop_assert_eq!(tokens, packed.tokens);
        prop_assert!(packed.tokens <= budget);
        prop_assert!(packed.places.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert_eq!(sizes.first().is_some_and(|first| u64::from(*first) <= budget), packed.places.first() == Some(&0));
    }
}

/// A talk with an assistant whose answers are long.
fn helped() -> Vec<(Role, String)> {
    let filler =
        "This paragraph is about gardens, weather and the colour of the fence. ".repeat(60);
    vec![
        (Role::User, "My first sprint ends on the 29th of March.".into()),
        (
            Role::Assistant,
            format!("{filler}\n\nThe sprint ends soon, so plan the sprint well.\n\n{filler}"),
        ),
        (Role::User, "How do I keep the roses alive?".into()),
        (Role::Assistant, format!("{filler}\n\nI recommend to water roses at dawn.\n\n{filler}")),
    ]
}

fn in_talk(settings: RecallSettings, question: &str) -> Vec<RecalledMessage> {
    let talk = helped();
    let mut index = RecallIndex::new(settings, None);
    index.add(talk.iter().map(|(role, text)| IndexedMessage {
        session: "s",
        role: *role,
        speaker: None,
        time: None,
        text,
    }));
    index.embed();
    index.search(question)
}

#[test]
fn a_long_message_is_scored_by_its_best_part() {
    let found = in_talk(RecallSettings::default(), "water roses at dawn");
    let answer = found.iter().find(|one| one.message == 3).expect("found");
    let text = &helped()[3].1;
    let parts = plimsoll_core::text::parts(text, RecallSettings::default().part);
    assert!(parts.len() > 3 && parts[answer.part].contains("dawn"), "{}", answer.part);
}

#[test]
fn size_and_author_change_the_order() {
    let first = |settings: RecallSettings, question: &str| in_talk(settings, question)[0].message;
    let base = RecallSettings::default;
    assert_eq!(first(base(), "When does my first sprint end?"), 0);
    let why = |question: &str, message: usize| {
        let found = in_talk(base(), question);
        found.into_iter().find(|one| one.message == message).expect("found").why
    };
    assert!((why("When does my first sprint end?", 0).role - 1.4).abs() < 1e-6);
    assert!((why("When does the first sprint end?", 0).role - 1.0).abs() < 1e-6);
    assert!((why("What did you recommend for roses?", 3).role - 1.2).abs() < 1e-6);
    assert!(why("roses", 3).size < why("roses", 2).size);
    let flat = RecallSettings { size: 0.0, ..base() };
    assert!((in_talk(flat, "roses")[0].why.size - 1.0).abs() < 1e-6);
}
