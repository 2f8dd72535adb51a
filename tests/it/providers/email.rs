//! Email delivery over plain SMTP, STARTTLS and TLS, and the mapping of rejections.

use std::time::{Duration, Instant};

use yarrow::{
    providers::{
        Failure, FailureKind, MessageReceipt,
        email::{
            EmailMessage, EmailSender,
            letter::{Letter, LetterWriter},
            smtp::{Encryption, Smtp, SmtpSettings},
        },
    },
    types::{EmailAddress, Locale},
};

use crate::support::{
    fake_provider::free_address,
    fake_smtp::{Dialect, FakeSmtpServer, Offer, SmtpFault, Step},
};

/// 2026-01-15T08:30:00Z.
const NOW: i64 = 1_768_465_800_000;
const AUTH: Option<(&str, &str, &str)> = Some(("PLAIN LOGIN", "yarrow", "open sesame"));

fn settings(server: &FakeSmtpServer, encryption: Encryption) -> SmtpSettings {
    SmtpSettings {
        host: "localhost".into(),
        port: server.port(),
        encryption,
        ca: Some(server.certificate.clone()),
        username: None,
        password: None,
        from: "易 Yarrow <no-reply@yarrow.example>".into(),
        timeout: Duration::from_secs(20),
    }
}

fn with_password(settings: SmtpSettings, password: &str) -> SmtpSettings {
    SmtpSettings { username: Some("yarrow".into()), password: Some(password.into()), ..settings }
}

fn message() -> EmailMessage {
    let to = EmailAddress::parse("li.ming@example.com").unwrap();
    let writer = LetterWriter::load("山泽", None).unwrap();
    writer.code(Letter::SignIn, to, Locale::Chinese, ("01234567", 10))
}

fn send(settings: SmtpSettings) -> Result<MessageReceipt, Failure> {
    Smtp::new(settings, Box::new(|| NOW)).unwrap().send(&message())
}

#[test]
fn delivers_a_message_over_every_encryption() {
    for (encryption, starttls, tls) in
        [(Encryption::None, false, false), (Encryption::StartTls, true, false), (Encryption::Tls, false, true)]
    {
        for mechanisms in ["PLAIN", "LOGIN"] {
            let auth = Some((mechanisms, "yarrow", "open sesame"));
            let server = FakeSmtpServer::offering(Offer { starttls, tls, auth, ..Offer::default() });
            send(with_password(settings(&server, encryption), "open sesame")).unwrap();
            let mails = server.mails();
            assert_eq!(mails.len(), 1);
            let mail = &mails[0];
            assert_eq!(mail.was_encrypted, encryption != Encryption::None);
            assert_eq!(
                (mail.from.as_str(), mail.to.as_slice()),
                ("no-reply@yarrow.example", &["li.ming@example.com".to_owned()][..])
            );
            assert_eq!(mail.credentials, Some(("yarrow".into(), "open sesame".into())));
            assert_eq!(mail.hello, "yarrow.example");
        }
    }
}

#[test]
fn a_message_has_headers_and_both_bodies() {
    let server = FakeSmtpServer::offering(Offer::default());
    send(settings(&server, Encryption::None)).unwrap();
    let mail = &server.mails()[0];
    assert!(mail.data.is_ascii());
    assert_eq!(mail.header("date").as_deref(), Some("Thu, 15 Jan 2026 08:30:00 +0000"));
    assert_eq!(mail.header("to").as_deref(), Some("li.ming@example.com"));
    assert!(mail.header("from").unwrap().ends_with("<no-reply@yarrow.example>"), "{:?}", mail.header("from"));
    assert!(mail.header("message-id").unwrap().ends_with("@yarrow.example>"));
    assert_eq!(mail.header("auto-submitted").as_deref(), Some("auto-generated"));
    assert!(mail.header("subject").unwrap().starts_with("=?utf-8?"), "{:?}", mail.header("subject"));
    assert!(mail.header("content-type").unwrap().starts_with("multipart/alternative"));
    let (text, html) = (mail.part("text/plain"), mail.part("text/html"));
    assert!(text.contains("您的登录验证码是：") && text.contains("01234567"), "{text}");
    assert!(html.contains("<title>您的登录验证码（山泽）</title>") && html.contains("01234567"), "{html}");
}

#[test]
fn two_messages_have_two_ids_and_two_connections() {
    let server = FakeSmtpServer::offering(Offer::default());
    let sender = Smtp::new(settings(&server, Encryption::None), Box::new(|| NOW)).unwrap();
    sender.send(&message()).unwrap();
    sender.send(&message()).unwrap();
    let mails = server.mails();
    assert_ne!(mails[0].header("message-id"), mails[1].header("message-id"));
}

