//! `/admin/sensitive-words`: the local word list. A change is active before its response is sent.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::moderation::{
        self, Ruling,
        engine::{ContentType, Match, Word},
        status, word_list,
        words::{self, UNTYPED, WordEntry},
    },
    error::{Error, Result},
    http::{
        numbered_page::NumberedPage,
        params::{Content, Flag, Label, ListedWord, Nothing, PageNumber, PageSize, Rules, page, parameters},
        reply::{Json, Saved},
        request_context::RequestContext,
    },
    types::Timestamp,
};

parameters! {
    AddWordParams(fields) {
        kind: Option<Label> = fields.optional("type", "politics, porn, abuse, violence, gambling, drugs, fraud, ads, contact, other, or a type of one's own.");
        by_sound: Option<Flag> = fields.optional("bySound", "Also match by pronunciation. Default: true.");
        new: NewWord = {
            let word = fields.required("word", "The word. Wildcards are plain characters.");
            let force = fields.optional("force", "Accept a word of one character.");
            fields.cross_field(word.zip(force), new_word)
        };
    }

    RemoveWordParams(fields) {
        word: ListedWord = fields.required("word", "The word, or another spelling of it.");
    }

    ListWordsParams(fields) {
        kind: Option<Label> = fields.optional("type", "Only words of this type.");
        part: Option<ListedWord> = fields.optional("word", "Only words that contain this text.");
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Words on a page.");
    }

    TestTextParams(fields) {
        content: Content = fields.required("content", "The text to check against the local list.");
    }
}

/// A listed word.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WordAdded {
    /// The word as it is listed: another spelling of it may have been listed before.
    #[schema(example = "赌博")]
    word: String,
    #[schema(example = "gambling")]
    r#type: String,
    /// False if it was listed before.
    #[schema(example = true)]
    created: bool,
    /// Number of words on the list.
    #[schema(example = 60)]
    total: i64,
}

pub async fn add(context: RequestContext, add: AddWordParams) -> Result<Saved<WordAdded>> {
    let NewWord { text, force } = add.new;
    let word = Word {
        text,
        kind: add.kind.map_or_else(|| UNTYPED.to_owned(), |Label(kind)| kind),
        by_sound: add.by_sound.is_none_or(|Flag(by_sound)| by_sound),
    };
    let (added, statistics) = context
        .blocking(move |app| Ok((word_list::add(&app.moderation, word, force)?, word_list::statistics(&app.core)?)))
        .await?;
    let is_new = added.is_new;
    let resource = WordAdded { word: added.word, r#type: added.kind, created: is_new, total: statistics.total };
    Ok(Saved { resource, is_new })
}

/// A validated word to list.
pub struct NewWord {
    text: String,
    force: bool,
}

fn new_word(rules: &Rules<'_>, (ListedWord(text), force): (ListedWord, Option<Flag>)) -> Result<NewWord> {
    let force = force.is_some_and(|Flag(force)| force);
    let longest = rules.config.limits.word as usize;
    words::check(&text, longest, force).map_err(|fault| Error::field("word", fault))?;
    Ok(NewWord { text, force })
}

/// A removed word.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WordRemoved {
    #[schema(example = "赌博")]
    word: String,
    #[schema(example = "gambling")]
    r#type: String,
    #[schema(example = true)]
    removed: bool,
    /// Number of words on the list.
    #[schema(example = 59)]
    total: i64,
}

