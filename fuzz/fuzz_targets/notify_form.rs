#![no_main]

#[path = "../promises.rs"]
#[allow(dead_code, reason = "each target needs one of them")]
mod promises;

libfuzzer_sys::fuzz_target!(|data: &[u8]| promises::notify_form(data));
