//! Sample data for the development server and the tests.

#![allow(
    clippy::wildcard_imports,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::too_many_lines,
    clippy::unnecessary_lazy_evaluations,
    reason = "sample data in one file"
)]

use std::path::PathBuf;

use crate::{
    config::{ResolvedSetting, SettingOrigin},
    domain::{
        identity::{
            accounts::CodeMessages,
            directory::UserState,
            identities::{IdentityKey, IdentityProvider, UserIdentity},
            staff_notes::StaffNote,
            suspensions::{Suspension, SuspensionSource},
            tokens::Device,
            user_data::Issue,
            users::{Gender, Profile, StoredUser},
        },
        messaging::feedback::{Feedback, FeedbackReply, FeedbackState, FeedbackThread},
        moderation::{
            engine::{AcquittedWord, ContentTypes, MatchWay, Severity, Word},
            policy::Service,
            reviews::{Review, ReviewState},
            shadow_mode::Disagreement,
            violations::ViolationRecord,
            words::WordEntry,
        },
        money::{
            ledger::{Asset, EntryKind, LedgerAccount},
            missing_coins::{MissingCoins, Reckoning},
            payments::{
                order::Order,
                order_details::OrderDetails,
                order_states::{SettlementEffect, SettlementOutcome},
                reconcile::Inquiry,
            },
        },
        operations::{
            admins::{Admin, keys::ApiKey, sessions::AdminSession},
            alerts::{ActiveAlert, ActiveAlerts, AlertFact, ResolvedAlert},
            backups::{
                Backup, Occasion,
                summary::{BackupContents, BackupSummary, OffsiteState},
            },
            doctor::{Check, CheckFact, DoctorReport},
            health::{BackupState, LedgerState},
            health_report::{ProviderState, ProviderStatus},
            job_runs::{JobName, JobState, JobStatus},
            server_log::{LogEvent, LogLevel},
            support::SupportPage,
        },
    },
    http::{
        admin::sensitive_words::ShownAdvice,
        console::views::{
            cells::{Cell, Column, column},
            chart::{FigureChart, Series, Unit},
            context::{ConsoleTheme, KeptForm, Right, Role, ViewContext, Viewer, Waiting, href, order_href, user_href},
            format::{ShownCount, ShownMoney, Timestamp, Zone},
            forms::{self, ConfirmationView, ProofField},
            layout::Place,
            list_page::{self, FilterField, Frame, ListPage},
            lists::{Listing, Rows, number, text, time},
            masked::Masked,
            pages::{
                administrators::*, bulk::*, cleanup::*, feedback::*, figures::*, health::*, log::*, missing_coins::*,
                models::*, moderation::*, orders::*, overview::*, search::*, settings::*, sign_in::*, user::*,
            },
            parts::GrowthTone,
            texts::{Language, Text, Tone},
        },
    },
    providers::payment::{OrderState, Trade, TradeStatus},
    types::{Currency, Fen, SuspensionScope, UserId},
};

pub const NOW: i64 = 1_795_600_000_000;
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

fn ago(milliseconds: i64) -> Timestamp {
    Timestamp(NOW - milliseconds)
}

pub fn context(language: Language, theme: ConsoleTheme, role: Option<Role>, path: &str) -> ViewContext {
    ViewContext {
        language,
        theme,
        zone: zone(),
        now: Timestamp(NOW),
        viewer: role.map(|role| Viewer { name: "alice".into(), role }),
        csrf: "3f9c1d".into(),
        once: "b7e2".into(),
        path: path.into(),
        request_id: "01jd9x2k7m4q8r5t6v3w".into(),
        flash: Vec::new(),
        kept_form: kept_form(path),
        waiting: Waiting { orders: 3, texts: 12, feedback: 5, alerts: 1 },
        idle_seconds: 1800,
    }
}

type Pairs = &'static [(&'static str, &'static str)];

/// Returns the form that a page shows again.
fn kept_form(path: &str) -> Option<KeptForm> {
    let shown = path.strip_prefix(&href(""))?;
    let (id, fields, faults): (&str, Pairs, Pairs) = match shown {
        "users/10001?cause=rejected" => {
            ("grant", &[("amount", "6000"), ("reason", "lost order")], &[("amount", "At most 200.")])
        }
        "moderation/words" => ("add", &[("word", "d"), ("contentTypes", "nickname")], &[("word", "Too short.")]),
        "feedback" => ("reply-43", &[("text", "Thank you")], &[("text", "The user has no account.")]),
        "moderation/review" => ("review", &[("phrase", "a")], &[("phrase", "must be on one line")]),
        "messages/preview" => ("message", &[("title", "维护通知"), ("body", "今晚停机。"), ("kind", "system")], &[]),
        _ => return None,
    };
    let owned = |pairs: Pairs| pairs.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
    Some(KeptForm { id: id.into(), fields: owned(fields), faults: owned(faults) })
}

fn wave(days: usize, base: i64, swing: i64, seed: i64) -> Vec<i64> {
    (0..days as i64)
        .map(|day| {
            let noise = (day * 7919 + seed * 104_729) % 97;
            let weekend = if day % 7 >= 5 { swing / 2 } else { 0 };
            (base + weekend + swing * (noise - 48) / 97 + day * base / 160).max(0)
        })
        .collect()
}

fn days(count: usize) -> Vec<String> {
    let zone = zone();
    (0..count as i64)
        .map(|day| crate::http::console::views::format::day(ago((count as i64 - 1 - day) * DAY), &zone))
        .collect()
}

fn series(name: &str, values: Vec<i64>) -> Series {
    Series { name: name.into(), values: values.into_iter().map(Some).collect() }
}

