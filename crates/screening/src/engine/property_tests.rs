//! Properties that hold for every text and every list.

use proptest::{prelude::*, sample::select};

use super::{
    ContentType, Engine, MAX_MATCHES, Match, MatchWay, Word,
    candidate::VISITS,
    confusables::leet_class,
    folding::folding,
    mask, normalise,
    readings::OtherReadings,
    search::{Suspects, Views},
};
use cpu_time::ThreadTime;

const ALPHABET: &[char] = &[
    '赌', '博', '客', '妈', '的', '賭', 'a', 'b', 'S', 's', '1', '4', '$', '@', ' ', ' ', '.', '，', '\'', '\u{200b}',
    '\u{301}', 'ⓐ', '㎏', '*', '%', '\n', '🎰',
];

/// Words that contain no digits, which are never repeated or replaced.
const PLANTED: &[&str] = &["赌博", "六合彩", "代开发票", "傻瓜", "casino", "scammer", "idiot", "加vx"];

fn text(length: usize) -> impl Strategy<Value = String> {
    proptest::collection::vec(select(ALPHABET), 0..length).prop_map(|characters| characters.into_iter().collect())
}

/// Letters that sound alike, parts of letters, and readings.
const SPELLED: &[char] = &[
    '赌', '堵', '毒', '博', '伯', '女', '马', '妈', '奸', '干', '弓', '虽', '强', '木', '林', '森', '日', '月', '明',
    '贝', '者', 'd', 'u', 'b', 'o', 'm', 'a', ' ', '，', '的',
];

/// Characters beside their parts, which are not words of their own.
const TAKEN_APART: &[char] = &['奸', '女', '干', '强', '弓', '虽', '妈', '马', '\u{200b}', ' '];

fn spelled(alphabet: &'static [char], length: usize) -> impl Strategy<Value = String> {
    proptest::collection::vec(select(alphabet), 1..length).prop_map(|characters| characters.into_iter().collect())
}

fn words() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(text(5), 0..8)
}

fn content_type() -> impl Strategy<Value = ContentType> {
    select(ContentType::ALL.to_vec())
}

fn engine(words: &[String]) -> Engine {
    let words: Vec<Word> = words
        .iter()
        .map(|text| Word { text: text.clone(), kind: "other".into(), by_sound: false, ..Word::default() })
        .collect();
    Engine::build(&words, &[])
}

/// Letters and digits without repetition.
fn skeleton(text: &str) -> Vec<char> {
    let mut letters: Vec<char> = normalise(text).chars().filter(|letter| letter.is_alphanumeric()).collect();
    letters.dedup();
    letters
}

/// Returns the skeleton with digits and signs read as the letters they resemble.
fn leet_skeleton(text: &str) -> Vec<char> {
    let mut letters: Vec<char> = normalise(text).chars().filter_map(leet_class).collect();
    letters.dedup();
    letters
}

/// Ways to hide a word, each a choice of its own.
#[derive(Clone, Debug)]
struct Disguise {
    repetition: usize,
    look_alike: Option<usize>,
    separator: &'static str,
    invisible: &'static str,
    mark: &'static str,
}

impl Disguise {
    fn hide(&self, word: &str) -> String {
        let letters: Vec<String> = word.chars().map(|letter| self.hide_letter(letter)).collect();
        letters.join(&format!("{}{}", self.separator, self.invisible))
    }

    fn hide_letter(&self, letter: char) -> String {
        let sources: Vec<char> = folding().sources_of(letter).collect();
        let shown = match self.look_alike {
            Some(choice) if !sources.is_empty() => sources[choice % sources.len()],
            _ => letter,
        };
        format!("{shown}{}", self.mark).repeat(self.repetition)
    }
}

