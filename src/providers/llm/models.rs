//! The primary model and its fallback.
//!
//! Owns a circuit breaker for each and the failover rule: the fallback is called only before any output, and only if
//! the primary is at fault or refuses every caller. Two models are never called at once. The outcome names the model
//! that answered and the reason for a failover.

use std::{sync::Arc, time::Instant};

use super::{Completion, Flow, LanguageModel, Piece, Request};
use crate::providers::{
    Failure, FailureKind,
    breaker::{BreakerState, CircuitBreaker},
};

/// Documents at the beginning that are held back, and their bytes.
const LONGEST_BEGINNING: usize = 64;
const LARGEST_BEGINNING: usize = 64 << 10;

/// One model with its breaker.
pub struct Guarded {
    model: Box<dyn LanguageModel>,
    breaker: Arc<CircuitBreaker>,
}

/// All models there are, in the order in which they are asked.
pub struct Models {
    first: Guarded,
    second: Option<Guarded>,
}

/// The outcome of a call, with the model that was called.
pub struct Asked {
    /// The driver that was asked last.
    pub provider: &'static str,
    /// The model that was asked for last.
    pub model: String,
    /// The primary model's failure, if the fallback was called.
    pub failover: Option<Failure>,
    pub result: Result<Completion, Failure>,
}

impl Guarded {
    pub fn new(model: Box<dyn LanguageModel>, breaker: CircuitBreaker) -> Self {
        Self { model, breaker: Arc::new(breaker) }
    }

    /// The driver's name.
    pub fn name(&self) -> &'static str {
        self.model.name()
    }

    /// The model that is asked for.
    pub fn model(&self) -> &str {
        self.model.model()
    }

    pub fn breaker_state(&self) -> BreakerState {
        self.breaker.state()
    }

    pub fn breaker(&self) -> &Arc<CircuitBreaker> {
        &self.breaker
    }

    /// Checks at no cost that the primary provider responds and accepts our key.
    pub fn probe(&self) -> Result<(), Failure> {
        self.model.probe()
    }

    fn converse(
        &self,
        clock: impl Fn() -> i64,
        request: &Request,
        sink: &mut dyn FnMut(Piece<'_>) -> Flow,
    ) -> Result<Completion, Failure> {
        self.breaker.run(clock, || self.model.converse(request, sink))
    }
}

impl Models {
    pub fn new(first: Guarded, second: Option<Guarded>) -> Self {
        Self { first, second }
    }

    /// The driver that is asked first.
    pub fn name(&self) -> &'static str {
        self.first.name()
    }

    /// The model that is asked first.
    pub fn model(&self) -> &str {
        self.first.model()
    }

    /// The first model and, if there is one, the second.
    pub fn all(&self) -> impl Iterator<Item = &Guarded> {
        std::iter::once(&self.first).chain(&self.second)
    }

    /// Returns the outcome of a call that was abandoned before any model was called.
    pub fn not_asked(&self, failure: Failure) -> Asked {
        self.first.asked(None, Err(failure))
    }

    /// Puts the request to the first model, and to the second if the first cannot answer and time is left. `clock`
    /// gives milliseconds since 1970.
    pub fn converse(
        &self,
        clock: impl Fn() -> i64,
        request: &Request,
        sink: &mut dyn FnMut(Piece<'_>) -> Flow,
    ) -> Asked {
        let begun = Instant::now();
        let mut beginning = Beginning::of(request);
        let result = self.first.converse(&clock, request, &mut |piece| beginning.pass(piece, sink));
        match (result, &self.second) {
            (Err(failure), Some(second)) if !beginning.is_over && may_be_tried_elsewhere(&failure) => {
                let left = request.time_left.map(|left| left.saturating_sub(begun.elapsed()));
                if left.is_some_and(|left| left.is_zero()) {
                    return self.first.asked(None, Err(failure));
                }
                let request = Request { time_left: left, ..request.clone() };
                let mut beginning = Beginning::of(&request);
                let result = second.converse(&clock, &request, &mut |piece| {
                    beginning.pass(Piece { is_of_second: true, ..piece }, sink)
                });
                second.asked(Some(failure), result)
            }
            (result, _) => self.first.asked(None, result),
        }
    }
}

/// Output before the first text: documents that only name the model. They are held back, so that the fallback can still
/// answer instead.
struct Beginning {
    /// Reasoning counts as output, too.
    tells_documents: bool,
    held: Vec<String>,
    is_over: bool,
}

impl Beginning {
    fn of(request: &Request) -> Self {
        Self { tells_documents: request.is_told_documents, held: Vec::new(), is_over: false }
    }

