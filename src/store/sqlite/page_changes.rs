//! Changed pages of a database as one file: written from a snapshot, checked, and applied to a copy of the state before.
//!
//! The file is a line that names the format, a line of JSON, the gzip of (page number, page) pairs, the SHA-256 of all of
//! that, and an HMAC of the latter under the server key. Each file names the fingerprints of the states before and after it, so links of a chain prove themselves.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::Path,
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use ring::digest;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::{
    FileStore, connection,
    page_sums::{PageSums, is_lock_page, sum_of},
    snapshot::{FullReads, ReadTransaction},
};
use crate::{
    error::{Code, Error, Result},
    keys::ServerKey,
    store::files::file_error,
    types::hex,
};

const FORMAT: &str = "yarrow page changes 2";
/// As [`FORMAT`], without a seal.
const FORMER_FORMAT: &str = "yarrow page changes 1";
/// Bytes of the two lines are far below this.
const MAX_HEAD_BYTES: usize = 4 << 10;
/// Bytes of the digest, and of the seal.
const DIGEST_BYTES: usize = 32;
/// SQLite's maximum.
const MAX_PAGE_SIZE: u32 = 1 << 16;

/// The head of a file of changed pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageChanges {
    pub term: u64,
    pub seq: u64,
    /// The backup at the start of the chain, and its SHA-256.
    pub base: String,
    pub base_sha256: String,
    /// Milliseconds since 1970 of the snapshot.
    pub at: i64,
    pub page_size: u32,
    /// Pages of the database.
    pub page_count: u32,
    /// Changed pages.
    pub pages: u32,
    /// Fingerprints of the database.
    pub before: u64,
    pub after: u64,
}

/// A connection that reads all pages and never changes any.
pub struct PageReader {
    connection: Connection,
    full_reads: FullReads,
}

/// The pages that differ from known ones, in one snapshot.
pub struct PageDifference<'reader> {
    transaction: ReadTransaction<'reader>,
    /// The version of the snapshot, comparable with [`PageReader::data_version`].
    pub data_version: i64,
    pub sums: PageSums,
    changed: Vec<u32>,
}

impl FileStore {
    /// Opens a connection of its own for reading pages.
    ///
    /// # Errors
    /// `configuration` if SQLite was compiled without access to pages; storage errors.
    pub fn page_reader(&self) -> Result<PageReader> {
        if !self.can_scrub_pages() {
            let detail = "backup.follow: the SQLite library of this build gives no access to pages. Set it to 0 s.";
            return Err(Error::new(Code::Configuration).english_detail(detail));
        }
        let connection = connection::open_beside(self.path(), &self.shared.tuning)?;
        // Each page is read once, so a cache would only cost memory.
        connection.pragma_update(None, "cache_size", -256)?;
        Ok(PageReader { connection, full_reads: self.shared.full_reads.clone() })
    }
}

impl PageReader {
    /// Returns a number that differs once anybody, in any process, has committed.
    ///
    /// # Errors
    /// Storage errors.
    pub fn data_version(&self) -> Result<i64> {
        Ok(self.connection.query_row("pragma data_version", [], |row| row.get(0))?)
    }

    /// Reads all pages in one snapshot and gives those that differ from the known ones to `use_difference`. Also returns
    /// the sums of all pages.
    ///
    /// # Errors
    /// Storage errors; those of `use_difference`.
    pub fn compare<T>(
        &self,
        known: &PageSums,
        use_difference: impl FnOnce(&PageDifference<'_>) -> Result<T>,
    ) -> Result<(T, PageSums)> {
        let _running = self.full_reads.begin();
        let transaction = ReadTransaction::begin(&self.connection)?;
        let connection = transaction.connection();
        // The first read takes the snapshot.
        let page_size: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let page_count: u32 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
        let data_version = self.data_version()?;
        let (mut sums, mut changed) = (Vec::with_capacity(page_count as usize), Vec::new());
        let mut statement = connection.prepare("select pgno, data from sqlite_dbpage")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (number, page) = (row.get::<_, u32>(0)?, row.get_ref(1)?.as_blob().map_err(Error::internal)?);
            let sum = sum_of(number, page);
            let is_known = known.page_size == page_size && known.get(number) == Some(sum);
            if !is_known && !is_lock_page(number, page.len()) {
                changed.push(number);
            }
            sums.push(sum);
        }
        drop(rows);
        drop(statement);
        if sums.len() != page_count as usize {
            return Err(Error::internal("the pages of a snapshot are not complete"));
        }
        let sums = PageSums::new(page_size, sums);
        let difference = PageDifference { transaction, data_version, sums, changed };
        let used = use_difference(&difference)?;
        Ok((used, difference.sums))
    }
}

