//! The parameters of a chat completion: messages and sampling options.

use serde_json::{Value, json};

use crate::{
    config::LimitsConfig,
    error::{Fault, FieldCode, Result},
    http::{
        body::RawValue,
        params::{Parameter, Rules, half_pair, text, whole_number},
    },
    providers::llm::{MessageRole, ModelMessage},
    types::{clean, clean_as_sent},
};

/// The messages of a conversation.
pub struct Messages(pub Vec<ModelMessage>);

impl Parameter for Messages {
    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        let items = match document(value)? {
            Value::Array(items) => items,
            single @ Value::Object(_) => vec![single],
            _ => return Err(shape()),
        };
        let may_be_dropped = rules.config.llm.drop_system_messages;
        let items: Vec<_> = items.into_iter().filter(|item| !(may_be_dropped && is_instruction(item))).collect();
        let most = rules.config.llm.chat_messages as usize;
        if items.len() > most {
            return Err(Fault::new(
                FieldCode::TooMany,
                (format!("must have at most {most} messages"), format!("最多 {most} 条消息")),
            ));
        }
        let limit = rules.config.limits.chat_body.as_usize();
        let messages = items.iter().map(|item| message(item, limit)).collect::<Result<Vec<_>, _>>()?;
        match messages.last() {
            Some(last) if last.role == MessageRole::User => Ok(Self(messages)),
            Some(_) => {
                Err(Fault::new(FieldCode::UnknownValue, ("must end with a message of the user", "须以用户的消息结尾")))
            }
            None => Err(Fault::new(FieldCode::Required, ("must have at least one message", "至少须有一条消息"))),
        }
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["role", "content"],
                "properties": {
                    "role": { "type": "string", "enum": ["user", "assistant"] },
                    "content": { "type": "string" },
                },
                "example": { "role": "user", "content": "屯卦在说什么？" },
            },
        })
    }
}

/// Returns the JSON of a body, or of a text in a query or a form.
fn document(value: &RawValue<'_>) -> Result<Value, Fault> {
    match value {
        RawValue::Json(raw) if raw.get().starts_with(['[', '{']) => {
            serde_json::from_str(raw.get()).map_err(|_| half_pair())
        }
        value => serde_json::from_str(&text(value)?).map_err(|_| shape()),
    }
}

/// Returns true for a message that instructs the model, which only the server may do.
fn is_instruction(item: &Value) -> bool {
    matches!(item["role"].as_str(), Some("system" | "developer"))
}

fn message(item: &Value, limit: usize) -> Result<ModelMessage, Fault> {
    let role = match item["role"].as_str().ok_or_else(shape)? {
        "user" => MessageRole::User,
        "assistant" => MessageRole::Assistant,
        _ => {
            return Err(Fault::new(
                FieldCode::UnknownValue,
                ("must have roles `user` and `assistant` only", "角色只能是 `user` 和 `assistant`"),
            ));
        }
    };
    let content = match &item["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(part).collect::<Result<_, _>>()?,
        _ => return Err(shape()),
    };
    // The model's own earlier text is passed on unchanged.
    let cleaned = if role == MessageRole::User { clean } else { clean_as_sent };
    match cleaned(&content, limit)? {
        content if content.is_empty() => {
            Err(Fault::new(FieldCode::Required, ("must have no empty messages", "不能有空消息")))
        }
        content => Ok(ModelMessage { role, content }),
    }
}

/// Returns the text of a content part. Images and links to images are rejected.
fn part(part: &Value) -> Result<&str, Fault> {
    match (part["type"].as_str(), part["text"].as_str()) {
        (Some("text"), Some(text)) => Ok(text),
        _ => Err(Fault::new(FieldCode::NotAllowed, ("must have text content", "内容须为文本"))),
    }
}

fn shape() -> Fault {
    Fault::new(
        FieldCode::InvalidType,
        ("must be a list of objects with `role` and `content`", "须为含 `role` 和 `content` 的对象列表"),
    )
}

/// A number between two bounds, such as a sampling temperature.
pub struct Bounded<const LEAST: i8, const MOST: i8>(pub f64);

impl<const LEAST: i8, const MOST: i8> Parameter for Bounded<LEAST, MOST> {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let number: f64 = text(value)?
            .trim()
            .parse()
            .map_err(|_| Fault::new(FieldCode::InvalidType, ("must be a number", "须为数字")))?;
        if (f64::from(LEAST)..=f64::from(MOST)).contains(&number) {
            return Ok(Self(number));
        }
        let message = (format!("must be from {LEAST} to {MOST}"), format!("须在 {LEAST} 到 {MOST} 之间"));
        Err(Fault::new(FieldCode::OutOfRange, message))
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "number", "minimum": LEAST, "maximum": MOST, "example": 0.7 })
    }
}

/// The maximum number of tokens of an answer.
pub struct MaxTokens(pub u32);

impl Parameter for MaxTokens {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        whole_number(value, 1..=u32::MAX).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "integer", "minimum": 1, "example": 500 })
    }
}
