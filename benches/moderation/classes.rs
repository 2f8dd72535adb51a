//! Measures how many disguised words the engine finds, by class of disguise, and how many innocent texts it accuses.
//!
//! The words are others than those of the tests. `MODERATION_CORPORA` names a directory of text files with one innocent
//! text a line; `benches/moderation/corpora` fetches some. The classics of this program are always measured.

use std::{collections::BTreeMap, fs};

use pinyin::ToPinyin;
use screening::engine::{ContentType, Engine, Match, Word};

use super::corpus::Random;

const WORDS: &[&str] = &[
    "赌球",
    "炸金花",
    "老虎机",
    "网络赌场",
    "百家乐",
    "海洛因",
    "摇头丸",
    "可卡因",
    "迷魂药",
    "卖淫",
    "嫖娼",
    "援交",
    "裸聊",
    "成人视频",
    "色情片",
    "传销",
    "洗黑钱",
    "假钞",
    "办假证",
    "代考",
    "枪手代写",
    "荐股",
    "内幕股",
    "高利贷",
    "校园贷",
    "刷好评",
    "买粉丝",
    "加微信",
    "微信群",
    "枪支弹药",
    "雷管",
    "王八蛋",
    "傻逼",
    "贱货",
    "滚蛋",
    "收购银行卡",
    "一夜情",
    "偷拍",
];
const LATIN_WORDS: &[&str] =
    &["fuck", "casino", "viagra", "xxx", "poker", "escort", "bitch", "vagina", "cocaine", "sexy"];
const NUMERAL_WORDS: &[&str] =
    &["六合彩", "一夜情", "三级片", "二奶", "王八蛋", "三陪", "八卦掌门", "四人帮派", "五毒教", "九品赌坊"];
/// Words with a character that is read differently elsewhere, and that reading.
const SECOND_READINGS: &[(&str, char, &str)] = &[
    ("收购银行卡", '行', "hang"),
    ("枪支弹药", '弹', "dan"),
    ("传销", '传', "chuan"),
    ("校园贷", '校', "xiao"),
    ("重金求子", '重', "zhong"),
    ("代还款", '还', "huan"),
    ("调教", '调', "tiao"),
    ("色情片", '色', "se"),
    ("乐透彩票", '乐', "le"),
    ("成长药", '长', "zhang"),
];
const DICTIONARY: &str = include_str!("../../assets/han-words.txt");
const CARRIERS: &[(&str, &str)] = &[
    ("", ""),
    ("最近有人找我", "，怎么办"),
    ("你好，", "。谢谢"),
    ("这里可以", "吗"),
    ("请问", ""),
    ("今天看到", "的广告"),
];

/// Letters of other alphabets that resemble Latin letters, by letter.
const ALPHABETS: &[&str] = &["ᗩᗷᑕᗪᗴᖴᘜᕼᓰᒍᛕᒪᗰᑎᗝᑭᑫᖇᔕᖶᑌᐯᗯ᙭ᖻᘔ", "аҍсԁеғԍһіјқӏмпорԛгѕтцѵԝхуʐ", "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡ×ʏᴢ"];

type Make = Box<dyn Fn(&str, usize, &mut Random) -> Option<String>>;

/// A class of disguise.
struct Class {
    name: &'static str,
    words: &'static [&'static str],
    make: Make,
}

pub fn report() {
    println!("\n| class | texts | found, certain ways | found, any way |\n|---|---|---|---|");
    let listed: Vec<&str> = [WORDS, LATIN_WORDS, NUMERAL_WORDS].concat();
    let engine = engine(listed.into_iter().chain(SECOND_READINGS.iter().map(|(word, ..)| *word)));
    for class in classes() {
        let mut random = Random(0x2545_F491_4F6C_DD1D);
        let (mut certain, mut any, mut all) = (0, 0, 0);
        for (round, (before, after)) in CARRIERS.iter().enumerate() {
            for word in class.words {
                let Some(hidden) = (class.make)(word, round, &mut random) else { continue };
                let text = format!("{before}{hidden}{after}");
                let found: Vec<Match> = engine.check(ContentType::Question, &text);
                all += 1;
                any += usize::from(!found.is_empty());
                let is_certain = found.iter().any(|found| found.way.is_certain());
                certain += usize::from(is_certain);
                if !is_certain && std::env::var("MODERATION_MISSES").is_ok_and(|name| name == class.name) {
                    println!("missed: {text} {:?}", found.first());
                }
            }
        }
        println!("| {} | {all} | {} % | {} % |", class.name, percent(certain, all), percent(any, all));
    }
    alarms(&engine);
}

