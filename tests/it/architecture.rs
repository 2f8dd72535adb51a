//! Boundaries between modules, checked by text search over the sources.
//!
//! A small lexer blanks comments, literals and tests, so that words in them do not count.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    ops::Range,
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// A file of `src`.
struct Source {
    /// Relative to `src`, with slashes: `domain/identity/users.rs`.
    path: String,
    text: String,
    /// The text with comments, literals and tests replaced by spaces.
    code: String,
    /// The literals outside of tests.
    literals: Vec<String>,
}

impl Source {
    fn read(root: &Path, file: &Path) -> Self {
        let path = file.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(file).unwrap();
        let Lexed { mut code, literals } = lex(&text);
        let tests = test_items(&code);
        let is_test = |range: &Range<usize>| tests.iter().any(|test| test.contains(&range.start));
        let literals = literals.into_iter().filter(|range| !is_test(range)).map(|range| text[range].to_owned());
        let literals = literals.collect();
        for range in tests {
            blank(&mut code, range);
        }
        Self { path, text, code: String::from_utf8(code).unwrap(), literals }
    }

    fn is_below(&self, places: &[&str]) -> bool {
        places.iter().any(|place| if place.ends_with('/') { self.path.starts_with(place) } else { self.path == *place })
    }

    /// Returns the words of the code with the text directly before and after them, without white space.
    fn words(&self) -> Vec<Word<'_>> {
        let is_part = |character: char| character.is_alphanumeric() || character == '_';
        let mut words = Vec::new();
        let (mut rest, mut line) = (self.code.as_str(), 1);
        while let Some(start) = rest.find(is_part) {
            let after = &rest[start..];
            let end = after.find(|character| !is_part(character)).unwrap_or(after.len());
            let offset = self.code.len() - after.len();
            line += rest[..start].matches('\n').count();
            let (before, after) = (self.code[..offset].trim_end(), after[end..].trim_start());
            words.push(Word { text: &self.code[offset..offset + end], before, after, line });
            rest = &self.code[offset + end..];
        }
        words
    }

    fn line(&self, line: usize) -> String {
        let text = self.text.lines().nth(line - 1).unwrap_or_default().trim();
        format!("src/{}:{line}: {text}", self.path)
    }

    /// Returns the files of modules that this file declares for tests only.
    fn test_files(&self) -> Vec<String> {
        let directory = match self.path.strip_suffix("mod.rs") {
            Some(directory) => directory.to_owned(),
            None => format!("{}/", self.path.trim_end_matches(".rs")),
        };
        let declared = self.text.split("#[cfg(test)]").skip(1).filter_map(|item| item.trim().strip_prefix("mod "));
        declared
            .filter_map(|item| item.split_once(';'))
            .filter(|(name, _)| name.chars().all(|character| character.is_alphanumeric() || character == '_'))
            .map(|(name, _)| format!("{directory}{name}.rs"))
            .collect()
    }

    /// Returns the subject of a file in `domain`: the file or folder below its area. Files directly in the moderation
    /// area belong to `moderation`.
    fn subject(&self) -> Option<&str> {
        let (area, below) = self.path.strip_prefix("domain/")?.split_once('/')?;
        let subject = below.split('/').next()?.trim_end_matches(".rs");
        match (area, subject) {
            ("moderation", "words" | "violations") => Some(subject),
            ("moderation", _) => Some(area),
            (_, "mod") => None,
            _ => Some(subject),
        }
    }
}

struct Word<'source> {
    text: &'source str,
    before: &'source str,
    after: &'source str,
    line: usize,
}

struct Lexed {
    code: Vec<u8>,
    literals: Vec<Range<usize>>,
}

/// Returns all files of `src` except test modules and their submodules.
fn sources() -> &'static [Source] {
    static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files = Vec::new();
        collect(&root, &mut files);
        files.sort();
        let sources: Vec<_> = files.iter().map(|file| Source::read(&root, file)).collect();
        let tests: Vec<_> = sources.iter().flat_map(Source::test_files).collect();
        let below: Vec<_> = tests.iter().map(|path| format!("{}/", path.trim_end_matches(".rs"))).collect();
        let is_test =
            |path: &str| tests.iter().any(|test| test == path) || below.iter().any(|test| path.starts_with(test));
        sources.into_iter().filter(|source| !is_test(&source.path)).collect()
    });
    &SOURCES
}

