//! The application in the test process, for code that neither HTTP nor the command line reaches.

use std::sync::Arc;

use tempfile::TempDir;
use yarrow::{
    app::{App, OpenMode},
    config::{Sources, load},
    providers::factory::Announce,
};

use super::server::create_database;

/// Opens the application on a temporary directory. Settings are named by environment variable without the prefix.
pub fn open_app(settings: &[(&str, &str)]) -> (TempDir, App) {
    let directory = tempfile::tempdir().unwrap();
    let flags = [("data_dir".to_owned(), directory.path().to_string_lossy().into_owned())].into();
    let variable = |(name, value): &(&str, &str)| (format!("YARROW_{name}"), (*value).to_owned());
    let database = create_database(directory.path()).map(|url| ("YARROW_DATABASE_URL".to_owned(), url));
    let environment = settings.iter().map(variable).chain(database).collect();
    let sources = Sources { flags, environment, ..Sources::default() };
    let announce: Announce = Arc::new(|_: &str| ());
    let app = App::open(load(sources).unwrap().config, OpenMode::Initialize, &announce).unwrap();
    (directory, app)
}
