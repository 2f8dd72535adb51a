//! The support page: one user's data, recent activity and problems, for the support staff.
//!
//! It lists codes, castings and refused texts without their contents: no code, token or question, and texts only masked.

use crate::{
    core::Core,
    domain::{
        divination::{
            history,
            interpretation::{self, CallRecord},
        },
        identity::{
            accounts::{self, CodeMessages},
            codes::{self, AddressHmac, CodeSend, LiveCode},
            identities::{self, UserIdentity},
            staff_notes::{self, StaffNote},
            suspensions::{self, Suspension},
            tokens::{self, Device},
            user_data::{self, Issue},
            users::{self, Profile, StoredUser},
        },
        messaging::notifications::{self, InboxItem},
        moderation::violations,
        money::{
            ledger::{self, AccountChange, Asset, LedgerAccount, LedgerEntry, changes},
            payments::{order::Order, orders},
            purchases::{purchase::StorePurchase, records},
        },
        operations::{
            admins::{self, roles::Role},
            audit::{self, StoredAuditEvent},
            network_log::{
                NetworkLog,
                search::{self, Logged, Subject},
            },
        },
    },
    error::{Code, Result},
    keys::ServerKey,
    store::Read,
    types::{CursorRange, PageRequest, UserId},
};

/// Rows of each kind.
const ROWS: u32 = 10;

/// The contents of the page.
#[derive(Clone, Debug)]
pub struct SupportPage {
    pub kept: StoredUser,
    pub profile: Profile,
    pub accounts: Vec<(Asset, LedgerAccount)>,
    pub issues: Vec<Issue>,
    /// Identities at other services with which the user signs in.
    pub identities: Vec<UserIdentity>,
    pub devices: Vec<Device>,
    pub live_codes: Vec<LiveCode>,
    pub sent_codes: Vec<CodeSend>,
    pub code_messages: CodeMessages,
    /// The newest entries of both assets.
    pub entries: Vec<LedgerEntry>,
    /// Manual changes and repairs of the accounts.
    pub changes: Vec<AccountChange>,
    pub orders: Vec<Order>,
    pub purchases: Vec<StorePurchase>,
    pub castings: i64,
    pub records: Vec<CallRecord>,
    /// Refused texts, masked.
    pub violations: Vec<violations::ViolationRecord>,
    pub violations_total: i64,
    /// Notifications in the user's inbox.
    pub notices: Vec<InboxItem>,
    pub notices_unread: usize,
    pub requests: Vec<Logged>,
    /// The newest suspensions, newest first.
    pub suspensions: Vec<Suspension>,
    pub notes: Vec<StaffNote>,
    /// Audit events about the user.
    pub audit: Vec<StoredAuditEvent>,
}

/// The reader of the page.
pub struct SupportViewer {
    pub actor: String,
    pub role: Role,
}

impl SupportViewer {
    /// Returns a manual change as the viewer sees it: of others, only owners see the name and the reason.
    fn shown_in(&self, tx: &Read<'_>, mut change: AccountChange) -> Result<AccountChange> {
        let kind = change.actor.split(':').next().unwrap_or_default();
        let is_of_staff = matches!(kind, "admin" | "key" | "cli");
        if !is_of_staff || self.role == Role::Owner || change.actor == self.actor {
            return Ok(change);
        }
        let role = admins::role_of_actor_in(tx, &change.actor)?;
        change.actor = role.map_or_else(|| kind.to_owned(), |role| role.name().to_owned());
        change.reason.clear();
        Ok(change)
    }
}

