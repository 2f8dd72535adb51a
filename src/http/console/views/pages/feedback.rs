//! Feedback: texts of users with state, assignee and reply.

use maud::{Markup, html};

use crate::{
    domain::{
        identity::users::listing::mask_address,
        messaging::feedback::{Feedback, FeedbackState, FeedbackThread},
    },
    http::console::views::{
        cells::{Cell, Column, column},
        context::{Right, ViewContext, href},
        format::{ShownCount, with_query},
        forms::{self, Control, Field, Form, field},
        layout::{self, PageBody, Place},
        lists::{self, Bulk, number, text, time},
        parts,
        texts::{self, Text},
    },
};

/// The list of feedback.
#[derive(Clone, Debug, Default)]
pub struct FeedbackPage {
    /// A state, or empty for all.
    pub state: String,
    /// True for the texts that are assigned to the viewer.
    pub is_mine: bool,
    /// The texts, each with the nickname of its author.
    pub items: Vec<(FeedbackThread, String)>,
    pub total: ShownCount,
    pub next: Option<String>,
    pub assignees: Vec<String>,
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
            ul.queue { @for (thread, nickname) in &page.items { li.card id={ "f" (thread.feedback.id) } { (one(cx, page, thread, nickname)) } } }
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

fn one(cx: &ViewContext, page: &FeedbackPage, thread: &FeedbackThread, nickname: &str) -> Markup {
    let FeedbackThread { feedback, replies } = thread;
    html! {
        header.card-head {
            h2.small {
                @if cx.may(Right::SupportUsers) { (lists::pick_box(cx, &feedback.id.to_string())) }
                @match &feedback.user { Some(user) => { (parts::user_link(cx, &user.to_string())) " " (nickname) }, None => (cx.t(Text::WithoutAccount)) }
                @if let Some(phone) = &feedback.phone_number { " " span.hint { (mask_address(phone)) " · " (cx.t(if feedback.is_verified { Text::Verified } else { Text::NotVerified })) } }
            }
            span { (parts::state(cx, &feedback.state)) }
        }
        p.message { (feedback.content) }
        p.hint { (cx.time(feedback.created_at)) " · " (cx.t(Text::Assignee)) ": " (parts::or_dash(cx, feedback.assignee.as_deref())) }
        @for reply in replies { blockquote.reply { p { (reply.content) } p.hint { (reply.author) " · " (cx.time(reply.created_at)) } } }
        @if cx.may(Right::SupportUsers) { div.actions {
            @if feedback.is_verified { (reply_form(cx, feedback)) }
            (state_form(cx, page, feedback))
        } }
    }
}

/// Returns the form of an act on a text.
fn act_form<'view>(cx: &'view ViewContext, act: &str, feedback: &Feedback) -> Form<'view> {
    Form::new(cx, format!("{act}-{}", feedback.id), href(&format!("feedback/{act}")))
        .hidden("id", feedback.id.to_string())
}

fn reply_form(cx: &ViewContext, feedback: &Feedback) -> Markup {
    let form = act_form(cx, "reply", feedback);
    let text = Field::new("text", Text::ReplyText, Control::Area, "").required().hint(Text::ReplyHint).max_length(1000);
    let buttons = html! {
        button.button.primary type="submit" { (cx.t(Text::SendReply)) }
        button.button type="submit" name="state" value=(FeedbackState::Closed.name()) { (cx.t(Text::ReplyAndClose)) }
    };
    form.act_with_button(cx.t(Text::Reply), "", &form.field(text), &buttons)
}

fn state_form(cx: &ViewContext, page: &FeedbackPage, feedback: &Feedback) -> Markup {
    let form = act_form(cx, "change", feedback);
    let mut people = vec![("", cx.t(Text::Nobody).to_owned())];
    people.extend(page.assignees.iter().map(|name| (name.as_str(), name.clone())));
    let states = Control::Select(cx.options(&FeedbackState::ALL));
    let assignee = feedback.assignee.as_deref().unwrap_or_default();
    let fields = html! {
        (form.field(Field::new("state", Text::State, states, feedback.state.name()).required()))
        (form.field(Field::new("assignee", Text::Assignee, Control::Select(people), assignee)))
    };
    let button = html! { button.button.primary type="submit" { (cx.t(Text::Save)) } };
    form.act_with_button(cx.t(Text::ChangeState), "", &fields, &button)
}
