//! `yarrow webhooks`: the events for other systems, and their replay.

use clap::{Args, Subcommand};

use super::{Common, PageArgs, choice::choice, cli_authority, name_missing, or_empty, record_audit, row, table};
use crate::{
    domain::operations::{
        webhook_outbox::{self, WebhookEvent, WebhookState},
        webhooks,
    },
    error::Result,
    http::responses::{ReplayedWebhooks, TestedWebhook, WebhookDelivery},
    types::pluralize,
};

/// List the events of webhooks, send them again, or send a test event
#[derive(Debug, Args)]
pub struct WebhooksArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print events with their deliveries, newest first
    List {
        /// Only events in this state
        #[arg(long, value_parser = choice!(WebhookState))]
        state: Option<WebhookState>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Send an event again, or all that were given up
    ///
    /// The running server sends them. The receiver sees the same id as before.
    Replay {
        /// Number of the event; without it all events that were given up
        id: Option<i64>,
    },
    /// Send a test event to the receiver at once
    Test,
}

pub fn run(common: &Common, args: &WebhooksArgs) -> Result<()> {
    let app = common.open()?;
    match &args.action {
        Action::List { state, page } => {
            let listing = webhook_outbox::list(&app.core, *state, page.page())?;
            record_audit(&app, "webhooks list", None, cli_authority(None))?;
            common.output_page::<_, WebhookDelivery>(page.page(), listing, |listing| {
                let rows = listing.items.iter().map(|event| {
                    let WebhookEvent { id, kind, state, attempts, created_at, delivered_at, .. } = event;
                    let failure = or_empty(event.failure.as_ref());
                    let delivered_at = or_empty(delivered_at.as_ref());
                    row![id, event.event_id, kind.name(), state.name(), attempts, created_at, delivered_at, failure]
                });
                table(["id", "event", "kind", "state", "attempts", "created", "delivered", "failure"], rows)
            })
        }
        Action::Replay { id } => {
            let name = id.map(|id| id.to_string()).unwrap_or_default();
            let replayed = webhook_outbox::replay(&app.core, *id).map_err(name_missing("Event", &name))?;
            record_audit(&app, "webhooks replay", None, cli_authority(None))?;
            let count = pluralize(replayed, "event", "events");
            common.output(&ReplayedWebhooks::from(replayed), || format!("{count} will be sent again"))
        }
        Action::Test => {
            let event_id = webhooks::send_test(&app.webhooks)?;
            record_audit(&app, "webhooks test", None, cli_authority(None))?;
            common.output(&TestedWebhook::from(event_id.clone()), || format!("{event_id} was accepted"))
        }
    }
}