fn chart<'a>(
    cx: &ViewContext,
    id: &'a str,
    title: Text,
    unit: Unit,
    names: &[Text],
    base: i64,
    bars: bool,
) -> FigureChart<'a> {
    let list = names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            series(cx.t(*name), wave(30, base / (index as i64 + 1), base / 3, index as i64 + 3 + id.len() as i64))
        })
        .collect();
    FigureChart { id: id.into(), title, unit, label: Text::Day, labels: days(30), series: list, has_bars: bars }
}

fn violation() -> ViolationRecord {
    ViolationRecord {
        id: 701,
        user: UserId(10_230),
        content_type: "question".into(),
        violation_type: "gambling".into(),
        words: vec!["赌博".into()],
        masked_text: "<b>hostile</b> 一起**吧，加我 ***".into(),
        provider: "local".into(),
        at: ago(5 * MINUTE),
        acquitted_at: None,
        acquitted_by: None,
    }
}

fn rows<T>(items: Vec<T>, total: u64) -> Listing<T> {
    let is_capped = total == 10_000;
    Listing::Rows(Rows {
        items,
        total: Some(ShownCount { value: total, is_capped }),
        next: Some("b4f1".into()),
        is_later: false,
    })
}

/// A column of each kind of value.
const COLUMNS: &[Column<String>] = &[
    column(text(Text::User), |_| Cell::User(UserId(10_001))),
    column(text(Text::Nickname), |row| Cell::text(row)),
    column(text(Text::MaskedText), |row| Cell::Quoted(row.clone())),
    column(text(Text::Route), |row| Cell::Code(row.clone()).link(href("network-log"), Right::SupportUsers)),
    column(text(Text::Actor), |row| Cell::Actor(row.clone())),
    column(text(Text::Id), |row| Cell::Id(row.clone())),
    column(text(Text::TraceId), |row| Cell::TraceId(row.clone())),
    column(text(Text::Model), |row| Cell::text(row).explained(Cell::word("builtin"))),
    column(text(Text::State), |_| Cell::state("suspended")),
    column(time(Text::Time), |_| Cell::Time(ago(DAY))),
    column(text(Text::Order), |row| Cell::Order(row.clone())),
    column(text(Text::Purchase), |row| Cell::Purchase("17".to_owned(), Some(row.clone()))),
    column(number(Text::Change), |_| Cell::Change(-20)),
    column(number(Text::Coins), |_| Cell::Number(1234)),
    column(number(Text::Amount), |_| Cell::Money(ShownMoney::yuan(600))),
    column(number(Text::Duration), |_| Cell::Microseconds(18_400)),
    column(number(Text::Rating), |_| Cell::Label(Text::Helpful)),
    column(number(Text::Status), |_| Cell::Status(503)),
    column(text(Text::SignatureValid), |_| Cell::Badge(Tone::Bad, Text::No)),
    column(text(Text::Reference), |_| Cell::Absent),
    column(text(Text::Action), |row| {
        let label = row.clone();
        Cell::html(move |cx| forms::button(cx, &href("users/bulk"), &label, "small"))
    }),
];

pub fn list(cx: &ViewContext) -> maud::Markup {
    let [from, to] = FilterField::range(Text::From, Text::To);
    let state = FilterField::new("state", Text::State)
        .hint(Text::ActorHint)
        .choice(UserState::ALL)
        .tabs([UserState::Suspended]);
    let shown = ListPage {
        path: &href("list"),
        place: Place::Users,
        title: Text::Users,
        empty: Text::NoUsers,
        fields: vec![state, from, to],
        query: &[("state".to_owned(), "active".to_owned())],
        columns: COLUMNS,
        listing: rows(vec!["<b>hostile</b>".to_owned(), "<i>hostile</i>".to_owned()], 10_000),
        pick: |row| Some(row.chars().filter(char::is_ascii_alphabetic).collect()),
        frame: Frame { bulk: crate::http::console::views::pages::users::bulk(cx), ..Frame::default() },
    };
    list_page::page(cx, &shown)
}

pub fn overview(cx: &ViewContext) -> Overview<'static> {
    let figure = |name, value, yesterday, is_money: bool, seed, path| TodayFigure {
        name,
        value,
        yesterday,
        currency: is_money.then_some(Currency::CNY),
        line: wave(14, value.max(10), value.max(10) / 3, seed),
        path,
    };
    Overview {
        taken_at: ago(4000),
        figures: vec![
            figure(Text::NewUsers, 214, 189, false, 1, "growth"),
            figure(Text::ActiveUsers, 3482, 3610, false, 2, "growth"),
            figure(Text::CastingsToday, 5127, 4880, false, 3, "growth"),
            figure(Text::RevenueToday, 128_450, 110_200, true, 4, "revenue"),
            figure(Text::CodeMessages, 402, 402, false, 5, "growth"),
            figure(Text::Cost, 3812, 4170, true, 6, "models"),
        ],
        alerts: alerts(),
        ledger: LedgerState::Consistent,
        backups: BackupState::Current,
        down: vec!["llm"],
        is_damaged: false,
        database: "1.4 GiB".into(),
        waiting_orders: vec![WaitingOrder {
            order_no: "202611211234567890012382".into(),
            amount: ShownMoney::yuan(600),
            reason: "second_trade".into(),
            since: ago(HOUR),
        }],
        charts: vec![
            chart(cx, "users-chart", Text::Users, Unit::Count, &[Text::ActiveUsers, Text::NewUsers], 3200, false),
            chart(cx, "revenue-chart", Text::Revenue, Unit::Money(Currency::CNY), &[Text::Revenue], 118_000, true),
        ],
        is_new: false,
    }
}

pub fn new_overview(cx: &ViewContext) -> Overview<'static> {
    let mut page = overview(cx);
    for figure in &mut page.figures {
        (figure.value, figure.yesterday, figure.line) = (0, 0, Vec::new());
    }
    (page.alerts, page.waiting_orders, page.charts, page.is_new) = (ActiveAlerts::new(), Vec::new(), Vec::new(), true);
    page
}