/// Prints the innocent texts that are accused, by corpus and way.
fn alarms(engine: &Engine) {
    println!("\n| corpus | texts | accused | certain | only by sound, in 10 000 | ways |\n|---|---|---|---|---|---|");
    for (name, texts) in corpora() {
        let (mut accused, mut certain, mut sound) = (0, 0, 0);
        let mut ways: BTreeMap<&str, usize> = BTreeMap::new();
        for text in &texts {
            let found = engine.check(ContentType::Question, text);
            accused += usize::from(!found.is_empty());
            let certain_ways: Vec<_> =
                found.iter().filter(|found| found.way.is_certain()).map(|found| found.way.name()).collect();
            certain += usize::from(!certain_ways.is_empty());
            sound += usize::from(!certain_ways.is_empty() && certain_ways.iter().all(|way| *way == "sound"));
            for found in &found {
                *ways.entry(found.way.name()).or_default() += 1;
                if std::env::var("MODERATION_ALARMS").is_ok_and(|way| way == found.way.name()) {
                    let around: String = text.chars().skip(found.start.saturating_sub(8)).take(24).collect();
                    println!("accused: {} as {}: {around}", found.text, found.word);
                }
            }
        }
        println!(
            "| {name} | {} | {accused} | {certain} | {:.1} | {ways:?} |",
            texts.len(),
            super::as_f64(sound) * 1e4 / super::as_f64(texts.len())
        );
    }
}

fn corpora() -> Vec<(String, Vec<String>)> {
    let classics =
        [include_str!("../../assets/classics/lines.tsv"), include_str!("../../assets/classics/hexagrams.tsv")];
    let fields = classics.iter().flat_map(|file| file.lines().filter(|line| !line.starts_with('#')));
    let fields = fields.flat_map(|line| line.split('\t').map(str::to_owned)).collect();
    let mut corpora = vec![("the classics".to_owned(), fields)];
    let Ok(directory) = std::env::var("MODERATION_CORPORA") else { return corpora };
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        corpora.push((name, text.lines().map(str::to_owned).collect()));
    }
    corpora
}

pub fn engine<'word>(words: impl Iterator<Item = &'word str>) -> Engine {
    let words: Vec<Word> = words
        .map(|text| Word { text: text.to_owned(), kind: "other".to_owned(), by_sound: true, ..Word::default() })
        .collect();
    Engine::build(&words, &[])
}

