//! Tests of all pages: every page in each language, theme and role.

mod sample;

use std::collections::BTreeSet;

use super::{
    chart::{self, FigureChart, Series, Unit},
    context::{BASE, ConsoleTheme, Role},
    lists::{self, ListView, Listing, Rows},
    texts::{Language, Text},
};

fn each_page(mut check: impl FnMut(&str, Language, &str)) {
    for role in Role::ALL {
        for language in Language::ALL {
            for page in sample::PAGES {
                let is_bare = page.starts_with("sign-in") || page.starts_with("first-run");
                let cx = sample::context(
                    language,
                    ConsoleTheme::System,
                    (!is_bare).then_some(role),
                    &format!("{BASE}/{page}"),
                );
                let html = sample::render(&cx, page).expect("a page of the list").into_string();
                check(&format!("{page} {language:?} {role:?}"), language, &html);
            }
        }
    }
}

/// Returns the values of an attribute.
fn attributes<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!(" {name}=\"");
    html.split(&start).skip(1).map(|rest| rest.split('"').next().unwrap_or_default()).collect()
}

#[test]
fn no_page_has_inline_script_style_or_handler() {
    each_page(|page, _, html| {
        assert!(!html.contains("<style") && !html.contains(" style=\""), "{page}");
        assert!(!html.contains("hx-on") && !html.contains("hx-vals=\"js"), "{page}");
        for script in html.split("<script").skip(1) {
            assert!(script.starts_with(" src=\"/admin/console/assets/"), "{page}");
        }
        for handler in ["onclick", "onload", "onerror", "onsubmit", "oninput"] {
            assert!(!html.contains(&format!(" {handler}=")), "{page}");
        }
    });
}

#[test]
fn nothing_is_loaded_from_another_host() {
    each_page(|page, _, html| {
        for name in ["src", "action", "formaction", "hx-get"] {
            for address in attributes(html, name) {
                assert!(address.starts_with("/admin/console/"), "{page}: {address}");
            }
        }
    });
}

#[test]
fn every_form_that_changes_something_has_a_token() {
    each_page(|page, _, html| {
        for form in html.split("<form").skip(1) {
            let form = form.split("</form>").next().unwrap_or_default();
            assert!(!form.contains("method=\"post\"") || form.contains("name=\"csrf\""), "{page}: {form}");
        }
    });
}

#[test]
fn ids_are_unique_and_labels_and_descriptions_lead_somewhere() {
    each_page(|page, _, html| {
        let ids = attributes(html, "id");
        let unique: BTreeSet<_> = ids.iter().copied().collect();
        let repeated: Vec<_> = unique.iter().filter(|id| ids.iter().filter(|other| other == id).count() > 1).collect();
        assert!(repeated.is_empty(), "{page}: {repeated:?}");
        for name in ["for", "aria-labelledby", "aria-describedby", "popovertarget"] {
            for id in attributes(html, name).into_iter().flat_map(str::split_whitespace) {
                assert!(unique.contains(id), "{page}: {name} {id}");
            }
        }
    });
}

#[test]
fn times_have_their_zone() {
    each_page(|page, _, html| {
        // Either the header of the column or the text after the time names the zone.
        assert!(!html.contains("<time") || html.contains("UTC+8"), "{page}");
    });
}

#[test]
fn chinese_pages_show_no_english_text_and_english_pages_no_chinese_text() {
    for text in Text::ALL {
        let (chinese, english) = (text.in_language(Language::Chinese), text.in_language(Language::English));
        assert!(!chinese.is_empty() && !english.is_empty(), "{text:?}");
        let is_chinese = |text: &str| text.chars().any(|one| ('\u{4e00}'..='\u{9fff}').contains(&one));
        assert!(!is_chinese(english), "{text:?}");
        assert!(is_chinese(chinese) || *text == Text::ProductName, "{text:?}");
    }
}

#[test]
fn views_have_no_text_of_their_own() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file!()).with_file_name("");
    let mut files: Vec<_> =
        std::fs::read_dir(root.join("pages")).expect("pages").map(|file| file.expect("a file").path()).collect();
    files.extend(
        ["cells.rs", "chart.rs", "forms.rs", "layout.rs", "list_page.rs", "lists.rs", "parts.rs"]
            .map(|name| root.join(name)),
    );
    assert!(files.len() > 20, "{files:?}");
    for file in files {
        let source = std::fs::read_to_string(&file).expect("source");
        for (number, line) in source.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            let line = line.replace("\\\"", "'");
            let parts: Vec<_> = line.split('"').collect();
            for index in (1..parts.len()).step_by(2) {
                let (before, part) = (parts[index - 1], parts[index]);
                let is_attribute = before.ends_with('=') || before.ends_with("={ ");
                let is_allowed = is_attribute
                    || part == "light dark"
                    || part.starts_with("yarrow ")
                    || before.ends_with("write!(path, ");
                assert!(is_allowed || !is_prose(part), "{}:{}: {part}", file.display(), number + 1);
            }
        }
    }
}

