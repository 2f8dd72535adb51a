//! Every administrator endpoint has a command that calls the same operation.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use crate::{
    commands::helps,
    support::{Document, Setup},
};

/// An endpoint, its command and the operation that both call; or two operations, first the endpoint's.
///
/// Missing endpoints, unknown commands and operations that are not called fail the test.
const COUNTERPARTS: &[(&str, &str, &str)] = &[
    ("GET /user/profile", "users show", "profile::find support::collect"),
    ("GET /coin/balance", "coins balance", "coins::balance"),
    ("GET /coin/balance/phone", "coins balance", "coins::balance"),
    ("POST /coin/reset", "coins reset", "coins::reset"),
    ("POST /coin/reset/phone", "coins reset", "coins::reset"),
    ("POST /coin/increase/phone", "coins grant", "coins::adjust"),
    ("POST /coin/sync", "coins repair", "coins::synchronise"),
    ("POST /payment/update-balance", "payments settle", "decisions::settle"),
    (
        "GET /divination/records/user/{userId}",
        "records user",
        "interpretation::list_of_user interpretation::list_of_user_between",
    ),
    (
        "GET /divination/records/phone/{phoneNumber}",
        "records user",
        "interpretation::list_of_user interpretation::list_of_user_between",
    ),
    ("GET /divination/records/user/{userId}/daterange", "records user", "interpretation::list_of_user_between"),
    ("GET /divination/records/trace/{traceId}", "records show", "interpretation::find_by_trace"),
    ("GET /divination/records/failed", "records failed", "interpretation::list_failed"),
    ("GET /divination/records/slow", "records slow", "interpretation::list_slow"),
    ("GET /divination/stats/user/{userId}/count", "records count", "interpretation::count_of_user"),
    ("GET /divination/stats/daterange/count", "records count", "interpretation::count_between"),
    ("POST /content-moderation/check-question", "words test", "moderation::moderate moderation::moderate_locally"),
    ("GET /admin/interpretation-ratings", "ai ratings", "interpretation::ratings"),
    ("GET /admin/products", "products list", "products::all"),
    ("GET /admin/products/{id}", "products show", "products::find"),
    ("PUT /admin/products/{id}", "products set", "products::put"),
    ("POST /admin/products/{id}/offer", "products offer", "products::set_for_sale"),
    ("POST /admin/products/{id}/withdraw", "products withdraw", "products::set_for_sale"),
    ("GET /admin/figures", "figures show", "figures::list"),
    ("GET /admin/figures/castings", "figures castings", "snapshot::counts"),
    ("GET /admin/logs", "logs server", "server_log::search"),
    ("GET /admin/health", "health", "HealthReport::collect"),
    ("POST /admin/health/alert-test", "alerts test", "send_test"),
    ("GET /admin/webhooks", "webhooks list", "webhook_outbox::list"),
    ("POST /admin/webhooks/replay", "webhooks replay", "webhook_outbox::replay"),
    ("POST /admin/webhooks/test", "webhooks test", "webhooks::send_test"),
    // Over HTTP the work goes on in the background.
    ("POST /admin/health/backup", "backup create", "jobs::start_manual backups::create"),
    ("POST /admin/health/ledger-verification", "ledger verify", "jobs::start_manual ledger::verify"),
    ("POST /admin/health/doctor", "doctor", "jobs::start_manual doctor::examine"),
    ("GET /admin/payments", "payments list", "orders::list"),
    ("GET /admin/payments/report", "payments report", "report::report"),
    ("POST /admin/payments/bill", "payments bill", "bills::check"),
    ("GET /admin/payments/bills", "payments bills", "bills::list"),
    ("GET /admin/payments/callbacks", "payments callbacks", "callbacks::list"),
    ("POST /admin/payments/callbacks/{id}/replay", "payments replay", "callbacks::replay"),
    ("GET /admin/payments/{orderNo}", "payments show", "order_details::find"),
    ("POST /admin/payments/{orderNo}/query", "payments query", "reconcile::inquire"),
    ("POST /admin/payments/{orderNo}/settle", "payments settle", "decisions::settle"),
    ("POST /admin/payments/{orderNo}/refund", "payments refund", "refunds::refund"),
    ("POST /admin/payments/{orderNo}/sandbox-pay", "payments sandbox-pay", "sandbox::pay"),
    ("GET /admin/purchases", "purchases list", "records::list"),
    ("GET /admin/purchases/{id}", "purchases show", "records::find_details"),
    ("POST /admin/purchases/{id}/history", "purchases history", "queries::history"),
    ("POST /admin/purchases/{id}/query", "purchases query", "queries::query"),
    ("GET /admin/network-logs/user/{userId}", "logs user", "search::list"),
    ("GET /admin/network-logs/ip/{clientIp}", "logs ip", "search::list"),
    ("GET /admin/network-logs/time-range", "logs range", "search::list"),
    ("GET /admin/network-logs/failed", "logs failed", "search::list"),
    ("GET /admin/network-logs/suspicious", "logs suspicious", "clients::suspicious"),
    ("GET /admin/network-logs/count/ip", "logs count", "clients::count"),
    ("DELETE /admin/network-logs/cleanup", "logs cleanup", "network_log::clean_up"),
    ("GET /admin/sensitive-words/statistics", "words stats", "status::current"),
    ("GET /admin/sensitive-words/list", "words list", "word_list::list"),
    ("POST /admin/sensitive-words/add", "words add", "word_list::add adviser::advise"),
    ("POST /admin/sensitive-words/import", "words import", "word_list::import_advised"),
    ("GET /admin/sensitive-words/allowed-phrases", "words allow", "word_list::allowed_phrases"),
    ("POST /admin/sensitive-words/allowed-phrases", "words allow", "word_list::allow"),
    ("DELETE /admin/sensitive-words/allowed-phrases", "words allow", "word_list::disallow"),
    ("DELETE /admin/sensitive-words/remove", "words remove", "word_list::remove"),
    ("POST /admin/sensitive-words/test/nickname", "words test", "moderation::moderate_locally"),
    ("POST /admin/sensitive-words/test/signature", "words test", "moderation::moderate_locally"),
    ("POST /admin/sensitive-words/test/question", "words test", "moderation::moderate_locally"),
    ("POST /admin/sensitive-words/test/answer", "words test", "moderation::moderate_locally"),
    ("GET /admin/violations/list", "violations list", "violations::list"),
    ("GET /admin/violations/user/{userId}/stats", "violations stats", "violations::of_user"),
    ("GET /admin/violations/stats/types", "violations stats", "violations::types"),
    ("GET /admin/violations/frequent-violators", "violations stats", "violations::frequent"),
    ("DELETE /admin/violations/cleanup", "violations cleanup", "violations::clean_up"),
    ("GET /admin/violations/review", "violations review list", "reviews::list"),
    ("POST /admin/violations/review/decide", "violations review decide", "reviews::decide"),
    ("POST /admin/violations/review/undo", "violations review undo", "reviews::undo"),
    ("POST /admin/violations/{id}/acquittal", "violations acquit", "acquittals::acquit"),
    ("DELETE /admin/violations/{id}/acquittal", "violations acquit", "acquittals::undo"),
    ("GET /admin/violations/{id}", "violations show", "violations::find"),
    ("GET /admin/sensitive-word-migration/status", "moderation status", "status::current"),
    ("POST /admin/sensitive-word-migration/switch", "moderation switch", "policy::switch"),
    ("POST /admin/sensitive-word-migration/fallback", "moderation fallback", "policy::set_fallback"),
    ("POST /admin/sensitive-word-migration/compare", "moderation compare", "compare::compare compare::compare_all"),
    ("POST /admin/sensitive-word-migration/batch-compare", "moderation compare", "compare::compare_all"),
    ("GET /admin/sensitive-word-migration/disagreements", "moderation disagreements", "shadow_mode::disagreements"),
    ("GET /admin/sensitive-word-migration/health-check", "moderation health", "status::check_health"),
    ("POST /admin/user-data/sync", "sync users", "user_data::synchronise"),
    ("GET /admin/user-data/validate/user/{userId}", "users validate", "user_data::validate"),
    ("GET /admin/user-data/validate/phone/{phoneNumber}", "users validate", "user_data::validate"),
    ("POST /admin/user-data/validate/batch", "users validate", "user_data::validate"),
    ("POST /admin/user-data/fix/{phoneNumber}", "users repair", "user_data::repair"),
    ("POST /admin/user-data/restore-history/{userId}", "users restore-history", "history::restore_all"),
    ("GET /admin/user-data/test/user-info/{userId}", "users attachment", "chat::context"),
    ("GET /admin/users", "users list", "directory::list"),
    ("GET /admin/users/{userId}/suspensions", "users suspensions", "suspensions::list"),
    ("POST /admin/users/{userId}/suspension", "users suspend", "suspensions::suspend"),
    ("DELETE /admin/users/{userId}/suspension", "users unsuspend", "suspensions::lift"),
    ("GET /admin/users/{userId}/notes", "users notes list", "staff_notes::list"),
    ("POST /admin/users/{userId}/notes", "users notes add", "staff_notes::add"),
    ("DELETE /admin/users/{userId}/notes/{id}", "users notes remove", "staff_notes::remove"),
    ("DELETE /admin/users/{userId}/nickname", "users reset-nickname", "staff_acts::reset_nickname"),
    ("GET /admin/users/{userId}/devices", "users devices", "tokens::list_devices"),
    ("DELETE /admin/users/{userId}/devices", "users sign-out", "staff_acts::sign_out"),
    ("DELETE /admin/users/{userId}/devices/{id}", "users sign-out", "staff_acts::sign_out"),
    ("PUT /admin/users/{userId}/phone-number", "users move-phone", "staff_acts::move_to_phone"),
    ("GET /admin/code-messages", "users code-messages", "accounts::delivered_code_messages"),
    ("DELETE /admin/data-cleanup/all", "cleanup all", "purge::run"),
    ("DELETE /admin/data-cleanup/verification-codes", "cleanup verification-codes", "purge::run"),
    ("DELETE /admin/data-cleanup/payment-records", "cleanup payment-records", "purge::run"),
    ("DELETE /admin/data-cleanup/feedback", "cleanup feedback", "purge::run"),
    ("POST /admin/notifications", "notify send", "notifications::send"),
    ("GET /admin/notifications", "notify list", "notifications::list_sent"),
    ("DELETE /admin/notifications/{id}", "notify delete", "notifications::delete"),
    ("GET /admin/feedback", "feedback list", "feedback::list"),
    ("PATCH /admin/feedback/{id}", "feedback change", "feedback::change"),
    ("POST /admin/feedback/{id}/reply", "feedback reply", "feedback::reply"),
    ("POST /admin/releases", "release publish", "releases::publish"),
    ("POST /admin/releases/{id}/withdraw", "release withdraw", "releases::withdraw"),
    ("GET /admin/releases", "release list", "releases::list"),
    ("GET /admin/audit", "audit", "audit::list"),
    ("GET /admin/administrators", "admin list", "admins::list"),
    ("POST /admin/administrators", "admin create", "admins::create"),
    ("PATCH /admin/administrators/{name}", "admin role", "admins::change"),
    ("DELETE /admin/administrators/{name}", "admin remove", "admins::remove"),
    ("GET /admin/api-keys", "admin key list", "keys::list"),
    ("POST /admin/api-keys", "admin key create", "keys::create"),
    ("PATCH /admin/api-keys/{label}", "admin key change", "keys::change"),
    ("DELETE /admin/api-keys/{label}", "admin key revoke", "keys::revoke"),
    // There is no sign-in on the command line: its user can read the file. Sessions are ended there.
    ("POST /admin/login", "admin create", "admins::sign_in admins::create"),
    ("POST /admin/logout", "admin sessions end", "admins::sign_out sessions::end"),
];

