//! The primary model and its fallback.
//!
//! Owns a circuit breaker for each and the failover rule: the fallback is called only before any output, and only if
//! the primary is at fault or refuses every caller. Two models are never called at once. The outcome names the model
//! that answered and the reason for a failover.

use std::{sync::Arc, time::Instant};

use super::{Completion, Flow, LanguageModel, ModelRequest, OutputChunk};
use crate::providers::{
    Failure, FailureKind,
    breaker::{BreakerState, CircuitBreaker},
};

/// Maximum number of chunks that are held back before the first text.
const MAX_HELD_CHUNKS: usize = 64;
/// Maximum number of their bytes.
const MAX_HELD_BYTES: usize = 64 << 10;

/// A model with its circuit breaker.
pub struct GuardedModel {
    model: Box<dyn LanguageModel>,
    breaker: Arc<CircuitBreaker>,
}

/// The primary model and the optional fallback.
pub struct Models {
    first: GuardedModel,
    second: Option<GuardedModel>,
}

/// The outcome of a call, with the model that was called.
pub struct ModelReply {
    /// The driver that was called last.
    pub provider: &'static str,
    /// The model that was requested last.
    pub model: String,
    /// The primary model's failure, if the fallback was called.
    pub failover: Option<Failure>,
    pub result: Result<Completion, Failure>,
}

impl GuardedModel {
    pub fn new(model: Box<dyn LanguageModel>, breaker: CircuitBreaker) -> Self {
        Self { model, breaker: Arc::new(breaker) }
    }

    /// Returns the driver's name.
    pub fn name(&self) -> &'static str {
        self.model.name()
    }

    /// Returns the requested model.
    pub fn model(&self) -> &str {
        self.model.model()
    }

    pub fn breaker_state(&self) -> BreakerState {
        self.breaker.state()
    }

    pub fn breaker(&self) -> &Arc<CircuitBreaker> {
        &self.breaker
    }

    /// Checks at no cost that this model's provider responds and accepts our key.
    pub fn probe(&self) -> Result<(), Failure> {
        self.model.probe()
    }

    fn converse(
        &self,
        clock: impl Fn() -> i64,
        request: &ModelRequest,
        sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow,
    ) -> Result<Completion, Failure> {
        self.breaker.run(clock, || self.model.converse(request, sink))
    }
}

impl Models {
    pub fn new(first: GuardedModel, second: Option<GuardedModel>) -> Self {
        Self { first, second }
    }

    /// Returns the name of the primary driver.
    pub fn name(&self) -> &'static str {
        self.first.name()
    }

    /// Returns the primary model.
    pub fn model(&self) -> &str {
        self.first.model()
    }

    /// Returns the primary model and the fallback, if there is one.
    pub fn all(&self) -> impl Iterator<Item = &GuardedModel> {
        std::iter::once(&self.first).chain(&self.second)
    }

    /// Returns the outcome of a call that was abandoned before any model was called.
    pub fn not_called(&self, failure: Failure) -> ModelReply {
        self.first.reply(None, Err(failure))
    }

    /// Sends the request to the primary model, and to the fallback if the primary cannot answer and time is left.
    /// `clock` returns milliseconds since 1970.
    pub fn converse(
        &self,
        clock: impl Fn() -> i64,
        request: &ModelRequest,
        sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow,
    ) -> ModelReply {
        let begun = Instant::now();
        let mut beginning = HeldOutput::of(request);
        let result = self.first.converse(&clock, request, &mut |chunk| beginning.pass(chunk, sink));
        match (result, &self.second) {
            (Err(failure), Some(second)) if !beginning.is_over && allows_failover(&failure) => {
                let left = request.time_left.map(|left| left.saturating_sub(begun.elapsed()));
                if left.is_some_and(|left| left.is_zero()) {
                    return self.first.reply(None, Err(failure));
                }
                let request = ModelRequest { time_left: left, ..request.clone() };
                let mut beginning = HeldOutput::of(&request);
                let result = second.converse(&clock, &request, &mut |chunk| {
                    beginning.pass(OutputChunk { is_from_fallback: true, ..chunk }, sink)
                });
                second.reply(Some(failure), result)
            }
            (result, _) => self.first.reply(None, result),
        }
    }
}

/// Buffers output before the first text: chunks that only name the model. They are held back, so that the fallback can
/// still answer instead.
struct HeldOutput {
    /// Reasoning counts as output, too.
    with_documents: bool,
    held: Vec<String>,
    is_over: bool,
}

impl HeldOutput {
    fn of(request: &ModelRequest) -> Self {
        Self { with_documents: request.with_documents, held: Vec::new(), is_over: false }
    }

    fn pass(&mut self, chunk: OutputChunk<'_>, sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow) -> Flow {
        // Chunks above the limit count as output and are passed on.
        let is_too_long = chunk.document.is_some_and(|document| {
            let bytes = self.held.iter().map(String::len).sum::<usize>() + document.len();
            self.held.len() == MAX_HELD_CHUNKS || bytes > MAX_HELD_BYTES
        });
        let is_told = self.with_documents && (!chunk.reasoning.is_empty() || is_too_long);
        self.is_over |= !chunk.text.is_empty() || is_told;
        if self.is_over {
            let held = std::mem::take(&mut self.held);
            let told = held.iter().map(|document| OutputChunk { document: Some(document), ..OutputChunk::KEEP_ALIVE });
            let is_continued = told.chain([chunk]).all(|chunk| sink(chunk) == Flow::Continue);
            return if is_continued { Flow::Continue } else { Flow::Stop };
        }
        if self.with_documents {
            self.held.extend(chunk.document.map(ToOwned::to_owned));
        }
        sink(OutputChunk { document: None, ..chunk })
    }
}

