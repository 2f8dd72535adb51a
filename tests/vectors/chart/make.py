#!/usr/bin/env python3
"""Makes the test vectors of the chart, and its two calendar tables, from public libraries.

    python3 -m venv venv && venv/bin/pip install -r requirements.txt
    venv/bin/python make.py [--assets] [solar_terms lunar_years sixty_days hexagrams changes pillars plum_blossom]

Without names it makes all files. Each fact is asked of at least two libraries, and the script stops where they disagree,
except as a comment says. Existing libraries have wrong entries, so one alone proves nothing.
"""

import datetime
import random
import sys
import zoneinfo
from pathlib import Path

HERE = Path(__file__).resolve().parent
ASSETS = HERE.parents[2] / "assets"
BEIJING = datetime.timezone(datetime.timedelta(hours=8))
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
YEARS = range(1900, 2101)
TERMS = ["小寒", "立春", "惊蛰", "清明", "立夏", "芒种", "小暑", "立秋", "白露", "寒露", "立冬", "大雪"]
STEMS, BRANCHES = "甲乙丙丁戊己庚辛壬癸", "子丑寅卯辰巳午未申酉戌亥"
SIXTY = [STEMS[place % 10] + BRANCHES[place % 12] for place in range(60)]
KIN = {"父": "父母", "兄": "兄弟", "官": "官鬼", "妻": "妻财", "子": "子孙"}
STAGES = ["pure", "first", "second", "third", "fourth", "fifth", "wandering", "returning"]
TRADITIONAL = str.maketrans("離兌龍陳騰蛇財孫應遊歸", "离兑龙陈螣蛇财孙应游归")
# The letters that stand for zones in the files.
ZONES = {
    "S": zoneinfo.ZoneInfo("Asia/Shanghai"),
    "N": zoneinfo.ZoneInfo("America/New_York"),
    "K": zoneinfo.ZoneInfo("Asia/Kathmandu"),
    "A": zoneinfo.ZoneInfo("Pacific/Auckland"),
}


def agreed(place, *answers):
    """Returns the answer that all give, or stops."""
    if any(answer != answers[0] for answer in answers):
        sys.exit(f"{place}: the libraries disagree: {answers}")
    return answers[0]


def write(path, heading, rows):
    path.write_text("\n".join("\t".join(str(cell) for cell in row) for row in [heading, *rows]) + "\n")
    print(f"{path.name}: {len(rows)} rows, {path.stat().st_size} bytes")


def unix(time):
    return int((time - EPOCH).total_seconds())


def utc(second):
    return EPOCH + datetime.timedelta(seconds=second)


def in_beijing(date, clock):
    """Returns the Unix second of a date and a time of day in Beijing."""
    return unix(datetime.datetime(*date, *clock, tzinfo=BEIJING))


# The instants of the months


def terms_tyme(year):
    from tyme4py.solar import SolarTerm

    for place in range(12):
        time = SolarTerm.from_index(year, 2 * place + 1).get_julian_day().get_solar_time()
        date = time.get_solar_day()
        clock = (time.get_hour(), time.get_minute(), time.get_second())
        yield in_beijing((date.get_year(), date.get_month(), date.get_day()), clock)


def terms_lunar(year):
    from lunar_python import Solar

    table = Solar.fromYmd(year, 6, 15).getLunar().getJieQiTable()
    for term in TERMS:
        time = table[term]
        clock = (time.getHour(), time.getMinute(), time.getSecond())
        yield in_beijing((time.getYear(), time.getMonth(), time.getDay()), clock)


def terms_sxtwl(year):
    import sxtwl

    # A year of this library begins with 立春 and ends with the next.
    found = {}
    for term in [*sxtwl.getJieQiByYear(year - 1), *sxtwl.getJieQiByYear(year)]:
        time = sxtwl.JD2DD(term.jd)
        if term.jqIndex % 2 == 1 and time.Y == year:
            # Seconds can be rounded to 60.
            minute = in_beijing((year, int(time.M), int(time.D)), (int(time.h), int(time.m), 0))
            found[term.jqIndex] = minute + round(time.s)
    return sorted(found.values())


def longitudes():
    return [(285 + 30 * place) % 360 for place in range(12)]


