//! What deleted rows leave in the file, and taking it away.
//!
//! `secure_delete` overwrites a row where it stood when it was deleted. But when SQLite spreads the rows of full pages
//! over more pages, or draws those of sparse pages together, it writes a page anew and leaves the old bytes in the
//! space between the page's cell pointers and its cells: copies of rows that were moved, which no later deletion
//! reaches. Nothing ever reads that gap, and nothing clears it until new rows fill it.
//!
//! Gaps are found and filled with zeros through SQLite's own `sqlite_dbpage` table: by its pager, in transactions like
//! any other, so that a crash or another process meets either the old page or the new one. A page that does not look
//! exactly as the file format says is left as it is.
//!
//! The format: <https://www.sqlite.org/fileformat2.html#b_tree_pages>.

use std::ops::Range;

use super::{Read, Row, Write};
use crate::error::Result;

/// The first page begins with the header of the file.
const FILE_HEADER: usize = 100;
/// Other pages that are no b-tree pages begin with a page number, whose first byte tells them apart from b-tree pages
/// as long as all numbers are below this: 64 GiB of pages of 4 KiB.
const PAGES_AT_MOST: i64 = 1 << 24;

impl Read<'_> {
    /// How many pages the file has. Nothing if residue cannot be told in them, because there are too many or the file
    /// is kept in another way than this program keeps it.
    pub fn scrubbable_pages(&self) -> Result<Option<u32>> {
        let pages: i64 = self.one("pragma page_count", (), |row| row.get(0))?;
        // With auto-vacuum there are pages of another kind, and reserved space would be somebody else's.
        let auto_vacuum: i64 = self.one("pragma auto_vacuum", (), |row| row.get(0))?;
        let reserved = self.page(1, |page| page.get(20).copied())?.flatten();
        let is_known = pages < PAGES_AT_MOST && auto_vacuum == 0 && reserved == Some(0);
        Ok(u32::try_from(pages).ok().filter(|_| is_known))
    }

    /// The pages among these that have residue.
    pub fn pages_to_scrub(&self, pages: Range<u32>) -> Result<Vec<u32>> {
        let mut found = Vec::new();
        for number in pages {
            if self.page(number, |page| residue(number, page).is_some())? == Some(true) {
                found.push(number);
            }
        }
        Ok(found)
    }

    fn page<T>(&self, number: u32, look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        let look = |row: &Row<'_>| Ok(look(row.get_ref(0)?.as_blob()?));
        self.first("select data from sqlite_dbpage where pgno = ?1", [number], look)
    }
}

impl Write<'_> {
    /// Fills the residue in these pages with zeros, and says in how many there was some.
    pub fn scrub_pages(&self, pages: &[u32]) -> Result<usize> {
        let mut cleared = 0;
        for &number in pages {
            // The page may have changed since it was looked at.
            let clean = self.page(number, |page| {
                let gap = residue(number, page)?;
                let mut clean = page.to_vec();
                clean[gap].fill(0);
                Some(clean)
            })?;
            if let Some(clean) = clean.flatten() {
                cleared += self.execute("update sqlite_dbpage set data = ?2 where pgno = ?1", (number, clean))?;
            }
        }
        Ok(cleared)
    }
}

/// The unused space of a b-tree page, if it is one and the space is not all zeros.
fn residue(number: u32, page: &[u8]) -> Option<Range<usize>> {
    gap(number, page).filter(|gap| page[gap.clone()].iter().any(|byte| *byte != 0))
}

