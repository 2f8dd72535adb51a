//! Demo data: users with some weeks of history.
//!
//! The data are created through the real operations with the clock set back, so they are always consistent.

use std::time::Duration;

use crate::{
    core::Core,
    domain::{
        divination::{
            history::{self, HistoryDraft},
            interpretation::{self, CastingQuestion},
            model_calls::ModelCalls,
        },
        identity::{
            profile,
            users::{self, Address, Gender, ProfileChange},
        },
        moderation::Moderation,
        money::coins,
    },
    error::{Error, Result},
    providers::llm::Flow,
    types::{JsonText, Locale, PhoneNumber, UserId},
};

const DAY: Duration = Duration::from_hours(24);
/// The length of the history.
const HISTORY_DAYS: u32 = 28;

struct Person {
    phone_number: &'static str,
    nickname: &'static str,
    gender: Gender,
    birthday: &'static str,
    signature: &'static str,
}

/// The phone number of the first user, which the printed commands use.
pub const PHONE_NUMBER: &str = "13800138000";

const PEOPLE: [Person; 5] = [
    Person {
        phone_number: PHONE_NUMBER,
        nickname: "青山",
        gender: Gender::Female,
        birthday: "1990-05-17",
        signature: "心静则明",
    },
    Person {
        phone_number: "13800138001",
        nickname: "临川",
        gender: Gender::Male,
        birthday: "1984-11-02",
        signature: "慢慢来",
    },
    Person {
        phone_number: "13800138002",
        nickname: "Willow",
        gender: Gender::Female,
        birthday: "1999-03-21",
        signature: "One line at a time",
    },
    Person {
        phone_number: "13800138003",
        nickname: "听雨",
        gender: Gender::Other,
        birthday: "2001-08-30",
        signature: "",
    },
    Person {
        phone_number: "13800138004",
        nickname: "Stone",
        gender: Gender::Unknown,
        birthday: "1975-12-12",
        signature: "静观其变",
    },
];

/// Question type, question, and six lines from the bottom up.
const QUESTIONS: [(&str, &str, [u8; 6]); 8] = [
    ("career", "今年换工作合适吗？", [7, 8, 8, 8, 7, 6]),
    ("love", "我和他还能继续走下去吗？", [8, 7, 9, 7, 8, 8]),
    ("study", "考试准备得怎么样？", [7, 7, 8, 7, 6, 8]),
    ("family", "过年要不要回老家？", [8, 8, 8, 7, 7, 7]),
    ("travel", "下个月适合远行吗？", [9, 8, 7, 8, 7, 8]),
    ("wealth", "这笔生意值得做吗？", [7, 8, 7, 7, 8, 9]),
    ("other", "眼下最该放下的是什么？", [8, 8, 7, 8, 8, 8]),
    ("career", "How should I handle the new project?", [7, 7, 7, 9, 7, 7]),
];

/// The services that create the data.
#[derive(Clone, Copy)]
pub struct DemoServices<'app> {
    pub core: &'app Core,
    pub moderation: &'app Moderation,
    pub model_calls: &'app ModelCalls,
}

/// The amount of demo data created.
#[derive(Clone, Copy, Debug)]
pub struct SeededDemo {
    pub users: usize,
    pub castings: usize,
}

/// Fills a new data directory. Restores the clock in any case.
///
/// # Errors
/// Storage errors.
pub fn seed(services: DemoServices<'_>) -> Result<SeededDemo> {
    let seeded = seed_history(services);
    services.core.clock.set_back(Duration::ZERO);
    seeded
}

fn seed_history(services: DemoServices<'_>) -> Result<SeededDemo> {
    let clock = &services.core.clock;
    clock.set_back(DAY * HISTORY_DAYS);
    let users = PEOPLE.iter().map(|person| sign_up(services, person)).collect::<Result<Vec<_>>>()?;
    let mut castings = 0;
    for day in (0..HISTORY_DAYS).rev() {
        clock.set_back(DAY * day + Duration::from_hours(1));
        for (index, user) in users.iter().enumerate() {
            // Each user casts at an interval of their own.
            if (day as usize + index).is_multiple_of(index + 2) {
                cast(services, *user, castings, QUESTIONS[(day as usize + 3 * index) % QUESTIONS.len()])?;
                castings += 1;
            }
        }
    }
    Ok(SeededDemo { users: users.len(), castings })
}

fn sign_up(services: DemoServices<'_>, person: &Person) -> Result<UserId> {
    let core = services.core;
    let phone_number = PhoneNumber::parse(person.phone_number, &core.phone_rules)
        .map_err(|fault| Error::field("phoneNumber", fault))?;
    let (address, key, initial) = (Address::Phone(phone_number), core.keys.clone(), core.config.coins.initial);
    let user = core.store.write(move |tx| {
        let user = users::create_in(tx, &address)?;
        coins::open_in(tx, &key, user.id, &address, initial)?;
        Ok(user)
    });
    let user = user.wait()?;
    let change = ProfileChange {
        nickname: Some(person.nickname.to_owned()),
        gender: Some(person.gender),
        birthday: Some(Some(person.birthday.to_owned())),
        signature: Some(person.signature.to_owned()),
    };
    profile::change(services.moderation, user.id, change).wait()?;
    Ok(user.id)
}

fn cast(
    services: DemoServices<'_>,
    user: UserId,
    number: usize,
    (question_type, question, lines): (&str, &str, [u8; 6]),
) -> Result<()> {
    let DemoServices { core, model_calls, .. } = services;
    let locale = if question.is_ascii() { Locale::English } else { Locale::Chinese };
    let data = JsonText::from_stored(serde_json::json!({ "lines": lines, "method": "coins" }).to_string());
    let request = CastingQuestion {
        question_type: Some(question_type.to_owned()),
        question: question.to_owned(),
        divination_data: Some(data.clone()),
        cast: None,
        cast_time: None,
        method: None,
        locale,
    };
    let prepared = interpretation::prepare(model_calls, user, request)?;
    let record = interpretation::run(model_calls, &prepared, &mut |_| Flow::Continue)?;
    let draft = HistoryDraft {
        local_record_id: format!("demo-{number}").into(),
        question_type: Some(question_type.to_owned().into()),
        question: Some(question.to_owned().into()),
        json_data: Some(data),
        ai_result: record.result.map(Into::into),
        client_timestamp: Some(JsonText::from_stored(core.clock.now().0.to_string())),
    };
    history::save(core, user, draft).wait().map(drop)
}
