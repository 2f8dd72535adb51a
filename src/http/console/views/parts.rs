//! Small components: badges, panels, facts, figures, masked values.

use maud::{Markup, PreEscaped, html};

use super::{
    context::{Right, ViewContext, href, order_href, user_href},
    texts::{self, Text, Tone},
    words::Worded,
};
use crate::domain::operations::alerts::{ActiveAlert, AlertFact};

/// Renders the state of something. The mark differs by tone, so colour is not the only sign.
pub fn badge(tone: Tone, label: &str) -> Markup {
    html! { span.badge.(tone.class()) { (label) } }
}

/// Renders a value as a badge.
pub fn state(cx: &ViewContext, state: &(impl Worded + ?Sized)) -> Markup {
    let (tone, label) = state.in_words(cx.language);
    html! { span.badge.(tone.class()) data-code=(state.code()) { (label) } }
}

/// Renders a section with a heading.
pub fn panel(id: &str, title: &str, body: &Markup) -> Markup {
    panel_with(id, title, &html! {}, body)
}

/// Renders a section with a heading, and links or buttons beside it.
pub fn panel_with(id: &str, title: &str, beside: &Markup, body: &Markup) -> Markup {
    html! {
        section.card id=(id) aria-labelledby={ (id) "-title" } {
            header.card-head { h2 id={ (id) "-title" } { (title) } (beside) }
            (body)
        }
    }
}

/// Renders names with their values.
pub fn facts(cx: &ViewContext, facts: &[(Text, Markup)]) -> Markup {
    html! {
        dl.facts { @for (name, value) in facts { div { dt { (cx.t(*name)) } dd { (value) } } } }
    }
}

/// Renders text, or a dash that screen readers announce as empty.
pub fn or_dash(cx: &ViewContext, text: Option<&str>) -> Markup {
    match text.filter(|text| !text.is_empty()) {
        Some(text) => html! { (text) },
        None => dash(cx),
    }
}

/// Renders an absent value.
pub fn dash(cx: &ViewContext) -> Markup {
    html! { span.none { span aria-hidden="true" { "–" } span.sr { (cx.t(Text::None)) } } }
}

/// Renders an identifier with a button that copies it. Without JavaScript there is no button.
pub fn copyable(cx: &ViewContext, value: &str) -> Markup {
    html! {
        span.copy { code { (value) } (copy_button(cx, value)) }
    }
}

fn copy_button(cx: &ViewContext, value: &str) -> Markup {
    html! {
        button.icon type="button" hidden data-copy=(value) data-done=(cx.t(Text::Copied)) aria-label=(texts::copy_label(cx.language, value)) title=(cx.t(Text::Copy)) { (icon(Icon::Copy)) }
    }
}

/// Renders the id of a user, as a link for roles that may open the page.
pub fn user_link(cx: &ViewContext, id: &str) -> Markup {
    let code = html! { code.uid { (id) } };
    html! { @if cx.may(Right::FindUsers) { a href=(user_href(id)) { (code) } } @else { (code) } }
}

/// Renders the number of an order, as a link for roles that may open the page.
pub fn order_link(cx: &ViewContext, order_no: &str) -> Markup {
    let code = html! { code { (order_no) } };
    html! { @if cx.may(Right::SupportUsers) { a href=(order_href(order_no)) { (code) } } @else { (code) } }
}

/// Renders a firing alert, with a link to the page that it is about.
pub fn alert(cx: &ViewContext, rule: &str, alert: &ActiveAlert, since: &Markup) -> Markup {
    let page = match alert.content.fact {
        Some(AlertFact::PaymentsInReview { .. }) => Some((Right::SupportUsers, "orders?state=review", Text::Orders)),
        Some(AlertFact::LedgerMismatch { .. } | AlertFact::LedgerRepaired { .. }) => {
            Some((Right::ViewFigures, "health#ledger", Text::Ledger))
        }
        Some(AlertFact::PaymentMismatch { .. }) => Some((Right::SupportUsers, "orders/bills", Text::Bills)),
        Some(AlertFact::CertificateExpiring { .. } | AlertFact::ConditionUnknown { .. }) => {
            Some((Right::ViewFigures, "health#doctor", Text::Doctor))
        }
        _ => None,
    };
    let page = page.filter(|(right, ..)| cx.may(*right));
    let text = html! {
        p {
            strong { (texts::alert(cx.language, rule)) } " " (alert.content.text(cx.language.locale()))
            @if let Some((_, path, title)) = page { " " a href=(href(path)) { (cx.t(title)) } }
        }
        p.hint { (since) }
    };
    note(Tone::Bad, &text)
}

