//! The whole life of a payment, driven through the sandbox as a server and a buyer would.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use super::*;
use crate::providers::payment::{
    Currency, Fen, OrderState, OrderView, RejectionReason, SettlementDecision, TradeStatus, form, judge, vectors,
};

#[derive(Default)]
struct TradeStore {
    trades: Mutex<HashMap<String, SandboxTrade>>,
    /// Number of upcoming changes that lose against a concurrent one.
    lost_races: AtomicI64,
}

impl SandboxLedger for TradeStore {
    fn trade(&self, order_no: &str) -> Result<Option<SandboxTrade>, Failure> {
        Ok(self.trades.lock().unwrap().get(order_no).cloned())
    }

    fn store(&self, trade: &SandboxTrade) -> Result<bool, Failure> {
        if self.lost_races.fetch_sub(1, Ordering::SeqCst) > 0 {
            return Ok(false);
        }
        let mut trades = self.trades.lock().unwrap();
        let stored = trades.get(&trade.order_no).map_or(0, |stored| stored.version);
        if stored != trade.version - 1 {
            return Ok(false);
        }
        // Stores the serialised form, as a real ledger does.
        let text = serde_json::to_string(trade).unwrap();
        trades.insert(trade.order_no.clone(), serde_json::from_str(&text).unwrap());
        Ok(true)
    }
}

struct Stage {
    sandbox: Sandbox,
    store: Arc<TradeStore>,
    now: Arc<AtomicI64>,
}

impl Stage {
    fn new() -> Self {
        let store = Arc::new(TradeStore::default());
        let now = Arc::new(AtomicI64::new(vectors::AFTERNOON));
        let clock = Arc::clone(&now);
        let key = Sandbox::generate_key().unwrap();
        let ledger: Arc<dyn SandboxLedger> = Arc::<TradeStore>::clone(&store);
        let clock: WallClock = Box::new(move || clock.load(Ordering::SeqCst));
        let sandbox = Sandbox::new(&key, "http://127.0.0.1:8080/payment/notify", ledger, clock).unwrap();
        Self { sandbox, store, now }
    }

    fn pass(&self, milliseconds: i64) {
        self.now.fetch_add(milliseconds, Ordering::SeqCst);
    }

    fn order_string(&self) -> String {
        self.sandbox.order_string(&order()).unwrap()
    }

    fn judged(&self, body: &str, state: OrderState) -> SettlementDecision {
        let callback = self.sandbox.read_callback(body.as_bytes()).unwrap();
        judge(&callback.trade, Some(&view(state)))
    }
}

fn fen(text: &str) -> Fen {
    Fen::parse(text).unwrap()
}

fn order() -> OrderRequest {
    OrderRequest {
        order_no: "D1".to_owned(),
        amount: fen("6.00"),
        subject: "60 coins".to_owned(),
        expires_at: vectors::AFTERNOON + 900_000,
        now: vectors::AFTERNOON,
    }
}

fn view(state: OrderState) -> OrderView<'static> {
    OrderView {
        channel: "sandbox",
        order_no: "D1",
        amount: fen("6.00"),
        currency: Currency::CNY,
        state,
        trade_no: None,
        paid: None,
        refunded: Fen::ZERO,
    }
}

fn refund(number: &str, amount: &str) -> RefundRequest {
    RefundRequest {
        order_no: "D1".to_owned(),
        refund_no: number.to_owned(),
        amount: fen(amount),
        reason: "cancelled".to_owned(),
    }
}

fn refusal<T: fmt::Debug>(outcome: Result<T, Failure>) -> String {
    let failure = outcome.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Refused);
    failure.code
}

#[test]
fn a_payment_sends_a_callback_and_credits() {
    let stage = Stage::new();
    assert_eq!(stage.sandbox.query("D1").unwrap(), TradeQueryOutcome::NotFound);
    let body = stage.sandbox.pay(&stage.order_string()).unwrap();
    assert_eq!(stage.judged(&body, OrderState::Created), SettlementDecision::Credit);
    assert_eq!(stage.judged(&body, OrderState::Credited), SettlementDecision::Nothing);
    assert_eq!(refusal(stage.sandbox.pay(&stage.order_string())), "ACQ.TRADE_HAS_SUCCESS");
}

#[test]
fn a_query_replaces_a_lost_callback() {
    let stage = Stage::new();
    stage.sandbox.pay(&stage.order_string()).unwrap();
    let TradeQueryOutcome::Found(trade) = stage.sandbox.query("D1").unwrap() else { panic!("not found") };
    assert_eq!(judge(&trade, Some(&view(OrderState::Created))), SettlementDecision::Credit);
    assert_eq!(trade.paid_at, Some(vectors::AFTERNOON));
}

#[test]
fn a_repeated_callback_has_the_same_notify_id() {
    let stage = Stage::new();
    let first = stage.sandbox.pay(&stage.order_string()).unwrap();
    stage.pass(240_000);
    let second = stage.sandbox.callback("D1").unwrap();
    let read = |body: &str| stage.sandbox.read_callback(body.as_bytes()).unwrap();
    assert_ne!(first, second);
    assert_eq!(read(&first).notify_id, read(&second).notify_id);
    assert_eq!(read(&first).trade, read(&second).trade);
}

