//! Checks of the configuration that need its files and drivers: senders, keys, certificates, listeners. They run before
//! anything is opened, so that all faults are reported at once.

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use crate::{
    certificate::PemFiles,
    clock::Clock,
    config::Config,
    domain::{
        divination::{help::HelpTexts, prompts::Prompts},
        messaging::{mailer, push},
        money::{payments::channels, purchases},
        operations::webhooks,
    },
    error::Error,
    providers::{authority::CertificateAuthority, factory},
};

/// Returns all faults that would prevent the service from starting.
pub fn faults(config: &Config) -> Vec<String> {
    let certificate = PemFiles::of(config).and_then(|files| files.read().err()).unwrap_or_default();
    let certificate = certificate.into_iter().map(|(setting, fault)| format!("{setting}: {fault}"));
    let shared = collisions(config).into_iter().map(|Collision { setting, address, other, other_address }| {
        format!("{setting}: {address} is taken by {other}, which is {other_address}")
    });
    driver_faults(config).into_iter().chain(certificate).chain(shared).collect()
}

/// Returns the faults that the drivers find in their settings, and those of templates.
pub fn driver_faults(config: &Config) -> Vec<String> {
    let email = factory::email_sender(config, &Clock::default(), &silent()).err();
    let payment = channels::setting_faults(config);
    let apple = purchases::app_store(config, Box::new(|| 0)).err();
    let stores = [apple, purchases::google_play(config, Box::new(|| 0)).err()].into_iter().flatten().flatten();
    let now: Arc<dyn Fn() -> i64 + Send + Sync> = Arc::new(|| 0);
    let push = push::senders(config, &now).err().into_iter().flatten();
    let webhook = webhooks::endpoint(config).err();
    let has_authority = !config.server.domain.is_empty();
    let authority =
        has_authority.then(|| CertificateAuthority::new(config.acme.root_certificate.as_deref()).err()).flatten();
    let lines = |error: Error| error.detail.lines().map(ToOwned::to_owned).collect::<Vec<_>>();
    let templates = [Prompts::load(config).err(), mailer::letters(config).err(), HelpTexts::load(config).err()];
    let templates = templates.into_iter().flatten().flatten();
    email
        .into_iter()
        .flat_map(lines)
        .chain(payment)
        .chain(stores)
        .chain(push)
        .chain(webhook)
        .chain(authority)
        .chain(templates)
        .collect()
}

/// The checks send nothing, so there is nothing to announce.
fn silent() -> factory::Announce {
    Arc::new(|_| ())
}

/// A listener setting whose address another one already takes.
pub struct Collision {
    pub setting: &'static str,
    pub address: SocketAddr,
    pub other: &'static str,
    pub other_address: SocketAddr,
}

/// Returns the listener settings whose address is already taken by another setting.
pub fn collisions(config: &Config) -> Vec<Collision> {
    let all = config.listeners();
    let collision = |(index, (setting, address)): (usize, &(&'static str, SocketAddr))| {
        let other = all.iter().take(index).find(|(_, other)| overlap(*other, *address));
        other.map(|(other, its)| Collision { setting, address: *address, other, other_address: *its })
    };
    all.iter().enumerate().filter_map(collision).collect()
}

/// Returns true if no two sockets can listen on both addresses. Port 0 is a different port each time.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let is_everywhere = |ip: IpAddr| ip == IpAddr::from(Ipv6Addr::UNSPECIFIED);
    let covers = |one: IpAddr, other: IpAddr| {
        is_everywhere(one) || one == other || (one.is_unspecified() && one.is_ipv4() == other.is_ipv4())
    };
    let (port, one, other) = (one.port() == other.port() && one.port() != 0, one.ip(), other.ip());
    port && (covers(one, other) || covers(other, one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unspecified_address_covers_its_port() {
        for (one, other, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "127.0.0.1:81", false),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            ("127.0.0.1:0", "127.0.0.1:0", false),
            ("0.0.0.0:80", "127.0.0.1:80", true),
            ("[::]:80", "127.0.0.1:80", true),
            ("0.0.0.0:80", "[::1]:80", false),
            ("0.0.0.0:80", "[::]:80", true),
        ] {
            let [one, other] = [one, other].map(|text| text.parse::<SocketAddr>().unwrap());
            assert_eq!((overlap(one, other), overlap(other, one)), (expected, expected), "{one} {other}");
        }
    }
}
