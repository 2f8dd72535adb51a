//! Lists, counts and reports use an index, without scans or sorts. Areas with their own plan tests (audit, sessions,
//! invites, violations, network log, ledger) are not repeated.

use crate::support::Setup;

/// Stands for the condition that the user is not being erased, which reads one key of another table.
const NOT_ERASED: &str = "{not erased}";

/// The conditions of the queries in the operations.
const BOUNDED: &[&str] = &[
    // A user's records: a page, its total, a lookup.
    "history where user_id = ?1 and sequence > ?5 and (question_type = ?2 or ?2 is null) \
     order by sequence desc limit ?3 offset ?4",
    "history where local_record_id = ?1 and user_id = ?2 and sequence > ?3",
    // Changes since a cursor, and the texts that a search reads.
    "history where user_id = ?1 and change > ?2 and sequence > ?3 and (sequence > ?4 or change > ?5 + sequence) \
     order by change limit ?6",
    "history where user_id = ?1 and sequence > ?3 and sequence <= ?4 and change <= ?2 + sequence order by sequence limit ?5",
    // Records that are deleted in the background.
    "history where user_id = ?1 and sequence <= ?2 order by sequence limit ?3",
    "history where sequence < 0 limit ?1",
    "history_hidings where surplus_through > 0 order by surplus_through limit 1",
    "history_hidings where hidden_at <= ?1 and through > 0 order by hidden_at limit 1",
    "notification_reads where user_id = ?1 limit ?2",
    "notification_marks where user_id = ?1 limit ?2",
    "invites where inviter_id = ?1 limit ?2",
    "webhook_events where user_id = ?1 and text is not null limit ?2",
    "feedback where user_id = ?1 and is_verified = ?2 order by created_at desc limit ?3 offset ?4",
    "sessions where user_id = ?1 and change > ?2 order by change limit ?3",
    "sessions where user_id = ?1 and sequence = ?2",
    "session_texts where user_id = ?1 and sequence < ?2 order by sequence desc limit ?3",
    "deletions where user_id = ?1 and number > ?2 order by number limit ?3",
    "deletions where deleted_at < ?1 order by deleted_at limit ?2",
    "notification_deletions where number > ?1 order by number limit ?2",
    "notification_deletions where deleted_at < ?1 order by deleted_at limit ?2",
    "notification_reads where user_id = ?1 and change > ?2 order by change limit ?3",
    // Interpretations.
    "interpretations where user_id = ?1 and created_at >= ?2 and created_at < ?3 \
     order by created_at desc, id desc limit ?4 offset ?5",
    "interpretations where user_id = ?1",
    "interpretations where trace_id = ?1 and (user_id = ?2 or ?2 is null)",
    "interpretations where created_at >= ?1 and created_at < ?2",
    "interpretations where user_id = ?1 order by created_at desc, id desc limit ?2 offset ?3",
    "interpretations where user_id = ?1 and length(divination_data) > 4000 order by created_at desc, id desc limit ?2 offset ?3",
    "model_calls where user_id = ?1 and kind = 'interpretation' and created_at <= ?3 \
     order by created_at desc limit 1 offset ?2",
    "model_calls where user_id = ?1 and kind = 'chat' and created_at <= ?3 order by created_at desc limit 1 offset ?2",
    "model_calls where created_at < ?1 limit ?2",
    "history_hidings where user_id = ?1 and hidden_at <= ?3 order by hidden_at desc limit 1 offset ?2",
    "history_hidings where hidden_at < ?1 and through = 0 order by hidden_at limit ?2",
    "history_restorings where user_id = ?1 and restored_at <= ?3 order by restored_at desc limit 1 offset ?2",
    "chats where user_id = ?1 order by created_at desc, id desc limit ?2 offset ?3",
    "chats where user_id = ?1 order by created_at, id",
    // A user's violations of the last hour, and those beyond the newest.
    "violations where user_id = ?1 and content_type <> 'answer' and created_at <= ?3 \
     order by created_at desc limit 1 offset ?2",
    "violations where user_id = ?1 order by created_at desc, id desc limit ?2 offset ?3",
    "violations where user_id = ?1 and created_at > ?2 and content_type <> 'answer' \
     and acquitted_at is null and (violation_type = ?3 or ?3 is null)",
    "reviews where state = ?1 order by id limit ?2 offset ?3",
    "reviews where state = ?1 order by id desc limit ?2 offset ?3",
    "reviews where user_id = ?1 and state = 'waiting'",
    "reviews where created_at < ?1 order by created_at limit ?2",
    "interpretations where duration_ms >= ?1",
    "interpretations where rating_note is not null and rated_at >= ?1 and rated_at < ?2 and {not erased} \
     order by rated_at desc, id desc limit ?3 offset ?4",
    // Orders and their notifications.
    "payment_orders where user_id = ?1 order by id desc limit ?2 offset ?3",
    "payment_orders where user_id = ?1 and id < ?2 order by id desc limit ?3",
    "ledger_entries where user_id = ?1 and kind = 'topup' limit 1",
    // Uses since a credit.
    "ledger_entries where user_id = ?1 and asset = ?2 and sequence > ?3 and delta < 0 \
     and kind not in ('refund', 'purchase_bonus_refund', 'adjust', 'reset') order by sequence desc limit ?4",
    "payment_orders where state = ?1 order by id desc limit ?2 offset ?3",
    "payment_orders where user_id = ?1 and state = ?2 order by id desc limit ?3 offset ?4",
    "payment_orders where (created_at, id) > (?1, ?2) and created_at < ?3 order by created_at, id limit ?4",
    "payment_orders where channel = ?1 and paid_at >= ?2 and paid_at < ?3",
    "payment_bills where checked_at > ?1",
    "payment_orders where user_id = ?1 and created_at + 0 >= ?2 and created_at + 0 < ?3 and (state = ?4 or ?4 is null) \
     and amount_fen + 0 >= ?5 and amount_fen + 0 <= ?6 order by id desc limit ?7 offset ?8",
    "payment_orders where created_at >= ?1 and created_at < ?2 and amount_fen + 0 >= ?3 and amount_fen + 0 <= ?4 \
     and (state = ?5 or ?5 is null) order by created_at desc, id desc limit ?6 offset ?7",
    "payment_orders where amount_fen = ?1 and created_at >= ?2 and created_at < ?3 and (state = ?4 or ?4 is null) \
     order by created_at desc, id desc limit ?5 offset ?6",
    "payment_orders where state = ?1 and created_at >= ?2 and created_at < ?3 \
     order by created_at desc, id desc limit ?4 offset ?5",
    "payment_orders where created_at >= ?1 and created_at < ?2 order by created_at desc, id desc limit ?3 offset ?4",
    "payment_orders where refunded_at is not null and refunded_at >= ?1 and refunded_at < ?2",
    "payment_orders where channel = ?1 and next_check_at <= ?2 order by next_check_at limit ?3",
    "payment_orders where channel = ?1 and next_check_at > ?2 order by next_check_at limit ?3",
    "store_purchases where user_id = ?1 and (state = ?2 or ?2 is null) order by id desc limit ?3 offset ?4",
    "store_purchases where user_id = ?1 and id < ?2 order by id desc limit ?3",
    "store_purchases where state = ?1 order by id desc limit ?2 offset ?3",
    "store_purchases where store = ?1 and environment = ?2 and purchase_id = ?3",
    "store_purchases where store = ?1 and order_id = ?2",
    "store_purchases where reference = ?1",
    "store_purchases where (created_at, id) > (?1, ?2) and created_at < ?3 order by created_at, id limit ?4",
    "store_purchases where due_at <= ?1 order by due_at limit ?2",
    "store_purchases where revoked_at is not null and revoked_at >= ?1 and revoked_at < ?2",
    "store_accounts where account_token = ?1",
    "store_messages where received_at < ?1 limit ?2",
    "payment_callbacks where order_no = ?1 and (verdict = ?2 or ?2 is null) order by id desc limit ?3 offset ?4",
    "payment_callbacks where verdict = ?1 order by id desc limit ?2 offset ?3",
    // Counts of codes, and requests for codes of an address.
    "code_counts where event = ?1 and subject = ?2 and counted_at <= ?3 order by counted_at desc limit 1",
    "code_counts where event = ?1 and subject = ?2 order by counted_at limit 1",
    "code_counts where event = ?1 and subject = ?2 and counted_at > ?3 and counted_at <= ?4 and total > ?5 \
     order by counted_at limit 1",
    "code_counts where counted_at <= ?1 order by counted_at limit ?2",
    "code_messages where address = ?1 order by asked_at desc, id desc limit ?2",
    "code_messages where outcome = 'refused' and address = ?1 order by asked_at desc limit 1",
    "users where created_at >= ?1 and (created_at, id) < (?2, ?3) order by created_at desc, id desc limit ?4",
    "users where nickname <> '' and (nickname, id) > (?1, ?2) and nickname < ?3 order by nickname, id limit ?4",
    "suspensions where user_id = ?1 and scope = ?2 and lifted_at is null",
    "suspensions where user_id = ?1 and scope = ?2 order by id desc limit 1",
    "suspensions where user_id = ?1 order by id desc limit ?2",
    "identities where provider = ?1 and subject = ?2",
    "identities where user_id = ?1 order by provider",
    "webhook_events where state = 'pending' and due_at <= ?1 order by due_at, id limit ?2",
    "webhook_events where state = ?1 order by id desc limit ?2 offset ?3",
    "webhook_events where created_at < ?1 order by created_at limit ?2",
    "push_devices as device where user_id = ?1 order by id desc",
    "push_devices where id > ?1 order by id limit ?2",
    "push_devices where service = ?1 and token = ?2",
    "push_queue where due_at <= ?1 order by due_at limit ?2",
    "push_queue where queued_at < ?1 order by queued_at limit ?2",
    "tokens where user_id = ?1 and family = ?2 and replaced_at is null and expires_at > ?3",
    "used_identity_tokens where expires_at <= ?1 order by expires_at limit ?2",
    "staff_notes where user_id = ?1 order by id desc limit ?2",
    // Feedback, notifications, conversations.
    "feedback where user_id = ?1 and id < ?2 and (state = ?3 or ?3 is null) and (assignee = ?4 or ?4 is null) \
     order by id desc limit ?5 offset ?6",
    "feedback where assignee = ?1 and id < ?2 and (state = ?3 or ?3 is null) order by id desc limit ?4 offset ?5",
    "feedback where state = ?1 and id < ?2 order by id desc limit ?3 offset ?4",
    "feedback_replies where feedback_id = ?1 order by id limit ?2",
    "notification_recipients where notification_id = ?1",
    "figures where name = ?1 and day >= ?2 and day <= ?3",
    "figures where name = ?1 and day >= ?2 and day <= ?3 and key = ?4",
    "active_users where block = ?1",
    "active_users where block = ?1 and day >= ?2 and day <= ?3",
    "active_users where day < ?1 order by day limit ?2",
    "request_hours where hour >= ?1 and hour < ?2 order by hour",
    "users where created_at >= ?1 order by created_at, id limit 1",
    "ledger_audit where user_id = ?1 order by id desc limit ?2 offset ?3",
];

