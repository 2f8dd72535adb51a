//! `yarrow words`: the local word list of content moderation.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use indicatif::ProgressBar;
use serde_json::json;

use super::{
    Common, PageArgs, choice::choice, cli_authority, http_rows, key_values, progress_bar, record_audit, row, table,
    unreadable_file,
};
use crate::{
    app::App,
    domain::moderation::{
        self,
        adviser::{self, WordAdvice},
        engine::{ContentType, ContentTypes, Severity, Word},
        phrase_warning::PhraseWarning,
        status,
        word_list::{self, WordChoice},
        words::{self, ImportOptions, SkippedLine, UNTYPED, WordEntry, WordQuery},
    },
    error::{Code, Error, Fault, Result},
    http::responses::{ShownAdvice, ShownWord, TextTested},
    types::pluralize,
};

/// Edit and test the local word list
///
/// A running server applies changes within a second.
#[derive(Debug, Args)]
pub struct WordsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Add a word; `*` and `?` are ordinary characters
    ///
    /// Example: yarrow words add 代练 --type ads
    Add {
        /// Word, in any spelling
        word: String,
        /// politics, porn, abuse, violence, gambling, drugs, fraud, ads, contact, other, or a type of your own
        #[arg(long = "type", default_value = UNTYPED, value_name = "TYPE")]
        kind: String,
        /// Accept a word of a single character
        #[arg(long)]
        force: bool,
        /// Match the spelling only, not the pronunciation
        #[arg(long)]
        no_sound: bool,
        #[command(flatten)]
        traits: TraitArgs,
    },
    /// Remove a word
    Remove {
        /// Word, in any spelling
        word: String,
    },
    /// Print the word list
    List {
        /// Only words of this type
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
        /// Only words with this tag
        #[arg(long)]
        tag: Option<String>,
        /// Only words that contain this text, in any spelling
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Add all words of a UTF-8 file in one transaction
    ///
    /// Each line is a word, optionally followed by `type`, `bySound`, `severity`, `tags` and `contentTypes` (blanks separate
    /// several), the format of `yarrow words export`. Invalid lines are reported and skipped; the import fails if no line
    /// is valid.
    Import {
        /// File to read; `-` is standard input
        file: PathBuf,
        /// Type of words whose line has none
        #[arg(long = "type", default_value = UNTYPED, value_name = "TYPE")]
        kind: String,
        /// Accept words of a single character
        #[arg(long)]
        force: bool,
        /// Also match the pronunciation, for lines without `bySound`. Long lists then cause false positives
        #[arg(long)]
        by_sound: bool,
        #[command(flatten)]
        traits: TraitArgs,
        /// Leave out words that would reject innocent texts
        #[arg(long)]
        skip_warned: bool,
        /// Report what would be imported, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Print the whole list, in the format that `import` reads
    Export {
        /// Output format; `--json` prints JSON
        #[arg(long, value_enum, default_value_t = Format::Csv)]
        format: Format,
    },
    /// Check a text against the list
    ///
    /// Example: yarrow words test "加 薇 信 聊" --content-type question
    Test {
        /// Text to check
        text: String,
        /// Content type of the text
        #[arg(long, value_parser = choice!(ContentType), default_value = ContentType::Question.name())]
        content_type: ContentType,
    },
    /// Print statistics of the list
    Stats,
    /// Allow a phrase that contains a listed word; without a phrase, print the allowed phrases
    ///
    /// Example: yarrow words allow 反洗钱
    Allow {
        /// Phrase to allow
        phrase: Option<String>,
        /// Remove the phrase from the allowed phrases
        #[arg(long, requires = "phrase")]
        remove: bool,
    },
}

/// The properties of new words; for an import, of words whose line has none.
#[derive(Debug, Args)]
struct TraitArgs {
    /// Severity; texts with words of severity `low` are reviewed and not rejected
    #[arg(long, value_parser = choice!(Severity), default_value = Severity::Medium.name())]
    severity: Severity,
    /// Further type, without blanks; repeat the option for several
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Content type in which the word is looked for; repeat the option for several. Default: all
    #[arg(long = "content-type", value_parser = choice!(ContentType), value_name = "CONTENT_TYPE")]
    content_types: Vec<ContentType>,
}

impl TraitArgs {
    fn tags(&self) -> Result<Vec<String>> {
        words::parse_tags(&self.tags.join(" ")).map_err(|fault: Fault| Error::field("tag", fault))
    }

    fn content_types(&self) -> ContentTypes {
        ContentTypes::of(self.content_types.iter().copied())
    }
}

/// The most warnings that an import prints; `--json` has all.
const SHOWN_WARNINGS: usize = 50;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Lines of `word,type,bySound,severity,tags,contentTypes`, with a header
    Csv,
    /// One word per line
    Text,
}