/// Returns all string literals in `src` outside of tests, as the compiler reads them.
pub fn texts() -> impl Iterator<Item = String> {
    let joined = |literal: &String| literal.split("\\\n").map(str::trim_start).collect::<String>();
    sources().iter().flat_map(move |source| source.literals.iter().map(joined))
}

/// Returns the path and the text without tests of each file in `src`.
pub fn product_code() -> impl Iterator<Item = (String, String)> {
    sources().iter().map(|source| {
        let mut text = source.text.clone().into_bytes();
        for range in test_items(&lex(&source.text).code) {
            blank(&mut text, range);
        }
        (source.path.clone(), String::from_utf8(text).unwrap())
    })
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn blank(code: &mut [u8], range: Range<usize>) {
    for byte in &mut code[range] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

/// Replaces comments and literals by spaces, and returns the literals' ranges.
fn lex(text: &str) -> Lexed {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut literals = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let is_in_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        let raw = (!is_in_word).then(|| raw_string(text, at)).flatten();
        let (end, is_literal) = match bytes[at] {
            b'/' if text[at..].starts_with("//") => (text[at..].find('\n').map_or(bytes.len(), |end| at + end), false),
            b'/' if text[at..].starts_with("/*") => {
                (text[at..].find("*/").map_or(bytes.len(), |end| at + end + 2), false)
            }
            b'"' => (end_of_string(bytes, at), true),
            b'r' | b'b' if raw.is_some() => (raw.unwrap_or_default(), true),
            b'\'' => (end_of_character(text, at), true),
            _ => {
                at += 1;
                continue;
            }
        };
        if is_literal {
            literals.push(at..end);
        }
        blank(&mut code, at..end);
        at = end;
    }
    Lexed { code, literals }
}

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// Returns the end of a raw string.
fn raw_string(text: &str, start: usize) -> Option<usize> {
    let rest = text[start..].strip_prefix('b').unwrap_or(&text[start..]).strip_prefix('r')?;
    let marks = rest.len() - rest.trim_start_matches('#').len();
    let body = rest[marks..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(marks));
    let opened = text.len() - body.len();
    body.find(&close).map(|end| opened + end + close.len())
}

/// Returns the end of a character literal. Of a lifetime only the quote is skipped.
fn end_of_character(text: &str, start: usize) -> usize {
    let mut characters = text[start + 1..].char_indices();
    let first = characters.next();
    let after_escape = matches!(first, Some((_, '\\'))).then(|| characters.next());
    match (first, after_escape, characters.next()) {
        (Some(_), None, Some((end, '\''))) => start + 1 + end + 1,
        (Some(_), Some(_), _) => start + 3 + text[start + 3..].find('\'').unwrap_or(0) + 1,
        _ => start + 1,
    }
}

/// Returns the ranges of items compiled for tests only.
fn test_items(code: &[u8]) -> Vec<Range<usize>> {
    let text = std::str::from_utf8(code).unwrap();
    let marks = text.match_indices("#[cfg(test)]").map(|(start, _)| start);
    marks.map(|start| start..end_of_item(code, start + "#[cfg(test)]".len())).collect()
}

fn end_of_item(code: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in code[start..].iter().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return start + offset + 1,
            b'}' => depth -= 1,
            b';' if depth == 0 => return start + offset + 1,
            _ => {}
        }
    }
    code.len()
}

/// Panics with the rule and all violations, if there are any.
#[track_caller]
fn assert_none(places: &[String], rule: &str) {
    assert!(places.is_empty(), "{rule}:\n{}", places.join("\n"));
}

