//! Any bytes as `metadata.arrow`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| dataset_rt_fuzz::cache(false).check(&[(1, bytes)]));