#[test]
fn an_unpaid_trade_can_be_closed_and_a_paid_one_not() {
    let stage = Stage::new();
    assert_eq!(stage.sandbox.close("D1").unwrap(), CloseOutcome::NotFound);
    stage.sandbox.open(&stage.order_string()).unwrap();
    let waiting = stage.sandbox.callback("D1").unwrap();
    assert_eq!(stage.judged(&waiting, OrderState::Created), SettlementDecision::Nothing);
    assert_eq!(stage.sandbox.close("D1").unwrap(), CloseOutcome::Closed);
    let closed = stage.sandbox.callback("D1").unwrap();
    assert_eq!(stage.judged(&closed, OrderState::Created), SettlementDecision::Close);
    assert_eq!(refusal(stage.sandbox.pay(&stage.order_string())), "ACQ.TRADE_HAS_CLOSE");

    let stage = Stage::new();
    stage.sandbox.pay(&stage.order_string()).unwrap();
    assert_eq!(stage.sandbox.close("D1").unwrap(), CloseOutcome::NotClosable);
}

#[test]
fn an_order_string_expires_unless_paid_late_on_purpose() {
    let stage = Stage::new();
    let order_string = stage.order_string();
    stage.sandbox.open(&order_string).unwrap();
    stage.pass(900_000);
    assert_eq!(refusal(stage.sandbox.pay(&order_string)), "order_expired");
    let TradeQueryOutcome::Found(trade) = stage.sandbox.query("D1").unwrap() else { panic!("not found") };
    assert_eq!(trade.status, TradeStatus::Closed);

    let stage = Stage::new();
    let order_string = stage.order_string();
    stage.pass(900_001);
    let body = stage.sandbox.pay_late(&order_string).unwrap();
    assert_eq!(stage.judged(&body, OrderState::Closed), SettlementDecision::Credit);
}

#[test]
fn refunds_move_money_once_and_send_a_callback() {
    let stage = Stage::new();
    stage.sandbox.pay(&stage.order_string()).unwrap();
    assert_eq!(stage.sandbox.query_refund("D1", "R1").unwrap(), RefundQueryOutcome::NotFound);
    let moved = stage.sandbox.refund(&refund("R1", "1.50")).unwrap();
    assert_eq!(moved, RefundOutcome::Moved { total: Some(fen("1.50")) });
    let unmoved = |total| RefundOutcome::Unconfirmed { total: Some(fen(total)) };
    assert_eq!(stage.sandbox.refund(&refund("R1", "1.50")).unwrap(), unmoved("1.50"));
    assert_eq!(stage.sandbox.query_refund("D1", "R1").unwrap(), RefundQueryOutcome::Succeeded { amount: fen("1.50") });
    assert_eq!(refusal(stage.sandbox.refund(&refund("R1", "2.00"))), "ACQ.DISCORDANT_REPEAT_REQUEST");
    assert_eq!(refusal(stage.sandbox.refund(&refund("R2", "4.51"))), "ACQ.REASON_TRADE_REFUND_FEE_ERR");
    let partial = stage.sandbox.callback("D1").unwrap();
    let expected = SettlementDecision::Refund { total: fen("1.50"), full: false };
    assert_eq!(stage.judged(&partial, OrderState::Credited), expected);

    let moved = stage.sandbox.refund(&refund("R2", "4.50")).unwrap();
    assert_eq!(moved, RefundOutcome::Moved { total: Some(fen("6.00")) });
    let full = stage.sandbox.callback("D1").unwrap();
    let expected = SettlementDecision::Refund { total: fen("6.00"), full: true };
    assert_eq!(stage.judged(&full, OrderState::Credited), expected);
    assert_eq!(stage.sandbox.refund(&refund("R2", "4.50")).unwrap(), unmoved("6.00"));
    assert_eq!(refusal(stage.sandbox.refund(&refund("R3", "0.01"))), "ACQ.TRADE_STATUS_ERROR");
}

#[test]
fn an_impossible_refund_is_refused() {
    let stage = Stage::new();
    assert_eq!(refusal(stage.sandbox.refund(&refund("R1", "1.50"))), "ACQ.TRADE_NOT_EXIST");
    stage.sandbox.pay(&stage.order_string()).unwrap();
    for (number, amount) in [("R1", "0.00"), ("R&1", "1.50"), ("", "1.50")] {
        assert_eq!(refusal(stage.sandbox.refund(&refund(number, amount))), "invalid_refund");
    }
}