/// Returns the uses of a word outside of `allowed`.
fn uses_outside(allowed: &[&str], is_use: impl Fn(&Word<'_>) -> bool) -> Vec<String> {
    let mut places = Vec::new();
    for source in sources().iter().filter(|source| !source.is_below(allowed)) {
        places.extend(source.words().iter().filter(|word| is_use(word)).map(|word| source.line(word.line)));
    }
    places
}

#[test]
fn ignores_comments_literals_and_tests() {
    let text = "fn f<'a>(c: char) { g('\"', '\\'', r#\"raw \" sql\"#, \"a \\\" b\"); } // comment\n\
                #[cfg(test)]\nmod tests { fn hidden() {} }\nfn seen() { /* gone */ }\n";
    let lexed = lex(text);
    let literals: Vec<_> = lexed.literals.iter().map(|range| &text[range.clone()]).collect();
    assert_eq!(literals, ["'", "'\"'", "'\\''", "r#\"raw \" sql\"#", "\"a \\\" b\""]);
    let mut code = lexed.code;
    for range in test_items(&code) {
        blank(&mut code, range);
    }
    let code = String::from_utf8(code).unwrap();
    assert!(code.contains("seen") && code.contains("fn f<"), "{code}");
    for gone in ["hidden", "comment", "gone", "raw", "sql"] {
        assert!(!code.contains(gone), "{code}");
    }
    assert!(sources().len() > 50);
}

#[test]
fn no_two_public_types_share_a_name() {
    let mut places = BTreeMap::<&str, Vec<String>>::new();
    for source in sources() {
        for word in source.words().iter().filter(|word| is_type_declaration(word.before)) {
            places.entry(word.text).or_default().push(format!("src/{}: {}", source.path, word.text));
        }
    }
    assert!(places.len() > 500, "{}", places.len());
    let repeated: Vec<_> = places.into_values().filter(|found| found.len() > 1).flatten().collect();
    assert_none(&repeated, "no two public types may share a name");
}

/// Returns true if the code before a name declares it as a type that other modules can use.
fn is_type_declaration(before: &str) -> bool {
    let declarations = ["struct", "enum", "trait", "type"];
    let before = before.trim_end();
    let kind = declarations.iter().find(|kind| before.ends_with(*kind));
    kind.is_some_and(|kind| {
        let visibility = before[..before.len() - kind.len()].trim_end();
        visibility.ends_with("pub") || visibility.ends_with("pub(crate)")
    })
}

#[test]
fn only_http_uses_the_web_framework_and_async() {
    let words = ["axum", "hyper", "hyper_util", "tokio", "tokio_stream", "tower", "tower_http", "async", "await"];
    let uses = uses_outside(&["http/", "providers/http2.rs", "store/postgres/"], |word| words.contains(&word.text));
    assert_none(
        &uses,
        "axum, hyper, tower, tokio and async are allowed in src/http, in the client of HTTP/2 and in that of PostgreSQL \
         only; operations are plain functions",
    );
}

#[test]
fn only_cli_and_config_use_clap() {
    let uses = uses_outside(&["cli/", "config/"], |word| word.text == "clap");
    assert_none(&uses, "clap is allowed in src/cli and src/config only");
}

#[test]
fn every_table_fits_the_terminal() {
    let uses = uses_outside(&["cli/table.rs"], |word| word.text == "comfy_table");
    assert_none(&uses, "only src/cli/table.rs draws tables, because it knows the terminal width");
}

#[test]
fn only_providers_use_the_http_client() {
    let uses = uses_outside(&["providers/"], |word| ["ureq", "TcpStream", "UdpSocket"].contains(&word.text));
    let uses: Vec<_> = uses.into_iter().filter(|place| !place.starts_with("src/http/")).collect();
    assert_none(&uses, "outgoing requests are allowed in src/providers only");
}

#[test]
fn only_the_store_opens_connections_and_only_domain_writes_sql() {
    let uses = uses_outside(&["store/sqlite/"], |word| ["rusqlite", "libsqlite3_sys"].contains(&word.text));
    assert_none(&uses, "rusqlite is allowed in src/store/sqlite only");
    let uses = uses_outside(&["store/"], |word| word.text.starts_with("r2d2"));
    assert_none(&uses, "the connection pool is allowed in src/store only");
}

/// Returns each table and the only subject that may use it in SQL, as the schemas declare.
fn owners() -> BTreeMap<String, String> {
    let read = |name| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    let schema = ["schema.sql", "network-log.sql", "network-log-2.sql"].map(read).join("\n");
    let mut owner = None;
    let mut owners = BTreeMap::new();
    for line in schema.lines() {
        if let Some(named) = line.strip_prefix("-- Owner: ") {
            owner = named.split(['.', ' ']).next().map(ToOwned::to_owned);
        } else if let Some(table) = line.strip_prefix("create table ") {
            let table = table.split([' ', '(']).next().unwrap();
            let owner = owner.clone().unwrap_or_else(|| panic!("table {table} has no owner"));
            owners.insert(table.to_owned(), owner);
        }
    }
    owners
}

#[test]
fn only_the_owner_of_a_table_uses_it_in_sql() {
    let owners = owners();
    assert!(owners.len() > 5);
    let mut places = Vec::new();
    for source in sources().iter().filter(|source| !source.is_below(&["store/"])) {
        for literal in &source.literals {
            let literal = literal.replace("\\\n", " ").to_lowercase();
            let words: Vec<_> =
                literal.split(|character: char| !character.is_alphanumeric() && character != '_').collect();
            let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
            for pair in words.windows(2) {
                let [verb, table] = pair else { continue };
                let names_table = ["from", "into", "join", "update", "table"].contains(verb);
                let is_sql = words.iter().any(|word| ["select", "insert", "delete", "set", "create"].contains(word));
                if let Some(owner) = owners.get(*table).filter(|_| names_table && is_sql)
                    && source.subject() != Some(owner)
                {
                    places.push(format!("src/{}: {literal}", source.path));
                }
            }
        }
    }
    assert_none(&places, "only the owner of a table (see schema.sql) may use it in SQL; other modules call the owner");
}

#[test]
fn every_table_owner_exists_and_uses_its_table() {
    let sources = sources();
    for (table, owner) in owners() {
        let mut files = sources.iter().filter(|source| source.subject() == Some(&owner));
        assert!(files.any(|source| source.literals.iter().any(|text| text.contains(&table))), "{table}: {owner}");
    }
}

#[test]
fn only_the_command_line_prints() {
    let is_print = |word: &Word<'_>| match word.text {
        "println" | "eprintln" | "print" | "eprint" | "dbg" => word.after.starts_with('!'),
        "stdout" | "stderr" => true,
        _ => false,
    };
    let uses = uses_outside(&["cli/", "main.rs"], is_print);
    assert_none(&uses, "only src/cli and src/main.rs may print");
}

