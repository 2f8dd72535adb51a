//! The system user who runs a command, for the audit.

use std::fs;

/// The value of `/proc/self/loginuid` for processes without a login session.
const NO_LOGIN: u32 = u32::MAX;

/// Returns the name of the user who signed in to the machine, which `sudo` and `su` do not change, or else of the user
/// of the process. Returns the numeric id if the user has no name.
pub fn system_user() -> String {
    let login = fs::read_to_string("/proc/self/loginuid").ok().and_then(|text| text.trim().parse().ok());
    let user = login.filter(|user| *user != NO_LOGIN).unwrap_or_else(|| rustix::process::getuid().as_raw());
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    name_of(user, &users).unwrap_or_else(|| user.to_string())
}

fn name_of(user: u32, users: &str) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, id) = (fields.next()?, fields.next()?, fields.next()?);
        (id.parse() == Ok(user)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_names_by_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\n\nbroken\nyarrow:x:998:998::/var/lib/yarrow:/usr/sbin/nologin\n";
        assert_eq!(name_of(998, users).as_deref(), Some("yarrow"));
        assert_eq!(name_of(0, users).as_deref(), Some("root"));
        assert_eq!(name_of(1000, users), None);
        assert!(!system_user().is_empty());
    }
}
