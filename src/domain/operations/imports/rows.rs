//! Reads the values of imported rows by the same rules as the API, and reports all faults of a row at once.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{ImportFault, ImportKind, reader::SourceRow};
use crate::{
    core::Core,
    domain::{
        divination::history::HistoryDraft,
        identity::users::{Gender, NewUser, parse_birthday},
        money::ledger::{Asset, LARGEST_BALANCE},
    },
    error::{Fault, FieldCode},
    types::{
        EmailAddress, JsonText, PhoneNumber, TimeInput, Timestamp, clean, clean_as_sent, clean_line, clean_lines,
        plain_number,
    },
};

/// The most characters of an id in the former backend.
const MAX_EXTERNAL_ID: usize = 128;

/// A valid row.
pub enum ImportRow {
    User(Box<ImportedUser>),
    Balances(ImportedBalance),
    Record(Box<ImportedRecord>),
}

pub struct ImportedUser {
    pub line: u64,
    pub external_id: String,
    pub user: NewUser,
}

pub struct ImportedBalance {
    pub line: u64,
    /// The id in the former backend.
    pub user: String,
    pub coins: i64,
    pub points: i64,
}

pub struct ImportedRecord {
    pub line: u64,
    /// The id in the former backend.
    pub user: String,
    pub draft: HistoryDraft<'static>,
    pub created_at: Timestamp,
}

impl ImportRow {
    pub fn line(&self) -> u64 {
        match self {
            Self::User(row) => row.line,
            Self::Balances(row) => row.line,
            Self::Record(row) => row.line,
        }
    }

    /// Returns the values that no other row of the file may have, with their columns.
    pub fn unique_values(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::User(row) => {
                let phone = row.user.phone_number.as_ref().map(|number| ("phoneNumber", number.as_str().to_owned()));
                let email = row.user.email.as_ref().map(|email| ("email", email.as_str().to_owned()));
                [Some(("id", row.external_id.clone())), phone, email].into_iter().flatten().collect()
            }
            Self::Balances(row) => vec![("id", row.user.clone())],
            Self::Record(row) => vec![("localRecordId", format!("{}\0{}", row.user, row.draft.local_record_id))],
        }
    }
}

impl ImportedBalance {
    pub fn amounts(&self) -> [(Asset, i64); 2] {
        [(Asset::Coin, self.coins), (Asset::Point, self.points)]
    }
}

/// Reads rows of one kind.
pub struct RowParser<'core> {
    core: &'core Core,
    kind: ImportKind,
    now: Timestamp,
}

impl<'core> RowParser<'core> {
    pub fn new(core: &'core Core, kind: ImportKind) -> Self {
        Self { core, kind, now: core.clock.now() }
    }

    /// # Errors
    /// All faults of the row.
    pub fn parse(&self, row: SourceRow) -> Result<ImportRow, Vec<ImportFault>> {
        let mut columns = Columns { row, faults: Vec::new() };
        let parsed = match self.kind {
            ImportKind::Users => self.user(&mut columns).map(|row| ImportRow::User(Box::new(row))),
            ImportKind::Balances => balances(&mut columns).map(ImportRow::Balances),
            ImportKind::History => self.record(&mut columns).map(|row| ImportRow::Record(Box::new(row))),
        };
        match parsed {
            Some(row) if columns.faults.is_empty() => Ok(row),
            _ => Err(columns.faults),
        }
    }

    fn user(&self, columns: &mut Columns) -> Option<ImportedUser> {
        let limits = &self.core.config.limits;
        let external_id = columns.required("id", external_id);
        let phone_number = columns.optional("phoneNumber", |text| PhoneNumber::parse(text, &self.core.phone_rules));
        let email = columns.optional("email", EmailAddress::parse);
        let nickname = columns.optional("nickname", |text| clean_line(text, limits.nickname as usize));
        let gender = columns.optional("gender", parse_gender);
        let today = limits.time_zone.today(self.now);
        let birthday = columns.optional_date("birthday", |text| parse_birthday(text, &limits.time_zone, today));
        let signature = columns.optional("signature", |text| clean_lines(text, limits.signature as usize));
        let created_at = columns.optional_date("createdAt", |text| self.past_time(text));
        if phone_number.is_none() && email.is_none() && columns.faults.is_empty() {
            columns.fault("", "needs a phone number or an email address");
        }
        let user = NewUser {
            phone_number,
            email,
            nickname: nickname.unwrap_or_default(),
            gender: gender.unwrap_or(Gender::Unknown),
            birthday,
            signature: signature.unwrap_or_default(),
            created_at: created_at.unwrap_or(self.now),
        };
        Some(ImportedUser { line: columns.row.line, external_id: external_id?, user })
    }

