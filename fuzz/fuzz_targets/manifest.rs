//! Any bytes as `manifest.json`: parsed alone, and at the head of a cache.
#![no_main]

use std::path::Path;

use dataset_rt::format::manifest::{FormatVersion, Manifest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = Path::new("manifest.json");
    if let Ok(manifest) = Manifest::parse(path, bytes) {
        let _ = Manifest::verify_checksum(path, bytes);
        if manifest.version == FormatVersion::V3 {
            let written = manifest.to_bytes().unwrap();
            Manifest::verify_checksum(path, &written).unwrap();
            let again = Manifest::parse(path, &written).unwrap();
            assert_eq!(Manifest { manifest_checksum: manifest.manifest_checksum.clone(), ..again }, manifest);
        }
    }
    dataset_rt_fuzz::cache(false).check(&[(0, bytes)]);
});
