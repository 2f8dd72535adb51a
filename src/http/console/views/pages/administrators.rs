//! Administrators with their roles, second factor, sessions and networks; and API keys.

use maud::{Markup, html};

use crate::http::console::views::{
    context::{Role, ViewContext, href},
    format::{self, Timestamp},
    forms::{self, Control, Field, ProofField, field},
    layout::{self, PageBody, Place},
    lists::{self, text, time},
    parts::{self, panel},
    qr,
    texts::{self, Text, Tone},
};

#[derive(Clone, Debug)]
pub struct AdminRow {
    pub name: String,
    pub role: Role,
    pub has_second_factor: bool,
    pub created_at: Timestamp,
    pub last_used_at: Option<Timestamp>,
}

#[derive(Clone, Debug)]
pub struct SessionRow {
    pub id: String,
    pub admin: String,
    pub created_at: Timestamp,
    pub last_used_at: Timestamp,
    pub expires_at: Timestamp,
    pub is_own: bool,
}

/// The page of administrators.
#[derive(Clone, Debug)]
pub struct AdministratorsPage {
    pub admins: Vec<AdminRow>,
    pub sessions: Vec<SessionRow>,
    pub networks: Vec<String>,
    /// The address of the viewer, to warn before a network shuts them out.
    pub own_address: String,
    pub typed_name: String,
    pub name_error: Option<String>,
    pub password_error: Option<String>,
    pub network_error: Option<String>,
    pub typed_network: String,
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
                admin.last_used_at.map_or_else(|| parts::dash(cx), |at| cx.cell_time(at)),
                html! { div.actions { (admin_actions(cx, page, admin)) } },
            ])))
        }
        div.columns {
            (panel("roles", cx.t(Text::Roles), &html! { dl.facts { @for role in Role::ALL { div { dt { (cx.word(&role)) } dd { (cx.t(role_detail(role))) } } } } }))
            (panel("new", cx.t(Text::NewAdministrator), &new_admin(cx, page)))
        }
        (sessions(cx, &page.sessions, &page.step_up))
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

fn admin_actions(cx: &ViewContext, page: &AdministratorsPage, admin: &AdminRow) -> Markup {
    let base = href(&format!("administrators/{}", format::encode(&admin.name)));
    let prefix = format!("admin-{}", admin.name);
    let role_id = format!("{prefix}-role");
    let form = |action: &str, id: &str, label: Text, before: &Markup, class: &str| {
        forms::post(
            cx,
            &format!("{base}/{action}"),
            &html! {
                (before)
                (forms::reason(cx, id, "", None))
                (forms::step_up(cx, id, &page.step_up))
                button.button.(class) type="submit" { (cx.t(label)) }
            },
        )
    };
    let role = field(
        cx,
        &Field::new("role", Text::RoleLabel, Control::Select(roles(cx)), admin.role.name()).id(&role_id).required(),
    );
    let (totp, totp_label) =
        if admin.has_second_factor { ("totp/remove", Text::RemoveTotp) } else { ("totp", Text::SetUpTotp) };
    html! {
        (parts::action(cx.t(Text::ChangeRole), "small", &form("role", &format!("{prefix}-r"), Text::ChangeRole, &role, "primary")))
        @if admin.has_second_factor { (parts::action(cx.t(totp_label), "small", &form(totp, &format!("{prefix}-t"), totp_label, &html! {}, "danger"))) }
        @else { (forms::proved_button(cx, &format!("{base}/{totp}"), cx.t(totp_label), &format!("{prefix}-t"), &page.step_up)) }
        (parts::action(cx.t(Text::RemoveAdministrator), "small", &form("remove", &format!("{prefix}-x"), Text::RemoveAdministrator, &html! {}, "danger")))
    }
}

fn new_admin(cx: &ViewContext, page: &AdministratorsPage) -> Markup {
    forms::post(
        cx,
        &href("administrators"),
        &html! {
            (field(cx, &Field::new("name", Text::Name, Control::Text, &page.typed_name).required().error(page.name_error.as_deref())))
            (field(cx, &Field::new("role", Text::RoleLabel, Control::Select(roles(cx)), "support").required()))
            (field(cx, &Field::new("newPassword", Text::NewPassword, Control::Password, "").required().autocomplete("new-password").hint(Text::PasswordHint).error(page.password_error.as_deref())))
            (forms::step_up(cx, "new-admin", &page.step_up))
            button.button.primary type="submit" { (cx.t(Text::NewAdministrator)) }
        },
    )
}

fn sessions(cx: &ViewContext, sessions: &[SessionRow], step_up: &ProofField) -> Markup {
    let columns =
        [text(Text::Name), time(Text::SignedIn), time(Text::LastUsed), time(Text::Expires), text(Text::Action)];
    panel(
        "sessions",
        cx.t(Text::Sessions),
        &html! {
            @if sessions.is_empty() { p.empty { (cx.t(Text::Nothing)) } } @else {
                (lists::table(cx, Text::Sessions, &columns, sessions.iter().map(|session| vec![
                    html! { (session.admin) @if session.is_own { " " (parts::badge(Tone::Neutral, cx.t(Text::ThisSession))) } },
                    cx.cell_time(session.created_at),
                    cx.cell_time(session.last_used_at),
                    cx.cell_time(session.expires_at),
                    forms::proved_button(cx, &href(&format!("administrators/sessions/{}/end", session.id)), cx.t(Text::EndSession), &format!("session-{}", session.id), step_up),
                ])))
            }
        },
    )
}

