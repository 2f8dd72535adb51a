//! The route table: every endpoint with its access, summary, limits and errors.
//!
//! Router, API document, documentation page and access tests follow from it. An endpoint's position in the table
//! identifies it in metrics.

#![allow(clippy::too_many_lines, reason = "the functions are parts of one table")]

use std::sync::Arc;

use axum::{Router, response::Redirect, routing::on_service};

use super::{
    admin::{
        self, administrators, api_keys, audit, code_messages, data_cleanup, interpretation_ratings, network_logs,
        payments, sensitive_word_migration, sensitive_words, session, user_data, users, violations,
    },
    console,
    endpoint::{Area, Endpoint, delete, get, patch, post, put},
    endpoint_service::{BodyLimit, EndpointService, EndpointSpec, reject},
    guard::Access::{Admin, Anyone, OwnUser, OwnUserOrAdmin, Public, Signature, TokenHolder},
    identity_proof, payment_channel,
    rate_limit::RateBudget,
    state::HttpState,
    system,
    v0::{self, auth, coin, content_moderation, divination, divination_history, feedback, llm, payment, user, version},
    v1::{
        self, account, changes, hexagrams::HexagramPages, interpretations, invite, orders, points, products, sessions,
    },
};
#[allow(clippy::enum_glob_use, reason = "the table uses most codes")]
use crate::{
    config::Bytes,
    domain::operations::admins::roles::Right::{
        Administer, FindUsers, GrantCoins, Moderate, OwnSession, SupportUsers, ViewAudit, ViewFigures,
    },
    error::{
        Code::{self, *},
        Result,
    },
    providers::payment::apple::MAX_APPLE_NOTIFICATION_BYTES,
};

const AUTH: BodyLimit = |limits| limits.auth_body;
const BATCH: BodyLimit = |limits| limits.batch_body;
const CASTING: BodyLimit = |limits| limits.history_body;
const HISTORY_BATCH: BodyLimit = |limits| limits.history_batch_body;
const CHAT: BodyLimit = |limits| limits.chat_body;
const FEEDBACK: BodyLimit = |limits| limits.feedback_body;
const INTERPRETATION: BodyLimit = |limits| limits.interpretation_body;
/// A notification of the App Store holds two messages with three certificates each.
const APPLE_NOTIFICATION: BodyLimit = |_| Bytes(MAX_APPLE_NOTIFICATION_BYTES as u64);
const CALLBACK: BodyLimit = |limits| limits.notify_body;
const CHANNEL_CALLBACK: BodyLimit = |limits| limits.channel_notify_body;

/// Errors of a report of a purchase that its store signed.
const PURCHASE_ERRORS: [Code; 9] = [
    NotYours,
    NotFound,
    PurchaseRefused,
    PurchaseRevoked,
    UnknownPackage,
    AlreadyPosted,
    BalanceTooLarge,
    AccountInconsistent,
    NotConfigured,
];

/// Errors of a report of a purchase about which the store is asked.
const QUERIED_PURCHASE_ERRORS: [Code; 12] = [
    NotYours,
    NotFound,
    PurchaseRefused,
    PurchaseRevoked,
    UnknownPackage,
    AlreadyPosted,
    BalanceTooLarge,
    AccountInconsistent,
    NotConfigured,
    ProviderFailed,
    ProviderUnavailable,
    ProviderTimeout,
];

/// Errors of a sign-in with a proof of identity.
const IDENTITY_ERRORS: [Code; 9] = [
    InvalidIdentity,
    IdentityTaken,
    UserSuspended,
    TooManyRequests,
    NotConfigured,
    AccountInconsistent,
    ProviderFailed,
    ProviderUnavailable,
    ProviderTimeout,
];

/// Errors of both endpoints that reset a balance.
const RESET_ERRORS: [Code; 7] =
    [NotYours, StepUpRequired, InvalidCode, TooManyRequests, ConfirmationRequired, NotFound, AccountInconsistent];

/// Returns all endpoints in the order of the table.
pub fn endpoints() -> Vec<Endpoint> {
    let areas = [
        (Area::Identity, identity()),
        (Area::Identity, profiles_and_user_data()),
        (Area::Identity, users_for_staff()),
        (Area::Divination, hexagrams_and_sessions()),
        (Area::Divination, divination()),
        (Area::Money, balances_and_products()),
        (Area::Money, orders_and_payments()),
        (Area::Money, store_purchases()),
        (Area::Moderation, moderation()),
        (Area::Messaging, messaging()),
        (Area::Operations, operations()),
    ];
    let in_areas = areas.into_iter().flat_map(|(area, endpoints)| endpoints.into_iter().map(move |one| (area, one)));
    in_areas.enumerate().map(|(index, (area, endpoint))| endpoint.in_table(index, area)).collect()
}

/// The endpoints that a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Everything,
    EverythingButAdmin,
    /// Everything, with the console at `/`.
    AdminListener,
}

impl Part {
    fn includes(self, endpoint: &Endpoint) -> bool {
        match self {
            Self::Everything => true,
            Self::EverythingButAdmin => !endpoint.path.starts_with("/admin/"),
            Self::AdminListener => endpoint.path != "/",
        }
    }
}

/// Returns the router of a part.
///
/// # Errors
/// `internal` for a method that axum does not route.
///
/// # Panics
/// If the table has a method and path twice.
pub fn router(state: &Arc<HttpState>, part: Part) -> Result<Router> {
    let mut router = Router::new();
    for endpoint in endpoints().into_iter().filter(|endpoint| part.includes(endpoint)) {
        let service = EndpointService::new(EndpointSpec {
            state: Arc::clone(state),
            id: endpoint.id(),
            access: endpoint.access,
            body_limit: endpoint.body_limit,
            budget: endpoint.budget,
            is_idempotent: endpoint.is_idempotent,
            handler: Arc::clone(&endpoint.handler),
        });
        let filter = endpoint.method_filter()?;
        // Some clients end every path with a slash. The documentation page has an endpoint of its own with one.
        if !endpoint.path.ends_with('/') && endpoint.path != "/docs" {
            router = router.route(&format!("{}/", endpoint.path), on_service(filter, service.clone()));
        }
        router = router.route(endpoint.path, on_service(filter, service));
    }
    if part != Part::EverythingButAdmin {
        router = console::add_to(router, state)?;
    }
    if part == Part::AdminListener {
        router = router.route("/", axum::routing::get(|| async { Redirect::to("/admin/console/") }));
    }
    Ok(router
        .fallback(|request| reject(UnknownEndpoint, request))
        .method_not_allowed_fallback(|request| reject(MethodNotAllowed, request)))
}

