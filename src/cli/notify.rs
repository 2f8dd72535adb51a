//! `yarrow notify`: notifications in the app.

use clap::{ArgGroup, Args, Subcommand};

use super::{Common, choice::choice, cli_authority, find_user, record_audit};
use crate::{
    app::App,
    domain::messaging::notifications::{self, Audience, NotificationDraft, NotificationKind, Payload},
    error::{Error, FieldError, Result},
    http::responses::AdminNotification,
    types::{Timestamp, clean},
};

/// Send, list and delete notifications
#[derive(Debug, Args)]
pub struct NotifyArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Send a notification to all users or to some, and print its id
    ///
    /// Example: yarrow notify send "维护通知" "今晚两点暂停服务。" --all --kind system
    Send(SendArgs),
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("audience").required(true).args(["all", "to"])))]
struct SendArgs {
    /// Title
    title: String,
    /// Text
    body: String,
    /// Send to all users
    #[arg(long)]
    all: bool,
    /// Send to this user: id, phone number or email address; repeatable
    #[arg(long, value_name = "WHO")]
    to: Vec<String>,
    /// Kind; users can switch off all but `system`
    #[arg(long, value_parser = choice!(NotificationKind), default_value = NotificationKind::Activity.name())]
    kind: NotificationKind,
    /// Action on tap, as JSON, such as `{"type":"open_route","route":"points"}`
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// Hide the notification from this time on
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
}

pub fn run(common: &Common, args: NotifyArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Send(args) => {
            let sent = notifications::send(&app.core, draft(&app, args)?).wait()?;
            record_audit(&app, "notify send", None, cli_authority(None))?;
            common.show(&AdminNotification::from(sent))
        }
    }
}

fn draft(app: &App, args: SendArgs) -> Result<NotificationDraft> {
    let limits = &app.core.config.limits;
    let mut faults = Vec::new();
    let title = text(&args.title, "title", limits.notification_title, &mut faults);
    let body = text(&args.body, "body", limits.notification_text, &mut faults);
    let payload = args.payload.map(|json| Payload::parse(&json, &app.core.config.notifications.url_hosts)).transpose();
    let payload = payload.unwrap_or_else(|fault| {
        faults.push(fault.in_field("payload"));
        None
    });
    let expires_at = args.expires.map(|time| Timestamp::parse(&time, &limits.time_zone)).transpose();
    let expires_at = expires_at.unwrap_or_else(|fault| {
        faults.push(fault.in_field("expires"));
        None
    });
    if !faults.is_empty() {
        return Err(Error::fields(faults));
    }
    let users = args.to.iter().map(|who| find_user(app, who).map(|user| user.id)).collect::<Result<Vec<_>>>()?;
    Ok(NotificationDraft {
        audience: if args.all { Audience::Everybody } else { Audience::Users(users) },
        kind: args.kind,
        title,
        body,
        payload: payload.unwrap_or(Payload::None {}),
        expires_at,
    })
}

fn text(given: &str, field: &str, limit: u32, faults: &mut Vec<FieldError>) -> String {
    use crate::error::{Fault, FieldCode};
    let read = clean(given, limit as usize).and_then(|text| {
        if text.is_empty() {
            Err(Fault::new(FieldCode::Required, ("must not be empty", "不能为空")))
        } else {
            Ok(text)
        }
    });
    read.unwrap_or_else(|fault| {
        faults.push(fault.in_field(field));
        String::new()
    })
}
