//! The application without a door, for what none leads to.

use std::sync::Arc;

use tempfile::TempDir;
use yarrow::{
    app::{App, OpenMode},
    config::{Sources, load},
    providers::factory::Announce,
};

/// The application on a directory of its own, which lasts as long as the first of the two, with these settings by their
/// environment variables without the prefix.
pub fn open_app(settings: &[(&str, &str)]) -> (TempDir, App) {
    let directory = tempfile::tempdir().unwrap();
    let flags = [("data_dir".to_owned(), directory.path().to_string_lossy().into_owned())].into();
    let variable = |(name, value): &(&str, &str)| (format!("YARROW_{name}"), (*value).to_owned());
    let sources = Sources { flags, environment: settings.iter().map(variable).collect(), ..Sources::default() };
    let announce: Announce = Arc::new(|_: &str| ());
    let app = App::open(load(sources).unwrap().config, OpenMode::Initialize, &announce).unwrap();
    (directory, app)
}