/// Returns the source of a module: its file and those in the folder of the same name.
fn text_of(module: &Path) -> String {
    let mut files = vec![module.with_extension("rs")];
    if let Ok(folder) = std::fs::read_dir(module) {
        files.extend(folder.map(|entry| entry.unwrap().path()));
    }
    files
        .iter()
        .map(|file| std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display())))
        .collect()
}

/// Returns the file of an endpoint, named like the segment of its path.
fn module_of_endpoint(endpoint: &str) -> PathBuf {
    let path = endpoint.split_once(' ').unwrap().1;
    let (folder, rest) = match path.strip_prefix("/admin/") {
        Some(rest) => ("admin", rest),
        None => ("v0", &path[1..]),
    };
    let segment = match rest.split('/').next().unwrap() {
        "login" | "logout" => "session".to_owned(),
        segment => segment.replace('-', "_"),
    };
    Path::new("http").join(folder).join(segment)
}

/// Returns true if a text calls an operation or refers to it.
fn calls(text: &str, operation: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let stands_alone = |at: usize| {
        let (before, after) = (&text[..at], &text[at + operation.len()..]);
        !before.ends_with(is_part) && (after.starts_with(['(', ',', ')']) || after.starts_with("::<"))
    };
    text.match_indices(operation).any(|(at, _)| stands_alone(at))
}

