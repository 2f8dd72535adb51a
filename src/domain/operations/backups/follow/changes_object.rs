//! Names of the objects with changed pages: `changes/TERM/NUMBER-TIME-BASE`.

use std::path::PathBuf;

use super::super::{PREFIX, SUFFIX, offsite::Bucket, parse_name, parse_time};
use crate::{error::Result, types::Timestamp};

pub(super) const CHANGES: &str = "changes/";

/// An object with changed pages, as its name describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangesObject {
    pub term: u64,
    pub seq: u64,
    pub at: Timestamp,
    /// The name of the backup at the start of the chain.
    pub base: String,
    /// The name below the prefix of the bucket.
    pub name: String,
    pub bytes: u64,
}

impl ChangesObject {
    pub(super) fn new(term: u64, seq: u64, at: Timestamp, base: &str) -> Self {
        let time = at.to_string().replace(['-', ':'], "");
        let stem = base.strip_prefix(PREFIX).and_then(|name| name.strip_suffix(SUFFIX)).unwrap_or(base);
        let name = format!("{CHANGES}{term:08}/{seq:08}-{time}-{stem}");
        Self { term, seq, at, base: base.to_owned(), name, bytes: 0 }
    }

    /// Parses a name below the prefix of the bucket. Returns nothing for any other object.
    pub(super) fn parse(name: &str, bytes: u64) -> Option<Self> {
        let (term, rest) = name.strip_prefix(CHANGES)?.split_once('/')?;
        let mut parts = rest.splitn(3, '-');
        let (seq, at, stem) = (parts.next()?.parse().ok()?, parse_time(parts.next()?)?, parts.next()?);
        let base = format!("{PREFIX}{stem}{SUFFIX}");
        parse_name(&base, PathBuf::new(), 0)?;
        Some(Self { term: term.parse().ok()?, seq, at, base, name: name.to_owned(), bytes })
    }

    /// Returns the position in the order of all objects.
    pub const fn rank(&self) -> (u64, u64) {
        (self.term, self.seq)
    }
}

impl Bucket {
    /// Lists the objects with changed pages, in their order.
    ///
    /// # Errors
    /// Those of the provider.
    pub fn list_changes(&self) -> Result<Vec<ChangesObject>> {
        self.list_changes_after(None)
    }

    /// Lists the objects with changed pages after the one with this name.
    pub(super) fn list_changes_after(&self, name: Option<&str>) -> Result<Vec<ChangesObject>> {
        let after = name.map(|name| self.key(name));
        let objects = self.storage.list_after(&self.key(CHANGES), after.as_deref())?;
        let mut changes: Vec<_> = objects.into_iter().filter_map(|object| self.changes_object(&object)).collect();
        changes.sort_unstable_by_key(ChangesObject::rank);
        Ok(changes)
    }

    pub(super) fn changes_object(&self, object: &crate::providers::object_storage::Object) -> Option<ChangesObject> {
        ChangesObject::parse(object.key.strip_prefix(&self.prefix)?, object.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_contain_term_number_time_and_base() {
        let base = "yarrow-20260102T020000.000Z-before-cleanup.db";
        let object = ChangesObject::new(12, 345, Timestamp(1_767_323_045_678), base);
        let name = "changes/00000012/00000345-20260102T030405.678Z-20260102T020000.000Z-before-cleanup";
        assert_eq!(object.name, name);
        assert_eq!(ChangesObject::parse(name, 0), Some(object));
        for other in ["changes/12/1-20260102T030405.678Z-x", "changes/12/1", "terms/00000012", &name[..60]] {
            assert_eq!(ChangesObject::parse(other, 0), None, "{other}");
        }
    }
}
