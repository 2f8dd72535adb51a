//! `yarrow words`: the local word list of content moderation.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use indicatif::ProgressBar;
use serde_json::json;

use super::{Common, choice::choice, cli_authority, http_rows, progress_bar, record_audit, unreadable_file};
use crate::{
    app::App,
    domain::moderation::{
        self,
        adviser::{self, WordAdvice},
        engine::{ContentType, ContentTypes, Severity},
        word_list::{self, WordChoice},
        words::{self, ImportOptions, SkippedLine, UNTYPED},
    },
    error::{Code, Error, Fault, Result},
    http::responses::{ShownAdvice, TextTested},
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
    }
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
    let acquitted = moderation::acquitted_words(&app.moderation, content_type, text)?;
    common.show(&TextTested::of(content_type, ruling, acquitted))
}