fn disguise() -> impl Strategy<Value = Disguise> {
    let separator = select(vec!["", " ", "*", "★", "·", "🎰", "】【", "　", "~~~~~~~~~~"]);
    let invisible = select(vec!["", "\u{200b}", "\u{200d}\u{feff}", "\u{ad}"]);
    let mark = select(vec!["", "\u{336}", "\u{fe0f}"]);
    (select(vec![1_usize, 3, 5]), proptest::option::of(0..1000_usize), separator, invisible, mark).prop_map(
        |(repetition, look_alike, separator, invisible, mark)| Disguise {
            repetition,
            look_alike,
            separator,
            invisible,
            mark,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_match_shows_its_word(words in words(), text in text(30), content_type in content_type()) {
        let characters: Vec<char> = text.chars().collect();
        for found in engine(&words).check(content_type, &text) {
            let slice: String = characters[found.start..found.end].iter().collect();
            prop_assert_eq!(&slice, &found.text);
            let is_shown = skeleton(&found.text) == skeleton(&found.word)
                || leet_skeleton(&found.text) == leet_skeleton(&found.word)
                // A digit or a Latin letter may be a filler.
                || found.way == MatchWay::Gap
                // A match may share a character that is read as several letters.
                || found.text.contains('㎏');
            prop_assert!(is_shown, "{found:?}");
        }
    }

    #[test]
    fn a_longer_list_never_finds_less(words in words(), more in words(), text in text(30), content_type in content_type()) {
        let fewer = engine(&words).check(content_type, &text);
        let all = engine(&[words, more].concat()).check(content_type, &text);
        for found in fewer {
            let is_kept = all.iter().any(|other| (other.start, other.end) == (found.start, found.end));
            prop_assert!(is_kept, "{found:?} is lost in {all:?}");
        }
    }

    #[test]
    fn a_longer_list_never_finds_less_by_pronunciation_or_parts(
        words in proptest::collection::vec(spelled(SPELLED, 4), 0..6),
        more in proptest::collection::vec(spelled(SPELLED, 4), 0..6),
        text in spelled(SPELLED, 14),
        content_type in content_type(),
    ) {
        let engine = |words: &[String]| {
            let words: Vec<Word> =
                words.iter().map(|text| Word { text: text.clone(), kind: "other".into(), by_sound: true, ..Word::default() }).collect();
            Engine::build(&words, &[])
        };
        let fewer = engine(&words).check(content_type, &text);
        let all = engine(&[words, more].concat()).check(content_type, &text);
        let characters: Vec<char> = text.chars().collect();
        for found in fewer {
            let slice: String = characters[found.start..found.end].iter().collect();
            prop_assert_eq!(&slice, &found.text);
            let is_kept = all.iter().any(|other| (other.start, other.end) == (found.start, found.end));
            prop_assert!(is_kept, "{found:?} is lost in {all:?}");
        }
    }

    #[test]
    fn the_quick_scan_misses_nothing(
        (words, text) in select(vec![SPELLED, TAKEN_APART]).prop_flat_map(|alphabet| {
            (proptest::collection::vec(spelled(alphabet, 4), 0..12), spelled(alphabet, 20))
        }),
        content_type in content_type(),
        by_sound in any::<bool>(),
    ) {
        let words: Vec<Word> =
            words.iter().map(|text| Word { text: text.clone(), kind: "other".into(), by_sound, ..Word::default() }).collect();
        let engine = Engine::build(&words, &[]);
        prop_assert_eq!(engine.check(content_type, &text), check_everywhere(&engine, content_type, &text));
    }

    #[test]
    fn the_quick_scan_misses_no_disguised_word(
        words in words(), text in text(30), content_type in content_type(),
    ) {
        let engine = engine(&words);
        prop_assert_eq!(engine.check(content_type, &text), check_everywhere(&engine, content_type, &text));
    }

    #[test]
    fn the_order_of_the_list_does_not_matter(words in words(), text in text(30)) {
        let reversed: Vec<String> = words.iter().rev().cloned().collect();
        let found = engine(&words).check(ContentType::Nickname, &text);
        prop_assert_eq!(found, engine(&reversed).check(ContentType::Nickname, &text));
    }

    #[test]
    fn normalising_is_idempotent(text in any::<String>(), symbols in text(12)) {
        for text in [text, symbols] {
            prop_assert_eq!(normalise(&normalise(&text)), normalise(&text));
        }
    }

    #[test]
    fn any_text_can_be_checked_and_masked(words in proptest::collection::vec(any::<String>(), 0..4), text in any::<String>()) {
        let engine = engine(&words);
        for content_type in ContentType::ALL {
            let matches = engine.check(content_type, &text);
            prop_assert_eq!(mask(&text, &matches).chars().count(), text.chars().count());
        }
    }

    #[test]
    fn finds_normalised_words(word in text(6)) {
        let folded = normalise(&word);
        if !folded.is_empty() {
            prop_assert!(!engine(std::slice::from_ref(&word)).check(ContentType::Question, &folded).is_empty(), "{folded:?}");
        }
    }

    #[test]
    fn a_hidden_word_is_found(
        word in select(PLANTED),
        disguise in disguise(),
        before in select(vec!["", "我说：", "hello, ", "【"]),
        after in select(vec!["", "。好吧", ", ok", "】"]),
        content_type in content_type(),
    ) {
        let words: Vec<String> = PLANTED.iter().map(|&word| word.to_owned()).collect();
        let text = format!("{before}{}{after}", disguise.hide(word));
        let verdict = engine(&words).check(content_type, &text);
        prop_assert!(verdict.iter().any(|found| found.word == word), "{text:?}: {verdict:?}");
    }
}

/// Returns the verdict without the quick scan: every position of every reading is verified.
fn check_everywhere(engine: &Engine, content_type: ContentType, text: &str) -> Vec<Match> {
    let hits = engine.check_readings(text, |text, views, counts| {
        let (letters, with_signs) = (text.letters(), text.letters_and_signs());
        let by_sound = views == Views::All && content_type != ContentType::Answer;
        let suspects = Suspects {
            plain: engine.plain.ends(letters),
            leet: if views == Views::Plain { Vec::new() } else { engine.leet.ends(with_signs) },
            sound: if by_sound { engine.sound.ends(letters) } else { Vec::new() },
            is_split: views != Views::Plain,
        };
        let others = OtherReadings { emoji: true, spelled: true, fillers: true, particles: true, lookalikes: true };
        (engine.confirmed(content_type, text, &suspects, counts), others)
    });
    engine.matches(content_type, text, hits)
}

/// Letters looked at by the verifier for one text.
fn visits(engine: &Engine, text: &str) -> usize {
    VISITS.set(0);
    engine.check(ContentType::Nickname, text);
    VISITS.get()
}

#[test]
fn time_grows_linearly_with_the_text() {
    let words = [
        "哈",
        "哈哈",
        "哈哈哈哈",
        "哈a",
        "a哈a",
        "aa",
        "11",
        "1111",
        "a b a",
        "ababababababababababab",
        "100%",
        "赌博",
    ];
    let engine = engine(&words.map(str::to_owned));
    for unit in ["哈", "a", "1", "哈 ", "a哈", "ab", "赌博", "赌 博", "妈妈的", "100", "a@"] {
        let short = visits(&engine, &unit.repeat(1000));
        let long = visits(&engine, &unit.repeat(20_000));
        assert!(long <= short * 21 + 1000, "{unit}: {short} then {long}");
    }
}

#[test]
fn a_megabyte_of_one_character_is_checked() {
    let engine = engine(&["哈哈".to_owned(), "赌博".to_owned(), "11".to_owned()]);
    for unit in ["哈", "a", "1", " ", "\u{200b}", "博"] {
        let text = unit.repeat(1_000_000 / unit.len());
        let length = text.chars().count();
        assert!(visits(&engine, &text) < 20 * length, "{unit}");
        assert_eq!(engine.check(ContentType::Question, &text).is_empty(), unit != "哈");
    }
}

#[test]
fn a_recombined_letter_repeats_the_one_before_it() {
    let engine = engine(&["奸".to_owned(), "博强".to_owned(), "强博".to_owned()]);
    for (text, end) in
        [("奸女干", 3), ("女干奸", 3), ("博强弓虽", 4), ("博弓虽强", 4), ("弓虽强博", 4), ("奸\u{200b}女干女干", 6)]
    {
        let matches = engine.check(ContentType::Question, text);
        assert!(matches.iter().any(|found| (found.start, found.end) == (0, end)), "{text}: {matches:?}");
    }
}

#[test]
fn matches_overlap_and_masks_do_not() {
    let engine = engine(&["网络赌博平台".to_owned(), "赌博".to_owned()]);
    let text = "去网络赌\u{200b}博平台";
    let matches = engine.check(ContentType::Question, text);
    let places: Vec<_> = matches.iter().map(|found| (found.word.as_str(), found.start, found.end)).collect();
    assert_eq!(places, [("网络赌博平台", 1, 8), ("赌博", 3, 6)]);
    assert_eq!(mask(text, &matches), "去*******");
}

#[test]
fn signs_that_resemble_letters_may_stand_beside_a_filler() {
    let engine = engine(&["赌客".to_owned()]);
    for text in ["赌a$客", "赌$a客", "赌a@客", "赌7+客", "赌a＄客", "赌a|客"] {
        let found = engine.check(ContentType::Nickname, text);
        assert_eq!(found, check_everywhere(&engine, ContentType::Nickname, text), "{text}");
        assert_eq!(found.len(), 1, "{text}");
    }
}

#[test]
fn keeps_types_and_counts_duplicates_once() {
    let words = [("賭博", "gambling"), ("赌 博", "gambling"), ("刷单", "fraud"), ("***", "other"), ("", "other")];
    let words =
        words.map(|(text, kind)| Word { text: text.into(), kind: kind.into(), by_sound: false, ..Word::default() });
    let engine = Engine::build(&words, &[]);
    assert_eq!(engine.word_count(), 2);
    let matches = engine.check(ContentType::Answer, "刷单");
    assert_eq!((matches[0].word.as_str(), matches[0].kind.as_str()), ("刷单", "fraud"));
}

/// Returns the shortest processor time of some checks.
fn duration(engine: &Engine, text: &str) -> std::time::Duration {
    let check = |_| {
        let begun = ThreadTime::now();
        std::hint::black_box(engine.check(ContentType::Question, text));
        begun.elapsed()
    };
    (0..5).map(check).min().unwrap()
}

#[test]
fn split_characters_take_time_in_proportion_to_the_text() {
    let engine = engine(&["赌博", "奸", "明日", "森林"].map(str::to_owned));
    for unit in ["贝者博", "贝者", "女干", "日月日", "木木木", "贝者赌博女干"] {
        let (short, long) = (duration(&engine, &unit.repeat(500)), duration(&engine, &unit.repeat(8_000)));
        // Sixteen times the text; the square would be 256 times the duration.
        assert!(long < short * 80, "{unit}: {short:?} then {long:?}");
    }
}

#[test]
fn a_text_full_of_words_is_searched_no_further() {
    let words = ["赌博", "兼职&日结"].map(|text| Word { text: text.into(), by_sound: true, ..Word::default() });
    let engine = Engine::build(&words, &["反对赌博".to_owned()]);
    let found = |text: &str| engine.check(ContentType::Question, text).len();
    assert_eq!(found(&"赌博，".repeat(MAX_MATCHES - 1)), MAX_MATCHES - 1);
    assert_eq!(found(&"赌博，".repeat(MAX_MATCHES * 3)), MAX_MATCHES);
    assert_eq!(found(&"贝者博，".repeat(MAX_MATCHES * 3)), MAX_MATCHES);
    assert_eq!(found(&format!("{}兼职日结", "赌博，".repeat(MAX_MATCHES))), MAX_MATCHES);
    // Neither allowed phrases nor parts of rules fill a text.
    for filler in ["反对赌博，", "日结，"] {
        assert_eq!(found(&format!("{}堵博", filler.repeat(MAX_MATCHES * 3))), 1, "{filler}");
    }
    assert_eq!(found(&"兼职日结，".repeat(MAX_MATCHES * 3)), MAX_MATCHES);
}

#[test]
fn a_word_may_also_be_a_part_of_a_rule() {
    let words = ["赌博", "赌博&网站", "網站&賭博&加群"].map(|text| Word { text: text.into(), ..Word::default() });
    let engine = Engine::build(&words, &[]);
    assert_eq!(engine.word_count(), 3);
    let found = |text: &str| -> Vec<String> {
        engine.check(ContentType::Question, text).into_iter().map(|found| found.word).collect()
    };
    assert_eq!(found("赌博"), ["赌博"]);
    assert_eq!(found("赌博网站"), ["赌博", "赌博&网站", "赌博&网站"]);
}

#[test]
fn each_match_says_how_it_was_found() {
    let words: Vec<Word> = ["赌博", "casino", "奸臣", "free money"]
        .map(|text| Word { text: text.into(), kind: "other".into(), by_sound: true, ..Word::default() })
        .to_vec();
    let engine = Engine::build(&words, &[]);
    for (text, way) in [
        ("他在赌博", MatchWay::Exact),
        ("賭博", MatchWay::Exact),
        ("ＣＡＳＩＮＯ", MatchWay::Exact),
        ("get Free money", MatchWay::Exact),
        ("赌★博", MatchWay::Gap),
        ("赌\u{200b}博", MatchWay::Gap),
        ("c-a-s-i-n-o", MatchWay::Gap),
        ("赌赌博博博", MatchWay::Letters),
        ("ⓒⓐⓢⓘⓝⓞ", MatchWay::Letters),
        ("赌\u{336}博", MatchWay::Letters),
        ("cas1no", MatchWay::Letters),
        ("贝者博", MatchWay::Split),
        ("女干臣", MatchWay::Split),
        ("赌🇨🇳博", MatchWay::Emoji),
        ("堵伯", MatchWay::Sound),
        ("du博", MatchWay::Sound),
        ("dubo", MatchWay::Sound),
    ] {
        let ways: Vec<_> = engine.check(ContentType::Question, text).iter().map(|found| found.way).collect();
        assert_eq!(ways, [way], "{text}");
    }
}