    fn pass(&mut self, piece: Piece<'_>, sink: &mut dyn FnMut(Piece<'_>) -> Flow) -> Flow {
        // A beginning that is as long as that is one no more, and nothing of it is to be lost.
        let is_too_long = piece.document.is_some_and(|document| {
            let bytes = self.held.iter().map(String::len).sum::<usize>() + document.len();
            self.held.len() == LONGEST_BEGINNING || bytes > LARGEST_BEGINNING
        });
        let is_told = self.tells_documents && (!piece.reasoning.is_empty() || is_too_long);
        self.is_over |= !piece.text.is_empty() || is_told;
        if self.is_over {
            let held = std::mem::take(&mut self.held);
            let told = held.iter().map(|document| Piece { document: Some(document), ..Piece::SIGN_OF_LIFE });
            let is_heard = told.chain([piece]).all(|piece| sink(piece) == Flow::Continue);
            return if is_heard { Flow::Continue } else { Flow::Stop };
        }
        if self.tells_documents {
            self.held.extend(piece.document.map(ToOwned::to_owned));
        }
        sink(Piece { document: None, ..piece })
    }
}

impl Guarded {
    fn asked(&self, failover: Option<Failure>, result: Result<Completion, Failure>) -> Asked {
        Asked { provider: self.name(), model: self.model().to_owned(), failover, result }
    }
}

/// Returns true for failures that another provider may not have. The request's own faults and cancellations are not.
fn may_be_tried_elsewhere(failure: &Failure) -> bool {
    failure.is_outage() || failure.kind == FailureKind::Unusable
}

#[cfg(test)]
mod tests {
    use std::{sync::Mutex, time::Duration};

    use super::*;

    /// A model that sends the given pieces and then ends as scripted.
    struct Scripted {
        name: &'static str,
        pieces: Vec<&'static str>,
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

        fn converse(&self, _: &Request, sink: &mut dyn FnMut(Piece<'_>) -> Flow) -> Result<Completion, Failure> {
            *self.asked.lock().unwrap() += 1;
            for text in &self.pieces {
                sink(Piece { text, ..Piece::SIGN_OF_LIFE });
            }
            match self.failure {
                Some(kind) => Err(Failure::new(kind, self.name, "scripted")),
                None => Ok(Completion {
                    text: self.pieces.concat(),
                    reasoning: None,
                    model: self.name.to_owned(),
                    finish_reason: "stop".to_owned(),
                    usage: None,
                    request_id: None,
                }),
            }
        }
    }

    fn scripted(name: &'static str, pieces: &[&'static str], failure: Option<FailureKind>) -> std::sync::Arc<Scripted> {
        std::sync::Arc::new(Scripted { name, pieces: pieces.to_vec(), failure, asked: Mutex::new(0) })
    }

    fn guarded(model: &std::sync::Arc<Scripted>) -> Guarded {
        let breaker = CircuitBreaker::new(model.name, 1, Duration::from_secs(30));
        Guarded::new(Box::new(std::sync::Arc::clone(model)), breaker)
    }

    fn ask(models: &Models, time_left: Option<Duration>) -> Asked {
        models.converse(|| 0, &Request { time_left, ..Request::default() }, &mut |_| Flow::Continue)
    }

    #[test]
    fn the_second_answers_when_the_first_is_at_fault() {
        for kind in [FailureKind::Unreachable, FailureKind::Busy, FailureKind::Misconfigured, FailureKind::Unusable] {
            let second = scripted("second", &["吉"], None);
            let models = Models::new(guarded(&scripted("first", &[], Some(kind))), Some(guarded(&second)));
            let asked = ask(&models, None);
            assert_eq!((asked.provider, asked.failover.map(|failure| failure.kind)), ("second", Some(kind)));
            assert_eq!(asked.result.map(|completion| completion.text).ok().as_deref(), Some("吉"));
        }
    }

    #[test]
    fn an_open_breaker_sends_everybody_to_the_second() {
        let first = scripted("first", &[], Some(FailureKind::TimedOut));
        let models = Models::new(guarded(&first), Some(guarded(&scripted("second", &["吉"], None))));
        for _ in 0..3 {
            assert!(ask(&models, None).result.is_ok());
        }
        assert_eq!(*first.asked.lock().unwrap(), 1);
        assert!(matches!(models.all().next().unwrap().breaker_state(), BreakerState::Open { .. }));
    }

    #[test]
    fn what_is_nobodys_fault_or_has_begun_stays_with_the_first() {
        let cases: [(&[&'static str], FailureKind); 4] = [
            (&[], FailureKind::ContentRefused),
            (&[], FailureKind::Refused),
            (&[], FailureKind::Cancelled),
            (&["吉"], FailureKind::OutcomeUnknown),
        ];
        for (pieces, kind) in cases {
            let second = scripted("second", &["x"], None);
            let models = Models::new(guarded(&scripted("first", pieces, Some(kind))), Some(guarded(&second)));
            let asked = ask(&models, None);
            assert_eq!((asked.provider, asked.failover.is_none()), ("first", true), "{kind}");
            assert_eq!(*second.asked.lock().unwrap(), 0, "{kind}");
        }
    }

    #[test]
    fn signs_of_life_are_no_beginning_and_time_that_is_up_is_an_end() {
        let first = || guarded(&scripted("first", &[""], Some(FailureKind::Busy)));
        let second = || Some(guarded(&scripted("second", &["吉"], None)));
        assert_eq!(ask(&Models::new(first(), second()), Some(Duration::from_secs(9))).provider, "second");
        assert_eq!(ask(&Models::new(first(), second()), Some(Duration::ZERO)).provider, "first");
    }
}
