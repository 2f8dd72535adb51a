//! Several payment channels at once, through the server and against fakes of the providers.

use serde_json::{Value, json};

use crate::support::{
    Request, Setup,
    alipay::signed_notification,
    channels::{Shop, seconds},
    eventually, send_concurrently,
    stripe::{STRIPE_SECRET, stripe_event, stripe_payment_of, stripe_signature},
    wechat::{WeChatMode, published_wechat, signature_headers, transaction_id},
};

#[test]
fn an_order_names_its_channel_and_the_first_is_the_default() {
    let shop = Shop::new();
    let first = shop.order(&[]);
    assert_eq!(
        (&first["channel"], &first["currency"], &first["amount"]),
        (&json!("alipay"), &json!("CNY"), &json!("6.00"))
    );
    assert!(first["orderString"].as_str().unwrap().contains("alipay.trade.app.pay"));

    let wechat = shop.order(&[("channel", "wechat")]);
    assert_ne!(wechat["orderNo"], first["orderNo"]);
    assert_eq!((&wechat["orderString"], &wechat["payment"]["package"]), (&Value::Null, &json!("Sign=WXPay")));
    assert_eq!(shop.order(&[("channel", "wechat")])["orderNo"], wechat["orderNo"]);
    let scanned = shop.order(&[("channel", "wechat"), ("client", "native")]);
    assert!(scanned["payment"]["code_url"].as_str().unwrap().starts_with("weixin://"));
    assert!(shop.order(&[("channel", "wechat"), ("client", "h5")])["payment"]["h5_url"].is_string());
    let inside = shop.order(&[("channel", "wechat"), ("client", "jsapi"), ("openId", "oUpF8uMuAJO")]);
    assert_eq!(inside["payment"]["signType"], "RSA");

    let body = json!({ "productId": "points_600", "channel": "stripe" });
    let stripe = shop.server.post("/api/v1/orders").by(&shop.user).json(&body).send().expect(200).json();
    assert_eq!((&stripe["currency"], &stripe["amount"]), (&json!("USD"), &json!("0.99")));
    assert!(stripe["payment"]["url"].as_str().unwrap().starts_with("https://checkout.stripe.com/"));
    let unpriced = json!({ "productId": "points_3300", "channel": "stripe" });
    shop.server.post("/api/v1/orders").by(&shop.user).json(&unpriced).send().expect_problem(422, "unknown_product");
    for wrong in [&[("channel", "sandbox")][..], &[("channel", "wechat"), ("client", "jsapi")], &[("client", "fax")]] {
        let package = [&[("amount", "6.00"), ("coinCount", "60")], wrong].concat();
        let refused = shop.server.get("/payment/gateway/order").by(&shop.user).query(&package).send();
        refused.expect_problem(422, "invalid_parameters");
    }
}

#[test]
fn each_channel_has_a_breaker_of_its_name() {
    let mut shop = Shop::start(Setup::with_metrics);
    let text = Request::new("GET", &shop.server.metrics()).send().expect(200).text();
    let name = |line: &str| {
        line.strip_prefix("yarrow_provider_breaker_open{provider=\"payment")?.split('"').next().map(str::to_owned)
    };
    let names: Vec<_> = text.lines().filter_map(name).collect();
    assert_eq!(names, ["", ".stripe", ".wechat"], "{text}");
}

#[test]
fn fifty_copies_of_each_callback_credit_once() {
    let shop = Shop::new();
    for (channel, order_no, request) in shop.callbacks() {
        let before = shop.coins();
        let answers = send_concurrently((0..50).map(|_| request()).collect());
        let expected = if channel == "alipay" { 200 } else { 204 };
        assert!(answers.iter().all(|answer| answer.status == expected), "{channel}");
        if channel == "alipay" {
            assert!(answers.iter().all(|answer| answer.text() == "success"));
        }
        assert_eq!((shop.coins() - before, shop.state(&order_no).0.as_str()), (60, "credited"), "{channel}");
    }
    shop.server.command(&["ledger", "verify"]).expect(0);
    let report = shop.report();
    assert_eq!(report["differences"], json!([]));
}

#[test]
fn each_channel_is_queried_at_its_own_provider() {
    let shop = Shop::new();
    let [alipay, wechat, stripe] = ["alipay", "wechat", "stripe"].map(|channel| shop.order_no(channel));
    shop.alipay.pay(&alipay, 600);
    shop.wechat.pay(&wechat, 600);
    shop.stripe.pay(&shop.session(&stripe));
    for order_no in [&alipay, &wechat, &stripe] {
        let answer = shop.ask(order_no);
        assert_eq!((&answer["verdict"], &answer["trade"]["status"]), (&json!("credited"), &json!("TRADE_SUCCESS")));
    }
    assert_eq!(shop.coins(), 180);
}

#[test]
fn old_channels_are_queried_and_refunded_while_another_takes_new_orders() {
    let shop = Shop::new();
    let (paid, open) = (shop.order_no("wechat"), shop.order_no("stripe"));
    shop.wechat_request(&shop.pay_by_wechat(&paid)).send().expect(204);
    let setup = shop.setup().with("PAYMENT_CHANNELS", "alipay");
    let shop = shop.restarted(setup);
    let package = [("amount", "6.00"), ("coinCount", "60"), ("channel", "wechat")];
    let refused = shop.server.get("/payment/gateway/order").by(&shop.user).query(&package).send();
    refused.expect_fields(&[("channel", "unknown_value")]);
    shop.stripe.pay(&shop.session(&open));
    assert_eq!(shop.ask(&open)["verdict"], "credited");
    let refund = shop.refund(&paid, "6.00", "R1").expect(200).json();
    assert_eq!(refund["refund"]["state"], "processing");
    shop.wechat_request(&refunded_notification(&shop, &paid)).send().expect(204);
    assert_eq!(shop.state(&paid), ("refunded".to_owned(), 600));
}