fn identity() -> Vec<Endpoint> {
    vec![
        post("/auth/send-code", Anyone, auth::send_code)
            .budget(RateBudget::Codes)
            .summary("Sends a sign-in code by SMS.")
            .body_limit(AUTH)
            .errors(&[Unauthenticated, TooManyRequests, ProviderUnavailable, ProviderTimeout]),
        post("/auth/login", Anyone, auth::login)
            .budget(RateBudget::WrongCodes)
            .summary("Exchanges a phone number and its code for a token.")
            .body_limit(AUTH)
            .errors(&[InvalidCode, UserSuspended, TooManyRequests]),
        post("/auth/identity", Anyone, auth::sign_in_with_identity)
            .summary("Exchanges a proof of identity by Apple, Google, WeChat or the carrier for a token.")
            .body_limit(AUTH)
            .errors(&IDENTITY_ERRORS),
        post("/auth/identity/apple/events", Anyone, identity_proof::receive_apple_event)
            .summary("Receives a notification of Apple about an identity, such as a revoked consent.")
            .body_limit(AUTH)
            .errors(&[InvalidIdentity, NotConfigured, ProviderFailed, ProviderUnavailable, ProviderTimeout]),
        post("/auth/validate-token", TokenHolder, auth::validate_token)
            .summary("Returns the state of a token. Extends a token that expires soon.")
            .body_limit(AUTH),
        post("/auth/refresh-token", TokenHolder, auth::refresh_token)
            .summary("Replaces a token. For a short time the old token returns the same new token.")
            .body_limit(AUTH)
            .errors(&[Unauthenticated, UserSuspended]),
        post("/auth/logout", TokenHolder, auth::logout)
            .summary("Signs out the device that a token belongs to.")
            .body_limit(AUTH),
        post("/api/v1/auth/send-code", Anyone, v1::auth::send_code)
            .budget(RateBudget::Codes)
            .summary("Sends a code by email.")
            .body_limit(AUTH)
            .errors(&[Unauthenticated, TooManyRequests, ProviderUnavailable, ProviderTimeout]),
        post("/api/v1/auth/login", Anyone, v1::auth::login)
            .budget(RateBudget::WrongCodes)
            .summary("Exchanges an email address and its code for a token. Creates the account if needed.")
            .body_limit(AUTH)
            .errors(&[InvalidCode, UserSuspended, TooManyRequests, AccountInconsistent]),
        post("/api/v1/auth/identity", Anyone, v1::auth::sign_in_with_identity)
            .summary("Exchanges a proof of identity for a token. Creates the account if needed.")
            .body_limit(AUTH)
            .errors(&IDENTITY_ERRORS),
        post("/api/v1/auth/refresh", TokenHolder, v1::auth::refresh)
            .summary("Replaces a token. For a short time the old token returns the same new token.")
            .body_limit(AUTH)
            .errors(&[Unauthenticated, UserSuspended]),
        post("/api/v1/auth/logout", TokenHolder, v1::auth::logout)
            .summary("Signs out the device that a token belongs to.")
            .body_limit(AUTH),
        get("/api/v1/auth/tokens", OwnUser, v1::auth::list_devices).summary("Lists the devices that are signed in."),
        delete("/api/v1/auth/tokens/{id}", OwnUser, v1::auth::end_device)
            .summary("Signs out a device.")
            .body_limit(AUTH)
            .errors(&[NotFound]),
        get("/api/v1/account", OwnUser, account::find).summary("Returns the caller's account."),
        patch("/api/v1/account", OwnUser, account::change)
            .summary("Changes the profile fields that are sent.")
            .errors(&[NicknameSuspended, ContentRejected, ModerationUnavailable, TooManyRequests]),
        delete("/api/v1/account", OwnUser, account::delete)
            .summary("Deletes the account and all personal data. Requires a recent sign-in.")
            .body_limit(AUTH)
            .errors(&[InvalidParameters, StepUpRequired, NotFound, AccountInconsistent]),
        get("/api/v1/account/export", OwnUser, account::export)
            .for_suspended()
            .summary("Exports all data stored about the caller. Only one export runs at a time.")
            .errors(&[AlreadyRunning]),
        post("/api/v1/account/address", OwnUser, account::change_address)
            .summary("Sets the phone number or email address. Requires a recent sign-in and a code for `address`.")
            .body_limit(AUTH)
            .errors(&[StepUpRequired, InvalidCode, TooManyRequests, AddressTaken, AccountInconsistent]),
        post("/api/v1/account/identities", OwnUser, account::link_identity)
            .summary("Adds an identity at another service. Requires a recent sign-in and a proof of the identity.")
            .body_limit(AUTH)
            .errors(&[
                StepUpRequired,
                InvalidIdentity,
                IdentityTaken,
                TooManyRequests,
                NotConfigured,
                ProviderFailed,
                ProviderUnavailable,
                ProviderTimeout,
            ]),
        delete("/api/v1/account/identities/{provider}", OwnUser, account::unlink_identity)
            .summary("Removes an identity while another way to sign in remains. Signs out other devices.")
            .body_limit(AUTH)
            .errors(&[StepUpRequired, NotFound, LastIdentity]),
    ]
}

