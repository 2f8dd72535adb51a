//! A server that sells through Alipay, WeChat Pay and Stripe, against fakes of the three.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{
    alipay::{AlipayGateway, signed_notification},
    client::{Caller, Request, Response},
    server::{Server, Setup},
    stripe::{FakeStripe, STRIPE_KEY, STRIPE_SECRET},
    wechat::{FakeWeChatPay, SignedNotification, published_wechat},
};

/// Returns the time in seconds.
pub fn seconds() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

/// The providers and the server.
pub struct Shop {
    pub alipay: AlipayGateway,
    pub wechat: FakeWeChatPay,
    pub stripe: FakeStripe,
    pub server: Server,
    pub user: Caller,
    pub key: String,
    /// Holds the file with WeChat's public key.
    files: tempfile::TempDir,
}

/// The channel, the order number, and a function that makes the callback.
pub type PaidCallback<'shop> = (&'static str, String, Box<dyn Fn() -> Request + 'shop>);

impl Shop {
    /// Starts the server. `change` adds settings.
    pub fn start(change: impl FnOnce(Setup) -> Setup) -> Self {
        let (alipay, wechat, stripe) = (AlipayGateway::start(), FakeWeChatPay::start_at(seconds), FakeStripe::start());
        let files = tempfile::tempdir().unwrap();
        let setup = change(with_stripe(with_wechat(alipay.setup(), &wechat, files.path()), &stripe))
            .with("PAYMENT_CHANNELS", "alipay, wechat, stripe");
        let server = setup.start();
        let (user, key) = (server.sign_in("13800138000"), server.api_key("shop"));
        Self { alipay, wechat, stripe, server, user, key, files }
    }

    pub fn new() -> Self {
        Self::start(|setup| setup)
    }

    /// Returns the settings of the running server, for another start.
    pub fn setup(&self) -> Setup {
        let setup = with_wechat(self.alipay.setup(), &self.wechat, self.files.path());
        with_stripe(setup, &self.stripe)
    }

    /// Restarts the server after a crash.
    pub fn restarted(self, setup: Setup) -> Self {
        Self { server: self.server.restart(setup), ..self }
    }

    /// Orders 60 coins for 6 yuan through the first API generation.
    pub fn order(&self, more: &[(&str, &str)]) -> Value {
        let package = [&[("amount", "6.00"), ("coinCount", "60")], more].concat();
        self.server.get("/payment/gateway/order").by(&self.user).query(&package).send().expect(200).json()
    }

    /// Orders by a channel and returns the order's number.
    pub fn order_no(&self, channel: &str) -> String {
        self.order(&[("channel", channel)])["orderNo"].as_str().unwrap().to_owned()
    }

    /// Returns the notification of WeChat Pay as a request.
    pub fn wechat_request(&self, (headers, body): &SignedNotification) -> Request {
        let request = self.server.post("/payment/notify/wechat");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        request.bytes(Some("application/json"), body.as_bytes().to_vec())
    }

    /// Returns the webhook of Stripe as a request.
    pub fn stripe_request(&self, (signature, body): &(String, String)) -> Request {
        let request = self.server.post("/payment/notify/stripe").header("Stripe-Signature", signature);
        request.bytes(Some("application/json"), body.as_bytes().to_vec())
    }

    /// Pays an order of WeChat Pay and returns the notification.
    pub fn pay_by_wechat(&self, order_no: &str) -> SignedNotification {
        self.wechat.pay(order_no, 600);
        self.wechat.payment_notification(order_no)
    }

    /// Returns the Checkout session of an order.
    pub fn session(&self, order_no: &str) -> String {
        self.server.value(&format!("select provider_ref from payment_orders where order_no = '{order_no}'"))
    }

    /// Pays an order of Stripe and returns the webhook.
    pub fn pay_by_stripe(&self, order_no: &str) -> (String, String) {
        let session = self.session(order_no);
        self.stripe.pay(&session);
        self.stripe.webhook("checkout.session.completed", &session, seconds())
    }

