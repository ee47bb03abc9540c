//! One phase: its context, its attempts until they are valid, and what becomes of it.

use std::sync::Arc;

use plimsoll_core::render::{Attempt, retry_context};
use plimsoll_core::{ContentHash, Message, Role};
use plimsoll_engine::{ChatModel, ContextCard, HistoryBatch, Tool};
use serde_json::{Map, Value};

use super::Run;
use super::context::{PhaseContext, phase_context};
use super::error::RunError;
use super::event::Event;
use super::journal::Journal;
use super::past::{Past, Ran, output_of};
use super::toolbox::{Caller, ROUTE_TO};
use super::turns::{Set, Talk, TurnsEnd, own_message};
use super::validate::Verdict;
use crate::definition::{ExtractionFormat, OnError, Phase, Tackle, Template, Templated, WardMode};

/// Where the way leads behind a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// To whatever comes next.
    Through,
    GoTo(String),
}

impl Run {
    /// Runs a phase and adds it to the past.
    pub(crate) async fn phase(
        &self,
        phase: &Phase,
        past: &mut Past,
        journal: &mut Journal,
    ) -> Result<Ended, RunError> {
        let begun = if phase.is_tool_call() {
            self.tool_phase(phase, past, journal).await
        } else {
            self.model_phase(phase, past, journal).await
        };
        match (begun, &phase.on_error) {
            (Ok(ended), _) => Ok(ended),
            (Err(error), Some(on_error)) if can_be_met(&error) => {
                self.met(phase, past, journal, on_error, &error).await
            }
            (Err(error), _) => Err(error),
        }
    }

    async fn model_phase(
        &self,
        phase: &Phase,
        past: &mut Past,
        journal: &mut Journal,
    ) -> Result<Ended, RunError> {
        let factor = match &phase.soundings {
            Some(soundings) => self.count(phase, past, Some(&soundings.factor))?.unwrap_or(1),
            None => 1,
        };
        let (ran, ended) = match &phase.soundings {
            Some(soundings) if factor > 1 => {
                self.sound_phase(phase, soundings, factor as usize, past, journal).await?
            }
            _ => self.attempts(phase, past, journal, None).await?,
        };
        self.end(phase, past, journal, ran).await?;
        Ok(ended)
    }

    /// Tries a phase until its output is valid.
    pub(crate) async fn attempts(
        &self,
        phase: &Phase,
        past: &mut Past,
        journal: &mut Journal,
        model: Option<String>,
    ) -> Result<(Ran, Ended), RunError> {
        let name = phase.name.as_str();
        let mut set = Set::default();
        let inside = self.sub_cascades(phase, past, journal, &mut set).await?;
        let context = self.context(phase, past, journal).await?;
        for note in &context.notes {
            self.note(name, note.clone());
        }
        let mut seen = context.messages;
        seen.extend(inside);
        let (model, asked_for) = self.model(phase, past, model)?;
        let mut talk = Talk::new(self, phase, model, asked_for, seen);
        talk.callout = match phase.callouts.as_ref().and_then(|callouts| callouts.messages.as_ref())
        {
            Some(template) => Some(self.render(phase, past, template, [])?.into()),
            None => None,
        };
        self.tell(&Event::PhaseBegan {
            phase: name.to_owned(),
            visit: past.visits(name) + 1,
            context_messages: talk.context().len(),
            context_tokens: talk.tokens(),
        });
        self.wards(phase, past, journal, &phase.wards.pre, &input_text(past)).await?;
        let tools = self.offered(phase, past, journal, &mut talk).await?;
        let instructions = self.instructions(phase, past)?;
        let begin = [
            own_message(phase, Role::System, instructions),
            own_message(phase, Role::User, format!("Carry out the phase `{name}`.")),
        ];
        let mut prompts = Vec::new();
        for message in begin {
            let message = journal.say(message).await?;
            talk.hear(message.clone());
            prompts.push(message);
        }
        let mut tried: Vec<Attempt> = Vec::new();
        let most = self.most_attempts(phase, past)?;
        loop {
            let before = talk.own().len();
            let end = self.turns(phase, past, journal, &mut talk, &tools, &mut set).await?;
            let own = talk.own();
            let output = output_of(&own[before..]);
            let number = tried.len() as u32 + 1;
            let verdict = self.judge(phase, past, journal, &output, number).await?;
            if verdict.valid {
                let is_short = self.intra_phase(phase).is_some_and(|intra| intra.compress_loops);
                // Later phases see how it was done, not how it failed.
                let messages = if is_short && number > 1 {
                    prompts.iter().chain(&own[before..]).cloned().collect()
                } else {
                    own
                };
                let ended = match end {
                    TurnsEnd::GoTo(target) => Ended::GoTo(target),
                    TurnsEnd::Through => Ended::Through,
                };
                let ran = Ran {
                    phase: name.to_owned(),
                    value: Value::String(output.clone()),
                    output,
                    messages,
                    set: set.state,
                    retention: phase.context_retention,
                };
                return Ok((ran, ended));
            }
            if number >= most {
                let why = format!("not valid after {number} attempts: {}", verdict.reason);
                return Err(RunError::Failed { phase: name.to_owned(), why });
            }
            tried.push(Attempt { number, output, reason: verdict.reason });
            self.retry(phase, past, journal, &mut talk, &prompts, &tried).await?;
        }
    }

