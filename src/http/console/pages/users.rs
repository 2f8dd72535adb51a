//! One user: why coins are missing, balances, activity and actions.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Response, StatusCode},
};
use maud::html;

use super::search;
use crate::{
    app::App,
    domain::{
        identity::{
            user_data::{self, UserSelector},
            users::{self as accounts, listing::mask_address},
        },
        money::{
            coins,
            ledger::{self, Asset, LARGEST_ADJUSTMENT, LedgerEntry},
            missing_coins::{self, Explanation, MissingCoins, Reckoning},
        },
        operations::{
            admins::roles::Right,
            support::{self, SupportPage, SupportViewer},
        },
    },
    error::{Code, Error, Fault, FieldCode, Result, Sentence},
    http::{
        admin::{lists::StaffList, users},
        console::{
            acts,
            request::{ConsoleRequest, ok},
            views::{
                cells::Column,
                context::{ViewContext, user_href},
                layout::Place,
                list_page::{FilterField, Frame},
                masked::Masked,
                pages::{
                    missing_coins::CoinVerdict,
                    rows,
                    user::{self as view, UserPage},
                },
                texts::Text,
            },
        },
        params::parameters,
        request_context::RequestContext,
    },
    types::{PageRequest, Paginated, UserId},
};

pub async fn show(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let shown = collect(&console, None).await?;
    ok(view::page(&console.view()?, &shown))
}

/// Returns the user of the address and names them in the audit.
pub fn subject(console: &ConsoleRequest) -> Result<UserId> {
    let user = console.parameter("userId").parse().map(UserId).map_err(|_| Code::NotFound)?;
    console.context.meta.subject.get_or_init(|| user);
    Ok(user)
}

async fn collect(console: &ConsoleRequest, revealed: Option<&str>) -> Result<UserPage> {
    let user = subject(console)?;
    let grant_limit = console.context.grant_limit()?;
    let admin = console.context.admin()?;
    let viewer = SupportViewer { actor: admin.actor(), role: admin.role() };
    let (may_support, remover) = (admin.role().has(Right::SupportUsers), users::remover(&console.context)?);
    let grant_cap = grant_limit.map(|limit| limit.at_once.into());
    let (trade_no, unknown) = (console.query.get("trade").to_owned(), console.text(Text::NothingFound));
    let revealed = revealed.map(ToOwned::to_owned);
    console
        .context
        .report(move |app| {
            if !may_support {
                let (cause, reckoning) = (MissingCoins::Nothing, Reckoning::default());
                let verdict = CoinVerdict { cause, reckoning, trade_no: String::new(), trade_error: None };
                let found = support::collect_for_moderator(&app.core, user)?;
                return Ok(user_page(found, verdict, Staff { revealed: None, remover, grant_cap }));
            }
            let found = support::collect(&app.core, &app.network_log, user, &viewer)?;
            let verdict = verdict(app, user, trade_no, unknown)?;
            Ok(user_page(found, verdict, Staff { revealed: revealed.as_deref(), remover, grant_cap }))
        })
        .await
}

fn verdict(app: &App, user: UserId, trade_no: String, unknown: &str) -> Result<CoinVerdict> {
    let asked = Some(trade_no.as_str()).filter(|number| !number.is_empty());
    let (Explanation { cause, reckoning }, trade_error) = match missing_coins::explain(&app.payments, user, asked) {
        Err(error) if error.code == Code::NotFound => {
            (missing_coins::explain(&app.payments, user, None)?, Some(unknown.to_owned()))
        }
        explanation => (explanation?, None),
    };
    Ok(CoinVerdict { cause, reckoning, trade_no, trade_error })
}

/// The viewer's part in a page.
struct Staff<'page> {
    /// The kind of address to show whole.
    revealed: Option<&'page str>,
    /// The author whose notes the viewer may remove; none for all.
    remover: Option<String>,
    /// The largest grant of the viewer's role in one act, if it is capped.
    grant_cap: Option<i64>,
}

