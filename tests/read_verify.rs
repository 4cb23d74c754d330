//! Verification reads many records at once: whatever their lengths, the damaged one is found and named.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

#[path = "support/cache_files.rs"]
mod cache_files;
#[path = "support/reading.rs"]
mod reading;

use std::fs;
use std::path::{Path, PathBuf};

use cache_files::{CacheFiles, temp_dir};
use dataset_rt::Runtime;
use dataset_rt::cancel::PlainWaiter;
use dataset_rt::error::Error;
use dataset_rt::format::index::{IndexRow, ROW_BYTES};
use reading::{in_order, open, try_open, validated};

/// Payloads around every size at which hashing or reading changes its way: blocks, chunks, several chunks side by side, what is
/// hashed alone, and what does not fit into the buffer.
fn lens() -> Vec<usize> {
    let edges = [0, 64, 128, 960, 1024, 2048, 3072, 5120, 8192, 15_360, 16_384, 17_408, 131_072, 262_144, 300_000];
    let around = edges.iter().flat_map(|edge: &usize| (0..4).map(move |less| edge.saturating_sub(less * 43)));
    around.chain((0..40).map(|row| row * 7)).collect()
}

fn write(base: &Path, max_shard_bytes: usize) -> (PathBuf, Vec<IndexRow>) {
    let lens = lens();
    let mut files = CacheFiles::new("cache", lens.len() as u64, |row| lens[usize::try_from(row).unwrap()]);
    files.max_shard_bytes = max_shard_bytes;
    let path = files.write(base);
    let dataset = open(std::slice::from_ref(&path), validated());
    let caches = dataset.caches().unwrap();
    let index = caches.caches()[0].index();
    let rows = (0..lens.len() as u64).map(|row| index.get(row).unwrap()).collect();
    (path, rows)
}

fn shard(path: &Path, row: IndexRow) -> PathBuf {
    path.join(format!("shards/{:06}.bin", row.shard))
}

fn flip(file: &Path, at: u64) {
    let mut bytes = fs::read(file).unwrap();
    bytes[usize::try_from(at).unwrap()] ^= 16;
    fs::write(file, bytes).unwrap();
}

/// Row and text of the error of a verification.
fn fault(path: &PathBuf) -> (usize, String) {
    let error = try_open(std::slice::from_ref(path), validated()).unwrap_err();
    let Error::Sample { sample_id, .. } = &error else { panic!("{error:?}") };
    (usize::try_from(sample_id.0).unwrap(), error.to_string())
}

#[test]
fn d03_damage_in_any_place_of_a_record_of_any_length_names_its_sample() {
    let base = temp_dir();
    for (max_shard_bytes, step) in [(64 << 20, 1), (100_000, 7)] {
        let (path, rows) = write(base.path(), max_shard_bytes);
        for (number, row) in rows.iter().enumerate().step_by(step) {
            let file = shard(&path, *row);
            let at = [0, row.length / 2, row.length - 1][number % 3];
            flip(&file, row.offset + at);
            let (named, text) = fault(&path);
            assert_eq!(named, number, "byte {at} of {row:?}: {text}");
            assert!(text.contains(file.to_str().unwrap()) && text.contains("checksum"), "{text}");
            flip(&file, row.offset + at);
        }
        fs::remove_dir_all(path).unwrap();
    }
}

#[test]
fn d03_the_first_of_several_damaged_samples_is_named_whatever_their_damage() {
    let base = temp_dir();
    let (path, rows) = write(base.path(), 64 << 20);
    let sound = fs::read(path.join("index.bin")).unwrap();
    let (early, middle, late) = (70, 75, 80);
    // What the index says does not fit the shard.
    let mut damaged = sound.clone();
    let outside = IndexRow { offset: u64::MAX, ..rows[middle] };
    damaged[middle * ROW_BYTES..(middle + 1) * ROW_BYTES].copy_from_slice(&outside.to_bytes());
    let verified_index = sha256_of_index(&path, &damaged);
    let (named, text) = fault(&path);
    assert!(named == middle && text.contains("index.bin"), "{named}: {text}");
    for (row, first) in [(late, middle), (early, early)] {
        let file = shard(&path, rows[row]);
        flip(&file, rows[row].offset + 1);
        assert_eq!(fault(&path).0, first);
        flip(&file, rows[row].offset + 1);
    }
    fs::write(path.join("manifest.json"), verified_index).unwrap();
    fs::write(path.join("index.bin"), sound).unwrap();
    open(std::slice::from_ref(&path), validated());
    open(std::slice::from_ref(&path), in_order());
}

