//! Every statement of the operations also prepares on PostgreSQL.
//!
//! The statements are read from the sources: literals that begin with a verb of SQL, `concat!` and `format!` of them,
//! and the macros that complete them. `tests/postgresql/run` starts a server and runs this test.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

use crate::architecture;

const VERBS: [&str; 5] = ["select ", "insert ", "update ", "delete ", "with "];

/// The values of parts that are chosen at run time, by file and name. Each must be listed.
const CHOSEN: &[(&str, &str, &[&str])] = &[
    (
        "domain/messaging/notifications/inbox.rs",
        "table",
        &["notification_recipients", "notification_reads", "notification_read_blocks", "notification_marks"],
    ),
    ("domain/moderation/violations.rs", "column", &["violation_type", "content_type"]),
    (
        "domain/moderation/violations.rs",
        "condition",
        &[
            "cast(?1 as bigint) is null and cast(?2 as text) is null and cast(?3 as text) is null \
             and cast(?4 as bigint) is null and cast(?5 as bigint) is null",
            "user_id = ?1 and violation_type = ?2 and content_type || '' = ?3 and created_at >= ?4 and created_at < ?5",
            "user_id = ?1 and cast(?2 as text) is null and content_type = ?3 and created_at >= ?4 and created_at < ?5",
        ],
    ),
    (
        "domain/moderation/words/rows.rs",
        "condition",
        &[
            "cast(?1 as text) is null and cast(?2 as text) is null and cast(?3 as text) is null \
             and cast(?4 as text) is null",
            "type = ?1 and cast(?2 as text) is null and cast(?3 as text) is null and cast(?4 as text) is null",
            "cast(?1 as text) is null and (replace(word, ?2, '') <> word or replace(folded, ?3, '') <> folded) \
             and replace(' ' || tags || ' ', ?4, '') <> ' ' || tags || ' '",
            "type = ?1 and (replace(word, ?2, '') <> word or replace(folded, ?3, '') <> folded) \
             and cast(?4 as text) is null",
        ],
    ),
    ("domain/operations/network_log/blocks.rs", "order", &["asc", "desc"]),
    ("domain/operations/network_log/clients.rs", "of_client", &["", " and client_id = ?3"]),
];

/// The statements and macros of one file.
struct File<'source> {
    path: &'source str,
    constants: BTreeMap<String, String>,
    /// The bodies of macros, with `$rest` for their argument.
    macros: BTreeMap<String, TokenStream>,
    found: BTreeSet<String>,
}

impl File<'_> {
    fn walk(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            if is_word(&tokens[at], "macro_rules") {
                at += 4;
                continue;
            }
            if let Some((name, arguments)) = invocation(&tokens[at..]) {
                at += 3;
                if let Some(texts) = self.texts_of_macro(&name.to_string(), &arguments) {
                    self.keep(texts);
                } else {
                    self.walk(arguments);
                }
                continue;
            }
            match &tokens[at] {
                TokenTree::Group(group) => self.walk(group.stream()),
                token => self.keep(literal(token)),
            }
            at += 1;
        }
    }

    fn keep(&mut self, texts: impl IntoIterator<Item = String>) {
        self.found.extend(texts.into_iter().filter(|text| is_statement(text)));
    }

    /// Returns the texts to which a macro can expand, or none if it makes no text.
    fn texts_of_macro(&self, name: &str, arguments: &TokenStream) -> Option<Vec<String>> {
        match name {
            "concat" => Some(vec![split(arguments).iter().map(|part| self.text_of(part, None)).collect()]),
            "format" => Some(self.formatted(arguments)),
            _ => {
                let body = self.macros.get(name)?;
                let argument = (!arguments.is_empty()).then(|| self.text_of(arguments, None));
                Some(vec![self.text_of(body, argument.as_deref())])
            }
        }
    }

    /// Returns the text of a literal or of a macro that makes one.
    fn text_of(&self, tokens: &TokenStream, rest: Option<&str>) -> String {
        let tokens: Vec<_> = tokens.clone().into_iter().collect();
        if let Some((name, arguments)) = invocation(&tokens) {
            if name == "concat" {
                return split(&arguments).iter().map(|part| self.text_of(part, rest)).collect();
            }
            return self
                .texts_of_macro(&name.to_string(), &arguments)
                .and_then(|texts| texts.into_iter().next())
                .unwrap_or_default();
        }
        match tokens.as_slice() {
            [TokenTree::Punct(mark), TokenTree::Ident(_)] if mark.as_char() == '$' => {
                rest.unwrap_or_default().to_owned()
            }
            [token] => literal(token).unwrap_or_default(),
            _ => String::new(),
        }
    }

    /// Returns a format string with each combination of the values of its parts.
    fn formatted(&self, arguments: &TokenStream) -> Vec<String> {
        let mut arguments = split(arguments).into_iter();
        let Some(format) = arguments.next().map(|first| self.text_of(&first, None)) else { return Vec::new() };
        let completes = |name: &str| self.constants.get(name).is_some_and(|text| is_statement(text));
        let begins_with = format.strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(name, _)| name);
        if !is_statement(&format) && !begins_with.is_some_and(completes) {
            return Vec::new();
        }
        let mut texts = vec![format];
        while let Some(name) =
            texts.first().and_then(|text| text.split_once('{')?.1.split_once('}')).map(|(name, _)| name.to_owned())
        {
            let values = self.values_of(&name, &mut arguments);
            let part = format!("{{{name}}}");
            // A part without a name is an argument of its own each time.
            let uses = if name.is_empty() { 1 } else { usize::MAX };
            texts =
                texts.iter().flat_map(|text| values.iter().map(|value| text.replacen(&part, value, uses))).collect();
        }
        texts
    }

    fn values_of(&self, name: &str, arguments: &mut impl Iterator<Item = TokenStream>) -> Vec<String> {
        if let Some(constant) = self.constants.get(name) {
            return vec![constant.clone()];
        }
        if name.is_empty() {
            let text = arguments.next().map(|argument| self.text_of(&argument, None)).unwrap_or_default();
            if !text.is_empty() {
                return vec![text];
            }
        }
        let chosen = CHOSEN.iter().find(|(file, part, _)| *file == self.path && *part == name);
        let (_, _, values) =
            chosen.unwrap_or_else(|| panic!("{}: list the values of `{{{name}}}` in CHOSEN", self.path));
        values.iter().map(ToString::to_string).collect()
    }
}

