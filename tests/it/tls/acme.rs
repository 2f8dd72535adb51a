//! Certificates by ACME, from an authority of the tests' own that checks what the protocol lets it check.

use std::{
    net::SocketAddr,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    thread::sleep,
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{
    Binary, Request, Server, Setup,
    authority::{Authority, Behaviour, TOKEN},
    eventually, tls,
};

const NAME: &str = "yarrow.test";

fn setup(authority: &Authority) -> Setup {
    Setup::default()
        .with("SERVER_DOMAIN", NAME)
        .with("SERVER_REDIRECT_LISTEN", "127.0.0.1:0")
        .with("ACME_DIRECTORY", authority.directory())
        .with("ACME_CONTACT", "operator@yarrow.test")
        .with("ACME_RETRY_AFTER", "1 s")
}

/// Starts a server and tells the authority where its names are to be looked at.
fn start(authority: &Authority, setup: Setup) -> Server {
    let mut server = setup.start();
    authority.look_at(redirects_at(&mut server));
    server
}

fn redirects_at(server: &mut Server) -> SocketAddr {
    let line = server.wait_for_line("yarrow redirects to HTTPS on http://");
    line.rsplit("http://").next().unwrap().trim().parse().unwrap()
}

fn is_served(server: &Server, authority: &Authority) -> bool {
    tls::get(server.address(), NAME, &authority.root(), "/healthz").is_ok_and(|answer| answer.status == 200)
}

fn kept(directory: &Path) -> Vec<(String, u32)> {
    let files = std::fs::read_dir(directory.join("acme")).unwrap().map(Result::unwrap);
    let mut files: Vec<_> = files
        .map(|file| {
            let name = file.file_name().into_string().unwrap();
            (name, file.metadata().unwrap().permissions().mode() & 0o777)
        })
        .collect();
    files.sort();
    files
}

#[test]
fn a_certificate_is_got_kept_and_not_asked_for_again() {
    let authority = Authority::new(Behaviour::default());
    let server = start(&authority, setup(&authority));
    eventually("a certificate comes", || is_served(&server, &authority));
    assert_eq!(authority.issued(), 1);
    assert_eq!(authority.contacts(), ["mailto:operator@yarrow.test"]);
    let files = kept(server.directory());
    assert!(files.iter().all(|(_, mode)| *mode == 0o600) && files.len() == 2, "{files:?}");
    assert!(files[0].0.starts_with("account-") && files[1].0.starts_with(NAME), "{files:?}");

    let server = server.crash_and_restart(setup(&authority));
    eventually("the kept certificate is shown", || is_served(&server, &authority));
    assert_eq!(authority.issued(), 1);
    assert_eq!(authority.complaints(), [""; 0]);
}

/// Everything below a directory, with who owns it.
fn owners(directory: &Path) -> Vec<(PathBuf, u32)> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| if path.is_dir() { owners(&path) } else { Vec::new() };
    entries
        .flat_map(|path| [vec![(path.clone(), path.symlink_metadata().unwrap().uid())], below(path)].concat())
        .collect()
}

#[test]
fn what_a_server_makes_that_root_starts_belongs_to_whose_directory_it_is() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    std::fs::create_dir(&directory).unwrap();
    // Who is not root can give nothing away, and makes everything as themselves.
    let own = directory.metadata().unwrap().uid();
    let owner = if own == 0 { 65534 } else { own };
    chown(&directory, Some(owner), None).unwrap();
    let authority = Authority::new(Behaviour::default());
    let server = start(&authority, setup(&authority).on(&directory));
    eventually("a certificate comes", || is_served(&server, &authority));
    let found = owners(&directory);
    assert!(found.iter().all(|(_, found)| *found == owner), "{owner}: {found:?}");
    assert_eq!(kept(&directory).len(), 2);
}

#[test]
fn a_certificate_is_renewed_in_time_with_the_same_account() {
    let authority = Authority::new(Behaviour { expired_certificates: 1, ..Behaviour::default() });
    let server = start(&authority, setup(&authority));
    eventually("it is renewed", || is_served(&server, &authority));
    assert_eq!((authority.issued(), authority.accounts()), (2, 1));
    assert_eq!(authority.complaints(), [""; 0]);
}

#[test]
fn an_attempt_that_fails_is_repeated_and_the_service_lives_meanwhile() {
    let authority = Authority::new(Behaviour { failing_orders: 2, stale_nonces: 1, ..Behaviour::default() });
    let mut server = start(&authority, setup(&authority).with("SERVER_ADMIN_LISTEN", "127.0.0.1:0"));
    let line = server.wait_for_line("no certificate was got by ACME");
    assert!(line.contains("not today") && !line.contains("fault in the service"), "{line}");
    // Without a certificate there are no handshakes; everything else runs.
    let line = server.wait_for_line("yarrow serves /admin on http://");
    let inside = line.rsplit("http://").next().unwrap().trim().to_owned();
    Request::new("GET", &format!("http://{inside}/readyz")).send().expect(200);
    eventually("a certificate comes", || is_served(&server, &authority));
    assert_eq!(authority.issued(), 1);
    assert_eq!(authority.complaints(), [""; 0]);
    assert_eq!(server.terminate(), Some(0));
}

