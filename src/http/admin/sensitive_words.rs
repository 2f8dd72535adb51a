//! `/admin/sensitive-words`: the local word list. A change is active before its response is sent.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    config::LimitsConfig,
    domain::moderation::{
        self, Ruling,
        adviser::{self, WordAdvice},
        engine::{AcquittedWord, ContentType, ContentTypes, Match, Severity, Word},
        phrase_warning::PhraseWarning,
        status,
        word_list::{self, WordChoice},
        words::{self, ImportOptions, SkippedLine, UNTYPED, WordEntry},
    },
    error::{Error, Fault, FieldCode, Result},
    http::{
        body::RawValue,
        numbered_page::NumberedPage,
        openapi::enums::{ContentTypeName, MatchWayName, SeverityName},
        params::{
            Content, Flag, ListedWord, Nothing, PageNumber, PageSize, Parameter, Rules, WordType, page, parameters,
            text,
        },
        reply::{Json, Saved},
        request_context::RequestContext,
    },
    types::Timestamp,
};

parameters! {
    AddWordParams(fields) {
        kind: Option<WordType> = fields.optional("type", "politics, porn, abuse, violence, gambling, drugs, fraud, ads, contact, other, or a type of one's own.");
        by_sound: Option<Flag> = fields.optional("bySound", "Also match by pronunciation. Default: true.");
        severity: Option<Severity> = fields.optional("severity", "Texts with words of severity `low` are reviewed by default, and not rejected. Default: `medium`.");
        tags: Vec<Tag> = fields.list("tags", "Further types, without blanks.");
        content_types: Vec<ContentType> = fields.list("contentTypes", "The content types in which the word is looked for. Default: all.");
        new: NewWord = {
            let word = fields.required("word", "The word. Wildcards are plain characters.");
            let force = fields.optional("force", "Accept a word of one character.");
            fields.cross_field(word.zip(force), new_word)
        };
    }

    ImportWordsParams(fields) {
        lines: WordLines = fields.required("lines", "The words: a line each, optionally followed by type, bySound, severity, tags and contentTypes, separated by commas. Blanks separate several tags and content types.");
        kind: Option<WordType> = fields.optional("type", "The type of words whose line has none. Default: `other`.");
        by_sound: Option<Flag> = fields.optional("bySound", "Also match by pronunciation, for lines that do not say. Default: false.");
        severity: Option<Severity> = fields.optional("severity", "The severity of words whose line has none. Default: `medium`.");
        tags: Vec<Tag> = fields.list("tags", "The tags of words whose line has none.");
        content_types: Vec<ContentType> = fields.list("contentTypes", "The content types of words whose line has none. Default: all.");
        force: Option<Flag> = fields.optional("force", "Accept words of one character.");
        skip_warned: Option<Flag> = fields.optional("skipWarned", "Leave out words that would reject innocent texts.");
        dry_run: Option<Flag> = fields.optional("dryRun", "Report what would be imported, and change nothing.");
    }

    PhraseParams(fields) {
        phrase: ListedWord = fields.required("phrase", "The phrase: an innocent text that contains a listed word.");
    }

    RemoveWordParams(fields) {
        word: ListedWord = fields.required("word", "The word, or another spelling of it.");
    }

    ListWordsParams(fields) {
        kind: Option<WordType> = fields.optional("type", "Only words of this type.");
        tag: Option<Tag> = fields.optional("tag", "Only words with this tag.");
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
    #[schema(value_type = SeverityName)]
    severity: &'static str,
    #[schema(example = json!(["spam"]))]
    tags: Vec<String>,
    /// The content types in which it is looked for; empty for all.
    #[schema(value_type = Vec<ContentTypeName>)]
    content_types: Vec<&'static str>,
    /// False if it was listed before.
    #[schema(example = true)]
    created: bool,
    /// True if it was listed with another type, and now has the one that was sent.
    #[schema(example = false)]
    updated: bool,
    /// Number of words on the list.
    #[schema(example = 60)]
    total: i64,
    /// Only for a word that would probably reject innocent texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub advice: Option<ShownAdvice>,
}

/// The effect of a word on innocent texts.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownAdvice {
    #[schema(example = "電話")]
    pub word: String,
    /// The form in which words and texts are compared.
    #[schema(example = "电话")]
    pub normal_form: String,
    /// True if the word would probably reject innocent texts.
    #[schema(example = true)]
    pub is_warning: bool,
    /// True for a word of ordinary speech.
    #[schema(example = true)]
    pub is_ordinary: bool,
    /// Common longer words that contain this one: some, and their number.
    #[schema(example = json!(["电话机"]))]
    pub longer_words: Vec<String>,
    #[schema(example = 12)]
    pub longer_word_count: usize,
    /// Ordinary sentences of a built-in sample that the word rejects: some, their number, and the size of the sample.
    #[schema(example = json!(["我打电话问了问情况。"]))]
    pub rejected_sentences: Vec<String>,
    #[schema(example = 7)]
    pub rejected_count: usize,
    #[schema(example = 2_000)]
    pub sample_size: usize,
}

