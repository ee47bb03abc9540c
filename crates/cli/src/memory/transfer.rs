//! `plimsoll memory export` and `import`.

use std::io::BufRead as _;

use plimsoll_engine::remember::{MemoryError, NewMemory, Novelty, from_line, to_line};
use plimsoll_engine::{MemoryRecord, MemoryVersion};

use super::{Desk, refused, scope};
use crate::arguments::{ExportArguments, ImportMemoryArguments};
use crate::clock;
use crate::error::CommandError;
use crate::output;
use crate::store::Store;
use crate::write_file::{Existing, write_file};

/// Records that are stored in one transaction (chosen: a tenth of a second).
const TOGETHER: usize = 500;

pub(super) fn export(arguments: &ExportArguments) -> Result<(), CommandError> {
    let scope = scope(&arguments.scope)?;
    let store = Store::open_existing(&arguments.store, None)?;
    let changes = store.knowledge(async |knowledge, tenant| {
        knowledge.memory_changes(tenant, MemoryVersion::default()).await
    })?;
    let mut records: Vec<MemoryRecord> =
        changes.records.into_iter().filter(|record| scope.covers(&record.scope)).collect();
    records.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    let mut text = String::new();
    for record in &records {
        text.push_str(&to_line(record).map_err(|error| refused(error.into()))?);
        text.push('\n');
    }
    match &arguments.out {
        Some(path) => {
            write_file(path, text.as_bytes(), Existing::Replace)?;
            output::note(&format!("{} records in {}", records.len(), path.display()));
            Ok(())
        }
        None => output::data(&text),
    }
}

pub(super) fn import(arguments: &ImportMemoryArguments) -> Result<(), CommandError> {
    let path = arguments.file.display();
    let file = std::fs::File::open(&arguments.file).map_err(|error| {
        CommandError::usage(anyhow::Error::new(error).context(format!("cannot read {path}")))
    })?;
    let desk = Desk::open(&arguments.plain)?;
    let (mut new, mut whole) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(std::io::BufReader::new(file).lines()) {
        let wrong = |why: anyhow::Error| {
            CommandError::usage(why.context(format!("{path}:{number}")))
                .hint("nothing was stored; each line is a record such as {\"kind\": \"fact\", \"text\": \"…\"}")
        };
        let line = line.map_err(|error| wrong(error.into()))?;
        if line.trim().is_empty() {
            continue;
        }
        // An exported record names its tenant.
        let is_export = serde_json::from_str::<serde_json::Value>(&line)
            .map_err(|error| wrong(error.into()))?
            .get("created_at")
            .is_some();
        if is_export {
            let tenant = plimsoll_engine::TenantId::default();
            whole.push(from_line(&line, &tenant).map_err(|error| wrong(error.into()))?);
        } else {
            new.push(
                serde_json::from_str::<NewMemory>(&line).map_err(|error| wrong(error.into()))?,
            );
        }
    }
    let mut added = (0_u64, 0_u64);
    let read = (new.len() + whole.len()) as u64;
    desk.remember(async |remember, _| {
        let mut new = new;
        while !new.is_empty() {
            let rest = new.split_off(new.len().min(TOGETHER));
            let together = std::mem::replace(&mut new, rest);
            for (_, met) in remember.add_all(together, clock::now()).await? {
                *if met == Novelty::Known { &mut added.1 } else { &mut added.0 } += 1;
            }
        }
        for together in whole.chunks(TOGETHER) {
            added.0 += remember.put_back(together.to_vec()).await?;
        }
        Ok::<_, MemoryError>(())
    })?;
    if arguments.plain.json {
        return output::json(
            &serde_json::json!({"read": read, "stored": added.0, "known": added.1}),
        );
    }
    output::data(&format!("{read} records read: {} stored, {} known\n", added.0, added.1))
}
