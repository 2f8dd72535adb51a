//! Forms: fields with errors and kept values, actions, and the page that confirms a destructive action.

use maud::{Markup, html};

use super::{
    context::ViewContext,
    format::{self, Timestamp},
    parts,
    texts::{self, Text, Tone},
};

/// Renders a form that changes something: with the token against cross-site requests and an idempotency key.
///
/// The script keeps what was typed until a page reports success.
pub fn post(cx: &ViewContext, action: &str, body: &Markup) -> Markup {
    html! {
        form method="post" action=(action) data-keep {
            input type="hidden" name="csrf" value=(cx.csrf);
            input type="hidden" name="once" value=(cx.once);
            (body)
        }
    }
}

/// Renders a form whose response is a file. The page stays, so nothing that was typed is kept.
pub fn download(cx: &ViewContext, action: &str, body: &Markup) -> Markup {
    html! {
        form method="post" action=(action) {
            input type="hidden" name="csrf" value=(cx.csrf);
            (body)
        }
    }
}

/// Renders a form that consists of one button.
pub fn button(cx: &ViewContext, action: &str, label: &str, class: &str) -> Markup {
    html! {
        form.inline method="post" action=(action) {
            input type="hidden" name="csrf" value=(cx.csrf);
            input type="hidden" name="once" value=(cx.once);
            button.button.(class) type="submit" { (label) }
        }
    }
}

/// The control of a field.
#[derive(Clone, Debug)]
pub enum Control<'a> {
    Text,
    /// A text with the keyboard for digits, for codes and numbers.
    Digits,
    /// An amount with a decimal point.
    Decimal,
    Password,
    Search,
    Date,
    /// Date and time without seconds, in the zone of the page.
    Moment,
    Area,
    /// Values with their labels.
    Select(Vec<(&'a str, String)>),
    Checkbox,
}

/// A field with its typed value and error.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    /// The id of the control, unique on the page.
    pub id: &'a str,
    pub name: &'a str,
    pub label: Text,
    pub control: Control<'a>,
    pub value: &'a str,
    pub error: Option<&'a str>,
    pub hint: Option<Text>,
    pub is_required: bool,
    pub autocomplete: Option<&'a str>,
    pub max_length: Option<u32>,
}

impl<'a> Field<'a> {
    /// Returns an optional text field whose id is its name.
    pub const fn new(name: &'a str, label: Text, control: Control<'a>, value: &'a str) -> Self {
        Self {
            id: name,
            name,
            label,
            control,
            value,
            error: None,
            hint: None,
            is_required: false,
            autocomplete: None,
            max_length: None,
        }
    }

    pub const fn id(mut self, id: &'a str) -> Self {
        self.id = id;
        self
    }

    pub const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    pub const fn hint(mut self, hint: Text) -> Self {
        self.hint = Some(hint);
        self
    }

    pub const fn error(mut self, error: Option<&'a str>) -> Self {
        self.error = error;
        self
    }

    pub const fn autocomplete(mut self, value: &'a str) -> Self {
        self.autocomplete = Some(value);
        self
    }

    pub const fn max_length(mut self, characters: u32) -> Self {
        self.max_length = Some(characters);
        self
    }
}

/// Renders a field.
pub fn field(cx: &ViewContext, field: &Field<'_>) -> Markup {
    let described = match (field.error, field.hint) {
        (Some(_), Some(_)) => Some(format!("{0}-error {0}-hint", field.id)),
        (Some(_), None) => Some(format!("{}-error", field.id)),
        (None, Some(_)) => Some(format!("{}-hint", field.id)),
        (None, None) => None,
    };
    if matches!(field.control, Control::Checkbox) {
        return html! {
            div.field.check {
                label for=(field.id) {
                    input type="checkbox" id=(field.id) name=(field.name) value="true" checked[field.value == "true"] required[field.is_required] aria-describedby=[described];
                    span { (cx.t(field.label)) }
                }
                (messages(cx, field))
            }
        };
    }
    html! {
        div.field.invalid[field.error.is_some()] {
            label for=(field.id) {
                (cx.t(field.label))
                @if !field.is_required { " " span.optional { (cx.t(Text::Optional)) } }
            }
            (control(field, described.as_deref()))
            (messages(cx, field))
        }
    }
}