pub fn run(common: &Common, args: WordsArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Add { word, kind, force, no_sound, traits } => {
            let word = Word {
                text: word.trim().to_owned(),
                kind: kind.trim().to_owned(),
                by_sound: !no_sound,
                severity: traits.severity,
                tags: traits.tags()?,
                content_types: traits.content_types(),
            };
            add(common, &app, word, force)
        }
        Action::Remove { word } => {
            let removed = word_list::remove(&app.moderation, word)?.word;
            record_audit(&app, "words remove", None, cli_authority(None))?;
            common.output(&json!({ "word": removed.text, "type": removed.kind, "removed": true }), || {
                format!("removed {} ({})", removed.text, removed.kind)
            })
        }
        Action::List { kind, tag, search, page } => list(common, &app, &WordQuery { kind, tag, part: search }, &page),
        Action::Import { file, kind, force, by_sound, traits, skip_warned, dry_run } => {
            let longest = app.core.config.limits.word as usize;
            import(
                common,
                &app,
                &file,
                &ImportOptions {
                    kind: kind.trim(),
                    max_length: longest,
                    force,
                    by_sound,
                    severity: traits.severity,
                    tags: traits.tags()?,
                    content_types: traits.content_types(),
                },
                WordChoice { skip_warned, dry_run },
            )
        }
        Action::Export { format } => export(common, &app, format),
        Action::Test { text, content_type } => test(common, &app, &text, content_type),
        Action::Stats => statistics(common, &app),
        Action::Allow { phrase, remove } => allow(common, &app, phrase, remove),
    }
}

fn add(common: &Common, app: &App, word: Word, force: bool) -> Result<()> {
    let has_type = word.kind != UNTYPED;
    let added = word_list::add(&app.moderation, word.clone(), has_type, force)?;
    if added.is_new || added.is_retyped {
        record_audit(app, "words add", None, cli_authority(None))?;
    }
    let warning = adviser::advise(&app.core, &[word])?.into_iter().find(WordAdvice::is_warning);
    let listed = &added.word;
    let mut json = json!({
        "word": listed.text, "type": listed.kind, "severity": listed.severity.name(), "tags": listed.tags,
        "contentTypes": listed.content_types.names(), "created": added.is_new,
        "updated": added.is_retyped,
    });
    if let Some(warning) = &warning {
        json["advice"] = json!(ShownAdvice::from(warning.clone()));
    }
    common.output(&json, || {
        let verb = match (added.is_new, added.is_retyped) {
            (true, _) => "added",
            (false, true) => "changed the type of",
            (false, false) => "already listed:",
        };
        let warning = warning.as_ref().map_or_else(String::new, |warning| {
            format!("\nwarning: {} is likely to reject innocent texts: {}", warning.word, reason(warning))
        });
        format!("{verb} {} ({}){warning}", listed.text, listed.kind)
    })
}

