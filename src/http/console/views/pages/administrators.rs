//! Administrators with their roles, second factor, sessions and networks; and API keys.

use maud::{Markup, html};

use crate::{
    domain::operations::admins::{Admin, keys::ApiKey, sessions::AdminSession},
    http::console::views::{
        cells::{self, Cell, Column, column},
        context::{Role, ViewContext, href},
        format::{self, Timestamp},
        forms::{self, Control, Field, Form, ProofField, field},
        layout::{self, PageBody, Place},
        lists::{self, text, time},
        parts::{self, panel},
        qr,
        texts::{self, Text, Tone},
    },
};

/// The page of administrators.
pub struct AdministratorsPage {
    pub admins: Vec<Admin>,
    pub sessions: Vec<AdminSession>,
    /// The id of the viewer's session.
    pub own: Option<String>,
    pub networks: Vec<String>,
    /// The address of the viewer, to warn before a network shuts them out.
    pub own_address: String,
    /// The proof that the form for a new administrator asks for, because a page between would not keep its password.
    pub step_up: ProofField,
}

fn roles(cx: &ViewContext) -> Vec<(&'static str, String)> {
    cx.options(&Role::ALL)
}

/// Renders the page of administrators.
pub fn administrators(cx: &ViewContext, page: &AdministratorsPage) -> Markup {
    let columns =
        [text(Text::Name), text(Text::RoleLabel), text(Text::SecondFactor), time(Text::LastUsed), text(Text::Action)];
    let body = html! {
        (layout::heading(cx.t(Text::Administrators), None, &html! {}))
        section.card aria-label=(cx.t(Text::Administrators)) {
            (lists::table(cx, Text::Administrators, &columns, page.admins.iter().map(|admin| vec![
                html! { (admin.name) },
                html! { (cx.word(&admin.role)) },
                parts::badge(if admin.has_second_factor { Tone::Good } else { Tone::Notice }, cx.t(if admin.has_second_factor { Text::On } else { Text::Off })),
                last_used_at(page, admin).map_or_else(|| parts::dash(cx), |at| cx.cell_time(at)),
                html! { div.actions { (admin_actions(cx, admin)) } },
            ])))
        }
        div.columns {
            (panel("roles", cx.t(Text::Roles), &html! { dl.facts { @for role in Role::ALL { div { dt { (cx.word(&role)) } dd { (cx.t(role_detail(role))) } } } } }))
            (panel("new", cx.t(Text::NewAdministrator), &new_admin(cx, page)))
        }
        (sessions(cx, page))
        (panel("networks", cx.t(Text::Networks), &networks(cx, page)))
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Administrators), Place::Administrators, body))
}

const fn role_detail(role: Role) -> Text {
    match role {
        Role::Owner => Text::RoleOwnerDetail,
        Role::Support => Text::RoleSupportDetail,
        Role::Moderator => Text::RoleModeratorDetail,
        Role::ReadOnly => Text::RoleReadOnlyDetail,
    }
}

fn admin_actions(cx: &ViewContext, admin: &Admin) -> Markup {
    let base = href(&format!("administrators/{}", format::encode(&admin.name)));
    let form = |action: &str| Form::new(cx, format!("{action}-{}", admin.name), format!("{base}/{action}"));
    let (role, remove) = (form("role"), form("remove"));
    let choice = Field::new("role", Text::RoleLabel, Control::Select(roles(cx)), admin.role.name()).required();
    html! {
        (role.act(cx.t(Text::ChangeRole), "small", &html! { (role.field(choice)) (role.reason()) }))
        @if admin.has_second_factor {
            @let totp = form("totp/remove");
            (totp.danger(cx.t(Text::RemoveTotp), "small", &totp.reason()))
        } @else { (forms::button(cx, &format!("{base}/totp"), cx.t(Text::SetUpTotp), "small")) }
        (remove.danger(cx.t(Text::RemoveAdministrator), "small", &remove.reason()))
    }
}