impl PageDifference<'_> {
    /// Returns the number of changed pages.
    pub fn count(&self) -> u32 {
        u32::try_from(self.changed.len()).unwrap_or(u32::MAX)
    }

    /// Returns true if nothing changed. A database may also have become shorter.
    pub fn is_empty(&self, known: &PageSums) -> bool {
        self.changed.is_empty() && self.sums.count() == known.count()
    }

    /// Writes the changed pages with this head to a file.
    ///
    /// # Errors
    /// Storage errors.
    pub fn write(&self, head: &PageChanges, key: &ServerKey, file: &File) -> Result<()> {
        let failed = |error: io::Error| file_error(Path::new("a file of changed pages"), error);
        let mut writer = DigestingWriter::new(BufWriter::new(file));
        let json = serde_json::to_string(head).map_err(Error::internal)?;
        writeln!(writer, "{FORMAT}\n{json}").map_err(failed)?;
        // A better compression would take several times as long for a tenth less.
        let mut gzip = GzEncoder::new(writer, Compression::fast());
        let connection = self.transaction.connection();
        let mut statement = connection.prepare("select data from sqlite_dbpage where pgno = ?1")?;
        for number in &self.changed {
            gzip.write_all(&number.to_be_bytes()).map_err(failed)?;
            let mut rows = statement.query([number])?;
            let row = rows.next()?.ok_or_else(|| Error::internal("a changed page is missing in its snapshot"))?;
            gzip.write_all(row.get_ref(0)?.as_blob().map_err(Error::internal)?).map_err(failed)?;
        }
        let (digest, mut target) = gzip.finish().map_err(failed)?.finish();
        let seal = seal_of(digest.as_ref(), key);
        target.write_all(digest.as_ref()).and_then(|()| target.write_all(&seal)).map_err(failed)?;
        target.flush().map_err(failed)
    }
}

fn seal_of(digest: &[u8], key: &ServerKey) -> [u8; 32] {
    key.authenticate(&["page changes", &hex(digest)])
}

/// Computes the SHA-256 of what it writes.
struct DigestingWriter<W> {
    target: W,
    digest: digest::Context,
}

impl<W: Write> DigestingWriter<W> {
    fn new(target: W) -> Self {
        Self { target, digest: digest::Context::new(&digest::SHA256) }
    }

    fn finish(self) -> (digest::Digest, W) {
        (self.digest.finish(), self.target)
    }
}

impl<W: Write> Write for DigestingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.target.write(bytes)?;
        self.digest.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.target.flush()
    }
}

impl PageChanges {
    /// Reads the head of a file and checks all of the file. Returns nothing if it is cut, damaged or of another format, or
    /// not sealed with the key if there is one.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn read(path: &Path, key: Option<&ServerKey>) -> Result<Option<Self>> {
        let failed = |error: io::Error| file_error(path, error);
        let mut file = File::open(path).map_err(failed)?;
        let mut first = [0; FORMER_FORMAT.len()];
        let is_former = file.read_exact(&mut first).is_ok() && first == FORMER_FORMAT.as_bytes();
        file.rewind().map_err(failed)?;
        let end = if is_former { DIGEST_BYTES } else { 2 * DIGEST_BYTES };
        let Some(body) = file.metadata().map_err(failed)?.len().checked_sub(end as u64) else { return Ok(None) };
        let (mut digest, mut buffer, mut start) =
            (digest::Context::new(&digest::SHA256), vec![0; 64 << 10], Vec::new());
        let mut reader = (&file).take(body);
        loop {
            match reader.read(&mut buffer).map_err(failed)? {
                0 => break,
                count => {
                    digest.update(&buffer[..count]);
                    if start.is_empty() {
                        start.extend_from_slice(&buffer[..count.min(MAX_HEAD_BYTES)]);
                    }
                }
            }
        }
        let mut expected = Vec::new();
        (&file).take(end as u64).read_to_end(&mut expected).map_err(failed)?;
        let (digest, seal) = (digest.finish(), expected.split_off(DIGEST_BYTES));
        let is_sealed = key.is_none_or(|key| seal == seal_of(digest.as_ref(), key));
        Ok(if is_sealed && digest.as_ref() == expected { Self::parse(&start) } else { None })
    }

    fn parse(start: &[u8]) -> Option<Self> {
        let mut lines = start.split(|byte| *byte == b'\n');
        let is_known = lines.next().is_some_and(|format| [FORMAT, FORMER_FORMAT].map(str::as_bytes).contains(&format));
        let head: Self = serde_json::from_slice(lines.next().filter(|_| is_known)?).ok()?;
        let is_size = head.page_size.is_power_of_two() && (512..=MAX_PAGE_SIZE).contains(&head.page_size);
        (is_size && head.pages <= head.page_count).then_some(head)
    }

    /// Returns the bytes that the pages take.
    pub fn bytes(&self) -> u64 {
        u64::from(self.pages) * u64::from(self.page_size)
    }

    /// Applies a file that was checked to a database file in the state before it.
    ///
    /// # Errors
    /// `backup_unusable` if the pages do not fit the head; storage errors.
    pub fn apply(path: &Path, database: &File) -> Result<()> {
        let failed = |error: io::Error| file_error(path, error);
        let unfit =
            || Error::new(Code::BackupUnusable).english_detail(format!("{} has unexpected content.", path.display()));
        let mut reader = BufReader::new(File::open(path).map_err(failed)?);
        let mut start = Vec::new();
        for _ in 0..2 {
            reader.by_ref().take(MAX_HEAD_BYTES as u64).read_until(b'\n', &mut start).map_err(failed)?;
        }
        let head = Self::parse(&start).ok_or_else(unfit)?;
        // Every page that is new was changed, but for SQLite's lock page. Otherwise a short file could name any length.
        let (before, size) = (database.metadata().map_err(failed)?.len(), u64::from(head.page_size));
        if u64::from(head.page_count) * size > before + head.bytes() + size {
            return Err(unfit());
        }
        let mut pages = GzDecoder::new(reader);
        let (mut number, mut page) = ([0; 4], vec![0; head.page_size as usize]);
        for _ in 0..head.pages {
            pages.read_exact(&mut number).and_then(|()| pages.read_exact(&mut page)).map_err(failed)?;
            let index = u32::from_be_bytes(number).checked_sub(1).filter(|index| *index < head.page_count);
            let index = index.ok_or_else(unfit)?;
            database.write_all_at(&page, u64::from(index) * size).map_err(failed)?;
        }
        database.set_len(u64::from(head.page_count) * size).map_err(failed)
    }
}

