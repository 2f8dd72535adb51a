//! Parameters and columns in the types of PostgreSQL.
//!
//! The schema has four types: `bigint`, `double precision`, `text` and `bytea`. PostgreSQL infers the types of parameters
//! and may choose others for them, such as `integer` for a limit.

use std::error::Error as StdError;

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::store::SqlValue;

type Failure = Box<dyn StdError + Sync + Send>;

impl ToSql for SqlValue<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
        match *self {
            Self::Null => return Ok(IsNull::Yes),
            Self::Integer(number) => put_integer(number, kind, out)?,
            Self::Real(number) if *kind == Type::FLOAT8 => out.put_f64(number),
            Self::Text(text) if is_text(kind) => out.put_slice(text.as_bytes()),
            Self::Blob(bytes) if *kind == Type::BYTEA => out.put_slice(bytes),
            _ => return Err(format!("{self:?} is no {kind}").into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

#[expect(clippy::cast_precision_loss, reason = "the statement compares it with a real")]
fn put_integer(number: i64, kind: &Type, out: &mut BytesMut) -> Result<(), Failure> {
    match *kind {
        Type::INT8 => out.put_i64(number),
        Type::INT4 => out.put_i32(number.try_into()?),
        Type::INT2 => out.put_i16(number.try_into()?),
        Type::FLOAT8 => out.put_f64(number as f64),
        Type::BOOL => out.put_u8((number != 0).into()),
        _ if is_text(kind) => out.put_slice(number.to_string().as_bytes()),
        _ => return Err(format!("the integer {number} is no {kind}").into()),
    }
    Ok(())
}

fn is_text(kind: &Type) -> bool {
    [Type::TEXT, Type::VARCHAR, Type::NAME, Type::UNKNOWN].contains(kind)
}

impl<'row> FromSql<'row> for SqlValue<'row> {
    fn from_sql(kind: &Type, raw: &'row [u8]) -> Result<Self, Failure> {
        Ok(match *kind {
            Type::INT8 => Self::Integer(i64::from_sql(kind, raw)?),
            Type::INT4 => Self::Integer(i32::from_sql(kind, raw)?.into()),
            Type::INT2 => Self::Integer(i16::from_sql(kind, raw)?.into()),
            Type::BOOL => Self::Integer(bool::from_sql(kind, raw)?.into()),
            Type::FLOAT8 => Self::Real(f64::from_sql(kind, raw)?),
            Type::BYTEA => Self::Blob(raw),
            // The sum of integers.
            Type::NUMERIC => Self::Integer(integer_of(raw).ok_or("a sum is no integer of 64 bits")?),
            _ if is_text(kind) => Self::Text(str::from_utf8(raw)?),
            _ => return Err(format!("columns of type {kind} are not read").into()),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Failure> {
        Ok(Self::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Reads a `numeric` without a fraction: digits to the base 10 000, the weight of the first, sign and scale.
fn integer_of(raw: &[u8]) -> Option<i64> {
    const BASE: i128 = 10_000;
    const NEGATIVE: i16 = 0x4000;
    let mut words = raw.chunks_exact(2).map(|word| i16::from_be_bytes([word[0], word[1]]));
    let (count, weight, sign, scale) = (words.next()?, words.next()?, words.next()?, words.next()?);
    if scale != 0 || ![0, NEGATIVE].contains(&sign) || weight > 5 {
        return None;
    }
    let digits: Vec<_> = words.take(usize::try_from(count).ok()?).collect();
    let places = usize::try_from(weight + 1).ok()?;
    let magnitude =
        (0..places).fold(0, |sum: i128, place| sum * BASE + i128::from(digits.get(place).copied().unwrap_or(0)));
    i64::try_from(if sign == NEGATIVE { -magnitude } else { magnitude }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sums() {
        let numeric = |words: &[i16]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
        assert_eq!(integer_of(&numeric(&[0, 0, 0, 0])), Some(0));
        assert_eq!(integer_of(&numeric(&[2, 1, 0, 0, 12, 3456])), Some(123_456));
        assert_eq!(integer_of(&numeric(&[1, 2, 0x4000, 0, 7])), Some(-700_000_000));
        assert_eq!(integer_of(&numeric(&[1, -1, 0, 1, 5000])), None);
    }
}
