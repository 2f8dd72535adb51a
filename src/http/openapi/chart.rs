//! The schemas of charts and derivations, written by hand: lines have members that are present only if the time is known, and utoipa
//! cannot derive optional groups of members. A test compares it with real charts.

use std::borrow::Cow;

use serde_json::{Value, json};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ArrayBuilder, KnownFormat, ObjectBuilder, OneOfBuilder, RefOr, Schema, SchemaFormat,
        schema::{ArrayItems, Object, Type},
    },
};

use super::schemas::{enumeration, one_of_names, with_identifiers};
use crate::{
    domain::divination::{
        chart::{
            BodyRelation, Branch, CastSource, CastTime, ChangeRelation, ClashEffect, ClockKind, DayEffect, DayStart,
            EchoKind, Element, GrowthStage, Half, Kin, LinePattern, LineRole, MarkKind, MissingMoment, Pillar,
            PlumBlossom, Progress, Spirit, Stage, Star, Stem, Strength, chart_of,
        },
        hexagram::Trigram,
    },
    http::classic_response::example_cast,
    types::{NamedEnum, Timestamp},
};

/// Stands for the chart in the schemas of fields.
pub struct ChartShape;

impl ToSchema for ChartShape {
    fn name() -> Cow<'static, str> {
        "Chart".into()
    }
}

impl PartialSchema for ChartShape {
    fn schema() -> RefOr<Schema> {
        let chart = object("What the six-line method (六爻) derives from the lines and their time.")
            .property("moment", or_null(moment()))
            .required("moment")
            .property(
                "momentMissing",
                names::<MissingMoment>("The reason for a chart without a time. Otherwise absent."),
            )
            .property("palace", palace())
            .required("palace")
            .property(
                "pattern",
                or_null(names::<LinePattern>(
                    "The pattern of the primary hexagram: all three pairs of lower and upper lines clash or combine.",
                )),
            )
            .required("pattern")
            .property("relatingPattern", or_null(names::<LinePattern>("The pattern of the relating hexagram.")))
            .required("relatingPattern")
            .property("echoes", list(echo(), "Trigrams that repeat or reverse by the change."))
            .required("echoes")
            .property("bodyBranch", branch("The branch of the body of the hexagram (卦身)."))
            .required("bodyBranch")
            .property("stars", list(star(), "Stars of the day and the month (神煞); empty if the time is unknown."))
            .required("stars")
            .property("marks", list(mark(), "Relations of several lines, such as 三合 and 独发."))
            .required("marks")
            .property(
                "relatingLines",
                or_null(list(
                    nature(object("A line of the relating hexagram.")),
                    "All lines of the relating hexagram, bottom up, with their kin to the palace of the primary one.",
                )),
            )
            .required("relatingLines")
            .property("lines", list(line(), "The six lines, bottom up."))
            .required("lines");
        Schema::from(chart.examples([example()]).build()).into()
    }
}

/// Stands for [`PlumBlossom`] in the schemas of fields.
pub struct DerivationShape;

impl ToSchema for DerivationShape {
    fn name() -> Cow<'static, str> {
        "Derivation".into()
    }
}

impl PartialSchema for DerivationShape {
    fn schema() -> RefOr<Schema> {
        let choice = |description| {
            let choice = object(description)
                .property("sum", number("The sum."))
                .property("remainder", number("The remainder of eight, from 1 to 8."))
                .property("trigram", trigram_name("The trigram of this number in the Earlier Heaven order."));
            required(choice, &["sum", "remainder", "trigram"])
        };
        let line = object("The changing line and the sum that chose it.")
            .property("sum", number("The sum."))
            .property("position", number("The remainder of six, from 1 at the bottom to 6."));
        let derivation = object("The derivation of a casting by time or by numbers (梅花易数).")
            .property("source", source())
            .property("upper", choice("The upper trigram and the sum that chose it."))
            .property("lower", choice("The lower trigram and the sum that chose it."))
            .property("changingLine", required(line, &["sum", "position"]))
            .property("bodyAndUse", body_and_use());
        let derivation = required(derivation, &["source", "upper", "lower", "changingLine", "bodyAndUse"]);
        let example = PlumBlossom::new(CastSource::ThreeNumbers { upper: 6, lower: 4, line: 6 });
        Schema::from(derivation.examples([json!(example)]).build()).into()
    }
}

