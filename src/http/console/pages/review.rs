//! The review queue: texts that passed and wait for a moderator, with bulk decisions.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use crate::{
    app::App,
    domain::{
        identity::users,
        moderation::{
            reviews::{self, Review, ReviewState},
            violations,
        },
    },
    error::Result,
    http::{
        admin::violations::review::{self as api, ReviewResult, ReviewResults},
        console::{
            acts,
            request::{ConsoleRequest, ok},
            views::{
                format::ShownCount,
                pages::moderation::{self as view, ReviewItem, ReviewPage},
            },
        },
        endpoint::Handler,
        params::Parameters,
        reply::Json,
    },
    types::PageRequest,
};

/// Texts on a page, and decided ones below them.
const SHOWN: u32 = 50;
const DECIDED_SHOWN: u32 = 10;

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let shown = collect(&console).await?;
    ok(view::review(&console.view()?, &shown))
}

async fn collect(console: &ConsoleRequest) -> Result<ReviewPage> {
    console
        .context
        .report(|app| {
            let newest = PageRequest::of_newest(DECIDED_SHOWN);
            let waiting = reviews::list(&app.core, ReviewState::Waiting, PageRequest::of_newest(SHOWN))?;
            let mut decided = reviews::list(&app.core, ReviewState::Upheld, newest)?.items;
            decided.extend(reviews::list(&app.core, ReviewState::Acquitted, newest)?.items);
            decided.sort_by_key(|review| std::cmp::Reverse(review.decided_at));
            decided.truncate(DECIDED_SHOWN as usize);
            let total = u64::try_from(waiting.total).unwrap_or(0);
            Ok(ReviewPage {
                items: waiting.items.into_iter().map(|review| item(app, review)).collect::<Result<_>>()?,
                waiting: ShownCount::exact(total),
                decided,
                results: Vec::new(),
            })
        })
        .await
}

fn item(app: &App, review: Review) -> Result<ReviewItem> {
    let nickname = app.core.store.read(|tx| users::profile_in(tx, review.user))?.nickname;
    let earlier = violations::of_user(&app.core, review.user)?.total;
    Ok(ReviewItem { review, nickname, earlier })
}

/// Decides about the selected texts, and shows the outcome of each.
pub async fn decide(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    act(console, api::decide).await
}

/// Undoes decisions.
pub async fn undo(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    act(console, api::undo).await
}

async fn act<P: Parameters>(
    console: Arc<ConsoleRequest>,
    handler: impl Handler<P, Json<ReviewResults>>,
) -> Result<Response<Body>> {
    match acts::perform(&console, &handler).await {
        Ok(Json(results)) => {
            let outcome = |result: ReviewResult| {
                let state = result.state.map_or("", ReviewState::name);
                (result.id, result.warning.or(result.error).unwrap_or(state))
            };
            let results = results.items.into_iter().map(outcome).collect();
            ok(view::review(&console.view()?, &ReviewPage { results, ..collect(&console).await? }))
        }
        Err(error) => acts::reject(&console, error).await,
    }
}
