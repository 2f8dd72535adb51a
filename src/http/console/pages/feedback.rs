//! Feedback: the list, its states and assignees, and replies.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Response, StatusCode},
};

use super::bulk::{BulkForm, or_rejected};
use crate::{
    app::App,
    domain::{
        identity::users::{self, listing::mask_address},
        messaging::feedback::{self, FeedbackChange, FeedbackFilter, FeedbackState, FeedbackThread},
        operations::admins,
    },
    error::{Code, Result},
    http::{
        admin::feedback::name_subject,
        console::{
            csv::{self, CsvList},
            request::{ConsoleRequest, FormFields, PAGE_SIZE, message_of, ok, page},
            views::{
                context::BASE,
                format::ShownCount,
                layout::Place,
                pages::feedback::{self as view, FeedbackPage, FeedbackRow, TypedReply},
                texts::Text,
            },
        },
        reply,
    },
    types::CursorRange,
};

const PAGE: &str = "feedback";
/// The value of the assignee that means nobody, because an empty one changes nothing.
const NOBODY: &str = "-";
/// The largest total, which means "more than so many".
const COUNTED: u32 = 10_000;

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let shown = collect(&console, &console.query).await?;
    ok(view::page(&console.view()?, &shown))
}

/// Collects the list that a query asks for.
async fn collect(console: &ConsoleRequest, query: &FormFields) -> Result<FeedbackPage> {
    let (state, is_mine) = (FeedbackState::from_name(query.get("state")), query.get("mine") == "true");
    if state.is_none() && query.find("state").is_some() {
        let fault = ("state".to_owned(), console.text(Text::NotAChoice).to_owned());
        let state = query.get("state").to_owned();
        return Ok(FeedbackPage { state, is_mine, faults: vec![fault], ..FeedbackPage::default() });
    }
    let own = console.context.admin()?.name().to_owned();
    let filter = FeedbackFilter { user: None, state, assignee: is_mine.then_some(own) };
    let range = CursorRange { before: query.get("cursor").parse().ok(), limit: PAGE_SIZE };
    console
        .context
        .report(move |app| {
            let (found, total) = feedback::list_range(&app.core, &filter, range, COUNTED + 1)?;
            Ok(FeedbackPage {
                state: state.map(FeedbackState::name).unwrap_or_default().to_owned(),
                is_mine,
                items: found.items.into_iter().map(|thread| row(app, thread)).collect::<Result<_>>()?,
                total: ShownCount::up_to(COUNTED, u64::try_from(total).unwrap_or(0)),
                next: found.next.map(|id| id.to_string()),
                assignees: admins::list(&app.core)?.into_iter().map(|admin| admin.name).collect(),
                rejected: None,
                faults: Vec::new(),
            })
        })
        .await
}

fn row(app: &App, FeedbackThread { feedback, replies }: FeedbackThread) -> Result<FeedbackRow> {
    let nickname = match feedback.user.filter(|_| feedback.is_verified) {
        Some(user) => app.core.store.read(|tx| users::profile_in(tx, user))?.nickname,
        None => String::new(),
    };
    Ok(FeedbackRow {
        id: feedback.id.to_string(),
        user_id: feedback.user.map(|user| user.to_string()),
        nickname,
        phone_number: feedback.phone_number.as_deref().map(mask_address),
        is_verified: feedback.is_verified,
        text: feedback.content,
        state: feedback.state.name().to_owned(),
        assignee: feedback.assignee,
        created_at: feedback.created_at,
        replies: replies
            .into_iter()
            .map(|reply| TypedReply { at: reply.created_at, author: reply.author, text: reply.content })
            .collect(),
    })
}

pub async fn export(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let own = console.context.admin()?.name().to_owned();
    let mut faults = Vec::new();
    let state = console.choice_filter("state", FeedbackState::from_name, &mut faults);
    csv::require_valid(&faults)?;
    let filter = FeedbackFilter { user: None, state, assignee: (console.query.get("mine") == "true").then_some(own) };
    let (mut before, mut is_over) = (None, false);
    let next = move |app: &App| {
        if is_over {
            return Ok(Vec::new());
        }
        let range = CursorRange { before, limit: csv::ROWS };
        let found = feedback::list_range(&app.core, &filter, range, 0)?.0;
        (before, is_over) = (found.next, found.next.is_none());
        found.items.into_iter().map(|thread| row(app, thread)).collect()
    };
    let list =
        CsvList { page: PAGE.to_owned(), columns: view::COLUMNS.to_vec(), cells: view::cells, next: Box::new(next) };
    csv::send(console, list).await
}

/// Changes state or assignee of the picked texts.
pub async fn bulk(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    or_rejected(&console, Place::Feedback, try_bulk(&console).await)
}

async fn try_bulk(console: &ConsoleRequest) -> Result<Response<Body>> {
    let mut form = BulkForm::read(console, Place::Feedback)?;
    let change = FeedbackChange {
        state: FeedbackState::from_name(console.form.get("state")),
        assignee: console.form.find("assignee").map(|name| Some(name.to_owned()).filter(|name| name != NOBODY)),
    };
    for id in form.ids.clone() {
        let outcome = match id.parse() {
            Ok(number) => {
                let changed = feedback::change(&console.context.app.core, number, change.clone());
                console.context.committed(changed).await
            }
            Err(_) => Err(Code::NotFound.into()),
        };
        let user = outcome.as_ref().ok().and_then(|thread| thread.feedback.user);
        form.add(&id, None, user, outcome.map(|_| None)).await?;
    }
    form.finish()
}

pub async fn change(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let id = feedback_id(&console)?;
    name_subject(&console.context, id)?;
    let change = FeedbackChange {
        state: FeedbackState::from_name(console.form.get("state")),
        assignee: Some(console.form.find("assignee").map(ToOwned::to_owned)),
    };
    let changed = console.context.committed(feedback::change(&console.context.app.core, id, change)).await;
    console.finish(&back(&console), changed)
}

pub async fn reply(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let id = feedback_id(&console)?;
    name_subject(&console.context, id)?;
    let Err(error) = try_reply(&console, id).await else {
        return console.done(&back(&console), console.text(Text::ActionDone));
    };
    if matches!(error.code, Code::NotFound | Code::Internal) {
        return Err(error);
    }
    let back = back(&console);
    let query = FormFields::parse(back.split_once('?').map_or("", |(_, query)| query).as_bytes())?;
    let mut shown = collect(&console, &query).await?;
    let message = message_of(&error, console.language());
    shown.rejected = Some((id.to_string(), console.form.get("text").to_owned(), message));
    Ok(page(reply::status(error.code), view::page(&console.view()?, &shown)))
}

async fn try_reply(console: &ConsoleRequest, id: i64) -> Result<()> {
    let app = &console.context.app;
    let most = app.core.config.limits.feedback as usize;
    let text = console.required_text("text", most)?;
    let author = console.context.admin()?.actor();
    // The form's key makes a double click one reply.
    let once = console.context.once(StatusCode::OK, |thread: &FeedbackThread| thread.feedback.id)?;
    console.context.committed(feedback::reply(&app.core, id, author, text, once)).await.map(drop)
}

fn feedback_id(console: &ConsoleRequest) -> Result<i64> {
    console.query.get("id").parse().map_err(|_| Code::NotFound.into())
}

/// Returns the list that the form came from, relative to the console.
fn back(console: &ConsoleRequest) -> String {
    let relative = console.form.get("back").strip_prefix(BASE).and_then(|path| path.strip_prefix('/'));
    let list = relative.filter(|path| *path == PAGE || path.starts_with("feedback?"));
    list.unwrap_or(PAGE).to_owned()
}
