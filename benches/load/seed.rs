//! One data directory, filled by the service's own operations and copied for every start.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use yarrow::{
    app::{App, OpenMode},
    config::{Sources, load},
    domain::{
        divination::history::{self, HistoryDraft, HistoryEdit},
        identity::{
            codes::{self, AddressHmac, ClientNetworks, NewCode, Purpose},
            tokens,
            users::{self, Address},
        },
        money::ledger::{self, Asset, EntryKind, Posting},
    },
    types::{JsonText, PhoneNumber, UserId},
};

use crate::{support::Failure, workload::Casting};

pub const USERS: u32 = 10_000;
/// Users with castings to list.
pub const READERS: u32 = 1_000;
pub const RECORDS_OF_READER: u64 = 40;
pub const SEEDED_RECORDS: u64 = READERS as u64 * RECORDS_OF_READER;
/// Phone numbers with a live code for one sign-in each: this many with an account, and this many without.
const WITH_CODE: u32 = 100_000;
pub const CODE: &str = "246810";

/// A signed-in user.
#[derive(Clone, Debug)]
pub struct Account {
    pub user_id: i64,
    pub phone_number: String,
    pub token: String,
}

pub struct Seed {
    directory: PathBuf,
    pub accounts: Vec<Account>,
}

impl Seed {
    pub fn make(directory: &Path) -> Result<Self, Failure> {
        let flags = BTreeMap::from([("data_dir".to_owned(), directory.to_string_lossy().into_owned())]);
        let config = load(Sources { flags, ..Sources::default() })?.config;
        let app = App::open(config, OpenMode::Server, &(Arc::new(|_: &str| {}) as _))?;
        let accounts = sign_everybody_in(&app)?;
        save_castings(&app, &accounts)?;
        send_codes(&app)?;
        app.core.store.close();
        drop(app);
        Ok(Self { directory: directory.to_owned(), accounts })
    }

    /// Returns the users with castings.
    pub fn readers(&self) -> &[Account] {
        &self.accounts[..READERS as usize]
    }

    pub fn copy_to(&self, directory: &Path) -> Result<(), Failure> {
        if directory.exists() {
            std::fs::remove_dir_all(directory)?;
        }
        std::fs::create_dir_all(directory)?;
        for file in ["yarrow.db", "secret.key"] {
            std::fs::copy(self.directory.join(file), directory.join(file))?;
            std::fs::File::open(directory.join(file))?.sync_all()?;
        }
        Ok(())
    }
}

/// Phone numbers without an account, whose code is [`CODE`].
pub fn newcomers() -> impl Iterator<Item = String> {
    (0..WITH_CODE).map(|number| format!("139{number:08}"))
}

/// Phone numbers with an account, whose code is [`CODE`].
pub fn returning() -> impl Iterator<Item = String> {
    (0..WITH_CODE).map(|number| format!("137{number:08}"))
}

fn sign_everybody_in(app: &App) -> Result<Vec<Account>, Failure> {
    let limits = app.core.config.auth.clone();
    let address = |phone_number: &str| Address::Phone(PhoneNumber::from_canonical(phone_number));
    let signed_in = app.core.store.write(move |tx| {
        for phone_number in returning() {
            users::find_or_create_in(tx, &address(&phone_number))?;
        }
        (0..USERS)
            .map(|number| {
                let phone_number = format!("138{number:08}");
                let (user, _) = users::find_or_create_in(tx, &address(&phone_number))?;
                let token = tokens::issue_in(tx, &limits, &user, "")?.token.reveal().to_owned();
                ledger::post_in(tx, coins_of(user.id))?;
                Ok(Account { user_id: user.id.0, phone_number, token })
            })
            .collect()
    });
    Ok(signed_in.wait()?)
}

/// Grants more coins than a run can use.
fn coins_of(user: UserId) -> Posting {
    Posting {
        user,
        asset: Asset::Coin,
        delta: 1_000_000_000,
        kind: EntryKind::Import,
        reference: Some(format!("seed:{user}")),
    }
}

fn save_castings(app: &App, accounts: &[Account]) -> Result<(), Failure> {
    let casting = Casting::sample();
    for account in &accounts[..READERS as usize] {
        let saves: Vec<_> = (0..RECORDS_OF_READER)
            .map(|number| {
                let draft = HistoryDraft {
                    local_record_id: format!("seeded-{number}").into(),
                    question_type: Some(casting.question_type.into()),
                    question: Some(casting.question.into()),
                    json_data: Some(JsonText::from_stored(casting.json_data.clone())),
                    ai_result: None,
                    client_timestamp: Some(JsonText::from_stored(casting.timestamp.to_string())),
                };
                history::save(&app.core, UserId(account.user_id), HistoryEdit { draft, base_version: None })
            })
            .collect();
        for save in saves {
            let _ = save.wait()?;
        }
    }
    Ok(())
}

/// Returns the networks of the clients of the measurement.
fn here() -> ClientNetworks {
    ClientNetworks::of(Ipv4Addr::LOCALHOST.into())
}

/// Creates a live code for every sign-in, valid for longer than the measurement takes.
fn send_codes(app: &App) -> Result<(), Failure> {
    let limits = app.core.config.auth.clone();
    let keys = app.core.keys.clone();
    let sent = app.core.store.write(move |tx| {
        newcomers().chain(returning()).try_for_each(|address| {
            let hmac = codes::compute_hmac(&keys, &address, Purpose::SignIn, CODE);
            let recipient = AddressHmac::new(&keys, &address);
            let lifetime = Duration::from_hours(24);
            codes::store_in(
                tx,
                &limits,
                &NewCode { recipient, client: here(), purpose: Purpose::SignIn, hmac, lifetime },
            )
        })
    });
    Ok(sent.wait()?)
}
