//! Alipay through the server, against a gateway that verifies and signs everything: queries and refunds.

use serde_json::{Value, json};

use crate::support::{
    Caller, Server, Setup,
    alipay::{AlipayGateway, GatewayMode, signed_notification},
    eventually,
};

const OWN: &str = "13800138000";

struct Fixture {
    provider: AlipayGateway,
    server: Server,
    user: Caller,
    key: String,
}

impl Fixture {
    fn new() -> Self {
        let provider = AlipayGateway::start();
        let server = provider.setup().start();
        let user = server.sign_in(OWN);
        let key = server.api_key("shop");
        Self { provider, server, user, key }
    }

    /// Restarts the server with this setup.
    fn restarted(self, setup: Setup) -> Self {
        Self { server: self.server.restart(setup), ..self }
    }

    fn order(&self) -> String {
        let package = [("amount", "6.00"), ("coinCount", "60")];
        let order = self.server.get("/payment/gateway/order").by(&self.user).query(&package).send().expect(200).json();
        order["orderNo"].as_str().unwrap().to_owned()
    }

    fn credited_order(&self) -> String {
        let order_no = self.order();
        self.provider.pay(&order_no, 600);
        assert_eq!(self.hint(&order_no)["status"], "credited");
        order_no
    }

    /// Reports a payment as the app does.
    fn hint(&self, order_no: &str) -> Value {
        let hint = self.server.post("/payment/update-balance").by(&self.user).form(&[("orderNo", order_no)]).send();
        assert!(matches!(hint.status, 200 | 202), "{}", hint.text());
        hint.json()
    }

    fn refund(&self, order_no: &str, amount: &str, number: &str) -> crate::support::Response {
        let path = format!("/admin/payments/{order_no}/refund");
        let body = json!({ "amount": amount, "refundNo": number, "reason": "changed their mind" });
        self.server.post(&path).token(&self.key).json(&body).send()
    }

    /// Makes the server query the provider.
    fn ask(&self, order_no: &str) -> Value {
        self.server.post(&format!("/admin/payments/{order_no}/query")).token(&self.key).send().expect(200).json()
    }

    /// Sends a provider notification with these fields.
    fn notify(&self, order_no: &str, changes: &[(&str, &str)]) -> String {
        self.server.notify(&signed_notification(order_no, changes))
    }

    fn refund_everything(&self, order_no: &str) -> crate::support::Response {
        let path = format!("/admin/payments/{order_no}/refund");
        self.server.post(&path).token(&self.key).json(&json!({ "reason": "changed their mind" })).send()
    }

    /// Settles an order under review.
    fn settle(&self, order_no: &str, decision: &str) -> crate::support::Response {
        let body = json!({ "decision": decision, "reason": "as the provider's console shows" });
        self.server.post(&format!("/admin/payments/{order_no}/settle")).token(&self.key).json(&body).send()
    }

    fn order_file(&self, order_no: &str) -> Value {
        self.server.get(&format!("/admin/payments/{order_no}")).token(&self.key).send().expect(200).json()
    }

    fn report(&self, exit_code: i32) -> Value {
        let report = ["payments", "report", "--from", "2020-01-01", "--to", "2100-01-01"];
        self.server.command(&report).expect(exit_code).json()
    }

    /// Moves the order past all scheduled queries except the last.
    fn age_before_last_query(&self) {
        let days_ago = "created_at = created_at - 172800000, expires_at = expires_at - 172800000";
        self.server
            .edit(&format!("update payment_orders set {days_ago}, next_check_at = 1 where next_check_at is not null"));
    }

    fn coins(&self) -> i64 {
        self.server.coins(&self.user)
    }
}

#[test]
fn finds_a_paid_order_by_query() {
    let fixture = Fixture::new();
    let order_no = fixture.order();
    let told = || {
        let told = fixture.hint(&order_no);
        (told["status"].clone(), told["balance"].clone())
    };
    assert_eq!(told(), (json!("pending"), json!(0)));
    fixture.provider.pay(&order_no, 600);
    let paid = (json!("credited"), json!(60));
    assert_eq!(told(), paid);
    assert_eq!(told(), paid);
    let requested = fixture.ask(&order_no);
    assert_eq!((&requested["trade"]["status"], &requested["verdict"]), (&json!("TRADE_SUCCESS"), &json!("unchanged")));
    assert!(fixture.provider.methods().iter().all(|method| method == "query"), "{:?}", fixture.provider.methods());
    assert_eq!(fixture.coins(), 60);
}

#[test]
fn a_differing_amount_goes_to_review() {
    let fixture = Fixture::new();
    let order_no = fixture.order();
    fixture.provider.pay(&order_no, 599);
    assert_eq!(fixture.hint(&order_no)["status"], "review");
    assert_eq!(fixture.coins(), 0);
    // The money arrived, so the order is not dropped.
    fixture.server.command(&["payments", "settle", &order_no, "write-off", "--reason", "odd", "--yes"]).expect(1);
    fixture.refund(&order_no, "5.99", "R1").expect(200);
    assert_eq!((fixture.provider.refunded(&order_no), fixture.coins()), (599, 0));
}