/// Everything, newest first: in table order, so that a page reads only its rows.
const IN_ORDER: &[&str] = &[
    "suspensions where scope = 'account' and lifted_at is null and id < ?1 order by id desc limit ?2",
    "payment_orders order by id desc limit ?1 offset ?2",
    "payment_callbacks order by id desc limit ?1 offset ?2",
    "payment_bills order by day desc, channel desc limit ?1 offset ?2",
    "store_purchases order by id desc limit ?1 offset ?2",
    "feedback where id < ?1 order by id desc limit ?2 offset ?3",
    "notifications order by id desc limit ?1 offset ?2",
    "interpretations where status in ('failed', 'interrupted') order by id desc limit ?1 offset ?2",
];

/// Totals: by a narrow index instead of wide rows.
const COUNTED: &[&str] = &[
    "payment_orders",
    "payment_callbacks",
    "payment_bills",
    "store_purchases",
    "feedback",
    "notifications",
    "payment_orders where created_at >= ?1 and created_at < ?2",
    "payment_orders where state = ?1 and created_at >= ?2 and created_at < ?3",
    "payment_orders where amount_fen = ?1 and created_at >= ?2 and created_at < ?3 and (state = ?4 or ?4 is null)",
    "interpretations where status in ('failed', 'interrupted')",
    "interpretations where rating_note is not null and rated_at >= ?1 and rated_at < ?2",
];

