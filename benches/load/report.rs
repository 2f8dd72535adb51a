//! Turns measurements into ratios and compares them with the targets.

use std::collections::BTreeMap;

use crate::{
    support::{
        Failure, chart,
        measurement::{Measurement, Spread},
    },
    workload::Workload,
};

/// A server in the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contestant {
    Bare,
    Yarrow,
    /// A build of the service from other sources.
    AnotherBuild,
    /// The service with its database on a PostgreSQL server of the same machine, which may use all cores.
    OnPostgres,
    /// The same with a delay of 0.25 ms each way between the service and the PostgreSQL server.
    OnDistantPostgres,
    YarrowEachCommits,
    EachCommits,
    Fastify,
    FastifyNormal,
    FastApi,
    FastApiNormal,
    PocketBase,
}

impl Contestant {
    pub const ALL: [Self; 12] = [
        Self::Bare,
        Self::Yarrow,
        Self::AnotherBuild,
        Self::OnPostgres,
        Self::OnDistantPostgres,
        Self::YarrowEachCommits,
        Self::EachCommits,
        Self::Fastify,
        Self::FastifyNormal,
        Self::FastApi,
        Self::FastApiNormal,
        Self::PocketBase,
    ];

    pub const fn is_on_postgres(self) -> bool {
        matches!(self, Self::OnPostgres | Self::OnDistantPostgres)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare axum",
            Self::Yarrow => "Yarrow",
            Self::AnotherBuild => "Yarrow, another build",
            Self::OnPostgres => "Yarrow, PostgreSQL",
            Self::OnDistantPostgres => "Yarrow, PostgreSQL afar",
            Self::YarrowEachCommits => "Yarrow, a commit each",
            Self::EachCommits => "axum, a commit each",
            Self::Fastify => "Fastify",
            Self::FastifyNormal => "Fastify, NORMAL",
            Self::FastApi => "FastAPI",
            Self::FastApiNormal => "FastAPI, NORMAL",
            Self::PocketBase => "PocketBase, NORMAL",
        }
    }
}

pub type Round = BTreeMap<Contestant, Measurement>;

/// The required ratios: a case, the reference, and the factor.
const TARGETS: [(Workload, Contestant, f64); 17] = [
    (Workload::Profile, Contestant::Bare, 0.70),
    (Workload::Profile, Contestant::Fastify, 2.3),
    (Workload::Profile, Contestant::PocketBase, 10.0),
    (Workload::Balance, Contestant::Bare, 0.70),
    (Workload::Balance, Contestant::Fastify, 2.3),
    (Workload::Balance, Contestant::PocketBase, 10.0),
    (Workload::UnreadCount, Contestant::Bare, 0.70),
    (Workload::Save, Contestant::Bare, 0.22),
    (Workload::Save, Contestant::YarrowEachCommits, 5.0),
    (Workload::Save, Contestant::EachCommits, 5.0),
    (Workload::Save, Contestant::Fastify, 7.0),
    (Workload::Save, Contestant::FastifyNormal, 2.0),
    (Workload::Save, Contestant::PocketBase, 12.0),
    (Workload::KeyedConsume, Contestant::Bare, 0.17),
    (Workload::Mix, Contestant::Bare, 0.35),
    (Workload::List, Contestant::Bare, 0.11),
    (Workload::SignIn, Contestant::Bare, 0.12),
];
/// Tolerance of `--check`, so that noise on another machine does not fail it.
const CHECKED_AT: f64 = 0.85;
/// Utilisation of a core from which a server counts as saturated.
const SATURATED_FROM: f64 = 0.9;

/// All rounds of all cases.
pub struct Report {
    rounds: usize,
    cases: BTreeMap<Workload, Vec<Round>>,
}

impl Report {
    pub fn new(rounds: usize) -> Self {
        Self { rounds, cases: BTreeMap::new() }
    }

    pub fn add(&mut self, case: Workload, round: Round) {
        self.cases.entry(case).or_default().push(round);
    }

    pub fn print(&self) {
        println!(
            "\nMedians of {} rounds. `of bare` is the median of the rounds' ratios to the bare server",
            self.rounds
        );
        println!("(min..max), first by requests per second, then by CPU time per request.\n");
        println!(
            "{:<22} {:<21} {:>9} {:>20} {:>9} {:>20} {:>8} {:>8} {:>6} {:>8} {:>7}",
            "case", "server", "req/s", "of bare", "CPU us", "of bare", "p50 ms", "p99 ms", "busy", "RssAnon", "others"
        );
        for (case, rounds) in &self.cases {
            for contestant in Contestant::ALL {
                if rounds.iter().any(|round| round.contains_key(&contestant)) {
                    print_row(*case, contestant, rounds);
                }
            }
        }
        println!();
    }