/// Puts another index into a cache whose manifest has its checksum. Gives the manifest as it was.
fn sha256_of_index(path: &Path, index: &[u8]) -> Vec<u8> {
    let manifest = path.join("manifest.json");
    let before = fs::read(&manifest).unwrap();
    let mut described = dataset_rt::format::manifest::Manifest::parse(&manifest, &before).unwrap();
    described.index_sha256 = dataset_rt::checksum::sha256_hex(index);
    fs::write(path.join("index.bin"), index).unwrap();
    fs::write(&manifest, described.to_bytes().unwrap()).unwrap();
    before
}

#[test]
fn d03_records_that_overlap_or_leave_gaps_are_verified_too() {
    let base = temp_dir();
    let (path, rows) = write(base.path(), 64 << 20);
    let mut index = fs::read(path.join("index.bin")).unwrap();
    let mut sums = fs::read(path.join("checksums.bin")).unwrap();
    // One sample twice, and two samples in each other's place.
    let place = |row: usize| row * ROW_BYTES..(row + 1) * ROW_BYTES;
    index.copy_within(place(70), 71 * ROW_BYTES);
    sums.copy_within(70 * 8..71 * 8, 71 * 8);
    for (one, other) in [(80, 83), (2, 90)] {
        for (bytes, size) in [(&mut index, ROW_BYTES), (&mut sums, 8)] {
            for at in 0..size {
                bytes.swap(one * size + at, other * size + at);
            }
        }
    }
    fs::write(path.join("checksums.bin"), &sums).unwrap();
    sha256_of_index(&path, &index);
    let manifest = path.join("manifest.json");
    let mut described =
        dataset_rt::format::manifest::Manifest::parse(&manifest, &fs::read(&manifest).unwrap()).unwrap();
    described.record_checksums.as_mut().unwrap().sha256 = dataset_rt::checksum::sha256_hex(&sums);
    fs::write(&manifest, described.to_bytes().unwrap()).unwrap();
    open(std::slice::from_ref(&path), validated());
    for (bytes_of, named) in [(70, 70), (80, 83), (83, 80), (2, 90), (90, 2)] {
        let file = shard(&path, rows[bytes_of]);
        flip(&file, rows[bytes_of].offset);
        assert_eq!(fault(&path).0, named);
        flip(&file, rows[bytes_of].offset);
    }
    // Bytes that belong to no sample any more are covered by the checksum of their shard.
    flip(&shard(&path, rows[71]), rows[71].offset);
    let error = try_open(std::slice::from_ref(&path), validated()).unwrap_err();
    assert!(error.to_string().contains("sha256"), "{error}");
}

#[test]
fn d03_a_verification_of_one_directory_tells_how_far_it_is() {
    let base = temp_dir();
    let (path, rows) = write(base.path(), 100_000);
    let bytes = fs::read_dir(path.join("shards")).unwrap().map(|shard| shard.unwrap().metadata().unwrap().len()).sum();
    let runtime = Runtime::new(3).unwrap();
    let mut told = Vec::new();
    runtime.verify(&path, &mut PlainWaiter::default(), &mut |checked, total| told.push((checked, total))).unwrap();
    assert!(told.is_sorted() && told.iter().all(|(checked, total)| checked <= total && *total == bytes), "{told:?}");
    assert_eq!(told.last(), Some(&(bytes, bytes)));

    flip(&shard(&path, rows[40]), rows[40].offset + 20);
    let error = runtime.verify(&path, &mut PlainWaiter::default(), &mut |_, _| ()).unwrap_err();
    assert!(matches!(&error, Error::Sample { sample_id, .. } if sample_id.0 == 40), "{error}");
    fs::remove_file(path.join("manifest.json")).unwrap();
    let error = runtime.verify(&path, &mut PlainWaiter::default(), &mut |_, _| ()).unwrap_err();
    assert!(error.to_string().contains("missing manifest"), "{error}");
}
