//! The daily bill: a ZIP archive with the lines of the day and their summary, both as CSV in GBK.
//!
//! The archive is not signed. Its address is in a signed answer, and the lines must add up to the totals below them.

use encoding_rs::GBK;

use crate::providers::{
    payment::{
        Fen,
        bill::{BillFee, BillLine, ProviderBill},
    },
    zip,
};

const MAX_FILE_BYTES: usize = 64 * 1024 * 1024;
/// The columns under the provider's names.
const TRADE_NO: &str = "支付宝交易号";
const ORDER_NO: &str = "商户订单号";
const KIND: &str = "业务类型";
const AMOUNT: &str = "订单金额（元）";
const REFUND_NO: &str = "退款批次号/请求号";
const FEE: &str = "服务费（元）";
const PAYMENT: &str = "交易";
const REFUND: &str = "退款";
/// The beginnings of the lines with the totals.
const PAYMENT_TOTAL: &str = "#交易合计：";
const REFUND_TOTAL: &str = "#退款合计：";

/// Parses the archive; `None` if it is none, or if its totals differ from its lines.
pub(super) fn parse(archive: &[u8]) -> Option<ProviderBill> {
    let files = zip::files(archive, MAX_FILE_BYTES)?;
    let texts = files.iter().map(|file| GBK.decode(file).0);
    let mut details = texts.filter(|text| text.lines().any(|line| line.starts_with(TRADE_NO)));
    let bill = lines(&details.next()?)?;
    details.next().is_none().then_some(bill)
}

fn lines(text: &str) -> Option<ProviderBill> {
    let mut rows = text.lines().skip_while(|line| !line.starts_with(TRADE_NO));
    let head = cells(rows.next()?);
    let column = |name: &str| head.iter().position(|column| *column == name);
    let columns = [TRADE_NO, ORDER_NO, KIND, AMOUNT, REFUND_NO, FEE].map(column);
    let [Some(trade_no), Some(order_no), Some(kind), Some(amount), Some(refund_no), Some(fee)] = columns else {
        return None;
    };
    let mut bill = ProviderBill::default();
    for line in rows.by_ref().take_while(|line| !line.starts_with('#')) {
        let cells = cells(line);
        let cell = |index: usize| cells.get(index).copied();
        let text = |index| cell(index).map(str::to_owned).filter(|text| (1..=64).contains(&text.len()));
        let is_refund = match cell(kind)? {
            PAYMENT => false,
            REFUND => true,
            _ => return None,
        };
        bill.fees = bill.fees.checked_add(BillFee::parse(cell(fee)?)?)?;
        bill.lines.push(BillLine {
            order_no: text(order_no)?,
            trade_no: text(trade_no)?,
            amount: Fen::parse(cell(amount)?.trim_start_matches('-')).ok()?,
            refund_no: if is_refund { Some(text(refund_no)?) } else { None },
        });
    }
    let rest: Vec<_> = text.lines().filter(|line| line.starts_with('#')).collect();
    let agrees = agrees(&rest, PAYMENT_TOTAL, bill.lines.iter().filter(|line| line.refund_no.is_none()))?
        && agrees(&rest, REFUND_TOTAL, bill.lines.iter().filter(|line| line.refund_no.is_some()))?;
    agrees.then_some(bill)
}

/// Compares the number of lines with the stated one: `#交易合计：2笔，…`.
fn agrees<'a>(rows: &[&str], label: &str, lines: impl Iterator<Item = &'a BillLine>) -> Option<bool> {
    let stated = rows.iter().find_map(|row| row.strip_prefix(label))?;
    let count: usize = stated.split('笔').next()?.trim().parse().ok()?;
    Some(count == lines.count())
}

/// Splits a line. Values end with a tab, so that spreadsheets take numbers as texts.
fn cells(line: &str) -> Vec<&str> {
    line.split(',').map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "支付宝交易号,商户订单号,业务类型,商品名称,创建时间,完成时间,门店编号,门店名称,操作员,终端号,\
        对方账户,订单金额（元）,商家实收（元）,退款批次号/请求号,服务费（元）,分润（元）,备注";

    fn bill(payments: u32) -> String {
        let head = "#支付宝业务明细查询\r\n#账号：[20880000000000010156]\r\n#---业务明细列表---";
        let paid = "2026011522001400000000000001\t,202601150000000000000001\t,交易,60 coins,2026-01-15 16:29:40,\
            2026-01-15 16:29:41,,,,,*明(ann***@example.com),6.00,6.00,,-0.04,0.00,";
        let refunded = "2026011522001400000000000001\t,202601150000000000000001\t,退款,60 coins,2026-01-15 16:29:40,\
            2026-01-15 16:40:00,,,,,*明(ann***@example.com),-1.50,-1.50,R1\t,0.01,0.00,";
        let totals = format!(
            "#---列表结束---\r\n#交易合计：{payments}笔，商家实收共6.00元\r\n#退款合计：1笔，商家实收退款共-1.50元"
        );
        format!("{head}\r\n{HEAD}\r\n{paid}\r\n{refunded}\r\n{totals}\r\n#导出时间：[2026年01月16日]\r\n")
    }

    #[test]
    fn parses_payments_refunds_and_fees() {
        let bill = lines(&bill(1)).unwrap();
        let numbers: Vec<_> = bill.lines.iter().map(|line| (line.amount.as_fen(), line.refund_no.as_deref())).collect();
        assert_eq!(numbers, [(600, None), (150, Some("R1"))]);
        assert_eq!(bill.lines[0].trade_no, "2026011522001400000000000001");
        assert_eq!(bill.lines[1].order_no, "202601150000000000000001");
        assert_eq!(bill.fees.to_string(), "-0.03000");
    }

    #[test]
    fn rejects_bills_whose_totals_differ() {
        assert_eq!(lines(&bill(2)), None);
        assert_eq!(lines(&bill(1).replace("交易,60", "分账,60")), None);
        assert_eq!(lines(""), None);
        assert_eq!(parse(b"PK"), None);
    }
}
