//! `seeds FOLDER`: writes one folder of sound inputs for each target. No target itself, but only targets can be linked
//! with code that counts its coverage.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: dataset_rt_fuzz::write_seeds_and_end(std::env::args_os().nth(1).expect("the folder to write to").as_ref()),
    |_bytes: &[u8]| {}
);