    /// Tells the model what was wrong, and what of its attempts it still sees.
    async fn retry(
        &self,
        phase: &Phase,
        past: &Past,
        journal: &mut Journal,
        talk: &mut Talk,
        prompts: &[Arc<Message>],
        tried: &[Attempt],
    ) -> Result<(), RunError> {
        let Some(last) = tried.last() else { return Ok(()) };
        let own = match &phase.rules.retry_instructions {
            Some(template) => {
                let told = [
                    ("validation_error".to_owned(), Value::String(last.reason.clone())),
                    ("attempt".to_owned(), Value::from(tried.len() + 1)),
                ];
                Some(self.render(phase, past, template, told)?)
            }
            None => None,
        };
        let intra = self.intra_phase(phase).filter(|intra| intra.enabled && intra.compress_loops);
        let again = format!(
            "Please try again (Attempt #{}). Address the validation issues noted above.",
            tried.len() + 1
        );
        let mut text = format!("[Validation Failed]\n{}\n{again}", last.reason);
        for line in &own {
            text.push('\n');
            text.push_str(line);
        }
        let said = journal.say(own_message(phase, Role::User, text)).await?;
        let Some(intra) = intra else {
            talk.hear(said);
            return Ok(());
        };
        talk.note(said);
        let mut short = retry_context(prompts, tried, intra.loop_history_limit);
        if let (Some(own), Some(ask)) = (own, short.last_mut()) {
            *ask = Message::text(Role::User, format!("{}\n{own}", ask.shown()));
        }
        let context = talk.context();
        talk.go_on_from(context.into_iter().chain(short.into_iter().map(Arc::new)));
        Ok(())
    }

    /// Returns what a phase sees of those before it.
    pub(crate) async fn context(
        &self,
        phase: &Phase,
        past: &Past,
        journal: &mut Journal,
    ) -> Result<PhaseContext, RunError> {
        if let Some(selection) = self.cascade.selection(phase)
            && selection.enabled
            && self.runner.settings.inter_phase_enabled
        {
            return self.chosen_context(phase, past, journal, &selection).await;
        }
        phase_context(phase, past, &|condition| self.holds(phase, past, condition))
    }

    /// Returns the model of a phase, and the name by which it was asked for.
    pub(crate) fn model(
        &self,
        phase: &Phase,
        past: &Past,
        given: Option<String>,
    ) -> Result<(Arc<dyn ChatModel>, Option<String>), RunError> {
        let template = phase.model.as_ref().or(self.cascade.model.as_ref());
        let name = match (given, template) {
            (Some(name), _) => Some(name),
            (None, Some(template)) => Some(self.render(phase, past, template, [])?),
            (None, None) => None,
        };
        let found = self.runner.models.model(name.as_deref());
        let model =
            found.map_err(|source| RunError::Model { phase: phase.name.to_string(), source })?;
        Ok((model, name))
    }

    /// Returns what the model is told to do, and by what it is measured.
    fn instructions(&self, phase: &Phase, past: &Past) -> Result<String, RunError> {
        let mut text = match &phase.instructions {
            Some(template) => self.render(phase, past, template, [])?,
            None => String::new(),
        };
        if let Some(told) = self.told_of_validator(phase, past)? {
            text.push_str("\n\n");
            text.push_str(&told);
        }
        Ok(text)
    }

