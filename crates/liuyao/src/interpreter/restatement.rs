//! Restates a question of yes or no as its answers: 房东会降价吗 becomes 房东多半不会降价.
//!
//! Words that may stand between a subject and what is asked are in `assets/interpreter/words.tsv`. A question that they do
//! not fit has no restatement.

use super::question::{doubled, is_clause_end, openers, standard, words_of};

/// The longest clause that is restated, in characters.
const MAX_LENGTH: usize = 90;
/// Letters that ask without a result, as in 会不会下雨.
const MODAL_LETTERS: &str = "会能肯想要是有在可愿敢应该好对知喜爱值适合靠";
/// The longest place that a subject is said to be in, in words.
const MAX_PLACE: usize = 4;
/// The longest words before the clause that are said with it, in characters.
const MAX_EARLIER: usize = 20;

/// Returns the answers no, perhaps not, perhaps and yes to the last clause that asks for them. An answer that has no good
/// wording is empty.
pub(super) fn answers(question: &str, asking: &[&str]) -> Option<[String; 4]> {
    asking.iter().rev().filter(|clause| clause.chars().count() <= MAX_LENGTH).find_map(|clause| {
        let plain = clause.trim().trim_end_matches(is_clause_end);
        if is_latin(plain) { in_english(plain) } else { in_chinese(question, clause, plain) }
    })
}

/// Returns true if the text has no Chinese.
pub(super) fn is_latin(text: &str) -> bool {
    text.chars().all(|letter| letter < '\u{2E80}')
}

fn in_chinese(question: &str, clause: &str, plain: &str) -> Option<[String; 4]> {
    let text = standard(plain).replace("到底", "").replace("究竟", "");
    let clause_words = text.trim_end_matches(['吗', '呢', '啊', '呀']);
    if openers("obscure").any(|word| text.contains(word)) || text.chars().count() > 32 {
        return None;
    }
    let modals = || words_of("modal").flat_map(|list| list.chinese.iter().map(move |form| (list.name, *form)));
    let is_open = |form: &str| form.contains(['不', '没', '否']);
    let has_open = modals().any(|(name, form)| name.contains('/') && is_open(form) && text.contains(form));
    // 转不转到 asks 转不转得到.
    let result =
        doubled(clause_words, MODAL_LETTERS).and_then(|place| Some(clause_words.char_indices().nth(place + 3)?.0));
    let is_result = |place: &usize| openers("result").any(|result| clause_words[*place..].starts_with(result));
    let whole = result.filter(is_result).map(|place| format!("{}得{}", &clause_words[..place], &clause_words[place..]));
    let clause_words = whole.as_deref().unwrap_or(clause_words);
    let is_open_verb = result.is_some_and(|place| clause_words[place..].starts_with('得'));
    if !has_open && !is_open_verb && clause_words.len() == text.len() {
        return None;
    }
    if let Some(said) = of_verb(question, clause, clause_words, true).filter(|_| !has_open) {
        return Some(said);
    }
    let mut place = 0;
    while let Some(rest) = clause_words.get(place..).filter(|rest| !rest.is_empty()) {
        let here = modals().filter(|(name, form)| (*name != "-" || !has_open) && rest.starts_with(form));
        let here = here.max_by_key(|(_, form)| form.len());
        let (before, length) = (&clause_words[..place], here.map_or(1, |(_, form)| form.len()));
        let length = if here.is_none() { rest.chars().next()?.len_utf8() } else { length };
        match here.and_then(|(name, form)| Some((name.split_once('/')?, form))) {
            Some(((yes, no), form)) if is_open(form) || !has_open => {
                let after = rest[length..].trim_end_matches('呢');
                let denied = after
                    .strip_suffix('了')
                    .filter(|_| no == "不是" && !after.starts_with(['不', '没', '要']))
                    .map(|after| format!("{after}的"));
                let (still, before) = before.strip_suffix('还').map_or(("", before), |before| ("还", before));
                let before = subject(question, clause, before);
                let said = |word: &str, after: &str| turned(&format!("{before}{word}{after}"));
                return (!after.is_empty() || length > 3).then(|| {
                    [
                        said(&format!("多半{no}"), denied.as_deref().unwrap_or(after)),
                        said(&format!("未必{yes}"), after),
                        said(
                            &format!("有可能{still}{}", if yes == "能" && still.is_empty() { "" } else { yes }),
                            after,
                        ),
                        said(&format!("多半{still}{yes}"), after),
                    ]
                });
            }
            _ => place += length,
        }
    }
    of_verb(question, clause, clause_words, false).filter(|_| !has_open)
}

