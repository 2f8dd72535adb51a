//! The commands that call an endpoint.

use std::sync::LazyLock;

use serde_json::Value;

use super::{EndpointCommand, command};
use crate::http::admin::{
    audit::AuditList,
    notifications::MessageList,
    payments::{BillList, CallbackList, OrderList},
    purchases::PurchaseList,
    releases::ReleaseList,
    violations::ViolationList,
};

/// Groups within a group, with their help.
pub(super) const INNER_GROUPS: [(&str, &str); 2] = [
    ("notes", "Read and write the notes of the staff about a user"),
    ("review", "List, decide and undo reviews of texts that passed"),
];

/// The beginnings of commands, with what they name, the longest first.
pub(super) const NOUNS: [(&str, &str); 17] = [
    ("admin key", "Active key"),
    ("admin", "Administrator"),
    ("feedback", "Feedback"),
    ("notify", "Notification"),
    ("payments replay", "Callback"),
    ("payments", "Order"),
    ("products", "Product"),
    ("purchases", "Purchase"),
    ("records", "Record"),
    ("release", "Release"),
    ("users notes", "Note"),
    ("users sign-out", "Device"),
    ("users", "User"),
    ("violations", "Violation"),
    ("webhooks", "Event"),
    ("words allow", "Phrase"),
    ("words", "Word"),
];

/// The decisions about an order, with their former words.
const DECISIONS: &[(&str, &str)] = &[
    ("credit", "credit"),
    ("write-off", "write-off"),
    ("claw-back", "claw-back"),
    ("refunded-externally", "refunded-externally"),
    ("dismiss", "write-off"),
    ("collect", "claw-back"),
    ("returned-elsewhere", "refunded-externally"),
];

/// Returns the commands, which are made once.
pub(super) fn commands() -> &'static [EndpointCommand] {
    static COMMANDS: LazyLock<Vec<EndpointCommand>> = LazyLock::new(all);
    &COMMANDS
}

fn all() -> Vec<EndpointCommand> {
    [identity(), divination(), money(), moderation(), messaging(), operations()].into_iter().flatten().collect()
}

fn identity() -> Vec<EndpointCommand> {
    vec![
        command("users list", "adminListUsers", "List users, newest first, with masked addresses").without(&["q"]),
        command(
            "users search",
            "adminListUsers",
            "Find users by id, phone number, email address or the beginning of the nickname",
        )
        .positional(&["q"]),
        command(
            "users validate",
            "adminValidateUser",
            "Check a user's data for inconsistencies; exit 5 if there are any",
        )
        .check(|reply| members(&reply["issues"]).count()),
        command(
            "users suspend",
            "adminSuspendUser",
            "Suspend a user and notify them of the reason; `--scope` limits what is suspended",
        )
        .option("endsAt", "until"),
        command("users unsuspend", "adminLiftSuspension", "Lift the suspension of a user"),
        command("users suspensions", "adminListSuspensions", "Print the suspensions of a user, newest first"),
        command("users notes list", "adminListNotes", "Print the notes about a user, newest first"),
        command("users notes add", "adminAddNote", "Add a note, which the user's data export contains")
            .positional(&["content"]),
        command("users notes remove", "adminRemoveNote", "Remove a note"),
        command(
            "users reset-nickname",
            "adminResetNickname",
            "Clear the nickname of a user and notify them of the reason",
        ),
        command("users devices", "adminListDevices", "List the devices on which a user is signed in"),
        command("users sign-out", "adminSignOutUser", "Sign out all devices of a user, or one")
            .option("id", "device")
            .or("device", "adminSignOutDevice"),
        command(
            "users move-phone",
            "adminMoveAccount",
            "Move an account to a new phone number, after the person was checked",
        )
        .details("No account may have the number. All devices are signed out, and the user is told.")
        .positional(&["phoneNumber"])
        .confirmed("Move user {} and sign out all devices?"),
        command(
            "users restore-history",
            "adminRestoreHistory",
            "Show a user's hidden history records again, after a cancellation that was not completed",
        )
        .details("Records are hidden by `deactivate-all` and deleted after `retention.deactivated_history`."),
    ]
}

fn divination() -> Vec<EndpointCommand> {
    vec![
        command("records show", "getInterpretation", "Print one record with its question and interpretation"),
        command(
            "records failed",
            "adminListFailedInterpretations",
            "Print failed and interrupted interpretations, newest first",
        ),
        command("records slow", "adminListSlowInterpretations", "Print slow interpretations, newest first"),
        command(
            "ai ratings",
            "adminInterpretationRatings",
            "Print the users' ratings by model and prompt version, and their notes, newest first",
        )
        .details("Example: yarrow ai ratings --from 2026-01-01"),
    ]
}

