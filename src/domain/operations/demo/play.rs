//! Carries out the plan through the real operations, with the clock set back.
//!
//! Actions of one moment are queued together, so that they share a sync. Those that block run on a few threads.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    sync::Mutex,
    time::Duration,
};

use super::{
    DemoServices,
    dice::Dice,
    plan::{Act, OrderEnding, PlannedAct},
    texts,
};
use liuyao::interpreter::View;

use crate::{
    concurrency::lock::lock_unpoisoned,
    domain::identity::preferences::NotificationKind,
    domain::{
        divination::{
            history::{self, HistoryDraft, HistoryEdit},
            interpretation::{self, CallRecord, CastingQuestion},
        },
        identity::{
            accounts::{self, DeletionActor},
            profile, staff_notes, suspensions, tokens,
            users::{self, Address, Gender, ProfileChange, User},
        },
        messaging::{
            feedback::{self, Author, FeedbackChange, FeedbackState, NewReply},
            notifications::{self, Audience, NotificationDraft, Payload},
            releases::{self, AppVersion, ReleaseDraft},
        },
        money::{
            coins,
            ledger::Authority,
            payments::{
                callbacks,
                decisions::{self, Decision},
                orders::{self, OrderedProduct},
                reconcile,
                refunds::{self, RefundRequestSpec},
                sandbox::{self, Delivery, TestPayment},
            },
        },
        operations::{
            audit::{self, AuditEvent},
            figures,
            idempotency::IdempotentRequest,
            network_log::{self, Entry},
        },
    },
    error::{Code, Error, Result},
    providers::{
        llm::Flow,
        payment::{OrderState, PayerClient},
    },
    store::Pending,
    types::{EmailAddress, JsonText, LanguageTag, Locale, PhoneNumber, SuspensionScope, UserId, random_hex},
};

/// Actions of earlier days share a moment of so many minutes, which makes the start several times faster.
const COARSE_MINUTES: u32 = 240;
/// The newest days, whose actions have a minute each and whose requests are in the network log.
const FINE_MINUTES: u32 = 7 * 24 * 60;
const THREADS: usize = 6;
/// The operators in the audit.
pub const SUPPORT: &str = "mei";
pub const MODERATOR: &str = "jun";

/// The people and orders so far, by their numbers in the plan.
pub struct Player<'app> {
    services: DemoServices<'app>,
    people: BTreeMap<usize, User>,
    orders: Mutex<BTreeMap<usize, String>>,
    dice: Dice,
    pub castings: usize,
}

/// Waits for a queued write.
type Receipt = Box<dyn FnOnce() -> Result<()>>;

impl<'app> Player<'app> {
    pub const fn new(services: DemoServices<'app>) -> Self {
        let orders = Mutex::new(BTreeMap::new());
        Self { services, people: BTreeMap::new(), orders, dice: Dice::new(7), castings: 0 }
    }

    pub fn users(&self) -> usize {
        self.people.len()
    }

    /// Carries out the actions, oldest first.
    pub fn play(&mut self, acts: &[PlannedAct]) -> Result<()> {
        let moment = |planned: &PlannedAct| match planned.minutes_ago {
            minutes if minutes > FINE_MINUTES => minutes.next_multiple_of(COARSE_MINUTES),
            minutes => minutes,
        };
        for acts in acts.chunk_by(|one, other| moment(one) == moment(other)) {
            let minutes = acts.first().map_or(0, moment);
            let seconds = u64::from(minutes) * 60 + u64::from(self.dice.below(50));
            self.services.core.clock.set_back(Duration::from_secs(seconds));
            for stage in 0..=5 {
                let acts: Vec<_> = acts.iter().map(|planned| planned.act).filter(|act| act.stage() == stage).collect();
                self.play_stage(&acts)?;
            }
            if minutes <= FINE_MINUTES {
                self.log_requests(acts);
            }
            self.count_activity(acts, minutes)?;
            reconcile::check_due(self.services.payments)?;
        }
        Ok(())
    }

    fn play_stage(&mut self, acts: &[Act]) -> Result<()> {
        let signed_up: Vec<_> =
            acts.iter().filter_map(|act| if let Act::SignUp(person) = act { Some(*person) } else { None }).collect();
        self.sign_up(&signed_up)?;
        self.trade(acts)?;
        self.cast(acts)?;
        for act in acts {
            wait_for(self.queue(*act)?)?;
        }
        Ok(())
    }

