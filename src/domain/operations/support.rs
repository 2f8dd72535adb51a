//! One page about a user, for the person who has them on the telephone: what they have, what they did lately, and what
//! went wrong.
//!
//! It shows that there were codes, castings and refused texts, not what stood in them: no code, no token, no question,
//! and refused texts masked as they are kept.

use crate::{
    app::App,
    domain::{
        divination::{
            history,
            interpretation::{self, CallRecord},
        },
        identity::{
            codes::{self, AddressHmac, CodeSend, LiveCode},
            tokens::{self, Device},
            user_data::{self, Issue, UserSelector},
            users::{self, Profile, StoredUser},
        },
        messaging::notifications::{self, InboxItem},
        moderation::violations,
        money::{
            ledger::{self, Account, AccountChange, Asset, Entry, changes},
            payments::{order::Order, orders},
        },
        operations::{
            audit::{self, StoredAuditEvent},
            network_log::search::{self, Logged},
        },
    },
    error::{Code, Result},
    keys::ServerKey,
    store::Read,
    types::{CursorRange, PageRequest, UserId},
};

/// Rows of each kind.
const SHOWN: u32 = 10;

/// Everything on the page.
#[derive(Clone, Debug)]
pub struct Sheet {
    pub kept: StoredUser,
    pub profile: Profile,
    pub accounts: Vec<(Asset, Account)>,
    pub issues: Vec<Issue>,
    pub devices: Vec<Device>,
    pub live_codes: Vec<LiveCode>,
    pub sent_codes: Vec<CodeSend>,
    /// The last entries of both ledgers, newest first.
    pub entries: Vec<Entry>,
    /// What people and repairs did to the accounts.
    pub changes: Vec<AccountChange>,
    pub orders: Vec<Order>,
    pub castings: i64,
    pub records: Vec<CallRecord>,
    /// Texts that were refused, masked as they are kept.
    pub violations: Vec<violations::ViolationRecord>,
    pub violations_total: i64,
    /// What the user was told in the app.
    pub notices: Vec<InboxItem>,
    pub notices_unread: usize,
    pub requests: Vec<Logged>,
    /// What administrators saw and changed of the user.
    pub audit: Vec<StoredAuditEvent>,
}

/// Reads the page. Blocks for as long as that takes.
///
/// # Errors
/// `not_found`.
pub fn show(app: &App, user: UserId) -> Result<Sheet> {
    let page = PageRequest { number: 1, size: SHOWN };
    let issues = user_data::validate(app, &UserSelector::Id(user))?.issues;
    let castings = history::count(app, user)?;
    let devices = tokens::list_devices(app, user, None)?;
    let records = interpretation::list_of_user(app, user, page)?.items;
    let orders = orders::list(app, orders::Filter { user: Some(user), state: None }, page)?.items;
    let refused = violations::ViolationQuery { user: Some(user), ..violations::ViolationQuery::default() };
    let refused = violations::list(app, &refused, page)?;
    let notices = notifications::list(app, user, CursorRange { before: None, limit: SHOWN })?.items;
    let notices_unread = notifications::unread_count(app, &app.store.read(|tx| users::find_in(tx, user))?)?;
    let mut entries = Vec::new();
    for asset in Asset::ALL {
        entries.extend(ledger::entries(app, user, asset, page)?.items);
    }
    entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.seq));
    entries.truncate(SHOWN as usize);
    app.store.read(|tx| {
        let kept = users::find_stored_in(tx, user)?.ok_or(Code::NotFound)?;
        let (live_codes, sent_codes) = codes_in(tx, &app.keys, &kept)?;
        let account = |asset| Ok((asset, ledger::account_in(tx, user, asset)?));
        let requested = search::Filter { user: Some(user), ..search::Filter::default() };
        let about = audit::Filter { user: Some(user), ..audit::Filter::default() };
        Ok(Sheet {
            profile: users::profile_in(tx, user)?,
            accounts: Asset::ALL.into_iter().map(account).collect::<Result<_>>()?,
            issues,
            devices,
            live_codes,
            sent_codes,
            entries,
            changes: changes::of_user_in(tx, user, page)?.items,
            orders,
            castings,
            records,
            violations: refused.items,
            violations_total: refused.total,
            notices,
            notices_unread,
            requests: search::list_in(tx, &requested, page)?.items,
            audit: audit::list_in(tx, &about, page)?.items,
            kept,
        })
    })
}

fn codes_in(tx: &Read<'_>, key: &ServerKey, kept: &StoredUser) -> Result<(Vec<LiveCode>, Vec<CodeSend>)> {
    let (mut live, mut sent) = (Vec::new(), Vec::new());
    for address in [&kept.phone_number, &kept.email].into_iter().flatten() {
        let recipient = AddressHmac::new(key, address);
        live.extend(codes::list_live_in(tx, &recipient)?);
        sent.extend(codes::list_sends_in(tx, &recipient, SHOWN)?);
    }
    sent.sort_unstable_by_key(|sent| std::cmp::Reverse(sent.sent_at));
    sent.truncate(SHOWN as usize);
    Ok((live, sent))
}
