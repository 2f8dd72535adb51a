//! Values of parameters and columns, the same for every engine.

use std::{borrow::Cow, fmt};

use crate::error::Error;

/// A value of a parameter or a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SqlValue<'value> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'value str),
    Blob(&'value [u8]),
}

/// A value that outlives the row or the parameter from which it was copied.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnedSqlValue {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

/// A type whose values are parameters of statements.
pub trait SqlParameter {
    fn value(&self) -> SqlValue<'_>;
}

/// The parameters of a statement, in the order of their numbers from `?1`: a tuple, an array, or `()` for none.
pub trait SqlParameters {
    type Values<'own>: AsRef<[SqlValue<'own>]>
    where
        Self: 'own;

    fn values(&self) -> Self::Values<'_>;
}

/// A type that columns are read into. `None` means that the column holds another type, or a value out of range.
pub trait SqlColumn: Sized {
    fn from_value(value: SqlValue<'_>) -> Option<Self>;
}

/// A stored value that cannot be read as what the operation expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowError {
    /// The column has another type.
    Type { column: usize, expected: &'static str },
    /// The value was read but breaks a rule of its type.
    Invalid,
}

pub type RowResult<T> = Result<T, RowError>;

impl fmt::Display for RowError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type { column, expected } => write!(formatter, "column {column} holds no {expected}"),
            Self::Invalid => formatter.write_str("a stored value is invalid"),
        }
    }
}

impl std::error::Error for RowError {}

impl From<RowError> for Error {
    #[cold]
    fn from(error: RowError) -> Self {
        Self::internal(error)
    }
}

impl OwnedSqlValue {
    pub fn borrowed(&self) -> SqlValue<'_> {
        match self {
            Self::Null => SqlValue::Null,
            Self::Integer(number) => SqlValue::Integer(*number),
            Self::Real(number) => SqlValue::Real(*number),
            Self::Text(text) => SqlValue::Text(text),
            Self::Blob(bytes) => SqlValue::Blob(bytes),
        }
    }
}

impl From<SqlValue<'_>> for OwnedSqlValue {
    fn from(value: SqlValue<'_>) -> Self {
        match value {
            SqlValue::Null => Self::Null,
            SqlValue::Integer(number) => Self::Integer(number),
            SqlValue::Real(number) => Self::Real(number),
            SqlValue::Text(text) => Self::Text(text.to_owned()),
            SqlValue::Blob(bytes) => Self::Blob(bytes.to_owned()),
        }
    }
}

impl<'value> SqlValue<'value> {
    pub fn as_text(self) -> Option<&'value str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub fn as_integer(self) -> Option<i64> {
        if let Self::Integer(number) = self { Some(number) } else { None }
    }

    pub fn as_blob(self) -> Option<&'value [u8]> {
        if let Self::Blob(bytes) = self { Some(bytes) } else { None }
    }
}

impl SqlParameter for bool {
    fn value(&self) -> SqlValue<'_> {
        SqlValue::Integer((*self).into())
    }
}

impl SqlParameter for f64 {
    fn value(&self) -> SqlValue<'_> {
        SqlValue::Real(*self)
    }
}

impl SqlParameter for str {
    fn value(&self) -> SqlValue<'_> {
        SqlValue::Text(self)
    }
}

impl SqlParameter for String {
    fn value(&self) -> SqlValue<'_> {
        SqlValue::Text(self)
    }
}

impl SqlParameter for Cow<'_, str> {
    fn value(&self) -> SqlValue<'_> {
        SqlValue::Text(self)
    }
}

impl SqlParameter for [u8] {
    fn value(&self) -> SqlValue<'_> {
        SqlValue::Blob(self)
    }
}

impl<const LENGTH: usize> SqlParameter for [u8; LENGTH] {
    fn value(&self) -> SqlValue<'_> {
        SqlValue::Blob(self)
    }
}

impl SqlParameter for Vec<u8> {
    fn value(&self) -> SqlValue<'_> {
        SqlValue::Blob(self)
    }
}

impl<P: SqlParameter> SqlParameter for Option<P> {
    fn value(&self) -> SqlValue<'_> {
        self.as_ref().map_or(SqlValue::Null, SqlParameter::value)
    }
}

impl<P: SqlParameter + ?Sized> SqlParameter for &P {
    fn value(&self) -> SqlValue<'_> {
        (**self).value()
    }
}