#[test]
fn only_operators_get_sentences_in_english_alone() {
    // Their errors are shown by commands and in the log, not in responses.
    let allowed = [
        "cli/",
        "config/",
        "store/",
        "keys.rs",
        "error.rs",
        "providers/factory.rs",
        "domain/operations/backups/",
        "domain/operations/data_dir.rs",
        "domain/operations/database_copy.rs",
        "domain/operations/imports.rs",
        "domain/operations/imports/",
        "http/listener.rs",
        "http/tls/",
    ];
    let found = uses_outside(&allowed, |word| word.text == "english_detail");
    assert_none(&found, "errors of responses have a sentence in each language");
}

#[test]
fn only_config_reads_the_environment() {
    let uses = uses_outside(&["config/"], |word| word.text == "env" && !word.after.starts_with('!'));
    assert_none(&uses, "only src/config may read the environment");
}

#[test]
fn only_the_clock_reads_the_time() {
    let clocks = ["SystemTime::", "Timestamp::", "Zoned::", "Utc::", "Local::"];
    let is_now = |word: &Word<'_>| word.text == "now" && clocks.iter().any(|clock| word.before.ends_with(clock));
    let uses = uses_outside(&["clock.rs"], is_now);
    assert_none(&uses, "only src/clock.rs may read the system clock");
}

