//! The list of users for the staff, with filters and cursors. Addresses are masked, and counts stop at a cap.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    suspensions::{self, Suspension},
    users::{
        self, Address,
        listing::{self, RegistrationRange, UserSummary, mask_address},
    },
};
use crate::{
    core::Core,
    domain::money::ledger::{self, Asset},
    error::{Error, Fault, FieldCode, Result},
    store::Read,
    types::{EmailAddress, PhoneNumber, PhoneRules, Timestamp, UserId, named_enum},
};

/// Counting stops at this total, which then means "more than this".
pub const COUNTED: u32 = 10_000;
/// The largest number of characters of a search text.
pub const MAX_QUERY: usize = 254;
/// Users read for one page at most, so that a rare state does not read the whole table.
const MAX_READ: u32 = 1_000;

named_enum! {
    /// The state of a user.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum UserState {
        Active = "active",
        Suspended = "suspended",
    }
}

/// A filter on users. An empty one matches all.
#[derive(Clone, Debug, Default)]
pub struct UserFilter {
    /// An id, a phone number, an email address, or the beginning of a nickname.
    pub query: Option<String>,
    pub state: Option<UserState>,
    pub registered: RegistrationRange,
}

/// A user in the list of the staff, with masked addresses.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = AdminUser)]
#[serde(rename_all = "camelCase")]
pub struct ListedUser {
    #[serde(rename = "userId")]
    pub id: UserId,
    #[schema(example = "青山")]
    pub nickname: String,
    #[schema(example = "138••••8000")]
    pub phone_number: Option<String>,
    #[schema(example = "l•••@example.com")]
    pub email: Option<String>,
    pub state: UserState,
    /// The end of the suspension, if it has one.
    #[schema(value_type = Option<String>, format = DateTime, example = json!(null))]
    pub suspended_until: Option<Timestamp>,
    #[schema(example = 60)]
    pub coins: i64,
    #[schema(example = 100)]
    pub points: i64,
    /// True if a balance disagrees with the ledger, so that the account takes no entries.
    #[schema(example = false)]
    pub has_suspended_account: bool,
    pub created_at: Timestamp,
}

/// A page of the list.
#[derive(Clone, Debug)]
pub struct UserSlice {
    pub items: Vec<ListedUser>,
    /// The number of all matches, at most [`COUNTED`] + 1; none with a filter by state.
    pub total: Option<u32>,
    pub next: Option<UserCursor>,
}

/// The place in the list after which the next page begins: sort key and id of the last user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserCursor {
    key: String,
    id: i64,
}

impl UserCursor {
    /// Parses the text of a cursor.
    ///
    /// # Errors
    /// `invalid_format`.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let decoded = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let parsed = decoded.as_deref().and_then(|text| {
            let (id, key) = text.split_once(':')?;
            Some(Self { key: key.to_owned(), id: id.parse().ok()? })
        });
        parsed.ok_or_else(Self::fault)
    }

    /// Returns the fault of an invalid cursor, and of one of another list.
    fn fault() -> Fault {
        Fault::new(FieldCode::InvalidFormat, ("must be a `nextCursor` of this list", "须为此列表的 `nextCursor`"))
    }

    fn time(&self) -> Result<Timestamp> {
        self.key.parse().map(Timestamp).map_err(|_| Error::field("cursor", Self::fault()))
    }
}

impl std::fmt::Display for UserCursor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&URL_SAFE_NO_PAD.encode(format!("{}:{}", self.id, self.key)))
    }
}

/// The order in which users are read.
enum Source<'filter> {
    Newest,
    Nickname(&'filter str),
    Suspended,
}

/// Lists users: exact matches first, then by nickname; without a search text the newest first.
///
/// # Errors
/// `invalid_parameters` for a cursor of another list.
pub fn list(core: &Core, filter: &UserFilter, after: Option<&UserCursor>, limit: u32) -> Result<UserSlice> {
    core.store.read(|tx| list_in(tx, &core.phone_rules, filter, after, limit))
}