    fn user(&self, person: usize) -> Result<&User> {
        self.people.get(&person).ok_or_else(|| Error::internal("a person acts before their sign-up"))
    }

    fn sign_up(&mut self, people: &[usize]) -> Result<()> {
        let core = self.services.core;
        let mut created = Vec::new();
        for person in people {
            let (address, label) = (address_of(core, *person)?, self.dice.pick(&texts::DEVICES, "App"));
            let (key, config) = (core.keys.clone(), core.config.clone());
            created.push(core.store.write(move |tx| {
                let user = users::create_in(tx, &address)?;
                coins::open_in(tx, &key, user.id, address.as_str(), config.coins.initial)?;
                tokens::issue_in(tx, &config.auth, &user, label)?;
                Ok(user)
            }));
        }
        let mut named = Vec::new();
        for (person, user) in people.iter().zip(created) {
            let user = user.wait()?;
            let change = self.profile_of(*person);
            named.push(profile::change(self.services.moderation, user.id, change));
            self.people.insert(*person, user);
        }
        named.into_iter().try_for_each(|named| named.wait().map(drop))
    }

    fn profile_of(&mut self, person: usize) -> ProfileChange {
        if let Some(profile) = texts::PROFILES.get(person) {
            return ProfileChange {
                nickname: Some(profile.nickname.to_owned()),
                gender: Some(profile.gender),
                birthday: Some(Some(profile.birthday.to_owned())),
                signature: Some(profile.signature.to_owned()),
            };
        }
        let nickname = if self.dice.chance(25) {
            format!("{}{}", self.dice.pick(&texts::ENGLISH, ""), self.dice.below(90) + 10)
        } else {
            let middle = if self.dice.chance(30) { "小" } else { "" };
            format!("{}{middle}{}", self.dice.pick(&texts::FIRST, ""), self.dice.pick(&texts::SECOND, ""))
        };
        let (year, month, day) = (1960 + self.dice.below(48), 1 + self.dice.below(12), 1 + self.dice.below(28));
        ProfileChange {
            nickname: Some(nickname),
            gender: Some(self.dice.pick(&[Gender::Female, Gender::Male, Gender::Unknown], Gender::Unknown)),
            birthday: self.dice.chance(60).then(|| Some(format!("{year}-{month:02}-{day:02}"))),
            signature: Some(self.dice.pick(&texts::SIGNATURES, "").to_owned()),
        }
    }

    /// Buys, refunds and decides, on several threads.
    fn trade(&self, acts: &[Act]) -> Result<()> {
        on_threads(acts, |act| match *act {
            Act::Buy { person, purchase, package, ending } => self.buy(person, purchase, package, ending),
            Act::Refund { purchase } => self.refund(purchase),
            Act::Settle { purchase } => self.settle(purchase),
            Act::ForgeCallback => {
                let form = "out_trade_no=Y0&trade_status=TRADE_SUCCESS&total_amount=0.01&sign=AAAA";
                callbacks::receive(self.services.payments, None, BTreeMap::new(), form.into()).wait().map(drop)
            }
            _ => Ok(()),
        })
        .map(drop)
    }

    fn buy(&self, person: usize, purchase: usize, package: usize, ending: OrderEnding) -> Result<()> {
        let payments = self.services.payments;
        let packages = &self.services.core.config.payment.packages.0;
        let Some((amount, coin_count)) = packages.get(package).or_else(|| packages.first()) else { return Ok(()) };
        let ordered = OrderedProduct::Package { amount: *amount, coin_count: *coin_count };
        let order =
            orders::create(payments, self.user(person)?.id, ordered, None, &PayerClient::MobileApp, Locale::Chinese)?
                .wait()?;
        lock_unpoisoned(&self.orders).insert(purchase, order.order_no.clone());
        let delivery = match ending {
            OrderEnding::Abandoned => return Ok(()),
            OrderEnding::MessageLost => Delivery::Lost,
            OrderEnding::Paid => Delivery::Here,
        };
        sandbox::pay(payments, &order.order_no, &TestPayment { late: false, delivery }).map(drop)
    }

