//! Every endpoint there is, one after the other: where, who may, what it does, what can go wrong beside the usual.
//!
//! An endpoint cannot be added without saying who may call it. The router, the API document, the docs page and the
//! tests of access all follow from this page.

use std::sync::Arc;

use axum::http::Method;

use super::{
    admin::{
        self, audit, data_cleanup, network_logs, payments, sensitive_word_migration, sensitive_words, session,
        user_data, violations,
    },
    endpoint::Endpoint,
    endpoint_service::BodyLimit,
    guard::Access::{Admin, Anyone, OwnUser, OwnUserOrAdmin, Signature, TokenHolder},
    router::Router,
    system,
    v0::{
        auth, coin, content_moderation, divination, divination_history, feedback, llm, notifications, payment, user,
        version,
    },
    v1::{self, account, auth as v1_auth, invite, points, sessions},
};
#[allow(clippy::enum_glob_use, reason = "the page is a table, and most codes stand in it")]
use crate::error::Code::*;
use crate::{
    app::App,
    error::{Code, Result},
};

const SMALL: BodyLimit = |limits| limits.auth_body;
const CASTING: BodyLimit = |limits| limits.history_body;
const FEEDBACK: BodyLimit = |limits| limits.feedback_body;
const NOTIFICATION: BodyLimit = |limits| limits.notify_body;
const INTERPRETATION: BodyLimit = |limits| limits.interpretation_body;
const CHAT: BodyLimit = |limits| limits.chat_body;

/// The endpoints, in the order of the documentation.
pub fn endpoints() -> Vec<Endpoint> {
    [
        sign_in(),
        accounts(),
        profiles(),
        coins(),
        payments(),
        histories(),
        interpretations(),
        chats(),
        points(),
        sessions(),
        invites(),
        admin_sessions(),
        admin_payments(),
        admin_network_logs(),
        moderation(),
        inboxes(),
        app_feedback(),
        app_versions(),
        admin_user_data(),
        admin_data_cleanup(),
        admin_audit(),
        service(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Which of the endpoints an address serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Everything,
    EverythingButAdmin,
}

impl Part {
    fn serves(self, endpoint: &Endpoint) -> bool {
        self == Self::Everything || !endpoint.path.starts_with("/admin/")
    }
}

/// The router over the endpoints of a part.
///
/// # Errors
/// `internal` if two endpoints are in the same place.
pub fn router(app: &Arc<App>, part: Part) -> Result<Router> {
    Router::over(app, endpoints().into_iter().filter(|endpoint| part.serves(endpoint)))
}

#[rustfmt::skip]
fn sign_in() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::POST, "/auth/send-code", Anyone, auth::send_code,
            "Sends a sign-in code by SMS.").body(SMALL).fails(&[TooManyRequests, ProviderUnavailable, ProviderTimeout]),
        Endpoint::new(Method::POST, "/auth/login", Anyone, auth::login,
            "Exchanges a phone number and its code for a token.").body(SMALL).fails(&[InvalidCode]),
        Endpoint::new(Method::POST, "/auth/validate-token", TokenHolder, auth::validate_token,
            "Says what a token is worth, and replaces one that is close to its end.").body(SMALL),
        Endpoint::new(Method::POST, "/auth/refresh-token", TokenHolder, auth::refresh_token,
            "Replaces a token. The old one works a little longer and gives the same successor.").body(SMALL).fails(&[Unauthenticated]),
        Endpoint::new(Method::POST, "/auth/logout", TokenHolder, auth::logout,
            "Ends the sign-in that a token belongs to.").body(SMALL),
    ]
}

