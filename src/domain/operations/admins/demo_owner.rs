//! The owner of a demonstration, and the one-time link that signs them in.

use super::{Administrators, IssuedSession, create, id_of_in, issue_in, roles::Role};
use crate::{
    error::{Code, Error, Result},
    store::Pending,
    types::Secret,
};

const NAME: &str = "demo";

/// The credentials of a demonstration.
#[derive(Clone, Debug)]
pub struct DemoOwner {
    pub name: &'static str,
    pub password: Secret,
    /// The token of the link.
    pub link: Secret,
}

/// Creates the owner with a random password, and the link. Blocks on the hash.
///
/// # Errors
/// Those of [`create`].
pub fn offer(admins: &Administrators) -> Result<DemoOwner> {
    let password = Secret::random()?;
    create(admins, NAME, password.reveal(), Role::Owner)?;
    Ok(DemoOwner { name: NAME, password, link: admins.demo.issue(admins.core.clock.now())? })
}

/// Ends the link and signs in the owner.
///
/// # Errors
/// `not_found` for a wrong, used or expired link, and if this is no demonstration.
pub fn sign_in(admins: &Administrators, token: &str) -> Result<Pending<IssuedSession>> {
    let core = &admins.core;
    if !admins.demo.redeem(token, core.clock.now()) {
        let detail = (
            "This link is wrong, expired or used. Sign in with the name and password that `yarrow demo` printed.",
            "链接错误、已过期或已使用。请用 `yarrow demo` 输出的用户名和密码登录。",
        );
        return Err(Error::new(Code::NotFound).detail(detail));
    }
    let config = core.config.clone();
    Ok(core.store.write(move |tx| issue_in(tx, &config.admin, id_of_in(tx, NAME)?)))
}