#[test]
fn rejects_an_untrusted_certificate() {
    let another = FakeSmtpServer::offering(Offer::default());
    for (encryption, offer) in [
        (Encryption::StartTls, Offer { starttls: true, ..Offer::default() }),
        (Encryption::Tls, Offer { tls: true, ..Offer::default() }),
    ] {
        let server = FakeSmtpServer::offering(offer);
        let wrong = [
            SmtpSettings { ca: None, ..settings(&server, encryption) },
            SmtpSettings { ca: Some(another.certificate.clone()), ..settings(&server, encryption) },
            SmtpSettings { host: "127.0.0.1".into(), ..settings(&server, encryption) },
        ];
        for settings in wrong {
            let failure = send(settings).unwrap_err();
            assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Unreachable, "tls_failed"));
        }
        assert!(server.mails().is_empty());
    }
}

#[test]
fn sends_nothing_unencrypted_if_encryption_is_required() {
    let server = FakeSmtpServer::offering(Offer { auth: AUTH, ..Offer::default() });
    let failure = send(with_password(settings(&server, Encryption::StartTls), "open sesame")).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Misconfigured, "no_starttls"));
    assert!(failure.is_certainly_not_accepted());
}

#[test]
fn a_wrong_password_is_a_configuration_error() {
    let server = FakeSmtpServer::offering(Offer { auth: AUTH, ..Offer::default() });
    let failure = send(with_password(settings(&server, Encryption::None), "wrong")).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Misconfigured, "smtp_535"));
    let failure = send(settings(&server, Encryption::None)).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Misconfigured, "smtp_530"));
    let server = FakeSmtpServer::offering(Offer::default());
    let failure = send(with_password(settings(&server, Encryption::None), "open sesame")).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Misconfigured, "no_auth_mechanism"));
}

#[test]
fn every_rejection_maps_to_an_action() {
    use FailureKind::{Busy, Misconfigured, OutcomeUnknown, RecipientLimited, Refused, Unreachable};
    let cases = [
        (Step::Greeting, SmtpFault::Refuse(421), Busy, true),
        (Step::Greeting, SmtpFault::Refuse(554), Misconfigured, true),
        (Step::Greeting, SmtpFault::HangUp, Unreachable, true),
        (Step::Hello, SmtpFault::HangUp, Unreachable, true),
        (Step::Sender, SmtpFault::Refuse(553), Misconfigured, true),
        (Step::Sender, SmtpFault::Refuse(452), Busy, true),
        (Step::Recipient, SmtpFault::Refuse(550), Refused, true),
        (Step::Recipient, SmtpFault::Refuse(450), RecipientLimited, true),
        (Step::Recipient, SmtpFault::HangUp, Unreachable, true),
        (Step::Recipient, SmtpFault::Refuse(421), Busy, true),
        (Step::Recipient, SmtpFault::Refuse(452), RecipientLimited, true),
        (Step::Recipient, SmtpFault::Refuse(530), Misconfigured, true),
        (Step::Data, SmtpFault::Refuse(451), RecipientLimited, true),
        (Step::Data, SmtpFault::Refuse(554), Refused, true),
        (Step::Data, SmtpFault::HangUp, Unreachable, true),
        (Step::Message, SmtpFault::Refuse(451), RecipientLimited, true),
        (Step::Message, SmtpFault::Refuse(452), Busy, true),
        (Step::Message, SmtpFault::Refuse(554), Refused, true),
        // The server had the whole message, so it may be delivered.
        (Step::Message, SmtpFault::HangUp, OutcomeUnknown, false),
    ];
    for (step, trouble, kind, is_certain) in cases {
        let server = FakeSmtpServer::offering(Offer { trouble: Some((step, trouble)), ..Offer::default() });
        let failure = send(settings(&server, Encryption::None)).unwrap_err();
        let what = format!("{step:?} {trouble:?}: {failure}");
        assert_eq!((failure.kind, failure.is_certainly_not_accepted()), (kind, is_certain), "{what}");
        assert!(!what.contains("li.ming") && !what.contains("01234567"), "{what}");
        assert!(server.mails().is_empty(), "{what}");
    }
}

/// Checks that sending times out, and soon enough, if the server behaves like this from a step on.
#[track_caller]
fn assert_times_out(trouble: SmtpFault, within: Duration) {
    for (step, is_certain) in [(Step::Greeting, true), (Step::Recipient, true), (Step::Message, false)] {
        let server = FakeSmtpServer::offering(Offer { trouble: Some((step, trouble)), ..Offer::default() });
        let started_at = Instant::now();
        let failure =
            send(SmtpSettings { timeout: Duration::from_secs(2), ..settings(&server, Encryption::None) }).unwrap_err();
        assert_eq!(
            (failure.kind, failure.is_certainly_not_accepted()),
            (FailureKind::TimedOut, is_certain),
            "{step:?}"
        );
        assert!(started_at.elapsed() < within, "{step:?} took {:?}", started_at.elapsed());
    }
}

#[test]
fn a_silent_server_times_out() {
    assert_times_out(SmtpFault::Silence, Duration::from_secs(10));
}

