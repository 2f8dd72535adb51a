//! Messages from templates: a subject and paragraphs, as plain text and as HTML.
//!
//! A template is a text file in `assets/messages`: the subject in its first line, then paragraphs separated by empty
//! lines, with `{name}` for a value. A paragraph that is only a value is shown large. The HTML is made from the
//! same paragraphs, so that the two cannot differ.

use std::fmt::Write as _;

use super::EmailMessage;
use crate::types::{EmailAddress, Locale};

const LAYOUT: &str = include_str!("../../../assets/messages/layout.html");
const PARAGRAPH: &str = "margin:0 0 12px";
const LARGE: &str = "margin:0 0 12px;font-size:32px;letter-spacing:4px;font-weight:600";

/// A template in each language.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    chinese: &'static str,
    english: &'static str,
}

/// A code with which an address signs in.
pub const SIGN_IN: Template = Template {
    chinese: include_str!("../../../assets/messages/sign-in.zh.txt"),
    english: include_str!("../../../assets/messages/sign-in.en.txt"),
};

/// A code that confirms an address of an account.
pub const ADDRESS: Template = Template {
    chinese: include_str!("../../../assets/messages/address.zh.txt"),
    english: include_str!("../../../assets/messages/address.en.txt"),
};

/// A code that confirms the cancellation of an account.
pub const CANCELLATION: Template = Template {
    chinese: include_str!("../../../assets/messages/cancellation.zh.txt"),
    english: include_str!("../../../assets/messages/cancellation.en.txt"),
};

impl Template {
    /// The message that carries these values.
    pub fn filled(self, to: EmailAddress, locale: Locale, values: &[(&str, &str)]) -> EmailMessage {
        let template = match locale {
            Locale::Chinese => self.chinese,
            Locale::English => self.english,
        };
        let (subject, paragraphs) = template.split_once("\n\n").unwrap_or((template, ""));
        let paragraphs = paragraphs.trim().split("\n\n").map(|paragraph| {
            let is_value = paragraph.starts_with('{') && paragraph.ends_with('}');
            (fill(paragraph, values), is_value)
        });
        write(to, locale, &fill(subject, values), &paragraphs.collect::<Vec<_>>())
    }
}

/// A message of the service's own words: paragraphs between empty lines.
pub fn plain(to: EmailAddress, locale: Locale, subject: &str, text: &str) -> EmailMessage {
    let paragraphs: Vec<_> = text.trim().split("\n\n").map(|paragraph| (paragraph.to_owned(), false)).collect();
    write(to, locale, subject, &paragraphs)
}

fn write(to: EmailAddress, locale: Locale, subject: &str, paragraphs: &[(String, bool)]) -> EmailMessage {
    let mut body = String::new();
    for (paragraph, is_value) in paragraphs {
        let style = if *is_value { LARGE } else { PARAGRAPH };
        let lines = escaped(paragraph).replace('\n', "<br>\n");
        // Writing to a String does not fail.
        let _ = writeln!(body, "<p style=\"{style}\">{lines}</p>");
    }
    let language = match locale {
        Locale::Chinese => "zh-CN",
        Locale::English => "en",
    };
    let html = LAYOUT.replace("{language}", language).replace("{subject}", &escaped(subject)).replace("{body}", &body);
    let text: Vec<_> = paragraphs.iter().map(|(paragraph, _)| paragraph.as_str()).collect();
    EmailMessage { to, subject: subject.to_owned(), text: text.join("\n\n") + "\n", html }
}

fn fill(text: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to() -> EmailAddress {
        EmailAddress::parse("reader@example.com").unwrap()
    }

    #[test]
    fn fills_every_template_in_both_languages() {
        for template in [SIGN_IN, ADDRESS] {
            let mut subjects = Vec::new();
            for locale in [Locale::Chinese, Locale::English] {
                let message = template.filled(to(), locale, &[("code", "01234567"), ("minutes", "10")]);
                for text in [&message.subject, &message.text, &message.html] {
                    assert!(!text.contains('{') && !text.trim().is_empty(), "{text}");
                }
                for text in [&message.text, &message.html] {
                    assert_eq!(text.matches("01234567").count(), 1, "{text}");
                    assert!(text.contains("10"), "{text}");
                }
                assert!(!message.subject.contains("0123"), "a subject is read over people's shoulders");
                subjects.push(message.subject);
            }
            assert_ne!(subjects[0], subjects[1]);
        }
    }

    #[test]
    fn escapes_values_in_html() {
        let message = plain(to(), Locale::English, "a < b", "<b>one</b>\ntwo\n\nthree & four");
        assert!(message.html.contains("<title>a &lt; b</title>"), "{}", message.html);
        assert!(message.html.contains("&lt;b&gt;one&lt;/b&gt;<br>\ntwo</p>"), "{}", message.html);
        assert_eq!(message.text, "<b>one</b>\ntwo\n\nthree & four\n");
    }
}
