//! Server-sent events, split on bytes: a character may straddle two chunks, and every byte belongs to one event.

/// An event with its bytes.
///
/// The bytes of all events, and of what [`Events::rest`] returns, are those of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEvent {
    /// All bytes of it, the empty line that ends it included.
    pub raw: Vec<u8>,
    /// Its name; empty where it has none.
    pub name: String,
    /// Its data, lines joined by a line feed; `None` for comments.
    pub data: Option<String>,
    /// False for bytes that are more than an event may have, without its end.
    pub is_whole: bool,
}

/// More than this without an end is no event of a model (chosen; images in answers are some megabytes).
const LONGEST: usize = 64 << 20;

/// Splits a stream of bytes to events.
#[derive(Debug, Default)]
pub struct Events {
    buffer: Vec<u8>,
    /// Where the line begins that is not ended yet.
    line: usize,
    /// The bytes that were searched for the end of that line.
    seen: usize,
    /// An event was read: a byte order mark stands only before the first.
    has_begun: bool,
    is_over: bool,
}

impl Events {
    /// Takes a chunk; [`Events::next_event`] returns what it completes.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// Takes the end of the stream: a carriage return that came last has no line feed behind it.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// Returns the next complete event.
    pub fn next_event(&mut self) -> Option<StreamEvent> {
        loop {
            let open = &self.buffer[self.seen..];
            let Some(found) = open.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.seen = self.buffer.len();
                if self.buffer.len() > LONGEST {
                    let raw = std::mem::take(&mut self.buffer);
                    (self.line, self.seen, self.has_begun) = (0, 0, true);
                    return Some(StreamEvent {
                        raw,
                        name: String::new(),
                        data: None,
                        is_whole: false,
                    });
                }
                return None;
            };
            let end = self.seen + found;
            let next = match (self.buffer[end], self.buffer.get(end + 1)) {
                (b'\r', Some(b'\n')) => end + 2,
                // Whether a line feed belongs to it, the next chunk says.
                (b'\r', None) if !self.is_over => {
                    self.seen = end;
                    return None;
                }
                _ => end + 1,
            };
            let is_empty = end == self.line;
            (self.line, self.seen) = (next, next);
            if is_empty {
                let raw: Vec<u8> = self.buffer.drain(..next).collect();
                (self.line, self.seen) = (0, 0);
                let is_first = !std::mem::replace(&mut self.has_begun, true);
                return Some(read(raw, is_first));
            }
        }
    }

    /// Returns the bytes of the event whose end has not come.
    pub fn pending(&self) -> usize {
        self.buffer.len()
    }

    /// Returns what is left of a stream that ended: an event that is not complete, or nothing. Another stream may begin.
    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(self).buffer
    }
}

fn read(raw: Vec<u8>, is_first: bool) -> StreamEvent {
    let text = String::from_utf8_lossy(&raw);
    let text = text.strip_prefix('\u{feff}').filter(|_| is_first).unwrap_or(&text);
    let mut name = String::new();
    let mut data: Option<String> = None;
    for line in text.split(['\n', '\r']) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut name),
            "data" => match &mut data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => data = Some(value.to_owned()),
            },
            // A comment, an id, a field that nobody knows.
            _ => {}
        }
    }
    StreamEvent { raw, name, data, is_whole: true }
}

/// Writes an event of a name, which may be empty, and data of one line.
pub(crate) fn written(name: &str, data: &str) -> Vec<u8> {
    let name = if name.is_empty() { String::new() } else { format!("event: {name}\n") };
    format!("{name}data: {data}\n\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(chunks: &[&[u8]]) -> (Vec<StreamEvent>, Vec<u8>) {
        let mut events = Events::default();
        let mut out = Vec::new();
        for chunk in chunks {
            events.push(chunk);
            out.extend(std::iter::from_fn(|| events.next_event()));
        }
        (out, events.rest())
    }

    const STREAM: &str = "\u{feff}: hello\r\n\r\nevent: a\r\ndata: é\r\ndata:  two\r\n\r\ndata\n\ndata:x\r\rid: 7\n\n\n: ping\n\ndata: cut";

    #[test]
    fn events_are_read() {
        let (events, rest) = split(&[STREAM.as_bytes()]);
        let read: Vec<(&str, Option<&str>)> =
            events.iter().map(|event| (event.name.as_str(), event.data.as_deref())).collect();
        let expected = [
            ("", None),
            ("a", Some("é\n two")),
            ("", Some("")),
            ("", Some("x")),
            ("", None),
            ("", None),
            ("", None),
        ];
        assert_eq!(read, expected);
        assert_eq!(rest, b"data: cut");
    }

    #[test]
    fn bytes_that_are_no_text_are_read_all_the_same() {
        let (events, _) = split(&[b"data: \xff\xfe\n\n"]);
        assert_eq!(events[0].data.as_deref(), Some("\u{fffd}\u{fffd}"));
    }

    #[test]
    fn a_byte_order_mark_stands_before_the_first_event_only() {
        let (events, _) = split(&["\u{feff}data: a\n\n\u{feff}data: b\n\n".as_bytes()]);
        let data: Vec<Option<&str>> = events.iter().map(|event| event.data.as_deref()).collect();
        assert_eq!(data, [Some("a"), None]);
    }

    #[test]
    fn a_stream_may_end_with_a_carriage_return() {
        let mut events = Events::default();
        events.push(b"data: x\r\r");
        assert_eq!(events.next_event(), None, "a line feed may follow");
        events.end();
        assert_eq!(events.next_event().and_then(|event| event.data).as_deref(), Some("x"));
        assert_eq!((events.next_event(), events.rest()), (None, Vec::new()));
        events.push(b"data: x\r\r");
        assert_eq!(events.next_event(), None, "the end was that of the stream before");
    }

    #[test]
    fn an_endless_event_is_given_back_as_no_event() {
        let mut events = Events::default();
        events.push(b"data: ");
        events.push(&vec![b'x'; LONGEST]);
        let event = events.next_event().expect("the bytes");
        assert_eq!((event.is_whole, event.data, event.raw.len()), (false, None, LONGEST + 6));
        events.push(b"data: a\n\n");
        assert!(events.next_event().expect("an event").is_whole);
    }

    proptest! {
        #[test]
        fn chunks_make_no_difference(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
            let bytes = STREAM.as_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([bytes.len()]) {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            prop_assert_eq!(split(&chunks), split(&[bytes]));
        }

        #[test]
        fn no_byte_is_lost(bytes in prop::collection::vec(prop::sample::select(b"\n\r:ad \xff".to_vec()), 0..60), at in 0..60_usize) {
            let at = at.min(bytes.len());
            let (events, rest) = split(&[&bytes[..at], &bytes[at..]]);
            let mut all: Vec<u8> = events.into_iter().flat_map(|event| event.raw).collect();
            all.extend(rest);
            prop_assert_eq!(all, bytes);
        }
    }
}