fn source() -> ObjectBuilder {
    let numbered = |description| {
        let numbered = object(description)
            .property("branch", branch("The branch."))
            .property("number", number("From 1 (子) to 12 (亥)."));
        required(numbered, &["branch", "number"])
    };
    let source = object("The numbers that the casting began with. `kind` says which members there are.")
        .property("kind", one_of_names("`time`: year, month, day, hour. `number_and_hour`: number, hour. `two_numbers`: upper, lower. `three_numbers`: upper, lower, line.", vec!["two_numbers", "three_numbers", "number_and_hour", "time"], "two_numbers"))
        .property("year", numbered("The branch of the lunar year."))
        .property("month", number("The lunar month. A leap month counts as the month that it repeats."))
        .property("isLeapMonth", flag("True in a leap month."))
        .property("day", number("The lunar day."))
        .property("hour", numbered("The branch of the double hour."))
        .property("number", number("The only number."))
        .property("upper", number("The number for the upper trigram."))
        .property("lower", number("The number for the lower trigram."))
        .property("line", number("The number for the changing line."));
    required(source, &["kind"])
}

fn body_and_use() -> ObjectBuilder {
    let trigram = |description| {
        object(description)
            .property("half", names::<Half>("The half of the hexagram."))
            .property("trigram", trigram_name("The trigram."))
            .property("element", element())
    };
    let acting = |description| {
        let relation = names::<BodyRelation>("The relation of its element to the body's.");
        required(trigram(description).property("relation", relation), &["half", "trigram", "element", "relation"])
    };
    let both = object("The asker's trigram (体), the matter's (用), and what acts on the asker.")
        .property("body", required(trigram("The half without the changing line."), &["half", "trigram", "element"]))
        .property("use", acting("The half with the changing line."))
        .property(
            "nuclear",
            list(
                acting("A trigram of the nuclear hexagram."),
                "The trigrams of the nuclear hexagram, the lower first.",
            ),
        )
        .property("changed", acting("The trigram into which the use changes."));
    required(both, &["body", "use", "nuclear", "changed"])
}

/// Returns the chart of the session in the examples.
fn example() -> Value {
    let time = "Asia/Shanghai".parse().ok().zip(Timestamp::from_rfc3339("2026-01-02T03:04:05.678Z"));
    let time = time.map(|(zone, at)| CastTime { at, zone, day_start: DayStart::At23 });
    json!(chart_of(&example_cast(), time.as_ref()))
}

fn moment() -> ObjectBuilder {
    let pillar = || text("Stem and branch.");
    let pillars = object("The four pillars (四柱).")
        .property("year", pillar())
        .property("month", pillar())
        .property("day", pillar())
        .property("hour", pillar());
    let lunar = object("The date in China's lunar calendar, of the day that the day rule gives.")
        .property("year", number("The Gregorian year in which the lunar year begins."))
        .property("month", number("From 1 to 12. A leap month has the number of the month before it."))
        .property("isLeapMonth", flag("True in a leap month."))
        .property("day", number("From 1 to 30."));
    object("The time of the casting. Null if it is unknown or not from 1900 to 2100; members that depend on it are then absent.")
        .property("local", text("RFC 3339 with the offset of the time zone.").format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime))))
        .property("clock", names::<ClockKind>("The clock that days and hours follow."))
        .property("dayStart", names::<DayStart>("The day rule of the casting."))
        .property("pillars", required(pillars, &["year", "month", "day", "hour"]))
        .property("void", list(branch("A branch."), "The two void branches of the day (旬空)."))
        .property("nearBoundary", list(names::<Pillar>("A pillar."), "Pillars that would be others with a clock three minutes off. The day also while the two day rules disagree."))
        .property("lunar", required(lunar, &["year", "month", "isLeapMonth", "day"]))
        .required("local")
        .required("clock")
        .required("dayStart")
        .required("pillars")
        .required("void")
        .required("nearBoundary")
        .required("lunar")
}

fn palace() -> ObjectBuilder {
    let palace = object("The palace (八宫) of the primary hexagram.")
        .property("trigram", trigram_name("The trigram that names it."))
        .property("element", element())
        .property("stage", names::<Stage>("The place of the hexagram in the palace."));
    required(palace, &["trigram", "element", "stage"])
}

fn echo() -> ObjectBuilder {
    let echo = object("A trigram that repeats or reverses.")
        .property("half", names::<Half>("The half of the hexagram."))
        .property("kind", names::<EchoKind>("Repeating (伏吟) or reversing (反吟)."));
    required(echo, &["half", "kind"])
}

fn star() -> ObjectBuilder {
    let star = object("A star and the branches that have it.")
        .property("star", names::<Star>("The star."))
        .property("branches", list(branch("A branch."), "The branches."));
    required(star, &["star", "branches"])
}

