//! The columns of the list of users, and what the staff may do with several.

use maud::html;

use crate::{
    domain::identity::directory::{ListedUser, UserState},
    http::console::views::{
        cells::{Cell, Column, column},
        context::{Right, ViewContext, href},
        forms::{self, Control, Field, field},
        lists::{Bulk, number, text, time},
        texts::Text,
    },
};

pub const USER: &[Column<ListedUser>] = &[
    column(text(Text::User), |user| Cell::User(user.id)),
    column(text(Text::Nickname), |user| Cell::text(&user.nickname)),
    column(text(Text::State), |user| match user.state {
        UserState::Active if user.has_suspended_account => Cell::state("account_suspended"),
        state => Cell::state(state),
    }),
    column(text(Text::PhoneNumber), |user| Cell::optional(user.phone_number.as_ref(), Cell::text)),
    column(text(Text::Email), |user| Cell::optional(user.email.as_ref(), Cell::text)),
    column(number(Text::Coins), |user| Cell::Number(user.coins)),
    column(number(Text::Points), |user| Cell::Number(user.points)),
    column(time(Text::Registered), |user| Cell::Time(user.created_at)),
];

/// Returns what the viewer may do with several users.
pub fn bulk(cx: &ViewContext) -> Option<Bulk> {
    let (may_suspend, may_sign_out) = (cx.may(Right::Moderate), cx.may(Right::SupportUsers));
    (may_suspend || may_sign_out).then(|| Bulk {
        action: href("users/bulk"),
        controls: html! {
            (forms::reason(cx, "bulk", "", None))
            @if may_suspend { (field(cx, &Field::new("endsAt", Text::SuspendUntil, Control::Moment, "").hint(Text::SuspendUntilHint))) }
            div.actions {
                @if may_suspend { button.button.danger type="submit" name="act" value="suspend" { (cx.t(Text::SuspendUser)) } }
                @if may_sign_out { button.button type="submit" name="act" value="end-devices" { (cx.t(Text::EndAllDevices)) } }
            }
        },
    })
}
