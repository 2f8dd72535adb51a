//! Feedback: the list, its states and assignees, and replies.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use super::{
    bulk::{BulkForm, or_rejected},
    lists,
};
use crate::{
    app::App,
    domain::{
        identity::users,
        messaging::feedback::{self, FeedbackChange, FeedbackFilter, FeedbackState, FeedbackThread},
        operations::admins,
    },
    error::{Code, Result},
    http::{
        admin::lists::StaffList,
        console::{
            request::{ConsoleRequest, PAGE_SIZE, ok},
            views::{
                cells::Column,
                format::ShownCount,
                layout::Place,
                lists::Rows,
                pages::feedback::{self as view, FeedbackPage},
                texts::Text,
            },
        },
        params::{Flag, parameters},
        request_context::RequestContext,
    },
    types::CursorRange,
};

/// The value of the assignee that means nobody, because an empty one changes nothing.
const NOBODY: &str = "-";
/// The largest total, which means "more than so many".
const COUNTED: u32 = 10_000;

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let shown = collect(&console).await?;
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

/// Collects the list that the address asks for.
async fn collect(console: &ConsoleRequest) -> Result<FeedbackPage> {
    let query = &console.query;
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
                items: found.items.into_iter().map(|thread| with_nickname(app, thread)).collect::<Result<_>>()?,
                total: found.total.unwrap_or_default(),
                next: found.next,
                assignees: admins::list(&app.core)?.into_iter().map(|admin| admin.name).collect(),
                faults: Vec::new(),
            })
        })
        .await
}

/// Adds the nickname of the author, if it is certain who that is.
fn with_nickname(app: &App, thread: FeedbackThread) -> Result<(FeedbackThread, String)> {
    let nickname = match thread.feedback.user.filter(|_| thread.feedback.is_verified) {
        Some(user) => app.core.store.read(|tx| users::profile_in(tx, user))?.nickname,
        None => String::new(),
    };
    Ok((thread, nickname))
}

/// Changes state or assignee of the picked texts.
pub async fn bulk(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    or_rejected(&console, try_bulk(&console).await).await
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
