//! Moderation: refused texts, the review queue, the word list, and both services side by side.

use maud::{Markup, html};

use crate::{
    domain::{
        moderation::{
            engine::{AcquittedWord, ContentType, MatchWay, Severity},
            policy::Service,
            reviews::Review,
            shadow_mode::Disagreement,
            violations::{NameCount, ViolationRecord, Violator},
            words::WordEntry,
        },
        operations::health_report::ProviderState,
    },
    http::{
        admin::sensitive_words::ShownAdvice,
        console::views::{
            cells::{self, Cell, Column, column},
            context::{Right, ViewContext, href, user_href},
            format::{self, Timestamp, with_query},
            forms::{self, Control, Field, Form, field},
            layout::{self, PageBody, Place},
            lists::{self, Bulk, Filters, ListView, Listing, number, text, time},
            parts::{self, facts, panel, panel_with},
            texts::{self, Text, Tone},
        },
    },
};

/// The columns of a list of refused texts.
pub const VIOLATION: &[Column<ViolationRecord>] = &[
    column(text(Text::Id), |found| {
        let page = href(&format!("moderation/violations/{}", found.id));
        Cell::Code(found.id.to_string()).link(page, Right::Moderate)
    }),
    column(text(Text::MaskedText), |found| Cell::Quoted(found.masked_text.clone())),
    column(text(Text::ViolationType), |found| Cell::word(found.violation_type.clone())),
    column(text(Text::ContentType), |found| Cell::word(found.content_type.clone())),
    column(text(Text::User), |found| Cell::User(found.user)),
    column(text(Text::DetectedBy), |found| Cell::word(found.provider.clone())),
    column(text(Text::Reviewed), |found| Cell::optional(found.acquitted_at, |_| Cell::state("wrongly_refused"))),
    column(time(Text::Time), |found| Cell::Time(found.at)),
    column(text(Text::Action), |found| {
        let (id, user) = (found.id.to_string(), found.user.to_string());
        Cell::html(move |cx| html! { @if cx.may(Right::Moderate) { (user_action(cx, &id, &user)) } })
    }),
];

/// Returns what a moderator may do about the users of several texts.
pub fn bulk(cx: &ViewContext) -> Bulk {
    Bulk {
        action: href("moderation/bulk"),
        controls: html! {
            (forms::reason(cx, "bulk", "", None))
            div.actions {
                button.button type="submit" name="act" value="reset-nickname" { (cx.t(Text::ResetNickname)) }
                button.button.danger type="submit" name="act" value="suspend" { (cx.t(Text::SuspendUser)) }
            }
        },
    }
}

/// The columns of users with many refused texts.
pub const FREQUENT: &[Column<Violator>] = &[
    column(text(Text::User), |one| Cell::User(one.user)),
    column(number(Text::Violations), |one| Cell::Number(one.count)),
    column(time(Text::Last), |one| Cell::Time(one.last_at)),
];

/// Renders the numbers of refused texts by type, and the users with many.
pub fn statistics(cx: &ViewContext, types: &[NameCount], frequent: &[Violator]) -> Markup {
    html! {
        div.columns {
            (panel("types", cx.t(Text::ByType), &bars(cx, types)))
            (panel("frequent", cx.t(Text::FrequentViolators), &cells::table_or(cx, Text::Nothing, Text::FrequentViolators, FREQUENT, frequent)))
        }
    }
}

/// Renders one refused text with its masked parts marked.
pub fn rejected_text(cx: &ViewContext, found: &ViolationRecord) -> Markup {
    let (id, user) = (found.id.to_string(), found.user.to_string());
    let body = html! {
        (layout::heading(cx.t(Text::Violation), Some(&id), &html! { a.button href=(href("moderation")) { (cx.t(Text::Violations)) } }))
        section.card aria-label=(cx.t(Text::MaskedText)) {
            @if found.masked_text.is_empty() { p.empty { (cx.t(Text::TextErased)) } } @else {
                p.message.quoted { bdi { @for (part, is_masked) in masked_parts(&found.masked_text) {
                    @if is_masked { mark { (part) } } @else { (part) }
                } } }
            }
            (facts(cx, &[
                (Text::ViolationType, html! { (texts::code(cx.language, &found.violation_type)) }),
                (Text::MatchedWords, html! { @for word in &found.words { span.badge.neutral { (word) } " " } }),
                (Text::ContentType, html! { (texts::code(cx.language, &found.content_type)) }),
                (Text::User, parts::user_link(cx, &user)),
                (Text::DetectedBy, html! { (texts::code(cx.language, &found.provider)) }),
                (Text::Time, cx.time(found.at)),
            ]))
            div.actions {
                (user_action(cx, &id, &user))
                @if found.acquitted_at.is_some() { (parts::state(cx, "wrongly_refused")) } @else { (acquit(cx, &id)) }
            }
        }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Violation), Place::Violations, body))
}

