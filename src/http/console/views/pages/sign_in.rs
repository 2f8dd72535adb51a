//! Sign-in, and the creation of the first owner.

use maud::{Markup, html};

use crate::http::console::views::{
    context::{ViewContext, href},
    forms::{self, Control, Field, field, rejected},
    layout, parts,
    texts::{Text, Tone},
};

/// A form that was sent after the session had ended. It is shown again after the sign-in.
#[derive(Clone, Debug)]
pub struct Interrupted {
    pub action: String,
    pub fields: Vec<(String, String)>,
}

/// The sign-in page.
#[derive(Clone, Debug, Default)]
pub struct SignInPage {
    pub name: String,
    /// The message of a refused attempt.
    pub error: Option<String>,
    /// True if the password was accepted and a code is missing or wrong.
    pub needs_totp: bool,
    pub totp_error: Option<String>,
    /// The page to go to, below the console.
    pub next: String,
    pub has_ended: bool,
    pub interrupted: Option<Interrupted>,
}

/// Renders the sign-in page.
pub fn sign_in(cx: &ViewContext, page: &SignInPage) -> Markup {
    let code = Field::new("totp", Text::AuthenticatorCode, Control::Digits, "").autocomplete("one-time-code");
    let code = code.hint(Text::TotpHint).max_length(6).error(page.totp_error.as_deref());
    let code = if page.needs_totp { code.required() } else { code };
    layout::bare(
        cx,
        cx.t(Text::SignIn),
        &html! {
            // After a deliberate sign-out the script forgets typed text, so that the next administrator does not see it.
            section.card.sign-in aria-labelledby="sign-in-title" data-kept-done[!page.has_ended && page.next.is_empty()] {
                h1 id="sign-in-title" { (cx.t(Text::SignIn)) }
                @if page.has_ended { (parts::note(Tone::Notice, &html! { p { (cx.t(Text::SessionEnded)) " " @if page.interrupted.is_some() { (cx.t(Text::TypedTextIsKept)) } } })) }
                (rejected(cx, page.error.as_deref()))
                form method="post" action=(href("sign-in")) {
                    input type="hidden" name="csrf" value=(cx.csrf);
                    input type="hidden" name="next" value=(page.next);
                    // With JavaScript the browser keeps the text, and puts it back into the form on its page.
                    @if let Some(kept) = &page.interrupted { noscript {
                        input type="hidden" name="kept-action" value=(kept.action);
                        @for (name, value) in &kept.fields { input type="hidden" name={ "kept." (name) } value=(value); }
                    } }
                    (field(cx, &Field::new("name", Text::Name, Control::Text, &page.name).required().autocomplete("username")))
                    (field(cx, &Field::new("password", Text::Password, Control::Password, "").required().autocomplete("current-password")))
                    (field(cx, &code))
                    button.button.primary.wide type="submit" { (cx.t(Text::SignIn)) }
                }
                details.help { summary { (cx.t(Text::CannotSignIn)) } p { (cx.t(Text::CannotSignInHelp)) } pre { code { "yarrow admin password NAME\nyarrow admin totp remove NAME\nyarrow admin networks clear" } } }
            }
        },
    )
}

/// Renders the form that was sent without a session, to be sent again after the sign-in. All fields are shown, so that
/// nobody sends what they have not read.
pub fn send_again(cx: &ViewContext, kept: &Interrupted, page: &str) -> Markup {
    layout::bare(
        cx,
        cx.t(Text::SendAgain),
        &html! {
            section.card.sign-in aria-labelledby="send-again-title" {
                h1 id="send-again-title" { (cx.t(Text::SendAgain)) }
                p { (cx.t(Text::SendAgainLead)) }
                (forms::post(cx, &kept.action, &html! {
                    @for (index, (name, value)) in kept.fields.iter().enumerate() {
                        @let id = format!("kept-{index}");
                        div.field {
                            label for=(id) { code { (name) } }
                            @if value.contains('\n') || value.len() > 60 { textarea id=(id) name=(name) rows="4" { (value) } }
                            @else { input type="text" id=(id) name=(name) value=(value) autocomplete="off"; }
                        }
                    }
                    div.actions {
                        button.button.primary type="submit" { (cx.t(Text::SendAgain)) }
                        a.button href=(page) { (cx.t(Text::BackToPage)) }
                    }
                }))
            }
        },
    )
}

/// Renders the page that asks for a proof of identity. Its form repeats that of the act.
pub fn proof(
    cx: &ViewContext,
    action: &str,
    kept: &[&(String, String)],
    back: &str,
    proof: &forms::ProofField,
) -> Markup {
    let body = html! {
        section.card.sign-in aria-labelledby="proof-title" {
            h1 id="proof-title" { (cx.t(Text::ConfirmTitle)) }
            (forms::post(cx, action, &html! {
                @for (name, value) in kept { input type="hidden" name=(name) value=(value); }
                (forms::step_up(cx, "own", proof))
                div.actions {
                    button.button.primary type="submit" { (cx.t(Text::ConfirmTitle)) }
                    a.button href=(back) { (cx.t(Text::Cancel)) }
                }
            }))
        }
    };
    layout::bare(cx, cx.t(Text::ConfirmTitle), &body)
}

/// The page behind the one-time link of the first run.
#[derive(Clone, Debug, Default)]
pub struct FirstRun {
    pub token: String,
    pub name: String,
    pub name_error: Option<String>,
    pub password_error: Option<String>,
    pub min_password: u32,
}

/// Renders the page that creates the first owner.
pub fn first_run(cx: &ViewContext, page: &FirstRun) -> Markup {
    let name = Field::new("name", Text::Name, Control::Text, &page.name).required().autocomplete("username");
    let password = Field::new("password", Text::NewPassword, Control::Password, "").required();
    let password = password.autocomplete("new-password").hint(Text::PasswordHint).error(page.password_error.as_deref());
    let again = Field::new("repeated", Text::RepeatPassword, Control::Password, "").required();
    layout::bare(
        cx,
        cx.t(Text::FirstOwner),
        &html! {
            section.card.sign-in aria-labelledby="first-run-title" {
                h1 id="first-run-title" { (cx.t(Text::FirstOwner)) }
                p { (cx.t(Text::FirstOwnerLead)) }
                form method="post" action={ (href("first-run/")) (page.token) } {
                    input type="hidden" name="csrf" value=(cx.csrf);
                    (field(cx, &name.error(page.name_error.as_deref())))
                    (field(cx, &password))
                    (field(cx, &again.autocomplete("new-password")))
                    button.button.primary.wide type="submit" { (cx.t(Text::CreateOwner)) }
                }
            }
        },
    )
}