fn money() -> Vec<EndpointCommand> {
    vec![
        command("products list", "adminListProducts", "Print all products, withdrawn ones too"),
        command("products show", "adminGetProduct", "Print a product"),
        command("products offer", "adminOfferProduct", "Offer a product for sale"),
        command("products withdraw", "adminWithdrawProduct", "Withdraw a product from sale"),
        command("payments list", "adminListOrders", "Print orders, newest first")
            .without(&["status"])
            .rows::<OrderList>(),
        command("payments show", "adminGetOrder", "Print an order with its refunds, callbacks and ledger entries"),
        command(
            "payments callbacks",
            "adminListCallbacks",
            "Print the callbacks received from the provider, newest first",
        )
        .option("orderNo", "order")
        .rows::<CallbackList>(),
        command("payments query", "adminQueryOrder", "Query the provider about an order and settle it accordingly"),
        command("payments settle", "adminSettleOrder", "Resolve an order in state `review`")
            .details("Example: yarrow payments settle 20260102030405000001 write-off --reason \"goodwill\"")
            .positional(&["decision"])
            .words("decision", DECISIONS)
            .confirmed("Settle order {}?"),
        command("payments refund", "adminRefundOrder", "Refund an order and take back the coins that it bought")
            .details("Example: yarrow payments refund 20260102030405000001 --amount 6.00 --reason \"bought twice\"")
            .option("refundNo", "number")
            .confirmed("Refund order {}?"),
        command("payments replay", "adminReplayCallback", "Process a stored callback again"),
        command("payments bills", "adminListBills", "Print the checked bills with their differences, newest day first")
            .rows::<BillList>(),
        command(
            "payments bill",
            "adminCheckBill",
            "Compare the providers' bills of a day with orders and refunds; exit 5 if they differ",
        )
        .details("Differences move their orders to review. Example: yarrow payments bill --day 2026-01-31")
        .check(|reply| members(&reply["bills"]).map(|bill| members(&bill["differences"]).count()).sum()),
        command("purchases list", "adminListPurchases", "Print purchases, newest first").rows::<PurchaseList>(),
        command("purchases show", "adminGetPurchase", "Print a purchase with its notifications and ledger entries"),
        command(
            "purchases history",
            "adminQueryPurchasesOfBuyer",
            "Ask the App Store about all purchases of a buyer and apply their states",
        )
        .details("Finds purchases that the app never reported, if they name an account of this service."),
        command("purchases query", "adminQueryPurchase", "Ask the store about a purchase and apply its state").details(
            "An order number from Apple's mail (such as `MK5TTTVWJH`) finds purchases that were never reported.",
        ),
    ]
}

fn moderation() -> Vec<EndpointCommand> {
    vec![
        command("words list", "adminListWords", "Print the word list").option("word", "search"),
        command("words add", "adminAddWord", "Add a word; `*` and `?` are ordinary characters")
            .details("Example: yarrow words add 代练 --type ads")
            .positional(&["word"])
            .option("tags", "tag")
            .option("contentTypes", "content-type"),
        command("words allowed", "adminListAllowedPhrases", "Print the allowed phrases"),
        command("words allow", "adminAllowPhrase", "Allow a phrase that contains a listed word")
            .details("Example: yarrow words allow 反洗钱")
            .positional(&["phrase"])
            .or("remove", "adminDisallowPhrase"),
        command("words remove", "adminRemoveWord", "Remove a word").positional(&["word"]),
        command("words stats", "adminWordStatistics", "Print statistics of the list"),
        command(
            "moderation status",
            "adminModerationStatus",
            "Print the service that decides, the list and the external moderator",
        ),
        command(
            "moderation fallback",
            "adminSetModerationFallback",
            "Select what happens when the external moderator fails",
        )
        .details("`on`: the local list decides; `off`: the request fails with 503.")
        .positional(&["enableFallback"]),
        command("moderation health", "adminCheckModeration", "Probe both services; exit 5 if a configured one fails")
            .check(|reply| usize::from(reply["healthy"] != true)),
        command("moderation switch", "adminSwitchModeration", "Select the service that decides, from the next text on")
            .details("The `external` moderator or the `local` word list.")
            .words("useAliyun", &[("external", "true"), ("local", "false")])
            .positional(&["useAliyun"]),
        command("moderation compare", "adminCompareModeration", "Check a text with both services")
            .positional(&["content"])
            .without(&["userId"]),
        command(
            "moderation disagreements",
            "adminListDisagreements",
            "Print masked texts on which the services disagreed, newest first",
        ),
        command("violations list", "adminListViolations", "Print violations with masked texts, newest first")
            .option("violationType", "type")
            .rows::<ViolationList>(),
        command("violations show", "adminGetViolation", "Print one violation"),
        command(
            "violations acquit",
            "adminAcquitViolation",
            "Acquit a rejected text: suspension rules no longer count it",
        )
        .or("undo", "adminUndoAcquittal"),
        command("violations review list", "adminListReviews", "Print the texts in review, the oldest first"),
        command("violations review decide", "adminDecideReviews", "Decide about texts")
            .details("Upholding records a violation, and clears a nickname that is still in use.")
            .positional(&["ids"])
            .check(faults),
        command("violations review undo", "adminUndoReviews", "Undo decisions of the last day")
            .positional(&["ids"])
            .check(faults),
        command("violations stats", "adminViolationTypes", "Count violations by type, of all users or of one")
            .or("user", "adminUserViolations"),
        command("violations frequent", "adminFrequentViolators", "List users whose texts are rejected often"),
        command("violations cleanup", "adminCleanUpViolations", "Delete old violations")
            .confirmed("Delete all records of that age?"),
    ]
}

