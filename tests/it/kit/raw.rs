//! Requests that no well-behaved client would send, byte by byte.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use ureq::http::{HeaderMap, HeaderName, HeaderValue};

use super::client::Answer;

/// Sends the bytes and reads one answer. The request should say `connection: close`, unless it is broken anyway.
pub fn exchange(address: SocketAddr, bytes: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The server may refuse before it has read everything: what it answered is still to be read.
    let _ = stream.write_all(bytes);
    answer(stream)
}

/// Reads one answer.
pub fn answer(stream: impl Read) -> Answer {
    let mut reader = BufReader::new(stream);
    let (status, headers) = head(&mut reader);
    let mut body = Vec::new();
    match headers.get("content-length").map(|length| length.to_str().unwrap().parse::<u64>().unwrap()) {
        Some(length) => reader.take(length).read_to_end(&mut body).unwrap(),
        None => reader.read_to_end(&mut body).unwrap(),
    };
    Answer { status, headers, bytes: body }
}

/// Reads the status line and the headers of an answer.
pub fn head(reader: &mut impl BufRead) -> (u16, HeaderMap) {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no answer, but {line:?}")).parse().unwrap();
    let mut headers = HeaderMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            Some((name, value)) => {
                headers.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
            }
            None => return (status, headers),
        };
    }
}
