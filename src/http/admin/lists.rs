//! Lists of the staff. Each is declared once: the API, the console and its CSV files show it.

use serde::Serialize;

use crate::{
    app::App,
    error::{Error, Result},
    http::{
        console::views::{
            cells::Column,
            context::ViewContext,
            layout::Place,
            list_page::{FilterField, Frame},
            lists::Rows,
            texts::Text,
        },
        numbered_page::NumberedPage,
        params::{Fields, PageNumber, PageSize, Parameters, page},
        reply::Json,
        request_context::RequestContext,
    },
    types::{PageRequest, Paginated},
};

/// A list of the staff.
pub trait StaffList: 'static {
    /// The parameters of the API, which are the fields of the filter in the console.
    type Params: Parameters;
    type Filter: Clone + Send + 'static;
    type Row: Send + 'static;

    /// The entry of the navigation.
    const PLACE: Place;
    const TITLE: Text = Self::PLACE.title();
    /// The text of a list without rows.
    const EMPTY: Text;
    const COLUMNS: &'static [Column<Self::Row>];

    /// Returns the parameters that the form of the console shows.
    fn fields(_: &ViewContext) -> Vec<FilterField> {
        Vec::new()
    }

    /// Returns what the caller may list.
    ///
    /// # Errors
    /// Faults of parameters; errors of what the caller may see.
    fn filter(context: &RequestContext, params: Self::Params) -> Result<Self::Filter>;

    /// Reads a page by its number. Blocks.
    ///
    /// # Errors
    /// Storage errors; `internal` for a list without numbers, which has [`Self::rows`].
    fn read(_: &App, _: &Self::Filter, _: PageRequest) -> Result<Paginated<Self::Row>> {
        Err(Error::internal("a list without page numbers"))
    }

    /// Reads the rows from a cursor of the console: by default the number of a page. Blocks.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn rows(app: &App, filter: &Self::Filter, cursor: Option<&str>, size: u32) -> Result<Rows<Self::Row>> {
        let number = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(1).max(1);
        let page = PageRequest { first: 1, number, size };
        Ok(Rows::numbered(page, Self::read(app, filter, page)?))
    }

    /// Reads the next rows of a CSV file. Blocks.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn rows_of_file(app: &App, filter: &Self::Filter, cursor: Option<&str>, size: u32) -> Result<Rows<Self::Row>> {
        Self::rows(app, filter, cursor, size)
    }

    /// Returns what the page of the console shows around the list. Blocks.
    ///
    /// # Errors
    /// Storage errors.
    fn frame(_: &ViewContext, _: &App, _: Option<&Self::Filter>) -> Result<Frame> {
        Ok(Frame::default())
    }

    /// Returns the id of a row that acts on several rows can pick.
    fn pick(_: &Self::Row) -> Option<String> {
        None
    }
}

/// A filter, and the page of the list.
pub struct Paged<P> {
    filter: P,
    page: Option<PageNumber>,
    size: Option<PageSize>,
}

impl<P: Parameters> Parameters for Paged<P> {
    fn read(fields: &mut Fields<'_, '_>) -> Option<Self> {
        let filter = P::read(fields);
        let page = fields.optional("page", "Page number.");
        let size = fields.optional("size", "Rows on a page.");
        Some(Self { filter: filter?, page: page?, size: size? })
    }
}

/// Lists rows in the API.
///
/// # Errors
/// As [`StaffList::filter`] and [`StaffList::read`].
pub async fn list<L, R>(context: RequestContext, params: Paged<L::Params>) -> Result<Json<NumberedPage<R>>>
where
    L: StaffList,
    R: From<L::Row> + Serialize,
{
    let (page, found) = read::<L>(context, params).await?;
    Ok(NumberedPage::of(page, found))
}

/// Reads a page of rows.
///
/// # Errors
/// As [`list`].
pub async fn read<L: StaffList>(
    context: RequestContext,
    params: Paged<L::Params>,
) -> Result<(PageRequest, Paginated<L::Row>)> {
    let page = page(&context, params.page, params.size);
    let filter = L::filter(&context, params.filter)?;
    Ok((page, context.report(move |app| L::read(app, &filter, page)).await?))
}
