//! Tests of all pages: every page in each language, theme and role.

mod sample;

use std::collections::BTreeSet;

use super::{
    chart::{self, FigureChart, Series, Unit},
    context::{BASE, ConsoleTheme, Role},
    lists::{self, ListView, Listing, Rows},
    texts::{self, Language, Text},
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
fn alerts_are_explained_in_the_language_of_the_page() {
    let detail = "Only 3 % (9364 MiB) of the disk of the data directory is free. Free some space.";
    assert_eq!(texts::alert_detail(Language::English, "disk_low", detail), detail);
    let details = [
        ("disk_low", detail, "只剩 3 %（9364 MiB）"),
        ("payments_in_review", "4 payments need a decision; see `yarrow payments list --state review`.", "有 4 笔付款"),
        (
            "ledger_mismatch",
            "The ledger has 1 discrepancy, and 2 accounts are suspended. Run `yarrow ledger verify`.",
            "1 处不一致，2 个账户",
        ),
        (
            "ledger_repaired",
            "The daily verification recomputed the balance of 2 accounts from the ledger. Run `yarrow users show` for the changes.",
            "修复 2 个账户",
        ),
        (
            "payment_mismatch",
            "Payments, ledger and bills have 3 differences. Run `yarrow payments report` and `yarrow payments bill`.",
            "有 3 处差异",
        ),
        (
            "backup_old",
            "The last backup failed (storage_full). The last successful backup: never.",
            "（storage_full）。上次成功：从未",
        ),
        ("backup_old", "Backups are overdue. The last one: 2026-01-01T00:00:00Z.", "上次备份：2026-01-01T00:00:00Z"),
        (
            "code_budget",
            "2500 of at most 5000 verification codes were sent in the last 24 hours.",
            "已发送 2500 条验证码，上限 5000",
        ),
        ("backup_behind", "The continuous backup is 240 s behind.", "持续备份落后 240 秒。"),
        ("backup_behind", "The continuous backup is 240 s behind: timed out.", "持续备份落后 240 秒：timed out"),
        (
            "certificate_expiring",
            "The TLS certificate expires at 2026-01-01T00:00:00Z. Run `yarrow doctor`.",
            "2026-01-01T00:00:00Z 到期",
        ),
        (
            "provider_down:sms",
            "Calls to the sms provider are paused because several failed in a row.",
            "对短信服务的调用已暂停",
        ),
        (
            "provider_down:sms",
            "The sms provider rejects all calls (isv.KEY). Check its account and its settings.",
            "拒绝所有调用（isv.KEY）",
        ),
        (
            "database_damaged",
            "The database is damaged (found by a request). The newest sound backup is of x.",
            "数据库已损坏（found by a request）",
        ),
    ];
    for (rule, detail, ..) in details {
        let shown = texts::alert_detail(Language::English, rule, detail);
        assert!(!shown.contains("`yarrow ") && shown.ends_with('.'), "a page replaces the command: {shown}");
    }
    for (rule, detail, expected) in details {
        let shown = texts::alert_detail(Language::Chinese, rule, detail);
        assert!(shown.contains(expected), "{rule}: {shown}");
    }
}

#[test]
fn our_script_is_small() {
    assert!(super::assets::SCRIPT.bytes.len() < 8192);
}