#[test]
fn an_endless_reply_is_a_failure_at_every_step() {
    for (step, is_certain) in [(Step::Greeting, true), (Step::Recipient, true), (Step::Message, false)] {
        for trouble in [SmtpFault::EndlessLine, SmtpFault::EndlessReply] {
            let server = FakeSmtpServer::offering(Offer { trouble: Some((step, trouble)), ..Offer::default() });
            let failure = send(settings(&server, Encryption::None)).unwrap_err();
            assert_eq!(failure.code, "reply_too_long", "{step:?} {trouble:?}");
            assert_eq!(failure.is_certainly_not_accepted(), is_certain, "{step:?} {trouble:?}");
        }
    }
}

#[test]
fn the_time_limit_counts_for_the_whole_dialogue() {
    assert_times_out(SmtpFault::Drip, Duration::from_secs(6));
}

#[test]
fn falls_back_to_what_a_server_really_knows() {
    let server = FakeSmtpServer::offering(Offer { dialect: Dialect::NoExtensions, ..Offer::default() });
    send(settings(&server, Encryption::None)).unwrap();
    assert_eq!((server.mails().len(), server.mails()[0].hello.as_str()), (1, "yarrow.example"));
    let failure = send(with_password(settings(&server, Encryption::None), "open sesame")).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Misconfigured, "no_auth_mechanism"));
    let server = FakeSmtpServer::offering(Offer { auth: AUTH, dialect: Dialect::NoPlain, ..Offer::default() });
    send(with_password(settings(&server, Encryption::None), "open sesame")).unwrap();
    assert_eq!(server.mails().len(), 1);
    let failure = send(with_password(settings(&server, Encryption::None), "wrong")).unwrap_err();
    assert_eq!(failure.code, "smtp_535");
}

#[test]
fn a_reply_counts_by_its_digits() {
    for dialect in [Dialect::Gbk, Dialect::Bare, Dialect::LowerCase, Dialect::OddPrompts, Dialect::AsksAgain] {
        for mechanisms in ["PLAIN", "LOGIN"] {
            let auth = Some((mechanisms, "yarrow", "open sesame"));
            let server = FakeSmtpServer::offering(Offer { starttls: true, auth, dialect, ..Offer::default() });
            let sent = send(with_password(settings(&server, Encryption::StartTls), "open sesame"));
            assert_eq!((sent.map(drop), server.mails().len()), (Ok(()), 1), "{dialect:?} {mechanisms}");
            let trouble = Some((Step::Recipient, SmtpFault::Refuse(550)));
            let server = FakeSmtpServer::offering(Offer { trouble, dialect, ..Offer::default() });
            let failure = send(settings(&server, Encryption::None)).unwrap_err();
            assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Refused, "smtp_550"), "{dialect:?}");
        }
    }
}

#[test]
fn nothing_sent_before_tls_counts_as_protected() {
    let offer = Offer { starttls: true, dialect: Dialect::InjectsBeforeTls, ..Offer::default() };
    let server = FakeSmtpServer::offering(offer);
    let failure = send(settings(&server, Encryption::StartTls)).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Unreachable, "data_before_tls"));
    assert!(server.mails().is_empty());
}

#[test]
fn the_domain_of_the_sender_is_written_as_in_dns() {
    let server = FakeSmtpServer::offering(Offer::default());
    let from = "易 <no-reply@例子.中国>".into();
    send(SmtpSettings { from, ..settings(&server, Encryption::None) }).unwrap();
    let mail = &server.mails()[0];
    assert_eq!(
        (mail.from.as_str(), mail.hello.as_str()),
        ("no-reply@xn--fsqu00a.xn--fiqs8s", "xn--fsqu00a.xn--fiqs8s")
    );
    assert!(mail.data.is_ascii());
    assert!(mail.header("from").unwrap().ends_with("<no-reply@xn--fsqu00a.xn--fiqs8s>"), "{:?}", mail.header("from"));
}

#[test]
fn an_unused_address_is_unreachable() {
    let server = FakeSmtpServer::offering(Offer::default());
    let unreachable_url = free_address();
    let (host, port) = (unreachable_url.ip().to_string(), unreachable_url.port());
    let failure = send(SmtpSettings { host, port, ..settings(&server, Encryption::None) }).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Unreachable, "connection_failed"));
}

#[test]
fn distinguishes_invalid_settings() {
    let server = FakeSmtpServer::offering(Offer::default());
    let fault = |settings: SmtpSettings| Smtp::new(settings, Box::new(|| NOW)).err().unwrap();
    let no_one = SmtpSettings { from: "nobody".into(), ..settings(&server, Encryption::None) };
    assert!(fault(no_one).starts_with("email.from"));
    for no_certificate in ["-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "/etc/mail/ca.pem"] {
        let settings = SmtpSettings { ca: Some(no_certificate.into()), ..settings(&server, Encryption::Tls) };
        assert!(fault(settings).starts_with("email.ca"), "{no_certificate}");
    }
}
