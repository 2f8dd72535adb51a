//! Lists with cursors: `cursor` and `limit` in the request, `{items, nextCursor}` in the response.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, Ref, RefOr, Schema,
        schema::{ArrayBuilder, SchemaType, Type},
    },
};

use crate::{
    config::LimitsConfig,
    error::{Error, Fault, Result},
    http::{
        body::RawValue,
        params::{FOREIGN_PAGES, PageSize, Parameter, Rules, text},
        reply::Json,
        request_context::RequestContext,
    },
    types::{Cursor, CursorRange, CursorSlice, clean},
};

const EXAMPLE: &str = "AAAAAAAAACp9k2fQx1m0bY4sVwT7uLpH";

/// The name of a list. Cursors are bound to it, so that the cursor of one list is invalid for another.
pub struct CursorList(pub &'static str);

impl CursorList {
    /// Returns the cursor's position in the list.
    ///
    /// # Errors
    /// `invalid_parameters` for a cursor of another user or list.
    pub fn position(&self, context: &RequestContext, cursor: Option<Cursor>) -> Result<Option<i64>> {
        let user = context.user()?;
        let position = |cursor: Cursor| {
            let position = context.app.core.keys.position(self.0, user, &cursor);
            position.ok_or_else(|| Error::field("cursor", Cursor::fault()))
        };
        cursor.map(position).transpose()
    }

    /// Converts a slice into the response, each item with `shown`.
    ///
    /// # Errors
    /// `unauthenticated`, which the guard rules out.
    pub fn page<T, W>(
        &self,
        context: &RequestContext,
        slice: CursorSlice<T>,
        shown: impl Fn(T) -> W,
    ) -> Result<Json<CursorPage<W>>> {
        let user = context.user()?;
        let next_cursor = slice.next.map(|position| context.app.core.keys.cursor(self.0, user, position));
        Ok(Json(CursorPage { items: slice.items.into_iter().map(shown).collect(), next_cursor }))
    }
}

/// Returns the requested part of a list, with the default limit if none was sent.
pub fn span(context: &RequestContext, before: Option<i64>, limit: Option<PageSize>) -> CursorRange {
    CursorRange { before, limit: limit.map_or(context.app.core.config.limits.page_size, |PageSize(limit)| limit) }
}

/// A part of a list, newest first, and the cursor for the next part.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CursorPage<T> {
    items: Vec<T>,
    next_cursor: Option<Cursor>,
}

// Written out, because the derived name would be the same for every kind of item.
impl<T: ToSchema> ToSchema for CursorPage<T> {
    fn name() -> Cow<'static, str> {
        format!("{}CursorPage", T::name()).into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}

impl<T: ToSchema> PartialSchema for CursorPage<T> {
    fn schema() -> RefOr<Schema> {
        let items = ArrayBuilder::new().items(Ref::from_schema_name(T::name()));
        let cursor = ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
            .description(Some("Send it as `cursor` to get the next page. Null at the end of the list."))
            .examples([EXAMPLE]);
        let page = ObjectBuilder::new()
            .description(Some("One page of the list, newest first."))
            .property("items", items)
            .required("items")
            .property("nextCursor", cursor)
            .required("nextCursor");
        page.into()
    }
}

impl Parameter for Cursor {
    const FOREIGN_NAMES: &[&str] = FOREIGN_PAGES;

    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        Self::parse(&clean(&text(value)?, Self::LENGTH)?)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": Self::LENGTH, "example": EXAMPLE })
    }
}
