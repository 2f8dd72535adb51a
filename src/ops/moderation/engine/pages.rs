//! A table over all code points in pages of 256, of which equal ones are stored once.

const PAGE_BITS: u32 = 8;
const PAGE_SIZE: usize = 1 << PAGE_BITS;
const PAGES: usize = 0x11_0000 >> PAGE_BITS;

/// One number for each code point.
#[derive(Clone)]
pub(super) struct PageTable {
    starts: Vec<u32>,
    entries: Vec<u32>,
    /// Pages that belong to one block of code points alone and may be written to.
    owned: Vec<bool>,
}

impl PageTable {
    /// A table with 0 for every code point.
    pub(super) fn empty() -> Self {
        Self { starts: vec![0; PAGES], entries: vec![0; PAGE_SIZE], owned: vec![false; PAGES] }
    }

    /// Fills the table; neighbouring equal pages share their storage.
    pub(super) fn filled(entry_of: impl Fn(u32) -> u32) -> Self {
        let mut table = Self { starts: Vec::with_capacity(PAGES), entries: Vec::new(), owned: vec![false; PAGES] };
        let mut page = Vec::with_capacity(PAGE_SIZE);
        for block in 0..PAGES as u32 {
            page.clear();
            page.extend((0..PAGE_SIZE as u32).map(|offset| entry_of((block << PAGE_BITS) | offset)));
            let start = table.find_or_push(&page);
            table.starts.push(start);
        }
        table
    }

    /// A table of the same shape with other entries.
    pub(super) fn mapped(&self, change: impl Fn(u32) -> u32) -> Self {
        let entries = self.entries.iter().map(|&entry| change(entry)).collect();
        Self { starts: self.starts.clone(), entries, owned: self.owned.clone() }
    }

    pub(super) fn get(&self, character: char) -> u32 {
        let code = character as usize;
        self.entries[self.starts[code >> PAGE_BITS] as usize + (code & (PAGE_SIZE - 1))]
    }

    /// Changes one entry, after giving its page storage of its own.
    pub(super) fn set(&mut self, character: char, entry: u32) {
        let code = character as usize;
        let block = code >> PAGE_BITS;
        if !self.owned[block] {
            let shared = self.starts[block] as usize;
            self.starts[block] = self.entries.len() as u32;
            self.entries.extend_from_within(shared..shared + PAGE_SIZE);
            self.owned[block] = true;
        }
        self.entries[self.starts[block] as usize + (code & (PAGE_SIZE - 1))] = entry;
    }

    /// Bytes on the heap.
    pub(super) fn size(&self) -> usize {
        (self.starts.len() + self.entries.len()) * 4 + self.owned.len()
    }

    fn find_or_push(&mut self, page: &[u32]) -> u32 {
        let found = self.entries.chunks_exact(PAGE_SIZE).position(|stored| stored == page);
        let index = found.unwrap_or_else(|| {
            self.entries.extend_from_slice(page);
            self.entries.len() / PAGE_SIZE - 1
        });
        (index * PAGE_SIZE) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_to_one_page_leaves_its_twins_alone() {
        let mut table = PageTable::filled(|code| code % 256);
        table.set('赌', 7);
        assert_eq!(table.get('赌'), 7);
        assert_eq!(table.get('博'), '博' as u32 % 256);
        assert_eq!(table.get('\u{10FFFF}'), 255);
    }
}