#[rustfmt::skip]
fn accounts() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::POST, "/api/v1/auth/send-code", Anyone, v1_auth::send_code,
            "Sends a code by email.").body(SMALL).fails(&[TooManyRequests, ProviderUnavailable, ProviderTimeout]),
        Endpoint::new(Method::POST, "/api/v1/auth/login", Anyone, v1_auth::login,
            "Exchanges an email address and its code for a token, making the account if the address is new.").body(SMALL)
            .fails(&[InvalidCode, AccountInconsistent]),
        Endpoint::new(Method::POST, "/api/v1/auth/refresh", TokenHolder, v1_auth::refresh,
            "Replaces a token. The old one works a little longer and gives the same successor.").body(SMALL).fails(&[Unauthenticated]),
        Endpoint::new(Method::POST, "/api/v1/auth/logout", TokenHolder, v1_auth::logout,
            "Ends the sign-in that a token belongs to.").body(SMALL),
        Endpoint::new(Method::GET, "/api/v1/auth/tokens", OwnUser, v1_auth::list_devices,
            "The devices that are signed in."),
        Endpoint::new(Method::DELETE, "/api/v1/auth/tokens/{id}", OwnUser, v1_auth::end_device,
            "Signs a device out.").body(SMALL).fails(&[NotFound]),
        Endpoint::new(Method::GET, "/api/v1/account", OwnUser, account::find,
            "The caller's account."),
        Endpoint::new(Method::PATCH, "/api/v1/account", OwnUser, account::change,
            "Changes the parts of the profile that are sent.").fails(&[ContentRejected, ModerationUnavailable, TooManyRequests]),
        Endpoint::new(Method::DELETE, "/api/v1/account", OwnUser, account::delete,
            "Deletes the account and everything that says whose it was. The caller must have signed in a few minutes ago.")
            .body(SMALL).fails(&[InvalidParameters, StepUpRequired, NotFound, AccountInconsistent]),
        Endpoint::new(Method::GET, "/api/v1/account/export", OwnUser, account::export,
            "Everything that is held of the caller. One at a time.").fails(&[AlreadyRunning]),
        Endpoint::new(Method::POST, "/api/v1/account/address", OwnUser, account::change_address,
            "Adds a phone number or an email address, or changes the one there is. The caller must have signed in a few minutes ago, and the code must have been sent for the purpose `address`.")
            .body(SMALL).fails(&[StepUpRequired, InvalidCode, AddressTaken, AccountInconsistent]),
    ]
}

#[rustfmt::skip]
fn profiles() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::GET, "/user/profile", OwnUserOrAdmin, user::find_profile,
            "The user's profile.").fails(&[NotYours, NotFound]),
        Endpoint::new(Method::PUT, "/user/profile", OwnUser, user::change_profile,
            "Changes the parts of the profile that are sent.").fails(&[NotYours, ContentRejected, ModerationUnavailable, TooManyRequests]),
        Endpoint::new(Method::PUT, "/user/nickname", OwnUser, user::change_nickname,
            "Changes the nickname.").fails(&[NotYours, ContentRejected, ModerationUnavailable, TooManyRequests]),
        Endpoint::new(Method::PUT, "/user/signature", OwnUser, user::change_signature,
            "Changes the signature.").fails(&[NotYours, ContentRejected, ModerationUnavailable, TooManyRequests]),
    ]
}

#[rustfmt::skip]
fn coins() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::GET, "/coin/balance", OwnUserOrAdmin, coin::balance,
            "How many coins the user has.").fails(&[NotYours, NotFound]),
        Endpoint::new(Method::GET, "/coin/balance/phone", OwnUserOrAdmin, coin::balance,
            "How many coins the user with this number has.").fails(&[NotYours, NotFound]),
        Endpoint::new(Method::POST, "/coin/consume", OwnUser, coin::consume,
            "Takes the price of one use, which the service sets.").repeatable().fails(&[NotYours, InsufficientCoins, AccountInconsistent]),
        Endpoint::new(Method::POST, "/coin/consume/phone", OwnUser, coin::consume,
            "Takes the price of one use, which the service sets.").repeatable().fails(&[NotYours, InsufficientCoins, AccountInconsistent]),
        Endpoint::new(Method::POST, "/coin/reset", OwnUserOrAdmin, coin::reset,
            "Sets the balance to 0. The owner must have signed in a few minutes ago; an administrator gives a reason.").repeatable()
            .fails(&[NotYours, StepUpRequired, ConfirmationRequired, NotFound, AccountInconsistent]),
        Endpoint::new(Method::POST, "/coin/reset/phone", OwnUserOrAdmin, coin::reset,
            "Sets the balance to 0. The owner must have signed in a few minutes ago; an administrator gives a reason.").repeatable()
            .fails(&[NotYours, StepUpRequired, ConfirmationRequired, NotFound, AccountInconsistent]),
        Endpoint::new(Method::POST, "/coin/increase/phone", Admin, coin::increase,
            "Adds coins.").repeatable().fails(&[NotFound, BalanceTooLarge, AccountInconsistent]),
        Endpoint::new(Method::POST, "/coin/sync", Admin, coin::synchronise,
            "Makes the accounts that users lack, and takes wrong balances from the ledger again.").fails(&[AlreadyRunning]),
    ]
}

