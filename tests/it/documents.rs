//! What the documents promise is there.

use std::{collections::BTreeSet, fs, path::Path};

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
fn every_promise_of_the_security_page_has_its_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tests = BTreeSet::new();
    collect(&root.join("tests"), &mut tests);
    collect(&root.join("src"), &mut tests);
    let page = fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| promise")).collect();
    assert!(rows.len() > 20, "{rows:#?}");
    for row in rows {
        let cell = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let named: Vec<_> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "no test stands behind: {row}");
        for name in named {
            assert!(tests.contains(name), "there is no test {name}, which stands behind: {row}");
        }
    }
}

/// The names under `[dependencies]` in `Cargo.toml`.
fn dependencies(manifest: &str) -> Vec<String> {
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap().split("\n[").next().unwrap();
    let names = section.lines().filter(|line| line.starts_with(|letter: char| letter.is_ascii_lowercase()));
    names.map(|line| line.split([' ', '=']).next().unwrap().to_owned()).collect()
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let names = dependencies(&fs::read_to_string(root.join("Cargo.toml")).unwrap());
    assert!(names.len() > 30, "{names:?}");
    let mut text = String::new();
    sources(&root.join("src"), &mut text);
    for name in names {
        let path = format!("{}::", name.replace('-', "_"));
        assert!(text.contains(&path), "{name} is a dependency that nothing in src uses");
    }
}

#[test]
fn every_fuzzing_target_has_its_program_and_is_run() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let names = |directory: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(fuzz.join(directory)).unwrap();
        entries.map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    };
    let (targets, seeds) = (names("fuzz_targets"), names("seeds"));
    assert_eq!(targets, seeds, "`fuzz/run` goes through the seeds");
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    for target in targets {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{target}.rs\"")), "{target} is not built");
    }
}
