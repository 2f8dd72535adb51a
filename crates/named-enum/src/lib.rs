//! Enums whose values have names, in the store or in the API.

#[doc(hidden)]
pub use serde;

/// An enum that [`named_enum!`] declares.
pub trait NamedEnum {
    const NAMES: &'static [&'static str];
    /// The identifiers of the values in code. Not every name is one.
    const IDENTIFIERS: &'static [&'static str];
}

/// Declares an enum with a name for each value. Generates `ALL`, the values in this order; `name`; `from_name`, which
/// returns the value with a name; `Serialize`, which writes the name; and [`NamedEnum`].
#[macro_export]
macro_rules! named_enum {
    ($(#[$about:meta])* $visibility:vis enum $enum:ident {
        $($(#[$doc:meta])* $value:ident = $name:literal,)*
    }) => {
        $(#[$about])*
        $visibility enum $enum {
            $($(#[$doc])* $value,)*
        }

        impl $crate::NamedEnum for $enum {
            const NAMES: &'static [&'static str] = &[$($name),*];
            const IDENTIFIERS: &'static [&'static str] = &[$(stringify!($value)),*];
        }

        impl $crate::serde::Serialize for $enum {
            fn serialize<S: $crate::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(match self {
                    $(Self::$value => $name,)*
                })
            }
        }

        impl $enum {
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$value),*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)*
                }
            }

            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$value),)*
                    _ => None,
                }
            }
        }
    };
}
