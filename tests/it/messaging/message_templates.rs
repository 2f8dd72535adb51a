//! Templates of messages that an operator wrote.

use std::fs;

use crate::support::{CommandOutput, Setup, eventually, install};

#[test]
fn an_operators_template_is_sent() {
    let own = tempfile::tempdir().unwrap();
    fs::write(
        own.path().join("sign-in.en.txt"),
        "Welcome to {brand}\r\n\r\n{code}\r\n\r\nUse it within {minutes} min.\r\n",
    )
    .unwrap();
    let setup = Setup::default().with("EMAIL_TEMPLATE_DIR", own.path().display()).with("BRAND_NAME", "Mountain");
    let server = setup.start();
    for (email, language) in [("a@example.com", "en"), ("b@example.com", "zh")] {
        let ask = server.post("/api/v1/auth/send-code").json(&serde_json::json!({ "email": email }));
        ask.header("accept-language", language).send().expect(200);
        eventually("the code is printed", || !server.sent_email_codes(email).is_empty());
    }
    let lines = server.lines();
    let line = |email: &str| lines.iter().find(|line| line.contains(&format!("Email to {email}"))).unwrap().clone();
    let own_line = line("a@example.com");
    assert!(own_line.contains("Welcome to Mountain: ") && own_line.ends_with("Use it within 10 min."), "{own_line}");
    assert!(line("b@example.com").contains("您的登录验证码（Mountain）"), "{lines:#?}");
}

#[test]
fn faulty_templates_prevent_startup() {
    let own = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("sign-in.en.txt", "Your code {code}\n\n{code}"),
        ("address.zh.txt", "验证码\n\n{minutes}"),
        ("layout.html", "<html>{body}</html>"),
        ("cancellation.en.txt", "Subject\n\n{code} {token}"),
    ] {
        fs::write(own.path().join(name), text).unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    install(directory.path());
    let settings = [("YARROW_EMAIL_TEMPLATE_DIR", own.path().to_str().unwrap())];
    let output = CommandOutput::run_with(directory.path(), &settings, &["doctor"], "").expect(3);
    let problem = output.problem().to_string();
    for fault in [
        "email.template_dir: address.zh.txt: must have the variable {code}",
        "email.template_dir: cancellation.en.txt: has the unknown variable {token}; known are {code}, {minutes}, {brand}",
        "email.template_dir: layout.html: must have the variable {subject}",
        "email.template_dir: sign-in.en.txt: must not have {code} in the subject",
    ] {
        assert!(problem.contains(fault), "{fault} is not in {problem}");
    }
}

#[test]
fn the_doctor_names_an_operators_templates() {
    let own = tempfile::tempdir().unwrap();
    fs::write(own.path().join("sign-in.en.txt"), "Welcome\n\n{code}").unwrap();
    let directory = tempfile::tempdir().unwrap();
    install(directory.path());
    let settings = [("YARROW_EMAIL_TEMPLATE_DIR", own.path().to_str().unwrap())];
    let arguments = ["doctor", "--listen", "127.0.0.1:0"];
    let found = CommandOutput::run_with(directory.path(), &settings, &arguments, "").json();
    let detail = |name: &str| {
        let checks = found["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["group"] == "configuration" && check["name"] == name).unwrap();
        check["detail"].as_str().unwrap().to_owned()
    };
    assert_eq!(detail("messages"), own.path().join("sign-in.en.txt").to_str().unwrap());
    assert_eq!(detail("prompts"), "built in");
}

#[test]
fn the_name_of_the_service_is_one_line() {
    let directory = tempfile::tempdir().unwrap();
    for (name, fault) in [
        ("", "brand.name: must not be empty"),
        ("a\u{202E}b", "brand.name: must not"),
        (&"x".repeat(41), "brand.name: must be"),
    ] {
        let output = CommandOutput::run_with(directory.path(), &[("YARROW_BRAND_NAME", name)], &["config", "show"], "");
        let problem = output.expect(3).problem().to_string();
        assert!(problem.contains(fault), "{problem}");
    }
}
