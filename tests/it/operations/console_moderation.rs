//! The pages of moderators: rejected texts and the word list.

use super::console::Browser;
use crate::support::{Server, Setup};

/// Returns true if the word list rejects the text.
fn is_rejected(server: &Server, text: &str) -> bool {
    server.command(&["words", "test", text]).json()["allowed"] == false
}

#[test]
fn lists_filters_and_shows_rejected_texts() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in("13800138000"), server.sign_in("13800138001"));
    for (user, kind, content_type, text, at) in [
        (&user, "ads", "nickname", "<b>代开</b>**\u{202e}", 1_700_000_000_000_i64),
        (&other, "gambling", "question", "一起**吧", 1_700_100_000_000),
    ] {
        server.edit(&format!(
            "insert into violations (user_id, content_type, violation_type, words, masked_text, provider, created_at) \
             values ({}, '{content_type}', '{kind}', '[\"word-of-{kind}\"]', '{text}', 'local', {at})",
            user.user_id
        ));
    }
    let browser = Browser::new(&server, "mo", "moderator");
    let listed = |query: &[(&str, &str)]| browser.get("moderation").query(query).send().expect(200).text();
    let has = |page: &str| (page.contains("&lt;b&gt;代开"), page.contains("一起**吧"));
    let all = listed(&[]);
    assert_eq!(has(&all), (true, true), "{all}");
    assert!(!all.contains("<b>代开"), "{all}");
    assert_eq!(has(&listed(&[("violationType", "ads")])), (true, false));
    assert_eq!(has(&listed(&[("contentType", "question")])), (false, true));
    assert_eq!(has(&listed(&[("userId", &other.user_id)])), (false, true));
    assert_eq!(has(&listed(&[("startTime", "2023-11-16T00:00")])), (false, true));
    assert_eq!(has(&listed(&[("endTime", "2023-11-16T00:00")])), (true, false));
    let faulty = listed(&[("userId", "nobody"), ("startTime", "yesterday")]);
    assert_eq!(faulty.matches("class=\"error\"").count(), 2, "{faulty}");
    assert!(faulty.contains("value=\"nobody\""), "{faulty}");

    let id: i64 = server.value("select id from violations where violation_type = 'gambling'");
    assert!(all.contains(&format!("href=\"/admin/console/moderation/violations/{id}\"")), "{all}");
    let shown = browser.get(&format!("moderation/violations/{id}")).send().expect(200).text();
    assert!(shown.contains("一起<mark>**</mark>吧") && shown.contains("word-of-gambling"), "{shown}");
    browser.get("moderation/violations/999999").send().expect(404);
    browser.get("moderation/violations/nothing").send().expect(404);
    let support = Browser::new(&server, "sue", "support");
    support.get(&format!("moderation/violations/{id}")).send().expect(403);

    // The actions beside a text are the ones of the user's page.
    let suspend = format!("users/{}/suspend", other.user_id);
    assert!(shown.contains(&format!("formaction=\"/admin/console/{suspend}\"")), "{shown}");
    assert!(shown.contains(&format!("action=\"/admin/console/users/{}/reset-nickname\"", other.user_id)), "{shown}");
}

#[test]
fn moderators_decide_about_texts_in_review() {
    let server = Setup::default().with("MODERATION_MATCH_RULES", "any sound any: review").start();
    let user = server.sign_in("13800138000");
    let path = "/content-moderation/check-question";
    for question in ["一起堵博<b>吧", "明天堵博", "今天堵博"] {
        server.post(path).by(&user).json(&serde_json::json!({ "question": question })).send().expect(200);
    }
    let browser = Browser::new(&server, "mo", "moderator");
    let page = "moderation/review";
    let shown = browser.get(page).send().expect(200).text();
    assert!(shown.contains("一起堵博&lt;b&gt;吧") && !shown.contains("博<b>"), "{shown}");
    let decide = |fields: &[(&str, &str)]| browser.post(page, page, fields);
    decide(&[("decision", "uphold"), ("reason", "gambling")]).expect(422);
    let kept =
        decide(&[("form", "review"), ("ids", "1"), ("decision", "acquit"), ("reason", ""), ("phrase", "明天堵博")])
            .expect(422)
            .text();
    assert!(kept.contains("value=\"明天堵博\"") && kept.contains("review-reason-error"), "{kept}");
    let upheld = [("ids", "1"), ("ids", "2"), ("ids", "99"), ("decision", "uphold"), ("reason", "gambling")];
    let results = decide(&upheld).expect(200).text();
    assert_eq!(results.matches("<code>99</code>").count(), 1, "{results}");
    assert_eq!(server.value::<i64>("select count(*) from violations"), 2);
    let acquitted = [("ids", "3"), ("decision", "acquit"), ("reason", "a joke"), ("phrase", "今天堵博")];
    decide(&acquitted).expect(200);
    assert_eq!(server.value::<i64>("select count(*) from allowed_phrases where phrase = '今天堵博'"), 1);
    browser.post(page, "moderation/review/undo", &[("ids", "2")]).expect(200);
    assert_eq!(server.value::<i64>("select count(*) from violations"), 1);
    // A wrong refusal, from the page of the violation.
    let violation = "moderation/violations/1";
    browser.post(violation, &format!("{violation}/acquit"), &[("reason", "a warning"), ("phrase", "")]).expect(303);
    assert_eq!(server.value::<i64>("select count(*) from violations where acquitted_at is not null"), 1);
    let support = Browser::new(&server, "sue", "support");
    support.get(page).send().expect(403);
}