#[test]
fn orders_of_a_channel_without_settings_go_to_review() {
    let shop = Shop::new();
    let order_no = shop.order_no("wechat");
    let setup = shop.alipay.setup();
    let shop = shop.restarted(setup);
    shop.server
        .post(&format!("/admin/payments/{order_no}/query"))
        .token(&shop.key)
        .send()
        .expect_problem(409, "order_state");
    let days_ago = "created_at = created_at - 172800000, expires_at = expires_at - 172800000, next_check_at = 1";
    shop.server.edit(&format!("update payment_orders set {days_ago}"));
    eventually("the review", || shop.state(&order_no).0 == "review");
    let reason: String = shop.server.value("select reason from payment_orders where state = 'review'");
    assert_eq!(reason, "not_configured");
    let notification = shop.pay_by_wechat(&order_no);
    shop.wechat_request(&notification).send().expect(404);
}

/// Ends the last refund of an order at WeChat Pay and returns the notification.
fn refunded_notification(shop: &Shop, order_no: &str) -> crate::support::wechat::SignedNotification {
    shop.wechat.end_refunds(order_no, "SUCCESS");
    shop.wechat.refund_notification(order_no)
}

#[test]
fn refunds_of_wechat_are_summed_by_their_numbers() {
    let shop = Shop::new();
    let order_no = shop.order_no("wechat");
    shop.wechat_request(&shop.pay_by_wechat(&order_no)).send().expect(204);
    let taken = shop.refund(&order_no, "1.50", "R1").expect(200).json();
    assert_eq!((&taken["refund"]["state"], &taken["order"]["refunded"]), (&json!("processing"), &json!("0.00")));
    let done = refunded_notification(&shop, &order_no);
    for _ in 0..3 {
        shop.wechat_request(&done).send().expect(204);
    }
    assert_eq!((shop.state(&order_no), shop.coins()), (("credited".to_owned(), 150), 45));
    // One made at the provider's console has a number that is not ours.
    shop.wechat.refund_externally(&order_no, 100);
    shop.wechat_request(&shop.wechat.refund_notification(&order_no)).send().expect(204);
    assert_eq!((shop.state(&order_no), shop.coins()), (("credited".to_owned(), 250), 35));
    // Without a notification a query finds the end.
    shop.refund(&order_no, "3.50", "R2").expect(200);
    shop.server.edit("update payment_refunds set asked_at = 1 where finished_at is null");
    eventually("the refund", || shop.state(&order_no) == ("refunded".to_owned(), 600));
    assert_eq!(shop.coins(), 0);
    assert_eq!(shop.report()["differences"], json!([]));
    shop.server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn closed_and_abnormal_refunds_of_wechat_do_not_count() {
    let shop = Shop::new();
    let order_no = shop.order_no("wechat");
    shop.wechat_request(&shop.pay_by_wechat(&order_no)).send().expect(204);
    shop.refund(&order_no, "1.50", "R1").expect(200);
    shop.wechat.end_refunds(&order_no, "CLOSED");
    shop.wechat_request(&shop.wechat.refund_notification(&order_no)).send().expect(204);
    let state = |number: &str| -> String {
        shop.server.value(&format!("select state from payment_refunds where refund_no = '{number}'"))
    };
    assert_eq!(
        (state("R1"), shop.state(&order_no), shop.coins()),
        ("refused".to_owned(), ("credited".to_owned(), 0), 60)
    );
    shop.refund(&order_no, "2.00", "R2").expect(200);
    shop.wechat.end_refunds(&order_no, "ABNORMAL");
    shop.wechat_request(&shop.wechat.refund_notification(&order_no)).send().expect(204);
    assert_eq!((state("R2"), shop.state(&order_no).0), ("abnormal".to_owned(), "review".to_owned()));
    assert_eq!(shop.coins(), 60);
    // The operator sends the money to another account of the buyer, and the provider reports the end.
    shop.wechat_request(&refunded_notification(&shop, &order_no)).send().expect(204);
    assert_eq!((state("R2"), shop.state(&order_no)), ("succeeded".to_owned(), ("credited".to_owned(), 200)));
    assert_eq!(shop.coins(), 40);
}

#[test]
fn a_refund_before_the_credit_awaits_the_payment_or_ends_the_order() {
    let shop = Shop::new();
    let (part, whole) = (shop.order_no("wechat"), shop.order_no("stripe"));
    let paid = shop.pay_by_wechat(&part);
    shop.wechat.refund_externally(&part, 100);
    shop.wechat_request(&shop.wechat.refund_notification(&part)).send().expect(204);
    assert_eq!((shop.state(&part), shop.coins()), (("review".to_owned(), 100), 0));
    shop.wechat_request(&paid).send().expect(204);
    assert_eq!((shop.state(&part), shop.coins()), (("credited".to_owned(), 100), 50));

    let webhook = shop.pay_by_stripe(&whole);
    let refund = stripe_refund(&whole, &stripe_payment_of(&shop.session(&whole)), 99);
    shop.stripe_request(&refund).send().expect(204);
    assert_eq!(shop.state(&whole), ("refunded".to_owned(), 99));
    shop.stripe_request(&webhook).send().expect(204);
    assert_eq!((shop.state(&whole), shop.coins()), (("refunded".to_owned(), 99), 50));
    assert_eq!(shop.report()["differences"], json!([]));
}

/// Returns the signed webhook about the refunds of a payment of 0.99 dollars.
fn stripe_refund(order_no: &str, payment: &str, refunded: i64) -> (String, String) {
    let charge = json!({
        "id": format!("ch_{refunded}"), "object": "charge", "amount": 99, "amount_refunded": refunded,
        "currency": "usd", "payment_intent": payment, "metadata": { "order_no": order_no },
    });
    stripe_event("charge.refunded", &charge, seconds())
}

/// Returns the signed webhook about a dispute of an order's payment.
fn stripe_dispute(shop: &Shop, order_no: &str, kind: &str, status: &str) -> (String, String) {
    let payment = stripe_payment_of(&shop.session(order_no));
    let dispute = json!({ "id": "dp_1", "amount": 99, "currency": "usd", "status": status, "payment_intent": payment });
    stripe_event(&format!("charge.dispute.{kind}"), &dispute, seconds())
}

/// An order of Stripe whose refund of all money failed after it had succeeded.
fn failed_refund(shop: &Shop) -> String {
    let order_no = shop.order_no("stripe");
    shop.stripe_request(&shop.pay_by_stripe(&order_no)).send().expect(204);
    shop.refund(&order_no, "0.99", &format!("R{order_no}")).expect(200);
    assert_eq!((shop.state(&order_no), shop.coins()), (("refunded".to_owned(), 99), 0));
    let payment = stripe_payment_of(&shop.session(&order_no));
    for event in shop.stripe.fail_refunds(&payment, seconds()) {
        shop.stripe_request(&event).send().expect(204);
        assert_eq!((shop.state(&order_no), shop.coins()), (("review".to_owned(), 0), 0));
    }
    // A late report of the total does not count what failed.
    shop.stripe_request(&stripe_refund(&order_no, &payment, 99)).send().expect(204);
    assert_eq!(shop.state(&order_no), ("review".to_owned(), 0));
    order_no
}

#[test]
fn a_refund_that_fails_after_its_success_is_repeated_or_the_coins_given_back() {
    let shop = Shop::new();
    let again = failed_refund(&shop);
    let listed = shop.server.command(&["payments", "list", "--state", "review"]).expect(0).json();
    assert_eq!(
        (&listed["items"][0]["orderNo"], &listed["items"][0]["reason"]),
        (&json!(again), &json!("refund_failed"))
    );
    let arguments = ["payments", "report", "--from", "2020-01-01", "--to", "2100-01-01"];
    let report = shop.server.command_with(&shop.setup().variables(), &arguments).expect(5).json();
    assert_eq!(codes(&report), [("coins_owed", again.as_str())]);
    // Neither is written off, and the number is used up.
    let settle = |order_no: &str, decision: &str, exit_code: i32| {
        let arguments = ["payments", "settle", order_no, decision, "--reason", "as told", "--yes"];
        shop.server.command(&arguments).expect(exit_code);
    };
    settle(&again, "write-off", 1);
    shop.refund(&again, "0.99", &format!("R{again}")).expect(502);
    shop.refund(&again, "0.99", "R2").expect(200);
    assert_eq!((shop.state(&again), shop.coins()), (("refunded".to_owned(), 99), 0));

    let kept = failed_refund(&shop);
    settle(&kept, "credit", 0);
    assert_eq!((shop.state(&kept), shop.coins()), (("credited".to_owned(), 0), 60));
    assert_eq!(shop.report()["differences"], json!([]));
    shop.server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn a_query_finds_a_refund_that_failed_without_a_webhook() {
    let shop = Shop::new();
    let order_no = shop.order_no("stripe");
    shop.stripe_request(&shop.pay_by_stripe(&order_no)).send().expect(204);
    shop.refund(&order_no, "0.33", "R1").expect(200);
    shop.stripe.fail_refunds(&stripe_payment_of(&shop.session(&order_no)), seconds());
    shop.ask(&order_no);
    assert_eq!((shop.state(&order_no), shop.coins()), (("review".to_owned(), 0), 40));
    // A smaller one leaves the buyer without some coins.
    shop.refund(&order_no, "0.11", "R2").expect(200);
    assert_eq!((shop.state(&order_no), shop.coins()), (("review".to_owned(), 11), 40));
    shop.refund(&order_no, "0.22", "R3").expect(200);
    assert_eq!((shop.state(&order_no), shop.coins()), (("credited".to_owned(), 33), 40));
}

#[test]
fn the_end_of_an_order_depends_on_the_events_alone() {
    let shop = Shop::new();
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    for stripe in [["needs_response", "won"], ["needs_response", "lost"]] {
        each_order_of_events(&shop, "stripe", &mut random, |order_no| {
            let webhook = |event: &(String, String)| shop.stripe_request(event);
            let payment = stripe_payment_of(&shop.session(order_no));
            vec![
                webhook(&shop.pay_by_stripe(order_no)),
                webhook(&stripe_refund(order_no, &payment, 33)),
                webhook(&stripe_dispute(&shop, order_no, "created", stripe[0])),
                webhook(&stripe_dispute(&shop, order_no, "closed", stripe[1])),
                webhook(&stripe_refund(order_no, &payment, 99)),
            ]
        });
    }
    each_order_of_events(&shop, "wechat", &mut random, |order_no| {
        let refund = |number: &str, amount: i64, state: &str| {
            let content = json!({
                "mchid": published_wechat()["mchid"], "out_trade_no": order_no, "transaction_id": transaction_id(order_no),
                "out_refund_no": format!("{number}{order_no}"), "refund_id": format!("5{number}"), "refund_status": state,
                "success_time": "2026-01-15T16:40:00+08:00",
                "amount": { "total": 600, "refund": amount, "payer_total": 600, "payer_refund": amount },
            });
            let event = format!("REFUND.{state}");
            shop.wechat_request(&shop.wechat.notification(&event, "refund", &content, "public_key_mode"))
        };
        let paid = shop.pay_by_wechat(order_no);
        vec![
            shop.wechat_request(&paid),
            refund("A", 100, "SUCCESS"),
            refund("B", 200, "ABNORMAL"),
            refund("B", 200, "SUCCESS"),
            refund("C", 300, "CLOSED"),
        ]
    });
    each_order_of_events(&shop, "alipay", &mut random, |order_no| {
        let trade = format!("20260102{order_no}");
        let report = |status: &str, refunded: &str| {
            let mut fields = vec![("trade_no", trade.as_str()), ("trade_status", status)];
            if !refunded.is_empty() {
                fields.extend([("refund_fee", refunded), ("gmt_refund", "2026-01-03 03:04:05")]);
            }
            let form = signed_notification(order_no, &fields);
            let request = shop.server.post("/payment/notify/alipay");
            request.bytes(Some("application/x-www-form-urlencoded"), form.into_bytes())
        };
        vec![
            report("WAIT_BUYER_PAY", ""),
            report("TRADE_SUCCESS", ""),
            report("TRADE_SUCCESS", "1.00"),
            report("TRADE_FINISHED", ""),
            report("TRADE_CLOSED", "6.00"),
        ]
    });
    shop.server.command(&["ledger", "verify"]).expect(0);
}

/// Delivers the events of an order in many orders, some twice and some never, and compares each end with that of the
/// same events in their natural order.
fn each_order_of_events(shop: &Shop, channel: &str, random: &mut u64, events_of: impl Fn(&str) -> Vec<Request>) {
    let mut next = |below: usize| {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        usize::try_from(*random % u64::try_from(below).unwrap()).unwrap()
    };
    let deliver = |delivered: &[usize]| {
        shop.server.edit("update payment_orders set created_at = created_at - 1800000 where state = 'created'");
        let (order_no, before) = (shop.order_no(channel), shop.coins());
        let events = events_of(&order_no);
        for event in delivered {
            let response = events[*event].clone().send();
            assert!(response.status < 300, "{channel} {delivered:?}: {}", response.text());
        }
        (shop.state(&order_no), shop.coins() - before)
    };
    for _ in 0..25 {
        let mut delivered: Vec<usize> = (0..5).filter(|_| next(4) > 0).collect();
        let expected = deliver(&delivered);
        for index in (1..delivered.len()).rev() {
            delivered.swap(index, next(index + 1));
        }
        if let Some(again) = delivered.first().copied() {
            delivered.insert(next(delivered.len() + 1), again);
        }
        assert_eq!(deliver(&delivered), expected, "{channel} {delivered:?}");
    }
}

#[test]
fn a_price_converted_for_the_buyer_is_compared_in_our_currency() {
    let shop = Shop::new();
    let order_no = shop.order_no("stripe");
    let (_, body) = shop.pay_by_stripe(&order_no);
    let mut event: Value = serde_json::from_str(&body).unwrap();
    let session = &mut event["data"]["object"];
    session["currency_conversion"] = json!({ "amount_total": 99, "source_currency": "usd", "fx_rate": "0.91" });
    session["currency"] = "eur".into();
    session["amount_total"] = 90.into();
    let converted = stripe_event("checkout.session.completed", session, seconds());
    for _ in 0..2 {
        shop.stripe_request(&converted).send().expect(204);
        assert_eq!((shop.state(&order_no).0.as_str(), shop.coins()), ("credited", 60));
    }
    // The charge names the buyer's currency alone, so its refund is queried.
    let payment = stripe_payment_of(&shop.session(&order_no));
    shop.stripe.refund_externally(&payment, 33);
    let charge = json!({
        "id": "ch_1", "amount": 90, "amount_refunded": 30, "currency": "eur", "payment_intent": payment,
        "metadata": { "order_no": order_no },
    });
    shop.stripe_request(&stripe_event("charge.refunded", &charge, seconds())).send().expect(204);
    eventually("the refund", || shop.state(&order_no) == ("credited".to_owned(), 33));
    assert_eq!(shop.coins(), 40);
}

#[test]
fn stripe_refunds_in_parts_and_finds_lost_answers() {
    let shop = Shop::new();
    let order_no = shop.order_no("stripe");
    shop.stripe_request(&shop.pay_by_stripe(&order_no)).send().expect(204);
    let first = shop.refund(&order_no, "0.33", "R1").expect(200).json();
    assert_eq!((&first["refund"]["state"], &first["order"]["refunded"]), (&json!("succeeded"), &json!("0.33")));
    assert_eq!(shop.coins(), 40);
    let payment = stripe_payment_of(&shop.session(&order_no));
    shop.stripe_request(&stripe_refund(&order_no, &payment, 33)).send().expect(204);
    assert_eq!(shop.state(&order_no).1, 33);
    shop.stripe.lose_answers(true);
    assert!(shop.refund(&order_no, "0.33", "R2").status >= 500);
    assert_eq!(shop.state(&order_no).1, 33);
    shop.stripe.lose_answers(false);
    shop.server.edit("update payment_refunds set asked_at = 1 where finished_at is null");
    eventually("the refund", || shop.state(&order_no).1 == 66);
    assert_eq!((shop.stripe.refund_count(), shop.coins()), (2, 20));
    // The last third is refunded at Stripe.
    shop.stripe_request(&stripe_refund(&order_no, &payment, 99)).send().expect(204);
    assert_eq!((shop.state(&order_no).0.as_str(), shop.coins()), ("refunded", 0));
    assert_eq!(shop.report()["differences"], json!([]));
}

#[test]
fn refunds_in_the_dashboard_of_stripe_add_to_our_own() {
    let shop = Shop::new();
    let order_no = shop.order_no("stripe");
    shop.stripe_request(&shop.pay_by_stripe(&order_no)).send().expect(204);
    let payment = stripe_payment_of(&shop.session(&order_no));
    shop.stripe.refund_externally(&payment, 33);
    shop.stripe_request(&stripe_refund(&order_no, &payment, 33)).send().expect(204);
    shop.refund(&order_no, "0.33", "R1").expect(200);
    assert_eq!((shop.state(&order_no), shop.coins()), (("credited".to_owned(), 66), 20));
    shop.refund(&order_no, "0.34", "R2").expect(409);
    // A query finds a refund whose webhook was lost.
    shop.stripe.refund_externally(&payment, 33);
    let query = ["payments", "query", &order_no];
    shop.server.command_with(&shop.setup().variables(), &query).expect(0);
    assert_eq!((shop.state(&order_no), shop.coins()), (("refunded".to_owned(), 99), 0));
    let own = shop.server.get("/payment/orders").by(&shop.user).send().expect(200).json();
    assert_eq!((&own["items"][0]["refunded"], &own["items"][0]["returned"]), (&json!("0.99"), &json!(60)));
    assert_eq!(shop.report()["differences"], json!([]));
}

#[test]
fn events_about_other_sales_of_the_stripe_account_are_acknowledged() {
    let shop = Shop::new();
    let charge = |id: &str| json!({ "id": id, "amount": 99, "amount_refunded": 99, "currency": "usd", "payment_intent": "pi_other" });
    let by_source =
        json!({ "id": "ch_2", "amount": 99, "amount_refunded": 99, "currency": "usd", "payment_intent": null });
    for (kind, object) in [
        ("checkout.session.completed", json!({ "id": "cs_live_other", "payment_status": "paid", "amount_total": 99 })),
        ("checkout.session.expired", json!({ "id": "cs_live_other", "payment_status": "unpaid" })),
        ("charge.refunded", charge("ch_other")),
        ("charge.dispute.created", charge("dp_other")),
        ("charge.dispute.closed", charge("dp_other")),
        ("charge.refunded", by_source.clone()),
        ("charge.dispute.created", by_source),
        (
            "refund.failed",
            json!({ "id": "re_1", "amount": 9, "currency": "usd", "status": "failed", "payment_intent": "pi_other" }),
        ),
        ("customer.created", json!({ "id": "cus_1", "amount": { "value": "9" }, "status": ["active"] })),
    ] {
        shop.stripe_request(&stripe_event(kind, &object, seconds())).send().expect(204);
    }
    // Nothing of the other program's buyers is kept.
    assert_eq!(shop.server.value::<i64>("select count(*) from payment_callbacks where length(form) > 0"), 0);
}

#[test]
fn another_way_to_pay_by_wechat_is_another_order() {
    let shop = Shop::new();
    let order = |more: &[(&str, &str)]| {
        let order = shop.order(&[&[("channel", "wechat")], more].concat());
        order["orderNo"].as_str().unwrap().to_owned()
    };
    let made = [
        order(&[("client", "app")]),
        order(&[("client", "h5")]),
        order(&[("client", "native")]),
        order(&[("client", "jsapi"), ("openId", "oUpF8uMuAJO")]),
        order(&[("client", "jsapi"), ("openId", "oUpF8uMuAJP")]),
    ];
    let numbers: std::collections::BTreeSet<_> = made.iter().collect();
    assert_eq!(numbers.len(), 5);
    assert_eq!(order(&[("client", "h5")]), made[1], "an open order is reused for the same client");
}

#[test]
fn an_unpaid_session_expires_and_closes_the_order() {
    let shop = Shop::new();
    let order_no = shop.order_no("stripe");
    let days_ago = "created_at = created_at - 172800000, expires_at = expires_at - 172800000, next_check_at = 1";
    shop.server.edit(&format!("update payment_orders set {days_ago}"));
    eventually("the close", || shop.state(&order_no).0 == "closed");
    // A payment that was made all the same is credited.
    shop.stripe_request(&shop.pay_by_stripe(&order_no)).send().expect(204);
    assert_eq!((shop.state(&order_no).0.as_str(), shop.coins()), ("credited", 60));
}

#[test]
fn a_dispute_goes_to_review_until_it_is_won() {
    let shop = Shop::new();
    let report = |order_no: &str, kind: &str, status: &str| {
        shop.stripe_request(&stripe_dispute(&shop, order_no, kind, status)).send().expect(204);
        let reason = format!("select coalesce(reason, '') from payment_orders where order_no = '{order_no}'");
        (shop.state(order_no).0, shop.server.value::<String>(&reason))
    };
    let state = |state: &str, reason: &str| (state.to_owned(), reason.to_owned());
    let paid = || {
        let order_no = shop.order_no("stripe");
        shop.stripe_request(&shop.pay_by_stripe(&order_no)).send().expect(204);
        order_no
    };
    let [won, lost, late] = [(); 3].map(|()| paid());
    for order_no in [&won, &lost] {
        assert_eq!(report(order_no, "created", "needs_response"), state("review", "disputed"));
    }
    assert_eq!(report(&won, "closed", "won"), state("credited", ""));
    assert_eq!(report(&lost, "closed", "lost"), state("review", "dispute_lost"));
    // A lost dispute stays, whatever else is told, until an operator decides.
    assert_eq!(report(&lost, "created", "under_review"), state("review", "dispute_lost"));
    let decide = ["payments", "settle", &lost, "refunded-externally", "--reason", "lost", "--yes"];
    shop.server.command(&decide).expect(0);
    assert_eq!((shop.state(&lost).0.as_str(), shop.coins()), ("refunded", 120));
    assert_eq!(report(&lost, "closed", "warning_closed").0, "refunded");
    // The events may arrive in another order.
    assert_eq!(report(&late, "closed", "lost"), state("review", "dispute_lost"));
    let decided = paid();
    assert_eq!(report(&decided, "closed", "won"), state("credited", ""));
    assert_eq!(report(&decided, "created", "needs_response"), state("credited", ""));
}

#[test]
fn another_amount_or_currency_is_not_credited() {
    let shop = Shop::new();
    let (wechat, stripe) = (shop.order_no("wechat"), shop.order_no("stripe"));
    shop.wechat.pay(&wechat, 599);
    shop.wechat_request(&shop.wechat.payment_notification(&wechat)).send().expect(500);
    assert_eq!(shop.state(&wechat).0, "review");
    let (_, body) = shop.pay_by_stripe(&stripe);
    let body = body.replace("\"usd\"", "\"eur\"");
    let forged = (stripe_signature(STRIPE_SECRET, &body, seconds()), body);
    shop.stripe_request(&forged).send().expect(500);
    assert_eq!((shop.state(&stripe).0.as_str(), shop.coins()), ("created", 0));
}

#[test]
fn messages_without_a_valid_signature_credit_nothing() {
    let shop = Shop::new();
    let (wechat, stripe) = (shop.order_no("wechat"), shop.order_no("stripe"));
    let (headers, body) = shop.pay_by_wechat(&wechat);
    let changed = |name: &str, value: &str| {
        let change = |(known, old): &(String, String)| {
            let new = if known == name { value.to_owned() } else { old.clone() };
            (known.clone(), new)
        };
        (headers.iter().map(change).collect::<Vec<_>>(), body.clone())
    };
    let probe = changed("Wechatpay-Signature", "WECHATPAY/SIGNTEST/abc");
    let stale = (signature_headers(&body, seconds() - 360, "public_key_mode"), body.clone());
    for (message, reason) in [
        (&probe, "probe_traffic"),
        (&changed("Wechatpay-Serial", "PUB_KEY_ID_0000"), "unknown_key"),
        (&changed("Wechatpay-Timestamp", "1"), "stale_timestamp"),
        (&stale, "stale_timestamp"),
        (&(headers.clone(), format!("{body} ")), "signature_invalid"),
        (&(Vec::new(), body.clone()), "header_missing: wechatpay-timestamp"),
    ] {
        let refused = shop.wechat_request(message).send().expect(401).json();
        assert_eq!(refused["code"], "FAIL");
        let stored: String = shop.server.value("select reason from payment_callbacks order by id desc limit 1");
        assert_eq!(stored, reason);
    }
    let (signature, body) = shop.pay_by_stripe(&stripe);
    for forged in [
        (stripe_signature("whsec_another", &body, seconds()), body.clone()),
        (stripe_signature(STRIPE_SECRET, &body, seconds() - 400), body.clone()),
        (signature, format!("{body} ")),
    ] {
        shop.stripe_request(&forged).send().expect(401);
    }
    assert_eq!(shop.coins(), 0);
    shop.server.post("/payment/notify/paypal").bytes(None, b"{}".to_vec()).send().expect(422);
    shop.server.post("/payment/notify/sandbox").bytes(None, b"a=b".to_vec()).send().expect(404);
    // The old path takes Alipay's forms only.
    assert_eq!(shop.server.notify("a=b"), "fail");
    assert_eq!(shop.server.notify(&signed_notification(&shop.order_no("alipay"), &[])), "success");
}

#[test]
fn a_replay_is_judged_at_the_time_of_receipt() {
    let shop = Shop::new();
    let order_no = shop.order_no("wechat");
    let paid = shop.pay_by_wechat(&order_no);
    // A restore may have lost the order.
    shop.server.edit("update payment_orders set channel = 'alipay' where channel = 'wechat'");
    shop.wechat_request(&paid).send().expect(500);
    shop.server.edit("update payment_orders set channel = 'wechat'");
    let hour = 3_600_000;
    let id: i64 = shop.server.value("select id from payment_callbacks");
    // An hour later the signature is too old for a new message.
    let headers: String = shop.server.value("select headers from payment_callbacks");
    assert!(headers.contains("wechatpay-signature") && !headers.contains("content-type"));
    let earlier = signature_headers(&paid.1, seconds() - 3600, "public_key_mode");
    let earlier: serde_json::Map<String, Value> =
        earlier.into_iter().map(|(name, value)| (name.to_lowercase(), value.into())).collect();
    let earlier = Value::Object(earlier).to_string();
    shop.server
        .edit(&format!("update payment_callbacks set received_at = received_at - {hour}, headers = '{earlier}'"));
    let path = format!("/admin/payments/callbacks/{id}/replay");
    let replayed = shop.server.post(&path).token(&shop.key).send().expect(200).json();
    assert_eq!((&replayed["verdict"], shop.coins()), (&json!("credited"), 60));
    // A replay of the replay is judged at that time, too.
    let last: i64 = shop.server.value("select max(id) from payment_callbacks");
    let path = format!("/admin/payments/callbacks/{last}/replay");
    let replayed = shop.server.post(&path).token(&shop.key).send().expect(200).json();
    assert_eq!((&replayed["verdict"], shop.coins()), (&json!("unchanged"), 60));
}

#[test]
fn both_keys_of_wechat_are_accepted_and_certificates_outlive_a_restart() {
    let shop = Shop::new();
    eventually("the certificates", || shop.server.value::<i64>("select count(*) from wechat_certificates") == 1);
    let (first, second) = (shop.order_no("wechat"), {
        let body = json!({ "productId": "coins_330", "channel": "wechat" });
        let order = shop.server.post("/api/v1/orders").by(&shop.user).json(&body).send().expect(200).json();
        order["orderNo"].as_str().unwrap().to_owned()
    });
    shop.wechat_request(&shop.pay_by_wechat(&first)).send().expect(204);
    // In the weeks of the change, the other key signs some of the messages.
    shop.wechat.pay(&second, 3000);
    let (_, body) = shop.wechat.payment_notification(&second);
    let by_certificate = (signature_headers(&body, seconds(), "platform_cert"), body);
    let setup = shop.setup().with("PAYMENT_CHANNELS", "wechat");
    let shop = shop.restarted(setup);
    shop.wechat.be(WeChatMode::NoCertificates);
    shop.wechat_request(&by_certificate).send().expect(204);
    assert_eq!(shop.coins(), 390);
}

#[test]
fn an_unknown_key_is_fetched_once() {
    let shop = Shop::start(|setup| setup);
    eventually("the certificates", || shop.server.value::<i64>("select count(*) from wechat_certificates") == 1);
    let order_no = shop.order_no("wechat");
    let (_, body) = shop.pay_by_wechat(&order_no);
    let (mut headers, body) = (signature_headers(&body, seconds(), "platform_cert"), body);
    for (name, value) in &mut headers {
        if name == "Wechatpay-Serial" {
            "4F00AA11BB22CC33DD44EE55FF66007788990099".clone_into(value);
        }
    }
    for _ in 0..5 {
        shop.wechat_request(&(headers.clone(), body.clone())).send().expect(401);
    }
    let fetches = shop.wechat.calls().iter().filter(|call| call.ends_with("/v3/certificates")).count();
    assert_eq!(fetches, 1);
    assert!(published_wechat()["platform_certificate_serial"].is_string());
}

#[test]
fn an_outage_of_one_provider_leaves_the_others_alone() {
    let shop = Shop::new();
    let order_no = shop.order_no("wechat");
    shop.wechat.be(WeChatMode::Broken);
    for _ in 0..10 {
        let package = [("amount", "6.00"), ("coinCount", "60"), ("channel", "wechat")];
        let failed = shop.server.get("/payment/gateway/order").by(&shop.user).query(&package).send();
        assert!(matches!(failed.status, 502..=504), "{}", failed.text());
    }
    let open = shop.server.post(&format!("/admin/payments/{order_no}/query")).token(&shop.key).send();
    open.expect_problem(503, "provider_unavailable");
    shop.stripe_request(&shop.pay_by_stripe(&shop.order_no("stripe"))).send().expect(204);
    let alipay = shop.order_no("alipay");
    shop.alipay.pay(&alipay, 600);
    assert_eq!(shop.ask(&alipay)["verdict"], "credited");
}

#[test]
fn doctor_asks_every_provider() {
    let shop = Shop::new();
    let setup = shop.setup().with("PAYMENT_CHANNELS", "alipay, wechat, stripe");
    let checks = shop.server.command_with(&setup.variables(), &["doctor"]).json();
    let checks = checks["checks"].as_array().unwrap().clone();
    let payment: Vec<_> = checks.iter().filter(|check| check["name"] == "payment").collect();
    assert_eq!(payment.len(), 3, "{checks:?}");
    assert!(payment.iter().all(|check| check["verdict"] == "pass"), "{payment:?}");
}

#[test]
fn a_deleted_account_leaves_no_payer_in_callbacks() {
    let shop = Shop::new();
    let (wechat, stripe) = (shop.order_no("wechat"), shop.order_no("stripe"));
    shop.wechat_request(&shop.pay_by_wechat(&wechat)).send().expect(204);
    shop.stripe_request(&shop.pay_by_stripe(&stripe)).send().expect(204);
    shop.server.command(&["users", "erase", "13800138000", "--yes"]).expect(0);
    let left: i64 = shop.server.value("select sum(length(form)) from payment_callbacks");
    assert_eq!(left, 0);
}

/// Checks the bills of a day by the command.
fn check_bill(shop: &Shop, day: &str, exit_code: i32) -> Value {
    let setup = shop.setup();
    let command = ["payments", "bill", "--day", day];
    shop.server.command_with(&setup.variables(), &command).expect(exit_code).json()["bills"].clone()
}

fn codes(bill: &Value) -> Vec<(&str, &str)> {
    let differences = bill["differences"].as_array().unwrap();
    differences.iter().map(|found| (found["code"].as_str().unwrap(), found["orderNo"].as_str().unwrap())).collect()
}

#[test]
fn bills_find_missed_payments_and_differences() {
    // The day on which the fake of WeChat Pay dates all payments.
    let day = "2026-01-15";
    let shop = Shop::start(crate::support::Setup::with_fast_jobs);
    let first = shop.order_no("wechat");
    shop.wechat_request(&shop.pay_by_wechat(&first)).send().expect(204);
    let bills = check_bill(&shop, day, 0);
    let bill = bills.as_array().unwrap().iter().find(|bill| bill["channel"] == "wechat").unwrap();
    assert_eq!((&bill["payments"], &bill["amountPaid"]), (&json!(1), &json!("6.00")));

    let missed = shop.order_no("wechat");
    shop.wechat.pay(&missed, 600);
    let bills = check_bill(&shop, day, 5);
    assert_eq!(codes(&bills[1]), [("payment_missing", missed.as_str())]);
    assert_eq!((shop.state(&missed).0.as_str(), shop.coins()), ("credited", 120));
    assert_eq!(codes(&check_bill(&shop, day, 0)[1]), []);

    // Money that we recorded and the provider does not know, and another amount.
    shop.wechat.forget(&first);
    shop.server.edit(&format!("update payment_orders set paid_fen = 599 where order_no = '{missed}'"));
    shop.wechat.pay("202601150000000000000099", 600);
    let path = "/admin/payments/bill";
    let body = json!({ "day": day, "channel": "wechat" });
    let checked = shop.server.post(path).token(&shop.key).json(&body).send().expect(200).json();
    let mut found = codes(&checked["bills"][0]);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("amount_differs", missed.as_str()),
            ("not_in_bill", first.as_str()),
            ("order_missing", "202601150000000000000099"),
        ]
    );
    assert_eq!((shop.state(&first).0.as_str(), shop.state(&missed).0.as_str()), ("review", "review"));
    // Once the bill agrees, the review ends; decisions about other orders stay open.
    shop.server.edit(&format!("update payment_orders set paid_fen = 600 where order_no = '{missed}'"));
    check_bill(&shop, day, 5);
    assert_eq!((shop.state(&first).0.as_str(), shop.state(&missed).0.as_str()), ("review", "credited"));
    shop.server.edit(&format!("update payment_orders set paid_fen = 599 where order_no = '{missed}'"));
    check_bill(&shop, day, 5);
    // The list has the last check of the day.
    let listed = shop.server.get("/admin/payments/bills").token(&shop.key).send().expect(200).json();
    assert_eq!((&listed["total"], &listed["items"][0]["day"]), (&json!(2), &json!(day)));
    assert_eq!(listed["items"][0]["differences"].as_array().unwrap().len(), 3);
    assert_eq!(shop.server.command(&["payments", "bills"]).expect(0).json()["items"], listed["items"]);
    eventually("the alert", || shop.server.command(&["alerts", "list"]).text().contains("payment_mismatch"));
    let today = json!({ "day": "2100-01-01" });
    shop.server.post(path).token(&shop.key).json(&today).send().expect_fields(&[("day", "out_of_range")]);
    let unbilled = json!({ "day": day, "channel": "stripe" });
    shop.server.post(path).token(&shop.key).json(&unbilled).send().expect_fields(&[("channel", "unknown_value")]);
}

