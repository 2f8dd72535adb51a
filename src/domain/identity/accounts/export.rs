//! Exports all stored data of a user as one JSON document.
//!
//! Writes it row by row from one snapshot, so that an account of any size is complete and takes little memory. Logged
//! requests come from a snapshot of the network log.

use std::{
    io::{self, BufWriter, Write},
    sync::Arc,
};

use serde_json::{Value, json};

use crate::{
    concurrency::semaphore::{KeyedMutex, Semaphore},
    core::Core,
    domain::{
        Each,
        divination::{budget, chat, history, interpretation, sessions},
        identity::{
            codes::{AddressHmac, messages},
            identities, preferences, staff_notes, suspensions, tokens, users,
        },
        messaging::{feedback, notifications, push_queue},
        moderation::{reviews, shadow_mode, violations},
        money::{
            invites,
            ledger::{self, Asset},
            payments, purchases,
        },
        operations::{
            active_users, imports,
            network_log::{NetworkLog, search},
        },
    },
    error::{Error, Result},
    keys::ServerKey,
    store::{Read, files},
    types::UserId,
};

/// Limits on exports: one per user, and at most half of the connections for long reads.
pub struct Exports {
    pub core: Core,
    pub network_log: Arc<NetworkLog>,
    pub running: Semaphore,
    /// Users whose export is being made or downloaded.
    pub by_user: KeyedMutex<UserId>,
}

impl Exports {
    pub fn new(core: Core, network_log: Arc<NetworkLog>) -> Self {
        let running = Semaphore::new(core.config.database.long_reads.div_ceil(2));
        Self { core, network_log, running, by_user: KeyedMutex::default() }
    }
}

/// Writes all stored data of the user.
///
/// # Errors
/// `not_found`; `overloaded` if too many exports are running; `storage_full` and `storage_failed` if writing fails.
pub fn export(exports: &Exports, user: UserId, out: &mut dyn Write) -> Result<()> {
    let _place = exports.running.try_acquire()?;
    let home = &exports.core.config.limits.time_zone;
    let mut out = BufWriter::new(out);
    exports.core.store.read(|tx| {
        let mut document = Document::begin(&mut out)?;
        document.member("exportedAt", &json!(tx.now))?;
        document.member("account", &account_in(tx, user)?)?;
        document.list("importedFrom", |each| imports::export_in(tx, user, each))?;
        document.list("identities", |each| identities::export_in(tx, user, each))?;
        document.list("devices", |each| tokens::export_in(tx, user, each))?;
        document.list("codeMessages", |each| code_messages_in(tx, &exports.core.keys, user, each))?;
        document.list("points", |each| ledger::export_in(tx, user, Asset::Point, each))?;
        document.list("coins", |each| ledger::export_in(tx, user, Asset::Coin, each))?;
        document.list("corrections", |each| ledger::export_changes_in(tx, user, each))?;
        document.list("orders", |each| payments::export_in(tx, user, each))?;
        document.list("purchases", |each| purchases::records::export_in(tx, user, each))?;
        document.list("history", |each| history::export_in(tx, user, each))?;
        document.list("interpretations", |each| interpretation::export_in(tx, user, each))?;
        document.list("sessions", |each| sessions::export_in(tx, user, each))?;
        document.list("chats", |each| chat::export_in(tx, user, each))?;
        document.list("modelUse", |each| budget::export_in(tx, home, user, each))?;
        document.member("invites", &invites::export_in(tx, user)?)?;
        document.member("preferences", &preferences::export_in(tx, user)?)?;
        document.list("notifications", |each| notifications::export_in(tx, user, each))?;
        document.list("notificationMarks", |each| notifications::export_marks_in(tx, user, each))?;
        document.list("pushDevices", |each| push_queue::export_in(tx, user, each))?;
        document.list("feedback", |each| feedback::export_in(tx, user, each))?;
        document.list("suspensions", |each| suspensions::export_in(tx, user, each))?;
        document.list("staffNotes", |each| staff_notes::export_in(tx, user, each))?;
        document.list("violations", |each| violations::export_in(tx, user, each))?;
        document.list("reviews", |each| reviews::export_in(tx, user, each))?;
        document.list("disagreements", |each| shadow_mode::export_in(tx, user, each))?;
        document.list("activeDays", |each| active_users::export_in(tx, user, each))?;
        document.list("requests", |each| search::export(&exports.network_log, user, each))?;
        document.end()
    })
}

fn code_messages_in(tx: &Read<'_>, key: &ServerKey, user: UserId, each: Each<'_>) -> Result<()> {
    users::find_in(tx, user)?
        .addresses()
        .try_for_each(|address| messages::export_in(tx, &AddressHmac::new(key, address.as_str()), each))
}

fn account_in(tx: &Read<'_>, id: UserId) -> Result<Value> {
    let (user, profile) = (users::find_in(tx, id)?, users::profile_in(tx, id)?);
    Ok(json!({
        "id": user.id,
        "email": user.email,
        "phoneNumber": user.phone_number,
        "nickname": profile.nickname,
        "gender": profile.gender.name(),
        "birthday": profile.birthday,
        "signature": profile.signature,
        "createdAt": user.created_at,
        "storeAccount": purchases::accounts::export_in(tx, id)?,
        "points": ledger::balance_in(tx, id, Asset::Point)?,
        "coins": ledger::balance_in(tx, id, Asset::Coin)?,
    }))
}

/// A writer of a JSON object, member by member.
struct Document<'out> {
    out: &'out mut dyn Write,
    is_first: bool,
}

impl<'out> Document<'out> {
    fn begin(out: &'out mut dyn Write) -> Result<Self> {
        out.write_all(b"{").map_err(unwritable)?;
        Ok(Self { out, is_first: true })
    }

    fn member(&mut self, name: &str, value: &Value) -> Result<()> {
        self.name(name)?;
        write_value(self.out, value)
    }

    /// Writes a list whose items `fill` passes one by one.
    fn list(&mut self, name: &str, fill: impl FnOnce(Each<'_>) -> Result<()>) -> Result<()> {
        self.name(name)?;
        self.out.write_all(b"[").map_err(unwritable)?;
        let (out, mut separator) = (&mut *self.out, "\n");
        fill(&mut |item| {
            out.write_all(separator.as_bytes()).map_err(unwritable)?;
            separator = ",\n";
            write_value(out, &item)
        })?;
        self.out.write_all(b"]").map_err(unwritable)
    }

    fn name(&mut self, name: &str) -> Result<()> {
        let separator = if self.is_first { "\n" } else { ",\n" };
        self.is_first = false;
        write!(self.out, "{separator}\"{name}\": ").map_err(unwritable)
    }

    fn end(self) -> Result<()> {
        self.out.write_all(b"\n}\n").and_then(|()| self.out.flush()).map_err(unwritable)
    }
}

fn write_value(out: &mut dyn Write, value: &Value) -> Result<()> {
    serde_json::to_writer(out, value).map_err(|error| unwritable(error.into()))
}

fn unwritable(error: io::Error) -> Error {
    Error::new(files::storage_code(&error))
        .detail(("The export could not be written.", "无法写入导出文件。"))
        .caused_by(error)
}