impl From<WordAdvice> for ShownAdvice {
    fn from(advice: WordAdvice) -> Self {
        Self {
            is_warning: advice.is_warning(),
            word: advice.word,
            normal_form: advice.normal_form,
            is_ordinary: advice.is_ordinary,
            longer_words: advice.longer_words,
            longer_word_count: advice.longer_word_count,
            rejected_sentences: advice.rejected_sentences,
            rejected_count: advice.rejected_count,
            sample_size: adviser::sample_size(),
        }
    }
}

pub async fn add(context: RequestContext, add: AddWordParams) -> Result<Saved<WordAdded>> {
    let NewWord { text, force } = add.new;
    let has_type = add.kind.is_some();
    let word = Word {
        text,
        kind: add.kind.map_or_else(|| UNTYPED.to_owned(), |WordType(kind)| kind),
        by_sound: add.by_sound.is_none_or(|Flag(by_sound)| by_sound),
        severity: add.severity.unwrap_or_default(),
        tags: tags(add.tags)?,
        content_types: ContentTypes::of(add.content_types),
    };
    let (added, advice, statistics) = context
        .blocking(move |app| {
            let added = word_list::add(&app.moderation, word.clone(), has_type, force)?;
            Ok((added, adviser::advise(&app.core, &[word])?, word_list::statistics(&app.core)?))
        })
        .await?;
    let (is_new, updated) = (added.is_new, added.is_retyped);
    let advice = advice.into_iter().find(WordAdvice::is_warning).map(Into::into);
    let Word { text, kind, severity, tags, content_types, .. } = added.word;
    let resource = WordAdded {
        word: text,
        r#type: kind,
        severity: severity.name(),
        tags,
        content_types: content_types.names(),
        created: is_new,
        updated,
        total: statistics.total,
        advice,
    };
    Ok(Saved { resource, is_new })
}

/// A further type of a word, without blanks.
pub struct Tag(String);

impl Parameter for Tag {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let [tag] = &words::parse_tags(&text(value)?)?[..] else {
            return Err(Fault::new(
                FieldCode::InvalidFormat,
                ("must be one word without blanks", "须为一个不含空格的词"),
            ));
        };
        Ok(Self(tag.clone()))
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": 32, "example": "spam" })
    }
}

/// Returns the tags without repetitions.
fn tags(tags: Vec<Tag>) -> Result<Vec<String>> {
    let tags: Vec<String> = tags.into_iter().map(|Tag(tag)| tag).collect();
    words::parse_tags(&tags.join(" ")).map_err(|fault| Error::field("tags", fault))
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

/// A line of an import that was skipped.
#[derive(Serialize, ToSchema)]
pub struct SkippedWordLine {
    #[schema(example = 3)]
    line: usize,
    #[schema(example = "赌")]
    text: String,
    #[schema(example = "must have at least two letters or digits")]
    reason: String,
}

impl From<SkippedLine> for SkippedWordLine {
    fn from(skipped: SkippedLine) -> Self {
        Self { line: skipped.line, text: skipped.text, reason: skipped.reason }
    }
}

/// The result of an import.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WordsImported {
    /// Valid words, without those that were left out.
    #[schema(example = 120)]
    words: usize,
    /// Words that are new on the list, or would be.
    #[schema(example = 118)]
    added: usize,
    /// Words that were listed already; they keep their types.
    #[schema(example = 2)]
    existing: usize,
    /// True if nothing was changed.
    #[schema(example = false)]
    dry_run: bool,
    /// Words that would reject innocent texts, at most 1 000 of them, and their number.
    warnings: Vec<ShownAdvice>,
    #[schema(example = 1)]
    warned: usize,
    /// True if these words were left out.
    #[schema(example = true)]
    warned_skipped: bool,
    skipped: Vec<SkippedWordLine>,
}

