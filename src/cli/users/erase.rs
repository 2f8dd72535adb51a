//! `yarrow users erase`: deletes an account for a user who cannot delete it in the app.

use serde_json::json;

use crate::cli::{Common, cli_authority, record_audit};
use crate::{
    app::App,
    domain::{
        identity::{
            accounts::{self, DeletionActor},
            users::User,
        },
        operations::network_log,
    },
    error::{Code, Result},
    types::pluralize,
};

/// Deletes the account, after confirmation.
pub fn erase(common: &Common, app: &App, user: &User, reason: Option<String>, yes: bool) -> Result<()> {
    let lost = accounts::find(&app.core, user.id)?.after_deletion;
    let question = format!(
        "Delete user {} and all personal data, with {} and {}? Existing backups keep their copy.",
        user.id,
        pluralize(lost.coins_lost, "coin", "coins"),
        pluralize(lost.points_lost, "point that is not parked", "points that are not parked"),
    );
    common.confirm(yes, &question)?;
    let by = cli_authority(reason);
    match accounts::erase(&app.core, user.id, DeletionActor::Operator) {
        Err(error) if error.code == Code::AccountInconsistent => {
            return Err(error.english_detail(format!(
                "The points balance disagrees with the ledger. Run `yarrow points repair {}` first.",
                user.id
            )));
        }
        erased => erased?,
    }
    network_log::erasure::run(&app.network_log)?;
    record_audit(app, "users erase", Some(user.id), by)?;
    common.output(&json!({ "userId": user.id, "erased": true }), || format!("deleted user {}", user.id))
}
