//! Pages of lists: a cursor names the last entry of the page before.

use serde_json::{Value, json};

use crate::problem::ApiError;
use crate::query::Query;

/// Entries of a page, unless the caller names a number; and the most (chosen: a screen, and a few hundred kilobytes).
const USUAL: usize = 50;
const MOST: usize = 500;

/// The page that a request asks for.
#[derive(Debug)]
pub(crate) struct PageQuery<'q> {
    pub(crate) limit: usize,
    pub(crate) cursor: Option<&'q str>,
}

impl<'q> PageQuery<'q> {
    pub(crate) fn of(query: &'q Query) -> Result<Self, ApiError> {
        let limit = query.parsed("limit")?.unwrap_or(USUAL);
        if !(1..=MOST).contains(&limit) {
            return Err(ApiError::Invalid(format!("`limit` is from 1 to {MOST}")));
        }
        Ok(Self { limit, cursor: query.get("cursor") })
    }

    /// Returns the number behind that of the cursor.
    pub(crate) fn number(&self) -> Result<u32, ApiError> {
        let Some(cursor) = self.cursor else { return Ok(0) };
        let last: u32 = cursor.parse().map_err(|_| wrong(cursor))?;
        Ok(last.saturating_add(1))
    }

    /// Returns the entries of the page, and the cursor of the next one.
    pub(crate) fn take<T>(
        &self,
        all: impl IntoIterator<Item = T>,
        key: impl Fn(&T) -> String,
    ) -> Result<(Vec<T>, Option<String>), ApiError> {
        let mut all = all.into_iter();
        if let Some(cursor) = self.cursor
            && !all.any(|one| key(&one) == cursor)
        {
            return Err(wrong(cursor));
        }
        let page: Vec<T> = all.by_ref().take(self.limit).collect();
        let next = page.last().map(key).filter(|_| all.next().is_some());
        Ok((page, next))
    }
}

fn wrong(cursor: &str) -> ApiError {
    ApiError::Invalid(format!("`{cursor}` is no cursor of this list"))
}

/// Writes a page.
pub(crate) fn page(items: impl IntoIterator<Item = Value>, next: Option<&str>) -> Value {
    json!({"items": items.into_iter().collect::<Vec<_>>(), "next": next})
}