fn profiles_and_user_data() -> Vec<Endpoint> {
    vec![
        get("/user/profile", OwnUserOrAdmin(SupportUsers), user::find_profile)
            .summary("Returns the user's profile.")
            .errors(&[NotYours, NotFound]),
        put("/user/profile", OwnUser, user::change_profile)
            .summary("Changes the profile fields that are sent.")
            .errors(&[NotYours, NicknameSuspended, ContentRejected, ModerationUnavailable, TooManyRequests]),
        put("/user/nickname", OwnUser, user::change_nickname).summary("Changes the nickname.").errors(&[
            NotYours,
            NicknameSuspended,
            ContentRejected,
            ModerationUnavailable,
            TooManyRequests,
        ]),
        put("/user/signature", OwnUser, user::change_signature).summary("Changes the signature.").errors(&[
            NotYours,
            ContentRejected,
            ModerationUnavailable,
            TooManyRequests,
        ]),
        get("/api/v1/preferences", OwnUser, v1::preferences::find)
            .summary("Returns the caller's language, time zone and notification settings."),
        patch("/api/v1/preferences", OwnUser, v1::preferences::change)
            .summary("Changes the preferences that are sent and returns all of them."),
        get("/api/v1/changes", OwnUser, changes::list)
            .summary("Returns what changed since a cursor: sessions, history, notifications, preferences, balances and deletions.")
            .errors(&[CursorExpired]),
        post("/admin/user-data/sync", Admin(SupportUsers), user_data::synchronise)
            .summary("Validates and repairs the stored data of all users, or of one.")
            .errors(&[NotFound, AlreadyRunning]),
        get("/admin/user-data/validate/user/{userId}", Admin(SupportUsers), user_data::validate_by_id)
            .summary("Validates the stored data of a user.")
            .errors(&[NotFound]),
        get("/admin/user-data/validate/phone/{phoneNumber}", Admin(SupportUsers), user_data::validate_by_phone)
            .summary("Validates the stored data of the user with this phone number.")
            .errors(&[NotFound]),
        post("/admin/user-data/fix/{phoneNumber}", Admin(SupportUsers), user_data::fix)
            .summary("Repairs what can be repaired without a decision. Repeating it changes nothing.")
            .errors(&[NotFound]),
        post("/admin/user-data/restore-history/{userId}", Admin(SupportUsers), user_data::restore_history)
            .summary("Shows a user's hidden history records again, as the user's own `restore-all` does.")
            .errors(&[NotFound]),
        post("/admin/user-data/validate/batch", Admin(SupportUsers), user_data::validate_batch)
            .summary("Validates the stored data of many users."),
        get("/admin/user-data/test/user-info/{userId}", Admin(SupportUsers), user_data::show_attachment)
            .summary("Returns the user data that a language model would receive.")
            .errors(&[NotFound]),
    ]
}

/// The list of users, the acts of the staff on one user, and code messages.
fn users_for_staff() -> Vec<Endpoint> {
    vec![
        get("/admin/users", Admin(FindUsers), users::list)
            .summary("Lists users with masked addresses, newest first, or searches by id, address and nickname."),
        get("/admin/users/{userId}/suspensions", Admin(FindUsers), users::list_suspensions)
            .summary("Lists the suspensions of a user, newest first.")
            .errors(&[NotFound]),
        post("/admin/users/{userId}/suspension", Admin(Moderate), users::suspend)
            .summary("Suspends a user, who is told the reason.")
            .creates()
            .idempotent()
            .errors(&[NotFound, AlreadyExists]),
        delete("/admin/users/{userId}/suspension", Admin(Moderate), users::lift_suspension)
            .summary("Lifts the suspension of a user.")
            .errors(&[NotFound]),
        get("/admin/users/{userId}/notes", Admin(FindUsers), users::list_notes)
            .summary("Lists the notes of the staff about a user, newest first.")
            .errors(&[NotFound]),
        post("/admin/users/{userId}/notes", Admin(FindUsers), users::add_note)
            .summary("Adds a note about a user, which only the staff and the user's export show.")
            .creates()
            .idempotent()
            .errors(&[NotFound, AlreadyExists]),
        delete("/admin/users/{userId}/notes/{id}", Admin(FindUsers), users::remove_note)
            .summary("Removes one of the caller's own notes.")
            .errors(&[NotFound]),
        delete("/admin/users/{userId}/nickname", Admin(Moderate), users::reset_nickname)
            .summary("Clears a user's nickname. The user is told the reason.")
            .errors(&[NotFound]),
        get("/admin/users/{userId}/devices", Admin(SupportUsers), users::list_devices)
            .summary("Lists the devices on which a user is signed in.")
            .errors(&[NotFound]),
        delete("/admin/users/{userId}/devices", Admin(SupportUsers), users::sign_out_everywhere)
            .summary("Signs out all devices of a user.")
            .errors(&[NotFound]),
        delete("/admin/users/{userId}/devices/{id}", Admin(SupportUsers), users::sign_out_device)
            .summary("Signs out one device of a user.")
            .errors(&[NotFound]),
        put("/admin/users/{userId}/phone-number", Admin(SupportUsers), users::move_to_phone)
            .for_recent_sign_in()
            .summary("Moves an account to a new phone number after a check of the person, and signs out its devices.")
            .idempotent()
            .errors(&[NotFound, AddressTaken]),
        get("/admin/code-messages", Admin(SupportUsers), code_messages::list)
            .summary("Lists the verification codes requested for an address with their outcomes, newest first.")
            .errors(&[NotFound]),
    ]
}

fn hexagrams_and_sessions() -> Vec<Endpoint> {
    let pages = HexagramPages::default();
    vec![
        get("/api/v1/hexagrams", Anyone, pages.list()).summary("Lists the sixty-four hexagrams with their judgements."),
        get("/api/v1/hexagrams/{number}", Anyone, pages.texts())
            .summary("Returns a hexagram with all its classical texts.")
            .errors(&[NotFound]),
        post("/api/v1/sessions", OwnUser, sessions::cast)
            .summary("Casts a hexagram for a question and spends the points for it.")
            .creates()
            .idempotent()
            .errors(&[
                ContentRejected,
                ModerationUnavailable,
                TooManyRequests,
                InsufficientPoints,
                NotFound,
                AccountInconsistent,
            ]),
        get("/api/v1/sessions", OwnUser, sessions::list).summary("Lists the caller's sessions, newest first."),
        get("/api/v1/sessions/{id}", OwnUser, sessions::find)
            .summary("Returns one session with its interpretations.")
            .errors(&[NotFound]),
        patch("/api/v1/sessions/{id}", OwnUser, sessions::annotate)
            .summary("Sets or deletes the title and the note of a session.")
            .errors(&[NotFound, ContentRejected, ModerationUnavailable, TooManyRequests]),
        delete("/api/v1/sessions/{id}", OwnUser, sessions::delete)
            .summary("Deletes a session. Only its non-personal data is kept.")
            .errors(&[NotFound]),
        get("/api/v1/sessions/{id}/card.svg", OwnUser, sessions::card::draw)
            .summary("Draws a session as a picture for sharing, without the question unless it is asked for.")
            .errors(&[NotFound]),
        post("/api/v1/sessions/{id}/interpretation", OwnUser, sessions::interpret)
            .budget(RateBudget::Interpretations)
            .summary("Interprets a session, as JSON or events. Later requests return the newest interpretation.")
            .idempotent()
            .resumable("^[0-9a-fA-F]{32}:[0-9]{1,19}$", "4bf92f3577b34da6a3ce929d0e0e4736:17")
            .errors(&[
                NotFound,
                ContentRejected,
                ModerationUnavailable,
                AlreadyRunning,
                InterpretationLimit,
                InsufficientPoints,
                AccountInconsistent,
                TooManyRequests,
                TooManyCalls,
                BudgetSpent,
                ProviderFailed,
                ProviderUnavailable,
                ProviderTimeout,
            ]),
        put("/api/v1/interpretations/{traceId}/rating", OwnUser, interpretations::rate)
            .summary("Rates one of the caller's interpretations, in place of an earlier rating.")
            .errors(&[NotFound, ContentRejected, ModerationUnavailable, TooManyRequests]),
        get("/admin/interpretation-ratings", Admin(SupportUsers), interpretation_ratings::report)
            .summary("Counts the users' ratings by model and prompt version, and lists their notes, newest first."),
    ]
}

