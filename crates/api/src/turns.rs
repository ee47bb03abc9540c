//! Turns: listed, one beside what would have been sent in full, and under other policies.

use std::sync::Arc;

use plimsoll_core::plan::{Context, Decision, sent_tokens};
use plimsoll_core::policy::Policy;
use plimsoll_core::text::{Limit, head};
use plimsoll_core::{Message, Ref};
use serde_json::{Value, json};

use crate::asked::ApiRequest;
use crate::paging::{PageQuery, page};
use crate::parts::ApiPolicies;
use crate::problem::ApiError;
use crate::sessions;
use crate::sources::{MessageSources, SourceSums};
use crate::timeline::{Compactions, ReplayDepth, SeenTurn, replay_of, walk, written};
use crate::view::{SessionView, WrittenTurns, view};

/// The policy of a replay that names none.
const USUAL_POLICY: &str = "plimsoll";

/// Policies that one comparison replays, at most.
const MOST_POLICIES: usize = 6;

/// Characters of a message in a turn's list (chosen: a few lines); and around a difference.
const SHOWN: usize = 400;
const AROUND: usize = 80;

/// A policy with its name.
type NamedPolicy = (String, Policy);

fn policy(asked: &ApiRequest<'_>, name: &str) -> Result<NamedPolicy, ApiError> {
    let budget = asked.query.parsed("budget")?;
    let found = asked.parts.policies.policy(name, budget);
    let found = found.ok_or_else(|| ApiError::Invalid(format!("`{name}` is no policy")))?;
    Ok((name.to_owned(), found))
}

/// Returns the policy that a request names; a budget alone names the usual one.
fn named_policy(asked: &ApiRequest<'_>) -> Result<Option<NamedPolicy>, ApiError> {
    let usual = asked.query.get("budget").map(|_| USUAL_POLICY);
    asked.query.get("policy").or(usual).map(|name| policy(asked, name)).transpose()
}

/// Work on a session, on a thread where it holds up no other request.
async fn on_view<T: Send + 'static>(
    asked: &ApiRequest<'_>,
    work: impl FnOnce(&SessionView, &dyn ApiPolicies) -> T + Send + 'static,
) -> Result<T, ApiError> {
    let summary = sessions::summary(asked).await?;
    let view = view(asked.views, &*asked.parts.history, asked.tenant, summary).await?;
    let policies = asked.parts.policies.clone();
    let done = tokio::task::spawn_blocking(move || work(&view, &*policies)).await;
    done.map_err(|_| ApiError::Lost)
}

fn sources_of(view: &SessionView) -> MessageSources {
    MessageSources::of(view.messages.iter().map(|message| &**message))
}

pub(crate) async fn list(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let query = PageQuery::of(&asked.query)?;
    let (from, limit) = (query.number()?, query.limit);
    let named = named_policy(asked)?;
    let usual = policy(asked, USUAL_POLICY)?;
    on_view(asked, move |view, policies| {
        let write = || written_turns(view, policies, named.as_ref(), &usual);
        // A replay under a policy that is named is made for each page: nobody asks for many of them.
        let turns = if named.is_none() { view.turns(write) } else { Arc::new(write()) };
        let mut behind = turns.items.iter().filter(|(number, _)| *number >= from);
        let items: Vec<_> = behind.by_ref().take(limit).collect();
        let next = items.last().filter(|_| behind.next().is_some());
        let next = next.map(|(number, _)| number.to_string());
        let mut answer = page(items.into_iter().map(|(_, item)| item.clone()), next.as_deref());
        answer["basis"] = json!(turns.basis);
        answer
    })
    .await
}

fn written_turns(
    view: &SessionView,
    policies: &dyn ApiPolicies,
    named: Option<&NamedPolicy>,
    usual: &NamedPolicy,
) -> WrittenTurns {
    let (pricing, sources) = (policies.pricing(), sources_of(view));
    let mut items = Vec::new();
    let named = named.map(|(name, policy)| (&**name, policy));
    let (mut compactions, mut sums) = (Compactions::default(), SourceSums::of(&sources));
    let basis = walk(view, named, (&usual.0, &usual.1), pricing, |turn| {
        let mut item = written(&turn, &mut sums, view, pricing);
        item["compaction"] = json!(compactions.at(&turn));
        items.push((turn.number, item));
    });
    WrittenTurns { basis: basis.as_str(), items }
}