#[test]
fn every_administrator_endpoint_has_its_command() {
    let server = Setup::default().start();
    let document = Document::of(&server);
    let is_for_administrators = |description: &str| description.contains("administrator");
    let endpoints: BTreeSet<_> = document
        .operations
        .iter()
        .filter(|operation| {
            operation.path.starts_with("/admin/")
                || is_for_administrators(operation.value["description"].as_str().unwrap_or_default())
        })
        .map(super::support::Operation::name)
        .collect();
    let known: BTreeSet<_> = COUNTERPARTS.iter().map(|(endpoint, ..)| (*endpoint).to_owned()).collect();
    assert_eq!(endpoints, known, "an administrator endpoint needs a command and a row in this table");
}

#[test]
fn endpoint_and_command_call_the_same_operation() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut strangers = Vec::new();
    for (endpoint, command, operations) in COUNTERPARTS {
        let words: Vec<_> = command.split(' ').collect();
        assert!(helps()[*command].contains(&format!("yarrow {command}")), "{endpoint}: {command}");
        let (over_http, by_command) = operations.split_once(' ').unwrap_or((operations, operations));
        let modules = [(module_of_endpoint(endpoint), over_http), (Path::new("cli").join(words[0]), by_command)];
        for (module, operation) in modules {
            let text = text_of(&sources.join(&module));
            if !calls(&text, operation) {
                strangers.push(format!("{endpoint}: src/{} never calls {operation}", module.display()));
            }
        }
    }
    assert!(strangers.is_empty(), "{strangers:#?}");
}

#[test]
fn a_mention_is_no_call() {
    assert!(calls("Ok(violations::list(app))", "violations::list"));
    assert!(calls("call.blocking(violations::types).await", "violations::types"));
    for text in
        ["violations::list_all(app)", "use violations::list;", "my_violations::list(app)", "violations::listing"]
    {
        assert!(!calls(text, "violations::list"), "{text}");
    }
}