/// Returns true for Chinese characters, and for words of three letters with a capital or a space beside them.
fn is_prose(text: &str) -> bool {
    let words = || text.split(|one: char| !one.is_alphabetic()).filter(|word| word.len() > 2);
    let is_chinese = text.chars().any(|one| ('\u{4e00}'..='\u{9fff}').contains(&one));
    let is_capital = |word: &str| {
        word.starts_with(|one: char| one.is_ascii_uppercase()) && word.ends_with(|one: char| one.is_ascii_lowercase())
    };
    is_chinese || words().any(is_capital) || (text.trim().contains(' ') && !text.contains('{') && words().count() > 1)
}

#[test]
fn hostile_names_stay_text() {
    each_page(|page, _, html| {
        assert!(
            !html.contains("<script>alert") && !html.contains("<i>hostile") && !html.contains("<b>hostile"),
            "{page}"
        );
    });
}

#[test]
fn roles_see_only_their_actions() {
    let page = |role, path: &str| {
        let cx = sample::context(Language::English, ConsoleTheme::System, Some(role), path);
        sample::render(&cx, path).expect("a page").into_string()
    };
    for (path, action, able) in [
        ("orders/1", "/refund", vec![Role::Owner]),
        ("users/10001", "/grant", vec![Role::Owner, Role::Support]),
        ("users/10001", "/suspend", vec![Role::Moderator, Role::Owner]),
        ("users/10001", "/erase", vec![Role::Owner]),
        ("users/10001", "/export", vec![Role::Owner]),
        ("users/10001", "/move", vec![Role::Owner, Role::Support]),
        ("users/10001", "/notes", vec![Role::Support, Role::Moderator, Role::Owner]),
        ("health", "/health/backup", vec![Role::Owner]),
    ] {
        for role in Role::ALL {
            let shown = page(role, path).contains(&format!("{action}\""));
            assert_eq!(shown, able.contains(&role), "{path} {action} {role:?}");
        }
    }
}

#[test]
fn roles_without_the_right_get_no_links_to_users() {
    for page in ["list", "moderation/review"] {
        let links = |role| {
            let cx = sample::context(Language::English, ConsoleTheme::System, Some(role), page);
            let html = sample::render(&cx, page).expect("a page").into_string();
            attributes(&html, "href").iter().any(|href| href.starts_with("/admin/console/users/"))
        };
        assert!(links(Role::Moderator) && !links(Role::ReadOnly), "{page}");
    }
}

#[test]
fn a_list_is_empty_or_has_rows() {
    let cx = sample::context(Language::English, ConsoleTheme::System, Some(Role::Owner), "/admin/console/orders");
    let view = ListView {
        id: "rows",
        caption: Text::Orders,
        empty: Text::NoMessages,
        href: "/admin/console/orders?state=paid".to_owned(),
        bulk: None,
        export: Some("/admin/console/orders/export".to_owned()),
    };
    let shown = |listing: &Listing<&str>| {
        lists::list(&cx, &view, &[lists::text(Text::Id)], listing, |row| vec![maud::html! { (row) }]).into_string()
    };
    let empty = shown(&Listing::Rows(Rows::all(Vec::new())));
    assert!(empty.contains("class=\"empty\"") && !empty.contains("<table") && !empty.contains("export"), "{empty}");
    let next = Some("2".to_owned());
    let rows = shown(&Listing::Rows(Rows { next, ..Rows::all(vec!["first"]) }));
    assert!(rows.contains("first") && rows.contains("cursor=2") && rows.contains("orders/export"), "{rows}");
}

#[test]
fn a_chart_without_values_says_so_and_keeps_its_table() {
    let cx = sample::context(Language::English, ConsoleTheme::System, Some(Role::Owner), "/admin/console/growth");
    let draw = |value| {
        let series = vec![Series { name: "users".to_owned(), values: vec![value, None] }];
        let labels = vec!["2026-01-01".to_owned(), "2026-01-02".to_owned()];
        let chart = FigureChart {
            id: "users".into(),
            title: Text::Users,
            unit: Unit::Count,
            label: Text::Time,
            labels,
            series,
            has_bars: false,
        };
        chart::chart(&cx, &chart).into_string()
    };
    for blank in [None, Some(0)] {
        let shown = draw(blank);
        assert!(shown.contains("class=\"empty\"") && !shown.contains("data-chart"), "{shown}");
        assert!(shown.contains("2026-01-02"), "{shown}");
    }
    assert!(draw(Some(3)).contains("data-chart"));
}

#[test]
fn alerts_and_checks_are_explained_in_the_language_of_the_page() {
    for (language, texts) in [
        (
            Language::English,
            ["3 payments need a decision.", "Calls to the sms provider are paused", "expires soon, at"],
        ),
        (Language::Chinese, ["有 3 笔付款需要人工处理。", "对短信服务的调用已暂停", "到期，尚未更新"]),
    ] {
        let cx = sample::context(language, ConsoleTheme::System, Some(Role::Owner), "/admin/console/health");
        let page = sample::render(&cx, "health").unwrap().into_string();
        for text in texts {
            assert!(page.contains(text), "{text}: {page}");
        }
        assert!(!page.contains("`yarrow "), "a page replaces the command: {page}");
    }
}

#[test]
fn our_script_is_small() {
    assert!(super::assets::SCRIPT.bytes.len() < 10_240);
}
