//! The word lists of the rules.
//!
//! Closed classes of English come from its grammars. Open ones (spellings, plurals with another meaning, opposites) hold common
//! words; a word that they lack is a difference like any other.

/// Contractions that no ending explains; without an apostrophe too, as people type them.
#[rustfmt::skip]
pub(super) const CONTRACTIONS: &[(&str, &[&str])] = &[
    ("what's", &["what", "is"]), ("whats", &["what", "is"]), ("who's", &["who", "is"]),
    ("where's", &["where", "is"]), ("when's", &["when", "is"]), ("how's", &["how", "is"]),
    ("that's", &["that", "is"]), ("it's", &["it", "is"]), ("there's", &["there", "is"]),
    ("can't", &["can", "not"]), ("cant", &["can", "not"]), ("cannot", &["can", "not"]),
    ("won't", &["will", "not"]), ("wont", &["will", "not"]), ("shan't", &["shall", "not"]),
    ("let's", &["let", "us"]), ("dont", &["do", "not"]), ("doesnt", &["does", "not"]),
    ("didnt", &["did", "not"]), ("isnt", &["is", "not"]), ("arent", &["are", "not"]),
    ("im", &["i", "am"]), ("&", &["and"]),
];

/// Endings behind an apostrophe and their words; `'d` and `'s` are not listed, for each stands for two words.
pub(super) const ENDINGS: &[(&str, &str)] =
    &[("n't", "not"), ("'re", "are"), ("'ve", "have"), ("'ll", "will"), ("'m", "am")];

/// British spellings with American ones; `-isation` and `-ise` are a rule.
#[rustfmt::skip]
pub(super) const SPELLINGS: &[(&str, &str)] = &[
    ("aeroplane", "airplane"), ("analyse", "analyze"), ("behaviour", "behavior"),
    ("catalogue", "catalog"), ("centre", "center"), ("cheque", "check"), ("colour", "color"),
    ("defence", "defense"), ("enrol", "enroll"), ("favour", "favor"),
    ("favourite", "favorite"), ("flavour", "flavor"), ("fulfil", "fulfill"), ("grey", "gray"),
    ("honour", "honor"), ("humour", "humor"), ("jewellery", "jewelry"), ("labour", "labor"),
    ("learnt", "learned"), ("licence", "license"), ("maths", "math"), ("mum", "mom"),
    ("neighbour", "neighbor"), ("offence", "offense"), ("programme", "program"),
    ("rumour", "rumor"), ("skilful", "skillful"), ("theatre", "theater"),
    ("travelling", "traveling"), ("tyre", "tire"), ("whilst", "while"), ("two", "2"),
    ("three", "3"), ("four", "4"), ("five", "5"), ("six", "6"), ("seven", "7"), ("eight", "8"),
    ("nine", "9"), ("ten", "10"), ("eleven", "11"), ("twelve", "12"),
];

/// Words in `-ise` without a form in `-ize`.
#[rustfmt::skip]
pub(super) const ONLY_ISE: &[&str] = &[
    "advertise", "advise", "arise", "comprise", "compromise", "concise", "disguise",
    "enterprise", "exercise", "expertise", "franchise", "improvise", "likewise", "merchandise",
    "otherwise", "precise", "premise", "promise", "revise", "supervise", "surprise", "televise",
];

/// Plurals with another meaning than their singular, and words that only look like plurals.
#[rustfmt::skip]
pub(super) const NO_PLURAL: &[&str] = &[
    "airs", "aids", "always", "arms", "authorities", "bases", "besides", "bias", "brains",
    "canvas", "christmas", "clothes", "compasses", "contents", "customs", "damages", "does",
    "drawers", "earnings", "effects", "forces", "gas", "glasses", "goods", "grounds", "guts",
    "has", "honors", "hours", "jeans", "lens", "letters", "likes", "looks", "manners", "means",
    "minutes", "news", "odds", "pants", "papers", "perhaps", "premises", "proceeds", "quarters",
    "regards", "remains", "returns", "rights", "sales", "savings", "securities", "series",
    "shorts", "species", "spectacles", "spirits", "stocks", "terms", "texas", "thanks", "times",
    "towards", "travels", "united", "utilities", "values", "waters", "whereas", "windows",
    "woods", "works", "yes",
];

