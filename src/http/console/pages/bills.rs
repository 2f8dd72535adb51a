//! Checked bills of the payment providers, and the check of a day.

use std::sync::Arc;

use axum::{body::Body, http::Response};
use maud::html;

use crate::{
    app::App,
    domain::{
        money::payments::bills::{self, BillCheck},
        operations::figures::parse_day,
    },
    error::{Error, Result},
    http::{
        admin::lists::StaffList,
        console::{
            request::ConsoleRequest,
            views::{
                cells::Column,
                context::{Flash, ViewContext, href},
                layout::Place,
                list_page::Frame,
                pages::bills as view,
                texts::{self, Text, Tone},
            },
        },
        params::Nothing,
        request_context::RequestContext,
    },
    types::{PageRequest, Paginated},
};

const PAGE: &str = "orders/bills";

pub struct BillList;

impl StaffList for BillList {
    type Params = Nothing;
    type Filter = ();
    type Row = BillCheck;

    const PLACE: Place = Place::Orders;
    const TITLE: Text = Text::Bills;
    const EMPTY: Text = Text::NoBills;
    const COLUMNS: &'static [Column<BillCheck>] = view::BILL;

    fn filter(_: &RequestContext, _: Nothing) -> Result<()> {
        Ok(())
    }

    fn read(app: &App, (): &(), page: PageRequest) -> Result<Paginated<BillCheck>> {
        bills::list(&app.core, page)
    }

    fn frame(cx: &ViewContext, app: &App, _: Option<&()>) -> Result<Frame> {
        let channels = app.payments.channels.all().filter(|channel| channel.gateway.has_bills());
        let channels: Vec<_> = channels.map(|channel| channel.gateway.name()).collect();
        let beside = html! { a.button href=(href("orders?state=review")) { (cx.t(Text::OrdersInReview)) } };
        Ok(Frame { beside, above: view::check(cx, &channels), ..Frame::default() })
    }
}

/// Checks the bills of a day, and says how many differences there are.
pub async fn check(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let channel = console.form.find("channel").map(ToOwned::to_owned);
    let day = match parse_day(console.form.get("day")) {
        Ok(day) => day,
        Err(fault) => return console.rejected(PAGE, &Error::field("day", fault)),
    };
    let checked = console.context.blocking(move |app| bills::check(&app.payments, channel.as_deref(), day)).await;
    let count: usize = match checked {
        Ok(checked) => checked.iter().map(|check| check.differences.len()).sum(),
        failed => return console.finish(PAGE, failed),
    };
    if count == 0 {
        return console.done(PAGE, console.text(Text::BillAgrees));
    }
    let text = texts::bill_differences(console.language(), count);
    console.redirect(PAGE, &Flash { tone: Tone::Bad, text })
}