fn is_statement(text: &str) -> bool {
    VERBS.iter().any(|verb| text.starts_with(verb))
}

fn is_word(token: &TokenTree, text: &str) -> bool {
    matches!(token, TokenTree::Ident(word) if word == text)
}

/// Returns the name and arguments of a macro invocation at the start of the tokens.
fn invocation(tokens: &[TokenTree]) -> Option<(&Ident, TokenStream)> {
    match tokens {
        [TokenTree::Ident(name), TokenTree::Punct(mark), TokenTree::Group(arguments), ..] if mark.as_char() == '!' => {
            Some((name, arguments.stream()))
        }
        _ => None,
    }
}

fn literal(token: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = token else { return None };
    let text = literal.to_string();
    let text = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut lines = text.split("\\\n");
    let first = lines.next()?.to_owned();
    Some(lines.fold(first, |joined, line| joined + line.trim_start()).replace("\\\"", "\""))
}

/// Splits arguments at their commas.
fn split(arguments: &TokenStream) -> Vec<TokenStream> {
    let mut parts = vec![TokenStream::new()];
    for token in arguments.clone() {
        match &token {
            TokenTree::Punct(mark) if mark.as_char() == ',' => parts.push(TokenStream::new()),
            _ => parts.last_mut().unwrap().extend([token]),
        }
    }
    parts
}

/// Returns the bodies of the macros of one rule that a file defines.
fn macros_in(tokens: &TokenStream) -> BTreeMap<String, TokenStream> {
    let tokens: Vec<_> = tokens.clone().into_iter().collect();
    let mut macros = BTreeMap::new();
    for window in tokens.windows(4) {
        let [TokenTree::Ident(word), _, TokenTree::Ident(name), TokenTree::Group(rules)] = window else { continue };
        let body = rules.stream().into_iter().filter_map(|token| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group.stream()),
            _ => None,
        });
        if word == "macro_rules" {
            macros.extend(body.last().map(|body| (name.to_string(), body)));
        }
    }
    macros
}