#[rustfmt::skip]
fn payments() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::GET, "/payment/gateway/order", OwnUser, payment::order,
            "An order that can be paid: the same one for some minutes.").fails(&[NotYours, UnknownPackage]),
        Endpoint::new(Method::POST, "/payment/gateway/order", OwnUser, payment::place_order,
            "An order that can be paid: the same one for some minutes.").fails(&[NotYours, UnknownPackage]),
        Endpoint::new(Method::POST, "/payment/notify", Signature, payment::notify,
            "Takes the payment provider's report, a form signed by it. Always answered 200, with `success` or `fail`.").body(NOTIFICATION),
        Endpoint::new(Method::POST, "/payment/update-balance", OwnUserOrAdmin, payment::update_balance,
            "Says that an order was paid. The provider is asked, and its answer alone decides. An administrator, with a reason, credits an order under review.")
            .fails(&[NotYours, NotFound, OrderState, AlreadyPosted, BalanceTooLarge, AccountInconsistent]),
    ]
}

#[rustfmt::skip]
fn histories() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::POST, "/divination-history/save", OwnUser, divination_history::save,
            "Saves a casting, or what is sent of it where there is one with the same record id.").body(CASTING).fails(&[NotYours, HistoryFull]),
        Endpoint::new(Method::POST, "/divination-history/get", OwnUser, divination_history::list,
            "The caller's castings, newest first.").fails(&[NotYours]),
        Endpoint::new(Method::POST, "/divination-history/delete", OwnUser, divination_history::delete,
            "Deletes castings by their record ids.").fails(&[NotYours]),
        Endpoint::new(Method::GET, "/divination-history/count/{phoneNumber}", OwnUser, divination_history::count,
            "How many castings the caller has.").fails(&[NotYours]),
        Endpoint::new(Method::POST, "/divination-history/deactivate-all", OwnUser, divination_history::deactivate_all,
            "Hides all of the caller's castings; they are deleted some weeks later.").fails(&[NotYours]),
    ]
}

#[rustfmt::skip]
fn interpretations() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::POST, "/divination/enhanced", OwnUser, divination::interpret,
            "Has a casting interpreted, as JSON or, with `Accept: text/event-stream`, as it is written.").body(INTERPRETATION)
            .fails(&[NotYours, NotFound, ContentRejected, ModerationUnavailable, TooManyRequests, TooManyCalls, BudgetSpent, ProviderFailed, ProviderUnavailable, ProviderTimeout]),
        Endpoint::new(Method::GET, "/divination/records/user/{userId}", OwnUserOrAdmin, divination::list_of_user,
            "The user's interpretations, newest first.").fails(&[NotYours, NotFound]),
        Endpoint::new(Method::GET, "/divination/records/trace/{traceId}", OwnUserOrAdmin, divination::find_by_trace,
            "One interpretation.").fails(&[NotFound]),
        Endpoint::new(Method::GET, "/divination/records/phone/{phoneNumber}", OwnUserOrAdmin, divination::list_of_phone,
            "The interpretations of the user with this number, newest first.").fails(&[NotYours, NotFound]),
        Endpoint::new(Method::GET, "/divination/records/user/{userId}/daterange", OwnUserOrAdmin, divination::list_of_user_between,
            "The user's interpretations of a time, newest first.").fails(&[NotYours, NotFound]),
        Endpoint::new(Method::GET, "/divination/records/failed", Admin, divination::list_failed,
            "Interpretations that failed or were interrupted, newest first."),
        Endpoint::new(Method::GET, "/divination/records/slow", Admin, divination::list_slow,
            "Interpretations that took long, newest first."),
        Endpoint::new(Method::GET, "/divination/stats/user/{userId}/count", OwnUserOrAdmin, divination::count_of_user,
            "How many interpretations the user has asked for.").fails(&[NotYours, NotFound]),
        Endpoint::new(Method::GET, "/divination/stats/daterange/count", Admin, divination::count_between,
            "How many interpretations were asked for in a time."),
    ]
}

