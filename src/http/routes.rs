//! The route table: every endpoint with its access, summary, limits and errors.
//!
//! Router, API document, documentation page and access tests follow from it. An endpoint's position in the table
//! identifies it in metrics.

#![allow(clippy::too_many_lines, reason = "the functions are parts of one table")]

use std::sync::Arc;

use axum::{Router, body::Body, http::Request, response::Redirect, routing::on_service};

use super::{
    admin::{
        self, administrators, api_keys,
        audit::{AuditList, AuditRow},
        code_messages, data_cleanup, interpretation_ratings, lists, network_logs,
        notifications::{AdminNotification, MessageList},
        payments::{self, AdminOrder, BillList, CallbackList, CheckedBill, OrderList},
        purchases::{AdminPurchase, PurchaseList},
        releases::{AdminRelease, ReleaseList},
        sensitive_word_migration, sensitive_words, session, user_data, users,
        violations::{self, ShownViolation, ViolationList},
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
    domain::{
        money::payments::callbacks::Callback,
        operations::admins::roles::Right::{
            Administer, FindUsers, GrantCoins, Moderate, OwnSession, SupportUsers, ViewAudit, ViewFigures,
        },
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
const IDENTITY_ERRORS: [Code; 10] = [
    InvalidIdentity,
    IdentityTaken,
    EmailCodeRequired,
    UserSuspended,
    TooManyRequests,
    NotConfigured,
    AccountInconsistent,
    ProviderFailed,
    ProviderUnavailable,
    ProviderTimeout,
];

/// Errors of both endpoints that reset a balance.
const RESET_ERRORS: [Code; 6] =
    [NotYours, StepUpRequired, TooManyRequests, ConfirmationRequired, NotFound, AccountInconsistent];

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
    let (mut router, all) = (Router::new(), endpoints());
    for endpoint in all.iter().filter(|endpoint| part.includes(endpoint)) {
        let service = EndpointService::new(EndpointSpec {
            state: Arc::clone(state),
            id: endpoint.id(),
            access: endpoint.access,
            body_limit: endpoint.body_limit,
            successor: successor_path(&all, endpoint.successor),
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
        for path in ["/", "/admin", "/admin/"] {
            router = router.route(path, axum::routing::get(|| async { Redirect::to("/admin/console/") }));
        }
    }
    let rejecting = |code| {
        let state = Arc::clone(state);
        move |request: Request<Body>| {
            let state = Arc::clone(&state);
            async move {
                if part != Part::EverythingButAdmin && console::is_below(request.uri().path()) {
                    return console::reject(state, code, request).await;
                }
                reject(&state, code, request).await
            }
        }
    };
    Ok(router.fallback(rejecting(UnknownEndpoint)).method_not_allowed_fallback(rejecting(MethodNotAllowed)))
}

/// Returns the path of the operation that replaces another one.
pub fn successor_path(endpoints: &[Endpoint], operation: Option<&str>) -> Option<&'static str> {
    endpoints.iter().find(|endpoint| Some(endpoint.operation) == operation).map(|endpoint| endpoint.path)
}

fn identity() -> Vec<Endpoint> {
    vec![
        post("/auth/send-code", Anyone, auth::send_code).named("sendSmsCode")
            .notes("First step of signing in by phone. The code has six digits and is by default valid for five minutes and for five attempts. With `purpose`, a signed-in user gets a code for another address or for a cancellation. 503: nothing was sent. 504: the message may still arrive, and its code is valid.")
            .budget(RateBudget::Codes)
            .summary("Sends a sign-in code by SMS.")
            .body_limit(AUTH)
            .errors(&[Unauthenticated, TooManyRequests, ProviderUnavailable, ProviderTimeout]),
        post("/auth/login", Anyone, auth::login).named("signInByPhone")
            .notes("Second step of signing in by phone. The first sign-in registers the user. Keep the token of the response and send it as `Authorization: Bearer <token>`. Full-width digits, spaces and hyphens in the code are accepted.")
            .budget(RateBudget::WrongCodes)
            .summary("Exchanges a phone number and its code for a token.")
            .body_limit(AUTH)
            .errors(&[InvalidCode, UserSuspended, TooManyRequests]),
        post("/auth/identity", Anyone, auth::sign_in_with_identity)
            .named("signInByIdentityV0")
            .successor("signInByIdentity")
            .summary("Exchanges a proof of identity by Apple, Google, WeChat or the carrier for a token.")
            .body_limit(AUTH)
            .errors(&IDENTITY_ERRORS),
        post("/auth/identity/apple/events", Anyone, identity_proof::receive_apple_event)
            .named("receiveAppleEvent")
            .for_others()
            .summary("Receives a notification of Apple about an identity, such as a revoked consent.")
            .body_limit(AUTH)
            .errors(&[InvalidIdentity, NotConfigured, ProviderFailed, ProviderUnavailable, ProviderTimeout]),
        post("/auth/validate-token", TokenHolder, auth::validate_token).named("validateToken")
            .notes("For the start of the app. A token with few days left (by default seven) is extended (`refreshed: true`, the same token). An invalid token is `valid: false` and no error.")
            .summary("Returns the state of a token. Extends a token that expires soon.")
            .body_limit(AUTH),
        post("/auth/refresh-token", TokenHolder, auth::refresh_token).named("refreshTokenV0")
            .successor("refreshToken")
            .summary("Replaces a token. For a short time the old token returns the same new token.")
            .body_limit(AUTH)
            .errors(&[Unauthenticated, UserSuspended]),
        post("/auth/logout", TokenHolder, auth::logout).named("signOutV0")
            .successor("signOut")
            .summary("Signs out the device that a token belongs to.")
            .body_limit(AUTH),
        post("/api/v1/auth/send-code", Anyone, v1::auth::send_code).named("sendEmailCode")
            .notes("First step of signing in by email. The code has eight digits and is by default valid for ten minutes and for five attempts. The email is Chinese, or English with an `Accept-Language` that prefers English or names no Chinese.")
            .budget(RateBudget::Codes)
            .summary("Sends a code by email.")
            .body_limit(AUTH)
            .errors(&[Unauthenticated, TooManyRequests, ProviderUnavailable, ProviderTimeout]),
        post("/api/v1/auth/login", Anyone, v1::auth::login).named("signInByEmail")
            .notes("Second step of signing in by email. `device` names the device in the list of devices. The first sign-in creates the account and brings the points of a new user.")
            .budget(RateBudget::WrongCodes)
            .summary("Exchanges an email address and its code for a token. Creates the account if needed.")
            .body_limit(AUTH)
            .errors(&[InvalidCode, UserSuspended, TooManyRequests, AccountInconsistent]),
        post("/api/v1/auth/identity", Anyone, v1::auth::sign_in_with_identity)
            .named("signInByIdentity")
            .summary("Exchanges a proof of identity for a token. Creates the account if needed.")
            .body_limit(AUTH)
            .errors(&IDENTITY_ERRORS),
        post("/api/v1/auth/refresh", TokenHolder, v1::auth::refresh).named("refreshToken")
            .notes("Call it when a token has few days left. The old token works for some more seconds (by default 30), in which this returns the same successor; a later use ends the whole sign-in. After some months (by default 180 days) a new code is needed.")
            .summary("Replaces a token. For a short time the old token returns the same new token.")
            .body_limit(AUTH)
            .errors(&[Unauthenticated, UserSuspended]),
        post("/api/v1/auth/logout", TokenHolder, v1::auth::logout).named("signOut")
            .summary("Signs out the device that a token belongs to.")
            .body_limit(AUTH),
        get("/api/v1/auth/tokens", OwnUser, v1::auth::list_devices).named("listDevices").summary("Lists the devices that are signed in."),
        delete("/api/v1/auth/tokens/{id}", OwnUser, v1::auth::end_device).named("signOutDevice")
            .summary("Signs out a device.")
            .body_limit(AUTH)
            .errors(&[NotFound]),
        get("/api/v1/account", OwnUser, account::find).named("getAccount")
            .notes("For the page of the account. Has the profile, the addresses, the time of registration, and in `deletion` what the user would lose with the account.").summary("Returns the caller's account."),
        patch("/api/v1/account", OwnUser, account::change).named("updateAccount")
            .notes("Fields that are not sent stay. An empty text clears a field. Nickname and signature are screened.")
            .summary("Changes the profile fields that are sent.")
            .errors(&[NicknameSuspended, ContentRejected, ModerationUnavailable, TooManyRequests]),
        delete("/api/v1/account", OwnUser, account::delete).named("deleteAccount")
            .notes("Requires a sign-in within the last ten minutes, otherwise 403 `step_up_required`. Accepts no parameters. The points of an account with an email address are parked for it; the points of an account without one, and all coins, are lost. Show `deletion` of `getAccount` before. An email address that is added first keeps the points, and `exchangeCoins` makes points of coins where the operator set a rate.")
            .summary("Deletes the account and all personal data. Requires a recent sign-in.")
            .body_limit(AUTH)
            .errors(&[InvalidParameters, StepUpRequired, NotFound, AccountInconsistent]),
        get("/api/v1/account/export", OwnUser, account::export).named("exportAccount")
            .notes("For users who want a copy of their data. Works for suspended users too.")
            .for_suspended()
            .summary("Exports all data stored about the caller. Only one export runs at a time.")
            .errors(&[AlreadyRunning]),
        post("/api/v1/account/address", OwnUser, account::change_address).named("changeAddress")
            .notes("Request a code for the new address with `purpose: \"address\"` first. Requires a sign-in within the last ten minutes.")
            .summary("Sets the phone number or email address. Requires a recent sign-in and a code for `address`.")
            .body_limit(AUTH)
            .errors(&[StepUpRequired, InvalidCode, TooManyRequests, AddressTaken, AccountInconsistent]),
        post("/api/v1/account/identities", OwnUser, account::link_identity)
            .named("linkIdentity")
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
            .named("unlinkIdentity")
            .summary("Removes an identity while another way to sign in remains. Signs out other devices.")
            .body_limit(AUTH)
            .errors(&[StepUpRequired, NotFound, LastIdentity]),
    ]
}

fn profiles_and_user_data() -> Vec<Endpoint> {
    vec![
        get("/user/profile", OwnUserOrAdmin(SupportUsers), user::find_profile).named("getProfile")
            .successor("getAccount")
            .summary("Returns the user's profile.")
            .errors(&[NotYours, NotFound]),
        put("/user/profile", OwnUser, user::change_profile).named("updateProfile")
            .successor("updateAccount")
            .summary("Changes the profile fields that are sent.")
            .errors(&[NotYours, NicknameSuspended, ContentRejected, ModerationUnavailable, TooManyRequests]),
        put("/user/nickname", OwnUser, user::change_nickname).named("updateNickname")
            .successor("updateAccount").summary("Changes the nickname.").errors(&[
            NotYours,
            NicknameSuspended,
            ContentRejected,
            ModerationUnavailable,
            TooManyRequests,
        ]),
        put("/user/signature", OwnUser, user::change_signature).named("updateSignature")
            .successor("updateAccount").summary("Changes the signature.").errors(&[
            NotYours,
            ContentRejected,
            ModerationUnavailable,
            TooManyRequests,
        ]),
        get("/api/v1/preferences", OwnUser, v1::preferences::find).named("getPreferences")
            .notes("Language, time zone, day rule and kinds of notifications, for the settings of the app.")
            .summary("Returns the caller's language, time zone and notification settings."),
        patch("/api/v1/preferences", OwnUser, v1::preferences::change).named("updatePreferences")
            .summary("Changes the preferences that are sent and returns all of them."),
        get("/api/v1/changes", OwnUser, changes::list).named("listChanges")
            .summary("Returns what changed since a cursor: sessions, history, notifications, preferences, balances and deletions.")
            .errors(&[CursorExpired]),
        post("/admin/user-data/sync", Admin(SupportUsers), user_data::synchronise).named("adminSyncUserData")
            .summary("Validates and repairs the stored data of all users, or of one.")
            .errors(&[NotFound, AlreadyRunning]),
        get("/admin/user-data/validate/user/{userId}", Admin(SupportUsers), user_data::validate_by_id).named("adminValidateUser")
            .summary("Validates the stored data of a user.")
            .errors(&[NotFound]),
        get("/admin/user-data/validate/phone/{phoneNumber}", Admin(SupportUsers), user_data::validate_by_phone).named("adminValidateUserByPhone")
            .summary("Validates the stored data of the user with this phone number.")
            .errors(&[NotFound]),
        post("/admin/user-data/fix/{phoneNumber}", Admin(SupportUsers), user_data::fix).named("adminFixUserData")
            .summary("Repairs what can be repaired without a decision. Repeating it changes nothing.")
            .errors(&[NotFound]),
        post("/admin/user-data/restore-history/{userId}", Admin(SupportUsers), user_data::restore_history).named("adminRestoreHistory")
            .summary("Shows a user's hidden history records again, as the user's own `restore-all` does.")
            .errors(&[NotFound]),
        post("/admin/user-data/validate/batch", Admin(SupportUsers), user_data::validate_batch).named("adminValidateUsers")
            .summary("Validates the stored data of many users."),
        get("/admin/user-data/test/user-info/{userId}", Admin(SupportUsers), user_data::show_attachment).named("adminModelAttachment")
            .summary("Returns the user data that a language model would receive.")
            .errors(&[NotFound]),
    ]
}

/// The list of users, the acts of the staff on one user, and code messages.
fn users_for_staff() -> Vec<Endpoint> {
    vec![
        get("/admin/users", Admin(FindUsers), users::list)
            .named("adminListUsers")
            .summary("Lists users with masked addresses, newest first, or searches by id, address and nickname."),
        get("/admin/users/{userId}/suspensions", Admin(FindUsers), users::list_suspensions)
            .named("adminListSuspensions")
            .summary("Lists the suspensions of a user, newest first.")
            .errors(&[NotFound]),
        post("/admin/users/{userId}/suspension", Admin(Moderate), users::suspend)
            .named("adminSuspendUser")
            .summary("Suspends a user and notifies them of the reason.")
            .creates()
            .idempotent()
            .errors(&[NotFound, AlreadyExists]),
        delete("/admin/users/{userId}/suspension", Admin(Moderate), users::lift_suspension)
            .named("adminLiftSuspension")
            .summary("Lifts the suspension of a user.")
            .errors(&[NotFound]),
        get("/admin/users/{userId}/notes", Admin(FindUsers), users::list_notes)
            .named("adminListNotes")
            .summary("Lists the notes of the staff about a user, newest first.")
            .errors(&[NotFound]),
        post("/admin/users/{userId}/notes", Admin(FindUsers), users::add_note)
            .named("adminAddNote")
            .summary("Adds a note about a user, which only the staff and the user's export show.")
            .creates()
            .idempotent()
            .errors(&[NotFound, AlreadyExists]),
        delete("/admin/users/{userId}/notes/{id}", Admin(FindUsers), users::remove_note)
            .named("adminRemoveNote")
            .summary("Removes one of the caller's own notes.")
            .errors(&[NotFound]),
        delete("/admin/users/{userId}/nickname", Admin(Moderate), users::reset_nickname)
            .named("adminResetNickname")
            .summary("Clears a user's nickname and notifies them of the reason.")
            .errors(&[NotFound]),
        get("/admin/users/{userId}/devices", Admin(SupportUsers), users::list_devices)
            .named("adminListDevices")
            .summary("Lists the devices on which a user is signed in.")
            .errors(&[NotFound]),
        delete("/admin/users/{userId}/devices", Admin(SupportUsers), users::sign_out_everywhere)
            .named("adminSignOutUser")
            .summary("Signs out all devices of a user.")
            .errors(&[NotFound]),
        delete("/admin/users/{userId}/devices/{id}", Admin(SupportUsers), users::sign_out_device)
            .named("adminSignOutDevice")
            .summary("Signs out one device of a user.")
            .errors(&[NotFound]),
        put("/admin/users/{userId}/phone-number", Admin(SupportUsers), users::move_to_phone)
            .named("adminMoveAccount")
            .for_recent_sign_in()
            .summary("Moves an account to a new phone number after a check of the person, and signs out its devices.")
            .idempotent()
            .errors(&[NotFound, AddressTaken]),
        get("/admin/code-messages", Admin(SupportUsers), code_messages::list)
            .named("adminListCodeMessages")
            .summary("Lists the verification codes requested for an address with their outcomes, newest first.")
            .errors(&[NotFound]),
    ]
}

fn hexagrams_and_sessions() -> Vec<Endpoint> {
    let pages = HexagramPages::default();
    vec![
        get("/api/v1/hexagrams", Anyone, pages.list()).named("listHexagrams")
            .notes("Classical texts are public and change only with a release: keep them for a day, and ask again with `If-None-Match`.").summary("Lists the sixty-four hexagrams with their judgements."),
        get("/api/v1/hexagrams/{number}", Anyone, pages.texts()).named("getHexagram")
            .notes("The text of the hexagram, the commentaries and six lines, with 用九 or 用六. `plain` is a sentence in the language of `Accept-Language`.")
            .summary("Returns a hexagram with all its classical texts.")
            .errors(&[NotFound]),
        post("/api/v1/sessions", OwnUser, sessions::cast).named("castSession")
            .notes("The main operation of the app. Costs points, which include the first interpretation. Send an `Idempotency-Key`, so that a repeated request does not cast twice. `castAt` and `timeZone` are the client's own and affect no order.")
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
        get("/api/v1/sessions", OwnUser, sessions::list).named("listSessions")
            .notes("For the history of the app. Pass `nextCursor` as `cursor` for the next page; it is null on the last one.").summary("Lists the caller's sessions, newest first."),
        get("/api/v1/sessions/{id}", OwnUser, sessions::find).named("getSession")
            .summary("Returns one session with its interpretations.")
            .errors(&[NotFound]),
        patch("/api/v1/sessions/{id}", OwnUser, sessions::annotate).named("annotateSession")
            .summary("Sets or deletes the title and the note of a session.")
            .errors(&[NotFound, ContentRejected, ModerationUnavailable, TooManyRequests]),
        delete("/api/v1/sessions/{id}", OwnUser, sessions::delete).named("deleteSession")
            .summary("Deletes a session. Only its non-personal data is kept.")
            .errors(&[NotFound]),
        get("/api/v1/sessions/{id}/card.svg", OwnUser, sessions::card::draw).named("drawSessionCard")
            .notes("A picture without personal data unless `question` asks for it. Its `ETag` changes when the session does.")
            .summary("Draws a session as a picture for sharing, without the question unless it is asked for.")
            .errors(&[NotFound]),
        post("/api/v1/sessions/{id}/interpretation", OwnUser, sessions::interpret).named("interpretSession")
            .notes("With `Accept: text/event-stream`, the text arrives while it is written. The call goes on when the connection is lost: repeat the request to continue, with the last event's id as `Last-Event-ID`. `again` buys another interpretation. Eight requests may listen to one call.")
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
        put("/api/v1/interpretations/{traceId}/rating", OwnUser, interpretations::rate).named("rateInterpretation")
            .notes("Thumbs up or down with an optional note, which is screened.")
            .summary("Rates one of the caller's interpretations, in place of an earlier rating.")
            .errors(&[NotFound, ContentRejected, ModerationUnavailable, TooManyRequests]),
        get("/admin/interpretation-ratings", Admin(SupportUsers), interpretation_ratings::report).named("adminInterpretationRatings")
            .summary("Counts the users' ratings by model and prompt version, and lists their notes, newest first."),
    ]
}

fn divination() -> Vec<Endpoint> {
    vec![
        post("/divination-history/save", OwnUser, divination_history::save).named("saveHistory")
            .notes("For apps that cast on the device and keep a copy here. `localRecordId` identifies the record; saving it again changes the fields that are sent. `jsonData` is returned byte for byte.")
            .summary("Saves a history record, or changes the fields that are sent of an existing one.")
            .body_limit(CASTING)
            .errors(&[NotYours, HistoryFull, HistoryTooLarge, VersionConflict]),
        post("/divination-history/save-batch", OwnUser, divination_history::save_batch).named("saveHistoryBatch")
            .summary("Saves up to 100 history records at once, each as `save` does and with its own result. Repeating it changes nothing more.")
            .body_limit(HISTORY_BATCH),
        post("/divination-history/get", OwnUser, divination_history::list).named("listHistory")
            .notes("With `page` and `size` one page, without them up to 1000 records and 8 MiB. `total` counts all.")
            .summary("Lists the caller's history records, newest first.")
            .errors(&[NotYours]),
        post("/divination-history/delete", OwnUser, divination_history::delete).named("deleteHistory")
            .notes("Accepts up to 100 ids. Deletes at once and for good. Unknown and hidden ids are not counted.")
            .summary("Deletes history records by their record ids.")
            .errors(&[NotYours]),
        get("/divination-history/count/{phoneNumber}", OwnUser, divination_history::count).named("countHistory")
            .summary("Returns the number of the caller's history records.")
            .errors(&[NotYours]),
        post("/divination-history/deactivate-all", OwnUser, divination_history::deactivate_all).named("deactivateHistory")
            .notes("A step of a cancellation. The records are deleted later, by default after 30 days; until then `restoreHistory` shows them again.")
            .summary("Hides all of the caller's history records. They are deleted some weeks later.")
            .errors(&[NotYours, TooManyRequests]),
        post("/divination-history/restore-all", OwnUser, divination_history::restore_all).named("restoreHistory")
            .summary("Shows hidden history records again, for a cancellation that was not completed.")
            .errors(&[NotYours, TooManyRequests]),
        post("/divination/enhanced", OwnUser, divination::interpret).named("interpretCasting")
            .notes("For castings that are not sessions. With `Accept: text/event-stream`, the text arrives as events; closing the stream cancels the call. Use `interpretSession` for castings of the current generation.")
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
        get("/divination/records/user/{userId}", OwnUserOrAdmin(SupportUsers), divination::list_of_user).named("listInterpretations")
            .summary("Lists the user's interpretations, newest first.")
            .errors(&[NotYours, NotFound]),
        get("/divination/records/trace/{traceId}", OwnUserOrAdmin(SupportUsers), divination::find_by_trace).named("getInterpretation")
            .summary("Returns one interpretation.")
            .errors(&[NotFound]),
        get("/divination/records/phone/{phoneNumber}", OwnUserOrAdmin(SupportUsers), divination::list_of_phone).named("listInterpretationsByPhone")
            .summary("Lists the interpretations of the user with this phone number, newest first.")
            .errors(&[NotYours, NotFound]),
        get(
            "/divination/records/user/{userId}/daterange",
            OwnUserOrAdmin(SupportUsers),
            divination::list_of_user_between,
        ).named("listInterpretationsBetween")
        .summary("Lists the user's interpretations in a time range, newest first.")
        .errors(&[NotYours, NotFound]),
        get("/divination/records/failed", Admin(SupportUsers), divination::list_failed).named("adminListFailedInterpretations")
            .summary("Lists failed and interrupted interpretations, newest first."),
        get("/divination/records/slow", Admin(SupportUsers), divination::list_slow).named("adminListSlowInterpretations")
            .summary("Lists slow interpretations, newest first."),
        get("/divination/stats/user/{userId}/count", OwnUserOrAdmin(SupportUsers), divination::count_of_user).named("countInterpretations")
            .summary("Returns the number of the user's interpretations.")
            .errors(&[NotYours, NotFound]),
        get("/divination/stats/daterange/count", Admin(ViewFigures), divination::count_between).named("adminCountInterpretations")
            .summary("Returns the number of interpretations in a time range."),
        post("/llm/chat", OwnUser, llm::chat).named("chat")
            .notes("In the format of OpenAI's chat completions. With `stream: true`, the provider's chunks are passed on and `[DONE]` ends the stream; closing it cancels the call.")
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
        get("/coin/balance", OwnUserOrAdmin(SupportUsers), coin::balance).named("coinBalance")
            .notes("Coins pay for the uses of the first generation, points for sessions. Users read their own balance; administrators name a user.")
            .summary("Returns the user's coin balance.")
            .errors(&[NotYours, NotFound]),
        get("/coin/balance/phone", OwnUserOrAdmin(SupportUsers), coin::balance_by_phone).named("coinBalanceByPhone")
            .successor("coinBalance")
            .summary("Returns the coin balance of the user with this phone number.")
            .errors(&[NotYours, NotFound]),
        post("/coin/consume", OwnUser, coin::consume).named("consumeCoins")
            .notes("Call it once for each use, with an `Idempotency-Key`. The server sets the price; 402 `insufficient_coins` changes nothing.")
            .summary("Spends the coins for one use. The server sets the price.")
            .idempotent()
            .errors(&[NotYours, InsufficientCoins, AccountInconsistent]),
        post("/coin/consume/phone", OwnUser, coin::consume_by_phone).named("consumeCoinsByPhone")
            .successor("consumeCoins")
            .summary("Spends the coins for one use. The server sets the price.")
            .idempotent()
            .errors(&[NotYours, InsufficientCoins, AccountInconsistent]),
        post("/coin/reset", OwnUserOrAdmin(Administer), coin::reset).named("resetCoins")
            .for_recent_sign_in()
            .notes("A step of a cancellation: the coins are lost, so show the balance before. A code that was sent to the user's own address serves all requests of one cancellation; a wrong one is 403.")
            .summary("Sets the balance to 0. Requires a recent sign-in or a `code`; from an administrator, a reason.")
            .idempotent()
            .errors(&RESET_ERRORS),
        post("/coin/reset/phone", OwnUserOrAdmin(Administer), coin::reset_by_phone).named("resetCoinsByPhone")
            .for_recent_sign_in()
            .successor("resetCoins")
            .summary("Sets the balance to 0. Requires a recent sign-in or a `code`; from an administrator, a reason.")
            .idempotent()
            .errors(&RESET_ERRORS),
        post("/coin/increase/phone", Admin(GrantCoins), coin::increase).named("adminGrantCoins").for_recent_sign_in()
            .summary("Adds coins to a user's balance.")
            .idempotent()
            .errors(&[NotFound, BalanceTooLarge, AccountInconsistent]),
        post("/coin/sync", Admin(SupportUsers), coin::synchronise).named("adminSyncCoins")
            .summary("Creates missing coin accounts and restores wrong balances from the ledger.")
            .errors(&[AlreadyRunning]),
        get("/api/v1/points", OwnUser, points::balance).named("pointBalance")
            .notes("Points pay for castings and further interpretations.").summary("Returns the caller's point balance."),
        get("/api/v1/points/ledger", OwnUser, points::entries).named("listPointEntries")
            .summary("Lists the entries of the caller's point ledger, newest first."),
        post("/api/v1/points/exchange", OwnUser, points::exchange).named("exchangeCoins")
            .notes("409 `not_configured` if the operator set no rate. `listProducts` returns the rate as `pointsPerCoin`.")
            .summary("Exchanges coins for points, at the operator's rate.")
            .idempotent()
            .errors(&[NotConfigured, InsufficientCoins, BalanceTooLarge, AccountInconsistent]),
        get("/coin/history", OwnUser, coin::history).named("listCoinChanges").summary("Lists the changes of the coin balance, newest first."),
        get("/payment/products", Anyone, products::list).named("listProductsV0")
            .successor("listProducts")
            .summary("Lists the products for sale, and what a casting and a use cost."),
        get("/api/v1/products", Anyone, products::list).named("listProducts")
            .notes("For the shop of the app. Names follow `Accept-Language`. May be kept for a minute, and is confirmed by its `ETag`.")
            .summary("Lists the products for sale, and what a casting and a use cost."),
        get("/api/v1/invite", OwnUser, invite::find).named("getInvite")
            .summary("Returns the caller's invite code and the points it has earned."),
        post("/api/v1/invite/redeem", OwnUser, invite::redeem).named("redeemInvite")
            .notes("Once, within the first days after the registration.")
            .summary("Redeems another user's invite code, once and within the first days. Both users get points.")
            .idempotent()
            .errors(&[UnknownInvite, OwnInvite, InviteExpired, AlreadyInvited, AccountInconsistent, BalanceTooLarge]),
        get("/admin/products", Admin(ViewFigures), admin::products::list).named("adminListProducts")
            .summary("Lists all products, withdrawn ones too, by asset and price."),
        get("/admin/products/{id}", Admin(ViewFigures), admin::products::find).named("adminGetProduct")
            .summary("Returns a product.")
            .errors(&[NotFound]),
        put("/admin/products/{id}", Admin(Administer), admin::products::put).named("adminPutProduct").for_recent_sign_in()
            .summary("Creates or updates a product. Changed terms become a new version; existing orders keep theirs.")
            .errors(&[AlreadyExists]),
        post("/admin/products/{id}/offer", Admin(Administer), admin::products::offer).named("adminOfferProduct").for_recent_sign_in()
            .summary("Offers a product for sale.")
            .errors(&[NotFound]),
        post("/admin/products/{id}/withdraw", Admin(Administer), admin::products::withdraw).named("adminWithdrawProduct").for_recent_sign_in()
            .summary("Withdraws a product from sale.")
            .errors(&[NotFound]),
    ]
}

fn store_purchases() -> Vec<Endpoint> {
    vec![
        get("/api/v1/payment/account-token", OwnUser, v1::purchases::account_token).named("getStoreAccountToken")
            .notes("Pass `accountToken` to StoreKit as `appAccountToken`, `obfuscatedAccountId` to Google Play Billing as `setObfuscatedAccountId`, before the purchase.")
            .summary("Returns the token that the app passes to a store, so that a purchase names the caller."),
        get("/payment/account-token", OwnUser, v1::purchases::account_token).named("getStoreAccountTokenV0")
            .successor("getStoreAccountToken")
            .summary("Returns the token that the app passes to a store, so that a purchase names the caller."),
        post("/api/v1/purchases/apple", OwnUser, v1::purchases::report_apple).named("reportApplePurchase")
            .notes("Send the `jwsRepresentation` of the transaction. After 200 finish the transaction in the app. 202: the buyer has not paid yet. 404: the purchase belongs to another account. 409: finish it, nothing is credited. Repeat after 5xx and 422 `unknown_package`.")
            .summary("Credits a purchase in the App Store, once. Report it again until the answer is 200.")
            .errors(&PURCHASE_ERRORS),
        post("/payment/purchases/apple", OwnUser, v0::purchases::report_apple).named("reportApplePurchaseV0")
            .successor("reportApplePurchase")
            .summary("Credits a purchase in the App Store, once. Report it again until the answer is 200.")
            .errors(&PURCHASE_ERRORS),
        post("/api/v1/purchases/google", OwnUser, v1::purchases::report_google).named("reportGooglePurchase")
            .notes("Send product id and purchase token. The service consumes the purchase. 202: the buyer has not paid yet. 404: the purchase belongs to another account. Repeat after 5xx and 422 `unknown_package`.")
            .summary("Asks Google Play about a purchase and credits it, once. The service consumes it.")
            .errors(&QUERIED_PURCHASE_ERRORS),
        post("/payment/purchases/google", OwnUser, v0::purchases::report_google).named("reportGooglePurchaseV0")
            .successor("reportGooglePurchase")
            .summary("Asks Google Play about a purchase and credits it, once. The service consumes it.")
            .errors(&QUERIED_PURCHASE_ERRORS),
        get("/api/v1/purchases", OwnUser, v1::purchases::list).named("listPurchases")
            .summary("Lists the caller's purchases in app stores, newest first."),
        post("/payment/notify/apple", Signature, v0::purchases::notify_apple).named("notifyApple")
            .notes("Only the App Store calls this.")
            .summary("Receives a server notification of the App Store, version 2.")
            .body_limit(APPLE_NOTIFICATION),
        post("/payment/notify/google", Signature, v0::purchases::notify_google).named("notifyGoogle")
            .notes("Only Google Play calls this.")
            .summary("Receives a real-time notification of Google Play, pushed by Pub/Sub.")
            .body_limit(CALLBACK),
        get("/admin/purchases", Admin(SupportUsers), lists::list::<PurchaseList, AdminPurchase>).named("adminListPurchases")
            .summary("Lists purchases in app stores, newest first."),
        get("/admin/purchases/{id}", Admin(SupportUsers), admin::purchases::show).named("adminGetPurchase")
            .summary("Returns a purchase with its notifications and ledger entries.")
            .errors(&[NotFound]),
        post("/admin/purchases/{id}/history", Admin(SupportUsers), admin::purchases::history)
            .named("adminQueryPurchasesOfBuyer")
            .summary("Asks the App Store about all purchases of a buyer and applies their states.")
            .errors(&[NotFound, NotConfigured, ProviderFailed, ProviderUnavailable, ProviderTimeout]),
        post("/admin/purchases/{id}/query", Admin(SupportUsers), admin::purchases::query).named("adminQueryPurchase")
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
        get("/payment/orders", OwnUser, payment::list).named("listOrdersV0")
            .successor("listOrders").summary("Lists the caller's orders, newest first."),
        post("/api/v1/orders", OwnUser, orders::create).named("createOrder")
            .notes("`channel` chooses how to pay, `client` where the buyer pays with WeChat. Pass the answer to the SDK of the channel: `orderString` for Alipay, `payment` for the others. 502 to 504 may be repeated.")
            .summary("Creates an order to pay. Returns the same order again for a few minutes.")
            .errors(&[UnknownProduct, TooManyCalls, ProviderFailed, ProviderUnavailable, ProviderTimeout]),
        get("/api/v1/orders", OwnUser, orders::list).named("listOrders").summary("Lists the caller's orders, newest first."),
        get("/api/v1/orders/{orderNo}", OwnUser, orders::find).named("getOrder").summary("Returns an order.").errors(&[NotFound]),
        post("/api/v1/orders/{orderNo}/confirm", OwnUser, orders::confirm).named("confirmOrder")
            .notes("A hint after the buyer has returned: the server asks the provider and credits by its reply. 202 `pending` until the order is paid; repeat it after some seconds. Orders are credited without it too.")
            .summary("Asks the provider about an order and credits it if it is paid.")
            .errors(&[NotFound]),
        post("/api/v1/orders/{orderNo}/sandbox-pay", OwnUser, orders::pay_in_sandbox).named("payOrderInSandbox")
            .notes("For the development of apps: stands for the SDK of a channel. Only in the sandbox, if the operator has set `payment.sandbox_buyers`.")
            .summary("Pays an order in the sandbox.")
            .errors(&[NotFound, NotConfigured, OrderState]),
        get("/payment/gateway/order", OwnUser, payment::order).named("createOrderByGetV0")
            .successor("createOrder")
            .summary("Creates an order to pay. Returns the same order again for a few minutes.")
            .errors(&[NotYours, UnknownPackage, TooManyCalls, ProviderFailed, ProviderUnavailable, ProviderTimeout]),
        post("/payment/gateway/order", OwnUser, payment::order).named("createOrderV0")
            .successor("createOrder")
            .summary("Creates an order to pay. Returns the same order again for a few minutes.")
            .errors(&[NotYours, UnknownPackage, TooManyCalls, ProviderFailed, ProviderUnavailable, ProviderTimeout]),
        post("/payment/notify", Signature, payment::notify).named("notifyAlipay")
            .notes("Only Alipay calls this.")
            .summary("Receives the provider's signed callback. Responds with 200 and `success` or `fail`.")
            .body_limit(CALLBACK),
        post("/payment/notify/{channel}", Signature, payment_channel::receive).named("notifyChannel")
            .notes("Only payment providers call this.")
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
        post("/payment/update-balance", OwnUserOrAdmin(Administer), payment::update_balance).named("confirmPayment")
            .notes("A hint after the buyer has returned: the server asks the provider and credits by its reply. 202 `pending` until the order is paid.")
            .summary("Confirms a payment with the provider and credits it. Administrators credit reviewed orders.")
            .errors(&[NotYours, NotFound, OrderState, AlreadyPosted, BalanceTooLarge, AccountInconsistent]),
        get("/admin/payments", Admin(SupportUsers), lists::list::<OrderList, AdminOrder>).named("adminListOrders").summary("Lists orders, newest first."),
        get("/admin/payments/report", Admin(ViewFigures), payments::make_report).named("adminPaymentReport")
            .summary("Reconciles the orders of a time range with the ledger, day by day."),
        post("/admin/payments/bill", Admin(Administer), payments::check_bill).named("adminCheckBill")
            .summary("Compares the providers' bills of a day with orders and refunds. Differences go to review.")
            .errors(&[ProviderFailed, ProviderUnavailable, ProviderTimeout]),
        get("/admin/payments/bills", Admin(SupportUsers), lists::list::<BillList, CheckedBill>).named("adminListBills")
            .summary("Lists the checked bills of the providers with their differences, newest day first."),
        get("/admin/payments/callbacks", Admin(SupportUsers), lists::list::<CallbackList, Callback>).named("adminListCallbacks")
            .summary("Lists the provider's callbacks and their outcomes, newest first."),
        post("/admin/payments/callbacks/{id}/replay", Admin(SupportUsers), payments::replay).named("adminReplayCallback")
            .summary("Processes a stored callback again.")
            .errors(&[NotFound]),
        get("/admin/payments/{orderNo}", Admin(SupportUsers), payments::show).named("adminGetOrder")
            .summary("Returns an order with its ledger entries, callbacks and refunds.")
            .errors(&[NotFound]),
        post("/admin/payments/{orderNo}/query", Admin(SupportUsers), payments::query).named("adminQueryOrder")
            .summary("Asks the provider about an order and settles the order accordingly.")
            .errors(&[NotFound, OrderState, ProviderFailed, ProviderUnavailable, ProviderTimeout]),
        post("/admin/payments/{orderNo}/settle", Admin(Administer), payments::settle).named("adminSettleOrder")
            .for_recent_sign_in()
            .summary("Settles an order in review.")
            .idempotent()
            .errors(&[NotFound, OrderState, AlreadyPosted, BalanceTooLarge, AccountInconsistent]),
        post("/admin/payments/{orderNo}/refund", Admin(Administer), payments::refund).named("adminRefundOrder")
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
        post("/admin/payments/{orderNo}/sandbox-pay", Admin(Administer), payments::sandbox_pay).named("adminPayInSandbox").for_recent_sign_in()
            .summary("Pays an order in the sandbox, at no cost.")
            .errors(&[NotFound, OrderState]),
    ]
}

fn moderation() -> Vec<Endpoint> {
    vec![
        post("/content-moderation/check-question", OwnUserOrAdmin(Moderate), content_moderation::check_question)
            .named("checkQuestion")
            .notes("For a hint while the user types. Castings and interpretations are screened anyway.")
            .summary("Checks whether a question is allowed.")
            .errors(&[NotYours, NotFound, ModerationUnavailable, TooManyRequests]),
        get("/admin/sensitive-words/statistics", Admin(Moderate), sensitive_words::statistics)
            .named("adminWordStatistics")
            .summary("Returns statistics of the local word list."),
        get("/admin/sensitive-words/list", Admin(Moderate), sensitive_words::list)
            .named("adminListWords")
            .summary("Lists the words of the local word list."),
        post("/admin/sensitive-words/add", Admin(Moderate), sensitive_words::add)
            .named("adminAddWord")
            .summary("Adds a word. It takes effect at once."),
        post("/admin/sensitive-words/import", Admin(Moderate), sensitive_words::import)
            .named("adminImportWords")
            .summary("Adds many words at once, with warnings about those that would reject innocent texts.")
            .body_limit(BATCH),
        get("/admin/sensitive-words/allowed-phrases", Admin(Moderate), sensitive_words::allowed_phrases)
            .named("adminListAllowedPhrases")
            .summary("Lists the allowed phrases."),
        post("/admin/sensitive-words/allowed-phrases", Admin(Moderate), sensitive_words::allow)
            .named("adminAllowPhrase")
            .summary("Allows a phrase that contains a listed word."),
        delete("/admin/sensitive-words/allowed-phrases", Admin(Moderate), sensitive_words::disallow)
            .named("adminDisallowPhrase")
            .summary("Removes an allowed phrase.")
            .errors(&[NotFound]),
        delete("/admin/sensitive-words/remove", Admin(Moderate), sensitive_words::remove)
            .named("adminRemoveWord")
            .summary("Removes a word.")
            .errors(&[NotFound]),
        post("/admin/sensitive-words/test/nickname", Admin(Moderate), sensitive_words::test_nickname)
            .named("adminTestNickname")
            .summary("Checks a nickname against the local word list."),
        post("/admin/sensitive-words/test/signature", Admin(Moderate), sensitive_words::test_signature)
            .named("adminTestSignature")
            .summary("Checks a signature against the local word list."),
        post("/admin/sensitive-words/test/question", Admin(Moderate), sensitive_words::test_question)
            .named("adminTestQuestion")
            .summary("Checks a question against the local word list."),
        post("/admin/sensitive-words/test/answer", Admin(Moderate), sensitive_words::test_answer)
            .named("adminTestAnswer")
            .summary("Checks the text of a model against the local word list."),
        get("/admin/violations/list", Admin(Moderate), lists::list::<ViolationList, ShownViolation>)
            .named("adminListViolations")
            .summary("Lists rejected texts, newest first."),
        get("/admin/violations/user/{userId}/stats", Admin(Moderate), violations::user_stats)
            .named("adminUserViolations")
            .summary("Returns statistics of a user's rejected texts.")
            .errors(&[NotFound]),
        get("/admin/violations/stats/types", Admin(Moderate), violations::type_stats)
            .named("adminViolationTypes")
            .summary("Counts rejected texts by type."),
        get("/admin/violations/frequent-violators", Admin(Moderate), violations::frequent_violators)
            .named("adminFrequentViolators")
            .summary("Lists users whose texts are rejected often."),
        get("/admin/violations/review", Admin(Moderate), violations::review::list)
            .named("adminListReviews")
            .summary("Lists texts that passed and wait for a moderator, oldest first."),
        post("/admin/violations/review/decide", Admin(Moderate), violations::review::decide)
            .named("adminDecideReviews")
            .summary("Upholds or acquits texts in review, each with its own outcome."),
        post("/admin/violations/review/undo", Admin(Moderate), violations::review::undo)
            .named("adminUndoReviews")
            .summary("Undoes decisions of the last day."),
        post("/admin/violations/{id}/acquittal", Admin(Moderate), violations::review::acquit)
            .named("adminAcquitViolation")
            .summary("Acquits a rejected text, and allows a phrase.")
            .errors(&[NotFound, AlreadyExists]),
        delete("/admin/violations/{id}/acquittal", Admin(Moderate), violations::review::undo_acquittal)
            .named("adminUndoAcquittal")
            .summary("Undoes the acquittal of a rejected text.")
            .errors(&[NotFound, AlreadyExists]),
        delete("/admin/violations/cleanup", Admin(Administer), violations::clean_up)
            .named("adminCleanUpViolations")
            .for_recent_sign_in()
            .summary("Deletes old records of rejected texts."),
        get("/admin/violations/{id}", Admin(Moderate), violations::find)
            .named("adminGetViolation")
            .summary("Returns one rejected text.")
            .errors(&[NotFound]),
        get("/admin/sensitive-word-migration/status", Admin(Moderate), sensitive_word_migration::status)
            .named("adminModerationStatus")
            .summary("Returns the moderation service that decides and the state of both services."),
        post("/admin/sensitive-word-migration/switch", Admin(Administer), sensitive_word_migration::switch)
            .named("adminSwitchModeration")
            .for_recent_sign_in()
            .summary("Selects the external moderator or the local word list for all following texts.")
            .errors(&[NotConfigured]),
        post("/admin/sensitive-word-migration/fallback", Admin(Administer), sensitive_word_migration::set_fallback)
            .named("adminSetModerationFallback")
            .for_recent_sign_in()
            .summary("Sets whether the local word list decides when the external moderator fails."),
        post("/admin/sensitive-word-migration/compare", Admin(Moderate), sensitive_word_migration::compare)
            .named("adminCompareModeration")
            .summary("Checks a text with both services."),
        post("/admin/sensitive-word-migration/batch-compare", Admin(Moderate), sensitive_word_migration::batch_compare)
            .named("adminCompareModerationBatch")
            .summary("Checks many texts with both services.")
            .body_limit(BATCH),
        get("/admin/sensitive-word-migration/disagreements", Admin(Moderate), sensitive_word_migration::disagreements)
            .named("adminListDisagreements")
            .summary("Lists texts on which the two services disagreed, newest first."),
        get("/admin/sensitive-word-migration/health-check", Admin(Moderate), sensitive_word_migration::check_health)
            .named("adminCheckModeration")
            .summary("Probes both services."),
    ]
}

fn messaging() -> Vec<Endpoint> {
    vec![
        get("/notifications/latest", Anyone, v0::notifications::latest)
            .named("latestNotificationV0")
            .successor("listNotifications")
            .summary("Returns the newest broadcast; for a user, the newest since the registration."),
        get("/notifications/all", Anyone, v0::notifications::all)
            .named("listNotificationsV0")
            .successor("listNotifications")
            .summary("Lists the newest 1000 broadcasts; for a user, the newest notifications of the inbox."),
        get("/api/v1/notifications", OwnUser, v1::notifications::list)
            .named("listNotifications")
            .notes("The inbox. Pass `nextCursor` as `cursor` for the next page. Works for suspended users too.")
            .for_suspended()
            .summary("Lists the caller's notifications, newest first, without the kinds that are switched off."),
        get("/api/v1/notifications/stream", OwnUser, v1::notification_stream::stream)
            .named("streamNotifications")
            .notes("Starts with an `open` event holding the current state, then sends each new notification and balance change. An event's id is the position after it: send the last one as `Last-Event-ID` to resume. After the restore of a backup that id is 410: load the app's data again and open the stream without it.")
            .summary("Streams new notifications and changed balances while the app is open, as events.")
            .resumable("^[0-9]{1,9}\\.[0-9]{1,9}\\.[0-9]{1,9}\\.[0-9]{1,15}$", "42.7.0.1767225600000")
            .errors(&[InvalidParameters, CursorExpired]),
        get("/api/v1/notifications/unread-count", OwnUser, v1::notifications::unread_count)
            .named("countUnreadNotifications")
            .notes("For the badge of the inbox.")
            .for_suspended()
            .summary("Returns the number of unread notifications."),
        patch("/api/v1/notifications/{id}/read", OwnUser, v1::notifications::mark_read)
            .named("markNotificationRead")
            .for_suspended()
            .summary("Marks a notification as read. A later request keeps the first `readAt`.")
            .errors(&[NotFound]),
        patch("/api/v1/notifications/mark-all-read", OwnUser, v1::notifications::mark_all_read)
            .named("markAllNotificationsRead")
            .for_suspended()
            .summary("Marks all notifications as read, including kinds that are switched off."),
        post("/api/v1/devices", OwnUser, v1::devices::register)
            .named("registerPushDevice")
            .notes("At each start of the app, because services replace tokens.")
            .summary("Registers the app of this device for pushes, or moves it to the caller.")
            .body_limit(AUTH)
            .errors(&[InvalidParameters, NotConfigured, Unauthenticated]),
        get("/api/v1/devices", OwnUser, v1::devices::list)
            .named("listPushDevices")
            .summary("Lists the caller's apps that get pushes, newest first."),
        delete("/api/v1/devices/{id}", OwnUser, v1::devices::remove)
            .named("removePushDevice")
            .summary("Removes one of the caller's apps from pushes.")
            .body_limit(AUTH)
            .errors(&[NotFound]),
        post("/admin/notifications", Admin(Administer), admin::notifications::send)
            .named("adminSendNotification").for_recent_sign_in()
            .summary("Sends a notification to all users or to selected users."),
        get("/admin/notifications", Admin(SupportUsers), lists::list::<MessageList, AdminNotification>)
            .named("adminListNotifications")
            .summary("Lists sent notifications with their read counts, newest first."),
        delete("/admin/notifications/{id}", Admin(Administer), admin::notifications::delete)
            .named("adminDeleteNotification").for_recent_sign_in()
            .summary("Deletes a notification from all inboxes.")
            .errors(&[NotFound]),
        post("/feedback", Anyone, feedback::submit)
            .named("sendFeedback")
            .notes("With a token the staff can reply, and the user gets a notification.")
            .budget(RateBudget::Feedback)
            .summary("Submits feedback. Anonymous callers have a lower limit.")
            .body_limit(FEEDBACK)
            .errors(&[NotYours, Forbidden, TooManyRequests]),
        get("/admin/feedback", Admin(SupportUsers), admin::feedback::list)
            .named("adminListFeedback")
            .summary("Lists feedback with its replies, newest first."),
        patch("/admin/feedback/{id}", Admin(SupportUsers), admin::feedback::change)
            .named("adminUpdateFeedback")
            .summary("Changes state and assignee of feedback.")
            .errors(&[NotFound]),
        post("/admin/feedback/{id}/reply", Admin(SupportUsers), admin::feedback::reply)
            .named("adminReplyToFeedback")
            .summary("Replies to feedback of a signed-in user, who gets a notification.")
            .creates()
            .idempotent()
            .errors(&[NotFound]),
        post("/version/check", Anyone, version::check)
            .named("checkVersion")
            .notes("For the start of the app: tells whether an update exists and whether the client must install it.")
            .summary("Checks whether a client should or must update."),
        get("/version/latest", Anyone, version::latest)
            .named("latestVersion")
            .notes("For the page that offers the download. May be kept for a minute.")
            .summary("Returns the newest release of the app.")
            .errors(&[NoRelease]),
        post("/admin/releases", Admin(Administer), admin::releases::publish)
            .named("adminPublishRelease").for_recent_sign_in()
            .summary("Publishes a release of the app.")
            .errors(&[AlreadyExists]),
        post("/admin/releases/{id}/withdraw", Admin(Administer), admin::releases::withdraw)
            .named("adminWithdrawRelease").for_recent_sign_in()
            .summary(
                "Withdraws a release, so that clients are no longer offered it. Its version code can be published again.",
            )
            .errors(&[NotFound]),
        get("/admin/releases", Admin(ViewFigures), lists::list::<ReleaseList, AdminRelease>)
            .named("adminListReleases")
            .summary("Lists releases, newest first."),
    ]
}

fn operations() -> Vec<Endpoint> {
    let documentation = system::Documentation::default();
    vec![
        post("/admin/login", Anyone, session::login)
            .named("adminSignIn")
            .budget(RateBudget::AdminSignIns)
            .summary("Exchanges an administrator's name, password and, if set up, authenticator code for a token.")
            .body_limit(AUTH)
            .errors(&[InvalidCredentials, TotpRequired, AddressNotAllowed, TooManyRequests]),
        post("/admin/logout", Admin(OwnSession), session::logout)
            .named("adminSignOut")
            .summary("Ends the administrator's session."),
        get("/admin/administrators", Admin(Administer), administrators::list)
            .named("adminListAdministrators")
            .summary("Lists the administrators."),
        post("/admin/administrators", Admin(Administer), administrators::create)
            .named("adminCreateAdministrator")
            .for_recent_sign_in()
            .summary("Creates an administrator.")
            .errors(&[AlreadyExists])
            .creates(),
        patch("/admin/administrators/{name}", Admin(Administer), administrators::change)
            .named("adminUpdateAdministrator")
            .for_recent_sign_in()
            .summary("Changes the role or the password of an administrator.")
            .errors(&[NotFound, LastOwner]),
        delete("/admin/administrators/{name}", Admin(Administer), administrators::remove)
            .named("adminRemoveAdministrator")
            .for_recent_sign_in()
            .summary("Removes an administrator and ends their sessions.")
            .errors(&[NotFound, LastOwner]),
        get("/admin/api-keys", Admin(Administer), api_keys::list)
            .named("adminListApiKeys")
            .summary("Lists the API keys."),
        post("/admin/api-keys", Admin(Administer), api_keys::create)
            .named("adminCreateApiKey")
            .for_recent_sign_in()
            .summary("Creates an API key and returns its secret once.")
            .errors(&[AlreadyExists])
            .creates(),
        patch("/admin/api-keys/{label}", Admin(Administer), api_keys::change)
            .named("adminUpdateApiKey")
            .for_recent_sign_in()
            .summary("Changes the role or the expiry of an API key, suspends or resumes it.")
            .errors(&[NotFound]),
        delete("/admin/api-keys/{label}", Admin(Administer), api_keys::revoke)
            .named("adminRevokeApiKey")
            .for_recent_sign_in()
            .summary("Revokes an API key.")
            .errors(&[NotFound]),
        get("/admin/network-logs/user/{userId}", Admin(SupportUsers), network_logs::list_of_user)
            .named("adminListRequestsOfUser")
            .summary("Lists the requests of a user, newest first."),
        get("/admin/network-logs/ip/{clientIp}", Admin(SupportUsers), network_logs::list_of_client)
            .named("adminListRequestsOfClient")
            .summary("Lists the requests of a client address, newest first."),
        get("/admin/network-logs/time-range", Admin(SupportUsers), network_logs::list_of_time)
            .named("adminListRequestsBetween")
            .summary("Lists the requests in a time range, newest first."),
        get("/admin/network-logs/failed", Admin(SupportUsers), network_logs::list_failed)
            .named("adminListFailedRequests")
            .summary("Lists requests with a status of 400 or above, newest first."),
        get("/admin/network-logs/suspicious", Admin(SupportUsers), network_logs::list_suspicious)
            .named("adminListSuspiciousClients")
            .summary("Lists client addresses with unusual activity, worst first. Covers the last hour by default."),
        get("/admin/network-logs/count/ip", Admin(SupportUsers), network_logs::count_by_client)
            .named("adminCountRequestsByClient")
            .summary("Counts the requests of each client address, of the last 24 hours by default."),
        delete("/admin/network-logs/cleanup", Admin(Administer), network_logs::clean_up)
            .named("adminCleanUpNetworkLog").for_recent_sign_in()
            .summary("Deletes old entries of the network log."),
        delete("/admin/data-cleanup/all", Admin(Administer), data_cleanup::clear_all)
            .named("adminClearAllData").for_recent_sign_in()
            .summary("Backs up and deletes all data but administrators, audit, word list, releases and settings, in one transaction that other changes wait for.")
            .errors(&[ConfirmationRequired]),
        delete("/admin/data-cleanup/verification-codes", Admin(Administer), data_cleanup::clear_codes)
            .named("adminClearCodes").for_recent_sign_in()
            .summary("Backs up the database and deletes active verification codes.")
            .errors(&[ConfirmationRequired]),
        delete("/admin/data-cleanup/payment-records", Admin(Administer), data_cleanup::clear_payments)
            .named("adminClearPayments").for_recent_sign_in()
            .summary("Backs up the database and deletes completed orders older than the minimum retention.")
            .errors(&[ConfirmationRequired]),
        delete("/admin/data-cleanup/feedback", Admin(Administer), data_cleanup::clear_feedback)
            .named("adminClearFeedback").for_recent_sign_in()
            .summary("Backs up the database and deletes all feedback.")
            .errors(&[ConfirmationRequired]),
        get("/admin/figures", Admin(ViewFigures), admin::figures::list)
            .named("adminGetFigures")
            .summary("Returns figures by day, week or month, such as new users, revenue and model cost."),
        get("/admin/figures/castings", Admin(ViewFigures), admin::figures::count_castings)
            .named("adminCountCastings")
            .summary("Counts deleted castings by month, type, method, primary hexagram and changing lines, never below ten."),
        get("/admin/logs", Admin(Administer), admin::logs::list)
            .named("adminListLogEvents")
            .summary("Lists the newest events of the server's log, newest first."),
        get("/admin/health", Admin(ViewFigures), admin::health::show)
            .named("adminGetHealth")
            .summary("Returns alerts, backups, ledger, providers, background jobs and the last report of the doctor."),
        post("/admin/health/alert-test", Admin(Administer), admin::health::test_alerts)
            .named("adminTestAlerts")
            .summary("Sends a test message through every channel of alerts.")
            .errors(&[NotConfigured]),
        get("/admin/webhooks", Admin(Administer), admin::webhooks::list)
            .named("adminListWebhooks")
            .summary("Lists the events of webhooks with their deliveries, newest first."),
        post("/admin/webhooks/replay", Admin(Administer), admin::webhooks::replay)
            .named("adminReplayWebhooks")
            .summary("Redelivers one event, or all that were given up.")
            .errors(&[NotFound]),
        post("/admin/webhooks/test", Admin(Administer), admin::webhooks::test)
            .named("adminTestWebhooks")
            .summary("Sends a test event to the receiver of webhooks.")
            .errors(&[NotConfigured, ProviderFailed, ProviderUnavailable, ProviderTimeout]),
        post("/admin/health/backup", Admin(Administer), admin::health::back_up)
            .named("adminBackUp")
            .summary("Starts a backup and its upload.")
            .errors(&[AlreadyRunning]),
        post("/admin/health/ledger-verification", Admin(Administer), admin::health::verify_ledger)
            .named("adminVerifyLedger")
            .summary("Starts a verification of the whole ledger.")
            .errors(&[AlreadyRunning]),
        post("/admin/health/doctor", Admin(Administer), admin::health::run_doctor)
            .named("adminRunDoctor")
            .summary("Starts a doctor run, which also calls the providers.")
            .errors(&[AlreadyRunning]),
        get("/admin/audit", Admin(ViewAudit), lists::list::<AuditList, AuditRow>).named("adminListAuditEvents").summary(
            "Lists audit events of administrators and commands, newest first. Roles other than owner see only their own.",
        ),
        get("/healthz", Public, system::health).named("getHealth").summary("Returns 200 while the process is alive."),
        get("/readyz", Public, system::readiness)
            .named("getReadiness")
            .summary("Returns 200 while the service can write to its database."),
        get("/openapi.json", Public, system::api_document(endpoints))
            .named("getApiDocument")
            .for_others()
            .notes("The document of apps leaves out what only staff, other services and browsers call.")
            .summary("Returns this document, or with `for=app` only the endpoints that apps call."),
        get("/", Public, system::docs_entry).named("documentationEntry").for_others().summary("Redirects to the documentation."),
        get("/docs", Public, system::docs_entry).named("documentation").for_others().summary("Redirects to the documentation."),
        get("/docs/", Public, documentation.page())
            .named("documentationPage")
            .for_others()
            .summary("Returns the documentation page."),
        get("/docs/{file}", Public, documentation.files())
            .named("documentationFile")
            .for_others()
            .summary("Returns a file of the documentation page.")
            .errors(&[NotFound]),
    ]
}