#[test]
fn an_order_keeps_its_first_terms() {
    let stage = Stage::new();
    stage.sandbox.open(&stage.order_string()).unwrap();
    let changes: [fn(&mut OrderRequest); 2] =
        [|order| order.amount = fen("0.01"), |order| order.subject = "600 coins".to_owned()];
    for change in changes {
        let mut order = order();
        change(&mut order);
        let order_string = stage.sandbox.order_string(&order).unwrap();
        assert_eq!(refusal(stage.sandbox.pay(&order_string)), "ACQ.CONTEXT_INCONSISTENT");
    }
    assert!(stage.sandbox.pay(&stage.order_string()).is_ok());
}

#[test]
fn an_expired_trade_has_another_notify_id() {
    let stage = Stage::new();
    stage.sandbox.open(&stage.order_string()).unwrap();
    let waiting = stage.sandbox.callback("D1").unwrap();
    stage.pass(900_000);
    let expired = stage.sandbox.callback("D1").unwrap();
    let identity = |body: &str| stage.sandbox.read_callback(body.as_bytes()).unwrap().notify_id;
    assert_ne!(identity(&waiting), identity(&expired));
    assert_eq!(stage.judged(&expired, OrderState::Created), SettlementDecision::Close);
}

#[test]
fn a_finished_trade_credits_and_cannot_be_refunded() {
    let stage = Stage::new();
    assert_eq!(refusal(stage.sandbox.finish("D1")), "ACQ.TRADE_NOT_EXIST");
    stage.sandbox.pay(&stage.order_string()).unwrap();
    let body = stage.sandbox.finish("D1").unwrap();
    assert_eq!(stage.judged(&body, OrderState::Created), SettlementDecision::Credit);
    assert_eq!(refusal(stage.sandbox.refund(&refund("R1", "1.50"))), "ACQ.TRADE_HAS_FINISHED");
}

#[test]
fn only_strings_of_this_installation_can_be_paid() {
    let stage = Stage::new();
    let other = Stage::new();
    let genuine = stage.order_string();
    assert_eq!(refusal(other.sandbox.pay(&genuine)), "isv.invalid-signature");
    let cheaper = genuine.replace("6.00", "0.01");
    assert_ne!(cheaper, genuine);
    assert_eq!(refusal(stage.sandbox.pay(&cheaper)), "isv.invalid-signature");
    assert_eq!(refusal(stage.sandbox.pay("D1")), "order_string_unreadable");
    let body = other.sandbox.pay(&other.order_string()).unwrap();
    let rejection = stage.sandbox.read_callback(body.as_bytes()).unwrap_err();
    assert_eq!(rejection.reason, RejectionReason::SignatureInvalid);
}

#[test]
fn order_strings_and_callbacks_are_not_interchangeable() {
    let stage = Stage::new();
    let order_string = stage.order_string();
    assert!(stage.sandbox.read_callback(order_string.as_bytes()).is_err());
    let body = stage.sandbox.pay(&order_string).unwrap();
    assert_eq!(refusal(stage.sandbox.open(&body)), "isv.invalid-signature");
}

#[test]
fn the_schemes_are_not_interchangeable() {
    let stage = Stage::new();
    let body = stage.sandbox.pay(&stage.order_string()).unwrap();
    assert_eq!(form::value_of(&form::decode(body.as_bytes()).unwrap(), "sign_type"), Some("ECDSA256"));
    let relabelled = body.replace("sign_type=ECDSA256", "sign_type=RSA2");
    let rejection = stage.sandbox.read_callback(relabelled.as_bytes()).unwrap_err();
    assert_eq!(rejection.reason, RejectionReason::WrongSignType);
    let genuine_elsewhere = vectors::alipay()["notify"]["valid_trade_success"]["form_body"].clone();
    let rejection = stage.sandbox.read_callback(vectors::text(&genuine_elsewhere).as_bytes()).unwrap_err();
    assert_eq!(rejection.reason, RejectionReason::WrongSignType);
}

#[test]
fn retries_lost_races_and_gives_up_on_a_broken_ledger() {
    let stage = Stage::new();
    stage.store.lost_races.store(3, Ordering::SeqCst);
    stage.sandbox.pay(&stage.order_string()).unwrap();
    stage.store.lost_races.store(1000, Ordering::SeqCst);
    let failure = stage.sandbox.refund(&refund("R1", "1.50")).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Busy, "trade_contended"));
}

#[test]
fn one_of_several_parallel_payments_succeeds() {
    let stage = Stage::new();
    let order_string = stage.order_string();
    let paid: usize = std::thread::scope(|scope| {
        let buyers: Vec<_> = (0..8).map(|_| scope.spawn(|| stage.sandbox.pay(&order_string).is_ok())).collect();
        buyers.into_iter().map(|buyer| usize::from(buyer.join().unwrap())).sum()
    });
    assert_eq!(paid, 1);
}

#[test]
fn accepts_only_valid_keys() {
    assert_ne!(Sandbox::generate_key().unwrap(), Sandbox::generate_key().unwrap());
    let outcome = Sandbox::new(b"key", "http://x.test/", Arc::new(TradeStore::default()), Box::new(|| 0));
    assert_eq!(outcome.err(), Some(SandboxKeyError));
}
