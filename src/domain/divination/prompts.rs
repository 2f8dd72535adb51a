//! The instructions of the language model: built-in templates, or an operator's that override them.
//!
//! Instructions are the system message. Question and facts of a casting are a message of their own, so that no template
//! can mix them with the instructions. The version of the instructions is stored with every record of a call.

use std::path::Path;

use crate::{
    config::Config,
    templates::{self, Template, TemplateSpec},
    types::{Locale, named_enum},
};

named_enum! {
    /// The use of a template.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PromptKind {
        /// Interpretations of castings.
        Interpretation = "interpretation",
        Chat = "chat",
    }
}

impl PromptKind {
    /// Returns the version of the built-in templates. It changes with their text, and with the facts that go with them.
    const fn version(self) -> &'static str {
        match self {
            Self::Interpretation => "5",
            Self::Chat => "3",
        }
    }
}

/// The instructions in use.
#[derive(Clone, Debug)]
pub struct Prompts {
    brand: String,
    templates: [Template; 4],
}

/// A template in use, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptTemplate<'prompts> {
    pub kind: PromptKind,
    pub locale: Locale,
    pub version: String,
    /// The operator's file; none if the template is built in.
    pub file: Option<&'prompts Path>,
    pub text: &'prompts str,
}

/// In the order of [`place`].
static SPECS: [TemplateSpec; 4] = [
    interpretation("interpretation.zh.txt", include_str!("../../../assets/prompts/interpretation.zh.txt")),
    interpretation("interpretation.en.txt", include_str!("../../../assets/prompts/interpretation.en.txt")),
    chat("chat.zh.txt", include_str!("../../../assets/prompts/chat.zh.txt")),
    chat("chat.en.txt", include_str!("../../../assets/prompts/chat.en.txt")),
];

const fn interpretation(name: &'static str, text: &'static str) -> TemplateSpec {
    TemplateSpec { name, text, required: &[], optional: &["brand"], fault: |_| None }
}

const fn chat(name: &'static str, text: &'static str) -> TemplateSpec {
    TemplateSpec { name, text, required: &["user"], optional: &["brand"], fault: |_| None }
}

impl Prompts {
    /// Reads the templates of `llm.prompt_dir`; those that it does not have are built in.
    ///
    /// # Errors
    /// All faults of the files, each beginning with the name of the setting.
    pub fn load(config: &Config) -> Result<Self, Vec<String>> {
        let directory = config.llm.prompt_dir.as_ref().map(|directory| directory.0.as_path());
        let templates = templates::load("llm.prompt_dir", directory, &SPECS)?;
        Ok(Self { brand: config.brand.name.clone(), templates })
    }

    /// Returns the instructions of an interpretation.
    pub fn interpretation(&self, locale: Locale) -> String {
        self.template(PromptKind::Interpretation, locale).fill(&[("brand", &self.brand)])
    }

    /// Returns the instructions of a chat, with the description of the user as JSON.
    pub fn chat(&self, locale: Locale, user: &str) -> String {
        self.template(PromptKind::Chat, locale).fill(&[("brand", &self.brand), ("user", user)])
    }

    /// Returns the version of the instructions. An operator's template adds the first digits of its SHA-256.
    pub fn version(&self, kind: PromptKind, locale: Locale) -> String {
        let digest = self.template(kind, locale).digest();
        digest.map_or_else(|| kind.version().to_owned(), |digest| format!("{}+{digest}", kind.version()))
    }

    /// Returns all templates.
    pub fn all(&self) -> impl Iterator<Item = PromptTemplate<'_>> {
        let of_kind = |kind| Locale::ALL.map(|locale| self.described(kind, locale));
        PromptKind::ALL.into_iter().flat_map(of_kind)
    }

    fn described(&self, kind: PromptKind, locale: Locale) -> PromptTemplate<'_> {
        let template = self.template(kind, locale);
        let version = self.version(kind, locale);
        PromptTemplate { kind, locale, version, file: template.file.as_deref(), text: template.text() }
    }

    fn template(&self, kind: PromptKind, locale: Locale) -> &Template {
        &self.templates[place(kind, locale)]
    }
}

fn place(kind: PromptKind, locale: Locale) -> usize {
    2 * usize::from(kind == PromptKind::Chat) + usize::from(locale == Locale::English)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_template_has_its_place() {
        let prompts = Prompts::load(&Config::defaults().unwrap()).unwrap();
        for kind in PromptKind::ALL {
            for locale in Locale::ALL {
                assert_eq!(SPECS[place(kind, locale)].name, format!("{}.{}.txt", kind.name(), locale.name()));
                assert_eq!(prompts.version(kind, locale), kind.version());
            }
        }
        assert!(prompts.interpretation(Locale::English).starts_with("You are the I Ching reader of Yarrow,"));
        assert!(prompts.chat(Locale::Chinese, "{\"age\":null}").ends_with("\n{\"age\":null}"));
    }
}