fn user_page(found: SupportPage, verdict: CoinVerdict, staff: Staff<'_>) -> UserPage {
    let Staff { revealed, remover, grant_cap } = staff;
    let id = found.kept.id.to_string();
    let masked = |kind: &'static str, value: &Option<String>| {
        value.clone().map(|value| {
            let is_revealed = revealed == Some(kind);
            Masked { shown: if is_revealed { value } else { mask_address(&value) }, is_revealed, kind, id: id.clone() }
        })
    };
    UserPage {
        phone_number: masked("phone", &found.kept.phone_number),
        email: masked("email", &found.kept.email),
        id: id.clone(),
        found,
        verdict,
        remover,
        grant_cap,
    }
}

parameters! {
    ListEntriesParams(fields) {
        user: UserId = fields.path("userId", "The user.");
        asset: Option<Asset> = fields.optional("asset", "Only entries of this asset. Default: coins.");
    }
}

/// The ledger entries of one user and asset.
pub struct EntryList;

impl StaffList for EntryList {
    type Params = ListEntriesParams;
    type Filter = (UserId, Asset);
    type Row = LedgerEntry;

    const PLACE: Place = Place::Users;
    const TITLE: Text = Text::Ledger;
    const EMPTY: Text = Text::NothingYet;
    const COLUMNS: &'static [Column<LedgerEntry>] = rows::ENTRY;

    fn fields(_: &ViewContext) -> Vec<FilterField> {
        vec![FilterField::new("asset", Text::Asset).views(Asset::ALL)]
    }

    fn filter(context: &RequestContext, params: ListEntriesParams) -> Result<(UserId, Asset)> {
        context.name_subject(Some(params.user));
        Ok((params.user, params.asset.unwrap_or(Asset::Coin)))
    }

    fn read(app: &App, (user, asset): &(UserId, Asset), page: PageRequest) -> Result<Paginated<LedgerEntry>> {
        ledger::entries(&app.core, *user, *asset, page)
    }

    fn frame(cx: &ViewContext, app: &App, filter: Option<&(UserId, Asset)>) -> Result<Frame> {
        let Some((user, _)) = filter else { return Ok(Frame::default()) };
        let lead = app.core.store.read(|tx| accounts::profile_in(tx, *user))?.nickname;
        let beside = html! { a.button href=(user_href(&user.to_string())) { (cx.t(Text::BackToUser)) } };
        Ok(Frame { lead: Some(lead), beside, ..Frame::default() })
    }
}

/// Shows an address. The reason is in the audit.
pub async fn reveal(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    if let Err(error) = console.require_reason() {
        return acts::reject(&console, error).await;
    }
    let kind = console.form.get("kind").to_owned();
    let shown = collect(&console, Some(&kind)).await?;
    ok(view::page(&console.view()?, &shown))
}

/// Asks the SMS provider what became of the codes for the user's addresses.
pub async fn ask_for_receipts(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let user = subject(&console)?;
    let addresses = console.context.app.core.store.read(|tx| accounts::find_in(tx, user))?.addresses().collect();
    search::ask_for_receipts(&console, addresses).await
}

pub async fn repair(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let user = subject(&console)?;
    let by = console.context.authority(None)?;
    let repair = user_data::repair(&console.context.app.core, UserSelector::Id(user), by);
    let repaired = console.context.committed(repair).await;
    acts::done(&console, repaired).await
}

pub async fn grant(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let granted = try_grant(&console).await;
    acts::done(&console, granted).await
}

async fn try_grant(console: &ConsoleRequest) -> Result<()> {
    let user = subject(console)?;
    let by = console.context.authority(Some(console.require_reason()?))?;
    let amount = console
        .form
        .get("amount")
        .parse()
        .ok()
        .filter(|amount: &i64| *amount != 0 && amount.abs() <= LARGEST_ADJUSTMENT);
    let amount = amount.ok_or_else(|| {
        Error::field(
            "amount",
            Fault::new(FieldCode::OutOfRange, Sentence::for_reader(console.text(Text::NotACoinChange))),
        )
    })?;
    let limit = console.context.grant_limit()?;
    let once = console.context.once(StatusCode::OK, |balance: &i64| *balance)?;
    let adjusted = coins::adjust(&console.context.app.core, user, amount, by, limit, once);
    console.context.committed(adjusted).await.map(drop)
}
