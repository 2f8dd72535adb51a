//! Rejected texts.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use super::{
    bulk::{BulkForm, or_rejected},
    user_list::suspend,
    words,
};
use crate::{
    app::App,
    domain::{
        identity::staff_acts,
        moderation::{
            acquittals::{self, Acquittal},
            engine::ContentType,
            reviews::Review,
            violations::{self, FREQUENT_DAYS, FREQUENT_THRESHOLD, ViolationQuery, ViolationRecord},
        },
        operations::admins::roles::Right,
    },
    error::{Code, Result},
    http::{
        admin::lists::StaffList,
        console::{
            request::{ConsoleRequest, ok},
            views::{
                cells::Column,
                context::{ViewContext, href},
                format::encode,
                layout::Place,
                list_page::{FilterField, Frame},
                pages::moderation::{self as view, ViolationRow},
                texts::Text,
            },
        },
        params::{TimeRange, WordType, optional_time_range, parameters},
        request_context::RequestContext,
    },
    types::{PageRequest, Paginated, UserId},
};

/// Frequent violators that the page lists.
const FREQUENT_LISTED: u32 = 10;

parameters! {
    SearchViolationsParams(fields) {
        user: Option<UserId> = fields.optional("userId", "Only texts of this user.");
        kind: Option<WordType> = fields.optional("type", "Only texts with words of this type.");
        content_type: Option<ContentType> = fields.optional("contentType", "Only texts of this use.");
        time: TimeRange = optional_time_range(fields, "Texts of this time or later.", "Texts before this time.");
    }
}

pub struct ViolationList;

impl StaffList for ViolationList {
    type Params = SearchViolationsParams;
    type Filter = ViolationQuery;
    type Row = ViolationRecord;

    const PLACE: Place = Place::Violations;
    const EMPTY: Text = Text::NoViolations;
    const COLUMNS: &'static [Column<ViolationRecord>] = view::VIOLATION;

    fn fields(_: &ViewContext) -> Vec<FilterField> {
        let [from, to] = FilterField::range(Text::From, Text::To);
        vec![
            FilterField::new("userId", Text::UserId),
            FilterField::new("type", Text::ViolationType),
            FilterField::new("contentType", Text::ContentType),
            from,
            to,
        ]
    }

    fn filter(context: &RequestContext, params: SearchViolationsParams) -> Result<ViolationQuery> {
        context.name_subject(params.user);
        Ok(ViolationQuery {
            user: params.user,
            content_type: params.content_type.map(|content_type| content_type.name().to_owned()),
            violation_type: params.kind.map(|WordType(kind)| kind),
            from: params.time.start,
            to: params.time.end,
        })
    }

    fn read(app: &App, filter: &ViolationQuery, page: PageRequest) -> Result<Paginated<ViolationRecord>> {
        violations::list(&app.core, filter, page)
    }

    fn frame(cx: &ViewContext, app: &App, _: Option<&ViolationQuery>) -> Result<Frame> {
        let newest = PageRequest::of_newest(FREQUENT_LISTED);
        let frequent = violations::frequent(&app.core, FREQUENT_DAYS, FREQUENT_THRESHOLD, newest)?.items;
        let below = view::statistics(cx, &violations::types(&app.core)?, &frequent);
        let bulk = cx.may(Right::Moderate).then(|| view::bulk(cx));
        Ok(Frame { below, bulk, ..Frame::default() })
    }

    fn pick(found: &ViolationRecord) -> Option<String> {
        Some(found.id.to_string())
    }
}

/// Resets the nicknames of the users of the picked texts, or suspends them.
pub async fn bulk(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    or_rejected(&console, Place::Violations, try_bulk(&console).await)
}

async fn try_bulk(console: &ConsoleRequest) -> Result<Response<Body>> {
    let mut form = BulkForm::read(console, Place::Violations)?;
    if !matches!(form.act, "suspend" | "reset-nickname") {
        return Err(form.unknown_act());
    }
    let core = &console.context.app.core;
    for id in form.ids.clone() {
        let found = match id.parse() {
            Ok(number) => console.context.report(move |app| violations::find(&app.core, number)).await,
            Err(_) => Err(Code::NotFound.into()),
        };
        let user = found.as_ref().ok().map(|found| found.user);
        let outcome = match (user, form.act) {
            (None, _) => found.map(|_| None),
            (Some(user), "suspend") => suspend(console, user, None).await,
            (Some(user), _) => {
                let by = console.context.authority(Some(form.reason.clone()))?;
                console.context.committed(staff_acts::reset_nickname(core, user, by)).await.map(|()| None)
            }
        };
        let page = href(&format!("moderation/violations/{}", encode(&id)));
        form.add(&id, Some(page), user, outcome).await?;
    }
    form.finish()
}

pub async fn show(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let id = console.parameter("id").parse().map_err(|_| Code::NotFound)?;
    let found = console.context.report(move |app| violations::find(&app.core, id)).await?;
    console.context.meta.subject.get_or_init(|| found.user);
    ok(view::rejected_text(&console.view()?, &row(found)))
}

fn row(found: ViolationRecord) -> ViolationRow {
    ViolationRow {
        id: found.id.to_string(),
        user_id: found.user.to_string(),
        content_type: found.content_type,
        kind: found.violation_type,
        masked_text: found.masked_text,
        matched_words: found.words,
        provider: found.provider,
        created_at: found.at,
        review: found.acquitted_at.map(|_| "wrongly_refused".to_owned()),
    }
}

/// Returns the fields that a review shares with a rejected text.
pub fn fields_of_review(review: Review) -> ViolationRow {
    ViolationRow {
        id: review.id.to_string(),
        user_id: review.user.to_string(),
        content_type: review.content_type,
        kind: review.violation_type,
        masked_text: review.masked_text,
        matched_words: review.words,
        provider: review.provider,
        created_at: review.at,
        review: None,
    }
}

/// Marks a rejected text as wrongly refused.
pub async fn acquit(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let id = console.parameter("id").parse().map_err(|_| Code::NotFound)?;
    let path = format!("moderation/violations/{id}");
    match try_acquit(&console, id).await {
        Ok(acquitted) => {
            console.context.meta.subject.get_or_init(|| acquitted.violation.user);
            console.done(&path, console.text(words::allowed_text(acquitted.warning)))
        }
        error => console.finish(&path, error),
    }
}

async fn try_acquit(console: &ConsoleRequest, id: i64) -> Result<Acquittal> {
    let by = console.context.authority(Some(console.require_reason()?))?;
    let phrase = console.form.find("phrase").map(ToOwned::to_owned);
    console.context.blocking(move |app| acquittals::acquit(&app.moderation, id, phrase.as_deref(), &by)).await
}