fn acquit(cx: &ViewContext, id: &str) -> Markup {
    let form = Form::new(cx, "acquit", href(&format!("moderation/violations/{id}/acquit")));
    let phrase = Field::new("phrase", Text::AllowPhrase, Control::Text, "").hint(Text::ReviewPhraseHint);
    form.act(cx.t(Text::WronglyRefused), "", &html! { (form.field(phrase)) (form.reason()) })
}

/// Splits a masked text into runs of asterisks and other runs; true for asterisks.
fn masked_parts(text: &str) -> Vec<(&str, bool)> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_masked = first == '*';
        let end = rest.find(|letter| (letter == '*') != is_masked).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        parts.push((part, is_masked));
        rest = after;
    }
    parts
}

fn user_action(cx: &ViewContext, id: &str, user: &str) -> Markup {
    let user = user_href(user);
    let form = Form::new(cx, format!("violation-{id}"), format!("{user}/reset-nickname"));
    let buttons = html! {
        div.actions {
            button.button type="submit" { (cx.t(Text::ResetNickname)) }
            button.button.danger type="submit" formaction={ (user) "/suspend" } { (cx.t(Text::SuspendUser)) }
        }
    };
    form.act_with_button(cx.t(Text::ActOnUser), "small", &form.reason(), &buttons)
}

/// Renders counts with bars.
fn bars(cx: &ViewContext, counts: &[NameCount]) -> Markup {
    let high = counts.iter().map(|one| one.count).max().unwrap_or(1).max(1);
    html! {
        dl.bars { @for NameCount { name, count } in counts {
            div { dt { (texts::code(cx.language, name)) } dd { meter max=(high) value=(count) aria-label=(texts::code(cx.language, name)) {} span.num { (format::number(*count)) } } }
        } }
    }
}

/// A text in the review queue.
pub struct ReviewItem {
    pub review: Review,
    pub nickname: String,
    /// Earlier violations of the user.
    pub earlier: i64,
}

/// The review queue, oldest first, with the last decisions.
pub struct ReviewPage {
    pub items: Vec<ReviewItem>,
    pub waiting: format::ShownCount,
    pub decided: Vec<Review>,
    /// Results of the last bulk action: id and the code of its outcome.
    pub results: Vec<(String, &'static str)>,
}

/// Renders the review queue.
pub fn review(cx: &ViewContext, page: &ReviewPage) -> Markup {
    let form = Form::new(cx, "review", href("moderation/review"));
    let phrase = Field::new("phrase", Text::AllowPhrase, Control::Text, "").hint(Text::ReviewPhraseHint);
    let body = html! {
        (layout::heading(cx.t(Text::ReviewQueue), Some(cx.t(Text::ReviewLead)), &html! { span.hint { (texts::waiting(cx.language, &page.waiting.text())) } }))
        @if !page.results.is_empty() {
            (panel("results", cx.t(Text::Results), &lists::table(cx, Text::Results, &[text(Text::Id), text(Text::Outcome)], page.results.iter().map(|(id, outcome)| vec![
                html! { code { (id) } }, parts::state(cx, outcome),
            ]))))
        }
        @if page.items.is_empty() { section.card { p.empty { (cx.t(Text::QueueEmpty)) } } } @else {
            (form.with_button(&html! {
                ul.queue { @for item in &page.items { li.card { (queued(cx, item)) } } }
            }, &html! {
                section.card.bulk aria-label=(cx.t(Text::BulkAction)) {
                    p { button.button.small type="button" hidden data-select-all { (cx.t(Text::SelectAll)) } }
                    (form.reason())
                    (form.field(phrase))
                    div.actions {
                        button.button type="submit" name="decision" value="acquit" { (cx.t(Text::AcquitTexts)) }
                        button.button.primary type="submit" name="decision" value="uphold" { (cx.t(Text::UpholdTexts)) }
                    }
                }
            }))
        }
        @if !page.decided.is_empty() { (panel("decided", cx.t(Text::LastDecisions), &cells::table(cx, Text::LastDecisions, DECIDED, &page.decided))) }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::ReviewQueue), Place::Review, body))
}