pub fn search(query: &str) -> Search {
    let hits = if query == "nothing" {
        Vec::new()
    } else {
        vec![
            SearchHit {
                found: Found::User,
                name: "山水蒙 · 10001".into(),
                detail: "138****8000 · a***e@example.com".into(),
                state: Some(UserState::Active),
                at: ago(190 * DAY),
                href: user_href("10001"),
            },
            SearchHit {
                found: Found::User,
                name: "山高月小<script>alert(1)</script> · 10233".into(),
                detail: "139****1211".into(),
                state: Some(UserState::Suspended),
                at: ago(12 * DAY),
                href: user_href("10233"),
            },
            SearchHit {
                found: Found::Order,
                name: "202611211234567890012382".into(),
                detail: "¥6.00 · 60".into(),
                state: None,
                at: ago(5 * HOUR),
                href: order_href("202611211234567890012382"),
            },
            SearchHit {
                found: Found::ModelCall,
                name: "0f1e2d3c4b5a69788796a5b4c3d2e100".into(),
                detail: "deepseek-chat".into(),
                state: None,
                at: ago(2 * HOUR),
                href: href("models/calls"),
            },
            SearchHit {
                found: Found::Request,
                name: "01jd9x2k7m4q8r5t6v00".into(),
                detail: "POST /api/v1/sessions · 200".into(),
                state: None,
                at: ago(9 * MINUTE),
                href: href("network-log"),
            },
        ]
    };
    Search { query: query.into(), hits, has_more: true, codes: None }
}

fn order_of(index: usize, state: OrderState) -> Order {
    let created_at = ago(index as i64 * 5 * HOUR + 7 * MINUTE);
    let coins = [60, 300, 680, 60, 1280, 60, 300, 6480][index];
    Order {
        id: index as i64,
        order_no: format!("2026112{}1234567890{:05}", index % 6, 12_345 + index * 37),
        user: UserId(10_001 + index as i64 * 13),
        channel: "alipay".into(),
        app_id: None,
        provider_ref: None,
        amount: Fen::from_fen(i64::from(coins) * 10).unwrap(),
        currency: Currency::CNY,
        product_id: "coins".into(),
        product_version: 1,
        asset: Asset::Coin,
        coin_count: coins,
        bonus: 0,
        first_bonus: 0,
        subject: "金币".into(),
        state,
        reason: (index == 0).then(|| "second_trade".into()),
        trade_no: None,
        paid: Fen::ZERO,
        refunded: Fen::ZERO,
        coins_returned: 0,
        coins_written_off: 0,
        bonus_credited: 0,
        bonus_returned: 0,
        bonus_written_off: 0,
        returns: 0,
        checks: 0,
        next_check_at: None,
        created_at,
        expires_at: created_at,
        paid_at: None,
        credited_at: None,
        closed_at: None,
        refunded_at: None,
        settled_at: None,
    }
}

pub fn cause(name: &str) -> MissingCoins {
    let order = |state| Box::new(order_of(3, state));
    match name {
        "suspended" => MissingCoins::AccountSuspended { since: ago(3 * HOUR) },
        "other" => MissingCoins::OtherAccount(order(OrderState::Credited)),
        "used" => MissingCoins::Used {
            credited_at: ago(30 * HOUR),
            order: order(OrderState::Credited),
            total: 40,
            uses: Vec::new(),
        },
        "refunded" => MissingCoins::Refunded { order: order(OrderState::Refunded), at: ago(26 * HOUR) },
        "nothing" => MissingCoins::Nothing,
        _ => MissingCoins::OrderOpen(order(OrderState::Paid)),
    }
}

pub fn user(cause_name: &str) -> UserPage {
    let (id, is_suspended) = (UserId(10_001), cause_name == "suspended");
    let account = |balance, suspended_at| LedgerAccount { balance, last_sequence: 41, suspended_at, is_forged: false };
    let issue = |code, fixable| Issue { code, detail: "coin balance 1280, entries sum to 1340".into(), fixable };
    let found = SupportPage {
        kept: StoredUser { id, phone_number: None, email: None, created_at: ago(190 * DAY) },
        profile: Profile {
            id,
            nickname: "山水蒙".into(),
            gender: Gender::Female,
            birthday: Some("1994-05-17".into()),
            signature: "初筮告，再三渎，渎则不告。".into(),
        },
        accounts: vec![
            (Asset::Coin, account(1280, is_suspended.then(|| ago(3 * HOUR)))),
            (Asset::Point, account(340, None)),
        ],
        issues: if is_suspended {
            vec![issue("balance_differs", true), issue("phone_twice", false)]
        } else {
            Vec::new()
        },
        identities: vec![UserIdentity {
            key: IdentityKey { provider: IdentityProvider::Apple, subject: "001234".into() },
            linked_at: ago(30 * DAY),
            last_used_at: ago(2 * DAY),
        }],
        devices: vec![Device {
            id: "d1".into(),
            label: "Pixel 9 · Yarrow 2.3.1".into(),
            signed_in_at: ago(40 * DAY),
            last_used_at: ago(11 * MINUTE),
            expires_at: Timestamp(NOW + DAY),
            is_current: false,
        }],
        suspensions: vec![Suspension {
            id: 1,
            user: id,
            scope: SuspensionScope::Account,
            source: SuspensionSource::Staff,
            reason: "<b>hostile reason</b>".into(),
            actor: "admin:alice".into(),
            created_at: ago(9 * DAY),
            ends_at: (!is_suspended).then(|| ago(2 * DAY)),
            lifted_at: None,
            lifted_by: None,
        }],
        notes: vec![StaffNote {
            id: 3,
            user: id,
            author: "admin:alice".into(),
            content: "<i>hostile note</i>".into(),
            created_at: ago(9 * DAY),
        }],
        live_codes: Vec::new(),
        sent_codes: Vec::new(),
        code_messages: CodeMessages { items: Vec::new(), receipts_failure: None },
        entries: Vec::new(),
        changes: Vec::new(),
        orders: Vec::new(),
        purchases: Vec::new(),
        castings: 212,
        records: Vec::new(),
        violations: Vec::new(),
        violations_total: 7,
        notices: Vec::new(),
        notices_unread: 1,
        requests: Vec::new(),
        audit: Vec::new(),
    };
    let masked = |kind, shown: &str, is_revealed| Masked { shown: shown.into(), is_revealed, kind, id: id.to_string() };
    UserPage {
        id: id.to_string(),
        found,
        phone_number: Some(masked("phone", "138****8000", false)),
        email: Some(masked("email", "alice@example.com", true)),
        verdict: CoinVerdict {
            cause: cause(cause_name),
            reckoning: Reckoning {
                before: 0,
                changes: vec![(EntryKind::Topup, 60), (EntryKind::Consume, -40)],
                balance: 20,
            },
            trade_no: String::new(),
            trade_error: None,
        },
        remover: None,
        grant_cap: Some(200),
    }
}