fn list_in(
    tx: &Read<'_>,
    rules: &PhoneRules,
    filter: &UserFilter,
    after: Option<&UserCursor>,
    limit: u32,
) -> Result<UserSlice> {
    let (source, exact) = (filter.source(), exact_in(tx, rules, filter.query.as_deref())?);
    let (most, mut found) = (limit as usize, Vec::new());
    if after.is_none() {
        for user in &exact {
            let cursor = UserCursor { key: filter.query.clone().unwrap_or_default(), id: 0 };
            found.extend(filter.match_in(tx, user.clone(), cursor)?);
        }
    }
    let batch_size = limit.saturating_add(1);
    let (mut place, mut read, mut is_exhausted) = (after.cloned(), 0, false);
    while found.len() <= most && !is_exhausted && read < MAX_READ {
        let batch = source.read_in(tx, filter, place.as_ref(), batch_size)?;
        is_exhausted = batch.len() < batch_size as usize;
        read = batch_size.saturating_add(read);
        place = batch.last().map(|(_, cursor)| cursor.clone()).or(place);
        for (user, cursor) in batch {
            if filter.has_prefix(&user) && exact.iter().all(|other| other.id != user.id) {
                found.extend(filter.match_in(tx, user, cursor)?);
            }
        }
    }
    let next = if found.len() > most {
        found.truncate(most);
        found.last().map(|found| found.cursor.clone())
    } else {
        place.filter(|_| !is_exhausted)
    };
    let items = found.into_iter().map(|found| listed_in(tx, found)).collect::<Result<_>>()?;
    Ok(UserSlice { items, total: source.count_in(tx, filter, &exact)?, next })
}

/// A user who matches a filter.
struct Match {
    user: UserSummary,
    suspension: Option<Suspension>,
    cursor: UserCursor,
}

impl UserFilter {
    fn source(&self) -> Source<'_> {
        match (&self.query, self.state) {
            // Few users are suspended.
            (_, Some(UserState::Suspended)) => Source::Suspended,
            (Some(query), _) => Source::Nickname(query),
            (None, _) => Source::Newest,
        }
    }

    fn has_prefix(&self, user: &UserSummary) -> bool {
        self.query.as_ref().is_none_or(|query| user.nickname.starts_with(query))
    }

    fn match_in(&self, tx: &Read<'_>, user: UserSummary, cursor: UserCursor) -> Result<Option<Match>> {
        let suspension = suspensions::in_force_in(tx, user.id)?;
        let state = if suspension.is_some() { UserState::Suspended } else { UserState::Active };
        let is_match = self.registered.contains(user.created_at) && self.state.is_none_or(|wanted| wanted == state);
        Ok(is_match.then_some(Match { user, suspension, cursor }))
    }
}