    fn order_of(&self, purchase: usize) -> Option<String> {
        lock_unpoisoned(&self.orders).get(&purchase).cloned()
    }

    fn refund(&self, purchase: usize) -> Result<()> {
        let Some(order_no) = self.order_of(purchase) else { return Ok(()) };
        let spec = RefundRequestSpec { order_no, amount: None, refund_no: None };
        let by = authority("demo", picked(&texts::REFUND_REASONS, purchase))?;
        let outcome = refunds::refund(self.services.payments, &spec, &by, IdempotentRequest::without_key(None));
        self.audit(&by, "POST /admin/console/orders/{orderNo}/refund", None)?;
        accept(outcome, &[Code::OrderState]).map(drop)
    }

    fn settle(&self, purchase: usize) -> Result<()> {
        let Some(order_no) = self.order_of(purchase) else { return Ok(()) };
        let payments = self.services.payments;
        let order = orders::find(payments, &order_no)?;
        // Some orders wait for a decision at the end.
        if order.state != OrderState::Review || purchase.is_multiple_of(3) {
            return Ok(());
        }
        let by = authority("demo", "金币已使用，核销")?;
        self.audit(&by, "POST /admin/console/orders/{orderNo}/settle", Some(order.user))?;
        let once = IdempotentRequest::without_key(None);
        let settled = decisions::settle(payments, &order_no, Decision::WriteOff, by, once).wait();
        accept(settled, &[Code::OrderState]).map(drop)
    }

    /// Charges the castings of a moment and interprets those that were paid.
    fn cast(&mut self, acts: &[Act]) -> Result<()> {
        let core = self.services.core;
        let mut charged = Vec::new();
        for act in acts {
            if let Act::Cast { person, number } = *act {
                let user = self.user(person)?.id;
                charged.push((user, number, coins::consume(core, user, IdempotentRequest::without_key(Some(user)))));
            }
        }
        let mut paid = Vec::new();
        for (user, number, charge) in charged {
            if accept(charge.wait(), &[Code::InsufficientCoins])?.is_some() {
                paid.push((user, number));
            }
        }
        self.castings += paid.len();
        let signed_in = paid.iter().filter_map(|(user, _)| self.sign_in(*user)).collect();
        wait_for(signed_in)?;
        let interpreted = on_threads(&paid, |(user, number)| self.interpret(*user, *number))?;
        let mut queued = Vec::new();
        for ((user, number), record) in paid.into_iter().zip(interpreted) {
            queued.extend(self.rate(user, number, &record));
            queued.push(save(self.services, user, number, record));
        }
        wait_for(queued)
    }

    /// Signs in on another device now and then.
    fn sign_in(&mut self, user: UserId) -> Option<Receipt> {
        let label = self.dice.pick(&texts::DEVICES, "App");
        let core = self.services.core;
        let config = core.config.clone();
        self.dice.chance(12).then(|| {
            receipt(core.store.write(move |tx| {
                let user = users::find_in(tx, user)?;
                tokens::issue_in(tx, &config.auth, &user, label)
            }))
        })
    }

    fn interpret(&self, user: UserId, number: usize) -> Result<CallRecord> {
        let calls = self.services.model_calls;
        let prepared = interpretation::prepare(calls, user, question(number))?;
        interpretation::run(calls, &prepared, &mut |_| Flow::Continue)
    }

    fn rate(&mut self, user: UserId, number: usize, record: &CallRecord) -> Option<Receipt> {
        if !self.dice.chance(15) {
            return None;
        }
        let note = self.dice.chance(30).then(|| picked(&texts::NOTES, number).to_owned());
        let is_helpful = self.dice.chance(82);
        let rated = interpretation::rate(self.services.moderation, user, record.trace_id.clone(), is_helpful, note);
        Some(receipt(rated))
    }

