//! The documents match the program: settings, defaults, commands and tests.

use std::{collections::BTreeSet, fs, path::Path};

use regex::Regex;
use yarrow::config::{DECLARATIONS, Declaration};

use crate::commands::{all, helps};

/// Documents for operators and app developers.
const DOCUMENTS: [&str; 22] = [
    "README.md",
    "CONTRIBUTING.md",
    "docs/administration.md",
    "docs/api.md",
    "docs/architecture.md",
    "docs/backup-restore.md",
    "docs/configuration.md",
    "docs/glossary.md",
    "docs/operating.md",
    "docs/performance.md",
    "docs/privacy.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "packaging/RELEASE.md",
    "packaging/UPGRADING.md",
    "packaging/container/Containerfile",
    "packaging/deb/yarrow.toml.head",
    "packaging/fail2ban/filter.d/yarrow.conf",
    "packaging/fail2ban/jail.d/yarrow.conf",
    "packaging/proxy/Caddyfile",
    "packaging/proxy/nginx.conf",
    "packaging/systemd/yarrow.service",
];
/// Words that look like settings: a section and a request field.
const NO_SETTINGS: [&str; 17] = [
    "email.http",
    "sms.http",
    "sms.tencent",
    "push.apns",
    "push.fcm",
    "push.http",
    "auth.apple",
    "auth.google",
    "auth.one_tap",
    "auth.wechat",
    "llm.fallback",
    "notifications.promotion",
    "payment.alipay",
    "payment.apple",
    "payment.google",
    "payment.stripe",
    "payment.wechat",
];

fn document(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

fn default_of(setting: &str) -> Option<&'static str> {
    DECLARATIONS.iter().find(|declared| declared.name() == setting).map(|declared| declared.default)
}

#[test]
fn every_documented_setting_exists() {
    let sections: BTreeSet<_> = DECLARATIONS.iter().map(|declared| declared.section.replace('.', r"\.")).collect();
    let sections = sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("|");
    let setting = Regex::new(&format!(r"(?:^|[^\w/.@-])((?:{sections})\.[a-z0-9_]+)(?:[^\w/(]|$)")).unwrap();
    let variable = Regex::new("YARROW_[A-Z0-9_]*[A-Z0-9]").unwrap();
    let variables: BTreeSet<_> = DECLARATIONS.iter().map(Declaration::variable).collect();
    let mut named = 0;
    for name in DOCUMENTS {
        let text = document(name);
        for found in setting.captures_iter(&text).map(|found| found.get(1).unwrap().as_str()) {
            assert!(
                default_of(found).is_some() || NO_SETTINGS.contains(&found),
                "{name}: setting {found} does not exist"
            );
            named += 1;
        }
        for found in variable.find_iter(&text).map(|found| found.as_str()) {
            let is_known = variables.contains(found.strip_suffix("_FILE").unwrap_or(found)) || found == "YARROW_CONFIG";
            assert!(is_known, "{name}: variable {found} does not exist");
            named += 1;
        }
    }
    assert!(named > 60, "{named}");
}

