//! The daily bill: one line for each payment and each refund of a day.
//!
//! The file is not signed. Its SHA-1 is in a signed answer, and its last line has the totals, which must agree with the
//! lines.

use ring::digest;

use crate::{
    providers::{
        payment::{Fen, bill::BillFee},
        shanghai_time::shanghai_milliseconds,
    },
    types::hex,
};

/// The bill of one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeChatBill {
    pub lines: Vec<WeChatBillLine>,
    /// The sum of the orders' prices.
    pub paid: Fen,
    /// The sum of all refunds.
    pub refunded: Fen,
    /// The sum of the fees; zero in bills without them.
    pub fees: BillFee,
}

/// A payment or a refund of the day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeChatBillLine {
    /// Epoch milliseconds.
    pub at: Option<i64>,
    pub trade_no: String,
    pub order_no: String,
    /// `SUCCESS`, `REFUND` or `REVOKED`.
    pub state: String,
    /// The order's price; zero on the line of a refund.
    pub amount: Fen,
    /// Set on the line of a refund.
    pub refund: Option<WeChatBillRefund>,
}

/// The refund of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeChatBillRefund {
    pub refund_no: String,
    /// The provider's number of the refund.
    pub refund_id: String,
    pub amount: Fen,
    /// As in [`super::WeChatRefundState`].
    pub state: String,
}

/// The columns of a bill of payments and refunds, under the provider's names.
const TIME: &str = "交易时间";
const TRADE_NO: &str = "微信订单号";
const ORDER_NO: &str = "商户订单号";
const STATE: &str = "交易状态";
const AMOUNT: &str = "订单金额";
const REFUND_ID: &str = "微信退款单号";
const REFUND_NO: &str = "商户退款单号";
const REFUND_AMOUNT: &str = "申请退款金额";
const REFUND_STATE: &str = "退款状态";
const FEE: &str = "手续费";
const TOTAL_FEE: &str = "手续费总金额";
const COUNT: &str = "总交易单数";
const TOTAL_AMOUNT: &str = "订单总金额";
const TOTAL_REFUNDED: &str = "申请退款总金额";

/// Returns true if the file has this SHA-1, in hexadecimal digits.
pub(super) fn has_sha1(file: &[u8], expected: &str) -> bool {
    let actual = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, file);
    hex(actual.as_ref()).eq_ignore_ascii_case(expected)
}

/// Parses a bill; `None` if it is none, or if its totals differ from its lines.
pub(super) fn parse(file: &[u8]) -> Option<WeChatBill> {
    let text = std::str::from_utf8(file).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().map(|line| line.trim_end_matches('\r')).filter(|line| !line.is_empty());
    let head = Columns(lines.next()?.split(',').collect());
    let (mut entries, mut fees) = (Vec::new(), BillFee::default());
    let totals = loop {
        let line = lines.next()?;
        match cells(line) {
            Some(cells) => {
                if let Some(fee) = head.of(&cells, FEE) {
                    fees = fees.checked_add(BillFee::parse(fee)?)?;
                }
                entries.push(bill_line(&head, &cells)?);
            }
            None => break Columns(line.split(',').collect()),
        }
    };
    let sums = cells(lines.next()?)?;
    if lines.next().is_some() {
        return None;
    }
    let bill = WeChatBill {
        paid: sum(entries.iter().map(|line| line.amount))?,
        refunded: sum(entries.iter().filter_map(|line| line.refund.as_ref()).map(|refund| refund.amount))?,
        lines: entries,
        fees,
    };
    let agrees = totals.of(&sums, COUNT)?.parse() == Ok(bill.lines.len())
        && Fen::parse(totals.of(&sums, TOTAL_AMOUNT)?) == Ok(bill.paid)
        && Fen::parse(totals.of(&sums, TOTAL_REFUNDED)?) == Ok(bill.refunded);
    let fee_agrees = totals.of(&sums, TOTAL_FEE).is_none_or(|total| BillFee::parse(total) == Some(fees));
    (agrees && fee_agrees).then_some(bill)
}

/// The names of the columns, in their order.
struct Columns<'a>(Vec<&'a str>);

impl Columns<'_> {
    fn of<'cell>(&self, cells: &[&'cell str], name: &str) -> Option<&'cell str> {
        let index = self.0.iter().position(|column| *column == name)?;
        cells.get(index).copied()
    }
}

/// Splits a line of values. Each begins with a back quote, so a comma inside a value does not end it. Returns `None` for a
/// line of names.
fn cells(line: &str) -> Option<Vec<&str>> {
    line.strip_prefix('`').map(|rest| rest.split(",`").collect())
}