def terms_astronomy_engine(year):
    import astronomy

    start = astronomy.Time.Make(year, 1, 1, 0, 0, 0)
    for longitude in longitudes():
        start = astronomy.SearchSunLongitude(longitude, start, 40)
        yield unix(start.Utc().replace(tzinfo=datetime.timezone.utc))


def terms_ephem(year):
    import ephem
    import math

    def behind(time, longitude):
        sun = ephem.Sun(time, epoch=time)
        found = math.degrees(ephem.Ecliptic(ephem.Equatorial(sun.g_ra, sun.g_dec, epoch=time), epoch=time).lon)
        return (longitude - found + 180) % 360 - 180

    time = ephem.Date(f"{year}/1/6")
    for longitude in longitudes():
        for _ in range(8):
            time = ephem.Date(time + behind(time, longitude) * 365.2422 / 360)
        yield unix(ephem.Date(time).datetime().replace(tzinfo=datetime.timezone.utc))
        time = ephem.Date(time + 30)


def solar_terms(assets):
    table, rows = [], []
    for year in YEARS:
        own = agreed(f"terms of {year}", list(terms_tyme(year)), list(terms_lunar(year)))
        table.append([year, *own])
        others = [list(source(year)) for source in (terms_sxtwl, terms_astronomy_engine, terms_ephem)]
        for place, term in enumerate(TERMS):
            assert all(abs(other[place] - own[place]) <= 75 for other in others), (year, term)
            rows.append([year, term, *(other[place] for other in others)])
    if assets:
        write(ASSETS / "solar-terms.tsv", ["year", *TERMS], table)
    write(HERE / "solar-terms.tsv", ["year", "term", "sxtwl", "astronomy_engine", "ephem"], rows)


# Lunar years


def lunar_year_tyme(year):
    from tyme4py.lunar import LunarYear

    found = LunarYear.from_year(year)
    first = found.get_months()[0].get_first_day().get_solar_day()
    months = "".join("1" if month.get_day_count() == 30 else "0" for month in found.get_months())
    return [first.get_year(), first.get_month(), first.get_day(), found.get_leap_month(), months]


def lunar_year_lunar(year):
    from lunar_python import LunarYear, Solar

    months = LunarYear.fromYear(year).getMonthsInYear()
    first = Solar.fromJulianDay(months[0].getFirstJulianDay())
    leap = next((-month.getMonth() for month in months if month.getMonth() < 0), 0)
    lengths = "".join("1" if month.getDayCount() == 30 else "0" for month in months)
    return [first.getYear(), first.getMonth(), first.getDay(), leap, lengths]


def lunar_year_sxtwl(year):
    import sxtwl

    first = sxtwl.fromLunar(year, 1, 1, False)
    leap = sxtwl.getRunMonth(year)
    months = []
    for month in range(1, 13):
        months.append(sxtwl.getLunarMonthNum(year, month, False))
        if month == leap:
            months.append(sxtwl.getLunarMonthNum(year, month, True))
    date = [first.getSolarYear(), first.getSolarMonth(), first.getSolarDay()]
    return [*date, leap, "".join("1" if days == 30 else "0" for days in months)]


def lunar_years(assets):
    def row(year, found):
        return [year, f"{found[0]}-{found[1]:02}-{found[2]:02}", *found[3:]]

    heading = ["year", "new_year", "leap_month", "long_months"]
    years = range(1899, 2101)
    own = [row(year, agreed(year, lunar_year_tyme(year), lunar_year_lunar(year))) for year in years]
    other = [row(year, lunar_year_sxtwl(year)) for year in years]
    # The new moon of 2057-09-28 is within a minute of midnight in Beijing, and the libraries fall on both sides.
    differing = [pair[0][0] for pair in zip(own, other) if pair[0] != pair[1]]
    assert differing == [2057], differing
    if assets:
        write(ASSETS / "lunar-years.tsv", heading, own)
    write(HERE / "lunar-years.tsv", heading, other)


# Void branches and spirits of the sixty days