/// A user page with a trade number that was not found.
pub fn rejected_user() -> UserPage {
    let mut user = user("nothing");
    user.verdict.trade_no = "2026".into();
    user.verdict.trade_error = Some("No order has this trade number.".into());
    user
}

pub fn order() -> OrderPage {
    let order = order_of(0, OrderState::Review);
    let order = Order { reason: Some("second_trade".into()), paid: order.amount, ..order };
    let trade = Trade {
        channel: "alipay",
        order_no: order.order_no.clone(),
        trade_no: "2026112122001400000000000001".into(),
        amount: order.amount,
        currency: order.currency,
        status: TradeStatus::Success,
        paid_at: None,
        refunded: None,
    };
    let outcome = SettlementOutcome { verdict: SettlementEffect::Unchanged, reason: None };
    OrderPage {
        inquiry: Some(Inquiry { order: order.clone(), trade: Some(trade), outcome }),
        details: OrderDetails { order, refunds: Vec::new(), callbacks: Vec::new(), entries: Vec::new() },
        nickname: "山水蒙".into(),
        balance: 1280,
        times: vec![(Text::EventCreated, ago(5 * HOUR)), (Text::EventExpires, ago(4 * HOUR))],
    }
}

pub fn range() -> Range {
    Range { from: String::new(), to: String::new(), days: Some(30), error: None }
}

pub fn growth(cx: &ViewContext) -> Figures<'static> {
    let sum = |name, value, before, is_money: bool| {
        let currency = is_money.then_some(Currency::CNY);
        Sum { name, value, before, currency, tone: GrowthTone::Good }
    };
    Figures {
        range: range(),
        sums: vec![
            sum(Text::NewUsers, 5210, 4630, false),
            sum(Text::ActiveUsers, 41_200, 43_090, false),
            sum(Text::CastingsToday, 142_811, 128_000, false),
            sum(Text::CodeMessages, 9120, 9040, false),
        ],
        charts: vec![
            chart(cx, "users", Text::Users, Unit::Count, &[Text::ActiveUsers, Text::NewUsers], 3200, false),
            chart(cx, "castings", Text::CastingsToday, Unit::Count, &[Text::CastingsToday], 4800, true),
            chart(
                cx,
                "funnel",
                Text::CodesFunnel,
                Unit::Count,
                &[Text::FunnelAsked, Text::FunnelSent, Text::FunnelVerified, Text::NewUsers],
                420,
                false,
            ),
        ],
        funnel: vec![
            (Text::FunnelAsked, 812),
            (Text::FunnelSent, 790),
            (Text::FunnelVerified, 655),
            (Text::NewUsers, 214),
        ],
        cohorts: (0..8)
            .map(|week: i64| Cohort {
                week: format!("2026-W{}", 40 + week),
                users: 1180 + week * 37,
                kept: (0..(8 - week)).map(|later| 610 - later * 60 - week * 11).collect(),
            })
            .collect(),
        money: Vec::new(),
        through: "2026-11-25".into(),
    }
}

pub fn revenue(cx: &ViewContext) -> Figures<'static> {
    let usd = Currency::parse("USD").unwrap();
    let money = |channel: &str, revenue, refunds| ChannelMoney { channel: channel.into(), revenue, refunds };
    let sum = |name, value, before, is_money: bool| {
        let currency = is_money.then_some(Currency::CNY);
        Sum { name, value, before, currency, tone: GrowthTone::Good }
    };
    Figures {
        range: range(),
        sums: vec![
            sum(Text::Revenue, 3_412_800, 3_108_000, true),
            sum(Text::Refunds, 42_600, 51_000, true),
            sum(Text::Orders, 2811, 2710, false),
            sum(Text::Coins, 341_280, 310_800, false),
        ],
        charts: vec![
            chart(cx, "revenue", Text::Revenue, Unit::Money(Currency::CNY), &[Text::Revenue], 118_000, true),
            chart(cx, "coins", Text::CoinsSoldAndUsed, Unit::Count, &[Text::CoinsSold, Text::CoinsUsed], 11_000, false),
            chart(cx, "orders", Text::Orders, Unit::Count, &[Text::Orders, Text::Refunds], 96, false),
        ],
        funnel: Vec::new(),
        cohorts: Vec::new(),
        money: vec![
            money("alipay", ShownMoney::yuan(2_811_000), ShownMoney::yuan(42_600)),
            money("apple", ShownMoney::yuan(601_800), ShownMoney::yuan(0)),
            money("stripe", ShownMoney(48_213, usd), ShownMoney(99, usd)),
        ],
        through: "2026-11-25".into(),
    }
}

