//! Forms: fields with errors and kept values, actions, and the page that confirms a destructive action.

use maud::{Markup, html};

use super::{
    context::{KeptForm, ViewContext},
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

/// A form of one page that changes something, with what was typed in a rejected attempt and its faults.
pub struct Form<'view> {
    cx: &'view ViewContext,
    /// Unique on the page. The ids of the controls begin with it.
    id: String,
    action: String,
    hidden: Vec<(&'static str, String)>,
    /// True if the response is a file, so that the page stays.
    is_download: bool,
    kept: Option<&'view KeptForm>,
}

impl<'view> Form<'view> {
    pub fn new(cx: &'view ViewContext, id: impl Into<String>, action: impl Into<String>) -> Self {
        let (id, action) = (id.into(), action.into());
        let kept = cx.kept_form.as_ref().filter(|kept| kept.id == id);
        Self { cx, id, action, hidden: Vec::new(), is_download: false, kept }
    }

    /// Adds a field that is not shown.
    pub fn hidden(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.hidden.push((name, value.into()));
        self
    }

    /// Repeats these fields of the form that is shown again, without showing them.
    pub fn repeating(mut self, names: &[&'static str]) -> Self {
        let repeated: Vec<_> = names.iter().map(|name| (*name, self.value(name, "").to_owned())).collect();
        self.hidden.extend(repeated);
        self
    }

    /// Makes the response a file.
    pub fn download(self) -> Self {
        Self { is_download: true, ..self }
    }

    /// Returns the value of a field: what was typed, or the given one.
    pub fn value(&self, name: &str, otherwise: &'view str) -> &'view str {
        let Some(kept) = self.kept else { return otherwise };
        kept.fields.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value)
    }

    /// Returns true if the form is shown again, so that it must be open.
    pub const fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Returns true if a box of several was ticked.
    pub fn has(&self, name: &str, value: &str) -> bool {
        self.kept.is_some_and(|kept| kept.fields.iter().any(|(field, typed)| field == name && typed == value))
    }

    /// Renders a field.
    pub fn field(&self, field: Field<'view>) -> Markup {
        let (id, value) = (format!("{}-{}", self.id, field.name), self.value(field.name, field.value));
        self::field(self.cx, &Field { id: &id, value, error: self.fault(field.name), ..field })
    }

    fn fault(&self, name: &str) -> Option<&'view str> {
        let (_, message) = self.kept?.faults.iter().find(|(field, _)| field == name)?;
        Some(message)
    }

    /// Renders the field for the reason of an act, which the audit keeps.
    pub fn reason(&self) -> Markup {
        reason(self.cx, &self.id, self.value("reason", ""), self.fault("reason"))
    }

    /// Renders the form around its fields, with the button that sends it.
    pub fn render(&self, label: &str, fields: &Markup) -> Markup {
        self.with_button(fields, &html! { button.button.primary type="submit" { (label) } })
    }

    /// Renders the form around its fields and its button.
    pub fn with_button(&self, fields: &Markup, button: &Markup) -> Markup {
        let content = html! {
            input type="hidden" name="form" value=(self.id);
            input type="hidden" name="back" value=(self.cx.path);
            @for (name, value) in &self.hidden { input type="hidden" name=(name) value=(value); }
            (fields)
            (button)
        };
        let render = if self.is_download { download } else { post };
        render(self.cx, &self.action, &content)
    }

    /// Renders a button that opens the form. It is open if it is shown again.
    pub fn act(&self, label: &str, class: &str, fields: &Markup) -> Markup {
        self.act_with_button(label, class, fields, &html! { button.button.primary type="submit" { (label) } })
    }

    /// Renders a button that opens the form of a destructive act.
    pub fn danger(&self, label: &str, class: &str, fields: &Markup) -> Markup {
        self.act_with_button(label, class, fields, &html! { button.button.danger type="submit" { (label) } })
    }

    /// Renders a button that opens the form, which has a button of its own.
    pub fn act_with_button(&self, label: &str, class: &str, fields: &Markup, button: &Markup) -> Markup {
        parts::action_with(label, class, self.is_kept(), &self.with_button(fields, button))
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
                textarea id=(field.id) name=(field.name) rows="4" required[field.is_required] maxlength=[field.max_length] aria-invalid=[invalid] aria-describedby=[described] autofocus[field.error.is_some()] { (field.value) }
            };
        }
        Control::Select(options) => {
            return html! {
                select id=(field.id) name=(field.name) required[field.is_required] aria-invalid=[invalid] aria-describedby=[described] autofocus[field.error.is_some()] {
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
        input type=(kind) id=(field.id) name=(field.name) value=(value) inputmode=[mode] required[field.is_required] maxlength=[field.max_length] autocomplete=(field.autocomplete.unwrap_or("off")) aria-invalid=[invalid] aria-describedby=[described] autofocus[field.error.is_some()];
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
