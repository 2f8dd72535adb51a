//! Reads the files of a small ZIP archive, with a limit. The library compares sizes and checksums.

use std::io::{Cursor, Read as _};

use zip::ZipArchive;

/// Returns the contents of all files; `None` if the archive is damaged or encrypted, or if its files are larger than
/// `max_bytes` together.
pub(super) fn files(archive: &[u8], max_bytes: usize) -> Option<Vec<Vec<u8>>> {
    let mut archive = ZipArchive::new(Cursor::new(archive)).ok()?;
    let (mut found, mut left) = (Vec::new(), max_bytes);
    for index in 0..archive.len() {
        let mut content = Vec::new();
        // The sizes in the directory are claims. Reading one byte too many shows that the limit is exceeded.
        let limit = u64::try_from(left).ok()? + 1;
        archive.by_index(index).ok()?.take(limit).read_to_end(&mut content).ok()?;
        left = left.checked_sub(content.len())?;
        found.push(content);
    }
    Some(found)
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
        assert_eq!(found, ["1,2\n".repeat(50).into_bytes(), b"x".to_vec()]);
        assert_eq!(files(&archive, 201), Some(found));
        assert_eq!(files(&archive, 200), None);
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
                assert!(found.iter().map(Vec::len).sum::<usize>() <= 1000);
            }
        }
    }
}
