//! Server-sent events, split on bytes: a character may straddle two chunks.

use std::collections::VecDeque;

/// An event: its name, empty where none was given, and its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: String,
}

/// More than this without an end is no event of a model (chosen; images in answers are some megabytes).
const LONGEST: usize = 64 << 20;

/// Splits a stream of bytes to events.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    line: Vec<u8>,
    /// The last byte was a carriage return, so a line feed belongs to it.
    after_return: bool,
    begun: bool,
    name: String,
    data: Option<String>,
}

/// The stream holds an event that is too long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Splitter {
    /// Takes a chunk and appends the events that it completes.
    pub(crate) fn push(
        &mut self,
        chunk: &[u8],
        events: &mut VecDeque<Event>,
    ) -> Result<(), TooLong> {
        for byte in chunk {
            let follows_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if follows_return => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                byte => self.line.push(*byte),
            }
        }
        let data = self.data.as_ref().map_or(0, String::len);
        if self.line.len() + data > LONGEST { Err(TooLong) } else { Ok(()) }
    }

    fn end_line(&mut self) -> Option<Event> {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = match line.strip_prefix('\u{feff}') {
            Some(rest) if !self.begun => rest,
            _ => &line,
        };
        self.begun = true;
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            return self.data.take().map(|data| Event { name, data });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            // A comment, an id, a field that nobody knows.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(chunks: &[&[u8]]) -> Vec<(String, String)> {
        let mut splitter = Splitter::default();
        let mut events = VecDeque::new();
        for chunk in chunks {
            splitter.push(chunk, &mut events).expect("short");
        }
        events.into_iter().map(|event| (event.name, event.data)).collect()
    }

    fn pair(name: &str, data: &str) -> (String, String) {
        (name.to_owned(), data.to_owned())
    }

    #[test]
    fn events_do_not_depend_on_where_chunks_end() {
        let text = "\u{feff}: hello\r\nevent: a\r\ndata: é\r\ndata:  two\r\n\r\ndata\n\ndata:x\r\rid: 7\n\nevent: lost\n\n"
            .as_bytes();
        let whole = events(&[text]);
        assert_eq!(whole, [pair("a", "é\n two"), pair("", ""), pair("", "x")]);
        for at in 0..text.len() {
            assert_eq!(events(&[&text[..at], &text[at..]]), whole, "{at}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(events(&bytes), whole);
    }

    #[test]
    fn an_event_without_its_end_is_none() {
        assert!(events(&[b"data: cut\n"]).is_empty());
        assert!(events(&[b"data: \xff\xfe\n\n"]).len() == 1);
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut splitter = Splitter::default();
        let chunk = vec![b'x'; LONGEST + 1];
        assert_eq!(splitter.push(&chunk, &mut VecDeque::new()), Err(TooLong));
    }
}