fn divination() -> Vec<Endpoint> {
    vec![
        post("/divination-history/save", OwnUser, divination_history::save)
            .summary("Saves a history record, or changes the fields that are sent of an existing one.")
            .body_limit(CASTING)
            .errors(&[NotYours, HistoryFull, HistoryTooLarge]),
        post("/divination-history/save-batch", OwnUser, divination_history::save_batch)
            .summary("Saves up to 100 history records at once, each as `save` does and with its own result. Repeating it changes nothing more.")
            .body_limit(HISTORY_BATCH),
        post("/divination-history/get", OwnUser, divination_history::list)
            .summary("Lists the caller's history records, newest first.")
            .errors(&[NotYours]),
        post("/divination-history/delete", OwnUser, divination_history::delete)
            .summary("Deletes history records by their record ids.")
            .errors(&[NotYours]),
        get("/divination-history/count/{phoneNumber}", OwnUser, divination_history::count)
            .summary("Returns the number of the caller's history records.")
            .errors(&[NotYours]),
        post("/divination-history/deactivate-all", OwnUser, divination_history::deactivate_all)
            .summary("Hides all of the caller's history records. Requires a recent sign-in or a `code`. They are deleted some weeks later.")
            .errors(&[NotYours, StepUpRequired, InvalidCode, TooManyRequests]),
        post("/divination-history/restore-all", OwnUser, divination_history::restore_all)
            .summary("Shows hidden history records again, for a cancellation that was not completed.")
            .errors(&[NotYours]),
        post("/divination/enhanced", OwnUser, divination::interpret)
            .budget(RateBudget::Interpretations)
            .summary("Interprets a casting, as JSON or, with `Accept: text/event-stream`, as events.")
            .body_limit(INTERPRETATION)
            .errors(&[
                NotYours,
                NotFound,
                ContentRejected,
                ModerationUnavailable,
                TooManyRequests,
                TooManyCalls,
                BudgetSpent,
                ProviderFailed,
                ProviderUnavailable,
                ProviderTimeout,
            ]),
        get("/divination/records/user/{userId}", OwnUserOrAdmin(SupportUsers), divination::list_of_user)
            .summary("Lists the user's interpretations, newest first.")
            .errors(&[NotYours, NotFound]),
        get("/divination/records/trace/{traceId}", OwnUserOrAdmin(SupportUsers), divination::find_by_trace)
            .summary("Returns one interpretation.")
            .errors(&[NotFound]),
        get("/divination/records/phone/{phoneNumber}", OwnUserOrAdmin(SupportUsers), divination::list_of_phone)
            .summary("Lists the interpretations of the user with this phone number, newest first.")
            .errors(&[NotYours, NotFound]),
        get(
            "/divination/records/user/{userId}/daterange",
            OwnUserOrAdmin(SupportUsers),
            divination::list_of_user_between,
        )
        .summary("Lists the user's interpretations in a time range, newest first.")
        .errors(&[NotYours, NotFound]),
        get("/divination/records/failed", Admin(SupportUsers), divination::list_failed)
            .summary("Lists failed and interrupted interpretations, newest first."),
        get("/divination/records/slow", Admin(SupportUsers), divination::list_slow)
            .summary("Lists slow interpretations, newest first."),
        get("/divination/stats/user/{userId}/count", OwnUserOrAdmin(SupportUsers), divination::count_of_user)
            .summary("Returns the number of the user's interpretations.")
            .errors(&[NotYours, NotFound]),
        get("/divination/stats/daterange/count", Admin(ViewFigures), divination::count_between)
            .summary("Returns the number of interpretations in a time range."),
        post("/llm/chat", OwnUser, llm::chat)
            .budget(RateBudget::Chat)
            .summary("Returns the language model's reply to a conversation, as JSON or, with `stream`, as events.")
            .body_limit(CHAT)
            .errors(&[
                ContentRejected,
                ModerationUnavailable,
                TooManyRequests,
                TooManyCalls,
                BudgetSpent,
                ProviderFailed,
                ProviderUnavailable,
                ProviderTimeout,
            ]),
    ]
}

