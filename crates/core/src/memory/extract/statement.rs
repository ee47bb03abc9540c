//! Statements: sentences of somebody's own words that will still hold in a later conversation.
//!
//! The patterns are those of discourse: how people decide, forbid, prefer and describe. They prefer precision; a sentence
//! that only points at what stands before it says nothing later.

use std::borrow::Cow;

use crate::memory::MemoryKind;
use crate::message::Role;

use super::pattern;

patterns! {
    REQUEST r"(?i)^\W*(?:(?:ok|okay|great|good|and|also|so|now|then|hm+|well|yes|no|please|pls)[,.]?\s+)*(?:can|could|would|will|did|do|does|is|are|was|were|have|has|had|what|which|who|whom|whose|where|when|why|how|shall|may|might|tell me|show me|explain|are you sure)\b";
    SUPPOSED r"(?i)^\W*(?:if|whether|suppose|assuming|maybe|perhaps|unless|until)\b|\b(?:not sure|no idea|i wonder|don['’]?t know|haven['’]?t decided|not (?:yet )?(?:decided|agreed|settled|chosen)|(?:i|we) (?:do not|don['’]?t) (?:understand|think|see|remember))\b";
    PROGRESS r"(?i)^\W*(?:at|in|on|under|above|for) the\b|\bfind a way\b|\bfuck|\bshit|\b(?:still (?:does|do|is|are|not|fails?|broken)|does(?: not|n['’]?t) work|doesnt work|not working|you (?:have |just )?(?:fucked|broke|forgot|missed|did|were|made))\b|\bwtf\b";
    STANDING r"(?i)\b(?:always|never|from now on|going forward|in (?:the )?future|every time|at all times|by default)\b";
    PREFERENCE r"(?i)\b(?:i|we)(?:['’]d| would| really| only| also| always| generally| usually| strongly)* (?:prefer|like to (?:have|keep|use)|(?:only )?want (?:all|every|each|only|no\b|to (?:keep|use|have|avoid|support|be able|structure|stay))|only want|(?:do not|don['’]?t|dont) (?:want|like|need)|hate)\b|\bmy preference\b";
    RULE r"(?i)\b(?:must|should|shall)(?: ?not|n['’]t)? (?:also |only |always |never |be |stay |use |have |stop |contain |live |stand |go |come |support |return |work |happen |exist |run |follow |keep |respect |match |match|refer|track|allow)|\b(?:is|are) (?:not|never) (?:acceptable|accepable|ok\b|okay|valid|allowed|an option|the (?:right|correct) (?:way|place))|\bmust (?:not |never |also |always )?\w+|^\W*(?:please )?keep (?:the|all|our|every)\b.{4,60}\b(?:as (?:they|it|is)|unchanged|stable|in sync|compatible|public|private)\b";
    FORBID r"(?i)^\W*(?:(?:ok|great|and|also|so|no|please|but)[,.]?\s+)*(?:don['’]?t|do not|dont|never|avoid|stop|no need to) (?:ever |just )?(?:us(?:e|ing)|add(?:ing)?|creat(?:e|ing)|commit(?:ting)?|push(?:ing)?|touch|chang(?:e|ing)|writ(?:e|ing)|edit(?:ing)?|run(?:ning)?|includ(?:e|ing)|put(?:ting)?|mock(?:ing)?|hard-?cod(?:e|ing)|remov(?:e|ing)|delet(?:e|ing)|produc(?:e|ing)|modify(?:ing)?|rely(?:ing)?|introduc(?:e|ing)|assum(?:e|ing)|import(?:ing)?|depend|track|store|support)\b";
    DECIDE r"(?i)\b(?:we|i)(?:['’]re|['’]m| are| am) (?:now )?(?:going to|gonna) (?:adopt|use|keep|drop|remove|rename|replace|move|switch|migrate|support|deprecate|go|stay|stick|only)\b|^\W*(?:(?:ok|okay|great|good|so|actually|no|yes|and|then|yeah)[,.]?\s+)*(?:let['’]?s|let us) (?:not |just |only |also |rather |instead )*(?:use|go with|keep|rename|remove|drop|switch|move|call|stick|adopt|replace|have|put|store|make|name|update|treat|default)\b|\b(?:i think|i suggest|i propose|i['’]d say) (?:that )?we (?:should |can |could |must )?(?:use|remove|rename|keep|move|drop|add|create|make|replace|merge|split|have|stop)\b|\bshould be (?:called|named|renamed|moved|removed|replaced|stored|hard|soft|deprecated|optional|required|part|kept|dropped|the default|handled|defined|placed)\b|\bthe (?:main |whole |basic )?(?:idea|goal|plan|fix|solution|approach|rule|intention|decision) (?:here )?is(?: simple| clear)?\b|\b(?:use|using|prefer|choose|chose|keep) [`\w./@-]+ (?:instead of|rather than|over|and not)\b|\bthere (?:is|are) no need (?:to|for)\b";
    DESCRIBE r"(?i)\b(?:we|i) (?:do not|don['’]?t|dont) (?:control|support|own|ship|have|use)\b|\b(?:our|this|the) (?:api|app|repo|repository|project|server|database|frontend|backend|config(?:uration)?|tests?|test suite|branch|package|service|cli|build|pipeline|workspace|codebase|schema|docs|deployment|production|staging) (?:is|are|runs?|uses?|lives?|expects?|needs?|requires?|contains?|comes?|targets?)\b|\b(?:keep in mind|remember|note|be aware|for the record)(?: that\b|:)";
    /// A word that names something: code, a path, a name with a sign in it, or a name in capitals.
    NAMED r"`[^`]+`|\b[\w-]+/[\w./-]+|\b\w+[._]\w+\b|\b[a-z]+[A-Z]\w+|\b[A-Z]{2,}\w*\b|\b[A-Z][a-z]+[A-Z]\w*";
    POINTS r"(?i)^\W*(?:(?:ok|okay|great|good|so|and|but|also|no|yes|actually|then)[,.]?\s+)*(?:it|this|that|these|those|they|he|she)\b";
    CAUSE r"(?i)\b(?:root cause|culprit|actual (?:issue|problem|cause)|underlying (?:issue|problem|cause)|real (?:issue|problem|cause))\b.{0,40}?\b(?:is|was)\b|\bthe (?:fix|solution) is (?:simple|to)\b";
    QUOTED r#"[«“„][^»”“]{8,}[»”“]|"[^"]{12,}"|(?:^|\s)['‘][^'’]{12,}['’](?:[\s.,;!?]|$)"#;
    REASONED r"(?i)\b(?:because|since|so that|as it|due to)\b";
}

