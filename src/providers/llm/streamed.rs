//! A streamed response: bytes in, chunks of text out, and a completion or a failure at the end.
//!
//! Owns the order of events in a stream and knows no connection, so that tests can replay recorded streams in any
//! split.

use serde::de::IgnoredAny;

use super::chat::{AddedContent, Assembly, TOO_LARGE, error_in};
use super::event_stream::{Event, EventStream, TooLong};
use super::{Completion, Flow, OPENAI, OutputChunk, TokenUsage};
use crate::providers::{Failure, FailureKind};

/// Data that some gateways send in place of comments, to keep the connection alive.
const KEEP_ALIVES: [&str; 5] = ["", "ping", "keep-alive", "keepalive", "heartbeat"];
/// Bytes of a stream for each byte of the answer: a chunk with one word has several hundred bytes.
const OVERHEAD: usize = 64;

/// Parses the bytes of one response.
pub(super) struct StreamedResponse {
    events: EventStream,
    assembly: Assembly,
    /// Bytes that the stream may still have, whatever they contain.
    bytes_left: usize,
}

impl StreamedResponse {
    /// Creates an empty response, limited to `max_response_bytes` bytes of text and reasoning together, as much for each
    /// event, and a multiple of that for the whole stream.
    pub(super) fn new(max_response_bytes: usize) -> Self {
        Self {
            events: EventStream::new(max_response_bytes),
            assembly: Assembly::new(max_response_bytes),
            bytes_left: max_response_bytes.saturating_mul(OVERHEAD),
        }
    }

    /// Adds the next bytes and passes each chunk to `sink`, an empty one as a keep-alive.
    pub(super) fn take(&mut self, bytes: &[u8], sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow) -> Result<(), Failure> {
        self.bytes_left = self.bytes_left.checked_sub(bytes.len()).ok_or_else(too_much)?;
        let events = self.events.push(bytes).map_err(too_long)?;
        self.take_events(events, sink)
    }

    /// Ends the stream and returns the completion.
    pub(super) fn finish(
        mut self,
        requested_model: &str,
        sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow,
    ) -> Result<Completion, Failure> {
        let events = self.events.finish().map_err(too_long)?;
        // A partial line at the end of a truncated stream cannot be parsed, and truncation is the fault to report.
        match self.take_events(events, sink) {
            Err(failure) if failure.code != "not_json" => return Err(failure.with_usage(self.usage())),
            _ => {}
        }
        let AddedContent { text, reasoning, .. } = self.assembly.flush();
        let is_empty = text.is_empty() && reasoning.is_empty();
        if !is_empty
            && sink(OutputChunk { text: &text, reasoning: &reasoning, ..OutputChunk::KEEP_ALIVE }) == Flow::Stop
        {
            return Err(cancelled().with_usage(self.usage()));
        }
        self.assembly.complete(requested_model)
    }

    /// Returns the usage received so far.
    pub(super) fn usage(&self) -> Option<TokenUsage> {
        self.assembly.usage()
    }

    /// Returns true if the stream has ended.
    pub(super) fn is_done(&self) -> bool {
        self.assembly.is_done()
    }

    /// Returns true if the text is complete, so that a lost connection loses none of it.
    pub(super) fn has_whole_text(&self) -> bool {
        self.assembly.has_whole_text()
    }

    fn take_events(
        &mut self,
        events: Vec<Event>,
        sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow,
    ) -> Result<(), Failure> {
        for event in events {
            let flow = match event {
                Event::Data(_) | Event::Error(_) if self.assembly.is_done() => break,
                Event::Data(data) if is_keep_alive(&data) => sink(OutputChunk::KEEP_ALIVE),
                Event::Data(data) => self.take_data(&data, sink)?,
                Event::Error(_) if self.assembly.has_whole_text() => {
                    self.assembly.end();
                    break;
                }
                Event::Error(data) => return Err(error_in(&data)),
                Event::Comment => sink(OutputChunk::KEEP_ALIVE),
            };
            if flow == Flow::Stop {
                return Err(cancelled());
            }
        }
        Ok(())
    }

    fn take_data(&mut self, data: &str, sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow) -> Result<Flow, Failure> {
        for data in documents_in(data) {
            let AddedContent { text, reasoning, is_document } = match self.assembly.add_event(data) {
                // An error after the whole text loses none of it.
                Err(failure) if self.assembly.has_whole_text() && failure.code != TOO_LARGE => {
                    self.assembly.end();
                    break;
                }
                added => added?,
            };
            let document = is_document.then_some(data);
            let chunk = OutputChunk { text: &text, reasoning: &reasoning, document, ..OutputChunk::KEEP_ALIVE };
            if sink(chunk) == Flow::Stop {
                return Ok(Flow::Stop);
            }
            if self.assembly.is_done() {
                break;
            }
        }
        Ok(Flow::Continue)
    }
}

