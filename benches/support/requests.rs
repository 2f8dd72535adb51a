//! Requests as bytes, built before the measurement: many users, each with their own token.

use std::sync::atomic::{AtomicU64, Ordering};

/// A marker in a write request that is replaced by a unique number.
pub const NUMBER: &str = "############";

/// The kind of a request, for counting stored rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    Save,
    Consume,
    Order,
}

/// A source of requests that never blocks.
#[derive(Default)]
pub struct Requests {
    reads: Vec<Vec<u8>>,
    writes: Option<Writes>,
    /// Requests that can be sent once each.
    once: Option<(Vec<Vec<u8>>, AtomicU64)>,
}

/// Templates of write requests.
struct Writes {
    kind: Kind,
    templates: Vec<(Vec<u8>, Option<usize>)>,
    of_100: u64,
    written: AtomicU64,
}

impl Requests {
    pub fn reading(reads: Vec<Vec<u8>>) -> Self {
        Self { reads, ..Self::default() }
    }

    pub fn writing(kind: Kind, templates: Vec<Vec<u8>>) -> Self {
        Self::mixed(Vec::new(), 100, kind, templates)
    }

    /// Mixes reads with `of_100` writes per hundred requests.
    pub fn mixed(reads: Vec<Vec<u8>>, of_100: u64, kind: Kind, templates: Vec<Vec<u8>>) -> Self {
        let number_at = |template: &[u8]| template.windows(NUMBER.len()).position(|window| window == NUMBER.as_bytes());
        let templates = templates.into_iter().map(|template| (number_at(&template), template));
        let templates = templates.map(|(number, template)| (template, number)).collect();
        let writes = Writes { kind, templates, of_100, written: AtomicU64::new(0) };
        Self { reads, writes: Some(writes), once: None }
    }

    pub fn once(requests: Vec<Vec<u8>>) -> Self {
        Self { once: Some((requests, AtomicU64::new(0))), ..Self::default() }
    }

    /// Writes the next request into the buffer. Returns None when none are left.
    pub fn next(&self, random: &mut Random, request: &mut Vec<u8>) -> Option<Kind> {
        if let Some((once, used)) = &self.once {
            let number = usize::try_from(used.fetch_add(1, Ordering::Relaxed)).ok()?;
            request.extend_from_slice(once.get(number)?);
            return Some(Kind::Read);
        }
        match &self.writes {
            Some(writes) if random.below(100) < writes.of_100 => Some(writes.next(random, request)),
            _ => {
                request.extend_from_slice(&self.reads[random.index(self.reads.len())]);
                Some(Kind::Read)
            }
        }
    }
}

impl Writes {
    fn next(&self, random: &mut Random, request: &mut Vec<u8>) -> Kind {
        let (template, number_at) = &self.templates[random.index(self.templates.len())];
        request.extend_from_slice(template);
        if let Some(begin) = *number_at {
            let mut number = self.written.fetch_add(1, Ordering::Relaxed);
            for digit in request[begin..begin + NUMBER.len()].iter_mut().rev() {
                *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
                number /= 10;
            }
        }
        self.kind
    }
}

/// Builds a request. `headers` are whole lines; without a body the content length is zero.
pub fn request(method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    let head = format!("{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{headers}");
    if method == "GET" {
        return format!("{head}\r\n").into_bytes();
    }
    let content_type = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
    format!("{head}{content_type}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// A xorshift generator: the same requests in every run, at no cost.
pub struct Random(u64);

impl Random {
    pub fn new(number: usize) -> Self {
        Self(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number as u64 + 1))
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }
}