/// A server whose certificate was lost, with the place that a new one is written to before it takes its own.
fn start_without_the_one_before(authority: &Authority, obstructed: bool) -> (Server, SocketAddr, PathBuf) {
    let server = start(authority, setup(authority));
    eventually("a certificate comes", || is_served(&server, authority));
    authority.look_away();
    let (certificate, _) = kept(server.directory()).pop().unwrap();
    let certificate = server.directory().join("acme").join(certificate);
    let unfinished = certificate.with_extension("unfinished");
    std::fs::remove_file(certificate).unwrap();
    if obstructed {
        std::fs::create_dir(&unfinished).unwrap();
    }
    let mut server = server.crash_and_restart(setup(authority));
    let address = redirects_at(&mut server);
    (server, address, unfinished)
}

#[test]
fn nothing_is_asked_of_an_authority_while_its_certificate_could_not_be_written() {
    let authority = Authority::new(Behaviour::default());
    let (mut server, address, unfinished) = start_without_the_one_before(&authority, true);
    authority.look_at(address);
    server.wait_for_line("no certificate was got by ACME");
    sleep(Duration::from_secs(3));
    assert_eq!((authority.issued(), is_served(&server, &authority)), (1, false));
    std::fs::remove_dir(unfinished).unwrap();
    eventually("a certificate comes", || is_served(&server, &authority));
    assert_eq!((authority.issued(), kept(server.directory()).len()), (2, 2));
}

#[test]
fn a_certificate_that_cannot_be_written_is_shown_and_no_other_is_asked_for() {
    let authority = Authority::new(Behaviour::default());
    let (mut server, address, unfinished) = start_without_the_one_before(&authority, false);
    let proof = format!("http://{address}/.well-known/acme-challenge/{TOKEN}");
    eventually("it is to prove its name", || Request::new("GET", &proof).send().status == 200);
    std::fs::create_dir(&unfinished).unwrap();
    authority.look_at(address);
    eventually("the certificate is shown", || is_served(&server, &authority));
    server.wait_for_line("the certificate got by ACME cannot be kept");
    sleep(Duration::from_secs(3));
    assert_eq!((authority.issued(), is_served(&server, &authority)), (2, true));
    assert_eq!(kept(server.directory()).len(), 2, "an account, and what is in the way");
    std::fs::remove_dir(&unfinished).unwrap();
    eventually("it is kept", || kept(server.directory()).len() == 2 && !unfinished.exists());
    let server = server.crash_and_restart(setup(&authority));
    eventually("the kept certificate is shown", || is_served(&server, &authority));
    assert_eq!(authority.issued(), 2);
}

/// What a command says that is told of the same names and authority.
fn said(server: &Server, authority: &Authority, arguments: &[&str], exit_code: i32) -> Value {
    let mut command = Binary::command();
    command.args(arguments).args(["--json", "--listen", "127.0.0.1:0", "--data-dir"]).arg(server.directory());
    command.env("YARROW_SERVER_DOMAIN", NAME).env("YARROW_ACME_DIRECTORY", authority.directory());
    let ended = command.env("YARROW_SERVER_REDIRECT_LISTEN", "127.0.0.1:0").output().unwrap();
    assert_eq!(ended.status.code(), Some(exit_code), "{}", String::from_utf8_lossy(&ended.stdout));
    serde_json::from_slice(&ended.stdout).unwrap()
}

#[test]
fn a_certificate_that_ran_out_is_told_everywhere() {
    let authority = Authority::new(Behaviour { expired_certificates: 1_000, ..Behaviour::default() });
    let mut server = start(&authority, setup(&authority).with_metrics());
    let line = server.wait_for_line("showing the certificate got by ACME, which has expired");
    assert!(line.contains("WARN"), "{line}");
    let doctor = said(&server, &authority, &["doctor"], 5);
    let check = doctor["checks"].as_array().unwrap().iter().find(|check| check["group"] == "tls").unwrap();
    assert_eq!((&check["name"], &check["verdict"]), (&json!("validity"), &json!("fail")));
    let alerts = said(&server, &authority, &["alerts", "list"], 0);
    let alert = alerts["items"].as_array().unwrap().iter().find(|item| item["rule"] == "certificate_expiring");
    assert_eq!(alert.unwrap()["firing"], true, "{alerts}");
    let page = Request::new("GET", &server.metrics()).send().expect(200).text();
    assert!(page.contains("\nyarrow_certificate_expiry_timestamp_seconds 978307200.0\n"), "{page}");
}

#[test]
fn a_certificate_of_another_authority_is_not_shown() {
    let (trial, real) = (Authority::new(Behaviour::default()), Authority::new(Behaviour::default()));
    let server = start(&trial, setup(&trial));
    eventually("a certificate comes", || is_served(&server, &trial));
    let mut server = server.crash_and_restart(setup(&real));
    real.look_at(redirects_at(&mut server));
    eventually("the other one gives one", || is_served(&server, &real));
    assert_eq!((trial.issued(), real.issued()), (1, 1));
}