pub fn models(cx: &ViewContext) -> ModelsPage<'static> {
    let usage = |provider: &str, model: &str, calls, failed, slow, tokens, cost: &str, mean_ms| ModelUsageRow {
        provider: provider.into(),
        model: model.into(),
        calls,
        failed,
        slow,
        prompt_tokens: tokens,
        completion_tokens: tokens / 4,
        cost: cost.into(),
        mean_ms,
    };
    let rate = |model: &str, version: &str, rated, helpful| RateRow {
        model: model.into(),
        prompt_version: version.into(),
        rated,
        helpful,
    };
    ModelsPage {
        range: range(),
        currency: "CNY".into(),
        budgets: vec![
            BudgetRow {
                name: Text::BudgetCost,
                spent: "38.12 CNY".into(),
                limit: Some("50.00 CNY".into()),
                percent: 76,
            },
            BudgetRow { name: Text::BudgetTokens, spent: "4 812 000".into(), limit: None, percent: 0 },
        ],
        breakers: vec![
            ModelState { provider: "openai".into(), model: "deepseek-chat".into(), state: ProviderState::Working },
            ModelState { provider: "fallback".into(), model: "qwen-plus".into(), state: ProviderState::Paused },
        ],
        usage: vec![
            usage("openai", "deepseek-chat", 48_210, 212, 90, 61_202_111, "267.37", 4210),
            usage("openai", "qwen-plus", 1820, 3, 0, 2_402_111, "3.56", 6120),
            usage("builtin", "builtin", 91, 0, 0, 0, "0.00", 1),
        ],
        charts: vec![
            chart(cx, "cost-by-day", Text::Cost, Unit::Cost, &[Text::Cost], 38_000_000, true),
            chart(cx, "calls-by-day", Text::Calls, Unit::Count, &[Text::Calls, Text::FailedCalls], 1600, false),
        ],
        rates: vec![rate("deepseek-chat", "5b1c9a", 3001, 2822), rate("qwen-plus", "5b1c9a", 12, 7)],
        failed: Vec::new(),
        slow: Vec::new(),
        through: "2026-11-25".into(),
    }
}

pub fn bulk_results() -> BulkResults {
    let result = |id: &str, outcome: &str, detail: Option<&str>| BulkResult {
        id: id.into(),
        href: Some(order_href(id)),
        outcome: outcome.into(),
        detail: detail.map(Into::into),
    };
    BulkResults {
        place: Place::Orders,
        back: href("orders"),
        results: vec![
            result("202611211234567890012382", "done", Some("credited")),
            result("202611211234567890012419", "failed", Some("<b>hostile</b>")),
        ],
    }
}

pub fn review() -> ReviewPage {
    let review = |id, excerpt: &str, state, decided_by: Option<&str>| Review {
        id,
        user: UserId(10_230),
        content_type: "question".into(),
        violation_type: "gambling".into(),
        words: vec!["赌博".into()],
        ways: vec!["fuzzy".into(), "sound".into()],
        excerpt: excerpt.into(),
        masked_text: "一起***吧".into(),
        provider: "local".into(),
        at: ago(3 * HOUR),
        state,
        decided_at: decided_by.map(|_| ago(2 * HOUR)),
        decided_by: decided_by.map(Into::into),
        violation: None,
    };
    let waiting = |id| review(id, "一起du博<b>hostile</b>吧", ReviewState::Waiting, None);
    let item = |id| ReviewItem { review: waiting(id), nickname: "云雷屯".into(), earlier: 3 };
    ReviewPage {
        items: vec![item(701), item(700)],
        waiting: ShownCount::exact(12),
        decided: vec![review(698, "<b>hostile text</b>", ReviewState::Acquitted, Some("admin:alice"))],
        results: vec![("700".into(), "upheld"), ("699".into(), "already_exists")],
    }
}

pub fn words() -> Words {
    let items = [("代练", "ads"), ("刷单", "fraud"), ("赌博", "gambling"), ("发票", "ads")]
        .iter()
        .enumerate()
        .map(|(index, (word, kind))| WordEntry {
            word: Word {
                text: (*word).into(),
                kind: (*kind).into(),
                by_sound: index != 3,
                severity: Severity::ALL[index % 3],
                tags: if index == 1 { vec!["money".into(), "student".into()] } else { Vec::new() },
                content_types: ContentTypes::ALL,
            },
            created_at: ago(index as i64 * 12 * DAY),
        })
        .collect();
    Words {
        part: String::new(),
        kind: String::new(),
        tag: String::new(),
        types: vec![("ads".into(), 20), ("fraud".into(), 11), ("gambling".into(), 11)],
        listing: rows(items, 60),
        allowed: vec!["反洗钱".into(), "反赌博".into(), "禁毒宣传".into()],
        version: 12,
        version_in_force: 12,
        changed_at: Some(ago(DAY)),
        proposed_phrase: String::new(),
        tested: Some(Tested {
            action: "block",
            masked_text: "*****聊".into(),
            matches: vec![TestedMatch {
                word: "加微信".into(),
                kind: "ads".into(),
                way: MatchWay::Sound,
                part: "加 薇 信".into(),
                phrase: "加 薇 信聊".into(),
            }],
            acquitted: vec![AcquittedWord {
                word: "口交".into(),
                text: "口交".into(),
                words: vec!["端口".into(), "交换机".into()],
            }],
        }),
        import: Some(ImportPreview {
            warnings: vec![ShownAdvice {
                word: "电话".into(),
                normal_form: "电话".into(),
                is_warning: true,
                is_ordinary: true,
                longer_words: vec!["电话机".into(), "打电话".into()],
                longer_word_count: 2,
                rejected_sentences: Vec::new(),
                rejected_count: 7,
                sample_size: 2_000,
            }],
            new: vec!["代练".into()],
            existing: 0,
            skipped: vec![(2, "一".into(), "must have at least two letters or digits".into())],
        }),
    }
}

