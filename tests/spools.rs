//! Spools: every stream reads back what was appended to it, from memory and from the shared file.

use std::fs;
use std::path::Path;

use dataset_rt::fs::Spools;
use proptest::prelude::*;

proptest! {
    #[test]
    fn streams_read_back(
        limit in 0_usize..40,
        appended in prop::collection::vec((0_usize..3, prop::collection::vec(any::<u8>(), 0..30)), 0..40),
        cuts in prop::collection::vec(any::<u64>(), 2),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let mut spools = Spools::new(directory.path().join("spool"), 3, limit);
        let mut expected = vec![Vec::new(); 3];
        for (stream, bytes) in &appended {
            spools.append(*stream, bytes).unwrap();
            expected[*stream].extend_from_slice(bytes);
        }
        prop_assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        prop_assert_eq!(spools.is_empty(), expected.iter().all(Vec::is_empty));
        for (stream, expected) in expected.iter().enumerate() {
            let length = expected.len() as u64;
            prop_assert_eq!(spools.len(stream), length);
            let mut ends: Vec<u64> = cuts.iter().map(|cut| cut % (length + 1)).collect();
            ends.sort_unstable();
            let mut found = Vec::new();
            for range in [0..ends[0], ends[0]..ends[1], ends[1]..length] {
                spools.copy_to(stream, range, &mut found, Path::new("out")).unwrap();
            }
            prop_assert_eq!(&found, expected);
            prop_assert!(spools.copy_to(stream, 0..length + 1, &mut found, Path::new("out")).is_err());
        }
        prop_assert!(spools.append(3, b"x").is_err());
    }
}

#[test]
fn failures_name_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let mut spools = Spools::new(directory.path().join("missing/spool"), 1, 2);
    spools.append(0, b"ab").unwrap();
    let error = spools.append(0, b"c").unwrap_err();
    assert!(error.to_string().contains("missing/spool"), "{error}");

    let mut full: &mut [u8] = &mut [0; 1];
    let mut spools = Spools::new(directory.path().join("spool"), 1, 2);
    spools.append(0, b"abcd").unwrap();
    let error = spools.copy_to(0, 0..4, &mut full, Path::new("out file")).unwrap_err();
    assert!(error.to_string().contains("cannot write out file"), "{error}");
}
