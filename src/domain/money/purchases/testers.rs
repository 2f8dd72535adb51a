//! Testers: the users whose purchases in a store's sandbox are credited. Reviewers of the stores are among them.

use crate::{domain::identity::users, error::Result, store::Read, types::UserId};

/// Returns true if the list names the user by id, email address or phone number.
pub(super) fn is_tester_in(tx: &Read<'_>, testers: &[String], user: UserId) -> Result<bool> {
    if testers.is_empty() {
        return Ok(false);
    }
    let user = users::find_in(tx, user)?;
    let names = [
        Some(user.id.to_string()),
        user.email.map(|email| email.to_string()),
        user.phone_number.map(|number| number.as_str().to_owned()),
    ];
    let is_listed = |name: &String| testers.iter().any(|tester| tester.eq_ignore_ascii_case(name));
    Ok(names.iter().flatten().any(is_listed))
}
