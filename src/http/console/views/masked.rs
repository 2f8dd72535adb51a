//! Values of which only a part is shown, with the form that reveals them.

use maud::{Markup, html};

use super::{
    context::{Right, ViewContext, user_href},
    forms::Form,
    parts::copyable,
    texts::Text,
};

/// A value of which only a part is shown.
#[derive(Clone, Debug)]
pub struct Masked {
    /// The masked value, or the whole one after a reveal.
    pub shown: String,
    pub is_revealed: bool,
    /// The kind and id that the reveal form sends.
    pub kind: &'static str,
    pub id: String,
}

/// Renders a masked value with a form that reveals it. A reveal needs a reason and is audited.
pub fn masked(cx: &ViewContext, value: &Masked, name: Text) -> Markup {
    let form = Form::new(cx, format!("reveal-{}", value.kind), format!("{}/reveal", user_href(&value.id)));
    let form = form.hidden("kind", value.kind);
    html! {
        // A reveal is done once its page is shown, so the typed reason is forgotten.
        span.masked data-kept-done[value.is_revealed] {
            @if value.is_revealed { (copyable(cx, &value.shown)) } @else { code { (value.shown) } }
            @if !value.is_revealed && cx.may(Right::SupportUsers) {
                details.act open[form.is_kept()] {
                    summary.button.small { (cx.t(Text::Reveal)) span.sr { " " (cx.t(name)) } }
                    (form.render(cx.t(Text::Reveal), &html! { (form.reason()) p.hint { (cx.t(Text::RevealIsAudited)) } }))
                }
            }
        }
    }
}
