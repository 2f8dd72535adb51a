//! The word list and the allowed phrases. Changes wait for the active list, so each is in force when its page is shown.

use std::{ops::Range, sync::Arc};

use axum::{body::Body, http::Response};

use crate::{
    app::App,
    domain::moderation::{
        self,
        engine::{ContentType, Match},
        phrase_warning::PhraseWarning,
        status,
        word_list::{self, WordChoice},
        words::{self, CSV_HEADER, ImportOptions, WordQuery},
    },
    error::{Error, Fault, FieldCode, Result, Sentence},
    http::{
        admin::sensitive_words::{self, ShownAdvice},
        console::{
            acts, csv,
            request::{ConsoleRequest, ok},
            views::{
                lists::{Listing, Rows},
                pages::moderation::{self as view, ImportPreview, Tested, TestedMatch, Words},
                texts::{self, Text},
            },
        },
        reply::Saved,
    },
};

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    ok(view::words(&console.view()?, &collect(&console).await?))
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
        proposed_phrase: console.query.get("allow").to_owned(),
        tested: None,
        import: None,
    })
}

/// Shows the page with a result, and the form as it was typed.
async fn show_result(console: &ConsoleRequest, fill: impl FnOnce(&mut Words)) -> Result<Response<Body>> {
    console.keep_form(None);
    let mut shown = collect(console).await?;
    fill(&mut shown);
    ok(view::words(&console.view()?, &shown))
}

fn longest_word(app: &App) -> usize {
    app.core.config.limits.word as usize
}

pub async fn test(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let text = console.form.get("text").to_owned();
    let content_type = ContentType::from_name(console.form.get("contentType")).unwrap_or(ContentType::Question);
    let letters: Vec<char> = text.chars().collect();
    let (ruling, acquitted) = console
        .context
        .blocking(move |app| {
            let ruling = moderation::moderate_locally(&app.moderation, content_type, &text)?;
            Ok((ruling, moderation::acquitted_words(&app.moderation, content_type, &text)?))
        })
        .await?;
    show_result(&console, |shown| {
        let matched = |found: Match| TestedMatch {
            phrase: phrase_around(&letters, found.start..found.end),
            word: found.word,
            kind: found.kind,
            way: found.way,
            part: found.text,
        };
        shown.tested = Some(Tested {
            action: ruling.action(),
            masked_text: ruling.masked_text,
            matches: ruling.matches.into_iter().map(matched).collect(),
            acquitted,
        });
    })
    .await
}

/// Returns a part of a text with the letters next to it, up to two on each side.
fn phrase_around(text: &[char], part: Range<usize>) -> String {
    let is_letter = |letter: &&char| letter.is_alphanumeric();
    let before = text[..part.start].iter().rev().take(2).take_while(is_letter).count();
    let after = text[part.end..].iter().take(2).take_while(is_letter).count();
    text[part.start - before..part.end + after].iter().collect()
}

/// Adds a word, and says what is against it.
pub async fn add(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let added = acts::perform(&console, &sensitive_words::add).await;
    let message = match added {
        Ok(Saved { is_new: false, .. }) => {
            let fault = Fault::new(FieldCode::InvalidFormat, Sentence::for_reader(console.text(Text::WordIsListed)));
            Err(Error::field("word", fault))
        }
        added => added.map(|added| {
            let warning = added.resource.advice.map(|advice| texts::word_warning(console.language(), &advice));
            let done = console.text(Text::ActionDone);
            warning.map_or_else(|| done.to_owned(), |warning| format!("{done} {warning}"))
        }),
    };
    acts::finish(&console, message).await
}

/// Allows a phrase, and says what it does not do.
pub async fn allow(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let allowed = match console.required_text("phrase", longest_word(&console.context.app)) {
        Ok(phrase) => console.context.blocking(move |app| word_list::allow(&app.moderation, phrase)).await,
        Err(error) => Err(error),
    };
    acts::finish(&console, allowed.map(|allowed| console.text(allowed_text(allowed.warning)).to_owned())).await
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

/// Shows what the typed lines would change, or adds their words.
pub async fn import(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    if console.form.get("dryRun") != "true" {
        let imported = acts::perform(&console, &sensitive_words::import).await;
        return acts::done(&console, imported).await;
    }
    let options = ImportOptions { max_length: longest_word(&console.context.app), ..ImportOptions::default() };
    let (found, skipped) = words::parse(console.form.get("lines").as_bytes(), &options, |_| {});
    if found.is_empty() {
        let fault = Fault::new(FieldCode::InvalidFormat, Sentence::for_reader(console.text(Text::NoValidLine)));
        return acts::reject(&console, Error::field("lines", fault)).await;
    }
    let choice = WordChoice { skip_warned: console.form.get("skipWarned") == "true", dry_run: true };
    let imported =
        console.context.blocking(move |app| word_list::import_advised(&app.moderation, found, choice, |_| {})).await?;
    show_result(&console, |shown| {
        let skipped = skipped.into_iter().map(|line| (line.line, line.text, line.reason)).collect();
        let warnings = imported.warnings.into_iter().map(ShownAdvice::from).collect();
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