impl<P: SqlParameter + ?Sized> SqlParameter for Box<P> {
    fn value(&self) -> SqlValue<'_> {
        (**self).value()
    }
}

macro_rules! integers {
    ($($integer:ty),*) => { $(
        impl SqlParameter for $integer {
            fn value(&self) -> SqlValue<'_> {
                SqlValue::Integer((*self).into())
            }
        }

        impl SqlColumn for $integer {
            fn from_value(value: SqlValue<'_>) -> Option<Self> {
                value.as_integer()?.try_into().ok()
            }
        }
    )* };
}

integers!(i8, i16, i32, i64, u8, u16, u32);

impl SqlColumn for bool {
    fn from_value(value: SqlValue<'_>) -> Option<Self> {
        Some(value.as_integer()? != 0)
    }
}

impl SqlColumn for f64 {
    #[expect(clippy::cast_precision_loss, reason = "a sum of reals without rows is the integer 0")]
    fn from_value(value: SqlValue<'_>) -> Option<Self> {
        match value {
            SqlValue::Real(number) => Some(number),
            SqlValue::Integer(number) => Some(number as Self),
            _ => None,
        }
    }
}

impl SqlColumn for String {
    fn from_value(value: SqlValue<'_>) -> Option<Self> {
        value.as_text().map(Self::from)
    }
}

impl SqlColumn for Box<str> {
    fn from_value(value: SqlValue<'_>) -> Option<Self> {
        value.as_text().map(Self::from)
    }
}

impl SqlColumn for Vec<u8> {
    fn from_value(value: SqlValue<'_>) -> Option<Self> {
        value.as_blob().map(<[u8]>::to_vec)
    }
}

impl<const LENGTH: usize> SqlColumn for [u8; LENGTH] {
    fn from_value(value: SqlValue<'_>) -> Option<Self> {
        value.as_blob()?.try_into().ok()
    }
}

impl<C: SqlColumn> SqlColumn for Option<C> {
    fn from_value(value: SqlValue<'_>) -> Option<Self> {
        if value == SqlValue::Null { Some(None) } else { C::from_value(value).map(Some) }
    }
}

impl SqlParameters for () {
    type Values<'own> = [SqlValue<'own>; 0];

    fn values(&self) -> Self::Values<'_> {
        []
    }
}

impl<P: SqlParameter, const COUNT: usize> SqlParameters for [P; COUNT] {
    type Values<'own>
        = [SqlValue<'own>; COUNT]
    where
        P: 'own;

    fn values(&self) -> Self::Values<'_> {
        self.each_ref().map(SqlParameter::value)
    }
}

macro_rules! tuples {
    ($(($count:literal: $($parameter:ident $index:tt),*))*) => { $(
        impl<$($parameter: SqlParameter),*> SqlParameters for ($($parameter,)*) {
            type Values<'own> = [SqlValue<'own>; $count] where Self: 'own;

            fn values(&self) -> Self::Values<'_> {
                [$(self.$index.value()),*]
            }
        }
    )* };
}

tuples! {
    (1: A 0)
    (2: A 0, B 1)
    (3: A 0, B 1, C 2)
    (4: A 0, B 1, C 2, D 3)
    (5: A 0, B 1, C 2, D 3, E 4)
    (6: A 0, B 1, C 2, D 3, E 4, F 5)
    (7: A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
    (9: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8)
    (10: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9)
    (11: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10)
    (12: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11)
    (13: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12)
    (14: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13)
    (15: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14)
    (16: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15)
    (17: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15, Q 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_keep_their_order_and_count() {
        fn values(parameters: &impl SqlParameters) -> Vec<String> {
            parameters.values().as_ref().iter().map(|value| format!("{value:?}")).collect()
        }
        assert_eq!(values(&(7_u32, "a", None::<i64>)), ["Integer(7)", "Text(\"a\")", "Null"]);
        assert_eq!(values(&[true, false]), ["Integer(1)", "Integer(0)"]);
        assert!(values(&()).is_empty());
    }

    #[test]
    fn a_column_of_another_type_or_range_is_refused() {
        assert_eq!(u32::from_value(SqlValue::Integer(-1)), None);
        assert_eq!(i64::from_value(SqlValue::Text("1")), None);
        assert_eq!(Option::<i64>::from_value(SqlValue::Null), Some(None));
        assert_eq!(<[u8; 2]>::from_value(SqlValue::Blob(&[1])), None);
        assert_eq!(f64::from_value(SqlValue::Integer(2)), Some(2.0));
    }
}