fn queued(cx: &ViewContext, item: &ReviewItem) -> Markup {
    let review = &item.review;
    html! {
        label.pick { input type="checkbox" name="ids" value=(review.id); span.quoted { bdi { (review.excerpt) } } }
        p.marks {
            (parts::badge(Tone::Notice, texts::code(cx.language, &review.violation_type)))
            (parts::badge(Tone::Neutral, texts::code(cx.language, &review.content_type)))
            @for way in review.ways.iter().filter_map(|way| MatchWay::from_name(way)) { (parts::badge(Tone::Neutral, cx.word(&way))) }
            @for word in &review.words { span.badge.neutral { mark { (word) } } }
        }
        p.hint {
            (parts::user_link(cx, &review.user.to_string())) " " (item.nickname) " · " (texts::earlier(cx.language, item.earlier)) " · " (texts::code(cx.language, &review.provider)) " · " (cx.time(review.at))
        }
    }
}

/// The columns of texts that were decided about.
const DECIDED: &[Column<Review>] = &[
    column(text(Text::TheText), |review| {
        // The text as written is cleared a day after the decision.
        Cell::Quoted(if review.excerpt.is_empty() { &review.masked_text } else { &review.excerpt }.clone())
    }),
    column(text(Text::Outcome), |review| Cell::state(review.state)),
    column(text(Text::Actor), |review| Cell::optional(review.decided_by.clone(), Cell::Code)),
    column(time(Text::Time), |review| Cell::Time(review.decided_at.unwrap_or(review.at))),
    column(text(Text::Action), |review| {
        let id = review.id;
        Cell::html(move |cx| {
            let form = html! {
                input type="hidden" name="ids" value=(id);
                button.button.small type="submit" { (cx.t(Text::Undo)) span.sr { " " (id) } }
            };
            forms::post(cx, &href("moderation/review/undo"), &form)
        })
    }),
];

/// The columns of the word list.
const WORD: &[Column<WordEntry>] = &[
    column(text(Text::Word), |entry| Cell::text(&entry.word.text)),
    column(text(Text::ViolationType), |entry| {
        let (kind, tags) = (entry.word.kind.clone(), entry.word.tags.clone());
        Cell::html(move |cx| {
            html! {
                (texts::code(cx.language, &kind)) @for tag in &tags { " " span.badge.neutral { (tag) } }
            }
        })
    }),
    column(text(Text::BySound), |entry| Cell::Label(if entry.word.by_sound { Text::Yes } else { Text::No })),
    column(text(Text::Severity), |entry| Cell::word(entry.word.severity)),
    column(text(Text::AppliesTo), |entry| {
        let names = entry.word.content_types.names();
        Cell::html(move |cx| html! { (applies_to(cx, &names)) })
    }),
    column(time(Text::Added), |entry| Cell::Time(entry.created_at)),
    column(text(Text::Action), |entry| {
        let word = entry.word.text.clone();
        Cell::html(move |cx| {
            let form = html! {
                input type="hidden" name="word" value=(word);
                button.button.small type="submit" { (cx.t(Text::Remove)) span.sr { " " (word) } }
            };
            forms::post(cx, &href("moderation/words/remove"), &form)
        })
    }),
];

/// The ruling about a tested text.
#[derive(Clone, Debug)]
pub struct Tested {
    /// `allow`, `review`, `mask` or `block`.
    pub action: &'static str,
    pub masked_text: String,
    pub matches: Vec<TestedMatch>,
    /// Listed words that other words of the text acquit.
    pub acquitted: Vec<AcquittedWord>,
}

/// A listed word in a tested text.
#[derive(Clone, Debug)]
pub struct TestedMatch {
    pub word: String,
    pub kind: String,
    /// The way in which the word was found.
    pub way: MatchWay,
    /// The part of the text.
    pub part: String,
    /// The match with the characters around it, which is proposed as an allowed phrase.
    pub phrase: String,
}