fn mark() -> ObjectBuilder {
    let mark = object("A relation of several lines.")
        .property("kind", names::<MarkKind>("The relation."))
        .property(
            "positions",
            list(
                number("A position."),
                "The lines, ascending from 1 at the bottom. A line counts also for the branch into which it changes.",
            ),
        )
        .property("element", or_null(names::<Element>("The element of a triad.")))
        .property("waitsFor", or_null(branch("The branch that completes a triad (虚一待用).")));
    required(mark, &["kind", "positions", "element", "waitsFor"])
}

fn line() -> ObjectBuilder {
    let line = object("A line.")
        .property("position", number("From 1 at the bottom to 6."))
        .property("value", number("6 old yin, 7 young yang, 8 young yin, 9 old yang."))
        .property("spirit", names::<Spirit>("The spirit (六神). Absent if the time is unknown."))
        .property("role", or_null(names::<LineRole>("The line of the asker (世) or of the matter (应).")))
        .property("clashEffect", or_null(names::<ClashEffect>("The effect of a clash with the day on a line at rest.")))
        .property(
            "hidden",
            or_null(state(nature(object("The hidden line (伏神): the kin that the hexagram lacks, under this line.")))),
        )
        .property("becomes", or_null(becomes()));
    required(state(nature(line)), &["position", "value", "role", "clashEffect", "hidden", "becomes"])
}

fn becomes() -> ObjectBuilder {
    let line = object("The line into which a changing line turns.")
        .property("relation", names::<ChangeRelation>("The effect on the line that changed."))
        .property(
            "progress",
            or_null(names::<Progress>("A change within an element that advances (进神) or retreats (退神).")),
        )
        .property("clash", flag("The new branch clashes with the old one."))
        .property("combination", flag("The new branch combines with the old one."))
        .property(
            "stage",
            names::<GrowthStage>(
                "The stage of growth of the old line on the new branch, such as 墓 (化墓) and 绝 (化绝).",
            ),
        );
    required(state(nature(line)), &["relation", "progress", "clash", "combination", "stage"])
}

/// Adds kin, stem, branch and element.
fn nature(line: ObjectBuilder) -> ObjectBuilder {
    let line = line
        .property("kin", names::<Kin>("The kin (六亲) to the palace."))
        .property("stem", names::<Stem>("The stem (纳甲)."))
        .property("branch", branch("The branch (纳甲)."))
        .property("element", element());
    required(line, &["kin", "stem", "branch", "element"])
}

/// Adds the members that are absent if the time is unknown.
fn state(line: ObjectBuilder) -> ObjectBuilder {
    line.property(
        "strength",
        names::<Strength>(
            "The strength in the month (旺相休囚死). This and the following members are absent if the time is unknown.",
        ),
    )
    .property("void", flag("The branch is void on this day (旬空)."))
    .property("monthBreak", flag("The month clashes with it (月破)."))
    .property("monthCombination", flag("The month combines with it (月合)."))
    .property(
        "dayEffect",
        names::<DayEffect>(
            "The effect of the day's element; `冲` if the day has the same element and strikes the line.",
        ),
    )
    .property("dayClash", flag("The day clashes with it (日冲)."))
    .property("dayCombination", flag("The day combines with it (日合)."))
    .property("growthStage", names::<GrowthStage>("The stage of growth (长生十二宫) on this day."))
}

fn trigram_name(description: &str) -> Object {
    let names = Trigram::all().map(Trigram::chinese_name).collect();
    let identifiers = ["Qian", "Dui", "Li", "Zhen", "Xun", "Kan", "Gen", "Kun"];
    with_identifiers(one_of_names(description, names, "乾"), &identifiers)
}

fn branch(description: &str) -> Object {
    names::<Branch>(description)
}

fn element() -> Object {
    names::<Element>("The element.")
}

fn object(description: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Object).description(Some(description))
}

fn required(object: ObjectBuilder, names: &[&str]) -> ObjectBuilder {
    names.iter().fold(object, |object, name| object.required(*name))
}

fn text(description: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).description(Some(description))
}

fn number(description: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).description(Some(description))
}

fn flag(description: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Boolean).description(Some(description))
}

fn names<T: NamedEnum>(description: &str) -> Object {
    enumeration::<T>(description, T::NAMES.first().copied().unwrap_or_default())
}

fn list(item: impl Into<RefOr<Schema>>, description: &str) -> ArrayBuilder {
    ArrayBuilder::new().items(ArrayItems::RefOrSchema(Box::new(item.into()))).description(Some(description))
}

fn or_null(schema: impl Into<RefOr<Schema>>) -> OneOfBuilder {
    OneOfBuilder::new().item(ObjectBuilder::new().schema_type(Type::Null)).item(schema)
}
