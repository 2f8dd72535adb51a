//! The word list and the allowed phrases. Changes wait for the active list, so each is in force when its page is shown.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Response, StatusCode},
};

use crate::{
    app::App,
    domain::moderation::{
        self,
        adviser::{self, WordAdvice},
        engine::{ContentType, ContentTypes, Match, Severity, Word},
        phrase_warning::PhraseWarning,
        status,
        word_list::{self, WordChoice},
        words::{self, CSV_HEADER, ImportOptions, UNTYPED, WordQuery},
    },
    error::{Code, Error, Fault, FieldCode, Result, Sentence},
    http::{
        console::{
            csv,
            request::{ConsoleRequest, message_of, ok, page},
            views::{
                lists::{Listing, Rows},
                pages::moderation::{self as view, ImportPreview, Tested, TestedMatch, WordWarning, Words},
                texts::Text,
            },
        },
        reply,
    },
    types::clean,
};

const PAGE: &str = "moderation/words";
/// The longest type of a word, in characters.
const MAX_KIND: usize = 32;

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let mut shown = collect(&console).await?;
    console.query.get("allow").clone_into(&mut shown.typed_phrase);
    ok(view::words(&console.view()?, &shown))
}

/// Collects the list that the address asks for, with empty forms.
async fn collect(console: &ConsoleRequest) -> Result<Words> {
    let part = console.query.find("search").map(ToOwned::to_owned);
    let kind = console.query.find("type").map(ToOwned::to_owned);
    let tag = console.query.find("tag").map(ToOwned::to_owned);
    let page = console.page_request();
    let filter = WordQuery { kind: kind.clone(), tag: tag.clone(), part: part.clone() };
    let (found, allowed, state) = console
        .context
        .report(move |app| {
            let found = word_list::list(&app.core, &filter, page)?;
            Ok((found, word_list::allowed_phrases(&app.core)?, status::current(&app.moderation)?))
        })
        .await?;
    Ok(Words {
        part: part.unwrap_or_default(),
        kind: kind.unwrap_or_default(),
        tag: tag.unwrap_or_default(),
        types: state.words.kinds.into_iter().map(|kind| (kind.kind, kind.count)).collect(),
        listing: Listing::Rows(Rows::numbered(page, found)),
        allowed,
        version: state.words.version,
        version_in_force: state.active_version,
        changed_at: state.words.changed_at,
        typed_phrase: String::new(),
        phrase_error: None,
        typed_word: String::new(),
        typed_kind: String::new(),
        by_sound: true,
        severity: Severity::default(),
        typed_tags: String::new(),
        content_types: Vec::new(),
        word_error: None,
        test_text: String::new(),
        test_type: ContentType::Question.name().to_owned(),
        tested: None,
        import_lines: String::new(),
        skip_warned: true,
        import: None,
        import_error: None,
    })
}

/// Shows the page again with what was typed.
async fn show_again(
    console: &ConsoleRequest,
    status: StatusCode,
    fill: impl FnOnce(&mut Words),
) -> Result<Response<Body>> {
    let mut shown = collect(console).await?;
    fill(&mut shown);
    Ok(page(status, view::words(&console.view()?, &shown)))
}

/// Returns the message for a field, unless the fault is one of the service.
fn message_for(console: &ConsoleRequest, error: Error, field: &str) -> Result<(StatusCode, String)> {
    if error.code == Code::Internal {
        return Err(error);
    }
    let message = console.fault_of(&error, field).unwrap_or_else(|| message_of(&error, console.language()));
    Ok((reply::status(error.code), message))
}

fn longest_word(app: &App) -> usize {
    app.core.config.limits.word as usize
}

pub async fn test(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let text = console.form.get("text").to_owned();
    let content_type = ContentType::from_name(console.form.get("contentType")).unwrap_or(ContentType::Question);
    let tested = text.clone();
    let ruling = console
        .context
        .blocking(move |app| moderation::moderate_locally(&app.moderation, content_type, &tested))
        .await?;
    show_again(&console, StatusCode::OK, |shown| {
        shown.test_text = text;
        content_type.name().clone_into(&mut shown.test_type);
        let matched =
            |found: Match| TestedMatch { word: found.word, kind: found.kind, way: found.way, part: found.text };
        shown.tested = Some(Tested {
            action: ruling.action(),
            masked_text: ruling.masked_text,
            matches: ruling.matches.into_iter().map(matched).collect(),
        });
    })
    .await
}

pub async fn add(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let error = match try_add(&console).await {
        Ok((true, advice)) => {
            let done = console.text(Text::ActionDone);
            let warning = advice.filter(WordAdvice::is_warning).map(|advice| warning_of(&advice));
            let warning = warning.map(|warning| warning.text(console.language()));
            return console.done(PAGE, &warning.map_or_else(|| done.to_owned(), |warning| format!("{done} {warning}")));
        }
        Ok((false, _)) => {
            let fault = Fault::new(FieldCode::InvalidFormat, Sentence::for_reader(console.text(Text::WordIsListed)));
            Error::field("word", fault)
        }
        Err(error) => error,
    };
    let (status, message) = message_for(&console, error, "word")?;
    show_again(&console, status, |shown| {
        console.form.get("word").clone_into(&mut shown.typed_word);
        console.form.get("type").clone_into(&mut shown.typed_kind);
        shown.by_sound = console.form.get("bySound") == "true";
        shown.severity = Severity::from_name(console.form.get("severity")).unwrap_or_default();
        console.form.get("tags").clone_into(&mut shown.typed_tags);
        shown.content_types = console.form.all("contentType").map(ToOwned::to_owned).collect();
        shown.word_error = Some(message);
    })
    .await
}

