//! Parses the tables under `assets/` at compile time.
//!
//! A missing, short or misspelt row fails the build and not the service. All functions are `const`, so they use loops
//! over bytes instead of iterators.

/// Splits a tab-separated table with a heading row into exactly `ROWS` rows of `COLUMNS` cells.
///
/// Any other shape and any empty cell is a compile error in a constant.
pub const fn cells<const ROWS: usize, const COLUMNS: usize>(table: &'static str) -> [[&'static str; COLUMNS]; ROWS] {
    let bytes = table.as_bytes();
    let mut cells = [[""; COLUMNS]; ROWS];
    let mut start = heading_length(bytes);
    let mut row = 0;
    while row < ROWS {
        let mut column = 0;
        while column < COLUMNS {
            let end = cell_end(bytes, start);
            let is_last = column + 1 == COLUMNS;
            assert!(end > start, "a cell of the table is empty");
            assert!((bytes[end] == b'\n') == is_last, "a row of the table has too few or too many cells");
            cells[row][column] = slice(table, start, end);
            start = end + 1;
            column += 1;
        }
        row += 1;
    }
    assert!(start == bytes.len(), "the table has too many rows");
    cells
}

/// Parses a cell of `0` (yin) and `1` (yang), written from the bottom, into bits: the bottom line is bit 0.
pub const fn figure(cell: &str, line_count: usize) -> u8 {
    let bytes = cell.as_bytes();
    assert!(bytes.len() == line_count, "a figure has the wrong number of lines");
    let mut bits = 0;
    let mut line = 0;
    while line < line_count {
        assert!(matches!(bytes[line], b'0' | b'1'), "a line of a figure is neither 0 nor 1");
        if bytes[line] == b'1' {
            bits |= 1 << line;
        }
        line += 1;
    }
    bits
}

/// Parses a decimal number that must equal the position of its row, counted from one.
pub const fn assert_number(cell: &str, expected: usize) {
    let bytes = cell.as_bytes();
    let mut number = 0;
    let mut digit = 0;
    while digit < bytes.len() {
        assert!(bytes[digit].is_ascii_digit(), "a number is not decimal");
        number = number * 10 + (bytes[digit] - b'0') as usize;
        digit += 1;
    }
    assert!(number == expected, "a row is out of order");
}

/// Parses a decimal integer.
pub const fn integer(cell: &str) -> i64 {
    let bytes = cell.as_bytes();
    let is_negative = matches!(bytes, [b'-', ..]);
    let number = digits(bytes, if is_negative { 1 } else { 0 }, bytes.len());
    if is_negative { -number } else { number }
}

/// Parses a date such as `2026-02-17` into days since 1970-01-01.
pub const fn day(cell: &str) -> i64 {
    let bytes = cell.as_bytes();
    assert!(bytes.len() == 10 && bytes[4] == b'-' && bytes[7] == b'-', "a date is not written as yyyy-mm-dd");
    let (year, month, day) = (digits(bytes, 0, 4), digits(bytes, 5, 7), digits(bytes, 8, 10));
    assert!(1 <= month && month <= 12 && 1 <= day && day <= 31, "there is no such date");
    // Years begin in March here, so that the leap day is the last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469
}

const fn digits(bytes: &[u8], start: usize, end: usize) -> i64 {
    assert!(start < end, "a number has no digits");
    let mut number = 0;
    let mut place = start;
    while place < end {
        assert!(bytes[place].is_ascii_digit(), "a number is not decimal");
        number = number * 10 + (bytes[place] - b'0') as i64;
        place += 1;
    }
    number
}

const fn heading_length(bytes: &[u8]) -> usize {
    let mut end = cell_end(bytes, 0);
    while bytes[end] != b'\n' {
        end = cell_end(bytes, end + 1);
    }
    end + 1
}

const fn cell_end(bytes: &[u8], start: usize) -> usize {
    let mut end = start;
    while end < bytes.len() {
        let byte = bytes[end];
        if byte == b'\t' || byte == b'\n' {
            break;
        }
        // Steps over Chinese characters whole: constants are evaluated slowly, and the classics have 170 kB.
        end += if byte >= 0xE0 { 3 } else { 1 };
    }
    assert!(end < bytes.len(), "the table ends in the middle of a row");
    end
}

const fn slice(text: &'static str, start: usize, end: usize) -> &'static str {
    let (head, _) = text.split_at(end);
    let (_, cell) = head.split_at(start);
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_a_table_into_cells() {
        assert_eq!(cells::<2, 2>("heading\tx\na\tb\n乾\td\n"), [["a", "b"], ["乾", "d"]]);
    }

    #[test]
    fn rejects_malformed_tables() {
        let malformed = [
            "h\th\na\tb\n",
            "h\th\na\tb\nc\td\ne\tf\n",
            "h\th\na\nc\td\n",
            "h\th\na\tb\tc\nd\te\n",
            "h\th\na\t\nc\td\n",
            "h\th\na\tb\nc\td",
        ];
        for table in malformed {
            let outcome = std::panic::catch_unwind(|| cells::<2, 2>(table));
            assert!(outcome.is_err(), "accepted {table:?}");
        }
    }

    #[test]
    fn a_figure_is_read_bottom_up() {
        assert_eq!(figure("100010", 6), 0b01_0001);
        assert!(std::panic::catch_unwind(|| figure("10001", 6)).is_err());
        assert!(std::panic::catch_unwind(|| figure("100012", 6)).is_err());
    }

    #[test]
    fn integers_and_dates_are_read() {
        assert_eq!([integer("0"), integer("-2208578163"), integer("4133980799")], [0, -2_208_578_163, 4_133_980_799]);
        assert_eq!([day("1970-01-01"), day("1969-12-31"), day("1899-02-10")], [0, -1, -25_892]);
        assert_eq!([day("2000-02-29"), day("2000-03-01"), day("2100-12-31")], [11_016, 11_017, 47_846]);
        for malformed in ["", "-", "1x", "+1"] {
            assert!(std::panic::catch_unwind(|| integer(malformed)).is_err(), "accepted {malformed:?}");
        }
        for malformed in ["2026-1-01", "2026-13-01", "2026-01-00", "2026/01/01"] {
            assert!(std::panic::catch_unwind(|| day(malformed)).is_err(), "accepted {malformed:?}");
        }
    }

    #[test]
    fn a_row_number_must_match_its_position() {
        assert_number("64", 64);
        assert!(std::panic::catch_unwind(|| assert_number("63", 64)).is_err());
        assert!(std::panic::catch_unwind(|| assert_number("6x", 6)).is_err());
    }
}