#[test]
fn only_tests_panic() {
    let is_panic = |word: &Word<'_>| match word.text {
        "unwrap" | "expect" | "unwrap_err" | "expect_err" => word.before.ends_with(['.', ':']),
        "panic" | "todo" | "unimplemented" | "unreachable" => word.after.starts_with('!'),
        "unsafe" => true,
        _ => false,
    };
    let uses = uses_outside(&[], is_panic);
    assert_none(&uses, "unwrap, expect, panic and unsafe are allowed in tests only; other code returns errors");
}

/// Returns the uses of a module of the crate outside of `allowed`.
fn module_uses_outside(allowed: &[&str], modules: &[&str]) -> Vec<String> {
    uses_outside(allowed, |word| {
        modules.contains(&word.text) && (word.before.ends_with("crate::") || word.before.ends_with("yarrow::"))
    })
}

#[test]
fn only_http_and_cli_use_http_cli_and_jobs() {
    let uses = module_uses_outside(&["http/", "cli/", "main.rs"], &["http", "cli", "jobs"]);
    assert_none(&uses, "only src/http and src/cli may use src/http, src/cli and src/jobs.rs");
}

#[test]
fn operations_use_core_and_services_instead_of_app() {
    let above = ["app.rs", "jobs.rs", "http/", "cli/", "main.rs", "lib.rs"];
    let uses = uses_outside(&above, |word| word.text == "App");
    assert_none(&uses, "operations take Core or a service; App composes them and lies above src/domain");
}

#[test]
fn lower_layers_do_not_use_higher_ones() {
    let higher = ["app", "cli", "core", "domain", "http", "jobs"];
    for (layer, others) in
        [("store/", ["providers"].as_slice()), ("providers/", &["store"]), ("types/", &["store", "providers"])]
    {
        let forbidden = [&higher, others].concat();
        let uses = module_uses_outside(&[], &forbidden);
        let uses: Vec<_> = uses.into_iter().filter(|place| place.starts_with(&format!("src/{layer}"))).collect();
        assert_none(&uses, &format!("src/{layer} may not use {forbidden:?}"));
    }
}

#[test]
fn no_todo_markers_remain() {
    let words = ["todo", "fixme", "xxx", "hack", "wip", "stub", "stubbed", "mock", "dummy", "placeholder", "throwaway"];
    let mut places = Vec::new();
    for source in sources() {
        for (index, line) in source.text.lines().enumerate() {
            let lower = line.to_lowercase();
            let mut found = lower.split(|character: char| !character.is_alphanumeric() && character != '_');
            // An attribute of form fields.
            let is_attribute = lower.contains(" placeholder=(");
            if found.any(|word| words.contains(&word) && !is_attribute) || lower.contains("/tmp/") {
                places.push(source.line(index + 1));
            }
        }
    }
    assert_none(&places, "src must not contain unfinished code or machine paths");
}

/// Returns the imports of each module. Modules that only declare others are left out, and so is `domain`. Any other
/// module counts as one with its submodules. `error` and `types` are one layer and count as one.
fn import_graph() -> BTreeMap<String, BTreeSet<String>> {
    let modules: BTreeMap<Vec<String>, &Source> = sources().iter().map(|source| (source.module(), source)).collect();
    let node = |path: &[String]| match path.first()?.as_str() {
        "error" => Some("types".to_owned()),
        first => {
            let mut lengths = (if first == "domain" { 2 } else { 1 })..=path.len();
            let code = lengths.find(|length| modules.get(&path[..*length]).is_some_and(|module| module.has_code()));
            code.map(|length| path[..length].join("::"))
        }
    };
    let mut graph = BTreeMap::<_, BTreeSet<_>>::new();
    for (module, source) in &modules {
        let Some(from) = node(module) else { continue };
        let to = source.imports().into_iter().filter_map(|path| node(&absolute(module, path, &modules)?));
        graph.entry(from.clone()).or_default().extend(to.filter(|to| *to != from));
    }
    graph
}

