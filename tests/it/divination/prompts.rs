//! The instructions of the model: an operator's templates, their versions, and tests of them.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::support::{
    CommandOutput, FakeModel, ModelBehaviour, Setup, install,
    model_requests::{PHONE, ask, chat, record},
};

fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

fn with_prompts(directory: &Path) -> (&'static str, &str) {
    ("YARROW_LLM_PROMPT_DIR", directory.to_str().unwrap())
}

fn prompt(settings: &[(&str, &str)], arguments: &[&str], exit_code: i32) -> CommandOutput {
    let nowhere = tempfile::tempdir().unwrap();
    let arguments = [&["ai", "prompt"], arguments].concat();
    CommandOutput::run_with(nowhere.path(), settings, &arguments, "").expect(exit_code)
}

#[test]
fn an_operators_template_replaces_the_instructions_and_marks_the_version() {
    let model = FakeModel::start(ModelBehaviour::Pieces(vec!["好。"]));
    let own = written(&[
        ("interpretation.zh.txt", "\u{FEFF}你是{brand}的先生。\r\n只说 {\"a\": 1} 一句。\r\n"),
        ("chat.zh.txt", "{brand}的朋友：{user}"),
    ]);
    let setup = model.setup().with("LLM_PROMPT_DIR", own.path().display()).with("BRAND_NAME", "山泽");
    let server = setup.start();
    let user = server.sign_in(PHONE);
    let interpreted = ask(&server, &user).send().expect(200);
    chat(&server, &user).send().expect(200);
    ask(&server, &user).header("accept-language", "en").send().expect(200);
    let calls = model.calls();
    let system = |call: usize| calls[call].body["messages"][0].clone();
    assert_eq!(system(0), json!({ "role": "system", "content": "你是山泽的先生。\n只说 {\"a\": 1} 一句。" }));
    assert!(system(1)["content"].as_str().unwrap().starts_with("山泽的朋友：{\"age\":null,"), "{}", system(1));
    assert!(system(2)["content"].as_str().unwrap().starts_with("You are the I Ching reader of 山泽, calm"));
    // Question and facts stay a message of their own.
    let facts: Value = serde_json::from_str(calls[0].body["messages"][1]["content"].as_str().unwrap()).unwrap();
    assert!(facts["classic"].is_object() && facts["chart"].is_object() || facts["structure"].is_object(), "{facts}");

    let listed = prompt(&[with_prompts(own.path())], &["--kind", "interpretation", "--lang", "zh"], 0).json();
    let version = listed[0]["version"].as_str().unwrap().to_owned();
    let (built_in, digest) = version.split_once('+').unwrap();
    assert_eq!((built_in, digest.len()), ("5", 12));
    assert_eq!(record(&server, &interpreted)["promptVersion"], json!(version));
    assert_eq!(server.value::<String>("select prompt_version from interpretations order by id desc limit 1"), "5");
    let chat_version = server.value::<String>("select prompt_version from chats");
    assert!(chat_version.starts_with("3+") && chat_version != version, "{chat_version}");
}

#[test]
fn templates_are_printed_with_source_and_version() {
    let listed = prompt(&[], &[], 0).json();
    let found: Vec<_> =
        listed.as_array().unwrap().iter().map(|one| (&one["kind"], &one["lang"], &one["version"])).collect();
    assert_eq!(found.len(), 4);
    assert_eq!(found[0], (&json!("interpretation"), &json!("zh"), &json!("5")));
    assert!(listed[0].get("text").is_none() && listed[0]["file"].is_null(), "{listed}");

    let own = written(&[("chat.en.txt", "Hello {user}"), (".gitignore", "x")]);
    let shown = prompt(&[with_prompts(own.path())], &["--show", "--kind", "chat"], 0).json();
    assert!(shown[0]["text"].as_str().unwrap().contains("{brand}"), "{shown}");
    assert_eq!(shown[1]["text"], "Hello {user}");
    assert_eq!(shown[1]["file"], own.path().join("chat.en.txt").to_str().unwrap());
    prompt(&[], &["--kind", "poem"], 2);
}

