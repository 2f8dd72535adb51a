//! Kills while money moves: each payment, purchase and refund counts once, whenever the process dies.

use std::{
    thread::{scope, sleep},
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{
    Request, Setup,
    alipay::signed_notification,
    app_store::{FakeAppStore, revocation, sign_jws, store_notification, store_transaction, with_app_store},
    channels::{Shop, seconds},
    eventually,
    google_play::{AUDIENCE, FakeGoogle, PACKAGE, PUSHER, google_purchase, google_push, with_google_play},
    kill,
    wechat::SignedNotification,
};

const ROUNDS: u64 = 6;
/// Coins of each order and purchase.
const COINS: i64 = 60;
const PRODUCT: &str = "coins60";

/// A shop with all channels and both stores.
struct Market {
    apple: FakeAppStore,
    google: FakeGoogle,
    shop: Shop,
    /// The account token, with and without hyphens.
    tokens: (String, String),
}

/// The messages about the paid orders and purchases of a round.
struct Round {
    number: u64,
    orders: [String; 3],
    alipay: String,
    wechat: SignedNotification,
    stripe: (String, String),
}

impl Market {
    fn new() -> Self {
        let (apple, google) = (FakeAppStore::start_at(seconds), FakeGoogle::start_at(seconds));
        let shop = Shop::start(|setup| with_stores(setup.in_own_process(), &apple, &google));
        let terms = json!({ "asset": "coin", "count": COINS, "appleId": "com.example.yarrow.coins60",
            "googleId": PRODUCT, "reason": "test" });
        shop.server.put("/admin/products/gold60").token(&shop.key).json(&terms).send().expect(200);
        let account = shop.server.get("/api/v1/payment/account-token").by(&shop.user).send().expect(200).json();
        let token = |name: &str| account[name].as_str().unwrap().to_owned();
        Self { apple, google, shop, tokens: (token("accountToken"), token("obfuscatedAccountId")) }
    }

    /// Sends all requests, kills the server after a while, and starts it again.
    fn kill_during(self, requests: Vec<Request>, delay: Duration) -> Self {
        let process = self.shop.server.process_id();
        scope(|scope| {
            for request in requests {
                scope.spawn(move || drop(request.try_send()));
            }
            sleep(delay);
            kill(process);
        });
        let setup = with_stores(self.shop.setup(), &self.apple, &self.google);
        let setup = setup.with("PAYMENT_CHANNELS", "alipay, wechat, stripe").in_own_process();
        Self { shop: self.shop.restarted(setup), ..self }
    }

    /// Makes paid orders and purchases whose credit nobody asked for yet.
    fn pay(&self, number: u64) -> Round {
        let orders = ["alipay", "wechat", "stripe"].map(|channel| self.shop.order_no(channel));
        self.shop.alipay.pay(&orders[0], 600);
        let trade_no = format!("20260102220014{:014}", 24 + number);
        let wechat = self.shop.pay_by_wechat(&orders[1]);
        let stripe = self.shop.pay_by_stripe(&orders[2]);
        for kind in ["reported", "pushed"] {
            let purchase = google_purchase(&format!("GPA.{kind}.{number}"), Some(&self.tokens.1));
            self.google.set_purchase(PRODUCT, &format!("{kind}-{number}"), purchase);
        }
        let alipay = signed_notification(&orders[0], &[("trade_no", &trade_no)]);
        Round { number, orders, alipay, wechat, stripe }
    }

    fn transaction(&self, id: &str, changes: &[(&str, Value)]) -> Value {
        store_transaction(id, Some(&self.tokens.0), seconds() * 1000, changes)
    }

    fn notify_apple(&self, kind: &str, uuid: &str, transaction: &Value) -> Request {
        let body = store_notification(kind, uuid, Some(transaction), seconds() * 1000);
        self.shop.server.post("/payment/notify/apple").bytes(Some("application/json"), body.into_bytes())
    }

    fn notify_google(&self, message: &Value) -> Request {
        let (authorization, body) = google_push(message, AUDIENCE, PUSHER, seconds());
        let request = self.shop.server.post("/payment/notify/google").header("authorization", &authorization);
        request.bytes(Some("application/json"), body.into_bytes())
    }

    /// Returns the requests that credit a round, each with the status that acknowledges it.
    fn credits(&self, round: &Round) -> Vec<(Request, u16)> {
        let (server, user) = (&self.shop.server, &self.shop.user);
        let number = round.number;
        let form = Some("application/x-www-form-urlencoded");
        let jws = json!({ "signedTransaction": sign_jws(&self.transaction(&format!("1{number}"), &[])) });
        let token = json!({ "productId": PRODUCT, "purchaseToken": format!("reported-{number}") });
        let charged = self.transaction(&format!("2{number}"), &[]);
        let purchased = json!({ "version": "1.0", "packageName": PACKAGE, "eventTimeMillis": "1768465790000",
            "oneTimeProductNotification": { "version": "1.0", "notificationType": 1, "sku": PRODUCT,
                "purchaseToken": format!("pushed-{number}") } });
        vec![
            (server.post("/payment/notify/alipay").bytes(form, round.alipay.clone().into_bytes()), 200),
            (self.shop.wechat_request(&round.wechat), 204),
            (self.shop.stripe_request(&round.stripe), 204),
            (server.post("/api/v1/purchases/apple").by(user).json(&jws), 200),
            (self.notify_apple("ONE_TIME_CHARGE", &format!("charge-{number}"), &charged), 200),
            (server.post("/api/v1/purchases/google").by(user).json(&token), 200),
            (self.notify_google(&purchased), 200),
        ]
    }

    /// Returns the requests that refund a round: all orders, half of the first purchase, and all of the others.
    fn refunds(&self, round: &Round) -> Vec<(Request, u16)> {
        let (server, number) = (&self.shop.server, round.number);
        let refund = |order_no: &String, amount: &str| {
            let body = json!({ "amount": amount, "refundNo": format!("R{order_no}"), "reason": "changed their mind" });
            let path = format!("/admin/payments/{order_no}/refund");
            (server.post(&path).token(&self.shop.key).json(&body), 200)
        };
        let apple = |id: String, percentage| {
            let revoked = self.transaction(&id, &revocation(percentage, seconds() * 1000));
            (self.notify_apple("REFUND", &format!("refund-{id}"), &revoked), 200)
        };
        let google = |kind: &str| {
            let voided = json!({ "version": "1.0", "packageName": PACKAGE, "eventTimeMillis": "1768465790000",
                "voidedPurchaseNotification": { "purchaseToken": format!("{kind}-{number}"), "productType": 2,
                    "orderId": format!("GPA.{kind}.{number}"), "refundType": 1 } });
            (self.notify_google(&voided), 200)
        };
        let [alipay, wechat, stripe] = &round.orders;
        vec![
            refund(alipay, "6.00"),
            refund(wechat, "6.00"),
            refund(stripe, "0.99"),
            apple(format!("1{number}"), 50_000),
            apple(format!("2{number}"), 100_000),
            google("reported"),
            google("pushed"),
        ]
    }

    fn assert_books_agree(&self) {
        self.shop.server.command(&["ledger", "verify"]).expect(0);
        assert_eq!(self.shop.report()["differences"], json!([]));
    }
}

fn with_stores(setup: Setup, apple: &FakeAppStore, google: &FakeGoogle) -> Setup {
    with_google_play(with_app_store(setup, &apple.url()), &google.url()).with_fast_jobs()
}

/// Returns a delay between the beginning of a request and its reply.
fn delay(round: u64) -> Duration {
    Duration::from_micros(1500 + 3500 * round)
}

/// Sends requests until each is acknowledged.
fn send_all(requests: Vec<(Request, u16)>) {
    for (request, status) in requests {
        request.send().expect(status);
    }
}

#[test]
fn money_counts_once_whenever_the_process_is_killed() {
    let mut market = Market::new();
    for number in 0..ROUNDS {
        let round = market.pay(number);
        let before = market.shop.coins();
        let requests =
            [market.credits(&round), market.credits(&round)].into_iter().flatten().map(|(request, _)| request);
        let requests = requests.collect();
        market = market.kill_during(requests, delay(number));
        // The senders repeat what was not acknowledged, and again what was.
        send_all(market.credits(&round));
        send_all(market.credits(&round));
        assert_eq!(market.shop.coins() - before, 7 * COINS, "round {number}");
        let requests = market.refunds(&round).into_iter().map(|(request, _)| request).collect();
        market = market.kill_during(requests, delay(number) * 2);
        send_all(market.refunds(&round));
        send_all(market.refunds(&round));
        market.shop.wechat.end_refunds(&round.orders[1], "SUCCESS");
        let refunded = market.shop.wechat.refund_notification(&round.orders[1]);
        market.shop.wechat_request(&refunded).send().expect(204);
        assert_eq!(market.shop.coins() - before, COINS / 2, "round {number}");
        for order_no in &round.orders {
            assert_eq!(market.shop.state(order_no).0, "refunded", "round {number}");
        }
        market.assert_books_agree();
    }
    assert_eq!(market.shop.stripe.refund_count() as u64, ROUNDS);
    let calls = market.shop.server.value::<i64>("select count(*) from payment_refunds where state = 'succeeded'");
    assert_eq!(calls, 3 * i64::try_from(ROUNDS).unwrap());
    // A purchase is voided here before its consumption at the latest, and consumed otherwise.
    eventually("nothing is due", || {
        market.shop.server.value::<i64>("select count(*) from store_purchases where due_at is not null") == 0
    });
}

#[test]
fn a_purchase_is_consumed_after_a_kill_at_any_moment() {
    let mut market = Market::new();
    for number in 0..ROUNDS {
        let round = market.pay(number);
        let requests = market.credits(&round).into_iter().map(|(request, _)| request).collect();
        market = market.kill_during(requests, delay(number));
        // Nobody reports again: what was committed is consumed, and what was not has no row.
        let committed = "select count(*) from store_purchases where store = 'google' and state = 'credited'";
        eventually("the purchases are consumed", || {
            market.shop.server.edit("update store_purchases set due_at = 1 where due_at is not null");
            let due = "select count(*) from store_purchases where due_at is not null";
            market.shop.server.value::<i64>(due) == 0
        });
        let consumed = ["reported", "pushed"].iter().flat_map(|kind| (0..=number).map(move |number| (kind, number)));
        let is_consumed = |kind: &str, number: u64| {
            market.google.purchase(PRODUCT, &format!("{kind}-{number}"))["consumptionState"] == 1
        };
        let consumed = consumed.filter(|(kind, number)| is_consumed(kind, *number)).count();
        assert_eq!(i64::try_from(consumed).unwrap(), market.shop.server.value::<i64>(committed), "round {number}");
        market.assert_books_agree();
        send_all(market.credits(&round));
        eventually("the rest is consumed", || is_consumed("reported", number) && is_consumed("pushed", number));
    }
    assert_eq!(market.shop.coins(), 7 * COINS * i64::try_from(ROUNDS).unwrap());
}
