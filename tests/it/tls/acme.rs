//! Certificates by ACME, from the fake ACME server.

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
    acme_server::{AcmeServer, ModelBehaviour, TOKEN},
    eventually, tls,
};

const NAME: &str = "yarrow.test";

fn setup(authority: &AcmeServer) -> Setup {
    Setup::default()
        .with("SERVER_DOMAIN", NAME)
        .with("SERVER_REDIRECT_LISTEN", "127.0.0.1:0")
        .with("ACME_DIRECTORY", authority.directory())
        .with("ACME_CONTACT", "operator@yarrow.test")
        .with("ACME_RETRY_AFTER", "1 s")
}

/// Starts a server and tells the ACME server its address.
fn start(authority: &AcmeServer, setup: Setup) -> Server {
    let mut server = setup.in_own_process().start();
    authority.set_address(redirects_at(&mut server));
    server
}

fn redirects_at(server: &mut Server) -> SocketAddr {
    let line = server.wait_for_line("yarrow redirects to HTTPS on http://");
    line.rsplit("http://").next().unwrap().trim().parse().unwrap()
}

fn is_served(server: &Server, authority: &AcmeServer) -> bool {
    tls::get(server.address(), NAME, &authority.root(), "/healthz").is_ok_and(|response| response.status == 200)
}

fn stored(directory: &Path) -> Vec<(String, u32)> {
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
fn obtains_stores_and_reuses_a_certificate() {
    let authority = AcmeServer::new(ModelBehaviour::default());
    let server = start(&authority, setup(&authority));
    eventually("a certificate is issued", || is_served(&server, &authority));
    assert_eq!(authority.issued(), 1);
    assert_eq!(authority.contacts(), ["mailto:operator@yarrow.test"]);
    let files = stored(server.directory());
    assert!(files.iter().all(|(_, mode)| *mode == 0o600) && files.len() == 2, "{files:?}");
    assert!(files[0].0.starts_with("account-") && files[1].0.starts_with(NAME), "{files:?}");

    let server = server.crash_and_restart(setup(&authority));
    eventually("the stored certificate is served", || is_served(&server, &authority));
    assert_eq!(authority.issued(), 1);
    assert_eq!(authority.complaints(), [""; 0]);
}

/// Returns everything below a directory with its owner.
fn owners(directory: &Path) -> Vec<(PathBuf, u32)> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| if path.is_dir() { owners(&path) } else { Vec::new() };
    entries
        .flat_map(|path| [vec![(path.clone(), path.symlink_metadata().unwrap().uid())], below(path)].concat())
        .collect()
}

#[test]
fn files_created_by_root_belong_to_the_directorys_owner() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    std::fs::create_dir(&directory).unwrap();
    // Without root, files belong to the current user.
    let own = directory.metadata().unwrap().uid();
    let owner = if own == 0 { 65534 } else { own };
    chown(&directory, Some(owner), None).unwrap();
    let authority = AcmeServer::new(ModelBehaviour::default());
    let server = start(&authority, setup(&authority).on(&directory));
    eventually("a certificate is issued", || is_served(&server, &authority));
    let found = owners(&directory);
    assert!(found.iter().all(|(_, found)| *found == owner), "{owner}: {found:?}");
    assert_eq!(stored(&directory).len(), 2);
}

#[test]
fn renews_a_certificate_in_time_with_the_same_account() {
    let authority = AcmeServer::new(ModelBehaviour { expired_certificates: 1, ..ModelBehaviour::default() });
    let server = start(&authority, setup(&authority));
    eventually("it is renewed", || is_served(&server, &authority));
    assert_eq!((authority.issued(), authority.accounts()), (2, 1));
    assert_eq!(authority.complaints(), [""; 0]);
}

#[test]
fn creates_a_new_account_if_the_authority_forgot_the_stored_one() {
    let authority = AcmeServer::new(ModelBehaviour::default());
    let server = start(&authority, setup(&authority));
    eventually("a certificate is issued", || is_served(&server, &authority));
    let (certificate, _) = stored(server.directory()).pop().unwrap();
    std::fs::remove_file(server.directory().join("acme").join(certificate)).unwrap();
    authority.forget_accounts();
    authority.forget_address();
    let mut server = server.crash_and_restart(setup(&authority));
    authority.set_address(redirects_at(&mut server));
    eventually("another certificate is issued", || is_served(&server, &authority));
    let line = server.wait_for_line("does not know the ACME account");
    assert!(line.contains("/acme/account-"), "{line}");
    assert_eq!((authority.issued(), authority.accounts(), stored(server.directory()).len()), (2, 2, 2));
    assert_eq!(authority.complaints(), [""; 0]);
}