/// Totals of a user: without reading rows, which are scattered.
const COUNTED_OF_A_USER: &[&str] = &[
    "history where user_id = ?1 and sequence > ?3 and (question_type = ?2 or ?2 is null)",
    "history where user_id = ?1 and sequence > ?2 and sequence <= ?3",
    "interpretations where user_id = ?1",
    "interpretations where user_id = ?1 and created_at >= ?2 and created_at < ?3",
    "payment_orders where user_id = ?1",
    "feedback where user_id = ?1",
];

/// Queries that a worse index could serve too, with the index that must be used.
const BY_THE_RIGHT_INDEX: &[(&str, &str)] = &[
    ("payment_orders where user_id = ?1 and state || '' = ?2", "INDEX payment_orders_by_user"),
    (
        "deletions where user_id = ?1 and range_through >= ?2 and range_after < ?2 order by +number desc limit 1",
        "INDEX deletions_of_ranges",
    ),
    (
        "violations where created_at >= ?1 and content_type <> 'answer' group by user_id + 0 having count(*) >= ?2",
        "COVERING INDEX violations_by_time",
    ),
    (
        "payment_orders where created_at >= ?1 and created_at < ?2 and amount_fen + 0 >= ?3 and amount_fen + 0 <= ?4 \
         and (state = ?5 or ?5 is null)",
        "COVERING INDEX payment_orders_by_time",
    ),
    ("idempotency_keys where caller not like 'user:%'", "COVERING INDEX idempotency_keys_by_key"),
    (
        "users where (ltrim(substr(phone_number, 1, 1), '+0123456789') <> '' \
         or ltrim(substr(phone_number, 2), '0123456789') <> '') and id > ?1 order by id limit ?2",
        "INDEX users_with_irregular_phone",
    ),
];