#[test]
fn retries_a_pending_credit_after_a_partial_refund() {
    let fixture = Fixture::new();
    let order_no = fixture.order();
    fixture.provider.pay(&order_no, 600);
    fixture.server.edit("update balances set suspended_at = 1 where asset = 'coin'");
    fixture.server.edit("update payment_orders set next_check_at = null");
    assert_eq!(fixture.ask(&order_no)["order"]["state"], "paid");
    let wait = "select next_check_at - created_at from payment_orders";
    assert!((1..1_200_000).contains(&fixture.server.value::<i64>(wait)), "the credit is tried again");
    fixture.refund(&order_no, "1.00", "R1").expect(200);
    fixture.server.edit("update balances set suspended_at = null");
    fixture.server.edit("update payment_orders set next_check_at = 1 where next_check_at is not null");
    eventually("the credit", || fixture.coins() == 50);
}

#[test]
fn an_unsigned_response_credits_nothing() {
    for mood in [GatewayMode::Tampered, GatewayMode::Unsigned, GatewayMode::Lost, GatewayMode::Busy] {
        let fixture = Fixture::new();
        let order_no = fixture.order();
        fixture.provider.pay(&order_no, 600);
        fixture.provider.be(mood);
        assert_eq!(fixture.hint(&order_no)["status"], "pending", "{mood:?}");
        assert_eq!((fixture.server.order_state(&order_no).0.as_str(), fixture.coins()), ("created", 0), "{mood:?}");
        fixture.provider.be(GatewayMode::Well);
        let fixture = Fixture { server: fixture.server.restart(fixture.provider.setup()), ..fixture };
        assert_eq!(fixture.hint(&order_no)["status"], "credited", "{mood:?}");
    }
}