fn list(common: &Common, app: &App, filter: &WordQuery, page: &PageArgs) -> Result<()> {
    let listing = word_list::list(&app.core, filter, page.page())?;
    common.output_page::<_, ShownWord>(page.page(), listing, |listing| {
        let rows = listing.items.iter().map(|WordEntry { word, created_at }| {
            let by_sound = if word.by_sound { "yes" } else { "" };
            let (tags, content_types) = (word.tags.join(" "), word.content_types.names().join(" "));
            row![word.text, word.kind, by_sound, word.severity.name(), tags, content_types, created_at]
        });
        let heading = ["word", "type", "by sound", "severity", "tags", "only in", "added"];
        let listed = table(heading, rows);
        format!("{listed}\n{}", pluralize(listing.total, "word", "words"))
    })
}

fn import(common: &Common, app: &App, file: &Path, entry: &ImportOptions<'_>, choice: WordChoice) -> Result<()> {
    let bytes = read(common, file)?;
    let bar = progress(common, "reading", bytes.len());
    let (words, skipped) = words::parse(&bytes, entry, |read| bar.set_position(read as u64));
    bar.finish_and_clear();
    let total = words.len();
    let bar = progress(common, "adding", total);
    let shown = bar.clone();
    let imported = word_list::import_advised(&app.moderation, words, choice, move |position| {
        shown.set_position(position as u64);
    })?;
    bar.finish_and_clear();
    if !choice.dry_run {
        let added = pluralize(imported.result.added, "word", "words");
        record_audit(app, "words import", None, cli_authority(Some(added)))?;
    }
    let rows =
        skipped.iter().map(|skipped| json!({ "line": skipped.line, "text": skipped.text, "reason": skipped.reason }));
    let changed = (!choice.dry_run).then_some(imported.result);
    let json = json!({
        "read": total + skipped.len(), "words": imported.words, "added": changed.map(|changed| changed.added),
        "existing": changed.map(|changed| changed.existing), "skipped": rows.collect::<Vec<_>>(),
        "warnings": http_rows::<_, ShownAdvice>(&imported.warnings), "warnedSkipped": choice.skip_warned,
    });
    common.output(&json, || {
        let summary = changed.map_or_else(
            || format!("{} would be imported", pluralize(imported.words, "word", "words")),
            |changed| {
                format!("{} added, {} already listed", pluralize(changed.added, "word", "words"), changed.existing)
            },
        );
        let lines = pluralize(skipped.len(), "line", "lines");
        format!("{summary}, {lines} skipped{}{}", reasons(&skipped), warnings(&imported.warnings, choice.skip_warned))
    })?;
    if total == 0 && !skipped.is_empty() {
        let detail = "No line of the file is a valid word. The file must be UTF-8.";
        return Err(Error::new(Code::UnsupportedMediaType).english_detail(detail));
    }
    Ok(())
}

/// Describes the words that would reject innocent texts.
fn warnings(advice: &[WordAdvice], are_left_out: bool) -> String {
    if advice.is_empty() {
        return String::new();
    }
    let verb =
        if are_left_out { "left out" } else { "likely to reject innocent texts (--skip-warned leaves them out)" };
    let count = pluralize(advice.len(), "word", "words");
    let lines = advice.iter().take(SHOWN_WARNINGS).map(|advice| format!("\n  {}: {}", advice.word, reason(advice)));
    format!("\n{count} {verb}:{}", lines.collect::<String>())
}