#[test]
fn retries_a_failed_attempt_while_the_service_runs() {
    let authority = AcmeServer::new(ModelBehaviour { failing_orders: 2, stale_nonces: 1, ..ModelBehaviour::default() });
    let mut server = start(&authority, setup(&authority).with("SERVER_ADMIN_LISTEN", "127.0.0.1:0"));
    let line = server.wait_for_line("could not obtain a certificate by ACME");
    assert!(line.contains("not today") && !line.contains("fault in the service"), "{line}");
    // Without a certificate handshakes fail, and everything else works.
    let line = server.wait_for_line("yarrow serves /admin on http://");
    let inside = line.rsplit("http://").next().unwrap().trim().to_owned();
    Request::new("GET", &format!("http://{inside}/readyz")).send().expect(200);
    eventually("a certificate is issued", || is_served(&server, &authority));
    assert_eq!(authority.issued(), 1);
    assert_eq!(authority.complaints(), [""; 0]);
    assert_eq!(server.terminate(), Some(0));
}

/// Starts a server whose certificate was lost. Returns the temporary path of the next one.
fn start_without_the_one_before(authority: &AcmeServer, obstructed: bool) -> (Server, SocketAddr, PathBuf) {
    let server = start(authority, setup(authority));
    eventually("a certificate is issued", || is_served(&server, authority));
    authority.forget_address();
    let (certificate, _) = stored(server.directory()).pop().unwrap();
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
fn requests_no_certificate_while_it_cannot_be_stored() {
    let authority = AcmeServer::new(ModelBehaviour::default());
    let (mut server, address, unfinished) = start_without_the_one_before(&authority, true);
    authority.set_address(address);
    server.wait_for_line("could not obtain a certificate by ACME");
    sleep(Duration::from_secs(3));
    assert_eq!((authority.issued(), is_served(&server, &authority)), (1, false));
    std::fs::remove_dir(unfinished).unwrap();
    eventually("a certificate is issued", || is_served(&server, &authority));
    assert_eq!((authority.issued(), stored(server.directory()).len()), (2, 2));
}

#[test]
fn serves_a_certificate_that_cannot_be_stored_and_requests_no_other() {
    let authority = AcmeServer::new(ModelBehaviour::default());
    let (mut server, address, unfinished) = start_without_the_one_before(&authority, false);
    let proof = format!("http://{address}/.well-known/acme-challenge/{TOKEN}");
    eventually("a challenge is validated", || Request::new("GET", &proof).send().status == 200);
    std::fs::create_dir(&unfinished).unwrap();
    authority.set_address(address);
    eventually("the certificate is served", || is_served(&server, &authority));
    server.wait_for_line("could not store the ACME certificate");
    sleep(Duration::from_secs(3));
    assert_eq!((authority.issued(), is_served(&server, &authority)), (2, true));
    assert_eq!(stored(server.directory()).len(), 2, "an account, and an obstacle");
    std::fs::remove_dir(&unfinished).unwrap();
    eventually("it is stored", || stored(server.directory()).len() == 2 && !unfinished.exists());
    let server = server.crash_and_restart(setup(&authority));
    eventually("the stored certificate is served", || is_served(&server, &authority));
    assert_eq!(authority.issued(), 2);
}

/// Returns the certificate message of a command.
fn message(server: &Server, authority: &AcmeServer, arguments: &[&str], exit_code: i32) -> Value {
    let mut command = Binary::command();
    command.args(arguments).args(["--json", "--listen", "127.0.0.1:0", "--data-dir"]).arg(server.directory());
    command.env("YARROW_SERVER_DOMAIN", NAME).env("YARROW_ACME_DIRECTORY", authority.directory());
    let ended = command.env("YARROW_SERVER_REDIRECT_LISTEN", "127.0.0.1:0").output().unwrap();
    assert_eq!(ended.status.code(), Some(exit_code), "{}", String::from_utf8_lossy(&ended.stdout));
    serde_json::from_slice(&ended.stdout).unwrap()
}

#[test]
fn reports_an_expired_certificate_everywhere() {
    let authority = AcmeServer::new(ModelBehaviour { expired_certificates: 1_000, ..ModelBehaviour::default() });
    let mut server = start(&authority, setup(&authority).with_metrics());
    let line = server.wait_for_line("loaded an ACME certificate that has expired");
    assert!(line.contains("WARN"), "{line}");
    let doctor = message(&server, &authority, &["doctor"], 5);
    let check = doctor["checks"].as_array().unwrap().iter().find(|check| check["group"] == "tls").unwrap();
    assert_eq!((&check["name"], &check["verdict"]), (&json!("validity"), &json!("fail")));
    let alerts = message(&server, &authority, &["alerts", "list"], 0);
    let alert = alerts["items"].as_array().unwrap().iter().find(|item| item["rule"] == "certificate_expiring");
    assert_eq!(alert.unwrap()["firing"], true, "{alerts}");
    let page = Request::new("GET", &server.metrics()).send().expect(200).text();
    assert!(page.contains("\nyarrow_certificate_expiry_timestamp_seconds 978307200.0\n"), "{page}");
}

#[test]
fn does_not_serve_a_certificate_of_another_authority() {
    let (trial, real) = (AcmeServer::new(ModelBehaviour::default()), AcmeServer::new(ModelBehaviour::default()));
    let server = start(&trial, setup(&trial));
    eventually("a certificate is issued", || is_served(&server, &trial));
    let mut server = server.crash_and_restart(setup(&real));
    real.set_address(redirects_at(&mut server));
    eventually("the other one responds", || is_served(&server, &real));
    assert_eq!((trial.issued(), real.issued()), (1, 1));
}
