//! The demonstration, as somebody meets it who has just got the program.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::kit::{Binary, raw};

#[test]
fn a_demonstration_serves_what_it_says_and_leaves_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let own = temporary.path().join("own");
    let mut process = Binary::command()
        .args(["demo", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(&own)
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
    let ready = lines.find(|line| line.starts_with("yarrow is listening on http://")).unwrap();
    let address: SocketAddr = ready.rsplit("http://").next().unwrap().parse().unwrap();
    let told = lines.find(|line| line.contains(" castings of the last four weeks, in ")).unwrap();
    let directory = PathBuf::from(told.rsplit(" in ").next().unwrap().trim_end_matches('.'));
    assert!(directory.starts_with(temporary.path()), "{told}");
    assert_eq!(directory.metadata().unwrap().permissions().mode() & 0o777, 0o700, "the keys in it are for nobody else");
    assert!(!own.exists(), "a demonstration must not write into somebody's data");

    let call = |path: &str, form: &str, token: &str| {
        let length = form.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: yarrow\r\nConnection: close\r\n{token}\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{form}"
        );
        raw::exchange(address, request.as_bytes())
    };
    assert_eq!(call("/auth/send-code", "phoneNumber=13800138000", "").status, 200);
    let signed_in = call("/auth/login", "phoneNumber=13800138000&code=246810", "").expect(200).json();
    let token = format!("Authorization: Bearer {}\r\n", signed_in["token"].as_str().unwrap());
    let form = "question=What+should+I+let+go+of&divinationData=878878";
    let interpreted = call("/divination/enhanced", form, &token).expect(200).json();
    assert_eq!(interpreted["provider"], "builtin", "{interpreted}");

    assert!(Command::new("kill").arg("-TERM").arg(process.id().to_string()).status().unwrap().success());
    assert_eq!(process.wait().unwrap().code(), Some(0));
    assert!(!directory.exists(), "it is deleted at the end");
}
