//! `yarrow violations review` and `acquit`: texts that wait for a moderator, and wrong refusals.

use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::{
    Common, PageArgs, choice::choice, cli_authority, http_rows, name_missing, or_empty, record_audit, row, table,
};
use crate::{
    app::App,
    domain::moderation::{
        acquittals::{self, Acquittal},
        reviews::{self, BulkDecision, MAX_DECISIONS, ReviewDecision, ReviewOutcome, ReviewState},
    },
    error::{Error, Result},
    http::responses::{AcquittedViolation, ReviewResult, ShownReview},
    types::pluralize,
};

#[derive(Debug, Subcommand)]
pub enum ReviewAction {
    /// Print the texts in review, the oldest first
    List {
        /// State of the texts
        #[arg(long, value_parser = choice!(ReviewState), default_value = ReviewState::Waiting.name())]
        state: ReviewState,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Decide about texts
    ///
    /// Upholding records a violation, and clears a nickname that is still in use.
    Decide(DecideArgs),
    /// Undo decisions of the last day
    Undo {
        /// Numbers of the texts
        #[arg(required = true, num_args = 1..=MAX_DECISIONS)]
        ids: Vec<i64>,
    },
}

/// A decision about texts.
#[derive(Debug, Args)]
pub struct DecideArgs {
    /// Numbers of the texts, from `yarrow violations review list`
    #[arg(required = true, num_args = 1..=MAX_DECISIONS)]
    ids: Vec<i64>,
    /// The decision
    #[arg(long, value_parser = choice!(ReviewDecision))]
    decision: ReviewDecision,
    /// Reason, for the audit and the user
    #[arg(long, value_parser = crate::cli::parse_reason)]
    reason: String,
    /// Phrase to allow from now on, with `acquit`
    #[arg(long)]
    phrase: Option<String>,
}

/// An acquittal of a rejected text, or its undoing.
#[derive(Debug, Args)]
pub struct AcquitArgs {
    /// Violation id, from `yarrow violations list`
    id: i64,
    /// Reason, for the audit
    #[arg(long, value_parser = crate::cli::parse_reason)]
    reason: Option<String>,
    /// Phrase to allow from now on
    #[arg(long, conflicts_with = "undo")]
    phrase: Option<String>,
    /// Undo an acquittal
    #[arg(long)]
    undo: bool,
}

pub fn run(common: &Common, app: &App, action: ReviewAction) -> Result<()> {
    match action {
        ReviewAction::List { state, page } => list(common, app, state, &page),
        ReviewAction::Decide(args) => decide(common, app, args),
        ReviewAction::Undo { ids } => {
            let outcomes = reviews::undo(&app.core, ids).wait()?;
            record_audit(app, "violations review undo", None, cli_authority(None))?;
            print(common, &outcomes)
        }
    }
}

fn list(common: &Common, app: &App, state: ReviewState, page: &PageArgs) -> Result<()> {
    let found = reviews::list(&app.core, state, page.page())?;
    record_audit(app, "violations review list", None, cli_authority(None))?;
    common.output_page::<_, ShownReview>(page.page(), found, |found| {
        let rows = found.items.iter().map(|review| {
            row![
                review.id,
                review.at,
                review.user,
                review.content_type,
                review.violation_type,
                review.words.join(", "),
                review.ways.join(", "),
                review.excerpt,
                or_empty(review.decided_at)
            ]
        });
        table(["id", "at", "user", "content type", "type", "words", "found by", "text", "decided"], rows)
    })
}

fn decide(common: &Common, app: &App, args: DecideArgs) -> Result<()> {
    let phrase = args.phrase.map(|phrase| phrase.trim().to_owned());
    let by = cli_authority(Some(args.reason));
    let bulk = BulkDecision { ids: args.ids, decision: args.decision, phrase };
    let has_phrase = bulk.phrase.is_some();
    let mut outcomes = reviews::decide(&app.core, bulk, by.clone()).wait()?;
    if has_phrase {
        outcomes = acquittals::apply_phrase(&app.moderation, outcomes)?;
    }
    record_audit(app, "violations review decide", None, by)?;
    print(common, &outcomes)
}

fn print(common: &Common, outcomes: &[ReviewOutcome]) -> Result<()> {
    common.output(&json!({ "items": http_rows::<_, ReviewResult>(outcomes) }), || {
        let rows = outcomes.iter().map(|outcome| row![outcome.id, outcome.name()]);
        let warnings = outcomes.iter().filter_map(|outcome| {
            outcome.warning.map(|warning| format!("\nwarning: text {}: {}", outcome.id, warning.detail()))
        });
        table(["id", "outcome"], rows) + &warnings.collect::<String>()
    })?;
    let faults: Vec<_> = outcomes.iter().filter_map(|outcome| Some((outcome.id, outcome.result.err()?))).collect();
    let Some((_, first)) = faults.first() else { return Ok(()) };
    let details: Vec<_> = faults.iter().map(|(id, fault)| format!("text {id} {}", fault.detail())).collect();
    let count = pluralize(faults.len(), "text was", "texts were");
    Err(Error::new(first.code()).english_detail(format!("{count} not changed: {}.", details.join("; "))))
}

pub fn acquit(common: &Common, app: &App, args: AcquitArgs) -> Result<()> {
    let by = cli_authority(args.reason);
    let acquittal = if args.undo {
        acquittals::undo(&app.core, args.id).wait().map(|violation| Acquittal { violation, warning: None })
    } else {
        acquittals::acquit(&app.moderation, args.id, args.phrase.as_deref().map(str::trim), &by)
    };
    let acquittal = acquittal.map_err(name_missing("Violation", args.id))?;
    record_audit(app, "violations acquit", Some(acquittal.violation.user), by)?;
    let verb = if args.undo { "counts again" } else { "is acquitted" };
    common.output(&AcquittedViolation::from(acquittal.clone()), || {
        let warning = acquittal.warning.map(|warning| format!("\nwarning: {}", warning.detail())).unwrap_or_default();
        format!("violation {} {verb}{warning}", acquittal.violation.id)
    })
}
