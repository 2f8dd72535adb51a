//! `yarrow demo`: runs the service on a temporary data directory with sample data.
//!
//! Ignores the configured database, providers, backups, alerts and webhooks: a demo must not reach other systems or cost
//! money.

use std::{fs::Permissions, os::unix::fs::PermissionsExt, path::Path, sync::Arc};

use clap::Args;

use super::{Common, serve::ScheduleArgs};
use crate::{
    app::{App, OpenMode},
    config::{
        AuthConfig, BackupConfig, Config, Directory, LoadedConfig, PathsConfig, ResolvedSetting, ServerConfig,
        SettingOrigin, Sources, load,
    },
    domain::operations::demo::{self, DemoServices, PHONE_NUMBER, SeededDemo},
    error::{Error, Result},
    http::serve::{self, Stop},
    providers::factory::Announce,
};

const CODE: &str = "246810";

/// Run the service on temporary sample data and print commands to try
#[derive(Debug, Args)]
pub struct DemoArgs {
    #[command(flatten)]
    schedule: ScheduleArgs,
}

pub fn run(common: &Common, args: &DemoArgs) -> Result<()> {
    let owner_only = Permissions::from_mode(0o700);
    let directory = tempfile::Builder::new().permissions(owner_only).tempdir().map_err(Error::internal)?;
    let mut sources = common.sources();
    let review_account = format!("{PHONE_NUMBER}={CODE}");
    let own_settings = [
        ("YARROW_AUTH_REVIEW_ACCOUNTS", review_account.as_str()),
        ("YARROW_AUTH_RESEND_AFTER", "0 s"),
        ("YARROW_AUTH_SENDS_PER_ADDRESS_HOUR", "1000"),
        ("YARROW_AUTH_SENDS_PER_ADDRESS_DAY", "1000"),
        // The first castings are free, and the packages last for weeks.
        ("YARROW_COINS_INITIAL", "30"),
        ("YARROW_COINS_CONSUME", "10"),
    ];
    for (name, value) in own_settings {
        sources.environment.entry(name.into()).or_insert_with(|| value.to_owned());
    }
    let LoadedConfig { config, shown, .. } = load(sources)?;
    let defaults = load(Sources::default())?;
    let shown = shown_settings(shown, &defaults.shown);
    let config = isolated(config, defaults.config, directory.path());
    let log = config.log.clone();
    let print = common.announce();
    let app = Arc::new(App::open(config, OpenMode::Server, &print)?.with_settings(shown));
    print(&format!("making sample data in {}, which takes some seconds", directory.path().display()));
    let seeded = demo::seed(DemoServices {
        core: &app.core,
        moderation: &app.moderation,
        model_calls: &app.model_calls,
        payments: &app.payments,
        network_log: &app.network_log,
        admins: &app.admins,
    })?;
    // The past is made first, because its warnings are about nothing that happens now.
    common.start_buffered_logging(&log, Arc::clone(&app.server_log))?;
    let directory_name = directory.path().display().to_string();
    let announce: Announce = Arc::new(move |line: &str| {
        print(line);
        if let Some((_, address)) = line.rsplit_once(' ')
            && line.contains("listening")
        {
            print(&introduction(address, &directory_name, &seeded));
        }
    });
    serve::run(&app, args.schedule.schedule(), Stop::Signals, &announce)
}

/// Sections that [`isolated`] takes from the configuration. All others may lead to other systems.
const KEPT_SECTIONS: [&str; 13] = [
    "server",
    "brand",
    "auth",
    "coins",
    "points",
    "notifications",
    "admin",
    "suspicion",
    "limits",
    "retention",
    "network_log",
    "metrics",
    "log",
];
/// Settings of these sections that a demo ignores. With a domain, the server would request a certificate by ACME.
const IGNORED: [&str; 3] = ["auth.secret_key", "server.domain", "server.redirect_listen"];

/// Returns a configuration with its own database and without providers, backups, alerts and webhooks.
fn isolated(config: Config, defaults: Config, data_dir: &Path) -> Config {
    Config {
        paths: PathsConfig { data_dir: Directory(data_dir.to_owned()) },
        server: ServerConfig { domain: Vec::new(), redirect_listen: None, ..config.server },
        brand: config.brand,
        auth: AuthConfig { secret_key: None, ..config.auth },
        coins: config.coins,
        points: config.points,
        notifications: config.notifications,
        admin: config.admin,
        suspicion: config.suspicion,
        limits: config.limits,
        retention: config.retention,
        network_log: config.network_log,
        metrics: config.metrics,
        log: config.log,
        backup: BackupConfig { every: config.backup.every, ..defaults.backup },
        ..defaults
    }
}

/// Returns the settings as [`isolated`] leaves them.
fn shown_settings(settings: Vec<ResolvedSetting>, defaults: &[ResolvedSetting]) -> Vec<ResolvedSetting> {
    let is_kept = |name: &str| {
        let section = name.rsplit_once('.').map_or("", |(section, _)| section);
        name == "backup.every" || KEPT_SECTIONS.contains(&section) && !IGNORED.contains(&name)
    };
    let value_of = |setting: ResolvedSetting| {
        let default = defaults.iter().find(|default| default.name == setting.name);
        // The data directory is temporary.
        let value = default.map_or("", |default| if default.name == "data_dir" { "" } else { &default.value });
        if is_kept(&setting.name) || value == setting.value {
            return setting;
        }
        ResolvedSetting { value: value.to_owned(), origin: SettingOrigin::Demo, ..setting }
    };
    settings.into_iter().map(value_of).collect()
}

fn introduction(address: &str, directory: &str, seeded: &SeededDemo) -> String {
    let SeededDemo { users, castings, owner } = seeded;
    let (name, password, link) = (owner.name, owner.password.reveal(), owner.link.reveal());
    format!(
        r#"
A demonstration: {users} users with {castings} castings of the last four months, in {directory}.
Press Ctrl-C to stop and delete it. API documentation: {address}/docs

Web console, signed in once within an hour:
  {address}/admin/console/demo/{link}
Later, and for actions that ask for the password: name {name}, password {password}

Paste this into another terminal:

  B={address}
  curl -s $B/auth/send-code -d phoneNumber={PHONE_NUMBER}
  TOKEN=$(curl -s $B/auth/login -d phoneNumber={PHONE_NUMBER} -d code={CODE} | sed 's/.*"token":"\([^"]*\)".*/\1/')
  curl -s $B/user/profile -H "Authorization: Bearer $TOKEN"
  curl -s -X PUT $B/user/nickname -H "Authorization: Bearer $TOKEN" -d nickname=山居
  curl -s $B/divination/enhanced -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \
       -d '{{"question":"今年换工作合适吗？","questionType":"career","divinationData":{{"lines":[7,8,8,8,7,6]}}}}'
  curl -sN $B/divination/enhanced -H "Authorization: Bearer $TOKEN" -H "Accept: text/event-stream" \
       -H "Accept-Language: en" -d question="What should I let go of?" -d divinationData=878878
  curl -s $B/divination-history/save -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \
       -d '{{"localRecordId":"my-first","jsonData":{{"lines":[7,8,8,8,7,6]}},"question":"今年换工作合适吗？"}}'
  curl -s $B/divination-history/get -H "Authorization: Bearer $TOKEN" -d size=3
  curl -s -X POST $B/auth/logout -H "Authorization: Bearer $TOKEN"
"#
    )
}
