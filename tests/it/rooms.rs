//! The walls of the house, checked by plain text search.