/// Resolves an import to a path from the crate root, or to `None` for other crates.
fn absolute(module: &[String], path: Vec<String>, modules: &BTreeMap<Vec<String>, &Source>) -> Option<Vec<String>> {
    let supers = path.iter().take_while(|segment| *segment == "super").count();
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([module, &path[1..]].concat()),
        "super" => Some([&module[..module.len().checked_sub(supers)?], &path[supers..]].concat()),
        first => {
            let child = [module, &[first.to_owned()]].concat();
            modules.contains_key(&child).then(|| [module, &path].concat())
        }
    }
}

impl Source {
    fn module(&self) -> Vec<String> {
        let path = self.path.trim_end_matches(".rs").trim_end_matches("/mod");
        if path == "lib" { Vec::new() } else { path.split('/').map(str::to_owned).collect() }
    }

    /// Returns true unless the file only declares and re-exports modules.
    fn has_code(&self) -> bool {
        self.code.split_inclusive([';', '}']).any(|item| {
            let item = item.trim().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
            !item.is_empty() && !item.starts_with("mod ") && !item.starts_with("use ") && !item.starts_with(['}', ';'])
        })
    }

    /// Returns the paths of all `use` items, and all other paths that begin with `crate` or `super`.
    fn imports(&self) -> Vec<Vec<String>> {
        let mut imports = Vec::new();
        let (mut rest, is_part) =
            (self.code.as_str(), |character: char| character.is_alphanumeric() || character == '_');
        while let Some(start) = rest.find(is_part) {
            let word = &rest[start..];
            let end = word.find(|character| !is_part(character)).unwrap_or(word.len());
            rest = &word[end..];
            match &word[..end] {
                "use" if rest.starts_with(' ') => {
                    let tree = rest.split(';').next().unwrap_or_default();
                    expand(&[], tree, &mut imports);
                    rest = &rest[tree.len()..];
                }
                "crate" | "super" if rest.starts_with("::") => {
                    let path = word.find(|character| !is_part(character) && character != ':').unwrap_or(word.len());
                    imports.push(word[..path].split("::").map(str::to_owned).collect());
                    rest = &word[path..];
                }
                _ => {}
            }
        }
        imports
    }
}

/// Expands `a::{b, c::d}` to `a::b` and `a::c::d`.
fn expand(prefix: &[String], tree: &str, paths: &mut Vec<Vec<String>>) {
    let Some((path, members)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default().split("::").map(|segment| segment.trim().to_owned());
        let own = path.filter(|segment| !segment.is_empty() && segment != "self");
        return paths.push(prefix.iter().cloned().chain(own).collect());
    };
    let path = path.split("::").map(|segment| segment.trim().to_owned()).filter(|segment| !segment.is_empty());
    let prefix: Vec<_> = prefix.iter().cloned().chain(path).collect();
    let (mut depth, mut start) = (0, 0);
    for (at, character) in members.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                if !members[start..at].trim().is_empty() {
                    expand(&prefix, &members[start..at], paths);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// Returns a chain of imports from a module back to itself.
fn cycle(graph: &BTreeMap<String, BTreeSet<String>>, start: &str) -> Option<String> {
    let (mut queue, mut seen) = (VecDeque::from([vec![start.to_owned()]]), BTreeSet::new());
    while let Some(path) = queue.pop_front() {
        for next in graph.get(path.last()?)? {
            if next == start {
                return Some([path.join(" → "), start.to_owned()].join(" → "));
            }
            if seen.insert(next) && graph.contains_key(next) {
                queue.push_back([path.as_slice(), std::slice::from_ref(next)].concat());
            }
        }
    }
    None
}

#[test]
fn modules_do_not_import_each_other_in_a_cycle() {
    let graph = import_graph();
    assert!(graph.len() > 50 && graph["http::routes"].contains("http::endpoint"), "{}", graph.len());
    let cycles: Vec<_> = graph.keys().filter_map(|module| cycle(&graph, module)).collect();
    assert_none(&cycles, "modules must not import each other in a cycle");
}