#[expect(clippy::too_many_lines, reason = "a table with a row for each class")]
fn classes() -> Vec<Class> {
    let class = |name, make: Make| Class { name, words: WORDS, make };
    let between = |name, fillers: &'static [&'static str]| {
        class(
            name,
            Box::new(move |word, round, random| {
                // All gaps in even rounds, one in odd ones.
                let count = word.chars().count();
                let only = 1 + random.below(count - 1);
                let letters = word.chars().enumerate().map(|(index, letter)| {
                    let is_here = index > 0 && (round % 2 == 0 || index == only);
                    format!("{}{letter}", if is_here { *random.pick(fillers) } else { "" })
                });
                Some(letters.collect())
            }),
        )
    };
    let replaced = |name, replace: fn(char, usize, &mut Random) -> Option<String>, all: bool| {
        class(
            name,
            Box::new(move |word, _, random| {
                let chosen = random.below(word.chars().count());
                let letters: Option<Vec<String>> =
                    word.chars()
                        .enumerate()
                        .map(|(index, letter)| {
                            if all || index == chosen {
                                replace(letter, index, random)
                            } else {
                                Some(letter.to_string())
                            }
                        })
                        .collect();
                letters.map(|letters| letters.concat())
            }),
        )
    };
    vec![
        class("as listed", Box::new(|word, _, _| Some(word.to_owned()))),
        between("symbols", &["*", "★", ".", "-", "～", "·"]),
        between("emoji", &["😀", "🎰", "❤", "👍"]),
        replaced("one character, same tone", |letter, _, random| homophone(letter, random, Sound::Same), false),
        replaced("all characters, same tone", |letter, _, random| homophone(letter, random, Sound::Same), true),
        replaced("one character romanised", |letter, _, _| reading(letter), false),
        replaced("all romanised", |letter, _, _| reading(letter), true),
        replaced(
            "romanised with tone digits",
            |letter, _, _| Some(letter.to_pinyin()?.with_tone_num_end().replace('ü', "v")),
            true,
        ),
        between("digit fillers", &["1", "2", "3", "5", "6", "8", "9"]),
        between("Latin fillers", &["a", "b", "x", "z", "V", "q"]),
        between("two digits between", &["12", "35", "86"]),
        between("digits in brackets", &["(1)", "【2】", "[7]"]),
        replaced(
            "romanised with tone digits and spaces",
            |letter, index, _| {
                let reading = letter.to_pinyin()?.with_tone_num_end().replace('ü', "v");
                Some(if index == 0 { reading } else { format!(" {reading}") })
            },
            true,
        ),
        between("stroke fillers", &["丶", "丨", "丿", "一"]),
        between("kana fillers", &["の", "メ", "ツ", "シ"]),
        replaced("each character doubled", |letter, _, _| Some(format!("{letter}{letter}")), true),
        replaced("bopomofo", |letter, _, _| bopomofo(letter), false),
        Class {
            name: "second readings",
            words: &[
                "收购银行卡",
                "枪支弹药",
                "传销",
                "校园贷",
                "重金求子",
                "代还款",
                "调教",
                "色情片",
                "乐透彩票",
                "成长药",
            ],
            make: Box::new(|word, _, _| {
                let (_, letter, reading) = SECOND_READINGS.iter().find(|(listed, ..)| *listed == word)?;
                Some(word.replace(*letter, reading))
            }),
        },
        Class {
            name: "digit for numeral",
            words: NUMERAL_WORDS,
            make: Box::new(|word, _, _| {
                let digits = word.chars().map(|letter| {
                    match "零一二三四五六七八九".chars().position(|numeral| numeral == letter) {
                        Some(digit) => digit.to_string(),
                        None => letter.to_string(),
                    }
                });
                Some(digits.collect())
            }),
        },
        Class {
            name: "letters of other alphabets",
            words: LATIN_WORDS,
            make: Box::new(|word, round, _| {
                let alphabet: Vec<char> = ALPHABETS[round % ALPHABETS.len()].chars().collect();
                let letters = word.chars().enumerate().map(|(index, letter)| {
                    // The first letter stays in some rounds.
                    if index == 0 && round >= 3 { letter } else { alphabet[letter as usize - 'a' as usize] }
                });
                Some(letters.collect())
            }),
        },
        replaced("other tone", |letter, _, random| homophone(letter, random, Sound::OtherTone), false),
        replaced("similar sound", |letter, _, random| homophone(letter, random, Sound::Similar), false),
        replaced("initial", |letter, _, _| Some(reading(letter)?[..1].to_owned()), false),
        between("particles", &["个", "的", "了", "下"]),
        class("a character appended that makes another word", Box::new(|word, _, random| appended(word, random))),
        replaced("similar characters", |letter, _, _| similar_character(letter), false),
        class("reversed", Box::new(|word, _, _| Some(word.chars().rev().collect()))),
    ]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sound {
    Same,
    OtherTone,
    Similar,
}

/// Returns another common character that sounds like this one.
fn homophone(letter: char, random: &mut Random, sound: Sound) -> Option<String> {
    let own = letter.to_pinyin()?;
    let is_alike = |other: &char| {
        other.to_pinyin().is_some_and(|reading| match sound {
            Sound::Same => reading.with_tone_num_end() == own.with_tone_num_end(),
            Sound::OtherTone => {
                reading.plain() == own.plain() && reading.with_tone_num_end() != own.with_tone_num_end()
            }
            Sound::Similar => reading.plain() != own.plain() && similar(reading.plain()) == similar(own.plain()),
        })
    };
    let others: Vec<char> = common().filter(|other| *other != letter && is_alike(other)).collect();
    (!others.is_empty()).then(|| random.pick(&others).to_string())
}

/// Returns the word with a character that forms another word with its last one: 赌博士.
fn appended(word: &str, random: &mut Random) -> Option<String> {
    let last = word.chars().next_back()?;
    let line = DICTIONARY.lines().find(|line| line.starts_with(last))?;
    let entries = line[last.len_utf8()..].split(|letter: char| letter.is_ascii_alphabetic());
    let following: Vec<&str> = entries.filter(|entry| entry.chars().count() == 1).collect();
    (!following.is_empty()).then(|| format!("{word}{}", random.pick(&following)))
}