fn messages(cx: &ViewContext, field: &Field<'_>) -> Markup {
    html! {
        @if let Some(error) = field.error { p.error id={ (field.id) "-error" } { (error) } }
        @if let Some(hint) = field.hint { p.hint id={ (field.id) "-hint" } { (cx.t(hint)) } }
    }
}

fn control(field: &Field<'_>, described: Option<&str>) -> Markup {
    let invalid = field.error.map(|_| "true");
    let (kind, mode) = match &field.control {
        Control::Area => {
            return html! {
                textarea id=(field.id) name=(field.name) rows="4" required[field.is_required] maxlength=[field.max_length] aria-invalid=[invalid] aria-describedby=[described] { (field.value) }
            };
        }
        Control::Select(options) => {
            return html! {
                select id=(field.id) name=(field.name) required[field.is_required] aria-invalid=[invalid] aria-describedby=[described] {
                    @for (value, label) in options { option value=(value) selected[*value == field.value] { (label) } }
                    // A value that was rejected stays visible.
                    @if field.error.is_some() && options.iter().all(|(value, _)| *value != field.value) { option value=(field.value) selected { (field.value) } }
                }
            };
        }
        Control::Digits => ("text", Some("numeric")),
        Control::Decimal => ("text", Some("decimal")),
        Control::Password => ("password", None),
        Control::Search => ("search", None),
        Control::Date => ("date", None),
        Control::Moment => ("datetime-local", None),
        Control::Text | Control::Checkbox => ("text", None),
    };
    // A password is never put back into the page.
    let value = if matches!(field.control, Control::Password) { "" } else { field.value };
    html! {
        input type=(kind) id=(field.id) name=(field.name) value=(value) inputmode=[mode] required[field.is_required] maxlength=[field.max_length] autocomplete=(field.autocomplete.unwrap_or("off")) aria-invalid=[invalid] aria-describedby=[described];
    }
}

/// Renders the field for the reason of an action, which the audit keeps.
pub fn reason(cx: &ViewContext, prefix: &str, value: &str, error: Option<&str>) -> Markup {
    let id = format!("{prefix}-reason");
    let reason = Field::new("reason", Text::Reason, Control::Text, value).id(&id).required().error(error);
    field(cx, &reason.hint(Text::ReasonHint).max_length(200))
}

/// The summary of a form that was rejected.
pub fn rejected(cx: &ViewContext, detail: Option<&str>) -> Markup {
    html! {
        @if let Some(detail) = detail {
            div.note.bad role="alert" { p { strong { (cx.t(Text::NotDone)) } " " (detail) } }
        }
    }
}

/// A proof of identity that an action needs, if the last one is older than ten minutes.
#[derive(Clone, Debug, Default)]
pub struct ProofField {
    pub is_needed: bool,
    /// True if the administrator has an authenticator, so that its code suffices.
    pub has_authenticator: bool,
    pub error: Option<String>,
}

/// Renders the field for the proof of identity.
pub fn step_up(cx: &ViewContext, prefix: &str, step_up: &ProofField) -> Markup {
    if !step_up.is_needed {
        return html! {};
    }
    let id = format!("{prefix}-proof");
    let error = step_up.error.as_deref();
    let proof = if step_up.has_authenticator {
        Field::new("totp", Text::AuthenticatorCode, Control::Digits, "").autocomplete("one-time-code")
    } else {
        Field::new("password", Text::Password, Control::Password, "").autocomplete("current-password")
    };
    field(cx, &proof.id(&id).required().hint(Text::StepUpHint).error(error))
}