fn balances_and_products() -> Vec<Endpoint> {
    vec![
        get("/coin/balance", OwnUserOrAdmin(SupportUsers), coin::balance)
            .summary("Returns the user's coin balance.")
            .errors(&[NotYours, NotFound]),
        get("/coin/balance/phone", OwnUserOrAdmin(SupportUsers), coin::balance_by_phone)
            .summary("Returns the coin balance of the user with this phone number.")
            .errors(&[NotYours, NotFound]),
        post("/coin/consume", OwnUser, coin::consume)
            .summary("Spends the coins for one use. The server sets the price.")
            .idempotent()
            .errors(&[NotYours, InsufficientCoins, AccountInconsistent]),
        post("/coin/consume/phone", OwnUser, coin::consume_by_phone)
            .summary("Spends the coins for one use. The server sets the price.")
            .idempotent()
            .errors(&[NotYours, InsufficientCoins, AccountInconsistent]),
        post("/coin/reset", OwnUserOrAdmin(Administer), coin::reset)
            .summary("Sets the balance to 0. Requires a recent sign-in or a `code`; from an administrator, a reason.")
            .idempotent()
            .errors(&RESET_ERRORS),
        post("/coin/reset/phone", OwnUserOrAdmin(Administer), coin::reset_by_phone)
            .summary("Sets the balance to 0. Requires a recent sign-in or a `code`; from an administrator, a reason.")
            .idempotent()
            .errors(&RESET_ERRORS),
        post("/coin/increase/phone", Admin(GrantCoins), coin::increase)
            .summary("Adds coins to a user's balance.")
            .idempotent()
            .errors(&[NotFound, BalanceTooLarge, AccountInconsistent]),
        post("/coin/sync", Admin(SupportUsers), coin::synchronise)
            .summary("Creates missing coin accounts and restores wrong balances from the ledger.")
            .errors(&[AlreadyRunning]),
        get("/api/v1/points", OwnUser, points::balance).summary("Returns the caller's point balance."),
        get("/api/v1/points/ledger", OwnUser, points::entries)
            .summary("Lists the entries of the caller's point ledger, newest first."),
        post("/api/v1/points/exchange", OwnUser, points::exchange)
            .summary("Exchanges coins for points, at the operator's rate.")
            .idempotent()
            .errors(&[NotConfigured, InsufficientCoins, BalanceTooLarge, AccountInconsistent]),
        get("/coin/history", OwnUser, coin::history).summary("Lists the changes of the coin balance, newest first."),
        get("/payment/products", Anyone, products::list)
            .summary("Lists the products for sale, and what a casting and a use cost."),
        get("/api/v1/products", Anyone, products::list)
            .summary("Lists the products for sale, and what a casting and a use cost."),
        get("/api/v1/invite", OwnUser, invite::find)
            .summary("Returns the caller's invite code and the points it has earned."),
        post("/api/v1/invite/redeem", OwnUser, invite::redeem)
            .summary("Redeems another user's invite code, once and within the first days. Both users get points.")
            .idempotent()
            .errors(&[UnknownInvite, OwnInvite, InviteExpired, AlreadyInvited, AccountInconsistent, BalanceTooLarge]),
        get("/admin/products", Admin(ViewFigures), admin::products::list)
            .summary("Lists all products, withdrawn ones too, by asset and price."),
        get("/admin/products/{id}", Admin(ViewFigures), admin::products::find)
            .summary("Returns a product.")
            .errors(&[NotFound]),
        put("/admin/products/{id}", Admin(Administer), admin::products::put)
            .summary("Defines a product. Other terms than the current ones are a new version; old orders keep theirs.")
            .errors(&[AlreadyExists]),
        post("/admin/products/{id}/offer", Admin(Administer), admin::products::offer)
            .summary("Offers a product for sale.")
            .errors(&[NotFound]),
        post("/admin/products/{id}/withdraw", Admin(Administer), admin::products::withdraw)
            .summary("Withdraws a product from sale.")
            .errors(&[NotFound]),
    ]
}

fn store_purchases() -> Vec<Endpoint> {
    vec![
        get("/api/v1/payment/account-token", OwnUser, v1::purchases::account_token)
            .summary("Returns the token that the app passes to a store, so that a purchase names the caller."),
        get("/payment/account-token", OwnUser, v1::purchases::account_token)
            .summary("Returns the token that the app passes to a store, so that a purchase names the caller."),
        post("/api/v1/purchases/apple", OwnUser, v1::purchases::report_apple)
            .summary("Credits a purchase in the App Store, once. Report it again until the answer is 200.")
            .errors(&PURCHASE_ERRORS),
        post("/payment/purchases/apple", OwnUser, v0::purchases::report_apple)
            .summary("Credits a purchase in the App Store, once. Report it again until the answer is 200.")
            .errors(&PURCHASE_ERRORS),
        post("/api/v1/purchases/google", OwnUser, v1::purchases::report_google)
            .summary("Asks Google Play about a purchase and credits it, once. The service consumes it.")
            .errors(&QUERIED_PURCHASE_ERRORS),
        post("/payment/purchases/google", OwnUser, v0::purchases::report_google)
            .summary("Asks Google Play about a purchase and credits it, once. The service consumes it.")
            .errors(&QUERIED_PURCHASE_ERRORS),
        get("/api/v1/purchases", OwnUser, v1::purchases::list)
            .summary("Lists the caller's purchases in app stores, newest first."),
        post("/payment/notify/apple", Signature, v0::purchases::notify_apple)
            .summary("Receives a server notification of the App Store, version 2.")
            .body_limit(APPLE_NOTIFICATION),
        post("/payment/notify/google", Signature, v0::purchases::notify_google)
            .summary("Receives a real-time notification of Google Play, pushed by Pub/Sub.")
            .body_limit(CALLBACK),
        get("/admin/purchases", Admin(SupportUsers), admin::purchases::list)
            .summary("Lists purchases in app stores, newest first."),
        get("/admin/purchases/{id}", Admin(SupportUsers), admin::purchases::show)
            .summary("Returns a purchase with its notifications and ledger entries.")
            .errors(&[NotFound]),
        post("/admin/purchases/{id}/history", Admin(SupportUsers), admin::purchases::history)
            .summary("Asks the App Store about all purchases of a buyer and applies their states.")
            .errors(&[NotFound, NotConfigured, ProviderFailed, ProviderUnavailable, ProviderTimeout]),
        post("/admin/purchases/{id}/query", Admin(SupportUsers), admin::purchases::query)
            .summary("Asks the store about a purchase and applies its state. Finds Apple's order numbers, too.")
            .errors(&[
                NotFound,
                NotConfigured,
                PurchaseRefused,
                AccountInconsistent,
                ProviderFailed,
                ProviderUnavailable,
                ProviderTimeout,
            ]),
    ]
}

