//! The six-line method's (六爻) assignments that follow from the lines alone: palace, stage, stems, branches and kin; and the
//! spirits, which follow from the day.

use serde::{Serialize, Serializer};

use crate::{
    Branch, Element, ElementRelation, Stem,
    hexagram::{Hexagram, Trigram},
};
use named_enum::named_enum;

named_enum! {
    /// The place of a hexagram among the eight of its palace.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Stage {
        /// The doubled trigram (本宫).
        Pure = "pure",
        /// One to five lines changed from the bottom (一世 to 五世).
        First = "first",
        Second = "second",
        Third = "third",
        Fourth = "fourth",
        Fifth = "fifth",
        /// The fourth line returned (游魂).
        Wandering = "wandering",
        /// The lower trigram returned (归魂).
        Returning = "returning",
    }
}

named_enum! {
    /// The relation of a line's element to its palace's (六亲).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Kin {
        Parents = "父母",
        Siblings = "兄弟",
        Officials = "官鬼",
        Wealth = "妻财",
        Children = "子孙",
    }
}

named_enum! {
    /// The spirit of a line (六神), in their order from the line of the day's stem upward.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Spirit {
        AzureDragon = "青龙",
        VermilionBird = "朱雀",
        HookedSnake = "勾陈",
        SoaringSerpent = "螣蛇",
        WhiteTiger = "白虎",
        BlackTortoise = "玄武",
    }
}

named_enum! {
    /// The line of the asker and the line of the matter (世应).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LineRole {
        Subject = "世",
        Object = "应",
    }
}

/// The palace (宫) of a hexagram and its place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Palace {
    #[serde(serialize_with = "chinese_name")]
    pub trigram: Trigram,
    pub element: Element,
    pub stage: Stage,
}

/// The stem, branch and kin of a line (纳甲).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LineNature {
    pub kin: Kin,
    pub stem: Stem,
    pub branch: Branch,
    pub element: Element,
}

/// The stems of a trigram below and above, and the branches of its lines, bottom up, below and above.
struct Assignment {
    element: Element,
    stems: [Stem; 2],
    branches: [[Branch; 3]; 2],
}

/// The trigram that names the palace.
#[derive(Clone, Copy)]
enum PalaceSource {
    Lower,
    Upper,
    LowerInverted,
}

impl Palace {
    pub fn of(hexagram: Hexagram) -> Self {
        let (lower, upper) = (hexagram.lower().figure(), hexagram.upper().figure());
        let difference = std::array::from_fn(|line| lower[line] != upper[line]);
        let (stage, source) = place(difference);
        let trigram = match source {
            PalaceSource::Lower => hexagram.lower(),
            PalaceSource::Upper => hexagram.upper(),
            PalaceSource::LowerInverted => Trigram::from_figure(lower.map(|is_yang| !is_yang)),
        };
        Self { trigram, element: element(trigram), stage }
    }

    /// The hexagram after which the palace is named.
    pub fn pure_hexagram(self) -> Hexagram {
        Hexagram::from_trigrams(self.trigram, self.trigram)
    }

    /// Returns the role of the line at a position (1 to 6). Subject and object are three lines apart.
    pub fn role(self, position: u8) -> Option<LineRole> {
        let subject = self.stage.subject_position();
        if position == subject {
            Some(LineRole::Subject)
        } else if position.abs_diff(subject) == 3 {
            Some(LineRole::Object)
        } else {
            None
        }
    }

    /// Returns the natures of a hexagram's lines, bottom up, with the kin that they are to this palace. The relating
    /// hexagram's lines are kin to the palace of the primary one.
    pub fn natures(self, hexagram: Hexagram) -> [LineNature; 6] {
        let halves = [assignment(hexagram.lower()), assignment(hexagram.upper())];
        std::array::from_fn(|place| {
            let half = place / 3;
            let branch = halves[half].branches[half][place % 3];
            let kin = Kin::of(branch.element(), self.element);
            LineNature { kin, stem: halves[half].stems[half], branch, element: branch.element() }
        })
    }

    /// Returns the hidden lines (伏神), bottom up: of the kin that the hexagram lacks, from the pure hexagram.
    pub fn hidden(self, natures: &[LineNature; 6]) -> [Option<LineNature>; 6] {
        let is_missing = |kin| natures.iter().all(|nature| nature.kin != kin);
        self.natures(self.pure_hexagram()).map(|nature| is_missing(nature.kin).then_some(nature))
    }
}

