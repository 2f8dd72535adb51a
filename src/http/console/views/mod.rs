//! The views of the web console: pure functions from plain data to HTML.
//!
//! A page is a struct with the data and a `render` function that takes the struct and a [`context::ViewContext`].
//! Nothing here reads the database, the clock or the configuration. All text comes from [`texts`], so the compiler finds
//! a missing translation. Every page works without JavaScript.

pub mod texts;
pub mod words;
pub mod format;
pub mod context;
pub mod assets;
pub mod chart;
pub mod parts;
pub mod forms;
pub mod lists;
pub mod cells;
pub mod list_page;
pub mod masked;
pub mod qr;
pub mod layout;
pub mod pages;
#[cfg(test)]
mod tests;