#[rustfmt::skip]
fn chats() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::POST, "/llm/chat", OwnUser, llm::chat,
            "Passes a conversation on to the language model, and its answer back: as JSON or, with `stream`, as it is written.").body(CHAT)
            .fails(&[ContentRejected, ModerationUnavailable, TooManyRequests, TooManyCalls, BudgetSpent, ProviderFailed, ProviderUnavailable, ProviderTimeout]),
    ]
}

#[rustfmt::skip]
fn points() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::GET, "/api/v1/points", OwnUser, points::balance,
            "How many points the caller has."),
        Endpoint::new(Method::GET, "/api/v1/points/ledger", OwnUser, points::entries,
            "Every change of the balance, newest first."),
    ]
}

#[rustfmt::skip]
fn sessions() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::POST, "/api/v1/sessions", OwnUser, sessions::cast,
            "Casts a hexagram for a question, and takes the points that this costs.").repeatable().creates()
            .fails(&[ContentRejected, ModerationUnavailable, TooManyRequests, InsufficientPoints, NotFound, AccountInconsistent]),
        Endpoint::new(Method::GET, "/api/v1/sessions", OwnUser, sessions::list,
            "The caller's sessions, newest first."),
        Endpoint::new(Method::GET, "/api/v1/sessions/{id}", OwnUser, sessions::find,
            "One session, with its interpretation if it has one.").fails(&[NotFound]),
        Endpoint::new(Method::DELETE, "/api/v1/sessions/{id}", OwnUser, sessions::delete,
            "Deletes a session for good. What is not personal about it is kept without it.").fails(&[NotFound]),
        Endpoint::new(Method::POST, "/api/v1/sessions/{id}/interpretation", OwnUser, sessions::interpret,
            "Has a session interpreted, as JSON or, with `Accept: text/event-stream`, as it is written. Once that has succeeded, answers the same again.")
            .fails(&[NotFound, ContentRejected, ModerationUnavailable, AlreadyRunning, TooManyRequests, TooManyCalls, BudgetSpent, ProviderFailed, ProviderUnavailable, ProviderTimeout]),
    ]
}

#[rustfmt::skip]
fn invites() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::GET, "/api/v1/invite", OwnUser, invite::find,
            "The caller's own invite code, and what it has brought."),
        Endpoint::new(Method::POST, "/api/v1/invite/redeem", OwnUser, invite::redeem,
            "Redeems somebody's code, which gives both their points. Once, and in the first days only.").repeatable()
            .fails(&[UnknownInvite, OwnInvite, InviteExpired, AlreadyInvited, AccountInconsistent, BalanceTooLarge]),
    ]
}

#[rustfmt::skip]
fn admin_sessions() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::POST, "/admin/login", Anyone, session::login,
            "Exchanges an administrator's name and password, and the code of an authenticator app if there is one, for a token.").body(SMALL)
            .fails(&[InvalidCredentials, TotpRequired, AddressNotAllowed, TooManyRequests]),
        Endpoint::new(Method::POST, "/admin/logout", Admin, session::logout,
            "Ends an administrator's session."),
    ]
}