pub fn services() -> ServicesPage {
    let items = vec![Disagreement {
        id: 1,
        content_type: "question".into(),
        decided_by: "local".into(),
        local_allowed: false,
        external_allowed: true,
        words: Vec::new(),
        labels: Vec::new(),
        masked_text: "反**宣传日问卦".into(),
        at: ago(3 * HOUR),
    }];
    ServicesPage {
        selected: Service::Local,
        has_fallback: true,
        provider: "aliyun".into(),
        state: Some(ProviderState::Working),
        last_failure: Some((ago(2 * DAY), "total_timeout".into())),
        word_count: 60,
        compared: Some(Compared {
            text: "加 薇 信 聊".into(),
            rulings: vec![(Service::Local, "refused".into(), 0), (Service::External, "allowed".into(), 183)],
        }),
        text: "加 薇 信 聊".into(),
        disagreements: rows(items, 31),
    }
}

pub fn feedback() -> FeedbackPage {
    let one = |id: i64, content: &str, state, assignee: Option<&str>| Feedback {
        id,
        user: (id != 41).then_some(UserId(10001)),
        phone_number: Some("13800138000".into()),
        is_verified: id != 41,
        content: content.into(),
        state,
        assignee: assignee.map(Into::into),
        created_at: ago(7 * HOUR),
    };
    let reply = FeedbackReply {
        author: "alice".into(),
        content: "您好，已经在开发中，下个版本发布。".into(),
        created_at: ago(2 * HOUR),
    };
    let long = "Dark mode looks great on my phone, but the line texts are cut off when the font is large: supercalifragilisticexpialidocious-supercalifragilisticexpialidocious";
    let items = [
        (
            one(43, "充值了 6 元但是金币没有到账，请帮忙查一下。\n订单是昨天晚上的。", FeedbackState::Open, None),
            Vec::new(),
        ),
        (one(42, "希望增加梅花易数的起卦方式，谢谢！", FeedbackState::InProgress, Some("alice")), vec![reply]),
        (one(41, long, FeedbackState::Open, None), Vec::new()),
    ];
    let items = items.map(|(feedback, replies)| (FeedbackThread { feedback, replies }, "山水蒙".to_owned()));
    FeedbackPage {
        state: "open".into(),
        is_mine: false,
        items: items.into(),
        total: ShownCount::exact(5),
        next: Some("c1".into()),
        assignees: vec!["alice".into(), "bob".into()],
        faults: Vec::new(),
    }
}

pub fn health() -> HealthPage {
    let job = |name, state, percent: Option<u8>, failure: Option<&str>| JobStatus {
        name,
        state,
        running_since: percent.map(|_| ago(MINUTE)),
        percent,
        last_started_at: Some(ago(50 * MINUTE)),
        last_took_ms: Some(1840),
        failure: failure.map(Into::into),
        next_at: (percent.is_none()).then(|| Timestamp(NOW + 10 * MINUTE)),
    };
    HealthPage {
        taken_at: ago(4000),
        alerts: alerts(),
        past_alerts: vec![ResolvedAlert::new(
            "provider_down:sms".into(),
            AlertFact::ProviderPaused { provider: "sms".into() }.into(),
            ago(9 * DAY),
            ago(9 * DAY - 12 * MINUTE),
        )],
        doctor: Some(DoctorReport::new(
            ago(2 * HOUR),
            [
                CheckFact::SchemaVersion { version: 41 },
                CheckFact::OwnerOnly { file: "secret.key".into() },
                CheckFact::CertificateEndsSoon { until: Timestamp(NOW + 19 * DAY) },
                CheckFact::LastBackupFailed { cause: "The disk is full.".into(), last: None },
            ]
            .map(Check::from)
            .into(),
        )),
        backups: (0..4)
            .map(|index| BackupSummary {
                backup: Backup {
                    name: format!("b{index}"),
                    path: PathBuf::new(),
                    at: ago(index * DAY),
                    occasion: Occasion::Scheduled,
                    bytes: 418_200_000 - index as u64 * 1_000_000,
                },
                contents: if index == 3 { BackupContents::Inconsistent } else { BackupContents::Sound },
                offsite: if index == 0 { OffsiteState::Waiting } else { OffsiteState::Uploaded },
            })
            .collect(),
        backup_state: BackupState::Current,
        backup_failure: None,
        upload_failure: None,
        continuous: Some(ContinuousBackup {
            state: "current".into(),
            lag_s: 3,
            shipped_at: Some(ago(4000)),
            objects: 1204,
            failure: None,
        }),
        ledger: LedgerHealth {
            state: LedgerState::Consistent,
            at: Some(ago(20 * HOUR)),
            accounts: 812_300,
            discrepancies: 0,
            suspended: 0,
            payment_differences: 0,
        },
        providers: vec![
            ProviderStatus { name: "sms", state: ProviderState::Working, since: None, failure: None },
            ProviderStatus { name: "llm", state: ProviderState::Paused, since: Some(ago(3 * MINUTE)), failure: None },
            ProviderStatus { name: "payment", state: ProviderState::Working, since: None, failure: None },
            ProviderStatus {
                name: "moderation",
                state: ProviderState::Misconfigured,
                since: Some(ago(MINUTE)),
                failure: Some("http_401".into()),
            },
        ],
        jobs: vec![
            job(JobName::LedgerVerification, JobState::Running, Some(62), None),
            job(JobName::Backup, JobState::Waiting, None, None),
            job(JobName::Retention, JobState::Waiting, None, None),
            job(JobName::Reconciler, JobState::Failed, None, Some("provider_timeout")),
            job(JobName::FreeSpaceScrub, JobState::Off, None, None),
        ],
        database_bytes: 1_504_000_000,
        disk_free: 61_000_000_000,
        disk_total: 160_000_000_000,
        version: "1.4.0".into(),
        started_at: ago(12 * DAY),
    }
}

fn alerts() -> ActiveAlerts {
    let alert =
        ActiveAlert::new(ago(95 * MINUTE), ago(95 * MINUTE), AlertFact::PaymentsInReview { payments: 3 }.into());
    ActiveAlerts::from([("payments_in_review".into(), alert)])
}