/// The word list with its filters.
#[derive(Clone, Debug)]
pub struct Words {
    pub part: String,
    pub kind: String,
    pub tag: String,
    pub types: Vec<(String, i64)>,
    pub listing: Listing<WordEntry>,
    pub allowed: Vec<String>,
    pub version: i64,
    pub version_in_force: i64,
    pub changed_at: Option<Timestamp>,
    /// The phrase that a page proposes to allow.
    pub proposed_phrase: String,
    pub tested: Option<Tested>,
    /// The words that the typed lines would add.
    pub import: Option<ImportPreview>,
}

/// The words that an import would add.
#[derive(Clone, Debug)]
pub struct ImportPreview {
    pub new: Vec<String>,
    pub existing: usize,
    /// Skipped lines: number, text, reason.
    pub skipped: Vec<(usize, String, String)>,
    pub warnings: Vec<ShownAdvice>,
}

/// The most words or lines of a preview that are listed.
const LISTED_IN_PREVIEW: usize = 100;

/// Renders the word list.
pub fn words(cx: &ViewContext, page: &Words) -> Markup {
    let mut kinds = vec![("", cx.t(Text::AnyType).to_owned())];
    kinds.extend(page.types.iter().map(|(kind, _)| (kind.as_str(), texts::code(cx.language, kind).to_owned())));
    let filters = Filters {
        action: href("moderation/words"),
        fields: vec![
            Field::new("search", Text::Word, Control::Search, &page.part),
            Field::new("type", Text::ViolationType, Control::Select(kinds), &page.kind),
            Field::new("tag", Text::Tag, Control::Text, &page.tag).max_length(32),
        ],
        presets: Vec::new(),
        region: "words",
    };
    let query = [("search", page.part.as_str()), ("type", &page.kind), ("tag", &page.tag)];
    let view = ListView {
        id: "words",
        caption: Text::WordList,
        empty: Text::NoWords,
        href: with_query(&href("moderation/words"), &query),
        export: None,
        bulk: None,
    };
    let body = html! {
        (layout::heading(cx.t(Text::WordList), None, &html! {
            span.hint { (texts::list_version(cx.language, page.version, page.version_in_force)) }
            a.button href=(href("moderation/words/export")) download { (cx.t(Text::ExportCsv)) }
        }))
        div.columns {
            (panel("test", cx.t(Text::TestText), &test_form(cx, page)))
            (panel("add", cx.t(Text::AddWord), &add_form(cx)))
        }
        (lists::filters(cx, &filters))
        section.card aria-label=(cx.t(Text::WordList)) {
            (lists::list(cx, &view, &cells::headings(WORD), &page.listing, |row| cells::cells(cx, WORD, row)))
        }
        div.columns {
            (panel("allowed", cx.t(Text::AllowedPhrases), &allowed(cx, page)))
            (panel("import", cx.t(Text::ImportWords), &import_form(cx, page)))
        }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::WordList), Place::Words, body))
}

fn test_form(cx: &ViewContext, page: &Words) -> Markup {
    let types =
        ["nickname", "signature", "question", "answer"].map(|kind| (kind, texts::code(cx.language, kind).to_owned()));
    let (types, form) = (types.to_vec(), Form::new(cx, "test", href("moderation/words/test")));
    html! {
        (form.render(cx.t(Text::TestText), &html! {
            (form.field(Field::new("text", Text::TextToTest, Control::Area, "").required()))
            (form.field(Field::new("contentType", Text::ContentType, Control::Select(types), ContentType::Question.name())))
        }))
        @if let Some(tested) = &page.tested {
            div.result role="status" {
                p { (action_badge(cx, tested.action)) " " span.quoted { (tested.masked_text) } }
                @if !tested.matches.is_empty() { ul { @for found in &tested.matches { li { mark { (found.part) } " → " (found.word) " · " (texts::code(cx.language, &found.kind)) " · " (cx.word(&found.way)) " " a href={ (with_query(&href("moderation/words"), &[("allow", found.phrase.as_str())])) "#allowed" } { (cx.t(Text::AllowPhrase)) } } } } }
                @if !tested.acquitted.is_empty() { ul { @for found in &tested.acquitted { li { (found.text) " ≠ " (found.word) " · " (cx.t(Text::ReadsAs)) " " (found.words.join(" | ")) } } } }
            }
        }
    }
}