    /// Queues an action that does not block.
    fn queue(&self, act: Act) -> Result<Vec<Receipt>> {
        let core = self.services.core;
        Ok(match act {
            Act::Offend { person, number } => {
                self.offend(person, number)?;
                Vec::new()
            }
            Act::Feedback { person, number } => {
                self.take_feedback(person, number)?;
                Vec::new()
            }
            Act::Grant { person, number } => self.grant(person, number)?,
            Act::Suspend { person, number } => {
                let user = self.user(person)?.id;
                let by = authority(MODERATOR, picked(&texts::SUSPENSION_REASONS, number))?;
                self.audit(&by, "POST /admin/console/users/{userId}/suspend", Some(user))?;
                let ends_at = number.is_multiple_of(2).then(|| core.clock.now().plus(Duration::from_hours(7 * 24)));
                let once = IdempotentRequest::without_key(None);
                vec![receipt(suspensions::suspend(core, user, SuspensionScope::Account, ends_at, by, once))]
            }
            Act::Leave(person) => {
                let user = self.user(person)?.id;
                accounts::erase(core, user, DeletionActor::Operator)?;
                Vec::new()
            }
            Act::Broadcast(index) => {
                let (title, body) = texts::BROADCASTS.get(index).copied().unwrap_or_default();
                let kind = if index.is_multiple_of(2) { NotificationKind::Activity } else { NotificationKind::System };
                self.audit(&authority(MODERATOR, title)?, "POST /admin/console/messages", None)?;
                vec![receipt(notifications::send(core, draft(Audience::Everybody, kind, title, body)))]
            }
            Act::Publish(index) => self.publish(index)?,
            _ => Vec::new(),
        })
    }

    /// Sends feedback. The support answers most of it.
    fn take_feedback(&self, person: usize, number: usize) -> Result<()> {
        let core = self.services.core;
        let author = Author::User(self.user(person)?.clone());
        let sent = feedback::submit(core, author, picked(&texts::FEEDBACK, number).to_owned()).wait();
        let Some(sent) = accept(sent, &[Code::TooManyRequests])? else { return Ok(()) };
        if number.is_multiple_of(4) {
            return Ok(());
        }
        let assignee = Some(Some(SUPPORT.to_owned()));
        let change = FeedbackChange { state: Some(FeedbackState::InProgress), assignee };
        feedback::change(core, sent.id, change).wait()?;
        if number.is_multiple_of(3) {
            return Ok(());
        }
        let (author, answer) = (format!("admin:{SUPPORT}"), picked(&texts::ANSWERS, number).to_owned());
        let reply = NewReply { author, content: answer, state: None };
        feedback::reply(core, sent.id, reply, IdempotentRequest::without_key(None)).wait().map(drop)
    }

    fn offend(&self, person: usize, number: usize) -> Result<()> {
        let (user, text) = (self.user(person)?.id, picked(&texts::REFUSED, number));
        let services = self.services;
        let refused = if number.is_multiple_of(2) {
            let signature = Some(text.to_owned());
            let change = ProfileChange { nickname: None, gender: None, birthday: None, signature };
            profile::change(services.moderation, user, change).wait().map(drop)
        } else {
            let asked = CastingQuestion { question: text.to_owned(), ..question(number) };
            interpretation::prepare(services.model_calls, user, asked).map(drop)
        };
        accept(refused, &[Code::ContentRejected, Code::TooManyRequests]).map(drop)
    }

    fn grant(&self, person: usize, number: usize) -> Result<Vec<Receipt>> {
        let core = self.services.core;
        let user = self.user(person)?.id;
        let by = authority(SUPPORT, picked(&texts::GRANT_REASONS, number))?;
        self.audit(&by, "POST /admin/console/users/{userId}/grant", Some(user))?;
        let (author, note) = (by.actor.clone(), picked(&texts::STAFF_NOTES, number).to_owned());
        let noted = staff_notes::add(core, user, author, note, IdempotentRequest::without_key(None));
        let audience = Audience::Users(vec![user]);
        let notice =
            draft(audience, NotificationKind::Account, "金币已补发", "我们已为您的账户补发 20 个金币，请查收。");
        let granted = coins::adjust(core, user, 20, by, None, IdempotentRequest::without_key(None));
        Ok(vec![receipt(granted), receipt(noted), receipt(notifications::send(core, notice))])
    }

