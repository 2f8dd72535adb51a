//! `/api/v1/notifications/stream`: new notifications and changed balances while the app is open.

use std::sync::Arc;

use axum::{
    body::{Body, Bytes},
    http::Response,
};
use futures_util::stream::unfold;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    domain::{
        identity::users::User,
        messaging::inbox_events::{self, InboxPosition, InboxState},
    },
    error::{Code, Error, Fault, FieldCode, Result},
    http::{
        inbox_hub::{InboxSubscription, StreamEnd},
        interpretation_sse::SseError,
        live_stream::LAST_EVENT_ID,
        params::Nothing,
        reply::{Json, Reply, ReplyDescription},
        request_context::RequestContext,
        request_meta::RequestMeta,
        sse::{EventDescription, FinalEvent, SseResponse, add_event_stream, named_event, shutting_down},
        v1::{changes::BalancesShown, notifications::NotificationResponse},
    },
};

/// The present state as JSON, or a stream of events, as the client requested.
pub enum InboxStreamReply {
    Json(InboxStateShown),
    Stream(SseResponse),
}

impl Reply for InboxStreamReply {
    fn into_response(self) -> Result<Response<Body>> {
        match self {
            Self::Json(state) => Json(state).into_response(),
            Self::Stream(stream) => Ok(stream.into_response()),
        }
    }

    fn describe() -> ReplyDescription {
        let mut document = Json::<InboxStateShown>::describe();
        let events = vec![
            EventDescription::of::<InboxStateShown>("open"),
            EventDescription::of::<NotificationResponse>("notification"),
            EventDescription::of::<BalancesShown>("balances"),
            EventDescription::of::<SseError<'_>>("error"),
        ];
        add_event_stream(&mut document, events);
        document
    }
}

/// The present state of the inbox and the balances.
#[derive(Serialize, ToSchema)]
#[schema(as = InboxState)]
pub struct InboxStateShown {
    /// The number of unread notifications.
    #[schema(example = 3)]
    unread: usize,
    balances: BalancesShown,
}

impl From<&InboxState> for InboxStateShown {
    fn from(state: &InboxState) -> Self {
        Self { unread: state.unread, balances: state.balances.into() }
    }
}

pub async fn stream(context: RequestContext, _: Nothing) -> Result<InboxStreamReply> {
    let user = context.current_user()?.clone();
    let last = last_position(&context)?;
    if !context.wants_stream() {
        let state = inbox_events::current(&context.app.core, &user)?;
        return Ok(InboxStreamReply::Json(InboxStateShown::from(&state)));
    }
    if let Some(position) = last {
        inbox_events::require_known(&context.app.core, &user, position)?;
    }
    // Before the state is read, so that nothing is missed in between.
    let subscription = context.inbox.subscribe(user.id, context.token.clone())?;
    let state = inbox_events::current(&context.app.core, &user)?;
    let opened = InboxStateShown::from(&state);
    let position = last.unwrap_or(state.position);
    let stream = InboxStream {
        app: Arc::clone(&context.app),
        meta: Arc::clone(&context.meta),
        user,
        subscription,
        position,
        opening: Some(event(position, "open", &opened).into()),
        is_over: false,
    };
    let final_event = FinalEvent::named("error", &SseError::of(&shutting_down(), &context.meta));
    let events = unfold(stream, InboxStream::next);
    context.meta.held.shrink();
    let response = SseResponse::of_events(&context, events, final_event);
    Ok(InboxStreamReply::Stream(response.with_rare_events(context.app.core.clock.now())))
}

fn last_position(context: &RequestContext) -> Result<Option<InboxPosition>> {
    let Some(value) = context.headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty()) else { return Ok(None) };
    let parsed = value.to_str().ok().and_then(|text| text.parse().ok()).map(Some);
    parsed.ok_or_else(|| {
        let fault =
            Fault::new(FieldCode::InvalidFormat, ("must be the id of an event of this stream", "须为此流的事件 ID"));
        Error::field("Last-Event-ID", fault)
    })
}

/// The state of a stream between two events.
struct InboxStream {
    app: Arc<App>,
    meta: Arc<RequestMeta>,
    user: User,
    subscription: InboxSubscription,
    position: InboxPosition,
    opening: Option<Bytes>,
    is_over: bool,
}

impl InboxStream {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        if self.is_over {
            return None;
        }
        if let Some(opening) = self.opening.take() {
            return Some((opening, self));
        }
        loop {
            match self.subscription.end() {
                Some(StreamEnd::Unauthenticated) => return Some(self.finish(&Code::Unauthenticated.into())),
                Some(StreamEnd::Stopping) => return Some(self.finish(&shutting_down())),
                None => {}
            }
            match self.read_news() {
                Ok(Some(events)) => return Some((events, self)),
                Ok(None) => self.subscription.woken().await,
                Err(error) => return Some(self.finish(&error)),
            }
        }
    }

    /// Returns the next events, or none if nothing happened.
    fn read_news(&mut self) -> Result<Option<Bytes>> {
        loop {
            let news = inbox_events::news(&self.app.core, &self.user, self.position)?;
            let mut events = String::new();
            for (item, position) in news.items {
                events.push_str(&event(position, "notification", &NotificationResponse::from(item)));
            }
            if let Some(balances) = news.balances {
                events.push_str(&event(news.position, "balances", &BalancesShown::from(balances)));
            }
            self.position = news.position;
            if !events.is_empty() {
                return Ok(Some(events.into()));
            }
            // Notifications of kinds that are switched off may fill a page.
            if !news.has_more {
                return Ok(None);
            }
        }
    }

    /// Ends the stream with an event without id, so that the client continues after the last one that it has.
    fn finish(mut self, error: &Error) -> (Bytes, Self) {
        self.is_over = true;
        let event = named_event("error", &SseError::of(error, &self.meta)).into();
        (event, self)
    }
}

fn event(position: InboxPosition, name: &str, data: &impl Serialize) -> String {
    format!("id: {position}\n{}", named_event(name, data))
}