fn new_admin(cx: &ViewContext, page: &AdministratorsPage) -> Markup {
    let form = Form::new(cx, "new", href("administrators"));
    let password = Field::new("newPassword", Text::NewPassword, Control::Password, "").required();
    let fields = html! {
        (form.field(Field::new("name", Text::Name, Control::Text, "").required()))
        (form.field(Field::new("role", Text::RoleLabel, Control::Select(roles(cx)), "support").required()))
        (form.field(password.autocomplete("new-password").hint(Text::PasswordHint)))
        (forms::step_up(cx, "new-admin", &page.step_up))
    };
    form.render(cx.t(Text::NewAdministrator), &fields)
}

/// Returns the last use of any session of an administrator.
fn last_used_at(page: &AdministratorsPage, admin: &Admin) -> Option<Timestamp> {
    page.sessions.iter().filter(|session| session.admin == admin.name).map(|session| session.last_used_at).max()
}

fn sessions(cx: &ViewContext, page: &AdministratorsPage) -> Markup {
    let columns =
        [text(Text::Name), time(Text::SignedIn), time(Text::LastUsed), time(Text::Expires), text(Text::Action)];
    panel(
        "sessions",
        cx.t(Text::Sessions),
        &html! {
            @if page.sessions.is_empty() { p.empty { (cx.t(Text::Nothing)) } } @else {
                (lists::table(cx, Text::Sessions, &columns, page.sessions.iter().map(|session| vec![
                    html! { (session.admin) @if page.own.as_ref() == Some(&session.id) { " " (parts::badge(Tone::Neutral, cx.t(Text::ThisSession))) } },
                    cx.cell_time(session.created_at),
                    cx.cell_time(session.last_used_at),
                    cx.cell_time(session.expires_at),
                    forms::button(cx, &href(&format!("administrators/sessions/{}/end", session.id)), cx.t(Text::EndSession), "small"),
                ])))
            }
        },
    )
}

fn networks(cx: &ViewContext, page: &AdministratorsPage) -> Markup {
    let form = Form::new(cx, "allow", href("administrators/networks"));
    let network = Field::new("network", Text::Network, Control::Text, "").required().hint(Text::NetworkHint);
    html! {
        p { (cx.t(Text::NetworksLead)) " " (texts::your_address(cx.language, &page.own_address)) }
        @if page.networks.is_empty() { p.empty { (cx.t(Text::FromEverywhere)) } } @else {
            ul.tags { @for network in &page.networks {
                li { code { (network) } (forms::post(cx, &href("administrators/networks/remove"), &html! {
                    input type="hidden" name="network" value=(network);
                    button.icon type="submit" aria-label=(texts::remove_label(cx.language, network)) { (parts::icon(parts::Icon::Close)) }
                })) }
            } }
        }
        (form.render(cx.t(Text::AllowNetwork), &form.field(network)))
        p.hint { (cx.t(Text::NetworkRescue)) " " code { "yarrow admin networks clear" } }
    }
}

/// The enrolment of an authenticator.
#[derive(Clone, Debug)]
pub struct EnrolmentPage {
    pub name: String,
    /// The `otpauth://` address.
    pub uri: String,
    pub secret: String,
    pub error: Option<String>,
}

/// Renders the enrolment of an authenticator.
pub fn totp(cx: &ViewContext, page: &EnrolmentPage) -> Markup {
    let code =
        Field::new("totp", Text::AuthenticatorCode, Control::Digits, "").required().autocomplete("one-time-code");
    let action = href(&format!("administrators/{}/totp/confirm", format::encode(&page.name)));
    let body = html! {
        div.narrow {
            (layout::heading(cx.t(Text::SetUpTotp), Some(&page.name), &html! {}))
            section.card.enrol aria-label=(cx.t(Text::SetUpTotp)) {
                ol.numbered {
                    li { p { (cx.t(Text::ScanCode)) } (qr::code(&page.uri, cx.t(Text::QrCode))) p.hint { (cx.t(Text::OrTypeSecret)) } p { (parts::copyable(cx, &page.secret)) } }
                    li {
                        p { (cx.t(Text::TypeCode)) }
                        form method="post" action=(action) {
                            input type="hidden" name="csrf" value=(cx.csrf);
                            input type="hidden" name="once" value=(cx.once);
                            (field(cx, &code.max_length(6).error(page.error.as_deref())))
                            div.actions { button.button.primary type="submit" { (cx.t(Text::Confirm)) } a.button href=(href("administrators")) { (cx.t(Text::Cancel)) } }
                        }
                    }
                }
                p.hint { (cx.t(Text::TotpEndsSessions)) }
            }
        }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::SetUpTotp), Place::Administrators, body))
}

