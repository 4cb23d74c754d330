//! Any bytes as a shard, verbatim or compressed; as many as the manifest promises.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((compressed, bytes)) = bytes.split_first() else { return };
    let cache = dataset_rt_fuzz::cache(compressed % 2 == 1);
    let mut shard = cache.sound(4).to_vec();
    let len = bytes.len().min(shard.len());
    shard[..len].copy_from_slice(&bytes[..len]);
    cache.check(&[(4, &shard)]);
});