/// Warnings in a response.
const MAX_WARNINGS: usize = 1_000;

pub async fn import(context: RequestContext, import: ImportWordsParams) -> Result<Json<WordsImported>> {
    let is_set = |flag: Option<Flag>| flag.is_some_and(|Flag(is_set)| is_set);
    let (force, by_sound) = (is_set(import.force), is_set(import.by_sound));
    let (dry_run, skip_warned) = (is_set(import.dry_run), is_set(import.skip_warned));
    let (WordLines(lines), kind) = (import.lines, import.kind);
    let (severity, tags) = (import.severity.unwrap_or_default(), tags(import.tags)?);
    let content_types = ContentTypes::of(import.content_types);
    let imported = context.blocking(move |app| {
        let options = ImportOptions {
            kind: kind.as_ref().map_or(UNTYPED, |WordType(kind)| kind),
            max_length: app.core.config.limits.word as usize,
            force,
            by_sound,
            severity,
            tags,
            content_types,
        };
        let (found, skipped) = words::parse(lines.as_bytes(), &options, |_| {});
        if found.is_empty() {
            return Err(Error::field(
                "lines",
                Fault::new(FieldCode::InvalidFormat, ("must contain a valid word", "须至少有一个有效的词")),
            ));
        }
        let choice = WordChoice { skip_warned, dry_run };
        Ok((word_list::import_advised(&app.moderation, found, choice, |_| {})?, skipped))
    });
    let (imported, skipped) = imported.await?;
    let warned = imported.warnings.len();
    Ok(Json(WordsImported {
        words: imported.words,
        added: imported.result.added,
        existing: imported.result.existing,
        dry_run,
        warnings: imported.warnings.into_iter().take(MAX_WARNINGS).map(Into::into).collect(),
        warned,
        warned_skipped: skip_warned,
        skipped: skipped.into_iter().map(Into::into).collect(),
    }))
}

/// The lines of a word list.
pub struct WordLines(String);

impl Parameter for WordLines {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        text(value).map(|text| Self(text.into_owned()))
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "example": "代练上分,ads\n刷单返利,fraud,true,high,money,nickname signature" })
    }
}

/// The allowed phrases.
#[derive(Serialize, ToSchema)]
pub struct AllowedPhrases {
    #[schema(example = json!(["反洗钱"]))]
    items: Vec<String>,
}

pub async fn allowed_phrases(context: RequestContext, _: Nothing) -> Result<Json<AllowedPhrases>> {
    let items = context.report(|app| word_list::allowed_phrases(&app.core)).await?;
    Ok(Json(AllowedPhrases { items }))
}

/// A phrase that is allowed, or no longer.
#[derive(Serialize, ToSchema)]
pub struct PhraseAllowed {
    #[schema(example = "反洗钱")]
    phrase: String,
    #[schema(example = true)]
    allowed: bool,
    /// False if it was allowed before.
    #[schema(example = true)]
    changed: bool,
    /// `switches_off_word` for a phrase that is a listed word; `contains_no_word` for one without a listed word.
    #[schema(example = json!(null))]
    warning: Option<&'static str>,
}

pub async fn allow(context: RequestContext, params: PhraseParams) -> Result<Saved<PhraseAllowed>> {
    let ListedWord(phrase) = params.phrase;
    let stored = phrase.clone();
    let allowed = context.blocking(move |app| word_list::allow(&app.moderation, stored)).await?;
    let warning = allowed.warning.map(PhraseWarning::name);
    let resource = PhraseAllowed { phrase, allowed: true, changed: allowed.is_new, warning };
    Ok(Saved { resource, is_new: allowed.is_new })
}

