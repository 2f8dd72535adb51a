//! Free texts, cleaned and limited in length.

use serde_json::{Value, json};

use crate::{
    config::LimitsConfig,
    domain::{
        identity::{directory::MAX_QUERY, staff_notes::MAX_LENGTH},
        operations::audit::MAX_REASON,
    },
    error::{Fault, FieldCode, Result},
    http::{
        body::RawValue,
        params::{Parameter, Rules, text},
    },
    types::{clean, clean_as_sent, clean_line, clean_lines},
};

/// The name of a file.
pub struct FileName(pub String);

impl Parameter for FileName {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        match clean(&text(value)?, 100)? {
            name if name.is_empty() => {
                Err(Fault::new(FieldCode::InvalidFormat, ("must be the name of a file", "须为文件名")))
            }
            name => Ok(Self(name)),
        }
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": 100, "example": "swagger-ui.css" })
    }
}

/// Declares texts that are trimmed, cleaned and limited by a setting.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident($limit:expr), $clean:ident, $empty:literal, $example:literal;)*) => {$(
        $(#[$doc])*
        pub struct $name(pub String);

        impl Parameter for $name {
            const EMPTY_IS_A_VALUE: bool = $empty;
            const MAY_BE_NULL_WORD: bool = true;

            fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
                let limit: fn(&LimitsConfig) -> usize = $limit;
                $clean(&text(value)?, limit(rules.limits())).map(Self)
            }

            fn schema(limits: &LimitsConfig) -> Value {
                let limit: fn(&LimitsConfig) -> usize = $limit;
                json!({ "type": "string", "maxLength": limit(limits), "example": $example })
            }
        }
    )*};
}

texts! {
    Nickname(|limits| limits.nickname as usize), clean_line, true, "青山";
    Signature(|limits| limits.signature as usize), clean_lines, true, "心静则明";
    Question(|limits| limits.question as usize), clean, false, "今年换工作合适吗？";
    SessionTitle(|limits| limits.session_title as usize), clean_line, true, "换工作";
    SessionNote(|limits| limits.session_note as usize), clean, true, "三月面试后再看。";
    /// The words of a search of sessions.
    SearchText(|limits| limits.question as usize), clean, false, "工作";
    /// A word of the local word list.
    ListedWord(|limits| limits.word as usize), clean, false, "赌博";
    /// A text to check.
    Content(|_| 2_000), clean, false, "今年换工作合适吗？";
    /// The name of a device.
    DeviceName(|_| 64), clean_line, false, "Ming's phone";
    /// The text of a search for users.
    UserQuery(|_| MAX_QUERY), clean, false, "青山";
    /// A note of the staff about a user.
    StaffNoteText(|_| MAX_LENGTH), clean, false, "充值问题已处理";
    /// An administrator's reason.
    Reason(|_| MAX_REASON), clean, false, "compensation for a failed cast";
    FeedbackText(|limits| limits.feedback as usize), clean, false, "请加上小六壬。";
    RatingNote(|limits| limits.rating_note as usize), clean, false, "讲得很清楚。";
    NotificationTitle(|limits| limits.notification_title as usize), clean, false, "六十四卦全新解读";
    NotificationText(|limits| limits.notification_text as usize), clean, false, "更新后即可使用。";
    /// A name or password that is compared and never stored.
    Credential(|_| 256), clean_as_sent, false, "correct horse battery staple";
}

/// A short name chosen by the client, such as a question type.
pub struct Label(pub String);

impl Parameter for Label {
    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        clean_line(&text(value)?, rules.limits().label as usize).map(Self)
    }

    fn schema(limits: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": limits.label, "example": "career" })
    }
}

/// The client's id of a record, stored unchanged.
pub struct LocalRecordId(pub String);

impl Parameter for LocalRecordId {
    const MAY_BE_NULL_WORD: bool = true;
    const MAY_CONTAIN_BLANKS: bool = true;

    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        clean_as_sent(&text(value)?, rules.limits().label as usize).map(Self)
    }

    fn schema(limits: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": limits.label, "example": "1746612345678" })
    }
}

/// A model's answer that the client stores, limited in bytes.
pub struct AiResult(pub String);

impl Parameter for AiResult {
    const EMPTY_IS_A_VALUE: bool = true;
    const MAY_BE_NULL_WORD: bool = true;

    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        let limit = rules.limits().ai_result.as_usize();
        let text = clean_as_sent(&text(value)?, limit)?;
        if text.len() > limit {
            return Err(Fault::new(
                FieldCode::TooLong,
                (format!("must be at most {limit} bytes long"), format!("最多 {limit} 字节")),
            ));
        }
        Ok(Self(text))
    }

    fn schema(limits: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": limits.ai_result.as_usize(), "example": "水雷屯：万事起头难……" })
    }
}