    fn record(&self, columns: &mut Columns) -> Option<ImportedRecord> {
        let limits = &self.core.config.limits;
        let user = columns.required("userId", external_id);
        let record_id = columns.required("localRecordId", |text| clean_as_sent(text, limits.label as usize));
        let question_type = columns.optional("questionType", |text| clean(text, limits.label as usize));
        let question = columns.optional("question", |text| clean(text, limits.question as usize));
        let json_data = columns.optional("jsonData", |text| parse_json(text, limits.json_data.0));
        let ai_result = columns.optional("aiResult", |text| bounded(text, limits.ai_result.0));
        let timestamp = columns.optional("timestamp", parse_client_timestamp);
        let created_at = columns.optional_date("createdAt", |text| self.past_time(text));
        let draft = HistoryDraft {
            local_record_id: Cow::Owned(record_id?),
            question_type: question_type.map(Cow::Owned),
            question: question.map(Cow::Owned),
            json_data,
            ai_result: ai_result.map(Cow::Owned),
            client_timestamp: timestamp,
        };
        let created_at = created_at.unwrap_or(self.now);
        Some(ImportedRecord { line: columns.row.line, user: user?, draft, created_at })
    }

    /// Reads a time in any spelling. Without an offset it is in the zone of the service.
    fn past_time(&self, text: &str) -> Result<Timestamp, Fault> {
        let time = TimeInput::parse(text)?.in_zone(&self.core.config.limits.time_zone)?;
        if time.0 < 0 || time > self.now {
            return Err(Fault::new(FieldCode::OutOfRange, ("must be between 1970 and now", "须在 1970 年到现在之间")));
        }
        Ok(time)
    }
}

fn balances(columns: &mut Columns) -> Option<ImportedBalance> {
    let user = columns.required("id", external_id);
    let coins = columns.optional("coins", parse_amount);
    let points = columns.optional("points", parse_amount);
    let (coins, points) = (coins.unwrap_or_default(), points.unwrap_or_default());
    Some(ImportedBalance { line: columns.row.line, user: user?, coins, points })
}

/// The columns of a row, with the faults found so far.
struct Columns {
    row: SourceRow,
    faults: Vec<ImportFault>,
}

impl Columns {
    fn required<T>(&mut self, column: &str, parse: impl FnOnce(&str) -> Result<T, Fault>) -> Option<T> {
        let Some(text) = self.row.take(column) else {
            self.fault(column, "is required");
            return None;
        };
        self.parsed(column, parse(&text))
    }

    fn optional<T>(&mut self, column: &str, parse: impl FnOnce(&str) -> Result<T, Fault>) -> Option<T> {
        let text = self.row.take(column)?;
        self.parsed(column, parse(&text))
    }

    /// As [`Self::optional`]. Databases write `0000-00-00` for a missing date.
    fn optional_date<T>(&mut self, column: &str, parse: impl FnOnce(&str) -> Result<T, Fault>) -> Option<T> {
        let text = self.row.take(column).filter(|text| !text.trim().starts_with("0000-00-00"))?;
        self.parsed(column, parse(&text))
    }

    fn parsed<T>(&mut self, column: &str, parsed: Result<T, Fault>) -> Option<T> {
        parsed.map_err(|fault| self.fault(column, &fault.message.english)).ok()
    }

    fn fault(&mut self, column: &str, message: &str) {
        let (column, message) = (column.to_owned(), message.to_owned());
        self.faults.push(ImportFault { line: self.row.line, column, message });
    }
}

fn external_id(text: &str) -> Result<String, Fault> {
    clean_line(text, MAX_EXTERNAL_ID)
}

fn parse_gender(text: &str) -> Result<Gender, Fault> {
    Gender::from_name(text.trim()).ok_or_else(|| {
        Fault::new(
            FieldCode::UnknownValue,
            ("must be unknown, male, female or other", "须为 unknown、male、female 或 other"),
        )
    })
}

fn parse_amount(text: &str) -> Result<i64, Fault> {
    let amount = plain_number(text.trim()).parse::<i64>().ok();
    let amount = amount.ok_or_else(|| Fault::new(FieldCode::InvalidFormat, ("must be a whole number", "须为整数")))?;
    if (0..=LARGEST_BALANCE).contains(&amount) {
        return Ok(amount);
    }
    Err(Fault::new(
        FieldCode::OutOfRange,
        (format!("must be from 0 to {LARGEST_BALANCE}"), format!("须在 0 到 {LARGEST_BALANCE} 之间")),
    ))
}

/// Keeps JSON byte for byte, and takes other text as a JSON string.
fn parse_json(text: &str, limit: u64) -> Result<JsonText<'static>, Fault> {
    let text = bounded(text, limit)?;
    Ok(match serde_json::from_str::<Box<RawValue>>(&text) {
        Ok(raw) => JsonText::from_raw(&raw),
        Err(_) => JsonText::from_text(&text),
    })
}

fn parse_client_timestamp(text: &str) -> Result<JsonText<'static>, Fault> {
    let number = plain_number(text.trim()).parse::<i64>();
    let number = number.map_err(|_| {
        Fault::new(FieldCode::InvalidFormat, ("must be a whole number of milliseconds", "须为毫秒数（整数）"))
    })?;
    Ok(JsonText::from_number(number))
}

fn bounded(text: &str, limit: u64) -> Result<String, Fault> {
    if text.len() as u64 > limit {
        return Err(Fault::new(
            FieldCode::TooLong,
            (format!("must not have more than {limit} bytes"), format!("最多 {limit} 字节")),
        ));
    }
    if text.contains('\0') {
        return Err(Fault::new(FieldCode::InvalidCharacter, ("must not contain NUL", "不能包含 NUL 字符")));
    }
    Ok(text.to_owned())
}