pub(super) const ARTICLES: &[&str] = &["a", "an", "the"];

/// Words behind which `a` is a name: `vitamin a`.
#[rustfmt::skip]
pub(super) const LETTERED: &[&str] = &[
    "block", "class", "clause", "column", "exhibit", "factor", "figure", "grade", "group",
    "hepatitis", "influenza", "level", "option", "part", "plan", "point", "row", "schedule",
    "section", "series", "team", "type", "variant", "vitamin",
];

/// Words that add nothing wherever they stand.
pub(super) const FILLERS: &[&str] = &["actually", "basically", "exactly", "literally", "really"];

pub(super) const QUESTIONS: &[&str] =
    &["how", "what", "when", "where", "which", "who", "whom", "whose", "why"];

/// Words by which English is recognised without a word of [`QUESTIONS`]; other languages have few of them.
pub(super) const ENGLISH: &[&str] = &[
    "and", "are", "be", "can", "do", "does", "for", "i", "is", "it", "my", "of", "should", "the",
    "this", "to", "with", "would", "you", "your",
];

/// Words with which an English question begins, where it has none of [`QUESTIONS`].
pub(super) const BEGINNINGS: &[&str] =
    &["are", "can", "could", "did", "do", "does", "is", "should", "would"];

/// Words that are names if they have a capital inside a sentence: function words, and common words.
pub(super) const OTHER_WITH_A_CAPITAL: &[&str] = &[
    "access", "amazon", "am", "an", "and", "apple", "april", "at", "august", "banks", "bill",
    "bush", "can", "chad", "chase", "china", "do", "excel", "frank", "gates", "go", "grace",
    "guinea", "hope", "in", "ireland", "is", "it", "java", "jobs", "jordan", "june", "mac",
    "march", "mark", "may", "me", "mercury", "mobile", "no", "nice", "on", "or", "oracle",
    "outlook", "polish", "python", "reading", "rich", "rose", "ruby", "rust", "shell", "slack",
    "so", "swift", "target", "the", "turkey", "us", "visa", "wales", "who", "will", "windows",
    "word",
];

pub(super) const NEGATIONS: &[&str] = &[
    "barely", "except", "hardly", "lack", "neither", "never", "no", "nobody", "none", "nor", "not",
    "nothing", "nowhere", "rarely", "refuse", "scarcely", "seldom", "unless", "without",
];

pub(super) const QUANTITIES: &[&str] = &[
    "all", "any", "both", "each", "either", "enough", "entire", "even", "every", "few", "half",
    "just", "many", "most", "much", "only", "several", "some", "too", "whole",
];

#[rustfmt::skip]
pub(super) const PERSONS: &[&str] = &[
    "anyone", "everyone", "he", "her", "hers", "him", "his", "i", "it", "its", "me", "mine",
    "my", "myself", "one", "our", "ours", "ourselves", "own", "people", "she", "someone",
    "that", "their", "theirs", "them", "these", "they", "this", "those", "us", "we", "you",
    "your", "yours", "yourself",
];

pub(super) const TENSES: &[&str] = &[
    "been", "can", "could", "did", "had", "has", "have", "may", "might", "must", "shall", "should",
    "used", "was", "were", "will", "would",
];

pub(super) const DIRECTIONS: &[&str] = &[
    "against", "as", "away", "back", "behind", "between", "by", "down", "from", "into", "off",
    "onto", "out", "over", "through", "to", "toward", "towards", "under", "up", "via", "versus",
    "vs",
];