fn is_keep_alive(data: &str) -> bool {
    KEEP_ALIVES.iter().any(|word| data.trim().eq_ignore_ascii_case(word))
}

/// Splits the data of an event that is several documents: some servers end their events with one line feed, not two.
fn documents_in(data: &str) -> Vec<&str> {
    let is_one = !data.contains('\n') || serde_json::from_str::<IgnoredAny>(data).is_ok();
    if is_one { vec![data] } else { data.lines().filter(|line| !is_keep_alive(line)).collect() }
}

fn cancelled() -> Failure {
    Failure::new(FailureKind::Cancelled, OPENAI, "cancelled")
}

/// The failure of an endless stream. Long reasoning that is not sent may cause it, so it says nothing about the
/// provider's health.
fn too_much() -> Failure {
    Failure::new(FailureKind::Unusable, OPENAI, TOO_LARGE)
}

fn too_long(_: TooLong) -> Failure {
    Failure::new(FailureKind::InvalidResponse, OPENAI, TOO_LARGE)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const VECTORS: &str = include_str!("../../../tests/vectors/llm.json");
    const LARGEST: usize = 1 << 20;

    /// Returns the text passed on, and the outcome.
    fn replay<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, largest: usize) -> (String, Result<Completion, Failure>) {
        let mut text = String::new();
        let mut sink = |chunk: OutputChunk<'_>| {
            text.push_str(chunk.text);
            Flow::Continue
        };
        let mut answer = StreamedResponse::new(largest);
        let taken = chunks.into_iter().try_for_each(|chunk| answer.take(chunk, &mut sink));
        let result = taken.and_then(|()| answer.finish("asked-for", &mut sink));
        (text, result)
    }

    fn whole(text: &str) -> Result<Completion, Failure> {
        replay([text.as_bytes()], LARGEST).1
    }

    fn usage(value: &Value) -> Option<TokenUsage> {
        let number = |name: &str| value[name].as_u64();
        Some(TokenUsage {
            prompt_tokens: number("prompt_tokens")?,
            completion_tokens: number("completion_tokens")?,
            total_tokens: number("total_tokens")?,
        })
    }

    fn check(name: &str, expected: &Value, text: &str, result: Result<Completion, Failure>) {
        assert_eq!(text, expected["content"].as_str().unwrap(), "{name}");
        let failure = |result: Result<Completion, Failure>| {
            let failure = result.err().unwrap_or_else(|| panic!("{name} succeeded"));
            (failure.kind, failure.code)
        };
        match (name, expected["finish_reason"].as_str()) {
            ("error_inside_stream", _) => {
                assert_eq!(failure(result), (FailureKind::Busy, "server_error".into()));
            }
            (_, None) => assert_eq!(failure(result), (FailureKind::InvalidResponse, "truncated".into()), "{name}"),
            (_, Some("content_filter")) => {
                assert_eq!(failure(result).0, FailureKind::ContentRefused, "{name}");
            }
            (_, Some("insufficient_system_resource")) => {
                assert_eq!(failure(result).0, FailureKind::Busy, "{name}");
            }
            (_, Some(reason)) => {
                let completion = result.unwrap_or_else(|failure| panic!("{name}: {failure}"));
                assert_eq!(completion.text, text, "{name}");
                assert_eq!(completion.finish_reason, reason, "{name}");
                assert_eq!(completion.reasoning.unwrap_or_default(), expected["reasoning"].as_str().unwrap(), "{name}");
                assert_eq!(completion.usage, usage(&expected["usage"]), "{name}");
                assert_eq!(completion.model, "m", "{name}");
            }
        }
    }

    #[test]
    fn parses_recorded_streams_in_any_split() {
        let vectors: Value = serde_json::from_str(VECTORS).unwrap();
        let streams = vectors["streams"].as_object().unwrap();
        assert_eq!(streams.len(), 9);
        for (name, stream) in streams {
            let bytes = stream["body"].as_str().unwrap().as_bytes();
            for size in [bytes.len(), 1, 2, 3, 5, 7, 13, 64, 1000] {
                let (text, result) = replay(bytes.chunks(size), LARGEST);
                check(name, &stream["expect"], &text, result);
            }
        }
    }

    fn chunk(content: &str, finish_reason: &str) -> String {
        let finish_reason = if finish_reason.is_empty() { "null".to_owned() } else { format!("\"{finish_reason}\"") };
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{content}\"}},\"finish_reason\":{finish_reason}}}]}}\n\n"
        )
    }

    fn event(document: &Value) -> String {
        format!("data: {document}\n\n")
    }

    /// Returns the text passed on, and the completion.
    fn told(events: &[Value]) -> (String, Completion) {
        let stream: String = events.iter().map(event).collect();
        let (text, result) = replay([stream.as_bytes()], LARGEST);
        (text, result.unwrap_or_else(|failure| panic!("{failure}: {stream}")))
    }

    fn delta(content: &str) -> Value {
        json!({ "choices": [{ "index": 0, "delta": { "content": content } }] })
    }

    fn end(reason: &str) -> Value {
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
    }

    #[test]
    fn ignores_an_empty_error() {
        for error in [json!({}), json!(""), json!(false), json!([]), json!({ "message": "", "code": null }), json!(0)] {
            let mut chunk = delta("大吉");
            chunk["error"] = error;
            assert_eq!(told(&[chunk, end("stop")]).1.text, "大吉");
        }
        let failed = json!({ "base_resp": { "status_code": 1008, "status_msg": "insufficient balance" } });
        assert_eq!(whole(&event(&failed)).err().unwrap().kind, FailureKind::Misconfigured);
        let in_choice = json!({ "choices": [{ "error": { "code": 502 }, "finish_reason": "error" }] });
        assert_eq!(whole(&event(&in_choice)).err().unwrap().kind, FailureKind::Busy);
    }

    #[test]
    fn recognises_the_end_reasons_of_all_servers() {
        for (word, reason) in [("eos", "stop"), ("end_turn", "stop"), ("STOP", "stop"), ("max_tokens", "length")] {
            assert_eq!(told(&[delta("大吉"), end(word)]).1.finish_reason, reason, "{word}");
        }
        for (word, kind) in [("sensitive", FailureKind::ContentRefused), ("network_error", FailureKind::Busy)] {
            let stream = event(&delta("大吉")) + &event(&end(word));
            assert_eq!(whole(&stream).err().unwrap().kind, kind, "{word}");
        }
    }

    #[test]
    fn a_last_chunk_that_repeats_the_message_adds_nothing() {
        let message = |content: &str| json!({ "object": "chat.completion", "choices": [{ "message": { "content": content }, "finish_reason": "stop" }] });
        let mut repeated = delta("水雷屯，万事起头难，宜守不宜攻。");
        repeated["choices"][0]["finish_reason"] = json!("stop");
        let begin = [delta("水雷屯，万事起头难，"), delta("宜守不宜攻。")];
        for (last, text) in [
            (message("水雷屯，万事起头难，宜守不宜攻。"), "水雷屯，万事起头难，宜守不宜攻。"),
            (message("<think>想</think>水雷屯，万事起头难，宜守不宜攻。"), "水雷屯，万事起头难，宜守不宜攻。"),
            (message("水雷屯，万事起头难，宜守不宜攻。大吉。"), "水雷屯，万事起头难，宜守不宜攻。大吉。"),
            (repeated, "水雷屯，万事起头难，宜守不宜攻。"),
        ] {
            let (passed_on, completion) = told(&[begin[0].clone(), begin[1].clone(), last]);
            assert_eq!((passed_on.as_str(), completion.text.as_str()), (text, text));
        }
        let mut short = delta("哈");
        short["choices"][0]["finish_reason"] = json!("stop");
        assert_eq!(told(&[delta("哈"), short]).1.text, "哈哈");
    }

    #[test]
    fn separates_thinking_from_the_answer() {
        let (text, completion) = told(&[delta("<thi"), delta("nk>先看本卦</th"), delta("ink>\n\n大吉"), end("stop")]);
        assert_eq!((text.as_str(), completion.text.as_str()), ("大吉", "大吉"));
        assert_eq!(completion.reasoning.as_deref(), Some("先看本卦"));
        let unopened = told(&[delta("先看本卦</think>"), delta("大吉"), end("stop")]).1;
        assert_eq!((unopened.text.as_str(), unopened.reasoning.as_deref()), ("大吉", Some("先看本卦")));
    }

    #[test]
    fn reasoning_counts_toward_the_size_limit() {
        let mut answer = StreamedResponse::new(300);
        let empty = event(&json!({ "choices": [{ "delta": {} }], "padding": "x".repeat(100) }));
        let taken = (0..1_000).find_map(|_| answer.take(empty.as_bytes(), &mut |_| Flow::Continue).err());
        assert_eq!(taken.unwrap().code, TOO_LARGE);
        let mut comments = StreamedResponse::new(300);
        let taken = (0..10_000).find_map(|_| comments.take(b": keep-alive\n\n", &mut |_| Flow::Continue).err());
        assert_eq!(taken.unwrap().code, TOO_LARGE);
    }

    #[test]
    fn the_models_name_has_a_limit() {
        let mut named = delta("大吉");
        named["model"] = json!("m".repeat(250_000));
        assert_eq!(told(&[named, end("stop")]).1.model.len(), 128);
    }

    #[test]
    fn accepts_an_end_reason_without_done() {
        let completion = whole(&chunk("吉", "stop")).unwrap();
        assert_eq!((completion.text.as_str(), completion.model.as_str()), ("吉", "asked-for"));
    }

    #[test]
    fn accepts_done_without_an_end_reason() {
        assert_eq!(whole(&format!("{}data: [DONE]\n\n", chunk("吉", ""))).unwrap().finish_reason, "stop");
    }

    #[test]
    fn accepts_streams_that_bend_the_standard() {
        let (one, two, stop) = (chunk("大", ""), chunk("吉", ""), chunk("", "stop"));
        let late_error = event(&json!({ "error": { "message": "boom", "code": 500 } }));
        for stream in [
            // One line feed after each event.
            format!("{one}{two}{stop}data: [DONE]\n\n").replace("\n\n", "\n"),
            format!("{one}data: ping\n\n{two}data: Keep-Alive\n\n{stop}data: [DONE]\n\n"),
            format!("{one}{two}{stop}{late_error}"),
            format!("{one}{two}{stop}event: error\n{late_error}"),
            format!("{one}{two}{stop}data: [done]\n\n"),
        ] {
            for size in [1, 7, stream.len()] {
                let (text, result) = replay(stream.as_bytes().chunks(size), LARGEST);
                let completion = result.unwrap_or_else(|failure| panic!("{failure}: {stream}"));
                assert_eq!((text.as_str(), completion.text.as_str()), ("大吉", "大吉"), "{stream}");
            }
        }
        for stream in [format!("{one}{late_error}{stop}"), format!("{one}data: Internal Server Error\n\n{stop}")] {
            assert!(whole(&stream).is_err(), "{stream}");
        }
    }

    #[test]
    fn a_stream_cut_inside_a_line_is_truncated() {
        let failure = whole(&format!("{}data: {{\"choi", chunk("吉", ""))).err().unwrap();
        assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::InvalidResponse, "truncated"));
    }

    #[test]
    fn an_unknown_reason_is_a_failure_that_names_it() {
        for reason in ["tool_calls", "function_call", "tea_break"] {
            let failure = whole(&chunk("吉", reason)).err().unwrap();
            assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Unusable, reason));
        }
    }

    #[test]
    fn an_answer_without_text_is_a_failure() {
        for content in ["", "  \\n "] {
            let failure = whole(&chunk(content, "stop")).err().unwrap();
            assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Unusable, "empty_answer"));
        }
        let refusal = "data: {\"choices\":[{\"delta\":{\"refusal\":\"no\"},\"finish_reason\":\"stop\"}]}\n\n";
        assert_eq!(whole(refusal).err().unwrap().kind, FailureKind::ContentRefused);
    }

    #[test]
    fn ignores_other_choices_and_unknown_members() {
        let stream = "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"x\"}},{\"index\":0,\"delta\":{\"content\":\"吉\"},\"finish_reason\":\"stop\"}],\"obfuscation\":\"abc\"}\n\n";
        assert_eq!(whole(stream).unwrap().text, "吉");
    }

    #[test]
    fn too_much_text_ends_the_stream() {
        let stream = chunk("0123456789", "").repeat(100);
        let (text, result) = replay([stream.as_bytes()], 300);
        assert_eq!(result.err().unwrap().code, TOO_LARGE);
        assert!(text.len() <= 300);
    }

    #[test]
    fn stops_at_the_next_keep_alive_if_the_caller_left() {
        let mut answer = StreamedResponse::new(LARGEST);
        assert_eq!(answer.take(b": keep", &mut |_| Flow::Stop), Ok(()));
        let failure = answer.take(b"-alive\n", &mut |_| Flow::Stop).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Cancelled);
    }
}
