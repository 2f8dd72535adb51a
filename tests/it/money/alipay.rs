//! Payment by Alipay through the server, against a vendor that proves and signs everything: asking and giving back.

use serde_json::{Value, json};

use crate::support::{
    Caller, Server, Setup,
    alipay::{AlipayGateway, Mood, signed_notification},
    eventually,
};

const OWN: &str = "13800138000";

struct World {
    vendor: AlipayGateway,
    server: Server,
    user: Caller,
    key: String,
}

impl World {
    fn new() -> Self {
        let vendor = AlipayGateway::start();
        let server = vendor.setup().start();
        let user = server.sign_in(OWN);
        let key = server.api_key("shop");
        Self { vendor, server, user, key }
    }

    /// The same after a restart with this setup.
    fn restarted(self, setup: Setup) -> Self {
        Self { server: self.server.crash_and_restart(setup), ..self }
    }

    fn order(&self) -> String {
        let package = [("amount", "6.00"), ("coinCount", "60")];
        let order = self.server.get("/payment/gateway/order").by(&self.user).query(&package).send().expect(200).json();
        order["orderNo"].as_str().unwrap().to_owned()
    }

    fn credited_order(&self) -> String {
        let order_no = self.order();
        self.vendor.pay(&order_no, 600);
        assert_eq!(self.hint(&order_no)["status"], "credited");
        order_no
    }

    /// The app says that it paid.
    fn hint(&self, order_no: &str) -> Value {
        let hint = self.server.post("/payment/update-balance").by(&self.user).form(&[("orderNo", order_no)]).send();
        assert!(matches!(hint.status, 200 | 202), "{}", hint.text());
        hint.json()
    }

    fn refund(&self, order_no: &str, amount: &str, number: &str) -> crate::support::Answer {
        let path = format!("/admin/payments/{order_no}/refund");
        let body = json!({ "amount": amount, "refundNo": number, "reason": "changed their mind" });
        self.server.post(&path).token(&self.key).json(&body).send()
    }

    /// An operator has the provider asked.
    fn ask(&self, order_no: &str) -> Value {
        self.server.post(&format!("/admin/payments/{order_no}/query")).token(&self.key).send().expect(200).json()
    }

    /// The provider reports a trade of the order's, with these fields.
    fn notify(&self, order_no: &str, changes: &[(&str, &str)]) -> String {
        self.server.notify(&signed_notification(order_no, changes))
    }

    fn refund_everything(&self, order_no: &str) -> crate::support::Answer {
        let path = format!("/admin/payments/{order_no}/refund");
        self.server.post(&path).token(&self.key).json(&json!({ "reason": "changed their mind" })).send()
    }