#[test]
fn pages_of_rejected_texts_follow_each_other() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000").user_id;
    server.edit(&format!(
        "insert into violations (user_id, content_type, violation_type, words, masked_text, provider, created_at) \
         with recursive n(i) as (select 1 union all select i + 1 from n where i < 51) \
         select {user}, 'question', 'ads', '[]', 'text-' || i || '-', 'local', 1700000000000 + i from n"
    ));
    let browser = Browser::new(&server, "mo", "moderator");
    let first = browser.get("moderation").query(&[("violationType", "ads")]).send().expect(200).text();
    assert!(first.contains("text-51-") && !first.contains("text-1-"));
    assert!(first.contains("violationType=ads&amp;cursor=2"), "{first}");
    let last = browser.get("moderation").query(&[("violationType", "ads"), ("cursor", "2")]).send().expect(200).text();
    assert!(last.contains("text-1-") && !last.contains("text-51-") && !last.contains("cursor=3"));
}

#[test]
fn changes_of_the_word_list_apply_at_once() {
    let server = Setup::default().start();
    let browser = Browser::new(&server, "mo", "moderator");
    let page = "moderation/words";
    let send = |path: &str, fields: &[(&str, &str)]| {
        browser.post(page, &format!("{page}/{path}"), &[&[("form", path)], fields].concat())
    };
    let listed = |part: &str| browser.get(page).query(&[("search", part)]).send().expect(200).text();

    assert!(!is_rejected(&server, "看看紫薇斗量"));
    send("add", &[("word", "紫薇斗量"), ("type", "ads"), ("bySound", "true")]).expect(303);
    assert!(is_rejected(&server, "看看紫薇斗量"));
    assert!(listed("紫薇斗量").contains("name=\"word\" value=\"紫薇斗量\""));
    let again = send("add", &[("word", "紫薇斗量"), ("type", "fraud")]).expect(422).text();
    assert!(again.contains("id=\"add-word-error\"") && again.contains("value=\"fraud\""), "{again}");
    let short = send("add", &[("word", "d"), ("type", "<i>")]).expect(422).text();
    assert!(short.contains("id=\"add-word-error\"") && short.contains("&lt;i&gt;"), "{short}");
    send("add", &[("word", &"长".repeat(10_000))]).expect(422);

    let tested = send("test", &[("text", "看看紫薇斗量")]).expect(200).text();
    assert!(tested.contains("<mark>紫薇斗量</mark>"), "{tested}");

    send("allow", &[("phrase", "看看紫薇斗量表")]).expect(303);
    assert!(!is_rejected(&server, "看看紫薇斗量表") && is_rejected(&server, "紫薇斗量"));
    let empty = send("allow", &[("phrase", " ")]).expect(422).text();
    assert!(empty.contains("id=\"allow-phrase-error\""), "{empty}");
    send("disallow", &[("phrase", "看看紫薇斗量表")]).expect(303);
    assert!(is_rejected(&server, "看看紫薇斗量表"));

    send("remove", &[("word", "紫薇斗量")]).expect(303);
    assert!(!is_rejected(&server, "看看紫薇斗量"));
    let gone = send("remove", &[("word", "紫薇斗量")]).expect(404).text();
    assert!(gone.contains("flash bad"), "the refusal is shown");
    let proposed = browser.get(page).query(&[("allow", "反<洗钱")]).send().expect(200).text();
    assert!(proposed.contains("name=\"phrase\" value=\"反&lt;洗钱\""), "{proposed}");
}

#[test]
fn a_word_has_a_severity_tags_and_content_types() {
    let server = Setup::default().start();
    let browser = Browser::new(&server, "mo", "moderator");
    let page = "moderation/words";
    let send =
        |fields: &[(&str, &str)]| browser.post(page, "moderation/words/add", &[&[("form", "add")], fields].concat());
    let word = [("word", "紫薇斗量"), ("severity", "low"), ("tags", "money,<b>"), ("contentTypes", "question")];
    send(&[&word[..], &[("contentTypes", "signature")]].concat()).expect(303);
    let listed = |query: &[(&str, &str)]| browser.get(page).query(query).send().expect(200).text();
    let shown = listed(&[("tag", "money")]);
    assert!(shown.contains("紫薇斗量") && shown.contains("&lt;b&gt;") && !shown.contains("value=\"赌博\""), "{shown}");
    assert!(listed(&[("tag", "mone")]).contains("name=\"tag\"") && !listed(&[("tag", "mone")]).contains("紫薇斗量"));
    let stored = "select severity || ' ' || content_types from words where word = '紫薇斗量'";
    assert_eq!(server.value::<String>(stored), "low signature question");
    assert!(!is_rejected(&server, "看看紫薇斗量"), "a text with a word of low severity passes");
    let refused = send(&[("word", "碧落黄泉数"), ("tags", "a b"), ("contentTypes", "answer")]).expect(422).text();
    assert!(refused.contains("value=\"a b\"") && refused.contains("value=\"answer\" checked"), "{refused}");
}