#[test]
fn bills_of_alipay_come_as_packed_files_in_gbk() {
    let shop = Shop::new();
    let order_no = shop.order_no("alipay");
    // Dated 2026-01-02.
    let changes = [("trade_no", "2026010222001400000000000077")];
    assert_eq!(shop.server.notify(&signed_notification(&order_no, &changes)), "success");
    let empty = check_bill(&shop, "2026-01-02", 5);
    assert_eq!(codes(&empty[0]), [("not_in_bill", order_no.as_str())]);
    let line = format!("2026010222001400000000000077\t,{order_no}\t,交易,6.00,,-0.04");
    shop.alipay.set_bill(&[&line]);
    let bills = check_bill(&shop, "2026-01-02", 0);
    assert_eq!((&bills[0]["amountPaid"], &bills[0]["fees"]), (&json!("6.00"), &json!("-0.04000")));
    // A refund at the provider that nobody reported.
    let refund = format!("2026010222001400000000000077\t,{order_no}\t,退款,-1.50,console\t,0.01");
    shop.alipay.set_bill(&[&line, &refund]);
    let bills = check_bill(&shop, "2026-01-02", 5);
    assert_eq!(codes(&bills[0]), [("refund_missing", order_no.as_str())]);
    assert_eq!(bills[0]["differences"][0]["billed"], "1.50");
}

