//! The vocabulary of this app and the texts of its classics. No word is found in them by sound, parts or fillers.

use std::{
    ops::{ControlFlow, Range},
    sync::LazyLock,
};

use super::{
    candidate::{Candidate, FoldedText},
    fixed_map::FixedSet,
    folding::folded_letter,
    letters::Letter,
    lexicon::Lexicon,
    matcher::Matcher,
    span_cover::SpanCover,
    symbols::Equivalence,
    types::{MatchWay, Word},
};

const CLASSICS: [&str; 2] =
    [include_str!("../../../../assets/classics/lines.tsv"), include_str!("../../../../assets/classics/hexagrams.tsv")];
/// Terms of divination, also recognised when romanised.
const TERMS: &str = "紫微斗数 紫微 六爻 八字 四柱 周易 易经 易学 象数 义理 卦象 卦辞 爻辞 象辞 彖辞 系辞 文言 说卦 序卦 杂卦 \
    本卦 变卦 之卦 互卦 错卦 综卦 动爻 变爻 世爻 应爻 世应 六亲 六神 六冲 六合 三合 旬空 月破 飞神 伏神 用神 \
    父母 兄弟 妻财 官鬼 子孙 青龙 朱雀 勾陈 腾蛇 白虎 玄武 梅花易数 奇门遁甲 大六壬 铁板神数 河图 洛书 太极 两仪 \
    四象 八卦 五行 阴阳 天干 地支 干支 生肖 命理 命盘 命宫 大运 流年 纳音 纳甲 子平 风水 罗盘 起卦 摇卦 占卜 卜卦 \
    算卦 问卦 解卦 初九 初六 九二 六二 九三 六三 九四 六四 九五 六五 上九 上六 用九 用六 元亨利贞 无咎 吉凶 悔吝 \
    乾卦 坤卦 屯卦 蒙卦 需卦 讼卦 师卦 比卦 小畜 履卦 泰卦 否卦 同人 大有 谦卦 豫卦 随卦 蛊卦 临卦 观卦 噬嗑 贲卦 \
    剥卦 复卦 无妄 大畜 颐卦 大过 坎卦 离卦 咸卦 恒卦 遁卦 大壮 晋卦 明夷 家人 睽卦 蹇卦 解卦 损卦 益卦 夬卦 姤卦 \
    萃卦 升卦 困卦 井卦 革卦 鼎卦 震卦 艮卦 渐卦 归妹 丰卦 旅卦 巽卦 兑卦 涣卦 节卦 中孚 小过 既济 未济 \
    乾为天 坤为地 震为雷 巽为风 坎为水 离为火 艮为山 兑为泽 正官 七杀 正印 偏印 正财 偏财 食神 伤官 比肩 劫财 日主 忌神 \
    喜神 天机 武曲 天同 廉贞 天府 太阴 贪狼 巨门 天相 天梁 破军 文昌 文曲 左辅 右弼 天魁 天钺 禄存 擎羊 陀罗 化禄 化权 \
    化科 化忌 天乙贵人 孤辰 寡宿 红鸾 天喜 羊刃 休门 生门 伤门 杜门 景门 死门 惊门 开门 天蓬 天任 天冲 天辅 天英 天芮 \
    天柱 天心 天禽";
/// Number of letters in sequence that identify a quotation of the classics.
const QUOTATION_LENGTH: usize = 4;

/// The terms, compiled, and all sequences of letters in the classics.
pub(super) struct AppVocabulary {
    terms: Lexicon,
    matcher: Matcher,
    quotations: FixedSet<[char; QUOTATION_LENGTH]>,
}

/// Returns true if this normal form is a term of divination.
pub(super) fn is_term(normal_form: &str) -> bool {
    TERMS.split_whitespace().any(|term| term == normal_form)
}

/// Returns the vocabulary of the process.
pub(super) fn app_vocabulary() -> &'static AppVocabulary {
    static VOCABULARY: LazyLock<AppVocabulary> = LazyLock::new(AppVocabulary::compiled);
    &VOCABULARY
}

impl AppVocabulary {
    fn compiled() -> Self {
        let word = |text: &str| Word { text: text.to_owned(), kind: String::new(), by_sound: true, ..Word::default() };
        let terms = Lexicon::read(&TERMS.split_whitespace().map(word).collect::<Vec<_>>(), &[]);
        let mut quotations: FixedSet<[char; QUOTATION_LENGTH]> = FixedSet::default();
        for field in CLASSICS.iter().flat_map(|file| file.split(['\t', '\n'])) {
            let is_han = |letter: &char| *letter >= '\u{3400}';
            let letters: Vec<char> = field.chars().filter_map(folded_letter).filter(is_han).collect();
            quotations
                .extend(letters.windows(QUOTATION_LENGTH).map(|window| std::array::from_fn(|index| window[index])));
        }
        Self { matcher: Matcher::build(Equivalence::Plain, &terms), terms, quotations }
    }

    /// Returns the places of the terms in parts of a text: those that prove a match innocent, and those that raise doubts.
    /// Romanised terms of two characters, such as `ziwei`, may also be another word. The parts are ranges of letters.
    pub(super) fn terms_in(&self, page: &FoldedText<'_>, parts: Vec<Range<usize>>) -> (SpanCover, SpanCover) {
        let (mut certain, mut doubtful) = (Vec::new(), Vec::new());
        for part in parts {
            let letters = &page.letters[part];
            let runs = self.matcher.runs(letters);
            let page = FoldedText { letters, runs: &runs, leet: false, sound: false, ..*page };
            let _ = self.matcher.candidates(&runs, |last_run, term| {
                let candidate = Candidate { page: &page, pattern: self.terms.pattern(term), last_run };
                let is_short = self.terms.text(term).chars().count() == 2;
                let is_doubtful = is_short && candidate.pattern.way == Some(MatchWay::Sound);
                let spans = if is_doubtful { &mut doubtful } else { &mut certain };
                spans.extend(candidate.confirmed_exactly().map(|span| (span.start, span.end)));
                ControlFlow::Continue(())
            });
        }
        (SpanCover::new(certain), SpanCover::new(doubtful))
    }

    /// Returns true if these letters of a text are part of a quotation of the classics.
    pub(super) fn is_quoted(&self, letters: &[Letter], part: Range<usize>) -> bool {
        let Some(last) = part.end.checked_sub(1) else { return false };
        let first = part.start;
        let is_quotation = |start: usize| {
            let window =
                letters.get(start..start + QUOTATION_LENGTH).map(|letters| letters.iter().map(|letter| letter.value));
            window.is_some_and(|mut window| {
                self.quotations.contains(&std::array::from_fn(|_| window.next().unwrap_or_default()))
            })
        };
        let length = last + 1 - first;
        if length > QUOTATION_LENGTH {
            return (first..=last + 1 - QUOTATION_LENGTH).all(is_quotation);
        }
        ((last + 1).saturating_sub(QUOTATION_LENGTH)..=first).any(is_quotation)
    }
}