#[test]
fn an_import_is_shown_before_it_is_done() {
    let server = Setup::default().start();
    let browser = Browser::new(&server, "mo", "moderator");
    let page = "moderation/words";
    let total = || server.value::<i64>("select count(*) from words");
    let before = total();
    let lines = "紫薇斗量,ads,false\n赌博\n一\n碧落黄泉数,fraud";
    let send = |dry_run: &str, lines: &str| {
        let typed = [("form", "import"), ("lines", lines), ("dryRun", dry_run)];
        browser.post(page, "moderation/words/import", &typed)
    };
    let preview = send("true", lines).expect(200).text();
    assert!(preview.contains("<li>紫薇斗量</li>") && preview.contains("<li>碧落黄泉数</li>"), "{preview}");
    assert!(!preview.contains("<li>赌博</li>") && preview.contains("<bdi>一</bdi>"), "{preview}");
    assert!(preview.contains(lines), "the typed lines are kept");
    assert_eq!(total(), before);
    send("false", lines).expect(303);
    assert_eq!(total(), before + 2);
    assert!(is_rejected(&server, "碧落黄泉数"));
    let nothing = send("false", "一").expect(422).text();
    assert!(nothing.contains("id=\"import-lines-error\""), "{nothing}");

    let exported = browser.get("moderation/words/export").send().expect(200);
    assert_eq!(exported.header("content-disposition"), Some("attachment; filename=\"words.csv\""));
    let exported = exported.text();
    assert!(
        exported.starts_with("word,type,bySound,severity,tags,contentTypes\n")
            && exported.contains("紫薇斗量,ads,false,medium,,\n"),
        "{exported}"
    );
}

#[test]
fn owners_switch_the_deciding_service_with_a_recent_proof() {
    let setup = Setup::default()
        .with("MODERATION_PROVIDER", "aliyun")
        .with("MODERATION_ENDPOINT", "http://127.0.0.1:9")
        .with("MODERATION_ACCESS_KEY_ID", "TESTAccessKeyId000000001")
        .with("MODERATION_ACCESS_KEY_SECRET", "TESTAccessKeySecret0000000000001");
    let server = setup.start();
    let page = "moderation/services";
    let status = || server.command(&["moderation", "status"]).expect(0).json();
    let moderator = Browser::new(&server, "mo", "moderator");
    let compared = moderator.post(page, "moderation/services/compare", &[("text", "一起赌博<b>吧")]).expect(200).text();
    assert!(compared.contains("一起赌博&lt;b&gt;吧</textarea>"), "{compared}");
    assert!(!compared.contains("moderation/services/switch"), "moderators see no switch");
    let to_external = [("useAliyun", "true"), ("reason", "trial")];
    moderator.post(page, "moderation/services/switch", &to_external).expect(403);

    let owner = Browser::new(&server, "alice", "owner");
    let before = status();
    let refused = owner
        .post(page, "moderation/services/switch", &[("form", "switch"), ("useAliyun", "true"), ("reason", "")])
        .expect(422)
        .text();
    assert!(refused.contains("details class=\"act\" open"), "{refused}");
    server.edit("update admin_tokens set proved_at = proved_at - 600001");
    let asked = owner.post(page, "moderation/services/switch", &to_external).expect(403).text();
    assert!(asked.contains("value=\"trial\"") && asked.contains("name=\"password\""), "{asked}");
    assert_eq!(status()["service"], before["service"]);
    let proved = [("useAliyun", "true"), ("reason", "trial"), ("password", "correct horse battery")];
    owner.post(page, "moderation/services/switch", &proved).expect(303);
    assert_eq!(status()["service"], "external");
    owner.post(page, "moderation/services/fallback", &[("enableFallback", "false"), ("reason", "trial")]).expect(303);
    assert!(owner.get(page).send().expect(200).text().contains("name=\"enableFallback\" value=\"true\""));
}

#[test]
fn a_switch_to_a_missing_service_is_refused() {
    let server = Setup::default().start();
    let owner = Browser::new(&server, "alice", "owner");
    let typed = [("form", "switch"), ("useAliyun", "true"), ("reason", "a <trial>")];
    let refused = owner.post("moderation/services", "moderation/services/switch", &typed).expect(409).text();
    assert!(refused.contains("value=\"a &lt;trial&gt;\""), "{refused}");
}