/// Returns the constants and variables of a file that are a literal, and the constants that are a `concat!`.
fn constants_in(tokens: TokenStream, macros: &BTreeMap<String, TokenStream>) -> BTreeMap<String, String> {
    let file = File { path: "", constants: BTreeMap::new(), macros: macros.clone(), found: BTreeSet::new() };
    let mut constants = BTreeMap::new();
    let mut streams = vec![tokens];
    while let Some(stream) = streams.pop() {
        let tokens: Vec<_> = stream.into_iter().collect();
        for declaration in tokens.split(|token| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ';')) {
            let start = declaration
                .iter()
                .rposition(|token| matches!(token, TokenTree::Ident(word) if word == "const" || word == "let"));
            let Some([TokenTree::Ident(name), rest @ ..]) = start.map(|start| &declaration[start + 1..]) else {
                continue;
            };
            let Some(equals) =
                rest.iter().position(|token| matches!(token, TokenTree::Punct(mark) if mark.as_char() == '='))
            else {
                continue;
            };
            let value = &rest[equals + 1..];
            if invocation(value).is_some_and(|(name, _)| name == "format") {
                continue;
            }
            let text = file.text_of(&value.iter().cloned().collect(), None);
            if !text.is_empty() {
                constants.insert(name.to_string(), text);
            }
        }
        streams.extend(tokens.into_iter().filter_map(|token| match token {
            TokenTree::Group(group) => Some(group.stream()),
            _ => None,
        }));
    }
    constants
}

/// Returns every statement of the operations with the file that has it.
fn statements() -> Vec<(String, String)> {
    let mut all = Vec::new();
    let files: Vec<(String, TokenStream)> = architecture::product_code()
        .filter(|(path, _)| path.starts_with("domain/"))
        .map(|(path, code)| (path, code.parse().unwrap()))
        .collect();
    // Modules use macros of their parents; a file's own come first.
    let shared: BTreeMap<_, _> = files.iter().flat_map(|(_, tokens)| macros_in(tokens)).collect();
    for (path, tokens) in files {
        let mut macros = shared.clone();
        macros.extend(macros_in(&tokens));
        let constants = constants_in(tokens.clone(), &macros);
        let mut file = File { path: &path, constants, macros, found: BTreeSet::new() };
        file.walk(tokens);
        all.extend(file.found.into_iter().map(|statement| (path.clone(), statement)));
    }
    all
}

/// Returns the statements of the SQLite schema that make tables and indexes, as PostgreSQL understands them.
pub fn translated(schema: &str) -> String {
    let without_comments: String =
        schema.lines().map(|line| line.split("--").next().unwrap_or_default().to_owned() + "\n").collect();
    let mut translated = String::new();
    for statement in without_comments.split(";\n").map(str::trim) {
        if !["create table", "create index", "create unique index", "alter table"]
            .iter()
            .any(|start| statement.starts_with(start))
        {
            continue;
        }
        let statement = statement
            .replace(") strict, without rowid", ")")
            .replace(") strict", ")")
            .replace("integer primary key autoincrement", "bigint generated by default as identity primary key")
            .replace("integer primary key", "bigint generated by default as identity primary key")
            .replace(" integer", " bigint")
            .replace(" blob", " bytea")
            .replace(" text", " text collate \"C\"")
            // A column of this name.
            .replace(" text collate \"C\" text", " text text")
            .replace(" real", " double precision")
            .replace("lines not glob '*[^6-9]*'", "lines ~ '^[6-9]*$'");
        translated += &statement;
        translated += ";\n";
    }
    translated
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn every_statement_prepares_on_postgresql() {
    let database = env::var("YARROW_TEST_DATABASE").expect("YARROW_TEST_DATABASE names a database");
    let statements = statements();
    assert!(statements.len() > 400, "only {} statements were found", statements.len());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut script = String::from("\\set VERBOSITY terse\nbegin;\n\\set ON_ERROR_STOP 1\n");
    for schema in ["schema.sql", "network-log.sql", "network-log-2.sql"] {
        script += &translated(&fs::read_to_string(root.join(schema)).unwrap());
    }
    script += "\\set ON_ERROR_STOP 0\n";
    let first = script.lines().count();
    for (_, statement) in &statements {
        let numbered = statement.replace('?', "$").replace('\n', " ");
        script.extend(["savepoint each; prepare statement as ", &numbered, "; rollback to each; deallocate all;\n"]);
    }
    script += "select 'all were tried'";
    let mut psql = Command::new("psql")
        .args(["--no-psqlrc", "--quiet", "--tuples-only", "--file", "-", &database])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = psql.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(script.as_bytes()).unwrap());
    let output = psql.wait_with_output().unwrap();
    writer.join().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("all were tried"), "{errors}");
    let failure_of = |line: &str| {
        let (place, error) = line.split_once(": ERROR:")?;
        let line: usize = place.rsplit(':').next()?.parse().ok()?;
        let (path, statement) = &statements[line - first - 1];
        Some(format!("{path}: {statement}\n    {}", error.trim()))
    };
    let failures: Vec<_> = errors.lines().filter_map(failure_of).collect();
    assert!(
        failures.is_empty(),
        "{} of {} statements fail:\n{}",
        failures.len(),
        statements.len(),
        failures.join("\n")
    );
}