    /// Returns the tools that a phase's model is offered; with a manifest the model picks them first.
    async fn offered(
        &self,
        phase: &Phase,
        past: &Past,
        journal: &mut Journal,
        talk: &mut Talk,
    ) -> Result<Vec<Tool>, RunError> {
        let names = match &phase.tackle {
            Tackle::Names(names) => names.clone(),
            Tackle::Manifest => self.picked(phase, past, journal, talk).await?,
        };
        let mut tools: Vec<Tool> = Vec::new();
        let routes = (!phase.handoffs.is_empty()).then_some(ROUTE_TO);
        for name in names.iter().map(String::as_str).filter(|name| *name != ROUTE_TO).chain(routes)
        {
            let Some(mut tool) = self.toolbox.find(name) else { continue };
            if name == ROUTE_TO {
                tool.schema = targets(phase).into();
            }
            if !tools.iter().any(|known| known.name == tool.name) {
                tools.push(tool);
            }
        }
        Ok(tools)
    }

    /// Lets the model pick from the directory of all tools.
    async fn picked(
        &self,
        phase: &Phase,
        past: &Past,
        journal: &mut Journal,
        talk: &Talk,
    ) -> Result<Vec<String>, RunError> {
        let directory: Vec<String> = self
            .toolbox
            .directory()
            .into_iter()
            .map(|(name, about)| format!("{name}: {about}"))
            .collect();
        let task = match &phase.instructions {
            Some(template) => self.render(phase, past, template, [])?,
            None => String::new(),
        };
        let question = format!(
            "Which of these tools may help with the task? Name as few as will do.\n\nTASK:\n{task}\n\nTOOLS:\n{}",
            directory.join("\n")
        );
        let schema = r#"{"type":"object","properties":{"tools":{"type":"array","items":{"type":"string"}}},"required":["tools"]}"#;
        let answer = self
            .ask(phase, journal, talk.model.clone(), talk.asked_for.clone(), question, schema)
            .await?;
        let picked = answer.get("tools").and_then(Value::as_array).cloned().unwrap_or_default();
        let names = picked.iter().filter_map(Value::as_str).map(str::to_owned);
        let (known, unknown): (Vec<String>, Vec<String>) =
            names.partition(|name| self.toolbox.find(name).is_some());
        if !unknown.is_empty() {
            self.note(phase.name.as_str(), format!("no such tools: {}", unknown.join(", ")));
        }
        Ok(known)
    }

    /// Adds a phase that ended to the past, with what is taken out of its output.
    async fn end(
        &self,
        phase: &Phase,
        past: &mut Past,
        journal: &Journal,
        mut ran: Ran,
    ) -> Result<(), RunError> {
        if let Some(extraction) = &phase.output_extraction {
            let failed = |why: String| RunError::Failed { phase: phase.name.to_string(), why };
            let pattern = regex::RegexBuilder::new(&extraction.pattern)
                .size_limit(1 << 20)
                .dot_matches_new_line(true)
                .build()
                .map_err(|error| failed(format!("`output_extraction.pattern`: {error}")))?;
            let found = pattern.captures(&ran.output).and_then(|groups| {
                groups.get(1).or_else(|| groups.get(0)).map(|part| part.as_str().trim().to_owned())
            });
            match found {
                Some(text) => {
                    let value = match extraction.format {
                        ExtractionFormat::Json => serde_json::from_str(&text).map_err(|error| {
                            failed(format!("what was extracted is no JSON: {error}"))
                        })?,
                        ExtractionFormat::Text | ExtractionFormat::Code => Value::String(text),
                    };
                    past.state.insert(extraction.store_as.clone(), value.clone());
                    ran.set.insert(extraction.store_as.clone(), value);
                }
                None if extraction.required => {
                    return Err(failed(
                        "nothing in its output matches `output_extraction.pattern`".to_owned(),
                    ));
                }
                None => {}
            }
        }
        if let Some(template) =
            phase.callouts.as_ref().and_then(|callouts| callouts.output.as_ref())
        {
            let name: Arc<str> = self.render(phase, past, template, [])?.into();
            self.call_out(journal, &mut ran, &name).await?;
        }
        past.ran.push(ran);
        Ok(())
    }

