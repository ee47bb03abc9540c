//! SWE-agent: the `history` of a trajectory file, with function calling or with commands in the assistant's text.
//!
//! `trajectory` repeats the whole prompt at every step and is passed over.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::draft::Draft;
use crate::error::ReadError;
use crate::json::{self, Text};
use crate::mini_swe_agent;
use crate::openai::{self, WireMessage};

#[derive(Deserialize)]
struct Trajectory<'a> {
    #[serde(borrow)]
    history: Vec<&'a RawValue>,
    environment: Option<Text<'a>>,
}

/// Reads a SWE-agent trajectory.
pub(crate) fn read(text: &str) -> Result<Draft, ReadError> {
    let trajectory: Trajectory<'_> = serde_json::from_str(text).map_err(ReadError::json)?;
    let mut draft = Draft::of_elements();
    draft.header.id = trajectory.environment.map(|name| name.0.into_owned());
    json::each_element(&trajectory.history, &mut draft, |draft, number, text| {
        let message: WireMessage<'_> = serde_json::from_str(text)?;
        match openai::from_message(number, &message) {
            Some(recorded) => mini_swe_agent::push(draft, number, recorded),
            None => draft.skip(number, "its role is unknown"),
        }
        Ok(())
    });
    Ok(draft)
}