impl Source<'_> {
    /// Returns the next users with the cursor of each.
    fn read_in(
        &self,
        tx: &Read<'_>,
        filter: &UserFilter,
        after: Option<&UserCursor>,
        limit: u32,
    ) -> Result<Vec<(UserSummary, UserCursor)>> {
        let range = filter.registered;
        Ok(match self {
            Self::Newest => {
                let before = match after {
                    Some(cursor) => (cursor.time()?, UserId(cursor.id)),
                    None => (range.to, UserId(0)),
                };
                let users = listing::newest_in(tx, range, before, limit)?.into_iter();
                users.map(|user| (user.created_at.0.to_string(), user)).map(with_id).collect()
            }
            Self::Nickname(prefix) => {
                let after = after.filter(|cursor| cursor.key.as_str() >= *prefix);
                let after = after.map_or((*prefix, UserId(0)), |cursor| (cursor.key.as_str(), UserId(cursor.id)));
                let users = listing::by_nickname_in(tx, prefix, after, limit)?.into_iter();
                users.map(|user| (user.nickname.clone(), user)).map(with_id).collect()
            }
            Self::Suspended => {
                // The cursor of an exact match has no id, because the others follow.
                let before = after.map(|cursor| cursor.id).filter(|id| *id > 0).unwrap_or(i64::MAX);
                let mut users = Vec::new();
                for suspension in suspensions::not_lifted_before_in(tx, before, limit)? {
                    if let Some(user) = listing::summary_in(tx, suspension.user)? {
                        users.push((user, UserCursor { key: String::new(), id: suspension.id }));
                    }
                }
                users
            }
        })
    }

    fn count_in(&self, tx: &Read<'_>, filter: &UserFilter, exact: &[UserSummary]) -> Result<Option<u32>> {
        let range = filter.registered;
        if filter.state.is_some() {
            return Ok(None);
        }
        match self {
            Self::Suspended => Ok(None),
            Self::Newest => listing::count_newest_in(tx, range, COUNTED + 1).map(Some),
            Self::Nickname(_) if !range.is_unlimited() => Ok(None),
            Self::Nickname(prefix) => {
                let others = exact.iter().filter(|user| !user.nickname.starts_with(*prefix)).count();
                let counted = listing::count_by_nickname_in(tx, prefix, COUNTED + 1)?;
                Ok(Some(counted.saturating_add(u32::try_from(others).unwrap_or(0)).min(COUNTED + 1)))
            }
        }
    }
}

fn with_id((key, user): (String, UserSummary)) -> (UserSummary, UserCursor) {
    let id = user.id.0;
    (user, UserCursor { key, id })
}

/// Finds a user by phone number, email address or id.
///
/// # Errors
/// Storage errors.
pub fn find_named(core: &Core, text: &str) -> Result<Option<UserId>> {
    let found = core.store.read(|tx| exact_in(tx, &core.phone_rules, Some(text)))?;
    Ok(found.first().map(|user| user.id))
}

/// Returns the phone number or email address that a text is.
pub fn address_of(core: &Core, text: &str) -> Option<Address> {
    addresses_of(&core.phone_rules, text).next()
}

fn addresses_of(rules: &PhoneRules, text: &str) -> impl Iterator<Item = Address> {
    let phone = PhoneNumber::parse(text, rules).ok().map(Address::Phone);
    phone.into_iter().chain(EmailAddress::parse(text).ok().map(Address::Email))
}

/// Returns the users that a text names by phone number, email address or id.
fn exact_in(tx: &Read<'_>, rules: &PhoneRules, query: Option<&str>) -> Result<Vec<UserSummary>> {
    let Some(query) = query else { return Ok(Vec::new()) };
    let mut ids: Vec<UserId> = Vec::new();
    for address in addresses_of(rules, query) {
        ids.extend(users::find_by_address_in(tx, &address)?.map(|user| user.id));
    }
    ids.extend(query.parse().ok().map(UserId).filter(|id| !ids.contains(id)));
    ids.into_iter().filter_map(|id| listing::summary_in(tx, id).transpose()).collect()
}

fn listed_in(tx: &Read<'_>, found: Match) -> Result<ListedUser> {
    let Match { user, suspension, .. } = found;
    let coins = ledger::account_in(tx, user.id, Asset::Coin)?;
    let points = ledger::account_in(tx, user.id, Asset::Point)?;
    Ok(ListedUser {
        id: user.id,
        phone_number: user.phone_number.as_deref().map(mask_address),
        email: user.email.as_deref().map(mask_address),
        nickname: user.nickname,
        state: if suspension.is_some() { UserState::Suspended } else { UserState::Active },
        suspended_until: suspension.and_then(|suspension| suspension.ends_at),
        has_suspended_account: coins.suspended_at.is_some() || points.suspended_at.is_some(),
        coins: coins.balance,
        points: points.balance,
        created_at: user.created_at,
    })
}