def sixty_days(_):
    from ichingshifa.ichingshifa import Iching
    from lunar_python.util import LunarUtil
    from najia import utils as najia
    from tyme4py.sixtycycle import SixtyCycle

    shifa = Iching()
    short = {"龙": "青龙", "雀": "朱雀", "陈": "勾陈", "螣": "螣蛇", "蛇": "螣蛇", "虎": "白虎", "武": "玄武"}
    rows = []
    for day in SIXTY:
        void = agreed(
            f"void of {day}",
            LunarUtil.getXunKong(day),
            "".join(branch.get_name() for branch in SixtyCycle(day).get_extra_earth_branches()),
            najia.xkong(day),
        )
        spirits = agreed(
            f"spirits of {day}",
            "".join(najia.get_god6(day)),
            "".join(short[spirit.translate(TRADITIONAL)] for spirit in shifa.find_six_mons(day)),
        )
        rows.append([day, void, spirits])
    write(HERE / "sixty-days.tsv", ["day", "void", "spirits"], rows)


# Hexagrams and their changes


class Najia:
    """The library najia."""

    def __init__(self):
        from najia import const, utils
        from najia.najia import Najia as Library

        self.const, self.utils, self.library = const, utils, Library

    def palace(self, figure):
        return self.utils.palace(figure, self.utils.set_shi_yao(figure)[0])

    def natures(self, figure, palace):
        element = self.const.XING5[int(self.const.GUA5[palace])]
        kin = lambda pair: self.utils.get_qin6(element, self.const.ZHI5[self.const.ZHIS.index(pair[1])])
        return [kin(pair) + pair for pair in self.utils.get_najia(figure)]

    def chart(self, figure):
        palace = self.palace(figure)
        subject, object_, _ = self.utils.set_shi_yao(figure)
        natures = self.natures(figure, palace)
        found = self.library._hidden(palace, [nature[:2] for nature in natures])
        hidden = [""] * 6
        for seat in found["seat"] if found else []:
            hidden[seat] = found["qin6"][seat] + found["qinx"][seat][:2]
        return [self.const.GUAS[palace], natures, hidden, subject, object_]

    def becomes(self, values):
        figure, changed = figures(values)
        # This library writes old yang as 3 and old yin as 4.
        parameters = [{6: 4, 7: 1, 8: 2, 9: 3}[value] for value in values]
        found = self.library._transform(parameters, self.palace(figure))
        if found is None:
            return [""] * 6
        assert found["mark"] == changed
        lines = [kin + pair[:2] for kin, pair in zip(found["qin6"], found["qinx"])]
        return [line if value in (6, 9) else "" for line, value in zip(lines, values)]


