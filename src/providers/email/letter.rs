//! Messages from templates: a subject and paragraphs, as plain text and as HTML.
//!
//! A template is a text file in `assets/messages`, or an operator's file of the same name. Its first line is the subject;
//! paragraphs follow, separated by empty lines, with `{name}` for a value. A paragraph that is only a value is shown large.
//! The HTML is made from the same paragraphs, so that the two cannot differ.

use std::{fmt::Write as _, path::Path};

use super::EmailMessage;
use crate::{
    templates::{self, Template, TemplateSpec},
    types::{EmailAddress, Locale},
};

const PARAGRAPH: &str = "margin:0 0 12px";
const LARGE: &str = "margin:0 0 12px;font-size:32px;letter-spacing:4px;font-weight:600";
const SETTING: &str = "email.template_dir";

/// A message with a code. The value is the place of its Chinese template; the English one follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Letter {
    /// A code with which an address signs in.
    SignIn = 0,
    /// A code that confirms an address of an account.
    Address = 2,
    /// A code that confirms the cancellation of an account.
    Cancellation = 4,
}

/// Writes messages in the name of the service.
#[derive(Clone, Debug)]
pub struct LetterWriter {
    brand: String,
    letters: [Template; 6],
    layout: Template,
}

static SPECS: [TemplateSpec; 7] = [
    letter("sign-in.zh.txt", include_str!("../../../assets/messages/sign-in.zh.txt")),
    letter("sign-in.en.txt", include_str!("../../../assets/messages/sign-in.en.txt")),
    letter("address.zh.txt", include_str!("../../../assets/messages/address.zh.txt")),
    letter("address.en.txt", include_str!("../../../assets/messages/address.en.txt")),
    letter("cancellation.zh.txt", include_str!("../../../assets/messages/cancellation.zh.txt")),
    letter("cancellation.en.txt", include_str!("../../../assets/messages/cancellation.en.txt")),
    TemplateSpec {
        name: "layout.html",
        text: include_str!("../../../assets/messages/layout.html"),
        required: &["subject", "body"],
        optional: &["language", "brand"],
        fault: |_| None,
    },
];

const fn letter(name: &'static str, text: &'static str) -> TemplateSpec {
    TemplateSpec { name, text, required: &["code"], optional: &["minutes", "brand"], fault: letter_fault }
}

/// Returns the fault of a template without a subject, or with a code in it: other people read subjects on the screen.
fn letter_fault(text: &str) -> Option<&'static str> {
    let (subject, body) = text.split_once("\n\n").unwrap_or((text, ""));
    if subject.contains('\n') || body.trim().is_empty() {
        return Some("must have the subject in the first line, an empty line and then the text");
    }
    subject.contains("{code}").then_some("must not have {code} in the subject, which is shown on locked screens")
}

impl LetterWriter {
    /// Reads the templates of the directory; those that it does not have are built in.
    ///
    /// # Errors
    /// All faults of the files, each beginning with the name of the setting.
    pub fn load(brand: &str, directory: Option<&Path>) -> Result<Self, Vec<String>> {
        let [letters @ .., layout] = templates::load(SETTING, directory, &SPECS)?;
        Ok(Self { brand: brand.to_owned(), letters, layout })
    }

    /// Returns the files that override templates.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.letters.iter().chain([&self.layout]).filter_map(|template| template.file.as_deref())
    }

    /// Writes a message with a code that is valid for some minutes.
    pub fn code(&self, letter: Letter, to: EmailAddress, locale: Locale, (code, minutes): (&str, u64)) -> EmailMessage {
        let template = &self.letters[letter as usize + usize::from(locale == Locale::English)];
        let minutes = minutes.to_string();
        let values = [("code", code), ("minutes", minutes.as_str()), ("brand", self.brand.as_str())];
        let (subject, text) = template.text().split_once("\n\n").unwrap_or((template.text(), ""));
        let fill = |text: &str| templates::fill(text, &values);
        let paragraphs = text.trim().split("\n\n").map(|paragraph| {
            let is_value = paragraph.starts_with('{') && paragraph.ends_with('}');
            (fill(paragraph), is_value)
        });
        self.write(to, locale, &fill(subject), &paragraphs.collect::<Vec<_>>())
    }

    /// Writes a message of the service's own words: paragraphs between empty lines.
    pub fn plain(&self, to: EmailAddress, locale: Locale, subject: &str, text: &str) -> EmailMessage {
        let paragraphs: Vec<_> = text.trim().split("\n\n").map(|paragraph| (paragraph.to_owned(), false)).collect();
        self.write(to, locale, subject, &paragraphs)
    }

    fn write(&self, to: EmailAddress, locale: Locale, subject: &str, paragraphs: &[(String, bool)]) -> EmailMessage {
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
        let values =
            [("language", language), ("subject", &escaped(subject)), ("body", &body), ("brand", &escaped(&self.brand))];
        let html = self.layout.fill(&values) + "\n";
        let text: Vec<_> = paragraphs.iter().map(|(paragraph, _)| paragraph.as_str()).collect();
        EmailMessage { to, subject: subject.to_owned(), text: text.join("\n\n") + "\n", html }
    }
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

    fn writer() -> LetterWriter {
        LetterWriter::load("Mountain & Lake", None).unwrap()
    }

    #[test]
    fn fills_every_template_in_both_languages() {
        for letter in [Letter::SignIn, Letter::Address, Letter::Cancellation] {
            let mut subjects = Vec::new();
            for locale in [Locale::Chinese, Locale::English] {
                let message = writer().code(letter, to(), locale, ("01234567", 10));
                for text in [&message.subject, &message.text, &message.html] {
                    assert!(!text.contains('{') && !text.trim().is_empty(), "{text}");
                }
                for text in [&message.text, &message.html] {
                    assert_eq!(text.matches("01234567").count(), 1, "{text}");
                    assert!(text.contains("10"), "{text}");
                }
                assert!(message.subject.contains("Mountain & Lake"), "{}", message.subject);
                assert!(message.html.contains("Mountain &amp; Lake"), "{}", message.html);
                subjects.push(message.subject);
            }
            assert_ne!(subjects[0], subjects[1]);
        }
    }

    #[test]
    fn escapes_values_in_html() {
        let message = writer().plain(to(), Locale::English, "a < b", "<b>one</b>\ntwo\n\nthree & four {body}");
        assert!(message.html.contains("<title>a &lt; b</title>"), "{}", message.html);
        assert!(message.html.contains("&lt;b&gt;one&lt;/b&gt;<br>\ntwo</p>"), "{}", message.html);
        assert_eq!(message.text, "<b>one</b>\ntwo\n\nthree & four {body}\n");
    }

    #[test]
    fn a_letter_needs_a_subject_without_the_code() {
        for (text, expected) in [
            ("Subject\n\n{code}", None),
            ("Subject {code}\n\n{code}", Some("must not have")),
            ("Subject\ngoes on\n\n{code}", Some("must have the subject")),
            ("Subject\n{code}", Some("must have the subject")),
        ] {
            let fault = letter_fault(text);
            assert_eq!(fault.is_some(), expected.is_some(), "{text}");
            assert!(fault.is_none_or(|fault| fault.starts_with(expected.unwrap())), "{text}");
        }
    }
}