fn bill_line(head: &Columns<'_>, cells: &[&str]) -> Option<WeChatBillLine> {
    let text = |name| head.of(cells, name);
    let number = |name| text(name).map(str::to_owned).filter(|number| (1..=64).contains(&number.len()));
    let refund = match text(REFUND_ID)? {
        "" | "0" => None,
        refund_id => Some(WeChatBillRefund {
            refund_no: number(REFUND_NO)?,
            refund_id: refund_id.to_owned(),
            amount: Fen::parse(text(REFUND_AMOUNT)?).ok()?,
            state: text(REFUND_STATE)?.to_owned(),
        }),
    };
    Some(WeChatBillLine {
        at: shanghai_milliseconds(text(TIME)?),
        trade_no: number(TRADE_NO)?,
        order_no: number(ORDER_NO)?,
        state: text(STATE)?.to_owned(),
        amount: if refund.is_some() { Fen::ZERO } else { Fen::parse(text(AMOUNT)?).ok()? },
        refund,
    })
}

fn sum(mut amounts: impl Iterator<Item = Fen>) -> Option<Fen> {
    amounts.try_fold(Fen::ZERO, Fen::checked_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "交易时间,公众账号ID,商户号,特约商户号,设备号,微信订单号,商户订单号,用户标识,交易类型,交易状态,付款银行,\
        货币种类,应结订单金额,代金券金额,微信退款单号,商户退款单号,退款金额,充值券退款金额,退款类型,退款状态,商品名称,\
        商户数据包,手续费,费率,订单金额,申请退款金额,费率备注";
    const PAID: &str = "`2026-01-15 16:29:40,`wx0123456789abcdef,`1900000109,`0,`,`4200001234202601150000000001,\
        `202601150000000000000001,`oUpF8u,`APP,`SUCCESS,`OTHERS,`CNY,`5.00,`1.00,`0,`0,`0.00,`0.00,`,`,`金币, 60 个,`,\
        `0.03600,`0.60%,`6.00,`0.00,`";
    const REFUNDED: &str = "`2026-01-15 16:40:00,`wx0123456789abcdef,`1900000109,`0,`,`4200001234202601150000000001,\
        `202601150000000000000001,`oUpF8u,`APP,`REFUND,`OTHERS,`CNY,`0.00,`0.00,`50000000382019052709732678859,\
        `R0123456789abcdef01234567,`1.25,`0.25,`ORIGINAL,`SUCCESS,`金币, 60 个,`,`-0.00900,`0.60%,`0.00,`1.50,`";
    const TOTALS: &str = "总交易单数,应结订单总金额,退款总金额,充值券退款总金额,手续费总金额,订单总金额,申请退款总金额";

    fn bill(last: &str) -> String {
        format!("\u{feff}{HEAD}\r\n{PAID}\r\n{REFUNDED}\r\n{TOTALS}\r\n{last}\r\n")
    }

    #[test]
    fn parses_payments_and_refunds() {
        let bill = parse(bill("`2,`5.00,`1.25,`0.25,`0.02700,`6.00,`1.50").as_bytes()).unwrap();
        assert_eq!((bill.paid, bill.refunded), (Fen::parse("6.00").unwrap(), Fen::parse("1.50").unwrap()));
        assert_eq!(bill.fees.to_string(), "0.02700");
        assert_eq!(bill.lines[0].at, Some(1_768_465_780_000));
        assert_eq!(bill.lines[0].order_no, "202601150000000000000001");
        assert_eq!(bill.lines[0].refund, None);
        let refund = bill.lines[1].refund.as_ref().unwrap();
        assert_eq!((refund.refund_no.as_str(), refund.state.as_str()), ("R0123456789abcdef01234567", "SUCCESS"));
    }

    #[test]
    fn rejects_bills_whose_totals_differ() {
        for last in [
            "`3,`5.00,`1.25,`0.25,`0.02700,`6.00,`1.50",
            "`2,`5.00,`1.25,`0.25,`0.02700,`6.01,`1.50",
            "`2,`5.00,`1.25,`0.25,`0.02700,`6.00,`0.00",
            "`2,`5.00,`1.25,`0.25,`0.03600,`6.00,`1.50",
            "",
        ] {
            assert_eq!(parse(bill(last).as_bytes()), None, "{last}");
        }
        assert_eq!(parse(b""), None);
        assert_eq!(parse(br#"{"code":"NO_STATEMENT_EXIST"}"#), None);
    }

    #[test]
    fn compares_the_checksum_without_case() {
        assert!(has_sha1(b"abc", "A9993E364706816ABA3E25717850C26C9CD0D89D"));
        assert!(!has_sha1(b"abd", "a9993e364706816aba3e25717850c26c9cd0d89d"));
        assert!(!has_sha1(b"abc", ""));
    }
}