/// Returns a character that looks like this one.
fn similar_character(letter: char) -> Option<String> {
    let (_, other) = ["微徽", "信倍", "情睛", "聊柳", "贷货", "货贷", "代伐", "偷愉", "刷涮", "票粟", "色邑"]
        .iter()
        .filter_map(|pair| pair.chars().next().zip(pair.chars().nth(1)))
        .find(|(own, _)| *own == letter)?;
    Some(other.to_string())
}

fn similar(reading: &str) -> String {
    let initial = reading.replacen("zh", "z", 1).replacen("ch", "c", 1).replacen("sh", "s", 1);
    initial.strip_suffix('g').filter(|rest| rest.ends_with('n')).map_or(initial.clone(), str::to_owned)
}

/// Returns common characters: those of the first level of GB 2312 are these, roughly.
fn common() -> impl Iterator<Item = char> {
    let line = |line: &'static str| {
        let mut letters = line.chars();
        let head = letters.next()?;
        let class = letters.next()?;
        (class.is_ascii_lowercase() || class >= 'R').then_some(head).filter(|_| class.is_ascii_alphabetic())
    };
    DICTIONARY.lines().filter(|text| !text.starts_with('#')).filter_map(line)
}

fn reading(letter: char) -> Option<String> {
    Some(letter.to_pinyin()?.plain().replace('ü', "v"))
}

fn bopomofo(letter: char) -> Option<String> {
    const INITIALS: &[(&str, &str)] = &[
        ("zh", "ㄓ"),
        ("ch", "ㄔ"),
        ("sh", "ㄕ"),
        ("b", "ㄅ"),
        ("p", "ㄆ"),
        ("m", "ㄇ"),
        ("f", "ㄈ"),
        ("d", "ㄉ"),
        ("t", "ㄊ"),
        ("n", "ㄋ"),
        ("l", "ㄌ"),
        ("g", "ㄍ"),
        ("k", "ㄎ"),
        ("h", "ㄏ"),
        ("j", "ㄐ"),
        ("q", "ㄑ"),
        ("x", "ㄒ"),
        ("r", "ㄖ"),
        ("z", "ㄗ"),
        ("c", "ㄘ"),
        ("s", "ㄙ"),
    ];
    const FINALS: &[(&str, &str)] = &[
        ("a", "ㄚ"),
        ("o", "ㄛ"),
        ("e", "ㄜ"),
        ("ai", "ㄞ"),
        ("ei", "ㄟ"),
        ("ao", "ㄠ"),
        ("ou", "ㄡ"),
        ("an", "ㄢ"),
        ("en", "ㄣ"),
        ("ang", "ㄤ"),
        ("eng", "ㄥ"),
        ("i", "ㄧ"),
        ("ia", "ㄧㄚ"),
        ("ie", "ㄧㄝ"),
        ("iao", "ㄧㄠ"),
        ("iu", "ㄧㄡ"),
        ("ian", "ㄧㄢ"),
        ("in", "ㄧㄣ"),
        ("iang", "ㄧㄤ"),
        ("ing", "ㄧㄥ"),
        ("u", "ㄨ"),
        ("ua", "ㄨㄚ"),
        ("uo", "ㄨㄛ"),
        ("uai", "ㄨㄞ"),
        ("ui", "ㄨㄟ"),
        ("uan", "ㄨㄢ"),
        ("un", "ㄨㄣ"),
        ("uang", "ㄨㄤ"),
        ("ong", "ㄨㄥ"),
    ];
    let text = reading(letter)?;
    let (rest, initial) = INITIALS.iter().find_map(|(latin, sign)| Some((text.strip_prefix(latin)?, *sign)))?;
    if rest == "i" && "ㄓㄔㄕㄖㄗㄘㄙ".contains(initial) {
        return Some(initial.to_owned());
    }
    let rest = if "ㄐㄑㄒ".contains(initial) && rest.starts_with('u') { return None } else { rest };
    FINALS.iter().find(|(latin, _)| *latin == rest).map(|(_, sign)| format!("{initial}{sign}"))
}

fn percent(part: usize, all: usize) -> usize {
    (part * 100).checked_div(all).unwrap_or(0)
}