#[test]
fn alipay_in_certificate_mode_names_its_certificates() {
    let published: Value = serde_json::from_str(include_str!("../../vectors/alipay_certificates.json")).unwrap();
    let text = |name: &str| published[name].as_str().unwrap();
    let files = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        let path = files.path().join(name);
        std::fs::write(&path, text(name)).unwrap();
        path.display().to_string()
    };
    let setup = crate::support::Setup::default()
        .with("PAYMENT_GATEWAY", "alipay")
        .with("PAYMENT_APP_ID", "2021000000000001")
        .with("PAYMENT_PRIVATE_KEY", text("app_private_key_pem"))
        .with("PAYMENT_NOTIFY_URL", "https://example.com/payment/notify")
        .with("PAYMENT_ALIPAY_APP_CERTIFICATE", file("app_cert_pem"))
        .with("PAYMENT_ALIPAY_ALIPAY_CERTIFICATE", file("alipay_cert_pem"));
    let refused = crate::support::CommandOutput::run_with(files.path(), &setup.variables(), &["doctor"], "");
    let said = format!("{}{}", refused.text(), refused.stderr());
    assert!(said.contains("payment.alipay.root_certificates: "), "{said}");
    let server = setup.with("PAYMENT_ALIPAY_ROOT_CERTIFICATES", file("root_file_pem")).start();
    let user = server.sign_in("13800138000");
    let package = [("amount", "6.00"), ("coinCount", "60")];
    let order = server.get("/payment/gateway/order").by(&user).query(&package).send().expect(200).json();
    let order_string = order["orderString"].as_str().unwrap();
    for name in ["app_cert_sn", "alipay_root_cert_sn"] {
        assert!(order_string.contains(&format!("{name}={}", text(name))), "{order_string}");
    }
}
