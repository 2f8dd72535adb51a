//! Files of keys and certificates: every spelling is read, and no fault repeats any of their content.

use std::process::Output;

use super::{NAME, with};
use crate::support::{
    Binary, Server,
    tls::{self, PemPair},
};

/// The key's text without its armour, and in several damaged forms that hold it.
fn damaged(key: &str) -> [String; 6] {
    let body = body_of(key);
    [
        key.replace("-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY----"),
        key.replace("-----END PRIVATE KEY-----", ""),
        key.replace("PRIVATE", "SECRET"),
        format!("-----BEGIN {body}"),
        format!("!{body}"),
        format!("{{\"key\":\"{body}\"}}"),
    ]
}

fn body_of(key: &str) -> String {
    key.lines().filter(|line| !line.starts_with("-----")).collect()
}

/// Panics if any part of the key, in text or as a list of bytes, is in the output.
#[track_caller]
fn assert_hides(output: &str, key: &str) {
    let body = body_of(key);
    for start in 0..body.len() - 12 {
        assert!(!output.contains(&body[start..start + 12]), "{output}");
    }
    let bytes: Vec<_> = body.bytes().skip(20).take(6).map(|byte| byte.to_string()).collect();
    assert!(!output.contains(&bytes.join(", ")), "{output}");
}

fn printed(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// Runs a command with this certificate and key.
fn run(arguments: &[&str], certificate: &str, key: &str) -> Output {
    let mut command = Binary::command();
    command.args(arguments);
    command.env("YARROW_SERVER_TLS_CERTIFICATE", certificate).env("YARROW_SERVER_TLS_KEY", key).output().unwrap()
}

/// Made for this test by OpenSSL.
const P_521_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MIHuAgEAMBAGByqGSM49AgEGBSuBBAAjBIHWMIHTAgEBBEIAcOsl3+5BXY6b2BHy\n\
    GpSxuqvVZW02phEASdD3aHNPcIWpWE3rEHHlQXx6kcNFVoDhVpti6d+TmW5+n0X6\n\
    IIAd9GqhgYkDgYYABAHfk6Z+ijMtNAx4O73uR4MAGkeJN5kOOom83yykEKD45LYC\n\
    UJ8T54PVrw28OJQ8LhQfMQTrdSJ4Qias10lZGrGRPQCeMRU0Gaw6dtezS6dm/dmZ\n\
    4Y0MQH5GKOp7mkxZKXpgpXzHEALx7NcD6XMqN8b2ed79L2c7V5oY+XFH38Bt3XYX\n\
    Gg==\n\
    -----END PRIVATE KEY-----\n";

#[test]
fn an_unsupported_kind_of_key_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let pair = PemPair::new(NAME);
    std::fs::write(pair.key(), P_521_KEY).unwrap();
    let data = directory.path().to_str().unwrap();
    let output = run(&["serve", "--listen", "127.0.0.1:0", "--data-dir", data], &pair.certificate(), &pair.key());
    assert_eq!(output.status.code(), Some(3));
    assert!(printed(&output).contains("ECDSA on P-256 or P-384"), "{}", printed(&output));
    assert_hides(&printed(&output), P_521_KEY);
}

#[test]
fn a_damaged_key_is_printed_nowhere() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let bundle = directory.path().join("bundle.json");
    let (data, bundle) = (data.to_str().unwrap(), bundle.to_str().unwrap());
    let pair = PemPair::new(NAME);
    let key = std::fs::read_to_string(pair.key()).unwrap();
    for damaged in damaged(&key) {
        std::fs::write(pair.key(), &damaged).unwrap();
        let started = run(&["serve", "--listen", "127.0.0.1:0", "--data-dir", data], &pair.certificate(), &pair.key());
        assert_eq!(started.status.code(), Some(3), "{}", printed(&started));
        assert!(printed(&started).contains("server.tls_key: "), "{}", printed(&started));
        assert_hides(&printed(&started), &key);
        let doctor = ["doctor", "--listen", "127.0.0.1:0", "--data-dir", data, "--bundle", bundle];
        let examined = run(&doctor, &pair.certificate(), &pair.key());
        assert_hides(&printed(&examined), &key);
        assert_hides(&std::fs::read_to_string(bundle).unwrap(), &key);
        std::fs::remove_file(bundle).unwrap();
        // The key in the place of the certificate.
        let swapped = run(&["serve", "--listen", "127.0.0.1:0", "--data-dir", data], &pair.key(), &pair.certificate());
        assert_eq!(swapped.status.code(), Some(3));
        assert_hides(&printed(&swapped), &key);
        // The content in the place of the name.
        for content in [&damaged, &body_of(&key)] {
            let content = run(&["config", "show"], &pair.certificate(), content);
            assert_eq!(content.status.code(), Some(3));
            assert_hides(&printed(&content), &key);
        }
    }
}

#[test]
fn a_running_server_does_not_log_a_damaged_key() {
    let pair = PemPair::new(NAME);
    let key = std::fs::read_to_string(pair.key()).unwrap();
    let mut server: Server = with(&pair).in_own_process().start();
    std::fs::write(pair.key(), &damaged(&key)[0]).unwrap();
    server.wait_for_line("could not reload the certificate");
    assert_hides(&server.lines().join("\n"), &key);
    tls::get(server.address(), NAME, &pair.root(), "/readyz").unwrap().expect(200);
}

#[test]
fn serves_every_spelling_of_key_and_certificate() {
    let pair = PemPair::new(NAME);
    let (certificate, key) = (pair.root(), std::fs::read_to_string(pair.key()).unwrap());
    let spellings: [fn(&str) -> String; 6] = [
        |text| text.replace('\n', "\r\n"),
        |text| text.replace('\n', "\\n"),
        |text| text.replace('\n', " "),
        |text| format!("\u{feff}{text}"),
        |text| format!("a note\n{text}"),
        body_of,
    ];
    for spelling in spellings {
        std::fs::write(pair.certificate(), spelling(&certificate)).unwrap();
        std::fs::write(pair.key(), spelling(&key)).unwrap();
        let server = with(&pair).start();
        tls::get(server.address(), NAME, &certificate, "/readyz").unwrap().expect(200);
    }
}

#[test]
fn a_secret_in_the_place_of_its_file_is_not_printed() {
    for variable in ["YARROW_LLM_API_KEY_FILE", "YARROW_AUTH_SECRET_KEY_FILE", "YARROW_EMAIL_PASSWORD_FILE"] {
        let ended = Binary::command().args(["config", "show"]).env(variable, "hunter2-hunter2").output().unwrap();
        assert_eq!(ended.status.code(), Some(3));
        assert!(printed(&ended).contains(variable) && !printed(&ended).contains("hunter2"), "{}", printed(&ended));
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_secret() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("model");
    std::fs::write(&file, "\u{feff}oracle\r\n").unwrap();
    let config = directory.path().join("yarrow.toml");
    std::fs::write(&config, "\u{feff}[coins]\nconsume = 7\n").unwrap();
    let mut command = Binary::command();
    command.args(["config", "show", "--config"]).arg(&config).env("YARROW_LLM_MODEL_FILE", &file);
    let shown = printed(&command.output().unwrap());
    assert!(shown.contains("\"oracle\""), "{shown}");
    let consume = shown.lines().find(|line| line.contains("coins.consume")).unwrap();
    assert!(consume.contains('7'), "{consume}");
}
