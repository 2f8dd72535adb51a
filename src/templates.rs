//! Text templates: those that are built into the program, and an operator's files that override them.
//!
//! A template has variables in braces, such as `{code}`. Files are read and checked once, at the start, so that a mistake
//! in one stops the start and not the messages.

use std::{
    borrow::Cow,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use crate::types::{hex, sha256, without_byte_order_mark};

/// Maximum size of a template's file.
const MAX_BYTES: u64 = 64 * 1024;
/// Hexadecimal digits of a digest that identify a file's text.
const DIGEST_DIGITS: usize = 12;

/// A template that is built in, and the rules for files that override it.
pub struct TemplateSpec {
    /// The name of the file.
    pub name: &'static str,
    pub text: &'static str,
    /// The variables that every version must have.
    pub required: &'static [&'static str],
    /// Further variables that it may have.
    pub optional: &'static [&'static str],
    /// Returns the fault that the text has by a rule of its own.
    pub fault: fn(&str) -> Option<&'static str>,
}

/// A template in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: Cow<'static, str>,
    /// The operator's file; none if the template is built in.
    pub file: Option<PathBuf>,
}

impl Template {
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text with values for its variables, as [`fill`] does.
    pub fn fill(&self, values: &[(&str, &str)]) -> String {
        fill(&self.text, values)
    }

    /// Returns the first digits of the text's SHA-256 if an operator wrote it.
    pub fn digest(&self) -> Option<String> {
        self.file.as_ref().map(|_| hex(&sha256(&self.text))[..DIGEST_DIGITS].to_owned())
    }
}

/// Returns the templates in the order of their specs: the file in the directory, or else the built-in text.
///
/// # Errors
/// All faults of the files, each beginning with the name of the setting.
pub fn load<const N: usize>(
    setting: &str,
    directory: Option<&Path>,
    specs: &'static [TemplateSpec; N],
) -> Result<[Template; N], Vec<String>> {
    let mut templates = specs.each_ref().map(|spec| Template { text: Cow::Borrowed(spec.text.trim()), file: None });
    let Some(directory) = directory else { return Ok(templates) };
    let mut faults = Vec::new();
    match names_in(directory) {
        Err(error) => faults.push(format!("{setting}: {}: {error}", directory.display())),
        Ok(names) => {
            for name in names {
                let Some(place) = specs.iter().position(|spec| spec.name == name) else {
                    let known = specs.each_ref().map(|spec| spec.name).join(", ");
                    faults.push(format!("{setting}: {name}: is not the name of a template; these are: {known}"));
                    continue;
                };
                let path = directory.join(&name);
                match read(&path).and_then(|text| checked(&text, &specs[place])) {
                    Ok(text) => templates[place] = Template { text: Cow::Owned(text), file: Some(path) },
                    Err(fault) => faults.push(format!("{setting}: {name}: {fault}")),
                }
            }
        }
    }
    if faults.is_empty() { Ok(templates) } else { Err(faults) }
}

/// Returns a text with values for its variables. Variables without a value stay, also those in values.
pub fn fill(text: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = 0;
    for (start, name) in variables(text) {
        let Some((_, value)) = values.iter().find(|(known, _)| *known == name) else { continue };
        filled.push_str(&text[rest..start]);
        filled.push_str(value);
        rest = start + name.len() + 2;
    }
    filled.push_str(&text[rest..]);
    filled
}

/// Returns the names of the entries, in order. Those that begin with a dot are left out: version control and mounted
/// volumes keep their own files there.
fn names_in(directory: &Path) -> io::Result<Vec<String>> {
    let names = fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<_> = names.collect::<io::Result<_>>()?;
    names.retain(|name| !name.starts_with('.'));
    names.sort_unstable();
    Ok(names)
}

fn read(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    file.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("is larger than {} KiB", MAX_BYTES / 1024));
    }
    String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned())
}

