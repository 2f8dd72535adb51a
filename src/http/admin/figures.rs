//! `/admin/figures`: daily sums for charts.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    config::LimitsConfig,
    domain::{
        divination::sessions::snapshot::{self, LEAST_COUNT, SnapshotCount, SnapshotProperty},
        operations::figures::{self, FigureGrouping, FigureName, FigureQuery, FigureRow},
    },
    error::{Fault, FieldCode, Result},
    http::{
        body::RawValue,
        params::{Nothing, Parameter, Rules, parameters, text},
        reply::Json,
        request_context::RequestContext,
    },
    types::Date,
};

parameters! {
    FigureParams(fields) {
        names: Option<FigureNames> = fields.optional("names", "Names of figures, with commas between them; without it, all.");
        from: Option<FigureDay> = fields.optional("from", "The first day, in the service's time zone; without it, 30 days up to `to`.");
        to: Option<FigureDay> = fields.optional("to", "The last day; without it, today.");
        grouping: Option<FigureGrouping> = fields.optional("grouping", "The length of a period; weeks begin on Monday.");
    }
}

/// The value of a figure in one period.
#[derive(Serialize, ToSchema)]
pub struct ShownFigure {
    /// The first day of the period.
    #[schema(example = "2026-01-02")]
    period: String,
    #[schema(example = "coins_used")]
    name: &'static str,
    /// The part of the figure, such as the kind of a ledger entry, or channel, currency and asset of money
    /// (`stripe/USD/coin`); may be empty.
    #[schema(example = "consume")]
    key: String,
    /// Money is in hundredths of the currency in the key, cost in millionths of the currency of the price list.
    #[schema(example = 12)]
    value: i64,
}

impl From<FigureRow> for ShownFigure {
    fn from(row: FigureRow) -> Self {
        Self { period: row.period.to_string(), name: row.name.name(), key: row.key, value: row.value }
    }
}

/// The figures of some days.
#[derive(Serialize, ToSchema)]
pub struct FigureList {
    #[schema(example = "2026-01-01")]
    from: String,
    #[schema(example = "2026-01-30")]
    to: String,
    #[schema(example = "day")]
    grouping: &'static str,
    /// By name, period and key. Periods without a value are left out.
    items: Vec<ShownFigure>,
}

impl FigureList {
    pub fn new(query: &FigureQuery, rows: Vec<FigureRow>) -> Self {
        Self {
            from: query.from.to_string(),
            to: query.to.to_string(),
            grouping: query.grouping.name(),
            items: rows.into_iter().map(ShownFigure::from).collect(),
        }
    }
}

pub async fn list(context: RequestContext, params: FigureParams) -> Result<Json<FigureList>> {
    let days = (params.from.map(|day| day.0), params.to.map(|day| day.0));
    let names = params.names.map(|names| names.0);
    let grouping = params.grouping.unwrap_or_default();
    let found = context.report(move |app| {
        let query = FigureQuery::new(&app.core, names, days, grouping)?;
        let rows = figures::list(&app.core, &query)?;
        Ok(FigureList::new(&query, rows))
    });
    Ok(Json(found.await?))
}

/// The number of deleted castings of a month with the same value of a property.
#[derive(Serialize, ToSchema)]
pub struct ShownCastingCount {
    #[schema(example = "2026-01")]
    month: String,
    property: SnapshotProperty,
    /// The type, the method, the number of the hexagram, or the positions of the changing lines from the bottom, such as
    /// `1,4`. Empty for the month itself, for no type and for no changing line.
    #[schema(example = "three_coins")]
    value: String,
    #[schema(minimum = 10, example = 12)]
    count: i64,
}

/// Counts of deleted castings.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CastingCounts {
    /// Smaller counts are left out.
    #[schema(example = 10)]
    least_count: i64,
    /// By month, property and value.
    items: Vec<ShownCastingCount>,
}

impl From<Vec<SnapshotCount>> for CastingCounts {
    fn from(counts: Vec<SnapshotCount>) -> Self {
        let shown = |found: SnapshotCount| ShownCastingCount {
            month: found.month,
            property: found.property,
            value: found.value,
            count: found.count,
        };
        Self { least_count: LEAST_COUNT, items: counts.into_iter().map(shown).collect() }
    }
}

pub async fn count_castings(context: RequestContext, _: Nothing) -> Result<Json<CastingCounts>> {
    Ok(Json(context.report(move |app| snapshot::counts(&app.core)).await?.into()))
}

/// Names of figures with commas between them.
pub struct FigureNames(Vec<FigureName>);

impl Parameter for FigureNames {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let written = text(value)?;
        let names = written.split(',').map(|name| FigureName::from_name(name.trim())).collect::<Option<Vec<_>>>();
        let all = || FigureName::ALL.map(FigureName::name).join(", ");
        let mut names = names.ok_or_else(|| {
            Fault::new(
                FieldCode::UnknownValue,
                (format!("must be names of these: {}", all()), format!("须为其中的名称：{}", all())),
            )
        })?;
        names.sort_unstable();
        names.dedup();
        Ok(Self(names))
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": 1000, "example": "new_users,revenue" })
    }
}

/// A day of figures.
pub struct FigureDay(pub Date);

impl Parameter for FigureDay {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        figures::parse_day(text(value)?.trim()).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "example": "2026-01-02" })
    }
}