    /// Marks a phase's last answer.
    async fn call_out(
        &self,
        journal: &Journal,
        ran: &mut Ran,
        name: &Arc<str>,
    ) -> Result<(), RunError> {
        let last = ran.messages.iter_mut().rev().find(|message| message.role == Role::Assistant);
        let Some(last) = last else { return Ok(()) };
        let mut marked = (**last).clone();
        marked.callout = Some(name.clone());
        let now = self.runner.clock.now();
        let shown = marked.shown();
        let card = ContextCard {
            tenant: journal.tenant().clone(),
            session: journal.session().clone(),
            content_hash: ContentHash::of(&marked).short(),
            summary: shown.chars().take(200).collect(),
            keywords: Vec::new(),
            embedding: None,
            estimated_tokens: plimsoll_core::tokens::estimate(&shown),
            role: marked.role,
            phase_name: Some(ran.phase.clone()),
            turn_number: None,
            is_anchor: false,
            is_callout: true,
            callout_name: Some(name.to_string()),
            generated_at: now,
            generator_model: "callout".to_owned(),
            message_timestamp: marked.time.unwrap_or(now),
        };
        let batch = HistoryBatch { cards: vec![card], ..HistoryBatch::default() };
        self.runner.history.append(journal.tenant(), batch).await?;
        *last = Arc::new(marked);
        Ok(())
    }

    /// Runs a phase that is one call of a tool.
    async fn tool_phase(
        &self,
        phase: &Phase,
        past: &mut Past,
        journal: &mut Journal,
    ) -> Result<Ended, RunError> {
        let name = phase.name.as_str();
        let Some(tool) = phase.tool.as_deref() else { return Ok(Ended::Through) };
        self.tell(&Event::PhaseBegan {
            phase: name.to_owned(),
            visit: past.visits(name) + 1,
            context_messages: 0,
            context_tokens: 0,
        });
        let inputs = self.templated(phase, past, &phase.inputs)?;
        let message = self.tool_once(phase, past, journal, tool, &inputs).await?;
        let result = message.results().next();
        let (mut output, is_error) = result
            .map_or_else(Default::default, |result| (result.text.to_string(), result.is_error));
        if is_error {
            let why: String = output.chars().take(200).collect();
            return Err(RunError::Failed { phase: name.to_owned(), why });
        }
        let mut value: Value =
            serde_json::from_str(&output).unwrap_or_else(|_| Value::String(output.clone()));
        let route = value.as_object_mut().and_then(|map| map.shift_remove("_route"));
        if route.is_some() {
            output = value.to_string();
        }
        let status = value.get("status").and_then(Value::as_str).map(str::to_owned);
        let key = route.as_ref().and_then(Value::as_str).map(str::to_owned).or(status);
        let routed = key.as_deref().and_then(|key| {
            phase
                .routing
                .iter()
                .find(|(name, _)| name == key)
                .map(|(_, target)| target.name.clone())
        });
        let ended = match (routed, route.as_ref().and_then(Value::as_str)) {
            (Some(target), _) => Ended::GoTo(target),
            (None, Some(target)) => {
                let is_known = phase.handoffs.iter().any(|handoff| handoff.target.name == target);
                if !is_known {
                    let why =
                        format!("its tool goes on to `{target}`, which is none of its handoffs");
                    return Err(RunError::Failed { phase: name.to_owned(), why });
                }
                Ended::GoTo(target.to_owned())
            }
            (None, None) => Ended::Through,
        };
        let ran = Ran {
            phase: name.to_owned(),
            output,
            value,
            messages: vec![shown_result(phase, &message)],
            set: Map::new(),
            retention: phase.context_retention,
        };
        self.end(phase, past, journal, ran).await?;
        Ok(ended)
    }

    /// Calls a tool once for a phase, or takes the result that was recorded.
    pub(crate) async fn tool_once(
        &self,
        phase: &Phase,
        past: &Past,
        journal: &mut Journal,
        tool: &str,
        inputs: &Map<String, Value>,
    ) -> Result<Arc<Message>, RunError> {
        if let Some(known) = journal.answer(Role::Tool)? {
            return Ok(known);
        }
        let caller = Caller {
            tenant: journal.tenant().clone(),
            session: journal.session().clone(),
            cascade: self.cascade.cascade_id.to_string(),
            now: self.runner.clock.now(),
            number: journal.turn(),
        };
        let arguments = Value::Object(inputs.clone()).to_string();
        let answer = self.toolbox.call(&caller, tool, &arguments).await;
        let answer =
            answer.map_err(|source| RunError::Tool { phase: phase.name.to_string(), source })?;
        let mut message = Message::result(format!("{}:{tool}", phase.name), answer.text.clone());
        message.phase = Some(phase.name.as_str().into());
        if let Some(plimsoll_core::Block::ToolResult(result)) = message.blocks.first_mut() {
            result.is_error = answer.is_error;
            result.images.clone_from(&answer.images);
        }
        self.save_images(phase, journal.session(), &message, past)?;
        journal.append(message, Vec::new()).await
    }

