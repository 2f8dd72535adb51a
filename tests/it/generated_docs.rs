//! The parts of the documents that are generated from the program. `UPDATE_DOCS=1 cargo test --test it generated_docs`
//! writes them; without it the tests fail if they differ.

use std::{fmt::Write, fs, path::Path};

use yarrow::{
    config::{DECLARATIONS, Declaration},
    http::reply,
};

/// Replaces the text between the two markers of a document, or checks that it is up to date.
fn check_section(document: &str, name: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let text = fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!("<!-- {name}:begin -->\n"), format!("<!-- {name}:end -->"));
    let (head, rest) = text.split_once(&begin).unwrap();
    let (current, tail) = rest.split_once(&end).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{head}{begin}{expected}{end}{tail}")).unwrap();
    } else {
        assert!(current == expected, "{document} is out of date: run the tests with UPDATE_DOCS=1");
    }
}

fn setting_row(setting: &Declaration) -> String {
    let flag = setting.flag.map(|flag| format!(" (`--{flag}`)")).unwrap_or_default();
    let default = if setting.default.is_empty() { String::new() } else { format!("`{}`", setting.default) };
    format!("| `{}`{flag} | {default} | {} | {} |\n", setting.name(), setting.shape, setting.help)
}

#[test]
fn the_settings_page_is_generated() {
    let mut page = String::new();
    let mut section = None;
    for setting in DECLARATIONS {
        if section != Some(setting.section) {
            let lead = if section.is_some() { "\n" } else { "" };
            section = Some(setting.section);
            let heading =
                if setting.section.is_empty() { "General".to_owned() } else { format!("`[{}]`", setting.section) };
            let help = setting.section_help.trim();
            write!(page, "{lead}## {heading}\n\n{help}\n\n").unwrap();
            page.push_str("| setting | default | values | meaning |\n|---|---|---|---|\n");
        }
        page.push_str(&setting_row(setting));
    }
    check_section("docs/configuration.md", "settings", &page);
}

#[test]
fn the_error_table_is_generated() {
    let mut table = "| code | status | meaning |\n|---|---|---|\n".to_owned();
    for code in reply::response_codes() {
        writeln!(table, "| `{}` | {} | {} |", code.name(), reply::status(code).as_u16(), code.meaning()).unwrap();
    }
    check_section("docs/api.md", "errors", &table);
}