pub fn cleanup() -> Vec<Category> {
    let one =
        |target: &str, title, detail, is_dangerous| Category { target: target.into(), title, detail, is_dangerous };
    vec![
        one("verification-codes", Text::CleanCodes, Text::CleanCodesDetail, false),
        one("payment-records", Text::CleanPayments, Text::CleanPaymentsDetail, false),
        one("feedback", Text::CleanFeedback, Text::CleanFeedbackDetail, false),
        one("all", Text::CleanAll, Text::CleanAllDetail, true),
    ]
}

pub fn confirmation(cx: &ViewContext) -> ConfirmationView {
    let count = |name: &str, count| (name.to_owned(), count);
    let has_error = cx.path.contains("error");
    ConfirmationView {
        title: match cx.language {
            Language::Chinese => "删除全部数据".into(),
            Language::English => "Delete all data".into(),
        },
        consequence: match cx.language {
            Language::Chinese => "所有用户与账本都会被永久删除。".into(),
            Language::English => "All users and the ledger will be deleted for good.".into(),
        },
        would_delete: vec![
            count("users", 812_300),
            count("ledger_entries", 10_482_110),
            count("payment_orders", 98_211),
            count("history", 4_112_008),
            count("feedback", 311),
        ],
        would_keep: vec![count("admins", 4), count("audit", 41_200), count("words", 60), count("releases", 12)],
        expires_at: Timestamp(NOW + 9 * MINUTE + 41_000),
        token: "c0ffee".into(),
        action: href("cleanup/all"),
        back: href("cleanup"),
        repeated: Vec::new(),
        target: Some("cleanup all".into()),
        typed_target: if has_error { "cleanup".into() } else { String::new() },
        target_error: has_error.then(|| "The words differ.".into()),
        reason: String::new(),
        reason_error: None,
        step_up: ProofField { is_needed: true, has_authenticator: true, error: None },
        makes_backup: true,
    }
}

pub fn administrators() -> AdministratorsPage {
    let admin = |id, name: &str, role, has_second_factor| Admin {
        id,
        name: name.into(),
        role,
        created_at: ago(200 * DAY),
        has_second_factor,
    };
    let session = |id: &str, admin: &str, age| AdminSession {
        id: id.into(),
        admin: admin.into(),
        created_at: ago(age),
        last_used_at: ago(1000),
        expires_at: Timestamp(NOW + 6 * HOUR),
    };
    AdministratorsPage {
        admins: vec![
            admin(1, "alice", Role::Owner, true),
            admin(2, "bob", Role::Support, true),
            admin(3, "carol", Role::Moderator, false),
            admin(4, "dashboard", Role::ReadOnly, false),
        ],
        sessions: vec![session("a1", "alice", 2 * HOUR), session("b1", "bob", HOUR)],
        own: Some("a1".into()),
        networks: vec!["203.0.113.0/24".into(), "2001:db8::/32".into()],
        own_address: "203.0.113.24".into(),
        step_up: ProofField { is_needed: true, has_authenticator: true, error: None },
    }
}

pub fn enrolment() -> EnrolmentPage {
    EnrolmentPage {
        name: "carol".into(),
        uri: "otpauth://totp/Yarrow:carol?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Yarrow".into(),
        secret: "JBSW Y3DP EHPK 3PXP JBSW Y3DP EHPK 3PXP".into(),
        error: None,
    }
}

fn keys() -> Vec<ApiKey> {
    let key = |id, label: &str, role| ApiKey {
        id,
        label: label.into(),
        role,
        created_at: ago(100 * DAY),
        expires_at: None,
        last_used_at: Some(ago(HOUR)),
        suspended_at: None,
        revoked_at: None,
    };
    let since = Some(ago(3 * DAY));
    vec![
        ApiKey { expires_at: Some(Timestamp(NOW + 90 * DAY)), ..key(1, "shop-back-office", Role::Support) },
        key(2, "grafana", Role::ReadOnly),
        ApiKey { suspended_at: since, ..key(3, "old-script", Role::Owner) },
        ApiKey { expires_at: since, ..key(4, "trial", Role::ReadOnly) },
        ApiKey { revoked_at: since, ..key(5, "lost", Role::Owner) },
    ]
}

pub fn settings() -> Settings {
    let row = |name: &str, value: &str, origin: &SettingOrigin, detail| SettingRow {
        setting: ResolvedSetting { name: name.into(), value: value.into(), origin: origin.clone() },
        detail,
    };
    let (default, file) = (SettingOrigin::Default, SettingOrigin::File("yarrow.toml".into()));
    let environment = SettingOrigin::Environment("YARROW_PAYMENT_APP_ID".into());
    Settings {
        query: String::new(),
        is_changed_only: false,
        sections: vec![
            (
                "limits".into(),
                vec![
                    row("limits.time_zone", "Asia/Shanghai", &default, "Time zone of days in limits and reports"),
                    row("limits.page_size", "100", &default, "Most rows on a page"),
                ],
            ),
            (
                "payment".into(),
                vec![
                    row("payment.gateway", "alipay", &file, "Gateway of new orders"),
                    row("payment.app_id", "2021000000000001", &environment, "Application id at the provider"),
                    row("payment.private_key_file", "••••••", &environment, "RSA key of the application"),
                ],
            ),
            (
                "llm".into(),
                vec![
                    row("llm.base_url", "https://api.deepseek.com/v1", &file, "Address of the provider"),
                    row(
                        "llm.cost_per_day",
                        "50.00",
                        &SettingOrigin::CommandLine("cost"),
                        "Money that may be spent in a day",
                    ),
                ],
            ),
        ],
    }
}

