//! The users that a request names in addition to its token.

use crate::types::{PhoneNumber, UserId};

/// Users that a request names. They are compared with the caller, or looked up for an administrator.
#[derive(Default)]
pub struct Claims {
    pub user_id: Option<UserId>,
    pub id: Option<UserId>,
    pub phone_number: Option<PhoneNumber>,
}

impl Claims {
    pub fn of_user(user_id: Option<UserId>) -> Self {
        Self { user_id, ..Self::default() }
    }

    pub fn of_phone(phone_number: Option<PhoneNumber>) -> Self {
        Self { phone_number, ..Self::default() }
    }

    pub fn users(&self) -> impl Iterator<Item = UserId> {
        self.user_id.into_iter().chain(self.id)
    }

    pub fn is_empty(&self) -> bool {
        self.users().next().is_none() && self.phone_number.is_none()
    }
}