    fn publish(&self, index: usize) -> Result<Vec<Receipt>> {
        let Some((version, version_code, platform, notes)) = texts::RELEASES.get(index).copied() else {
            return Ok(Vec::new());
        };
        let version = AppVersion::parse(version).map_err(|fault| Error::field("version", fault))?;
        let draft = ReleaseDraft {
            version,
            version_code,
            platform: platform.map(ToOwned::to_owned),
            is_required: index == 2,
            notes: notes.to_owned(),
            download_url: None,
        };
        self.audit(&authority("demo", "")?, "POST /admin/console/releases", None)?;
        Ok(vec![receipt(releases::publish(self.services.core, draft))])
    }

    /// Records that an operator acted.
    fn audit(&self, by: &Authority, action: &str, user: Option<UserId>) -> Result<()> {
        let event = AuditEvent {
            actor: by.actor.clone(),
            action: action.to_owned(),
            user,
            reason: Some(by.reason.clone()).filter(|reason| !reason.is_empty()),
            outcome: 303,
            client_ip: Some("127.0.0.1".to_owned()),
            request_id: by.request_id.clone(),
            system_user: None,
        };
        audit::record(self.services.core, event).wait()
    }

    /// Writes the requests behind the actions to the network log.
    fn log_requests(&mut self, acts: &[PlannedAct]) {
        for PlannedAct { act, .. } in acts {
            let (person, requests): (_, &[(&'static str, &'static str)]) = match *act {
                Act::SignUp(person) => (person, &[("POST", "/auth/send-code"), ("POST", "/auth/login")]),
                Act::Cast { person, .. } => (
                    person,
                    &[
                        ("GET", "/user/profile"),
                        ("POST", "/coin/consume"),
                        ("POST", "/divination/enhanced"),
                        ("POST", "/divination-history/save"),
                    ],
                ),
                Act::Buy { person, .. } => {
                    (person, &[("POST", "/payment/gateway/order"), ("POST", "/payment/update-balance")])
                }
                Act::Offend { person, .. } => (person, &[("PUT", "/user/signature")]),
                Act::Feedback { person, .. } => (person, &[("POST", "/feedback")]),
                _ => continue,
            };
            let is_refused = matches!(act, Act::Offend { .. });
            for (method, route) in requests {
                let status =
                    if is_refused { 422 } else { self.dice.pick(&[200, 200, 200, 200, 200, 200, 200, 200, 401], 200) };
                self.log_request(person, method, route, status);
            }
        }
    }

    /// Counts the codes, and the active users of days that are not in the network log.
    fn count_activity(&mut self, acts: &[PlannedAct], minutes_ago: u32) -> Result<()> {
        let (mut active, mut codes) = (Vec::new(), [0, 0, 0]);
        for PlannedAct { act, .. } in acts {
            let person = match *act {
                Act::SignUp(person) => {
                    // Some ask twice, and some type no code.
                    let asked = 1 + u64::from(self.dice.chance(30));
                    let sent = asked - u64::from(asked > 1 && self.dice.chance(40));
                    codes = [codes[0] + asked, codes[1] + sent, codes[2] + 1];
                    person
                }
                Act::Cast { person, .. }
                | Act::Buy { person, .. }
                | Act::Offend { person, .. }
                | Act::Feedback { person, .. } => person,
                _ => continue,
            };
            active.extend(self.people.get(&person).map(|user| user.id).filter(|_| minutes_ago > FINE_MINUTES));
        }
        if active.is_empty() && codes == [0, 0, 0] {
            Ok(())
        } else {
            figures::add_activity(self.services.core, active, codes).wait()
        }
    }

    fn log_request(&mut self, person: usize, method: &'static str, route: &'static str, status: u16) {
        let host = u8::try_from(person % 250).unwrap_or(0) + 2;
        let slow = if route == "/divination/enhanced" { 2_400 } else { 12 };
        let Ok(request_id) = random_hex::<16>() else { return };
        self.services.network_log.record(Entry {
            at: self.services.core.clock.now(),
            user: self.people.get(&person).filter(|_| status != 401).map(|user| user.id),
            client: IpAddr::V4(Ipv4Addr::new(203, 0, 113, host)),
            method,
            route: Some(route),
            status,
            duration_us: 1000 * (2 + self.dice.below(slow)),
            request_id: request_id.as_str().into(),
        });
    }

    /// Writes the network log, and begins model calls that the start of the server finds interrupted.
    pub fn finish(&self) -> Result<()> {
        network_log::flush(self.services.network_log)?;
        for (person, number) in [(1, 3), (3, 11)] {
            interpretation::prepare(self.services.model_calls, self.user(person)?.id, question(number))?;
        }
        Ok(())
    }
}

