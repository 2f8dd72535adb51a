//! Tables as such, whatever is in them: how many rows each has, and emptying them all at once.
//!
//! This is the one place that writes to tables without being their owner, because emptying everything must not miss a
//! table that is added later.

use super::{Read, Write};
use crate::error::Result;

impl Read<'_> {
    /// Every table of the schema.
    pub fn tables(&self) -> Result<Vec<String>> {
        self.all(
            "select name from sqlite_schema where type = 'table' and name not like 'sqlite!_%' escape '!' order by name",
            (),
            |row| row.get(0),
        )
    }

    /// How many rows a table of the schema has.
    pub fn count_rows(&self, table: &str) -> Result<i64> {
        self.one(&format!("select count(*) from {}", quoted(table)), (), |row| row.get(0))
    }
}

impl Write<'_> {
    /// Deletes every row of these tables, also of those with triggers that refuse it: these are gone for as long as
    /// that takes, and come back in the same transaction.
    pub fn empty(&self, tables: &[String]) -> Result<()> {
        // Children may stand behind their parents in the list.
        self.execute("pragma defer_foreign_keys = on", ())?;
        for table in tables {
            let triggers: Vec<(String, String)> = self.all(
                "select name, sql from sqlite_schema where type = 'trigger' and tbl_name = ?1 and sql like '%raise(%'",
                [table],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
            for (name, _) in &triggers {
                self.execute(&format!("drop trigger {}", quoted(name)), ())?;
            }
            self.execute(&format!("delete from {}", quoted(table)), ())?;
            for (_, definition) in &triggers {
                self.execute(definition, ())?;
            }
        }
        Ok(())
    }
}

pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