/// Renders an action without other fields: one button, or a form that opens if a proof of identity is needed.
pub fn proved_button(cx: &ViewContext, action: &str, label: &str, prefix: &str, proof: &ProofField) -> Markup {
    if !proof.is_needed {
        return button(cx, action, label, "small");
    }
    let form = html! { (step_up(cx, prefix, proof)) button.button.primary type="submit" { (label) } };
    parts::action(label, "small", &post(cx, action, &form))
}

/// The page that stands between a destructive action and its effect, from a 428 response.
#[derive(Clone, Debug)]
pub struct ConfirmationView {
    pub title: String,
    /// The consequence in one sentence.
    pub consequence: String,
    pub would_delete: Vec<(String, i64)>,
    pub would_keep: Vec<(String, i64)>,
    /// The end of the token's validity.
    pub expires_at: Timestamp,
    pub token: String,
    /// The address that the form posts to.
    pub action: String,
    pub back: String,
    /// Fields of the first request, repeated with the token.
    pub repeated: Vec<(String, String)>,
    /// The word that has to be typed.
    pub target: Option<String>,
    pub typed_target: String,
    pub target_error: Option<String>,
    pub reason: String,
    pub reason_error: Option<String>,
    pub step_up: ProofField,
    pub makes_backup: bool,
}

/// Renders the page that confirms a destructive action.
pub fn confirmation(cx: &ViewContext, page: &ConfirmationView) -> Markup {
    let left = texts::time_left(cx.language, page.expires_at.0 - cx.now.0);
    let target = page.target.as_deref();
    html! {
        div.narrow {
            h1 { (page.title) }
            (parts::note(Tone::Bad, &html! {
                p { strong { (page.consequence) } }
                @if page.makes_backup { p { (cx.t(Text::BackupFirst)) } }
            }))
            div.columns {
                (counts(cx, "would-delete", Text::WouldDelete, &page.would_delete))
                (counts(cx, "would-keep", Text::WouldKeep, &page.would_keep))
            }
            section.card aria-labelledby="confirm-title" {
                header.card-head { h2 id="confirm-title" { (cx.t(Text::ConfirmTitle)) } span.hint data-until=(page.expires_at.0) { (left) " · " (cx.time(page.expires_at)) } }
                (post(cx, &page.action, &html! {
                    input type="hidden" name="confirm" value=(page.token);
                    @for (name, value) in &page.repeated { input type="hidden" name=(name) value=(value); }
                    (reason(cx, "confirm", &page.reason, page.reason_error.as_deref()))
                    @if let Some(target) = target {
                        div.field.invalid[page.target_error.is_some()] {
                            label for="confirm-target" { (texts::type_to_confirm(cx.language, target)) }
                            input type="text" id="confirm-target" name="target" value=(page.typed_target) required autocomplete="off" autocapitalize="off" spellcheck="false" aria-invalid=[page.target_error.as_ref().map(|_| "true")] aria-describedby=[page.target_error.as_ref().map(|_| "confirm-target-error")];
                            @if let Some(error) = &page.target_error { p.error id="confirm-target-error" { (error) } }
                        }
                    }
                    (step_up(cx, "confirm", &page.step_up))
                    div.actions {
                        button.button.danger type="submit" { (page.title) }
                        a.button href=(page.back) { (cx.t(Text::Cancel)) }
                    }
                }))
            }
        }
    }
}

fn counts(cx: &ViewContext, id: &str, title: Text, counts: &[(String, i64)]) -> Markup {
    parts::panel(
        id,
        cx.t(title),
        &html! {
            @if counts.is_empty() { p.empty { (cx.t(Text::Nothing)) } } @else {
                dl.counts { @for (name, count) in counts {
                    div { dt { (texts::table(cx.language, name)) } dd.num { (format::number(*count)) } }
                } }
            }
        },
    )
}