#[test]
fn every_query_here_occurs_in_the_operations() {
    let texts: Vec<_> = crate::architecture::texts().collect();
    // With the table, or after a macro that names it. The rows of a window have their conditions alone.
    let is_asked = |query: &&str| {
        let conditions = query.split_once(' ').map(|(_, conditions)| conditions);
        let is_written = |part: &str| texts.iter().any(|text| text.contains(part));
        let is_text = |wanted: Option<&str>| texts.iter().any(|text| wanted == Some(text.trim_matches('"')));
        let in_window =
            conditions.and_then(|conditions| conditions.strip_prefix("where ")?.split_once(" <= ?3 order by"));
        format!("from {query}").split(NOT_ERASED).all(is_written)
            || is_text(conditions)
            || is_text(in_window.and_then(|(conditions, _)| Some(conditions.rsplit_once(" and ")?.0)))
    };
    let by_index: Vec<_> = BY_THE_RIGHT_INDEX.iter().map(|(query, _)| *query).collect();
    let listed = [BOUNDED, IN_ORDER, COUNTED, COUNTED_OF_A_USER, &by_index].concat();
    let strangers: Vec<_> = listed.iter().filter(|query| !is_asked(query)).collect();
    assert!(strangers.is_empty(), "no operation uses these: {strangers:#?}");
}

/// Checks that each query has a one-step plan of this kind.
fn assert_planned(select: &str, queries: &[&str], is_meant: impl Fn(&str) -> bool) {
    let server = Setup::default().start();
    for query in queries {
        let steps = server.query_plan(&format!("select {select} from {}", query.replace(NOT_ERASED, "true")));
        assert!(steps.len() == 1 && is_meant(&steps[0]), "{query}: {steps:?}");
    }
}

#[test]
fn lists_and_counts_use_an_index() {
    assert_planned("1", BOUNDED, |step| step.starts_with("SEARCH"));
}

#[test]
fn a_page_of_everything_reads_in_table_order() {
    assert_planned("*", IN_ORDER, |step| !step.contains("TEMP B-TREE"));
}

#[test]
fn counts_of_a_user_read_only_an_index() {
    assert_planned("count(*)", COUNTED_OF_A_USER, |step| step.contains("COVERING INDEX"));
}

#[test]
fn totals_read_only_an_index() {
    assert_planned("count(*)", COUNTED, |step| step.contains("INDEX"));
}

#[test]
fn competing_indexes_choose_the_right_one() {
    let server = Setup::default().start();
    for (query, index) in BY_THE_RIGHT_INDEX {
        let steps = server.query_plan(&format!("select 1 from {query}"));
        assert!(steps[0].contains(index), "{query}: {steps:?}");
    }
}