/// Describes how a word would reject innocent texts.
fn reason(advice: &WordAdvice) -> String {
    let ordinary = advice.is_ordinary.then(|| "an ordinary word".to_owned());
    let longer = (advice.longer_word_count > 0).then(|| {
        let words = pluralize(advice.longer_word_count, "longer word", "longer words");
        format!("part of {words} ({})", advice.longer_words.join(", "))
    });
    let rejected = (advice.rejected_count > 0).then(|| {
        let example = advice.rejected_sentences.first().map_or("", String::as_str);
        format!("rejects {} of {} ordinary sentences ({example})", advice.rejected_count, adviser::sample_size())
    });
    [ordinary, longer, rejected].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn reasons(skipped: &[SkippedLine]) -> String {
    let lines =
        skipped.iter().map(|skipped| format!("\n  line {}: {}: {}", skipped.line, skipped.text, skipped.reason));
    lines.collect::<Vec<_>>().concat()
}

fn read(common: &Common, file: &Path) -> Result<Vec<u8>> {
    let read = if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut common.streams.input(), &mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    read.map_err(unreadable_file(file))
}

fn progress(common: &Common, verb: &str, length: usize) -> ProgressBar {
    progress_bar(common, length as u64, &format!("{verb} {{bar:40}} {{percent}} %, {{eta}} left"))
}

fn export(common: &Common, app: &App, format: Format) -> Result<()> {
    let all = word_list::all(&app.core)?;
    let json = all.iter().map(|word| {
        json!({
            "word": word.text, "type": word.kind, "bySound": word.by_sound, "severity": word.severity.name(),
            "tags": word.tags, "contentTypes": word.content_types.names(),
        })
    });
    common.output(&json.collect::<Vec<_>>(), || {
        let lines = all.iter().map(|word| match format {
            Format::Csv => words::to_csv_line(word),
            Format::Text => words::csv_field(&word.text),
        });
        let heading = matches!(format, Format::Csv).then(|| words::CSV_HEADER.to_owned());
        heading.into_iter().chain(lines).collect::<Vec<_>>().join("\n")
    })
}

fn test(common: &Common, app: &App, text: &str, content_type: ContentType) -> Result<()> {
    let ruling = moderation::moderate_locally(&app.moderation, content_type, text)?;
    common.output(&TextTested::of(content_type, ruling.clone()), || {
        if ruling.allowed && ruling.matches.is_empty() {
            return "allowed".to_owned();
        }
        let rows = ruling.matches.iter().map(|found| {
            let offsets = format!("{}–{}", found.start, found.end);
            row![found.word, found.kind, found.severity.name(), found.way.name(), offsets, found.text]
        });
        let found = table(["word", "type", "severity", "found by", "offsets", "text"], rows);
        format!("{}: {}\n{found}", ruling.action(), ruling.masked_text)
    })
}

fn statistics(common: &Common, app: &App) -> Result<()> {
    let state = status::current(&app.moderation)?;
    let types = state.words.kinds.iter().map(|kind| json!({ "type": kind.kind, "count": kind.count }));
    let json = json!({
        "total": state.words.total, "types": types.collect::<Vec<_>>(), "allowedPhrases": state.words.allowed_phrases,
        "version": state.words.version, "changedAt": state.words.changed_at, "memoryBytes": state.memory_bytes,
        "compileMs": state.compiled_in.as_secs_f64() * 1e3,
    });
    common.output(&json, || {
        let figures = [
            ("total", state.words.total.to_string()),
            ("allowed phrases", state.words.allowed_phrases.to_string()),
            ("kilobytes in memory", (state.memory_bytes / 1_000).to_string()),
        ];
        key_values(
            "words",
            state.words.kinds.iter().map(|kind| (kind.kind.as_str(), kind.count.to_string())).chain(figures),
        )
    })
}

fn allow(common: &Common, app: &App, phrase: Option<String>, remove: bool) -> Result<()> {
    let Some(phrase) = phrase else {
        let allowed = word_list::allowed_phrases(&app.core)?;
        return common.output(&json!({ "items": allowed }), || allowed.join("\n"));
    };
    let phrase = phrase.trim().to_owned();
    let (changed, warning) = if remove {
        word_list::disallow(&app.moderation, phrase.clone())?;
        (true, None)
    } else {
        let allowed = word_list::allow(&app.moderation, phrase.clone())?;
        (allowed.is_new, allowed.warning)
    };
    if changed {
        record_audit(app, if remove { "words allow --remove" } else { "words allow" }, None, cli_authority(None))?;
    }
    let json = json!({
        "phrase": phrase, "allowed": !remove, "changed": changed, "warning": warning.map(PhraseWarning::name),
    });
    common.output(&json, || {
        let warning = warning.map(|warning| format!("\nwarning: {}", warning.detail())).unwrap_or_default();
        format!("{phrase} is {}{warning}", if remove { "no longer allowed" } else { "allowed" })
    })
}