/// Collects the page. Everybody but owners sees audit events and reasons of their own only. Blocks.
///
/// # Errors
/// `not_found`.
pub fn collect(core: &Core, network_log: &NetworkLog, user: UserId, viewer: &SupportViewer) -> Result<SupportPage> {
    let page = PageRequest::of_newest(ROWS);
    let issues = core.store.read(|tx| user_data::suspected_issues_in(tx, &core.phone_rules, user))?;
    let castings = history::count(core, user)?;
    let devices = tokens::list_devices(core, user, None)?;
    let records = interpretation::list_of_user(core, user, page)?.items;
    let orders = orders::list(core, orders::OrderFilter::of_user(user), page)?.items;
    let purchases = records::list(core, records::PurchaseFilter { user: Some(user), state: None }, page)?.items;
    let refused = violations::ViolationQuery { user: Some(user), ..violations::ViolationQuery::default() };
    let refused = violations::list(core, &refused, page)?;
    let notices = notifications::list(core, user, CursorRange { before: None, limit: ROWS })?.items;
    let notices_unread = notifications::unread_count(core, &core.store.read(|tx| users::find_in(tx, user))?)?;
    let mut entries = Vec::new();
    for asset in Asset::ALL {
        entries.extend(ledger::entries(core, user, asset, page)?.items);
    }
    entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.seq));
    entries.truncate(ROWS as usize);
    let addresses: Vec<_> = core.store.read(|tx| users::find_in(tx, user))?.addresses().collect();
    let code_messages = accounts::list_code_messages(core, &addresses)?;
    let requested = search::Filter { subject: Subject::User(user), ..search::Filter::default() };
    let requests = search::list(network_log, &requested, page)?.items;
    core.store.read(|tx| {
        let kept = users::find_stored_in(tx, user)?.ok_or(Code::NotFound)?;
        let (live_codes, sent_codes) = codes_in(tx, &core.keys, &kept)?;
        let account = |asset| Ok((asset, ledger::account_in(tx, user, asset)?));
        let actor = (viewer.role != Role::Owner).then(|| viewer.actor.clone());
        let about = audit::AuditFilter { user: Some(user), actor, ..audit::AuditFilter::default() };
        let changes = changes::of_user_in(tx, user, page)?.items;
        Ok(SupportPage {
            profile: users::profile_in(tx, user)?,
            accounts: Asset::ALL.into_iter().map(account).collect::<Result<_>>()?,
            issues,
            identities: identities::of_user_in(tx, user)?,
            devices,
            live_codes,
            sent_codes,
            code_messages,
            entries,
            changes: changes.into_iter().map(|change| viewer.shown_in(tx, change)).collect::<Result<_>>()?,
            orders: orders.into_iter().map(|order| order.seen_by(viewer.role)).collect(),
            purchases,
            castings,
            records,
            violations: refused.items,
            violations_total: refused.total,
            notices,
            notices_unread,
            requests,
            suspensions: suspensions::list_in(tx, user)?,
            notes: staff_notes::list_in(tx, user)?,
            audit: audit::list_in(tx, &about, page)?.items,
            kept,
        })
    })
}

/// Collects the part of the page that moderators may see: profile, refused texts, suspensions and notes.
///
/// # Errors
/// `not_found`.
pub fn collect_for_moderator(core: &Core, user: UserId) -> Result<SupportPage> {
    let refused = violations::ViolationQuery { user: Some(user), ..violations::ViolationQuery::default() };
    let refused = violations::list(core, &refused, PageRequest::of_newest(ROWS))?;
    core.store.read(|tx| {
        Ok(SupportPage {
            kept: users::find_stored_in(tx, user)?.ok_or(Code::NotFound)?,
            profile: users::profile_in(tx, user)?,
            accounts: Vec::new(),
            issues: Vec::new(),
            identities: Vec::new(),
            devices: Vec::new(),
            live_codes: Vec::new(),
            sent_codes: Vec::new(),
            code_messages: CodeMessages { items: Vec::new(), receipts_failure: None },
            entries: Vec::new(),
            changes: Vec::new(),
            orders: Vec::new(),
            purchases: Vec::new(),
            castings: 0,
            records: Vec::new(),
            violations: refused.items,
            violations_total: refused.total,
            notices: Vec::new(),
            notices_unread: 0,
            requests: Vec::new(),
            suspensions: suspensions::list_in(tx, user)?,
            notes: staff_notes::list_in(tx, user)?,
            audit: Vec::new(),
        })
    })
}

fn codes_in(tx: &Read<'_>, key: &ServerKey, kept: &StoredUser) -> Result<(Vec<LiveCode>, Vec<CodeSend>)> {
    let (mut live, mut sent) = (Vec::new(), Vec::new());
    for address in [&kept.phone_number, &kept.email].into_iter().flatten() {
        let recipient = AddressHmac::new(key, address);
        live.extend(codes::list_live_in(tx, &recipient)?);
        sent.extend(codes::list_sends_in(tx, &recipient, ROWS)?);
    }
    sent.sort_unstable_by_key(|sent| std::cmp::Reverse(sent.sent_at));
    sent.truncate(ROWS as usize);
    Ok((live, sent))
}