fn orders_and_payments() -> Vec<Endpoint> {
    vec![
        get("/payment/orders", OwnUser, payment::list).summary("Lists the caller's orders, newest first."),
        post("/api/v1/orders", OwnUser, orders::create)
            .summary("Creates an order to pay. Returns the same order again for a few minutes.")
            .errors(&[UnknownProduct, TooManyCalls, ProviderFailed, ProviderUnavailable, ProviderTimeout]),
        get("/api/v1/orders", OwnUser, orders::list).summary("Lists the caller's orders, newest first."),
        get("/api/v1/orders/{orderNo}", OwnUser, orders::find).summary("Returns an order.").errors(&[NotFound]),
        post("/api/v1/orders/{orderNo}/confirm", OwnUser, orders::confirm)
            .summary("Asks the provider about an order and credits it if it is paid.")
            .errors(&[NotFound]),
        get("/payment/gateway/order", OwnUser, payment::order)
            .summary("Creates an order to pay. Returns the same order again for a few minutes.")
            .errors(&[NotYours, UnknownPackage, TooManyCalls, ProviderFailed, ProviderUnavailable, ProviderTimeout]),
        post("/payment/gateway/order", OwnUser, payment::order)
            .summary("Creates an order to pay. Returns the same order again for a few minutes.")
            .errors(&[NotYours, UnknownPackage, TooManyCalls, ProviderFailed, ProviderUnavailable, ProviderTimeout]),
        post("/payment/notify", Signature, payment::notify)
            .summary("Receives the provider's signed callback. Responds with 200 and `success` or `fail`.")
            .body_limit(CALLBACK),
        post("/payment/notify/{channel}", Signature, payment_channel::receive)
            .summary("Receives the signed callback of a payment channel.")
            .errors(&[
                InvalidRequest,
                InvalidParameters,
                NotFound,
                Unauthenticated,
                BodyTooLarge,
                Overloaded,
                StorageFailed,
                Internal,
            ])
            .body_limit(CHANNEL_CALLBACK),
        post("/payment/update-balance", OwnUserOrAdmin(Administer), payment::update_balance)
            .summary("Confirms a payment with the provider and credits it. Administrators credit reviewed orders.")
            .errors(&[NotYours, NotFound, OrderState, AlreadyPosted, BalanceTooLarge, AccountInconsistent]),
        get("/admin/payments", Admin(SupportUsers), payments::list).summary("Lists orders, newest first."),
        get("/admin/payments/report", Admin(ViewFigures), payments::make_report)
            .summary("Reconciles the orders of a time range with the ledger, day by day."),
        post("/admin/payments/bill", Admin(Administer), payments::check_bill)
            .summary("Compares the providers' bills of a day with orders and refunds. Differences go to review.")
            .errors(&[ProviderFailed, ProviderUnavailable, ProviderTimeout]),
        get("/admin/payments/bills", Admin(SupportUsers), payments::list_bills)
            .summary("Lists the checked bills of the providers with their differences, newest day first."),
        get("/admin/payments/callbacks", Admin(SupportUsers), payments::list_callbacks)
            .summary("Lists the provider's callbacks and their outcomes, newest first."),
        post("/admin/payments/callbacks/{id}/replay", Admin(SupportUsers), payments::replay)
            .summary("Processes a stored callback again.")
            .errors(&[NotFound]),
        get("/admin/payments/{orderNo}", Admin(SupportUsers), payments::show)
            .summary("Returns an order with its ledger entries, callbacks and refunds.")
            .errors(&[NotFound]),
        post("/admin/payments/{orderNo}/query", Admin(SupportUsers), payments::query)
            .summary("Asks the provider about an order and settles the order accordingly.")
            .errors(&[NotFound, OrderState, ProviderFailed, ProviderUnavailable, ProviderTimeout]),
        post("/admin/payments/{orderNo}/settle", Admin(Administer), payments::settle)
            .for_recent_sign_in()
            .summary("Decides about an order under review.")
            .idempotent()
            .errors(&[NotFound, OrderState, AlreadyPosted, BalanceTooLarge, AccountInconsistent]),
        post("/admin/payments/{orderNo}/refund", Admin(Administer), payments::refund)
            .for_recent_sign_in()
            .summary("Refunds money and takes back the coins that it bought.")
            .idempotent()
            .errors(&[
                NotFound,
                OrderState,
                IdempotencyKeyReused,
                ProviderFailed,
                ProviderUnavailable,
                ProviderTimeout,
            ]),
        post("/admin/payments/{orderNo}/sandbox-pay", Admin(Administer), payments::sandbox_pay)
            .summary("Pays an order in the sandbox, at no cost.")
            .errors(&[NotFound, OrderState]),
    ]
}