/// Returns the badge of the treatment of a text.
fn action_badge(cx: &ViewContext, action: &str) -> Markup {
    let (tone, text) = match action {
        "allow" => (Tone::Good, Text::Allowed),
        "review" => (Tone::Notice, Text::ToReview),
        "mask" => (Tone::Notice, Text::Masked),
        _ => (Tone::Bad, Text::Refused),
    };
    parts::badge(tone, cx.t(text))
}

/// Returns the names of content types, or the text for all of them.
fn applies_to(cx: &ViewContext, content_types: &[&str]) -> String {
    if content_types.is_empty() {
        return cx.t(Text::AllTexts).to_owned();
    }
    content_types.iter().map(|name| texts::code(cx.language, name)).collect::<Vec<_>>().join(", ")
}

fn add_form(cx: &ViewContext) -> Markup {
    let form = Form::new(cx, "add", href("moderation/words/add"));
    let [kind, tags] = [("type", Text::ViolationType), ("tags", Text::Tags)]
        .map(|(name, label)| Field::new(name, label, Control::Text, ""));
    let by_sound = vec![("true", cx.t(Text::Yes).to_owned()), ("false", cx.t(Text::No).to_owned())];
    let severity = Control::Select(cx.options(&Severity::ALL));
    let severity = Field::new("severity", Text::Severity, severity, Severity::default().name());
    let fields = html! {
        (form.field(Field::new("word", Text::Word, Control::Text, "").required()))
        (form.field(kind.hint(Text::WordTypeHint).max_length(32)))
        (form.field(severity.hint(Text::SeverityHint)))
        (form.field(tags.hint(Text::TagsHint)))
        fieldset.choices {
            legend { (cx.t(Text::AppliesTo)) }
            p.hint { (cx.t(Text::AppliesToHint)) }
            @for kind in ContentType::ALL {
                label { input type="checkbox" name="contentTypes" value=(kind.name()) checked[form.has("contentTypes", kind.name())]; span { (cx.word(&kind)) } }
            }
        }
        (form.field(Field::new("bySound", Text::BySoundLong, Control::Select(by_sound), "true").required()))
    };
    form.render(cx.t(Text::AddWord), &fields)
}

fn allowed(cx: &ViewContext, page: &Words) -> Markup {
    let form = Form::new(cx, "allow", href("moderation/words/allow"));
    let phrase = Field::new("phrase", Text::Phrase, Control::Text, &page.proposed_phrase).required();
    html! {
        ul.tags { @for phrase in &page.allowed {
            li { span { (phrase) } (forms::post(cx, &href("moderation/words/disallow"), &html! {
                input type="hidden" name="phrase" value=(phrase);
                button.icon type="submit" aria-label=(texts::remove_label(cx.language, phrase)) { (parts::icon(parts::Icon::Close)) }
            })) }
        } }
        (form.render(cx.t(Text::AllowPhrase), &form.field(phrase.hint(Text::PhraseHint))))
    }
}

fn import_form(cx: &ViewContext, page: &Words) -> Markup {
    let form = Form::new(cx, "import", href("moderation/words/import"));
    let lines = Field::new("lines", Text::ImportLines, Control::Area, "").required().hint(Text::CsvFileHint);
    let fields = html! {
        (form.field(lines))
        (form.field(Field::new("skipWarned", Text::SkipWarned, Control::Checkbox, "true")))
    };
    let buttons = html! {
        div.actions {
            button.button.primary type="submit" name="dryRun" value="true" { (cx.t(Text::PreviewImport)) }
            button.button type="submit" name="dryRun" value="false" { (cx.t(Text::ImportWords)) }
        }
    };
    html! {
        (form.with_button(&fields, &buttons))
        @if let Some(preview) = &page.import {
            div.result role="status" {
                p { (texts::import_preview(cx.language, preview.new.len(), preview.existing, preview.skipped.len())) }
                @if !preview.new.is_empty() { ul.tags { @for word in preview.new.iter().take(LISTED_IN_PREVIEW) { li { (word) } } } }
                @if !preview.warnings.is_empty() {
                    p { (parts::badge(Tone::Notice, cx.t(Text::WouldRejectInnocent))) " " (preview.warnings.len()) }
                    ul { @for warning in preview.warnings.iter().take(LISTED_IN_PREVIEW) { li { bdi { (texts::word_warning(cx.language, warning)) } } } }
                }
                @if !preview.skipped.is_empty() { ul { @for (line, text, reason) in preview.skipped.iter().take(LISTED_IN_PREVIEW) {
                    li { (line) ": " bdi { (text) } " – " (reason) }
                } } }
            }
        }
    }
}

