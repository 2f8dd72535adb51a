//! Feedback: texts of users with state, assignee and reply.

use maud::{Markup, html};

use crate::{
    domain::{
        identity::users::listing::mask_address,
        messaging::feedback::{FeedbackState, FeedbackThread},
    },
    http::console::views::{
        cells::{Cell, Column, column},
        context::{Right, ViewContext, href},
        format::{ShownCount, Timestamp, with_query},
        forms::{self, Control, Field, field},
        layout::{self, PageBody, Place},
        lists::{self, Bulk, number, text, time},
        parts,
        texts::{self, Text},
    },
};

/// A reply that was sent to the user as a notification.
#[derive(Clone, Debug)]
pub struct TypedReply {
    pub at: Timestamp,
    pub author: String,
    pub text: String,
}

/// A text of a user.
#[derive(Clone, Debug)]
pub struct FeedbackRow {
    pub id: String,
    pub user_id: Option<String>,
    pub nickname: String,
    /// The masked phone number.
    pub phone_number: Option<String>,
    pub is_verified: bool,
    pub text: String,
    pub state: FeedbackState,
    pub assignee: Option<String>,
    pub created_at: Timestamp,
    pub replies: Vec<TypedReply>,
}

/// The list of feedback.
#[derive(Clone, Debug, Default)]
pub struct FeedbackPage {
    /// A state, or empty for all.
    pub state: String,
    /// True for the texts that are assigned to the viewer.
    pub is_mine: bool,
    pub items: Vec<FeedbackRow>,
    pub total: ShownCount,
    pub next: Option<String>,
    pub assignees: Vec<String>,
    /// A reply that was rejected: id of the feedback, typed text, message.
    pub rejected: Option<(String, String, String)>,
    /// The faults of the filter. Nothing is listed then.
    pub faults: Vec<(String, String)>,
}

/// Renders the list of feedback.
pub fn page(cx: &ViewContext, page: &FeedbackPage) -> Markup {
    let of = |state: &str| with_query(&href("feedback"), &[("state", state)]);
    let tab = |text, state: &str| (cx.t(text).to_owned(), of(state), page.state == state && !page.is_mine);
    let mine = with_query(&href("feedback"), &[("mine", "true")]);
    let address = with_query(&of(&page.state), &[("mine", if page.is_mine { "true" } else { "" })]);
    let tabs = [
        tab(Text::StateOpen, "open"),
        tab(Text::StateInProgress, "in_progress"),
        tab(Text::StateClosed, "closed"),
        tab(Text::All, ""),
        (cx.t(Text::Mine).to_owned(), mine, page.is_mine),
    ];
    let body = html! {
        (layout::heading(cx.t(Text::Feedback), None, &html! {}))
        (lists::tabs(cx, Text::State, &tabs))
        div.list-region id="feedback" {
            @if !page.faults.is_empty() { (lists::rejected_filter(cx, &page.faults)) }
            @else { div.list-head {
                p.total.sr[page.items.is_empty()] { (texts::rows(cx.language, &page.total.text())) }
                @if !page.items.is_empty() { (lists::export(cx, "feedback", &with_query(&href("feedback/export"), &[("state", &page.state), ("mine", if page.is_mine { "true" } else { "" })]))) }
            } }
            @if page.items.is_empty() && page.faults.is_empty() { section.card { p.empty { (cx.t(Text::NoFeedback)) } } }
            ul.queue { @for item in &page.items { li.card id={ "f" (item.id) } { (one(cx, page, item)) } } }
            @if !page.items.is_empty() { (bulk(cx, page)) }
            @if let Some(next) = &page.next { nav.pager aria-label=(cx.t(Text::Pages)) { a.button rel="next" href=(with_query(&address, &[("cursor", next)])) { (cx.t(Text::NextPage)) } } }
        }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Feedback), Place::Feedback, body))
}

/// Renders the form for the picked texts.
fn bulk(cx: &ViewContext, page: &FeedbackPage) -> Markup {
    if !cx.may(Right::SupportUsers) {
        return html! {};
    }
    let mut states = vec![("", cx.t(Text::Unchanged).to_owned())];
    states.extend(cx.options(&FeedbackState::ALL));
    let mut people = vec![("", cx.t(Text::Unchanged).to_owned()), ("-", cx.t(Text::Nobody).to_owned())];
    people.extend(page.assignees.iter().map(|name| (name.as_str(), name.clone())));
    let controls = html! {
        (field(cx, &Field::new("state", Text::State, Control::Select(states), "").id("bulk-state")))
        (field(cx, &Field::new("assignee", Text::Assignee, Control::Select(people), "").id("bulk-assignee")))
        (forms::reason(cx, "bulk", "", None))
        button.button.primary type="submit" { (cx.t(Text::Save)) }
    };
    lists::bulk_form(cx, &Bulk { action: href("feedback/bulk"), controls })
}