#[rustfmt::skip]
fn admin_payments() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::GET, "/admin/payments", Admin, payments::list,
            "Orders, newest first."),
        Endpoint::new(Method::GET, "/admin/payments/report", Admin, payments::make_report,
            "Reconciles the orders of a time with the ledger, day by day."),
        Endpoint::new(Method::GET, "/admin/payments/callbacks", Admin, payments::list_callbacks,
            "Notifications as they came, and what was made of them, newest first."),
        Endpoint::new(Method::POST, "/admin/payments/callbacks/{id}/replay", Admin, payments::replay,
            "Judges a kept notification again.").fails(&[NotFound]),
        Endpoint::new(Method::GET, "/admin/payments/{orderNo}", Admin, payments::show,
            "Everything that is known of an order.").fails(&[NotFound]),
        Endpoint::new(Method::POST, "/admin/payments/{orderNo}/query", Admin, payments::query,
            "Asks the provider about an order, and settles it by the answer.")
            .fails(&[NotFound, OrderState, ProviderFailed, ProviderUnavailable, ProviderTimeout]),
        Endpoint::new(Method::POST, "/admin/payments/{orderNo}/settle", Admin, payments::settle,
            "Lets an order out of review.").repeatable().fails(&[NotFound, OrderState, AlreadyPosted, BalanceTooLarge, AccountInconsistent]),
        Endpoint::new(Method::POST, "/admin/payments/{orderNo}/refund", Admin, payments::refund,
            "Returns money, and takes back the coins that it bought.").repeatable()
            .fails(&[NotFound, OrderState, IdempotencyKeyReused, ProviderFailed, ProviderUnavailable, ProviderTimeout]),
        Endpoint::new(Method::POST, "/admin/payments/{orderNo}/sandbox-pay", Admin, payments::sandbox_pay,
            "Pays an order in the sandbox, which costs nothing.").fails(&[NotFound, OrderState]),
    ]
}

#[rustfmt::skip]
fn admin_network_logs() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::GET, "/admin/network-logs/user/{userId}", Admin, network_logs::list_of_user,
            "The requests of a user, newest first."),
        Endpoint::new(Method::GET, "/admin/network-logs/ip/{clientIp}", Admin, network_logs::list_of_client,
            "The requests from a client address, newest first."),
        Endpoint::new(Method::GET, "/admin/network-logs/time-range", Admin, network_logs::list_of_time,
            "The requests of a time, newest first."),
        Endpoint::new(Method::GET, "/admin/network-logs/failed", Admin, network_logs::list_failed,
            "Requests that were answered with 400 or above, newest first."),
        Endpoint::new(Method::GET, "/admin/network-logs/suspicious", Admin, network_logs::list_suspicious,
            "Client addresses that do more of something than people do, the worst first; of the last hour, if no time is said."),
        Endpoint::new(Method::GET, "/admin/network-logs/count/ip", Admin, network_logs::count_by_client,
            "How much each client address asked for, the busiest first; of the last 24 hours, if no time is said."),
        Endpoint::new(Method::DELETE, "/admin/network-logs/cleanup", Admin, network_logs::clean_up,
            "Deletes old entries of the network log."),
    ]
}