fn moderation() -> Vec<Endpoint> {
    vec![
        post("/content-moderation/check-question", OwnUserOrAdmin(Moderate), content_moderation::check_question)
            .summary("Checks whether a question is allowed.")
            .errors(&[NotYours, NotFound, ModerationUnavailable, TooManyRequests]),
        get("/admin/sensitive-words/statistics", Admin(Moderate), sensitive_words::statistics)
            .summary("Returns statistics of the local word list."),
        get("/admin/sensitive-words/list", Admin(Moderate), sensitive_words::list)
            .summary("Lists the words of the local word list."),
        post("/admin/sensitive-words/add", Admin(Moderate), sensitive_words::add)
            .summary("Adds a word. It takes effect at once."),
        post("/admin/sensitive-words/import", Admin(Moderate), sensitive_words::import)
            .summary("Adds many words at once, with warnings about those that would reject innocent texts.")
            .body_limit(BATCH),
        get("/admin/sensitive-words/allowed-phrases", Admin(Moderate), sensitive_words::allowed_phrases)
            .summary("Lists the allowed phrases."),
        post("/admin/sensitive-words/allowed-phrases", Admin(Moderate), sensitive_words::allow)
            .summary("Allows a phrase that contains a listed word."),
        delete("/admin/sensitive-words/allowed-phrases", Admin(Moderate), sensitive_words::disallow)
            .summary("Removes an allowed phrase.")
            .errors(&[NotFound]),
        delete("/admin/sensitive-words/remove", Admin(Moderate), sensitive_words::remove)
            .summary("Removes a word.")
            .errors(&[NotFound]),
        post("/admin/sensitive-words/test/nickname", Admin(Moderate), sensitive_words::test_nickname)
            .summary("Checks a nickname against the local word list."),
        post("/admin/sensitive-words/test/signature", Admin(Moderate), sensitive_words::test_signature)
            .summary("Checks a signature against the local word list."),
        post("/admin/sensitive-words/test/question", Admin(Moderate), sensitive_words::test_question)
            .summary("Checks a question against the local word list."),
        get("/admin/violations/list", Admin(Moderate), violations::list).summary("Lists rejected texts, newest first."),
        get("/admin/violations/user/{userId}/stats", Admin(Moderate), violations::user_stats)
            .summary("Returns statistics of a user's rejected texts.")
            .errors(&[NotFound]),
        get("/admin/violations/stats/types", Admin(Moderate), violations::type_stats)
            .summary("Counts rejected texts by type."),
        get("/admin/violations/frequent-violators", Admin(Moderate), violations::frequent_violators)
            .summary("Lists users whose texts are rejected often."),
        get("/admin/violations/review", Admin(Moderate), violations::review::list)
            .summary("Lists texts that passed and wait for a moderator, oldest first."),
        post("/admin/violations/review/decide", Admin(Moderate), violations::review::decide)
            .summary("Upholds or acquits texts in review, each with its own outcome."),
        post("/admin/violations/review/undo", Admin(Moderate), violations::review::undo)
            .summary("Undoes decisions of the last day."),
        post("/admin/violations/{id}/acquittal", Admin(Moderate), violations::review::acquit)
            .summary("Marks a rejected text as wrongly refused, and allows a phrase.")
            .errors(&[NotFound, AlreadyExists]),
        delete("/admin/violations/{id}/acquittal", Admin(Moderate), violations::review::undo_acquittal)
            .summary("Undoes the acquittal of a rejected text.")
            .errors(&[NotFound]),
        delete("/admin/violations/cleanup", Admin(Administer), violations::clean_up)
            .summary("Deletes old records of rejected texts."),
        get("/admin/violations/{id}", Admin(Moderate), violations::find)
            .summary("Returns one rejected text.")
            .errors(&[NotFound]),
        get("/admin/sensitive-word-migration/status", Admin(Moderate), sensitive_word_migration::status)
            .summary("Returns the moderation service that decides and the state of both services."),
        post("/admin/sensitive-word-migration/switch", Admin(Administer), sensitive_word_migration::switch)
            .summary("Selects the external moderator or the local word list for all following texts.")
            .errors(&[NotConfigured]),
        post("/admin/sensitive-word-migration/fallback", Admin(Administer), sensitive_word_migration::set_fallback)
            .summary("Sets whether the local word list decides when the external moderator fails."),
        post("/admin/sensitive-word-migration/compare", Admin(Moderate), sensitive_word_migration::compare)
            .summary("Checks a text with both services."),
        post("/admin/sensitive-word-migration/batch-compare", Admin(Moderate), sensitive_word_migration::batch_compare)
            .summary("Checks many texts with both services.")
            .body_limit(BATCH),
        get("/admin/sensitive-word-migration/disagreements", Admin(Moderate), sensitive_word_migration::disagreements)
            .summary("Lists texts on which the two services disagreed, newest first."),
        get("/admin/sensitive-word-migration/health-check", Admin(Moderate), sensitive_word_migration::check_health)
            .summary("Probes both services."),
    ]
}

fn messaging() -> Vec<Endpoint> {
    vec![
        get("/notifications/latest", Anyone, v0::notifications::latest)
            .summary("Returns the newest broadcast; for a user, the newest since the registration."),
        get("/notifications/all", Anyone, v0::notifications::all)
            .summary("Lists the newest broadcasts; for a user, the newest notifications of the inbox."),
        get("/api/v1/notifications", OwnUser, v1::notifications::list)
            .for_suspended()
            .summary("Lists the caller's notifications, newest first, without the kinds that are switched off."),
        get("/api/v1/notifications/stream", OwnUser, v1::notification_stream::stream)
            .summary("Streams new notifications and changed balances while the app is open, as events.")
            .resumable("^[0-9]{1,9}\\.[0-9]{1,9}\\.[0-9]{1,9}$", "42.7.0")
            .errors(&[InvalidParameters]),
        get("/api/v1/notifications/unread-count", OwnUser, v1::notifications::unread_count)
            .for_suspended()
            .summary("Returns the number of unread notifications."),
        patch("/api/v1/notifications/{id}/read", OwnUser, v1::notifications::mark_read)
            .for_suspended()
            .summary("Marks a notification as read. A later request keeps the first `readAt`.")
            .errors(&[NotFound]),
        patch("/api/v1/notifications/mark-all-read", OwnUser, v1::notifications::mark_all_read)
            .for_suspended()
            .summary("Marks all notifications as read, including kinds that are switched off."),
        post("/admin/notifications", Admin(Administer), admin::notifications::send)
            .summary("Sends a notification to all users or to selected users."),
        get("/admin/notifications", Admin(SupportUsers), admin::notifications::list)
            .summary("Lists sent notifications with their read counts, newest first."),
        delete("/admin/notifications/{id}", Admin(Administer), admin::notifications::delete)
            .summary("Deletes a notification from all inboxes.")
            .errors(&[NotFound]),
        post("/feedback", Anyone, feedback::submit)
            .budget(RateBudget::Feedback)
            .summary("Submits feedback. Anonymous callers have a lower limit.")
            .body_limit(FEEDBACK)
            .errors(&[NotYours, Forbidden, TooManyRequests]),
        get("/admin/feedback", Admin(SupportUsers), admin::feedback::list)
            .summary("Lists feedback with its replies, newest first."),
        patch("/admin/feedback/{id}", Admin(SupportUsers), admin::feedback::change)
            .summary("Changes state and assignee of feedback.")
            .errors(&[NotFound]),
        post("/admin/feedback/{id}/reply", Admin(SupportUsers), admin::feedback::reply)
            .summary("Replies to feedback of a signed-in user, who gets a notification.")
            .creates()
            .idempotent()
            .errors(&[NotFound]),
        post("/version/check", Anyone, version::check).summary("Checks whether a client should or must update."),
        get("/version/latest", Anyone, version::latest)
            .summary("Returns the newest release of the app.")
            .errors(&[NoRelease]),
        post("/admin/releases", Admin(Administer), admin::releases::publish)
            .summary("Publishes a release of the app.")
            .errors(&[AlreadyExists]),
        post("/admin/releases/{id}/withdraw", Admin(Administer), admin::releases::withdraw)
            .summary(
                "Withdraws a release, so that clients no longer hear of it. Its version code can be published again.",
            )
            .errors(&[NotFound]),
        get("/admin/releases", Admin(ViewFigures), admin::releases::list).summary("Lists releases, newest first."),
    ]
}