/// Returns the sums of a database file from its start.
///
/// # Errors
/// Those of the file system.
pub fn sums_of_file(mut file: &File) -> io::Result<Option<PageSums>> {
    file.seek(SeekFrom::Start(0))?;
    Ok(super::page_sums::copy_summing(&mut file, io::sink())?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE_SIZE: u32 = 512;

    /// Returns a file with two of three pages.
    fn changes() -> Vec<u8> {
        changes_of(3)
    }

    /// Returns a file with two pages of a database of so many.
    fn changes_of(page_count: u32) -> Vec<u8> {
        let head = PageChanges {
            term: 1,
            seq: 2,
            base: "yarrow-20260102T020000.000Z-scheduled.db".into(),
            base_sha256: "sum".into(),
            at: 3,
            page_size: PAGE_SIZE,
            page_count,
            pages: 2,
            before: 4,
            after: 5,
        };
        let mut writer = DigestingWriter::new(Vec::new());
        writeln!(writer, "{FORMAT}\n{}", serde_json::to_string(&head).unwrap()).unwrap();
        let mut gzip = GzEncoder::new(writer, Compression::fast());
        for number in [1_u32, 3] {
            gzip.write_all(&number.to_be_bytes()).unwrap();
            gzip.write_all(&[u8::try_from(number).unwrap(); PAGE_SIZE as usize]).unwrap();
        }
        let (digest, mut file) = gzip.finish().unwrap().finish();
        file.extend_from_slice(digest.as_ref());
        file.extend_from_slice(&seal_of(digest.as_ref(), &key()));
        file
    }

    fn key() -> ServerKey {
        ServerKey::from_bytes(b"key")
    }

    fn read(bytes: &[u8]) -> Option<PageChanges> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        PageChanges::read(file.path(), Some(&key())).unwrap()
    }

    #[test]
    fn rejects_a_file_cut_at_any_length_or_changed_at_any_byte() {
        let whole = changes();
        assert!(read(&whole).is_some());
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length]), None, "cut at {length} of {}", whole.len());
            let mut other = whole.clone();
            other[length] ^= 1;
            assert_eq!(read(&other), None, "byte {length} differs");
        }
        assert_eq!(read(&[&whole[..], b"more"].concat()), None);
    }

    #[test]
    fn a_length_that_the_pages_do_not_give_is_refused() {
        let (file, database) = (tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap());
        std::fs::write(file.path(), changes_of(200_000_000)).unwrap();
        let refused = PageChanges::apply(file.path(), database.as_file()).unwrap_err();
        assert_eq!((refused.code, database.as_file().metadata().unwrap().len()), (Code::BackupUnusable, 0));
    }

    #[test]
    fn applies_pages_and_sets_the_length() {
        let (file, database) = (tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap());
        std::fs::write(file.path(), changes()).unwrap();
        std::fs::write(database.path(), [9; 5 * PAGE_SIZE as usize]).unwrap();
        PageChanges::apply(file.path(), database.as_file()).unwrap();
        let page = |byte: u8| [byte; PAGE_SIZE as usize];
        assert_eq!(std::fs::read(database.path()).unwrap(), [page(1), page(9), page(3)].concat());
    }
}
