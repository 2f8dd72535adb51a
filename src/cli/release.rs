//! `yarrow release`: versions of the app.

use clap::{Args, Subcommand};

use super::{Common, PageArgs, cli_authority, name_missing, parse_reason, record_audit};
use crate::{
    domain::messaging::releases::{self, AppVersion, DownloadUrl, ReleaseDraft},
    error::{Error, Result},
    http::{console::views::pages::messages::RELEASE, responses::AdminRelease},
};

/// Publish and list versions of the app, for the clients' update check
#[derive(Debug, Args)]
pub struct ReleaseArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Publish a version
    ///
    /// Example: yarrow release publish 2.3.1 --code 231 --platform android
    Publish(PublishArgs),
    /// Withdraw a version, so that clients are no longer offered it
    ///
    /// Its version code can be published again.
    Withdraw {
        /// Id of the release, as `yarrow release list` prints it
        id: i64,
        /// Reason, for the audit
        #[arg(long, value_parser = parse_reason)]
        reason: Option<String>,
    },
    /// Print published versions, highest version code first
    List {
        #[command(flatten)]
        page: PageArgs,
    },
}

#[derive(Debug, Args)]
struct PublishArgs {
    /// Semantic version, such as 2.3.1
    version: String,
    /// Version code (build number), which orders the releases
    #[arg(long, value_parser = clap::value_parser!(i64).range(0..=9_007_199_254_740_991))]
    code: i64,
    /// Platform, such as android; default: all platforms
    #[arg(long, value_parser = platform)]
    platform: Option<String>,
    /// Require older clients to update
    #[arg(long)]
    required: bool,
    /// Release notes
    #[arg(long, default_value = "")]
    notes: String,
    /// Download address (https)
    #[arg(long)]
    url: Option<String>,
}

pub fn run(common: &Common, args: ReleaseArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Publish(args) => {
            let published = releases::publish(&app.core, draft(args)?).wait()?;
            record_audit(&app, "release publish", None, cli_authority(None))?;
            let text = format!("published {}", published.version);
            common.output(&AdminRelease::from(published), || text)
        }
        Action::Withdraw { id, reason } => {
            let withdrawn = releases::withdraw(&app.core, id).wait().map_err(name_missing("Release", id))?;
            record_audit(&app, "release withdraw", None, cli_authority(reason))?;
            let text = format!("withdrawn {}", withdrawn.version);
            common.output(&AdminRelease::from(withdrawn), || text)
        }
        Action::List { page } => {
            let listing = releases::list(&app.core, page.page())?;
            common.output_list::<_, AdminRelease>(page.page(), listing, RELEASE)
        }
    }
}

fn draft(args: PublishArgs) -> Result<ReleaseDraft> {
    let version = AppVersion::parse(&args.version).map_err(|fault| Error::field("version", fault))?;
    let download_url = args.url.map(|url| DownloadUrl::parse(&url)).transpose();
    Ok(ReleaseDraft {
        version,
        version_code: args.code,
        platform: args.platform,
        is_required: args.required,
        notes: args.notes,
        download_url: download_url.map_err(|fault| Error::field("url", fault))?,
    })
}

fn platform(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if (1..=64).contains(&text.len()) && text.bytes().all(is_plain) {
        return Ok(text.to_lowercase());
    }
    Err("must be a short name, such as android or ios".into())
}