    /// Returns a paid order's callback of each channel, as a request. All are for 60 coins.
    pub fn callbacks(&self) -> Vec<PaidCallback<'_>> {
        let [alipay, wechat, stripe] = ["alipay", "wechat", "stripe"].map(|channel| self.order_no(channel));
        let form = signed_notification(&alipay, &[]);
        let (notification, webhook) = (self.pay_by_wechat(&wechat), self.pay_by_stripe(&stripe));
        let content_type = Some("application/x-www-form-urlencoded");
        vec![
            (
                "alipay",
                alipay,
                Box::new(move || {
                    self.server.post("/payment/notify/alipay").bytes(content_type, form.clone().into_bytes())
                }),
            ),
            ("wechat", wechat, Box::new(move || self.wechat_request(&notification))),
            ("stripe", stripe, Box::new(move || self.stripe_request(&webhook))),
        ]
    }

    pub fn refund(&self, order_no: &str, amount: &str, number: &str) -> Response {
        let body = json!({ "amount": amount, "refundNo": number, "reason": "changed their mind" });
        self.server.post(&format!("/admin/payments/{order_no}/refund")).token(&self.key).json(&body).send()
    }

    /// Makes the server query the provider.
    pub fn ask(&self, order_no: &str) -> Value {
        let path = format!("/admin/payments/{order_no}/query");
        self.server.post(&path).token(&self.key).send().expect(200).json()
    }

    pub fn state(&self, order_no: &str) -> (String, i64) {
        self.server.order_state(order_no)
    }

    pub fn coins(&self) -> i64 {
        self.server.coins(&self.user)
    }

    /// Returns the reconciliation report of all orders, which must exit with 0.
    pub fn report(&self) -> Value {
        let arguments = ["payments", "report", "--from", "2020-01-01", "--to", "2100-01-01"];
        self.server.command_with(&self.setup().variables(), &arguments).expect(0).json()
    }
}

/// Configures WeChat Pay in public-key mode.
pub fn with_wechat(setup: Setup, wechat: &FakeWeChatPay, directory: &std::path::Path) -> Setup {
    let published = published_wechat();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let key = directory.join("pub_key.pem");
    std::fs::write(&key, text(&published["keys"]["wechat_public_key_mode"]["public_spki_pem"])).unwrap();
    setup
        .with("PAYMENT_WECHAT_PUBLIC_KEY_ID", text(&published["public_key_id"]))
        .with("PAYMENT_WECHAT_PUBLIC_KEY", key.display())
        .with("PAYMENT_WECHAT_APP_ID", text(&published["appid"]))
        .with("PAYMENT_WECHAT_MERCHANT_ID", text(&published["mchid"]))
        .with("PAYMENT_WECHAT_MERCHANT_SERIAL", text(&published["merchant_serial_no"]))
        .with("PAYMENT_WECHAT_PRIVATE_KEY", text(&published["keys"]["wechat_merchant"]["private_pkcs8_pem"]))
        .with("PAYMENT_WECHAT_API_V3_KEY", text(&published["apiv3_key"]))
        .with("PAYMENT_WECHAT_BASE_URL", wechat.url())
        .with("PAYMENT_WECHAT_NOTIFY_URL", "https://example.com/payment/notify/wechat")
}

/// Configures Stripe in dollars: 6 yuan are 0.99.
pub fn with_stripe(setup: Setup, stripe: &FakeStripe) -> Setup {
    setup
        .with("PAYMENT_STRIPE_SECRET_KEY", STRIPE_KEY)
        .with("PAYMENT_STRIPE_WEBHOOK_SECRET", STRIPE_SECRET)
        .with("PAYMENT_STRIPE_CURRENCY", "usd")
        .with("PAYMENT_STRIPE_PRICES", "6.00=0.99")
        .with("PAYMENT_STRIPE_SUCCESS_URL", "https://example.com/paid")
        .with("PAYMENT_STRIPE_CANCEL_URL", "https://example.com/cancelled")
        .with("PAYMENT_STRIPE_BASE_URL", stripe.url())
}
