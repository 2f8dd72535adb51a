//! The review queue: texts that passed and wait for a moderator, with bulk decisions.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Response, StatusCode},
};

use super::moderation::fields_of_review;
use crate::{
    app::App,
    domain::{
        identity::users,
        moderation::{
            acquittals,
            engine::MatchWay,
            phrase_warning::PhraseWarning,
            reviews::{self, BulkDecision, MAX_DECISIONS, Review, ReviewDecision, ReviewOutcome, ReviewState},
            violations,
        },
    },
    error::{Code, Error, Fault, FieldCode, Result, Sentence},
    http::{
        console::{
            request::{ConsoleRequest, message_of, ok, page},
            views::{
                format::ShownCount,
                pages::moderation::{self as view, DecidedRow, ReviewItem, ReviewPage},
                texts::Text,
            },
        },
        reply,
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
                decided: decided.into_iter().map(decided_row).collect(),
                results: Vec::new(),
                reason: String::new(),
                reason_error: None,
                phrase: String::new(),
                phrase_error: None,
                rejected: None,
            })
        })
        .await
}

fn item(app: &App, review: Review) -> Result<ReviewItem> {
    let nickname = app.core.store.read(|tx| users::profile_in(tx, review.user))?.nickname;
    let earlier = violations::of_user(&app.core, review.user)?.total;
    let ways = review.ways.iter().filter_map(|way| MatchWay::from_name(way)).collect();
    let text = review.excerpt.clone();
    Ok(ReviewItem { violation: fields_of_review(review), text, ways, nickname, earlier })
}

fn decided_row(review: Review) -> DecidedRow {
    DecidedRow {
        id: review.id.to_string(),
        text: if review.excerpt.is_empty() { review.masked_text } else { review.excerpt },
        state: review.state,
        by: review.decided_by.unwrap_or_default(),
        at: review.decided_at.unwrap_or(review.at),
    }
}

/// Decides about the selected texts, and shows the outcome of each.
pub async fn decide(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    match try_decide(&console).await {
        Ok(outcomes) => show_results(&console, outcomes).await,
        Err(error) if error.code == Code::Internal => Err(error),
        Err(error) => {
            let mut shown = collect(&console).await?;
            console.form.get("reason").clone_into(&mut shown.reason);
            console.form.get("phrase").clone_into(&mut shown.phrase);
            shown.reason_error = console.fault_of(&error, "reason");
            shown.phrase_error = console.fault_of(&error, "phrase");
            let is_named = shown.reason_error.is_some() || shown.phrase_error.is_some();
            shown.rejected = (!is_named)
                .then(|| console.fault_of(&error, "ids").unwrap_or_else(|| message_of(&error, console.language())));
            Ok(page(reply::status(error.code), view::review(&console.view()?, &shown)))
        }
    }
}

async fn try_decide(console: &ConsoleRequest) -> Result<Vec<ReviewOutcome>> {
    let ids = selected(console)?;
    let decision = ReviewDecision::from_name(console.form.get("decision")).ok_or(Code::InvalidRequest)?;
    let by = console.context.authority(Some(console.require_reason()?))?;
    let app = &console.context.app;
    let has_phrase = decision == ReviewDecision::Acquit && console.form.find("phrase").is_some();
    let phrase =
        if has_phrase { Some(console.required_text("phrase", app.core.config.limits.word as usize)?) } else { None };
    let bulk = BulkDecision { ids, decision, phrase };
    let outcomes = console.context.committed(reviews::decide(&app.core, bulk, by)).await?;
    if has_phrase {
        return console.context.blocking(move |app| acquittals::apply_phrase(&app.moderation, outcomes)).await;
    }
    Ok(outcomes)
}

/// Undoes decisions.
pub async fn undo(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let ids = selected(&console)?;
    let outcomes = console.context.committed(reviews::undo(&console.context.app.core, ids)).await?;
    show_results(&console, outcomes).await
}

fn selected(console: &ConsoleRequest) -> Result<Vec<i64>> {
    let ids: Vec<_> = console.form.all("id").filter_map(|id| id.parse().ok()).take(MAX_DECISIONS).collect();
    if ids.is_empty() {
        return Err(Error::field(
            "ids",
            Fault::new(FieldCode::Required, Sentence::for_reader(console.text(Text::SelectTexts))),
        ));
    }
    Ok(ids)
}

async fn show_results(console: &ConsoleRequest, outcomes: Vec<ReviewOutcome>) -> Result<Response<Body>> {
    let mut shown = collect(console).await?;
    let name = |outcome: &ReviewOutcome| outcome.warning.map_or_else(|| outcome.name(), PhraseWarning::name);
    shown.results = outcomes.iter().map(|outcome| (outcome.id.to_string(), name(outcome).to_owned())).collect();
    Ok(page(StatusCode::OK, view::review(&console.view()?, &shown)))
}
