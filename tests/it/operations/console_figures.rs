//! Pages of figures and lists in the console.

use super::console::Browser;
use crate::support::model_requests::{PHONE, ask, provider_streaming, with_model_provider};

#[test]
fn the_models_page_shows_usage_failures_budgets_and_availability() {
    let provider = provider_streaming("吉");
    let server =
        with_model_provider(&provider).with("LLM_PRICES", "first=1000/1000").with("LLM_COST_PER_DAY", "50.00").start();
    let user = server.sign_in(PHONE);
    ask(&server, &user).send().expect(200);
    server.edit("update interpretations set status = 'failed', error_class = 'timeout', duration_ms = 12000");
    server.edit("update model_usage set slow_calls = 1");
    let support = Browser::new(&server, "sam", "support");
    let shown = support.get("models").send().expect(200).text();
    let trace: String = server.value("select trace_id from interpretations");
    for part in
        ["id=\"cost-by-day\"", "id=\"tokens-by-day\"", "id=\"budgets\"", "50.00 CNY", "first", "timeout", &trace]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let csv = support.get("models.csv").send().expect(200).text();
    assert!(
        csv.contains(",model_calls,") && csv.contains(",slow_model_calls,") && csv.contains(",model_cost,"),
        "{csv}"
    );
    for show in ["failed", "slow"] {
        let listed = support.get("models/calls").query(&[("show", show)]).send().expect(200).text();
        assert!(listed.contains(&trace), "{show}: {listed}");
    }
    // The trace id leads to the user.
    let found = support.get("search").query(&[("q", &trace)]).send().expect(303);
    assert_eq!(found.header("location"), Some(format!("/admin/console/users/{}", user.user_id).as_str()));
    let reader = Browser::new(&server, "rae", "read-only");
    let shown = reader.get("models").send().expect(200).text();
    assert!(!shown.contains(&trace) && shown.contains("id=\"cost-by-day\""), "{shown}");
}