/// The columns of texts about which the services disagree.
const DISAGREEMENT: &[Column<Disagreement>] = &[
    column(text(Text::MaskedText), |found| Cell::Quoted(found.masked_text.clone())),
    column(text(Text::ContentType), |found| Cell::word(found.content_type.clone())),
    column(text(Text::LocalService), |found| Cell::state(verdict(found.local_allowed))),
    column(text(Text::ExternalService), |found| Cell::state(verdict(found.external_allowed))),
    column(time(Text::Time), |found| Cell::Time(found.at)),
];

/// Returns the code of a ruling.
pub const fn verdict(is_allowed: bool) -> &'static str {
    if is_allowed { "allowed" } else { "refused" }
}

/// The rulings of both services about one text: service, ruling, milliseconds.
#[derive(Clone, Debug)]
pub struct Compared {
    pub text: String,
    pub rulings: Vec<(Service, String, i64)>,
}

/// Both services.
#[derive(Clone, Debug)]
pub struct ServicesPage {
    pub selected: Service,
    pub has_fallback: bool,
    pub provider: String,
    /// None if no moderator is configured.
    pub state: Option<ProviderState>,
    pub last_failure: Option<(Timestamp, String)>,
    pub word_count: i64,
    pub compared: Option<Compared>,
    pub text: String,
    pub disagreements: Listing<Disagreement>,
}

/// Renders both services.
pub fn services(cx: &ViewContext, page: &ServicesPage) -> Markup {
    let other = match page.selected {
        Service::Local => Service::External,
        Service::External => Service::Local,
    };
    let switch_to = texts::switch_to(cx.language, cx.word(&other));
    let is_external = if other == Service::External { "true" } else { "false" };
    let switch = Form::new(cx, "switch", href("moderation/services/switch")).hidden("useAliyun", is_external);
    let (enables, fallback_label) =
        if page.has_fallback { ("false", Text::FallbackOff) } else { ("true", Text::FallbackOn) };
    let fallback = Form::new(cx, "fallback", href("moderation/services/fallback")).hidden("enableFallback", enables);
    let view = ListView {
        id: "disagreements",
        caption: Text::Disagreements,
        empty: Text::NoDisagreements,
        href: href("moderation/services"),
        bulk: None,
        export: None,
    };
    let body = html! {
        (layout::heading(cx.t(Text::Services), None, &html! {}))
        div.columns {
            (panel_with("status", cx.t(Text::WhoDecides), &parts::badge(Tone::Good, cx.word(&page.selected)), &html! {
                (facts(cx, &[
                    (Text::ExternalService, html! { (page.provider) " " @match &page.state { Some(state) => (parts::state(cx, state)), None => (parts::state(cx, "not_configured")) } }),
                    (Text::Fallback, html! { (cx.t(if page.has_fallback { Text::On } else { Text::Off })) }),
                    (Text::WordsListed, html! { (format::number(page.word_count)) }),
                    (Text::LastFailure, match &page.last_failure { Some((at, code)) => html! { code { (code) } " " (cx.time(*at)) }, None => parts::dash(cx) }),
                ]))
                @if cx.may(Right::Administer) { div.actions {
                    (switch.danger(&switch_to, "", &switch.reason()))
                    (fallback.act(cx.t(fallback_label), "", &fallback.reason()))
                } }
            }))
            (panel("compare", cx.t(Text::CompareServices), &html! {
                (forms::post(cx, &href("moderation/services/compare"), &html! {
                    (field(cx, &Field::new("text", Text::TextToTest, Control::Area, &page.text).id("compare-text").required()))
                    button.button.primary type="submit" { (cx.t(Text::Compare)) }
                }))
                @if let Some(compared) = &page.compared {
                    div role="status" { ul.lines.result { @for (service, ruling, ms) in &compared.rulings { li { span { (cx.word(service)) span.hint { (format::milliseconds(*ms)) } } (parts::state(cx, ruling)) } } } }
                }
            }))
        }
        (panel("disagreements-panel", cx.t(Text::Disagreements), &lists::list(cx, &view, &cells::headings(DISAGREEMENT), &page.disagreements, |row| cells::cells(cx, DISAGREEMENT, row))))
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Services), Place::Compare, body))
}
