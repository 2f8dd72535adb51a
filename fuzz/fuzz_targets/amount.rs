#![no_main]

#[path = "../properties.rs"]
#[allow(dead_code, reason = "each target needs one of them")]
mod properties;

libfuzzer_sys::fuzz_target!(|data: &[u8]| properties::amount(data));