/// Words that say little about a subject, beside the stop words.
const THIN: &[&str] = &[
    "this",
    "that",
    "these",
    "those",
    "thing",
    "things",
    "stuff",
    "make",
    "need",
    "want",
    "please",
    "just",
    "like",
    "also",
    "then",
    "there",
    "here",
    "sure",
    "okay",
    "good",
    "great",
    "nice",
    "right",
    "wrong",
    "look",
    "looks",
    "something",
    "anything",
    "everything",
    "same",
    "still",
    "should",
    "would",
    "could",
    "must",
    "have",
    "does",
    "dont",
    "lets",
    "with",
    "from",
    "only",
    "always",
    "never",
    "again",
    "back",
    "first",
    "next",
    "last",
    "other",
    "more",
    "some",
    "into",
];

/// The fewest words that name a subject (measured: sentences with less are noise without their surroundings).
const SUBJECT_WORDS: usize = 3;

/// Returns the kind of a statement and a tag that says what it is; `None` for a sentence that is not worth keeping.
pub(super) fn statement(text: &str, role: Role) -> Option<(MemoryKind, &'static str)> {
    if super::own_words::REPORTED.is_match(text) {
        return None;
    }
    if text.ends_with(['?', ':', '？']) || pattern::OPEN.is_match(text) || SUPPOSED.is_match(text)
    {
        return None;
    }
    let is_named = NAMED.is_match(text);
    let is_thin = subject_words(text) + usize::from(is_named) < SUBJECT_WORDS;
    if is_thin || text.ends_with(',') || (POINTS.is_match(text) && !is_named) {
        return None;
    }
    let found = match role {
        Role::User => by_user(text),
        Role::Assistant if is_named => by_assistant(text),
        _ => None,
    };
    // What stands in quotation marks is said by somebody else, or about something else.
    found.filter(|_| match QUOTED.replace_all(text, " ") {
        Cow::Borrowed(_) => true,
        Cow::Owned(bare) => match role {
            Role::User => by_user(&bare) == found,
            _ => by_assistant(&bare) == found,
        },
    })
}

/// Returns whether a text names code, a path or a product.
pub(super) fn is_named(text: &str) -> bool {
    NAMED.is_match(text)
}

/// Returns how many words name a subject.
fn subject_words(text: &str) -> usize {
    crate::words(text).filter(|word| word.chars().count() > 3 && !THIN.contains(&&**word)).count()
}

/// Returns whether a task is one of this work alone, and no step of every work.
pub(super) fn is_specific(text: &str) -> bool {
    subject_words(text) > SUBJECT_WORDS && (NAMED.is_match(text) || subject_words(text) > 5)
}

fn by_user(text: &str) -> Option<(MemoryKind, &'static str)> {
    if REQUEST.is_match(text) || PROGRESS.is_match(text) {
        return None;
    }
    Some(if pattern::DECISION.is_match(text) || DECIDE.is_match(text) {
        (MemoryKind::Decision, "decision")
    } else if PREFERENCE.is_match(text) {
        (MemoryKind::Fact, "preference")
    } else if STANDING.is_match(text) || FORBID.is_match(text) || RULE.is_match(text) {
        (MemoryKind::Fact, "instruction")
    } else if DESCRIBE.is_match(text) || pattern::is_fact(text, Role::User) {
        (MemoryKind::Fact, "workspace")
    } else {
        return None;
    })
}

fn by_assistant(text: &str) -> Option<(MemoryKind, &'static str)> {
    if pattern::DECISION.is_match(text) && REASONED.is_match(text) {
        return Some((MemoryKind::Decision, "decision"));
    }
    let is_cause = CAUSE.is_match(text) || pattern::is_fact(text, Role::Assistant);
    is_cause.then_some((MemoryKind::Fact, "cause"))
}
