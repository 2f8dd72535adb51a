//! Reads the files of a small ZIP archive. Checks sizes and checksums; no encryption, no ZIP64.
//!
//! Only the central directory is trusted for sizes, because streamed archives have none in front of the data.

use std::io::Read as _;

use flate2::read::DeflateDecoder;

const DIRECTORY_END: &[u8] = b"PK\x05\x06";
const DIRECTORY_END_BYTES: usize = 22;
const DIRECTORY_ENTRY: &[u8] = b"PK\x01\x02";
const LOCAL_HEADER: &[u8] = b"PK\x03\x04";

/// A file of an archive.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ZipFile {
    /// Not decoded, because its encoding is unknown.
    pub(super) name: Vec<u8>,
    pub(super) content: Vec<u8>,
}

/// Returns all files; `None` if the archive is damaged or its files are larger than `max_bytes` together.
pub(super) fn files(archive: &[u8], max_bytes: usize) -> Option<Vec<ZipFile>> {
    let end = archive.windows(DIRECTORY_END_BYTES).rposition(|window| window.starts_with(DIRECTORY_END))?;
    let (count, mut at) = (number(archive, end + 10, 2)?, number(archive, end + 16, 4)?);
    let (mut found, mut left) = (Vec::new(), max_bytes);
    for _ in 0..count {
        if archive.get(at..at + 4)? != DIRECTORY_ENTRY {
            return None;
        }
        let field = |offset, length| number(archive, at + offset, length);
        let (method, checksum) = (field(10, 2)?, field(16, 4)?);
        let (packed, size) = (field(20, 4)?, field(24, 4)?);
        let (name_length, local) = (field(28, 2)?, field(42, 4)?);
        let name = archive.get(at + 46..at + 46 + name_length)?.to_vec();
        at += 46 + name_length + field(30, 2)? + field(32, 2)?;
        left = left.checked_sub(size)?;
        let content = unpacked(archive, local, method, packed, size)?;
        let mut actual = flate2::Crc::new();
        actual.update(&content);
        if content.len() != size || usize::try_from(actual.sum()).ok()? != checksum {
            return None;
        }
        found.push(ZipFile { name, content });
    }
    Some(found)
}

fn unpacked(archive: &[u8], local: usize, method: usize, packed: usize, size: usize) -> Option<Vec<u8>> {
    if archive.get(local..local + 4)? != LOCAL_HEADER {
        return None;
    }
    let start = local + 30 + number(archive, local + 26, 2)? + number(archive, local + 28, 2)?;
    let data = archive.get(start..start.checked_add(packed)?)?;
    match method {
        0 => Some(data.to_vec()),
        8 => {
            let mut content = Vec::new();
            let limit = u64::try_from(size).ok()? + 1;
            DeflateDecoder::new(data).take(limit).read_to_end(&mut content).ok()?;
            Some(content)
        }
        _ => None,
    }
}

/// Reads a little-endian number.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    use super::*;

    /// Made by Python's `zipfile`: `a.csv` with "1,2\n" fifty times, deflated, and `b` with "x", stored.
    const ARCHIVE: &str = "UEsDBBQAAAAIAHZsel2+EiKpCQAAAMgAAAAFAAAAYS5jc3Yz1DHiMhwGGABQSwMEFAAAAAAAdmx6XYMW3IwBAAAAAQAAAAEAAABieFBLAQIUAxQAAAAIAHZsel2+EiKpCQAAAMgAAAAFAAAAAAAAAAAAAACAAQAAAABhLmNzdlBLAQIUAxQAAAAAAHZsel2DFtyMAQAAAAEAAAABAAAAAAAAAAAAAACAASwAAABiUEsFBgAAAAACAAIAYgAAAEwAAAAAAA==";

    #[test]
    fn reads_packed_and_stored_files() {
        let archive = STANDARD.decode(ARCHIVE).unwrap();
        let found = files(&archive, 1000).unwrap();
        assert_eq!(found[0], ZipFile { name: b"a.csv".to_vec(), content: "1,2\n".repeat(50).into_bytes() });
        assert_eq!(found[1], ZipFile { name: b"b".to_vec(), content: b"x".to_vec() });
        assert_eq!(files(&archive, 199), None);
        assert_eq!(files(b"", 1000), None);
    }

    #[test]
    fn damage_is_noticed_and_never_panics() {
        let archive = STANDARD.decode(ARCHIVE).unwrap();
        let whole = files(&archive, 1000);
        for length in 0..archive.len() {
            assert_ne!(files(&archive[..length], 1000), whole);
        }
        for index in 0..archive.len() {
            let mut damaged = archive.clone();
            damaged[index] ^= 0xff;
            // A change in a time or an attribute is no damage.
            if let Some(found) = files(&damaged, 1000) {
                assert!(found.iter().map(|file| file.content.len()).sum::<usize>() <= 1000);
            }
        }
    }
}
