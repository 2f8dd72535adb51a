//! A server that takes real payments, as far as keys go: those of the published messages.

use serde_json::Value;

use super::{
    client::Caller,
    server::{Server, Setup},
};

/// The order that the published messages are about.
pub const PUBLISHED_ORDER: &str = "D202601150000000001";

/// The published messages, keys and expectations.
pub fn published() -> Value {
    serde_json::from_str(include_str!("../../vectors/alipay.json")).unwrap()
}

/// The form body of a published notification.
pub fn notification(name: &str) -> String {
    published()["alipay"]["notify"][name]["form_body"].as_str().unwrap().to_owned()
}

impl Setup {
    /// Takes payments by `alipay` with the keys of the published messages. Nobody listens at the provider's address.
    pub fn with_published_keys(self) -> Self {
        let published = published();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        self.with("PAYMENT_GATEWAY", "alipay")
            .with("PAYMENT_APP_ID", text(&published["alipay"]["app_id"]))
            .with("PAYMENT_SELLER_ID", text(&published["alipay"]["seller_id"]))
            .with("PAYMENT_PRIVATE_KEY", text(&published["keys"]["merchant"]["private_pkcs8_der_base64"]))
            .with("PAYMENT_ALIPAY_PUBLIC_KEY", text(&published["keys"]["platform"]["public_spki_der_base64"]))
            .with("PAYMENT_GATEWAY_URL", "http://127.0.0.1:9/gateway.do")
            .with("PAYMENT_NOTIFY_URL", "https://example.com/payment/notify")
    }
}

impl Server {
    /// Puts the order that the published messages are about into the database.
    pub fn insert_published_order(&self, user: &Caller) {
        let now: i64 = self.database().query_row("select created_at from users", [], |row| row.get(0)).unwrap();
        let order = "insert into payment_orders (order_no, user_id, channel, amount_fen, coin_count, state, \
                     created_at, expires_at) values (?1, ?2, 'alipay', 600, 60, 'created', ?3, ?3 + 1800000)";
        self.database().execute(order, (PUBLISHED_ORDER, &user.user_id, now)).unwrap();
    }

    /// Posts a notification as the provider does.
    pub fn notify(&self, form: &str) -> String {
        let content_type = Some("application/x-www-form-urlencoded; charset=utf-8");
        self.post("/payment/notify").bytes(content_type, form.as_bytes().to_vec()).send().expect(200).text()
    }

    pub fn coins(&self, user: &Caller) -> i64 {
        self.get("/coin/balance").by(user).send().expect(200).json()["balance"].as_i64().unwrap()
    }

    /// State and refunded fen of an order.
    pub fn order_state(&self, order_no: &str) -> (String, i64) {
        let question = "select state, refunded_fen from payment_orders where order_no = ?1";
        self.database().query_row(question, [order_no], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    }
}