pub async fn remove(context: RequestContext, remove: RemoveWordParams) -> Result<Json<WordRemoved>> {
    let ListedWord(word) = remove.word;
    let (removed, statistics) = context
        .blocking(move |app| Ok((word_list::remove(&app.moderation, word)?, word_list::statistics(&app.core)?)))
        .await?;
    Ok(Json(WordRemoved { word: removed.word, r#type: removed.kind, removed: true, total: statistics.total }))
}

/// A word of the list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownWord {
    #[schema(example = "赌博")]
    word: String,
    #[schema(example = "gambling")]
    r#type: String,
    /// True if it also matches by pronunciation.
    #[schema(example = true)]
    by_sound: bool,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:04:05.678Z")]
    created_at: Timestamp,
}

impl From<WordEntry> for ShownWord {
    fn from(listed: WordEntry) -> Self {
        let WordEntry { word, kind, by_sound, created_at } = listed;
        Self { word, r#type: kind, by_sound, created_at }
    }
}

pub async fn list(context: RequestContext, params: ListWordsParams) -> Result<Json<NumberedPage<ShownWord>>> {
    let page = page(&context, params.page, params.size);
    let filter =
        words::WordQuery { kind: params.kind.map(|Label(kind)| kind), part: params.part.map(|ListedWord(part)| part) };
    let found = context.report(move |app| word_list::list(&app.core, &filter, page)).await?;
    Ok(NumberedPage::of(page, found))
}

/// The number of words of a type.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WordsOfType {
    #[schema(example = "gambling")]
    r#type: String,
    #[schema(example = 11)]
    count: i64,
}

/// Statistics of the list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WordStatistics {
    #[schema(example = 60)]
    total: i64,
    types: Vec<WordsOfType>,
    /// Allowed phrases that contain a listed word.
    #[schema(example = 13)]
    allowed_phrases: i64,
    /// The version of the list.
    #[schema(example = 1)]
    version: i64,
    /// The version by which this server judges.
    #[schema(example = 1)]
    version_in_force: i64,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:04:05.678Z")]
    changed_at: Option<Timestamp>,
    /// Memory of the compiled list in bytes.
    #[schema(example = 1_400_000)]
    memory_bytes: usize,
    /// Milliseconds taken to compile the list.
    #[schema(example = 1.5)]
    compile_ms: f64,
}

pub async fn statistics(context: RequestContext, _: Nothing) -> Result<Json<WordStatistics>> {
    let state = context.blocking(|app| status::current(&app.moderation)).await?;
    let types = state.words.kinds.into_iter();
    Ok(Json(WordStatistics {
        total: state.words.total,
        types: types.map(|kind| WordsOfType { r#type: kind.kind, count: kind.count }).collect(),
        allowed_phrases: state.words.allowed_phrases,
        version: state.words.version,
        version_in_force: state.active_version,
        changed_at: state.words.changed_at,
        memory_bytes: state.memory_bytes,
        compile_ms: state.compiled_in.as_secs_f64() * 1e3,
    }))
}

/// A word or label found in a text.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundWord {
    /// The word as listed.
    #[schema(example = "赌博")]
    word: String,
    #[schema(example = "gambling")]
    r#type: String,
    /// Offsets into the text in characters (Unicode scalar values); the end is exclusive.
    #[schema(example = 2)]
    start: usize,
    #[schema(example = 5)]
    end: usize,
    /// The matching part of the text.
    #[schema(example = "赌*博")]
    text: String,
}

impl From<Match> for FoundWord {
    fn from(found: Match) -> Self {
        let Match { word, kind, start, end, text, .. } = found;
        Self { word, r#type: kind, start, end, text }
    }
}

/// The local list's verdict on a text.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextTested {
    #[schema(example = false)]
    allowed: bool,
    #[schema(value_type = ContentType)]
    content_type: &'static str,
    #[schema(example = "local")]
    provider: &'static str,
    #[schema(example = false)]
    degraded: bool,
    matches: Vec<FoundWord>,
    #[schema(example = "一起***吧")]
    masked_text: String,
}

impl TextTested {
    pub fn of(content_type: ContentType, ruling: Ruling) -> Self {
        Self {
            allowed: ruling.allowed,
            content_type: content_type.name(),
            provider: ruling.provider,
            degraded: ruling.degraded,
            matches: ruling.matches.into_iter().map(Into::into).collect(),
            masked_text: ruling.masked_text,
        }
    }
}

async fn test(context: &RequestContext, content_type: ContentType, params: TestTextParams) -> Result<Json<TextTested>> {
    let ruling = context
        .judged(move |app| moderation::moderate_locally(&app.moderation, content_type, &params.content.0))
        .await?;
    Ok(Json(TextTested::of(content_type, ruling)))
}

pub async fn test_nickname(context: RequestContext, params: TestTextParams) -> Result<Json<TextTested>> {
    test(&context, ContentType::Nickname, params).await
}

pub async fn test_signature(context: RequestContext, params: TestTextParams) -> Result<Json<TextTested>> {
    test(&context, ContentType::Signature, params).await
}

pub async fn test_question(context: RequestContext, params: TestTextParams) -> Result<Json<TextTested>> {
    test(&context, ContentType::Question, params).await
}