/// Returns the number of the turn that the path names.
fn number(asked: &ApiRequest<'_>) -> Result<u32, ApiError> {
    let given = asked.query.path("turn");
    given.parse().map_err(|_| ApiError::NotFound(format!("turn `{given}`")))
}

/// Shows one turn and the context before it to `write`, and returns whether another follows.
async fn at<T: Send + 'static>(
    asked: &ApiRequest<'_>,
    write: impl Fn(&SeenTurn<'_>, Option<&Context>, &SessionView, &dyn ApiPolicies) -> T
    + Send
    + 'static,
) -> Result<(T, bool), ApiError> {
    let number = number(asked)?;
    let named = named_policy(asked)?;
    let usual = policy(asked, USUAL_POLICY)?;
    let found = on_view(asked, move |view, policies| {
        let (mut before, mut has_next): (Option<Context>, bool) = (None, false);
        let mut found = None;
        let named = named.as_ref().map(|(name, policy)| (&**name, policy));
        walk(view, named, (&usual.0, &usual.1), policies.pricing(), |turn| {
            if turn.number == number {
                found = Some(write(&turn, before.as_ref(), view, policies));
            }
            if turn.number < number {
                before = Some(turn.context.clone());
            }
            has_next |= turn.number > number;
        });
        found.map(|found| (found, has_next))
    })
    .await?;
    found.ok_or_else(|| ApiError::NotFound(format!("turn {number} in this session")))
}

pub(crate) async fn one(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let query = PageQuery::of(&asked.query)?;
    let (from, limit) = (query.number()? as usize, query.limit);
    let only_changed = asked.query.get("changed") == Some("true");
    let (mut answer, has_next) = at(asked, move |turn, before, view, policies| {
        let sources = sources_of(view);
        let mut sums = SourceSums::of(&sources);
        let mut answer = written(turn, &mut sums, view, policies.pricing());
        let decisions = turn.state.plan().decisions().iter().enumerate().take(turn.position);
        let mut rows = decisions
            .filter(|(position, decision)| {
                *position >= from && (!only_changed || is_changed(decision))
            })
            .peekable();
        let mut items = Vec::new();
        while items.len() < limit
            && let Some((position, decision)) = rows.next()
        {
            items.push(row(position, decision, &sources));
        }
        let next = items.last().filter(|_| rows.peek().is_some());
        let next = next.and_then(|item| item["position"].as_u64()).map(|last| last.to_string());
        answer["items"] = json!(items);
        answer["next"] = json!(next);
        answer["added"] = added(turn.context);
        answer["difference"] = difference(before, turn.context);
        answer
    })
    .await?;
    answer["has_next"] = json!(has_next);
    Ok(answer)
}

fn is_changed(decision: &Decision) -> bool {
    decision.treatment.as_str() != "keep"
}

/// Writes a message of a turn: as it was said beside as it is sent.
fn row(position: usize, decision: &Decision, sources: &MessageSources) -> Value {
    let whole = shown(&decision.whole.message);
    let (mut sent, mut sent_characters) = (None, whole.1);
    if is_changed(decision) {
        let is_sent = decision.treatment.as_str() != "omit";
        let form = if is_sent { shown(&decision.form.message) } else { (String::new(), 0) };
        (sent, sent_characters) = (Some(form.0), form.1);
    }
    json!({
        "position": position,
        "role": decision.whole.message.role.as_str(),
        "source": sources.main(position),
        "treatment": decision.treatment.as_str(),
        "reason": decision.reason.to_string(),
        "since_turn": decision.since.saturating_sub(1),
        "tokens_before": decision.whole.tokens,
        "tokens_after": sent_tokens(decision),
        "ref": Ref::message(decision.whole.hash).to_string(),
        "said": whole.0,
        "said_characters": whole.1,
        "sent": sent,
        "sent_characters": sent_characters,
    })
}

