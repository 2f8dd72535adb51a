//! A table over all code points in pages of 256. Equal pages are stored once.

use std::ops::Range;

const PAGE_BITS: u32 = 8;
const PAGE_SIZE: usize = 1 << PAGE_BITS;
/// Each block may have a shared page and one of its own, which two bytes can count.
const PAGES: usize = 0x11_0000 >> PAGE_BITS;

type Page = [u32; PAGE_SIZE];

/// A number for each code point.
#[derive(Clone)]
pub(super) struct CodePointTable {
    /// The page of each block of code points.
    blocks: Box<[u16; PAGES]>,
    pages: Vec<Page>,
    /// Blocks that have a page of their own, which may be changed.
    owned: Vec<bool>,
}

impl CodePointTable {
    /// Returns a table with 0 for every code point.
    pub(super) fn empty() -> Self {
        Self { blocks: Box::new([0; PAGES]), pages: vec![[0; PAGE_SIZE]], owned: vec![false; PAGES] }
    }

    /// Fills the blocks below `end`. Equal pages share their storage.
    pub(super) fn filled(end: u32, entry_of: impl Fn(u32) -> u32) -> Self {
        let mut table = Self::empty();
        for block in 0..end as usize >> PAGE_BITS {
            let page = std::array::from_fn(|offset| entry_of((block << PAGE_BITS | offset) as u32));
            table.blocks[block] = table.find_or_push(&page);
        }
        table
    }

    /// Sets one entry for whole blocks.
    pub(super) fn fill(&mut self, codes: Range<u32>, entry: u32) {
        let page = self.find_or_push(&[entry; PAGE_SIZE]);
        self.blocks[codes.start as usize >> PAGE_BITS..codes.end as usize >> PAGE_BITS].fill(page);
    }

    /// Returns a table of the same shape with other entries.
    pub(super) fn mapped(&self, change: impl Fn(u32) -> u32) -> Self {
        let mut table = self.clone();
        table.update(change);
        table
    }

    /// Changes all entries.
    pub(super) fn update(&mut self, change: impl Fn(u32) -> u32) {
        self.pages.iter_mut().flatten().for_each(|entry| *entry = change(*entry));
    }

    #[inline]
    pub(super) fn get(&self, character: char) -> u32 {
        let code = character as usize;
        self.pages[usize::from(self.blocks[code >> PAGE_BITS])][code % PAGE_SIZE]
    }

    /// Changes one entry; its page gets storage of its own first.
    pub(super) fn set(&mut self, character: char, entry: u32) {
        let code = character as usize;
        let block = code >> PAGE_BITS;
        if !self.owned[block] {
            self.pages.push(self.pages[usize::from(self.blocks[block])]);
            self.blocks[block] = (self.pages.len() - 1) as u16;
            self.owned[block] = true;
        }
        self.pages[usize::from(self.blocks[block])][code % PAGE_SIZE] = entry;
    }

    /// Frees memory that was reserved for further pages.
    pub(super) fn shrink_to_fit(&mut self) {
        self.pages.shrink_to_fit();
    }

    /// Returns the number of bytes on the heap.
    pub(super) fn size(&self) -> usize {
        size_of_val(&*self.blocks) + self.pages.len() * size_of::<Page>() + self.owned.len()
    }

    fn find_or_push(&mut self, page: &Page) -> u16 {
        let found = self.pages.iter().position(|stored| stored == page);
        found.unwrap_or_else(|| {
            self.pages.push(*page);
            self.pages.len() - 1
        }) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_to_a_page_keeps_equal_pages() {
        let mut table = CodePointTable::filled(0x11_0000, |code| code % 256);
        table.set('赌', 7);
        assert_eq!(table.get('赌'), 7);
        assert_eq!(table.get('博'), '博' as u32 % 256);
        assert_eq!(table.get('\u{10FFFF}'), 255);
    }
}
