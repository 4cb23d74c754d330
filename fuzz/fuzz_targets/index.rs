//! Any bytes as `index.bin`; as many as the manifest promises, so that they are looked at.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let cache = dataset_rt_fuzz::cache(false);
    let mut index = cache.sound(2).to_vec();
    let len = bytes.len().min(index.len());
    index[..len].copy_from_slice(&bytes[..len]);
    cache.check(&[(2, &index)]);
    if bytes.len() != index.len() {
        cache.check(&[(2, bytes)]);
    }
});