pub fn log() -> Log {
    let line = |minutes: i64, level, target: &str, message: &str, fields: &[(&str, &str)]| LogEvent {
        at: ago(minutes * MINUTE),
        level,
        target: target.into(),
        message: message.into(),
        fields: fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    };
    Log {
        request: String::new(),
        trace: String::new(),
        older: Some(4000),
        is_newest: true,
        level: "info".into(),
        target: String::new(),
        query: String::new(),
        capacity: 2000,
        errors: Vec::new(),
        dropped: 12,
        lines: vec![
            line(
                0,
                LogLevel::Info,
                "yarrow::http",
                "request",
                &[
                    ("route", "/api/v1/sessions"),
                    ("status", "200"),
                    ("ms", "18.4"),
                    ("request_id", "01jd9x2k7m4q8r5t6v00"),
                ],
            ),
            line(
                1,
                LogLevel::Warn,
                "yarrow::providers::breaker",
                "circuit breaker opened",
                &[("provider", "llm"), ("failures", "5")],
            ),
            line(
                2,
                LogLevel::Error,
                "yarrow::providers::client",
                "connection refused",
                &[("provider", "llm"), ("attempt", "2")],
            ),
            line(9, LogLevel::Info, "yarrow::jobs", "ledger verification started", &[]),
        ],
    }
}

pub fn sign_in() -> SignInPage {
    SignInPage::default()
}

pub fn refused_sign_in() -> SignInPage {
    SignInPage {
        name: "alice".into(),
        error: Some("The name, password or code is wrong.".into()),
        needs_totp: true,
        totp_error: None,
        next: String::new(),
        has_ended: true,
        interrupted: Some(Interrupted {
            action: href("users/10001/notes"),
            fields: vec![("text".into(), "long text".into())],
        }),
    }
}

pub fn first_run() -> FirstRun {
    FirstRun { token: "t0k3n".into(), password_error: Some("The password is too short.".into()), ..FirstRun::default() }
}

/// The pages of the development server: path below the console, and its rendering.
pub const PAGES: &[&str] = &[
    "",
    "new",
    "search?q=山",
    "search?q=nothing",
    "users/10001",
    "users/10001?cause=suspended",
    "users/10001?cause=other",
    "users/10001?cause=used",
    "users/10001?cause=refunded",
    "list",
    "users/10001?cause=rejected",
    "orders/1",
    "growth",
    "revenue",
    "models",
    "orders/bulk",
    "moderation/violations/701",
    "moderation/review",
    "moderation/words",
    "moderation/services",
    "feedback",
    "messages/preview",
    "health",
    "logs",
    "administrators",
    "administrators/carol/totp",
    "keys",
    "settings",
    "cleanup",
    "cleanup/all",
    "cleanup/all?error",
    "sign-in",
    "sign-in?refused",
    "first-run/t0k3n",
    "error",
];

/// Renders a page of [`PAGES`].
pub fn render(cx: &ViewContext, path: &str) -> Option<maud::Markup> {
    use crate::http::console::views::{layout, pages};
    Some(match path {
        "" => pages::overview::page(cx, &overview(cx)),
        "new" => pages::overview::page(cx, &new_overview(cx)),
        "fragments/overview" => pages::overview::live(cx, &overview(cx)),
        "fragments/health" => pages::health::live(cx, &health()),
        "fragments/logs" => pages::log::live(cx, &log()),
        _ if path.starts_with("search") => {
            pages::search::page(cx, &search(if path.ends_with("nothing") { "nothing" } else { "山" }))
        }
        "list" => list(cx),
        "users/10001?cause=rejected" => pages::user::page(cx, &rejected_user()),
        _ if path.starts_with("users/10001") => {
            pages::user::page(cx, &user(path.split("cause=").nth(1).unwrap_or("open")))
        }
        _ if path.starts_with("orders/") => pages::orders::page(cx, &order()),
        "growth" => pages::figures::growth(cx, &growth(cx)),
        "revenue" => pages::figures::revenue(cx, &revenue(cx)),
        "orders/bulk" => pages::bulk::page(cx, &bulk_results()),
        "models" => pages::models::page(cx, &models(cx)),
        "moderation/violations/701" => pages::moderation::rejected_text(cx, &violation()),
        "moderation/review" => pages::moderation::review(cx, &review()),
        "moderation/words" => pages::moderation::words(cx, &words()),
        "moderation/services" => pages::moderation::services(cx, &services()),
        "feedback" => pages::feedback::page(cx, &feedback()),
        "messages/preview" => pages::messages::preview(cx, Some(ShownCount { value: 10_000, is_capped: true })),
        "health" => pages::health::page(cx, &health()),
        _ if path.starts_with("logs") => pages::log::page(cx, &log()),
        "administrators" => pages::administrators::administrators(cx, &administrators()),
        "administrators/carol/totp" => pages::administrators::totp(cx, &enrolment()),
        "keys" => {
            let created = ("report-bot".to_owned(), "yak_5fQ2hV8xS1m0Zr7cJ4pKd9LwT3bN6yAe".to_owned());
            pages::administrators::keys(cx, &keys(), Some(&created))
        }
        _ if path.starts_with("settings") => pages::settings::page(cx, &settings()),
        "cleanup" => pages::cleanup::page(cx, &cleanup()),
        _ if path.starts_with("cleanup/") => pages::cleanup::confirm(cx, &confirmation(cx), layout::Place::Cleanup),
        "sign-in" => pages::sign_in::sign_in(cx, &sign_in()),
        "sign-in?refused" => pages::sign_in::sign_in(cx, &refused_sign_in()),
        _ if path.starts_with("first-run/") => pages::sign_in::first_run(cx, &first_run()),
        "error" => {
            layout::error(cx, 500, "internal", "Something failed. The server log has the cause under the request id.")
        }
        _ => return None,
    })
}

fn zone() -> Zone {
    Zone::new(&"Asia/Shanghai".parse().unwrap(), Timestamp(NOW))
}
