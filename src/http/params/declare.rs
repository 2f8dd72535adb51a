//! The macro that turns one declaration into struct, reader and description.

/// Declares the parameters of an endpoint.
macro_rules! parameters {
    ($(
        $(#[$doc:meta])*
        $name:ident {
            $($field:ident : $kind:ident $type:ty = $wire:literal, $meaning:literal;)*
            $(=> $made:ident : $made_type:ty = $make:path {
                $($part:ident : $part_kind:ident $part_type:ty = $part_wire:literal, $part_meaning:literal;)*
            })*
        }
    )*) => {$(
        $(#[$doc])*
        #[allow(clippy::struct_field_names, reason = "the names are the interface's")]
        pub struct $name {
            $(pub $field: $crate::http::params::kind_type!($kind $type),)*
            $(pub $made: $made_type,)*
        }

        impl $crate::http::params::Parameters for $name {
            const NAMES: &'static [&'static str] = &[$($wire,)* $($($part_wire,)*)*];

            fn read(fields: &mut $crate::http::params::Fields<'_>) -> Option<Self> {
                $(let $field = $crate::http::params::kind_read!($kind $type, fields, $wire);)*
                $(
                    $(let $part = $crate::http::params::kind_read!($part_kind $part_type, fields, $part_wire);)*
                    let $made = match ($($part,)*) {
                        ($(Some($part),)*) => {
                            let outcome = $make(fields.rules(), $($part),*);
                            fields.made(outcome)
                        }
                        _ => None,
                    };
                )*
                Some(Self { $($field: $field?,)* $($made: $made?,)* })
            }

            fn describe() -> Vec<$crate::http::params::Described> {
                vec![
                    $($crate::http::params::kind_described!($kind $type, $wire, $meaning),)*
                    $($($crate::http::params::kind_described!($part_kind $part_type, $part_wire, $part_meaning),)*)*
                ]
            }
        }
    )*};
}

macro_rules! kind_described {
    ($kind:ident $type:ty, $wire:literal, $meaning:literal) => {
        $crate::http::params::Described {
            name: $wire,
            meaning: $meaning,
            place: $crate::http::params::kind_place!($kind),
            is_required: $crate::http::params::kind_required!($kind),
            schema: $crate::http::params::kind_schema!($kind $type),
        }
    };
}

macro_rules! kind_type {
    (optional $type:ty) => { Option<$type> };
    (list $type:ty) => { Vec<$type> };
    ($kind:ident $type:ty) => { $type };
}

macro_rules! kind_read {
    (required $type:ty, $fields:ident, $wire:literal) => {
        $fields.required::<$type>($wire)
    };
    (optional $type:ty, $fields:ident, $wire:literal) => {
        $fields.optional::<$type>($wire)
    };
    (list $type:ty, $fields:ident, $wire:literal) => {
        $fields.list::<$type>($wire)
    };
    (token $type:ty, $fields:ident, $wire:literal) => {
        $fields.token($wire)
    };
    (path $type:ty, $fields:ident, $wire:literal) => {
        $fields.in_path::<$type>($wire)
    };
}

macro_rules! kind_place {
    (path) => {
        $crate::http::params::Place::Path
    };
    ($kind:ident) => {
        $crate::http::params::Place::Anywhere
    };
}

macro_rules! kind_required {
    (required) => {
        true
    };
    (path) => {
        true
    };
    ($kind:ident) => {
        false
    };
}

macro_rules! kind_schema {
    (list $type:ty) => { |limits| serde_json::json!({
        "type": "array",
        "items": <$type as $crate::http::params::Parameter>::schema(limits),
        "maxItems": limits.batch,
    }) };
    ($kind:ident $type:ty) => { <$type as $crate::http::params::Parameter>::schema };
}

pub(crate) use {kind_described, kind_place, kind_read, kind_required, kind_schema, kind_type, parameters};