fn operations() -> Vec<Endpoint> {
    let documentation = system::Documentation::default();
    vec![
        post("/admin/login", Anyone, session::login)
            .budget(RateBudget::AdminSignIns)
            .summary("Exchanges an administrator's name, password and, if set up, authenticator code for a token.")
            .body_limit(AUTH)
            .errors(&[InvalidCredentials, TotpRequired, AddressNotAllowed, TooManyRequests]),
        post("/admin/logout", Admin(OwnSession), session::logout).summary("Ends the administrator's session."),
        get("/admin/administrators", Admin(Administer), administrators::list).summary("Lists the administrators."),
        post("/admin/administrators", Admin(Administer), administrators::create)
            .for_recent_sign_in()
            .summary("Creates an administrator.")
            .errors(&[AlreadyExists])
            .creates(),
        patch("/admin/administrators/{name}", Admin(Administer), administrators::change)
            .for_recent_sign_in()
            .summary("Changes the role or the password of an administrator.")
            .errors(&[NotFound, LastOwner]),
        delete("/admin/administrators/{name}", Admin(Administer), administrators::remove)
            .for_recent_sign_in()
            .summary("Removes an administrator and ends their sessions.")
            .errors(&[NotFound, LastOwner]),
        get("/admin/api-keys", Admin(Administer), api_keys::list).summary("Lists the API keys."),
        post("/admin/api-keys", Admin(Administer), api_keys::create)
            .for_recent_sign_in()
            .summary("Creates an API key and returns its secret once.")
            .errors(&[AlreadyExists])
            .creates(),
        patch("/admin/api-keys/{label}", Admin(Administer), api_keys::change)
            .for_recent_sign_in()
            .summary("Changes the role or the expiry of an API key, suspends or resumes it.")
            .errors(&[NotFound]),
        delete("/admin/api-keys/{label}", Admin(Administer), api_keys::revoke)
            .for_recent_sign_in()
            .summary("Revokes an API key.")
            .errors(&[NotFound]),
        get("/admin/network-logs/user/{userId}", Admin(SupportUsers), network_logs::list_of_user)
            .summary("Lists the requests of a user, newest first."),
        get("/admin/network-logs/ip/{clientIp}", Admin(SupportUsers), network_logs::list_of_client)
            .summary("Lists the requests of a client address, newest first."),
        get("/admin/network-logs/time-range", Admin(SupportUsers), network_logs::list_of_time)
            .summary("Lists the requests in a time range, newest first."),
        get("/admin/network-logs/failed", Admin(SupportUsers), network_logs::list_failed)
            .summary("Lists requests with a status of 400 or above, newest first."),
        get("/admin/network-logs/suspicious", Admin(SupportUsers), network_logs::list_suspicious)
            .summary("Lists client addresses with unusual activity, worst first. Covers the last hour by default."),
        get("/admin/network-logs/count/ip", Admin(SupportUsers), network_logs::count_by_client)
            .summary("Counts the requests of each client address, of the last 24 hours by default."),
        delete("/admin/network-logs/cleanup", Admin(Administer), network_logs::clean_up)
            .summary("Deletes old entries of the network log."),
        delete("/admin/data-cleanup/all", Admin(Administer), data_cleanup::clear_all)
            .summary("Backs up and deletes all data but administrators, audit, word list, releases and settings.")
            .errors(&[ConfirmationRequired]),
        delete("/admin/data-cleanup/verification-codes", Admin(Administer), data_cleanup::clear_codes)
            .summary("Backs up the database and deletes active verification codes.")
            .errors(&[ConfirmationRequired]),
        delete("/admin/data-cleanup/payment-records", Admin(Administer), data_cleanup::clear_payments)
            .summary("Backs up the database and deletes completed orders older than the minimum retention.")
            .errors(&[ConfirmationRequired]),
        delete("/admin/data-cleanup/feedback", Admin(Administer), data_cleanup::clear_feedback)
            .summary("Backs up the database and deletes all feedback.")
            .errors(&[ConfirmationRequired]),
        get("/admin/figures", Admin(ViewFigures), admin::figures::list)
            .summary("Returns figures by day, week or month, such as new users, revenue and model cost."),
        get("/admin/logs", Admin(Administer), admin::logs::list)
            .summary("Lists the newest events of the server's log, newest first."),
        get("/admin/health", Admin(ViewFigures), admin::health::show)
            .summary("Returns alerts, backups, ledger, providers, background jobs and the last report of the doctor."),
        post("/admin/health/alert-test", Admin(Administer), admin::health::test_alerts)
            .summary("Sends a test message through every channel of alerts.")
            .errors(&[NotConfigured]),
        post("/admin/health/backup", Admin(Administer), admin::health::back_up)
            .summary("Starts a backup and its upload.")
            .errors(&[AlreadyRunning]),
        post("/admin/health/ledger-verification", Admin(Administer), admin::health::verify_ledger)
            .summary("Starts a verification of the whole ledger.")
            .errors(&[AlreadyRunning]),
        post("/admin/health/doctor", Admin(Administer), admin::health::run_doctor)
            .summary("Starts an examination of the installation, which also calls the providers.")
            .errors(&[AlreadyRunning]),
        get("/admin/audit", Admin(ViewAudit), audit::list).summary(
            "Lists audit events of administrators and commands, newest first. Other roles than owner see their own.",
        ),
        get("/healthz", Public, system::health).summary("Returns 200 while the process is alive."),
        get("/readyz", Public, system::readiness).summary("Returns 200 while the service can write to its database."),
        get("/openapi.json", Public, system::api_document(endpoints)).summary("Returns this document."),
        get("/", Public, system::docs_entry).summary("Redirects to the documentation."),
        get("/docs", Public, system::docs_entry).summary("Redirects to the documentation."),
        get("/docs/", Public, documentation.page()).summary("Returns the documentation page."),
        get("/docs/{file}", Public, documentation.files())
            .summary("Returns a file of the documentation page.")
            .errors(&[NotFound]),
    ]
}