fn networks(cx: &ViewContext, page: &AdministratorsPage) -> Markup {
    html! {
        p { (cx.t(Text::NetworksLead)) " " (texts::your_address(cx.language, &page.own_address)) }
        @if page.networks.is_empty() { p.empty { (cx.t(Text::FromEverywhere)) } } @else {
            ul.tags { @for (index, network) in page.networks.iter().enumerate() {
                li { code { (network) } (forms::post(cx, &href("administrators/networks/remove"), &html! {
                    input type="hidden" name="network" value=(network);
                    (forms::step_up(cx, &format!("network-{index}"), &page.step_up))
                    button.icon type="submit" aria-label=(texts::remove_label(cx.language, network)) { (parts::icon(parts::Icon::Close)) }
                })) }
            } }
        }
        (forms::post(cx, &href("administrators/networks"), &html! {
            (field(cx, &Field::new("network", Text::Network, Control::Text, &page.typed_network).required().hint(Text::NetworkHint).error(page.network_error.as_deref())))
            (forms::step_up(cx, "network", &page.step_up))
            button.button type="submit" { (cx.t(Text::AllowNetwork)) }
        }))
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

#[derive(Clone, Debug)]
pub struct KeyRow {
    pub label: String,
    pub role: Role,
    /// `active`, `suspended`, `expired` or `revoked`.
    pub state: String,
    pub created_at: Timestamp,
    pub last_used_at: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
}

/// The page of API keys.
#[derive(Clone, Debug)]
pub struct Keys {
    pub keys: Vec<KeyRow>,
    /// The label and the key, once after its creation.
    pub created: Option<(String, String)>,
    pub typed_label: String,
    pub label_error: Option<String>,
    pub typed_expiry: String,
    pub step_up: ProofField,
}

/// Renders the page of API keys.
pub fn keys(cx: &ViewContext, page: &Keys) -> Markup {
    let columns = [
        text(Text::Label),
        text(Text::RoleLabel),
        text(Text::State),
        time(Text::Created),
        time(Text::LastUsed),
        time(Text::Expires),
        text(Text::Action),
    ];
    let at = |at: Option<Timestamp>| at.map_or_else(|| parts::dash(cx), |at| cx.cell_time(at));
    let body = html! {
        (layout::heading(cx.t(Text::ApiKeys), Some(cx.t(Text::KeysLead)), &html! {}))
        @if let Some((label, key)) = &page.created {
            section.note.good role="status" { p { strong { (label) } " " (cx.t(Text::KeyShownOnce)) } p { (parts::copyable(cx, key)) } }
        }
        section.card aria-label=(cx.t(Text::ApiKeys)) {
            @if page.keys.is_empty() { p.empty { (cx.t(Text::NoKeys)) } } @else {
                (lists::table(cx, Text::ApiKeys, &columns, page.keys.iter().map(|key| vec![
                    html! { (key.label) },
                    html! { (cx.word(&key.role)) },
                    parts::state(cx, &key.state),
                    cx.cell_time(key.created_at),
                    at(key.last_used_at),
                    at(key.expires_at),
                    html! { @if key.state != "revoked" { div.actions { (key_actions(cx, page, key)) } } },
                ])))
            }
        }
        (panel("new", cx.t(Text::NewKey), &forms::post(cx, &href("keys"), &html! {
            div.form-grid {
                (field(cx, &Field::new("label", Text::Label, Control::Text, &page.typed_label).required().error(page.label_error.as_deref())))
                (field(cx, &Field::new("role", Text::RoleLabel, Control::Select(roles(cx)), "read-only").required()))
                (field(cx, &Field::new("expires", Text::Expires, Control::Date, &page.typed_expiry)))
            }
            (forms::step_up(cx, "key", &page.step_up))
            button.button.primary type="submit" { (cx.t(Text::NewKey)) }
        })))
    };
    layout::page(cx, &PageBody::new(cx.t(Text::ApiKeys), Place::Keys, body))
}

fn key_actions(cx: &ViewContext, page: &Keys, key: &KeyRow) -> Markup {
    let (change, label) =
        if key.state == "suspended" { ("resume", Text::ResumeKey) } else { ("suspend", Text::SuspendKey) };
    let action = |path: &str, label: Text, class: &str| {
        let prefix = format!("key-{}-{path}", key.label);
        parts::action(
            cx.t(label),
            "small",
            &forms::post(
                cx,
                &href(&format!("keys/{path}")),
                &html! {
                    input type="hidden" name="label" value=(key.label);
                    (forms::reason(cx, &prefix, "", None))
                    (forms::step_up(cx, &prefix, &page.step_up))
                    button.button.(class) type="submit" { (cx.t(label)) }
                },
            ),
        )
    };
    html! { (action(change, label, "primary")) (action("revoke", Text::RevokeKey, "danger")) }
}
