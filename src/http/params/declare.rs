//! The macro that declares the parameters of an endpoint.

/// Declares a struct of parameters and reads each of its fields with the expression beside it.
///
/// ```ignore
/// parameters! {
///     Login(fields) {
///         phone_number: PhoneNumber = fields.required("phoneNumber", "The number that the code was sent to.");
///         device: Option<DeviceName> = fields.optional("device", "Name of the device.");
///     }
/// }
/// ```
///
/// The macro expands to `struct Login { … }` and to
///
/// ```ignore
/// fn read(fields: &mut Fields) -> Option<Login> {
///     let phone_number: Option<PhoneNumber> = fields.required("phoneNumber", "…");
///     let device: Option<Option<DeviceName>> = fields.optional("device", "…");
///     Some(Login { phone_number: phone_number?, device: device? })
/// }
/// ```
///
/// Every expression runs before the first `?`, so all faults are reported at once. An expression must not use `?`.
macro_rules! parameters {
    ($(
        $(#[$doc:meta])*
        $name:ident($fields:ident) {
            $($field:ident : $type:ty = $read:expr;)*
        }
    )*) => {$(
        $(#[$doc])*
        #[allow(clippy::struct_field_names, reason = "the interface sets the names")]
        pub struct $name {
            $(pub $field: $type,)*
        }

        impl $crate::http::params::Parameters for $name {
            fn read($fields: &mut $crate::http::params::Fields<'_, '_>) -> Option<Self> {
                $(let $field: Option<$type> = $read;)*
                Some(Self { $($field: $field?,)* })
            }
        }
    )*};
}

pub(crate) use parameters;