/// The columns of the CSV export.
pub const COLUMNS: &[Column<FeedbackThread>] = &[
    column(text(Text::Id), |thread| Cell::text(thread.feedback.id.to_string())),
    column(time(Text::Time), |thread| Cell::Time(thread.feedback.created_at)),
    column(text(Text::State), |thread| Cell::state(thread.feedback.state)),
    column(text(Text::Assignee), |thread| Cell::optional(thread.feedback.assignee.as_ref(), Cell::text)),
    column(text(Text::User), |thread| Cell::optional(thread.feedback.user, Cell::User)),
    column(text(Text::PhoneNumber), |thread| {
        Cell::optional(thread.feedback.phone_number.as_deref().map(mask_address), Cell::text)
    }),
    column(text(Text::Feedback), |thread| Cell::text(&thread.feedback.content)),
    column(number(Text::Replies), |thread| Cell::Number(thread.replies.len().cast_signed() as i64)),
];

fn one(cx: &ViewContext, page: &FeedbackPage, item: &FeedbackRow) -> Markup {
    html! {
        header.card-head {
            h2.small {
                @if cx.may(Right::SupportUsers) { (lists::pick_box(cx, &item.id)) }
                @match &item.user_id { Some(user) => { (parts::user_link(cx, user)) " " (item.nickname) }, None => (cx.t(Text::WithoutAccount)) }
                @if let Some(phone) = &item.phone_number { " " span.hint { (phone) " · " (cx.t(if item.is_verified { Text::Verified } else { Text::NotVerified })) } }
            }
            span { (parts::state(cx, &item.state)) }
        }
        p.message { (item.text) }
        p.hint { (cx.time(item.created_at)) " · " (cx.t(Text::Assignee)) ": " (parts::or_dash(cx, item.assignee.as_deref())) }
        @for reply in &item.replies { blockquote.reply { p { (reply.text) } p.hint { (reply.author) " · " (cx.time(reply.at)) } } }
        @if cx.may(Right::SupportUsers) { div.actions {
            @if item.is_verified { (parts::action_with(cx.t(Text::Reply), "", page.rejected.as_ref().is_some_and(|(id, ..)| *id == item.id), &reply_form(cx, page, item))) }
            (parts::action(cx.t(Text::ChangeState), "", &state_form(cx, page, item)))
        } }
    }
}

fn reply_form(cx: &ViewContext, page: &FeedbackPage, item: &FeedbackRow) -> Markup {
    let rejected = page.rejected.as_ref().filter(|(id, ..)| *id == item.id);
    let typed = rejected.map_or("", |(_, typed, _)| typed.as_str());
    let id = format!("reply-{}", item.id);
    forms::post(
        cx,
        &with_query(&href("feedback/reply"), &[("id", &item.id)]),
        &html! {
            input type="hidden" name="back" value=(cx.path);
            (forms::rejected(cx, rejected.map(|(.., error)| error.as_str())))
            (field(cx, &Field::new("text", Text::ReplyText, Control::Area, typed).id(&id).required().hint(Text::ReplyHint).max_length(1000).error(rejected.map(|(.., error)| error.as_str()))))
            button.button.primary type="submit" { (cx.t(Text::SendReply)) }
        },
    )
}

fn state_form(cx: &ViewContext, page: &FeedbackPage, item: &FeedbackRow) -> Markup {
    let mut people = vec![("", cx.t(Text::Nobody).to_owned())];
    people.extend(page.assignees.iter().map(|name| (name.as_str(), name.clone())));
    let (state_id, assignee_id) = (format!("state-{}", item.id), format!("assignee-{}", item.id));
    forms::post(
        cx,
        &with_query(&href("feedback/change"), &[("id", &item.id)]),
        &html! {
            input type="hidden" name="back" value=(cx.path);
            (field(cx, &Field::new("state", Text::State, Control::Select(cx.options(&FeedbackState::ALL)), item.state.name()).id(&state_id).required()))
            (field(cx, &Field::new("assignee", Text::Assignee, Control::Select(people), item.assignee.as_deref().unwrap_or("")).id(&assignee_id)))
            button.button.primary type="submit" { (cx.t(Text::Save)) }
        },
    )
}
