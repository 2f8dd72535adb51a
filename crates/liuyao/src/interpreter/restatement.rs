//! Restates a question of yes or no as its answers: 房东会降价吗 becomes 房东多半不会降价.
//!
//! Words that may stand between a subject and what is asked are in `assets/interpreter/words.tsv`. A question that they do
//! not fit has no restatement.

use super::question::{is_clause_end, openers, standard, words_of};

/// The longest clause that is restated, in characters.
const MAX_LENGTH: usize = 90;

/// Returns the answers no, perhaps and yes to the last clause that asks. An answer that has no good wording is empty.
pub(super) fn answers(question: &str, asking: &[&str]) -> Option<[String; 3]> {
    let clause = *asking.last().filter(|clause| clause.chars().count() <= MAX_LENGTH)?;
    let plain = clause.trim().trim_end_matches(is_clause_end);
    if plain.is_ascii() { in_english(plain) } else { in_chinese(question, clause, plain) }
}

fn in_chinese(question: &str, clause: &str, plain: &str) -> Option<[String; 3]> {
    let text = standard(plain).replace("到底", "").replace("究竟", "");
    let clause_words = text.trim_end_matches(['吗', '呢', '啊', '呀']);
    if openers("obscure").any(|word| text.contains(word)) || text.chars().count() > 32 {
        return None;
    }
    let modals = || words_of("modal").flat_map(|list| list.chinese.iter().map(move |form| (list.name, *form)));
    let is_open = |form: &str| form.contains(['不', '没', '否']);
    let has_open = modals().any(|(name, form)| name.contains('/') && is_open(form) && text.contains(form));
    if !has_open && clause_words.len() == text.len() {
        return None;
    }
    let mut place = 0;
    while let Some(rest) = clause_words.get(place..).filter(|rest| !rest.is_empty()) {
        let here = modals().filter(|(_, form)| rest.starts_with(form)).max_by_key(|(_, form)| form.len());
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
                        said(&format!("有可能{still}{}", if yes == "能" { "" } else { yes }), after),
                        said(&format!("多半{still}{yes}"), after),
                    ]
                });
            }
            _ => place += length,
        }
    }
    // A verb with its result, such as 租得出去.
    let place = clause_words.rfind('得').filter(|_| !has_open)?;
    let (before, after) = (clause_words.get(..place)?, clause_words.get(place + '得'.len_utf8()..)?);
    let verb = before.chars().last().filter(|_| {
        after.starts_with(['了', '到', '出', '上', '下', '回', '过', '成', '住', '掉', '活', '完', '清', '动'])
    })?;
    let before = subject(question, clause, before.strip_suffix(verb)?);
    let said = |word: &str| turned(&format!("{before}多半{verb}{word}{after}"));
    Some([said("不"), String::new(), said("得")])
}

/// Returns the words before the verb, with the clause before if they name nothing.
fn subject(question: &str, clause: &str, before: &str) -> String {
    let earlier = question.split_once(clause).map_or("", |(earlier, _)| earlier.trim_end_matches(is_clause_end));
    let earlier = earlier.rsplit(is_clause_end).next().map(str::trim).unwrap_or_default();
    let is_short = before.chars().count() <= 3 && (1..=18).contains(&earlier.chars().count());
    if is_short { format!("{}，{before}", standard(earlier)) } else { before.to_owned() }
}

fn in_english(plain: &str) -> Option<[String; 3]> {
    let words: Vec<&str> = plain.split_whitespace().collect();
    let lower: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
    let nouns = ["person", "object", "noun"].into_iter().flat_map(words_of).flat_map(|list| &list.english);
    let nouns: Vec<&str> = nouns.map(|word| word.trim_end_matches('*')).collect();
    let is_noun = |place: &usize| lower.get(*place).is_some_and(|word| nouns.contains(&word.as_str()));
    let has = |name: &str, word: Option<&String>| word.is_some_and(|word| openers(name).any(|other| other == word));
    let end = match lower.get(1) {
        word if has("determiner", word) => {
            (2..=4).find(is_noun).map(|first| (first..=lower.len()).find(|place| !is_noun(place)).unwrap_or(first + 1))
        }
        word => has("subject", word).then_some(2),
    }?;
    let (aux, rest) = (lower.first()?.as_str(), words.get(end..).filter(|rest| !rest.is_empty())?.join(" "));
    let (subject, rest) = (turned(&words[1..end].join(" ")), turned(&rest));
    match aux {
        _ if lower.iter().any(|word| word == "or") || rest.starts_with("and ") => None,
        "do" | "does" | "did" => {
            Some([format!("{subject} probably {aux} not"), String::new(), format!("{subject} probably {aux}")])
        }
        "will" | "can" | "could" | "would" | "is" | "are" | "was" | "were" | "has" | "have" => Some([
            match rest.strip_prefix("still ") {
                Some(rest) => format!("{subject} {aux} probably no longer {rest}"),
                None => format!("{subject} {aux} probably not {rest}"),
            },
            if aux == "will" { format!("{subject} may {rest}") } else { String::new() },
            format!("{subject} {aux} probably {rest}"),
        ]),
        _ => None,
    }
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
