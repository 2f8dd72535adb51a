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