    /// A person's decision about an order under review.
    fn settle(&self, order_no: &str, decision: &str) -> crate::support::Answer {
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

    /// All the times have passed at which the provider is asked about the orders, but the last.
    fn pass_the_last_check(&self) {
        let days_ago = "created_at = created_at - 172800000, expires_at = expires_at - 172800000";
        self.server
            .edit(&format!("update payment_orders set {days_ago}, next_check_at = 1 where next_check_at is not null"));
    }

    fn coins(&self) -> i64 {
        self.server.coins(&self.user)
    }
}

#[test]
fn an_order_that_was_paid_is_found_by_asking() {
    let world = World::new();
    let order_no = world.order();
    assert_eq!(world.hint(&order_no), json!({ "orderNo": order_no, "status": "created", "balance": 0 }));
    world.vendor.pay(&order_no, 600);
    let paid = json!({ "orderNo": order_no, "status": "credited", "balance": 60 });
    assert_eq!(world.hint(&order_no), paid);
    assert_eq!(world.hint(&order_no), paid);
    let asked = world.ask(&order_no);
    assert_eq!((&asked["trade"]["status"], &asked["verdict"]), (&json!("TRADE_SUCCESS"), &json!("unchanged")));
    assert!(world.vendor.methods().iter().all(|method| method == "query"), "{:?}", world.vendor.methods());
    assert_eq!(world.coins(), 60);
}

#[test]
fn another_sum_than_the_orders_is_left_to_a_person() {
    let world = World::new();
    let order_no = world.order();
    world.vendor.pay(&order_no, 599);
    assert_eq!(world.hint(&order_no)["status"], "review");
    assert_eq!(world.coins(), 0);
    // The money is there, so it is not forgotten.
    world.server.command(&["payments", "settle", &order_no, "write-off", "--reason", "odd", "--yes"]).expect(1);
    world.refund(&order_no, "5.99", "R1").expect(200);
    assert_eq!((world.vendor.refunded(&order_no), world.coins()), (599, 0));
}

#[test]
fn a_credit_that_waits_is_tried_again_although_some_of_the_money_went_back() {
    let world = World::new();
    let order_no = world.order();
    world.vendor.pay(&order_no, 600);
    world.server.edit("update balances set suspended_at = 1 where asset = 'coin'");
    assert_eq!(world.ask(&order_no)["order"]["state"], "paid");
    world.refund(&order_no, "1.00", "R1").expect(200);
    world.server.edit("update balances set suspended_at = null");
    world.server.edit("update payment_orders set next_check_at = 1 where next_check_at is not null");
    eventually("the credit", || world.coins() == 50);
}

#[test]
fn an_answer_that_nobody_signed_credits_nothing() {
    for mood in [Mood::Tampered, Mood::Unsigned, Mood::Lost, Mood::Busy] {
        let world = World::new();
        let order_no = world.order();
        world.vendor.pay(&order_no, 600);
        world.vendor.be(mood);
        assert_eq!(world.hint(&order_no)["status"], "pending", "{mood:?}");
        assert_eq!((world.server.order_state(&order_no).0.as_str(), world.coins()), ("created", 0), "{mood:?}");
        world.vendor.be(Mood::Well);
        let world = World { server: world.server.crash_and_restart(world.vendor.setup()), ..world };
        assert_eq!(world.hint(&order_no)["status"], "credited", "{mood:?}");
    }
}

#[test]
fn a_refund_goes_back_once_under_its_number() {
    let world = World::new();
    let order_no = world.credited_order();
    let first = world.refund(&order_no, "1.50", "R1").expect(200).json();
    assert_eq!((&first["refund"]["state"], &first["order"]["refunded"]), (&json!("succeeded"), &json!("1.50")));
    assert_eq!(world.coins(), 45);
    // The same again is the same refund; another sum under its number is none.
    assert_eq!(world.refund(&order_no, "1.50", "R1").expect(200).json()["order"]["refunded"], "1.50");
    world.refund(&order_no, "2.00", "R1").expect_problem(422, "idempotency_key_reused");
    world.refund(&order_no, "5.00", "R2").expect_problem(409, "order_state");
    assert_eq!(world.vendor.refunded(&order_no), 150);
    let rest = world.refund(&order_no, "4.50", "R2").expect(200).json();
    assert_eq!((&rest["order"]["state"], &rest["order"]["refunded"]), (&json!("refunded"), &json!("6.00")));
    assert_eq!((world.vendor.refunded(&order_no), world.coins()), (600, 0));
    let report = ["payments", "report", "--from", "2020-01-01", "--to", "2100-01-01"];
    assert_eq!(world.server.command(&report).expect(0).json()["differences"], json!([]));
    world.server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn a_refund_whose_answer_was_lost_is_asked_about_before_it_is_repeated() {
    let world = World::new();
    let order_no = world.credited_order();
    world.vendor.be(Mood::Lost);
    let lost = world.refund(&order_no, "1.50", "R1");
    assert!(lost.status >= 500, "{}", lost.text());
    assert_eq!((world.vendor.refunded(&order_no), world.coins()), (150, 60));
    world.vendor.be(Mood::Well);
    let server = world.server.crash_and_restart(world.vendor.setup());
    let world = World { server, ..world };
    // The provider says what became of a number some seconds after it was asked, not at once.
    world.server.edit("update payment_refunds set asked_at = asked_at - 60000");
    let again = world.refund(&order_no, "1.50", "R1").expect(200).json();
    assert_eq!((&again["refund"]["state"], &again["order"]["refunded"]), (&json!("succeeded"), &json!("1.50")));
    assert_eq!((world.vendor.refunded(&order_no), world.coins()), (150, 45));
    assert!(world.vendor.methods().contains(&"fastpay.refund.query".to_owned()), "{:?}", world.vendor.methods());
}

#[test]
fn a_refund_that_the_provider_refuses_takes_nothing_back() {
    let world = World::new();
    let order_no = world.credited_order();
    world.vendor.be(Mood::Refusing);
    let refused = world.refund(&order_no, "1.50", "R1").expect_problem(502, "provider_failed");
    assert!(!refused.text().contains("secret words"), "{}", refused.text());
    world.vendor.be(Mood::Well);
    assert_eq!((world.vendor.refunded(&order_no), world.coins()), (0, 60));
    assert_eq!(world.server.order_state(&order_no), ("credited".to_owned(), 0));
    // Once the reason is gone the same can be asked for again, and happens once.
    world.refund(&order_no, "2.00", "R1").expect_problem(422, "idempotency_key_reused");
    for _ in 0..2 {
        assert_eq!(world.refund(&order_no, "1.50", "R1").expect(200).json()["refund"]["failure"], Value::Null);
    }
    assert_eq!((world.vendor.refunded(&order_no), world.coins()), (150, 45));
    // Another number is another refund.
    world.refund(&order_no, "1.50", "R2").expect(200);
    assert_eq!((world.vendor.refunded(&order_no), world.coins()), (300, 30));
}

#[test]
fn a_question_about_a_refund_that_is_refused_refuses_no_refund() {
    let world = World::new();
    let order_no = world.credited_order();
    world.vendor.be(Mood::Lost);
    assert!(world.refund(&order_no, "1.50", "R1").status >= 500);
    assert_eq!((world.vendor.refunded(&order_no), world.coins()), (150, 60));
    // The money went back. Whatever keeps the provider from saying so, it did.
    world.vendor.be(Mood::Refusing);
    world.server.edit("update payment_refunds set asked_at = asked_at - 60000");
    assert!(world.refund(&order_no, "1.50", "R1").status >= 500);
    assert_eq!(world.server.value::<String>("select state from payment_refunds"), "requested");
    // What is open cannot be asked for again under another number.
    world.refund(&order_no, "6.00", "R2").expect_problem(409, "order_state");
    world.vendor.be(Mood::Well);
    world.server.edit("update payment_refunds set asked_at = asked_at - 60000");
    let again = world.refund(&order_no, "1.50", "R1").expect(200).json();
    assert_eq!((&again["refund"]["state"], &again["order"]["refunded"]), (&json!("succeeded"), &json!("1.50")));
    assert_eq!((world.vendor.refunded(&order_no), world.coins()), (150, 45));
}

#[test]
fn whoever_repeats_a_refund_of_which_nothing_is_known_goes_on_with_it() {
    let world = World::new();
    let order_no = world.credited_order();
    let path = format!("/admin/payments/{order_no}/refund");
    let refund = |amount: &str| {
        let body = json!({ "amount": amount, "reason": "bought by mistake" });
        world.server.post(&path).token(&world.key).json(&body).send()
    };
    world.vendor.be(Mood::Lost);
    let told = refund("1.50").expect_problem(504, "provider_timeout").json();
    let number: String = world.server.value("select refund_no from payment_refunds");
    assert!(told["detail"].as_str().unwrap().contains(&number), "{told}");
    world.vendor.be(Mood::Well);
    let other = refund("2.00").expect_problem(409, "order_state").json();
    assert!(other["detail"].as_str().unwrap().contains(&number), "{other}");
    world.refund(&order_no, "1.50", "R2").expect_problem(409, "order_state");
    // It is a part, and so not everything that is left.
    let everything = world.refund_everything(&order_no).expect_problem(409, "order_state").json();
    assert!(everything["detail"].as_str().unwrap().contains(&number), "{everything}");
    assert_eq!(refund("1.50").expect(200).json()["refund"]["refundNo"], number.as_str());
    assert_eq!((world.vendor.refunded(&order_no), world.coins()), (150, 45));
    // It is done, so the next one is another.
    refund("1.50").expect(200);
    assert_eq!((world.vendor.refunded(&order_no), world.coins()), (300, 30));
}

#[test]
fn whoever_did_not_hear_that_a_refund_was_done_hears_it_once() {
    let world = World::new();
    let order_no = world.credited_order();
    let path = format!("/admin/payments/{order_no}/refund");
    let refund = |amount: Option<&str>| {
        let body = json!({ "amount": amount, "reason": "bought by mistake" });
        world.server.post(&path).token(&world.key).json(&body).send()
    };
    let number_of = |answer: crate::support::Answer| answer.expect(200).json()["refund"]["refundNo"].clone();
    let lost = |amount: Option<&str>| {
        world.vendor.be(Mood::Lost);
        refund(amount).expect_problem(504, "provider_timeout");
        world.vendor.be(Mood::Well);
        let number: String = world.server.value("select refund_no from payment_refunds where state = 'requested'");
        world.server.edit("update payment_refunds set asked_at = 1 where state = 'requested'");
        let open = "select count(*) from payment_refunds where state = 'requested'";
        eventually("the refund", || world.server.value::<i64>(open) == 0);
        number
    };
    let first = lost(Some("1.50"));
    assert_eq!(number_of(refund(Some("1.50"))), first.as_str());
    assert_eq!((world.vendor.refunded(&order_no), world.coins()), (150, 45));
    assert_ne!(number_of(refund(Some("1.50"))), first.as_str());
    assert_eq!((world.vendor.refunded(&order_no), world.coins()), (300, 30));
    // Neither a part of what is left nor all of it is the other.
    let part = lost(Some("1.00"));
    let rest = lost(None);
    assert_eq!((world.vendor.refunded(&order_no), world.coins()), (600, 0));
    assert_eq!(number_of(refund(Some("1.00"))), part.as_str());
    assert_eq!(number_of(refund(None)), rest.as_str());
    refund(None).expect_problem(409, "order_state");
}

#[test]
fn another_app_is_not_asked_about_a_refund() {
    let world = World::new();
    let order_no = world.credited_order();
    world.vendor.be(Mood::Lost);
    assert!(world.refund(&order_no, "1.50", "R1").status >= 500);
    world.vendor.be(Mood::Well);
    let another = world.vendor.setup().with("PAYMENT_APP_ID", "2021000000009999");
    let world = world.restarted(another);
    world.server.edit("update payment_refunds set asked_at = 1");
    for number in ["R1", "R2"] {
        let refused = world.refund(&order_no, "1.50", number).expect_problem(409, "order_state").json();
        let app_id: String = world.server.value("select app_id from payment_orders");
        let detail = format!("The order was made for the app `{app_id}`, which is not configured.");
        assert_eq!(refused["detail"], detail);
    }
    // The job asks about orders first, and about refunds then.
    world.order();
    for _ in 0..2 {
        let before = world.vendor.methods().len();
        eventually("a question", || {
            world.server.edit("update payment_orders set next_check_at = 1 where state = 'created'");
            world.vendor.methods().len() > before
        });
    }
    assert_eq!(world.server.value::<String>("select state from payment_refunds"), "requested");
    let setup = world.vendor.setup();
    let world = world.restarted(setup);
    eventually("the refund", || world.coins() == 45);
    assert_eq!(world.vendor.refunded(&order_no), 150);
}

#[test]
fn another_gateway_is_not_asked_about_a_refund() {
    let world = World::new();
    let order_no = world.credited_order();
    world.vendor.be(Mood::Lost);
    assert!(world.refund(&order_no, "1.50", "R1").status >= 500);
    world.vendor.be(Mood::Well);
    world.server.edit("update payment_orders set channel = 'sandbox'");
    world.refund(&order_no, "1.50", "R1").expect_problem(409, "order_state");
    assert_eq!(world.server.value::<String>("select state from payment_refunds"), "requested");
    world.server.edit("update payment_orders set channel = 'alipay'");
    world.refund(&order_no, "1.50", "R1").expect(200);
    assert_eq!((world.vendor.refunded(&order_no), world.coins()), (150, 45));
}

#[test]
fn what_was_given_back_elsewhere_counts_with_a_refund_whose_answer_was_lost() {
    let world = World::new();
    let order_no = world.credited_order();
    world.vendor.give_back_some(&order_no, 200);
    world.vendor.be(Mood::Lost);
    assert!(world.refund(&order_no, "1.00", "R1").status >= 500);
    world.vendor.be(Mood::Well);
    world.server.edit("update payment_refunds set asked_at = asked_at - 60000");
    let done = world.refund(&order_no, "1.00", "R1").expect(200).json();
    assert_eq!((&done["refund"]["state"], &done["order"]["refunded"]), (&json!("succeeded"), &json!("3.00")));
    assert_eq!((world.vendor.refunded(&order_no), world.coins()), (300, 30));
}

#[test]
fn what_goes_back_while_a_person_looks_is_known_to_them() {
    let world = World::new();
    let order_no = world.order();
    world.server.edit("update payment_orders set user_id = 999");
    world.vendor.pay(&order_no, 600);
    assert_eq!(world.ask(&order_no)["order"]["reason"], "user_gone");
    world.vendor.give_back(&order_no);
    let asked = world.ask(&order_no);
    assert_eq!((&asked["order"]["state"], &asked["order"]["refunded"]), (&json!("review"), &json!("6.00")));
    world.server.command(&["payments", "settle", &order_no, "write-off", "--reason", "returned", "--yes"]).expect(0);
    assert_eq!(world.server.order_state(&order_no), ("refunded".to_owned(), 600));
}

#[test]
fn a_question_that_was_not_answered_is_asked_again_at_once() {
    let vendor = AlipayGateway::start();
    let server = vendor.setup().with("PAYMENT_ASK_AGAIN_AFTER", "1 hour").start();
    let (user, key) = (server.sign_in(OWN), server.api_key("shop"));
    let world = World { vendor, server, user, key };
    let order_no = world.order();
    world.vendor.pay(&order_no, 600);
    world.vendor.be(Mood::Busy);
    let hint = || {
        let body = json!({ "orderNo": order_no, "status": "success" });
        world.server.post("/payment/update-balance").by(&world.user).json(&body).send()
    };
    for _ in 0..2 {
        assert_eq!(hint().expect(202).json()["status"], "pending");
    }
    world.vendor.be(Mood::Well);
    assert_eq!(hint().expect(200).json()["status"], "credited");
}

#[test]
fn a_payment_that_was_given_back_elsewhere_takes_the_coins_back() {
    let world = World::new();
    let order_no = world.credited_order();
    // Somebody gave it back in the provider's own console.
    world.vendor.give_back(&order_no);
    let asked = world.ask(&order_no);
    assert_eq!((&asked["verdict"], &asked["order"]["state"]), (&json!("refunded"), &json!("refunded")));
    assert_eq!(world.coins(), 0);
}

#[test]
fn an_order_that_cannot_be_closed_is_left_alone_for_a_while() {
    let world = World::new();
    let order_no = world.order();
    world.vendor.open(&order_no, 600);
    world.vendor.be(Mood::Unclosable);
    world.pass_the_last_check();
    eventually("the pause", || {
        let is_far_off = "select next_check_at > unixepoch() * 1000 + 30000 from payment_orders";
        world.vendor.methods().contains(&"close".to_owned()) && world.server.value::<bool>(is_far_off)
    });
    assert_eq!(world.server.order_state(&order_no).0, "created");
}

#[test]
fn what_came_in_above_the_price_goes_back_too() {
    let world = World::new();
    let order_no = world.order();
    world.vendor.pay(&order_no, 700);
    let trade_no = world.ask(&order_no)["trade"]["tradeNo"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        assert_eq!(world.notify(&order_no, &[("total_amount", "7.00"), ("trade_no", &trade_no)]), "fail");
    }
    let order = &world.order_file(&order_no)["order"];
    assert_eq!(
        (&order["state"], &order["reason"], &order["paid"]),
        (&json!("review"), &json!("wrong_amount"), &json!("7.00"))
    );
    assert_eq!(world.report(5)["total"]["amountPaid"], "7.00");
    let done = world.refund_everything(&order_no).expect(200).json();
    assert_eq!((&done["order"]["state"], &done["order"]["refunded"]), (&json!("refunded"), &json!("7.00")));
    assert_eq!((world.vendor.refunded(&order_no), world.coins()), (700, 0));
    world.report(0);
    // The user is told of all of it, too.
    let export = world.server.get("/api/v1/account/export").by(&world.user).send().expect(200).json();
    let told = &export["orders"][0];
    assert_eq!(
        (&told["paid"], &told["coinsReturned"], &told["coinsWrittenOff"]),
        (&json!("7.00"), &json!(0), &json!(0))
    );
    assert!(told["expiresAt"].is_string(), "{told}");
    assert_eq!(told["refunds"].as_array().unwrap().len(), 1);
    let refund = &told["refunds"][0];
    assert_eq!((&refund["amount"], &refund["state"]), (&json!("7.00"), &json!("succeeded")));
    assert!(refund["createdAt"].is_string() && refund["finishedAt"].is_string(), "{refund}");
}

#[test]
fn the_excess_alone_goes_back_and_takes_no_coins() {
    let world = World::new();
    let order_no = world.order();
    world.vendor.pay(&order_no, 700);
    world.ask(&order_no);
    world.refund(&order_no, "1.00", "R1").expect(200);
    assert_eq!(world.settle(&order_no, "credit").expect(200).json()["state"], "credited");
    assert_eq!(world.coins(), 60);
    world.report(0);
    world.refund(&order_no, "3.00", "R2").expect(200);
    assert_eq!(world.coins(), 30);
}

#[test]
fn money_that_comes_in_while_a_person_looks_is_recorded() {
    for by_report in [true, false] {
        let world = World::new();
        let order_no = world.order();
        world.vendor.open(&order_no, 500);
        assert_eq!(world.ask(&order_no)["order"]["reason"], "wrong_amount");
        assert_eq!(world.order_file(&order_no)["order"]["paid"], "0.00");
        world.vendor.pay(&order_no, 500);
        if by_report {
            assert_eq!(world.notify(&order_no, &[("total_amount", "5.00")]), "fail");
        } else {
            assert_eq!(world.ask(&order_no)["verdict"], "review");
        }
        let order = &world.order_file(&order_no)["order"];
        assert_eq!((&order["state"], &order["paid"]), (&json!("review"), &json!("5.00")));
        assert!(order["paidAt"].is_string(), "{order}");
        let done = world.refund_everything(&order_no).expect(200).json();
        assert_eq!((&done["order"]["state"], &done["order"]["refunded"]), (&json!("refunded"), &json!("5.00")));
        assert_eq!(world.vendor.refunded(&order_no), 500);
        world.report(0);
    }
}

#[test]
fn another_sum_for_a_closed_order_is_left_to_a_person_once() {
    let world = World::new();
    let order_no = world.order();
    world.server.edit("update payment_orders set state = 'closed', closed_at = 1, next_check_at = null");
    world.vendor.pay(&order_no, 500);
    let trade_no = world.ask(&order_no)["trade"]["tradeNo"].as_str().unwrap().to_owned();
    world.server.edit(
        "update payment_orders set state = 'closed', reason = null, trade_no = null, paid_at = null, paid_fen = 0",
    );
    let late = || world.notify(&order_no, &[("total_amount", "5.00"), ("trade_no", &trade_no)]);
    assert_eq!(late(), "fail");
    assert_eq!(world.server.order_state(&order_no).0, "review");
    world.settle(&order_no, "credit").expect(200);
    // The provider goes on reporting it. The person has decided.
    assert_eq!((late().as_str(), world.server.order_state(&order_no).0.as_str()), ("fail", "credited"));
    assert_eq!(world.ask(&order_no)["verdict"], "unchanged");
    assert_eq!((world.coins(), world.server.order_state(&order_no).0.as_str()), (60, "credited"));
}

#[test]
fn what_went_back_before_it_was_heard_of_had_come_in() {
    let world = World::new();
    let order_no = world.order();
    world.vendor.pay(&order_no, 600);
    world.vendor.give_back(&order_no);
    let returned =
        [("trade_status", "TRADE_CLOSED"), ("refund_fee", "6.00"), ("gmt_refund", "2026-01-02 03:05:05.000")];
    assert_eq!(world.notify(&order_no, &returned), "success");
    let order = &world.order_file(&order_no)["order"];
    assert_eq!((&order["state"], &order["paid"]), (&json!("refunded"), &json!("6.00")));
    assert!(order["paidAt"].is_string(), "{order}");
    let total = &world.report(0)["total"];
    assert_eq!((&total["amountPaid"], &total["amountRefunded"]), (&json!("6.00"), &json!("6.00")));
    // Of an order that was not told of the payment, the report tells, until the provider does.
    world.server.edit("update payment_orders set paid_at = null, paid_fen = 0, trade_no = null");
    assert_eq!(world.report(5)["differences"][0]["code"], "refund_unpaid");
    assert_eq!(world.ask(&order_no)["order"]["paid"], "6.00");
    world.report(0);
}

#[test]
fn coins_that_are_owed_are_collected_once_they_are_there() {
    let world = World::new();
    let order_no = world.credited_order();
    world.server.edit("update balances set suspended_at = 1 where asset = 'coin'");
    world.refund_everything(&order_no).expect(200);
    assert_eq!(world.order_file(&order_no)["order"]["reason"], "account_inconsistent");
    world.settle(&order_no, "collect").expect_problem(503, "account_inconsistent");
    world.server.edit("update balances set suspended_at = null");
    assert_eq!(world.report(5)["differences"][0]["code"], "coins_owed");
    world.server.post("/coin/consume").by(&world.user).send().expect(200);
    // One is spent by now: what is there is taken, and the rest waits for the next purchase.
    let order = world.settle(&order_no, "collect").expect(200).json();
    assert_eq!(
        (&order["state"], &order["reason"], &order["coinsReturned"]),
        (&json!("review"), &json!("coins_spent"), &json!(59))
    );
    world.server.grant(&world.key, OWN, 10);
    let collect = ["payments", "settle", &order_no, "claw-back", "--reason", "they bought more", "--yes"];
    assert_eq!(world.server.command(&collect).expect(0).json()["state"], "refunded");
    assert_eq!(world.coins(), 9);
    world.report(0);
    world.settle(&order_no, "collect").expect_problem(409, "order_state");
    let taken = "select group_concat(actor || ' ' || balance_before || ' ' || balance_after, ', ') from ledger_audit \
                 where action = 'refund_payment'";
    assert_eq!(world.server.value::<String>(taken), "key:shop 59 0, cli 10 9");
}

#[test]
fn money_that_was_returned_elsewhere_settles_an_order_that_nothing_else_does() {
    let world = World::new();
    let order_no = world.order();
    world.server.edit("update payment_orders set user_id = 999");
    world.vendor.pay(&order_no, 600);
    assert_eq!(world.ask(&order_no)["order"]["reason"], "user_gone");
    world.vendor.be(Mood::Refusing);
    world.refund_everything(&order_no).expect_problem(502, "provider_failed");
    world.settle(&order_no, "dismiss").expect_problem(409, "order_state");
    world.settle(&order_no, "credit").expect_problem(409, "order_state");
    world.settle(&order_no, "collect").expect_problem(409, "order_state");
    // The words of a person decide nothing, even those that the service has for a reason to look.
    let settle = ["payments", "settle", &order_no, "refunded-externally", "--reason", "second_trade", "--yes"];
    let order = world.server.command(&settle).expect(0).json();
    assert_eq!((&order["state"], &order["refunded"]), (&json!("refunded"), &json!("6.00")));
    assert_eq!(order["reason"], "second_trade");
    world.settle(&order_no, "returned-elsewhere").expect_problem(409, "order_state");
    world.report(0);
    let unpaid = world.order();
    world.server.edit("update payment_orders set state = 'review', reason = 'test' where state = 'created'");
    world.settle(&unpaid, "returned-elsewhere").expect_problem(409, "order_state");
}

#[test]
fn an_order_is_not_settled_while_its_money_may_be_on_its_way_back() {
    let world = World::new();
    let order_no = world.order();
    world.vendor.pay(&order_no, 600);
    world.server.edit("update payment_orders set state = 'review', reason = 'test', next_check_at = null");
    assert_eq!(world.ask(&order_no)["order"]["paid"], "6.00");
    world.vendor.be(Mood::Busy);
    assert!(world.refund(&order_no, "6.00", "R1").status >= 500);
    for decision in ["returned-elsewhere", "credit"] {
        let refused = world.settle(&order_no, decision).expect_problem(409, "order_state").json();
        assert!(refused["detail"].as_str().unwrap().contains("R1"), "{refused}");
    }
    world.vendor.be(Mood::Well);
    world.server.edit("update payment_refunds set asked_at = 1");
    eventually("the refund", || world.server.order_state(&order_no).0 == "refunded");
    assert_eq!((world.vendor.refunded(&order_no), world.coins()), (600, 0));
}

#[test]
fn a_refund_about_which_nobody_can_be_asked_ends_by_what_a_person_knows() {
    let world = World::new();
    let order_no = world.order();
    world.vendor.pay(&order_no, 600);
    world.server.edit("update payment_orders set state = 'review', reason = 'test', next_check_at = null");
    world.ask(&order_no);
    world.vendor.be(Mood::Busy);
    assert!(world.refund(&order_no, "6.00", "R1").status >= 500);
    world.vendor.be(Mood::Well);
    let another = world.vendor.setup().with("PAYMENT_APP_ID", "2021000000009999");
    let world = world.restarted(another);
    assert_eq!(world.settle(&order_no, "returned-elsewhere").expect(200).json()["state"], "refunded");
    let refund = &world.order_file(&order_no)["refunds"][0];
    assert_eq!((&refund["state"], &refund["failure"]), (&json!("refused"), &json!("returned_elsewhere")));
    let setup = world.vendor.setup();
    let world = world.restarted(setup);
    world.refund(&order_no, "6.00", "R1").expect_problem(409, "order_state");
    assert_eq!(world.vendor.refunded(&order_no), 0);
    world.report(0);
}

#[test]
fn a_second_payment_is_not_forgotten_when_the_first_one_goes_back() {
    let world = World::new();
    let order_no = world.credited_order();
    assert_eq!(world.notify(&order_no, &[("trade_no", "2026010222001400000000000099")]), "success");
    let reason = || world.order_file(&order_no)["order"]["reason"].clone();
    assert_eq!((world.server.order_state(&order_no).0.as_str(), reason()), ("review", json!("second_trade")));
    let done = world.refund_everything(&order_no).expect(200).json();
    assert_eq!((&done["order"]["state"], &done["order"]["refunded"]), (&json!("review"), &json!("6.00")));
    assert_eq!((reason(), world.coins()), (json!("second_trade"), 0));
    assert_eq!(world.settle(&order_no, "dismiss").expect(200).json()["state"], "refunded");
    world.report(0);
}

#[test]
fn an_order_of_an_app_that_was_replaced_is_not_taken_for_unpaid() {
    let world = World::new();
    let order_no = world.order();
    world.vendor.pay(&order_no, 600);
    let another = world.vendor.setup().with("PAYMENT_APP_ID", "2021000000009999");
    let world = world.restarted(another.with("PAYMENT_REFUSED_CALLBACKS", 1));
    assert_eq!(world.notify(&order_no, &[]), "fail");
    for number in 0..3 {
        assert_eq!(world.server.notify(&format!("out_trade_no={number}")), "fail");
    }
    let genuine = "select group_concat(order_no || ' ' || reason) from payment_callbacks where is_genuine = 1";
    assert_eq!(world.server.value::<String>(genuine), format!("{order_no} wrong_app"));
    assert_eq!(world.server.value::<i64>("select count(*) from payment_callbacks"), 2);
    world.pass_the_last_check();
    eventually("the review", || world.server.order_state(&order_no).0 == "review");
    assert_eq!(world.order_file(&order_no)["order"]["reason"], "not_configured");
    assert!(!world.vendor.methods().contains(&"close".to_owned()), "{:?}", world.vendor.methods());
    // What the app is told to pay is an order of the app that is configured.
    assert_ne!(world.order(), order_no);
    let setup = world.vendor.setup();
    let world = world.restarted(setup);
    let asked = world.ask(&order_no);
    assert_eq!((&asked["verdict"], &asked["order"]["reason"]), (&json!("credited"), &Value::Null));
    assert_eq!(world.coins(), 60);
}

#[test]
fn orders_of_a_gateway_that_is_not_configured_come_to_an_end() {
    let world = World::new();
    let paid = world.order();
    world.vendor.pay(&paid, 600);
    world.server.edit("update balances set suspended_at = 1 where asset = 'coin'");
    assert_eq!(world.ask(&paid)["order"]["state"], "paid");
    let unheard = world.order();
    let world = world.restarted(Setup::default());
    world.server.edit("update balances set suspended_at = null");
    world.pass_the_last_check();
    let state = |world: &World, order_no: &str| world.server.order_state(order_no).0;
    eventually("the credit", || state(&world, &paid) == "credited");
    eventually("the review", || state(&world, &unheard) == "review");
    assert_eq!((world.order_file(&unheard)["order"]["reason"].clone(), world.coins()), (json!("not_configured"), 60));
    let rehearsed = world.order();
    let setup = world.vendor.setup();
    let world = world.restarted(setup);
    world.pass_the_last_check();
    eventually("the end", || state(&world, &rehearsed) == "closed");
}

#[test]
fn a_refund_that_is_reported_before_it_is_answered_is_at_its_administrators_word() {
    let world = World::new();
    let order_no = world.credited_order();
    let trade_no = world.ask(&order_no)["trade"]["tradeNo"].as_str().unwrap().to_owned();
    world.vendor.be(Mood::Lost);
    assert!(world.refund(&order_no, "1.50", "R1").status >= 500);
    let part = [("trade_no", trade_no.as_str()), ("refund_fee", "1.50"), ("gmt_refund", "2026-01-02 03:05:05.000")];
    assert_eq!(world.notify(&order_no, &part), "success");
    assert_eq!(world.coins(), 45);
    let audited = "select group_concat(actor || ': ' || reason || ' ' || balance_after) from ledger_audit \
                   where action = 'refund_payment'";
    assert_eq!(world.server.value::<String>(audited), "key:shop: changed their mind 45");
    world.vendor.be(Mood::Well);
    world.server.edit("update payment_refunds set asked_at = asked_at - 60000");
    world.refund(&order_no, "1.50", "R1").expect(200);
    assert_eq!((world.coins(), world.server.value::<i64>("select count(*) from ledger_audit")), (45, 1));
}