#[rustfmt::skip]
fn moderation() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::POST, "/content-moderation/check-question", OwnUserOrAdmin, content_moderation::check_question,
            "Says whether a question may stand.").fails(&[NotYours, NotFound, ModerationUnavailable, TooManyRequests]),
        Endpoint::new(Method::GET, "/admin/sensitive-words/statistics", Admin, sensitive_words::statistics,
            "The local word list in figures."),
        Endpoint::new(Method::GET, "/admin/sensitive-words/list", Admin, sensitive_words::list,
            "The words of the local list."),
        Endpoint::new(Method::POST, "/admin/sensitive-words/add", Admin, sensitive_words::add,
            "Adds a word, which is in force at once."),
        Endpoint::new(Method::DELETE, "/admin/sensitive-words/remove", Admin, sensitive_words::remove,
            "Removes a word.").fails(&[NotFound]),
        Endpoint::new(Method::POST, "/admin/sensitive-words/test/nickname", Admin, sensitive_words::test_nickname,
            "What the local list says of a nickname."),
        Endpoint::new(Method::POST, "/admin/sensitive-words/test/signature", Admin, sensitive_words::test_signature,
            "What the local list says of a signature."),
        Endpoint::new(Method::POST, "/admin/sensitive-words/test/question", Admin, sensitive_words::test_question,
            "What the local list says of a question."),
        Endpoint::new(Method::GET, "/admin/violations/list", Admin, violations::list,
            "Texts that were refused, newest first."),
        Endpoint::new(Method::GET, "/admin/violations/user/{userId}/stats", Admin, violations::user_stats,
            "A user's refused texts in figures.").fails(&[NotFound]),
        Endpoint::new(Method::GET, "/admin/violations/stats/types", Admin, violations::type_stats,
            "Refused texts by type."),
        Endpoint::new(Method::GET, "/admin/violations/frequent-violators", Admin, violations::frequent_violators,
            "Users whose texts are refused often."),
        Endpoint::new(Method::DELETE, "/admin/violations/cleanup", Admin, violations::clean_up,
            "Deletes old records."),
        Endpoint::new(Method::GET, "/admin/violations/{id}", Admin, violations::find,
            "One refused text.").fails(&[NotFound]),
        Endpoint::new(Method::GET, "/admin/sensitive-word-migration/status", Admin, sensitive_word_migration::status,
            "Which service decides, and how both stand."),
        Endpoint::new(Method::POST, "/admin/sensitive-word-migration/switch", Admin, sensitive_word_migration::switch,
            "Lets the outside service or the local list decide, from the next text on.").fails(&[NotConfigured]),
        Endpoint::new(Method::POST, "/admin/sensitive-word-migration/fallback", Admin, sensitive_word_migration::set_fallback,
            "Says whether the local list decides when the outside service fails."),
        Endpoint::new(Method::POST, "/admin/sensitive-word-migration/compare", Admin, sensitive_word_migration::compare,
            "Asks both services about a text."),
        Endpoint::new(Method::POST, "/admin/sensitive-word-migration/batch-compare", Admin, sensitive_word_migration::batch_compare,
            "Asks both services about many texts.").body(|limits| limits.batch_body),
        Endpoint::new(Method::GET, "/admin/sensitive-word-migration/disagreements", Admin, sensitive_word_migration::disagreements,
            "Texts on which the two services did not agree, newest first."),
        Endpoint::new(Method::GET, "/admin/sensitive-word-migration/health-check", Admin, sensitive_word_migration::check_health,
            "Probes both services."),
    ]
}

#[rustfmt::skip]
fn admin_user_data() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::POST, "/admin/user-data/sync", Admin, user_data::synchronise,
            "Validates and repairs what is kept of every user.").fails(&[AlreadyRunning]),
        Endpoint::new(Method::GET, "/admin/user-data/validate/user/{userId}", Admin, user_data::validate_by_id,
            "Holds what is kept of a user against itself.").fails(&[NotFound]),
        Endpoint::new(Method::GET, "/admin/user-data/validate/phone/{phoneNumber}", Admin, user_data::validate_by_phone,
            "Holds what is kept of the user with this number against itself.").fails(&[NotFound]),
        Endpoint::new(Method::POST, "/admin/user-data/fix/{phoneNumber}", Admin, user_data::fix,
            "Repairs what can be repaired without a decision. A second run finds nothing to do.").fails(&[NotFound]),
        Endpoint::new(Method::POST, "/admin/user-data/validate/batch", Admin, user_data::validate_batch,
            "Validates many users at once."),
        Endpoint::new(Method::GET, "/admin/user-data/test/user-info/{userId}", Admin, user_data::show_attachment,
            "What a language model would be told of a user.").fails(&[NotFound]),
    ]
}

