//! Roles of administrators and API keys, and the rights that each role has.
//!
//! Every endpoint of administrators names one right in the route table. The command line has every right: who can read
//! the data directory can change it anyway.

use crate::{
    error::{Code, Error, Result},
    types::named_enum,
};

named_enum! {
    /// The role of an administrator or API key.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Role {
        ReadOnly = "read-only",
        Support = "support",
        Moderator = "moderator",
        Owner = "owner",
    }
}

/// A group of operations that a role permits or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Ends the caller's own session.
    OwnSession,
    /// Reads figures and health.
    ViewFigures,
    /// Finds users and reads their state, suspensions and notes; writes notes.
    FindUsers,
    /// Reads the data of users and helps them: asks a payment provider, repairs accounts, signs out devices, answers
    /// feedback.
    SupportUsers,
    /// Adds coins to an account, for support within limits.
    GrantCoins,
    /// Reads and decides about rejected texts, and changes the word list.
    Moderate,
    /// Reads the audit; all roles but the owner's see their own events only.
    ViewAudit,
    /// Moves money, deletes data, sends broadcasts, publishes releases, and manages administrators and settings.
    Administer,
}

impl Role {
    /// Returns true if the role has the right.
    pub const fn has(self, right: Right) -> bool {
        match right {
            Right::OwnSession | Right::ViewFigures => true,
            Right::SupportUsers | Right::GrantCoins => matches!(self, Self::Support | Self::Owner),
            Right::FindUsers => matches!(self, Self::Support | Self::Moderator | Self::Owner),
            Right::Moderate => matches!(self, Self::Moderator | Self::Owner),
            Right::ViewAudit => matches!(self, Self::Support | Self::Moderator | Self::Owner),
            Right::Administer => matches!(self, Self::Owner),
        }
    }

    /// Rejects a role without the right.
    ///
    /// # Errors
    /// `forbidden`, naming the roles that have the right.
    pub fn require(self, right: Right) -> Result<()> {
        if self.has(right) {
            return Ok(());
        }
        let able: Vec<_> = Self::ALL.into_iter().filter(|role| role.has(right)).map(Self::name).collect();
        let (role, able) = (self.name(), able.join(", "));
        let detail = (
            format!("The role `{role}` does not allow this. It requires: {able}."),
            format!("角色 `{role}` 没有此权限，需要：{able}。"),
        );
        Err(Error::new(Code::Forbidden).detail(detail))
    }
}

impl Right {
    pub const ALL: [Self; 8] = [
        Self::OwnSession,
        Self::ViewFigures,
        Self::FindUsers,
        Self::SupportUsers,
        Self::GrantCoins,
        Self::Moderate,
        Self::ViewAudit,
        Self::Administer,
    ];

    /// Returns the roles that have the right, for the API document.
    pub const fn roles(self) -> &'static str {
        match self {
            Self::OwnSession | Self::ViewFigures => "Every role may do this.",
            Self::FindUsers => "Roles: support, moderator, owner.",
            Self::SupportUsers => "Roles: support, owner.",
            Self::GrantCoins => "Roles: support within limits, owner.",
            Self::Moderate => "Roles: moderator, owner.",
            Self::ViewAudit => "Roles: support and moderator for their own events, owner.",
            Self::Administer => "Role: owner.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_has_every_right_and_the_description_names_the_roles() {
        for right in Right::ALL {
            assert!(Role::Owner.has(right), "{right:?}");
            let described = |role: Role| right.roles().contains("Every role") || right.roles().contains(role.name());
            for role in Role::ALL {
                assert_eq!(role.has(right), described(role), "{role:?} {right:?}");
            }
        }
    }
}
