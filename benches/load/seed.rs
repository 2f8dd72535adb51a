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

pub const RECORDS_OF_READER: u64 = 40;
pub const CODE: &str = "246810";

/// A signed-in user.
#[derive(Clone, Debug)]
pub struct Account {
    pub user_id: i64,
    pub phone_number: String,
    pub token: String,
}

/// The contents of a directory.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub users: u32,
    /// Users with castings to list.
    pub readers: u32,
    /// Phone numbers with a live code for one sign-in each: this many with an account, and this many without.
    pub with_code: u32,
}

impl Size {
    /// Enough for measurements of some seconds.
    pub const LARGE: Self = Self { users: 10_000, readers: 1_000, with_code: 100_000 };
    /// Enough for counting some requests of each kind.
    pub const SMALL: Self = Self { users: 16, readers: 16, with_code: 2_400 };

    pub const fn records(self) -> u64 {
        self.readers as u64 * RECORDS_OF_READER
    }
}

pub struct Seed {
    directory: PathBuf,
    pub size: Size,
    pub accounts: Vec<Account>,
}

impl Seed {
    pub fn make(directory: &Path, size: Size) -> Result<Self, Failure> {
        let flags = BTreeMap::from([("data_dir".to_owned(), directory.to_string_lossy().into_owned())]);
        let config = load(Sources { flags, ..Sources::default() })?.config;
        let app = App::open(config, OpenMode::Server, &(Arc::new(|_: &str| {}) as _))?;
        let accounts = sign_everybody_in(&app, size)?;
        save_castings(&app, &accounts[..size.readers as usize])?;
        send_codes(&app, size)?;
        app.core.store.close();
        drop(app);
        Ok(Self { directory: directory.to_owned(), size, accounts })
    }

    /// Returns the users with castings.
    pub fn readers(&self) -> &[Account] {
        &self.accounts[..self.size.readers as usize]
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
pub fn newcomers(size: Size) -> impl Iterator<Item = String> {
    (0..size.with_code).map(|number| format!("139{number:08}"))
}

/// Phone numbers with an account, whose code is [`CODE`].
pub fn returning(size: Size) -> impl Iterator<Item = String> {
    (0..size.with_code).map(|number| format!("137{number:08}"))
}

fn sign_everybody_in(app: &App, size: Size) -> Result<Vec<Account>, Failure> {
    let limits = app.core.config.auth.clone();
    let address = |phone_number: &str| Address::Phone(PhoneNumber::from_canonical(phone_number));
    let signed_in = app.core.store.write(move |tx| {
        for phone_number in returning(size) {
            users::find_or_create_in(tx, &address(&phone_number))?;
        }
        (0..size.users)
            .map(|number| {
                let phone_number = format!("138{number:08}");
                let (user, _) = users::find_or_create_in(tx, &address(&phone_number))?;
                let token = tokens::issue_in(tx, &limits, &user, "")?.token.reveal().to_owned();
                for asset in [Asset::Coin, Asset::Point] {
                    ledger::post_in(tx, wealth_of(user.id, asset))?;
                }
                Ok(Account { user_id: user.id.0, phone_number, token })
            })
            .collect()
    });
    Ok(signed_in.wait()?)
}

/// Grants more than a run can use.
fn wealth_of(user: UserId, asset: Asset) -> Posting {
    Posting { user, asset, delta: 1_000_000_000, kind: EntryKind::Import, reference: Some(format!("seed:{user}")) }
}

fn save_castings(app: &App, readers: &[Account]) -> Result<(), Failure> {
    let casting = Casting::sample();
    for account in readers {
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
fn send_codes(app: &App, size: Size) -> Result<(), Failure> {
    let limits = app.core.config.auth.clone();
    let keys = app.core.keys.clone();
    let sent = app.core.store.write(move |tx| {
        newcomers(size).chain(returning(size)).try_for_each(|address| {
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
