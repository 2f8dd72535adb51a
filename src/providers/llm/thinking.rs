//! Separates reasoning between `<think>` tags at the start of an answer from the answer.

/// Names of the tags in use.
const TAGS: [&str; 4] = ["think", "thinking", "thought", "reasoning"];
const CLOSING_TAGS: [&str; 4] = ["</think>", "</thinking>", "</thought>", "</reasoning>"];

/// Splits the text of one answer, which arrives in chunks.
#[derive(Debug, Default)]
pub(super) struct ThinkingFilter(Part);

#[derive(Debug)]
enum Part {
    /// Only the start of a possible opening tag, which is held back.
    Beginning(String),
    /// Inside the tags. The start of a possible closing tag is held back.
    Thinking(String),
    /// After the tags, before the first character of the answer.
    Between,
    Answer,
}

impl Default for Part {
    fn default() -> Self {
        Self::Beginning(String::new())
    }
}

/// A text split into answer and reasoning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Separated {
    pub answer: String,
    pub thinking: String,
}

impl ThinkingFilter {
    /// Adds a chunk and returns the new text. The start of a possible tag is held back.
    pub(super) fn push(&mut self, chunk: &str) -> Separated {
        let mut found = Separated::default();
        let mut rest = chunk.to_owned();
        loop {
            match &mut self.0 {
                Part::Beginning(held) => {
                    held.push_str(&rest);
                    let start = held.trim_start();
                    if let Some(inside) = after_opening_tag(start) {
                        rest = String::from(inside);
                        self.0 = Part::Thinking(String::new());
                    } else if may_become_tag(start) {
                        return found;
                    } else {
                        found.answer = std::mem::take(held);
                        self.0 = Part::Answer;
                        return found;
                    }
                }
                Part::Thinking(held) => {
                    held.push_str(&rest);
                    if let Some((thinking, after)) = split_at_closing_tag(held) {
                        found.thinking.push_str(thinking);
                        after.clone_into(&mut rest);
                        self.0 = Part::Between;
                    } else {
                        let kept = CLOSING_TAGS.iter().map(|tag| longest_start_at_end(held, tag)).max().unwrap_or(0);
                        found.thinking.push_str(&held[..held.len() - kept]);
                        held.drain(..held.len() - kept);
                        return found;
                    }
                }
                Part::Between => {
                    let start = rest.trim_start();
                    if !start.is_empty() {
                        found.answer.push_str(start);
                        self.0 = Part::Answer;
                    }
                    return found;
                }
                Part::Answer => {
                    found.answer = rest;
                    return found;
                }
            }
        }
    }

    /// Returns the text held back at the end of the answer.
    pub(super) fn finish(&mut self) -> Separated {
        match std::mem::replace(&mut self.0, Part::Answer) {
            Part::Beginning(answer) => Separated { answer, ..Separated::default() },
            Part::Thinking(thinking) => Separated { thinking, ..Separated::default() },
            Part::Between | Part::Answer => Separated::default(),
        }
    }
}

/// Splits a whole text. The opening tag may be missing, because some templates write it into the prompt. A closing tag
/// with nothing after it ended no reasoning.
pub(super) fn separate(text: &str) -> Separated {
    let mut filter = ThinkingFilter::default();
    let (first, last) = (filter.push(text), filter.finish());
    let mut whole = Separated { answer: first.answer + &last.answer, thinking: first.thinking + &last.thinking };
    if whole.thinking.is_empty()
        && let Some((before, after)) = split_at_closing_tag(&whole.answer)
        && !TAGS.iter().any(|tag| before.contains(&format!("<{tag}>")))
    {
        let (before, after) = (before.to_owned(), after.trim_start().to_owned());
        whole = if after.is_empty() {
            Separated { answer: before, thinking: String::new() }
        } else {
            Separated { answer: after, thinking: before }
        };
    }
    whole
}

fn after_opening_tag(text: &str) -> Option<&str> {
    TAGS.into_iter().find_map(|tag| text.strip_prefix('<')?.strip_prefix(tag)?.strip_prefix('>'))
}

/// Returns the texts before and after the first closing tag. Some models close another tag than they opened.
fn split_at_closing_tag(text: &str) -> Option<(&str, &str)> {
    CLOSING_TAGS.iter().filter_map(|tag| text.split_once(tag)).min_by_key(|(before, _)| before.len())
}

fn may_become_tag(start: &str) -> bool {
    TAGS.iter().any(|tag| format!("<{tag}>").starts_with(start))
}

/// Returns the length of the longest suffix of `text` that is a prefix of `mark`.
fn longest_start_at_end(text: &str, mark: &str) -> usize {
    (1..mark.len()).rev().find(|length| text.ends_with(&mark[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits a text that arrives character by character.
    fn slowly(text: &str) -> Separated {
        let mut filter = ThinkingFilter::default();
        let mut whole = Separated::default();
        let mut add = |found: Separated| {
            whole.answer.push_str(&found.answer);
            whole.thinking.push_str(&found.thinking);
        };
        for character in text.chars() {
            add(filter.push(character.encode_utf8(&mut [0; 4])));
        }
        add(filter.finish());
        whole
    }

    #[test]
    fn separates_thinking_at_the_beginning() {
        for (text, thinking, answer) in [
            ("大吉", "", "大吉"),
            ("<think>先看本卦</think>\n\n大吉", "先看本卦", "大吉"),
            ("\n <thinking>a <b> </b</thinking>大吉", "a <b> </b", "大吉"),
            ("<think></think>大吉", "", "大吉"),
            ("<thinking>先看本卦</think>大吉", "先看本卦", "大吉"),
            ("<think>先看</think>大吉</think>宜守", "先看", "大吉</think>宜守"),
            ("<think>没有结束</thi", "没有结束</thi", ""),
            ("<", "", "<"),
            ("<thin", "", "<thin"),
            ("<b>大吉</b>", "", "<b>大吉</b>"),
            ("大吉<think>x</think>", "", "大吉<think>x</think>"),
            (" 大吉", "", " 大吉"),
            ("大吉<think>x</think>宜守", "", "大吉<think>x</think>宜守"),
        ] {
            let expected = Separated { answer: answer.to_owned(), thinking: thinking.to_owned() };
            assert_eq!((slowly(text), separate(text)), (expected.clone(), expected), "{text}");
        }
        for (text, thinking, answer) in [
            ("先看本卦</think>大吉", "先看本卦", "大吉"),
            ("大吉。宜守。</think>\n", "", "大吉。宜守。"),
            ("</think>大吉", "", "大吉"),
        ] {
            assert_eq!(
                separate(text),
                Separated { answer: answer.to_owned(), thinking: thinking.to_owned() },
                "{text}"
            );
        }
    }
}
