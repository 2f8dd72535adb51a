//! The OpenAPI 3.1 document and the schemas, headers and enumerations in it.

pub mod chart;
pub mod document;
pub mod enums;
pub mod headers;
mod scalars;
pub mod schemas;
