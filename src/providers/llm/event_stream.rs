//! An incremental parser for server-sent events.
//!
//! Owns lines, comments, fields and the joining of `data` lines, not the meaning of the data. It works on bytes until a
//! line is complete, so that a character split between two reads stays intact. It rejects lines and events above a
//! size, so that a stream without line ends cannot fill the memory.

/// A parsed event or comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The `data` lines of one event, joined by line feeds.
    Data(String),
    /// An event named `error`, with its data.
    Error(String),
    /// A comment line, sent to keep the connection alive.
    Comment,
}

/// The error for a line or event above the size limit. The stream must not be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// The state of the parser between two pushes.
#[derive(Debug)]
pub struct EventStream {
    largest_event: usize,
    line: Vec<u8>,
    data: Option<String>,
    is_error: bool,
    last_was_carriage_return: bool,
    at_start: bool,
}

impl EventStream {
    /// Creates a parser that rejects events of more than `largest_event` bytes.
    pub fn new(largest_event: usize) -> Self {
        Self {
            largest_event,
            line: Vec::new(),
            data: None,
            is_error: false,
            last_was_carriage_return: false,
            at_start: true,
        }
    }

    /// Adds bytes and returns the events they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = self.without_split_line_end(rest);
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
                self.keep(rest)?;
                break;
            };
            self.keep(&rest[..end])?;
            self.last_was_carriage_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            self.end_line(&mut events)?;
        }
        Ok(events)
    }

    /// Ends the last line and event at the end of the stream.
    ///
    /// The standard drops an event without a final blank line, but some servers omit that line. A truncated event does
    /// no harm, because its data must still parse.
    pub fn finish(&mut self) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut events)?;
        }
        events.extend(self.end_event());
        Ok(events)
    }

    fn end_event(&mut self) -> Option<Event> {
        let is_error = std::mem::take(&mut self.is_error);
        self.data.take().map(if is_error { Event::Error } else { Event::Data })
    }

    /// Drops the line feed of a CRLF that was split between two pushes.
    fn without_split_line_end<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let split = std::mem::take(&mut self.last_was_carriage_return);
        if split { bytes.strip_prefix(b"\n").unwrap_or(bytes) } else { bytes }
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + bytes.len() > self.largest_event {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<Event>) -> Result<(), TooLong> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            events.extend(self.end_event());
            return Ok(());
        }
        match line.iter().position(|byte| *byte == b':') {
            Some(0) => events.push(Event::Comment),
            Some(colon) => {
                let value = &line[colon + 1..];
                self.take_field(&line[..colon], value.strip_prefix(b" ").unwrap_or(value))?;
            }
            None => self.take_field(line, b"")?,
        }
        Ok(())
    }

    /// Ignores event ids, and event names other than `error`.
    fn take_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), TooLong> {
        if name == b"event" {
            self.is_error = value == b"error";
        }
        if name != b"data" {
            return Ok(());
        }
        let value = String::from_utf8_lossy(value);
        let Some(data) = &mut self.data else {
            self.data = Some(value.into_owned());
            return Ok(());
        };
        if data.len() + value.len() >= self.largest_event {
            return Err(TooLong);
        }
        data.push('\n');
        data.push_str(&value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 1 << 20;

    /// Returns all events of a stream whose bytes arrive in the given chunks.
    fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> Result<Vec<Event>, TooLong> {
        let mut stream = EventStream::new(limit);
        let mut events = Vec::new();
        for chunk in chunks {
            events.extend(stream.push(chunk)?);
        }
        events.extend(stream.finish()?);
        Ok(events)
    }

    fn whole(text: &str) -> Vec<Event> {
        read([text.as_bytes()], LIMIT).unwrap()
    }

    fn data(text: &str) -> Event {
        Event::Data(text.into())
    }

    #[test]
    fn accepts_all_three_line_ends() {
        for text in ["data: a\n\ndata: b\n\n", "data: a\r\n\r\ndata: b\r\n\r\n", "data: a\r\rdata: b\r\r"] {
            assert_eq!(whole(text), [data("a"), data("b")], "{text:?}");
        }
    }

    #[test]
    fn joins_data_lines_of_one_event() {
        assert_eq!(whole("data: a\ndata\ndata:  b\n\n"), [data("a\n\n b")]);
    }

    #[test]
    fn ignores_comments_other_fields_and_blank_lines() {
        assert_eq!(whole(": keep-alive\n\n\n\nevent: x\nid: 7\nretry: 5\n\ndata:y\n\n"), [Event::Comment, data("y")]);
    }

    #[test]
    fn recognises_error_events_by_name() {
        let error = |text: &str| Event::Error(text.into());
        assert_eq!(whole("event: error\ndata: a\n\ndata: b\n\n"), [error("a"), data("b")]);
        assert_eq!(whole("data: a\nevent:error\n\nevent: error\n\ndata: b\n\n"), [error("a"), data("b")]);
    }

    #[test]
    fn the_end_of_the_stream_ends_the_last_event() {
        assert_eq!(whole("data: a\n\ndata: [DONE]"), [data("a"), data("[DONE]")]);
        assert_eq!(whole("data: [DONE]\n"), [data("[DONE]")]);
    }

    #[test]
    fn ignores_a_byte_order_mark() {
        assert_eq!(whole("\u{feff}data: a\n\n"), [data("a")]);
    }

    #[test]
    fn keeps_characters_split_between_reads() {
        let bytes = "data: 乾卦\n\n".as_bytes();
        assert_eq!(read(bytes.chunks(1), LIMIT).unwrap(), [data("乾卦")]);
    }

    #[test]
    fn rejects_endless_lines_and_events() {
        assert_eq!(read([[b'x'; 100].as_slice()], 99), Err(TooLong));
        assert_eq!(read(std::iter::repeat_n(b"data: 0123456789\n".as_slice(), 100), 500), Err(TooLong));
    }

    /// Streams made of the parts that matter, well formed or not.
    fn documents() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            Just(b"data: ".to_vec()),
            Just(b"data:".to_vec()),
            Just(b"data".to_vec()),
            Just(b": keep-alive".to_vec()),
            Just(b"\n".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"\r".to_vec()),
            Just("\u{feff}".as_bytes().to_vec()),
            Just("卦，a:".as_bytes().to_vec()),
            proptest::collection::vec(any::<u8>(), 0..4),
        ];
        proptest::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(
            document in documents(),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
        ) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(document.len() + 1)).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut start = 0;
            for cut in cuts {
                chunks.push(&document[start..cut]);
                start = cut;
            }
            chunks.push(&document[start..]);
            let expected = read([document.as_slice()], LIMIT);
            prop_assert_eq!(read(chunks, LIMIT), expected.clone());
            prop_assert_eq!(read(document.chunks(1), LIMIT), expected);
        }

        #[test]
        fn parses_written_events(texts in proptest::collection::vec("[^\r\n]{0,20}(\n[^\r\n]{0,20}){0,3}", 0..6)) {
            let mut document = String::from(": start\n\n");
            for text in &texts {
                for line in text.split('\n') {
                    document.push_str("data: ");
                    document.push_str(line);
                    document.push_str("\r\n");
                }
                document.push_str("\r\n");
            }
            let expected: Vec<Event> =
                std::iter::once(Event::Comment).chain(texts.iter().map(|text| data(text))).collect();
            prop_assert_eq!(whole(&document), expected);
        }
    }
}