pub async fn disallow(context: RequestContext, params: PhraseParams) -> Result<Json<PhraseAllowed>> {
    let ListedWord(phrase) = params.phrase;
    let removed = phrase.clone();
    context.blocking(move |app| word_list::disallow(&app.moderation, removed)).await?;
    Ok(Json(PhraseAllowed { phrase, allowed: false, changed: true, warning: None }))
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
    Ok(Json(WordRemoved { word: removed.word.text, r#type: removed.word.kind, removed: true, total: statistics.total }))
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
    #[schema(value_type = SeverityName)]
    severity: &'static str,
    #[schema(example = json!(["spam"]))]
    tags: Vec<String>,
    /// The content types in which it is looked for; empty for all.
    #[schema(value_type = Vec<ContentTypeName>)]
    content_types: Vec<&'static str>,
    created_at: Timestamp,
}

impl From<WordEntry> for ShownWord {
    fn from(listed: WordEntry) -> Self {
        let Word { text, kind, by_sound, severity, tags, content_types } = listed.word;
        Self {
            word: text,
            r#type: kind,
            by_sound,
            severity: severity.name(),
            tags,
            content_types: content_types.names(),
            created_at: listed.created_at,
        }
    }
}

pub async fn list(context: RequestContext, params: ListWordsParams) -> Result<Json<NumberedPage<ShownWord>>> {
    let page = page(&context, params.page, params.size);
    let filter = words::WordQuery {
        kind: params.kind.map(|WordType(kind)| kind),
        tag: params.tag.map(|Tag(tag)| tag),
        part: params.part.map(|ListedWord(part)| part),
    };
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
    #[schema(value_type = SeverityName)]
    severity: &'static str,
    #[schema(example = json!(["spam"]))]
    tags: Vec<String>,
    /// The way in which the word was found.
    #[schema(value_type = MatchWayName)]
    way: &'static str,
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
        let Match { word, kind, severity, tags, way, start, end, text } = found;
        Self { word, r#type: kind, severity: severity.name(), tags, way: way.name(), start, end, text }
    }
}

/// The local list's verdict on a text.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextTested {
    #[schema(example = false)]
    allowed: bool,
    #[schema(value_type = ContentTypeName)]
    content_type: &'static str,
    /// The treatment of the text: `allow`, `review`, `mask` or `block`.
    #[schema(example = "block")]
    action: &'static str,
    #[schema(example = "local")]
    provider: &'static str,
    #[schema(example = false)]
    degraded: bool,
    matches: Vec<FoundWord>,
    #[schema(example = "一起***吧")]
    masked_text: String,
    /// Listed words that the text seems to have, and that the words around them acquit.
    acquitted: Vec<WordAcquitted>,
}

/// A listed word that is in a text by chance.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WordAcquitted {
    /// The word as listed.
    #[schema(example = "口交")]
    word: String,
    /// The part of the text that seems to be the word.
    #[schema(example = "口交")]
    text: String,
    /// The words of the text that explain this part.
    #[schema(example = json!(["端口", "交换机"]))]
    words: Vec<String>,
}

impl From<AcquittedWord> for WordAcquitted {
    fn from(AcquittedWord { word, text, words }: AcquittedWord) -> Self {
        Self { word, text, words }
    }
}

impl TextTested {
    pub fn of(content_type: ContentType, ruling: Ruling, acquitted: Vec<AcquittedWord>) -> Self {
        Self {
            acquitted: acquitted.into_iter().map(Into::into).collect(),
            allowed: ruling.allowed,
            action: ruling.action(),
            content_type: content_type.name(),
            provider: ruling.provider,
            degraded: ruling.degraded,
            matches: ruling.matches.into_iter().map(Into::into).collect(),
            masked_text: ruling.masked_text,
        }
    }
}

async fn test(context: &RequestContext, content_type: ContentType, params: TestTextParams) -> Result<Json<TextTested>> {
    let (ruling, acquitted) = context
        .judged(move |app| {
            let text = &params.content.0;
            let ruling = moderation::moderate_locally(&app.moderation, content_type, text)?;
            Ok((ruling, moderation::acquitted_words(&app.moderation, content_type, text)?))
        })
        .await?;
    Ok(Json(TextTested::of(content_type, ruling, acquitted)))
}

pub async fn test_nickname(context: RequestContext, params: TestTextParams) -> Result<Json<TextTested>> {
    test(&context, ContentType::Nickname, params).await
}

pub async fn test_signature(context: RequestContext, params: TestTextParams) -> Result<Json<TextTested>> {
    test(&context, ContentType::Signature, params).await
}

pub async fn test_answer(context: RequestContext, params: TestTextParams) -> Result<Json<TextTested>> {
    test(&context, ContentType::Answer, params).await
}

pub async fn test_question(context: RequestContext, params: TestTextParams) -> Result<Json<TextTested>> {
    test(&context, ContentType::Question, params).await
}