/// Runs the work for each item, on several threads, and returns the results in the order of the items.
fn on_threads<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let work = &work;
    let done = std::thread::scope(|scope| {
        let chunks = items.chunks(items.len().div_ceil(THREADS).max(1));
        let threads: Vec<_> =
            chunks.map(|chunk| scope.spawn(move || chunk.iter().map(work).collect::<Result<Vec<_>>>())).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Vec<R>>>| {
            thread.join().unwrap_or_else(|_| Err(Error::internal("a thread of the demonstration has panicked")))
        };
        threads.into_iter().map(join).collect::<Result<Vec<_>>>()
    })?;
    Ok(done.into_iter().flatten().collect())
}

fn wait_for(queued: Vec<Receipt>) -> Result<()> {
    queued.into_iter().try_for_each(|receipt| receipt())
}

fn receipt<T: 'static>(pending: Pending<T>) -> Receipt {
    Box::new(move || pending.wait().map(drop))
}

/// Returns nothing for an error that belongs to the plan.
fn accept<T>(outcome: Result<T>, expected: &[Code]) -> Result<Option<T>> {
    match outcome {
        Err(error) if expected.contains(&error.code) => Ok(None),
        outcome => outcome.map(Some),
    }
}

fn picked(from: &[&'static str], number: usize) -> &'static str {
    from.get(number % from.len().max(1)).copied().unwrap_or_default()
}

fn authority(name: &str, reason: &str) -> Result<Authority> {
    Ok(Authority { actor: format!("admin:{name}"), reason: reason.to_owned(), request_id: random_hex::<16>()? })
}

/// Returns a phone number, or for some people an email address.
fn address_of(core: &crate::core::Core, person: usize) -> Result<Address> {
    if person >= texts::PROFILES.len() && person % 9 == 4 {
        let address = format!("friend{person}@example.com");
        return EmailAddress::parse(&address).map(Address::Email).map_err(|fault| Error::field("email", fault));
    }
    // The first one is `PHONE_NUMBER`.
    let number = 13_800_138_000 + person * if person < texts::PROFILES.len() { 1 } else { 7_919 };
    PhoneNumber::parse(&number.to_string(), &core.phone_rules)
        .map(Address::Phone)
        .map_err(|fault| Error::field("phoneNumber", fault))
}

fn question(number: usize) -> CastingQuestion {
    let (question_type, question, lines) = asked(number);
    CastingQuestion {
        question_type: Some(question_type.to_owned()),
        question: question.to_owned(),
        divination_data: Some(cast_data(lines)),
        cast: None,
        cast_time: None,
        method: None,
        locale: if question.is_ascii() { Locale::English } else { Locale::Chinese },
        tag: LanguageTag::default(),
        view: View::default(),
    }
}

fn asked(number: usize) -> (&'static str, &'static str, [u8; 6]) {
    let chosen = Dice::new(number as u64).below(u32::try_from(texts::QUESTIONS.len()).unwrap_or(1));
    texts::QUESTIONS.get(chosen as usize).copied().unwrap_or_default()
}

fn cast_data(lines: [u8; 6]) -> JsonText<'static> {
    JsonText::from_stored(serde_json::json!({ "lines": lines, "method": "coins" }).to_string())
}

fn save(services: DemoServices<'_>, user: UserId, number: usize, record: CallRecord) -> Receipt {
    let (question_type, question, lines) = asked(number);
    let draft = HistoryDraft {
        local_record_id: format!("demo-{number}").into(),
        question_type: Some(question_type.into()),
        question: Some(question.into()),
        json_data: Some(cast_data(lines)),
        ai_result: record.result.map(Into::into),
        client_timestamp: Some(JsonText::from_stored(services.core.clock.now().0.to_string())),
    };
    receipt(history::save(services.core, user, HistoryEdit { draft, base_version: None }))
}

fn draft(audience: Audience, kind: NotificationKind, title: &str, body: &str) -> NotificationDraft {
    NotificationDraft {
        audience,
        kind,
        title: title.to_owned(),
        body: body.to_owned(),
        payload: Payload::None {},
        expires_at: None,
    }
}