/// Where the unused space of a b-tree page is. Nothing if it is no b-tree page, or one that is not as it should be.
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
    // A page of 64 KiB without cells has a start that two bytes cannot say.
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

    /// A leaf of a table with two cells and ten bytes left over between them and their pointers.
    fn leaf() -> Vec<u8> {
        let mut page = vec![0; 512];
        page[..8].copy_from_slice(&[13, 0, 0, 0, 2, 1, 0x90, 0]);
        page[8..12].copy_from_slice(&[1, 0x90, 1, 0xc8]);
        page[0x190..].fill(7);
        page[200..210].fill(9);
        page
    }

    #[test]
    fn the_gap_lies_between_the_pointers_and_the_cells() {
        assert_eq!(gap(2, &leaf()), Some(12..0x190));
        assert_eq!(residue(2, &leaf()), Some(12..0x190));
        let mut clean = leaf();
        clean[12..0x190].fill(0);
        assert_eq!(residue(2, &clean), None);
    }

    const PEOPLE: u64 = 20_000;

    /// How many of these texts stand in the file.
    fn found(path: &Path, texts: &[String]) -> usize {
        let bytes = std::fs::read(path).unwrap();
        let wanted: HashSet<&[u8]> = texts.iter().map(String::as_bytes).collect();
        let found: HashSet<&[u8]> = bytes.windows(32).filter(|window| wanted.contains(window)).collect();
        found.len()
    }

    /// Keys as random ones come: far from their order.
    fn key(number: u64) -> String {
        hex(&sha256(&number.to_string())[..16])
    }

    #[test]
    fn copies_that_moved_rows_left_are_cleared_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("yarrow.db");
        let store = Store::open(&path, &Tuning::SMALL, Clock::default(), SchemaPolicy::Migrate).unwrap();
        let write = |operation: fn(&Write<'_>) -> Result<()>| store.write(operation).wait().unwrap();
        write(|tx| {
            tx.execute("create table people (key text primary key, note text) strict, without rowid", ())?;
            tx.execute("create table notes (id integer primary key, note text) strict", ())?;
            tx.execute("create index notes_by_note on notes (note)", ())?;
            for number in 0..PEOPLE {
                let note = "n".repeat((number * 7 % 60) as usize);
                tx.execute("insert into people (key, note) values (?1, ?2)", (key(number), note))?;
                tx.execute("insert into notes (note) values (?1)", [key(number)])?;
            }
            Ok(())
        });
        let leaving: Vec<_> = (0..PEOPLE).step_by(2).map(key).collect();
        write(|tx| {
            for number in (0..PEOPLE).step_by(2) {
                tx.execute("delete from people where key = ?1", [key(number)])?;
                tx.execute("delete from notes where note = ?1", [key(number)])?;
            }
            tx.truncate_wal_after_commit();
            Ok(())
        });
        // Deleted, and still there: this is what the whole file is about.
        assert!(found(&path, &leaving) > 0);
        let pages = store.read(|tx| tx.pages_to_scrub(1..tx.scrubbable_pages()?.unwrap() + 1)).unwrap();
        assert!(!pages.is_empty());
        let cleared = store.write(move |tx| {
            let cleared = tx.scrub_pages(&pages)?;
            tx.truncate_wal_after_commit();
            Ok((cleared, pages.len()))
        });
        let (cleared, wanted) = cleared.wait().unwrap();
        assert_eq!(cleared, wanted);
        assert_eq!(found(&path, &leaving), 0);
        assert_eq!(
            store.read(|tx| tx.pages_to_scrub(1..tx.scrubbable_pages()?.unwrap() + 1)).unwrap(),
            Vec::<u32>::new()
        );
        let faults = store.faults().unwrap();
        assert!(faults == Faults::default(), "{faults:?}");
        let stays: Vec<String> =
            store.read(|tx| tx.all("select key from people order by key", (), |row| row.get(0))).unwrap();
        let mut expected: Vec<_> = (0..PEOPLE).filter(|number| number % 2 != 0).map(key).collect();
        expected.sort();
        assert_eq!(stays, expected);
        // The pages that were cleared take new rows as before.
        write(|tx| {
            (0..PEOPLE).step_by(2).try_for_each(|number| {
                tx.execute("insert into people (key, note) values (?1, 'again')", [key(number)])?;
                tx.execute("insert into notes (note) values (?1)", [key(number)]).map(drop)
            })
        });
        assert_eq!(store.faults().unwrap(), Faults::default());
    }

    #[test]
    fn what_is_cleared_is_undone_with_its_operation() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("yarrow.db");
        let store = Store::open(&path, &Tuning::SMALL, Clock::default(), SchemaPolicy::Migrate).unwrap();
        let filled = store.write(|tx| {
            (0..2_000).try_for_each(|number| {
                let put = "insert into settings (name, value, updated_at) values (?1, '', 0)";
                tx.execute(put, [key(number)]).map(drop)
            })
        });
        filled.wait().unwrap();
        let residue = || store.read(|tx| tx.pages_to_scrub(1..tx.scrubbable_pages()?.unwrap() + 1)).unwrap();
        let before = residue();
        assert!(!before.is_empty());
        let pages = before.clone();
        let undone: Result<()> = store
            .write(move |tx| {
                tx.scrub_pages(&pages)?;
                Err(Code::NotFound.into())
            })
            .wait();
        assert_eq!(undone.unwrap_err().code, Code::NotFound);
        assert_eq!(residue(), before);
        assert_eq!(store.faults().unwrap(), Faults::default());
    }

    #[test]
    fn a_page_that_is_not_as_it_should_be_has_no_gap() {
        for (at, byte) in [(0, 0), (0, 3), (1, 1), (3, 9), (5, 0xff), (8, 0), (10, 0xff)] {
            let mut page = leaf();
            page[at] = byte;
            assert_eq!(gap(2, &page), None, "byte {at} = {byte}");
        }
        assert_eq!(gap(2, &[]), None);
        assert_eq!(gap(1, &leaf()), None);
    }
}
