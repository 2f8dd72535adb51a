//! Operations on all tables: listing, counting and emptying.
//!
//! Only this module writes to tables that it does not own, so that emptying everything includes tables added later.

use super::{Read, Write};
use crate::error::Result;

impl Read<'_> {
    /// Returns the names of all tables.
    pub fn tables(&self) -> Result<Vec<String>> {
        let sql = if self.is_of_file() {
            "select name from sqlite_schema where type = 'table' and name not like 'sqlite!_%' escape '!' order by name"
        } else {
            "select cast(tablename as text) from pg_tables where schemaname = current_schema() \
             and tablename not in ('store_copies', 'store_state') order by 1"
        };
        self.all(sql, (), |row| row.get(0))
    }

    /// Counts the rows of a table.
    pub fn count_rows(&self, table: &str) -> Result<i64> {
        self.one(&format!("select count(*) from {}", quoted(table)), (), |row| row.get(0))
    }
}

impl Write<'_> {
    /// Deletes all rows of these tables. Triggers that forbid it are dropped and restored in the same transaction.
    pub fn empty(&self, tables: &[String]) -> Result<()> {
        if !self.is_of_file() {
            let names: Vec<_> = tables.iter().map(|table| quoted(table)).collect();
            return if names.is_empty() {
                Ok(())
            } else {
                // No trigger sees it.
                self.execute(&format!("truncate {}", names.join(", ")), ()).map(drop)
            };
        }
        // Parents may precede their children in the list.
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
