use proptest::prelude::*;

use super::super::settings::{AgreementRules, EquivalenceRules};
use super::*;

fn judged(asked: &str, kept: &str, settings: &AnswerSettings) -> Verdict {
    let verdict = same_question(asked, kept, 1.0, settings);
    assert_eq!(verdict, same_question(kept, asked, 1.0, settings), "{asked} / {kept}");
    verdict
}

fn served(asked: &str, kept: &str) -> bool {
    judged(asked, kept, &AnswerSettings::default()) == Verdict::Serve
}

#[test]
fn the_same_question_in_other_words_is_served() {
    for (a, b) in [
        ("How do I get rid of ants?", "how can i get rid of the ants"),
        ("What is the best way to learn Rust?", "How to learn Rust?"),
        ("What are the colours of the flag?", "What is the color of a flag?"),
        ("What's the capital of France?", "What is the capital of France"),
        ("Which river is longest?", "What river is really longest?"),
        ("How do I reset my password?", "How do you reset your password?"),
    ] {
        assert!(served(a, b), "{a} / {b}");
    }
}

#[test]
fn a_near_miss_is_refused_for_what_differs() {
    use Refusal::{
        Comparison, Form, Language, Names, Negation, Numbers, Order, Person, Quantity, Question,
        Tense, Words,
    };
    for (a, b, why) in [
        ("What is 12 % of 80?", "What is 21 % of 80?", Numbers),
        ("What is 7 + 5?", "What is 7 * 5?", Numbers),
        ("Is -5 a number?", "Is 5 a number?", Numbers),
        ("How do I learn C++?", "How do I learn C#?", Numbers),
        ("What happened on 3/4/2020?", "What happened on 4/3/2020?", Numbers),
        ("How far is 5 km?", "How far is 5.5 km?", Numbers),
        ("Who founded Apple?", "Who founded apple?", Names),
        ("What does it mean for US?", "What does it mean for us?", Names),
        ("What does node.js do?", "What does node.ts do?", Names),
        ("Where does Anna live?", "Where does Berta live?", Names),
        ("Why do cats eat grass?", "Why don't cats eat grass?", Negation),
        ("Can I sleep with pillows?", "Can I sleep without pillows?", Negation),
        ("Why do cats eat grass?", "When do cats eat grass?", Question),
        ("Can dogs read?", "How can dogs read?", Question),
        ("How do I increase my weight?", "How do I decrease my weight?", Comparison),
        ("What do I eat before a race?", "What do I eat after a race?", Comparison),
        ("What is the best phone?", "What is the worst phone?", Comparison),
        ("Do all birds fly?", "Do some birds fly?", Quantity),
        ("Why do you wear clothes?", "Why do we wear clothes?", Person),
        ("Is it wrong to hate my boss?", "Is it wrong to hate your boss?", Person),
        ("Why will it rain?", "Why did it rain?", Tense),
        ("How should I invest?", "How would I invest?", Tense),
        ("Why do Poles dislike Russians?", "Why do Russians dislike Poles?", Order),
        ("What is a flight from Rome to Oslo?", "What is a flight from Oslo to Rome?", Order),
        ("How do I convert miles to metres?", "How do I convert metres to miles?", Order),
        ("How do I move into a flat?", "How do I move out a flat?", Order),
        ("What does the dog chase?", "What does the cat chase?", Words),
        ("How far is 5 km?", "How far is 5 miles?", Words),
        ("What is the meaning of security?", "What is the meaning of securities?", Words),
        ("Is history a science?", "Is history science fiction?", Words),
        ("What is the time?", "What is time?", Words),
        ("Who is the doctor?", "Who is a doctor?", Words),
        ("What is the difference of is and are?", "What is the difference of am and is?", Order),
        ("How do I look in it?", "How to look in it?", Person),
        ("What is the case for it?", "What is the case of it?", Words),
        ("What is print(a, b); for?", "What is print(a b); for?", Form),
        ("What is this?\na b", "What is this?\na  b", Form),
        ("Was kostet das?", "was kostet das", Language),
        ("这是什么?", "这是什么", Language),
    ] {
        assert_eq!(judged(a, b, &AnswerSettings::default()), Verdict::Refuse(why), "{a} / {b}");
    }
    assert!(!served("?", "!"), "nothing is no question");
}

