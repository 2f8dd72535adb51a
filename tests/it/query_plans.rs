//! Lists, counts and reports are answered from an index, and never by looking at every row or by sorting what was
//! found. What other tests of a subject hold already (the audit, sessions, invites, violations, the network log, the
//! ledger) is not repeated here.

use crate::support::Setup;

/// As they stand in the operations, without what they select.
const BOUNDED: &[&str] = &[
    // A user's castings: a page, its total, a look at one.
    "history where user_id = ?1 and deactivated_at is null and (?2 is null or question_type = ?2) \
     order by sequence desc limit ?3 offset ?4",
    "history where local_record_id = ?1 and user_id = ?2 and deactivated_at is null",
    // Interpretations.
    "interpretations where user_id = ?1 and created_at >= ?2 and created_at < ?3 \
     order by created_at desc, id desc limit ?4 offset ?5",
    "interpretations where user_id = ?1",
    "interpretations where trace_id = ?1 and (?2 is null or user_id = ?2)",
    "interpretations where created_at >= ?1 and created_at < ?2",
    "interpretations where user_id = ?1 order by created_at desc, id desc limit ?2 offset ?3",
    "model_calls where user_id = ?1 and kind = 'interpretation' and created_at <= ?3 \
     order by created_at desc limit 1 offset ?2",
    "model_calls where user_id = ?1 and kind = 'chat' and created_at <= ?3 order by created_at desc limit 1 offset ?2",
    "model_calls where created_at < ?1 limit ?2",
    "chats where user_id = ?1 order by created_at desc, id desc limit ?2 offset ?3",
    "chats where user_id = ?1 order by created_at, id",
    // Refusals of a user's last hour, and those beyond the newest.
    "violations where user_id = ?1 and created_at <= ?3 and content_type <> 'answer' \
     order by created_at desc limit 1 offset ?2",
    "violations where user_id = ?1 order by created_at desc, id desc limit ?2 offset ?3",
    "interpretations where duration_ms >= ?1",
    // Orders and what was reported about them.
    "payment_orders where user_id = ?1 order by id desc limit ?2 offset ?3",
    "payment_orders where state = ?1 order by id desc limit ?2 offset ?3",
    "payment_orders where user_id = ?1 and state = ?2 order by id desc limit ?3 offset ?4",
    "payment_orders where (created_at, id) > (?1, ?2) and created_at < ?3 order by created_at, id limit ?4",
    "payment_orders where channel = ?1 and next_check_at <= ?2 order by next_check_at limit ?3",
    "payment_orders where channel = ?1 and next_check_at > ?2 order by next_check_at limit ?3",
    "payment_callbacks where order_no = ?1 and (?2 is null or verdict = ?2) order by id desc limit ?3 offset ?4",
    "payment_callbacks where verdict = ?1 order by id desc limit ?2 offset ?3",
    // Users by a number in an odd spelling.
    "users where phone_number > ?1 and phone_number < ?2 order by phone_number limit ?3",
    // Feedback, notifications, conversations.
    "feedback where user_id = ?1 order by id desc limit ?2 offset ?3",
    "notification_recipients where notification_id = ?1",
    "ledger_audit where user_id = ?1 order by id desc limit ?2 offset ?3",
];

/// Everything, newest first: the order of the table itself, so that a page is as many rows.
const IN_ORDER: &[&str] = &[
    "payment_orders order by id desc limit ?1 offset ?2",
    "payment_callbacks order by id desc limit ?1 offset ?2",
    "feedback order by id desc limit ?1 offset ?2",
    "notifications order by id desc limit ?1 offset ?2",
    "interpretations where status in ('failed', 'interrupted') order by id desc limit ?1 offset ?2",
];

/// How many there are in all: by walking a narrow index, not rows with texts in them.
const COUNTED: &[&str] = &[
    "payment_orders",
    "payment_callbacks",
    "feedback",
    "notifications",
    "interpretations where status in ('failed', 'interrupted')",
];

/// How many of them a user has: without visiting any, because a user's rows lie far apart.
const COUNTED_OF_A_USER: &[&str] = &[
    "history where user_id = ?1 and deactivated_at is null and (?2 is null or question_type = ?2)",
    "interpretations where user_id = ?1",
    "interpretations where user_id = ?1 and created_at >= ?2 and created_at < ?3",
    "payment_orders where user_id = ?1",
    "feedback where user_id = ?1",
];

/// What an index over something else could answer too, that has far more of them, and the index that is meant.
const BY_THE_RIGHT_INDEX: &[(&str, &str)] = &[
    ("payment_orders where user_id = ?1 and +state = ?2", "INDEX payment_orders_by_user"),
    (
        "violations where created_at >= ?1 and content_type <> 'answer' group by +user_id having count(*) >= ?2",
        "COVERING INDEX violations_by_time",
    ),
    ("idempotency_keys where caller not like 'user:%'", "COVERING INDEX idempotency_keys_by_key"),
];

#[test]
fn what_is_planned_here_is_what_operations_ask() {
    let texts: Vec<_> = crate::architecture::texts().collect();
    // With the table, or after a macro that names it.
    let is_asked = |query: &&str| {
        let conditions = query.split_once(' ').map(|(_, conditions)| conditions);
        let is_in = |text: &String| text.contains(&format!("from {query}"));
        texts.iter().any(|text| is_in(text) || conditions == Some(text.trim_matches('"')))
    };
    let by_index: Vec<_> = BY_THE_RIGHT_INDEX.iter().map(|(query, _)| *query).collect();
    let listed = [BOUNDED, IN_ORDER, COUNTED, COUNTED_OF_A_USER, &by_index].concat();
    let strangers: Vec<_> = listed.iter().filter(|query| !is_asked(query)).collect();
    assert!(strangers.is_empty(), "nothing in src asks these: {strangers:#?}");
}

/// Holds that each of the queries is planned in one step, of this kind.
fn assert_planned(select: &str, queries: &[&str], is_meant: impl Fn(&str) -> bool) {
    let server = Setup::default().start();
    for query in queries {
        let steps = server.query_plan(&format!("select {select} from {query}"));
        assert!(steps.len() == 1 && is_meant(&steps[0]), "{query}: {steps:?}");
    }
}

#[test]
fn lists_and_counts_are_answered_from_an_index() {
    assert_planned("1", BOUNDED, |step| step.starts_with("SEARCH"));
}

#[test]
fn a_page_of_everything_is_read_in_the_order_of_the_table() {
    assert_planned("*", IN_ORDER, |step| !step.contains("TEMP B-TREE"));
}

#[test]
fn what_a_user_has_is_counted_without_being_visited() {
    assert_planned("count(*)", COUNTED_OF_A_USER, |step| step.contains("COVERING INDEX"));
}

#[test]
fn everything_is_counted_over_an_index() {
    assert_planned("count(*)", COUNTED, |step| step.contains("INDEX"));
}

#[test]
fn where_indexes_compete_the_right_one_answers() {
    let server = Setup::default().start();
    for (query, index) in BY_THE_RIGHT_INDEX {
        let steps = server.query_plan(&format!("select 1 from {query}"));
        assert!(steps[0].contains(index), "{query}: {steps:?}");
    }
}