class Shifa:
    """The library ichingshifa."""

    def __init__(self):
        from ichingshifa.ichingshifa import Iching

        self.library = Iching()

    def name(self, figure):
        return self.library.multi_key_dict_get(self.library.data["數字排六十四卦"], self.code(figure))

    @staticmethod
    def code(figure):
        return "".join("7" if line == "1" else "8" for line in figure)

    def natures(self, figure, primary):
        found = self.library.dc_gua(self.code(figure))
        palace = self.library.multi_key_dict_get(self.library.data["八宮卦五行"], self.name(primary))
        kin = [self.library.multi_key_dict_get(self.library.liuqin_w, element + palace) for element in found["五行"]]
        return [KIN[kin] + pair for kin, pair in zip(kin, found["納甲"])]

    def chart(self, figure):
        pure = self.library.multi_key_dict_get(self.library.bagua_pure_code, self.name(figure))
        pure = "".join("1" if line == "7" else "0" for line in pure)
        natures = self.natures(figure, figure)
        present = {nature[:2] for nature in natures}
        hidden = [nature if nature[:2] not in present else "" for nature in self.natures(pure, figure)]
        palace = self.name(pure).translate(TRADITIONAL)
        return [palace, natures, hidden]

    def becomes(self, values):
        figure, changed = figures(values)
        natures = self.natures(changed, figure)
        return [nature if value in (6, 9) else "" for nature, value in zip(natures, values)]

    def selection(self, values):
        """Returns the texts to read, the main one first, as (0 primary or 1 relating, position or 0)."""
        changing = sum(value in (6, 9) for value in values)
        found = "".join(self.library.mget_bookgua_details("".join(map(str, values)))[4][:3])
        if changing == 3:
            return [(1, 0), (0, 0)] if "主悔" in found else [(0, 0), (1, 0)]
        if changing in (0, 6):
            return [(changing // 6, 0)]
        return [(changing // 4, self.position(part)) for part in found.split("看")[1:]]

    @staticmethod
    def position(text):
        """Returns the position of the first line that a text names, such as 六二 or 上九."""
        pairs = (set(text[start : start + 2]) for start in range(len(text) - 1))
        places = (pair - {"九", "六"} for pair in pairs if pair & {"九", "六"} and pair & set("初二三四五上"))
        return "初二三四五上".index(next(places).pop()) + 1


class IchingPy:
    """The library ichingpy."""

    def chart_of(self, values):
        from ichingpy.divination.six_lines import SixLinesDivinationEngine
        from ichingpy.enum.line_status import LineStatus
        from ichingpy.model.hexagram import Hexagram
        from ichingpy.model.line import Line
        from ichingpy.model.trigram import Trigram

        # The constructors of this library need a file that its package lacks.
        lines = [Line(status=LineStatus(value - 6)) for value in values]
        hexagram = Hexagram(inner=Trigram(lines=lines[:3]), outer=Trigram(lines=lines[3:]))
        SixLinesDivinationEngine().execute(hexagram)
        return hexagram.interpretation

    @staticmethod
    def natures(lines):
        return [line.relative.label + line.stem.label + line.branch.label for line in lines]

    def chart(self, figure):
        found = self.chart_of([7 if line == "1" else 8 for line in figure])
        roles = [line.role.label if line.role else "" for line in found.lines]
        return [found.palace.label, self.natures(found.lines), roles.index("世") + 1, roles.index("应") + 1]

    def becomes(self, values):
        natures = self.natures(self.chart_of(values).transformed.lines)
        return [nature if value in (6, 9) else "" for nature, value in zip(natures, values)]


def figures(values):
    primary = "".join(str(value % 2) for value in values)
    return primary, "".join(str((value + (value in (6, 9))) % 2) for value in values)


def placed(cells):
    return " ".join(f"{place}{cell}" for place, cell in enumerate(cells, 1) if cell)


def stage(najia, figure):
    """Returns the stage as najia has it, which the position of the subject confirms."""
    soul = najia.utils.soul(figure)
    subject = najia.utils.set_shi_yao(figure)[0]
    return {"游魂": "wandering", "归魂": "returning"}.get(soul) or STAGES[subject % 6]


def hexagrams(_):
    najia, shifa, ichingpy = Najia(), Shifa(), IchingPy()
    by_number = {"本": "pure", "一": "first", "二": "second", "三": "third", "四": "fourth", "五": "fifth"}
    rows = []
    for bits in range(64):
        figure = "".join(str(bits >> line & 1) for line in range(6))
        palace, natures, hidden, subject, object_ = najia.chart(figure)
        # ichingshifa puts the object of fourth-stage hexagrams at the top, so it is not asked for subject and object.
        agreed(figure, [palace, natures, hidden], shifa.chart(figure))
        agreed(figure, [palace, natures, subject, object_], ichingpy.chart(figure))
        named = shifa.library.dc_gua(shifa.code(figure))["世應卦"].translate(TRADITIONAL)
        named = {"游": "wandering", "归": "returning", **by_number}[named[0]]
        row = [figure, palace, agreed(figure, stage(najia, figure), named), subject, object_, " ".join(natures)]
        rows.append([*row, placed(hidden) or "-"])
    write(HERE / "hexagrams.tsv", ["lines", "palace", "stage", "subject", "object", "natures", "hidden"], rows)


def changes(_):
    najia, shifa, ichingpy = Najia(), Shifa(), IchingPy()
    rows = []
    for code in range(4096):
        values = [6 + (code >> 2 * line & 3) for line in range(6)]
        becomes = agreed(values, najia.becomes(values), shifa.becomes(values), ichingpy.becomes(values))
        selection = shifa.selection(values)
        # This library does not know the texts for six changing lines (用九, 用六), which are position 7 here.
        if all(value == 9 for value in values) or all(value == 6 for value in values):
            selection = [(0, 7)]
        texts = " ".join(f"{'pr'[which]}{position}" for which, position in selection)
        rows.append(["".join(map(str, values)), placed(becomes) or "-", texts])
    write(HERE / "changes.tsv", ["lines", "becomes", "texts"], rows)


# Pillars


def pillars_lunar(beijing, local):
    from lunar_python import Solar

    def lunar(time):
        return Solar.fromYmdHms(time.year, time.month, time.day, time.hour, time.minute, time.second).getLunar()

    instant, clock = lunar(beijing), lunar(local)
    pillars = instant.getYearInGanZhiExact() + instant.getMonthInGanZhiExact()
    return pillars + clock.getDayInGanZhiExact() + clock.getTimeInGanZhi(), clock.getDayInGanZhiExact2()


def pillars_tyme(beijing, local):
    from tyme4py.solar import SolarTime

    def hour(time):
        return SolarTime.from_ymd_hms(time.year, time.month, time.day, time.hour, time.minute, time.second)

    instant, clock = hour(beijing).get_sixty_cycle_hour(), hour(local).get_sixty_cycle_hour()
    pillars = [instant.get_year(), instant.get_month(), clock.get_day(), clock.get_sixty_cycle()]
    midnight = hour(local).get_solar_day().get_lunar_day().get_sixty_cycle()
    return "".join(pillar.get_name() for pillar in pillars), midnight.get_name()


def moments(chance):
    """Yields pairs of a zone's letter and a Unix second."""
    terms = [instant for year in range(1901, 2100) for instant in terms_tyme(year)]
    for zone, info in ZONES.items():
        for term in chance.sample(terms, 260):
            yield from ((zone, term + offset) for offset in (-120, 120))
        for _ in range(22):
            evening = datetime.datetime(chance.randint(1901, 2099), chance.randint(1, 12), chance.randint(1, 28), 22, 50)
            start = unix(evening.replace(tzinfo=info))
            yield from ((zone, start + minutes * 60) for minutes in range(0, 191, 10))
        yield from ((zone, chance.randint(-2_170_000_000, 4_102_444_800)) for _ in range(280))
    # Summer time in China, and the weeks around its beginning and end.
    for year in (1940, 1941, *range(1986, 1992)):
        summer = unix(datetime.datetime(year, 7, 1, 22, 50, tzinfo=ZONES["S"]))
        yield from (("S", summer + minutes * 60) for minutes in range(0, 191, 10))
        yield from (("S", chance.randint(summer - 7_000_000, summer + 7_000_000)) for _ in range(40))


def pillars(_):
    rows = []
    for zone, second in moments(random.Random(20260204)):
        local = utc(second).astimezone(ZONES[zone])
        beijing = utc(second).astimezone(BEIJING)
        found = agreed((zone, second), pillars_lunar(beijing, local), pillars_tyme(beijing, local))
        rows.append([zone, second, *found])
    write(HERE / "pillars.tsv", ["zone", "second", "pillars", "day_from_midnight"], rows)


# Castings by time


def plum_blossom(_):
    """Both libraries change the lunar day at midnight, and read the lunar date of the local day."""
    import warnings

    from meihua_yi.engine import qigua_time
    from meihuayishu.core import _build_full_gua, _normalize_gua_number, _normalize_yao_number
    from meihuayishu.calendar import getLunarData

    warnings.simplefilter("ignore", DeprecationWarning)
    chance = random.Random(20260217)
    rows = []
    for _ in range(400):
        second = chance.randint(unix(datetime.datetime(1901, 1, 1, tzinfo=BEIJING)), 4_070_908_800)
        zone = chance.choice(list(ZONES))
        local = utc(second).astimezone(ZONES[zone])
        if (local.year, local.month) in ((2057, 9), (2057, 10)):
            continue
        lines, [moving] = qigua_time(local.replace(tzinfo=None))
        # meihuayishu counts the year from its full number instead of its branch; its other parts serve here.
        lunar = getLunarData(local.year, local.month, local.day, local.hour)
        date = (lunar["lunarYear"] - 4) % 12 + 1 + lunar["lunarMonth"] + lunar["lunarDay"]
        total = date + lunar["dizhiNumber"]
        built = _build_full_gua(
            _normalize_gua_number(date % 8), _normalize_gua_number(total % 8), _normalize_yao_number(total % 6)
        )
        own = ["".join(map(str, lines)), moving + 1]
        rows.append([zone, second, *agreed(second, own, ["".join(map(str, built["benYaoLines"])), built["movingYao"]])])
    write(HERE / "plum-blossom.tsv", ["zone", "second", "lines", "changing"], rows)


def main():
    names = [name for name in sys.argv[1:] if name != "--assets"]
    files = [solar_terms, lunar_years, sixty_days, hexagrams, changes, pillars, plum_blossom]
    for make in files:
        if not names or make.__name__ in names:
            make("--assets" in sys.argv)


if __name__ == "__main__":
    main()