#[test]
fn each_agreement_is_a_setting() {
    type Check = (&'static str, &'static str, Refusal, fn(&mut AgreementRules));
    let lax = AgreementRules { words: false, ..AgreementRules::default() };
    let (a, b) = ("How do I feed a cat?", "How do I feed a dog?");
    let with = |agree: &AgreementRules| AnswerSettings {
        agree: agree.clone(),
        ..AnswerSettings::default()
    };
    assert_eq!(judged(a, b, &with(&lax)), Verdict::Serve);
    let checks: [Check; 10] = [
        ("alt ist er", "Alt ist er?", Refusal::Language, |agree| agree.language = false),
        ("What is 12 % of 80?", "What is 12 % of 90?", Refusal::Numbers, |a| a.numbers = false),
        ("Where does Ann live?", "Where does Bob live?", Refusal::Names, |a| a.names = false),
        ("Why do I not eat?", "Why do I eat?", Refusal::Negation, |a| a.negation = false),
        ("Why do cats eat?", "When do cats eat?", Refusal::Question, |a| a.question = false),
        ("What is more?", "What is less?", Refusal::Comparison, |a| a.comparison = false),
        ("Do all birds fly?", "Do any birds fly?", Refusal::Quantity, |a| a.quantity = false),
        ("Why do you eat?", "Why do we eat?", Refusal::Person, |a| a.person = false),
        ("Why will it rain?", "Why did it rain?", Refusal::Tense, |a| a.tense = false),
        ("Why do dogs eat cats?", "Why do cats eat dogs?", Refusal::Order, |a| a.order = false),
    ];
    for (a, b, why, turn_off) in checks {
        assert_eq!(judged(a, b, &with(&lax)), Verdict::Refuse(why), "{a} / {b}");
        let mut agree = lax.clone();
        turn_off(&mut agree);
        assert_eq!(judged(a, b, &with(&agree)), Verdict::Serve, "{a} / {b}");
    }
}

#[test]
fn each_likeness_is_a_setting() {
    type Check = (&'static str, &'static str, fn(&mut EquivalenceRules));
    let checks: [Check; 8] = [
        ("Why is the sun hot?", "Why is sun hot?", |alike| alike.articles = false),
        ("What eats cats?", "What eats cat?", |alike| alike.plurals = false),
        ("What is grey?", "What is gray?", |alike| alike.spelling = false),
        ("What are some of the best fish?", "What are the best fish?", |alike| {
            alike.fillers = false;
        }),
        ("Which fish is it?", "What fish is it?", |alike| alike.which = false),
        ("How do I swim?", "How to swim?", |alike| alike.how_to = false),
        ("What is the law of it?", "What is the law for it?", |alike| alike.prepositions = false),
        ("How do I sell my car?", "How do I sell a car?", |alike| alike.possessives = false),
    ];
    for (a, b, turn_off) in checks {
        let mut settings = AnswerSettings::default();
        assert_eq!(judged(a, b, &settings), Verdict::Serve, "{a} / {b}");
        turn_off(&mut settings.alike);
        assert_ne!(judged(a, b, &settings), Verdict::Serve, "{a} / {b}");
    }
}

#[test]
fn a_long_question_is_served_to_itself_only() {
    let question = |words: usize| format!("why {}", "word ".repeat(words - 1));
    let at = |words: usize, most_words: usize| {
        let settings = AnswerSettings { most_words, ..AnswerSettings::default() };
        judged(&question(words), &question(words).to_uppercase(), &settings)
    };
    assert_eq!(at(40, 40), Verdict::Serve);
    assert_eq!(at(41, 40), Verdict::Refuse(Refusal::Form));
    assert_eq!(at(41, 41), Verdict::Serve);
}

#[test]
fn the_threshold_is_a_ceiling_for_all_else() {
    let settings = AnswerSettings::default();
    let at = |similarity| same_question("why?", "Why?", similarity, &settings);
    assert_eq!(at(0.97), Verdict::Serve);
    assert_eq!(at(0.969), Verdict::Refuse(Refusal::Similarity));
    assert_eq!(at(f64::NAN), Verdict::Refuse(Refusal::Similarity));
    let lower = AnswerSettings { similarity_threshold: 0.5, ..settings };
    assert_eq!(same_question("why?", "Why?", 0.6, &lower), Verdict::Serve);
}

const THINGS: &[&str] = &["cat", "river", "password", "engine", "loan", "vaccine", "Anna", "Oslo"];
const VERBS: &[&str] = &["chase", "repair", "paint", "lend", "visit"];
const FRAMES: &[&str] = &[
    "How do I V A to B?",
    "How can I V the A from a B?",
    "Why does the A V a B?",
    "What is the best way to V an A with B?",
    "Which A did V B?",
    "Can an A V B?",
    "What is the A of B?",
    "Who will V my A for your B?",
];

fn asked(frame: &str, a: &str, b: &str, verb: &str) -> String {
    let words = frame.trim_end_matches('?').split(' ').map(|word| match word {
        "A" => a,
        "B" => b,
        "V" => verb,
        other => other,
    });
    words.collect::<Vec<_>>().join(" ") + "?"
}

prop_compose! {
    fn parts()(
        frame in prop::sample::select(FRAMES),
        pair in prop::sample::subsequence(THINGS, 2).prop_shuffle(),
        verb in prop::sample::select(VERBS),
    ) -> (&'static str, &'static str, &'static str, &'static str) {
        (frame, pair[0], pair[1], verb)
    }
}

fn cases() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