/// Renders a message box.
pub fn note(tone: Tone, body: &Markup) -> Markup {
    html! { div.note.(tone.class()) { (body) } }
}

/// A number on the overview.
pub struct Stat<'a> {
    pub name: Text,
    pub value: String,
    /// The comparison under the number.
    pub detail: Markup,
    pub href: Option<String>,
    /// Values of the small line, oldest first.
    pub line: &'a [i64],
}

/// Renders numbers side by side.
pub fn stats(cx: &ViewContext, stats: &[Stat<'_>]) -> Markup {
    html! {
        dl.stats {
            @for stat in stats {
                div.stat {
                    dt { @if let Some(href) = &stat.href { a href=(href) { (cx.t(stat.name)) } } @else { (cx.t(stat.name)) } }
                    dd.figure { (stat.value) }
                    dd.detail { (stat.detail) }
                    @if stat.line.len() > 1 { dd.line aria-hidden="true" { (super::chart::sparkline(stat.line)) } }
                }
            }
        }
    }
}

/// The meaning of a growing figure, which decides the colour of its change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowthTone {
    Good,
    /// Refunds and errors.
    Bad,
}

/// Renders the change from the former to the present value in percent.
pub fn trend(cx: &ViewContext, tone: GrowthTone, former: i64, present: i64) -> Markup {
    if former == 0 {
        return html! { (cx.t(Text::NoComparison)) };
    }
    let percent = (present - former) * 100 / former;
    let (growth, mark) = match percent {
        1.. => (Some(GrowthTone::Good), "↑"),
        0 => (None, "→"),
        _ => (Some(GrowthTone::Bad), "↓"),
    };
    let class = match growth {
        None => "same",
        Some(growth) if growth == tone => "better",
        Some(_) => "worse",
    };
    html! {
        span.trend.(class) { span aria-hidden="true" { (mark) " " } (super::format::change(percent)) " %" }
        " " span.than { (cx.t(Text::ThanBefore)) }
    }
}

/// Renders an action that opens a form in place, without JavaScript.
pub fn action(label: &str, class: &str, form: &Markup) -> Markup {
    action_with(label, class, false, form)
}

/// Renders an action whose form is open already if its last attempt was rejected.
pub fn action_with(label: &str, class: &str, is_open: bool, form: &Markup) -> Markup {
    html! {
        details.act open[is_open] { summary.button.(class) { (label) } div.act-body { (form) } }
    }
}

/// Renders the progress of a job in percent.
pub fn progress(label: &str, percent: u8) -> Markup {
    html! {
        span.progress.(if percent >= 90 { "high" } else { "" }) {
            progress max="100" value=(percent) aria-label=(label) { (percent) " %" }
            span { (percent) " %" }
        }
    }
}

/// The pictures of the console.
#[derive(Clone, Copy, Debug)]
pub enum Icon {
    Overview,
    Users,
    Figures,
    Money,
    Moderation,
    Messaging,
    Operations,
    Search,
    Menu,
    Copy,
    Close,
    Brand,
}

impl Icon {
    const fn path(self) -> &'static str {
        match self {
            Self::Overview => "M4 13h6V4H4zm10 7h6V4h-6zM4 20h6v-3H4z",
            Self::Users => "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c0-4 3.6-6 8-6s8 2 8 6",
            Self::Figures => "M5 20v-7m7 7V4m7 16V9",
            Self::Money => "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM8.5 8l3.5 5 3.5-5M12 13v4.5M9 13h6",
            Self::Moderation => "M12 3l8 3v5c0 5-3.4 8.600-8 10-4.600-1.400-8-5-8-10V6zM8.500 12l2.500 2.500 4.500-5",
            Self::Messaging => "M4 5h16v11H9l-5 4z",
            Self::Operations => "M3 12h4l3-8 4 16 3-8h4",
            Self::Search => "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM16 16l5 5",
            Self::Menu => "M4 6h16M4 12h16M4 18h16",
            Self::Copy => "M9 9h11v11H9zM5 15H4V4h11v1",
            Self::Close => "M6 6l12 12M18 6L6 18",
            Self::Brand => "M4 6h16M4 12h6.500m3 0H20M4 18h16",
        }
    }
}

/// Renders a picture beside a text that says the same.
pub fn icon(icon: Icon) -> Markup {
    html! {
        svg.ico viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" focusable="false" { path d=(PreEscaped(icon.path())) {} }
    }
}