impl GuardedModel {
    fn reply(&self, failover: Option<Failure>, result: Result<Completion, Failure>) -> ModelReply {
        ModelReply { provider: self.name(), model: self.model().to_owned(), failover, result }
    }
}

/// Returns true for failures that another provider may not have. Faults of the request and cancellations are not.
fn allows_failover(failure: &Failure) -> bool {
    failure.is_outage() || failure.kind == FailureKind::Unusable
}

#[cfg(test)]
mod tests {
    use std::{sync::Mutex, time::Duration};

    use super::*;

    /// A model that sends the given chunks and then ends as scripted.
    struct Scripted {
        name: &'static str,
        chunks: Vec<&'static str>,
        failure: Option<FailureKind>,
        asked: Mutex<u32>,
    }

    impl LanguageModel for std::sync::Arc<Scripted> {
        fn name(&self) -> &'static str {
            self.name
        }

        fn model(&self) -> &str {
            self.name
        }

        fn probe(&self) -> Result<(), Failure> {
            Ok(())
        }

        fn converse(
            &self,
            _: &ModelRequest,
            sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow,
        ) -> Result<Completion, Failure> {
            *self.asked.lock().unwrap() += 1;
            for text in &self.chunks {
                sink(OutputChunk { text, ..OutputChunk::KEEP_ALIVE });
            }
            match self.failure {
                Some(kind) => Err(Failure::new(kind, self.name, "scripted")),
                None => Ok(Completion {
                    text: self.chunks.concat(),
                    reasoning: None,
                    model: self.name.to_owned(),
                    finish_reason: "stop".to_owned(),
                    usage: None,
                    request_id: None,
                }),
            }
        }
    }

    fn scripted(name: &'static str, chunks: &[&'static str], failure: Option<FailureKind>) -> std::sync::Arc<Scripted> {
        std::sync::Arc::new(Scripted { name, chunks: chunks.to_vec(), failure, asked: Mutex::new(0) })
    }

    fn guarded(model: &std::sync::Arc<Scripted>) -> GuardedModel {
        let breaker = CircuitBreaker::new(model.name, 1, Duration::from_secs(30));
        GuardedModel::new(Box::new(std::sync::Arc::clone(model)), breaker)
    }

    fn ask(models: &Models, time_left: Option<Duration>) -> ModelReply {
        models.converse(|| 0, &ModelRequest { time_left, ..ModelRequest::default() }, &mut |_| Flow::Continue)
    }

    #[test]
    fn calls_the_fallback_if_the_primary_is_at_fault() {
        for kind in [FailureKind::Unreachable, FailureKind::Busy, FailureKind::Misconfigured, FailureKind::Unusable] {
            let second = scripted("second", &["吉"], None);
            let models = Models::new(guarded(&scripted("first", &[], Some(kind))), Some(guarded(&second)));
            let asked = ask(&models, None);
            assert_eq!((asked.provider, asked.failover.map(|failure| failure.kind)), ("second", Some(kind)));
            assert_eq!(asked.result.map(|completion| completion.text).ok().as_deref(), Some("吉"));
        }
    }

    #[test]
    fn an_open_breaker_selects_the_fallback() {
        let first = scripted("first", &[], Some(FailureKind::TimedOut));
        let models = Models::new(guarded(&first), Some(guarded(&scripted("second", &["吉"], None))));
        for _ in 0..3 {
            assert!(ask(&models, None).result.is_ok());
        }
        assert_eq!(*first.asked.lock().unwrap(), 1);
        assert!(matches!(models.all().next().unwrap().breaker_state(), BreakerState::Open { .. }));
    }

    #[test]
    fn does_not_fail_over_for_request_faults_or_after_output() {
        let cases: [(&[&'static str], FailureKind); 4] = [
            (&[], FailureKind::ContentRefused),
            (&[], FailureKind::Refused),
            (&[], FailureKind::Cancelled),
            (&["吉"], FailureKind::OutcomeUnknown),
        ];
        for (chunks, kind) in cases {
            let second = scripted("second", &["x"], None);
            let models = Models::new(guarded(&scripted("first", chunks, Some(kind))), Some(guarded(&second)));
            let asked = ask(&models, None);
            assert_eq!((asked.provider, asked.failover.is_none()), ("first", true), "{kind}");
            assert_eq!(*second.asked.lock().unwrap(), 0, "{kind}");
        }
    }

    #[test]
    fn keep_alives_are_no_output_and_a_timeout_prevents_the_fallback() {
        let first = || guarded(&scripted("first", &[""], Some(FailureKind::Busy)));
        let second = || Some(guarded(&scripted("second", &["吉"], None)));
        assert_eq!(ask(&Models::new(first(), second()), Some(Duration::from_secs(9))).provider, "second");
        assert_eq!(ask(&Models::new(first(), second()), Some(Duration::ZERO)).provider, "first");
    }
}