#[test]
fn documented_limits_match_the_defaults() {
    let page = document("docs/operating.md");
    let table = page.split("\n## Limits\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: Vec<_> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 10, "{rows:#?}");
    for row in rows {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").collect();
        let settings: Vec<_> = cells[1].split('`').skip(1).step_by(2).collect();
        let reported = cells[2].trim_end_matches(" each");
        let reported = if reported == "none" { vec![""; settings.len()] } else { reported.split(", ").collect() };
        let defaults: Vec<_> = settings.iter().map(|setting| default_of(setting).unwrap_or("no setting")).collect();
        assert_eq!(reported, defaults, "{row}");
    }
}

/// Returns the code of a document: fenced blocks and words in backticks.
fn code_in(text: &str) -> Vec<String> {
    let fenced: Vec<_> = text.split("```").collect();
    let blocks = fenced.iter().skip(1).step_by(2).flat_map(|block| block.lines()).map(ToOwned::to_owned);
    let prose = fenced.iter().step_by(2).flat_map(|prose| prose.split('`').skip(1).step_by(2));
    blocks.chain(prose.map(|words| words.split_whitespace().collect::<Vec<_>>().join(" "))).collect()
}

/// Returns the error in a command line, in which capitals are placeholders.
fn command_error(line: &str, commands: &[String]) -> Option<String> {
    let mut path = String::new();
    let mut rest = line.split(' ').peekable();
    let leads_on =
        |path: &str| commands.iter().any(|command| *command == path || command.starts_with(&format!("{path} ")));
    while let Some(word) = rest.peek() {
        let longer = format!("{path} {word}").trim_start().to_owned();
        if !leads_on(&longer) {
            break;
        }
        path = longer;
        rest.next();
    }
    let options: Vec<_> = rest.clone().filter(|word| word.starts_with("--") && *word != "--help").collect();
    if path.is_empty() || !commands.contains(&path) && rest.peek().is_some_and(|word| !word.starts_with("--")) {
        return Some("there is no such command".to_owned());
    }
    let words = helps()[&path].split_whitespace().map(|word| word.split_once('[').map_or(word, |(option, _)| option));
    let known: Vec<_> = words.map(|word| word.trim_end_matches(',')).collect();
    let name =
        |option: &str| option.split_once('=').map_or(option, |(name, _)| name).trim_end_matches([',', ']']).to_owned();
    let unknown = options.into_iter().find(|option| !known.contains(&name(option).as_str()));
    unknown.map(|option| format!("there is no {option}"))
}

#[test]
fn every_documented_command_exists() {
    let commands: Vec<_> = all().cloned().collect();
    let shown = Regex::new(r"(?:^|[ /])yarrow(?:ctl)? ([a-z][^#|&;`]*)").unwrap();
    let mut checked = 0;
    for name in DOCUMENTS {
        for line in code_in(&document(name)).iter().filter_map(|code| shown.captures(code)) {
            let line = line[1].replace(['[', ']'], "");
            // The first belongs to another command. In the second, `sudo` names the user.
            if !line.starts_with("help") && !line.starts_with("yarrow ") {
                assert_eq!(command_error(line.trim(), &commands), None, "{name}: yarrow {line}");
                checked += 1;
            }
        }
    }
    assert!(checked > 80, "{checked}");
    assert!(
        command_error("coins grand 1 2", &commands).is_some()
            && command_error("coins grant 1 2 --why x", &commands).is_some()
    );
}

fn collect(directory: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let tests = text.split("#[test]").skip(1).filter_map(|after| after.split("fn ").nth(1)?.split('(').next());
            names.extend(tests.map(ToOwned::to_owned));
        }
    }
}

#[test]
fn every_guarantee_in_the_security_policy_has_its_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tests = BTreeSet::new();
    collect(&root.join("tests"), &mut tests);
    collect(&root.join("src"), &mut tests);
    let page = fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let rows: Vec<_> = page
        .lines()
        .filter(|line| line.starts_with("| ") && !["| promise", "| act"].iter().any(|head| line.starts_with(head)))
        .collect();
    assert!(rows.len() > 20, "{rows:#?}");
    for row in rows {
        let cell = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let named: Vec<_> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "no test is named in: {row}");
        for name in named {
            assert!(tests.contains(name), "test {name} does not exist, named in: {row}");
        }
    }
}

/// Returns the names under `[dependencies]` in `Cargo.toml`.
fn dependencies(manifest: &str) -> Vec<String> {
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap().split("\n[").next().unwrap();
    let names = section.lines().filter(|line| line.starts_with(|letter: char| letter.is_ascii_lowercase()));
    names.map(|line| line.split([' ', '=', '.']).next().unwrap().to_owned()).collect()
}

fn sources(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_dependency_is_used() {
    for (package, least) in [(".", 30), ("crates/screening", 3)] {
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join(package);
        let names = dependencies(&fs::read_to_string(package.join("Cargo.toml")).unwrap());
        assert!(names.len() >= least, "{names:?}");
        let mut text = String::new();
        sources(&package.join("src"), &mut text);
        for name in names {
            let path = format!("{}::", name.replace('-', "_"));
            assert!(text.contains(&path), "{name} is a dependency that nothing in {} uses", package.display());
        }
    }
}

#[test]
fn container_builds_get_every_included_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ignored = fs::read_to_string(root.join(".dockerignore")).unwrap();
    let sent: BTreeSet<_> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
    let mut text = String::new();
    sources(&root.join("src"), &mut text);
    let included: BTreeSet<_> = text
        .split("include_str!(\"")
        .skip(1)
        .chain(text.split("include_bytes!(\"").skip(1))
        .filter_map(|rest| rest.split('"').next()?.rsplit("../").next()?.split('/').next())
        .filter(|name| root.join(name).exists())
        .collect();
    assert!(included.contains("schema.sql") && included.contains("assets"), "{included:?}");
    for name in included.into_iter().chain(["Cargo.toml", "Cargo.lock", "build.rs", "benches", "crates", ".cargo"]) {
        assert!(sent.contains(name), ".dockerignore excludes {name}, which the build reads");
    }
}

#[test]
fn every_fuzz_target_has_its_program_and_is_run() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let names = |directory: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(fuzz.join(directory)).unwrap();
        entries.map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    };
    let (targets, seeds) = (names("fuzz_targets"), names("seeds"));
    assert_eq!(targets, seeds, "`fuzz/run` runs the seeds");
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    for target in targets {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{target}.rs\"")), "{target} is not built");
    }
}
