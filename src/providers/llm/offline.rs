//! The driver that needs no provider: it interprets the hexagram by rules and responds at once.
//!
//! Connects the built-in interpreter to the trait. It cannot hold a conversation, and says so in a request without a
//! hexagram.

use super::{Completion, Flow, LanguageModel, ModelRequest, OutputChunk, builtin};
use crate::providers::{Failure, FailureKind};

/// The driver's name in the configuration.
pub const NAME: &str = "builtin";
/// The interpreter's name, where a response names its model.
pub const MODEL: &str = "builtin-1";

/// By [`Written`](builtin::Written).
const NO_CONVERSATION: [&str; 3] = [
    "当前使用内置解读，只能依据卦象作出解读，不能自由对话。请先起卦，再请求解读。",
    "目前使用內建解讀，只能依據卦象作出解讀，不能自由對話。請先起卦，再請求解讀。",
    "The built-in interpreter answers here. It reads hexagrams and cannot chat. Cast one first, then ask for its \
     interpretation.",
];

/// Interprets without a model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offline;

impl LanguageModel for Offline {
    fn name(&self) -> &'static str {
        NAME
    }

    fn model(&self) -> &str {
        MODEL
    }

    fn converse(
        &self,
        request: &ModelRequest,
        sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow,
    ) -> Result<Completion, Failure> {
        let no_conversation = || NO_CONVERSATION[request.written as usize].to_owned();
        let text = request.reading.as_ref().map_or_else(no_conversation, builtin::interpret);
        let mut is_continued =
            |text| sink(OutputChunk { text, model: MODEL, ..OutputChunk::KEEP_ALIVE }) == Flow::Continue;
        let has_finished = if request.stream { paragraphs(&text).all(is_continued) } else { is_continued(&text) };
        if !has_finished {
            return Err(Failure::new(FailureKind::Cancelled, NAME, "cancelled"));
        }
        Ok(Completion {
            text,
            reasoning: None,
            model: MODEL.to_owned(),
            finish_reason: "stop".to_owned(),
            usage: None,
            request_id: None,
        })
    }

    fn probe(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Splits the text after line ends, so that the parts add up to the text.
fn paragraphs(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(stream: bool) -> ModelRequest {
        ModelRequest { trace_id: "0".repeat(32), stream, ..ModelRequest::default() }
    }

    #[test]
    fn the_chunks_add_up_to_the_text() {
        let text = "一\n\n二\n三";
        let chunks: Vec<&str> = paragraphs(text).collect();
        assert_eq!(chunks.concat(), text);
        assert_eq!(chunks, ["一\n", "\n", "二\n", "三"]);
    }

    #[test]
    fn explains_itself_without_a_hexagram() {
        let mut chunks = String::new();
        let mut sink = |chunk: OutputChunk<'_>| {
            chunks.push_str(chunk.text);
            Flow::Continue
        };
        let completion = Offline.converse(&request(true), &mut sink).unwrap();
        assert_eq!(completion.text, NO_CONVERSATION[0]);
        assert_eq!((completion.model.as_str(), completion.finish_reason.as_str()), ("builtin-1", "stop"));
        assert_eq!(chunks, completion.text);
    }

    #[test]
    fn stops_if_the_caller_has_disconnected() {
        let failure = Offline.converse(&request(true), &mut |_| Flow::Stop).err().unwrap();
        assert_eq!(failure.kind, FailureKind::Cancelled);
    }
}
