//! `/admin/payments/callbacks`: callbacks from providers.

use maud::html;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    domain::money::payments::{
        callbacks::{self, Callback, CallbackFilter, CallbackResult},
        order_states::SettlementEffect,
        orders,
    },
    error::Result,
    http::{
        admin::lists::StaffList,
        console::views::{
            cells::Column,
            context::{ViewContext, href},
            layout::Place,
            list_page::{FilterField, Frame},
            pages::rows::{self, CallbackRow},
            texts::Text,
        },
        params::{RowNumber, parameters},
        reply::Json,
        request_context::RequestContext,
        v0::payment::OrderNo,
    },
    types::{PageRequest, Paginated},
};

parameters! {
    ListCallbacksParams(fields) {
        order_no: Option<OrderNo> = fields.optional("orderNo", "Only those about this order.");
        verdict: Option<SettlementEffect> = fields.optional("verdict", "Only those with this verdict.");
    }

    CallbackParams(fields) {
        id: RowNumber = fields.path("id", "The callback's number.");
    }
}

impl From<CallbackRow> for Callback {
    fn from((callback, _): CallbackRow) -> Self {
        callback
    }
}

/// All callbacks, also those without an order.
pub struct CallbackList;

impl StaffList for CallbackList {
    type Params = ListCallbacksParams;
    type Filter = CallbackFilter;
    type Row = CallbackRow;

    const PLACE: Place = Place::Orders;
    const TITLE: Text = Text::Callbacks;
    const EMPTY: Text = Text::NoCallbacks;
    const COLUMNS: &'static [Column<CallbackRow>] = rows::CALLBACK;

    fn fields(_: &ViewContext) -> Vec<FilterField> {
        vec![
            FilterField::new("verdict", Text::Effect)
                .choice(SettlementEffect::ALL)
                .tabs([SettlementEffect::Rejected, SettlementEffect::Review]),
            FilterField::new("orderNo", Text::Order),
        ]
    }

    fn filter(_: &RequestContext, params: ListCallbacksParams) -> Result<CallbackFilter> {
        let order_no = params.order_no.map(|OrderNo(number)| number);
        Ok(CallbackFilter { order_no, verdict: params.verdict })
    }

    fn read(app: &App, filter: &CallbackFilter, page: PageRequest) -> Result<Paginated<CallbackRow>> {
        let Paginated { items, total } = callbacks::list(&app.core, filter, page)?;
        let named = items.iter().filter_map(|callback| callback.order_no.as_deref());
        let known = app.core.store.read(|tx| orders::known_in(tx, named))?;
        let has_order = |callback: &Callback| callback.order_no.as_ref().is_some_and(|order| known.contains(order));
        let items = items.into_iter().map(|callback| (has_order(&callback), callback));
        Ok(Paginated { items: items.map(|(has_order, callback)| (callback, has_order)).collect(), total })
    }

    fn frame(cx: &ViewContext, _: &App, _: Option<&CallbackFilter>) -> Result<Frame> {
        let beside = html! { a.button href=(href("orders")) { (cx.t(Text::Orders)) } };
        Ok(Frame { beside, ..Frame::default() })
    }
}

/// The result of replaying a callback.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallbackReceipt {
    /// The id of the new callback.
    #[schema(example = "8")]
    id: String,
    verdict: SettlementEffect,
    #[schema(example = "unknown_order")]
    reason: Option<String>,
    #[schema(example = "202601020123456789012345")]
    order_no: Option<String>,
    /// True if the provider would receive `success`.
    #[schema(example = true)]
    acknowledged: bool,
}

impl From<CallbackResult> for CallbackReceipt {
    fn from(receipt: CallbackResult) -> Self {
        let acknowledged = receipt.is_acknowledged();
        let CallbackResult { id, verdict, reason, order_no, .. } = receipt;
        Self { id: id.to_string(), verdict, reason, order_no, acknowledged }
    }
}

pub async fn replay(context: RequestContext, params: CallbackParams) -> Result<Json<CallbackReceipt>> {
    let receipt = context.committed(callbacks::replay(&context.app.payments, params.id.0)?).await?;
    Ok(Json(receipt.into()))
}