fn shown(message: &Message) -> (String, usize) {
    let text = message.shown();
    (head(&text, Limit::Characters(SHOWN)).to_owned(), text.chars().count())
}

/// Writes the texts of ours that stand between the messages.
fn added(context: &Context) -> Value {
    let texts = context.iter().filter(|sent| sent.position.is_none());
    texts.map(|sent| json!({"tokens": sent.tokens, "text": sent.message.shown()})).collect()
}

/// Finds the first byte by which a context differs from the one before it; `null` where it only goes on.
fn difference(before: Option<&Context>, now: &Context) -> Value {
    let Some(before) = before else { return Value::Null };
    let differs = |at: &usize| now.get(*at).map(|sent| sent.hash) != Some(before[*at].hash);
    let Some(at) = (0..before.len()).find(differs) else { return Value::Null };
    let old = before[at].message.shown();
    let new = now.get(at).map(|sent| sent.message.shown()).unwrap_or_default();
    let byte = old.bytes().zip(new.bytes()).take_while(|(one, other)| one == other).count();
    let around = |text: &str| {
        let begin = head(text, Limit::Bytes(byte)).len();
        head(&text[begin..], Limit::Characters(AROUND)).to_owned()
    };
    json!({
        "message": at,
        "position": before[at].position,
        "byte": byte,
        "before": around(&old),
        "now": around(&new),
    })
}

pub(crate) async fn message(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let given = asked.query.path("position").to_owned();
    let unknown = ApiError::NotFound(format!("message `{given}` in this turn"));
    let Ok(position) = given.parse::<usize>() else { return Err(unknown) };
    let (found, _) = at(asked, move |turn, _, _, _| {
        let decision =
            turn.state.plan().decisions().get(position).filter(|_| position < turn.position)?;
        Some(json!({
            "position": position,
            "role": decision.whole.message.role.as_str(),
            "treatment": decision.treatment.as_str(),
            "reason": decision.reason.to_string(),
            "ref": Ref::message(decision.whole.hash).to_string(),
            "said": decision.whole.message.shown(),
            "sent": decision.form.message.shown(),
        }))
    })
    .await?;
    found.ok_or(unknown)
}

pub(crate) async fn what_if(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let mut names: Vec<&str> = asked.query.all("policy").collect();
    if names.is_empty() {
        names = vec![USUAL_POLICY, "window", "newest"];
    }
    if names.len() > MOST_POLICIES {
        return Err(ApiError::Invalid(format!("at most {MOST_POLICIES} policies")));
    }
    let mut policies = vec![policy(asked, "full")?];
    for name in names.into_iter().filter(|name| *name != "full") {
        policies.push(policy(asked, name)?);
    }
    on_view(asked, move |view, book| compare(view, &policies, book)).await
}

/// Replays a session under each policy and writes what each would have sent and cost.
pub(crate) fn compare(
    view: &SessionView,
    policies: &[NamedPolicy],
    book: &dyn ApiPolicies,
) -> Value {
    let pricing = book.pricing();
    let items = policies.iter().map(|(name, policy)| {
        let replay = replay_of(view, policy, pricing, ReplayDepth::Needs, |_, _| {});
        let totals = &replay.totals;
        json!({
            "policy": name,
            "turns": totals.turns,
            "tokens": totals.tokens,
            "full_tokens": totals.full_tokens,
            "peak": totals.peak,
            "cached": totals.cached.round(),
            "written": totals.written.round(),
            "breaks": totals.breaks,
            "changes": totals.changes,
            "over_budget": totals.over_budget,
            "input_cost": totals.dollars.input,
            "reported_cost": (totals.dollars.billed_turns > 0).then_some(totals.dollars.billed),
            "cost_beside": (totals.dollars.billed_turns > 0).then_some(totals.dollars.beside),
            "blind_turns": replay.score.blind,
            "fetches": replay.score.fetches,
        })
    });
    let is_estimate = pricing.of(view.model(), None).is_estimate();
    json!({"items": items.collect::<Vec<_>>(), "is_estimate": is_estimate})
}