#[test]
fn refunds_once_per_refund_number() {
    let fixture = Fixture::new();
    let order_no = fixture.credited_order();
    let first = fixture.refund(&order_no, "1.50", "R1").expect(200).json();
    assert_eq!((&first["refund"]["state"], &first["order"]["refunded"]), (&json!("succeeded"), &json!("1.50")));
    assert_eq!(fixture.coins(), 45);
    // Repeating it is the same refund. Another amount under its number is rejected.
    assert_eq!(fixture.refund(&order_no, "1.50", "R1").expect(200).json()["order"]["refunded"], "1.50");
    fixture.refund(&order_no, "2.00", "R1").expect_problem(422, "idempotency_key_reused");
    fixture.refund(&order_no, "5.00", "R2").expect_problem(409, "order_state");
    assert_eq!(fixture.provider.refunded(&order_no), 150);
    let rest = fixture.refund(&order_no, "4.50", "R2").expect(200).json();
    assert_eq!((&rest["order"]["state"], &rest["order"]["refunded"]), (&json!("refunded"), &json!("6.00")));
    assert_eq!((fixture.provider.refunded(&order_no), fixture.coins()), (600, 0));
    let report = ["payments", "report", "--from", "2020-01-01", "--to", "2100-01-01"];
    assert_eq!(fixture.server.command(&report).expect(0).json()["differences"], json!([]));
    fixture.server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn a_refund_number_belongs_to_its_order() {
    let fixture = Fixture::new();
    let (first, second) = (fixture.credited_order(), fixture.credited_order());
    assert_ne!(first, second);
    fixture.refund(&first, "1.50", "R1").expect(200);
    fixture.refund(&second, "1.50", "R1").expect_problem(422, "idempotency_key_reused");
    assert_eq!((fixture.provider.refunded(&first), fixture.provider.refunded(&second)), (150, 0));
    assert_eq!(fixture.server.order_state(&second), ("credited".to_owned(), 0));
    assert_eq!(fixture.coins(), 105);
}

#[test]
fn queries_a_refund_with_a_lost_response_before_repeating_it() {
    let fixture = Fixture::new();
    let order_no = fixture.credited_order();
    fixture.provider.be(GatewayMode::Lost);
    let lost = fixture.refund(&order_no, "1.50", "R1");
    assert!(lost.status >= 500, "{}", lost.text());
    assert_eq!((fixture.provider.refunded(&order_no), fixture.coins()), (150, 60));
    fixture.provider.be(GatewayMode::Well);
    let server = fixture.server.restart(fixture.provider.setup());
    let fixture = Fixture { server, ..fixture };
    // The provider reports a refund some seconds later.
    fixture.server.edit("update payment_refunds set asked_at = asked_at - 60000");
    let again = fixture.refund(&order_no, "1.50", "R1").expect(200).json();
    assert_eq!((&again["refund"]["state"], &again["order"]["refunded"]), (&json!("succeeded"), &json!("1.50")));
    assert_eq!((fixture.provider.refunded(&order_no), fixture.coins()), (150, 45));
    assert!(
        fixture.provider.methods().contains(&"fastpay.refund.query".to_owned()),
        "{:?}",
        fixture.provider.methods()
    );
}

#[test]
fn a_refund_rejected_by_the_provider_claws_back_nothing() {
    let fixture = Fixture::new();
    let order_no = fixture.credited_order();
    fixture.provider.be(GatewayMode::Refusing);
    let refused = fixture.refund(&order_no, "1.50", "R1").expect_problem(502, "provider_failed");
    assert!(!refused.text().contains("secret words"), "{}", refused.text());
    fixture.provider.be(GatewayMode::Well);
    assert_eq!((fixture.provider.refunded(&order_no), fixture.coins()), (0, 60));
    assert_eq!(fixture.server.order_state(&order_no), ("credited".to_owned(), 0));
    // Once the cause is gone, the same request succeeds exactly once.
    fixture.refund(&order_no, "2.00", "R1").expect_problem(422, "idempotency_key_reused");
    for _ in 0..2 {
        assert_eq!(fixture.refund(&order_no, "1.50", "R1").expect(200).json()["refund"]["failure"], Value::Null);
    }
    assert_eq!((fixture.provider.refunded(&order_no), fixture.coins()), (150, 45));
    // Another number is another refund.
    fixture.refund(&order_no, "1.50", "R2").expect(200);
    assert_eq!((fixture.provider.refunded(&order_no), fixture.coins()), (300, 30));
}

#[test]
fn a_rejected_refund_query_does_not_reject_the_refund() {
    let fixture = Fixture::new();
    let order_no = fixture.credited_order();
    fixture.provider.be(GatewayMode::Lost);
    assert!(fixture.refund(&order_no, "1.50", "R1").status >= 500);
    assert_eq!((fixture.provider.refunded(&order_no), fixture.coins()), (150, 60));
    // The money was refunded although the query failed.
    fixture.provider.be(GatewayMode::Refusing);
    fixture.server.edit("update payment_refunds set asked_at = asked_at - 60000");
    assert!(fixture.refund(&order_no, "1.50", "R1").status >= 500);
    assert_eq!(fixture.server.value::<String>("select state from payment_refunds"), "requested");
    // An open refund cannot be requested again under another number.
    fixture.refund(&order_no, "6.00", "R2").expect_problem(409, "order_state");
    fixture.provider.be(GatewayMode::Well);
    fixture.server.edit("update payment_refunds set asked_at = asked_at - 60000");
    let again = fixture.refund(&order_no, "1.50", "R1").expect(200).json();
    assert_eq!((&again["refund"]["state"], &again["order"]["refunded"]), (&json!("succeeded"), &json!("1.50")));
    assert_eq!((fixture.provider.refunded(&order_no), fixture.coins()), (150, 45));
}

#[test]
fn repeating_an_unresolved_refund_continues_it() {
    let fixture = Fixture::new();
    let order_no = fixture.credited_order();
    let path = format!("/admin/payments/{order_no}/refund");
    let refund = |amount: &str| {
        let body = json!({ "amount": amount, "reason": "bought by mistake" });
        fixture.server.post(&path).token(&fixture.key).json(&body).send()
    };
    fixture.provider.be(GatewayMode::Lost);
    let reported = refund("1.50").expect_problem(504, "provider_timeout").json();
    let number: String = fixture.server.value("select refund_no from payment_refunds");
    assert!(reported["detail"].as_str().unwrap().contains(&number), "{reported}");
    fixture.provider.be(GatewayMode::Well);
    let other = refund("2.00").expect_problem(409, "order_state").json();
    assert!(other["detail"].as_str().unwrap().contains(&number), "{other}");
    fixture.refund(&order_no, "1.50", "R2").expect_problem(409, "order_state");
    // It is a part, so it does not equal the remainder.
    let everything = fixture.refund_everything(&order_no).expect_problem(409, "order_state").json();
    assert!(everything["detail"].as_str().unwrap().contains(&number), "{everything}");
    assert_eq!(refund("1.50").expect(200).json()["refund"]["refundNo"], number.as_str());
    assert_eq!((fixture.provider.refunded(&order_no), fixture.coins()), (150, 45));
    // It is complete, so the next one is another.
    refund("1.50").expect(200);
    assert_eq!((fixture.provider.refunded(&order_no), fixture.coins()), (300, 30));
}

#[test]
fn repeating_a_completed_refund_returns_its_result_once() {
    let fixture = Fixture::new();
    let order_no = fixture.credited_order();
    let path = format!("/admin/payments/{order_no}/refund");
    let refund = |amount: Option<&str>| {
        let body = json!({ "amount": amount, "reason": "bought by mistake" });
        fixture.server.post(&path).token(&fixture.key).json(&body).send()
    };
    let number_of = |response: crate::support::Response| response.expect(200).json()["refund"]["refundNo"].clone();
    let lost = |amount: Option<&str>| {
        fixture.provider.be(GatewayMode::Lost);
        refund(amount).expect_problem(504, "provider_timeout");
        fixture.provider.be(GatewayMode::Well);
        let number: String = fixture.server.value("select refund_no from payment_refunds where state = 'requested'");
        fixture.server.edit("update payment_refunds set asked_at = 1 where state = 'requested'");
        let open = "select count(*) from payment_refunds where state = 'requested'";
        eventually("the refund", || fixture.server.value::<i64>(open) == 0);
        number
    };
    let first = lost(Some("1.50"));
    assert_eq!(number_of(refund(Some("1.50"))), first.as_str());
    assert_eq!((fixture.provider.refunded(&order_no), fixture.coins()), (150, 45));
    assert_ne!(number_of(refund(Some("1.50"))), first.as_str());
    assert_eq!((fixture.provider.refunded(&order_no), fixture.coins()), (300, 30));
    // A part and the remainder are different refunds.
    let part = lost(Some("1.00"));
    let rest = lost(None);
    assert_eq!((fixture.provider.refunded(&order_no), fixture.coins()), (600, 0));
    assert_eq!(number_of(refund(Some("1.00"))), part.as_str());
    assert_eq!(number_of(refund(None)), rest.as_str());
    refund(None).expect_problem(409, "order_state");
}

#[test]
fn does_not_query_refunds_of_another_app() {
    let fixture = Fixture::new();
    let order_no = fixture.credited_order();
    fixture.provider.be(GatewayMode::Lost);
    assert!(fixture.refund(&order_no, "1.50", "R1").status >= 500);
    fixture.provider.be(GatewayMode::Well);
    let another = fixture.provider.setup().with("PAYMENT_APP_ID", "2021000000009999");
    let fixture = fixture.restarted(another);
    fixture.server.edit("update payment_refunds set asked_at = 1");
    for number in ["R1", "R2"] {
        let refused = fixture.refund(&order_no, "1.50", number).expect_problem(409, "order_state").json();
        let app_id: String = fixture.server.value("select app_id from payment_orders");
        let detail = format!("The order belongs to the app `{app_id}`, which is not configured.");
        assert_eq!(refused["detail"], detail);
    }
    // The job queries orders first, then refunds.
    fixture.order();
    for _ in 0..2 {
        let before = fixture.provider.methods().len();
        eventually("a question", || {
            fixture.server.edit("update payment_orders set next_check_at = 1 where state = 'created'");
            fixture.provider.methods().len() > before
        });
    }
    assert_eq!(fixture.server.value::<String>("select state from payment_refunds"), "requested");
    let setup = fixture.provider.setup();
    let fixture = fixture.restarted(setup);
    eventually("the refund", || fixture.coins() == 45);
    assert_eq!(fixture.provider.refunded(&order_no), 150);
}

#[test]
fn does_not_query_refunds_of_another_gateway() {
    let fixture = Fixture::new();
    let order_no = fixture.credited_order();
    fixture.provider.be(GatewayMode::Lost);
    assert!(fixture.refund(&order_no, "1.50", "R1").status >= 500);
    fixture.provider.be(GatewayMode::Well);
    fixture.server.edit("update payment_orders set channel = 'sandbox'");
    fixture.refund(&order_no, "1.50", "R1").expect_problem(409, "order_state");
    assert_eq!(fixture.server.value::<String>("select state from payment_refunds"), "requested");
    fixture.server.edit("update payment_orders set channel = 'alipay'");
    fixture.refund(&order_no, "1.50", "R1").expect(200);
    assert_eq!((fixture.provider.refunded(&order_no), fixture.coins()), (150, 45));
}

#[test]
fn counts_external_refunds_with_a_refund_whose_response_was_lost() {
    let fixture = Fixture::new();
    let order_no = fixture.credited_order();
    fixture.provider.refund_part_externally(&order_no, 200);
    fixture.provider.be(GatewayMode::Lost);
    assert!(fixture.refund(&order_no, "1.00", "R1").status >= 500);
    fixture.provider.be(GatewayMode::Well);
    fixture.server.edit("update payment_refunds set asked_at = asked_at - 60000");
    let done = fixture.refund(&order_no, "1.00", "R1").expect(200).json();
    assert_eq!((&done["refund"]["state"], &done["order"]["refunded"]), (&json!("succeeded"), &json!("3.00")));
    assert_eq!((fixture.provider.refunded(&order_no), fixture.coins()), (300, 30));
}

#[test]
fn external_refunds_during_review_are_visible() {
    let fixture = Fixture::new();
    let order_no = fixture.order();
    fixture.server.edit("update payment_orders set user_id = 999");
    fixture.provider.pay(&order_no, 600);
    assert_eq!(fixture.ask(&order_no)["order"]["reason"], "user_gone");
    fixture.provider.refund_externally(&order_no);
    let requested = fixture.ask(&order_no);
    assert_eq!((&requested["order"]["state"], &requested["order"]["refunded"]), (&json!("review"), &json!("6.00")));
    fixture.server.command(&["payments", "settle", &order_no, "write-off", "--reason", "returned", "--yes"]).expect(0);
    assert_eq!(fixture.server.order_state(&order_no), ("refunded".to_owned(), 600));
}

#[test]
fn repeats_a_failed_query_at_once() {
    let provider = AlipayGateway::start();
    let server = provider.setup().with("PAYMENT_ASK_AGAIN_AFTER", "1 hour").start();
    let (user, key) = (server.sign_in(OWN), server.api_key("shop"));
    let fixture = Fixture { provider, server, user, key };
    let order_no = fixture.order();
    fixture.provider.pay(&order_no, 600);
    fixture.provider.be(GatewayMode::Busy);
    let hint = || {
        let body = json!({ "orderNo": order_no, "status": "success" });
        fixture.server.post("/payment/update-balance").by(&fixture.user).json(&body).send()
    };
    for _ in 0..2 {
        assert_eq!(hint().expect(202).json()["status"], "pending");
    }
    fixture.provider.be(GatewayMode::Well);
    assert_eq!(hint().expect(200).json()["status"], "credited");
}

#[test]
fn an_external_refund_claws_back_the_coins() {
    let fixture = Fixture::new();
    let order_no = fixture.credited_order();
    // Somebody refunded it in the provider's console.
    fixture.provider.refund_externally(&order_no);
    let requested = fixture.ask(&order_no);
    assert_eq!((&requested["verdict"], &requested["order"]["state"]), (&json!("refunded"), &json!("refunded")));
    assert_eq!(fixture.coins(), 0);
}

#[test]
fn pauses_after_failing_to_close_an_order() {
    let fixture = Fixture::new();
    let order_no = fixture.order();
    fixture.provider.open(&order_no, 600);
    fixture.provider.be(GatewayMode::Unclosable);
    fixture.age_before_last_query();
    eventually("the pause", || {
        let is_far_off = "select next_check_at > unixepoch() * 1000 + 30000 from payment_orders";
        fixture.provider.methods().contains(&"close".to_owned()) && fixture.server.value::<bool>(is_far_off)
    });
    assert_eq!(fixture.server.order_state(&order_no).0, "created");
}

#[test]
fn refunds_the_excess_over_the_price_too() {
    let fixture = Fixture::new();
    let order_no = fixture.order();
    fixture.provider.pay(&order_no, 700);
    let trade_no = fixture.ask(&order_no)["trade"]["tradeNo"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        assert_eq!(fixture.notify(&order_no, &[("total_amount", "7.00"), ("trade_no", &trade_no)]), "fail");
    }
    let order = &fixture.order_file(&order_no)["order"];
    assert_eq!(
        (&order["state"], &order["reason"], &order["paid"]),
        (&json!("review"), &json!("wrong_amount"), &json!("7.00"))
    );
    assert_eq!(fixture.report(5)["total"]["amountPaid"], "7.00");
    let done = fixture.refund_everything(&order_no).expect(200).json();
    assert_eq!((&done["order"]["state"], &done["order"]["refunded"]), (&json!("refunded"), &json!("7.00")));
    assert_eq!((fixture.provider.refunded(&order_no), fixture.coins()), (700, 0));
    fixture.report(0);
    // The user sees the full amount.
    let export = fixture.server.get("/api/v1/account/export").by(&fixture.user).send().expect(200).json();
    let reported = &export["orders"][0];
    assert_eq!(
        (&reported["paid"], &reported["coinsReturned"], &reported["coinsWrittenOff"]),
        (&json!("7.00"), &json!(0), &json!(0))
    );
    assert!(reported["expiresAt"].is_string(), "{reported}");
    assert_eq!(reported["refunds"].as_array().unwrap().len(), 1);
    let refund = &reported["refunds"][0];
    assert_eq!((&refund["amount"], &refund["state"]), (&json!("7.00"), &json!("succeeded")));
    assert!(refund["createdAt"].is_string() && refund["finishedAt"].is_string(), "{refund}");
}

#[test]
fn refunding_only_the_excess_claws_back_no_coins() {
    let fixture = Fixture::new();
    let order_no = fixture.order();
    fixture.provider.pay(&order_no, 700);
    fixture.ask(&order_no);
    fixture.refund(&order_no, "1.00", "R1").expect(200);
    assert_eq!(fixture.settle(&order_no, "credit").expect(200).json()["state"], "credited");
    assert_eq!(fixture.coins(), 60);
    fixture.report(0);
    fixture.refund(&order_no, "3.00", "R2").expect(200);
    assert_eq!(fixture.coins(), 30);
}

#[test]
fn records_money_that_arrives_during_review() {
    for by_report in [true, false] {
        let fixture = Fixture::new();
        let order_no = fixture.order();
        fixture.provider.open(&order_no, 500);
        assert_eq!(fixture.ask(&order_no)["order"]["reason"], "wrong_amount");
        assert_eq!(fixture.order_file(&order_no)["order"]["paid"], "0.00");
        fixture.provider.pay(&order_no, 500);
        if by_report {
            assert_eq!(fixture.notify(&order_no, &[("total_amount", "5.00")]), "fail");
        } else {
            assert_eq!(fixture.ask(&order_no)["verdict"], "review");
        }
        let order = &fixture.order_file(&order_no)["order"];
        assert_eq!((&order["state"], &order["paid"]), (&json!("review"), &json!("5.00")));
        assert!(order["paidAt"].is_string(), "{order}");
        let done = fixture.refund_everything(&order_no).expect(200).json();
        assert_eq!((&done["order"]["state"], &done["order"]["refunded"]), (&json!("refunded"), &json!("5.00")));
        assert_eq!(fixture.provider.refunded(&order_no), 500);
        fixture.report(0);
    }
}

#[test]
fn a_differing_amount_for_a_closed_order_goes_to_review_once() {
    let fixture = Fixture::new();
    let order_no = fixture.order();
    fixture.server.edit("update payment_orders set state = 'closed', closed_at = 1, next_check_at = null");
    fixture.provider.pay(&order_no, 500);
    let trade_no = fixture.ask(&order_no)["trade"]["tradeNo"].as_str().unwrap().to_owned();
    fixture.server.edit(
        "update payment_orders set state = 'closed', reason = null, trade_no = null, paid_at = null, paid_fen = 0",
    );
    let late = || fixture.notify(&order_no, &[("total_amount", "5.00"), ("trade_no", &trade_no)]);
    assert_eq!(late(), "fail");
    assert_eq!(fixture.server.order_state(&order_no).0, "review");
    fixture.settle(&order_no, "credit").expect(200);
    // The provider keeps reporting it, but the decision stands.
    assert_eq!((late().as_str(), fixture.server.order_state(&order_no).0.as_str()), ("fail", "credited"));
    assert_eq!(fixture.ask(&order_no)["verdict"], "unchanged");
    assert_eq!((fixture.coins(), fixture.server.order_state(&order_no).0.as_str()), (60, "credited"));
}

#[test]
fn a_refund_before_the_payment_report_implies_the_payment() {
    let fixture = Fixture::new();
    let order_no = fixture.order();
    fixture.provider.pay(&order_no, 600);
    fixture.provider.refund_externally(&order_no);
    let returned =
        [("trade_status", "TRADE_CLOSED"), ("refund_fee", "6.00"), ("gmt_refund", "2026-01-02 03:05:05.000")];
    assert_eq!(fixture.notify(&order_no, &returned), "success");
    let order = &fixture.order_file(&order_no)["order"];
    assert_eq!((&order["state"], &order["paid"]), (&json!("refunded"), &json!("6.00")));
    assert!(order["paidAt"].is_string(), "{order}");
    let total = &fixture.report(0)["total"];
    assert_eq!((&total["amountPaid"], &total["amountRefunded"]), (&json!("6.00"), &json!("6.00")));
    // Orders without a payment report rely on this report until the provider sends one.
    fixture.server.edit("update payment_orders set paid_at = null, paid_fen = 0, trade_no = null");
    assert_eq!(fixture.report(5)["differences"][0]["code"], "refund_unpaid");
    assert_eq!(fixture.ask(&order_no)["order"]["paid"], "6.00");
    fixture.report(0);
}

#[test]
fn owed_coins_are_clawed_back_once_available() {
    let fixture = Fixture::new();
    let order_no = fixture.credited_order();
    fixture.server.edit("update balances set suspended_at = 1 where asset = 'coin'");
    fixture.refund_everything(&order_no).expect(200);
    assert_eq!(fixture.order_file(&order_no)["order"]["reason"], "account_inconsistent");
    fixture.settle(&order_no, "claw-back").expect_problem(503, "account_inconsistent");
    fixture.server.edit("update balances set suspended_at = null");
    assert_eq!(fixture.report(5)["differences"][0]["code"], "coins_owed");
    fixture.server.post("/coin/consume").by(&fixture.user).send().expect(200);
    // One coin is spent: the rest of the debt waits for the next purchase.
    let order = fixture.settle(&order_no, "claw-back").expect(200).json();
    assert_eq!(
        (&order["state"], &order["reason"], &order["coinsReturned"]),
        (&json!("review"), &json!("coins_spent"), &json!(59))
    );
    fixture.server.grant(&fixture.key, OWN, 10);
    let collect = ["payments", "settle", &order_no, "claw-back", "--reason", "they bought more", "--yes"];
    assert_eq!(fixture.server.command(&collect).expect(0).json()["state"], "refunded");
    assert_eq!(fixture.coins(), 9);
    fixture.report(0);
    fixture.settle(&order_no, "claw-back").expect_problem(409, "order_state");
    let taken = "select group_concat(actor || ' ' || balance_before || ' ' || balance_after, ', ') from ledger_audit \
                 where action = 'refund_payment'";
    assert_eq!(fixture.server.value::<String>(taken), "key:shop 59 0, cli 10 9");
}

#[test]
fn refunded_externally_settles_an_unresolvable_order() {
    let fixture = Fixture::new();
    let order_no = fixture.order();
    fixture.server.edit("update payment_orders set user_id = 999");
    fixture.provider.pay(&order_no, 600);
    assert_eq!(fixture.ask(&order_no)["order"]["reason"], "user_gone");
    fixture.provider.be(GatewayMode::Refusing);
    fixture.refund_everything(&order_no).expect_problem(502, "provider_failed");
    fixture.settle(&order_no, "write-off").expect_problem(409, "order_state");
    fixture.settle(&order_no, "credit").expect_problem(409, "order_state");
    fixture.settle(&order_no, "claw-back").expect_problem(409, "order_state");
    // The operator's words have no effect, even if they look like a known reason.
    let settle = ["payments", "settle", &order_no, "refunded-externally", "--reason", "second_trade", "--yes"];
    let order = fixture.server.command(&settle).expect(0).json();
    assert_eq!((&order["state"], &order["refunded"]), (&json!("refunded"), &json!("6.00")));
    assert_eq!(order["reason"], "second_trade");
    fixture.settle(&order_no, "refunded-externally").expect_problem(409, "order_state");
    fixture.report(0);
    let unpaid = fixture.order();
    fixture.server.edit("update payment_orders set state = 'review', reason = 'test' where state = 'created'");
    fixture.settle(&unpaid, "refunded-externally").expect_problem(409, "order_state");
}

#[test]
fn an_order_is_not_settled_during_an_open_refund() {
    let fixture = Fixture::new();
    let order_no = fixture.order();
    fixture.provider.pay(&order_no, 600);
    fixture.server.edit("update payment_orders set state = 'review', reason = 'test', next_check_at = null");
    assert_eq!(fixture.ask(&order_no)["order"]["paid"], "6.00");
    fixture.provider.be(GatewayMode::Busy);
    assert!(fixture.refund(&order_no, "6.00", "R1").status >= 500);
    for decision in ["refunded-externally", "credit"] {
        let refused = fixture.settle(&order_no, decision).expect_problem(409, "order_state").json();
        assert!(refused["detail"].as_str().unwrap().contains("R1"), "{refused}");
    }
    fixture.provider.be(GatewayMode::Well);
    fixture.server.edit("update payment_refunds set asked_at = 1");
    eventually("the refund", || fixture.server.order_state(&order_no).0 == "refunded");
    assert_eq!((fixture.provider.refunded(&order_no), fixture.coins()), (600, 0));
}

#[test]
fn an_operator_resolves_a_refund_that_cannot_be_queried() {
    let fixture = Fixture::new();
    let order_no = fixture.order();
    fixture.provider.pay(&order_no, 600);
    fixture.server.edit("update payment_orders set state = 'review', reason = 'test', next_check_at = null");
    fixture.ask(&order_no);
    fixture.provider.be(GatewayMode::Busy);
    assert!(fixture.refund(&order_no, "6.00", "R1").status >= 500);
    fixture.provider.be(GatewayMode::Well);
    let another = fixture.provider.setup().with("PAYMENT_APP_ID", "2021000000009999");
    let fixture = fixture.restarted(another);
    assert_eq!(fixture.settle(&order_no, "refunded-externally").expect(200).json()["state"], "refunded");
    let refund = &fixture.order_file(&order_no)["refunds"][0];
    assert_eq!((&refund["state"], &refund["failure"]), (&json!("refused"), &json!("refunded_externally")));
    let setup = fixture.provider.setup();
    let fixture = fixture.restarted(setup);
    fixture.refund(&order_no, "6.00", "R1").expect_problem(409, "order_state");
    assert_eq!(fixture.provider.refunded(&order_no), 0);
    fixture.report(0);
}

#[test]
fn keeps_a_second_payment_when_the_first_is_refunded() {
    let fixture = Fixture::new();
    let order_no = fixture.credited_order();
    assert_eq!(fixture.notify(&order_no, &[("trade_no", "2026010222001400000000000099")]), "success");
    let reason = || fixture.order_file(&order_no)["order"]["reason"].clone();
    assert_eq!((fixture.server.order_state(&order_no).0.as_str(), reason()), ("review", json!("second_trade")));
    let done = fixture.refund_everything(&order_no).expect(200).json();
    assert_eq!((&done["order"]["state"], &done["order"]["refunded"]), (&json!("review"), &json!("6.00")));
    assert_eq!((reason(), fixture.coins()), (json!("second_trade"), 0));
    assert_eq!(fixture.settle(&order_no, "write-off").expect(200).json()["state"], "refunded");
    fixture.report(0);
}

#[test]
fn an_order_of_a_replaced_app_is_not_closed_as_unpaid() {
    let fixture = Fixture::new();
    let order_no = fixture.order();
    fixture.provider.pay(&order_no, 600);
    let another = fixture.provider.setup().with("PAYMENT_APP_ID", "2021000000009999");
    let fixture = fixture.restarted(another.with("PAYMENT_REFUSED_CALLBACKS", 1));
    assert_eq!(fixture.notify(&order_no, &[]), "fail");
    for number in 0..3 {
        assert_eq!(fixture.server.notify(&format!("out_trade_no={number}")), "fail");
    }
    let genuine = "select group_concat(order_no || ' ' || reason) from payment_callbacks where is_genuine = 1";
    assert_eq!(fixture.server.value::<String>(genuine), format!("{order_no} wrong_app"));
    assert_eq!(fixture.server.value::<i64>("select count(*) from payment_callbacks"), 2);
    fixture.age_before_last_query();
    eventually("the review", || fixture.server.order_state(&order_no).0 == "review");
    assert_eq!(fixture.order_file(&order_no)["order"]["reason"], "not_configured");
    assert!(!fixture.provider.methods().contains(&"close".to_owned()), "{:?}", fixture.provider.methods());
    // New payment requests use the configured app.
    assert_ne!(fixture.order(), order_no);
    let setup = fixture.provider.setup();
    let fixture = fixture.restarted(setup);
    let requested = fixture.ask(&order_no);
    assert_eq!((&requested["verdict"], &requested["order"]["reason"]), (&json!("credited"), &Value::Null));
    assert_eq!(fixture.coins(), 60);
}

#[test]
fn orders_of_an_unconfigured_gateway_are_resolved() {
    let fixture = Fixture::new();
    let paid = fixture.order();
    fixture.provider.pay(&paid, 600);
    fixture.server.edit("update balances set suspended_at = 1 where asset = 'coin'");
    assert_eq!(fixture.ask(&paid)["order"]["state"], "paid");
    let unheard = fixture.order();
    let fixture = fixture.restarted(Setup::default());
    fixture.server.edit("update balances set suspended_at = null");
    fixture.age_before_last_query();
    let state = |fixture: &Fixture, order_no: &str| fixture.server.order_state(order_no).0;
    eventually("the credit", || state(&fixture, &paid) == "credited");
    eventually("the review", || state(&fixture, &unheard) == "review");
    assert_eq!(
        (fixture.order_file(&unheard)["order"]["reason"].clone(), fixture.coins()),
        (json!("not_configured"), 60)
    );
    let rehearsed = fixture.order();
    let setup = fixture.provider.setup();
    let fixture = fixture.restarted(setup);
    fixture.age_before_last_query();
    eventually("the end", || state(&fixture, &rehearsed) == "closed");
}

#[test]
fn a_refund_reported_before_its_response_keeps_the_administrators_reason() {
    let fixture = Fixture::new();
    let order_no = fixture.credited_order();
    let trade_no = fixture.ask(&order_no)["trade"]["tradeNo"].as_str().unwrap().to_owned();
    fixture.provider.be(GatewayMode::Lost);
    assert!(fixture.refund(&order_no, "1.50", "R1").status >= 500);
    let part = [("trade_no", trade_no.as_str()), ("refund_fee", "1.50"), ("gmt_refund", "2026-01-02 03:05:05.000")];
    assert_eq!(fixture.notify(&order_no, &part), "success");
    assert_eq!(fixture.coins(), 45);
    let audited = "select group_concat(actor || ': ' || reason || ' ' || balance_after) from ledger_audit \
                   where action = 'refund_payment'";
    assert_eq!(fixture.server.value::<String>(audited), "key:shop: changed their mind 45");
    fixture.provider.be(GatewayMode::Well);
    fixture.server.edit("update payment_refunds set asked_at = asked_at - 60000");
    fixture.refund(&order_no, "1.50", "R1").expect(200);
    assert_eq!((fixture.coins(), fixture.server.value::<i64>("select count(*) from ledger_audit")), (45, 1));
}

#[test]
fn understands_responses_in_gbk() {
    let fixture = Fixture::new();
    let order_no = fixture.order();
    fixture.provider.be(GatewayMode::Gbk);
    // A refusal in words of the provider: the trade does not exist yet.
    for _ in 0..6 {
        assert_eq!(fixture.hint(&order_no)["status"], "pending");
    }
    fixture.provider.pay(&order_no, 600);
    assert_eq!(fixture.hint(&order_no)["status"], "credited");
    let refunded = fixture.refund(&order_no, "1.50", "R1").expect(200).json();
    assert_eq!(refunded["order"]["refunded"], "1.50");
}

#[test]
fn an_absurd_total_of_refunds_goes_to_review() {
    let fixture = Fixture::new();
    let order_no = fixture.credited_order();
    fixture.provider.be(GatewayMode::ReportsTooMuch);
    let refunded = fixture.refund(&order_no, "1.00", "R1").expect(200).json();
    let order = &refunded["order"];
    assert_eq!((&order["state"], &order["reason"]), (&json!("review"), &json!("refund_exceeds_amount")), "{refunded}");
    assert_eq!((&refunded["refund"]["state"], &order["refunded"]), (&json!("succeeded"), &json!("1.00")));
    assert_eq!(fixture.coins(), 50, "the coins of the refund alone");
}

#[test]
fn an_endless_trade_number_is_not_stored() {
    let fixture = Fixture::new();
    let order_no = fixture.order();
    fixture.provider.pay(&order_no, 600);
    fixture.provider.be(GatewayMode::LongNumbers);
    assert_eq!(fixture.hint(&order_no)["status"], "pending");
    let stored = "select max(coalesce(length(trade_no), 0)) from payment_orders";
    assert_eq!(fixture.server.value::<i64>(stored), 0);
}

#[test]
fn an_order_refunded_before_its_credit_says_when_it_was_refunded() {
    let fixture = Fixture::new();
    let order_no = fixture.order();
    let part = [("refund_fee", "2.00"), ("gmt_refund", "2026-01-02 04:05:06"), ("out_biz_no", "elsewhere")];
    assert_eq!(fixture.notify(&order_no, &part), "success");
    let all = [("refund_fee", "6.00"), ("gmt_refund", "2026-01-03 04:05:06"), ("out_biz_no", "elsewhere")];
    assert_eq!(fixture.order_file(&order_no)["order"]["state"], "review");
    assert_eq!(fixture.notify(&order_no, &all), "success");
    let order = fixture.order_file(&order_no)["order"].clone();
    assert_eq!((&order["state"], &order["refunded"]), (&json!("refunded"), &json!("6.00")), "{order}");
    assert!(order["refundedAt"].is_string(), "{order}");
}

#[test]
fn the_payer_is_exported_and_goes_with_the_account() {
    let payer = [("buyer_id", "2088000000007777"), ("buyer_logon_id", "li-ming-pays@example.com")];
    let fixture = Fixture::new();
    let order_no = fixture.order();
    assert_eq!(fixture.notify(&order_no, &payer), "success");
    let export = ["users", "export", OWN];
    let exported = fixture.server.command(&export).expect(0).json();
    assert_eq!(
        exported["orders"][0]["payers"],
        json!([{ "buyer_id": "2088000000007777", "buyer_logon_id": "li-ming-pays@example.com" }])
    );
    fixture.server.command(&["users", "erase", OWN, "--yes", "--reason", "asked for it"]).expect(0);
    // A late message about the order of a deleted account says no more.
    let late = [payer[0], payer[1], ("refund_fee", "6.00"), ("gmt_refund", "2026-01-03 04:05:06")];
    assert_eq!(fixture.notify(&order_no, &late), "success");
    let stored: Vec<Vec<u8>> = {
        let database = fixture.server.database();
        let mut statement = database.prepare("select form from payment_callbacks order by id").unwrap();
        statement.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(stored.len(), 2);
    for form in stored {
        let form = String::from_utf8(form).unwrap();
        assert!(form.contains(&order_no), "{form}");
        assert!(!form.contains("7777") && !form.contains("li-ming-pays"), "{form}");
    }
}
