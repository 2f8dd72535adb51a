//! The command lines and links in the documents are valid.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regex::Regex;

use crate::support::Binary;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Markdown files that users and contributors read.
fn documents() -> Vec<PathBuf> {
    let in_directory = |directory: PathBuf| fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let directories = [root().to_owned(), root().join("docs"), root().join("packaging")];
    let files = directories.into_iter().flat_map(in_directory);
    files.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// The lines of fenced `sh` blocks, with continued lines joined.
fn shell_lines(markdown: &str) -> Vec<String> {
    let fences = Regex::new(r"(?ms)^```sh\n(.*?)^```").unwrap();
    let blocks = fences.captures_iter(markdown).map(|block| block[1].replace("\\\n", " "));
    blocks.flat_map(|block| block.lines().map(ToOwned::to_owned).collect::<Vec<_>>()).collect()
}

/// The simple commands of a shell line: split at operators, with quotes removed and comments dropped.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![vec![]];
    let (mut word, mut quote, mut is_quoted) = (String::new(), None, false);
    for character in line.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"') => (quote, is_quoted) = (Some(character), true),
            (None, '#') if word.is_empty() => break,
            (None, ' ' | '|' | ';' | '&' | '<' | '>' | '(' | ')') => {
                if !word.is_empty() || is_quoted {
                    commands.last_mut().unwrap().push(std::mem::take(&mut word));
                    is_quoted = false;
                }
                match character {
                    ' ' => {}
                    // What follows a redirection is a file and no argument.
                    '<' | '>' => commands.push(vec!["redirection".to_owned()]),
                    _ => commands.push(vec![]),
                }
            }
            _ => word.push(character),
        }
    }
    commands.last_mut().unwrap().push(word);
    commands.retain(|words| !words.is_empty());
    for words in &mut commands {
        words.retain(|word| !word.is_empty());
    }
    commands
}

/// The arguments of `yarrow`, if this command runs it in any way.
fn yarrow_arguments(words: &[String]) -> Option<&[String]> {
    let words: &[String] = if words.first().is_some_and(|word| word == "sudo") { &words[1..] } else { words };
    let program = words.first()?;
    if ["yarrow", "yarrowctl"].contains(&program.as_str()) {
        return Some(&words[1..]);
    }
    let is_cargo_run = program == "cargo" && words.get(1).is_some_and(|word| word == "run");
    let is_container = program == "docker" && words.get(1).is_some_and(|word| word == "exec");
    let end = if is_cargo_run { "--" } else { "/yarrow" };
    let start = words.iter().position(|word| word == end).filter(|_| is_cargo_run || is_container)?;
    Some(&words[start + 1..])
}

/// Parses the arguments with the real program. The missing configuration file stops it before it does anything.
fn parse(arguments: &[String]) -> Result<(), String> {
    let empty = tempfile::tempdir().unwrap();
    let mut command = Binary::command();
    // A number is valid wherever a variable stands.
    let variable = Regex::new(r"\$\w+").unwrap();
    let arguments = arguments.iter().map(|argument| variable.replace_all(argument, "1").into_owned());
    command.args(arguments).env("YARROW_CONFIG", "/nonexistent/yarrow.toml").current_dir(empty.path());
    let output = command.output().unwrap();
    match output.status.code() {
        Some(0 | 3) => Ok(()),
        _ => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

#[test]
fn every_command_line_parses() {
    let (mut faults, mut parsed) = (Vec::new(), 0);
    for document in documents() {
        for line in shell_lines(&fs::read_to_string(&document).unwrap()) {
            for command in simple_commands(&line) {
                let Some(arguments) = yarrow_arguments(&command) else { continue };
                parsed += 1;
                if let Err(fault) = parse(arguments) {
                    faults.push(format!("{}: {line}\n{fault}", document.display()));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(parsed > 90, "{parsed}");
}

#[test]
fn finds_commands_in_pipes_and_substitutions() {
    let commands = simple_commands("X=$(yarrow a --b 'c d' | jq -r '.e') && yarrow f \"$X\" > g # yarrow h");
    let found: Vec<_> = commands.iter().filter_map(|command| yarrow_arguments(command)).collect();
    assert_eq!(found, [&["a", "--b", "c d"][..], &["f", "$X"]]);
    assert!(parse(&["points".into(), "adjust".into(), "1".into(), "--no-such".into()]).is_err());
}

#[test]
fn command_blocks_have_no_optional_parts() {
    for document in documents() {
        for line in shell_lines(&fs::read_to_string(&document).unwrap()) {
            assert!(!line.contains("[-"), "{}: {line}", document.display());
        }
    }
}

#[test]
fn links_and_source_paths_exist() {
    let link = Regex::new(r"\]\(([^)#:]+)(?:#[^)]*)?\)").unwrap();
    let source = Regex::new(r"`((?:src|tests|benches|packaging|docs|fuzz)/[\w/.-]+)`").unwrap();
    let mut checked = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let links = link.captures_iter(&text).map(|found| document.parent().unwrap().join(&found[1]));
        let sources = source.captures_iter(&text).map(|found| root().join(&found[1]));
        for path in links.chain(sources) {
            assert!(path.exists(), "{}: {} does not exist", document.display(), path.display());
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
}

#[test]
fn readme_is_short() {
    let lines = fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(lines <= 250, "{lines}");
}

#[test]
fn the_sample_for_nginx_admits_the_largest_body() {
    let output = Binary::command().args(["config", "sample", "--json"]).output().unwrap();
    let settings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |setting: &serde_json::Value, member: &str| setting[member].as_str().unwrap().to_owned();
    let bodies = settings.as_array().unwrap().iter().filter(|setting| {
        let name = text(setting, "name");
        name.starts_with("limits.") && name.ends_with("body")
    });
    let kibibytes = bodies.map(|setting| {
        let size = text(setting, "default");
        let (number, unit) = size.split_once(' ').unwrap();
        number.parse::<u64>().unwrap() << if unit == "MiB" { 10 } else { 0 }
    });
    let largest = kibibytes.max().unwrap();
    let sample = fs::read_to_string(root().join("packaging/proxy/nginx.conf")).unwrap();
    assert!(sample.contains(&format!("client_max_body_size {}m;", largest >> 10)), "{largest} KiB");
}