/// Opposites and degrees: exchanging them reverses a question.
#[rustfmt::skip]
pub(super) const COMPARED: &[&str] = &[
    "above", "add", "advantage", "after", "allow", "always", "antonym", "arrive", "ascending",
    "asset", "avoid", "bad", "before", "begin", "below", "benefit", "best", "better", "big",
    "biggest", "borrow", "bottom", "buy", "buyer", "cause", "cheap", "cheaper", "cheapest",
    "close", "cold", "con", "connect", "create", "cure", "decrease", "delete", "depart",
    "descending", "deposit", "destroy", "die", "disable", "disadvantage", "disconnect",
    "download", "drawback", "dry", "early", "easier", "easiest", "easy", "employee", "employer",
    "enable", "end", "enter", "exit", "expensive", "export", "external", "fail", "fast",
    "faster", "fastest", "fat", "female", "finish", "first", "forbid", "forget", "gain", "give",
    "good", "greatest", "hard", "harder", "hardest", "hate", "healthy", "heavy", "hide", "high",
    "higher", "highest", "hot", "import", "improve", "increase", "inside", "install",
    "internal", "join", "land", "large", "largest", "last", "late", "least", "leave", "legal",
    "lend", "less", "liability", "light", "live", "long", "longer", "longest", "lose", "loss",
    "love", "low", "lower", "lowest", "male", "man", "maximum", "men", "minimum", "more",
    "most", "near", "new", "newest", "north", "old", "oldest", "open", "outside", "pass",
    "positive", "prevent", "pro", "pull", "push", "negative", "raise", "receive", "reduce",
    "remember", "remove", "rich", "right", "safe", "save", "sell", "seller", "send", "short",
    "shorter", "shortest", "show", "slow", "slower", "slowest", "small", "smaller", "smallest",
    "south", "spend", "start", "stop", "strong", "synonym", "take", "tall", "tallest", "thin",
    "top", "treat", "turn", "uninstall", "unlock", "lock", "unsafe", "upload", "weak",
    "weakest", "wet", "win", "withdraw", "woman", "women", "worse", "worst", "wrong", "young",
    "youngest",
];

/// Verbs with which `how do you` asks about the other person.
#[rustfmt::skip]
pub(super) const ASKED_OF_YOU: &[&str] = &[
    "be", "believe", "celebrate", "come", "cope", "deal", "define", "describe", "envision",
    "feel", "handle", "imagine", "judge", "know", "like", "live", "look", "mean", "plan",
    "prefer", "rate", "react", "say", "see", "sleep", "sound", "spend", "think", "view", "want",
    "work",
];

/// Verbs with which `how do I` does not ask for a method.
pub(super) const STATES: &[&str] = &[
    "appear", "compare", "differ", "fare", "feel", "fit", "look", "rank", "rate", "relate", "seem",
    "smell", "sound", "stand", "taste",
];

/// Words that end a noun phrase.
pub(super) const PHRASE_ENDS: &[&str] = &[
    "and", "as", "because", "but", "by", "can", "do", "from", "have", "he", "i", "if", "it",
    "like", "not", "one", "or", "she", "should", "so", "than", "that", "they", "this", "those",
    "to", "was", "we", "what", "when", "where", "who", "will", "with", "without", "would", "you",
];

/// Words that take a preposition: `good at`, `famous for`.
#[rustfmt::skip]
pub(super) const TAKES_A_PREPOSITION: &[&str] = &[
    "bad", "best", "better", "case", "enough", "famous", "good", "important", "known",
    "necessary", "right", "safe", "suitable", "useful", "worse", "worst", "wrong",
];

/// Words that make an answer depend on the day.
#[rustfmt::skip]
pub(super) const TIME_BOUND: &[&str] = &[
    "current", "currently", "latest", "newest", "now", "nowadays", "recent", "recently",
    "today", "today's", "tomorrow", "tonight", "upcoming", "yesterday",
];