/// Adds the word. Returns true if it is new, and the advice about it.
async fn try_add(console: &ConsoleRequest) -> Result<(bool, Option<WordAdvice>)> {
    let text = console.required_text("word", longest_word(&console.context.app))?;
    let kind = clean(console.form.get("type"), MAX_KIND).map_err(|fault| Error::field("type", fault))?;
    let has_type = !kind.is_empty();
    let kind = if has_type { kind } else { UNTYPED.to_owned() };
    let tags = words::parse_tags(console.form.get("tags")).map_err(|fault| Error::field("tags", fault))?;
    let word = Word {
        text,
        kind,
        by_sound: console.form.get("bySound") == "true",
        severity: Severity::from_name(console.form.get("severity")).unwrap_or_default(),
        tags,
        content_types: ContentTypes::of(console.form.all("contentType").filter_map(ContentType::from_name)),
    };
    console
        .context
        .blocking(move |app| {
            let advice = adviser::advise(&app.core, std::slice::from_ref(&word))?;
            Ok((word_list::add(&app.moderation, word, has_type, false)?.is_new, advice.into_iter().next()))
        })
        .await
}

fn warning_of(advice: &WordAdvice) -> WordWarning {
    WordWarning {
        word: advice.word.clone(),
        is_ordinary: advice.is_ordinary,
        longer_words: advice.longer_words.clone(),
        rejected: advice.rejected_count,
        sentences: adviser::sample_size(),
    }
}

pub async fn remove(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let word = console.form.get("word").to_owned();
    let removed = console.context.blocking(move |app| word_list::remove(&app.moderation, word)).await;
    console.finish(PAGE, removed)
}

pub async fn allow(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let allowed = match console.required_text("phrase", longest_word(&console.context.app)) {
        Ok(phrase) => console.context.blocking(move |app| word_list::allow(&app.moderation, phrase)).await,
        Err(error) => Err(error),
    };
    let error = match allowed {
        Err(error) => error,
        Ok(allowed) => {
            return console.done(PAGE, console.text(allowed_text(allowed.warning)));
        }
    };
    let (status, message) = message_for(&console, error, "phrase")?;
    show_again(&console, status, |shown| {
        console.form.get("phrase").clone_into(&mut shown.typed_phrase);
        shown.phrase_error = Some(message);
    })
    .await
}

/// Returns the message about an allowed phrase.
pub fn allowed_text(warning: Option<PhraseWarning>) -> Text {
    match warning {
        Some(PhraseWarning::SwitchesOffWord) => Text::PhraseIsWord,
        Some(PhraseWarning::ContainsNoWord) => Text::PhraseWithoutWord,
        Some(PhraseWarning::DoesNotAcquit) => Text::PhraseAcquitsNot,
        None => Text::ActionDone,
    }
}

pub async fn disallow(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let phrase = console.form.get("phrase").to_owned();
    let removed = console.context.blocking(move |app| word_list::disallow(&app.moderation, phrase)).await;
    console.finish(PAGE, removed)
}

/// Shows what the typed lines would change, or adds their words.
pub async fn import(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let lines = console.form.get("lines").to_owned();
    let options = ImportOptions { max_length: longest_word(&console.context.app), ..ImportOptions::default() };
    let (found, skipped) = words::parse(lines.as_bytes(), &options, |_| {});
    let is_empty = found.is_empty();
    let (step, skip_warned) = (console.form.get("step"), console.form.get("skipWarned") == "true");
    let choice = WordChoice { skip_warned, dry_run: step != "import" || is_empty };
    if !choice.dry_run {
        let imported = console
            .context
            .blocking(move |app| word_list::import_advised(&app.moderation, found, choice, |_| {}))
            .await;
        return console.finish(PAGE, imported);
    }
    let imported =
        console.context.blocking(move |app| word_list::import_advised(&app.moderation, found, choice, |_| {})).await?;
    let status = if is_empty { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    show_again(&console, status, |shown| {
        shown.import_lines = lines;
        shown.skip_warned = skip_warned;
        shown.import_error = is_empty.then(|| console.text(Text::NoValidLine).to_owned());
        let skipped = skipped.into_iter().map(|line| (line.line, line.text, line.reason)).collect();
        let warnings = imported.warnings.iter().map(warning_of).collect();
        shown.import = Some(ImportPreview { new: imported.new, existing: imported.result.existing, skipped, warnings });
    })
    .await
}

/// Responds with the whole list, in the format that an import reads.
pub async fn export(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let all = console.context.report(|app| word_list::all(&app.core)).await?;
    let lines: Vec<_> = std::iter::once(CSV_HEADER.to_owned()).chain(all.iter().map(words::to_csv_line)).collect();
    csv::respond("words", Body::from(lines.join("\n") + "\n"))
}
