//! Overwrites the remains of deleted rows in unused space of b-tree pages.
//!
//! `secure_delete` overwrites a deleted row in place. But when SQLite balances pages it writes a page anew and leaves old
//! bytes in the gap between the page's cell pointers and its cells. Those may be copies of rows that are deleted later,
//! and nothing clears them until new rows fill the gap.
//!
//! The gaps are filled with zeros through SQLite's `sqlite_dbpage` table, in ordinary transactions, so a crash or another
//! process sees either the old page or the new one. A page that does not match the file format exactly is not touched.
//! Where SQLite lacks that table, [`FileStore::vacuum`](super::FileStore::vacuum) rewrites the whole file instead.
//!
//! The format: <https://www.sqlite.org/fileformat2.html#b_tree_pages>.

use std::ops::Range;

use crate::{
    error::Result,
    store::{Read, Row, Write},
};

/// The first page starts with the file header.
const FILE_HEADER: usize = 100;
/// Overflow and free pages start with a page number. Below this number of pages (64 GiB at 4 KiB) its first byte is 0,
/// which no b-tree page has.
const MAX_PAGES: i64 = 1 << 24;

impl Read<'_> {
    /// Returns the number of pages, or none if the file has too many pages or a layout that this module does not handle.
    pub fn scrubbable_pages(&self) -> Result<Option<u32>> {
        let pages: i64 = self.one("pragma page_count", (), |row| row.get(0))?;
        // Auto-vacuum adds pages of another kind; reserved space belongs to extensions.
        let auto_vacuum: i64 = self.one("pragma auto_vacuum", (), |row| row.get(0))?;
        let reserved = self.page(1, |page| page.get(20).copied())?.flatten();
        let is_supported = pages < MAX_PAGES && auto_vacuum == 0 && reserved == Some(0);
        Ok(u32::try_from(pages).ok().filter(|_| is_supported))
    }

    /// Returns the pages in this range whose gap is not zeroed.
    pub fn pages_to_scrub(&self, pages: Range<u32>) -> Result<Vec<u32>> {
        let mut found = Vec::new();
        for number in pages {
            if self.page(number, |page| dirty_gap(number, page).is_some())? == Some(true) {
                found.push(number);
            }
        }
        Ok(found)
    }

    fn page<T>(&self, number: u32, inspect: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        let inspect = |row: &Row<'_>| Ok(inspect(row.bytes(0)?));
        self.first("select data from sqlite_dbpage where pgno = ?1", [number], inspect)
    }
}

impl Write<'_> {
    /// Fills the gaps of these pages with zeros. Returns the number of changed pages.
    pub fn scrub_pages(&self, pages: &[u32]) -> Result<usize> {
        let mut scrubbed = 0;
        for &number in pages {
            // The page may have changed since it was inspected.
            let clean = self.page(number, |page| {
                let gap = dirty_gap(number, page)?;
                let mut clean = page.to_vec();
                clean[gap].fill(0);
                Some(clean)
            })?;
            if let Some(clean) = clean.flatten() {
                scrubbed += self.execute("update sqlite_dbpage set data = ?2 where pgno = ?1", (number, clean))?;
            }
        }
        Ok(scrubbed)
    }
}

/// Returns the gap of a b-tree page if it is not all zeros.
fn dirty_gap(number: u32, page: &[u8]) -> Option<Range<usize>> {
    gap(number, page).filter(|gap| page[gap.clone()].iter().any(|byte| *byte != 0))
}