/// Every combination of what makes no difference: turned off, it only refuses more.
fn any_alike() -> impl Strategy<Value = EquivalenceRules> {
    prop::array::uniform8(any::<bool>()).prop_map(|on| EquivalenceRules {
        articles: on[0],
        plurals: on[1],
        spelling: on[2],
        fillers: on[3],
        which: on[4],
        how_to: on[5],
        prepositions: on[6],
        possessives: on[7],
    })
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn what_is_reversed_never_hits((frame, a, b, verb) in parts(), alike in any_alike()) {
        let settings = AnswerSettings { alike, ..AnswerSettings::default() };
        let (one, other) = (asked(frame, a, b, verb), asked(frame, b, a, verb));
        prop_assert_ne!(judged(&one, &other, &settings), Verdict::Serve, "{} / {}", one, other);
    }

    #[test]
    fn another_number_never_hits(
        (frame, a, b, verb) in parts(),
        (n, m) in (0_u32..3000, 0_u32..3000).prop_filter("two numbers", |(n, m)| n != m),
        shape in prop::sample::select(&["#", "#%", "$#", "#.5", "-#", "#th", "v#", "#-1", "#:30"][..]),
        alike in any_alike(),
    ) {
        let settings = AnswerSettings { alike, ..AnswerSettings::default() };
        let with = |n: u32| {
            let thing = format!("{b} {}", shape.replace('#', &n.to_string()));
            asked(frame, a, &thing, verb)
        };
        let (one, other, without) = (with(n), with(m), asked(frame, a, b, verb));
        prop_assert_ne!(judged(&one, &other, &settings), Verdict::Serve, "{} / {}", one, other);
        prop_assert_ne!(judged(&one, &without, &settings), Verdict::Serve, "{}", one);
    }

    #[test]
    fn another_name_never_hits(
        (frame, a, b, verb) in parts(),
        (x, y) in ("[A-Z][a-z]{2,7}", "[A-Z][a-z]{2,7}"),
        alike in any_alike(),
    ) {
        // `Xs` of `X` may be a plural.
        let singular = |name: &str| name.to_lowercase().trim_end_matches(['s', 'e']).to_owned();
        prop_assume!(singular(&x) != singular(&y) && !x.ends_with("ies") && !y.ends_with("ies"));
        let settings = AnswerSettings { alike, ..AnswerSettings::default() };
        let with = |name: &str| asked(frame, a, &format!("{b} Ms {name} Smith"), verb);
        prop_assert_ne!(judged(&with(&x), &with(&y), &settings), Verdict::Serve, "{} {}", x, y);
    }

    #[test]
    fn a_negation_never_hits(
        (frame, a, b, verb) in parts(),
        word in prop::sample::select(super::NEGATIONS),
        place in 1_usize..5,
        alike in any_alike(),
    ) {
        let settings = AnswerSettings { alike, ..AnswerSettings::default() };
        let one = asked(frame, a, b, verb);
        let mut words: Vec<&str> = one.split(' ').collect();
        words.insert(place.min(words.len() - 1), word);
        let other = words.join(" ");
        prop_assert_ne!(judged(&one, &other, &settings), Verdict::Serve, "{} / {}", one, other);
    }

    #[test]
    fn another_question_word_person_or_degree_never_hits(
        (frame, a, b, verb) in parts(),
        (list, from, to) in prop::sample::select(&[QUESTIONS, COMPARED, QUANTITIES, TENSES, DIRECTIONS][..])
            .prop_flat_map(|list| (Just(list), prop::sample::select(list), prop::sample::select(list))),
        place in 2_usize..6,
        alike in any_alike(),
    ) {
        prop_assume!(from != to);
        let settings = AnswerSettings { alike, ..AnswerSettings::default() };
        let with = |word: &str| {
            let one = asked(frame, a, b, verb);
            let mut words: Vec<&str> = one.split(' ').collect();
            words.insert(place.min(words.len() - 1), word);
            words.join(" ")
        };
        let is_same = |a: &str, b: &str| {
            Reading::of(a, &settings.alike).words() == Reading::of(b, &settings.alike).words()
        };
        // What the rules call one word is one: `which` and `what`, `was` and `were`.
        prop_assume!(!is_same(from, to) && list.len() > 2);
        let (one, other) = (with(from), with(to));
        prop_assert_ne!(judged(&one, &other, &settings), Verdict::Serve, "{} / {}", one, other);
    }

    #[test]
    fn no_text_breaks_it_and_figures_always_agree(a in "\\PC{0,40}", b in "\\PC{0,40}") {
        let settings = AnswerSettings::default();
        let _ = judged(&a, &b, &settings);
        for (one, other) in [(a.clone(), format!("why {a} 7")), (format!("why {a}"), format!("why {b}"))] {
            if judged(&one, &other, &settings) == Verdict::Serve {
                let figures = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
                prop_assert_eq!(figures(&one), figures(&other));
            }
        }
    }
}