#[test]
fn faulty_templates_prevent_startup() {
    let own = written(&[
        ("interpretation.en.txt", "Hello {name}"),
        ("chat.en.txt", "Hello"),
        ("notes.txt", "x"),
        ("interpretation.zh.txt", " \n"),
    ]);
    fs::write(own.path().join("chat.zh.txt"), b"\xFF{user}").unwrap();
    let directory = tempfile::tempdir().unwrap();
    install(directory.path());
    let settings = [with_prompts(own.path())];
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["doctor"], &["ai", "prompt"], &["ai", "usage"]] {
        let output = CommandOutput::run_with(directory.path(), &settings, command, "").expect(3);
        let problem = output.problem().to_string();
        for fault in [
            "llm.prompt_dir: chat.en.txt: must have the variable {user}",
            "llm.prompt_dir: chat.zh.txt: is not UTF-8 text",
            "llm.prompt_dir: interpretation.en.txt: has the unknown variable {name}; known are {brand}",
            "llm.prompt_dir: interpretation.zh.txt: is empty",
            "llm.prompt_dir: notes.txt: is not the name of a template; these are: interpretation.zh.txt",
        ] {
            assert!(problem.contains(fault), "{command:?}: {fault} is not in {problem}");
        }
    }
    let missing = [("YARROW_LLM_PROMPT_DIR", "/nowhere/prompts")];
    let output = CommandOutput::run_with(directory.path(), &missing, &["ai", "usage"], "").expect(3);
    assert!(output.problem().to_string().contains("llm.prompt_dir: /nowhere/prompts: No such file"));
}

#[test]
fn the_prompt_of_a_casting_is_printed_and_sent() {
    let model = FakeModel::start(ModelBehaviour::Pieces(vec!["Follow", " it."]));
    let own = written(&[("interpretation.en.txt", "Be brief, {brand}.")]);
    let server = model.setup().with("LLM_PROMPT_DIR", own.path().display()).start();
    let casting = [
        "ai",
        "test",
        "--casting",
        "788976",
        "--at",
        "2026-11-25T23:30",
        "--zone",
        "Asia/Shanghai",
        "--question",
        "Should I go?",
        "--lang",
        "en",
    ];
    let settings = server_settings(&model, own.path());
    let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let printed = server.command_with(&settings, &[&casting[..], &["--prompt-only"]].concat()).expect(0).json();
    assert!(model.calls().is_empty());
    let messages = printed["prompt"]["messages"].as_array().unwrap();
    assert_eq!(messages[0], json!({ "role": "system", "content": "Be brief, Yarrow." }));
    assert!(printed["prompt"]["version"].as_str().unwrap().starts_with("5+"), "{printed}");
    let facts: Value = serde_json::from_str(messages[1]["content"].as_str().unwrap()).unwrap();
    assert_eq!((&facts["question"], &facts["method"]), (&json!("Should I go?"), &json!("manual")));
    assert_eq!(facts["chart"]["moment"]["pillars"]["day"], "甲辰");
    assert_eq!(facts["chart"]["moment"]["local"], "2026-11-25T23:30:00+08:00");
    assert_eq!(facts["classic"]["texts"][0]["text"], "拘系之，乃从维之，王用亨于西山。");

    let called = server.command_with(&settings, &casting).expect(0).json();
    assert_eq!((&called["outcome"], &called["text"]), (&json!("succeeded"), &json!("Follow it.")));
    assert_eq!(called["prompt"], printed["prompt"]);
    assert_eq!(model.calls()[0].body["messages"], printed["prompt"]["messages"]);
    // Tests leave no record of a user.
    assert_eq!(server.value::<i64>("select count(*) from interpretations"), 0);
}

fn server_settings(model: &FakeModel, prompts: &Path) -> Vec<(&'static str, String)> {
    let setup = model.setup();
    let value = |name: &str| {
        let variables = setup.variables();
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()).unwrap()
    };
    let names = ["YARROW_LLM_PROVIDER", "YARROW_LLM_BASE_URL", "YARROW_LLM_MODEL"];
    let prompts = ("YARROW_LLM_PROMPT_DIR", prompts.display().to_string());
    names.into_iter().map(|name| (name, value(name))).chain([prompts]).collect()
}

#[test]
fn the_offline_interpreter_reads_a_casting_of_the_command_line() {
    let server = Setup::default().start();
    let read =
        server.command(&["ai", "test", "--casting", "999999", "--question", "今年换工作合适吗？"]).expect(0).json();
    assert!(read["text"].as_str().unwrap().contains("见群龙无首"), "{read}");
    let at_rest =
        server.command(&["ai", "test", "--casting", "788878", "--lang", "en", "--prompt-only"]).expect(0).json();
    let facts: Value = serde_json::from_str(at_rest["prompt"]["messages"][1]["content"].as_str().unwrap()).unwrap();
    assert_eq!((&facts["chart"]["moment"], &facts["question"]), (&Value::Null, &Value::Null));
    for arguments in [
        &["--casting", "78897"][..],
        &["--casting", "788975"],
        &["--casting", "78897x"],
        &["--question", "x"],
        &["--casting", "788976", "--zone", "Asia/Shanghai"],
        &["--casting", "788976", "--at", "2026-11-25", "--zone", "Mars/Olympus"],
        &["--casting", "788976", "--lang", "fr"],
    ] {
        server.command(&[&["ai", "test"], arguments].concat()).expect(2);
    }
    let wrong = server.command(&["ai", "test", "--casting", "788976", "--at", "yesterday"]).expect(2);
    assert!(wrong.problem().to_string().contains("\"at\""), "{}", wrong.problem());
}