#[rustfmt::skip]
fn inboxes() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::GET, "/notifications/latest", Anyone, notifications::latest,
            "The newest broadcast; for a user, the newest since the registration."),
        Endpoint::new(Method::GET, "/notifications/all", Anyone, notifications::all,
            "The newest broadcasts; for a user, what is newest in the inbox."),
        Endpoint::new(Method::GET, "/api/v1/notifications", OwnUser, v1::notifications::list,
            "The caller's notifications, newest first, but for the kinds that the caller has switched off."),
        Endpoint::new(Method::GET, "/api/v1/notifications/unread-count", OwnUser, v1::notifications::unread_count,
            "How many of them are unread."),
        Endpoint::new(Method::PATCH, "/api/v1/notifications/{id}/read", OwnUser, v1::notifications::mark_read,
            "Marks one read. One that is read keeps its first `readAt`.").fails(&[NotFound]),
        Endpoint::new(Method::PATCH, "/api/v1/notifications/mark-all-read", OwnUser, v1::notifications::mark_all_read,
            "Marks all read, those of kinds that are switched off too."),
        Endpoint::new(Method::GET, "/api/v1/preferences", OwnUser, v1::preferences::find,
            "What the caller wants to be told, in which language and time zone."),
        Endpoint::new(Method::PATCH, "/api/v1/preferences", OwnUser, v1::preferences::change,
            "Changes what is sent, and answers with the whole."),
        Endpoint::new(Method::POST, "/admin/notifications", Admin, admin::notifications::send,
            "Tells everybody something, or some users."),
        Endpoint::new(Method::GET, "/admin/notifications", Admin, admin::notifications::list,
            "What was sent, newest first, and how many users have read it."),
        Endpoint::new(Method::DELETE, "/admin/notifications/{id}", Admin, admin::notifications::delete,
            "Takes a notification back, out of every inbox.").fails(&[NotFound]),
    ]
}

#[rustfmt::skip]
fn app_feedback() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::POST, "/feedback", Anyone, feedback::submit,
            "Takes what somebody has to say. Whoever has not signed in may send less.").body(FEEDBACK)
            .fails(&[NotYours, Forbidden, TooManyRequests]),
        Endpoint::new(Method::GET, "/admin/feedback", Admin, admin::feedback::list,
            "What people wrote, newest first."),
    ]
}

#[rustfmt::skip]
fn app_versions() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::POST, "/version/check", Anyone, version::check,
            "Says whether a client should update, or must."),
        Endpoint::new(Method::GET, "/version/latest", Anyone, version::latest,
            "The newest version of the app.").fails(&[NoRelease]),
        Endpoint::new(Method::POST, "/admin/releases", Admin, admin::releases::publish,
            "Publishes a version of the app.").fails(&[AlreadyExists]),
        Endpoint::new(Method::GET, "/admin/releases", Admin, admin::releases::list,
            "Published versions, the newest first."),
    ]
}

#[rustfmt::skip]
fn admin_data_cleanup() -> Vec<Endpoint> {
    const FAILS: &[Code] = &[ConfirmationRequired];
    vec![
        Endpoint::new(Method::DELETE, "/admin/data-cleanup/all", Admin, data_cleanup::clear_all,
            "Clears all tables but those of administrators, their audit, words, releases and settings, after a backup.").fails(FAILS),
        Endpoint::new(Method::DELETE, "/admin/data-cleanup/verification-codes", Admin, data_cleanup::clear_codes,
            "Clears the verification codes that are live, after a backup.").fails(FAILS),
        Endpoint::new(Method::DELETE, "/admin/data-cleanup/payment-records", Admin, data_cleanup::clear_payments,
            "Clears finished orders older than the retention floor, after a backup.").fails(FAILS),
        Endpoint::new(Method::DELETE, "/admin/data-cleanup/feedback", Admin, data_cleanup::clear_feedback,
            "Clears what users wrote as feedback, after a backup.").fails(FAILS),
    ]
}

#[rustfmt::skip]
fn admin_audit() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::GET, "/admin/audit", Admin, audit::list,
            "What administrators and commands saw and changed, newest first."),
    ]
}

#[rustfmt::skip]
fn service() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::GET, "/healthz", Anyone, system::health,
            "The process is alive."),
        Endpoint::new(Method::GET, "/readyz", Anyone, system::readiness,
            "The service can serve: the database answers."),
        Endpoint::new(Method::GET, "/openapi.json", Anyone, system::api_document(),
            "This document."),
        Endpoint::new(Method::GET, "/docs", Anyone, system::docs_entry,
            "Leads to the documentation."),
        Endpoint::new(Method::GET, "/docs/", Anyone, system::docs_page,
            "The documentation, to read in a browser."),
        Endpoint::new(Method::GET, "/docs/{file}", Anyone, system::docs_file,
            "A file of the documentation.").fails(&[NotFound]),
    ]
}