impl Stage {
    /// The position of the subject line (世).
    pub fn subject_position(self) -> u8 {
        match self {
            Self::First => 1,
            Self::Second => 2,
            Self::Third | Self::Returning => 3,
            Self::Fourth | Self::Wandering => 4,
            Self::Fifth => 5,
            Self::Pure => 6,
        }
    }
}

impl Kin {
    pub fn of(line: Element, palace: Element) -> Self {
        match line.relation_to(palace) {
            ElementRelation::Same => Self::Siblings,
            ElementRelation::Feeds => Self::Parents,
            ElementRelation::FedBy => Self::Children,
            ElementRelation::Controls => Self::Officials,
            ElementRelation::ControlledBy => Self::Wealth,
        }
    }
}

impl Spirit {
    /// Returns the spirits of the six lines, bottom up, on a day with this stem.
    pub fn on_day(stem: Stem) -> [Self; 6] {
        let first = match stem {
            Stem::Jia | Stem::Yi => 0,
            Stem::Bing | Stem::Ding => 1,
            Stem::Wu => 2,
            Stem::Ji => 3,
            Stem::Geng | Stem::Xin => 4,
            Stem::Ren | Stem::Gui => 5,
        };
        std::array::from_fn(|line| Self::ALL[(first + line) % 6])
    }
}

/// The element of a trigram.
pub fn element(trigram: Trigram) -> Element {
    assignment(trigram).element
}

/// Writes a trigram as its Chinese name.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
pub(super) fn chinese_name<S: Serializer>(trigram: &Trigram, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(trigram.chinese_name())
}

/// Returns the stage of a hexagram whose trigrams differ in these lines, bottom up, and the trigram of its palace.
fn place(difference: [bool; 3]) -> (Stage, PalaceSource) {
    match difference {
        [false, false, false] => (Stage::Pure, PalaceSource::Upper),
        [true, false, false] => (Stage::First, PalaceSource::Upper),
        [true, true, false] => (Stage::Second, PalaceSource::Upper),
        [true, true, true] => (Stage::Third, PalaceSource::Upper),
        [false, true, true] => (Stage::Fourth, PalaceSource::LowerInverted),
        [false, false, true] => (Stage::Fifth, PalaceSource::LowerInverted),
        [true, false, true] => (Stage::Wandering, PalaceSource::LowerInverted),
        [false, true, false] => (Stage::Returning, PalaceSource::Lower),
    }
}

fn assignment(trigram: Trigram) -> &'static Assignment {
    &ASSIGNMENTS[usize::from(trigram.number()) - 1]
}

/// In the order of the trigrams' numbers: 乾 兑 离 震 巽 坎 艮 坤.
static ASSIGNMENTS: [Assignment; 8] = {
    use Branch::{Chen, Chou, Hai, Mao, Shen, Si, Wei, Wu, Xu, Yin, You, Zi};
    use Element::{Earth, Fire, Metal, Water, Wood};
    use Stem::{Bing, Ding, Geng, Gui, Ji, Jia, Ren, Wu as Fifth, Xin, Yi};
    const fn row(element: Element, stems: [Stem; 2], branches: [[Branch; 3]; 2]) -> Assignment {
        Assignment { element, stems, branches }
    }
    [
        row(Metal, [Jia, Ren], [[Zi, Yin, Chen], [Wu, Shen, Xu]]),
        row(Metal, [Ding, Ding], [[Si, Mao, Chou], [Hai, You, Wei]]),
        row(Fire, [Ji, Ji], [[Mao, Chou, Hai], [You, Wei, Si]]),
        row(Wood, [Geng, Geng], [[Zi, Yin, Chen], [Wu, Shen, Xu]]),
        row(Wood, [Xin, Xin], [[Chou, Hai, You], [Wei, Si, Mao]]),
        row(Water, [Fifth, Fifth], [[Yin, Chen, Wu], [Shen, Xu, Zi]]),
        row(Earth, [Bing, Bing], [[Chen, Wu, Shen], [Xu, Zi, Yin]]),
        row(Earth, [Yi, Gui], [[Wei, Si, Mao], [Chou, Hai, You]]),
    ]
};
