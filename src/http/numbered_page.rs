//! Lists with page numbers: `page` and `size` in the request, `{items, page, size, total}` in the response.

use std::borrow::Cow;

use serde::Serialize;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        KnownFormat, ObjectBuilder, Ref, RefOr, Schema, SchemaFormat,
        schema::{ArrayBuilder, Type},
    },
};

use crate::{
    http::reply::Json,
    types::{PageRequest, Paginated},
};

/// One page of a list, with the total of all pages.
#[derive(Serialize)]
pub struct NumberedPage<T> {
    items: Vec<T>,
    page: u32,
    size: u32,
    total: i64,
}

impl<T> NumberedPage<T> {
    /// Converts a listing into the response.
    pub fn of<S>(page: PageRequest, found: Paginated<S>) -> Json<Self>
    where
        T: From<S>,
    {
        let items = found.items.into_iter().map(T::from).collect();
        Json(Self { items, page: page.number, size: page.size, total: found.total })
    }
}

// Written out, because the derived name would be the same for every kind of item.
impl<T: ToSchema> ToSchema for NumberedPage<T> {
    fn name() -> Cow<'static, str> {
        format!("{}Page", T::name()).into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}

impl<T: ToSchema> PartialSchema for NumberedPage<T> {
    fn schema() -> RefOr<Schema> {
        let whole_number = |format, least: usize, example: u32| {
            let number =
                ObjectBuilder::new().schema_type(Type::Integer).format(Some(SchemaFormat::KnownFormat(format)));
            number.minimum(Some(least)).examples([example])
        };
        let items = ArrayBuilder::new().items(Ref::from_schema_name(T::name()));
        let total = whole_number(KnownFormat::Int64, 0, 1).description(Some("Total number on all pages."));
        let page = ObjectBuilder::new()
            .description(Some("One page of the list."))
            .property("items", items)
            .required("items")
            .property("page", whole_number(KnownFormat::Int32, 0, 1))
            .required("page")
            .property("size", whole_number(KnownFormat::Int32, 1, 20))
            .required("size")
            .property("total", total)
            .required("total");
        page.into()
    }
}