    /// Renders the texts of a tool's inputs.
    pub(crate) fn templated(
        &self,
        phase: &Phase,
        past: &Past,
        inputs: &[(String, Templated)],
    ) -> Result<Map<String, Value>, RunError> {
        let mut rendered = Map::new();
        for (name, value) in inputs {
            rendered.insert(name.clone(), self.templated_value(phase, past, value)?);
        }
        Ok(rendered)
    }

    fn templated_value(
        &self,
        phase: &Phase,
        past: &Past,
        value: &Templated,
    ) -> Result<Value, RunError> {
        Ok(match value {
            Templated::Text(template) => self.render_value(phase, past, template)?,
            Templated::List(items) => {
                let items = items.iter().map(|item| self.templated_value(phase, past, item));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Templated::Map(entries) => Value::Object(self.templated(phase, past, entries)?),
            Templated::Plain(value) => value.clone(),
        })
    }

    /// Meets a failure as the phase says.
    async fn met(
        &self,
        phase: &Phase,
        past: &mut Past,
        journal: &mut Journal,
        on_error: &OnError,
        error: &RunError,
    ) -> Result<Ended, RunError> {
        let name = phase.name.as_str();
        let why = error.to_string();
        self.note(name, format!("{why}; it is met as `on_error` says"));
        journal.fail(name, &why).await?;
        past.state.insert("last_error".to_owned(), Value::String(why.clone()));
        let ran = |output: String, messages| Ran {
            phase: name.to_owned(),
            value: Value::String(output.clone()),
            output,
            messages,
            set: Map::new(),
            retention: phase.context_retention,
        };
        match on_error {
            OnError::Fail => Err(RunError::Failed { phase: name.to_owned(), why }),
            OnError::Continue => {
                past.ran.push(ran(format!("[failed: {why}]"), Vec::new()));
                Ok(Ended::Through)
            }
            OnError::Phase(target) => {
                past.ran.push(ran(format!("[failed: {why}]"), Vec::new()));
                Ok(Ended::GoTo(target.name.clone()))
            }
            OnError::Prompt { instructions, model } => {
                let told = [("error".to_owned(), Value::String(why))];
                let text = self.render(phase, past, instructions, told)?;
                let asked = self.of_template(phase, past, model.as_ref())?;
                let (model, asked_for) = self.model(phase, past, asked)?;
                let message = self.ask_text(phase, journal, model, asked_for, text).await?;
                past.ran.push(ran(output_of(std::slice::from_ref(&message)), vec![message]));
                Ok(Ended::Through)
            }
            OnError::AutoFix { max_attempts, model, prompt } => {
                self.mended(
                    phase,
                    past,
                    journal,
                    *max_attempts,
                    model.as_ref(),
                    prompt.as_ref(),
                    why,
                )
                .await
            }
        }
    }

    /// Lets a model mend what a tool is given.
    #[expect(clippy::too_many_arguments, reason = "they are the fields of one variant")]
    async fn mended(
        &self,
        phase: &Phase,
        past: &mut Past,
        journal: &mut Journal,
        max_attempts: u32,
        model: Option<&Template>,
        prompt: Option<&Template>,
        mut why: String,
    ) -> Result<Ended, RunError> {
        let failed = |why: String| RunError::Failed { phase: phase.name.to_string(), why };
        let Some(tool) = phase.tool.as_deref() else { return Err(failed(why)) };
        let mut inputs = self.templated(phase, past, &phase.inputs)?;
        for _ in 0..max_attempts {
            let told = [("error".to_owned(), Value::String(why.clone()))];
            let own = match prompt {
                Some(prompt) => self.render(phase, past, prompt, told)?,
                None => "Mend the inputs so that the call succeeds.".to_owned(),
            };
            let question = format!(
                "The tool `{tool}` failed.\n\nINPUTS:\n{}\n\nERROR:\n{why}\n\n{own}\nAnswer with the inputs as a JSON object.",
                Value::Object(inputs.clone())
            );
            let asked = self.of_template(phase, past, model)?;
            let (model, asked_for) = self.model(phase, past, asked)?;
            let answer = self
                .ask(phase, journal, model, asked_for, question, r#"{"type":"object"}"#)
                .await?;
            if let Value::Object(mended) = answer {
                inputs = mended;
            }
            let message = self.tool_once(phase, past, journal, tool, &inputs).await?;
            let Some(result) = message.results().next() else { continue };
            if result.is_error {
                why = result.text.chars().take(200).collect();
                continue;
            }
            let output = result.text.to_string();
            past.ran.push(Ran {
                phase: phase.name.to_string(),
                value: serde_json::from_str(&output)
                    .unwrap_or_else(|_| Value::String(output.clone())),
                output,
                messages: vec![shown_result(phase, &message)],
                set: Map::new(),
                retention: phase.context_retention,
            });
            return Ok(Ended::Through);
        }
        Err(failed(why))
    }

    /// Runs checks; one that blocks fails the phase.
    pub(crate) async fn wards(
        &self,
        phase: &Phase,
        past: &Past,
        journal: &mut Journal,
        wards: &[crate::definition::Ward],
        text: &str,
    ) -> Result<Verdict, RunError> {
        let mut verdict = Verdict::valid();
        for ward in wards {
            let one = self.validated(phase, past, journal, &ward.validator, text, 1).await?;
            if one.valid {
                continue;
            }
            match ward.mode {
                WardMode::Blocking => {
                    let why = format!("a check failed: {}", one.reason);
                    return Err(RunError::Failed { phase: phase.name.to_string(), why });
                }
                WardMode::Advisory => {
                    self.note(phase.name.as_str(), format!("a check failed: {}", one.reason));
                }
                WardMode::Retry => verdict = one,
            }
        }
        Ok(verdict)
    }

    /// Checks a turn; what a further turn may mend is told to the model.
    pub(crate) async fn turn_wards(
        &self,
        phase: &Phase,
        past: &Past,
        journal: &mut Journal,
        talk: &mut Talk,
    ) -> Result<(), RunError> {
        if phase.wards.turn.is_empty() {
            return Ok(());
        }
        let text = output_of(&talk.own());
        let verdict = self.wards(phase, past, journal, &phase.wards.turn, &text).await?;
        if !verdict.valid {
            let text = format!("[Validation Failed]\n{}", verdict.reason);
            talk.hear(journal.say(own_message(phase, Role::User, text)).await?);
        }
        Ok(())
    }
}

/// Tells whether a phase may meet a failure by itself: not what concerns the record or the cascade.
pub(crate) fn can_be_met(error: &RunError) -> bool {
    matches!(
        error,
        RunError::Failed { .. }
            | RunError::Model { .. }
            | RunError::Tool { .. }
            | RunError::Met { .. }
    )
}

fn input_text(past: &Past) -> String {
    super::context::indented(&past.input)
}

/// The result of a tool without a model, as a later phase can be shown it: no call of a model's stands before it.
fn shown_result(phase: &Phase, message: &Message) -> Arc<Message> {
    let mut blocks = Vec::new();
    for result in message.results() {
        let text: Arc<str> = format!("[Output from {}]:\n{}", phase.name, result.text).into();
        blocks.push(plimsoll_core::Block::Text(text));
        blocks.extend(result.images.iter().cloned().map(plimsoll_core::Block::Image));
    }
    let mut shown = Message::new(Role::User, blocks);
    shown.phase = Some(phase.name.as_str().into());
    Arc::new(shown)
}

/// Returns the schema of the tool that goes on to another phase, with the phases of this one.
fn targets(phase: &Phase) -> String {
    let names: Vec<&str> =
        phase.handoffs.iter().map(|handoff| handoff.target.name.as_str()).collect();
    let about: Vec<String> = phase
        .handoffs
        .iter()
        .filter_map(|handoff| {
            handoff.description.as_ref().map(|about| format!("{}: {about}", handoff.target.name))
        })
        .collect();
    let mut target = serde_json::json!({"type": "string", "enum": names});
    if !about.is_empty() {
        target["description"] = about.join("; ").into();
    }
    serde_json::json!({"type": "object", "properties": {"target": target}, "required": ["target"]})
        .to_string()
}