/// Returns the text with plain line ends and without a byte order mark.
fn checked(text: &str, spec: &TemplateSpec) -> Result<String, String> {
    let text = without_byte_order_mark(text).replace("\r\n", "\n").trim().to_owned();
    if text.is_empty() {
        return Err("is empty".to_owned());
    }
    if text.contains(|character: char| character.is_control() && !matches!(character, '\n' | '\t')) {
        return Err("has control characters".to_owned());
    }
    let known = || spec.required.iter().chain(spec.optional);
    let names: Vec<_> = variables(&text).map(|(_, name)| name).collect();
    if let Some(unknown) = names.iter().find(|name| !known().any(|known| known == *name)) {
        let known: Vec<_> = known().map(|name| format!("{{{name}}}")).collect();
        return Err(format!("has the unknown variable {{{unknown}}}; known are {}", known.join(", ")));
    }
    if let Some(missing) = spec.required.iter().find(|required| !names.contains(required)) {
        return Err(format!("must have the variable {{{missing}}}"));
    }
    (spec.fault)(&text).map_or(Ok(()), |fault| Err(fault.to_owned()))?;
    Ok(text)
}

/// Returns the position and the name of each variable: lower-case letters between braces. Other braces are text.
fn variables(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('{').filter_map(|(start, _)| {
        let (name, _) = text[start + 1..].split_once('}')?;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        is_name.then_some((start, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    static SPECS: [TemplateSpec; 2] = [
        TemplateSpec {
            name: "a.txt",
            text: "built in {one}\n",
            required: &["one"],
            optional: &["two"],
            fault: |_| None,
        },
        TemplateSpec {
            name: "b.txt",
            text: "b",
            required: &[],
            optional: &[],
            fault: |text| text.contains("bad").then_some("is bad"),
        },
    ];

    fn loaded(files: &[(&str, &[u8])]) -> Result<[Template; 2], Vec<String>> {
        let directory = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs::write(directory.path().join(name), content).unwrap();
        }
        load("some.dir", Some(directory.path()), &SPECS)
    }

    #[test]
    fn files_override_built_in_texts() {
        let [built_in, other] = load("some.dir", None, &SPECS).unwrap();
        assert_eq!((built_in.text(), built_in.digest(), other.text()), ("built in {one}", None, "b"));
        let [own, other] = loaded(&[("a.txt", "\u{FEFF}mine {one}\r\n{two}\r\n".as_bytes()), (".git", b"x")]).unwrap();
        assert_eq!((own.text(), other.file), ("mine {one}\n{two}", None));
        assert_eq!(own.digest().unwrap(), hex(&sha256("mine {one}\n{two}"))[..12]);
    }

    #[test]
    fn variables_are_filled_once_and_other_braces_stay() {
        let [own, _] = loaded(&[("a.txt", b"{one}{two} {\"one\": 1} {} {One} {one")]).unwrap();
        assert_eq!(own.fill(&[("one", "{two}"), ("two", "2")]), "{two}2 {\"one\": 1} {} {One} {one");
    }

    #[test]
    fn all_faults_are_named() {
        let large = vec![b'x'; 64 * 1024 + 1];
        for (name, content, fault) in [
            ("c.txt", "x".as_bytes(), "c.txt: is not the name of a template; these are: a.txt, b.txt"),
            ("a.txt", b"x {three} {one}", "a.txt: has the unknown variable {three}; known are {one}, {two}"),
            ("a.txt", b"x {two}", "a.txt: must have the variable {one}"),
            ("a.txt", b"\xEF\xBB\xBF \n", "a.txt: is empty"),
            ("a.txt", b"{one}\x1B", "a.txt: has control characters"),
            ("b.txt", b"\xFF\xFEb\0", "b.txt: is not UTF-8 text"),
            ("b.txt", &large, "b.txt: is larger than 64 KiB"),
            ("b.txt", b"bad", "b.txt: is bad"),
        ] {
            assert_eq!(loaded(&[(name, content)]).unwrap_err(), [format!("some.dir: {fault}")]);
        }
        assert_eq!(loaded(&[("a.txt", b"x"), ("b.txt", b"bad"), ("d", b"")]).unwrap_err().len(), 3);
        let missing = load("some.dir", Some(Path::new("/nowhere/at all")), &SPECS).unwrap_err();
        assert!(missing[0].starts_with("some.dir: /nowhere/at all: No such file"), "{missing:?}");
    }
}