/// Returns the unused space between cell pointers and cells. None for other pages and for malformed ones.
fn gap(number: u32, page: &[u8]) -> Option<Range<usize>> {
    let header = if number == 1 { FILE_HEADER } else { 0 };
    let header_length = match page.get(header)? {
        2 | 5 => 12,
        10 | 13 => 8,
        _ => return None,
    };
    let two = |at: usize| Some(usize::from(u16::from_be_bytes([*page.get(at)?, *page.get(at + 1)?])));
    let first_free = two(header + 1)?;
    let cells = two(header + 3)?;
    // 0 means 65536, the start of the cells on an empty page of 64 KiB.
    let start = Some(two(header + 5)?).filter(|start| *start != 0).unwrap_or(1 << 16);
    let pointers = header + header_length;
    let end = pointers + 2 * cells;
    let is_cell = |cell: usize| two(pointers + 2 * cell).is_some_and(|at| (start..page.len()).contains(&at));
    let is_sound = end <= start
        && start <= page.len()
        && (first_free == 0 || (start..page.len()).contains(&first_free))
        && (0..cells).all(is_cell);
    is_sound.then_some(end..start)
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, path::Path};

    use super::*;
    use crate::{
        clock::Clock,
        error::Code,
        store::{SchemaPolicy, Store, Tuning, backup::Faults},
        types::{hex, sha256},
    };

    /// A table leaf with two cells and ten stale bytes in its gap.
    fn leaf() -> Vec<u8> {
        let mut page = vec![0; 512];
        page[..8].copy_from_slice(&[13, 0, 0, 0, 2, 1, 0x90, 0]);
        page[8..12].copy_from_slice(&[1, 0x90, 1, 0xc8]);
        page[0x190..].fill(7);
        page[200..210].fill(9);
        page
    }

    #[test]
    fn finds_the_gap_between_pointers_and_cells() {
        assert_eq!(gap(2, &leaf()), Some(12..0x190));
        assert_eq!(dirty_gap(2, &leaf()), Some(12..0x190));
        let mut clean = leaf();
        clean[12..0x190].fill(0);
        assert_eq!(dirty_gap(2, &clean), None);
    }

    const PEOPLE: u64 = 10_000;

    /// Random-looking keys, so that inserts and deletes hit all pages.
    fn key(number: u64) -> String {
        hex(&sha256(&number.to_string())[..16])
    }

    /// A store with rows of which every other one was deleted, and whose file still contains some of them.
    fn store_with_deleted_rows(directory: &Path) -> Store {
        let store =
            Store::open(&directory.join("yarrow.db"), &Tuning::SMALL, Clock::default(), SchemaPolicy::Migrate).unwrap();
        let filled = store.write(|tx| {
            tx.execute("create table people (key text primary key, note text) strict, without rowid", ())?;
            tx.execute("create table notes (id integer primary key, note text) strict", ())?;
            tx.execute("create index notes_by_note on notes (note)", ())?;
            (0..PEOPLE).try_for_each(|number| insert_in(tx, number, &"n".repeat((number * 7 % 60) as usize)))
        });
        filled.wait().unwrap();
        let deleted = store.write(|tx| {
            for number in (0..PEOPLE).step_by(2) {
                tx.execute("delete from people where key = ?1", [key(number)])?;
                tx.execute("delete from notes where note = ?1", [key(number)])?;
            }
            tx.truncate_wal_after_commit();
            Ok(())
        });
        deleted.wait().unwrap();
        assert!(deleted_rows_in_file(&store) > 0);
        store
    }

    fn insert_in(tx: &Write<'_>, number: u64, note: &str) -> Result<()> {
        tx.execute("insert into people (key, note) values (?1, ?2)", (key(number), note))?;
        tx.execute("insert into notes (note) values (?1)", [key(number)]).map(drop)
    }

    fn deleted_rows_in_file(store: &Store) -> usize {
        let bytes = std::fs::read(store.file().unwrap().path()).unwrap();
        let deleted: Vec<_> = (0..PEOPLE).step_by(2).map(key).collect();
        let deleted: HashSet<&[u8]> = deleted.iter().map(String::as_bytes).collect();
        bytes.windows(32).filter(|window| deleted.contains(window)).collect::<HashSet<_>>().len()
    }

    /// Checks that the file contains no deleted row, all others, and accepts new ones.
    fn assert_scrubbed(store: &Store) {
        assert_eq!(deleted_rows_in_file(store), 0);
        assert_eq!(store.file().unwrap().faults().unwrap(), Faults::default());
        let keys: Vec<String> =
            store.read(|tx| tx.all("select key from people order by key", (), |row| row.get(0))).unwrap();
        let mut expected: Vec<_> = (0..PEOPLE).filter(|number| number % 2 != 0).map(key).collect();
        expected.sort();
        assert_eq!(keys, expected);
        let refilled = store.write(|tx| (0..PEOPLE).step_by(2).try_for_each(|number| insert_in(tx, number, "again")));
        refilled.wait().unwrap();
        assert_eq!(store.file().unwrap().faults().unwrap(), Faults::default());
    }

    fn dirty_pages(store: &Store) -> Vec<u32> {
        store.read(|tx| tx.pages_to_scrub(1..tx.scrubbable_pages()?.unwrap() + 1)).unwrap()
    }

    #[test]
    fn clears_stale_copies_of_moved_rows_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let store = store_with_deleted_rows(directory.path());
        if !store.file().unwrap().can_scrub_pages() {
            return;
        }
        let pages = dirty_pages(&store);
        let expected = pages.len();
        assert!(expected > 0);
        let scrubbed = store.write(move |tx| {
            tx.truncate_wal_after_commit();
            tx.scrub_pages(&pages)
        });
        assert_eq!(scrubbed.wait().unwrap(), expected);
        assert!(dirty_pages(&store).is_empty());
        assert_scrubbed(&store);
    }

    #[test]
    fn vacuum_clears_stale_copies_beside_other_writes() {
        let directory = tempfile::tempdir().unwrap();
        let store = store_with_deleted_rows(directory.path());
        let put = |name: &'static str| {
            store.write(move |tx| {
                tx.execute("insert into settings (name, value, updated_at) values (?1, '', 0)", [name])
            })
        };
        let writes = [put("before"), put("at the same time")];
        let vacuumed = store.file().unwrap().vacuum();
        let after = put("after");
        writes.into_iter().chain([after]).for_each(|write| assert_eq!(write.wait().unwrap(), 1));
        vacuumed.wait().unwrap();
        store.file().unwrap().vacuum().wait().unwrap();
        assert_eq!(store.writer_load().wal_bytes, 0);
        assert_scrubbed(&store);
    }

    #[test]
    fn rolls_back_with_its_operation() {
        let directory = tempfile::tempdir().unwrap();
        let store = store_with_deleted_rows(directory.path());
        if !store.file().unwrap().can_scrub_pages() {
            return;
        }
        let before = dirty_pages(&store);
        let pages = before.clone();
        let undone: Result<()> = store
            .write(move |tx| {
                tx.scrub_pages(&pages)?;
                Err(Code::NotFound.into())
            })
            .wait();
        assert_eq!(undone.unwrap_err().code, Code::NotFound);
        assert_eq!(dirty_pages(&store), before);
        assert_eq!(store.file().unwrap().faults().unwrap(), Faults::default());
    }

    #[test]
    fn ignores_malformed_pages() {
        for (at, byte) in [(0, 0), (0, 3), (1, 1), (3, 9), (5, 0xff), (8, 0), (10, 0xff)] {
            let mut page = leaf();
            page[at] = byte;
            assert_eq!(gap(2, &page), None, "byte {at} = {byte}");
        }
        assert_eq!(gap(2, &[]), None);
        assert_eq!(gap(1, &leaf()), None);
    }
}
