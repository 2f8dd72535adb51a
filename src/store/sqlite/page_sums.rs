//! Sums of the pages of a database, by which changed pages and complete restores are recognised.
//!
//! A sum is the first 8 bytes of the SHA-256 of page number and page. The exclusive or of all sums is the fingerprint of
//! a database. The page that holds SQLite's locks is never part of it: SQLite neither reads nor writes it.

use std::io::{self, Read, Write};

use ring::digest;

use crate::types::hex;

/// The byte of the file that SQLite locks. It writes nothing to its page.
const LOCKED_BYTE: u64 = 1 << 30;
/// The position of the page size in the file header.
const PAGE_SIZE_AT: usize = 16;

/// The sums of all pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageSums {
    pub page_size: u32,
    sums: Vec<u64>,
}

impl PageSums {
    pub(super) const fn new(page_size: u32, sums: Vec<u64>) -> Self {
        Self { page_size, sums }
    }

    /// Returns the number of pages.
    pub fn count(&self) -> u32 {
        u32::try_from(self.sums.len()).unwrap_or(u32::MAX)
    }

    /// Returns the exclusive or of all sums.
    pub fn fingerprint(&self) -> u64 {
        self.sums.iter().fold(0, |fingerprint, sum| fingerprint ^ sum)
    }

    /// Returns the sum of a page, by its number from 1.
    pub(super) fn get(&self, number: u32) -> Option<u64> {
        self.sums.get(number.checked_sub(1)? as usize).copied()
    }
}

/// Returns the sum of a page.
pub(super) fn sum_of(number: u32, page: &[u8]) -> u64 {
    if is_lock_page(number, page.len()) {
        return 0;
    }
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(&number.to_be_bytes());
    context.update(page);
    let mut sum = [0; 8];
    sum.copy_from_slice(&context.finish().as_ref()[..8]);
    u64::from_be_bytes(sum)
}

/// Returns true for the page that holds the locks.
pub(super) fn is_lock_page(number: u32, page_size: usize) -> bool {
    LOCKED_BYTE.checked_div(page_size as u64).is_some_and(|pages| u64::from(number) == pages + 1)
}

/// Computes the sums and the SHA-256 of a database file while it is written to `target`.
pub struct SummingWriter<W> {
    target: W,
    /// The start of an incomplete page.
    partial: Vec<u8>,
    page_size: Option<usize>,
    sums: Vec<u64>,
    digest: digest::Context,
}

impl<W: Write> SummingWriter<W> {
    pub fn new(target: W) -> Self {
        let digest = digest::Context::new(&digest::SHA256);
        Self { target, partial: Vec::new(), page_size: None, sums: Vec::new(), digest }
    }

    /// Returns the sums and the SHA-256 in hexadecimal digits. No sums if the file is not a whole number of pages.
    pub fn finish(self) -> (Option<PageSums>, String) {
        let is_whole = self.partial.is_empty();
        let page_size = self.page_size.filter(|_| is_whole).and_then(|size| u32::try_from(size).ok());
        (page_size.map(|size| PageSums::new(size, self.sums)), hex(self.digest.finish().as_ref()))
    }

    fn sum_whole_pages(&mut self) {
        if self.page_size.is_none() && self.partial.len() >= PAGE_SIZE_AT + 2 {
            self.page_size =
                Some(match u16::from_be_bytes([self.partial[PAGE_SIZE_AT], self.partial[PAGE_SIZE_AT + 1]]) {
                    // A page of 64 KiB does not fit into the field.
                    1 => 1 << 16,
                    size => usize::from(size).max(512),
                });
        }
        let Some(size) = self.page_size else { return };
        let mut pages = self.partial.chunks_exact(size);
        for page in pages.by_ref() {
            let number = u32::try_from(self.sums.len() + 1).unwrap_or(u32::MAX);
            self.sums.push(sum_of(number, page));
        }
        self.partial = pages.remainder().to_vec();
    }
}

impl<W: Write> Write for SummingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.target.write_all(bytes)?;
        self.digest.update(bytes);
        self.partial.extend_from_slice(bytes);
        self.sum_whole_pages();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.target.flush()
    }
}

/// Copies a database file to `target`. Returns its sums and its SHA-256, as [`SummingWriter::finish`].
///
/// # Errors
/// Those of the file system.
pub fn copy_summing(source: &mut impl Read, target: impl Write) -> io::Result<(Option<PageSums>, String)> {
    let (mut writer, mut buffer) = (SummingWriter::new(target), vec![0; 256 << 10]);
    loop {
        match source.read(&mut buffer)? {
            0 => return Ok(writer.finish()),
            count => writer.write_all(&buffer[..count])?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(pages: u8) -> Vec<u8> {
        let mut file: Vec<u8> = (0..pages).flat_map(|page| [page; 512]).collect();
        file[PAGE_SIZE_AT..PAGE_SIZE_AT + 2].copy_from_slice(&512_u16.to_be_bytes());
        file
    }

    #[test]
    fn sums_do_not_depend_on_the_size_of_writes() {
        let whole = copy_summing(&mut file(9).as_slice(), io::sink()).unwrap();
        let mut writer = SummingWriter::new(io::sink());
        for byte in file(9) {
            writer.write_all(&[byte]).unwrap();
        }
        assert_eq!(writer.finish(), whole);
        let sums = whole.0.unwrap();
        assert_eq!((sums.count(), sums.page_size), (9, 512));
        assert_eq!(sums.get(2), Some(sum_of(2, &[1; 512])));
        assert_eq!((sums.get(0), sums.get(10)), (None, None));
        assert_eq!(copy_summing(&mut &file(9)[..700], io::sink()).unwrap().0, None);
        assert_eq!(copy_summing(&mut io::empty(), io::sink()).unwrap().0, None);
    }

    #[test]
    fn equal_pages_at_other_places_have_other_sums() {
        assert_ne!(sum_of(1, &[0; 512]), sum_of(2, &[0; 512]));
    }

    #[test]
    fn knows_the_page_of_the_locks() {
        assert!(is_lock_page(262_145, 4_096) && !is_lock_page(262_144, 4_096));
        assert_eq!(sum_of(262_145, &[7; 4_096]), 0);
    }
}
