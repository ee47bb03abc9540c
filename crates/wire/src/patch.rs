//! Patches: values that are inserted, removed and replaced in a document; every other byte stays.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use super::document::{Document, NodeId, Value};

/// A change does not fit: two want the same bytes, or a list or object is something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Misfit;

/// Changes to a document, collected and applied at once.
#[derive(Debug)]
pub(crate) struct Patch<'a> {
    document: &'a Document,
    splices: Vec<(Range<usize>, String)>,
    lists: BTreeMap<NodeId, ListPatch>,
    fields: BTreeMap<NodeId, Vec<(&'static str, String)>>,
    fits: bool,
}

#[derive(Debug, Default)]
struct ListPatch {
    removed: Vec<usize>,
    /// Elements that are inserted before the element of this index, or at the end for the index behind the last.
    inserted: BTreeMap<usize, Vec<String>>,
}

impl<'a> Patch<'a> {
    pub(crate) fn new(document: &'a Document) -> Self {
        Self {
            document,
            splices: Vec::new(),
            lists: BTreeMap::new(),
            fields: BTreeMap::new(),
            fits: true,
        }
    }

    /// Returns whether nothing changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.splices.is_empty() && self.lists.is_empty() && self.fields.is_empty()
    }

    /// Replaces a value.
    pub(crate) fn replace(&mut self, value: Value<'_>, raw: String) {
        self.splices.push((value.span(), raw));
    }

    /// Appends to a string; `escaped` is put before its closing quote.
    pub(crate) fn extend_text(&mut self, value: Value<'_>, escaped: &str) {
        let end = value.span().end.saturating_sub(1);
        self.splices.push((end..end, escaped.to_owned()));
    }

    /// Sets a field of an object: in its place where it is there, else behind the others.
    pub(crate) fn set(&mut self, object: Value<'_>, key: &'static str, raw: String) {
        self.fits &= object.is_object();
        match object.get(key) {
            Some(value) => self.replace(value, raw),
            None => self.fields.entry(object.id()).or_default().push((key, raw)),
        }
    }

    /// Removes a field of an object, once at most for each object.
    pub(crate) fn remove_field(&mut self, object: Value<'_>, key: &str) {
        let fields: Vec<(Value<'_>, Value<'_>)> = object.fields().collect();
        let Some(at) = fields.iter().rposition(|(name, _)| name.says(key)) else { return };
        let end = fields[at].1.span().end;
        let span = match (at.checked_sub(1), fields.get(at + 1)) {
            (_, Some((next, _))) => fields[at].0.span().start..next.span().start,
            (Some(before), None) => fields[before].1.span().end..end,
            (None, None) => fields[at].0.span().start..end,
        };
        self.splices.push((span, String::new()));
    }

    /// Removes the element `index` of a list.
    pub(crate) fn remove(&mut self, list: Value<'_>, index: usize) {
        self.fits &= list.is_list();
        let removed = &mut self.lists.entry(list.id()).or_default().removed;
        if !removed.contains(&index) {
            removed.push(index);
        }
    }

    /// Inserts an element before the element `index` of a list, behind those that were inserted there before.
    pub(crate) fn insert(&mut self, list: Value<'_>, index: usize, raw: String) {
        self.fits &= list.is_list();
        self.lists.entry(list.id()).or_default().inserted.entry(index).or_default().push(raw);
    }

    /// Inserts an element at the end of a list.
    pub(crate) fn push(&mut self, list: Value<'_>, raw: String) {
        self.insert(list, list.elements().count(), raw);
    }

    /// Returns whether the element `index` of a list is removed.
    pub(crate) fn is_removed(&self, list: Value<'_>, index: usize) -> bool {
        self.lists.get(&list.id()).is_some_and(|list| list.removed.contains(&index))
    }

    /// Returns the document with all changes.
    ///
    /// Errors: [`Misfit`] where a change lies inside of a value that another removes, or needs a list or object where none is.
    pub(crate) fn apply(mut self) -> Result<Vec<u8>, Misfit> {
        if !self.fits {
            return Err(Misfit);
        }
        for (list, patch) in std::mem::take(&mut self.lists) {
            self.splice_list(list, &patch);
        }
        for (object, fields) in std::mem::take(&mut self.fields) {
            self.splice_fields(object, &fields);
        }
        // An insertion stands before a replacement that begins at the same byte.
        self.splices.sort_by_key(|(span, _)| (span.start, span.end));
        let text = self.document.text();
        let added: usize = self.splices.iter().map(|(_, raw)| raw.len()).sum();
        let mut out = Vec::with_capacity(text.len() + added);
        let mut at = 0;
        for (span, raw) in &self.splices {
            let kept = text.as_bytes().get(at..span.start).ok_or(Misfit)?;
            out.extend_from_slice(kept);
            out.extend_from_slice(raw.as_bytes());
            at = span.end;
        }
        out.extend_from_slice(text.as_bytes().get(at..).ok_or(Misfit)?);
        Ok(out)
    }

    fn splice_list(&mut self, list: NodeId, patch: &ListPatch) {
        let list = self.document.value(list);
        let spans: Vec<Range<usize>> = list.elements().map(Value::span).collect();
        let removed = |index: usize| patch.removed.contains(&index);
        let Some(kept) = (0..spans.len()).find(|&index| !removed(index)) else {
            let all: Vec<&str> = patch.inserted.values().flatten().map(String::as_str).collect();
            let inside = list.span().start + 1..list.span().end - 1;
            self.splices.push((inside, all.join(",")));
            return;
        };
        for index in (0..spans.len()).filter(|&index| removed(index)) {
            // The comma goes with it: the one behind where nothing stays before it, else the one before.
            let span = if index < kept {
                spans[index].start..spans[index + 1].start
            } else {
                spans[index - 1].end..spans[index].end
            };
            self.splices.push((span, String::new()));
        }
        for (&index, raws) in &patch.inserted {
            for raw in raws {
                if index <= kept {
                    let at = spans[kept].start;
                    self.splices.push((at..at, format!("{raw},")));
                } else {
                    let at = spans[index.min(spans.len()) - 1].end;
                    self.splices.push((at..at, format!(",{raw}")));
                }
            }
        }
    }

    fn splice_fields(&mut self, object: NodeId, fields: &[(&'static str, String)]) {
        let object = self.document.value(object);
        let mut raw = String::new();
        let mut comma = object.fields().next().is_some();
        for (key, value) in fields {
            if std::mem::replace(&mut comma, true) {
                raw.push(',');
            }
            let _ = write!(raw, "\"{key}\":{value}");
        }
        // Behind the last value, so that an indented closing brace stays where it is.
        let at = match object.fields().last() {
            Some((_, value)) => value.span().end,
            None => object.span().end - 1,
        };
        self.splices.push((at..at, raw));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn document(text: &str) -> Document {
        Document::scan(text.into(), 128).expect("JSON")
    }

    #[test]
    fn fields_are_set_in_their_place_or_at_the_end() {
        let document = document("{ \"a\" : 1.0,\n  \"b\": [] \n}");
        let mut patch = Patch::new(&document);
        patch.set(document.root(), "b", "2".into());
        patch.set(document.root(), "c", "3".into());
        let out = String::from_utf8(patch.apply().unwrap()).unwrap();
        assert_eq!(out, "{ \"a\" : 1.0,\n  \"b\": 2,\"c\":3 \n}");
    }

    #[test]
    fn a_change_inside_of_what_goes_is_refused() {
        let document = document("[[1],2]");
        let mut patch = Patch::new(&document);
        let inner = document.root().elements().next().unwrap();
        patch.push(inner, "3".into());
        patch.remove(document.root(), 0);
        assert_eq!(patch.apply(), Err(Misfit));
        let mut patch = Patch::new(&document);
        patch.set(document.root(), "key", "3".into());
        assert_eq!(patch.apply(), Err(Misfit));
    }

    proptest! {
        #[test]
        fn lists_change_as_vectors_do(
            length in 0..6_usize,
            removed in prop::collection::vec(any::<bool>(), 6),
            inserted in prop::collection::vec(0..7_usize, 0..5),
            spaced in any::<bool>(),
        ) {
            let between = if spaced { " , " } else { "," };
            let elements: Vec<String> = (0..length).map(|n| format!("{n}")).collect();
            let document = document(&format!("[{}]", elements.join(between)));
            let mut patch = Patch::new(&document);
            let mut expected: Vec<Vec<u64>> = vec![Vec::new(); length + 1];
            for (number, at) in (100..).zip(&inserted) {
                let at = (*at).min(length);
                patch.insert(document.root(), at, format!("{number}"));
                expected[at].push(number);
            }
            for index in 0..length {
                if removed[index] {
                    patch.remove(document.root(), index);
                } else {
                    expected[index].push(index as u64);
                }
            }
            let out = patch.apply().unwrap();
            let out: Vec<u64> = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(out, expected.concat());
        }
    }
}
