//! The audit: who read or changed what, and why.

use maud::{Markup, html};

use super::rows::{self, AuditEventRow};
use crate::http::console::views::{
    context::{Role, ViewContext, href},
    format::with_query,
    forms::{Control, Field},
    layout::{self, PageBody, Place},
    lists::{self, Filters, ListView, Listing},
    texts::Text,
};

/// The filters, as typed.
#[derive(Clone, Debug, Default)]
pub struct TypedAuditFilter {
    pub actor: String,
    pub user: String,
    pub from: String,
    pub to: String,
    pub errors: Vec<(String, String)>,
}

/// The audit with its filters.
#[derive(Clone, Debug)]
pub struct Audit {
    pub filter: TypedAuditFilter,
    pub listing: Listing<AuditEventRow>,
}

/// Renders the audit.
pub fn page(cx: &ViewContext, page: &Audit) -> Markup {
    let filter = &page.filter;
    let query = [("actor", filter.actor.as_str()), ("user", &filter.user), ("from", &filter.from), ("to", &filter.to)];
    let error = |name: &str| filter.errors.iter().find(|(field, _)| field == name).map(|(_, error)| error.as_str());
    let sees_own = cx.viewer.as_ref().is_some_and(|viewer| viewer.role != Role::Owner);
    let mut fields = vec![
        Field::new("user", Text::UserId, Control::Text, &filter.user).error(error("user")),
        Field::new("from", Text::From, Control::Moment, &filter.from).error(error("from")),
        Field::new("to", Text::To, Control::Moment, &filter.to).error(error("to")),
    ];
    if !sees_own {
        fields.insert(
            0,
            Field::new("actor", Text::Actor, Control::Text, &filter.actor).hint(Text::ActorHint).error(error("actor")),
        );
    }
    let filters = Filters { action: href("audit"), fields, presets: Vec::new(), region: "audit" };
    let view = ListView {
        id: "audit",
        caption: Text::Audit,
        empty: Text::NoAudit,
        href: with_query(&href("audit"), &query),
        bulk: None,
        export: Some(with_query(&href("audit/export"), &query)),
    };
    let lead = if sees_own { Text::AuditOwnLead } else { Text::AuditLead };
    let body = html! {
        (layout::heading(cx.t(Text::Audit), Some(cx.t(lead)), &html! {}))
        (lists::filters(cx, &filters))
        section.card aria-label=(cx.t(Text::Audit)) { (lists::list(cx, &view, &rows::AUDIT, &page.listing, |row| rows::audit(cx, row))) }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Audit), Place::Audit, body))
}