    /// Prints the other build's figures as ratios of this one's.
    pub fn print_comparison(&self) {
        for (case, rounds) in &self.cases {
            let ratio = |value| of_ratios(rounds, Contestant::Yarrow, Contestant::AnotherBuild, value).show();
            let requests = ratio(|measured| measured.requests_per_second);
            let cpu = ratio(|measured| measured.cpu_per_request);
            println!("{}: {requests} times the other build's requests, {cpu} times its processor time", case.name());
        }
    }

    /// Prints every target and its outcome. Skips servers that were not measured.
    pub fn print_targets(&self) {
        for (case, against, target) in TARGETS {
            if let Some(ratio) = self.decisive_ratio(case, against) {
                let verdict = if ratio.spread.median >= target { "met" } else { "MISSED" };
                let (shown, basis, other) = (ratio.spread.show(), ratio.basis, against.name());
                println!("{}: {shown} times {other}, {basis}; target {target}: {verdict}", case.name());
            }
        }
    }

    /// Draws requests per second of every server as a fraction of the bare server's.
    pub fn picture(&self) -> String {
        let groups = self.cases.iter().map(|(case, rounds)| {
            let requests: Value = |measured| measured.requests_per_second;
            let bars = Contestant::ALL[1..].iter().filter(|contestant| rounds[0].contains_key(contestant));
            let ratio = |contestant: &Contestant| of_ratios(rounds, *contestant, Contestant::Bare, requests).median;
            (case.name().to_owned(), bars.map(|contestant| (contestant.name().to_owned(), ratio(contestant))).collect())
        });
        let title = "Requests per second, as parts of what a bare axum handler answers on the same core";
        chart::bars(title, &groups.collect::<Vec<_>>())
    }

    /// # Errors
    /// A checked target is missed by more than noise explains.
    pub fn verdict(&self, is_checked: bool) -> Result<(), Failure> {
        for (case, against, target) in TARGETS {
            if let Some(ratio) = self.decisive_ratio(case, against)
                && is_checked
                && ratio.spread.median < target * CHECKED_AT
            {
                return Err(format!("{}: {:.3}, target {target}", case.name(), ratio.spread.median).into());
            }
        }
        Ok(())
    }

    /// Returns the service's throughput as a multiple of the other server's. Uses requests per second if the bare
    /// server kept its core busy. Otherwise the load generator was the limit, and only CPU time per request is
    /// meaningful.
    fn decisive_ratio(&self, case: Workload, against: Contestant) -> Option<DecisiveRatio> {
        let rounds = self.cases.get(&case)?;
        if !rounds.iter().any(|round| round.contains_key(&against)) {
            return None;
        }
        let bare = rounds.iter().filter_map(|round| round.get(&Contestant::Bare));
        let is_saturated = Spread::new(bare.map(|measured| measured.utilisation).collect()).median >= SATURATED_FROM;
        let (spread, basis) = if is_saturated {
            let requests: Value = |measured| measured.requests_per_second;
            (of_ratios(rounds, Contestant::Yarrow, against, requests), "by requests per second")
        } else {
            let cpu: Value = |measured| measured.cpu_per_request;
            let basis = "by CPU time only, because the bare server could not be kept busy";
            (of_ratios(rounds, against, Contestant::Yarrow, cpu), basis)
        };
        Some(DecisiveRatio { spread, basis })
    }
}

struct DecisiveRatio {
    spread: Spread,
    basis: &'static str,
}

type Value = fn(&Measurement) -> f64;

#[expect(clippy::cast_precision_loss, reason = "bytes of memory, shown as whole mebibytes")]
fn print_row(case: Workload, contestant: Contestant, rounds: &[Round]) {
    let median = |value: Value| {
        Spread::new(rounds.iter().filter_map(|round| round.get(&contestant)).map(value).collect()).median
    };
    let ratio = |value| of_ratios(rounds, contestant, Contestant::Bare, value).show();
    println!(
        "{:<22} {:<21} {:>9.0} {:>20} {:>9.1} {:>20} {:>8.2} {:>8.2} {:>6.2} {:>5.0}MiB {:>7.2}",
        case.name(),
        contestant.name(),
        median(|measured| measured.requests_per_second),
        ratio(|measured| measured.requests_per_second),
        median(|measured| measured.cpu_per_request),
        ratio(|measured| measured.cpu_per_request),
        median(|measured| measured.median),
        median(|measured| measured.percentile_99),
        median(|measured| measured.utilisation),
        median(|measured| measured.memory as f64) / f64::from(1 << 20),
        median(|measured| measured.others),
    );
}

fn of_ratios(rounds: &[Round], of: Contestant, to: Contestant, value: Value) -> Spread {
    Spread::new(rounds.iter().filter_map(|round| Some(value(round.get(&of)?) / value(round.get(&to)?))).collect())
}