/// Restates a question with a verb and its result, such as 租得出去.
fn of_verb(question: &str, clause: &str, text: &str, is_end: bool) -> Option<[String; 4]> {
    let place = text.rfind('得')?;
    let (before, after) = (text.get(..place)?, text.get(place + '得'.len_utf8()..)?);
    let is_whole = |result: &&&str| after.trim_end_matches('了') == **result;
    let mut results = openers("result");
    let is_result = if is_end { results.any(|it| is_whole(&it)) } else { results.any(|it| after.starts_with(it)) };
    let verb = before.chars().last().filter(|_| is_result || after == "了")?;
    let before = before.strip_suffix(verb)?;
    let before = before.strip_suffix('不').and_then(|before| before.strip_suffix(verb)).unwrap_or(before);
    let before = before.strip_suffix(['会', '能']).unwrap_or(before);
    let (still, before) = before.strip_suffix('还').map_or(("", before), |before| ("还", before));
    let before = subject(question, clause, before);
    let said = |degree: &str, word: &str| turned(&format!("{before}{degree}{verb}{word}{after}"));
    let yes = |degree: &str| said(&format!("{degree}{still}"), "得");
    Some([said("多半", "不"), yes("未必"), yes("有可能"), yes("多半")])
}

/// Returns the words before the verb, with the clause before if they name nothing.
fn subject(question: &str, clause: &str, before: &str) -> String {
    let earlier = question.split_once(clause).map_or("", |(earlier, _)| earlier.trim_end_matches(is_clause_end));
    let whole = Some(earlier).filter(|earlier| earlier.chars().count() <= MAX_EARLIER);
    let earlier = whole.or_else(|| earlier.rsplit(is_clause_end).next()).map(str::trim).unwrap_or_default();
    let names_nothing = before.trim_start_matches(['我', '他', '她', '它', '这', '那', '们', '也', '还']).is_empty();
    let is_short = names_nothing && (1..=MAX_EARLIER).contains(&earlier.chars().count());
    if is_short { format!("{}，{before}", standard(earlier)) } else { before.to_owned() }
}

fn in_english(plain: &str) -> Option<[String; 4]> {
    let words: Vec<&str> = plain.split_whitespace().collect();
    let lower: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
    let has = |name: &str, place: usize| lower.get(place).is_some_and(|word| openers(name).any(|other| other == word));
    let nouns = ["person", "object", "noun", "other"].into_iter().flat_map(words_of).flat_map(|list| &list.english);
    let nouns: Vec<&str> = nouns.map(|word| word.trim_end_matches('*')).collect();
    let is_noun =
        |place: &usize| lower.get(*place).is_some_and(|word| word.len() > 1 && nouns.contains(&word.as_str()));
    let aux = lower.first()?.as_str();
    // The place at which the subject ends: before the verb, or after its noun if it has a predicate without one.
    let end = if matches!(aux, "do" | "does" | "did" | "will" | "can" | "could" | "would") {
        let is_verb = |place: &usize| has("verb", *place) || has("adverb", *place);
        let is_part = |place: usize| {
            has("determiner", place - 1) || lower[place - 1] == "to" || is_noun(&place) && is_verb(&(place + 1))
        };
        let end = (2..lower.len()).find(|place| is_verb(place) && !is_part(*place));
        end.filter(|end| (1..*end).all(|place| !has("breaks", place)))
    } else if has("subject", 1) {
        Some(2)
    } else {
        let first = (2..=4).find(is_noun).filter(|_| has("determiner", 1));
        let end = first.and_then(|first| (first..=lower.len()).find(|place| !is_noun(place)));
        let predicate = |end: usize| (end..lower.len()).find(|place| lower[*place].ends_with("ing"));
        let end = end.filter(|end| !has("goes_on", *end))?;
        if has("place", end) && lower.len() - end > MAX_PLACE { predicate(end) } else { Some(end) }
    }?;
    let rest = words.get(end..).filter(|rest| !rest.is_empty())?.join(" ");
    let (subject, rest) = (turned(&words[1..end].join(" ")), turned(&rest));
    if lower.iter().any(|word| word == "or") || rest.starts_with("and ") {
        return None;
    }
    let no_longer = rest.strip_prefix("still ").filter(|_| matches!(aux, "is" | "are" | "was" | "were"));
    let said = match aux {
        "do" | "does" | "did" => ["probably {} not", "perhaps {} not", "perhaps {}", "probably {}"],
        "will" => ["{} probably not ", "may well not ", "may ", "{} probably "],
        "can" | "could" | "would" | "is" | "are" | "was" | "were" | "has" | "have" if no_longer.is_some() => {
            ["{} probably no longer ", "{} perhaps no longer ", "{} perhaps still ", "{} probably still "]
        }
        "can" | "could" | "would" | "is" | "are" | "was" | "were" | "has" | "have" => {
            ["{} probably not ", "{} perhaps not ", "{} perhaps ", "{} probably "]
        }
        _ => return None,
    };
    let rest = if aux.starts_with('d') { "" } else { no_longer.unwrap_or(&rest) };
    Some(said.map(|words| format!("{subject} {}{rest}", words.replace("{}", aux))))
}

/// Returns words of the asker as said to them.
pub(super) fn turned(words: &str) -> String {
    let word = |word: &str| match word.to_ascii_lowercase().as_str() {
        "i" | "me" | "we" | "us" => "you".to_owned(),
        "my" | "our" => "your".to_owned(),
        "mine" | "ours" => "yours".to_owned(),
        "am" => "are".to_owned(),
        "myself" => "yourself".to_owned(),
        "i'm" | "we're" => "you're".to_owned(),
        _ => word.to_owned(),
    };
    words.replace(['我', '咱'], "你").split(' ').map(word).collect::<Vec<_>>().join(" ")
}