fn messaging() -> Vec<EndpointCommand> {
    vec![
        command(
            "notify list",
            "adminListNotifications",
            "Print sent notifications with their read counts, newest first",
        )
        .rows::<MessageList>(),
        command("notify delete", "adminDeleteNotification", "Delete a notification from every inbox")
            .confirmed("Delete notification {} from every inbox?"),
        command("feedback list", "adminListFeedback", "Print feedback, newest first"),
        command("feedback change", "adminUpdateFeedback", "Change state or assignee of feedback"),
        command(
            "feedback reply",
            "adminReplyToFeedback",
            "Reply to feedback of a signed-in user, who gets a notification",
        )
        .positional(&["text"]),
        command("release publish", "adminPublishRelease", "Publish a version")
            .details("Example: yarrow release publish 2.3.1 --code 231 --platform android")
            .positional(&["version"])
            .option("versionCode", "code")
            .option("isRequired", "required")
            .option("downloadUrl", "url"),
        command(
            "release withdraw",
            "adminWithdrawRelease",
            "Withdraw a version, so that clients are no longer offered it",
        )
        .details("Its version code can be published again."),
        command("release list", "adminListReleases", "Print published versions, highest version code first")
            .rows::<ReleaseList>(),
    ]
}

fn operations() -> Vec<EndpointCommand> {
    vec![
        command("alerts test", "adminTestAlerts", "Send a test message through every configured channel; exit 5 if one fails")
            .check(|reply| members(&reply["items"]).filter(|channel| channel["delivered"] != true).count()),
        command("health", "adminGetHealth", "Show alerts, backups, ledger and background jobs")
            .details("Last runs of jobs are at most a minute old, and running jobs at most a second. Only the server knows which providers are down."),
        command("audit", "adminListAuditEvents", "List what administrators and commands read and changed, newest first")
            .details("Example: yarrow audit --user 13800138000 --from 2026-01-01")
            .rows::<AuditList>(),
        command("admin list", "adminListAdministrators", "List administrators"),
        command("admin role", "adminUpdateAdministrator", "Change an administrator's role")
            .details("It applies to their sessions at once.")
            .positional(&["role"])
            .without(&["password"]),
        command("admin remove", "adminRemoveAdministrator", "Remove an administrator and end their sessions")
            .confirmed("Remove the administrator `{}`?"),
        command("admin key list", "adminListApiKeys", "List keys, without their secrets"),
        command("admin key change", "adminUpdateApiKey", "Change the role or expiry of a key, suspend or resume it")
            .option("expiresAt", "expires")
            .option("isSuspended", "suspended"),
        command("admin key revoke", "adminRevokeApiKey", "Revoke a key").confirmed("Revoke the key `{}`?"),
        command("figures show", "adminGetFigures", "Print figures by day, week or month")
            .details("Money is in hundredths of the currency in its part, model cost in millionths of the currency of the price list.\n\nExample: `yarrow figures show --names new_users,revenue --from 2026-01-01 --by month`")
            .option("grouping", "by"),
        command("logs cleanup", "adminCleanUpNetworkLog", "Delete old entries of the network log")
            .confirmed("Delete all entries of that age?"),
        command("webhooks list", "adminListWebhooks", "Print events with their deliveries, newest first"),
        command("webhooks replay", "adminReplayWebhooks", "Send an event again, or all that were given up")
            .details("The running server sends them. The receiver sees the same id as before.")
            .positional(&["number"]),
        command("webhooks test", "adminTestWebhooks", "Send a test event to the receiver at once"),
        command("logs user", "adminListRequestsOfUser", "Print the requests of a user, newest first"),
        command("logs ip", "adminListRequestsOfClient", "Print the requests from a client address, newest first"),
        command("logs range", "adminListRequestsBetween", "Print all requests of a time range, newest first")
            .default("startTime", "1970-01-01")
            .default("endTime", "9999-12-31"),
        command("logs failed", "adminListFailedRequests", "Print failed requests, newest first"),
        command("logs count", "adminCountRequestsByClient", "Count the requests of each address; default: the last 24 hours"),
        command("logs suspicious", "adminListSuspiciousClients", "Print addresses with unusual activity; default: the last hour")
            .details("The thresholds are the settings of section `suspicion`."),
        command("logs server", "adminListLogEvents", "Print the newest events of the server's own log, newest first")
            .details("The server stores them twice a second, the newest 10 000, as its standard error shows them.")
            .option("requestId", "request")
            .option("traceId", "trace"),
    ]
}

/// Counts the texts that were not changed.
fn faults(reply: &Value) -> usize {
    members(&reply["items"]).filter(|item| item.get("error").is_some_and(|error| !error.is_null())).count()
}

/// Returns the members of a list.
fn members(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
