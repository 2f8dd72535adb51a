//! `/payment/purchases`: purchases in app stores, and the notifications of the stores.

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
};

use crate::{
    app::App,
    domain::money::purchases::{
        apple::{self, NotificationResult},
        google,
    },
    error::{Code, Error, Result},
    http::{
        admin::products::StoreId,
        claims::Claims,
        params::{BodyShape, Fields, Flag, ParameterDescription, Parameters, parameters},
        reply::{Reply, ReplyDescription, status},
        request_context::RequestContext,
        user_purchase::{PurchaseReported, PurchaseToken, SignedTransaction},
    },
    types::UserId,
};

parameters! {
    ApplePurchaseClaimParams(fields) {
        user_id: Option<UserId> = fields.optional("userId", "The caller's own id.");
        transaction: SignedTransaction = fields.required("signedTransaction", "The `jwsRepresentation` of the StoreKit 2 transaction.");
        consent: Option<Flag> = fields.optional("sharesConsumption", "The user's consent that Apple is told how much of a purchase was used, when a refund is asked for. Absent: unchanged.");
    }

    GooglePurchaseClaimParams(fields) {
        user_id: Option<UserId> = fields.optional("userId", "The caller's own id.");
        product_id: StoreId = fields.required("productId", "The product id at Google Play.");
        token: PurchaseToken = fields.required("purchaseToken", "The purchase token.");
    }
}

pub async fn report_apple(context: RequestContext, params: ApplePurchaseClaimParams) -> Result<PurchaseReported> {
    let user = context.acting_for(&Claims::of_user(params.user_id))?;
    let SignedTransaction(jws) = params.transaction;
    let consent = params.consent.map(|Flag(consent)| consent);
    Ok(PurchaseReported(context.blocking(move |app| apple::report(&app.purchases, user, &jws, consent)).await?))
}

pub async fn report_google(context: RequestContext, params: GooglePurchaseClaimParams) -> Result<PurchaseReported> {
    let user = context.acting_for(&Claims::of_user(params.user_id))?;
    let (StoreId(product), PurchaseToken(token)) = (params.product_id, params.token);
    Ok(PurchaseReported(context.blocking(move |app| google::report(&app.purchases, user, &product, &token)).await?))
}

/// Receives a server notification of the App Store.
pub async fn notify_apple(context: RequestContext, _: StoreNotification) -> Result<NotificationReply> {
    let body = context.body.clone();
    let _permit = context.app.purchases.apple_events.try_acquire()?;
    let result = context.blocking(move |app| apple::receive(&app.purchases, &body)).await?;
    Ok(NotificationReply::to(&context, result))
}

/// Receives a notification that Google's Pub/Sub pushes.
pub async fn notify_google(context: RequestContext, _: StoreNotification) -> Result<NotificationReply> {
    let authorization = context.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (authorization, body) = (authorization.map(ToOwned::to_owned), context.body.clone());
    let purchases = &context.app.purchases;
    let awaits_keys = google::awaits_keys(purchases, authorization.as_deref(), &body)?;
    let permits = if awaits_keys { &purchases.awaiting_keys } else { &purchases.google_events };
    let _permit = permits.try_acquire()?;
    let receive = move |app: &App| google::receive(&app.purchases, authorization.as_deref(), &body);
    let result = context.blocking(receive).await?;
    Ok(NotificationReply::to(&context, result))
}

/// The response to a store. Stores repeat what is answered with 5xx; Apple does not repeat what is answered with 4xx.
#[derive(Clone, Copy, Debug)]
pub enum NotificationReply {
    Done,
    Rejected,
    /// The store is not configured yet, or the service failed.
    NotReady,
}

impl NotificationReply {
    fn to(context: &RequestContext, result: NotificationResult) -> Self {
        match result {
            NotificationResult::Done(verdict) => {
                tracing::info!(request_id = context.meta.request_id, verdict = verdict.name(), "store notified");
                Self::Done
            }
            NotificationResult::Rejected(_) => Self::Rejected,
        }
    }
}

impl Reply for NotificationReply {
    fn into_response(self) -> Result<Response<Body>> {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = match self {
            Self::Done => StatusCode::OK,
            Self::Rejected => StatusCode::BAD_REQUEST,
            Self::NotReady => StatusCode::SERVICE_UNAVAILABLE,
        };
        if matches!(self, Self::NotReady) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
        }
        Ok(response)
    }

    fn describe() -> ReplyDescription {
        ReplyDescription {
            statuses: vec![
                (StatusCode::OK, "Its effect is stored."),
                (StatusCode::BAD_REQUEST, "The store did not sign it."),
                (StatusCode::SERVICE_UNAVAILABLE, "The store must send it again."),
            ],
            contents: Vec::new(),
            schemas: Vec::new(),
            headers: &[],
        }
    }

    /// Stores read only the status, and a 4xx is final.
    fn from_error(error: &Error) -> Option<Self> {
        let is_own_fault = error.code == Code::NotConfigured || status(error.code).is_server_error();
        Some(if is_own_fault { Self::NotReady } else { Self::Rejected })
    }
}

/// A notification. Its signature covers the body as received, so the store's verifier parses it.
pub struct StoreNotification;

impl Parameters for StoreNotification {
    const BODY: BodyShape = BodyShape::Raw;

    fn read(_: &mut Fields<'_, '_>) -> Option<Self> {
        Some(Self)
    }

    fn describe() -> Vec<ParameterDescription> {
        Vec::new()
    }
}