/// Returns the state of a key.
fn state_of(key: &ApiKey, now: Timestamp) -> &'static str {
    match key {
        ApiKey { revoked_at: Some(_), .. } => "revoked",
        ApiKey { expires_at: Some(at), .. } if *at <= now => "expired",
        ApiKey { suspended_at: Some(_), .. } => "suspended",
        _ => "active",
    }
}

/// The columns of an API key.
const KEY: &[Column<ApiKey>] = &[
    column(text(Text::Label), |key| Cell::text(&key.label)),
    column(text(Text::RoleLabel), |key| Cell::word(key.role)),
    column(text(Text::State), |key| {
        let key = key.clone();
        Cell::html(move |cx| parts::state(cx, state_of(&key, cx.now)))
    }),
    column(time(Text::Created), |key| Cell::Time(key.created_at)),
    column(time(Text::LastUsed), |key| Cell::optional(key.last_used_at, Cell::Time)),
    column(time(Text::Expires), |key| Cell::optional(key.expires_at, Cell::Time)),
    column(text(Text::Action), |key| {
        Cell::optional(key.revoked_at.is_none().then(|| key.clone()), |key| {
            Cell::html(move |cx| html! { div.actions { (key_actions(cx, &key)) } })
        })
    }),
];

/// Renders the page of API keys, with the label and the key once after its creation.
pub fn keys(cx: &ViewContext, keys: &[ApiKey], created: Option<&(String, String)>) -> Markup {
    let form = Form::new(cx, "new", href("keys"));
    let body = html! {
        (layout::heading(cx.t(Text::ApiKeys), Some(cx.t(Text::KeysLead)), &html! {}))
        @if let Some((label, key)) = created {
            section.note.good role="status" { p { strong { (label) } " " (cx.t(Text::KeyShownOnce)) } p { (parts::copyable(cx, key)) } }
        }
        section.card aria-label=(cx.t(Text::ApiKeys)) {
            (cells::table_or(cx, Text::NoKeys, Text::ApiKeys, KEY, keys))
        }
        (panel("new", cx.t(Text::NewKey), &form.render(cx.t(Text::NewKey), &html! {
            div.form-grid {
                (form.field(Field::new("label", Text::Label, Control::Text, "").required()))
                (form.field(Field::new("role", Text::RoleLabel, Control::Select(roles(cx)), "read-only").required()))
                (form.field(Field::new("expiresAt", Text::Expires, Control::Date, "")))
            }
        })))
    };
    layout::page(cx, &PageBody::new(cx.t(Text::ApiKeys), Place::Keys, body))
}

fn key_actions(cx: &ViewContext, key: &ApiKey) -> Markup {
    let form = |act: &str| {
        Form::new(cx, format!("{act}-{}", key.label), href(&format!("keys/{act}"))).hidden("label", &key.label)
    };
    let (is_suspended, label) =
        if key.suspended_at.is_some() { ("false", Text::ResumeKey) } else { ("true", Text::SuspendKey) };
    let (change, revoke) = (form("change").hidden("isSuspended", is_suspended), form("revoke"));
    html! {
        (change.act(cx.t(label), "small", &change.reason()))
        (revoke.danger(cx.t(Text::RevokeKey), "small", &revoke.reason()))
    }
}
