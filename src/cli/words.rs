//! `yarrow words`: the local word list of content moderation.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use indicatif::ProgressBar;
use serde_json::json;

use super::{Common, PageArgs, authority, choice::choice, facts, progress_bar, record, row, table};
use yarrow::{
    app::App,
    domain::moderation::{
        self,
        engine::{ContentType, Word},
        listing, state,
        words::{self, Entry, Filter, Listed, Skipped, UNTYPED},
    },
    error::{Code, Error, Result},
    http::answers::{ShownWord, TextTested},
    types::counted,
};

/// Edit and try the local word list. A running server takes changes up within a second.
#[derive(Debug, Args)]
pub struct WordsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Add a word. Wildcards are plain characters.
    Add {
        /// The word, as it is listed.
        word: String,
        /// politics, porn, abuse, violence, gambling, drugs, fraud, ads, contact, other, or a type of one's own.
        #[arg(long = "type", default_value = UNTYPED, value_name = "TYPE")]
        kind: String,
        /// Take a word of one letter, too.
        #[arg(long)]
        force: bool,
        /// Find it as it is written only, and not by its pronunciation.
        #[arg(long)]
        no_sound: bool,
    },
    /// Remove a word, in whichever spelling.
    Remove {
        /// The word, as it is listed.
        word: String,
    },
    /// Print the words of the list.
    List {
        /// Only words of this type.
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
        /// Only words with this in them, in whichever spelling.
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Add the words of a file in one change: one a line, alone, as `word,type` or as it is exported; `-` is standard
    /// input. Lines that are no words are told and left out.
    Import {
        /// The file; `-` is standard input.
        file: PathBuf,
        /// The type of words that name none.
        #[arg(long = "type", default_value = UNTYPED, value_name = "TYPE")]
        kind: String,
        /// Take words of one letter, too.
        #[arg(long)]
        force: bool,
        /// Find by their pronunciation too those of which the file does not say. On a long list that accuses the
        /// innocent.
        #[arg(long)]
        by_sound: bool,
        /// Say what would happen, and do nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Print the whole list.
    Export {
        /// As comma-separated values, which `import` takes again, or as JSON.
        #[arg(long, value_enum, default_value_t = Format::Csv)]
        format: Format,
    },
    /// Say what the list makes of a text.
    Test {
        /// The text to try.
        text: String,
        /// What the text is taken for.
        #[arg(long, value_parser = choice!(ContentType), default_value = ContentType::Question.name())]
        content_type: ContentType,
    },
    /// Print the list in figures.
    Stats,
    /// Allow a phrase: a listed word inside of it is innocent. Without a phrase, print those that are allowed.
    Allow {
        /// The phrase; without one, all that are allowed are listed.
        phrase: Option<String>,
        /// Take the phrase back.
        #[arg(long, requires = "phrase")]
        remove: bool,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// `word,type,bySound`, with a heading.
    Csv,
    /// A word a line.
    Text,
}

pub fn run(common: &Common, args: WordsArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Add { word, kind, force, no_sound } => {
            let word = Word { text: word.trim().to_owned(), kind: kind.trim().to_owned(), by_sound: !no_sound };
            add(common, &app, word, force)
        }
        Action::Remove { word } => {
            let removed = listing::remove(&app.moderation, word)?;
            record(&app, "words remove", None, authority(None))?;
            common.answer(&json!({ "word": removed.word, "type": removed.kind, "removed": true }), || {
                format!("removed {} ({})", removed.word, removed.kind)
            })
        }
        Action::List { kind, search, page } => list(common, &app, &Filter { kind, part: search }, &page),
        Action::Import { file, kind, force, by_sound, dry_run } => {
            let longest = app.config.limits.word as usize;
            import(common, &app, &file, &Entry { kind: kind.trim(), longest, force, by_sound }, dry_run)
        }
        Action::Export { format } => export(common, &app, format),
        Action::Test { text, content_type } => test(common, &app, &text, content_type),
        Action::Stats => statistics(common, &app),
        Action::Allow { phrase, remove } => allow(common, &app, phrase, remove),
    }
}

fn add(common: &Common, app: &App, word: Word, force: bool) -> Result<()> {
    let added = listing::add(&app.moderation, word, force)?;
    if added.is_new {
        record(app, "words add", None, authority(None))?;
    }
    let json = json!({ "word": added.word, "type": added.kind, "created": added.is_new });
    common.answer(&json, || {
        let verb = if added.is_new { "added" } else { "was listed already:" };
        format!("{verb} {} ({})", added.word, added.kind)
    })
}

fn list(common: &Common, app: &App, filter: &Filter, page: &PageArgs) -> Result<()> {
    let found = listing::list(app, filter, page.page())?;
    common.answer_page::<_, ShownWord>(page.page(), found, |found| {
        let rows = found.items.iter().map(|Listed { word, kind, by_sound, created_at }| {
            row![word, kind, if *by_sound { "yes" } else { "" }, created_at]
        });
        let listed = table(["word", "type", "by sound", "since"], rows);
        format!("{listed}\n{}", counted(found.total, "word", "words"))
    })
}

fn import(common: &Common, app: &App, file: &Path, entry: &Entry<'_>, dry_run: bool) -> Result<()> {
    let bytes = read(file)?;
    let bar = watch(common, "reading", bytes.len());
    let (words, skipped) = words::parse(&bytes, entry, |read| bar.set_position(read as u64));
    bar.finish_and_clear();
    let total = words.len();
    let imported = if dry_run {
        None
    } else {
        let bar = watch(common, "adding", total);
        let shown = bar.clone();
        let imported = listing::import(&app.moderation, words, move |done| shown.set_position(done as u64))?;
        bar.finish_and_clear();
        record(app, "words import", None, authority(Some(counted(imported.added, "word", "words"))))?;
        Some(imported)
    };
    let rows =
        skipped.iter().map(|skipped| json!({ "line": skipped.line, "text": skipped.text, "reason": skipped.reason }));
    let json = json!({
        "read": total + skipped.len(), "words": total, "added": imported.map(|imported| imported.added),
        "existing": imported.map(|imported| imported.existing), "skipped": rows.collect::<Vec<_>>(),
    });
    common.answer(&json, || {
        let done = imported.map_or_else(
            || format!("{} would be imported", counted(total, "word", "words")),
            |imported| {
                format!("{} added, {} listed already", counted(imported.added, "word", "words"), imported.existing)
            },
        );
        format!("{done}, {} skipped{}", counted(skipped.len(), "line", "lines"), reasons(&skipped))
    })?;
    if total == 0 && !skipped.is_empty() {
        let nothing = "No line of the file could be taken. Lists are read as UTF-8.";
        return Err(Error::new(Code::UnsupportedMediaType).detail(nothing));
    }
    Ok(())
}

fn reasons(skipped: &[Skipped]) -> String {
    let lines =
        skipped.iter().map(|skipped| format!("\n  line {}: {}: {}", skipped.line, skipped.text, skipped.reason));
    lines.collect::<Vec<_>>().concat()
}

fn read(file: &Path) -> Result<Vec<u8>> {
    let read = if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    read.map_err(|error| {
        let code = if error.kind() == std::io::ErrorKind::NotFound { Code::NotFound } else { Code::InvalidRequest };
        Error::new(code).detail(format!("{}: {error}", file.display()))
    })
}

fn watch(common: &Common, verb: &str, length: usize) -> ProgressBar {
    progress_bar(common, length as u64, &format!("{verb} {{bar:40}} {{percent}} %, {{eta}} left"))
}

fn export(common: &Common, app: &App, format: Format) -> Result<()> {
    let all = listing::all(app)?;
    let json = all.iter().map(|word| json!({ "word": word.text, "type": word.kind, "bySound": word.by_sound }));
    common.answer(&json.collect::<Vec<_>>(), || {
        let lines = all.iter().map(|word| match format {
            Format::Csv => words::written(word),
            Format::Text => words::quoted(&word.text),
        });
        let heading = matches!(format, Format::Csv).then(|| words::HEADING.to_owned());
        heading.into_iter().chain(lines).collect::<Vec<_>>().join("\n")
    })
}

fn test(common: &Common, app: &App, text: &str, content_type: ContentType) -> Result<()> {
    let ruling = moderation::judge_locally(&app.moderation, content_type, text)?;
    common.answer(&TextTested::of(content_type, ruling.clone()), || {
        if ruling.allowed {
            return "allowed".to_owned();
        }
        let rows = ruling
            .matches
            .iter()
            .map(|found| row![found.word, found.kind, format!("{}–{}", found.start, found.end), found.text]);
        format!("refused: {}\n{}", ruling.masked_text, table(["word", "type", "place", "text"], rows))
    })
}

fn statistics(common: &Common, app: &App) -> Result<()> {
    let state = state::status(&app.moderation)?;
    let types = state.words.kinds.iter().map(|kind| json!({ "type": kind.kind, "count": kind.count }));
    let json = json!({
        "total": state.words.total, "types": types.collect::<Vec<_>>(), "allowedPhrases": state.words.allowed_phrases,
        "version": state.words.version, "changedAt": state.words.changed_at, "memoryBytes": state.memory_bytes,
        "compileMs": state.compiled_in.as_secs_f64() * 1e3,
    });
    common.answer(&json, || {
        let figures = [
            ("all", state.words.total.to_string()),
            ("allowed phrases", state.words.allowed_phrases.to_string()),
            ("kilobytes when compiled", (state.memory_bytes / 1_000).to_string()),
        ];
        facts("words", state.words.kinds.iter().map(|kind| (kind.kind.as_str(), kind.count.to_string())).chain(figures))
    })
}

fn allow(common: &Common, app: &App, phrase: Option<String>, remove: bool) -> Result<()> {
    let Some(phrase) = phrase else {
        let allowed = listing::allowed(app)?;
        return common.answer(&json!({ "items": allowed }), || allowed.join("\n"));
    };
    let phrase = phrase.trim().to_owned();
    let changed = if remove {
        listing::disallow(&app.moderation, phrase.clone()).map(|()| true)?
    } else {
        listing::allow(&app.moderation, phrase.clone())?
    };
    if changed {
        record(app, if remove { "words allow --remove" } else { "words allow" }, None, authority(None))?;
    }
    common.answer(&json!({ "phrase": phrase, "allowed": !remove, "changed": changed }), || {
        format!("{phrase} is {}", if remove { "allowed no more" } else { "allowed" })
    })
}
