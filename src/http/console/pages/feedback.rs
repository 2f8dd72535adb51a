//! Feedback: the list, its states and assignees, and replies.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Response, StatusCode},
};

use super::{
    bulk::{BulkForm, or_rejected},
    lists,
};
use crate::{
    app::App,
    domain::{
        identity::users::{self, listing::mask_address},
        messaging::feedback::{self, FeedbackChange, FeedbackFilter, FeedbackState, FeedbackThread},
        operations::admins,
    },
    error::{Code, Result},
    http::{
        admin::{feedback::name_subject, lists::StaffList},
        console::{
            request::{ConsoleRequest, FormFields, PAGE_SIZE, message_of, ok, page},
            views::{
                cells::Column,
                context::BASE,
                format::ShownCount,
                layout::Place,
                lists::Rows,
                pages::feedback::{self as view, FeedbackPage, FeedbackRow, TypedReply},
                texts::Text,
            },
        },
        params::{Flag, parameters},
        reply,
        request_context::RequestContext,
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

parameters! {
    SearchFeedbackParams(fields) {
        state: Option<FeedbackState> = fields.optional("state", "Only feedback in this state.");
        mine: Option<Flag> = fields.optional("mine", "Only feedback of the caller.");
    }
}

/// The list behind the page, which shows it as a queue, and its CSV file.
pub struct FeedbackList;

impl StaffList for FeedbackList {
    type Params = SearchFeedbackParams;
    type Filter = FeedbackFilter;
    type Row = FeedbackThread;

    const PLACE: Place = Place::Feedback;
    const EMPTY: Text = Text::NoFeedback;
    const COLUMNS: &'static [Column<FeedbackThread>] = view::COLUMNS;

    fn filter(context: &RequestContext, params: SearchFeedbackParams) -> Result<FeedbackFilter> {
        let own = context.admin()?.name().to_owned();
        let assignee = params.mine.is_some_and(|Flag(is_mine)| is_mine).then_some(own);
        Ok(FeedbackFilter { user: None, state: params.state, assignee })
    }

    fn rows(app: &App, filter: &FeedbackFilter, cursor: Option<&str>, size: u32) -> Result<Rows<FeedbackThread>> {
        let range = CursorRange { before: cursor.and_then(|cursor| cursor.parse().ok()), limit: size };
        let (found, total) = feedback::list_range(&app.core, filter, range, COUNTED + 1)?;
        let total = Some(ShownCount::up_to(COUNTED, u64::try_from(total).unwrap_or(0)));
        Ok(Rows { items: found.items, total, next: found.next.map(|id| id.to_string()), is_later: cursor.is_some() })
    }
}

/// Collects the list that a query asks for.
async fn collect(console: &ConsoleRequest, query: &FormFields) -> Result<FeedbackPage> {
    let (state, is_mine) = (query.get("state").to_owned(), query.get("mine") == "true");
    let filter = match lists::filter::<FeedbackList>(console, query) {
        Err(error) if error.code == Code::InvalidParameters => {
            return Ok(FeedbackPage { state, is_mine, faults: console.faults_of(&error), ..FeedbackPage::default() });
        }
        filter => filter?,
    };
    let cursor = query.find("cursor").map(ToOwned::to_owned);
    console
        .context
        .report(move |app| {
            let found = FeedbackList::rows(app, &filter, cursor.as_deref(), PAGE_SIZE)?;
            Ok(FeedbackPage {
                state,
                is_mine,
                items: found.items.into_iter().map(|thread| row(app, thread)).collect::<Result<_>>()?,
                total: found.total.unwrap_or_default(),
                next: found.next,
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
        state: feedback.state,
        assignee: feedback.assignee,
        created_at: feedback.created_at,
        replies: replies
            .into_iter()
            .map(|reply| TypedReply { at: reply.created_at, author: reply.author, text: reply.content })
            .collect(),
    })
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
